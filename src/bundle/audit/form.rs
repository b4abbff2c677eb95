//! What the API server of the target version refuses.

use serde_json::Value;

use super::cause::Cause;
use super::cluster::{Cluster, Located};
use super::item::pointer;
use super::world::World;
use super::{Findings, Item};
use crate::diag::codes::audit as codes;
use crate::model::kubernetes::KubernetesVersion;
use crate::object::Object;
use crate::render::KUBERNETES_VERSION;
use crate::rules::object;

pub(super) fn check(
    cluster: &Cluster<'_>,
    world: &World<'_>,
    target: Option<KubernetesVersion>,
    findings: &mut Findings,
) {
    let built_for = cluster.job.annotation(KUBERNETES_VERSION).and_then(|text| text.parse().ok());
    // Without either nothing is known of the target, and the newest version has every field.
    let target = target.or(built_for).unwrap_or(KubernetesVersion::NEWEST);
    one(cluster.job, target, findings);
    for listed in cluster.listed.iter().filter(|listed| !matches!(listed.kind.as_str(), "job" | "secret")) {
        if let Located::Here(item) = cluster.locate(listed, world) {
            one(item, target, findings);
        }
    }
}

fn one(item: Item<'_>, target: KubernetesVersion, findings: &mut Findings) {
    let object = match typed(item) {
        Ok(Some(object)) => object,
        Ok(None) => return,
        Err(error) => {
            let what = format!("it is no {} any more: {error}", item.kind);
            return findings.error(codes::REFUSED, item, "/spec", &what, &Cause::Patch);
        }
    };
    for problem in object::check(std::slice::from_ref(&object), target) {
        findings.error(codes::REFUSED, item, &pointer(&problem.path), &problem.message, &Cause::Patch);
    }
}

/// The object as its kind, without what API servers add to objects that live in a cluster.
fn typed(item: Item<'_>) -> Result<Option<Object>, serde_json::Error> {
    let mut value = item.value().clone();
    if item.at("/metadata/uid").is_some() {
        take(&mut value, "", &["status"]);
        match item.kind {
            "Job" => take(&mut value, "/spec", &["selector"]),
            "Service" => take(&mut value, "/spec", &["clusterIPs"]),
            _ => {}
        }
    }
    Ok(Some(match item.kind {
        "Job" => Object::Job(serde_json::from_value(value)?),
        "Service" => Object::Service(serde_json::from_value(value)?),
        "NetworkPolicy" => Object::NetworkPolicy(serde_json::from_value(value)?),
        "ConfigMap" => Object::ConfigMap(serde_json::from_value(value)?),
        "Pod" => Object::Pod(serde_json::from_value(value)?),
        _ => return Ok(None),
    }))
}

fn take(value: &mut Value, pointer: &str, keys: &[&str]) {
    if let Some(map) = value.pointer_mut(pointer).and_then(Value::as_object_mut) {
        for key in keys {
            map.remove(*key);
        }
    }
}
