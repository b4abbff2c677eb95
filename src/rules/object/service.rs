//! Services.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::check::{Check, Path};
use super::meta;
use crate::model::kubernetes::Feature;
use crate::rules::syntax;

pub(super) fn service(check: &mut Check, at: &Path, service: &ServiceSpec) {
    let kind = service.type_.as_deref().filter(|kind| !kind.is_empty()).unwrap_or("ClusterIP");
    check.word(&at.key("type"), kind, &["ClusterIP", "NodePort", "LoadBalancer", "ExternalName"]);
    let headless = service.cluster_ip.as_deref() == Some("None");
    if headless && kind != "ClusterIP" {
        check.problem(&at.key("clusterIP"), format!("`None` does not go with type {kind}"));
    }
    if let Some(ip) = service.cluster_ip.as_ref().filter(|ip| !ip.is_empty() && *ip != "None")
        && ip.parse::<std::net::IpAddr>().is_err()
    {
        check.problem(&at.key("clusterIP"), format!("`{ip}` is no IP address, nor `None`"));
    }
    meta::labels(check, &at.key("selector"), service.selector.as_ref());
    check.since(&at.key("trafficDistribution"), Feature::TrafficDistribution, service.traffic_distribution.is_some());
    check.optional_word(&at.key("sessionAffinity"), service.session_affinity.as_ref(), &["None", "ClientIP"]);
    let ports = service.ports.as_deref().unwrap_or_default();
    if ports.is_empty() && !headless && kind != "ExternalName" {
        check.required(&at.key("ports"));
    }
    let mut names = BTreeSet::new();
    let mut numbers = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let at = at.item("ports", index);
        one_port(check, &at, port, kind);
        match port.name.as_ref().filter(|name| !name.is_empty()) {
            None if ports.len() > 1 => check.required(&at.key("name")),
            None => {}
            Some(name) => {
                check.form(&at.key("name"), name, syntax::dns1123_label);
                if !names.insert(name) {
                    check.problem(&at.key("name"), format!("`{name}` is used twice"));
                }
            }
        }
        if !numbers.insert((port.port, port.protocol.as_deref().unwrap_or("TCP"))) {
            check.problem(&at, format!("port {} is listed twice", port.port));
        }
    }
}

fn one_port(check: &mut Check, at: &Path, port: &ServicePort, kind: &str) {
    check.range(&at.key("port"), port.port, 1, 65535);
    check.optional_word(&at.key("protocol"), port.protocol.as_ref(), &["TCP", "UDP", "SCTP"]);
    // 0 is defaulted to the port.
    if let Some(target) = port.target_port.as_ref().filter(|target| **target != IntOrString::Int(0)) {
        port_number_or_name(check, &at.key("targetPort"), target);
    }
    check.optional_form(&at.key("appProtocol"), port.app_protocol.as_ref(), syntax::qualified_name);
    if let Some(node_port) = port.node_port.filter(|port| *port != 0) {
        if kind == "ClusterIP" {
            check.problem(&at.key("nodePort"), "does not go with type ClusterIP");
        }
        check.range(&at.key("nodePort"), node_port, 1, 65535);
    }
}

pub(super) fn port_number_or_name(check: &mut Check, at: &Path, port: &IntOrString) {
    match port {
        IntOrString::Int(number) => check.range(at, *number, 1, 65535),
        IntOrString::String(name) => check.form(at, name, syntax::port_name),
    }
}
