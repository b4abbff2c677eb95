//! Pod level fields.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{Accepted, Container, SeccompProfile, Volume};

/// `v1.PodSpec`, as far as podlet implements it.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodSpec {
    /// Containers that make up the pod.
    pub containers: Vec<Container>,
    /// Init containers; with `restartPolicy: Always` a native sidecar (KEP 753).
    #[serde(default)]
    pub init_containers: Vec<Container>,
    /// Volumes.
    #[serde(default)]
    pub volumes: Vec<Volume>,
    /// Host name; the pod's name when absent.
    pub hostname: Option<String>,
    /// Headless Service that the host name belongs to.
    pub subdomain: Option<String>,
    /// The FQDN as host name.
    #[serde(rename = "setHostnameAsFQDN")]
    pub set_hostname_as_fqdn: Option<bool>,
    /// `Always` (default), `OnFailure` or `Never`.
    #[serde(default)]
    pub restart_policy: RestartPolicy,
    /// Seconds between TERM and KILL.
    pub termination_grace_period_seconds: Option<u64>,
    /// Seconds that the pod may be active.
    pub active_deadline_seconds: Option<u64>,
    /// One PID namespace for all containers.
    #[serde(default)]
    pub share_process_namespace: bool,
    /// The machine's PID namespace.
    #[serde(default, rename = "hostPID")]
    pub host_pid: bool,
    /// The machine's IPC namespace.
    #[serde(default, rename = "hostIPC")]
    pub host_ipc: bool,
    /// The machine's network: refused, see [`PodSpec::unsupported_values`].
    #[serde(default)]
    pub host_network: bool,
    /// How `/etc/resolv.conf` is made.
    #[serde(default)]
    pub dns_policy: DnsPolicy,
    /// Additions to `/etc/resolv.conf`.
    #[serde(default)]
    pub dns_config: Option<DnsConfig>,
    /// Additions to `/etc/hosts`.
    #[serde(default)]
    pub host_aliases: Vec<HostAlias>,
    /// Users, groups, seccomp for all containers.
    #[serde(default)]
    pub security_context: PodSecurityContext,
    /// The service account whose token is asked for.
    pub service_account_name: Option<String>,
    /// Service variables in the environment.
    pub enable_service_links: Option<bool>,

    // Looked at before the pod is bound.
    #[serde(rename = "schedulingGates")]
    _scheduling_gates: Accepted,
    // One node: nothing to choose. The token volume is made by the API server.
    #[serde(rename = "nodeName")]
    _node_name: Accepted,
    #[serde(rename = "nodeSelector")]
    _node_selector: Accepted,
    #[serde(rename = "affinity")]
    _affinity: Accepted,
    #[serde(rename = "tolerations")]
    _tolerations: Accepted,
    #[serde(rename = "topologySpreadConstraints")]
    _topology_spread_constraints: Accepted,
    #[serde(rename = "schedulerName")]
    _scheduler_name: Accepted,
    #[serde(rename = "priority")]
    _priority: Accepted,
    #[serde(rename = "priorityClassName")]
    _priority_class_name: Accepted,
    #[serde(rename = "preemptionPolicy")]
    _preemption_policy: Accepted,
    #[serde(rename = "overhead")]
    _overhead: Accepted,
    #[serde(rename = "automountServiceAccountToken")]
    _automount: Accepted,
    #[serde(rename = "serviceAccount")]
    _service_account: Accepted,
    // Images are local, so there is nothing to log in to.
    #[serde(rename = "imagePullSecrets")]
    _image_pull_secrets: Accepted,
    #[serde(rename = "resources")]
    _resources: Accepted,
}

impl PodSpec {
    /// All containers, init containers first.
    pub fn all_containers(&self) -> impl Iterator<Item = (&'static str, usize, &Container)> {
        let init = self.init_containers.iter().enumerate().map(|(i, c)| ("initContainers", i, c));
        let main = self.containers.iter().enumerate().map(|(i, c)| ("containers", i, c));
        init.chain(main)
    }

    /// Seconds between TERM and KILL; 30 when unset, as in the API.
    pub fn grace_seconds(&self) -> u64 {
        self.termination_grace_period_seconds.unwrap_or(30)
    }

    /// Fields whose *value* is not implemented, as paths.
    pub(super) fn unsupported_values(&self) -> Vec<String> {
        let mut out = Vec::new();
        if self.host_network {
            out.push("spec.hostNetwork: true".to_owned());
        }
        if let Some(p) = &self.security_context.seccomp_profile {
            p.unsupported("spec.securityContext", &mut out);
        }
        for (list, i, c) in self.all_containers() {
            c.unsupported_values(&format!("spec.{list}[{i}]"), list == "initContainers", &mut out);
        }
        for (i, v) in self.volumes.iter().enumerate() {
            v.unsupported_values(&format!("spec.volumes[{i}]"), &mut out);
        }
        out
    }
}

/// `spec.restartPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[allow(missing_docs)]
pub enum RestartPolicy {
    #[default]
    Always,
    OnFailure,
    Never,
}

/// `spec.dnsPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Default)]
#[allow(missing_docs)]
pub enum DnsPolicy {
    #[default]
    ClusterFirst,
    ClusterFirstWithHostNet,
    Default,
    None,
}

/// `spec.dnsConfig`.
#[derive(Debug, Clone, Default, Deserialize)]
#[allow(missing_docs)]
pub struct DnsConfig {
    #[serde(default)]
    pub nameservers: Vec<String>,
    #[serde(default)]
    pub searches: Vec<String>,
    #[serde(default)]
    pub options: Vec<DnsOption>,
}

/// `spec.dnsConfig.options[]`.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs)]
pub struct DnsOption {
    pub name: String,
    pub value: Option<String>,
}

/// `spec.hostAliases[]`.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs)]
pub struct HostAlias {
    pub ip: String,
    #[serde(default)]
    pub hostnames: Vec<String>,
}

/// `spec.securityContext`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct PodSecurityContext {
    pub run_as_user: Option<u32>,
    pub run_as_group: Option<u32>,
    pub run_as_non_root: Option<bool>,
    pub fs_group: Option<u32>,
    #[serde(default)]
    pub supplemental_groups: Vec<u32>,
    pub seccomp_profile: Option<SeccompProfile>,
    #[serde(default)]
    pub sysctls: Vec<Sysctl>,
    // `OnRootMismatch` and `Always` differ only in speed.
    #[serde(rename = "fsGroupChangePolicy")]
    _fs_group_change_policy: Accepted,
}

/// `spec.securityContext.sysctls[]`.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs)]
pub struct Sysctl {
    pub name: String,
    pub value: String,
}

/// The part of `metadata` that podlet reads; the rest is the API server's.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Meta {
    pub name: String,
    #[serde(default)]
    pub namespace: String,
    #[serde(default)]
    pub uid: String,
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub annotations: BTreeMap<String, String>,
    pub deletion_timestamp: Option<String>,
    pub deletion_grace_period_seconds: Option<u64>,
}
