//! Combining resource sets, with the meaning of the commands of `flux R`.

use std::collections::BTreeMap;

use super::{HostMismatch, ResourceError, ResourceSet};
use crate::flux::hostlist::Hostlist;
use crate::flux::idset::IdSet;

impl ResourceSet {
    /// Adds a set that shares nothing with this one (`flux R append`).
    ///
    /// # Errors
    /// A resource in both.
    pub fn append(&mut self, other: &Self) -> Result<(), ResourceError> {
        let shared = self.intersection(other);
        if !shared.is_empty() {
            return Err(ResourceError::NotDisjoint(shared.ranks()));
        }
        self.absorb(other)
    }

    fn absorb(&mut self, other: &Self) -> Result<(), ResourceError> {
        for (rank, node) in &other.nodes {
            self.add(*rank, node.host.as_deref(), &node.children)?;
        }
        for (name, ranks) in &other.properties {
            self.set_property(name, ranks)?;
        }
        if self.scheduling.is_none() {
            self.scheduling.clone_from(&other.scheduling);
        }
        Ok(())
    }

    /// All resources of both sets (`flux R decode` of several).
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut result = self.difference(other);
        // Cannot overlap: what `other` has was just taken out.
        let _ = result.absorb(other);
        result
    }

    /// The resources of this set that the other does not have (`flux R diff`). Ranks with nothing left are dropped.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut result = self.without_times();
        for (rank, node) in &mut result.nodes {
            let theirs = other.nodes.get(rank).map(|node| &node.children);
            for (kind, ids) in &mut node.children {
                if let Some(gone) = theirs.and_then(|children| children.get(kind)) {
                    *ids = ids.difference(gone);
                }
            }
            node.children.retain(|_, ids| !ids.is_empty());
        }
        result.nodes.retain(|rank, node| !node.children.is_empty() || !other.nodes.contains_key(rank));
        result.forget_missing_ranks();
        result
    }

    /// The resources that both sets have (`flux R intersect`), without properties. Ranks whose host names
    /// differ have nothing in common.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut result = self.without_times();
        result.properties = BTreeMap::new();
        result.nodes.retain(|rank, node| {
            let Some(theirs) = other.nodes.get(rank) else { return false };
            let same_host = node.host.is_none() || theirs.host.is_none() || node.host == theirs.host;
            for (kind, ids) in &mut node.children {
                *ids = theirs.children.get(kind).map(|other| ids.intersection(other)).unwrap_or_default();
            }
            node.children.retain(|_, ids| !ids.is_empty());
            same_host && !node.children.is_empty()
        });
        if result.nodes.is_empty() {
            result.scheduling = None;
        }
        result
    }

    /// Only these ranks (`flux R decode --include`).
    #[must_use]
    pub fn include(&self, ranks: &IdSet) -> Self {
        let mut result = self.without_times();
        result.nodes.retain(|rank, _| ranks.contains(*rank));
        result.forget_missing_ranks();
        result
    }

    /// All but these ranks (`flux R decode --exclude`).
    #[must_use]
    pub fn exclude(&self, ranks: &IdSet) -> Self {
        let mut result = self.clone();
        result.nodes.retain(|rank, _| !ranks.contains(*rank));
        result.forget_missing_ranks();
        result
    }

    /// Only the ranks that have all of some properties; `^name` stands for not having one
    /// (`flux R decode --properties`).
    #[must_use]
    pub fn with_properties(&self, properties: &[&str]) -> Self {
        let mut ranks = self.ranks();
        for property in properties {
            let having = |name: &str| self.properties.get(name).cloned().unwrap_or_default();
            ranks = match property.strip_prefix('^') {
                Some(name) => ranks.difference(&having(name)),
                None => ranks.intersection(&having(property)),
            };
        }
        self.include(&ranks)
    }

    /// Ranks anew by position in `hosts` (`flux R rerank`; every broker does it with the hosts of `[bootstrap]`).
    ///
    /// # Errors
    /// Other hosts than those of the set.
    pub fn rerank(&self, hosts: &Hostlist) -> Result<Self, ResourceError> {
        self.check_hosts(hosts)?;
        let mut new_rank = BTreeMap::new();
        for (host, rank) in hosts.iter().zip(0u32..) {
            new_rank.insert(host, rank);
        }
        let mut result = Self { nodes: BTreeMap::new(), properties: BTreeMap::new(), ..self.clone() };
        let mut moved = BTreeMap::new();
        for (rank, node) in &self.nodes {
            let host = node.host.clone().unwrap_or_default();
            let to = *new_rank.get(&host).ok_or(HostMismatch::Missing(host))?;
            moved.insert(*rank, to);
            result.nodes.insert(to, node.clone());
        }
        for (name, ranks) in &self.properties {
            let ranks = ranks.iter().filter_map(|rank| moved.get(&rank).copied());
            let ranks = IdSet::from_ids(ranks).map_err(|error| ResourceError::IdSet { key: name.clone(), error })?;
            result.properties.insert(name.clone(), ranks);
        }
        Ok(result)
    }

    /// Ranks and core ids numbered from 0 (`flux R remap`); GPU ids stay.
    #[must_use]
    pub fn remap(&self) -> Self {
        let mut result = Self { nodes: BTreeMap::new(), properties: BTreeMap::new(), ..self.clone() };
        let old: Vec<u32> = self.nodes.keys().copied().collect();
        for (rank, node) in (0u32..).zip(self.nodes.values()) {
            let mut node = node.clone();
            for (_, ids) in node.children.iter_mut().filter(|(kind, _)| *kind != "gpu") {
                *ids = IdSet::first_n(ids.len().try_into().unwrap_or(u32::MAX));
            }
            result.nodes.insert(rank, node);
        }
        for (name, ranks) in &self.properties {
            let ranks = ranks.iter().filter_map(|rank| old.binary_search(&rank).ok()?.try_into().ok());
            result.properties.insert(name.clone(), IdSet::from_ids(ranks).unwrap_or_default());
        }
        result
    }

    /// The short form for people (`flux R decode --short`): `rank[0-3]/core[0-1] rank4/core0,gpu0`.
    #[must_use]
    pub fn to_short_string(&self) -> String {
        let mut parts = Vec::new();
        for (ranks, children) in self.folded().into_iter().filter(|(_, children)| !children.is_empty()) {
            let core = children.get_key_value("core");
            let others = children.iter().filter(|(kind, _)| *kind != "core");
            let ids: Vec<String> = core
                .into_iter()
                .chain(others)
                .map(|(kind, ids)| format!("{kind}{}", ids.to_bracketed_string()))
                .collect();
            parts.push(format!("rank{}/{}", ranks.to_bracketed_string(), ids.join(",")));
        }
        parts.join(" ")
    }

    /// A copy as the set operations of Flux make it: without times and slot count.
    fn without_times(&self) -> Self {
        Self { nslots: None, starttime: 0.0, expiration: 0.0, ..self.clone() }
    }

    fn forget_missing_ranks(&mut self) {
        let ranks = self.ranks();
        for have in self.properties.values_mut() {
            *have = have.intersection(&ranks);
        }
        self.properties.retain(|_, have| !have.is_empty());
        if self.nodes.is_empty() {
            self.scheduling = None;
        }
    }
}
