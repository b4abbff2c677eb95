//! One cluster: its Job, the objects of its bundle, and what they say about each other.

use serde_json::Value;

use super::cause::Renaming;
use super::item::Item;
use super::world::{Role, World, role};
use crate::flux::hostlist::Hostlist;
use crate::flux::resource_set::ResourceSet;
use crate::render::{OBJECTS, SECRETS, paths};

/// An object that the record of the Job lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    /// Lower case.
    pub(super) kind: String,
    /// As built.
    pub(super) name: String,
}

/// Where a listed object is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Located<'a> {
    /// Beside the Job, under its old or its new name.
    Here(Item<'a>),
    /// In another namespace.
    Elsewhere(Item<'a>),
    /// Nowhere.
    Missing,
}

/// One cluster.
pub(super) struct Cluster<'a> {
    pub(super) job: Item<'a>,
    /// Name of the Job as built.
    pub(super) base: String,
    /// What became of it.
    pub(super) renaming: Renaming,
    /// All objects of the bundle, the Job included; empty when the record is gone.
    pub(super) listed: Vec<Listed>,
    pub(super) scripts: Option<Item<'a>>,
    pub(super) flux: Option<Item<'a>>,
    pub(super) size: Option<Item<'a>>,
}

impl<'a> Cluster<'a> {
    pub(super) fn of(job: Item<'a>, world: &World<'a>) -> Self {
        let listed = listed(job);
        let recorded = listed.iter().find(|listed| listed.kind == "job").map(|listed| listed.name.clone());
        let mut cluster = Self {
            job,
            base: recorded.clone().unwrap_or_else(|| job.name.to_owned()),
            renaming: Renaming::default(),
            listed,
            scripts: None,
            flux: None,
            size: None,
        };
        cluster.renaming = Renaming::between(&cluster.base, job.name);
        cluster.scripts = cluster.config_map(Role::Scripts, paths::SCRIPTS.0, world);
        cluster.flux = cluster.config_map(Role::Flux, paths::CONFIG.0, world);
        cluster.size = cluster.config_map(Role::Size, paths::SIZE.0, world);
        if recorded.is_none()
            && let Some(main) = cluster.main_host().and_then(|host| host.strip_suffix("-0"))
        {
            cluster.renaming = Renaming::between(main, job.name);
            cluster.base = main.to_owned();
        }
        cluster
    }

    /// The ConfigMap for a purpose: the listed one, else the one that the volume names.
    fn config_map(&self, wanted: Role, volume: &str, world: &World<'a>) -> Option<Item<'a>> {
        for listed in self.listed.iter().filter(|listed| listed.kind == "configmap") {
            if let Located::Here(item) | Located::Elsewhere(item) = self.locate(listed, world)
                && role(item) == Some(wanted)
            {
                return Some(item);
            }
        }
        let volumes = self.job.list("/spec/template/spec/volumes");
        let source = volumes.iter().find(|v| v.get("name").and_then(Value::as_str) == Some(volume))?;
        let name = source.pointer("/configMap/name")?.as_str()?;
        world.get("configmap", self.job.namespace, name).filter(|item| role(*item) == Some(wanted))
    }

    /// Finds a listed object under its own name, under the name that the Job's renaming gives it, or under a longer one.
    pub(super) fn locate(&self, listed: &Listed, world: &World<'a>) -> Located<'a> {
        let new = self.renaming.apply(&listed.name);
        let names = [listed.name.as_str(), new.as_str()];
        let here = names.iter().find_map(|name| world.get(&listed.kind, self.job.namespace, name));
        if let Some(item) = here.or_else(|| self.locate_renamed(listed, world)) {
            return Located::Here(item);
        }
        match names.iter().find_map(|name| world.named(&listed.kind, name).next()) {
            Some(item) if !is_of_other_job(item, self.job, world) => Located::Elsewhere(item),
            _ => Located::Missing,
        }
    }

    /// An object whose name alone was changed. Names of ConfigMaps hold a hash, so they cannot be mistaken; a Service has to
    /// be one for brokers, and one that no other cluster has.
    fn locate_renamed(&self, listed: &Listed, world: &World<'a>) -> Option<Item<'a>> {
        let of_others: Vec<Listed> = world.jobs().filter(|job| !job.is(self.job)).flat_map(self::listed).collect();
        world.items().find(|item| {
            let like = match listed.kind.as_str() {
                "configmap" => role(*item).is_some_and(|role| role != Role::Size),
                "service" => item.kind == "Service" && serves_brokers(*item),
                // It selects by labels, so its name is nobody's business.
                "networkpolicy" => item.kind == "NetworkPolicy",
                _ => false,
            };
            like && item.namespace == self.job.namespace
                && item.name.contains(&listed.name)
                && !of_others.iter().any(|other| other.kind == listed.kind && other.name == item.name)
                && !self.listed.iter().any(|other| other.kind == listed.kind && other.name == item.name)
        })
    }

    /// The headless Service: the first one of the bundle, else the one that pods name.
    pub(super) fn headless(&self, world: &World<'a>) -> Option<Item<'a>> {
        match self.listed.iter().find(|listed| listed.kind == "service") {
            Some(listed) => match self.locate(listed, world) {
                Located::Here(item) => Some(item),
                Located::Elsewhere(_) | Located::Missing => None,
            },
            None => {
                let old = self.subdomain()?;
                let new = self.renaming.apply(old);
                [old, new.as_str()].into_iter().find_map(|name| world.get("service", self.job.namespace, name))
            }
        }
    }

    pub(super) fn subdomain(&self) -> Option<&'a str> {
        self.job.text("/spec/template/spec/subdomain")
    }

    /// Setting `secrets` of the build.
    pub(super) fn backend(&self) -> Option<&'a str> {
        self.job.annotation(SECRETS)
    }

    /// Completions of the Job, at least one.
    pub(super) fn completions(&self) -> i64 {
        self.job.number("/spec/completions").unwrap_or(1).max(1)
    }

    /// The name of the leader's pod that the scripts know. A bursted cluster has no leader.
    pub(super) fn main_host(&self) -> Option<&'a str> {
        if !self.leads() {
            return None;
        }
        line_value(self.scripts?.file("common.sh")?, "mainHost=")
    }

    /// Whether index 0 of this cluster is the leader, as far as the scripts say.
    pub(super) fn leads(&self) -> bool {
        self.entrypoint().is_none_or(|script| script.contains("\"$mainHost\""))
    }

    /// The script that runs Flux.
    pub(super) fn entrypoint(&self) -> Option<&'a str> {
        let files = self.scripts?.at("/data")?.as_object()?;
        files.iter().find(|(name, _)| name.starts_with("wait-")).and_then(|(_, text)| text.as_str())
    }

    /// Name and content of each list of hosts that brokers read.
    pub(super) fn host_lists(&self) -> Vec<(&'static str, Hostlist)> {
        let Some(flux) = self.flux else { return Vec::new() };
        let hosts = flux.file("hostlist").and_then(|text| Hostlist::parse(text.trim()).ok());
        let resources = flux.file("R").and_then(|text| ResourceSet::parse(text).ok()).and_then(|r| r.hosts());
        let lists = [("broker.toml", self.bootstrap_hosts()), ("hostlist", hosts), ("R", resources)];
        lists.into_iter().filter_map(|(name, list)| Some((name, list?))).collect()
    }

    fn bootstrap_hosts(&self) -> Option<Hostlist> {
        let table = self.broker_toml()?;
        let entries = table.get("bootstrap")?.get("hosts")?.as_array()?;
        let mut hosts = Hostlist::new();
        for entry in entries.iter().filter_map(|entry| entry.get("host")?.as_str()) {
            hosts.append(&Hostlist::parse(entry).ok()?);
        }
        hosts.uniq();
        Some(hosts)
    }

    pub(super) fn broker_toml(&self) -> Option<toml::Table> {
        self.flux?.file("broker.toml")?.parse().ok()
    }
}

/// The record of a Job.
fn listed(job: Item<'_>) -> Vec<Listed> {
    let names = job.annotation(OBJECTS).unwrap_or_default().split(',').filter_map(|word| word.trim().split_once('/'));
    names.map(|(kind, name)| Listed { kind: kind.to_owned(), name: name.to_owned() }).collect()
}

/// Whether an object in another namespace stands beside a Job of ours there: then it is that one's.
fn is_of_other_job(item: Item<'_>, job: Item<'_>, world: &World<'_>) -> bool {
    world.jobs().any(|other| !other.is(job) && other.namespace == item.namespace && listed(other) == listed(job))
}

/// Headless, or with the brokers' port.
fn serves_brokers(service: Item<'_>) -> bool {
    let ports = service.list("/spec/ports");
    service.text("/spec/clusterIP") == Some("None")
        || ports.iter().any(|port| port.get("name").and_then(Value::as_str) == Some("broker"))
}

/// What follows `key` on its line of a script.
pub(super) fn line_value<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.trim_start().strip_prefix(key)).map(str::trim)
}
