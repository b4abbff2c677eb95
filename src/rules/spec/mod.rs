//! Rules on one MiniCluster as written. [`check`] runs every family.

mod check;
mod reserved;

mod aliases;
mod broker;
mod broker_place;
mod bursting;
mod containers;
mod environment;
mod flux;
mod hardening;
mod hooks;
mod labels;
mod names;
mod numbers;
mod paths;
mod pod;
mod ports;
mod resources;
mod security;
mod text;
mod volumes;

pub use reserved::*;
pub use resources::{is_extended_resource, is_standard_resource};

use crate::diag::Diagnostics;
use crate::flux::FluxVersion;
use crate::model::hardening::PodSecurity;
use crate::model::kubernetes::KubernetesVersion;
use crate::spec::MiniCluster;

use check::Check;

/// What the rules have to know beyond the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleContext {
    /// Target version of Kubernetes.
    pub kubernetes: KubernetesVersion,
    /// Bytes that a strategy adds to the name of the Job and its hosts, the hyphen included (0 for stable names).
    pub name_suffix: usize,
    /// Version of flux-core in the view or image, if it is declared.
    pub flux_version: Option<FluxVersion>,
    /// Level of pod security that the pods have to keep.
    pub pod_security: PodSecurity,
}

/// Every problem of one MiniCluster.
#[must_use]
pub fn check(cluster: &MiniCluster, context: &RuleContext) -> Diagnostics {
    let mut check = Check::new(cluster, context);
    names::check(&mut check);
    numbers::check(&mut check);
    containers::check(&mut check);
    aliases::check(&mut check);
    ports::check(&mut check);
    volumes::check(&mut check);
    resources::check(&mut check);
    environment::check(&mut check);
    pod::check(&mut check);
    labels::check(&mut check);
    security::check(&mut check);
    hardening::check(&mut check);
    flux::check(&mut check);
    paths::check(&mut check);
    broker::check(&mut check);
    broker_place::check(&mut check);
    bursting::check(&mut check);
    text::check(&mut check);
    hooks::check(&mut check);
    check.found
}
