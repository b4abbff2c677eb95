//! The resolved MiniCluster: every default filled in, every choice made, nothing optional left that rendering would have
//! to decide. [`resolve`] makes it from what was written.

pub mod capacity;
pub mod fit;
pub mod hardening;
mod images;
pub mod kubernetes;
pub mod queue;
mod resolve;
pub mod rollout;
pub mod settings;
pub mod words;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::{Serialize, Serializer};

use crate::flux::config::BrokerConfig;
use crate::flux::hostlist::Hostlist;
use crate::flux::topology::Topology;
use kubernetes::KubernetesVersion;
use rollout::Rollout;

pub(crate) use resolve::is_gpu;
pub use resolve::{
    CertificateNeed, Context, certificate_need, checked_project_settings, effective_settings, project_settings,
    resolve, secret_name, unused_overrides,
};

/// The brokers' R, below the mount path of the view.
pub(crate) const BROKER_RESOURCES: &str = "config/etc/flux/system/R";

/// One MiniCluster, resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Cluster {
    /// Name of the MiniCluster, of its folder, and of the container that runs Flux.
    pub minicluster: String,
    /// Name of the Job, and what the names of the other objects and the hosts begin with: the MiniCluster's name, with
    /// the strategy `run-once` followed by `-` and [`Cluster::run`].
    pub name: String,
    /// With the strategy `run-once`: what tells this run from the others, ten characters.
    pub run: Option<String>,
    /// Namespace of its objects; `None`: objects carry none.
    pub namespace: Option<String>,
    /// Kubernetes version the bundle is for.
    pub target: KubernetesVersion,
    /// Numbers of pods.
    pub size: Size,
    /// The Job's own fields.
    pub job: Job,
    /// Fields of every pod.
    pub pod: Pod,
    /// The Services of the cluster.
    pub network: Network,
    /// The view.
    pub view: View,
    /// Broker configuration and command line.
    pub broker: Broker,
    /// What the leader runs.
    pub program: Program,
    /// The container that runs Flux.
    pub runner: Runner,
    /// The other containers of the pods, in the order of the spec.
    pub sidecars: Vec<Sidecar>,
    /// Containers of the services Pod.
    pub services: Vec<ServiceContainer>,
    /// Volumes of the cluster's pods that the user named, by name.
    pub volumes: BTreeMap<String, core::Volume>,
    /// Volumes of the services Pod that the user named, by name.
    pub service_volumes: BTreeMap<String, core::Volume>,
    /// The certificate's Secret.
    pub certificate: Certificate,
    /// What the scripts print and how strict they are.
    pub logging: Logging,
    /// What becomes of the Job and the services Pod when they change.
    pub rollout: Rollout,
}

impl Cluster {
    /// A name that the spec gives, as this run has it.
    #[must_use]
    pub fn of_run(&self, name: &str) -> String {
        of_run(name, self.run.as_deref())
    }

    /// The name that an object of this cluster has with the other strategies: the name by which patches find it.
    #[must_use]
    pub fn without_run(&self, name: &str) -> String {
        match &self.run {
            Some(run) => name.replacen(&format!("-{run}"), "", 1),
            None => name.to_owned(),
        }
    }
}

/// A name with the suffix of a run.
pub(crate) fn of_run(name: &str, run: Option<&str>) -> String {
    match run {
        Some(run) => format!("{name}-{run}"),
        None => name.to_owned(),
    }
}

/// Numbers of pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size {
    /// Pods now.
    pub pods: u32,
    /// Hosts registered: the most pods there can be.
    pub max: u32,
    /// Brokers that must be online before work starts; `None`: all of them.
    pub quorum: Option<u32>,
    /// `maxSize` was written: nothing but the size ConfigMap and the Job's two numbers may depend on `pods`.
    pub elastic: bool,
}

/// The Job's own fields.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Job {
    /// Labels of the Job.
    pub labels: BTreeMap<String, String>,
    /// `activeDeadlineSeconds`.
    pub deadline_seconds: i64,
    /// `backoffLimit`.
    pub backoff_limit: i32,
    /// How it ends.
    pub end: JobEnd,
    /// Whether disruptions (evictions, preemption) do not count as failures (`podFailurePolicy`).
    pub ignore_disruptions: bool,
    /// `podReplacementPolicy: Failed`.
    pub replace_only_failed: bool,
    /// What its queue wants.
    #[serde(skip_serializing_if = "queue::Queueing::is_silent")]
    pub queueing: queue::Queueing,
}

/// How a Job ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum JobEnd {
    /// `successPolicy`: when the leader's pod succeeds.
    LeaderSucceeds,
    /// When every pod succeeds.
    AllSucceed,
}

/// What a follower does after an orderly end of its broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum FollowerEnd {
    /// It goes back to waiting for the leader: the Job controller ends it.
    WaitAgain,
    /// It exits 0.
    Exit,
}

/// Fields of every pod of the cluster.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pod {
    /// The user's labels.
    pub labels: BTreeMap<String, String>,
    /// The user's annotations.
    pub annotations: BTreeMap<String, String>,
    /// Everything of a pod spec that the user may set and that needs no rendering: scheduling, security, DNS, host
    /// namespaces, service account, restart policy. Containers and volumes are empty here.
    pub spec: core::PodSpec,
    /// Preferred affinity to the cluster's zone and against sharing nodes.
    pub spread: bool,
    /// Restart policy of the services Pod: as written, else restarted when something in it fails.
    pub services_restart_policy: String,
}

/// The Services of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Network {
    /// Name of the headless Service, which is the pods' subdomain.
    pub headless: String,
    /// Only the leader is reachable by name.
    pub minimal: bool,
    /// Port of the brokers.
    pub port: u16,
    /// Which connections its pods may have; `None`: nothing is said about it.
    pub policy: Option<hardening::NetworkPolicy>,
}

/// The view.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct View {
    /// How Flux comes into the pods.
    pub kind: ViewKind,
    /// Name of the init container and of the view's volume.
    pub name: String,
    /// Image of the view (also of the init container when the view is disabled).
    pub image: String,
    /// Pull policy of the image.
    pub pull_policy: String,
    /// Where the view is mounted; absolute, no slash at the end.
    pub mount_path: String,
    /// PYTHONPATH of Flux's Python modules; `None`: found in the view.
    pub python_path: Option<String>,
    /// Working directory of the init container.
    pub working_dir: Option<String>,
    /// Resources of the init container.
    pub resources: Option<core::ResourceRequirements>,
    /// Security context of the init container.
    pub security_context: Option<core::SecurityContext>,
}

/// How Flux comes into the pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum ViewKind {
    /// An init container copies the view.
    Copy,
    /// The view is an image volume.
    Image,
    /// The application image has Flux itself.
    Disabled,
}

/// Broker configuration and command line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Broker {
    /// `broker.toml`.
    pub config: BrokerToml,
    /// All hosts in rank order.
    #[serde(serialize_with = "as_text")]
    pub hosts: Hostlist,
    /// R as JSON text; `None`: brokers discover their resources.
    pub resources: Option<String>,
    /// Attributes (`-S`) that do not depend on the size, in order.
    pub attributes: Vec<(String, String)>,
    /// Tree of brokers.
    #[serde(serialize_with = "as_text")]
    pub topology: Topology,
    /// Words for `--wrap` of `flux start`, comma separated.
    pub wrap: Option<String>,
    /// Environment of the brokers and everything they run.
    pub environment: BTreeMap<String, String>,
    /// Rank of this cluster's index 0, and where a follower finds its parent when that is not in this cluster.
    pub leader: Leader,
    /// What a follower does after an orderly end.
    pub follower_end: FollowerEnd,
    /// Whether there is a socket for sidecars.
    pub socket: bool,
    /// Saved state.
    pub archive: Option<String>,
    /// Only sched-simple, also where Fluxion is installed.
    pub simple_scheduler: bool,
}

/// The text of `broker.toml`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum BrokerToml {
    /// Made by us.
    #[serde(serialize_with = "as_toml")]
    Generated(Box<BrokerConfig>),
    /// Written by the user.
    Written(String),
}

/// Where the leader is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Leader {
    /// Index 0 of this cluster is rank 0.
    Here,
    /// The leader of another cluster, to which this one bursts.
    Elsewhere {
        /// IP address or host name.
        address: String,
        /// Port.
        port: u16,
    },
}

/// What the leader runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Program {
    /// Nothing: the broker reads the terminal (`flux broker` with a shell).
    Shell,
    /// Nothing: `broker.rc2_none`.
    None,
    /// Flux's diagnostic commands, then sleep.
    Diagnostics,
    /// One job: `flux submit … --watch`.
    Submit(Submission),
    /// A batch script handed to `flux batch`.
    Batch {
        /// The script.
        script: String,
        /// How to submit it.
        submission: Submission,
    },
    /// A program that launches Flux jobs itself.
    Launcher(Words),
}

/// How a job is submitted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Submission {
    /// Words of the submit command (`flux submit`).
    pub submit: Vec<String>,
    /// `-N` and `-n`, for the size of now.
    pub nodes: Vec<String>,
    /// Flags after them.
    pub flags: Vec<String>,
    /// What to run (empty for a batch).
    pub command: Words,
}

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Words {
    /// An argument vector.
    Vector(Vec<String>),
    /// Shell text, for `/bin/bash -c`.
    Shell(String),
    /// The script file of the container.
    Script,
}

/// The container that runs Flux.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Runner {
    /// Its position in the spec: part of its script's name.
    pub index: usize,
    /// Kubernetes' part of it: image, environment, mounts of user volumes, ports, resources, security context, life cycle.
    pub container: core::Container,
    /// Shell around the main command.
    pub hooks: Hooks,
    /// The script of `commands.script`, its `\$` resolved.
    pub script: Option<String>,
    /// Words put before the command.
    pub prefix: Vec<String>,
    /// Who runs Flux.
    pub user: User,
    /// Folder for output of batch jobs.
    pub logs: String,
    /// `cores` as written, exported to the scripts.
    pub cores: Option<u32>,
    /// Mode of the certificate's file in its volume, given what is known of the user (F §5.5).
    pub certificate_mode: i32,
}

/// Who runs Flux.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum User {
    /// The container's own user.
    Container,
    /// This one, made known by a passwd entry.
    Named {
        /// Name.
        name: String,
        /// User id, and group id.
        uid: u32,
    },
}

/// Shell around the main command, in the order in which it runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Hooks {
    /// First thing.
    pub init: Option<String>,
    /// After `asFlux` is set.
    pub pre_command: Option<String>,
    /// On leader and followers.
    pub pre: Option<String>,
    /// On the leader.
    pub broker_pre: Option<String>,
    /// On followers.
    pub worker_pre: Option<String>,
    /// In containers that do not run Flux.
    pub service_pre: Option<String>,
    /// Last thing.
    pub post: Option<String>,
}

/// A container of the cluster's pods that does not run Flux.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sidecar {
    /// Its position in the spec.
    pub index: usize,
    /// Kubernetes' part of it.
    pub container: core::Container,
    /// Native sidecar (`restartPolicy: Always` init container) rather than an ordinary container.
    pub native: bool,
    /// What runs in it.
    pub entrypoint: Entrypoint,
    /// Whether it waits for the broker's socket first.
    pub wait_for_socket: bool,
    /// Ports that get a Service.
    pub service_ports: Vec<u16>,
}

/// A container of the services Pod.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServiceContainer {
    /// Its position in the spec.
    pub index: usize,
    /// Kubernetes' part of it.
    pub container: core::Container,
    /// What runs in it.
    pub entrypoint: Entrypoint,
}

/// What runs in a container that does not run Flux.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Entrypoint {
    /// The image's own.
    Image,
    /// This command in its place, without a script around it.
    Direct(Vec<String>),
    /// Our script around hooks and command.
    Wrapped {
        /// Hooks.
        hooks: Box<Hooks>,
        /// Command; `None`: only the hooks.
        command: Option<Words>,
        /// Words put before the command.
        prefix: Vec<String>,
        /// The script of `commands.script`.
        script: Option<String>,
    },
}

/// The certificate's Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// Name of the Secret.
    pub secret: String,
    /// Public key (Z85), if it is known at build time.
    pub public_key: Option<String>,
}

/// What the scripts print and how strict they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Logging {
    /// Only the output of the job.
    pub quiet: bool,
    /// A failing line of a hook ends the entrypoint.
    pub strict: bool,
    /// FLUXTIME lines.
    pub timed: bool,
}

/// Resources as Kubernetes counts them, by name.
pub type ResourceList = BTreeMap<String, Quantity>;

fn as_text<S: Serializer>(value: &impl std::fmt::Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

fn as_toml<S: Serializer>(config: &BrokerConfig, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&config.to_toml())
}
