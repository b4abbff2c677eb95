//! Queues, capacity and hardening: what they put into objects, and every code of `FG35x` and `FG36x` with cases that fire and
//! cases that do not.

use flux_gen::compile::Compiled;
use flux_gen::diag::{Severity, codes};
use serde_json::{Value, json};

use crate::text::compiled;

fn cluster(name: &str, spec: &str) -> String {
    let containers = if spec.contains("containers:") { "" } else { "  containers: [{image: app, command: run}]\n" };
    format!(
        "apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\nmetadata: {{name: {name}, namespace: hpc}}\nspec:\n{spec}{containers}"
    )
}

/// Code, severity and message of what is about this file's subjects.
fn said(compiled: &Compiled) -> Vec<(String, Severity, String)> {
    let found = compiled.diagnostics.clone().sorted();
    let ours = |id: &str| id.starts_with("FG35") || id.starts_with("FG36") || id == "FG402";
    found.iter().filter(|d| ours(d.code.id)).map(|d| (d.code.id.to_owned(), d.severity, d.message.clone())).collect()
}

fn object(compiled: &Compiled, kind: &str) -> Value {
    assert!(!compiled.diagnostics.has_errors(), "{:?}", compiled.diagnostics);
    let objects = compiled.clusters[0].objects.iter();
    objects.filter(|o| o.kind() == kind).map(|o| serde_json::to_value(o).unwrap()).next().unwrap_or(Value::Null)
}

/// Spec, settings, codes.
type QueueCase = (&'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);

const QUEUE_CASES: &[QueueCase] = &[
    ("  size: 2\n", &[("queue", "kueue/hpc")], &[]),
    ("  size: 2\n  jobLabels: {kueue.x-k8s.io/queue-name: a}\n", &[], &[]),
    ("  size: 2\n  jobLabels: {kueue.x-k8s.io/queue-name: a}\n", &[("queue", "kueue/a")], &["FG350"]),
    ("  size: 2\n  jobLabels: {kueue.x-k8s.io/priority-class: a}\n", &[("queue", "kueue/a")], &[]),
    (
        "  size: 2\n  jobLabels: {kueue.x-k8s.io/priority-class: a}\n",
        &[("queue", "kueue/a"), ("queue-priority", "b")],
        &["FG350"],
    ),
    (
        "  size: 2\n  pod: {annotations: {kueue.x-k8s.io/podset-required-topology: rack}}\n",
        &[("queue", "kueue/a"), ("queue-topology", "preferred:rack")],
        &["FG350"],
    ),
    (
        "  size: 2\n  pod: {annotations: {kueue.x-k8s.io/podset-required-topology: rack}}\n",
        &[("queue", "kueue/a")],
        &[],
    ),
    ("  size: 2\n", &[("queue-priority", "b")], &["FG351"]),
    ("  size: 2\n", &[("queue-topology", "unconstrained")], &["FG351"]),
    ("  size: 2\n", &[("queue-admission", "partial")], &["FG351"]),
    ("  size: 4\n", &[("queue", "kueue/a"), ("queue-admission", "partial")], &["FG352"]),
    ("  size: 4\n  minSize: 4\n  tasks: 1\n", &[("queue", "kueue/a"), ("queue-admission", "partial")], &["FG352"]),
    ("  size: 4\n  minSize: 2\n  tasks: 4\n", &[("queue", "kueue/a"), ("queue-admission", "partial")], &["FG352"]),
    ("  size: 4\n  minSize: 2\n  tasks: 0\n", &[("queue", "kueue/a"), ("queue-admission", "partial")], &["FG352"]),
    ("  size: 4\n  minSize: 2\n  tasks: 2\n", &[("queue", "kueue/a"), ("queue-admission", "partial")], &[]),
    ("  size: 4\n  minSize: 2\n  interactive: true\n", &[("queue", "kueue/a"), ("queue-admission", "partial")], &[]),
    ("  size: 4\n", &[("queue", "kueue/a"), ("queue-admission", "elastic")], &["FG353"]),
    (
        "  size: 4\n  maxSize: 8\n",
        &[("queue", "kueue/a"), ("queue-admission", "elastic"), ("queue-topology", "required:rack")],
        &["FG353"],
    ),
    ("  size: 4\n  maxSize: 8\n", &[("queue", "kueue/a"), ("queue-admission", "elastic")], &[]),
    ("  services: [{image: registry, name: r}]\n", &[("queue", "kueue/a")], &["FG355"]),
    ("  services: [{image: registry, name: r}]\n", &[], &[]),
    ("  size: 2\n", &[("queue", "volcano/a")], &["FG402"]),
    ("  size: 2\n", &[("queue", "a")], &["FG402"]),
    ("  size: 2\n", &[("queue", "kueue/a"), ("queue-topology", "rack")], &["FG402"]),
    ("  size: 2\n", &[("queue", "kueue/a"), ("queue-priority", "A b")], &["FG402"]),
];

#[test]
fn queue_settings_are_checked_against_the_spec() {
    for (spec, set, expected) in QUEUE_CASES {
        let compiled = compiled(&cluster("a", spec), "", set);
        let codes: Vec<String> = said(&compiled).into_iter().map(|(code, ..)| code).collect();
        assert_eq!(codes, *expected, "{spec}{set:?} {:?}", compiled.diagnostics);
    }
}

#[test]
fn a_queue_puts_its_words_on_job_and_pods() {
    let spec = cluster(
        "a",
        "  size: 4\n  minSize: 2\n  tasks: 2\n  jobLabels: {team: x}\n  pod: {annotations: {a: b}}\n  services: [{image: registry, name: r}]\n",
    );
    let set = [
        ("queue", "kueue/hpc"),
        ("queue-priority", "urgent"),
        ("queue-topology", "preferred:cloud.provider.com/topology-rack"),
        ("queue-admission", "partial"),
    ];
    let with = compiled(&spec, "", &set);
    let job = object(&with, "Job");
    assert_eq!(
        job["metadata"]["labels"],
        json!({"kueue.x-k8s.io/queue-name": "hpc", "kueue.x-k8s.io/priority-class": "urgent", "team": "x"})
    );
    let annotations = job["metadata"]["annotations"].as_object().unwrap().iter();
    let of_kueue: Vec<_> =
        annotations.filter(|(key, _)| key.starts_with("kueue")).map(|(k, v)| (k.as_str(), v)).collect();
    assert_eq!(
        of_kueue,
        [
            ("kueue.x-k8s.io/job-completions-equal-parallelism", &json!("true")),
            ("kueue.x-k8s.io/job-min-parallelism", &json!("2")),
        ]
    );
    let pods = &job["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(
        *pods,
        json!({"a": "b", "kueue.x-k8s.io/podset-preferred-topology": "cloud.provider.com/topology-rack"})
    );
    assert!(job["spec"].get("suspend").is_none());
    // The Pod of services is not of the queue.
    let services = object(&with, "Pod");
    assert!(!services.to_string().contains("kueue"), "{services}");
    // Nothing else differs.
    let plain = object(&compiled(&spec, "", &[]), "Job");
    assert_eq!(plain["spec"]["template"]["spec"], job["spec"]["template"]["spec"]);
}

#[test]
fn an_elastic_job_is_not_partially_admitted() {
    let spec = cluster("a", "  size: 4\n  minSize: 2\n  maxSize: 8\n");
    let set = [("queue", "kueue/hpc"), ("queue-admission", "elastic"), ("queue-topology", "unconstrained")];
    let job = object(&compiled(&spec, "", &set), "Job");
    assert_eq!(job["metadata"]["annotations"]["kueue.x-k8s.io/elastic-job"], "true");
    assert!(job["metadata"]["annotations"].get("kueue.x-k8s.io/job-min-parallelism").is_none());
    let pods = &job["spec"]["template"]["metadata"]["annotations"];
    assert_eq!(pods["kueue.x-k8s.io/podset-unconstrained-topology"], "true");
}

const CAPACITY: &str = "\
capacity:
  flavors:
    small: {nodes: 4, cores: 16, memory: 64Gi, labels: {kubernetes.io/arch: amd64}}
    gpu: {nodes: 2, cores: 64, memory: 512Gi, gpus: {nvidia.com/gpu: 8}}
  queues:
    hpc: {flavors: {small: {nodes: 3}}}
    ml: {flavors: {gpu: {gpus: {nvidia.com/gpu: 8}}}}
    other/none: {flavors: {}}
";

fn sized(name: &str, queue: &str, size: &str, resources: &str) -> String {
    let queue =
        if queue.is_empty() { String::new() } else { format!("  jobLabels: {{kueue.x-k8s.io/queue-name: {queue}}}\n") };
    let resources =
        if resources.is_empty() { String::new() } else { format!(", resources: {{limits: {{{resources}}}}}") };
    cluster(name, &format!("{size}{queue}  containers: [{{image: app, command: run{resources}}}]\n"))
}

/// Clusters, and codes with the end of their messages.
#[test]
fn one_cluster_alone_must_fit() {
    let no_cpu = "with a node for each (nothing says how much CPU a pod asks for)";
    for (spec, expected) in [
        // Whole nodes.
        (sized("a", "", "  size: 4\n", ""), vec![]),
        (
            sized("a", "", "  size: 5\n", ""),
            vec![format!(
                "`hpc/a` needs 5 pods {no_cpu} and can never fit: `small`: 4 nodes hold 4 of them; `gpu`: 2 nodes hold 2 of them"
            )],
        ),
        // Pods that say what they need share nodes: 4 on a node of 16.
        (sized("a", "", "  size: 16\n", "cpu: 4, memory: 8Gi"), vec![]),
        (sized("a", "", "  size: 32\n", "cpu: 4"), vec![]),
        (
            sized("a", "", "  size: 33\n", "cpu: 4"),
            vec![
                "`hpc/a` needs 33 pods of cpu 4 and can never fit: `small`: 4 nodes hold 16 of them; `gpu`: 2 nodes hold 32 of them"
                    .to_owned(),
            ],
        ),
        // Memory decides.
        (
            sized("a", "hpc", "  size: 4\n", "cpu: 1, memory: 48Gi"),
            vec![
                "`hpc/a` needs 4 pods of cpu 1, memory 48Gi and can never fit in queue `hpc`: `small`: 3 nodes hold 3 of them"
                    .to_owned(),
            ],
        ),
        // A pod larger than every node.
        (
            sized("a", "", "", "cpu: 65"),
            vec![
                "`hpc/a` needs 1 pod of cpu 65 and can never fit: `small`: a pod asks for cpu 65 and a node has 16; \
                 `gpu`: a pod asks for cpu 65 and a node has 64"
                    .to_owned(),
            ],
        ),
        // GPUs: small has none, and the queue has 8 of the 16.
        (sized("a", "ml", "  size: 2\n", "cpu: 8, nvidia.com/gpu: 4"), vec![]),
        (
            sized("a", "ml", "  size: 2\n", "cpu: 8, nvidia.com/gpu: 8"),
            vec![
                "`hpc/a` needs 2 pods of cpu 8, nvidia.com/gpu 8 and can never fit in queue `ml`: `gpu`: the share of the queue holds 1 of them"
                    .to_owned(),
            ],
        ),
        (
            sized("a", "hpc", "", "cpu: 8, nvidia.com/gpu: 1"),
            vec![
                "`hpc/a` needs 1 pod of cpu 8, nvidia.com/gpu 1 and can never fit in queue `hpc`: `small`: a pod asks for nvidia.com/gpu 1 and a node has 0"
                    .to_owned(),
            ],
        ),
        // Other devices are not known.
        (sized("a", "", "", "cpu: 8, vpc.amazonaws.com/efa: 1"), vec![]),
        // Labels.
        (
            sized("a", "hpc", "  pod: {nodeSelector: {kubernetes.io/arch: arm64}}\n", "cpu: 8"),
            vec![
                "`hpc/a` needs 1 pod of cpu 8 and can never fit in queue `hpc`: `small`: its nodes have `kubernetes.io/arch: amd64`, the pods want `arm64`"
                    .to_owned(),
            ],
        ),
        (
            sized("a", "hpc", "  flux: {arch: arm}\n", "cpu: 8"),
            vec![
                "`hpc/a` needs 1 pod of cpu 8 and can never fit in queue `hpc`: `small`: its nodes have `kubernetes.io/arch: amd64`, which the node affinity excludes"
                    .to_owned(),
            ],
        ),
        (sized("a", "hpc", "  pod: {nodeAffinity: {kubernetes.io/arch: [arm64, amd64]}}\n", "cpu: 8"), vec![]),
        // A flavor without the label may have it.
        (sized("a", "ml", "  flux: {arch: arm}\n", "cpu: 8"), vec![]),
        // Growth.
        (
            sized("a", "hpc", "  size: 2\n  maxSize: 8\n", "cpu: 16"),
            vec!["`hpc/a` has room for 3 pods in queue `hpc` and maxSize is 8".to_owned()],
        ),
        (
            sized("a", "nothing", "", "cpu: 1"),
            vec!["queue `nothing` of `hpc/a` is not in `capacity.queues`, so it is not checked".to_owned()],
        ),
    ] {
        let compiled = compiled(&spec, CAPACITY, &[]);
        let messages: Vec<String> = said(&compiled).into_iter().map(|(.., message)| message).collect();
        assert_eq!(messages, expected, "{spec}");
        for (code, severity, message) in said(&compiled) {
            let expected = match code.as_str() {
                "FG357" => message.contains("never fit") && severity == Severity::Error,
                "FG359" => message.contains("not checked") && severity == Severity::Warning,
                "FG363" => message.contains("has room for") && severity == Severity::Warning,
                _ => false,
            };
            assert!(expected, "{code} {message}");
        }
    }
}

#[test]
fn fewer_pods_may_be_admitted_partially() {
    let spec = cluster("a", "  size: 4\n  minSize: 2\n  tasks: 1\n");
    let set = [("queue", "kueue/hpc"), ("queue-admission", "partial")];
    let messages: Vec<_> =
        said(&compiled(&spec, CAPACITY, &set)).into_iter().map(|(code, _, message)| (code, message)).collect();
    let expected = "`hpc/a` has room for 3 pods in queue `hpc` and size is 4";
    assert_eq!(messages, [("FG363".to_owned(), expected.to_owned())]);
    let whole = said(&compiled(&spec, CAPACITY, &set[..1]));
    assert_eq!(whole[0].0, "FG357", "{whole:?}");
}

#[test]
fn clusters_of_a_queue_are_added_up() {
    let three = |queue: &str, resources: &str| {
        ["a", "b", "c"].map(|name| sized(name, queue, "  size: 2\n", resources)).join("---\n")
    };
    for (specs, expected) in [
        (three("hpc", "cpu: 8"), vec![]),
        (
            three("hpc", "cpu: 9, memory: 30Gi"),
            vec!["3 clusters of queue `hpc` ask together for cpu 54 of 48 there are"],
        ),
        (
            three("hpc", "cpu: 9, memory: 40Gi"),
            vec!["3 clusters of queue `hpc` ask together for cpu 54 of 48 there are, memory 240Gi of 192Gi there are"],
        ),
        (three("", ""), vec![]),
        (
            format!("{}---\n{}", three("", ""), sized("d", "", "  size: 1\n", "")),
            vec!["4 clusters without a queue ask together for nodes 7 of 6 there are"],
        ),
        // Each can use `gpu` only, though there is room elsewhere.
        (
            three("", "cpu: 30"),
            vec!["3 clusters without a queue that only use `gpu` ask together for cpu 180 of 128 there are"],
        ),
        // One queue is not the other's business.
        (format!("{}---\n{}", three("hpc", "cpu: 8"), sized("d", "ml", "  size: 2\n", "cpu: 60")), vec![]),
        // A cluster that joins a leader elsewhere runs elsewhere.
        (
            format!(
                "{}---\n{}",
                three("hpc", "cpu: 8"),
                cluster(
                    "burst",
                    "  size: 9\n  jobLabels: {kueue.x-k8s.io/queue-name: hpc}\n  flux: {bursting: {leadBroker: {name: a, address: 10.0.0.1, size: 2}}}\n"
                )
            ),
            vec![],
        ),
    ] {
        let compiled = compiled(&specs, CAPACITY, &[]);
        let messages: Vec<String> = said(&compiled).into_iter().map(|(.., message)| message).collect();
        assert_eq!(messages, expected, "{specs}");
        for (code, severity, _) in said(&compiled) {
            assert_eq!((code.as_str(), severity), ("FG358", Severity::Warning));
        }
    }
}

/// `capacity` and where its mistake begins.
#[test]
fn mistakes_in_capacity_are_named_at_their_place() {
    let spec = cluster("a", "");
    for (capacity, expected) in [
        ("{flavors: {a: {nodes: 1}}}", ""),
        ("{flavors: {}}", "capacity lists no flavor"),
        ("{flavors: {a: {nodes: 0}}}", "nodes 0 is not 1 or more"),
        ("{flavors: {a: {nodes: 1, cores: -1}}}", "cores -1 is not 1 or more"),
        ("{flavors: {a: {nodes: 1, memory: 0}}}", "memory `0` is no amount"),
        ("{flavors: {a: {nodes: 1, gpus: {gpu: 1}}}}", "`gpu` is no resource of devices"),
        ("{flavors: {a: {nodes: 1, gpus: {nvidia.com/gpu: -1}}}}", "-1 of `nvidia.com/gpu` are less than none"),
        ("{flavors: {small: {nodes: 1}}, queues: {q: {flavors: {smal: {}}}}}", "there is no flavor `smal`"),
        (
            "{flavors: {a: {nodes: 1}}, queues: {q: {flavors: {a: {nodes: 2}}}}}",
            "2 nodes of flavor `a` are more than the 1 there are",
        ),
    ] {
        let compiled = compiled(&spec, &format!("capacity: {capacity}\n"), &[]);
        let errors: Vec<String> =
            said(&compiled).into_iter().filter(|(code, ..)| code == "FG356").map(|(.., m)| m).collect();
        assert_eq!(errors.join(""), expected, "{capacity}");
        assert_eq!(compiled.diagnostics.has_errors(), !expected.is_empty());
    }
}

#[test]
fn a_network_policy_lets_in_who_belongs() {
    let spec = cluster(
        "a",
        "  containers: [{image: app, runFlux: true, command: run}, {image: web, name: web, ports: [5000], command: serve}]\n",
    );
    assert_eq!(object(&compiled(&spec, "", &[]), "NetworkPolicy"), Value::Null);
    let with = compiled(&spec, "", &[("network-policy", "cluster")]);
    let own = json!({"podSelector": {"matchLabels": {"app": "flux-operator", "app.kubernetes.io/name": "a"}}});
    let policy = object(&with, "NetworkPolicy");
    assert_eq!(
        policy,
        json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": {"name": "a", "namespace": "hpc"},
            "spec": {
                "podSelector": own["podSelector"],
                "policyTypes": ["Ingress"],
                "ingress": [{"from": [own]}, {"ports": [{"port": 5000, "protocol": "TCP"}]}],
            },
        })
    );
    // Before what it protects.
    let kinds: Vec<&str> = with.clusters[0].objects.iter().map(flux_gen::object::Object::kind).collect();
    assert_eq!(kinds, ["ConfigMap", "ConfigMap", "NetworkPolicy", "Service", "Service", "Job"]);
    // Every pod of the bundle has the labels.
    let job = object(&with, "Job");
    for (key, value) in own["podSelector"]["matchLabels"].as_object().unwrap() {
        assert_eq!(job["spec"]["template"]["metadata"]["labels"][key], *value);
    }
    let services =
        compiled(&cluster("a", "  services: [{image: registry, name: r}]\n"), "", &[("network-policy", "cluster")]);
    for (key, value) in own["podSelector"]["matchLabels"].as_object().unwrap() {
        assert_eq!(object(&services, "Pod")["metadata"]["labels"][key], *value);
    }

    let policy = object(&compiled(&cluster("a", ""), "", &[("network-policy", "isolated")]), "NetworkPolicy");
    assert_eq!(policy["spec"]["policyTypes"], json!(["Ingress", "Egress"]));
    assert_eq!(policy["spec"]["ingress"], json!([{"from": [own]}]));
    let dns = json!([{"port": 53, "protocol": "UDP"}, {"port": 53, "protocol": "TCP"}]);
    assert_eq!(policy["spec"]["egress"], json!([{"to": [own]}, {"ports": dns}]));
}

#[test]
fn a_bursting_group_reaches_each_other() {
    let own =
        |name: &str| json!({"podSelector": {"matchLabels": {"app": "flux-operator", "app.kubernetes.io/name": name}}});
    let main = cluster("main", "  flux: {bursting: {clusters: [{size: 2}, {name: far, size: 2}]}}\n");
    let with = compiled(&main, "", &[("network-policy", "cluster")]);
    let policy = object(&with, "NetworkPolicy");
    assert_eq!(
        policy["spec"]["ingress"],
        json!([{"from": [own("main"), own("burst-0"), own("far")]}, {"ports": [{"port": 8050, "protocol": "TCP"}]}])
    );
    assert_eq!(said(&with)[0].0, "FG362");
    for (address, to) in [
        ("10.0.0.1", json!([{"ipBlock": {"cidr": "10.0.0.1/32"}}])),
        ("'fd00::1'", json!([{"ipBlock": {"cidr": "fd00::1/128"}}])),
        ("main.example.com", Value::Null),
    ] {
        let burst = cluster(
            "burst-0",
            &format!("  size: 2\n  flux: {{bursting: {{leadBroker: {{name: main, address: {address}, size: 2}}}}}}\n"),
        );
        let policy = object(&compiled(&burst, "", &[("network-policy", "isolated")]), "NetworkPolicy");
        assert_eq!(policy["spec"]["ingress"], json!([{"from": [own("burst-0"), own("main")]}]));
        let egress = &policy["spec"]["egress"][2];
        assert_eq!(egress["ports"], json!([{"port": 8050, "protocol": "TCP"}]), "{policy}");
        assert_eq!(egress.get("to").cloned().unwrap_or_default(), to);
    }
    assert!(said(&compiled(&cluster("a", ""), "", &[("network-policy", "cluster")])).is_empty());
}

const RESTRICTED: &[(&str, &str)] = &[("pod-security", "restricted")];

#[test]
fn restricted_fills_in_what_is_open() {
    let spec = cluster(
        "a",
        "  pod: {securityContext: {runAsUser: 1000}}\n  services: [{image: registry, name: r}]\n  containers: [{image: app, runFlux: true, command: run, securityContext: {capabilities: {add: [NET_BIND_SERVICE], drop: [MKNOD]}}}, {image: web, name: web, ports: [5000]}, {image: x, name: x, command: z}]\n",
    );
    let with = compiled(&spec, "", RESTRICTED);
    assert_eq!(said(&with), []);
    for (kind, at) in [("Job", "/spec/template/spec"), ("Pod", "/spec")] {
        let object = object(&with, kind);
        let pod = object.pointer(at).unwrap();
        let context = &pod["securityContext"];
        assert_eq!(
            *context,
            json!({"runAsNonRoot": true, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}})
        );
        let lists = ["containers", "initContainers"]
            .iter()
            .filter_map(|list| pod.get(*list))
            .flat_map(|l| l.as_array().unwrap());
        for container in lists {
            assert_eq!(container["securityContext"]["allowPrivilegeEscalation"], false, "{container}");
            assert_eq!(container["securityContext"]["capabilities"]["drop"], json!(["ALL"]));
            assert!(container["securityContext"].get("runAsUser").is_none());
        }
    }
    assert!(!object(&compiled(&spec, "", &[]), "Job").to_string().contains("RuntimeDefault"));
    assert!(
        !object(&compiled(&spec, "", &[("pod-security", "baseline")]), "Job").to_string().contains("RuntimeDefault")
    );
}

#[test]
fn a_user_that_nobody_chose_is_named() {
    let spec = cluster("a", "  services: [{image: registry, name: r}]\n");
    let with = compiled(&spec, "", RESTRICTED);
    assert_eq!(
        said(&with),
        [("FG361".to_owned(), Severity::Warning, "nothing says which user the images of `a`, `r` run as".to_owned())]
    );
    // The init container only copies, so any user will do, whatever the view's image says.
    let job = object(&with, "Job");
    assert_eq!(job["spec"]["template"]["spec"]["initContainers"][0]["securityContext"]["runAsUser"], 1000);
    assert!(said(&compiled(&spec, "", &[("pod-security", "baseline")])).is_empty());
    let own = cluster("a", "  containers: [{image: app, command: run, securityContext: {runAsUser: 5}}]\n");
    assert!(said(&compiled(&own, "", RESTRICTED)).is_empty());
}

/// What patches bring in; the rest is in `tests/rules/hardening.yaml`. Each with the weakest level that refuses it.
#[test]
fn patches_are_held_to_the_level_too() {
    let spec = cluster("a", "  pod: {securityContext: {runAsUser: 1000}}\n");
    let pod =
        |body: &str| format!("patches: [{{target: {{kind: Job}}, patch: {{spec: {{template: {{spec: {body}}}}}}}}}]\n");
    let container = |body: &str| pod(&format!("{{containers: [{{name: a, {body}}}]}}"));
    let context = |body: &str| container(&format!("securityContext: {{{body}}}"));
    for (patch, baseline, path) in [
        (pod("{hostNetwork: true, dnsPolicy: ClusterFirst}"), true, "hostNetwork"),
        (pod("{volumes: [{name: vol, hostPath: {path: /x}}]}"), true, "volumes[6].hostPath"),
        (pod("{volumes: [{name: vol, nfs: {server: s, path: /x}}]}"), false, "volumes[6]"),
        (pod("{securityContext: {seccompProfile: {type: Unconfined}}}"), true, "securityContext.seccompProfile.type"),
        (pod("{securityContext: {appArmorProfile: {type: Unconfined}}}"), true, "securityContext.appArmorProfile.type"),
        (pod("{securityContext: {runAsNonRoot: null}}"), false, "containers[0].securityContext.runAsNonRoot"),
        (pod("{securityContext: {seccompProfile: null}}"), false, "containers[0].securityContext.seccompProfile"),
        (container("ports: [{containerPort: 80, hostPort: 80}]"), true, "containers[0].ports[0].hostPort"),
        (container("livenessProbe: {httpGet: {port: 80, host: other}}"), true, "containers[0].livenessProbe"),
        (
            container("lifecycle: {preStop: {httpGet: {port: 80, host: other}}}"),
            true,
            "containers[0].lifecycle.preStop",
        ),
        (context("privileged: true, allowPrivilegeEscalation: null"), true, "containers[0].securityContext.privileged"),
        (context("capabilities: {add: [SYS_TIME]}"), true, "containers[0].securityContext.capabilities.add[0]"),
        (context("capabilities: {add: [CHOWN]}"), false, "containers[0].securityContext.capabilities.add[0]"),
        (context("capabilities: {drop: [CHOWN]}"), false, "containers[0].securityContext.capabilities.drop"),
        (context("allowPrivilegeEscalation: true"), false, "containers[0].securityContext.allowPrivilegeEscalation"),
        (context("runAsNonRoot: false, runAsUser: 0"), false, "containers[0].securityContext.runAsUser"),
        (context("seLinuxOptions: {user: x}"), true, "containers[0].securityContext.seLinuxOptions.user"),
    ] {
        for (level, refused) in [("none", false), ("baseline", baseline), ("restricted", true)] {
            let compiled = compiled(&spec, &patch, &[("pod-security", level)]);
            let messages: Vec<String> = said(&compiled).into_iter().map(|(code, _, m)| format!("{code} {m}")).collect();
            assert_eq!(!messages.is_empty(), refused, "{level} {patch}: {messages:?}");
            let start = format!("FG360 Job a: spec.template.spec.{path} ");
            assert!(!refused || messages.iter().any(|m| m.starts_with(&start)), "{patch}: {messages:?}");
        }
    }
    let good = pod("{volumes: [{name: vol, emptyDir: {}}]}");
    assert!(said(&compiled(&spec, &good, RESTRICTED)).is_empty());
}

#[test]
fn root_of_a_user_namespace_is_taken_from_where_the_standard_takes_it() {
    let spec = cluster("a", "");
    let patch = "patches: [{target: {kind: Job}, patch: {spec: {template: {spec: {hostUsers: false, securityContext: {runAsNonRoot: null, runAsUser: 0}}}}}}]\n";
    for (version, refused) in [("1.33", true), ("1.34", true), ("1.35", false), ("1.37", false)] {
        let set = [("pod-security", "restricted"), ("kubernetes-version", version)];
        let compiled = compiled(&spec, patch, &set);
        assert_eq!(compiled.diagnostics.has_errors(), refused, "{version}: {:?}", said(&compiled));
    }
}

#[test]
fn every_code_of_the_family_is_tested() {
    let source = concat!(include_str!("queues.rs"), include_str!("../rules/hardening.yaml"));
    for code in codes::queue::ALL {
        assert!(source.contains(code.id), "{}", code.id);
    }
}
