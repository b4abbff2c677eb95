//! The MiniCluster API (`flux-framework.org/v1alpha2`) as written, and the documented fields that the CRD has dropped.

use super::record::record;
use super::{Ignored, IntOrString, Map, Spanned};

/// A list as written.
pub type List<T> = Vec<Spanned<T>>;

record! {
    /// A MiniCluster document.
    pub struct Document {
        /// Always `flux-framework.org/v1alpha2`.
        "apiVersion" api_version: String [Required],
        /// Always `MiniCluster`.
        "kind" kind: String [Required],
        /// Name, namespace, labels and annotations.
        "metadata" metadata: Metadata [Required],
        /// What the cluster is.
        "spec" spec: MiniClusterSpec [Required],
        /// Written by the operator; not used.
        "status" status: Ignored,
    }
}

record! {
    /// `metadata` of a MiniCluster.
    pub struct Metadata {
        /// Name of the MiniCluster; also of its Job, its headless Service and the container that runs Flux. `generateName`
        /// cannot take its place.
        "name" name: String [Required],
        /// Namespace; objects carry none when it is left out and no setting names one.
        "namespace" namespace: String,
        /// Labels of the MiniCluster; not passed on.
        "labels" labels: Map<String>,
        /// Annotations of the MiniCluster; `flux-gen.dev/<setting>` sets a setting, the others are not passed on.
        "annotations" annotations: Map<String>,
        /// Not used: what flux-gen writes needs a fixed name.
        "generateName" generate_name: Ignored,
        /// Not used.
        "finalizers" finalizers: Ignored,
        /// Not used.
        "ownerReferences" owner_references: Ignored,
        /// Written by an API server; not used.
        "creationTimestamp" creation_timestamp: Ignored,
        /// Written by an API server; not used.
        "deletionTimestamp" deletion_timestamp: Ignored,
        /// Written by an API server; not used.
        "deletionGracePeriodSeconds" deletion_grace_period_seconds: Ignored,
        /// Written by an API server; not used.
        "generation" generation: Ignored,
        /// Written by an API server; not used.
        "managedFields" managed_fields: Ignored,
        /// Written by an API server; not used.
        "resourceVersion" resource_version: Ignored,
        /// Written by an API server; not used.
        "selfLink" self_link: Ignored,
        /// Written by an API server; not used.
        "uid" uid: Ignored,
    }
}

record! {
    /// `spec` of a MiniCluster.
    pub struct MiniClusterSpec {
        /// Number of pods, and so of Flux brokers. Default 1.
        "size" size: i32,
        /// Fewest brokers that must be online before work starts (broker.quorum). Default: size.
        "minSize" min_size: i32,
        /// Most pods the cluster can be resized to; that many hosts are registered. Default: size.
        "maxSize" max_size: i32,
        /// Tasks of the main command: 0 gives `-N size`, at least `size` gives `-N size -n tasks`, fewer `-n tasks`. Default 1.
        "tasks" tasks: i32,
        /// Start the broker with no program; people attach to it. Default false.
        "interactive" interactive: bool,
        /// Older field: the command launches Flux jobs itself, so it is not wrapped in `flux submit`. Now `containers[].launcher`.
        "launcher" launcher: bool [Older],
        /// Labels of the Job (not of its pods).
        "jobLabels" job_labels: Map<String>,
        /// Running time after which the Job is ended, in seconds. Default 31500000.
        "deadlineSeconds" deadline_seconds: i64,
        /// How many pod failures the Job survives.
        "backoffLimit" backoff_limit: i32,
        /// In the operator: delete pods and storage when done. Job controllers of Kubernetes do this.
        "cleanup" cleanup: bool,
        /// Containers of a pod share one process namespace. Default false.
        "shareProcessNamespace" share_process_namespace: bool,
        /// Containers of every pod; exactly one runs Flux.
        "containers" containers: List<Container> [Required],
        /// Containers of one extra Pod beside the cluster (`<name>-services`).
        "services" services: List<Container>,
        /// Flux: view, broker, submission.
        "flux" flux: Flux,
        /// What the entrypoint prints, and whether a failing line ends it.
        "logging" logging: Logging,
        /// Network of the cluster.
        "network" network: Network,
        /// Saved state of the Flux instance.
        "archive" archive: Archive,
        /// Attributes of every pod.
        "pod" pod: Pod,
    }
}

record! {
    /// A container of `containers` or `services`.
    pub struct Container {
        /// Image reference.
        "image" image: String,
        /// Name of the container. Needed for every container that does not run Flux.
        "name" name: String,
        /// Pull secret (by name) for the image.
        "imagePullSecret" image_pull_secret: String,
        /// Pull policy: Always, IfNotPresent or Never.
        "imagePullPolicy" image_pull_policy: String,
        /// Always pull the image; beats `imagePullPolicy`. Default false.
        "pullAlways" pull_always: bool,
        /// Working directory.
        "workingDir" working_dir: String,
        /// What to run; without it the cluster is interactive. May use shell syntax.
        "command" command: String,
        /// Whether this container runs Flux. The only container always does.
        "runFlux" run_flux: bool,
        /// The command launches Flux jobs itself: not wrapped in `flux submit`. Default false.
        "launcher" launcher: bool,
        /// Each line of the command is one job of a `flux batch`. Default false.
        "batch" batch: bool,
        /// With `batch`: the command is a whole batch script as it stands. Default false.
        "batchRaw" batch_raw: bool,
        /// Folder for output and error files of batch jobs. Default /tmp/fluxout.
        "logs" logs: String,
        /// Older field: run Flux's diagnostic commands and sleep, instead of the command. Default false.
        "diagnostics" diagnostics: bool [Older],
        /// Do not replace the image's entrypoint (containers that do not run Flux). Default false.
        "noWrapEntrypoint" no_wrap_entrypoint: bool,
        /// Older field: cores per node, for R and exported as `cores`.
        "cores" cores: i32 [Older],
        /// Older field: shell run early on leader and followers, after `asFlux` is set.
        "preCommand" pre_command: String [Older],
        /// Older field: user that runs Flux.
        "fluxUser" flux_user: FluxUser [Older],
        /// Older spelling of `fluxUser`.
        "fluxuser" fluxuser: FluxUser [Older],
        /// Environment variables.
        "environment" environment: Map<String>,
        /// Environment variables from existing Secrets, by variable name.
        "secrets" secrets: Map<SecretKey>,
        /// Container ports.
        "ports" ports: List<i32>,
        /// Existing volumes, by name.
        "volumes" volumes: Map<Volume>,
        /// Limits and requests.
        "resources" resources: Resources,
        /// Shell around the main command.
        "commands" commands: Commands,
        /// Life-cycle hooks.
        "lifeCycle" life_cycle: LifeCycle,
        /// Security context of the container (Kubernetes).
        "securityContext" security_context: SecurityContext,
    }
}

record! {
    /// Hooks: shell, run in the order init, preCommand, pre, brokerPre or workerPre, command, post.
    pub struct Commands {
        /// First thing in the entrypoint.
        "init" init: String,
        /// After the environment is set, on leader and followers.
        "pre" pre: String,
        /// On the leader only, before its broker.
        "brokerPre" broker_pre: String,
        /// On followers only, before their broker.
        "workerPre" worker_pre: String,
        /// Older spelling of `brokerPre`.
        "preBroker" pre_broker: String [Older],
        /// Older spelling of `workerPre`.
        "preWorker" pre_worker: String [Older],
        /// Only in containers that do not run Flux, before their command.
        "servicePre" service_pre: String,
        /// Words put before the command (a wrapper such as `fusion`).
        "prefix" prefix: String,
        /// A script of one's own, run instead of a command. `\$` before a letter, `_` or `{` means `$`.
        "script" script: String,
        /// Last thing in the entrypoint.
        "post" post: String,
        /// Older field: run Flux as root (true) or as the Flux user (false, written explicitly).
        "runFluxAsRoot" run_flux_as_root: bool [Older],
    }
}

record! {
    /// The user that runs Flux.
    pub struct FluxUser {
        /// User id. Default 1000.
        "uid" uid: i64,
        /// User name. Default flux.
        "name" name: String,
    }
}

record! {
    /// A key of an existing Secret.
    pub struct SecretKey {
        /// Name of the Secret.
        "name" name: String [Required],
        /// Key of the Secret whose value is taken.
        "key" key: String [Required],
    }
}

record! {
    /// An existing volume; exactly one source.
    pub struct Volume {
        /// Where to mount it.
        "path" path: String,
        /// Source: a folder of the node.
        "hostPath" host_path: String,
        /// Source: a PersistentVolumeClaim, by name.
        "claimName" claim_name: String,
        /// Source: a Secret, by name.
        "secretName" secret_name: String,
        /// Source: a ConfigMap, by name.
        "configMapName" config_map_name: String,
        /// Keys of a ConfigMap or Secret and the paths of their files.
        "items" items: Map<String>,
        /// Source: an empty folder.
        "emptyDir" empty_dir: bool,
        /// Medium of the empty folder: Memory, or nothing for the node's disk.
        "emptyDirMedium" empty_dir_medium: String,
        /// Size limit of the empty folder (quantity).
        "emptyDirSizeLimit" empty_dir_size_limit: String,
        /// Source: a CSI driver, by name.
        "csiDriver" csi_driver: String,
        /// Attributes for the CSI driver.
        "csiDriverAttributes" csi_driver_attributes: Map<String>,
        /// Mount it read-only. Default false.
        "readOnly" read_only: bool,
    }
}

record! {
    /// Limits and requests of a container.
    pub struct Resources {
        /// Limits by resource name.
        "limits" limits: Map<IntOrString>,
        /// Requests by resource name.
        "requests" requests: Map<IntOrString>,
    }
}

record! {
    /// Life-cycle hooks: each a shell command.
    pub struct LifeCycle {
        /// After the container started.
        "postStartExec" post_start_exec: String,
        /// Before the container stops.
        "preStopExec" pre_stop_exec: String,
    }
}

record! {
    /// `flux`: view, broker, submission.
    pub struct Flux {
        /// Architecture of the view: `arm` for 64-bit ARM; empty for x86-64.
        "arch" arch: String,
        /// The Flux view.
        "container" container: FluxContainer,
        /// Words in place of `flux submit`.
        "submitCommand" submit_command: String,
        /// Arguments for `--wrap` of `flux start`, comma separated.
        "wrap" wrap: String,
        /// Flags for `flux submit` and `flux batch`.
        "optionFlags" option_flags: String,
        /// Wait per connection attempt (tbon.connect_timeout), an FSD string; empty: the broker's own. Default 5s.
        "connectTimeout" connect_timeout: String,
        /// Log level of the broker, 0 to 7. Default 6.
        "logLevel" log_level: i32,
        /// Tree of brokers (tbon.topo): kary:K, binomial, mincrit[:K] or custom. Default flat.
        "topology" topology: String,
        /// Only the leader is reachable by name. Default false.
        "minimalService" minimal_service: bool,
        /// No socket for sidecars. Default false.
        "disableSocket" disable_socket: bool,
        /// Sidecars do not wait for the socket. Default false.
        "noWaitSocket" no_wait_socket: bool,
        /// Followers end when the leader ends. Default false.
        "completeWorkers" complete_workers: bool,
        /// The whole broker configuration (TOML), in place of the generated one.
        "brokerConfig" broker_config: String,
        /// A CURVE certificate, as written by `flux keygen`. Secret: prefer the certificate store.
        "curveCert" curve_cert: String [Secret],
        /// Without effect.
        "mungeSecret" munge_secret: String,
        /// Environment of the brokers and everything they run.
        "environment" environment: Map<String>,
        /// Scheduler.
        "scheduler" scheduler: Scheduler,
        /// Bursting to and from other clusters.
        "bursting" bursting: Bursting,
        /// Older place of `bursting.leadBroker`.
        "leadBroker" lead_broker: LeadBroker [Older],
    }
}

record! {
    /// The Flux view: an image with Flux in a tree, brought into the application's pods.
    pub struct FluxContainer {
        /// Image of the view. Default ghcr.io/converged-computing/flux-view-ubuntu:tag-noble.
        "image" image: String,
        /// Name of the init container and of the view's volume. Default flux-view.
        "name" name: String,
        /// No view: the application image has Flux. Default false.
        "disable" disable: bool,
        /// Where the view is mounted. Default /mnt/flux.
        "mountPath" mount_path: String,
        /// PYTHONPATH for Flux's Python modules, if the view's own is not right.
        "pythonPath" python_path: String,
        /// Pull secret (by name) for the image.
        "imagePullSecret" image_pull_secret: String,
        /// Always pull the image. Default false.
        "pullAlways" pull_always: bool,
        /// Working directory of the init container.
        "workingDir" working_dir: String,
        /// Limits and requests of the init container.
        "resources" resources: Resources,
        /// Security context of the init container (Kubernetes).
        "securityContext" security_context: SecurityContext,
    }
}

record! {
    /// Scheduler of the Flux instance.
    pub struct Scheduler {
        /// Use sched-simple rather than Fluxion. Default false.
        "simple" simple: bool,
        /// Fluxion's queue policy: fcfs, easy, hybrid or conservative. Default fcfs.
        "queuePolicy" queue_policy: String,
    }
}

record! {
    /// Bursting: other clusters that join this instance.
    pub struct Bursting {
        /// Clusters that may join.
        "clusters" clusters: List<BurstedCluster>,
        /// Host list in place of the generated one, in rank order.
        "hostlist" hostlist: String,
        /// The leader of another cluster that this one joins.
        "leadBroker" lead_broker: LeadBroker,
    }
}

record! {
    /// A cluster that may join.
    pub struct BurstedCluster {
        /// Name; its hosts are `<name>-<index>`. Default burst-<position>.
        "name" name: String,
        /// Number of hosts. Default: the size of this cluster.
        "size" size: i32,
    }
}

record! {
    /// The leader of another cluster that this one joins.
    pub struct LeadBroker {
        /// Name of that MiniCluster.
        "name" name: String [Required],
        /// Address at which its leader is reached: IP or host name.
        "address" address: String [Required],
        /// Port at which its leader is reached. Default 8050.
        "port" port: i32,
        /// Size of that MiniCluster. Default: the size of this one.
        "size" size: i32,
        /// Older place of `bursting.hostlist`.
        "hostlist" hostlist: String [Older],
    }
}

record! {
    /// What the entrypoint prints, and whether a failing line ends it.
    pub struct Logging {
        /// Only the output of the job. Default false.
        "quiet" quiet: bool,
        /// A failing line of the entrypoint ends it with its exit code. Default true, as documented.
        "strict" strict: bool,
        /// Print FLUXTIME lines. Default false.
        "timed" timed: bool,
        /// `-vvv` for submission. Default false.
        "debug" debug: bool,
        /// Log ZeroMQ connections. Default false.
        "zeromq" zeromq: bool,
    }
}

record! {
    /// Network of the cluster.
    pub struct Network {
        /// Name of the headless Service. Default: the cluster's name.
        "headlessName" headless_name: String,
        /// No affinity terms: pods may share nodes. Default false.
        "disableAffinity" disable_affinity: bool,
    }
}

record! {
    /// Saved state of the Flux instance.
    pub struct Archive {
        /// File to restore from, if it is there, and to save to at the end.
        "path" path: String,
    }
}

record! {
    /// Attributes of every pod of the cluster.
    pub struct Pod {
        /// Labels.
        "labels" labels: Map<String>,
        /// Annotations.
        "annotations" annotations: Map<String>,
        /// Node labels that a pod needs.
        "nodeSelector" node_selector: Map<String>,
        /// Node labels and the values of which one must match (required node affinity, operator In).
        "nodeAffinity" node_affinity: Map<List<String>>,
        /// Tolerations (Kubernetes).
        "tolerations" tolerations: List<Toleration>,
        /// Scheduler to use.
        "schedulerName" scheduler_name: String,
        /// Service account.
        "serviceAccountName" service_account_name: String,
        /// Mount the service account's token. Default false.
        "automountServiceAccountToken" automount_service_account_token: bool,
        /// Restart policy: Never or OnFailure.
        "restartPolicy" restart_policy: String,
        /// Runtime class.
        "runtimeClassName" runtime_class_name: String,
        /// DNS policy: ClusterFirst, ClusterFirstWithHostNet, Default or None.
        "dnsPolicy" dns_policy: String,
        /// Use the node's IPC namespace. Default false.
        "hostIPC" host_ipc: bool,
        /// Use the node's process namespace. Default false.
        "hostPID" host_pid: bool,
        /// Resources of the whole pod.
        "resources" resources: Map<IntOrString>,
        /// Security context of the pod (Kubernetes).
        "securityContext" security_context: PodSecurityContext,
    }
}

record! {
    /// Kubernetes `Toleration`.
    pub struct Toleration {
        /// Taint key; empty with Exists matches all.
        "key" key: String,
        /// Exists or Equal. Default Equal.
        "operator" operator: String,
        /// Taint value.
        "value" value: String,
        /// NoSchedule, PreferNoSchedule, NoExecute; empty matches all.
        "effect" effect: String,
        /// Seconds to stay on a node with a NoExecute taint.
        "tolerationSeconds" toleration_seconds: i64,
    }
}

record! {
    /// Kubernetes `SecurityContext` of a container.
    pub struct SecurityContext {
        /// Whether a process may gain more privileges than its parent.
        "allowPrivilegeEscalation" allow_privilege_escalation: bool,
        /// Linux capabilities.
        "capabilities" capabilities: Capabilities,
        /// Run privileged.
        "privileged" privileged: bool,
        /// Kind of /proc mount.
        "procMount" proc_mount: String,
        /// Read-only root file system.
        "readOnlyRootFilesystem" read_only_root_filesystem: bool,
        /// Group id.
        "runAsGroup" run_as_group: i64,
        /// Refuse to run as root.
        "runAsNonRoot" run_as_non_root: bool,
        /// User id.
        "runAsUser" run_as_user: i64,
        /// SELinux labels.
        "seLinuxOptions" se_linux_options: SeLinuxOptions,
        /// Seccomp profile.
        "seccompProfile" seccomp_profile: SeccompProfile,
        /// Windows options.
        "windowsOptions" windows_options: WindowsOptions,
    }
}

record! {
    /// Kubernetes `Capabilities`.
    pub struct Capabilities {
        /// Capabilities to add.
        "add" add: List<String>,
        /// Capabilities to drop.
        "drop" drop: List<String>,
    }
}

record! {
    /// Kubernetes `SELinuxOptions`.
    pub struct SeLinuxOptions {
        /// SELinux level.
        "level" level: String,
        /// SELinux role.
        "role" role: String,
        /// SELinux type.
        "type" type_: String,
        /// SELinux user.
        "user" user: String,
    }
}

record! {
    /// Kubernetes `SeccompProfile`.
    pub struct SeccompProfile {
        /// Kind of profile: Unconfined, RuntimeDefault or Localhost.
        "type" type_: String [Required],
        /// Profile file for Localhost.
        "localhostProfile" localhost_profile: String,
    }
}

record! {
    /// Kubernetes `WindowsSecurityContextOptions`.
    pub struct WindowsOptions {
        /// Credential spec.
        "gmsaCredentialSpec" gmsa_credential_spec: String,
        /// Name of the credential spec.
        "gmsaCredentialSpecName" gmsa_credential_spec_name: String,
        /// Host process container.
        "hostProcess" host_process: bool,
        /// User name.
        "runAsUserName" run_as_user_name: String,
    }
}

record! {
    /// Kubernetes `PodSecurityContext`.
    pub struct PodSecurityContext {
        /// Group that owns volumes.
        "fsGroup" fs_group: i64,
        /// OnRootMismatch or Always.
        "fsGroupChangePolicy" fs_group_change_policy: String,
        /// Group id.
        "runAsGroup" run_as_group: i64,
        /// Refuse to run as root.
        "runAsNonRoot" run_as_non_root: bool,
        /// User id.
        "runAsUser" run_as_user: i64,
        /// SELinux labels.
        "seLinuxOptions" se_linux_options: SeLinuxOptions,
        /// Seccomp profile.
        "seccompProfile" seccomp_profile: SeccompProfile,
        /// Further groups of the first process.
        "supplementalGroups" supplemental_groups: List<i64>,
        /// Kernel parameters.
        "sysctls" sysctls: List<Sysctl>,
        /// Windows options.
        "windowsOptions" windows_options: WindowsOptions,
    }
}

record! {
    /// Kubernetes `Sysctl`.
    pub struct Sysctl {
        /// Name of the kernel parameter, such as `net.core.somaxconn`.
        "name" name: String [Required],
        /// What to set it to, in quotes.
        "value" value: String [Required],
    }
}
