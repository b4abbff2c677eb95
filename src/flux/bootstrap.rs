//! What `[bootstrap]` means: which host is which rank, who listens where, who connects to whom.
//!
//! A broker finds its rank by looking up its own host name, exactly as `hostname` prints it, in the expanded host list.

use std::collections::BTreeMap;
use std::ops::Range;

use super::config::Bootstrap;
use super::hostlist::{Hostlist, HostlistError, MAX_HOSTS};
use super::topology::{CustomTreeError, Topology, custom_parents};

/// Most bytes of a URI after `%h` and `%p` are filled in.
pub const MAX_URI: usize = 2048;

/// Most bytes of the path of an `ipc://` URI.
pub const MAX_IPC_PATH: usize = 108;

/// Why a name is no host name (RFC 1035 as flux-core reads it).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostnameError {
    /// Empty or longer than 253 bytes.
    #[error("a host name has 1 to 253 characters, this one has {0}")]
    Length(usize),
    /// A part between dots longer than 63 bytes.
    #[error("the part {0:?} of a host name is longer than 63 characters")]
    LabelLength(String),
    /// `-a` or `a-`.
    #[error("the part {0:?} of a host name starts or ends with a dash")]
    Dash(String),
    /// Anything but letters, digits and dashes; an underscore for example.
    #[error("a host name may not contain {0:?}")]
    Character(char),
}

/// Checks a host name as flux-core does for `[bootstrap]`.
///
/// # Errors
/// The first thing that is wrong.
pub fn check_hostname(name: &str) -> Result<(), HostnameError> {
    if name.is_empty() || name.len() > 253 {
        return Err(HostnameError::Length(name.len()));
    }
    for label in name.split('.').filter(|label| !label.is_empty()) {
        if label.len() > 63 {
            return Err(HostnameError::LabelLength(label.to_owned()));
        }
        if label.starts_with('-') || label.ends_with('-') {
            return Err(HostnameError::Dash(label.to_owned()));
        }
        if let Some(bad) = label.chars().find(|c| !c.is_ascii_alphanumeric() && *c != '-') {
            return Err(HostnameError::Character(bad));
        }
    }
    Ok(())
}

/// Why a bind or connect URI is unusable.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UriError {
    /// No `://`.
    #[error("{0:?} has no scheme: write tcp://… or ipc://…")]
    NoScheme(String),
    /// Another scheme.
    #[error("{0:?}: only tcp and ipc are supported")]
    Scheme(String),
    /// `tcp://*:*`.
    #[error("{0:?}: the port must not be a wildcard")]
    PortWildcard(String),
    /// Nothing after the scheme.
    #[error("{0:?} has no address")]
    Empty(String),
    /// An ipc path longer than [`MAX_IPC_PATH`].
    #[error("{0:?}: the socket path is longer than {MAX_IPC_PATH} bytes")]
    IpcPath(String),
    /// Longer than [`MAX_URI`].
    #[error("the URI is longer than {MAX_URI} bytes once filled in")]
    TooLong,
}

/// Checks a URI whose tokens are filled in.
///
/// # Errors
/// What flux-core refuses.
pub fn check_uri(uri: &str) -> Result<(), UriError> {
    let error = |make: fn(String) -> UriError| Err(make(uri.to_owned()));
    if !uri.contains("://") {
        return error(UriError::NoScheme);
    }
    if uri.contains(":*") {
        return error(UriError::PortWildcard);
    }
    match uri.split_once("://") {
        Some(("ipc" | "tcp", "")) => error(UriError::Empty),
        Some(("ipc", path)) if path.len() > MAX_IPC_PATH => error(UriError::IpcPath),
        Some(("ipc" | "tcp", _)) => Ok(()),
        _ => error(UriError::Scheme),
    }
}

/// Fills in `%h` (host), `%p` (port, -1 if unset) and `%%`; other uses of `%` stay as they are.
///
/// # Errors
/// The result is longer than [`MAX_URI`].
pub fn fill_in(template: &str, host: &str, port: Option<u16>) -> Result<String, UriError> {
    let mut uri = String::with_capacity(template.len() + host.len());
    let mut characters = template.chars();
    while let Some(c) = characters.next() {
        match (c, if c == '%' { characters.next() } else { None }) {
            ('%', Some('h')) => uri.push_str(host),
            ('%', Some('p')) => uri.push_str(&port.map_or("-1".to_owned(), |port| port.to_string())),
            ('%', Some('%')) => uri.push('%'),
            ('%', Some(other)) => uri.extend(['%', other]),
            ('%', None) => {}
            (c, _) => uri.push(c),
        }
    }
    if uri.len() > MAX_URI { Err(UriError::TooLong) } else { Ok(uri) }
}

/// One broker of the instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Host {
    /// Host name.
    pub name: String,
    /// Where it listens, tokens filled in.
    pub bind: Option<String>,
    /// How children reach it, tokens filled in.
    pub connect: Option<String>,
    /// Host name of its parent, for topology `custom`.
    pub parent: Option<String>,
}

/// What is wrong with an entry of `hosts`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostsErrorKind {
    /// `host` is no hostlist.
    #[error("{0:?} is not a hostlist: {1}")]
    Hostlist(String, HostlistError),
    /// All entries together name more than [`MAX_HOSTS`] hosts.
    #[error("more than {MAX_HOSTS} hosts")]
    TooMany,
    /// A host of the list is no host name.
    #[error("host {0:?}: {1}")]
    Hostname(String, HostnameError),
    /// A URI is unusable.
    #[error(transparent)]
    Uri(#[from] UriError),
    /// `parent` names the host itself.
    #[error("host {0} is its own parent")]
    ParentIsSelf(String),
    /// `parent` names no host of the list.
    #[error("parent {0:?} is not among the hosts")]
    UnknownParent(String),
}

/// An error in `hosts`, with the place it comes from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("hosts[{entry}].{key}: {kind}")]
pub struct HostsError {
    /// Index of the entry in the array.
    pub entry: usize,
    /// `host`, `bind`, `connect` or `parent`; `bind` and `connect` may come from the defaults.
    pub key: &'static str,
    /// True if the value is `default_bind` or `default_connect`.
    pub from_default: bool,
    /// What is wrong.
    pub kind: HostsErrorKind,
}

/// The hosts of an instance in rank order.
///
/// ```
/// use flux_gen::flux::bootstrap::Hosts;
/// use flux_gen::flux::config::{Bootstrap, HostEntry};
/// use flux_gen::flux::Topology;
/// let leader = HostEntry { bind: Some("tcp://*:8050".into()), connect: Some("tcp://%h.sim:8050".into()), ..HostEntry::new("sim-0") };
/// let bootstrap = Bootstrap { hosts: vec![leader, HostEntry::new("sim-[0-3]")], ..Bootstrap::default() };
/// let hosts = Hosts::new(&bootstrap).unwrap();
/// let follower = hosts.place("sim-2", Topology::Custom).unwrap();
/// assert_eq!((follower.rank, follower.connects.as_deref()), (2, Some("tcp://sim-0.sim:8050")));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hosts {
    hosts: Vec<Host>,
    ranks: BTreeMap<String, u32>,
}

/// A host while entries are merged: for each key its value and the entry it came from.
#[derive(Default)]
struct Merged {
    name: String,
    entry: usize,
    fields: [Option<(String, usize)>; 3],
}

/// The keys of [`Merged::fields`].
const FIELDS: [&str; 3] = ["bind", "connect", "parent"];

impl Hosts {
    /// Expands and merges the entries. Rank = position of a host's first appearance; a later entry for the
    /// same host only adds the keys that are still missing; the defaults come last.
    ///
    /// # Errors
    /// All problems of all entries.
    pub fn new(bootstrap: &Bootstrap) -> Result<Self, Vec<HostsError>> {
        let mut errors = Vec::new();
        let merged = merge(bootstrap, &mut errors);
        let ranks: BTreeMap<String, u32> =
            merged.iter().zip(0..).map(|(host, rank): (_, u32)| (host.name.clone(), rank)).collect();
        let hosts = merged.iter().map(|host| resolve(host, bootstrap, &ranks, &mut errors)).collect();
        errors.dedup();
        if errors.is_empty() { Ok(Self { hosts, ranks }) } else { Err(errors) }
    }

    /// Number of brokers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// True without hosts: an instance of one broker.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// The hosts in rank order.
    pub fn iter(&self) -> impl Iterator<Item = &Host> {
        self.hosts.iter()
    }

    /// The names in rank order.
    #[must_use]
    pub fn names(&self) -> Hostlist {
        // Names that passed the check are acceptable to a hostlist, but for numbers beyond 64 bits.
        let mut names = Hostlist::new();
        for host in &self.hosts {
            let _ = names.push(&host.name);
        }
        names
    }

    /// The rank of a host; the name must be spelled exactly so.
    #[must_use]
    pub fn rank_of(&self, hostname: &str) -> Option<u32> {
        self.ranks.get(hostname).copied()
    }

    /// For each rank the rank that its `parent` key names.
    #[must_use]
    pub fn parent_ranks(&self) -> Vec<Option<u32>> {
        self.hosts.iter().map(|host| self.rank_of(host.parent.as_deref()?)).collect()
    }

    /// The parents of all ranks in a topology.
    ///
    /// # Errors
    /// With [`Topology::Custom`]: the parents form no tree.
    pub fn tree(&self, topology: Topology) -> Result<Vec<Option<u32>>, CustomTreeError> {
        match topology {
            Topology::Custom => custom_parents(&self.parent_ranks()),
            other => Ok(other.parents(u32::try_from(self.hosts.len()).unwrap_or(u32::MAX))),
        }
    }

    /// What the broker on a host does: its rank, where it listens and to whom it connects.
    ///
    /// # Errors
    /// What ends that broker at once.
    pub fn place(&self, hostname: &str, topology: Topology) -> Result<Place, PlaceError> {
        let rank = self.rank_of(hostname).ok_or_else(|| PlaceError::NotListed(hostname.to_owned()))?;
        let tree = self.tree(topology)?;
        let host = |rank: u32| &self.hosts[rank as usize];
        let has_children = tree.contains(&Some(rank));
        let binds = match has_children {
            true => Some(host(rank).bind.clone().ok_or(PlaceError::NoBind(rank))?),
            false => None,
        };
        if has_children && host(rank).connect.is_none() {
            return Err(PlaceError::NoConnect(rank));
        }
        let parent = tree[rank as usize];
        let connects = match parent {
            Some(parent) => Some(host(parent).connect.clone().ok_or(PlaceError::NoConnect(parent))?),
            None => None,
        };
        Ok(Place { rank, size: self.len(), parent, binds, connects })
    }
}

/// The part of one broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its rank.
    pub rank: u32,
    /// Brokers in the instance.
    pub size: usize,
    /// The rank that it connects to; `None` for rank 0.
    pub parent: Option<u32>,
    /// Where it listens; `None` if it has no children.
    pub binds: Option<String>,
    /// The URI that it connects to; `None` for rank 0.
    pub connects: Option<String>,
}

/// Why a broker ends before it joins.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    /// The host name of the machine is not in the list.
    #[error("{0} is not among the hosts")]
    NotListed(String),
    /// It has children but nothing to listen on.
    #[error("rank {0} has children but no bind URI")]
    NoBind(u32),
    /// It has children that do not know how to reach it.
    #[error("rank {0} has children but no connect URI")]
    NoConnect(u32),
    /// The `parent` keys form no tree.
    #[error(transparent)]
    Tree(#[from] CustomTreeError),
}

fn merge(bootstrap: &Bootstrap, errors: &mut Vec<HostsError>) -> Vec<Merged> {
    let mut merged: Vec<Merged> = Vec::new();
    let mut index: BTreeMap<String, usize> = BTreeMap::new();
    let mut named = 0;
    for (entry, written) in bootstrap.hosts.iter().enumerate() {
        let names = match Hostlist::decode_as_flux(&written.host) {
            Ok(names) => names,
            Err(error) => {
                let kind = HostsErrorKind::Hostlist(written.host.clone(), error);
                errors.push(HostsError { entry, key: "host", from_default: false, kind });
                continue;
            }
        };
        named += names.len();
        if named > MAX_HOSTS {
            errors.push(HostsError { entry, key: "host", from_default: false, kind: HostsErrorKind::TooMany });
            break;
        }
        for name in names.iter() {
            let at = *index.entry(name.clone()).or_insert_with(|| {
                merged.push(Merged { name, entry, ..Merged::default() });
                merged.len() - 1
            });
            for (field, value) in merged[at].fields.iter_mut().zip([&written.bind, &written.connect, &written.parent]) {
                if let (None, Some(value)) = (&field, value) {
                    *field = Some((value.clone(), entry));
                }
            }
        }
    }
    merged
}

/// Fills in the defaults and checks one host.
fn resolve(
    merged: &Merged,
    bootstrap: &Bootstrap,
    ranks: &BTreeMap<String, u32>,
    errors: &mut Vec<HostsError>,
) -> Host {
    let name = &merged.name;
    let mut fail = |entry, key, from_default, kind| errors.push(HostsError { entry, key, from_default, kind });
    if let Err(error) = check_hostname(name) {
        fail(merged.entry, "host", false, HostsErrorKind::Hostname(name.clone(), error));
    }
    let mut uris = [None, None];
    let defaults = [&bootstrap.default_bind, &bootstrap.default_connect];
    for (at, uri) in uris.iter_mut().enumerate() {
        let own = merged.fields[at].as_ref().map(|(text, entry)| (text.as_str(), *entry, false));
        let written = own.or(defaults[at].as_deref().map(|text| (text, merged.entry, true)));
        let Some((template, entry, from_default)) = written else { continue };
        match fill_in(template, name, bootstrap.default_port).and_then(|uri| check_uri(&uri).map(|()| uri)) {
            Ok(filled) => *uri = Some(filled),
            Err(error) => fail(entry, FIELDS[at], from_default, error.into()),
        }
    }
    let parent = merged.fields[2].as_ref();
    if let Some((parent, entry)) = parent {
        if parent == name {
            fail(*entry, "parent", false, HostsErrorKind::ParentIsSelf(name.clone()));
        } else if !ranks.contains_key(parent) {
            fail(*entry, "parent", false, HostsErrorKind::UnknownParent(parent.clone()));
        }
    }
    let [bind, connect] = uris;
    Host { name: name.clone(), bind, connect, parent: parent.map(|(parent, _)| parent.clone()) }
}

/// The port of a `tcp://` URI as libzmq reads it, and whether a broker could bind there at all.
///
/// libzmq reads digits up to the first other character and keeps 16 bits of them, so 99999 is port 34463;
/// nothing, letters and 65536 are refused.
#[must_use]
pub fn bindable_port(uri: &str) -> Option<u16> {
    let (_, port) = uri.strip_prefix("tcp://")?.rsplit_once(':')?;
    let text = port.trim_start_matches([' ', '\t']);
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let end: Range<usize> = 0..digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let number: i64 = digits[end].parse().unwrap_or(0);
    let number = if negative { number.wrapping_neg() } else { number } as u16;
    (number != 0 || port == "0").then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flux::config::HostEntry;

    /// `host`, `bind`, `connect`, `parent`.
    type Entry<'a> = (&'a str, Option<&'a str>, Option<&'a str>, Option<&'a str>);

    fn bootstrap(hosts: &[Entry<'_>]) -> Bootstrap {
        let text = |value: &Option<&str>| value.map(str::to_owned);
        let entry = |(host, bind, connect, parent): &Entry<'_>| HostEntry {
            host: (*host).to_owned(),
            bind: text(bind),
            connect: text(connect),
            parent: text(parent),
        };
        Bootstrap { hosts: hosts.iter().map(entry).collect(), ..Bootstrap::default() }
    }

    #[test]
    fn later_entries_only_add_what_is_missing() {
        let hosts = Hosts::new(&bootstrap(&[
            ("h1", Some("tcp://a:1"), None, None),
            ("h[0-2]", Some("tcp://b:2"), Some("tcp://%h:3"), Some("h1")),
        ]));
        // h1 would be its own parent through the second entry.
        assert_eq!(hosts.unwrap_err()[0].kind, HostsErrorKind::ParentIsSelf("h1".into()));
        let hosts = Hosts::new(&bootstrap(&[
            ("h1", Some("tcp://a:1"), None, None),
            ("h[0-2]", Some("tcp://b:2"), Some("tcp://%h:3"), None),
        ]))
        .unwrap();
        assert_eq!(hosts.names().to_string(), "h[1,0,2]");
        assert_eq!((hosts.rank_of("h0"), hosts.rank_of("H0")), (Some(1), None));
        let place = hosts.place("h1", Topology::Custom).unwrap();
        assert_eq!((place.rank, place.binds.as_deref(), place.connects), (0, Some("tcp://a:1"), None));
        let place = hosts.place("h2", Topology::Kary(1)).unwrap();
        assert_eq!((place.parent, place.connects.as_deref(), place.binds), (Some(1), Some("tcp://h0:3"), None));
    }

    #[test]
    fn brokers_with_children_need_both_uris() {
        let hosts = Hosts::new(&bootstrap(&[("h0", None, Some("tcp://x:1"), None), ("h1", None, None, None)])).unwrap();
        assert_eq!(hosts.place("h0", Topology::Custom), Err(PlaceError::NoBind(0)));
        let hosts = Hosts::new(&bootstrap(&[("h0", Some("tcp://x:1"), None, None), ("h1", None, None, None)])).unwrap();
        assert_eq!(hosts.place("h0", Topology::Custom), Err(PlaceError::NoConnect(0)));
        assert_eq!(hosts.place("h1", Topology::Custom), Err(PlaceError::NoConnect(0)));
        assert_eq!(hosts.place("h2", Topology::Custom), Err(PlaceError::NotListed("h2".into())));
    }

    #[test]
    fn host_names_and_uris() {
        for name in ["h0", "10.0.0.1", "h1.", "a.b-c.d", &"a".repeat(63)] {
            assert_eq!(check_hostname(name), Ok(()), "{name}");
        }
        for name in ["", "h_1", "-h", "h-", "a.-b", "h0[1]", "é", &"a".repeat(64), &"a.".repeat(127)] {
            assert!(check_hostname(name).is_err(), "{name}");
        }
        for uri in ["tcp://*:8050", "tcp://eth0:1", "ipc:///x", "tcp://lo"] {
            assert_eq!(check_uri(uri), Ok(()), "{uri}");
        }
        for uri in ["lo:1", "tcp://lo:*", "tcp://", "ipc://", "udp://x:1", &format!("ipc://{}", "x".repeat(109))] {
            assert!(check_uri(uri).is_err(), "{uri}");
        }
        assert_eq!(fill_in("%h:%p %% %x %", "h", Some(1)).as_deref(), Ok("h:1 % %x "));
        assert_eq!(fill_in("%p", "h", None).as_deref(), Ok("-1"));
        assert_eq!(fill_in(&"%h".repeat(40), &"h".repeat(60), None), Err(UriError::TooLong));
    }

    #[test]
    fn ports_as_libzmq_reads_them() {
        for (uri, port) in [
            ("tcp://lo:8050", Some(8050)),
            ("tcp://lo:99999", Some(34463)),
            ("tcp://lo:-1", Some(65535)),
            ("tcp://lo:0", Some(0)),
            ("tcp://lo:65536", None),
            ("tcp://lo:abc", None),
            ("tcp://lo", None),
        ] {
            assert_eq!(bindable_port(uri), port, "{uri}");
        }
    }
}
