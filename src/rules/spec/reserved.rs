//! Names and paths that bundles use themselves.

/// Names of flux-gen's own volumes. The view's volume has the name of the view's container, by default the first of these.
pub const RESERVED_VOLUMES: &[&str] =
    &["flux-view", "flux-scripts", "flux-config", "flux-curve", "flux-run", "flux-size", "flux-home", "spack-software"];

/// Where every container of a cluster and of its services has flux-gen's scripts.
pub const SCRIPTS_PATH: &str = "/flux_operator";

/// Folders of the view, mounted at the paths for which it was built.
pub const VIEW_PATHS: &[&str] = &["/opt/software", "/opt/views"];

/// Default of `flux.container.mountPath`.
pub const DEFAULT_MOUNT_PATH: &str = "/mnt/flux";

/// Default of `flux.container.name`.
pub const DEFAULT_VIEW_NAME: &str = "flux-view";

/// Longest mount path of the view, in bytes: the broker's run directory below it may have 96 (flux-broker-attributes, `rundir`).
pub const LONGEST_MOUNT_PATH: usize = 80;

/// Port of the brokers.
pub const BROKER_PORT: i32 = 8050;
