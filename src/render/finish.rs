//! The last step: ConfigMaps that never change get their content's hash as suffix, and whoever mounts them the new name.
//! A hook's ConfigMap tells that the hook has changed.

use std::collections::BTreeMap;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, PodSpec};

use super::annotations::{ARGO_HOOK, HOOK_DIGEST};
use crate::object::Object;
use crate::object::carry::move_to_binary;
use crate::object::hash::{config_map_hash, name_suffix};

/// Adds kustomize's content hash to the names of immutable ConfigMaps and to every reference to them.
pub fn finish(objects: &mut [Object]) {
    let mut names = BTreeMap::new();
    for object in objects.iter_mut() {
        let Object::ConfigMap(map) = object else { continue };
        move_to_binary(map);
        if map.immutable == Some(true) {
            let old = map.metadata.name.clone().unwrap_or_default();
            let new = suffixed(map, &old);
            map.metadata.name = Some(new.clone());
            names.insert(old, new);
        }
    }
    for object in objects.iter_mut() {
        match object {
            Object::Job(job) => {
                rename(job.spec.as_mut().and_then(|spec| spec.template.spec.as_mut()), &names);
            }
            Object::Pod(pod) => rename(pod.spec.as_mut(), &names),
            _ => {}
        }
    }
    sign_hook(objects);
}

/// Argo CD does not compare hooks, so a change of a hook alone is no reason to sync. An object that it does compare tells
/// that the Job is another one: the first ConfigMap of a hook carries its digest.
fn sign_hook(objects: &mut [Object]) {
    let job = objects.iter().find_map(|object| match object {
        Object::Job(job) => Some(job.as_ref()),
        _ => None,
    });
    let is_hook = |job: &&Job| job.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(ARGO_HOOK));
    let Some(Ok(text)) = job.filter(is_hook).map(|job| serde_json::to_vec(&job.spec)) else { return };
    let first = objects.iter_mut().find_map(|object| match object {
        Object::ConfigMap(map) => Some(map),
        _ => None,
    });
    if let Some(map) = first {
        let annotations = map.metadata.annotations.get_or_insert_default();
        annotations.insert(HOOK_DIGEST.to_owned(), name_suffix(&text));
    }
}

fn suffixed(map: &ConfigMap, name: &str) -> String {
    format!("{name}-{}", config_map_hash(map))
}

fn rename(spec: Option<&mut PodSpec>, names: &BTreeMap<String, String>) {
    for volume in spec.into_iter().flat_map(|spec| spec.volumes.iter_mut().flatten()) {
        if let Some(source) = volume.config_map.as_mut()
            && let Some(new) = names.get(&source.name)
        {
            source.name.clone_from(new);
        }
    }
}
