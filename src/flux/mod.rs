//! Flux's own formats: ranks, host lists, resources, broker configuration, certificate, tree.
//!
//! Pure functions over text and numbers. Nothing here knows about Kubernetes or any other module of this
//! crate, reads a file, or draws random numbers. Facts are those of flux-core 0.88.

pub mod attribute;
pub mod bootstrap;
pub mod certificate;
pub mod config;
pub mod config_check;
pub mod duration;
pub mod hostlist;
pub mod idset;
pub mod resource_set;
pub mod topology;
pub mod version;

pub use certificate::{Certificate, CertificateError};
pub use config::BrokerConfig;
pub use duration::FluxDuration;
pub use hostlist::{Hostlist, HostlistError, HostlistErrorKind};
pub use idset::{IdSet, IdSetError, IdSetErrorKind};
pub use resource_set::{HostMismatch, ResourceError, ResourceSet};
pub use topology::{Topology, TopologyError};
pub use version::FluxVersion;
