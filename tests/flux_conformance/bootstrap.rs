//! bootstrap_multi.json: instances of several brokers with one thing wrong in one of them.

use flux_gen::flux::config_check::{Context, PodFile, Report, Severity, check};
use flux_gen::flux::{Certificate, Hostlist, ResourceSet, Topology};
use serde_json::Value;

use crate::{Outcome, same, text};

/// One pod of a case of bootstrap_multi.json: the operator's files, with one thing changed.
struct Pod {
    hostname: String,
    toml: String,
    r: Option<String>,
    certificate: Option<u8>,
    mode: u32,
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

/// The pods of a case before anything is wrong.
fn healthy(label: &str, running: usize) -> Vec<Pod> {
    // "2 of 4 …" names the pods that run and the size; else all run.
    let counted = label
        .split_once(" of ")
        .and_then(|(some, rest)| Some((some.parse::<usize>().ok()?, rest.split(' ').next()?.parse::<usize>().ok()?)));
    let (absent_from, size) = counted.unwrap_or((running.max(2), running.max(2)));
    let mut pods: Vec<Pod> = (0..size)
        .map(|index| Pod {
            hostname: format!("flux-sample-{index}"),
            toml: operator_toml(size),
            r: Some(r(&format!("flux-sample-[0-{}]", size - 1), 2)),
            certificate: Some(1),
            mode: 0o600,
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
    pods
}

/// The pods of a case, from the words of its label.
fn replay(label: &str, running: usize) -> Option<Vec<Pod>> {
    let label = label.to_ascii_lowercase();
    let mut pods = healthy(&label, running);
    let size = pods.len();
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
        l if both(l, &["certificate", "0644"]) => w.mode = 0o644,
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
            pods.iter_mut().for_each(|p| p.r = Some(r(&format!("flux-sample-[0-{last}]"), 8)));
        }
        l if both(l, &["hosts list in r shorter", "[bootstrap]"]) && last > 0 => {
            pods.iter_mut().for_each(|p| p.r = Some(r(&format!("flux-sample-[0-{}]", last - 1), 2)));
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
            pods.iter_mut().for_each(|p| p.toml.push_str("[tbon]\ntopo = \"kary:2\"\n"));
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
    // Resources are looked at after joining: a leader that fails over its own takes the joined followers along,
    // a follower that would fail over its own has to join first.
    let leader_fails_late = own[0] && fails_in_rc1(leader);
    let code = |index: usize, pod: &Pod, fails: bool| match (fails, index) {
        (true, 0) => "1",
        (true, _) if own[0] && !leader_fails_late && fails_in_rc1(pod) => "killed",
        (true, _) => "1",
        (false, 0) if leader_runs && !hangs(pods, running.len()) => "0",
        (false, 0) => "killed",
        (false, _) if leader_runs && reaches(pod) => "0",
        (false, _) if leader_fails_late && reaches(pod) => "1",
        (false, _) => "killed",
    };
    running.iter().zip(&own).enumerate().map(|(index, (pod, fails))| code(index, pod, *fails).to_owned()).collect()
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
        text.map_or(PodFile::Missing, |text| PodFile::Text { text, mode: pod.mode })
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
