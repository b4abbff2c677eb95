//! The Job's own fields and the fields of every pod.

use k8s_openapi::api::core::v1 as core;

use super::containers::quantities;
use super::written::{flag, number, owned, text, texts};
use super::{security, view};

use crate::model::kubernetes::Feature;
use crate::model::queue::Queueing;
use crate::model::settings::Settings;
use crate::model::{Broker, FollowerEnd, Job, JobEnd, Leader, Pod};
use crate::spec::minicluster::{self as written, MiniClusterSpec};

/// The operator's default for `deadlineSeconds`: a year, nearly.
const DEFAULT_DEADLINE_SECONDS: i64 = 31_500_000;
const ARCH_LABEL: &str = "kubernetes.io/arch";
const GRACE_FOR_ARCHIVE_SECONDS: i64 = 90;

/// Resolves the Job (design §5, Life of the Job).
pub(super) fn job(spec: &MiniClusterSpec, broker: &Broker, settings: &Settings) -> Job {
    let target = settings.kubernetes_version;
    let ends_with_leader =
        target.has(Feature::SuccessPolicy) && broker.leader == Leader::Here && broker.follower_end != FollowerEnd::Exit;
    let never = restart_policy(spec) == "Never";
    let modern = target.has(Feature::SuccessPolicy);
    Job {
        labels: texts(&spec.job_labels),
        deadline_seconds: spec.deadline_seconds.as_ref().map_or(DEFAULT_DEADLINE_SECONDS, |d| d.value),
        backoff_limit: number(&spec.backoff_limit).and_then(|n| i32::try_from(n).ok()).unwrap_or(0),
        end: if ends_with_leader || (modern && broker.leader == Leader::Here) {
            JobEnd::LeaderSucceeds
        } else {
            JobEnd::AllSucceed
        },
        ignore_disruptions: never && modern,
        replace_only_failed: never && modern && target.has(Feature::PodReplacementPolicy),
        queueing: Queueing::default(),
    }
}

fn restart_policy(spec: &MiniClusterSpec) -> String {
    spec.pod.as_ref().and_then(|p| owned(&p.restart_policy)).unwrap_or_else(|| "Never".to_owned())
}

/// Resolves the fields of every pod.
pub(super) fn pod(spec: &MiniClusterSpec) -> Pod {
    let default = written::Pod::default();
    let pod = spec.pod.as_ref().map_or(&default, |p| &p.value);
    let archive = spec.archive.as_ref().is_some_and(|a| text(&a.path).is_some());
    let node_selector = texts(&pod.node_selector);
    let pod_spec = core::PodSpec {
        affinity: node_affinity(spec, pod)
            .map(|node| core::Affinity { node_affinity: Some(node), ..Default::default() }),
        automount_service_account_token: Some(flag(&pod.automount_service_account_token)),
        dns_policy: owned(&pod.dns_policy),
        host_ipc: flag(&pod.host_ipc).then_some(true),
        host_pid: flag(&pod.host_pid).then_some(true),
        image_pull_secrets: pull_secrets(spec),
        node_selector: (!node_selector.is_empty()).then_some(node_selector),
        resources: pod_resources(pod),
        restart_policy: Some(restart_policy(spec)),
        runtime_class_name: owned(&pod.runtime_class_name),
        scheduler_name: owned(&pod.scheduler_name),
        security_context: security::pod(pod.security_context.as_ref()),
        service_account_name: owned(&pod.service_account_name),
        set_hostname_as_fqdn: Some(false),
        share_process_namespace: Some(flag(&spec.share_process_namespace)),
        termination_grace_period_seconds: archive.then_some(GRACE_FOR_ARCHIVE_SECONDS),
        tolerations: security::tolerations(pod.tolerations.as_ref()),
        ..Default::default()
    };
    Pod {
        labels: texts(&pod.labels),
        annotations: texts(&pod.annotations),
        spec: pod_spec,
        services_restart_policy: owned(&pod.restart_policy).unwrap_or_else(|| "OnFailure".to_owned()),
        spread: !spec.network.as_ref().is_some_and(|n| flag(&n.disable_affinity)),
    }
}

/// Required node affinity: the user's, and the architecture of an ARM view.
fn node_affinity(spec: &MiniClusterSpec, pod: &written::Pod) -> Option<core::NodeAffinity> {
    let mut expressions: Vec<core::NodeSelectorRequirement> = pod
        .node_affinity
        .iter()
        .flat_map(|m| m.value.iter())
        .map(|entry| expression(&entry.key, entry.value.iter().map(|v| v.value.clone()).collect()))
        .collect();
    expressions.sort_by(|a, b| a.key.cmp(&b.key));
    if view::is_arm(spec) && !expressions.iter().any(|e| e.key == ARCH_LABEL) {
        expressions.push(expression(ARCH_LABEL, vec!["arm64".to_owned()]));
    }
    (!expressions.is_empty()).then(|| core::NodeAffinity {
        required_during_scheduling_ignored_during_execution: Some(core::NodeSelector {
            node_selector_terms: vec![core::NodeSelectorTerm {
                match_expressions: Some(expressions),
                match_fields: None,
            }],
        }),
        preferred_during_scheduling_ignored_during_execution: None,
    })
}

fn expression(key: &str, values: Vec<String>) -> core::NodeSelectorRequirement {
    core::NodeSelectorRequirement { key: key.to_owned(), operator: "In".to_owned(), values: Some(values) }
}

/// `pod.resources` asks for room for the whole pod. The operator writes it as overhead, which belongs to runtime classes
/// and is refused without one (quirk 47); what it means is the pod's own requests (KEP-2837).
///
/// Where Kubernetes has no such requests the rules on specs have refused them.
fn pod_resources(pod: &written::Pod) -> Option<core::ResourceRequirements> {
    let requests = quantities(pod.resources.as_ref())?;
    Some(core::ResourceRequirements { requests: Some(requests), ..Default::default() })
}

/// Pull secrets of every container, the services and the view, each once, in the order in which they are written.
fn pull_secrets(spec: &MiniClusterSpec) -> Option<Vec<core::LocalObjectReference>> {
    let containers = [&spec.containers, &spec.services].into_iter().flatten().flat_map(|c| c.value.iter());
    let view = spec.flux.as_ref().and_then(|f| f.container.as_ref()).and_then(|c| text(&c.image_pull_secret));
    let mut names: Vec<&str> = Vec::new();
    for name in containers.filter_map(|c| text(&c.image_pull_secret)).chain(view) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let references = names.into_iter().map(|name| core::LocalObjectReference { name: name.to_owned() });
    Some(references.collect::<Vec<_>>()).filter(|list| !list.is_empty())
}
