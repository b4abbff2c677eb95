//! Names of volumes and files that more than one part of a bundle must agree on.

use crate::model::Cluster;

/// Volume of scripts, and where it is mounted (as by the operator).
pub(crate) const SCRIPTS: (&str, &str) = ("flux-scripts", "/flux_operator");
/// Volume of broker.toml, R and hostlist.
pub(crate) const CONFIG: (&str, &str) = ("flux-config", "/etc/flux-gen");
/// Volume of the certificate as it comes.
pub(crate) const CURVE: (&str, &str) = ("flux-curve", "/etc/flux-gen-curve");
/// Memory volume for the certificate's private copy.
pub(crate) const RUN: (&str, &str) = ("flux-run", "/run/flux-gen");
/// Volume of the numbers of an elastic cluster.
pub(crate) const SIZE: (&str, &str) = ("flux-size", "/etc/flux-gen-size");
/// Home for users that have none (as by the operator).
pub(crate) const HOME: (&str, &str) = ("flux-home", "/home/flux-operator");

/// Where Flux's own trees stand in every container: their programs hold these paths.
pub(crate) const SOFTWARE: &str = "/opt/software";
/// Where the view's tree stands in every container.
pub(crate) const VIEWS: &str = "/opt/views";

/// ConfigMap of scripts, before its hash suffix.
pub(super) fn scripts_name(cluster: &Cluster) -> String {
    format!("{}-scripts", cluster.name)
}

/// ConfigMap of Flux's files, before its hash suffix.
pub(super) fn flux_name(cluster: &Cluster) -> String {
    format!("{}-flux", cluster.name)
}

/// ConfigMap of the numbers of an elastic cluster; it keeps its name when it changes.
pub(super) fn size_name(cluster: &Cluster) -> String {
    format!("{}-size", cluster.name)
}
