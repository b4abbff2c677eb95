//! broker_config.json and fluxion_config.json.

use std::sync::OnceLock;

use flux_gen::flux::bootstrap::Hosts;
use flux_gen::flux::config::{Bootstrap, HostEntry};
use flux_gen::flux::config_check::{Context, PodFile, Report, Severity, check};
use flux_gen::flux::{Certificate, Hostlist, IdSet, ResourceSet};
use serde_json::Value;

use crate::{Outcome, all, same, text, texts};

const NO_WARNING: &str = "config: it started, but jobs did not run";
const TIME_LIMIT: i64 = 124;

/// The machine of the cases: host h0, 2 cores, no GPU, interfaces lo and eth0, only the leader running.
struct Machine {
    hosts: Hostlist,
    online: IdSet,
    hardware: ResourceSet,
    certificate: String,
}

fn machine() -> &'static Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let hosts = Hostlist::indexed("h", 0);
        let hosts = {
            let mut hosts = hosts;
            hosts.push("h0").unwrap();
            hosts
        };
        Machine {
            online: IdSet::first_n(1),
            hardware: ResourceSet::uniform(&hosts, 2, 0).unwrap(),
            certificate: Certificate::from_secret_bytes([7; 32], "conformance").to_file_text().to_string(),
            hosts,
        }
    })
}

fn checked(toml: &str, fixtures: &Value, modules_run: bool, fluxion: bool) -> Report {
    let machine = machine();
    let files = |path: &str| match fixtures[path].as_str() {
        None => PodFile::Missing,
        Some(_) if path.ends_with(".cert") => {
            let mode = if path.contains("0644") { 0o644 } else { 0o600 };
            PodFile::Text { text: machine.certificate.clone(), mode }
        }
        Some(text) => PodFile::Text { text: text.to_owned(), mode: 0o644 },
    };
    let context = Context {
        hosts: &machine.hosts,
        // Without rc1 no resource module runs, so nothing waits for other brokers.
        online: modules_run.then_some(&machine.online),
        files: &files,
        interfaces: Some(&["lo", "eth0", "10.9.0.1"]),
        hardware: Some(&machine.hardware),
        version: None,
        fluxion: Some(fluxion),
    };
    check(toml, &context)
}

fn verdict(report: &Report, started: bool, usable: bool) -> Outcome {
    let list = |severity| -> Vec<String> {
        report.problems.iter().filter(|p| p.severity == severity).map(ToString::to_string).collect()
    };
    let errors = list(Severity::Error);
    match (started, errors.is_empty()) {
        (true, false) => Outcome::Different(format!("it started, we say {errors:?}")),
        (false, true) => Outcome::Different("it did not start, we find no error".to_owned()),
        (true, true) if !usable && list(Severity::Warning).is_empty() => Outcome::Different(NO_WARNING.to_owned()),
        _ => Outcome::Same,
    }
}

/// Jobs ran: the test job ended well and no broker drained itself.
fn usable(case: &Value) -> bool {
    let instance = if case["instance"].is_null() { case } else { &case["instance"] };
    let job = &instance["job_rc"];
    let drained = instance["drained"].as_array().is_some_and(|list| !list.is_empty());
    (job.is_null() || *job == 0) && !drained
}

pub(crate) fn broker_config(case: &Value, file: &Value) -> Outcome {
    let options = texts(&case["start_options"]);
    let modules_run = !options.iter().any(|option| option == "-Sbroker.rc1_path=");
    let report = checked(text(case, "toml"), &file["fixtures"], modules_run, false);
    let syntax = report.problems.iter().any(|p| p.severity == Severity::Error && p.key.is_empty());
    let parse = match case["parse_ok"].as_bool().unwrap() {
        true => same(&syntax, &false),
        false => same(&report.has_errors(), &true),
    };
    all([parse, verdict(&report, case["start_ok"].as_bool().unwrap(), usable(case))])
}

pub(crate) fn fluxion_config(case: &Value, _: &Value) -> Outcome {
    // The fixtures are those of broker_config.json; only R with a property is used here.
    let r = r#"{"version": 1, "execution": {"R_lite": [{"rank": "0", "children": {"core": "0-1"}}], "nodelist": ["h0"], "properties": {"batch": "0"}}}"#;
    let fixtures = serde_json::json!({ "/fixtures/R.prop": r, "/fixtures/R": r, "/fixtures/curve.cert": "" });
    let report = checked(text(case, "toml"), &fixtures, true, true);
    // A run that was ended by its time limit had started: its job waited.
    let waited = case["start_rc"] == TIME_LIMIT;
    verdict(&report, waited || case["start_ok"].as_bool().unwrap(), !waited && usable(case))
}

impl From<&toml::Table> for Wrapped {
    fn from(config: &toml::Table) -> Self {
        let string = |value: Option<&toml::Value>| value.and_then(toml::Value::as_str).map(str::to_owned);
        let table = config.get("bootstrap").and_then(toml::Value::as_table).cloned().unwrap_or_default();
        let hosts = table.get("hosts").and_then(toml::Value::as_array).cloned().unwrap_or_default();
        let entry = |host: &toml::Value| HostEntry {
            host: string(host.get("host")).unwrap_or_default(),
            bind: string(host.get("bind")),
            connect: string(host.get("connect")),
            parent: string(host.get("parent")),
        };
        Self(Bootstrap {
            curve_cert: string(table.get("curve_cert")),
            default_port: table.get("default_port").and_then(toml::Value::as_integer).and_then(|p| p.try_into().ok()),
            default_bind: string(table.get("default_bind")),
            default_connect: string(table.get("default_connect")),
            enable_ipv6: None,
            hosts: hosts.iter().map(entry).collect(),
        })
    }
}

/// `[bootstrap]` of a parsed file.
pub(crate) struct Wrapped(Bootstrap);

impl Wrapped {
    pub(crate) fn hosts(&self) -> Result<Hosts, String> {
        Hosts::new(&self.0).map_err(|errors| errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
    }
}
