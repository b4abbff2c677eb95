//! Making resource sets: from hosts, as `flux R encode`, and from `[[resource.config]]`.

use std::collections::BTreeMap;

use super::{MAX_RANKS, ResourceError, ResourceSet};
use crate::flux::hostlist::Hostlist;
use crate::flux::idset::IdSet;

/// Hosts with equal resources.
#[derive(Debug, Clone, Default)]
pub struct HostGroup {
    /// The hosts, in rank order.
    pub hosts: Hostlist,
    /// Logical core ids of each host.
    pub cores: IdSet,
    /// Logical GPU ids of each host.
    pub gpus: IdSet,
    /// Properties of all of them.
    pub properties: Vec<String>,
}

/// The options of `flux R encode`, as text. `--local` and `--xml` look at the machine and have no place here.
#[derive(Debug, Clone, Copy, Default)]
pub struct EncodeOptions<'a> {
    /// `--ranks`: idset; by default 0 to the number of hosts - 1.
    pub ranks: Option<&'a str>,
    /// `--cores`: idset for each rank; `0` if neither cores nor GPUs are given.
    pub cores: Option<&'a str>,
    /// `--gpus`: idset for each rank.
    pub gpus: Option<&'a str>,
    /// `--hosts`: hostlist, read as Flux reads it; by default `local_host` once per rank.
    pub hosts: Option<&'a str>,
    /// `--property`: `NAME` or `NAME:RANKS`; of two with one name the later counts.
    pub properties: &'a [&'a str],
    /// What `hostname` says on the machine.
    pub local_host: &'a str,
}

/// One entry of `[[resource.config]]`, as text.
#[derive(Debug, Clone, Default)]
pub struct ConfigEntry {
    /// `hosts`: hostlist.
    pub hosts: String,
    /// `cores`: idset.
    pub cores: Option<String>,
    /// `gpus`: idset.
    pub gpus: Option<String>,
    /// `properties`.
    pub properties: Vec<String>,
}

fn idset(key: &str, text: &str) -> Result<IdSet, ResourceError> {
    text.parse().map_err(|error| ResourceError::IdSet { key: key.to_owned(), error })
}

fn hostlist(text: &str) -> Result<Hostlist, ResourceError> {
    Hostlist::decode_as_flux(text).map_err(|_| ResourceError::Hostlist(text.to_owned()))
}

fn cores_and_gpus(cores: &IdSet, gpus: &IdSet) -> BTreeMap<String, IdSet> {
    let all = [("core".to_owned(), cores.clone()), ("gpu".to_owned(), gpus.clone())];
    all.into_iter().filter(|(_, ids)| !ids.is_empty()).collect()
}

impl ResourceSet {
    /// The same number of cores and GPUs on every host; rank = position in `hosts`.
    ///
    /// # Errors
    /// Neither cores nor GPUs: a broker does not start with an empty rank.
    pub fn uniform(hosts: &Hostlist, cores: u32, gpus: u32) -> Result<Self, ResourceError> {
        Self::from_groups(&[HostGroup {
            hosts: hosts.clone(),
            cores: IdSet::first_n(cores),
            gpus: IdSet::first_n(gpus),
            properties: Vec::new(),
        }])
    }

    /// Different hosts in different groups; rank = position in all groups one after the other.
    ///
    /// # Errors
    /// A group without resources, or a bad property name.
    pub fn from_groups(groups: &[HostGroup]) -> Result<Self, ResourceError> {
        let mut set = Self::default();
        let mut rank = 0;
        for group in groups {
            let children = cores_and_gpus(&group.cores, &group.gpus);
            let first = rank;
            for host in group.hosts.iter() {
                if children.is_empty() {
                    return Err(ResourceError::NoResources(format!("host {host}")));
                }
                set.add(rank, Some(&host), &children)?;
                rank += 1;
            }
            let ranks = IdSet::first_n(rank).difference(&IdSet::first_n(first));
            for property in &group.properties {
                set.set_property(property, &ranks)?;
            }
        }
        Ok(set)
    }

    /// What `flux R encode` prints for these options.
    ///
    /// # Errors
    /// Where the command fails.
    pub fn encode(options: &EncodeOptions<'_>) -> Result<Self, ResourceError> {
        let hosts = options.hosts.map(hostlist).transpose()?;
        let ranks = match options.ranks {
            Some(text) => idset("ranks", text)?,
            None => IdSet::first_n(hosts.as_ref().map_or(1, Hostlist::len).try_into().unwrap_or(u32::MAX)),
        };
        if let Some(hosts) = hosts.as_ref().filter(|hosts| !ranks.is_empty() && hosts.len() != ranks.len()) {
            return Err(ResourceError::HostCount { hosts: hosts.len(), ranks: ranks.len() });
        }
        if ranks.len() > MAX_RANKS {
            return Err(ResourceError::TooManyRanks);
        }
        let (cores, gpus) = match (options.cores.unwrap_or(""), options.gpus.unwrap_or("")) {
            ("", "") => ("0", ""),
            given => given,
        };
        let mut set = Self::default();
        if !ranks.is_empty() {
            let children = cores_and_gpus(&idset("cores", cores)?, &idset("gpus", gpus)?);
            let names: Box<dyn Iterator<Item = String>> = match &hosts {
                Some(hosts) => Box::new(hosts.iter()),
                None => Box::new(std::iter::repeat(options.local_host.to_owned())),
            };
            for (rank, host) in ranks.iter().zip(names) {
                set.add(rank, Some(&host), &children)?;
            }
        }
        set.set_properties_from_text(options.properties)?;
        Ok(set)
    }

    /// Sets properties written as `NAME` (all ranks) or `NAME:RANKS`. Of two with one name the later counts.
    ///
    /// # Errors
    /// As [`ResourceSet::set_property`], or a bad idset.
    pub fn set_properties_from_text(&mut self, properties: &[&str]) -> Result<(), ResourceError> {
        let all = self.ranks();
        let mut wanted = BTreeMap::new();
        for property in properties {
            let (name, ranks) = property.split_once(':').map_or((*property, None), |(name, ranks)| (name, Some(ranks)));
            wanted.insert(name, ranks);
        }
        for (name, ranks) in wanted {
            let ranks = ranks.map_or_else(|| Ok(all.clone()), |text| idset(name, text))?;
            self.set_property(name, &ranks)?;
        }
        Ok(())
    }

    /// The resource set that `[[resource.config]]` stands for. Entries add up; rank = order of first appearance.
    ///
    /// # Errors
    /// What stops the resource module: bad lists, ids given twice to a host, a host without resources, no hosts.
    pub fn from_config(entries: &[ConfigEntry]) -> Result<Self, ResourceError> {
        let mut set = Self::default();
        let mut known = Hostlist::new();
        for (index, entry) in entries.iter().enumerate() {
            let hosts = hostlist(&entry.hosts)?;
            if hosts.is_empty() {
                return Err(ResourceError::Hostlist(entry.hosts.clone()));
            }
            let cores = idset(&format!("config[{index}].cores"), entry.cores.as_deref().unwrap_or(""))?;
            let gpus = idset(&format!("config[{index}].gpus"), entry.gpus.as_deref().unwrap_or(""))?;
            let children = cores_and_gpus(&cores, &gpus);
            let mut ranks = Vec::new();
            for host in hosts.iter() {
                let rank = rank_of(&mut known, &host)?;
                set.add(rank, Some(&host), &children)?;
                ranks.push(rank);
            }
            ranks.sort_unstable();
            ranks.dedup();
            let key = || format!("config[{index}].hosts");
            let ranks = IdSet::from_ids(ranks).map_err(|error| ResourceError::IdSet { key: key(), error })?;
            for property in &entry.properties {
                set.set_property(property, &ranks)?;
            }
        }
        if set.is_empty() {
            return Err(ResourceError::Empty);
        }
        match set.nodes.values().find(|node| node.children.is_empty()) {
            Some(node) => Err(ResourceError::NoResources(node.host.clone().unwrap_or_default())),
            None => Ok(set),
        }
    }
}

/// The position of `host` in `known`, adding it. A name with brackets in it is expanded when it is added,
/// as flux-core does: its rank is then the position of its last part.
fn rank_of(known: &mut Hostlist, host: &str) -> Result<u32, ResourceError> {
    let found = known.find(host).filter(|_| !host.contains(['[', ']']));
    let at = match found {
        Some(at) => at,
        None => {
            known.append(&hostlist(host)?);
            known.len().saturating_sub(1)
        }
    };
    u32::try_from(at).map_err(|_| ResourceError::Hostlist(host.to_owned()))
}
