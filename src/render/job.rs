//! The Indexed Job.

use k8s_openapi::api::batch::v1::{
    Job, JobSpec, PodFailurePolicy, PodFailurePolicyOnPodConditionsPattern, PodFailurePolicyRule, SuccessPolicy,
    SuccessPolicyRule,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{annotations, guarded, pod};
use crate::model::{Cluster, JobEnd};

/// Label by which all runs of a cluster are found (a recommended label of Kubernetes).
pub(super) const PART_OF: &str = "app.kubernetes.io/part-of";

/// The Job of a cluster. `suspend`, `managedBy`, `selector` and a TTL are left to those who own them (G §0.5, §0.7).
pub(super) fn job(cluster: &Cluster) -> Job {
    let count = i32::try_from(cluster.size.pods).unwrap_or(i32::MAX);
    let job = &cluster.job;
    let mut labels = job.labels.clone();
    labels.extend(job.queueing.labels.clone());
    if cluster.run.is_some() {
        labels.entry(PART_OF.to_owned()).or_insert_with(|| cluster.minicluster.clone());
    }
    let labels = (!labels.is_empty()).then_some(labels);
    let mut metadata = ObjectMeta { labels, ..guarded(cluster, &cluster.name) };
    metadata.annotations.get_or_insert_default().extend(annotations::of_job(cluster));
    Job {
        metadata,
        spec: Some(JobSpec {
            active_deadline_seconds: Some(job.deadline_seconds),
            backoff_limit: Some(job.backoff_limit),
            completion_mode: Some("Indexed".to_owned()),
            completions: Some(count),
            parallelism: Some(count),
            pod_failure_policy: job.ignore_disruptions.then(ignore_disruptions),
            pod_replacement_policy: job.replace_only_failed.then(|| "Failed".to_owned()),
            success_policy: (job.end == JobEnd::LeaderSucceeds).then(leader_succeeds),
            template: pod::template(cluster),
            ..JobSpec::default()
        }),
        status: None,
    }
}

fn leader_succeeds() -> SuccessPolicy {
    let rule = SuccessPolicyRule { succeeded_indexes: Some("0".to_owned()), succeeded_count: None };
    SuccessPolicy { rules: vec![rule] }
}

/// An eviction is not the program's failure.
fn ignore_disruptions() -> PodFailurePolicy {
    let condition = PodFailurePolicyOnPodConditionsPattern {
        status: Some("True".to_owned()),
        type_: "DisruptionTarget".to_owned(),
    };
    let rule = PodFailurePolicyRule {
        action: "Ignore".to_owned(),
        on_pod_conditions: Some(vec![condition]),
        ..PodFailurePolicyRule::default()
    };
    PodFailurePolicy { rules: vec![rule] }
}
