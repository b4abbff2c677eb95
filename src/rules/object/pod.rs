//! Pods and pod templates.

use k8s_openapi::api::core::v1::{PodDNSConfig, PodSpec};

use super::check::{Check, Path};
use super::{container, resources, scheduling, security, volume};
use crate::model::kubernetes::Feature;
use crate::rules::syntax;

/// Which rules differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A pod of its own.
    Pod,
    /// The template of a Job.
    JobTemplate,
}

pub(super) fn pod(check: &mut Check, at: &Path, pod: &PodSpec, kind: Kind) {
    let volumes = volume::volumes(check, &at.key("volumes"), pod.volumes.as_deref().unwrap_or_default());
    container::containers(check, at, pod, &volumes);
    restart_policy(check, &at.key("restartPolicy"), pod, kind);
    check.optional_range(&at.key("activeDeadlineSeconds"), pod.active_deadline_seconds, 1, i64::from(i32::MAX));
    dns(check, at, pod);
    names(check, at, pod);
    host_names(check, at, pod);
    check.since(&at.key("resourceClaims"), Feature::ResourceClaims, pod.resource_claims.is_some());
    check.since(&at.key("hostnameOverride"), Feature::HostnameOverride, pod.hostname_override.is_some());
    scheduling::pod(check, at, pod);
    security::pod(check, at, pod);
    resources::pod(check, at, pod);
    for (name, amount) in pod.overhead.iter().flatten() {
        resources::quantity(check, &at.key("overhead").entry(name), amount);
    }
    if pod.overhead.as_ref().is_some_and(|overhead| !overhead.is_empty()) && pod.runtime_class_name.is_none() {
        check.problem(&at.key("overhead"), "comes from a runtime class and cannot be written without one");
    }
    for (index, gate) in pod.scheduling_gates.iter().flatten().enumerate() {
        check.form(&at.item("schedulingGates", index).key("name"), &gate.name, syntax::qualified_name);
    }
    if pod.ephemeral_containers.as_ref().is_some_and(|list| !list.is_empty()) {
        check.problem(&at.key("ephemeralContainers"), "can only be added to a running pod");
    }
}

fn restart_policy(check: &mut Check, at: &Path, pod: &PodSpec, kind: Kind) {
    let policy = pod.restart_policy.as_ref().filter(|policy| !policy.is_empty());
    match (kind, policy) {
        (Kind::Pod, policy) => check.optional_word(at, policy, &["Always", "OnFailure", "Never"]),
        (Kind::JobTemplate, Some(policy)) => check.word(at, policy, &["OnFailure", "Never"]),
        (Kind::JobTemplate, None) => check.problem(at, "must be OnFailure or Never in a Job; the default is Always"),
    }
}

fn dns(check: &mut Check, at: &Path, pod: &PodSpec) {
    const POLICIES: &[&str] = &["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"];
    check.optional_word(&at.key("dnsPolicy"), pod.dns_policy.as_ref(), POLICIES);
    let no_servers = |config: &PodDNSConfig| config.nameservers.as_deref().unwrap_or_default().is_empty();
    if pod.dns_policy.as_deref() == Some("None") && pod.dns_config.as_ref().is_none_or(no_servers) {
        check.problem(&at.key("dnsConfig").key("nameservers"), "needs a server with dnsPolicy None");
    }
    let Some(config) = &pod.dns_config else { return };
    let at = at.key("dnsConfig");
    let servers = config.nameservers.as_deref().unwrap_or_default();
    if servers.len() > 3 {
        check.problem(&at.key("nameservers"), format!("{} servers are more than 3", servers.len()));
    }
    for (index, server) in servers.iter().enumerate() {
        if server.parse::<std::net::IpAddr>().is_err() {
            check.problem(&at.item("nameservers", index), format!("`{server}` is no IP address"));
        }
    }
    let searches = config.searches.as_deref().unwrap_or_default();
    if searches.len() > 32 || searches.join(" ").len() > 2048 {
        check.problem(&at.key("searches"), "at most 32 names of 2048 characters together are allowed");
    }
    for (index, search) in searches.iter().enumerate() {
        // A trailing dot and, since 1.34, underscores and a single dot are taken.
        let name = search.strip_suffix('.').unwrap_or(search).replace('_', "-");
        if !name.is_empty() {
            check.form(&at.item("searches", index), &name, syntax::dns1123_subdomain);
        }
    }
    for (index, option) in config.options.iter().flatten().enumerate() {
        if option.name.as_deref().unwrap_or_default().is_empty() {
            check.required(&at.item("options", index).key("name"));
        }
    }
}

fn names(check: &mut Check, at: &Path, pod: &PodSpec) {
    for (field, name) in [
        ("serviceAccountName", &pod.service_account_name),
        ("runtimeClassName", &pod.runtime_class_name),
        ("priorityClassName", &pod.priority_class_name),
        ("nodeName", &pod.node_name),
    ] {
        check.optional_form(&at.key(field), name.as_ref(), syntax::dns1123_subdomain);
    }
    let policies = &["Never", "PreemptLowerPriority"];
    check.optional_word(&at.key("preemptionPolicy"), pod.preemption_policy.as_ref(), policies);
    for (index, secret) in pod.image_pull_secrets.iter().flatten().enumerate() {
        if secret.name.is_empty() {
            check.required(&at.item("imagePullSecrets", index).key("name"));
        }
    }
}

fn host_names(check: &mut Check, at: &Path, pod: &PodSpec) {
    check.optional_form(&at.key("hostname"), pod.hostname.as_ref(), syntax::dns1123_label);
    check.optional_form(&at.key("subdomain"), pod.subdomain.as_ref(), syntax::dns1123_label);
    for (index, alias) in pod.host_aliases.iter().flatten().enumerate() {
        let at = at.item("hostAliases", index);
        if alias.ip.parse::<std::net::IpAddr>().is_err() {
            check.problem(&at.key("ip"), format!("`{}` is no IP address", alias.ip));
        }
        for name in alias.hostnames.iter().flatten() {
            check.form(&at.key("hostnames"), name, syntax::dns1123_subdomain);
        }
    }
}
