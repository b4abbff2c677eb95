//! The last step: ConfigMaps that never change get their content's hash as suffix, and whoever mounts them the new name.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{ConfigMap, PodSpec};

use crate::object::Object;
use crate::object::carry::move_to_binary;
use crate::object::hash::config_map_hash;

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
    for object in objects {
        match object {
            Object::Job(job) => {
                rename(job.spec.as_mut().and_then(|spec| spec.template.spec.as_mut()), &names);
            }
            Object::Pod(pod) => rename(pod.spec.as_mut(), &names),
            _ => {}
        }
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
