//! broker_config.json, fluxion_config.json and bootstrap_multi.json.

use std::sync::OnceLock;

use flux_gen::flux::bootstrap::Hosts;
use flux_gen::flux::config::{Bootstrap, HostEntry};
use flux_gen::flux::config_check::{Context, PodFile, Report, Severity, check};
use flux_gen::flux::{Certificate, Hostlist, IdSet, ResourceSet, Topology};
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
        interfaces: Some(&["lo", "eth0"]),
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

/// One pod of a case of bootstrap_multi.json: the operator's files, with one thing changed.
struct Pod {
    hostname: String,
    toml: String,
    r: Option<String>,
    certificate: Option<u8>,
    interfaces: Vec<&'static str>,
    present: bool,
    resolves: bool,
}

const NOT_REPLAYED: &str = "bootstrap: the label names a change that the replay does not know";

pub(crate) fn bootstrap_multi(case: &Value, _: &Value) -> Outcome {
    let codes = case["rc"].as_array().unwrap();
    let Some(pods) = replay(text(case, "label"), codes.len()) else {
        return Outcome::OutOfScope(NOT_REPLAYED);
    };
    let quorum = text(case, "leader_command")
        .split_once("-Sbroker.quorum=")
        .map_or(pods.len(), |(_, rest)| rest.split(' ').next().unwrap().parse().unwrap());
    let ours = predict(&pods, quorum);
    let theirs: Vec<String> =
        codes.iter().map(|code| code.as_i64().map_or("killed".to_owned(), |c| c.to_string())).collect();
    same(&ours[..theirs.len().min(ours.len())].to_vec(), &theirs)
}

const SUFFIX: &str = "flux-service.default.svc.cluster.local";

fn operator_toml(size: usize) -> String {
    format!(
        "[resource]\npath = \"/R\"\n[bootstrap]\ncurve_cert = \"/cert\"\ndefault_port = 8050\ndefault_bind = \"tcp://eth0:%p\"\n\
         default_connect = \"tcp://%h.{SUFFIX}:%p\"\nhosts = [ {{ host = \"flux-sample-[0-{}]\" }} ]\n",
        size - 1
    )
}

fn r(hosts: &str, cores: u32) -> String {
    ResourceSet::uniform(&Hostlist::parse(hosts).unwrap(), cores, 0).unwrap().to_json()
}

/// The pods of a case, from the words of its label.
fn replay(label: &str, running: usize) -> Option<Vec<Pod>> {
    let label = label.to_ascii_lowercase();
    let size =
        label.split_once(" of ").and_then(|(_, rest)| rest.split(' ').next()?.parse().ok()).unwrap_or(running.max(2));
    let absent_from = if label.contains(" of ") { label.split(' ').next()?.parse::<usize>().ok()? } else { size };
    let mut pods: Vec<Pod> = (0..size)
        .map(|index| Pod {
            hostname: format!("flux-sample-{index}"),
            toml: operator_toml(size),
            r: Some(r(&format!("flux-sample-[0-{}]", size - 1), 2)),
            certificate: Some(1),
            interfaces: vec!["lo", "eth0"],
            present: index < absent_from.min(running),
            resolves: true,
        })
        .collect();
    if label.contains("missing, default quorum") {
        for (index, pod) in pods.iter_mut().enumerate() {
            pod.present = index < size - absent_from;
        }
    }
    let worker = usize::from(!label.starts_with("leader"));
    let replace = |pod: &mut Pod, from: &str, to: &str| pod.toml = pod.toml.replace(from, to);
    let last = size - 1;
    let both = |text: &str, words: &[&str]| words.iter().all(|word| text.contains(word));
    let w = &mut pods[worker];
    match label.as_str() {
        l if l.starts_with("baseline") || l.contains("any address") => {
            if l.contains("any address") {
                replace(w, "tcp://eth0", "tcp://*");
            }
        }
        l if l.contains("different curve certificate") => w.certificate = Some(2),
        l if both(l, &["certificate", "missing"]) => w.certificate = None,
        l if l.contains("hostname not in hosts") => {
            w.hostname = if worker == 0 { "leader".into() } else { "flux-sample-7".into() }
        }
        l if l.contains("hostname is the fqdn") => w.hostname = format!("{}.{SUFFIX}", w.hostname),
        l if l.contains("longer hosts list") => {
            w.toml = operator_toml(size + 2);
            if l.contains("r agrees") {
                w.r = Some(r(&format!("flux-sample-[0-{}]", size + 1), 2));
            }
        }
        l if l.contains("other port") => replace(w, "default_port = 8050", "default_port = 8051"),
        l if l.contains("unresolvable leader name") => w.resolves = false,
        l if l.contains("eth0 absent") || l.contains("no eth0") => w.interfaces = vec!["lo", "net1"],
        l if l.contains("r file missing") => w.r = None,
        l if l.contains("r of other hosts") => w.r = Some(r(&format!("other-[0-{last}]"), 2)),
        l if l.contains("r has more cores") => w.r = Some(r(&format!("flux-sample-[0-{last}]"), 8)),
        l if l.contains("all r more cores") => {
            pods.iter_mut().for_each(|p| p.r = Some(r(&format!("flux-sample-[0-{last}]"), 8)))
        }
        l if both(l, &["hosts list in r longer", "[bootstrap]"]) => {
            pods.iter_mut().for_each(|p| p.r = Some(r(&format!("flux-sample-[0-{size}]"), 2)));
        }
        l if l.contains("no [resource] table") => {
            pods.iter_mut().for_each(|p| p.toml = p.toml.replace("[resource]\npath = \"/R\"\n", ""));
        }
        l if l.contains("[[resource.config]]") => pods.iter_mut().for_each(|p| {
            let entry = format!("[[resource.config]]\nhosts = \"flux-sample-[0-{last}]\"\ncores = \"0-1\"\n");
            p.toml = p.toml.replace("[resource]\npath = \"/R\"\n", &entry);
        }),
        l if l.contains("toml syntax error") => w.toml.push_str("[\n"),
        l if l.contains("empty broker.toml") => w.toml.clear(),
        l if l.contains("kary:2 via config") => {
            pods.iter_mut().for_each(|p| p.toml.push_str("[tbon]\ntopo = \"kary:2\"\n"))
        }
        l if l.contains("missing, default quorum") || l.contains("r with 4 hosts") => {}
        l if l.contains("late worker joins") || l.contains("worker dies and comes back") => {}
        _ => return None,
    }
    Some(pods)
}

/// Exit codes of the pods that run. A broker whose own files are wrong ends with 1, one that waits for somebody
/// who never comes is killed in the end, all others end with 0.
fn predict(pods: &[Pod], quorum: usize) -> Vec<String> {
    let leader = &pods[0];
    let running: Vec<&Pod> = pods.iter().filter(|pod| pod.present).collect();
    let own: Vec<bool> = running.iter().map(|pod| own_files_fail(pod, pods, running.len())).collect();
    let reaches = |pod: &Pod| {
        let port =
            |p: &Pod| p.toml.split_once("default_port = ").map(|(_, rest)| rest.split('\n').next().unwrap().to_owned());
        pod.certificate == leader.certificate && port(pod) == port(leader) && pod.resolves
    };
    let joined = running.iter().zip(&own).filter(|(pod, fails)| !**fails && reaches(pod)).count();
    let leader_runs = !own[0] && joined >= quorum;
    // Every broker fails over resources that do not fit [bootstrap], the followers once the leader lets them in.
    running
        .iter()
        .zip(&own)
        .enumerate()
        .map(|(index, (pod, fails))| match (fails, index) {
            (true, _) if index > 0 && own[0] && fails_in_rc1(pod) && !fails_in_rc1(leader) => "killed",
            (true, _) => "1",
            (false, 0) if leader_runs && !hangs(pods, running.len()) => "0",
            (false, 0) => "killed",
            (false, _) if leader_runs && reaches(pod) => "0",
            (false, _) => "killed",
        })
        .map(str::to_owned)
        .collect()
}

/// Discovery never ends when brokers are missing, and then the leader hangs at its end as well.
fn hangs(pods: &[Pod], running: usize) -> bool {
    !pods[0].toml.contains("[resource") && !pods[0].toml.contains("[[resource.config]]") && running < pods.len()
}

fn report_of(pod: &Pod) -> Report {
    let hosts = Hostlist::new();
    let certificate =
        pod.certificate.map(|seed| Certificate::from_secret_bytes([seed; 32], "x").to_file_text().to_string());
    let files = |path: &str| {
        let text = if path == "/R" { pod.r.clone() } else { certificate.clone() };
        text.map_or(PodFile::Missing, |text| PodFile::Text { text, mode: 0o600 })
    };
    check(&pod.toml, &Context { files: &files, ..Context::of_hosts(&hosts) })
}

fn fails_in_rc1(pod: &Pod) -> bool {
    report_of(pod).problems.iter().any(|p| p.severity == Severity::Error && p.key.starts_with("resource"))
}

fn own_files_fail(pod: &Pod, pods: &[Pod], _running: usize) -> bool {
    let report = report_of(pod);
    if report.has_errors() {
        return true;
    }
    let Some(hosts) = &report.hosts else {
        // An instance of its own: a worker has no command and no terminal.
        return !std::ptr::eq(pod, &pods[0]);
    };
    match hosts.place(&pod.hostname, report.topology.unwrap_or(Topology::Custom)) {
        Err(_) => true,
        Ok(place) => place.binds.is_some_and(|uri| {
            let address = uri.trim_start_matches("tcp://").split(':').next().unwrap_or("").to_owned();
            address != "*" && !pod.interfaces.contains(&address.as_str())
        }),
    }
}
