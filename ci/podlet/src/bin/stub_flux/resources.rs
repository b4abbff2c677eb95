//! R (RFC 20, version 1), with the checks that stop a broker.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::cert::describe;
use crate::config::Config;
use crate::hostlist;

/// The resources of one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Host name.
    pub host: String,
    /// Number of cores.
    pub cores: u32,
    /// Number of GPUs.
    pub gpus: u32,
}

/// Loads the configured resources for an instance of `hosts`; `None`: nothing is configured, so each
/// broker reports what it finds.
///
/// # Errors
/// What the resource module logs.
pub fn load(config: &Config, hosts: &[String]) -> Result<Option<Vec<Node>>, String> {
    let nodes = if let Some(inline) = &config.inline {
        inline.clone()
    } else if let Some(path) = &config.r_path {
        let text = fs::read_to_string(path).map_err(|e| {
            let why = describe(&e);
            format!("{path}: unable to open {path}: {why} on line -1")
        })?;
        parse(&text).map_err(|e| format!("{path}: {e}"))?
    } else {
        return Ok(None);
    };
    if config.bootstrap {
        rerank(&nodes, hosts)?;
    }
    Ok(Some(nodes))
}

/// R must hold exactly the hosts of the instance.
fn rerank(nodes: &[Node], hosts: &[String]) -> Result<(), String> {
    let (have, want) = (nodes.len(), hosts.len());
    if want > have {
        return Err(format!("error reranking R: Number of hosts ({want}) is greater than node count ({have})"));
    }
    if want < have {
        return Err(format!("error reranking R: Number of hosts ({want}) is less than node count ({have})"));
    }
    let names: BTreeSet<&str> = nodes.iter().map(|n| n.host.as_str()).collect();
    match hosts.iter().find(|h| !names.contains(h.as_str())) {
        Some(host) => Err(format!("error reranking R: Host {host} not found in resources")),
        None => Ok(()),
    }
}

/// Parses R into nodes in rank order.
///
/// # Errors
/// A missing or wrong part.
pub fn parse(text: &str) -> Result<Vec<Node>, String> {
    let r: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    if r.get("version").and_then(Value::as_i64) != Some(1) {
        return Err("version must be 1".to_owned());
    }
    let lite = r.pointer("/execution/R_lite").and_then(Value::as_array).ok_or("R_lite must be an array")?;
    let mut ranks: Vec<(u32, u32, u32)> = Vec::new();
    for entry in lite {
        let rank = entry.get("rank").and_then(Value::as_str).ok_or("rank must be a string")?;
        let children = entry.get("children").and_then(Value::as_object).ok_or("children must be an object")?;
        let count = |kind: &str| -> Result<u32, String> {
            match children.get(kind) {
                None => Ok(0),
                Some(Value::String(s)) if !s.is_empty() => {
                    Ok(u32::try_from(hostlist::ids(s)?.len()).unwrap_or(u32::MAX))
                }
                Some(_) => Err(format!("{kind}: an idset that is not empty is expected")),
            }
        };
        let (cores, gpus) = (count("core")?, count("gpu")?);
        if cores == 0 {
            return Err("a rank has no cores".to_owned());
        }
        ranks.extend(hostlist::ids(rank)?.into_iter().map(|r| (r, cores, gpus)));
    }
    ranks.sort_unstable();
    if ranks.windows(2).any(|w| w[0].0 == w[1].0) {
        return Err("overlapping ranks".to_owned());
    }
    let list = r.pointer("/execution/nodelist").and_then(Value::as_array).ok_or("nodelist is missing")?;
    let mut hosts = Vec::new();
    for part in list {
        hosts.extend(hostlist::expand(part.as_str().ok_or("nodelist must hold strings")?)?);
    }
    if hosts.len() != ranks.len() {
        return Err(format!("{} hosts for {} ranks", hosts.len(), ranks.len()));
    }
    Ok(hosts.into_iter().zip(ranks).map(|(host, (_, cores, gpus))| Node { host, cores, gpus }).collect())
}

/// The cores that this process may use.
pub fn local_cores() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::{load, parse};
    use crate::config::Config;

    const R: &str = r#"{"version": 1, "execution": {"R_lite": [{"rank": "1", "children": {"core": "0"}},
        {"rank": "0", "children": {"gpu": "0-1", "core": "0-3"}}], "nodelist": ["a", "b"]}}"#;

    #[test]
    fn nodes_in_rank_order() {
        let nodes = parse(R).expect("parses");
        let got: Vec<_> = nodes.iter().map(|n| (n.host.as_str(), n.cores, n.gpus)).collect();
        assert_eq!(got, [("a", 4, 2), ("b", 1, 0)]);
    }

    #[test]
    fn refused() {
        for (from, to) in [
            ("\"version\": 1, ", ""),
            ("\"0-3\"", "\"\""),
            ("\"0-3\"", "\"3-0\""),
            ("\"rank\": \"1\"", "\"rank\": 1"),
            ("\"rank\": \"1\"", "\"rank\": \"0\""),
            ("[\"a\", \"b\"]", "[\"a\"]"),
            ("\"b\"]", "\"b[\"]"),
        ] {
            assert!(parse(&R.replace(from, to)).is_err(), "{to}");
        }
    }

    #[test]
    fn the_hosts_must_be_the_instances() {
        let dir = tempfile::tempdir().expect("tempdir");
        let path = dir.path().join("R");
        std::fs::write(&path, R).expect("write");
        let config = Config { bootstrap: true, r_path: Some(path.display().to_string()), ..Config::default() };
        let hosts = |t: &str| t.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(load(&config, &hosts("b a")).is_ok());
        for (list, words) in [("a", "less than"), ("a b c", "greater than"), ("a c", "Host c not found")] {
            let error = load(&config, &hosts(list)).expect_err(list);
            assert!(error.contains(words), "{error}");
        }
    }
}
