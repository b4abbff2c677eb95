//! What conditions and placeholders of rows refer to.

use std::collections::{BTreeMap, BTreeSet};

use flux_gen::model::{Cluster, Leader, Program};
use serde_json::Value;

use crate::case::Case;
use crate::rows::{Facts, runner};

/// Facts of a document, and of the cluster it resolves to.
pub fn of<'a>(case: &'a Case, cluster: Option<&Cluster>) -> Facts<'a> {
    let input = &case.input;
    let name = input["metadata"]["name"].as_str().unwrap_or_default();
    let containers = input["spec"]["containers"].as_array().cloned().unwrap_or_default();
    let runner = runner(&containers).unwrap_or(0).min(containers.len());
    let mut words = BTreeMap::from([
        ("name".to_owned(), name.to_owned()),
        ("runner".to_owned(), runner.to_string()),
        ("mount".to_owned(), text(&input["spec"]["flux"]["container"]["mountPath"], "/mnt/flux")),
        ("view".to_owned(), text(&input["spec"]["flux"]["container"]["name"], "flux-view")),
        ("headless".to_owned(), text(&input["spec"]["network"]["headlessName"], name)),
        ("namespace".to_owned(), text(&input["metadata"]["namespace"], "default")),
    ]);
    let lead = &input["spec"]["flux"]["bursting"]["leadBroker"];
    words.insert("lead-address".to_owned(), text(&lead["address"], ""));
    words.insert("lead-port".to_owned(), lead["port"].as_u64().unwrap_or(8050).to_string());
    words.insert("archive".to_owned(), text(&input["spec"]["archive"]["path"], ""));
    let mut facts = BTreeSet::new();
    of_text(&containers[runner..], &mut facts);
    let script = &containers.get(runner).unwrap_or(&Value::Null)["commands"]["script"];
    let texts = [script, &input["spec"]["flux"]["brokerConfig"]];
    if texts.iter().any(|text| text.as_str().is_some_and(|text| text.contains('$'))) {
        facts.insert("text-has-dollar".to_owned());
    }
    if let Some(cluster) = cluster {
        words.insert("size".to_owned(), cluster.size.pods.to_string());
        words.insert("max".to_owned(), cluster.size.max.to_string());
        words.insert("secret".to_owned(), cluster.certificate.secret.clone());
        of_cluster(cluster, &mut facts);
    }
    Facts { input, words, facts }
}

fn text(value: &Value, default: &str) -> String {
    value.as_str().filter(|text| !text.is_empty()).unwrap_or(default).to_owned()
}

/// How the command of the container that runs Flux is written.
fn of_text(from_runner: &[Value], facts: &mut BTreeSet<String>) {
    let Some(runner) = from_runner.first() else { return };
    let command = runner["command"].as_str().unwrap_or_default().trim();
    if command.contains(['$', '`', '|', '&', ';', '<', '>', '(', ')', '*', '?', '[', '\n', '~', '"', '\'', '\\', '#', '{']) {
        facts.insert("command-needs-shell".to_owned());
    }
}

fn of_cluster(cluster: &Cluster, facts: &mut BTreeSet<String>) {
    let mut fact = |holds: bool, name: &str| {
        if holds {
            facts.insert(name.to_owned());
        }
    };
    fact(cluster.size.elastic, "elastic");
    fact(matches!(cluster.broker.leader, Leader::Elsewhere { .. }), "leader-elsewhere");
    fact(cluster.broker.resources.is_some(), "written-r");
    fact(matches!(cluster.program, Program::Shell | Program::None), "no-program");
    fact(matches!(cluster.program, Program::Batch { .. }), "batch");
    fact(matches!(cluster.program, Program::Launcher(_)), "launcher");
}
