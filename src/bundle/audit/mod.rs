//! What other tools made of bundles: objects that went through kustomize, Argo CD or Flux CD, checked again.
//!
//! Every Job says which objects belong to it ([`crate::render::OBJECTS`]); what brokers and scripts expect stands in the
//! ConfigMaps. Both are compared with the objects as they are now. Where the record is gone, objects are recognised by what
//! they hold. Pure: the objects come from [`crate::spec::read_objects`].

mod cause;
mod cluster;
mod content;
mod form;
mod item;
mod mounts;
mod names;
mod secret;
mod services;
mod set;
mod size;
mod world;

use crate::diag::codes::audit as codes;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::model::kubernetes::KubernetesVersion;
use crate::spec::Companion;
use cause::Cause;
use cluster::Cluster;
use item::Item;
use world::World;

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Audit {
    /// Number of clusters (Jobs made by flux-gen) among the objects.
    pub clusters: usize,
    /// Everything that an override broke. Notes tell of changes that are allowed.
    pub diagnostics: Diagnostics,
}

/// Checks every cluster among the objects. `target` is the Kubernetes version to check for; `None`: the one that each bundle
/// was built for.
#[must_use]
pub fn audit(objects: &[Companion], target: Option<KubernetesVersion>) -> Audit {
    let world = World::new(objects);
    let clusters: Vec<Cluster<'_>> = world.jobs().map(|job| Cluster::of(job, &world)).collect();
    let mut findings = Findings::default();
    for cluster in &clusters {
        set::cluster(cluster, &world, &mut findings);
        names::check(cluster, &world, &mut findings);
        services::check(cluster, &world, &mut findings);
        size::check(cluster, &mut findings);
        content::check(cluster, &world, &mut findings);
        mounts::check(cluster, &mut findings);
        secret::check(cluster, &world, &mut findings);
        form::check(cluster, &world, target, &mut findings);
    }
    set::left_over(&clusters, &world, &mut findings);
    if clusters.is_empty() && findings.0.is_empty() {
        findings.0.push(no_cluster(objects.len()));
    }
    Audit { clusters: clusters.len(), diagnostics: findings.0 }
}

fn no_cluster(objects: usize) -> Diagnostic {
    let message = match objects {
        0 => "there are no Kubernetes objects to audit".to_owned(),
        1 => "the one object is not of a cluster that flux-gen made".to_owned(),
        n => format!("none of the {n} objects is of a cluster that flux-gen made"),
    };
    Diagnostic::global_error(codes::NO_CLUSTER, message)
        .help("pipe in what will be applied: `kubectl kustomize FOLDER | flux-gen audit -`")
}

/// The list of findings, and how they are worded: object, path, what is wrong and what that does; then the override.
#[derive(Debug, Default)]
struct Findings(Diagnostics);

impl Findings {
    /// Something that keeps the cluster from working.
    fn error(&mut self, code: Code, item: Item<'_>, pointer: &str, what: &str, cause: &Cause) {
        self.0.push(Diagnostic::error(code, item.place(pointer), message(item, pointer, what)).help(cause.help()));
    }

    /// Something that will be in the way later, or only with some tools.
    fn warning(&mut self, code: Code, item: Item<'_>, pointer: &str, what: &str, cause: &Cause) {
        self.0.push(Diagnostic::warning(code, item.place(pointer), message(item, pointer, what)).help(cause.help()));
    }

    /// A change that is allowed.
    fn note(&mut self, code: Code, item: Item<'_>, pointer: &str, what: &str) {
        self.0.push(Diagnostic::note(code, item.place(pointer), message(item, pointer, what)));
    }
}

fn message(item: Item<'_>, pointer: &str, what: &str) -> String {
    format!("{}: {}: {what}", item.title(), item::path(pointer))
}
