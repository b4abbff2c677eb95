//! The brokers: hosts, configuration, resources, command line.

use super::cores::cores;
use super::written::{flag, number, owned, text, texts};
use super::{BROKER_PORT, Size};
use crate::diag::{Diagnostic, Diagnostics, codes::model as codes};
use crate::flux::config::{Bootstrap, BrokerConfig, HostEntry, Modules, QueuePolicy, Resource};
use crate::flux::hostlist::Hostlist;
use crate::flux::resource_set::ResourceSet;
use crate::flux::topology::Topology;
use crate::model::kubernetes::Feature;
use crate::model::settings::Settings;
use crate::model::{Broker, BrokerToml, FollowerEnd, Leader, Network, View};
use crate::spec::minicluster::{Bursting, LeadBroker, MiniClusterSpec};

/// The operator's default, which the documents give (quirk: it sets it only when `flux` is written).
const DEFAULT_CONNECT_TIMEOUT: &str = "5s";
const DEFAULT_LOG_LEVEL: i32 = 6;

/// What was resolved before and the brokers need.
pub(super) struct Parts<'a> {
    pub name: &'a str,
    pub size: Size,
    pub network: &'a Network,
    pub view: &'a View,
    pub runner: usize,
    pub settings: &'a Settings,
}

/// `flux.bursting.leadBroker`, or its older place.
pub(super) fn lead_broker(spec: &MiniClusterSpec) -> Option<&LeadBroker> {
    let flux = spec.flux.as_ref()?;
    let new = flux.bursting.as_ref().and_then(|b| b.lead_broker.as_ref());
    new.or(flux.lead_broker.as_ref()).map(|lead| &lead.value).filter(|lead| text(&lead.address).is_some())
}

/// Resolves the brokers.
pub(super) fn broker(spec: &MiniClusterSpec, parts: &Parts<'_>, diagnostics: &mut Diagnostics) -> Broker {
    let flux = spec.flux.as_ref();
    let cores = cores(spec, parts.runner, parts.size, parts.settings, diagnostics);
    let hosts = hosts(spec, parts);
    check_hosts(spec, parts, &hosts, diagnostics);
    let leader = leader(spec);
    let topology = flux.and_then(|f| text(&f.topology)).and_then(|t| t.parse().ok()).unwrap_or(Topology::Custom);
    let resources = cores.cores.and_then(|n| ResourceSet::uniform(&hosts, n, cores.gpus).ok()).map(|r| r.to_json());
    let simple_scheduler = flux.and_then(|f| f.scheduler.as_ref()).is_some_and(|s| flag(&s.simple));
    let config = match flux.and_then(|f| owned(&f.broker_config)) {
        Some(text) => BrokerToml::Written(text),
        None => BrokerToml::Generated(Box::new(config(spec, parts, &hosts, resources.is_some(), simple_scheduler))),
    };
    let complete = flux.is_some_and(|f| flag(&f.complete_workers));
    let lasting = parts.settings.kubernetes_version.has(Feature::SuccessPolicy) && leader == Leader::Here;
    Broker {
        config,
        resources,
        attributes: attributes(spec, parts, &hosts),
        topology,
        wrap: flux.and_then(|f| owned(&f.wrap)),
        environment: flux.map(|f| texts(&f.environment)).unwrap_or_default(),
        leader,
        follower_end: if complete || !lasting { FollowerEnd::Exit } else { FollowerEnd::WaitAgain },
        socket: !flux.is_some_and(|f| flag(&f.disable_socket)),
        archive: spec.archive.as_ref().and_then(|a| owned(&a.path)),
        simple_scheduler,
        hosts,
    }
}

fn leader(spec: &MiniClusterSpec) -> Leader {
    lead_broker(spec).map_or(Leader::Here, |lead| Leader::Elsewhere {
        address: owned(&lead.address).unwrap_or_default(),
        port: number(&lead.port).and_then(|p| u16::try_from(p).ok()).unwrap_or(BROKER_PORT),
    })
}

/// All hosts in rank order: the leader's cluster first, then every cluster that may join.
fn hosts(spec: &MiniClusterSpec, parts: &Parts<'_>) -> Hostlist {
    let none = Bursting::default();
    let bursting = spec.flux.as_ref().and_then(|f| f.bursting.as_ref()).map_or(&none, |b| &b.value);
    let older = lead_broker(spec).and_then(|lead| text(&lead.hostlist));
    if let Some(hosts) = text(&bursting.hostlist).or(older).and_then(|list| Hostlist::parse(list).ok()) {
        return hosts;
    }
    let own = Hostlist::indexed(parts.name, parts.size.max);
    let mut hosts = match lead_broker(spec) {
        Some(lead) => {
            let size = number(&lead.size).filter(|n| *n > 0).unwrap_or(parts.size.pods);
            Hostlist::indexed(text(&lead.name).unwrap_or_default(), size)
        }
        None => own.clone(),
    };
    for (index, cluster) in bursting.clusters.iter().flat_map(|c| c.value.iter()).enumerate() {
        let name = owned(&cluster.name).unwrap_or_else(|| format!("burst-{index}"));
        let size = number(&cluster.size).filter(|n| *n > 0).unwrap_or(parts.size.pods);
        hosts.append(&Hostlist::indexed(&name, size));
    }
    if hosts.find(&format!("{}-0", parts.name)).is_none() {
        hosts.append(&own);
    }
    hosts
}

/// A leader whose host is not the first one never becomes rank 0. (That a pod is missing from the list, the rules say.)
fn check_hosts(spec: &MiniClusterSpec, parts: &Parts<'_>, hosts: &Hostlist, diagnostics: &mut Diagnostics) {
    let first = format!("{}-0", parts.name);
    let Some(bursting) = spec.flux.as_ref().and_then(|f| f.bursting.as_ref()) else { return };
    if leader(spec) == Leader::Here && hosts.find(&first).is_some_and(|rank| rank != 0) {
        let span = bursting.hostlist.as_ref().map_or(bursting.span, |list| list.span);
        let message = format!("`{first}` is to be rank 0, but the hosts `{hosts}` begin with another one");
        diagnostics.push(
            Diagnostic::warning(codes::LEADER_NOT_FIRST, span, message)
                .help(format!("begin the list with `{first}`, or name the other leader in `bursting.leadBroker`")),
        );
    }
}

fn config(
    spec: &MiniClusterSpec,
    parts: &Parts<'_>,
    hosts: &Hostlist,
    has_resources: bool,
    simple_scheduler: bool,
) -> BrokerConfig {
    let root = format!("{}/config", parts.view.mount_path);
    let interface = parts.settings.bind_interface.as_deref().unwrap_or("*");
    let lead = lead_broker(spec).map(|_| leader(spec));
    let mut entries = Vec::new();
    if let Some(Leader::Elsewhere { address, port }) = lead {
        entries.push(HostEntry {
            host: hosts.nth(0).unwrap_or_default(),
            bind: Some(format!("tcp://*:{BROKER_PORT}")),
            connect: Some(format!("tcp://{address}:{port}")),
            parent: None,
        });
    }
    entries.push(HostEntry::new(hosts.to_string()));
    let policy = spec
        .flux
        .as_ref()
        .and_then(|f| f.scheduler.as_ref())
        .and_then(|s| text(&s.queue_policy))
        .and_then(|p| p.parse().ok());
    BrokerConfig {
        resource: Resource {
            path: has_resources.then(|| format!("{root}/etc/flux/system/R")),
            noverify: has_resources,
            ..Resource::default()
        },
        bootstrap: Some(Bootstrap {
            curve_cert: Some(format!("{root}/curve/curve.cert")),
            default_port: Some(BROKER_PORT),
            default_bind: Some(format!("tcp://{interface}:%p")),
            default_connect: Some(format!("tcp://%h.{}:%p", parts.network.headless)),
            enable_ipv6: parts.settings.ipv6.then_some(true),
            hosts: entries,
        }),
        fluxion_queue_policy: (!simple_scheduler).then(|| policy.unwrap_or(QueuePolicy::Fcfs)),
        modules: Modules { scheduler: simple_scheduler.then(|| "sched-simple".to_owned()) },
        ..BrokerConfig::default()
    }
}

/// `-S` attributes, in the operator's order.
fn attributes(spec: &MiniClusterSpec, parts: &Parts<'_>, hosts: &Hostlist) -> Vec<(String, String)> {
    let root = format!("{}/config", parts.view.mount_path);
    let flux = spec.flux.as_ref();
    let logging = spec.logging.as_ref();
    let mut attributes: Vec<(String, String)> = Vec::new();
    let mut set = |name: &str, value: String| attributes.push((name.to_owned(), value));
    set("rundir", format!("{root}/run/flux"));
    set("statedir", format!("{root}/var/lib/flux"));
    if !flux.is_some_and(|f| flag(&f.disable_socket)) {
        set("local-uri", format!("local://{root}/run/flux/local"));
    }
    let timeout = flux.and_then(|f| f.connect_timeout.as_ref()).map_or(DEFAULT_CONNECT_TIMEOUT, |t| t.value.as_str());
    if !matches!(timeout, "" | "0" | "0s") {
        set("tbon.connect_timeout", timeout.to_owned());
    }
    // Hosts that burst later must not hold up the cluster's own.
    let waits = (hosts.len() > parts.size.pods as usize && leader(spec) == Leader::Here).then_some(parts.size.pods);
    if let Some(quorum) = parts.size.quorum.or(waits).filter(|_| !parts.size.elastic) {
        set("broker.quorum", quorum.to_string());
    }
    if let Some(topology) = flux.and_then(|f| text(&f.topology)) {
        set("tbon.topo", topology.to_owned());
    }
    if logging.is_some_and(|l| flag(&l.zeromq)) {
        set("tbon.zmqdebug", "1".to_owned());
    }
    let level = flux.and_then(|f| f.log_level.as_ref()).map_or(0, |l| l.value);
    let level = if level == 0 { DEFAULT_LOG_LEVEL } else { level };
    let quiet = logging.is_some_and(|l| flag(&l.quiet));
    set("log-stderr-level", if quiet { 0 } else { level }.to_string());
    set("log-stderr-mode", "local".to_owned());
    attributes
}
