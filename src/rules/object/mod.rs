//! What a Kubernetes API server would refuse in rendered objects: a safety net for render, and the judge of users' patches.
//!
//! Restates the validation of `k8s.io/kubernetes/pkg/apis/{core,batch}/validation` for the kinds that bundles hold, on objects
//! before defaulting. A real API server has the last word; what it alone knows (quotas, admission, other objects) is not here.

mod check;
mod container;
mod data;
mod handler;
mod job;
mod meta;
mod network_policy;
mod pod;
mod pod_security;
mod resources;
mod scheduling;
mod security;
mod service;
mod volume;

use std::collections::BTreeSet;

use crate::model::kubernetes::KubernetesVersion;
use crate::object::Object;
use check::{Check, Path};

pub use resources::requested;

pub use pod_security::{pod_security, takes_se_linux_type, takes_sysctl};

/// A field of an object that an API server refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectProblem {
    /// Kind of the object.
    pub kind: &'static str,
    /// Name of the object.
    pub name: String,
    /// The field, as Kubernetes writes it: `spec.template.spec.containers[0].image`.
    pub path: String,
    /// What is wrong with it, with the offending text; one sentence without a full stop.
    pub message: String,
}

/// Every problem of every object, in their order.
#[must_use]
pub fn check(objects: &[Object], target: KubernetesVersion) -> Vec<ObjectProblem> {
    let mut problems = Vec::new();
    let mut identities = BTreeSet::new();
    for object in objects {
        let mut check = Check::new(object, target);
        if !identities.insert((object.kind(), object.namespace(), object.name())) {
            check.problem(&Path::root("metadata").key("name"), "another object of this kind has the same name");
        }
        one(&mut check, object);
        problems.extend(check.into_problems());
    }
    problems
}

fn one(check: &mut Check, object: &Object) {
    meta::object(check, object);
    let spec = Path::root("spec");
    match object {
        Object::Namespace(_) => {}
        Object::ConfigMap(map) => data::config_map(check, map),
        Object::Secret(secret) => data::secret(check, secret),
        Object::NetworkPolicy(policy) => {
            policy.spec.iter().for_each(|policy| network_policy::network_policy(check, &spec, policy));
        }
        Object::Service(service) => match &service.spec {
            Some(service) => service::service(check, &spec, service),
            None => check.required(&spec),
        },
        Object::Pod(pod) => match &pod.spec {
            Some(pod) => pod::pod(check, &spec, pod, pod::Kind::Pod),
            None => check.required(&spec),
        },
        Object::Job(job) => match &job.spec {
            Some(spec_of_job) => job::job(check, &spec, object.name(), spec_of_job),
            None => check.required(&spec),
        },
    }
}
