//! Volumes and their mounts.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, Container, DownwardAPIVolumeFile, KeyToPath, ProjectedVolumeSource, SecretVolumeSource,
    Volume, VolumeMount,
};

use super::check::{Check, Path};
use super::resources;
use crate::model::kubernetes::Feature;
use crate::rules::syntax;

const LARGEST_MODE: i64 = 0o777;

/// Checks the volumes of a pod and returns them by name.
pub(super) fn volumes<'a>(check: &mut Check, at: &Path, volumes: &'a [Volume]) -> BTreeMap<&'a str, &'a Volume> {
    let mut by_name = BTreeMap::new();
    for (index, volume) in volumes.iter().enumerate() {
        let at = at.at(index);
        check.form(&at.key("name"), &volume.name, syntax::dns1123_label);
        if by_name.insert(volume.name.as_str(), volume).is_some() {
            check.problem(&at.key("name"), format!("`{}` is used twice", volume.name));
        }
        match sources(volume) {
            1 => source(check, &at, volume),
            0 => check.problem(&at, format!("volume `{}` has no source", volume.name)),
            _ => check.problem(&at, format!("volume `{}` has more than one source", volume.name)),
        }
    }
    by_name
}

/// Number of sources, of every kind that there is.
fn sources(volume: &Volume) -> usize {
    [
        volume.aws_elastic_block_store.is_some(),
        volume.azure_disk.is_some(),
        volume.azure_file.is_some(),
        volume.cephfs.is_some(),
        volume.cinder.is_some(),
        volume.config_map.is_some(),
        volume.csi.is_some(),
        volume.downward_api.is_some(),
        volume.empty_dir.is_some(),
        volume.ephemeral.is_some(),
        volume.fc.is_some(),
        volume.flex_volume.is_some(),
        volume.flocker.is_some(),
        volume.gce_persistent_disk.is_some(),
        volume.git_repo.is_some(),
        volume.glusterfs.is_some(),
        volume.host_path.is_some(),
        volume.image.is_some(),
        volume.iscsi.is_some(),
        volume.nfs.is_some(),
        volume.persistent_volume_claim.is_some(),
        volume.photon_persistent_disk.is_some(),
        volume.portworx_volume.is_some(),
        volume.projected.is_some(),
        volume.quobyte.is_some(),
        volume.rbd.is_some(),
        volume.scale_io.is_some(),
        volume.secret.is_some(),
        volume.storageos.is_some(),
        volume.vsphere_volume.is_some(),
    ]
    .into_iter()
    .filter(|there| *there)
    .count()
}

fn source(check: &mut Check, at: &Path, volume: &Volume) {
    if let Some(empty) = &volume.empty_dir
        && let Some(limit) = &empty.size_limit
    {
        resources::quantity(check, &at.key("emptyDir").key("sizeLimit"), limit);
    }
    if let Some(host) = &volume.host_path {
        let at = at.key("hostPath");
        const TYPES: &[&str] =
            &["DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"];
        no_backsteps(check, &at.key("path"), &host.path);
        check.optional_word(&at.key("type"), host.type_.as_ref(), TYPES);
    }
    if let Some(secret) = &volume.secret {
        self::secret(check, &at.key("secret"), secret);
    }
    if let Some(map) = &volume.config_map {
        config_map(check, &at.key("configMap"), map);
    }
    if let Some(claim) = &volume.persistent_volume_claim
        && claim.claim_name.is_empty()
    {
        check.required(&at.key("persistentVolumeClaim").key("claimName"));
    }
    if let Some(csi) = &volume.csi {
        let at = at.key("csi");
        let name = csi.driver.to_ascii_lowercase();
        check.form(&at.key("driver"), &name, syntax::dns1123_subdomain);
        if name.len() > 63 {
            check.problem(&at.key("driver"), "has more than 63 characters");
        }
        if csi.node_publish_secret_ref.as_ref().is_some_and(|secret| secret.name.is_empty()) {
            check.required(&at.key("nodePublishSecretRef").key("name"));
        }
    }
    if let Some(image) = &volume.image {
        let at = at.key("image");
        check.since(&at, Feature::ImageVolumes, true);
        if image.reference.as_deref().unwrap_or_default().is_empty() {
            check.required(&at.key("reference"));
        }
        let policies = &["Always", "IfNotPresent", "Never"];
        check.optional_word(&at.key("pullPolicy"), image.pull_policy.as_ref(), policies);
    }
    if let Some(nfs) = &volume.nfs {
        let at = at.key("nfs");
        if nfs.server.is_empty() {
            check.required(&at.key("server"));
        }
        if !nfs.path.starts_with('/') {
            check.problem(&at.key("path"), format!("`{}` must be absolute", nfs.path));
        }
    }
    if let Some(projected) = &volume.projected {
        self::projected(check, &at.key("projected"), projected);
    }
    if let Some(files) = &volume.downward_api {
        let at = at.key("downwardAPI");
        check.optional_range(&at.key("defaultMode"), files.default_mode, 0, LARGEST_MODE);
        downward(check, &at.key("items"), files.items.as_deref().unwrap_or_default());
    }
    if volume.ephemeral.as_ref().is_some_and(|ephemeral| ephemeral.volume_claim_template.is_none()) {
        check.required(&at.key("ephemeral").key("volumeClaimTemplate"));
    }
}

fn no_backsteps(check: &mut Check, at: &Path, path: &str) {
    if path.is_empty() {
        check.required(at);
    } else if path.split('/').any(|part| part == "..") {
        check.problem(at, format!("`{path}` must not hold `..`"));
    }
}

fn secret(check: &mut Check, at: &Path, secret: &SecretVolumeSource) {
    if secret.secret_name.as_deref().unwrap_or_default().is_empty() {
        check.required(&at.key("secretName"));
    }
    check.optional_range(&at.key("defaultMode"), secret.default_mode, 0, LARGEST_MODE);
    items(check, &at.key("items"), secret.items.as_deref().unwrap_or_default());
}

fn config_map(check: &mut Check, at: &Path, map: &ConfigMapVolumeSource) {
    if map.name.is_empty() {
        check.required(&at.key("name"));
    }
    check.optional_range(&at.key("defaultMode"), map.default_mode, 0, LARGEST_MODE);
    items(check, &at.key("items"), map.items.as_deref().unwrap_or_default());
}

fn items(check: &mut Check, at: &Path, items: &[KeyToPath]) {
    for (index, item) in items.iter().enumerate() {
        let at = at.at(index);
        check.form(&at.key("key"), &item.key, syntax::data_key);
        local_path(check, &at.key("path"), &item.path);
        check.optional_range(&at.key("mode"), item.mode, 0, LARGEST_MODE);
    }
}

/// A path in a volume; names that begin with `..` are the kubelet's own.
fn local_path(check: &mut Check, at: &Path, path: &str) {
    check.form(at, path, syntax::relative_path);
    if path.starts_with("..") && !path.split('/').any(|part| part == "..") {
        check.problem(at, format!("`{path}` must not begin with `..`"));
    }
}

fn projected(check: &mut Check, at: &Path, projected: &ProjectedVolumeSource) {
    check.optional_range(&at.key("defaultMode"), projected.default_mode, 0, LARGEST_MODE);
    let mut paths: BTreeSet<String> = BTreeSet::new();
    for (index, source) in projected.sources.iter().flatten().enumerate() {
        let at = at.item("sources", index);
        let count = [
            source.cluster_trust_bundle.is_some(),
            source.config_map.is_some(),
            source.downward_api.is_some(),
            source.pod_certificate.is_some(),
            source.secret.is_some(),
            source.service_account_token.is_some(),
        ];
        if count.into_iter().filter(|there| *there).count() != 1 {
            check.problem(&at, "must have exactly one source");
        }
        let keys = [
            source.config_map.as_ref().map(|map| ("configMap", &map.name, &map.items)),
            source.secret.as_ref().map(|secret| ("secret", &secret.name, &secret.items)),
        ];
        for (field, name, list) in keys.into_iter().flatten() {
            let at = at.key(field);
            if name.is_empty() {
                check.required(&at.key("name"));
            }
            items(check, &at.key("items"), list.as_deref().unwrap_or_default());
            for item in list.iter().flatten() {
                if !paths.insert(syntax::clean_path(&item.path)) {
                    check.problem(&at.key("items"), format!("path `{}` is used twice", item.path));
                }
            }
        }
        if let Some(token) = &source.service_account_token {
            let at = at.key("serviceAccountToken");
            local_path(check, &at.key("path"), &token.path);
            // From ten minutes to 2^32 seconds.
            check.optional_range(&at.key("expirationSeconds"), token.expiration_seconds, 600, 1 << 32);
        }
        if let Some(files) = &source.downward_api {
            downward(check, &at.key("downwardAPI").key("items"), files.items.as_deref().unwrap_or_default());
        }
    }
}

fn downward(check: &mut Check, at: &Path, files: &[DownwardAPIVolumeFile]) {
    for (index, file) in files.iter().enumerate() {
        let at = at.at(index);
        local_path(check, &at.key("path"), &file.path);
        if file.field_ref.is_some() == file.resource_field_ref.is_some() {
            check.problem(&at, "must have exactly one of fieldRef and resourceFieldRef");
        }
        check.optional_range(&at.key("mode"), file.mode, 0, LARGEST_MODE);
    }
}

/// Checks the mounts of one container against the volumes of its pod.
pub(super) fn mounts(check: &mut Check, at: &Path, container: &Container, volumes: &BTreeMap<&str, &Volume>) {
    let mut paths = BTreeSet::new();
    for (index, mount) in container.volume_mounts.iter().flatten().enumerate() {
        let at = at.item("volumeMounts", index);
        if mount.name.is_empty() {
            check.required(&at.key("name"));
        } else if !volumes.contains_key(mount.name.as_str()) {
            check.problem(&at.key("name"), format!("there is no volume `{}`", mount.name));
        }
        if mount.mount_path.is_empty() {
            check.required(&at.key("mountPath"));
        } else if !paths.insert(&mount.mount_path) {
            check.problem(&at.key("mountPath"), format!("`{}` is used twice", mount.mount_path));
        }
        one_mount(check, &at, mount, container);
        let of_image = volumes.get(mount.name.as_str()).is_some_and(|volume| volume.image.is_some());
        if of_image && mount.sub_path_expr.as_deref().is_some_and(|path| !path.is_empty()) {
            check.problem(&at.key("subPathExpr"), "does not go with an image volume");
        }
    }
}

fn one_mount(check: &mut Check, at: &Path, mount: &VolumeMount, container: &Container) {
    let sub_path = mount.sub_path.as_ref().filter(|path| !path.is_empty());
    let expression = mount.sub_path_expr.as_ref().filter(|path| !path.is_empty());
    check.optional_form(&at.key("subPath"), sub_path, syntax::relative_path);
    check.optional_form(&at.key("subPathExpr"), expression, syntax::relative_path);
    if sub_path.is_some() && expression.is_some() {
        check.problem(&at.key("subPathExpr"), "does not go with subPath");
    }
    let modes = &["None", "HostToContainer", "Bidirectional"];
    check.optional_word(&at.key("mountPropagation"), mount.mount_propagation.as_ref(), modes);
    let privileged = container.security_context.as_ref().and_then(|context| context.privileged) == Some(true);
    if mount.mount_propagation.as_deref() == Some("Bidirectional") && !privileged {
        check.problem(&at.key("mountPropagation"), "`Bidirectional` needs a privileged container");
    }
    let modes = &["Disabled", "IfPossible", "Enabled"];
    check.optional_word(&at.key("recursiveReadOnly"), mount.recursive_read_only.as_ref(), modes);
    let recursive = mount.recursive_read_only.as_deref().is_some_and(|mode| !mode.is_empty() && mode != "Disabled");
    check.since(&at.key("recursiveReadOnly"), Feature::RecursiveReadOnly, recursive);
    if recursive && mount.read_only != Some(true) {
        check.problem(&at.key("recursiveReadOnly"), "needs readOnly");
    }
}
