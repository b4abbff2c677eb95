//! The broker configuration that flux-gen writes: `broker.toml`, typed.
//!
//! Only what a bundle needs. A configuration that a user supplies is not read into these types but checked as
//! text by [`super::config_check`].

use std::fmt;

use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value, value};

use super::duration::FluxDuration;
use super::topology::Topology;

/// A broker configuration. Tables without a single key are not written.
///
/// ```
/// use flux_gen::flux::config::{Bootstrap, BrokerConfig, HostEntry};
/// let config = BrokerConfig {
///     bootstrap: Some(Bootstrap {
///         curve_cert: Some("/run/curve.cert".into()),
///         hosts: vec![HostEntry::new("sim-[0-3]")],
///         ..Bootstrap::default()
///     }),
///     ..BrokerConfig::default()
/// };
/// assert_eq!(
///     config.to_toml(),
///     "[bootstrap]\ncurve_cert = \"/run/curve.cert\"\nhosts = [\n    { host = \"sim-[0-3]\" },\n]\n"
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BrokerConfig {
    /// `[access]`: who may connect to the local socket.
    pub access: Access,
    /// `[bootstrap]`: which host is which broker. `None`: an instance of one broker.
    pub bootstrap: Option<Bootstrap>,
    /// `[exec]`: how jobs are started.
    pub exec: Exec,
    /// `[modules]`.
    pub modules: Modules,
    /// `[resource]`: what there is to schedule.
    pub resource: Resource,
    /// `[sched-fluxion-qmanager]`: read by Fluxion only.
    pub fluxion_queue_policy: Option<QueuePolicy>,
    /// `[tbon]`: the tree of brokers.
    pub tbon: Tbon,
}

/// `[access]`. Both are false by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Access {
    /// Other users may connect. Needs flux-security for jobs.
    pub allow_guest_user: bool,
    /// Root may act as the owner of the instance.
    pub allow_root_owner: bool,
}

/// `[bootstrap]`. In templates `%h` is the host and `%p` the port.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bootstrap {
    /// Path of the certificate; needed for more than one broker.
    pub curve_cert: Option<String>,
    /// What `%p` stands for.
    pub default_port: Option<u16>,
    /// Bind URI of hosts without one of their own.
    pub default_bind: Option<String>,
    /// Connect URI of hosts without one of their own.
    pub default_connect: Option<String>,
    /// IPv6 for both. `None`: not written.
    pub enable_ipv6: Option<bool>,
    /// The hosts; rank = position of first appearance. A later entry for a host only adds what is missing.
    pub hosts: Vec<HostEntry>,
}

/// An entry of `hosts` in `[bootstrap]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostEntry {
    /// Hostlist (RFC 29).
    pub host: String,
    /// Where these brokers listen for their children.
    pub bind: Option<String>,
    /// How their children reach them.
    pub connect: Option<String>,
    /// The host of their parent, with topology `custom`.
    pub parent: Option<String>,
}

impl HostEntry {
    /// An entry with nothing but a hostlist.
    #[must_use]
    pub fn new(host: impl Into<String>) -> Self {
        Self { host: host.into(), ..Self::default() }
    }
}

/// `[exec]`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Exec {
    /// Path of the job shell.
    pub job_shell: Option<String>,
    /// How long to wait before a job's processes are killed.
    pub kill_timeout: Option<FluxDuration>,
}

/// `[modules]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Modules {
    /// `alternatives.sched`: the scheduler, such as `sched-simple` where Fluxion is installed. Needs flux-core 0.79.
    pub scheduler: Option<String>,
}

/// `[resource]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resource {
    /// Path of R on every broker.
    pub path: Option<String>,
    /// Do not compare R with the hardware.
    pub noverify: bool,
    /// Do not restrict jobs to the broker's CPU affinity.
    pub norestrict: bool,
    /// Ranks (idset) or hosts (hostlist) that get no jobs.
    pub exclude: Option<String>,
}

/// `[tbon]`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tbon {
    /// Shape of the tree; `custom` by default with `[bootstrap]`.
    pub topo: Option<Topology>,
    /// How long one attempt to connect to the parent may take.
    pub connect_timeout: Option<FluxDuration>,
    /// How long data may stay unacknowledged before a peer counts as lost.
    pub tcp_user_timeout: Option<FluxDuration>,
}

/// Queue policies of Fluxion. Any other word silently means `fcfs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueuePolicy {
    /// First come, first served.
    Fcfs,
    /// EASY backfilling.
    Easy,
    /// Hybrid backfilling.
    Hybrid,
    /// Conservative backfilling.
    Conservative,
}

impl QueuePolicy {
    /// Every policy.
    pub const ALL: [Self; 4] = [Self::Fcfs, Self::Easy, Self::Hybrid, Self::Conservative];

    /// The word in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fcfs => "fcfs",
            Self::Easy => "easy",
            Self::Hybrid => "hybrid",
            Self::Conservative => "conservative",
        }
    }
}

impl fmt::Display for QueuePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for QueuePolicy {
    type Err = UnknownQueuePolicy;

    fn from_str(text: &str) -> Result<Self, UnknownQueuePolicy> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == text).ok_or_else(|| UnknownQueuePolicy(text.to_owned()))
    }
}

/// The word is none of the policies.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown queue policy {0:?}: use fcfs, easy, hybrid or conservative")]
pub struct UnknownQueuePolicy(String);

impl BrokerConfig {
    /// The text of `broker.toml`. Tables and keys come in a fixed order; the same configuration gives the same bytes.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let mut document = DocumentMut::new();
        let tables = [
            ("access", self.access.to_table()),
            ("bootstrap", self.bootstrap.as_ref().map(Bootstrap::to_table).unwrap_or_default()),
            ("exec", self.exec.to_table()),
            ("modules", self.modules.to_table()),
            ("resource", self.resource.to_table()),
            ("sched-fluxion-qmanager", entry("queue-policy", self.fluxion_queue_policy)),
            ("tbon", self.tbon.to_table()),
        ];
        for (name, mut table) in tables {
            // An empty [bootstrap] means something: the default topology.
            if !table.is_empty() || (name == "bootstrap" && self.bootstrap.is_some()) {
                let separator = if document.is_empty() { "" } else { "\n" };
                table.decor_mut().set_prefix(separator);
                document.insert(name, Item::Table(table));
            }
        }
        document.to_string()
    }
}

fn entry(key: &str, text: Option<impl ToString>) -> Table {
    let mut table = Table::new();
    put(&mut table, key, text);
    table
}

fn put(table: &mut Table, key: &str, text: Option<impl ToString>) {
    if let Some(text) = text {
        table.insert(key, value(text.to_string()));
    }
}

fn put_flag(table: &mut Table, key: &str, flag: bool) {
    if flag {
        table.insert(key, value(true));
    }
}

impl Access {
    fn to_table(self) -> Table {
        let mut table = Table::new();
        put_flag(&mut table, "allow-guest-user", self.allow_guest_user);
        put_flag(&mut table, "allow-root-owner", self.allow_root_owner);
        table
    }
}

impl Bootstrap {
    fn to_table(&self) -> Table {
        let mut table = Table::new();
        put(&mut table, "curve_cert", self.curve_cert.as_ref());
        if let Some(port) = self.default_port {
            table.insert("default_port", value(i64::from(port)));
        }
        put(&mut table, "default_bind", self.default_bind.as_ref());
        put(&mut table, "default_connect", self.default_connect.as_ref());
        if let Some(enable) = self.enable_ipv6 {
            table.insert("enable_ipv6", value(enable));
        }
        if !self.hosts.is_empty() {
            let mut hosts = Array::new();
            for host in &self.hosts {
                hosts.push_formatted(Value::from(host.to_inline_table()).decorated("\n    ", ""));
            }
            hosts.set_trailing("\n");
            hosts.set_trailing_comma(true);
            table.insert("hosts", value(hosts));
        }
        table
    }
}

impl HostEntry {
    fn to_inline_table(&self) -> InlineTable {
        let mut table = InlineTable::new();
        table.insert("host", Value::from(&self.host));
        for (key, text) in [("bind", &self.bind), ("connect", &self.connect), ("parent", &self.parent)] {
            if let Some(text) = text {
                table.insert(key, Value::from(text));
            }
        }
        table
    }
}

impl Exec {
    fn to_table(&self) -> Table {
        let mut table = Table::new();
        put(&mut table, "job-shell", self.job_shell.as_ref());
        put(&mut table, "kill-timeout", self.kill_timeout);
        table
    }
}

impl Modules {
    fn to_table(&self) -> Table {
        let mut table = Table::new();
        if let Some(scheduler) = &self.scheduler {
            let mut alternatives = Table::new();
            alternatives.set_dotted(true);
            alternatives.insert("sched", value(scheduler));
            table.insert("alternatives", Item::Table(alternatives));
        }
        table
    }
}

impl Resource {
    fn to_table(&self) -> Table {
        let mut table = Table::new();
        put(&mut table, "path", self.path.as_ref());
        put_flag(&mut table, "noverify", self.noverify);
        put_flag(&mut table, "norestrict", self.norestrict);
        put(&mut table, "exclude", self.exclude.as_ref());
        table
    }
}

impl Tbon {
    fn to_table(&self) -> Table {
        let mut table = entry("topo", self.topo);
        put(&mut table, "connect_timeout", self.connect_timeout);
        put(&mut table, "tcp_user_timeout", self.tcp_user_timeout);
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> BrokerConfig {
        BrokerConfig {
            access: Access { allow_guest_user: true, allow_root_owner: true },
            bootstrap: Some(Bootstrap {
                curve_cert: Some("/a \"quoted\" path\\".into()),
                default_port: Some(8050),
                default_bind: Some("tcp://*:%p".into()),
                default_connect: Some("tcp://%h.sim:%p".into()),
                enable_ipv6: Some(true),
                hosts: vec![
                    HostEntry {
                        bind: Some("tcp://*:8050".into()),
                        connect: Some("tcp://x:1".into()),
                        ..HostEntry::new("sim-0")
                    },
                    HostEntry { parent: Some("sim-0".into()), ..HostEntry::new("sim-[0-3]") },
                ],
            }),
            exec: Exec { job_shell: Some("/s".into()), kill_timeout: Some(FluxDuration::from_whole_seconds(10)) },
            modules: Modules { scheduler: Some("sched-simple".into()) },
            resource: Resource { path: Some("/R".into()), noverify: true, norestrict: true, exclude: Some("0".into()) },
            fluxion_queue_policy: Some(QueuePolicy::Easy),
            tbon: Tbon {
                topo: Some(Topology::Kary(2)),
                connect_timeout: Some(FluxDuration::from_whole_seconds(5)),
                tcp_user_timeout: Some(FluxDuration::from_whole_seconds(90)),
            },
        }
    }

    #[test]
    fn writes_every_key_readably() {
        let text = full().to_toml();
        assert_eq!(
            text,
            r#"[access]
allow-guest-user = true
allow-root-owner = true

[bootstrap]
curve_cert = '/a "quoted" path\'
default_port = 8050
default_bind = "tcp://*:%p"
default_connect = "tcp://%h.sim:%p"
enable_ipv6 = true
hosts = [
    { host = "sim-0", bind = "tcp://*:8050", connect = "tcp://x:1" },
    { host = "sim-[0-3]", parent = "sim-0" },
]

[exec]
job-shell = "/s"
kill-timeout = "10s"

[modules]
alternatives.sched = "sched-simple"

[resource]
path = "/R"
noverify = true
norestrict = true
exclude = "0"

[sched-fluxion-qmanager]
queue-policy = "easy"

[tbon]
topo = "kary:2"
connect_timeout = "5s"
tcp_user_timeout = "1.5m"
"#
        );
        assert!(text.parse::<toml::Table>().is_ok());
    }

    #[test]
    fn empty_tables_are_left_out() {
        assert_eq!(BrokerConfig::default().to_toml(), "");
        let config = BrokerConfig { bootstrap: Some(Bootstrap::default()), ..BrokerConfig::default() };
        assert_eq!(config.to_toml(), "[bootstrap]\n");
    }

    #[test]
    fn queue_policies() {
        for policy in QueuePolicy::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        assert!("FCFS".parse::<QueuePolicy>().is_err());
    }
}
