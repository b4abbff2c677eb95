//! Services: the headless one of the cluster, and one for each sidecar with ports.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::metadata;
use crate::model::{Cluster, Sidecar};

/// Headless, and with addresses of pods that are not ready yet: brokers look for each other before that.
pub(super) fn headless(cluster: &Cluster) -> Service {
    let mut selector = BTreeMap::from([("job-name".to_owned(), cluster.name.clone())]);
    if cluster.network.minimal {
        selector.insert("batch.kubernetes.io/job-completion-index".to_owned(), "0".to_owned());
    }
    Service {
        metadata: metadata(cluster, &cluster.network.headless),
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            ports: Some(vec![port("broker".to_owned(), cluster.network.port)]),
            publish_not_ready_addresses: Some(true),
            selector: Some(selector),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

/// Selects the cluster's pods and not its services Pod, which does not serve these ports.
pub(super) fn sidecar(cluster: &Cluster, sidecar: &Sidecar) -> Option<Service> {
    if sidecar.service_ports.is_empty() {
        return None;
    }
    let selector = BTreeMap::from([
        ("app.kubernetes.io/name".to_owned(), cluster.name.clone()),
        ("hpa-selector".to_owned(), cluster.name.clone()),
    ]);
    let ports = sidecar.service_ports.iter().map(|number| port(format!("port-{number}"), *number));
    Some(Service {
        metadata: metadata(cluster, &cluster.of_run(&sidecar.container.name)),
        spec: Some(ServiceSpec { ports: Some(ports.collect()), selector: Some(selector), ..ServiceSpec::default() }),
        status: None,
    })
}

fn port(name: String, number: u16) -> ServicePort {
    ServicePort {
        name: Some(name),
        port: i32::from(number),
        protocol: Some("TCP".to_owned()),
        target_port: Some(IntOrString::Int(i32::from(number))),
        ..ServicePort::default()
    }
}
