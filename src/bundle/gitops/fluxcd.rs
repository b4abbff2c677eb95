//! Flux CD: one source, and a Kustomization for each namespace.

use serde::Serialize;

use super::{JobFacts, Metadata, NamespaceFacts, Object, Resize, Revision, SIZES, Source};
use crate::bundle::names::{CLUSTER_FOLDER, DEFAULT_FOLDER};
use crate::model::rollout::JobStrategy;

/// Where the objects are and what they name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FluxCd {
    /// Namespace of the objects.
    pub namespace: String,
    /// How often the cluster is compared with the source, in Go's form: `10m`.
    pub interval: String,
    /// Wait for Jobs, at most so long. `None`: a Kustomization is ready when its objects are applied.
    pub wait: Option<String>,
    /// Secret with the keys that decrypt SOPS files.
    pub decryption_secret: String,
    /// Secret with which the source is fetched.
    pub pull_secret: Option<String>,
    /// The registry speaks HTTP without TLS.
    pub insecure: bool,
}

impl Default for FluxCd {
    fn default() -> Self {
        Self {
            namespace: "flux-system".to_owned(),
            interval: "10m".to_owned(),
            wait: None,
            decryption_secret: "sops-age".to_owned(),
            pull_secret: None,
            insecure: false,
        }
    }
}

/// How often the source is asked for something new.
const SOURCE_INTERVAL: &str = "5m";

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SourceSpec {
    interval: &'static str,
    url: String,
    #[serde(rename = "ref")]
    reference: RefSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_ref: Option<Named>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    insecure: bool,
}

#[derive(Debug, Clone, Default, Serialize)]
struct RefSpec {
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
struct Named {
    name: String,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct KustomizationSpec {
    interval: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    depends_on: Vec<Named>,
    source_ref: Kinded,
    path: String,
    prune: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_namespace: Option<String>,
    wait: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    health_checks: Vec<HealthCheck>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decryption: Option<Decryption>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ignore: Vec<Ignore>,
}

#[derive(Debug, Clone, Serialize)]
struct Kinded {
    kind: &'static str,
    name: String,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct HealthCheck {
    api_version: &'static str,
    kind: &'static str,
    name: String,
    namespace: String,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Decryption {
    provider: &'static str,
    secret_ref: Named,
}

#[derive(Debug, Clone, Serialize)]
struct Ignore {
    paths: Vec<&'static str>,
    target: Target,
}

#[derive(Debug, Clone, Serialize)]
struct Target {
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

fn kind(source: &Source) -> &'static str {
    if Source::is_artifact(&source.url) { "OCIRepository" } else { "GitRepository" }
}

impl FluxCd {
    pub(super) fn source(&self, source: &Source) -> Object<SourceSpec> {
        let text = |revision: &str| Some(revision.to_owned());
        let reference = match &source.revision {
            Revision::Branch(name) => RefSpec { branch: text(name), ..RefSpec::default() },
            Revision::Tag(name) => RefSpec { tag: text(name), ..RefSpec::default() },
            Revision::Commit(name) => RefSpec { commit: text(name), ..RefSpec::default() },
            Revision::Digest(name) => RefSpec { digest: text(name), ..RefSpec::default() },
        };
        let spec = SourceSpec {
            interval: SOURCE_INTERVAL,
            url: source.flux_url(),
            reference,
            secret_ref: self.pull_secret.clone().map(|name| Named { name }),
            // A field of OCIRepository only; git says it in the address.
            insecure: self.insecure && Source::is_artifact(&source.url),
        };
        let metadata = Metadata::new(&source.name(), &self.namespace);
        Object { api_version: "source.toolkit.fluxcd.io/v1", kind: kind(source), metadata, spec }
    }

    /// `after_cluster`: there is a Kustomization of the objects without a namespace, which the others may need.
    pub(super) fn kustomization(
        &self,
        source: &Source,
        resize: Resize,
        facts: &NamespaceFacts,
        after_cluster: bool,
    ) -> Object<KustomizationSpec> {
        let needs_cluster = after_cluster && !facts.cluster_wide;
        let depends_on = needs_cluster.then(|| Named { name: CLUSTER_FOLDER.to_owned() }).into_iter().collect();
        let (wait, health_checks) = self.health(facts);
        let sops = (!facts.sops.is_empty()).then(|| Named { name: self.decryption_secret.clone() });
        let spec = KustomizationSpec {
            interval: self.interval.clone(),
            depends_on,
            source_ref: Kinded { kind: kind(source), name: source.name() },
            path: format!("./{}", source.folder(&facts.folder)),
            prune: true,
            // Objects without a namespace are in this folder, beside those that have this very one.
            target_namespace: (facts.folder == DEFAULT_FOLDER && !facts.cluster_wide).then(|| facts.folder.clone()),
            wait,
            timeout: self.wait.clone(),
            health_checks,
            decryption: sops.map(|secret_ref| Decryption { provider: "sops", secret_ref }),
            ignore: facts.jobs.iter().filter_map(|job| ignored(job, resize)).collect(),
        };
        let metadata = Metadata::new(&facts.folder, &self.namespace);
        Object { api_version: "kustomize.toolkit.fluxcd.io/v1", kind: "Kustomization", metadata, spec }
    }

    /// Whether to wait for everything, or else for what. A Job that never ends is never ready, and the name of a run is not
    /// known before it is built.
    fn health(&self, facts: &NamespaceFacts) -> (bool, Vec<HealthCheck>) {
        if self.wait.is_none() || !facts.jobs.iter().any(|job| job.rollout.unending) {
            return (self.wait.is_some(), Vec::new());
        }
        let ends = |job: &&JobFacts| !job.rollout.unending && job.rollout.strategy != JobStrategy::RunOnce;
        let check = |job: &JobFacts| HealthCheck {
            api_version: "batch/v1",
            kind: "Job",
            name: job.job.clone(),
            namespace: facts.folder.clone(),
        };
        (false, facts.jobs.iter().filter(ends).map(check).collect())
    }
}

/// flux-gen never writes `suspend`, so Flux CD does not touch what Kueue sets there.
fn ignored(job: &JobFacts, resize: Resize) -> Option<Ignore> {
    let resized = job.queue_resizes || (job.elastic && resize == Resize::Cluster);
    let name = (job.rollout.strategy != JobStrategy::RunOnce).then(|| job.job.clone());
    resized.then_some(Ignore { paths: SIZES.to_vec(), target: Target { kind: "Job", name } })
}
