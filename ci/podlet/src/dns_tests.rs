use std::net::Ipv4Addr;

use serde_json::json;
use simple_dns::{CLASS, Name, Packet, PacketFlag, QCLASS, QTYPE, Question, RCODE, TYPE};

use super::{Answer, Zone, reply};
use crate::api::Delta;

const ONE: Ipv4Addr = Ipv4Addr::new(10, 244, 0, 2);
const TWO: Ipv4Addr = Ipv4Addr::new(10, 244, 0, 3);

fn zone() -> Zone {
    let zone = Zone::default();
    zone.on_services(Delta::Replace(vec![
        json!({"metadata": {"namespace": "ns", "name": "sim"}, "spec": {"clusterIP": "None"}}),
        json!({"metadata": {"namespace": "ns", "name": "api"}, "spec": {"clusterIP": "10.0.0.9"}}),
    ]));
    zone.on_slices(Delta::Replace(vec![json!({
        "metadata": {"namespace": "ns", "name": "sim-x", "labels": {"kubernetes.io/service-name": "sim"}},
        "endpoints": [
            {"addresses": ["10.244.0.2"], "hostname": "sim-0", "conditions": {"ready": true}},
            {"addresses": ["10.244.0.3"], "hostname": "sim-1"},
            {"addresses": ["10.244.0.4"], "hostname": "sim-2", "conditions": {"ready": false}},
        ],
        "ports": [{"name": "flux", "port": 8050, "protocol": "TCP"}]
    })]));
    zone
}

#[test]
fn names() {
    let zone = zone();
    let addresses = |list: &[Ipv4Addr]| Answer::Addresses(list.iter().copied().collect());
    for (name, want) in [
        ("sim-0.sim.ns.svc.cluster.local", addresses(&[ONE])),
        ("sim.ns.svc.cluster.local", addresses(&[ONE, TWO])),
        ("api.ns.svc.cluster.local", addresses(&[Ipv4Addr::new(10, 0, 0, 9)])),
        // Not ready, unknown, wrong namespace, a host of a Service with a cluster IP, too short, outside.
        ("sim-2.sim.ns.svc.cluster.local", Answer::Missing),
        ("sim-9.sim.ns.svc.cluster.local", Answer::Missing),
        ("sim-0.sim.other.svc.cluster.local", Answer::Missing),
        ("sim-0.api.ns.svc.cluster.local", Answer::Missing),
        ("ns.svc.cluster.local", Answer::Missing),
        ("sim-0.sim", Answer::Missing),
        ("deb.debian.org", Answer::Missing),
        ("2.0.244.10.in-addr.arpa", Answer::Pointer("sim-0.sim.ns.svc.cluster.local".to_owned())),
        (
            "_flux._tcp.sim.ns.svc.cluster.local",
            Answer::Services(vec![
                ("sim-0.sim.ns.svc.cluster.local".to_owned(), 8050),
                ("sim-1.sim.ns.svc.cluster.local".to_owned(), 8050),
            ]),
        ),
    ] {
        assert_eq!(zone.lookup(name), want, "{name}");
    }
}

#[test]
fn a_removed_slice_takes_its_names_along() {
    let zone = zone();
    zone.on_slices(Delta::Delete(json!({"metadata": {"namespace": "ns", "name": "sim-x"}})));
    assert_eq!(zone.lookup("sim-0.sim.ns.svc.cluster.local"), Answer::Missing);
    assert_eq!(zone.lookup("sim.ns.svc.cluster.local"), Answer::Missing);
}

fn ask(zone: &Zone, name: &str, qtype: TYPE, max: usize) -> Vec<u8> {
    let mut query = Packet::new_query(7);
    query.set_flags(PacketFlag::RECURSION_DESIRED);
    let name = Name::new(name).expect("name");
    query.questions.push(Question::new(name, QTYPE::TYPE(qtype), QCLASS::CLASS(CLASS::IN), false));
    reply(zone, &query.build_bytes_vec().expect("query"), max).expect("reply")
}

#[test]
fn packets() {
    let zone = zone();
    let bytes = ask(&zone, "SIM-0.sim.ns.svc.cluster.local", TYPE::A, 512);
    let got = Packet::parse(&bytes).expect("parses");
    assert_eq!((got.id(), got.rcode(), got.answers.len()), (7, RCODE::NoError, 1));
    let bytes = ask(&zone, "sim-0.sim.ns.svc.cluster.local", TYPE::AAAA, 512);
    let got = Packet::parse(&bytes).expect("parses");
    assert_eq!((got.rcode(), got.answers.len()), (RCODE::NoError, 0));
    let bytes = ask(&zone, "x.sim.ns.svc.cluster.local", TYPE::A, 512);
    assert_eq!(Packet::parse(&bytes).expect("parses").rcode(), RCODE::NameError);
}

#[test]
fn a_long_answer_is_truncated() {
    let bytes = ask(&zone(), "sim.ns.svc.cluster.local", TYPE::A, 60);
    let got = Packet::parse(&bytes).expect("parses");
    assert!(got.has_flags(PacketFlag::TRUNCATION) && got.answers.is_empty());
}
