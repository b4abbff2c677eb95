//! Content that names promise: hashes, flags and guards.

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;

use super::cause::Cause;
use super::cluster::{Cluster, Located};
use super::world::{Role, World, role};
use super::{Findings, Item};
use crate::diag::codes::audit as codes;
use crate::object::hash::config_map_hash;
use crate::render::GUARD;

/// Length of kustomize's suffix.
const HASH: usize = 10;

pub(super) fn check(cluster: &Cluster<'_>, world: &World<'_>, findings: &mut Findings) {
    for item in hashed_maps(cluster, world) {
        hashed(cluster, item, findings);
        guard(item, findings);
    }
    guard(cluster.job, findings);
    for listed in cluster.listed.iter().filter(|listed| listed.kind == "pod") {
        if let Located::Here(item) = cluster.locate(listed, world) {
            guard(item, findings);
        }
    }
    if cluster.listed.is_empty() {
        let what = "the record of the bundle's objects is gone: what was dropped cannot be told";
        findings.warning(codes::NO_MARK, cluster.job, "/metadata/annotations", what, &Cause::Annotations);
    }
}

/// The ConfigMaps whose names end with a hash. One that lost some of its files is only known by its name.
fn hashed_maps<'a>(cluster: &Cluster<'a>, world: &World<'a>) -> Vec<Item<'a>> {
    let mut maps: Vec<Item<'a>> = [cluster.scripts, cluster.flux].into_iter().flatten().collect();
    let has_hash = |name: &str| name.rsplit_once('-').is_some_and(|(_, end)| end.len() == HASH);
    for listed in cluster.listed.iter().filter(|listed| listed.kind == "configmap" && has_hash(&listed.name)) {
        if let Located::Here(item) = cluster.locate(listed, world)
            && !maps.iter().any(|map| map.is(item))
        {
            maps.push(item);
        }
    }
    maps
}

/// A ConfigMap whose name ends with the hash of its content.
fn hashed(cluster: &Cluster<'_>, item: Item<'_>, findings: &mut Findings) {
    if item.at("/immutable") != Some(&Value::Bool(true)) {
        let what = "it can be changed below running pods";
        findings.error(codes::NOT_IMMUTABLE, item, "/immutable", what, &Cause::Patch);
    }
    let Ok(map) = serde_json::from_value::<ConfigMap>(item.value().clone()) else {
        let what = "it cannot be read as a ConfigMap";
        return findings.error(codes::CONTENT_CHANGED, item, "/data", what, &Cause::Patch);
    };
    let hash = config_map_hash(&map);
    // As built: renaming moves the hash away from the end.
    let names = cluster.listed.iter().filter(|listed| listed.kind == "configmap").map(|listed| listed.name.as_str());
    let built = names.filter(|name| item.name.contains(name)).max_by_key(|name| name.len()).unwrap_or(item.name);
    let written = built.len().checked_sub(HASH).and_then(|at| built.get(at..)).unwrap_or_default();
    if written == hash || (built == item.name && cluster.listed.is_empty() && item.name.contains(&hash)) {
        return;
    }
    let substituted = !is_guarded(item) && role(item) == Some(Role::Scripts);
    let cause = if substituted { Cause::Substitution } else { Cause::Patch };
    let what = format!(
        "the content has the hash {hash} and the name says {written}: pods run another text than was built, and an API server refuses it where the old one exists"
    );
    findings.error(codes::CONTENT_CHANGED, item, "/data", &what, &cause);
}

fn is_guarded(item: Item<'_>) -> bool {
    // kustomize-controller compares letter by letter, and takes a label as well.
    let disabled = |value: &str| value == "disabled";
    let label = item.at("/metadata/labels").and_then(|labels| labels.get(GUARD)?.as_str());
    item.annotation(GUARD).is_some_and(disabled) || label.is_some_and(disabled)
}

fn guard(item: Item<'_>, findings: &mut Findings) {
    if is_guarded(item) {
        return;
    }
    let part = if item.kind == "ConfigMap" { "/data" } else { "/spec" };
    if item.at(part).is_some_and(has_variables) {
        let what = "the text holds `${`, and nothing keeps Flux CD from replacing it";
        findings.error(codes::UNGUARDED, item, "/metadata/annotations", what, &Cause::Annotations);
    } else {
        let what = "nothing keeps Flux CD from substituting in this object; its text holds no `${` now";
        findings.warning(codes::UNGUARDED, item, "/metadata/annotations", what, &Cause::Annotations);
    }
}

fn has_variables(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("${"),
        Value::Array(items) => items.iter().any(has_variables),
        Value::Object(map) => map.values().any(has_variables),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
