//! The cluster's names, as CoreDNS gives them for Services and EndpointSlices
//! (<https://github.com/kubernetes/dns/blob/master/docs/specification.md>), answered on the bridge.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use serde_json::Value;
use simple_dns::rdata::{A, PTR, RData, SRV};
use simple_dns::{CLASS, Name, Packet, PacketFlag, QTYPE, RCODE, ResourceRecord, TYPE};

use crate::api::{Delta, text_at};
use crate::say::say;

/// The cluster domain.
pub const DOMAIN: &str = "cluster.local";
/// Seconds that an answer may be kept, as CoreDNS's kubernetes plugin has it.
const TTL: u32 = 5;
/// The longest answer over UDP without EDNS (RFC 1035 section 4.2.1).
const UDP_MAX: usize = 512;

/// A named port of a Service: (port name, protocol, number).
type SlicePort = (String, String, u16);

/// What an EndpointSlice says that names depend on.
#[derive(Debug, Default, Clone)]
struct Slice {
    service: (String, String),
    /// (host name if it has one, address) of each *ready* endpoint; `publishNotReadyAddresses`
    /// arrives as ready.
    endpoints: Vec<(Option<String>, Ipv4Addr)>,
    ports: Vec<SlicePort>,
}

#[derive(Debug, Default)]
struct Tables {
    /// (namespace, name) -> cluster IP; `None` for a headless Service.
    services: BTreeMap<(String, String), Option<Ipv4Addr>>,
    slices: BTreeMap<(String, String), Slice>,
}

/// The names of one cluster, kept up to date by the reflectors.
#[derive(Debug, Default, Clone)]
pub struct Zone(Arc<RwLock<Tables>>);

/// What a name stands for.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// The name does not exist.
    Missing,
    /// Addresses; may be none, when the name has only other records.
    Addresses(BTreeSet<Ipv4Addr>),
    /// Target names and ports.
    Services(Vec<(String, u16)>),
    /// The name of an address.
    Pointer(String),
}

impl Zone {
    /// Takes a change of the Services.
    pub fn on_services(&self, delta: Delta) {
        let Ok(mut t) = self.0.write() else { return };
        match delta {
            Delta::Replace(all) => t.services = all.iter().map(service).collect(),
            Delta::Apply(one) => t.services.extend([service(&one)]),
            Delta::Delete(one) => {
                t.services.remove(&id(&one));
            }
        }
    }

    /// Takes a change of the EndpointSlices.
    pub fn on_slices(&self, delta: Delta) {
        let Ok(mut t) = self.0.write() else { return };
        match delta {
            Delta::Replace(all) => t.slices = all.iter().map(|s| (id(s), slice(s))).collect(),
            Delta::Apply(one) => t.slices.extend([(id(&one), slice(&one))]),
            Delta::Delete(one) => {
                t.slices.remove(&id(&one));
            }
        }
    }

    /// The cluster's answer to a name (lower case, no final dot).
    pub fn lookup(&self, name: &str) -> Answer {
        let Ok(t) = self.0.read() else { return Answer::Missing };
        if let Some(reverse) = name.strip_suffix(".in-addr.arpa") {
            return t.pointer(reverse).map_or(Answer::Missing, Answer::Pointer);
        }
        let Some(rest) = name.strip_suffix(&format!(".svc.{DOMAIN}")) else { return Answer::Missing };
        let labels: Vec<&str> = rest.split('.').collect();
        let (Some(ns), Some(svc)) = (labels.last(), labels.len().checked_sub(2).map(|i| labels[i])) else {
            return Answer::Missing;
        };
        let key = ((*ns).to_owned(), svc.to_owned());
        let Some(cluster_ip) = t.services.get(&key) else { return Answer::Missing };
        match labels[..labels.len() - 2] {
            [] => t.service_addresses(&key, *cluster_ip),
            [host] if cluster_ip.is_none() => t.host_addresses(&key, host),
            [port, protocol] => t.srv(&key, port, protocol),
            _ => Answer::Missing,
        }
    }

    /// Cluster IPs of a namespace's Services, for the environment of containers.
    pub fn cluster_ips(&self, namespace: &str) -> Vec<(String, Ipv4Addr)> {
        let Ok(t) = self.0.read() else { return Vec::new() };
        t.services
            .iter()
            .filter(|((ns, _), _)| ns == namespace)
            .filter_map(|((_, name), ip)| ip.map(|ip| (name.clone(), ip)))
            .collect()
    }
}

impl Tables {
    fn of_service<'a>(&'a self, key: &'a (String, String)) -> impl Iterator<Item = &'a Slice> {
        self.slices.values().filter(move |s| &s.service == key)
    }

    fn service_addresses(&self, key: &(String, String), cluster_ip: Option<Ipv4Addr>) -> Answer {
        if let Some(ip) = cluster_ip {
            return Answer::Addresses([ip].into());
        }
        let all: BTreeSet<_> = self.of_service(key).flat_map(|s| s.endpoints.iter().map(|e| e.1)).collect();
        // CoreDNS: a headless Service without a ready endpoint has no name.
        if all.is_empty() { Answer::Missing } else { Answer::Addresses(all) }
    }

    fn host_addresses(&self, key: &(String, String), host: &str) -> Answer {
        let all: BTreeSet<_> = self
            .of_service(key)
            .flat_map(|s| s.endpoints.iter())
            .filter(|(name, ip)| host == name.clone().unwrap_or_else(|| dashed(*ip)))
            .map(|e| e.1)
            .collect();
        if all.is_empty() { Answer::Missing } else { Answer::Addresses(all) }
    }

    fn srv(&self, key: &(String, String), port: &str, protocol: &str) -> Answer {
        let (Some(port), Some(protocol)) = (port.strip_prefix('_'), protocol.strip_prefix('_')) else {
            return Answer::Missing;
        };
        let mut out = Vec::new();
        for s in self.of_service(key) {
            for (_, _, number) in s.ports.iter().filter(|(n, p, _)| n == port && p.eq_ignore_ascii_case(protocol)) {
                for (host, ip) in &s.endpoints {
                    let host = host.clone().unwrap_or_else(|| dashed(*ip));
                    out.push((format!("{host}.{}.{}.svc.{DOMAIN}", key.1, key.0), *number));
                }
            }
        }
        if out.is_empty() { Answer::Missing } else { Answer::Services(out) }
    }

    fn pointer(&self, reversed: &str) -> Option<String> {
        let mut octets: Vec<&str> = reversed.split('.').collect();
        octets.reverse();
        let ip: Ipv4Addr = octets.join(".").parse().ok()?;
        self.slices.values().find_map(|s| {
            let (host, _) = s.endpoints.iter().find(|e| e.1 == ip)?;
            let host = host.clone().unwrap_or_else(|| dashed(ip));
            Some(format!("{host}.{}.{}.svc.{DOMAIN}", s.service.1, s.service.0))
        })
    }
}

fn dashed(ip: Ipv4Addr) -> String {
    ip.to_string().replace('.', "-")
}

fn id(object: &Value) -> (String, String) {
    (text_at(object, "/metadata/namespace"), text_at(object, "/metadata/name"))
}

fn service(object: &Value) -> ((String, String), Option<Ipv4Addr>) {
    (id(object), text_at(object, "/spec/clusterIP").parse().ok())
}

fn slice(object: &Value) -> Slice {
    let array = |pointer| object.pointer(pointer).and_then(Value::as_array).cloned().unwrap_or_default();
    let endpoints = array("/endpoints")
        .iter()
        // No `ready` means ready (EndpointConditions).
        .filter(|e| e.pointer("/conditions/ready").and_then(Value::as_bool).unwrap_or(true))
        .filter_map(|e| {
            let ip = text_at(e, "/addresses/0").parse().ok()?;
            Some((e.get("hostname").and_then(Value::as_str).map(str::to_owned), ip))
        })
        .collect();
    let ports = array("/ports")
        .iter()
        .filter_map(|p| {
            let number = u16::try_from(p.get("port")?.as_u64()?).ok()?;
            Some((text_at(p, "/name"), text_at(p, "/protocol"), number))
        })
        .collect();
    let service =
        (text_at(object, "/metadata/namespace"), text_at(object, "/metadata/labels/kubernetes.io~1service-name"));
    Slice { service, endpoints, ports }
}

/// Answers UDP and TCP queries on `ip` port 53, in the network namespace of the calling thread.
///
/// # Errors
/// The address cannot be bound.
pub fn serve(zone: &Zone, ip: Ipv4Addr) -> std::io::Result<()> {
    let address = SocketAddr::new(IpAddr::V4(ip), 53);
    let udp = UdpSocket::bind(address)?;
    let tcp = TcpListener::bind(address)?;
    let (for_udp, for_tcp) = (zone.clone(), zone.clone());
    std::thread::spawn(move || {
        let mut buffer = [0u8; 4096];
        while let Ok((n, peer)) = udp.recv_from(&mut buffer) {
            if let Some(reply) = reply(&for_udp, &buffer[..n], UDP_MAX) {
                // A client that went away is no reason to stop.
                let _gone = udp.send_to(&reply, peer);
            }
        }
    });
    std::thread::spawn(move || {
        for stream in tcp.incoming().flatten() {
            if let Err(e) = serve_tcp(&for_tcp, stream) {
                say!("dns over tcp: {e}");
            }
        }
    });
    Ok(())
}

fn serve_tcp(zone: &Zone, mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(2)))?;
    let mut length = [0u8; 2];
    stream.read_exact(&mut length)?;
    let mut query = vec![0u8; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut query)?;
    if let Some(reply) = reply(zone, &query, usize::from(u16::MAX)) {
        let length = u16::try_from(reply.len()).unwrap_or(u16::MAX);
        stream.write_all(&length.to_be_bytes())?;
        stream.write_all(&reply)?;
    }
    Ok(())
}

fn reply(zone: &Zone, query: &[u8], max: usize) -> Option<Vec<u8>> {
    let query = Packet::parse(query).ok()?;
    let question = query.questions.first()?.clone();
    let name = question.qname.to_string().to_ascii_lowercase();
    let mut reply = Packet::new_reply(query.id());
    reply.set_flags(PacketFlag::AUTHORITATIVE_ANSWER | PacketFlag::RECURSION_AVAILABLE);
    reply.set_flags(query_flags(&query));
    reply.questions.push(question.clone());
    let mut records = Vec::new();
    match zone.lookup(name.trim_end_matches('.')) {
        Answer::Missing => *reply.rcode_mut() = RCODE::NameError,
        Answer::Addresses(all) if wants(question.qtype, TYPE::A) => {
            records.extend(all.into_iter().map(|ip| RData::A(A { address: ip.into() })));
        }
        Answer::Services(all) if wants(question.qtype, TYPE::SRV) => {
            for (target, port) in all {
                let target = Name::new(&target).ok()?.into_owned();
                records.push(RData::SRV(SRV { priority: 0, weight: 100, port, target }));
            }
        }
        Answer::Pointer(target) if wants(question.qtype, TYPE::PTR) => {
            records.push(RData::PTR(PTR(Name::new(&target).ok()?.into_owned())));
        }
        // The name exists, but not with this type: an empty answer.
        _ => {}
    }
    for data in records {
        reply.answers.push(ResourceRecord::new(question.qname.clone(), CLASS::IN, TTL, data));
    }
    let bytes = reply.build_bytes_vec_compressed().ok()?;
    if bytes.len() <= max {
        return Some(bytes);
    }
    reply.answers.clear();
    reply.set_flags(PacketFlag::TRUNCATION);
    reply.build_bytes_vec_compressed().ok()
}

fn query_flags(query: &Packet<'_>) -> PacketFlag {
    if query.has_flags(PacketFlag::RECURSION_DESIRED) { PacketFlag::RECURSION_DESIRED } else { PacketFlag::empty() }
}

fn wants(asked: QTYPE, have: TYPE) -> bool {
    asked == QTYPE::ANY || asked == QTYPE::TYPE(have)
}

#[cfg(test)]
#[path = "dns_tests.rs"]
mod tests;
