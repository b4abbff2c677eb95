//! The Pod of `services`, beside the cluster and in its headless Service.

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{annotations as told, guarded, paths, pod};
use crate::model::{Cluster, Entrypoint, ServiceContainer};

/// One Pod for all services; `None` when there are none.
pub(super) fn services_pod(cluster: &Cluster) -> Option<core::Pod> {
    if cluster.services.is_empty() {
        return None;
    }
    let name = format!("{}-services", cluster.name);
    let mut labels = pod::labels(cluster);
    labels.insert("job-name".to_owned(), cluster.name.clone());
    let wrapped = cluster.services.iter().any(|s| matches!(s.entrypoint, Entrypoint::Wrapped { .. }));
    let mut volumes: Vec<core::Volume> = cluster.service_volumes.values().cloned().collect();
    volumes.extend(wrapped.then(|| pod::config_map(paths::SCRIPTS.0, paths::scripts_name(cluster), Some(0o555))));
    let mut spec = cluster.pod.spec.clone();
    spec.affinity = cluster.pod.spec.affinity.clone();
    spec.containers = cluster.services.iter().map(container).collect();
    spec.hostname = Some(name.clone());
    spec.subdomain = Some(cluster.network.headless.clone());
    spec.resources = None;
    spec.restart_policy = Some(cluster.pod.services_restart_policy.clone());
    spec.termination_grace_period_seconds = None;
    spec.volumes = (!volumes.is_empty()).then_some(volumes);
    let mut annotations = cluster.pod.annotations.clone();
    let mut metadata = guarded(cluster, &name);
    annotations.extend(metadata.annotations.take().unwrap_or_default());
    annotations.extend(told::of_services_pod(cluster));
    Some(core::Pod {
        metadata: ObjectMeta { labels: Some(labels), annotations: Some(annotations), ..metadata },
        spec: Some(spec),
        status: None,
    })
}

fn container(service: &ServiceContainer) -> core::Container {
    let mut container = service.container.clone();
    container.command = pod::entrypoint(&service.entrypoint, &format!("services-start-{}.sh", service.index));
    if matches!(service.entrypoint, Entrypoint::Wrapped { .. }) {
        pod::add_mounts(&mut container, vec![pod::read_only(paths::SCRIPTS)]);
    }
    container
}
