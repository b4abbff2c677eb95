//! `broker.toml`: the `[bootstrap]`, `[resource]`, `[access]` and `[tbon]` tables with the strictness of
//! flux-core 0.88 (strict tables refuse unknown keys, other tables are nobody's business).

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use toml::{Table, Value};

use crate::attrs::duration;
use crate::cert::describe;
use crate::hostlist;
use crate::resources::Node;

/// One broker of the instance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Host {
    /// The name that its machine must have.
    pub name: String,
    /// Where it listens, if it has children.
    pub bind: Option<String>,
    /// Where its children reach it.
    pub connect: Option<String>,
    /// Its parent's name (topology `custom`).
    pub parent: Option<String>,
}

/// What the stub uses of a configuration.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// In rank order; empty: an instance of one.
    pub hosts: Vec<Host>,
    /// Whether there is a `[bootstrap]` table.
    pub bootstrap: bool,
    /// `bootstrap.curve_cert`.
    pub curve_cert: Option<String>,
    /// `resource.path`.
    pub r_path: Option<String>,
    /// `[[resource.config]]`.
    pub inline: Option<Vec<Node>>,
    /// `resource.noverify`, or `verify` switched off.
    pub noverify: bool,
    /// `tbon.topo`.
    pub topo: Option<String>,
    /// `tbon.zmqdebug`.
    pub zmqdebug: bool,
}

type Outcome<T> = Result<T, String>;

/// Reads a file, or every `*.toml` of a folder.
///
/// # Errors
/// What the broker prints after "Config file error".
pub fn load(path: &str) -> Outcome<Config> {
    let meta = fs::metadata(path).map_err(|e| format!(": stat: {path}: {}", describe(&e)))?;
    let mut files = vec![path.to_owned()];
    if meta.is_dir() {
        files.clear();
        for entry in fs::read_dir(path).map_err(|e| format!(": {path}: {}", describe(&e)))? {
            let file = entry.map_err(|e| format!(": {path}: {}", describe(&e)))?.path();
            if file.extension().is_some_and(|e| e == "toml") {
                files.push(file.display().to_string());
            }
        }
        files.sort();
    }
    let mut table = Table::new();
    for file in files {
        let text = fs::read_to_string(&file).map_err(|e| format!(": {file}: {}", describe(&e)))?;
        if text.starts_with('\u{feff}') {
            return Err(format!(": {file}:1: invalid or missing key"));
        }
        let one: Table = if Path::new(&file).extension().is_some_and(|e| e == "json") {
            serde_json::from_str(&text).map_err(|e| format!(": {file}: {e}"))?
        } else {
            text.parse().map_err(|e: toml::de::Error| format!(": {file}: {}", e.message()))?
        };
        merge(&mut table, one);
    }
    parse(&table)
}

fn merge(into: &mut Table, from: Table) {
    for (key, value) in from {
        match (into.get_mut(&key), value) {
            (Some(Value::Table(old)), Value::Table(new)) => merge(old, new),
            (_, value) => {
                into.insert(key, value);
            }
        }
    }
}

fn parse(table: &Table) -> Outcome<Config> {
    let mut config = Config::default();
    if let Some(b) = sub_table(table, "bootstrap")? {
        config.bootstrap = true;
        bootstrap(b, &mut config)?;
    }
    if let Some(r) = sub_table(table, "resource")? {
        resource(r, &mut config)?;
    }
    if let Some(a) = sub_table(table, "access")? {
        strict(a, "access", &["allow-guest-user", "allow-root-owner", "private-mode", "roles"])?;
        for key in ["allow-guest-user", "allow-root-owner"] {
            boolean(a, "access", key)?;
        }
    }
    if let Some(t) = sub_table(table, "tbon")? {
        config.topo = text(t, "tbon", "topo")?;
        config.zmqdebug = integer(t, "tbon", "zmqdebug")?.is_some_and(|n| n != 0);
        for key in ["torpid_min", "torpid_max", "tcp_user_timeout", "connect_timeout"] {
            if text(t, "tbon", key)?.is_some_and(|d| !duration(&d)) {
                return Err(format!(" [tbon]: {key}: invalid duration"));
            }
        }
    }
    Ok(config)
}

fn bootstrap(table: &Table, config: &mut Config) -> Outcome<()> {
    const NAME: &str = "bootstrap";
    strict(table, NAME, &["curve_cert", "default_port", "default_bind", "default_connect", "hosts", "enable_ipv6"])?;
    config.curve_cert = text(table, NAME, "curve_cert")?;
    boolean(table, NAME, "enable_ipv6")?;
    let port = integer(table, NAME, "default_port")?;
    if port.is_some_and(|p| !(0..=65535).contains(&p)) {
        return Err(" [bootstrap]: default_port out of range".to_owned());
    }
    let port = port.map_or("-1".to_owned(), |p| p.to_string());
    let bind = text(table, NAME, "default_bind")?;
    let connect = text(table, NAME, "default_connect")?;
    let entries = match table.get("hosts") {
        None => &[][..],
        Some(Value::Array(list)) => list,
        Some(_) => return Err(" [bootstrap]: hosts must be an array".to_owned()),
    };
    let mut order: Vec<String> = Vec::new();
    let mut hosts: BTreeMap<String, Host> = BTreeMap::new();
    for entry in entries {
        let Value::Table(entry) = entry else {
            return Err(" [bootstrap]: hosts entries must be tables".to_owned());
        };
        strict(entry, "bootstrap.hosts", &["host", "bind", "connect", "parent"])?;
        let list = text(entry, NAME, "host")?.ok_or(" [bootstrap]: a hosts entry has no host")?;
        let names = hostlist::expand(&list).map_err(|e| format!(" [bootstrap]: {e}"))?;
        if names.is_empty() {
            return Err(" [bootstrap]: a hosts entry has no host".to_owned());
        }
        for name in names {
            if !domain_name(&name) {
                return Err(format!(" [bootstrap]: {name} is not a valid host name"));
            }
            let host = hosts.entry(name.clone()).or_insert_with(|| {
                order.push(name.clone());
                Host { name: name.clone(), ..Host::default() }
            });
            // A later entry for the same host only fills what is missing.
            host.bind = host.bind.take().or(text(entry, NAME, "bind")?);
            host.connect = host.connect.take().or(text(entry, NAME, "connect")?);
            host.parent = host.parent.take().or(text(entry, NAME, "parent")?);
        }
    }
    for name in order {
        let Some(mut host) = hosts.remove(&name) else { continue };
        host.bind = host.bind.or(bind.clone()).map(|u| uri(&u, &name, &port)).transpose()?;
        host.connect = host.connect.or(connect.clone()).map(|u| uri(&u, &name, &port)).transpose()?;
        config.hosts.push(host);
    }
    if config.hosts.len() > 1 && config.curve_cert.as_deref().is_none_or(str::is_empty) {
        return Err(" [bootstrap]: curve_cert must be defined for size > 1".to_owned());
    }
    Ok(())
}

/// Expands `%h`, `%p`, `%%` and checks the scheme.
fn uri(template: &str, host: &str, port: &str) -> Outcome<String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some((head, tail)) = rest.split_once('%') {
        out.push_str(head);
        rest = match tail.chars().next() {
            Some('h') => {
                out.push_str(host);
                &tail[1..]
            }
            Some('p') => {
                out.push_str(port);
                &tail[1..]
            }
            Some('%') => {
                out.push('%');
                &tail[1..]
            }
            _ => {
                out.push('%');
                tail
            }
        };
    }
    out.push_str(rest);
    if !out.starts_with("tcp://") && !out.starts_with("ipc://") {
        return Err(format!(" [bootstrap]: {template}: unknown URI scheme"));
    }
    if out.ends_with(":*") {
        return Err(format!(" [bootstrap]: {template}: wildcard port is not allowed"));
    }
    Ok(out)
}

fn domain_name(name: &str) -> bool {
    let label = |l: &str| {
        (1..=63).contains(&l.len())
            && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !l.starts_with('-')
            && !l.ends_with('-')
    };
    let name = name.strip_suffix('.').unwrap_or(name);
    name.len() <= 253 && name.split('.').all(label)
}

fn resource(table: &Table, config: &mut Config) -> Outcome<()> {
    const NAME: &str = "resource";
    const KEYS: [&str; 11] = [
        "path",
        "scheduling",
        "config",
        "verify",
        "exclude",
        "norestrict",
        "noverify",
        "no-update-watch",
        "rediscover",
        "journal-max",
        "history",
    ];
    strict(table, NAME, &KEYS)?;
    config.r_path = text(table, NAME, "path")?;
    text(table, NAME, "exclude")?;
    for key in ["norestrict", "no-update-watch", "rediscover"] {
        boolean(table, NAME, key)?;
    }
    config.noverify = boolean(table, NAME, "noverify")?.unwrap_or(false);
    match table.get("verify") {
        None => {}
        Some(Value::Boolean(on)) => config.noverify |= !on,
        Some(Value::Table(t)) => {
            strict(t, "resource.verify", &["default", "hostname", "core", "gpu"])?;
            for (key, mode) in t {
                let known = ["strict", "allow-extra", "allow-missing", "ignore"];
                if !mode.as_str().is_some_and(|m| known.contains(&m)) {
                    return Err(format!(" [resource.verify]: invalid mode for {key}"));
                }
            }
            let mode = t.get("core").or(t.get("default")).and_then(Value::as_str);
            config.noverify |= matches!(mode, Some("ignore" | "allow-missing"));
        }
        Some(_) => return Err(" [resource]: verify must be a boolean or a table".to_owned()),
    }
    if let Some(list) = table.get("config") {
        let Value::Array(list) = list else { return Err(" [resource]: config must be an array".to_owned()) };
        let entries = list.iter().map(inline_entry).collect::<Outcome<Vec<_>>>()?;
        config.inline = Some(joined(entries)?);
    }
    Ok(())
}

/// An entry's hosts, cores and GPUs.
fn inline_entry(entry: &Value) -> Outcome<(Vec<String>, u32, u32)> {
    const NAME: &str = "resource.config";
    let Value::Table(entry) = entry else { return Err(" [resource.config]: entries must be tables".to_owned()) };
    strict(entry, NAME, &["hosts", "cores", "gpus", "properties"])?;
    let hosts = text(entry, NAME, "hosts")?.ok_or(" [resource.config]: hosts is required")?;
    let hosts = hostlist::expand(&hosts).map_err(|e| format!(" [resource.config]: {e}"))?;
    let count = |key| -> Outcome<u32> {
        let ids = hostlist::ids(&text(entry, NAME, key)?.unwrap_or_default())?;
        Ok(u32::try_from(ids.len()).unwrap_or(u32::MAX))
    };
    Ok((hosts, count("cores")?, count("gpus")?))
}

/// Later entries add to earlier hosts; in the end every host must have something.
fn joined(entries: Vec<(Vec<String>, u32, u32)>) -> Outcome<Vec<Node>> {
    let mut out: Vec<Node> = Vec::new();
    for (hosts, cores, gpus) in entries {
        for host in hosts {
            match out.iter_mut().find(|n| n.host == host) {
                Some(node) => {
                    node.cores = node.cores.max(cores);
                    node.gpus = node.gpus.max(gpus);
                }
                None => out.push(Node { host, cores, gpus }),
            }
        }
    }
    match out.iter().find(|n| n.cores == 0 && n.gpus == 0) {
        Some(node) => Err(format!(" [resource.config]: {} has no resources", node.host)),
        None => Ok(out),
    }
}

fn sub_table<'a>(table: &'a Table, name: &str) -> Outcome<Option<&'a Table>> {
    match table.get(name) {
        None => Ok(None),
        Some(Value::Table(t)) => Ok(Some(t)),
        Some(_) => Err(format!(" [{name}]: must be a table")),
    }
}

fn strict(table: &Table, name: &str, known: &[&str]) -> Outcome<()> {
    match table.keys().find(|k| !known.contains(&k.as_str())) {
        None => Ok(()),
        Some(key) => Err(format!(" [{name}]: unexpected key {key}")),
    }
}

fn text(table: &Table, name: &str, key: &str) -> Outcome<Option<String>> {
    match table.get(key) {
        None => Ok(None),
        Some(Value::String(s)) => Ok(Some(s.clone())),
        Some(_) => Err(format!(" [{name}]: {key}: expected string")),
    }
}

fn integer(table: &Table, name: &str, key: &str) -> Outcome<Option<i64>> {
    match table.get(key) {
        None => Ok(None),
        Some(Value::Integer(n)) => Ok(Some(*n)),
        Some(_) => Err(format!(" [{name}]: {key}: expected integer")),
    }
}

fn boolean(table: &Table, name: &str, key: &str) -> Outcome<Option<bool>> {
    match table.get(key) {
        None => Ok(None),
        Some(Value::Boolean(b)) => Ok(Some(*b)),
        Some(_) => Err(format!(" [{name}]: {key}: expected true or false")),
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
