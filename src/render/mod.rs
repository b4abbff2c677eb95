//! From the resolved model to typed Kubernetes objects: one file per kind. Shell scripts are the only templates.

mod annotations;
mod configmaps;
mod finish;
mod job;
mod mark;
mod network_policy;
mod patch;
pub(crate) mod paths;
mod pod;
mod scripts;
mod services;
mod services_pod;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::model::Cluster;
use crate::object::Object;

pub use finish::finish;
pub use mark::{KUBERNETES_VERSION, OBJECTS, SECRETS, mark};
pub use patch::{PatchError, apply as apply_patch};
pub use scripts::Templates;

/// Scripts that could not be rendered: a bug in a template, never in what the user wrote.
#[derive(Debug, thiserror::Error)]
#[error("script {script} of the bundle could not be rendered: {source}")]
pub struct RenderError {
    script: String,
    source: minijinja::Error,
}

/// All objects of one cluster but its Secret, with names before hash suffixes, in the order in which they are applied.
///
/// # Errors
/// When a template fails, which is a bug.
pub fn render(cluster: &Cluster, templates: &Templates) -> Result<Vec<Object>, RenderError> {
    let mut objects =
        vec![Object::ConfigMap(configmaps::scripts(cluster, templates)?), Object::ConfigMap(configmaps::flux(cluster))];
    objects.extend(configmaps::size(cluster).map(Object::ConfigMap));
    objects.extend(network_policy::network_policy(cluster).map(Object::NetworkPolicy));
    objects.push(Object::Service(services::headless(cluster)));
    objects.extend(cluster.sidecars.iter().filter_map(|s| services::sidecar(cluster, s)).map(Object::Service));
    objects.extend(services_pod::services_pod(cluster).map(|pod| Object::Pod(Box::new(pod))));
    objects.push(Object::Job(Box::new(job::job(cluster))));
    Ok(objects)
}

/// Annotation that, with the value `disabled`, keeps Flux CD from replacing `${…}` in an object.
pub const GUARD: &str = "kustomize.toolkit.fluxcd.io/substitute";

/// Name, namespace, and what every object of the cluster is annotated with.
fn metadata(cluster: &Cluster, name: &str) -> ObjectMeta {
    let annotations = annotations::of_object(cluster);
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: cluster.namespace.clone(),
        annotations: (!annotations.is_empty()).then_some(annotations),
        ..ObjectMeta::default()
    }
}

/// [`metadata`] of an object with shell text.
fn guarded(cluster: &Cluster, name: &str) -> ObjectMeta {
    let mut metadata = metadata(cluster, name);
    metadata.annotations.get_or_insert_default().extend(annotations::guard());
    metadata
}
