//! Which objects there are: none missing, none twice, all in one namespace, none left over.

use std::collections::{BTreeMap, BTreeSet};

use super::cause::Cause;
use super::cluster::{Cluster, Located, line_value};
use super::world::{Role, World, role};
use super::{Findings, Item};
use crate::diag::codes::audit as codes;
use crate::render::OBJECTS;

/// Pointer of the record.
fn record() -> String {
    format!("/metadata/annotations/{}", super::item::escaped(OBJECTS))
}

/// The objects that the Job lists. Its Secret may be made by somebody else and has a check of its own.
pub(super) fn cluster(cluster: &Cluster<'_>, world: &World<'_>, findings: &mut Findings) {
    let job = cluster.job;
    for listed in cluster.listed.iter().filter(|listed| !matches!(listed.kind.as_str(), "job" | "secret")) {
        match cluster.locate(listed, world) {
            Located::Here(item) => twice(item, world, findings),
            Located::Elsewhere(item) => {
                let what = format!(
                    "the object is in the namespace `{}` and the Job in `{}`: pods cannot use it",
                    item.namespace, job.namespace
                );
                findings.error(codes::NAMESPACES, item, "/metadata/namespace", &what, &Cause::Namespace);
            }
            Located::Missing => {
                let effect = match listed.kind.as_str() {
                    "configmap" => "pods wait in ContainerCreating",
                    "service" => "names do not resolve",
                    "networkpolicy" => "everybody reaches the pods",
                    _ => "the cluster does without it",
                };
                let what = format!("{} `{}` of the bundle is missing: {effect}", listed.kind, listed.name);
                findings.error(codes::DROPPED, job, &record(), &what, &Cause::Dropped);
            }
        }
    }
    if cluster.listed.is_empty() {
        for (item, what) in [(cluster.scripts, "scripts"), (cluster.flux, "broker configuration")] {
            if item.is_none() {
                let what = format!("the ConfigMap with the {what} is missing: pods wait in ContainerCreating");
                findings.error(codes::DROPPED, job, "/spec/template/spec/volumes", &what, &Cause::Dropped);
            }
        }
    }
    twice(job, world, findings);
}

fn twice(item: Item<'_>, world: &World<'_>, findings: &mut Findings) {
    let same = world.named(&item.kind.to_lowercase(), item.name).filter(|other| other.namespace == item.namespace);
    for other in same.filter(|other| !other.is(item)) {
        let what = "the object is described twice; which one wins depends on the tool";
        findings.error(codes::TWICE, other, "/metadata/name", what, &Cause::Twice);
    }
}

/// ConfigMaps of ours that belong to no Job.
pub(super) fn left_over(clusters: &[Cluster<'_>], world: &World<'_>, findings: &mut Findings) {
    let claimed: Vec<Item<'_>> = clusters.iter().flat_map(|c| [c.scripts, c.flux, c.size]).flatten().collect();
    let bases: BTreeSet<(&str, &str)> = clusters.iter().map(|c| (c.job.namespace, c.base.as_str())).collect();
    let bases_anywhere: BTreeSet<&str> = clusters.iter().map(|c| c.base.as_str()).collect();
    let mut told: BTreeMap<(&str, &str), ()> = BTreeMap::new();
    for role_wanted in [Role::Scripts, Role::Flux] {
        for item in world.items().filter(|item| role(*item) == Some(role_wanted)) {
            let base = base_of(item);
            // An old one beside a Job that has a newer one is no fault: hash-named ConfigMaps are pruned late. One in another
            // namespace than its Job, or of a Job that lists another, is told there.
            let told_elsewhere = bases.contains(&(item.namespace, base)) || bases_anywhere.contains(base);
            if claimed.iter().any(|c| c.is(item)) || told_elsewhere {
                continue;
            }
            if told.insert((item.namespace, base), ()).is_none() {
                let what = format!("there is no Job `{base}` that uses it: the cluster never starts");
                findings.error(codes::NO_JOB, item, "/metadata/name", &what, &Cause::Dropped);
            }
        }
    }
}

/// Name of the cluster: from the scripts, else from the name.
fn base_of<'a>(item: Item<'a>) -> &'a str {
    let main = item.file("common.sh").and_then(|text| line_value(text, "mainHost="));
    let named = || {
        let end = item.name.rfind("-scripts-").or_else(|| item.name.rfind("-flux-"));
        end.map_or(item.name, |end| &item.name[..end])
    };
    main.and_then(|main| main.strip_suffix("-0")).unwrap_or_else(named)
}
