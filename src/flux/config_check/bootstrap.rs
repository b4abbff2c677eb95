//! `[bootstrap]` and the tree of brokers (`[tbon] topo`).

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::ops::Range;

use super::reader::Checker;
use super::syntax::{Entry, Node, Table, Value, join};
use super::{PodFile, Severity};
use crate::flux::bootstrap::{Hosts, HostsError, bindable_port, fill_in};
use crate::flux::certificate::{Certificate, check_mode};
use crate::flux::config::{Bootstrap, HostEntry};
use crate::flux::hostlist::Hostlist;
use crate::flux::topology::{CustomTreeError, Topology};

const TABLE: &str = "bootstrap";
const KEYS: [&str; 6] = ["curve_cert", "default_bind", "default_connect", "default_port", "enable_ipv6", "hosts"];
const HOST_KEYS: [&str; 4] = ["host", "bind", "connect", "parent"];

/// What later checks need to know of a `[bootstrap]` table.
pub(super) struct Found {
    /// The hosts in rank order; `None` if they are wrong.
    pub(super) hosts: Option<Hosts>,
}

/// Checks the table and the tree; `None` if there is no such table.
pub(super) fn check(checker: &mut Checker<'_>, root: &Table) -> Option<Found> {
    let entry = root.entry(TABLE);
    let topology = topology(checker, root, entry.is_some());
    checker.report.topology = topology;
    let Some(entry) = entry else {
        several_pods_without_table(checker);
        return None;
    };
    let Some(table) = checker.as_table(&entry.node, TABLE) else {
        return Some(Found { hosts: None });
    };
    checker.unknown_keys(Severity::Error, table, TABLE, &KEYS);
    let problems_before = checker.report.problems.len();
    let bootstrap = read(checker, table);
    let readable = checker.report.problems[problems_before..].iter().all(|p| p.severity != Severity::Error);
    let hosts = hosts(checker, table, &bootstrap).filter(|_| readable);
    let size = hosts.as_ref().map_or(1, |hosts| hosts.len().max(1));
    certificate(checker, entry, table, &bootstrap, size);
    if let Some(hosts) = hosts.as_ref().filter(|hosts| !hosts.is_empty()) {
        pods(checker, table, hosts);
        if let Some(topology) = topology {
            tree(checker, table, hosts, topology, &bootstrap);
        }
    }
    checker.report.hosts.clone_from(&hosts);
    Some(Found { hosts })
}

fn several_pods_without_table(checker: &mut Checker<'_>) {
    let pods = checker.context.hosts.len();
    if pods > 1 {
        checker
            .error(0..0, TABLE, format!("without [bootstrap] each of the {pods} pods becomes an instance of its own"))
            .help("add a [bootstrap] table that lists the hosts");
    }
}

/// `tbon.topo`; with `[bootstrap]` the default is `custom`.
fn topology(checker: &mut Checker<'_>, root: &Table, configured: bool) -> Option<Topology> {
    let default = if configured { Topology::Custom } else { Topology::Kary(32) };
    let Some(Value::Table(tbon)) = root.get("tbon").map(|node| &node.value) else {
        return Some(default);
    };
    let Some(text) = checker.string_at(tbon, "tbon", "topo") else {
        return tbon.get("topo").is_none().then_some(default);
    };
    match text.value.parse::<Topology>() {
        Ok(topology) => {
            if topology.to_string() != text.value {
                let message = format!("tbon.topo {:?} is read as {topology}", text.value);
                checker.warning(text.span.clone(), "tbon.topo", message);
            }
            let since = crate::flux::FluxVersion::release(75);
            let version = checker.context.version.filter(|&v| v < since);
            if let (Topology::Mincrit(_), Some(version)) = (topology, version) {
                checker.error(text.span, "tbon.topo", format!("mincrit needs flux-core {since}, not {version}"));
            }
            Some(topology)
        }
        Err(error) => {
            checker.error(text.span, "tbon.topo", format!("tbon.topo: {error}"));
            None
        }
    }
}

/// The table as typed values; what is wrong with single keys is recorded.
fn read(checker: &mut Checker<'_>, table: &Table) -> Bootstrap {
    let mut bootstrap = Bootstrap {
        curve_cert: checker.string_at(table, TABLE, "curve_cert").map(|text| text.value),
        default_bind: checker.string_at(table, TABLE, "default_bind").map(|text| text.value),
        default_connect: checker.string_at(table, TABLE, "default_connect").map(|text| text.value),
        default_port: port(checker, table),
        enable_ipv6: checker.flag_at(table, TABLE, "enable_ipv6").map(|flag| flag.value),
        hosts: Vec::new(),
    };
    for (index, node) in checker.array_at(table, TABLE, "hosts").unwrap_or_default().iter().enumerate() {
        let path = format!("{TABLE}.hosts[{index}]");
        bootstrap.hosts.push(host_entry(checker, node, &path));
    }
    bootstrap
}

/// Flux keeps 32 bits and takes -1 for "not set".
fn port(checker: &mut Checker<'_>, table: &Table) -> Option<u16> {
    let written = checker.integer_at(table, TABLE, "default_port")?;
    let kept = written.value as i32;
    match u16::try_from(kept) {
        Ok(port) => {
            if i64::from(port) != written.value {
                let message = format!("default_port {} is taken for {port}", written.value);
                checker.warning(written.span, "bootstrap.default_port", message);
            }
            Some(port)
        }
        Err(_) if kept == -1 => None,
        Err(_) => {
            let message = format!("default_port must be between 0 and 65535, not {}", written.value);
            checker.error(written.span, "bootstrap.default_port", message);
            None
        }
    }
}

fn host_entry(checker: &mut Checker<'_>, node: &Node, path: &str) -> HostEntry {
    let Some(table) = checker.as_table(node, path) else { return HostEntry::default() };
    checker.unknown_keys(Severity::Error, table, path, &HOST_KEYS);
    if table.get("host").is_none() {
        checker.error(node.span.clone(), path, format!("{path} has no host"));
    }
    let mut text = |key: &str| checker.string_at(table, path, key).map(|text| text.value);
    HostEntry {
        host: text("host").unwrap_or_default(),
        bind: text("bind"),
        connect: text("connect"),
        parent: text("parent"),
    }
}

/// The place of a key of an entry, of the default it was taken from, or of the entry itself.
fn place_of(table: &Table, entry: usize, key: &str, from_default: bool) -> (Range<usize>, String) {
    if from_default {
        let default = format!("default_{key}");
        let span = table.get(&default).map_or(0..0, |node| node.span.clone());
        return (span, join(TABLE, &default));
    }
    let path = format!("{TABLE}.hosts[{entry}]");
    let Some(Value::Array(items)) = table.get("hosts").map(|node| &node.value) else { return (0..0, path) };
    let Some(item) = items.get(entry) else { return (0..0, path) };
    match &item.value {
        Value::Table(host) => match host.get(key) {
            Some(node) => (node.span.clone(), join(&path, key)),
            None => (item.span.clone(), path),
        },
        _ => (item.span.clone(), path),
    }
}

fn hosts(checker: &mut Checker<'_>, table: &Table, bootstrap: &Bootstrap) -> Option<Hosts> {
    for (index, entry) in bootstrap.hosts.iter().enumerate() {
        if let (Ok(_), Err(error)) = (Hostlist::decode_as_flux(&entry.host), Hostlist::parse(&entry.host)) {
            let (span, path) = place_of(table, index, "host", false);
            let message = format!("{:?}: {error}; Flux reads it, but perhaps not as meant", entry.host);
            checker.warning(span, &path, message);
        }
    }
    match Hosts::new(bootstrap) {
        Ok(hosts) if hosts.is_empty() && !bootstrap.hosts.is_empty() => {
            let (span, path) = place_of(table, 0, "host", false);
            checker.error(span, &path, "the entries of hosts name no host at all");
            None
        }
        Ok(hosts) => Some(hosts),
        Err(errors) => {
            let mut told: Vec<(Range<usize>, String)> = Vec::new();
            for HostsError { entry, key, from_default, kind } in errors {
                let (span, path) = place_of(table, entry, key, from_default);
                // One message per place: a bad default shows up once for every host.
                if !told.contains(&(span.clone(), path.clone())) {
                    told.push((span.clone(), path.clone()));
                    checker.error(span, &path, format!("{path}: {kind}"));
                }
            }
            None
        }
    }
}

fn certificate(checker: &mut Checker<'_>, header: &Entry, table: &Table, bootstrap: &Bootstrap, size: usize) {
    let key = "bootstrap.curve_cert";
    let Some(path) = &bootstrap.curve_cert else {
        if size > 1 && table.get("curve_cert").is_none() {
            checker
                .error(header.key_span.clone(), key, format!("curve_cert is needed for an instance of {size} brokers"))
                .help("add the path of the certificate: curve_cert = \"…\"");
        }
        return;
    };
    let span = table.get("curve_cert").map_or(0..0, |node| node.span.clone());
    if path.is_empty() {
        checker.error(span, key, "curve_cert is empty");
        return;
    }
    match (checker.context.files)(path) {
        PodFile::Unknown => {}
        PodFile::Missing => {
            checker.error(span, key, format!("there will be no certificate {path} in the pods"));
        }
        PodFile::Text { text, mode } => {
            if let Err(error) = check_mode(mode).and_then(|()| Certificate::parse(text.as_bytes()).map(|_| ())) {
                checker.error(span, key, format!("certificate {path}: {error}"));
            }
        }
    }
}

/// Every pod must find itself in the list, and the first one must be rank 0.
fn pods(checker: &mut Checker<'_>, table: &Table, hosts: &Hosts) {
    let span = table.entry("hosts").map_or(0..0, |entry| entry.node.span.clone());
    let key = "bootstrap.hosts";
    let context = checker.context;
    let missing: Vec<String> = context.hosts.iter().filter(|pod| hosts.rank_of(pod).is_none()).collect();
    if let Some(first) = missing.first() {
        let names = Hostlist::from_hosts(&missing).map_or_else(|_| first.clone(), |names| names.to_string());
        checker
            .error(
                span.clone(),
                key,
                format!("hosts lacks {names}: a broker ends at once on a host that is not listed"),
            )
            .help("names are compared letter by letter with what hostname prints in the pod");
    }
    if let Some(leader) = context.hosts.nth(0)
        && hosts.rank_of(&leader).is_some_and(|rank| rank != 0)
    {
        let first = hosts.iter().next().map_or("", |host| &host.name).to_owned();
        checker
            .error(span.clone(), key, format!("rank 0 would be {first}, but the leader is {leader}"))
            .help("list the leader first");
    }
    let more = hosts.iter().filter(|host| context.hosts.find(&host.name).is_none()).count();
    if more > 0 && !context.hosts.is_empty() {
        checker.warning(span, key, format!("{more} of the hosts are no pods of this cluster: they stay offline"));
    }
}

fn tree(checker: &mut Checker<'_>, table: &Table, hosts: &Hosts, topology: Topology, bootstrap: &Bootstrap) {
    let span = table.entry("hosts").map_or(0..0, |entry| entry.node.span.clone());
    let key = "bootstrap.hosts";
    let parents = match hosts.tree(topology) {
        Ok(parents) => parents,
        Err(error) => {
            let rank = match error {
                CustomTreeError::RootHasParent => 0,
                CustomTreeError::Cycle(rank) => rank,
            };
            let name = hosts.iter().nth(rank as usize).map_or("", |host| &host.name);
            checker.error(span, key, format!("host {name}: {error}"));
            return;
        }
    };
    if topology != Topology::Custom && hosts.iter().any(|host| host.parent.is_some()) {
        let message = format!("parent keys have no effect with topology {topology}");
        checker.warning(span.clone(), key, message);
    }
    let with_children: BTreeSet<u32> = parents.into_iter().flatten().collect();
    let mut told = [false; 2];
    for (rank, host) in (0..).zip(hosts.iter()) {
        if !with_children.contains(&rank) {
            continue;
        }
        for (at, (what, uri)) in [("bind", &host.bind), ("connect", &host.connect)].into_iter().enumerate() {
            if uri.is_none() && !std::mem::replace(&mut told[at], true) {
                let message = format!("host {} (rank {rank}) has children but no {what} URI", host.name);
                checker.error(span.clone(), key, message).help(format!("add {what} to its entry, or default_{what}"));
            }
        }
        if let Some(bind) = &host.bind {
            bind_address(checker, table, (bind, &host.name), rank, bootstrap);
        }
    }
}

/// Whether the broker on a host could listen on its URI, as far as that is known.
fn bind_address(checker: &mut Checker<'_>, table: &Table, (uri, host): (&str, &str), rank: u32, bootstrap: &Bootstrap) {
    let Some(rest) = uri.strip_prefix("tcp://") else { return };
    let makes_it = |template: &String| fill_in(template, host, bootstrap.default_port).as_deref() == Ok(uri);
    let own = bootstrap.hosts.iter().position(|entry| entry.bind.as_ref().is_some_and(makes_it));
    let (span, key) = place_of(table, own.unwrap_or(0), "bind", own.is_none());
    let key = key.as_str();
    let Some(port) = bindable_port(uri) else {
        checker.error(span, key, format!("{uri:?} has no usable port: rank {rank} cannot listen there"));
        return;
    };
    let (address, written) = rest.rsplit_once(':').unwrap_or((rest, ""));
    if written != port.to_string() {
        let message = format!("the port of {uri:?} is taken for {port}");
        checker.warning(span.clone(), key, message).help("set default_port, or write the port");
    } else if port == 0 {
        checker.warning(span.clone(), key, "with port 0 the system picks a port that no follower knows");
    }
    if rank == 0 && !address_exists(checker, address, bootstrap.enable_ipv6.unwrap_or(false)) {
        checker
            .error(span, key, format!("the leader has no network interface {address:?}: it cannot listen on {uri}"))
            .help("use the wildcard, tcp://*:PORT");
    }
}

/// libzmq listens on interface names and numeric addresses; it looks no names up for that.
fn address_exists(checker: &Checker<'_>, address: &str, ipv6: bool) -> bool {
    let known = checker.context.interfaces;
    let literal = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(address);
    match literal.parse::<IpAddr>() {
        Ok(IpAddr::V6(_)) => ipv6,
        Ok(IpAddr::V4(ip)) => {
            ip.is_loopback() || ip.is_unspecified() || known.is_none_or(|known| known.contains(&literal))
        }
        Err(_) if address == "*" => true,
        Err(_) => match known {
            Some(known) => known.contains(&address),
            // Linux interface names are short; a pod's own name is none of them.
            None => address.len() < 16 && checker.context.hosts.find(address).is_none(),
        },
    }
}
