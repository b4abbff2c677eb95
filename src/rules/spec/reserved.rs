//! Names and paths that bundles use themselves.

/// Names of flux-gen's own volumes in a cluster's pods. The view's volumes come on top: they have the name of the view's
/// container, the second one with `-image` behind it.
pub const RESERVED_VOLUMES: &[&str] =
    &[SCRIPTS_VOLUME, "flux-config", "flux-curve", "flux-run", "flux-size", "flux-home"];

/// The volume of scripts, the only one that the services Pod has too.
pub const SCRIPTS_VOLUME: &str = "flux-scripts";

/// Where every container with a script of flux-gen's has it.
pub const SCRIPTS_PATH: &str = "/flux_operator";

/// Other folders that containers of a cluster's pods have, with what they are.
pub const OWN_PATHS: &[(&str, &str)] = &[
    ("/etc/flux-gen", "Flux's configuration"),
    ("/etc/flux-gen-curve", "the certificate"),
    ("/etc/flux-gen-size", "the size of the cluster"),
    ("/home/flux-operator", "the home of users who have none"),
    ("/run/flux-gen", "the broker's folder"),
];

/// Folders of the view, mounted at the paths for which it was built.
pub const VIEW_PATHS: &[&str] = &["/opt/software", "/opt/views"];

/// The brokers' private copy of the certificate, below the mount path of the view.
pub const BROKER_CERTIFICATE: &str = "config/curve/curve.cert";

/// Default of `flux.container.mountPath`.
pub const DEFAULT_MOUNT_PATH: &str = "/mnt/flux";

/// Default of `flux.container.name`.
pub const DEFAULT_VIEW_NAME: &str = "flux-view";

/// Longest mount path of the view, in bytes: the broker's run directory below it may have 96 (flux-broker-attributes, `rundir`).
pub const LONGEST_MOUNT_PATH: usize = 80;

/// Most pods of an Indexed Job (Kubernetes `batch` validation); rules look at no more hosts than this.
pub const MOST_PODS: u32 = 100_000;

/// Port of the brokers.
pub const BROKER_PORT: i32 = 8050;
