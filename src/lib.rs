//! flux-gen compiles MiniCluster specs into Kubernetes bundles that need no controller.
//!
//! The stages, in the order in which data flows; each imports only from those listed before it:
//! [`diag`] → [`parallel`] → [`flux`] → [`spec`] (as written) → [`object`] → [`model`] (resolved) → [`rules`] → [`render`] →
//! [`mod@compile`] (all of these for one project) → [`bundle`] → [`oci`] → [`view`] → [`airgap`] → [`cli`].
//!
//! Everything up to and including [`mod@compile`] is pure: no files, no clock, no environment, no printing.

pub mod airgap;
pub mod bundle;
pub mod cli;
pub mod compile;
pub mod diag;
pub mod flux;
pub mod model;
pub mod object;
pub mod oci;
pub mod parallel;
pub mod render;
pub mod rules;
pub mod spec;
pub mod view;
