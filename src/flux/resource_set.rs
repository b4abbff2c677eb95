//! Resource sets, "R" (RFC 20, *Resource Set Specification*, version 1): which rank is which host with which cores and GPUs.
//!
//! [`ResourceSet`] can be built, read, combined and written. The text is one line of JSON with the spacing of
//! `flux R encode`; keys come in a fixed order, so equal sets give equal bytes (flux-core's own order varies).

mod build;
mod json;
mod operations;
mod verify;

use std::collections::BTreeMap;

pub use build::{ConfigEntry, EncodeOptions, HostGroup};
pub use verify::{VerifyMode, VerifyPolicy};

use super::hostlist::{Hostlist, MAX_HOSTS};
use super::idset::{IdSet, IdSetError};

/// Characters that flux-core refuses in a property name.
pub const BAD_PROPERTY_CHARACTERS: &str = "^&'\"`|()";

/// Most ranks in a set, as many as a hostlist may have hosts. flux-core has no such limit; no instance is near it, and
/// a few bytes of text could otherwise stand for billions of ranks.
pub const MAX_RANKS: usize = MAX_HOSTS;

/// Why a resource set cannot be made or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResourceError {
    /// The text is not JSON, or has something behind the JSON.
    #[error("not valid JSON: {0}")]
    Json(String),
    /// A key is missing or has another type.
    #[error("{key}: expected {expected}, found {found}")]
    Type {
        /// The key path, such as `execution.R_lite[0].rank`.
        key: String,
        /// What belongs there.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// Only version 1 exists.
    #[error("version {0} is not supported, only 1 is")]
    Version(i64),
    /// An idset that RFC 22 does not allow.
    #[error("{key}: {error}")]
    IdSet {
        /// Where.
        key: String,
        /// Why.
        error: IdSetError,
    },
    /// A hostlist that Flux cannot read.
    #[error("invalid hostlist {0:?}")]
    Hostlist(String),
    /// As many hosts as ranks are needed.
    #[error("{hosts} hosts for {ranks} ranks")]
    HostCount {
        /// Hosts in the node list.
        hosts: usize,
        /// Ranks in R_lite.
        ranks: usize,
    },
    /// The same core or GPU twice for one rank.
    #[error("rank {rank} is given {child} {ids} more than once")]
    Overlap {
        /// The rank.
        rank: u32,
        /// `core`, `gpu`, …
        child: String,
        /// The repeated ids.
        ids: IdSet,
    },
    /// More than [`MAX_RANKS`] ranks.
    #[error("more than {MAX_RANKS} ranks")]
    TooManyRanks,
    /// A rank or host without a single core or GPU.
    #[error("{0} has no resources")]
    NoResources(String),
    /// A property name with one of [`BAD_PROPERTY_CHARACTERS`].
    #[error("invalid character {0:?} in property {1:?}")]
    PropertyName(char, String),
    /// A property of a rank that is not in the set.
    #[error("property {property:?}: rank {ranks} is not in the set")]
    PropertyRank {
        /// The property.
        property: String,
        /// The unknown ranks.
        ranks: IdSet,
    },
    /// Two sets that should be disjoint.
    #[error("the resource sets overlap on rank {0}")]
    NotDisjoint(IdSet),
    /// A host list that does not name the hosts of the set.
    #[error(transparent)]
    Hosts(#[from] HostMismatch),
    /// No hosts at all.
    #[error("no hosts configured")]
    Empty,
    /// Verification needs exactly one rank.
    #[error("only a set of a single rank can be verified, this one has {0}")]
    NotSingleRank(usize),
    /// What verification found.
    #[error("{0}")]
    Verify(String),
}

/// How the hosts of a resource set differ from those of `[bootstrap]`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostMismatch {
    /// Too few or too many.
    #[error("R has {in_set} hosts, but {expected} are expected")]
    Count {
        /// Hosts in R.
        in_set: usize,
        /// Hosts expected.
        expected: usize,
    },
    /// An expected host that R does not have.
    #[error("host {0} is not in R")]
    Missing(String),
    /// R has no node list.
    #[error("R has no nodelist")]
    NoNodelist,
}

/// One rank.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Node {
    host: Option<String>,
    /// Resource type → logical ids. No empty sets.
    children: BTreeMap<String, IdSet>,
}

/// A resource set.
///
/// ```
/// use flux_gen::flux::{Hostlist, ResourceSet};
/// let r = ResourceSet::uniform(&Hostlist::indexed("sim", 4), 2, 0)?;
/// assert_eq!(
///     r.to_json(),
///     r#"{"version": 1, "execution": {"R_lite": [{"rank": "0-3", "children": {"core": "0-1"}}], "starttime": 0.0, "expiration": 0.0, "nodelist": ["sim-[0-3]"]}}"#
/// );
/// assert_eq!(ResourceSet::parse(&r.to_json())?, r);
/// # Ok::<(), flux_gen::flux::ResourceError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResourceSet {
    nodes: BTreeMap<u32, Node>,
    properties: BTreeMap<String, IdSet>,
    nslots: Option<i64>,
    starttime: f64,
    expiration: f64,
    scheduling: Option<serde_json::Value>,
}

impl ResourceSet {
    /// The ranks.
    #[must_use]
    pub fn ranks(&self) -> IdSet {
        // Ranks come from idsets, so they are in range and unique.
        IdSet::from_ids(self.nodes.keys().copied()).unwrap_or_default()
    }

    /// Number of ranks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True without ranks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The hosts in rank order; `None` if a rank has none, or one that is no host name (brackets, blanks).
    #[must_use]
    pub fn hosts(&self) -> Option<Hostlist> {
        let mut hosts = Hostlist::new();
        for node in self.nodes.values() {
            hosts.append(&Hostlist::decode_as_flux(node.host.as_deref()?).ok()?);
        }
        Some(hosts)
    }

    /// The host of a rank.
    #[must_use]
    pub fn host(&self, rank: u32) -> Option<&str> {
        self.nodes.get(&rank)?.host.as_deref()
    }

    /// The ids of one type (`core`, `gpu`) on a rank; empty if there are none.
    #[must_use]
    pub fn children(&self, rank: u32, kind: &str) -> IdSet {
        self.nodes.get(&rank).and_then(|node| node.children.get(kind)).cloned().unwrap_or_default()
    }

    /// How many of one type there are on all ranks together.
    #[must_use]
    pub fn count(&self, kind: &str) -> usize {
        self.nodes.values().filter_map(|node| node.children.get(kind)).map(IdSet::len).sum()
    }

    /// Property name → ranks.
    #[must_use]
    pub fn properties(&self) -> &BTreeMap<String, IdSet> {
        &self.properties
    }

    /// The first rank without any resources; a broker does not start with one.
    #[must_use]
    pub fn first_rank_without_resources(&self) -> Option<u32> {
        self.nodes.iter().find(|(_, node)| node.children.is_empty()).map(|(rank, _)| *rank)
    }

    /// True if the time until which the resources may be used lies before flux-core's first release, so in
    /// the past whenever this is read.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        /// 2013-01-01, before there was a flux-core.
        const FIRST: f64 = 1_356_998_400.0;
        self.expiration > 0.0 && self.expiration < FIRST
    }

    /// The ranks that have equal resources, folded, in the order of their lowest rank.
    fn folded(&self) -> Vec<(IdSet, &BTreeMap<String, IdSet>)> {
        let mut groups: Vec<(Vec<u32>, &BTreeMap<String, IdSet>)> = Vec::new();
        let mut index: BTreeMap<&BTreeMap<String, IdSet>, usize> = BTreeMap::new();
        for (rank, node) in &self.nodes {
            let at = *index.entry(&node.children).or_insert_with(|| {
                groups.push((Vec::new(), &node.children));
                groups.len() - 1
            });
            groups[at].0.push(*rank);
        }
        groups.into_iter().map(|(ranks, children)| (IdSet::from_ids(ranks).unwrap_or_default(), children)).collect()
    }

    /// Adds resources to a rank, which may exist. Ids that the rank has already are an error.
    fn add(&mut self, rank: u32, host: Option<&str>, children: &BTreeMap<String, IdSet>) -> Result<(), ResourceError> {
        let node =
            self.nodes.entry(rank).or_insert_with(|| Node { host: host.map(str::to_owned), children: BTreeMap::new() });
        for (kind, ids) in children.iter().filter(|(_, ids)| !ids.is_empty()) {
            let have = node.children.entry(kind.clone()).or_default();
            let twice = have.intersection(ids);
            if !twice.is_empty() {
                return Err(ResourceError::Overlap { rank, child: kind.clone(), ids: twice });
            }
            *have = have.union(ids);
        }
        Ok(())
    }

    /// Gives ranks a property; ranks that have it keep it.
    ///
    /// # Errors
    /// A forbidden character in the name, or a rank that the set does not have.
    pub fn set_property(&mut self, name: &str, ranks: &IdSet) -> Result<(), ResourceError> {
        if let Some(bad) = name.chars().find(|&c| BAD_PROPERTY_CHARACTERS.contains(c)) {
            return Err(ResourceError::PropertyName(bad, name.to_owned()));
        }
        let unknown = ranks.difference(&self.ranks());
        if !unknown.is_empty() {
            return Err(ResourceError::PropertyRank { property: name.to_owned(), ranks: unknown });
        }
        if !ranks.is_empty() {
            let have = self.properties.entry(name.to_owned()).or_default();
            *have = have.union(ranks);
        }
        Ok(())
    }

    /// Checks that the set has exactly the hosts of `[bootstrap]`, in any order. flux-core ranks R anew by
    /// host name at start and gives up if this does not hold.
    ///
    /// # Errors
    /// The first difference.
    pub fn check_hosts(&self, expected: &Hostlist) -> Result<(), HostMismatch> {
        let count = HostMismatch::Count { in_set: self.len(), expected: expected.len() };
        if self.len() != expected.len() {
            return Err(count);
        }
        let mut ours = std::collections::BTreeSet::new();
        for node in self.nodes.values() {
            ours.insert(node.host.as_deref().ok_or(HostMismatch::NoNodelist)?);
        }
        match expected.iter().find(|host| !ours.contains(host.as_str())) {
            Some(missing) => Err(HostMismatch::Missing(missing)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
