//! Kubernetes objects of a bundle, typed. Pure data: made by `render`, checked by `rules`, written by `bundle`.

pub mod carry;
pub mod hash;
pub mod images;
pub mod immutable;
pub mod quantity;

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod, Secret, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;

/// One Kubernetes object.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a handful per cluster; boxes would only blur every match")]
pub enum Object {
    /// `v1 Namespace`.
    Namespace(Namespace),
    /// `v1 ConfigMap`.
    ConfigMap(ConfigMap),
    /// `v1 Secret`.
    Secret(Secret),
    /// `networking.k8s.io/v1 NetworkPolicy`.
    NetworkPolicy(NetworkPolicy),
    /// `v1 Service`.
    Service(Service),
    /// `v1 Pod`.
    Pod(Box<Pod>),
    /// `batch/v1 Job`.
    Job(Box<Job>),
}

/// Runs `$body` with `$object` bound to the typed object inside.
macro_rules! each {
    ($self:expr, $object:ident => $body:expr) => {
        match $self {
            Object::Namespace($object) => $body,
            Object::ConfigMap($object) => $body,
            Object::Secret($object) => $body,
            Object::NetworkPolicy($object) => $body,
            Object::Service($object) => $body,
            Object::Pod($object) => $body,
            Object::Job($object) => $body,
        }
    };
}

impl Object {
    /// `kind`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Namespace(_) => "Namespace",
            Self::ConfigMap(_) => "ConfigMap",
            Self::Secret(_) => "Secret",
            Self::NetworkPolicy(_) => "NetworkPolicy",
            Self::Service(_) => "Service",
            Self::Pod(_) => "Pod",
            Self::Job(_) => "Job",
        }
    }

    /// `apiVersion`.
    #[must_use]
    pub fn api_version(&self) -> &'static str {
        match self {
            Self::Job(_) => "batch/v1",
            Self::NetworkPolicy(_) => "networking.k8s.io/v1",
            _ => "v1",
        }
    }

    /// `metadata`.
    #[must_use]
    pub fn metadata(&self) -> &ObjectMeta {
        each!(self, object => &object.metadata)
    }

    /// `metadata`, to change.
    pub fn metadata_mut(&mut self) -> &mut ObjectMeta {
        each!(self, object => &mut object.metadata)
    }

    /// `metadata.name`; empty when there is none, which no rendered object has.
    #[must_use]
    pub fn name(&self) -> &str {
        self.metadata().name.as_deref().unwrap_or_default()
    }

    /// The object without a `status` in which nothing stands; `None` when it has no such one.
    #[must_use]
    pub fn without_empty_status(&self) -> Option<Self> {
        let is_empty = match self {
            Self::Namespace(namespace) => is_empty(namespace.status.as_ref()),
            Self::Service(service) => is_empty(service.status.as_ref()),
            Self::Pod(pod) => is_empty(pod.status.as_ref()),
            Self::Job(job) => is_empty(job.status.as_ref()),
            Self::ConfigMap(_) | Self::Secret(_) | Self::NetworkPolicy(_) => false,
        };
        if !is_empty {
            return None;
        }
        let mut copy = self.clone();
        match &mut copy {
            Self::Namespace(namespace) => namespace.status = None,
            Self::Service(service) => service.status = None,
            Self::Pod(pod) => pod.status = None,
            Self::Job(job) => job.status = None,
            Self::ConfigMap(_) | Self::Secret(_) | Self::NetworkPolicy(_) => {}
        }
        Some(copy)
    }

    /// `metadata.namespace`.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.metadata().namespace.as_deref()
    }
}

fn is_empty<T: Default + PartialEq>(status: Option<&T>) -> bool {
    status.is_some_and(|status| *status == T::default())
}

impl Serialize for Object {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        each!(self, object => object.serialize(serializer))
    }
}
