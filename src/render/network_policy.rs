//! The `NetworkPolicy`: who may reach the pods, and what they may reach.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::networking::v1::{
    IPBlock, NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort,
    NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::{metadata, pod};
use crate::model::Cluster;
use crate::model::hardening;

/// Port of DNS servers.
const DNS: u16 = 53;

/// One policy over the cluster's pods and its services Pod; `None` when there is none to be.
pub(super) fn network_policy(cluster: &Cluster) -> Option<NetworkPolicy> {
    let policy = cluster.network.policy.as_ref()?;
    let types = if policy.isolated { &["Ingress", "Egress"][..] } else { &["Ingress"] };
    Some(NetworkPolicy {
        metadata: metadata(cluster, &cluster.name),
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(pods_of(&cluster.name)),
            policy_types: Some(types.iter().map(|kind| (*kind).to_owned()).collect()),
            ingress: Some(ingress(cluster, policy)),
            egress: policy.isolated.then(|| egress(cluster, policy)),
        }),
    })
}

/// The pods of a cluster and its services Pod: the labels that both have and a user cannot change.
fn pods_of(cluster: &str) -> LabelSelector {
    let labels = [(pod::APP, pod::APP_VALUE), (pod::NAME, cluster)];
    let labels: BTreeMap<_, _> = labels.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
    LabelSelector { match_labels: Some(labels), match_expressions: None }
}

/// The cluster's own pods and those of its bursting group. Brokers have one port, MPI takes any.
fn peers(cluster: &Cluster, policy: &hardening::NetworkPolicy) -> Vec<NetworkPolicyPeer> {
    std::iter::once(cluster.name.as_str())
        .chain(policy.friends.iter().map(String::as_str))
        .map(|name| NetworkPolicyPeer { pod_selector: Some(pods_of(name)), ..NetworkPolicyPeer::default() })
        .collect()
}

fn ingress(cluster: &Cluster, policy: &hardening::NetworkPolicy) -> Vec<NetworkPolicyIngressRule> {
    let mut rules = vec![NetworkPolicyIngressRule { from: Some(peers(cluster, policy)), ports: None }];
    if !policy.open_ports.is_empty() {
        let ports = policy.open_ports.iter().map(|number| port("TCP", *number)).collect();
        rules.push(NetworkPolicyIngressRule { from: None, ports: Some(ports) });
    }
    rules
}

/// DNS is asked at an address of the node where there is a cache on it, so by port and not by pod.
fn egress(cluster: &Cluster, policy: &hardening::NetworkPolicy) -> Vec<NetworkPolicyEgressRule> {
    let dns = vec![port("UDP", DNS), port("TCP", DNS)];
    let mut rules = vec![
        NetworkPolicyEgressRule { to: Some(peers(cluster, policy)), ports: None },
        NetworkPolicyEgressRule { to: None, ports: Some(dns) },
    ];
    rules.extend(policy.leader.as_ref().map(|(address, number)| NetworkPolicyEgressRule {
        to: address.parse().ok().map(|address| vec![only(address)]),
        ports: Some(vec![port("TCP", *number)]),
    }));
    rules
}

fn only(address: IpAddr) -> NetworkPolicyPeer {
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let block = IPBlock { cidr: format!("{address}/{bits}"), except: None };
    NetworkPolicyPeer { ip_block: Some(block), ..NetworkPolicyPeer::default() }
}

fn port(protocol: &str, number: u16) -> NetworkPolicyPort {
    NetworkPolicyPort {
        port: Some(IntOrString::Int(i32::from(number))),
        protocol: Some(protocol.to_owned()),
        ..NetworkPolicyPort::default()
    }
}
