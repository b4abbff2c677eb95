//! Volumes that the user names, and their mounts.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::written::{flag, owned, text, texts};
use crate::spec::minicluster::{Container, MiniClusterSpec, Volume};
use crate::spec::{Map, Spanned};

/// Where an `emptyDir` is mounted when no path is written.
const SHARED_MEMORY: &str = "/dev/shm";

/// Volumes of the cluster's pods and of the services Pod, by name.
pub(super) fn volumes(spec: &MiniClusterSpec) -> (BTreeMap<String, core::Volume>, BTreeMap<String, core::Volume>) {
    (of(spec.containers.as_ref()), of(spec.services.as_ref()))
}

fn of(containers: Option<&Spanned<Vec<Spanned<Container>>>>) -> BTreeMap<String, core::Volume> {
    containers
        .iter()
        .flat_map(|c| c.value.iter())
        .flat_map(|c| c.volumes.iter().flat_map(|v| v.value.iter()))
        .map(|entry| (entry.key.value.clone(), volume(&entry.key, &entry.value)))
        .collect()
}

/// Mounts of one container, by name of the volume.
pub(super) fn mounts(volumes: Option<&Spanned<Map<Volume>>>) -> Vec<core::VolumeMount> {
    let mut mounts: Vec<core::VolumeMount> = volumes
        .iter()
        .flat_map(|v| v.value.iter())
        .map(|entry| core::VolumeMount {
            name: entry.key.value.clone(),
            mount_path: mount_path(&entry.value),
            read_only: flag(&entry.value.read_only).then_some(true),
            ..Default::default()
        })
        .collect();
    mounts.sort_by(|a, b| a.name.cmp(&b.name));
    mounts
}

fn mount_path(volume: &Volume) -> String {
    owned(&volume.path).unwrap_or_else(|| SHARED_MEMORY.to_owned())
}

/// One source: the rules refuse mixtures.
fn volume(name: &str, written: &Volume) -> core::Volume {
    let mut volume = core::Volume { name: name.to_owned(), ..Default::default() };
    if let Some(driver) = owned(&written.csi_driver) {
        let attributes = texts(&written.csi_driver_attributes);
        volume.csi = Some(core::CSIVolumeSource {
            driver,
            volume_attributes: (!attributes.is_empty()).then_some(attributes),
            ..Default::default()
        });
    } else if let Some(secret) = owned(&written.secret_name) {
        // The API means `items` for ConfigMaps; the rules warn about any here.
        volume.secret = Some(core::SecretVolumeSource { secret_name: Some(secret), ..Default::default() });
    } else if flag(&written.empty_dir) {
        volume.empty_dir = Some(core::EmptyDirVolumeSource {
            medium: text(&written.empty_dir_medium).map(medium),
            size_limit: owned(&written.empty_dir_size_limit).map(Quantity),
        });
    } else if let Some(path) = owned(&written.host_path) {
        volume.host_path = Some(core::HostPathVolumeSource { path, type_: Some("Directory".to_owned()) });
    } else if let Some(name) = owned(&written.config_map_name) {
        volume.config_map = Some(core::ConfigMapVolumeSource { name, items: items(written), ..Default::default() });
    } else {
        volume.persistent_volume_claim = Some(core::PersistentVolumeClaimVolumeSource {
            claim_name: owned(&written.claim_name).unwrap_or_default(),
            ..Default::default()
        });
    }
    volume
}

/// Kubernetes writes `Memory`; the documents write `memory`.
fn medium(written: &str) -> String {
    if written.eq_ignore_ascii_case("memory") { "Memory".to_owned() } else { written.to_owned() }
}

fn items(written: &Volume) -> Option<Vec<core::KeyToPath>> {
    let items: Vec<_> =
        texts(&written.items).into_iter().map(|(key, path)| core::KeyToPath { key, path, mode: None }).collect();
    (!items.is_empty()).then_some(items)
}
