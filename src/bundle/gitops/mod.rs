//! What Argo CD and Flux CD need to find the bundles: an Application, or a source and a Kustomization, for each namespace.
//!
//! Pure: facts about the output go in, typed objects come out. Fields and their meaning: the types `Application` of Argo CD 3,
//! `GitRepository`, `OCIRepository` and `Kustomization` (all `v1`) of Flux CD 2.

mod argocd;
mod facts;
mod fluxcd;
pub mod source;

use std::collections::BTreeMap;

use serde::Serialize;

use super::yaml::{self, YamlError};
pub use argocd::ArgoCd;
pub use facts::{JobFacts, NamespaceFacts, facts};
pub use fluxcd::FluxCd;
pub use source::{Revision, Source, has_password};

/// Who may change the number of pods of an elastic cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Resize {
    /// A commit: the tool brings every other number back.
    #[default]
    Git,
    /// Something in the cluster: the tool overlooks the numbers, also those of a commit.
    Cluster,
}

/// A tool with its options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tool {
    /// Argo CD.
    ArgoCd(ArgoCd),
    /// Flux CD.
    FluxCd(FluxCd),
}

/// The objects as one text of YAML documents. `origin` is the folder that they are about, for the first line.
///
/// # Errors
/// Never for the types of this module; the writer's signature asks for it.
pub fn documents(
    tool: &Tool,
    source: &Source,
    resize: Resize,
    namespaces: &[NamespaceFacts],
    origin: &str,
) -> Result<String, YamlError> {
    let mut out = yaml::header(origin);
    match tool {
        Tool::ArgoCd(options) => {
            let applications = namespaces.iter().map(|facts| options.application(source, resize, facts));
            append(&mut out, applications)?;
        }
        Tool::FluxCd(options) => {
            append(&mut out, std::iter::once(options.source(source)))?;
            let first = namespaces.iter().any(|facts| facts.cluster_wide);
            append(&mut out, namespaces.iter().map(|facts| options.kustomization(source, resize, facts, first)))?;
        }
    }
    Ok(out)
}

fn append<T: Serialize>(out: &mut String, objects: impl Iterator<Item = T>) -> Result<(), YamlError> {
    for object in objects {
        out.push_str("---\n");
        out.push_str(&yaml::to_yaml(&object)?);
    }
    Ok(())
}

/// One object.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Object<S> {
    api_version: &'static str,
    kind: &'static str,
    metadata: Metadata,
    spec: S,
}

#[derive(Debug, Clone, Serialize)]
struct Metadata {
    name: String,
    namespace: String,
    labels: BTreeMap<&'static str, &'static str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    annotations: BTreeMap<&'static str, &'static str>,
}

impl Metadata {
    fn new(name: &str, namespace: &str) -> Self {
        let labels = [("app.kubernetes.io/managed-by", "flux-gen")].into();
        Self { name: name.to_owned(), namespace: namespace.to_owned(), labels, annotations: BTreeMap::new() }
    }
}

/// What both tools have to overlook in a Job: JSON pointers (RFC 6901).
const SIZES: [&str; 2] = ["/spec/completions", "/spec/parallelism"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::rollout::{GitOps, JobStrategy, Rollout};

    fn job(name: &str, change: impl Fn(&mut JobFacts)) -> JobFacts {
        let rollout = Rollout { strategy: JobStrategy::Stable, gitops: GitOps::Both, keep_old: false, unending: false };
        let mut made = JobFacts {
            namespace: Some("hpc".to_owned()),
            cluster: name.to_owned(),
            job: name.to_owned(),
            elastic: false,
            queued: false,
            queue_resizes: false,
            rollout,
            span: None,
        };
        change(&mut made);
        made
    }

    fn hpc(jobs: Vec<JobFacts>) -> NamespaceFacts {
        NamespaceFacts { folder: "hpc".to_owned(), cluster_wide: false, sops: Vec::new(), jobs }
    }

    fn git() -> Source {
        Source {
            url: "git@git.example.com:me/clusters.git".to_owned(),
            revision: Revision::Branch("main".to_owned()),
            path: "generated".to_owned(),
        }
    }

    fn oci() -> Source {
        Source {
            url: "oci://registry.example/clusters".to_owned(),
            revision: Revision::Digest(format!("sha256:{}", "0".repeat(64))),
            path: ".".to_owned(),
        }
    }

    fn argo(source: &Source, resize: Resize, facts: NamespaceFacts) -> String {
        documents(&Tool::ArgoCd(ArgoCd::default()), source, resize, &[facts], "generated").unwrap()
    }

    fn flux(source: &Source, resize: Resize, wait: Option<&str>, facts: &[NamespaceFacts]) -> String {
        let options = FluxCd { wait: wait.map(str::to_owned), ..FluxCd::default() };
        documents(&Tool::FluxCd(options), source, resize, facts, "generated").unwrap()
    }

    #[test]
    fn an_application() {
        let text = argo(&git(), Resize::Git, hpc(vec![job("a", |_| {}), job("b", |j| j.elastic = true)]));
        let expect = "\
# Generated by flux-gen from generated; do not edit.
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata:
  name: hpc
  namespace: argocd
  labels:
    app.kubernetes.io/managed-by: flux-gen
spec:
  project: default
  source:
    repoURL: git@git.example.com:me/clusters.git
    targetRevision: main
    path: generated/hpc
  destination:
    server: https://kubernetes.default.svc
    namespace: hpc
  syncPolicy:
    automated:
      prune: true
    syncOptions:
    - ApplyOutOfSyncOnly=true
    - ServerSideApply=true
";
        assert_eq!(text, expect);
    }

    #[test]
    fn argo_cd_overlooks_what_others_set() {
        let jobs = vec![
            job("fixed", |_| {}),
            job("grow", |j| j.elastic = true),
            job("queued", |j| j.queued = true),
            job("run", |j| (j.queued, j.rollout.strategy) = (true, JobStrategy::RunOnce)),
        ];
        let text = argo(&oci(), Resize::Cluster, hpc(jobs));
        assert!(text.contains("path: hpc\n") && text.contains("targetRevision: sha256:000"), "{text}");
        assert!(text.contains("    - RespectIgnoreDifferences=true\n"), "{text}");
        let expect = "  ignoreDifferences:
  - group: batch
    kind: Job
    jsonPointers:
    - /spec/suspend
    - /spec/template/spec/nodeSelector
    - /spec/template/spec/tolerations
  - group: batch
    kind: Job
    name: grow
    jsonPointers:
    - /spec/completions
    - /spec/parallelism
  - group: batch
    kind: Job
    name: queued
";
        assert!(text.contains(expect), "{text}");
        assert!(!text.contains("name: fixed"), "{text}");
    }

    #[test]
    fn a_source_and_kustomizations() {
        let mut secret = hpc(vec![job("a", |_| {})]);
        secret.sops.push("hpc/a/secret.yaml".to_owned());
        let cluster = NamespaceFacts { folder: "cluster".to_owned(), cluster_wide: true, ..NamespaceFacts::default() };
        let text = flux(&git(), Resize::Git, None, &[cluster, secret]);
        let expect = "\
# Generated by flux-gen from generated; do not edit.
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata:
  name: clusters
  namespace: flux-system
  labels:
    app.kubernetes.io/managed-by: flux-gen
spec:
  interval: 5m
  url: ssh://git@git.example.com/me/clusters.git
  ref:
    branch: main
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: cluster
  namespace: flux-system
  labels:
    app.kubernetes.io/managed-by: flux-gen
spec:
  interval: 10m
  sourceRef:
    kind: GitRepository
    name: clusters
  path: ./generated/cluster
  prune: true
  wait: false
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: hpc
  namespace: flux-system
  labels:
    app.kubernetes.io/managed-by: flux-gen
spec:
  interval: 10m
  dependsOn:
  - name: cluster
  sourceRef:
    kind: GitRepository
    name: clusters
  path: ./generated/hpc
  prune: true
  wait: false
  decryption:
    provider: sops
    secretRef:
      name: sops-age
";
        assert_eq!(text, expect);
    }

    #[test]
    fn flux_cd_waits_for_what_ends() {
        let ends = flux(&oci(), Resize::Git, Some("2h"), &[hpc(vec![job("a", |_| {})])]);
        assert!(ends.contains("  wait: true\n  timeout: 2h\n"), "{ends}");
        assert!(ends.contains("kind: OCIRepository") && ends.contains("  path: ./hpc\n"), "{ends}");
        assert!(ends.contains("  ref:\n    digest: sha256:000"), "{ends}");
        let service = job("s", |j| j.rollout.unending = true);
        let run = job("r", |j| j.rollout.strategy = JobStrategy::RunOnce);
        let mixed = flux(&oci(), Resize::Git, Some("2h"), &[hpc(vec![job("a", |_| {}), service, run])]);
        assert!(mixed.contains("  wait: false\n  timeout: 2h\n"), "{mixed}");
        assert!(mixed.contains("  healthChecks:\n  - apiVersion: batch/v1\n    kind: Job\n    name: a\n"), "{mixed}");
        assert!(!mixed.contains("name: s\n") && !mixed.contains("name: r\n"), "{mixed}");
    }

    #[test]
    fn flux_cd_overlooks_sizes_only_when_asked() {
        let elastic = || hpc(vec![job("grow", |j| j.elastic = true)]);
        assert!(!flux(&git(), Resize::Git, None, &[elastic()]).contains("ignore"));
        let text = flux(&git(), Resize::Cluster, None, &[elastic()]);
        let expect = "  ignore:\n  - paths:\n    - /spec/completions\n    - /spec/parallelism\n    target:\n      kind: Job\n      name: grow\n";
        assert!(text.contains(expect), "{text}");
    }

    #[test]
    fn objects_without_a_namespace_get_that_of_their_folder() {
        let unnamed = NamespaceFacts { folder: "default".to_owned(), ..NamespaceFacts::default() };
        assert!(flux(&git(), Resize::Git, None, &[unnamed]).contains("  targetNamespace: default\n"));
    }
}
