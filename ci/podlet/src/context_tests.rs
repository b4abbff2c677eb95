use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::Pod;
use crate::spec::{FieldRef, decode};

const IP: Ipv4Addr = Ipv4Addr::new(10, 244, 0, 2);
const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 244, 0, 1);

fn pod(extra: &Value) -> Pod {
    let mut spec = json!({"containers": [{"name": "a", "image": "i"}], "hostname": "sim-0", "subdomain": "sim"});
    for (k, v) in extra.as_object().into_iter().flatten() {
        spec[k] = v.clone();
    }
    let meta = json!({"name": "sim-0-x7k", "namespace": "ns", "uid": "u", "labels": {"a/b": "c", "d": "e"}});
    Pod { meta: serde_json::from_value(meta).expect("meta"), spec: decode(&json!({ "spec": spec })).expect("spec") }
}

#[test]
fn host_names() {
    let p = pod(&json!({}));
    assert_eq!(p.hostname(), "sim-0");
    assert_eq!(p.fqdn().as_deref(), Some("sim-0.sim.ns.svc.cluster.local"));
    assert!(p.hosts_file(IP).contains("10.244.0.2\tsim-0.sim.ns.svc.cluster.local\tsim-0\n"));
    assert_eq!(pod(&json!({"setHostnameAsFQDN": true})).hostname(), "sim-0.sim.ns.svc.cluster.local");
    let p = pod(&json!({"hostname": null, "subdomain": null}));
    assert_eq!((p.hostname().as_str(), p.fqdn()), ("sim-0-x7k", None));
}

#[test]
fn resolv_conf() {
    assert_eq!(
        pod(&json!({})).resolv_conf(GATEWAY),
        "search ns.svc.cluster.local svc.cluster.local cluster.local\nnameserver 10.244.0.1\noptions ndots:5\n"
    );
    let own = json!({"dnsPolicy": "None", "dnsConfig": {
        "nameservers": ["10.0.0.1"], "searches": ["x"], "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}]
    }});
    assert_eq!(pod(&own).resolv_conf(GATEWAY), "search x\nnameserver 10.0.0.1\noptions edns0 ndots:2\n");
}

#[test]
fn downward_fields() {
    let p = pod(&json!({}));
    let field = |path: &str| {
        let reference: FieldRef = serde_json::from_value(json!({ "fieldPath": path })).expect("ref");
        p.field(&reference, "node", IP, GATEWAY)
    };
    for (path, want) in [
        ("metadata.name", Some("sim-0-x7k")),
        ("metadata.namespace", Some("ns")),
        ("metadata.labels['a/b']", Some("c")),
        ("metadata.annotations['none']", Some("")),
        ("metadata.labels", Some("a/b=\"c\"\nd=\"e\"")),
        ("spec.nodeName", Some("node")),
        ("status.podIP", Some("10.244.0.2")),
        ("status.phase", None),
    ] {
        assert_eq!(field(path).as_deref(), want, "{path}");
    }
}
