//! Behaviour: our scripts under stand-ins against what the operator's scripts did under the same.

use std::path::{Path, PathBuf};

use flux_gen::flux::certificate::Certificate;
use flux_gen::model::words;
use serde_json::{Map, Value, json};

use crate::case::{self, Built, Case};
use crate::compare::{self, Difference};
use crate::meaning::{self, Meaning, Words};
use crate::roles::{Pods, Variant};
use crate::sandbox::{self, Recorded};
use crate::standins::StandIns;

/// What runs need.
pub struct Runner<'a> {
    pub stand_ins: &'a StandIns,
    pub certificate: &'a Certificate,
    pub folder: PathBuf,
}

/// Runs every role that the corpus has, and compares.
pub fn differences(case: &Case, built: &Built, runner: &Runner<'_>) -> Vec<Difference> {
    let expected = &case.expected["behaviour"];
    let words = words_of(case, runner);
    let pods =
        Pods { built, stand_ins: runner.stand_ins, certificate: runner.certificate, folder: runner.folder.clone() };
    let name = built.cluster.name.as_str();
    let init = pods.run("init", &built.cluster.view.name, 0, "init", &Variant::default());
    let mut found = Vec::new();
    let mut compared = Compared { case, runner, pods: &pods, words: &words, relaxed: None, seen: None };
    if let (Some(init), Some(role)) = (&init, expected.get("init")) {
        found.extend(compared.role("init", init, "init", role));
    }
    if expected.get("init-again").is_some() {
        let again = pods.run("init-again", &built.cluster.view.name, 0, "init", &Variant::default());
        found.extend(again.iter().flat_map(|run| compared.role("init-again", run, "init", &expected["init-again"])));
    }
    for (role, value) in expected.as_object().into_iter().flatten() {
        let variant = variant(role);
        let (container, index) = match role.split('-').next() {
            Some("lead") => (name.to_owned(), 0),
            Some("follower") => (name.to_owned(), 1),
            Some(kind @ ("sidecar" | "service")) => {
                let position = role.split('-').nth(1).and_then(|n| n.parse().ok()).unwrap_or(usize::MAX);
                (container_name(case, kind, position), 0)
            }
            _ => continue,
        };
        found.extend(compared.run(role, &container, index, &variant, value));
    }
    if let Some(lead) = expected.get("lead") {
        found.extend(files(case, &pods, lead, expected, compared.seen.as_ref()));
        if expected.get("connect").is_some() {
            let command = vec!["/bin/bash".to_owned(), format!("{}/flux-connect.sh", built.cluster.view.mount_path)];
            let variant = Variant { command: Some(command), ..Variant::default() };
            let run = pods.run("connect", name, 0, "lead", &variant);
            found.extend(run.iter().flat_map(|run| compared.role("connect", run, "lead", &expected["connect"])));
        }
    }
    found
}

fn words_of<'a>(case: &'a Case, runner: &Runner<'_>) -> Words<'a> {
    let spec = &case.input["spec"];
    let submit = spec["flux"]["submitCommand"].as_str().filter(|s| !s.is_empty()).unwrap_or("flux submit");
    let names =
        |value: &Value| -> Vec<String> { value.as_object().into_iter().flatten().map(|(n, _)| n.clone()).collect() };
    let mut variables = names(&spec["flux"]["environment"]);
    for container in spec["containers"].as_array().into_iter().flatten() {
        variables.extend(names(&container["environment"]));
        variables.extend(names(&container["secrets"]));
    }
    Words {
        input: &case.input,
        submit: words::split(submit).unwrap_or_default(),
        variables,
        secret_key: runner.certificate.secret_key_text().to_string(),
    }
}

fn container_name(case: &Case, kind: &str, position: usize) -> String {
    let list = if kind == "sidecar" { "containers" } else { "services" };
    case.input["spec"][list][position]["name"].as_str().unwrap_or_default().to_owned()
}

fn variant(role: &str) -> Variant {
    let plain = Variant { socket: role.starts_with("sidecar"), ..Variant::default() };
    match role {
        "lead-failing" => Variant { failures: 1000, ..plain },
        "follower-failing" => Variant { failures: 2, ..plain },
        "lead-without-time" => Variant { without_time: true, ..plain },
        "lead-with-archive" => Variant { with_archive: true, ..plain },
        _ => plain,
    }
}

struct Compared<'a> {
    case: &'a Case,
    runner: &'a Runner<'a>,
    pods: &'a Pods<'a>,
    words: &'a Words<'a>,
    /// The cluster with strict off, made when a hook's failure ended a run.
    relaxed: Option<Option<Built>>,
    /// Broker configuration and host list as the leader's broker found them.
    seen: Option<(String, String)>,
}

impl Compared<'_> {
    fn run(&mut self, role: &str, container: &str, index: u32, variant: &Variant, expected: &Value) -> Vec<Difference> {
        let volumes = if role == "lead-again" { "lead" } else { role };
        let folder = &self.runner.folder;
        if role != "lead-again" {
            sandbox::copy(&folder.join("init"), &folder.join(volumes)).unwrap();
        }
        let Some(run) = self.pods.run(role, container, index, volumes, variant) else {
            let operator = Some(json!("script"));
            return vec![Difference { path: format!("{role}.entrypoint"), ours: Some(json!("image")), operator }];
        };
        self.see(role, &run);
        let strict = self.case.input["spec"]["logging"].get("strict").is_some_and(|s| !s.is_null());
        let differences = self.role(role, &run, volumes, expected);
        let hook_failed = variant.failures == 0 && !variant.without_time && failed_alone(&run, expected);
        if strict || !(hook_failed || ended_in_a_hook(&run, expected)) {
            return differences;
        }
        let case = self.case.without_strict();
        let relaxed = self.relaxed.get_or_insert_with(|| case::compile(&case, self.runner.certificate).built);
        let Some(built) = relaxed else { return differences };
        let again = format!("{role}-relaxed");
        sandbox::copy(&folder.join("init"), &folder.join(&again)).unwrap();
        // Its scripts differ, so they are mounted anew.
        for volume in ["flux-scripts", "flux-config"] {
            let _ = std::fs::remove_dir_all(folder.join(&again).join(volume));
        }
        let pods = Pods {
            built,
            stand_ins: self.runner.stand_ins,
            certificate: self.runner.certificate,
            folder: folder.clone(),
        };
        let Some(relaxed) = pods.run(&again, container, index, &again, variant) else { return differences };
        self.see(role, &relaxed);
        let mut found = vec![Difference {
            path: format!("{role}.failing-hook"),
            ours: Some(json!("ends the container")),
            operator: Some(json!("is passed over")),
        }];
        found.extend(self.role(role, &relaxed, &again, expected));
        found
    }

    fn see(&mut self, role: &str, run: &Recorded) {
        if let ("lead", Some(config), Some(hosts)) = (role, &run.broker_toml, &run.hostlist) {
            self.seen = Some((config.clone(), hosts.clone()));
        }
    }

    /// Compares one run with the role of the corpus.
    fn role(&self, role: &str, run: &Recorded, volumes: &str, expected: &Value) -> Vec<Difference> {
        let view = self.runner.folder.join(volumes).join(&self.pods.built.cluster.view.name);
        let complete = view.join("flux-operator-complete.txt").exists();
        let mut ours = meaning::of_run(run, complete, self.words);
        let operator = meaning::of_expected(expected, self.words);
        if let ("lead-again" | "connect", Some(map)) = (role, ours.value.as_object_mut()) {
            // The corpus lists only what a second run changed.
            map.remove("complete");
            map.remove("curve");
        }
        let mut found = compare::compare(role, &ours.value, &operator.value);
        found.extend(order(role, &ours, &operator));
        if found.iter().any(|d| d.path.ends_with(".exit")) && self.runner.folder.join("keep").exists() {
            println!("{role}: exit {} stderr {}", run.exit, run.stderr);
        }
        found
    }
}

/// Ours ended with an error, without the broker, before calls that the operator's script made.
fn ended_in_a_hook(run: &Recorded, expected: &Value) -> bool {
    let made = |name: &str| run.calls.iter().any(|c| c.run == name);
    let calls = expected["calls"].as_array().into_iter().flatten().filter_map(|c| c["run"].as_str());
    let missed = calls.filter(|name| *name != "goshare-wait-fs" && !made(name)).count();
    run.exit != 0 && !run.cut && !made("flux") && missed > 0
}

/// Ours ended with an error where the operator's script, which goes on after a hook that fails, did not.
fn failed_alone(run: &Recorded, expected: &Value) -> bool {
    run.exit != 0 && !run.cut && expected["exit"] == json!(0)
}

/// Calls that both make, in another order.
fn order(role: &str, ours: &Meaning, operator: &Meaning) -> Option<Difference> {
    let common = |a: &Meaning, b: &Meaning| -> Vec<String> {
        a.order.iter().filter(|call| b.order.contains(call)).cloned().collect()
    };
    let (a, b) = (common(ours, operator), common(operator, ours));
    (a != b).then(|| Difference { path: format!("{role}.order"), ours: Some(json!(a)), operator: Some(json!(b)) })
}

/// Files that roles leave: broker configuration, hosts, batch, script, and the scripts that people source.
fn files(
    case: &Case,
    pods: &Pods<'_>,
    lead: &Value,
    expected: &Value,
    seen: Option<&(String, String)>,
) -> Vec<Difference> {
    let mut found = Vec::new();
    let roles = expected.as_object().into_iter().flatten().map(|(_, role)| role);
    let all: Vec<(&String, &Value)> = roles.filter_map(|r| r["files"].as_object()).flatten().collect();
    let operator = |end: &str| all.iter().find(|(path, _)| path.ends_with(end)).and_then(|(_, text)| text.as_str());
    let flux = pods.built.config_maps.values().find(|data| data.contains_key("broker.toml"));
    let bundled = |key: &str| flux.and_then(|data| data.get(key)).cloned().unwrap_or_default();
    // What the broker saw; a leader that never came so far has the bundle's.
    let (config, hosts) = seen.cloned().unwrap_or_else(|| (bundled("broker.toml"), bundled("hostlist")));
    if let Some(text) = operator("/broker.toml") {
        found.extend(compare::compare("broker.toml", &meaning::broker_toml(&config), &meaning::broker_toml(text)));
    }
    if let Some(text) = operator("/hostlist") {
        found.extend(compare::compare("hostlist", &meaning::hostlist(&hosts), &meaning::hostlist(text)));
    }
    let scripts = pods.built.config_maps.iter().find(|(_, data)| data.contains_key("common.sh")).map(|(_, data)| data);
    let script = |key: &str| scripts.and_then(|data| data.get(key)).cloned();
    let of_lead = |end: &str| {
        lead["files"].as_object().into_iter().flatten().find(|(p, _)| p.ends_with(end)).and_then(|(_, t)| t.as_str())
    };
    found.extend(batch(case, pods, script("flux-job.batch"), of_lead("flux-job.batch")));
    let index = pods.built.cluster.runner.index;
    let text = |text: Option<&str>| text.map_or(Value::Null, |t| json!(t.trim()));
    let script_text = json!({"text": text(script(&format!("script-{index}.sh")).as_deref())});
    let operator_text = json!({"text": text(of_lead("custom-entrypoint.sh"))});
    found.extend(compare_tidy("script", &script_text, &operator_text));
    found.extend(sourced(pods, of_lead("flux-view.sh"), script("flux-view.sh").as_deref()));
    let commands = |text: Option<String>| -> Value {
        let text = text.unwrap_or_default();
        json!({"commands": text.lines().filter(|l| !l.starts_with('#')).collect::<Vec<_>>().join("\n")})
    };
    let operator_load = commands(of_lead("load-fluxion.sh").map(str::to_owned));
    found.extend(compare_tidy("load-fluxion", &commands(script("load-fluxion.sh")), &operator_load));
    found
}

fn compare_tidy(path: &str, ours: &Value, operator: &Value) -> Vec<Difference> {
    let tidy = |value: &Value| compare::without_empties(value).unwrap_or_else(|| json!({}));
    compare::compare(path, &tidy(ours), &tidy(operator))
}

/// Both batch scripts are run; their calls and ends are compared.
fn batch(case: &Case, pods: &Pods<'_>, ours: Option<String>, operator: Option<&str>) -> Vec<Difference> {
    let words = Words { input: &case.input, submit: Vec::new(), variables: Vec::new(), secret_key: "\0".to_owned() };
    let run = |name: &str, text: &str| -> Value {
        let file = pods.folder.join(format!("{name}.batch"));
        std::fs::write(&file, text).unwrap();
        let variant = Variant {
            command: Some(vec!["/bin/bash".to_owned(), "/.batch".to_owned()]),
            files: vec![(file, "/.batch".to_owned())],
            flux_everywhere: true,
            ..Variant::default()
        };
        let container = pods.built.cluster.name.clone();
        let recorded = pods.run(name, &container, 0, "lead", &variant);
        recorded.map_or(Value::Null, |r| meaning::of_run(&r, false, &words).value)
    };
    match (ours, operator) {
        (None, None) => Vec::new(),
        (Some(ours), Some(operator)) => compare_tidy("batch", &run("batch", &ours), &run("batch-operator", operator)),
        (ours, operator) => {
            let there = |there: bool| there.then(|| json!("written"));
            vec![Difference {
                path: "batch".to_owned(),
                ours: there(ours.is_some()),
                operator: there(operator.is_some()),
            }]
        }
    }
}

/// Variables after `flux-view.sh` was sourced, by the operator's and by ours.
fn sourced(pods: &Pods<'_>, operator: Option<&str>, ours: Option<&str>) -> Vec<Difference> {
    let (Some(operator), Some(ours)) = (operator, ours) else {
        let there = |there: bool| there.then(|| json!("written"));
        let difference = Difference {
            path: "flux-view".to_owned(),
            ours: there(ours.is_some()),
            operator: there(operator.is_some()),
        };
        return if difference.ours == difference.operator { Vec::new() } else { vec![difference] };
    };
    let file = |name: &str, text: &str| {
        let path = pods.folder.join(name);
        std::fs::write(&path, text).unwrap();
        (path, format!("/.{name}"))
    };
    let script = "(. /.view-ours; env -0); printf '\\0==\\0'; (. /.view-operator; env -0)";
    let variant = Variant {
        command: Some(["/bin/bash", "-c", script].map(str::to_owned).to_vec()),
        files: vec![file("view-ours", ours), file("view-operator", operator)],
        ..Variant::default()
    };
    let container = pods.built.cluster.name.clone();
    let Some(run) = pods.run("view", &container, 0, "lead", &variant) else { return Vec::new() };
    let (ours, operator) = run.stdout.split_once("\0==\0").unwrap_or_default();
    compare::compare("flux-view", &variables(ours), &variables(operator))
}

fn variables(text: &str) -> Value {
    let pairs = text.split('\0').filter_map(|pair| pair.split_once('='));
    let kept =
        pairs.filter(|(name, _)| !matches!(*name, "_" | "PWD" | "OLDPWD" | "SHLVL") && !name.starts_with("BASH_FUNC"));
    Value::Object(kept.map(|(name, value)| (name.trim().to_owned(), json!(value))).collect::<Map<_, _>>())
}

/// A folder for one case's runs.
pub fn folder(root: &Path, number: usize) -> PathBuf {
    let folder = root.join(number.to_string());
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
