//! Containers: names, images, ports, environment.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, ContainerPort, EnvFromSource, EnvVar, EnvVarSource, PodSpec, Volume};

use super::check::{Check, Path};
use super::{handler, resources, security, volume};
use crate::model::kubernetes::Feature;
use crate::rules::syntax;

/// The kubelet's default for `terminationGracePeriodSeconds`.
const DEFAULT_GRACE_SECONDS: i64 = 30;

/// Checks init containers and containers.
pub(super) fn containers(check: &mut Check, at: &Path, pod: &PodSpec, volumes: &BTreeMap<&str, &Volume>) {
    if pod.containers.is_empty() {
        check.required(&at.key("containers"));
    }
    let init = pod.init_containers.iter().flatten();
    let all = init.map(|c| (c, true)).enumerate().chain(pod.containers.iter().map(|c| (c, false)).enumerate());
    let mut names = BTreeSet::new();
    for (index, (container, is_init)) in all {
        let at = at.item(if is_init { "initContainers" } else { "containers" }, index);
        if !names.insert(&container.name) {
            check.problem(&at.key("name"), format!("`{}` is used twice in the pod", container.name));
        }
        one(check, &at, container, pod, volumes);
        restart(check, &at, container, is_init);
        let grace = pod.termination_grace_period_seconds.unwrap_or(DEFAULT_GRACE_SECONDS);
        let helper = is_init && container.restart_policy.as_deref() != Some("Always");
        handler::container(check, &at, container, helper, grace);
    }
    host_ports(check, at, pod);
}

fn restart(check: &mut Check, at: &Path, container: &Container, is_init: bool) {
    let rules = container.restart_policy_rules.as_ref().is_some_and(|rules| !rules.is_empty());
    check.since(&at.key("restartPolicyRules"), Feature::ContainerRestarts, rules);
    let at = at.key("restartPolicy");
    let Some(policy) = container.restart_policy.as_deref().filter(|policy| !policy.is_empty()) else { return };
    if is_init && policy == "Always" {
        check.since(&at, Feature::NativeSidecars, true);
    } else if !check.target.has(Feature::ContainerRestarts) {
        let where_ = if is_init { "an init container can only have `Always`" } else { "only init containers have one" };
        check.problem(&at, format!("`{policy}`: {where_}"));
    } else {
        check.word(&at, policy, &["Always", "OnFailure", "Never"]);
    }
}

fn one(check: &mut Check, at: &Path, container: &Container, pod: &PodSpec, volumes: &BTreeMap<&str, &Volume>) {
    if container.name.is_empty() {
        check.required(&at.key("name"));
    } else {
        check.form(&at.key("name"), &container.name, syntax::dns1123_label);
    }
    let image = container.image.as_deref().unwrap_or_default();
    if image.is_empty() {
        check.required(&at.key("image"));
    } else if image.trim() != image {
        check.problem(&at.key("image"), format!("`{image}` must not begin or end with a blank"));
    }
    let policies = &["Always", "IfNotPresent", "Never"];
    check.optional_word(&at.key("imagePullPolicy"), container.image_pull_policy.as_ref(), policies);
    let policies = &["File", "FallbackToLogsOnError"];
    let policy = container.termination_message_policy.as_ref();
    check.optional_word(&at.key("terminationMessagePolicy"), policy, policies);
    ports(check, at, container.ports.as_deref().unwrap_or_default());
    environment(check, at, container);
    volume::mounts(check, at, container, volumes);
    for (index, device) in container.volume_devices.iter().flatten().enumerate() {
        if !volumes.contains_key(device.name.as_str()) {
            let at = at.item("volumeDevices", index);
            let at = at.key("name");
            check.problem(&at, format!("there is no volume `{}`", device.name));
        }
    }
    if let Some(written) = &container.resources {
        resources::container(check, &at.key("resources"), written);
    }
    if let Some(context) = &container.security_context {
        security::container(check, &at.key("securityContext"), context, pod);
    }
}

fn ports(check: &mut Check, at: &Path, ports: &[ContainerPort]) {
    let mut names = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let at = at.item("ports", index);
        if let Some(name) = port.name.as_ref().filter(|name| !name.is_empty()) {
            check.form(&at.key("name"), name, syntax::port_name);
            if !names.insert(name) {
                check.problem(&at.key("name"), format!("`{name}` is used twice"));
            }
        }
        check.range(&at.key("containerPort"), port.container_port, 1, 65535);
        check.optional_range(&at.key("hostPort"), port.host_port, 0, 65535);
        check.optional_word(&at.key("protocol"), port.protocol.as_ref(), &["TCP", "UDP", "SCTP"]);
    }
}

/// A host port is taken once in a pod; with the host's network it is the container's own.
fn host_ports(check: &mut Check, at: &Path, pod: &PodSpec) {
    let mut taken = BTreeSet::new();
    for (index, container) in pod.containers.iter().enumerate() {
        for (number, port) in container.ports.iter().flatten().enumerate() {
            let at = at.item("containers", index);
            let at = at.item("ports", number);
            let at = at.key("hostPort");
            let Some(host_port) = port.host_port.filter(|port| *port != 0) else { continue };
            if pod.host_network == Some(true) && host_port != port.container_port {
                check.problem(&at, "must equal containerPort with hostNetwork");
            }
            let protocol = port.protocol.as_deref().unwrap_or("TCP");
            if !taken.insert((host_port, protocol, port.host_ip.as_deref().unwrap_or_default())) {
                check.problem(&at, format!("{host_port} is used twice"));
            }
        }
    }
}

fn environment(check: &mut Check, at: &Path, container: &Container) {
    let relaxed = check.target.has(Feature::RelaxedEnvironmentNames);
    let form = if relaxed { syntax::relaxed_environment_name } else { syntax::environment_name };
    for (index, variable) in container.env.iter().flatten().enumerate() {
        let at = at.item("env", index);
        check.form(&at.key("name"), &variable.name, form);
        self::variable(check, &at, variable);
    }
    for (index, source) in container.env_from.iter().flatten().enumerate() {
        let at = at.item("envFrom", index);
        check.optional_form(&at.key("prefix"), source.prefix.as_ref(), form);
        env_from(check, &at, source);
    }
}

fn variable(check: &mut Check, at: &Path, variable: &EnvVar) {
    if variable.value.as_deref().unwrap_or_default().contains('\0') {
        check.problem(&at.key("value"), "holds a NUL character");
    }
    let Some(source) = &variable.value_from else { return };
    if !variable.value.as_deref().unwrap_or_default().is_empty() {
        check.problem(&at.key("valueFrom"), "does not go with value");
    }
    value_from(check, &at.key("valueFrom"), source);
}

fn value_from(check: &mut Check, at: &Path, source: &EnvVarSource) {
    let there = [
        source.field_ref.is_some(),
        source.resource_field_ref.is_some(),
        source.config_map_key_ref.is_some(),
        source.secret_key_ref.is_some(),
        source.file_key_ref.is_some(),
    ];
    if there.into_iter().filter(|there| *there).count() != 1 {
        check.problem(at, "must have exactly one source");
    }
    check.since(&at.key("fileKeyRef"), Feature::EnvironmentFiles, source.file_key_ref.is_some());
    let keys = [
        source.config_map_key_ref.as_ref().map(|key| ("configMapKeyRef", &key.name, &key.key)),
        source.secret_key_ref.as_ref().map(|key| ("secretKeyRef", &key.name, &key.key)),
    ];
    for (field, name, key) in keys.into_iter().flatten() {
        let at = at.key(field);
        if name.is_empty() {
            check.required(&at.key("name"));
        }
        check.form(&at.key("key"), key, syntax::data_key);
    }
    if let Some(field) = &source.field_ref {
        field_path(check, &at.key("fieldRef").key("fieldPath"), &field.field_path);
    }
}

/// Fields of the pod that a variable can hold.
fn field_path(check: &mut Check, at: &Path, path: &str) {
    const FIELDS: &[&str] = &[
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ];
    let subscript = |field: &str| path.strip_prefix(field).and_then(|rest| rest.strip_prefix("['")?.strip_suffix("']"));
    match subscript("metadata.labels").or_else(|| subscript("metadata.annotations")) {
        Some(key) => check.form(at, key, syntax::annotation_key),
        None => check.word(at, path, FIELDS),
    }
}

fn env_from(check: &mut Check, at: &Path, source: &EnvFromSource) {
    let names = [
        source.config_map_ref.as_ref().map(|map| ("configMapRef", &map.name)),
        source.secret_ref.as_ref().map(|secret| ("secretRef", &secret.name)),
    ];
    if names.iter().flatten().count() != 1 {
        check.problem(at, "must have exactly one of configMapRef and secretRef");
    }
    for (field, name) in names.into_iter().flatten() {
        if name.is_empty() {
            check.required(&at.key(field).key("name"));
        }
    }
}
