//! topology.json.

use flux_gen::flux::Topology;
use flux_gen::flux::topology::{custom_parents, max_level, routers};
use serde_json::Value;

use crate::config::Wrapped;
use crate::{Outcome, all, same, text, texts};

pub(crate) fn topology(case: &Value, _: &Value) -> Outcome {
    let size = u32::try_from(case["size"].as_u64().unwrap_or(0)).unwrap();
    let (topo, parents) = match text(case, "kind") {
        "pmi" => match case["tbon_topo"].as_str().map(str::to_owned).or_else(|| fanout(text(case, "option"))) {
            Some(text) => (text.parse::<Topology>(), None),
            None => (Ok(Topology::Kary(32)), None),
        },
        "config" => match configured(case) {
            Ok((topo, parents)) => (Ok(topo), Some(parents)),
            Err(()) => return same(&1, &case["rc"].as_i64().unwrap()),
        },
        other => return Outcome::Different(format!("unknown kind {other}")),
    };
    let Ok(topo) = topo else {
        return same(&1, &case["rc"].as_i64().unwrap());
    };
    let parents = parents.unwrap_or_else(|| topo.parents(size));
    let plain: Vec<i64> = parents.iter().map(|p| p.map_or(-1, i64::from)).collect();
    let zero = "0".parse().unwrap();
    let critical = if size == 1 { zero } else { routers(&parents).union(&zero) };
    all([
        same(&0, &case["rc"].as_i64().unwrap()),
        same(&Value::from(plain), &case["parents"]),
        same(&i64::from(max_level(&parents)), &case["maxlevel"].as_i64().unwrap()),
        same(&critical.to_string().as_str(), &text(case, "critical_ranks")),
    ])
}

/// `-Stbon.fanout=K` is another spelling of `kary:K`.
fn fanout(option: &str) -> Option<String> {
    option.strip_prefix("-Stbon.fanout=").map(|k| format!("kary:{k}"))
}

/// The tree that a configuration and the options on the command line give.
fn configured(case: &Value) -> Result<(Topology, Vec<Option<u32>>), ()> {
    let config: toml::Table = text(case, "config").parse().map_err(|_| ())?;
    let options = texts(&case["options"]);
    let explicit = options.iter().find_map(|o| o.strip_prefix("-Stbon.topo=")).map(str::to_owned);
    let alias = options.iter().find_map(|o| fanout(o));
    let in_file = config.get("tbon").and_then(|t| t.get("topo")).and_then(toml::Value::as_str).map(str::to_owned);
    let topo: Topology = explicit.or(alias).or(in_file).unwrap_or("custom".to_owned()).parse().map_err(|_| ())?;
    let hosts = Wrapped::from(&config).hosts().map_err(|_| ())?;
    let size = u32::try_from(hosts.len()).unwrap();
    if case.get("hosts").is_some_and(|h| h.as_array().unwrap().len() != hosts.len()) {
        return Err(());
    }
    match topo {
        Topology::Custom => Ok((topo, custom_parents(&hosts.parent_ranks()).map_err(|_| ())?)),
        topo => Ok((topo, topo.parents(size))),
    }
}
