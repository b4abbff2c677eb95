//! The pod template of the Job.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement, ObjectMeta};

use super::job::PART_OF;
use super::paths;
use crate::model::{Cluster, Entrypoint, Sidecar, View, ViewKind};

/// Label that pods of every cluster have, as with the operator.
pub(super) const APP: &str = "app";
/// Its value.
pub(super) const APP_VALUE: &str = "flux-operator";
/// Label that names the cluster.
pub(super) const NAME: &str = "app.kubernetes.io/name";

/// Labels of every pod of the cluster; ours win over the user's (quirk 34).
pub(super) fn labels(cluster: &Cluster) -> BTreeMap<String, String> {
    let mut labels = cluster.pod.labels.clone();
    labels.insert(APP.to_owned(), APP_VALUE.to_owned());
    labels.insert(NAME.to_owned(), cluster.name.clone());
    if cluster.run.is_some() {
        labels.entry(PART_OF.to_owned()).or_insert_with(|| cluster.minicluster.clone());
    }
    labels.extend(cluster.namespace.as_ref().map(|namespace| ("namespace".to_owned(), namespace.clone())));
    labels
}

/// The Job's pod template.
pub(super) fn template(cluster: &Cluster) -> core::PodTemplateSpec {
    let mut labels = labels(cluster);
    labels.insert("hpa-selector".to_owned(), cluster.name.clone());
    let mut annotations = cluster.pod.annotations.clone();
    annotations.extend(cluster.job.queueing.pod_annotations.clone());
    let annotations = (!annotations.is_empty()).then_some(annotations);
    let (native, ordinary): (Vec<_>, Vec<_>) = cluster.sidecars.iter().partition(|s| s.native);
    let mut init = Vec::new();
    init.extend((cluster.view.kind != ViewKind::Image).then(|| view_container(cluster)));
    init.extend(native.into_iter().map(|s| sidecar(cluster, s)));
    let mut containers: Vec<(usize, core::Container)> =
        ordinary.into_iter().map(|s| (s.index, sidecar(cluster, s))).collect();
    containers.push((cluster.runner.index, runner(cluster)));
    containers.sort_by_key(|(index, _)| *index);
    let mut spec = cluster.pod.spec.clone();
    spec.affinity = affinity(cluster);
    spec.containers = containers.into_iter().map(|(_, container)| container).collect();
    spec.init_containers = (!init.is_empty()).then_some(init);
    spec.subdomain = Some(cluster.network.headless.clone());
    spec.volumes = Some(volumes(cluster));
    core::PodTemplateSpec {
        metadata: Some(ObjectMeta { annotations, labels: Some(labels), ..ObjectMeta::default() }),
        spec: Some(spec),
    }
}

/// Prefers one zone and different nodes, beside what the user requires.
fn affinity(cluster: &Cluster) -> Option<core::Affinity> {
    let mut affinity = cluster.pod.spec.affinity.clone().unwrap_or_default();
    if cluster.pod.spread {
        affinity.pod_affinity = Some(core::PodAffinity {
            preferred_during_scheduling_ignored_during_execution: Some(vec![prefer(
                cluster,
                "topology.kubernetes.io/zone",
            )]),
            ..Default::default()
        });
        affinity.pod_anti_affinity = Some(core::PodAntiAffinity {
            preferred_during_scheduling_ignored_during_execution: Some(vec![prefer(cluster, "kubernetes.io/hostname")]),
            ..Default::default()
        });
    }
    (affinity != core::Affinity::default()).then_some(affinity)
}

fn prefer(cluster: &Cluster, topology_key: &str) -> core::WeightedPodAffinityTerm {
    let requirement = LabelSelectorRequirement {
        key: NAME.to_owned(),
        operator: "In".to_owned(),
        values: Some(vec![cluster.name.clone()]),
    };
    core::WeightedPodAffinityTerm {
        pod_affinity_term: core::PodAffinityTerm {
            label_selector: Some(LabelSelector { match_expressions: Some(vec![requirement]), match_labels: None }),
            topology_key: topology_key.to_owned(),
            ..Default::default()
        },
        weight: 100,
    }
}

fn view_container(cluster: &Cluster) -> core::Container {
    let view = &cluster.view;
    core::Container {
        name: view.name.clone(),
        image: Some(view.image.clone()),
        image_pull_policy: Some(view.pull_policy.clone()),
        command: Some(script("flux-init.sh")),
        resources: view.resources.clone(),
        security_context: view.security_context.clone(),
        volume_mounts: Some(vec![mount(paths::HOME), view_mount(view), read_only(paths::SCRIPTS)]),
        working_dir: view.working_dir.clone(),
        ..Default::default()
    }
}

fn runner(cluster: &Cluster) -> core::Container {
    let runner = &cluster.runner;
    let mut container = runner.container.clone();
    container.command = Some(script(&format!("wait-{}.sh", runner.index)));
    let mut mounts = shared_mounts(&cluster.view);
    mounts.extend([read_only(paths::CONFIG), read_only(paths::CURVE), mount(paths::RUN)]);
    mounts.extend(cluster.size.elastic.then(|| read_only(paths::SIZE)));
    add_mounts(&mut container, mounts);
    container
}

fn sidecar(cluster: &Cluster, sidecar: &Sidecar) -> core::Container {
    let mut container = sidecar.container.clone();
    container.command = entrypoint(&sidecar.entrypoint, &format!("start-{}.sh", sidecar.index));
    add_mounts(&mut container, shared_mounts(&cluster.view));
    container.restart_policy = sidecar.native.then(|| "Always".to_owned());
    container
}

/// The command of a container that does not run Flux.
pub(super) fn entrypoint(entrypoint: &Entrypoint, file: &str) -> Option<Vec<String>> {
    match entrypoint {
        Entrypoint::Image => None,
        Entrypoint::Direct(words) => Some(words.clone()),
        Entrypoint::Wrapped { .. } => Some(script(file)),
    }
}

fn script(file: &str) -> Vec<String> {
    vec!["/bin/bash".to_owned(), format!("{}/{file}", paths::SCRIPTS.1)]
}

/// Ours before the user's.
pub(super) fn add_mounts(container: &mut core::Container, mut ours: Vec<core::VolumeMount>) {
    ours.extend(container.volume_mounts.take().unwrap_or_default());
    container.volume_mounts = Some(ours);
}

/// What every container of the cluster's pods mounts.
fn shared_mounts(view: &View) -> Vec<core::VolumeMount> {
    let mut mounts = vec![mount(paths::HOME), view_mount(view), read_only(paths::SCRIPTS)];
    match view.kind {
        ViewKind::Disabled => {}
        ViewKind::Copy => {
            mounts.push(part(&view.name, paths::SOFTWARE, "software", false));
            mounts.push(part(&view.name, paths::VIEWS, "views", false));
        }
        ViewKind::Image => {
            let volume = image_volume_name(view);
            mounts.push(part(&volume, paths::SOFTWARE, "opt/software", true));
            mounts.push(part(&volume, paths::VIEWS, "opt/views", true));
        }
    }
    mounts
}

fn image_volume_name(view: &View) -> String {
    format!("{}-image", view.name)
}

fn part(volume: &str, path: &str, sub_path: &str, read_only: bool) -> core::VolumeMount {
    core::VolumeMount {
        name: volume.to_owned(),
        mount_path: path.to_owned(),
        sub_path: Some(sub_path.to_owned()),
        read_only: read_only.then_some(true),
        ..Default::default()
    }
}

fn view_mount(view: &View) -> core::VolumeMount {
    core::VolumeMount { name: view.name.clone(), mount_path: view.mount_path.clone(), ..Default::default() }
}

fn mount((name, path): (&str, &str)) -> core::VolumeMount {
    core::VolumeMount { name: name.to_owned(), mount_path: path.to_owned(), ..Default::default() }
}

/// A mount of something that pods must not change.
pub(super) fn read_only(volume: (&str, &str)) -> core::VolumeMount {
    core::VolumeMount { read_only: Some(true), ..mount(volume) }
}

fn volumes(cluster: &Cluster) -> Vec<core::Volume> {
    let view = &cluster.view;
    let memory = core::EmptyDirVolumeSource { medium: Some("Memory".to_owned()), size_limit: None };
    let empty =
        |name: &str, source| core::Volume { name: name.to_owned(), empty_dir: Some(source), ..Default::default() };
    let curve = core::SecretVolumeSource {
        secret_name: Some(cluster.certificate.secret.clone()),
        default_mode: Some(cluster.runner.certificate_mode),
        ..Default::default()
    };
    let mut volumes = vec![
        empty(paths::HOME.0, core::EmptyDirVolumeSource::default()),
        empty(&view.name, core::EmptyDirVolumeSource::default()),
        empty(paths::RUN.0, memory),
        config_map(paths::SCRIPTS.0, paths::scripts_name(cluster), Some(0o555)),
        config_map(paths::CONFIG.0, paths::flux_name(cluster), None),
        core::Volume { name: paths::CURVE.0.to_owned(), secret: Some(curve), ..Default::default() },
    ];
    let is_image = view.kind == ViewKind::Image;
    // One of them takes 3 kB, whatever it is; doubling the list would be the largest part of a compiled cluster.
    volumes.reserve_exact(usize::from(cluster.size.elastic) + usize::from(is_image) + cluster.volumes.len());
    volumes.extend(cluster.size.elastic.then(|| config_map(paths::SIZE.0, paths::size_name(cluster), None)));
    volumes.extend(is_image.then(|| core::Volume {
        name: image_volume_name(view),
        image: Some(core::ImageVolumeSource {
            pull_policy: Some(view.pull_policy.clone()),
            reference: Some(view.image.clone()),
        }),
        ..Default::default()
    }));
    volumes.extend(cluster.volumes.values().cloned());
    volumes
}

/// A volume of a ConfigMap.
pub(super) fn config_map(volume: &str, name: String, mode: Option<i32>) -> core::Volume {
    core::Volume {
        name: volume.to_owned(),
        config_map: Some(core::ConfigMapVolumeSource { name, default_mode: mode, ..Default::default() }),
        ..Default::default()
    }
}
