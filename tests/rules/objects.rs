//! Rules on objects: a table of single changes to good objects, and the same table against a real API server.
//!
//! Each line of `tests/rules/objects.txt` is `BASE [1.N] POINTER JSON [; POINTER JSON …] => [PATH …]`: the good object, the
//! target version (default 1.36), what is changed in it, and the fields that are then refused. `=>!` marks rules that are
//! not the API server's own. Blank lines and lines that begin with `#` are left out.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use flux_gen::object::Object;
use flux_gen::rules::object::check;
use serde_json::{Value, json};

struct Case {
    line: usize,
    text: String,
    base: String,
    target: String,
    object: Value,
    expected: BTreeSet<String>,
    of_api_server: bool,
}

fn base(name: &str) -> Value {
    let container = json!({"name": "app", "image": "rockylinux:9", "volumeMounts": [
        {"name": "data", "mountPath": "/data"}, {"name": "config", "mountPath": "/config"}]});
    let volumes = json!([{"name": "data", "emptyDir": {}}, {"name": "config", "configMap": {"name": "cm"}}]);
    let pod = json!({"containers": [container], "volumes": volumes, "restartPolicy": "Never"});
    match name {
        "namespace" => json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team-a"}}),
        "configmap" => json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "y"}}),
        "secret" => json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"x": "eQ=="}}),
        "service" => json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {
            "clusterIP": "None", "selector": {"app": "a"}, "ports": [{"name": "http", "port": 80}]}}),
        "networkpolicy" => {
            json!({"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "a"},
            "spec": {"podSelector": {"matchLabels": {"app": "a"}}, "policyTypes": ["Ingress"],
                "ingress": [{"from": [{"podSelector": {}}], "ports": [{"port": 80, "protocol": "TCP"}]}]}})
        }
        "pod" => json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": pod}),
        "job" => json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": {
            "completionMode": "Indexed", "completions": 4, "parallelism": 4, "backoffLimit": 0,
            "successPolicy": {"rules": [{"succeededIndexes": "0"}]},
            "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]},
            "podReplacementPolicy": "Failed",
            "template": {"metadata": {"labels": {"app": "a"}}, "spec": pod}}}),
        _ => panic!("no base {name}"),
    }
}

/// Sets a value by JSON pointer, making mappings on the way; `-` adds to a list, `null` removes.
fn set(target: &mut Value, pointer: &str, value: Value) {
    let Some((head, rest)) =
        pointer[1..].split_once('/').map(|(h, r)| (h, format!("/{r}"))).or(Some((&pointer[1..], String::new())))
    else {
        return;
    };
    let head = head.replace("~1", "/").replace("~0", "~");
    if let Value::Array(list) = target {
        if head == "-" {
            list.push(json!({}));
        }
        let index = if head == "-" { list.len() - 1 } else { head.parse().unwrap() };
        if rest.is_empty() {
            list[index] = value;
        } else {
            set(&mut list[index], &rest, value);
        }
        return;
    }
    if target.is_null() {
        *target = json!({});
    }
    let map = target.as_object_mut().unwrap();
    if rest.is_empty() && value.is_null() {
        map.remove(&head);
    } else if rest.is_empty() {
        map.insert(head, value);
    } else {
        set(map.entry(head).or_insert(Value::Null), &rest, value);
    }
}

fn parse_case(line: usize, text: &str) -> Case {
    let (change, expected, of_api_server) = match text.split_once("=>!") {
        Some((change, expected)) => (change, expected, false),
        None => text.split_once("=>").map(|(c, e)| (c, e, true)).unwrap_or_else(|| panic!("line {line}: no =>")),
    };
    let mut words = change.trim().splitn(2, ' ');
    let name = words.next().unwrap();
    let mut rest = words.next().unwrap_or_default().trim();
    let mut target = "1.36";
    if let Some((version, more)) = rest.split_once(' ').filter(|(version, _)| version.starts_with("1.")) {
        (target, rest) = (version, more);
    }
    let mut object = base(name);
    for part in rest.split(" ; ").filter(|part| !part.trim().is_empty()) {
        let (pointer, value) = part.trim().split_once(' ').unwrap_or_else(|| panic!("line {line}: {part}"));
        let value: Value = serde_json::from_str(value).unwrap_or_else(|e| panic!("line {line}: {e}: {value}"));
        set(&mut object, pointer, long(value));
    }
    let expected = expected.split_whitespace().map(str::to_owned).collect();
    Case {
        line,
        text: text.to_owned(),
        base: name.to_owned(),
        target: target.to_owned(),
        object,
        expected,
        of_api_server,
    }
}

/// `{"repeat": "x", "times": 9}` stands for a long text.
fn long(value: Value) -> Value {
    match (value["repeat"].as_str(), value["times"].as_u64()) {
        (Some(text), Some(times)) => json!(text.repeat(usize::try_from(times).unwrap())),
        _ => value,
    }
}

fn cases() -> Vec<Case> {
    let table = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules/objects.txt")).unwrap();
    let lines = table.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).map(|(n, line)| parse_case(n, line)).collect()
}

fn typed(case: &Case) -> Object {
    let value = case.object.clone();
    let read = match case.base.as_str() {
        "namespace" => serde_json::from_value(value).map(Object::Namespace),
        "configmap" => serde_json::from_value(value).map(Object::ConfigMap),
        "secret" => serde_json::from_value(value).map(Object::Secret),
        "service" => serde_json::from_value(value).map(Object::Service),
        "networkpolicy" => serde_json::from_value(value).map(Object::NetworkPolicy),
        "pod" => serde_json::from_value(value).map(|pod| Object::Pod(Box::new(pod))),
        _ => serde_json::from_value(value).map(|job| Object::Job(Box::new(job))),
    };
    read.unwrap_or_else(|error| panic!("line {}: {error}", case.line))
}

#[test]
fn every_change_is_refused_where_it_says() {
    let cases = cases();
    assert!(cases.len() > 200, "only {} cases", cases.len());
    let mut wrong = String::new();
    for case in &cases {
        let problems = check(&[typed(case)], case.target.parse().unwrap());
        let found: BTreeSet<String> = problems.iter().map(|p| p.path.clone()).collect();
        if found != case.expected {
            wrong += &format!("line {}: {}\n  found {problems:?}\n", case.line, case.text);
        }
        for problem in problems {
            assert!(!problem.message.ends_with('.') && !problem.message.is_empty(), "{}", problem.message);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn objects_of_one_name_are_reported_once() {
    let good = |kind| typed(&parse_case(0, &format!("{kind} =>")));
    let target = "1.34".parse().unwrap();
    let problems = check(&[good("pod"), good("job"), good("service"), good("pod")], target);
    assert_eq!(problems.iter().map(|p| (p.kind, p.path.as_str())).collect::<Vec<_>>(), [("Pod", "metadata.name")]);
}

/// Against a real API server, when `FLUX_GEN_TEST_KUBECONFIG` names the configuration of one of version 1.36.
#[test]
#[allow(clippy::disallowed_methods)]
fn an_api_server_agrees() {
    let Some(kubeconfig) = std::env::var_os("FLUX_GEN_TEST_KUBECONFIG") else {
        println!("skipped: FLUX_GEN_TEST_KUBECONFIG names no configuration of a test API server");
        return;
    };
    let proxy = Proxy::start(&kubeconfig);
    let mut wrong = String::new();
    let mut asked = 0;
    for case in cases().iter().filter(|case| case.target == "1.36" && case.of_api_server) {
        let path = match case.base.as_str() {
            "namespace" => "/api/v1/namespaces".to_owned(),
            "networkpolicy" => "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies".to_owned(),
            "job" => "/apis/batch/v1/namespaces/default/jobs".to_owned(),
            kind => format!("/api/v1/namespaces/default/{kind}s"),
        };
        let (status, said) = proxy.create(&format!("{path}?dryRun=All"), &case.object);
        asked += 1;
        if (status == 201) != case.expected.is_empty() {
            wrong += &format!("line {}: {}\n  the API server: {said}\n", case.line, case.text);
        }
    }
    println!("asked an API server about {asked} objects");
    assert!(wrong.is_empty(), "{wrong}");
}

/// `kubectl proxy`: one process that logs in for hundreds of requests.
struct Proxy {
    process: Child,
    address: String,
}

impl Proxy {
    #[allow(clippy::disallowed_methods)]
    fn start(kubeconfig: &OsStr) -> Self {
        let mut process = Command::new("kubectl")
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(["proxy", "--port=0"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let address = said.trim().rsplit(' ').next().unwrap_or_default().to_owned();
        Self { process, address }
    }

    /// Creates an object; status and body of the answer.
    fn create(&self, path: &str, object: &Value) -> (u16, String) {
        let agent = ureq::Agent::config_builder().http_status_as_error(false).build().new_agent();
        let call = agent.post(format!("http://{}{path}", self.address)).header("content-type", "application/json");
        let mut answer = call.send(serde_json::to_vec(object).unwrap()).unwrap();
        (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}
