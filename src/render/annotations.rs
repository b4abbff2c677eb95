//! What Argo CD, Flux CD and the queue are told, by annotations (their keys and values: G §B.2, §B.3, §E).

use std::collections::BTreeMap;

use crate::model::Cluster;
use crate::model::rollout::{JobStrategy, Rollout};

type Annotations = BTreeMap<String, String>;

/// Argo CD's options of one object, comma separated.
const ARGO_OPTIONS: &str = "argocd.argoproj.io/sync-options";
const ARGO_COMPARE: &str = "argocd.argoproj.io/compare-options";
const ARGO_IGNORE_HEALTH: &str = "argocd.argoproj.io/ignore-healthcheck";
pub(super) const ARGO_HOOK: &str = "argocd.argoproj.io/hook";
const ARGO_HOOK_DELETE: &str = "argocd.argoproj.io/hook-delete-policy";
/// On a ConfigMap of a hook: the digest of its Job.
pub(super) const HOOK_DIGEST: &str = "flux-gen.dev/hook-digest";
const FLUX_FORCE: &str = "kustomize.toolkit.fluxcd.io/force";
const FLUX_PRUNE: &str = "kustomize.toolkit.fluxcd.io/prune";
const FLUX_APPLY: &str = "kustomize.toolkit.fluxcd.io/ssa";
const FLUX_SUBSTITUTE: &str = super::GUARD;

/// `kubectl apply --force`: delete and create when the API server refuses a change. kubectl does not do that with
/// server-side apply, so the object opts out of it. `Replace=true` beside it would make the object anew at every sync.
const FORCE: &str = "Force=true,ServerSideApply=false";

fn pairs<const N: usize>(list: [(&str, &str); N]) -> impl Iterator<Item = (String, String)> {
    list.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned()))
}

/// Flux CD would replace `${…}` in scripts and commands by its own variables (G §B.3).
pub(super) fn guard() -> Annotations {
    pairs([(FLUX_SUBSTITUTE, "disabled")]).collect()
}

/// Of every object: an earlier run that is to stay needs all that it was made of.
pub(super) fn of_object(cluster: &Cluster) -> Annotations {
    let Rollout { strategy, gitops, keep_old, .. } = cluster.rollout;
    let mut annotations = Annotations::new();
    if strategy != JobStrategy::RunOnce || !keep_old {
        return annotations;
    }
    if gitops.argo_cd() {
        // Without the second one Argo CD would show the application as out of sync as long as the old run is there.
        annotations.extend(pairs([(ARGO_OPTIONS, "Prune=false"), (ARGO_COMPARE, "IgnoreExtraneous")]));
    }
    if gitops.flux_cd() {
        annotations.extend(pairs([(FLUX_PRUNE, "disabled")]));
    }
    annotations
}

/// Of the Job.
pub(super) fn of_job(cluster: &Cluster) -> Annotations {
    let Rollout { strategy, gitops, unending, .. } = cluster.rollout;
    let mut annotations = Annotations::new();
    if gitops.argo_cd() {
        match strategy {
            JobStrategy::Hook => {
                annotations.extend(pairs([(ARGO_HOOK, "Sync"), (ARGO_HOOK_DELETE, "BeforeHookCreation")]));
            }
            JobStrategy::Recreate => annotations.extend(pairs([(ARGO_OPTIONS, FORCE)])),
            JobStrategy::Stable | JobStrategy::RunOnce | JobStrategy::Service => {}
        }
        // Argo CD would show a Job that never ends as progressing for ever. `stable`, where it is chosen, is left alone.
        let nobody_waits = unending && matches!(strategy, JobStrategy::Recreate | JobStrategy::RunOnce);
        if nobody_waits || strategy == JobStrategy::Service {
            annotations.extend(pairs([(ARGO_IGNORE_HEALTH, "true")]));
        }
    }
    annotations.extend(of_flux_cd(cluster));
    annotations.extend(cluster.job.queueing.annotations.clone());
    annotations
}

/// Of the services Pod: as the Job, but never a hook, because it serves until it is deleted and a sync would wait for it.
/// For the same reason Argo CD, which counts on a Pod that is not always restarted to end, is not to wait for its health.
pub(super) fn of_services_pod(cluster: &Cluster) -> Annotations {
    let Rollout { strategy, gitops, .. } = cluster.rollout;
    let mut annotations = Annotations::new();
    if gitops.argo_cd() {
        annotations.extend(pairs([(ARGO_IGNORE_HEALTH, "true")]));
        if matches!(strategy, JobStrategy::Recreate | JobStrategy::Hook) {
            annotations.extend(pairs([(ARGO_OPTIONS, FORCE)]));
        }
    }
    annotations.extend(of_flux_cd(cluster));
    annotations
}

/// Flux CD has no hooks: there a hook is made anew when it changes. A run that is there already is not touched again, but
/// for an elastic one, which could not be resized otherwise.
fn of_flux_cd(cluster: &Cluster) -> Annotations {
    let Rollout { strategy, gitops, .. } = cluster.rollout;
    if !gitops.flux_cd() {
        return Annotations::new();
    }
    match strategy {
        JobStrategy::Recreate | JobStrategy::Hook => pairs([(FLUX_FORCE, "enabled")]).collect(),
        JobStrategy::RunOnce if !cluster.size.elastic => pairs([(FLUX_APPLY, "IfNotPresent")]).collect(),
        JobStrategy::Stable | JobStrategy::RunOnce | JobStrategy::Service => Annotations::new(),
    }
}
