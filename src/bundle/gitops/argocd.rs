//! Argo CD: an Application for each namespace.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{JobFacts, Metadata, NamespaceFacts, Object, Resize, SIZES, Source};
use crate::model::rollout::JobStrategy;

/// Where Applications are and what they name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgoCd {
    /// Namespace of the Applications.
    pub namespace: String,
    /// Their AppProject.
    pub project: String,
    /// API server of the cluster that the bundles go to.
    pub server: String,
}

impl Default for ArgoCd {
    fn default() -> Self {
        Self {
            namespace: "argocd".to_owned(),
            project: "default".to_owned(),
            server: "https://kubernetes.default.svc".to_owned(),
        }
    }
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApplicationSpec {
    project: String,
    source: ApplicationSource,
    destination: Destination,
    sync_policy: SyncPolicy,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    ignore_differences: BTreeSet<IgnoreDifferences>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct ApplicationSource {
    #[serde(rename = "repoURL")]
    repo_url: String,
    target_revision: String,
    path: String,
}

#[derive(Debug, Clone, Serialize)]
struct Destination {
    server: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct SyncPolicy {
    automated: Automated,
    sync_options: BTreeSet<&'static str>,
}

#[derive(Debug, Clone, Serialize)]
struct Automated {
    prune: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
struct IgnoreDifferences {
    group: &'static str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    json_pointers: BTreeSet<&'static str>,
}

impl ArgoCd {
    pub(super) fn application(
        &self,
        source: &Source,
        resize: Resize,
        facts: &NamespaceFacts,
    ) -> Object<ApplicationSpec> {
        let ignore_differences: BTreeSet<_> = facts.jobs.iter().filter_map(|job| overlooked(job, resize)).collect();
        // `ApplyOutOfSyncOnly`: what has not changed is left alone, which matters for Jobs that are made anew by force.
        let mut sync_options = BTreeSet::from(["ServerSideApply=true", "ApplyOutOfSyncOnly=true"]);
        if !ignore_differences.is_empty() {
            sync_options.insert("RespectIgnoreDifferences=true");
        }
        let mut metadata = Metadata::new(&facts.folder, &self.namespace);
        if facts.cluster_wide {
            // Namespaces and roles before what needs them, where an Application of Applications applies these.
            metadata.annotations.insert("argocd.argoproj.io/sync-wave", "-1");
        }
        let spec = ApplicationSpec {
            project: self.project.clone(),
            source: ApplicationSource {
                repo_url: source.url.clone(),
                target_revision: source.revision.text().to_owned(),
                path: source.folder(&facts.folder),
            },
            destination: Destination {
                server: self.server.clone(),
                namespace: (!facts.cluster_wide).then(|| facts.folder.clone()),
            },
            sync_policy: SyncPolicy { automated: Automated { prune: true }, sync_options },
            ignore_differences,
        };
        Object { api_version: "argoproj.io/v1alpha1", kind: "Application", metadata, spec }
    }
}

/// What Kueue sets on a Job that it admits. Both lists of the template are atomic for server-side apply, so that writing
/// ours again would be a change of the template, which is refused.
const QUEUE: [&str; 3] = ["/spec/suspend", "/spec/template/spec/nodeSelector", "/spec/template/spec/tolerations"];

fn overlooked(job: &JobFacts, resize: Resize) -> Option<IgnoreDifferences> {
    let mut json_pointers = BTreeSet::new();
    if job.queued {
        json_pointers.extend(QUEUE);
    }
    if job.queue_resizes || (job.elastic && resize == Resize::Cluster) {
        json_pointers.extend(SIZES);
    }
    // Every run has another name, and this file should not change with each of them.
    let name = (job.rollout.strategy != JobStrategy::RunOnce).then(|| job.job.clone());
    (!json_pointers.is_empty()).then_some(IgnoreDifferences { group: "batch", kind: "Job", name, json_pointers })
}
