//! The levels of the Pod Security Standards: a table of single changes to a good pod, and the same table against a real API
//! server, whose admission plugin has the last word.

use std::collections::BTreeSet;

use flux_gen::model::hardening::PodSecurity;
use flux_gen::object::Object;
use flux_gen::rules::object::pod_security;
use serde_json::{Value, json};

/// What is changed in a good pod, and the weakest level that refuses it: `b`aseline, `r`estricted, `-` none.
const CHANGES: &str = r#"
- /spec/hostNetwork false
b /spec/hostNetwork true
b /spec/hostPID true
b /spec/hostIPC true
b /spec/volumes [{"name": "v", "hostPath": {"path": "/x"}}]
r /spec/volumes [{"name": "v", "nfs": {"server": "s", "path": "/x"}}]
r /spec/volumes [{"name": "v", "iscsi": {"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2001-04.com.example:a", "lun": 0}}]
- /spec/volumes [{"name": "v", "emptyDir": {}}]
- /spec/volumes [{"name": "v", "csi": {"driver": "d.example.com"}}]
- /spec/volumes [{"name": "v", "image": {"reference": "r:1"}}]
- /spec/volumes [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
- /spec/volumes [{"name": "v", "projected": {"sources": [{"configMap": {"name": "c"}}]}}]
- /spec/volumes [{"name": "v", "downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}}]
b /spec/securityContext/seccompProfile {"type": "Unconfined"}
r /spec/securityContext/seccompProfile null
- /spec/securityContext/seccompProfile {"type": "Localhost", "localhostProfile": "p.json"}
b /spec/securityContext/appArmorProfile {"type": "Unconfined"}
- /spec/securityContext/appArmorProfile {"type": "RuntimeDefault"}
r /spec/securityContext/runAsNonRoot false
r /spec/securityContext/runAsNonRoot null
- /spec/securityContext/runAsUser null
- /spec/securityContext/runAsGroup 0
- /spec/securityContext/supplementalGroups [0]
b /spec/securityContext/seLinuxOptions {"type": "spc_t"}
b /spec/securityContext/seLinuxOptions {"user": "u"}
b /spec/securityContext/seLinuxOptions {"role": "r"}
- /spec/securityContext/seLinuxOptions {"type": "container_engine_t", "level": "s0"}
b /spec/securityContext/sysctls [{"name": "net.core.somaxconn", "value": "1"}]
- /spec/securityContext/sysctls [{"name": "net.ipv4.tcp_rmem", "value": "1 2 3"}]
- /spec/securityContext/sysctls [{"name": "net.ipv4.tcp_fin_timeout", "value": "1"}]
- /spec/securityContext/sysctls [{"name": "net.ipv4.ip_local_reserved_ports", "value": "1"}]
b /spec/securityContext/sysctls [{"name": "net.ipv4.tcp_mem", "value": "1 2 3"}]
b /metadata/annotations {"container.apparmor.security.beta.kubernetes.io/app": "unconfined"}
- /metadata/annotations {"container.apparmor.security.beta.kubernetes.io/app": "localhost/p"}
b /spec/containers/0/ports [{"containerPort": 80, "hostPort": 80}]
- /spec/containers/0/ports [{"containerPort": 80}]
b /spec/containers/0/livenessProbe {"httpGet": {"port": 80, "host": "other"}}
b /spec/containers/0/readinessProbe {"tcpSocket": {"port": 80, "host": "127.0.0.1"}}
- /spec/containers/0/readinessProbe {"tcpSocket": {"port": 80}}
b /spec/containers/0/lifecycle {"postStart": {"httpGet": {"port": 80, "host": "other"}}}
b /spec/containers/0/securityContext/privileged true ; /spec/containers/0/securityContext/allowPrivilegeEscalation null
- /spec/containers/0/securityContext/privileged false
r /spec/containers/0/securityContext/allowPrivilegeEscalation null
r /spec/containers/0/securityContext/allowPrivilegeEscalation true
r /spec/containers/0/securityContext/capabilities null
r /spec/containers/0/securityContext/capabilities {"drop": ["NET_RAW", "CHOWN"]}
- /spec/containers/0/securityContext/capabilities {"drop": ["NET_RAW", "ALL"]}
- /spec/containers/0/securityContext/capabilities {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}
r /spec/containers/0/securityContext/capabilities {"drop": ["ALL"], "add": ["CHOWN"]}
b /spec/containers/0/securityContext/capabilities {"drop": ["ALL"], "add": ["SYS_PTRACE"]}
b /spec/containers/0/securityContext/capabilities {"drop": ["ALL"], "add": ["NET_RAW"]}
b /spec/containers/0/securityContext/seccompProfile {"type": "Unconfined"}
b /spec/containers/0/securityContext/seLinuxOptions {"type": "x_t"}
r /spec/containers/0/securityContext/runAsNonRoot false
r /spec/containers/0/securityContext/runAsUser 0 ; /spec/containers/0/securityContext/runAsNonRoot false
r /spec/containers/0/securityContext/runAsUser 0
r /spec/securityContext/runAsUser 0
- /spec/containers/0/securityContext/runAsNonRoot true ; /spec/initContainers/0/securityContext/runAsNonRoot true ; /spec/securityContext/runAsNonRoot null
r /spec/containers/0/securityContext/runAsNonRoot true ; /spec/securityContext/runAsNonRoot null
- /spec/hostUsers false ; /spec/securityContext/runAsNonRoot null ; /spec/securityContext/runAsUser 0
r /spec/hostUsers false ; /spec/containers/0/securityContext/procMount "Unmasked"
b /spec/initContainers/0/securityContext/privileged true ; /spec/initContainers/0/securityContext/allowPrivilegeEscalation null
r /spec/initContainers/0/securityContext null
b /spec/initContainers/0/securityContext/capabilities {"drop": ["ALL"], "add": ["SYS_ADMIN"]}
"#;

struct Case {
    weakest: char,
    text: &'static str,
    pod: Value,
}

fn good() -> Value {
    let context = json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}});
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {
        "securityContext": {"runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}},
        "initContainers": [{"name": "view", "image": "v:1", "securityContext": context}],
        "containers": [{"name": "app", "image": "a:1", "securityContext": context}]}})
}

/// Sets a value by JSON pointer; `null` removes.
fn set(pod: &mut Value, pointer: &str, value: Value) {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let parent = pod.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    if value.is_null() {
        parent.remove(key);
    } else {
        parent.insert(key.to_owned(), value);
    }
}

fn cases() -> Vec<Case> {
    let lines = CHANGES.lines().filter(|line| !line.is_empty());
    let case = |text: &'static str| {
        let (weakest, changes) = text.split_once(' ').unwrap();
        let mut pod = good();
        for change in changes.split(" ; ") {
            let (pointer, value) = change.split_once(' ').unwrap();
            set(&mut pod, pointer, serde_json::from_str(value).unwrap());
        }
        Case { weakest: weakest.chars().next().unwrap(), text, pod }
    };
    lines.map(case).collect()
}

const LEVELS: [(PodSecurity, &str); 2] = [(PodSecurity::Baseline, "b"), (PodSecurity::Restricted, "br")];

#[test]
fn each_level_refuses_what_it_should() {
    let mut wrong = String::new();
    for case in cases() {
        let pod = Object::Pod(Box::new(serde_json::from_value(case.pod.clone()).unwrap()));
        for (level, weakest) in LEVELS {
            let problems = pod_security(std::slice::from_ref(&pod), level, "1.36".parse().unwrap());
            if problems.is_empty() == weakest.contains(case.weakest) {
                wrong += &format!("{level:?}: {}\n  {problems:?}\n", case.text);
            }
        }
        assert!(pod_security(&[pod], PodSecurity::None, "1.36".parse().unwrap()).is_empty());
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Against a real API server, when `FLUX_GEN_TEST_KUBECONFIG` names the configuration of one of version 1.36 that has the
/// namespaces `baseline` and `restricted`, which enforce these levels.
#[test]
#[allow(clippy::disallowed_methods)]
fn an_api_server_agrees() {
    let Some(kubeconfig) = std::env::var_os("FLUX_GEN_TEST_KUBECONFIG") else {
        println!("skipped: FLUX_GEN_TEST_KUBECONFIG names no configuration of a test API server");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pods.json");
    let (mut pods, mut refused) = (Vec::new(), BTreeSet::new());
    for (index, case) in cases().iter().enumerate() {
        for (level, weakest) in LEVELS {
            let mut pod = case.pod.clone();
            let name = format!("case-{index}-{}", level.title());
            pod["metadata"]["name"] = name.as_str().into();
            pod["metadata"]["namespace"] = level.title().into();
            pods.push(pod);
            refused.extend(weakest.contains(case.weakest).then_some(name));
        }
    }
    std::fs::write(&file, json!({"apiVersion": "v1", "kind": "List", "items": pods}).to_string()).unwrap();
    let output = std::process::Command::new("kubectl")
        .arg("--kubeconfig")
        .arg(&kubeconfig)
        .args(["create", "--dry-run=server", "--validate=false", "-f"])
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    // Other refusals would be mistakes of another kind.
    let by_admission = |line: &str| {
        let name = line.split("pods \"").nth(1)?.split('"').next()?.to_owned();
        line.contains("violates PodSecurity").then_some(name)
    };
    let found: BTreeSet<String> = said.lines().filter_map(by_admission).collect();
    assert_eq!(found, refused, "{said}");
    println!("asked an API server about {} pods", pods.len());
}
