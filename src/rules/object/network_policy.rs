//! Network policies (`pkg/apis/networking/validation`).

use std::net::IpAddr;

use k8s_openapi::api::networking::v1::{IPBlock, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::check::{Check, Path};
use super::meta;
use super::service::port_number_or_name;

pub(super) fn network_policy(check: &mut Check, at: &Path, policy: &NetworkPolicySpec) {
    if let Some(selector) = &policy.pod_selector {
        meta::selector(check, &at.key("podSelector"), selector);
    }
    for (index, rule) in policy.ingress.iter().flatten().enumerate() {
        let at = at.item("ingress", index);
        peers(check, &at.key("from"), rule.from.as_deref().unwrap_or_default());
        ports(check, &at.key("ports"), rule.ports.as_deref().unwrap_or_default());
    }
    for (index, rule) in policy.egress.iter().flatten().enumerate() {
        let at = at.item("egress", index);
        peers(check, &at.key("to"), rule.to.as_deref().unwrap_or_default());
        ports(check, &at.key("ports"), rule.ports.as_deref().unwrap_or_default());
    }
    let types = policy.policy_types.as_deref().unwrap_or_default();
    if types.len() > 2 {
        check.problem(&at.key("policyTypes"), "has more than two types");
        return;
    }
    for (index, kind) in types.iter().enumerate() {
        check.word(&at.item("policyTypes", index), kind, &["Ingress", "Egress"]);
    }
}

fn peers(check: &mut Check, at: &Path, peers: &[NetworkPolicyPeer]) {
    for (index, peer) in peers.iter().enumerate() {
        let at = at.at(index);
        let selectors = [("podSelector", &peer.pod_selector), ("namespaceSelector", &peer.namespace_selector)];
        for (field, selector) in selectors {
            if let Some(selector) = selector {
                meta::selector(check, &at.key(field), selector);
            }
        }
        let by_label = peer.pod_selector.is_some() || peer.namespace_selector.is_some();
        match (&peer.ip_block, by_label) {
            (None, false) => check.problem(&at, "must name pods, namespaces or addresses"),
            (Some(_), true) => check.problem(&at, "has both labels and addresses"),
            (Some(block), false) => addresses(check, &at.key("ipBlock"), block),
            (None, true) => {}
        }
    }
}

fn addresses(check: &mut Check, at: &Path, block: &IPBlock) {
    let Some(whole) = cidr(&block.cidr) else {
        check.problem(&at.key("cidr"), format!("`{}` is no range of addresses such as 10.0.0.0/8", block.cidr));
        return;
    };
    for (index, except) in block.except.iter().flatten().enumerate() {
        let at = at.item("except", index);
        match cidr(except) {
            None => check.problem(&at, format!("`{except}` is no range of addresses")),
            Some(part) if !is_part(part, whole) => {
                check.problem(&at, format!("`{except}` is not a part of `{}`", block.cidr));
            }
            Some(_) => {}
        }
    }
}

/// An address and the bits of its network.
fn cidr(text: &str) -> Option<(IpAddr, u32)> {
    let (address, bits) = text.split_once('/')?;
    let address: IpAddr = address.parse().ok()?;
    let bits: u32 = bits.parse().ok()?;
    (bits <= if address.is_ipv4() { 32 } else { 128 }).then_some((address, bits))
}

fn is_part((part, part_bits): (IpAddr, u32), (whole, bits): (IpAddr, u32)) -> bool {
    let network = |address: IpAddr| match address {
        IpAddr::V4(v4) => u128::from(u32::from(v4)).checked_shr(32 - bits.min(32)).unwrap_or(0),
        IpAddr::V6(v6) => u128::from(v6).checked_shr(128 - bits).unwrap_or(0),
    };
    part.is_ipv4() == whole.is_ipv4() && part_bits > bits && network(part) == network(whole)
}

fn ports(check: &mut Check, at: &Path, ports: &[NetworkPolicyPort]) {
    for (index, port) in ports.iter().enumerate() {
        let at = at.at(index);
        check.optional_word(&at.key("protocol"), port.protocol.as_ref(), &["TCP", "UDP", "SCTP"]);
        if let Some(number) = &port.port {
            port_number_or_name(check, &at.key("port"), number);
        }
        let Some(end) = port.end_port else { continue };
        match &port.port {
            Some(IntOrString::Int(first)) if end < *first => {
                check.problem(&at.key("endPort"), format!("{end} is less than port {first}"));
            }
            Some(IntOrString::Int(_)) => check.range(&at.key("endPort"), end, 1, 65535),
            Some(IntOrString::String(_)) | None => check.problem(&at.key("endPort"), "needs a numbered port"),
        }
    }
}
