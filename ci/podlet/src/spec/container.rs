//! Container level fields.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::Accepted;

/// `v1.Container`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Container {
    pub name: String,
    #[serde(default)]
    pub image: String,
    pub image_pull_policy: Option<String>,
    #[serde(default)]
    pub command: Vec<String>,
    #[serde(default)]
    pub args: Vec<String>,
    pub working_dir: Option<String>,
    #[serde(default)]
    pub env: Vec<EnvVar>,
    #[serde(default)]
    pub env_from: Vec<EnvFrom>,
    #[serde(default)]
    pub volume_mounts: Vec<VolumeMount>,
    /// Only `Always`, only on init containers: a native sidecar.
    pub restart_policy: Option<String>,
    #[serde(default)]
    pub security_context: SecurityContext,
    pub lifecycle: Option<Lifecycle>,
    pub startup_probe: Option<Probe>,
    pub liveness_probe: Option<Probe>,
    pub readiness_probe: Option<Probe>,
    #[serde(default)]
    pub resources: Resources,
    #[serde(default)]
    pub stdin: bool,
    #[serde(default)]
    pub tty: bool,
    pub termination_message_path: Option<String>,
    pub termination_message_policy: Option<String>,
    #[serde(default)]
    pub ports: Vec<ContainerPort>,

    // Nobody attaches, so "once" never happens.
    #[serde(rename = "stdinOnce")]
    _stdin_once: Accepted,
}

impl Container {
    /// An init container that runs beside the others until they end (KEP 753).
    pub fn is_sidecar(&self) -> bool {
        self.restart_policy.as_deref() == Some("Always")
    }

    pub(super) fn unsupported_values(&self, at: &str, init: bool, out: &mut Vec<String>) {
        if let Some(p) = &self.restart_policy
            && !(init && p == "Always")
        {
            out.push(format!("{at}.restartPolicy: {p}"));
        }
        if let Some(p) = &self.security_context.seccomp_profile {
            p.unsupported(&format!("{at}.securityContext"), out);
        }
        let probes = [
            ("startupProbe", &self.startup_probe),
            ("livenessProbe", &self.liveness_probe),
            ("readinessProbe", &self.readiness_probe),
        ];
        for (name, probe) in probes {
            if probe.as_ref().is_some_and(|p| p.handler_count() != 1) {
                out.push(format!("{at}.{name}: needs one of exec, tcpSocket, httpGet"));
            }
        }
        for (i, m) in self.volume_mounts.iter().enumerate() {
            if m.mount_propagation.as_deref().is_some_and(|p| p != "None") {
                out.push(format!("{at}.volumeMounts[{i}].mountPropagation"));
            }
            if m.recursive_read_only.as_deref().is_some_and(|p| p != "Disabled") {
                out.push(format!("{at}.volumeMounts[{i}].recursiveReadOnly"));
            }
        }
        for (i, p) in self.ports.iter().enumerate() {
            if p.host_port.is_some_and(|p| p != 0) {
                out.push(format!("{at}.ports[{i}].hostPort"));
            }
        }
    }
}

/// `ports[]`: names are needed by probes, the rest informs.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct ContainerPort {
    pub name: Option<String>,
    pub container_port: u16,
    pub host_port: Option<u16>,
    #[serde(rename = "protocol")]
    _protocol: Accepted,
}

/// `env[]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct EnvVar {
    pub name: String,
    #[serde(default)]
    pub value: String,
    pub value_from: Option<EnvSource>,
}

/// `env[].valueFrom`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct EnvSource {
    pub field_ref: Option<FieldRef>,
    pub config_map_key_ref: Option<KeyRef>,
    pub secret_key_ref: Option<KeyRef>,
}

/// A field of the pod itself.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct FieldRef {
    pub field_path: String,
    #[serde(rename = "apiVersion")]
    _api_version: Accepted,
}

/// A key of a ConfigMap or Secret.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs)]
pub struct KeyRef {
    #[serde(default)]
    pub name: String,
    pub key: String,
    #[serde(default)]
    pub optional: bool,
}

/// `envFrom[]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct EnvFrom {
    #[serde(default)]
    pub prefix: String,
    pub config_map_ref: Option<MapRef>,
    pub secret_ref: Option<MapRef>,
}

/// A whole ConfigMap or Secret.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs)]
pub struct MapRef {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub optional: bool,
}

/// `volumeMounts[]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct VolumeMount {
    pub name: String,
    pub mount_path: String,
    #[serde(default)]
    pub read_only: bool,
    pub sub_path: Option<String>,
    pub sub_path_expr: Option<String>,
    pub mount_propagation: Option<String>,
    pub recursive_read_only: Option<String>,
}

/// Container `securityContext`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct SecurityContext {
    pub run_as_user: Option<u32>,
    pub run_as_group: Option<u32>,
    pub run_as_non_root: Option<bool>,
    #[serde(default)]
    pub privileged: bool,
    #[serde(default)]
    pub read_only_root_filesystem: bool,
    pub allow_privilege_escalation: Option<bool>,
    #[serde(default)]
    pub capabilities: Capabilities,
    pub seccomp_profile: Option<SeccompProfile>,
}

/// `capabilities`.
#[derive(Debug, Clone, Default, Deserialize)]
#[allow(missing_docs)]
pub struct Capabilities {
    #[serde(default)]
    pub add: Vec<String>,
    #[serde(default)]
    pub drop: Vec<String>,
}

/// `seccompProfile`.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs)]
pub struct SeccompProfile {
    pub r#type: String,
}

impl SeccompProfile {
    pub(super) fn unsupported(&self, at: &str, out: &mut Vec<String>) {
        if !matches!(self.r#type.as_str(), "Unconfined" | "RuntimeDefault") {
            out.push(format!("{at}.seccompProfile.type: {}", self.r#type));
        }
    }
}

/// `resources`: quantities as written.
#[derive(Debug, Clone, Default, Deserialize)]
#[allow(missing_docs)]
pub struct Resources {
    #[serde(default)]
    pub limits: BTreeMap<String, serde_json::Value>,
    #[serde(default)]
    pub requests: BTreeMap<String, serde_json::Value>,
}

/// `lifecycle`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Lifecycle {
    pub post_start: Option<Hook>,
    pub pre_stop: Option<Hook>,
}

/// A life cycle hook.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Hook {
    pub exec: Option<Exec>,
    pub sleep: Option<Sleep>,
    pub http_get: Option<HttpGet>,
}

/// `exec`.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs)]
pub struct Exec {
    #[serde(default)]
    pub command: Vec<String>,
}

/// `sleep`.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs)]
pub struct Sleep {
    pub seconds: u64,
}

/// `httpGet`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct HttpGet {
    pub port: Port,
    pub path: Option<String>,
    pub host: Option<String>,
    pub scheme: Option<String>,
    #[serde(default)]
    pub http_headers: Vec<HttpHeader>,
}

/// `httpHeaders[]`.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs)]
pub struct HttpHeader {
    pub name: String,
    pub value: String,
}

/// A number, or the name of a container port.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
#[allow(missing_docs)]
pub enum Port {
    Number(u16),
    Name(String),
}

impl Port {
    /// The number, looked up among the container's ports when it is a name.
    pub fn number(&self, container: &Container) -> Option<u16> {
        match self {
            Port::Number(n) => Some(*n),
            Port::Name(name) => {
                container.ports.iter().find(|p| p.name.as_deref() == Some(name.as_str())).map(|p| p.container_port)
            }
        }
    }
}

/// `tcpSocket`.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs)]
pub struct TcpSocket {
    pub port: Port,
    pub host: Option<String>,
}

/// A probe.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Probe {
    pub exec: Option<Exec>,
    pub tcp_socket: Option<TcpSocket>,
    pub http_get: Option<HttpGet>,
    #[serde(default)]
    pub initial_delay_seconds: u64,
    pub period_seconds: Option<u64>,
    pub timeout_seconds: Option<u64>,
    pub success_threshold: Option<u32>,
    pub failure_threshold: Option<u32>,
    pub termination_grace_period_seconds: Option<u64>,
}

impl Probe {
    fn handler_count(&self) -> usize {
        usize::from(self.exec.is_some()) + usize::from(self.tcp_socket.is_some()) + usize::from(self.http_get.is_some())
    }
}
