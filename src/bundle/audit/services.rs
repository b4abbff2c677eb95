//! Services and network policies, and the labels by which they, and scheduling, find pods.

use std::collections::BTreeMap;

use serde_json::Value;

use super::cause::{Cause, Renaming};
use super::cluster::{Cluster, Located};
use super::item::escaped;
use super::world::World;
use super::{Findings, Item};
use crate::diag::codes::audit as codes;

/// Labels in selectors that flux-gen writes.
const OURS: [&str; 5] = ["job-name", JOB_NAME, INDEX, NAME, "hpa-selector"];
const JOB_NAME: &str = "batch.kubernetes.io/job-name";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
const NAME: &str = "app.kubernetes.io/name";

pub(super) fn check(cluster: &Cluster<'_>, world: &World<'_>, findings: &mut Findings) {
    let headless = cluster.headless(world);
    if let Some(service) = headless {
        form(service, findings);
        selector(cluster, service, &pod_labels(cluster.job), findings);
    }
    for listed in &cluster.listed {
        let Located::Here(item) = cluster.locate(listed, world) else { continue };
        match listed.kind.as_str() {
            "service" if headless.is_none_or(|headless| !headless.is(item)) => {
                selector(cluster, item, &pod_labels(cluster.job), findings);
            }
            "pod" => services_pod(cluster, item, headless, findings),
            "networkpolicy" => policy(cluster, item, findings),
            _ => {}
        }
    }
    overwritten_label(cluster, findings);
}

/// Labels of a pod of the Job. The index label is that of the leader, which is the only one that is ever selected.
fn pod_labels(job: Item<'_>) -> BTreeMap<String, String> {
    let mut labels = texts(job.at("/spec/template/metadata/labels"));
    for key in ["job-name", JOB_NAME] {
        labels.insert(key.to_owned(), job.name.to_owned());
    }
    labels.insert(INDEX.to_owned(), "0".to_owned());
    labels
}

fn texts(map: Option<&Value>) -> BTreeMap<String, String> {
    let pairs = map.and_then(Value::as_object).into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

fn form(service: Item<'_>, findings: &mut Findings) {
    let mut changed = |pointer: &str, what: &str| {
        findings.error(codes::SERVICE_FORM, service, pointer, what, &Cause::Patch);
    };
    if service.text("/spec/clusterIP") != Some("None") {
        changed("/spec/clusterIP", "the Service is not headless: pods have no names of their own");
    }
    if service.at("/spec/publishNotReadyAddresses") != Some(&Value::Bool(true)) {
        let what = "addresses come only when pods are ready, and brokers look for each other before that";
        changed("/spec/publishNotReadyAddresses", what);
    }
    if !matches!(service.text("/spec/type"), None | Some("ClusterIP")) {
        changed("/spec/type", "the type is not ClusterIP: pods have no names of their own");
    }
}

fn selector(cluster: &Cluster<'_>, service: Item<'_>, pod: &BTreeMap<String, String>, findings: &mut Findings) {
    let selector = texts(service.at("/spec/selector"));
    if selector.is_empty() {
        let what = "the Service has no selector: it gets no addresses";
        findings.error(codes::NO_SUCH_PODS, service, "/spec", what, &Cause::Patch);
    }
    for (key, wanted) in &selector {
        let pointer = format!("/spec/selector/{}", escaped(key));
        match pod.get(key) {
            Some(value) if value == wanted => {
                if !OURS.contains(&key.as_str()) {
                    let what = format!(
                        "the label `{key}: {wanted}` was added to the selector and to the pods: a Job that is there cannot be changed so, and its pods would lose their names"
                    );
                    findings.warning(codes::WIDER_SELECTOR, service, &pointer, &what, &Cause::Labels);
                }
            }
            other => {
                let have = other.map_or_else(|| "do not carry it".to_owned(), |value| format!("have `{value}`"));
                let what = format!("the Service selects `{key}: {wanted}` and the pods {have}: it gets no addresses");
                findings.error(codes::NO_SUCH_PODS, service, &pointer, &what, &blame(cluster, key, wanted));
            }
        }
    }
}

/// Job names in selectors go wrong when the Job is renamed, other labels when labels are set.
fn blame(cluster: &Cluster<'_>, key: &str, wanted: &str) -> Cause {
    let names_job = matches!(key, "job-name" | JOB_NAME);
    if names_job && wanted == cluster.base && !cluster.renaming.is_none() {
        Cause::renamed(&cluster.renaming)
    } else {
        Cause::Labels
    }
}

/// A network policy lets the cluster's pods talk to each other, and nobody else: it has to select them, and they have to be
/// among the peers of each direction.
fn policy(cluster: &Cluster<'_>, policy: Item<'_>, findings: &mut Findings) {
    let pod = pod_labels(cluster.job);
    let mut wrong = |pointer: &str, effect: &str| {
        let Some((key, wanted, have)) = mismatch(policy, pointer, &pod) else { return };
        let what = format!("the policy is about pods with `{key}: {wanted}` and the cluster's have `{have}`: {effect}");
        let at = format!("{pointer}/{}", escaped(&key));
        findings.error(codes::NO_SUCH_PODS, policy, &at, &what, &Cause::Labels);
    };
    wrong("/spec/podSelector/matchLabels", "everybody reaches the brokers");
    for (rules, peers) in [("/spec/ingress", "from"), ("/spec/egress", "to")] {
        // Peers of the user's are other pods, so one that fits is enough.
        let selectors: Vec<String> = policy
            .list(rules)
            .iter()
            .enumerate()
            .flat_map(|(rule, value)| {
                let list = value.get(peers).and_then(Value::as_array).map_or(0, Vec::len);
                (0..list).map(move |at| format!("{rules}/{rule}/{peers}/{at}/podSelector/matchLabels"))
            })
            .filter(|pointer| policy.at(pointer).is_some())
            .collect();
        if selectors.iter().all(|pointer| mismatch(policy, pointer, &pod).is_some()) {
            // Ours comes first.
            if let Some(first) = selectors.first() {
                wrong(first, "brokers cannot reach each other");
            }
        }
    }
}

/// The first label of a selector that the pod does not carry: the label, the value asked for, what the pod has.
fn mismatch(policy: Item<'_>, pointer: &str, pod: &BTreeMap<String, String>) -> Option<(String, String, String)> {
    texts(policy.at(pointer)).into_iter().find(|(key, wanted)| pod.get(key) != Some(wanted)).map(|(key, wanted)| {
        let have = pod.get(&key).map_or_else(|| "no such label".to_owned(), Clone::clone);
        (key, wanted, have)
    })
}

/// The Pod of `services` is reached by the headless Service too.
fn services_pod(cluster: &Cluster<'_>, pod: Item<'_>, headless: Option<Item<'_>>, findings: &mut Findings) {
    let Some(service) = headless else { return };
    let subdomain = pod.text("/spec/subdomain").unwrap_or_default();
    if subdomain != service.name {
        let what = format!(
            "the Pod belongs to the Service `{subdomain}`, but that is called `{}`: its name does not resolve",
            service.name
        );
        let cause = Cause::renamed(&Renaming::between(subdomain, service.name));
        findings.error(codes::SUBDOMAIN, pod, "/spec/subdomain", &what, &cause);
    }
    let hostname = pod.text("/spec/hostname").unwrap_or_default();
    let wanted = format!("{}-services", cluster.base);
    if hostname != wanted {
        let what = format!("the host name is `{hostname}`, and the cluster calls `{wanted}`");
        findings.error(codes::SUBDOMAIN, pod, "/spec/hostname", &what, &Cause::Patch);
    }
    let labels = texts(pod.at("/metadata/labels"));
    let selector = texts(service.at("/spec/selector"));
    for (key, value) in selector.iter().filter(|(key, _)| *key != INDEX) {
        // Pods of the Job are compared with the selector elsewhere; this one has its label from us.
        if labels.get(key) != Some(value) {
            let what = format!(
                "the Service selects `{key}: {value}`, which this Pod does not carry: its name does not resolve"
            );
            findings.error(codes::NO_SUCH_PODS, pod, "/metadata/labels", &what, &blame(cluster, key, value));
        }
    }
}

/// The terms that keep the pods together, and apart, look for a label that labelling tools like to set.
fn overwritten_label(cluster: &Cluster<'_>, findings: &mut Findings) {
    let job = cluster.job;
    let label = job.at("/spec/template/metadata/labels").and_then(|labels| labels.get(NAME)?.as_str());
    for kind in ["podAffinity", "podAntiAffinity"] {
        let list = format!("/spec/template/spec/affinity/{kind}/preferredDuringSchedulingIgnoredDuringExecution");
        for (index, term) in job.list(&list).iter().enumerate() {
            let expression = term.pointer("/podAffinityTerm/labelSelector/matchExpressions/0");
            let key = expression.and_then(|e| e.get("key")?.as_str());
            let value = expression.and_then(|e| e.pointer("/values/0")?.as_str());
            // Terms of the user may be about other pods; ours name the cluster.
            if key == Some(NAME) && value == Some(cluster.base.as_str()) && label != value {
                let at = format!("{list}/{index}/podAffinityTerm/labelSelector");
                let what = format!(
                    "the term looks for `{NAME}: {}` and the pods have `{}`: it finds none",
                    cluster.base,
                    label.unwrap_or_default()
                );
                findings.warning(codes::POD_LABELS, job, &at, &what, &Cause::Labels);
                return;
            }
        }
    }
}
