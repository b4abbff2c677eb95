//! Names by which pods, brokers and Services find each other.

use std::collections::BTreeSet;

use serde_json::Value;

use super::cause::{Cause, Renaming};
use super::cluster::{Cluster, line_value};
use super::world::World;
use super::{Findings, Item};
use crate::diag::codes::audit as codes;

/// Where pods say which Service they belong to.
const SUBDOMAIN: &str = "/spec/template/spec/subdomain";
/// Label of the pods with the namespace of the build.
const NAMESPACE_LABEL: &str = "/spec/template/metadata/labels/namespace";

pub(super) fn check(cluster: &Cluster<'_>, world: &World<'_>, findings: &mut Findings) {
    hosts(cluster, findings);
    subdomain(cluster, world, findings);
    resolver(cluster, findings);
    namespace_in_text(cluster, findings);
}

/// Every pod has to find itself in every list of hosts.
fn hosts(cluster: &Cluster<'_>, findings: &mut Findings) {
    let job = cluster.job;
    let first = format!("{}-0", job.name);
    let last = format!("{}-{}", job.name, cluster.completions() - 1);
    let mut strangers = Vec::new();
    let mut known = None;
    let mut short = None;
    for (file, hosts) in cluster.host_lists() {
        if hosts.find(&first).is_none() {
            strangers.push(file);
            known.get_or_insert_with(|| hosts.to_string());
        } else if hosts.find(&last).is_none() {
            short.get_or_insert_with(|| (file, hosts.to_string()));
        }
    }
    if let Some(main) = cluster.main_host().filter(|main| *main != first) {
        strangers.push("common.sh");
        known.get_or_insert_with(|| main.to_owned());
    }
    if let Some(known) = known {
        let what = format!(
            "the pods are called `{first}` and so on, but {} know `{known}`: brokers do not find their rank, and every pod ends at once",
            strangers.join(", ")
        );
        findings.error(codes::JOB_RENAMED, job, "/metadata/name", &what, &Cause::renamed(&cluster.renaming));
    }
    if let Some((file, hosts)) = short {
        let what = format!("the last pod is `{last}`, but {file} registers `{hosts}` only: its broker ends at once");
        findings.error(codes::TOO_FEW_HOSTS, job, "/spec/completions", &what, &Cause::Patch);
    }
}

/// The Service, the pods' subdomain and what brokers connect to have to be one name.
fn subdomain(cluster: &Cluster<'_>, world: &World<'_>, findings: &mut Findings) {
    let job = cluster.job;
    let subdomain = cluster.subdomain().unwrap_or_default();
    let called: BTreeSet<String> = called_services(cluster).into_iter().filter(|name| name != subdomain).collect();
    if let Some(called) = called.first() {
        let what = format!(
            "pods belong to the Service `{subdomain}`, but brokers call each other at `{called}`: names do not resolve, and no broker reaches its parent"
        );
        let cause = Cause::renamed(&Renaming::between(called, subdomain));
        findings.error(codes::SUBDOMAIN, job, SUBDOMAIN, &what, &cause);
    }
    if world.get("service", job.namespace, subdomain).is_some() {
        return;
    }
    if let Some(service) = cluster.headless(world) {
        let what = format!(
            "the Service is called `{}`, but pods belong to `{subdomain}`: pods have no names, and no broker reaches its parent",
            service.name
        );
        let cause = Cause::renamed(&Renaming::between(subdomain, service.name));
        findings.error(codes::SUBDOMAIN, service, "/metadata/name", &what, &cause);
    } else if cluster.listed.is_empty() {
        let what = format!("there is no Service `{subdomain}`: pods have no names, and no broker reaches its parent");
        findings.error(codes::DROPPED, job, SUBDOMAIN, &what, &Cause::Dropped);
    }
}

/// Names of pods are known to the cluster's DNS only. A single pod looks nobody up.
fn resolver(cluster: &Cluster<'_>, findings: &mut Findings) {
    let pointer = "/spec/template/spec/dnsPolicy";
    if cluster.job.text(pointer) == Some("Default") && cluster.completions() > 1 {
        let what = "pods ask the DNS of their node, which does not know the brokers' names";
        findings.warning(codes::SUBDOMAIN, cluster.job, pointer, what, &Cause::Patch);
    }
}

/// Services in the addresses that brokers and followers' scripts use.
fn called_services(cluster: &Cluster<'_>) -> Vec<String> {
    let mut services = Vec::new();
    let pod = format!("{}-", cluster.base);
    if let Some(bootstrap) = cluster.broker_toml().as_ref().and_then(|table| table.get("bootstrap")) {
        let connects = bootstrap.get("hosts").and_then(toml::Value::as_array).into_iter().flatten();
        let connects = connects.filter_map(|entry| entry.get("connect")).chain(bootstrap.get("default_connect"));
        for uri in connects.filter_map(toml::Value::as_str) {
            let Some(host) = uri.strip_prefix("tcp://") else { continue };
            let host = host.split(':').next().unwrap_or_default();
            if host.starts_with("%h.") || host.starts_with(&pod) {
                services.extend(host.split('.').nth(1).map(str::to_owned));
            }
        }
    }
    let parent = cluster.entrypoint().and_then(|script| line_value(script, "flux_gen_parent="));
    if let Some((_, service)) = parent.and_then(|parent| parent.rsplit_once("))."))
        && cluster.leads()
    {
        services.push(service.trim_matches('\'').to_owned());
    }
    services
}

/// Names of Services with the old namespace, in what the user wrote.
fn namespace_in_text(cluster: &Cluster<'_>, findings: &mut Findings) {
    let job = cluster.job;
    let Some(old) = job.text(NAMESPACE_LABEL).filter(|old| *old != job.namespace && !job.namespace.is_empty()) else {
        return;
    };
    let needle = format!(".{old}.svc");
    let mut report = |item: Item<'_>, pointer: &str| {
        let what = format!("`{needle}` is in the namespace of the build, and the objects are in `{}`", job.namespace);
        findings.warning(codes::NAMESPACE_IN_TEXT, item, pointer, &what, &Cause::Namespace);
    };
    for item in [Some(job), cluster.scripts, cluster.flux].into_iter().flatten() {
        for part in ["/spec/template/spec", "/data"] {
            if let Some(value) = item.at(part) {
                each_text(value, part, &mut |pointer, text| {
                    if text.contains(&needle) {
                        report(item, pointer);
                    }
                });
            }
        }
    }
}

/// Calls `f` with the pointer and text of every string in a value.
fn each_text(value: &Value, pointer: &str, f: &mut dyn FnMut(&str, &str)) {
    match value {
        Value::String(text) => f(pointer, text),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                each_text(item, &format!("{pointer}/{index}"), f);
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                each_text(item, &format!("{pointer}/{}", super::item::escaped(key)), f);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
