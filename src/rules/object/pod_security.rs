//! What a namespace that enforces a level of the Pod Security Standards refuses
//! (`k8s.io/pod-security-admission/policy`, the checks of the target version).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Container, LifecycleHandler, PodSecurityContext, PodSpec, Probe, SecurityContext, Volume,
};

use super::ObjectProblem;
use super::check::{Check, Path};
use crate::model::hardening::PodSecurity;
use crate::model::kubernetes::{Feature, KubernetesVersion};
use crate::object::Object;

const APP_ARMOR_PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";

/// Kernel parameters that both levels take on every supported version.
const SAFE_SYSCTLS: &[&str] = &[
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_syncookies",
];
const KEEPALIVE_SYSCTLS: &[&str] = &[
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
];
const BUFFER_SYSCTLS: &[&str] = &["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"];

/// Everything in the pods of these objects that the level refuses.
#[must_use]
pub fn pod_security(objects: &[Object], level: PodSecurity, target: KubernetesVersion) -> Vec<ObjectProblem> {
    let mut problems = Vec::new();
    if level == PodSecurity::None {
        return problems;
    }
    for object in objects {
        let spec = Path::root("spec");
        let template = spec.key("template");
        let (at, annotations, pod) = match object {
            Object::Pod(pod) => (spec, pod.metadata.annotations.as_ref(), pod.spec.as_ref()),
            Object::Job(job) => {
                let template_of_job = job.spec.as_ref().map(|spec| &spec.template);
                let annotations =
                    template_of_job.and_then(|t| t.metadata.as_ref()).and_then(|m| m.annotations.as_ref());
                (template.key("spec"), annotations, template_of_job.and_then(|t| t.spec.as_ref()))
            }
            _ => continue,
        };
        let Some(pod) = pod else { continue };
        let mut judge = Judge { check: Check::new(object, target), level, pod };
        judge.annotations(annotations);
        judge.pod(&at);
        problems.extend(judge.check.into_problems());
    }
    problems
}

struct Judge<'a> {
    check: Check,
    level: PodSecurity,
    pod: &'a PodSpec,
}

impl Judge<'_> {
    fn refuse(&mut self, at: &Path, what: &str) {
        let level = self.level.title();
        self.check.problem(at, format!("{what}, which the pod security level {level} does not allow"));
    }

    fn restricted(&self) -> bool {
        self.level == PodSecurity::Restricted
    }

    /// Root of a user namespace is nobody on the node.
    fn own_users(&self) -> bool {
        self.pod.host_users == Some(false) && self.check.target.has(Feature::PolicyUserNamespaces)
    }

    fn annotations(&mut self, annotations: Option<&BTreeMap<String, String>>) {
        for (key, value) in annotations.into_iter().flatten().filter(|(key, _)| key.starts_with(APP_ARMOR_PREFIX)) {
            if !value.is_empty() && value != "runtime/default" && !value.starts_with("localhost/") {
                self.refuse(&Path::root("metadata.annotations").entry(key), &format!("is `{value}`"));
            }
        }
    }

    fn pod(&mut self, at: &Path) {
        let pod = self.pod;
        for (field, on) in [("hostNetwork", pod.host_network), ("hostPID", pod.host_pid), ("hostIPC", pod.host_ipc)] {
            if on == Some(true) {
                self.refuse(&at.key(field), "is true");
            }
        }
        for (index, volume) in pod.volumes.iter().flatten().enumerate() {
            self.volume(&at.key("volumes").at(index), volume);
        }
        if let Some(context) = &pod.security_context {
            self.pod_context(&at.key("securityContext"), context);
        }
        let init = pod.init_containers.iter().flatten().enumerate().map(|(index, c)| ("initContainers", index, c));
        let containers = pod.containers.iter().enumerate().map(|(index, c)| ("containers", index, c));
        for (field, index, container) in init.chain(containers) {
            self.container(&at.key(field).at(index), container);
        }
    }

    fn volume(&mut self, at: &Path, volume: &Volume) {
        if volume.host_path.is_some() {
            self.refuse(&at.key("hostPath"), "is a folder of the node");
        } else if self.restricted() && !is_portable(volume) {
            self.refuse(at, &format!("`{}` is a volume of a kind that belongs into a PersistentVolume", volume.name));
        }
    }

    fn pod_context(&mut self, at: &Path, context: &PodSecurityContext) {
        for (index, sysctl) in context.sysctls.iter().flatten().enumerate() {
            if !takes_sysctl(self.check.target, &sysctl.name) {
                self.refuse(&at.key("sysctls").at(index), &format!("sets `{}`", sysctl.name));
            }
        }
        let host_process = context.windows_options.as_ref().and_then(|w| w.host_process);
        self.windows(at, host_process);
        let seccomp = context.seccomp_profile.as_ref().map(|profile| profile.type_.as_str());
        let app_armor = context.app_armor_profile.as_ref().map(|profile| profile.type_.as_str());
        self.profiles(at, seccomp, app_armor);
        self.se_linux(at, context.se_linux_options.as_ref());
        if self.restricted() && !self.own_users() {
            self.users(at, context.run_as_non_root, context.run_as_user);
        }
    }

    fn container(&mut self, at: &Path, container: &Container) {
        for (index, port) in container.ports.iter().flatten().enumerate() {
            if port.host_port.is_some_and(|port| port != 0) {
                self.refuse(&at.key("ports").at(index).key("hostPort"), "is a port of the node");
            }
        }
        self.hosts(at, container);
        let none = SecurityContext::default();
        let context = container.security_context.as_ref().unwrap_or(&none);
        let at = at.key("securityContext");
        if context.privileged == Some(true) {
            self.refuse(&at.key("privileged"), "is true");
        }
        self.windows(&at, context.windows_options.as_ref().and_then(|w| w.host_process));
        let unmasked = context.proc_mount.as_deref().is_some_and(|mount| mount != "Default");
        if unmasked && (self.restricted() || !self.own_users()) {
            self.refuse(&at.key("procMount"), "is not `Default`");
        }
        let seccomp = context.seccomp_profile.as_ref().map(|profile| profile.type_.as_str());
        let app_armor = context.app_armor_profile.as_ref().map(|profile| profile.type_.as_str());
        self.profiles(&at, seccomp, app_armor);
        self.se_linux(&at, context.se_linux_options.as_ref());
        for (index, name) in context.capabilities.iter().flat_map(|c| c.add.iter().flatten()).enumerate() {
            if !self.level.takes_capability(name) {
                self.refuse(&at.key("capabilities").key("add").at(index), &format!("adds `{name}`"));
            }
        }
        if self.restricted() {
            self.restricted_container(&at, context);
        }
    }

    fn restricted_container(&mut self, at: &Path, context: &SecurityContext) {
        if context.allow_privilege_escalation != Some(false) {
            self.refuse(&at.key("allowPrivilegeEscalation"), "is not false");
        }
        let dropped = context.capabilities.as_ref().and_then(|c| c.drop.as_deref()).unwrap_or_default();
        if !dropped.iter().any(|name| name == "ALL") {
            self.refuse(&at.key("capabilities").key("drop"), "does not drop ALL");
        }
        let none = PodSecurityContext::default();
        let pod = self.pod.security_context.as_ref().unwrap_or(&none);
        if context.seccomp_profile.is_none() && pod.seccomp_profile.is_none() {
            self.refuse(&at.key("seccompProfile"), "is left open");
        }
        if !self.own_users() {
            self.users(at, context.run_as_non_root, context.run_as_user);
            if context.run_as_non_root.or(pod.run_as_non_root).is_none() {
                self.refuse(&at.key("runAsNonRoot"), "is left open");
            }
        }
    }

    fn users(&mut self, at: &Path, non_root: Option<bool>, user: Option<i64>) {
        if non_root == Some(false) {
            self.refuse(&at.key("runAsNonRoot"), "is false");
        }
        if user == Some(0) {
            self.refuse(&at.key("runAsUser"), "is root");
        }
    }

    fn windows(&mut self, at: &Path, host_process: Option<bool>) {
        if host_process == Some(true) {
            self.refuse(&at.key("windowsOptions").key("hostProcess"), "is true");
        }
    }

    fn profiles(&mut self, at: &Path, seccomp: Option<&str>, app_armor: Option<&str>) {
        for (field, profile) in [("seccompProfile", seccomp), ("appArmorProfile", app_armor)] {
            if profile.is_some_and(|profile| !matches!(profile, "RuntimeDefault" | "Localhost")) {
                self.refuse(&at.key(field).key("type"), &format!("is `{}`", profile.unwrap_or_default()));
            }
        }
    }

    fn se_linux(&mut self, at: &Path, options: Option<&k8s_openapi::api::core::v1::SELinuxOptions>) {
        let Some(options) = options else { return };
        let at = at.key("seLinuxOptions");
        if let Some(kind) = options.type_.as_deref().filter(|kind| !takes_se_linux_type(self.check.target, kind)) {
            self.refuse(&at.key("type"), &format!("is `{kind}`"));
        }
        for (field, value) in [("user", &options.user), ("role", &options.role)] {
            if value.as_ref().is_some_and(|value| !value.is_empty()) {
                self.refuse(&at.key(field), "is set");
            }
        }
    }

    /// Probes and hooks could otherwise make the kubelet call other hosts.
    fn hosts(&mut self, at: &Path, container: &Container) {
        let of_probe = |probe: &Option<Probe>| {
            probe.as_ref().and_then(|p| {
                let http = p.http_get.as_ref().and_then(|get| get.host.clone());
                http.or_else(|| p.tcp_socket.as_ref().and_then(|socket| socket.host.clone()))
            })
        };
        let of_hook = |hook: Option<&LifecycleHandler>| {
            hook.and_then(|h| {
                let http = h.http_get.as_ref().and_then(|get| get.host.clone());
                http.or_else(|| h.tcp_socket.as_ref().and_then(|socket| socket.host.clone()))
            })
        };
        let lifecycle = container.lifecycle.as_ref();
        for (field, host) in [
            ("livenessProbe", of_probe(&container.liveness_probe)),
            ("readinessProbe", of_probe(&container.readiness_probe)),
            ("startupProbe", of_probe(&container.startup_probe)),
            ("lifecycle.postStart", of_hook(lifecycle.and_then(|l| l.post_start.as_ref()))),
            ("lifecycle.preStop", of_hook(lifecycle.and_then(|l| l.pre_stop.as_ref()))),
        ] {
            if let Some(host) = host.filter(|host| !host.is_empty()) {
                self.refuse(&at.key(field), &format!("names the host `{host}`"));
            }
        }
    }
}

/// Kinds of volumes that `restricted` takes.
fn is_portable(volume: &Volume) -> bool {
    volume.config_map.is_some()
        || volume.csi.is_some()
        || volume.downward_api.is_some()
        || volume.empty_dir.is_some()
        || volume.ephemeral.is_some()
        || volume.image.is_some()
        || volume.persistent_volume_claim.is_some()
        || volume.projected.is_some()
        || volume.secret.is_some()
}

/// Whether both levels take a kernel parameter.
#[must_use]
pub fn takes_sysctl(target: KubernetesVersion, name: &str) -> bool {
    SAFE_SYSCTLS.contains(&name)
        || (KEEPALIVE_SYSCTLS.contains(&name) && target.has(Feature::PolicyKeepalive))
        || (BUFFER_SYSCTLS.contains(&name) && target.has(Feature::PolicyBuffers))
}

/// Whether both levels take a type of `SELinux`.
#[must_use]
pub fn takes_se_linux_type(target: KubernetesVersion, kind: &str) -> bool {
    matches!(kind, "" | "container_t" | "container_init_t" | "container_kvm_t")
        || (kind == "container_engine_t" && target.has(Feature::PolicyEngineType))
}
