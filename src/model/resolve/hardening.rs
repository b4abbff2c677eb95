//! What a pod security level wants and the spec leaves open, and which connections a network policy allows.

use k8s_openapi::api::core::v1 as core;

use super::broker::lead_broker;
use super::written::text;
use super::{BROKER_PORT, Settings};
use crate::diag::codes::queue as codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::model::hardening::{NetworkPolicy, NetworkPolicyLevel, PodSecurity};
use crate::model::{Leader, Pod, Runner, ServiceContainer, Sidecar, View, ViewKind};
use crate::spec::MiniCluster;

/// User of the view's init container where nobody chose one: it only copies files into a volume of its own pod.
const VIEW_USER: i64 = 1000;

/// The parts of a cluster that have security contexts.
pub(super) struct Parts<'a> {
    pub(super) pod: &'a mut Pod,
    pub(super) view: &'a mut View,
    pub(super) runner: &'a mut Runner,
    pub(super) sidecars: &'a mut [Sidecar],
    pub(super) services: &'a mut [ServiceContainer],
}

/// Writes what `restricted` wants. What the spec says otherwise stays; the rules name it.
pub(super) fn harden(spec: &MiniCluster, parts: Parts<'_>, settings: &Settings, found: &mut Diagnostics) {
    if settings.pod_security != PodSecurity::Restricted {
        return;
    }
    let Parts { pod, view, runner, sidecars, services } = parts;
    let context = pod.spec.security_context.get_or_insert_default();
    context.run_as_non_root.get_or_insert(true);
    context.seccomp_profile.get_or_insert_with(runtime_default);
    let pod_user = context.run_as_user;
    let containers = std::iter::once(&mut runner.container)
        .chain(sidecars.iter_mut().map(|sidecar| &mut sidecar.container))
        .chain(services.iter_mut().map(|service| &mut service.container));
    let mut unknown = Vec::new();
    for container in containers {
        let context = container.security_context.get_or_insert_default();
        restrict(context);
        if context.run_as_user.or(pod_user).is_none() {
            unknown.push(format!("`{}`", container.name));
        }
    }
    if view.kind != ViewKind::Image {
        let context = view.security_context.get_or_insert_default();
        restrict(context);
        if pod_user.is_none() {
            context.run_as_user.get_or_insert(VIEW_USER);
        }
    }
    if !unknown.is_empty() {
        let span = spec.metadata.name.as_ref().map_or(spec.span, |name| name.span);
        let message = format!("nothing says which user the images of {} run as", unknown.join(", "));
        let help =
            "write `pod.securityContext.runAsUser`: the kubelet does not start a container that would run as root";
        found.push(Diagnostic::warning(codes::UNKNOWN_USER, span, message).help(help));
    }
}

fn runtime_default() -> core::SeccompProfile {
    core::SeccompProfile { type_: "RuntimeDefault".to_owned(), localhost_profile: None }
}

fn restrict(context: &mut core::SecurityContext) {
    context.allow_privilege_escalation.get_or_insert(false);
    let dropped = context.capabilities.get_or_insert_default().drop.get_or_insert_default();
    if !dropped.iter().any(|name| name == "ALL") {
        // The others are among them.
        *dropped = vec!["ALL".to_owned()];
    }
}

/// Resolves the connections of a cluster's pods.
pub(super) fn network_policy(
    spec: &MiniCluster,
    leader: &Leader,
    sidecars: &[Sidecar],
    settings: &Settings,
    found: &mut Diagnostics,
) -> Option<NetworkPolicy> {
    if settings.network_policy == NetworkPolicyLevel::None {
        return None;
    }
    let bursting = spec.spec.flux.as_ref().and_then(|flux| flux.bursting.as_ref());
    let clusters = || bursting.and_then(|b| b.clusters.as_ref()).into_iter().flat_map(|list| list.value.iter());
    let lead = lead_broker(&spec.spec);
    let mut friends: Vec<String> = clusters()
        .enumerate()
        .map(|(index, cluster)| text(&cluster.name).map_or_else(|| format!("burst-{index}"), str::to_owned))
        .chain(lead.and_then(|lead| text(&lead.name)).map(str::to_owned))
        .collect();
    friends.dedup();
    let mut open_ports: Vec<u16> = sidecars.iter().flat_map(|sidecar| sidecar.service_ports.iter().copied()).collect();
    if clusters().next().is_some() {
        open_ports.push(BROKER_PORT);
    }
    open_ports.sort_unstable();
    open_ports.dedup();
    if let (false, Some(bursting)) = (friends.is_empty(), bursting) {
        let message = "the network policy lets in pods of other networks to the broker's port only";
        found.push(Diagnostic::note(codes::POLICY_REACH, bursting.span, message));
    }
    Some(NetworkPolicy {
        friends,
        open_ports,
        isolated: settings.network_policy == NetworkPolicyLevel::Isolated,
        leader: match leader {
            Leader::Here => None,
            Leader::Elsewhere { address, port } => Some((address.clone(), *port)),
        },
    })
}
