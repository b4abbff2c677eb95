//! From the resolved model to typed Kubernetes objects: one file per kind. Shell scripts are the only templates.

mod configmaps;
mod finish;
mod job;
mod patch;
mod paths;
mod pod;
mod scripts;
mod services;
mod services_pod;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::model::Cluster;
use crate::object::Object;

pub use finish::finish;
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
    objects.push(Object::Service(services::headless(cluster)));
    objects.extend(cluster.sidecars.iter().filter_map(|s| services::sidecar(cluster, s)).map(Object::Service));
    objects.extend(services_pod::services_pod(cluster).map(|pod| Object::Pod(Box::new(pod))));
    objects.push(Object::Job(Box::new(job::job(cluster))));
    Ok(objects)
}

/// Flux CD would replace `${…}` in scripts and commands by its own variables (G §B.3).
fn guard() -> BTreeMap<String, String> {
    BTreeMap::from([("kustomize.toolkit.fluxcd.io/substitute".to_owned(), "disabled".to_owned())])
}

fn metadata(cluster: &Cluster, name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), namespace: cluster.namespace.clone(), ..ObjectMeta::default() }
}

fn guarded(cluster: &Cluster, name: &str) -> ObjectMeta {
    ObjectMeta { annotations: Some(guard()), ..metadata(cluster, name) }
}
