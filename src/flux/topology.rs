//! The tree that brokers form (TBON): which broker is the parent of which.
//!
//! Set with the broker attribute `tbon.topo` or the key `topo` of `[tbon]`. Rank 0 is always the root.
//! With a `[bootstrap]` table the default is [`Topology::Custom`], which is flat unless `parent` keys are given.

use std::fmt;
use std::str::FromStr;

use super::idset::{IdSet, MAX_ID};

/// Most children a router of `mincrit` without a number is given.
const MINCRIT_FANOUT: u32 = 1024;

/// Why a text names no topology.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// Anything before the colon but `kary`, `mincrit`, `binomial`, `custom` (case matters).
    #[error("unknown topology scheme {0:?}: use kary:K, mincrit, mincrit:K, binomial or custom")]
    UnknownScheme(String),
    /// `kary` without a number, `kary:x`, `mincrit:2.5`.
    #[error("the k of {0} must be a whole number, 0 or larger")]
    BadNumber(&'static str),
    /// `binomial:x`, `custom:x`.
    #[error("{0} takes nothing after the colon, found {1:?}")]
    UnexpectedArgument(&'static str, String),
}

/// The shape of the tree.
///
/// ```
/// use flux_gen::flux::Topology;
/// let tree: Topology = "kary:2".parse()?;
/// assert_eq!(tree.parent(5, 8), Some(2));
/// assert_eq!(tree.children(1, 8), [3, 4]);
/// assert_eq!(tree.routers(8).to_string(), "1-3");
/// # Ok::<(), flux_gen::flux::TopologyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topology {
    /// Each broker has up to `k` children; 0 means that rank 0 is the parent of all.
    Kary(u32),
    /// At most three levels: `k` routers below rank 0, the rest dealt out to them in turn. `None` lets
    /// Flux choose k from the size. Needs flux-core 0.75.
    Mincrit(Option<u32>),
    /// The binomial tree: a parent is the rank with the lowest set bit cleared.
    Binomial,
    /// What the `parent` keys of `[bootstrap] hosts` say; rank 0 for hosts without one.
    Custom,
}

impl Topology {
    /// The parent of `rank` in an instance of `size` brokers; `None` for rank 0 and for ranks outside.
    /// [`Topology::Custom`] is taken without `parent` keys; see [`custom_parents`].
    #[must_use]
    pub fn parent(self, rank: u32, size: u32) -> Option<u32> {
        if rank == 0 || rank >= size {
            return None;
        }
        Some(match self {
            Self::Custom | Self::Kary(0) => 0,
            Self::Kary(k) => (rank - 1) / k,
            Self::Binomial => rank & (rank - 1),
            Self::Mincrit(k) => match k.unwrap_or_else(|| mincrit_k(size)) {
                0 => 0,
                k if rank <= k => 0,
                k => (rank - k - 1) % k + 1,
            },
        })
    }

    /// The parents of all ranks, `parents[rank]`, rank 0 having none.
    #[must_use]
    pub fn parents(self, size: u32) -> Vec<Option<u32>> {
        (0..size).map(|rank| self.parent(rank, size)).collect()
    }

    /// The ranks whose parent is `rank`, ascending. Only these connect to it.
    #[must_use]
    pub fn children(self, rank: u32, size: u32) -> Vec<u32> {
        (1..size).filter(|&other| self.parent(other, size) == Some(rank)).collect()
    }

    /// The ranks other than 0 that have children: they must bind, be resolvable, and take their subtree
    /// with them when they are lost.
    #[must_use]
    pub fn routers(self, size: u32) -> IdSet {
        routers(&self.parents(size))
    }
}

/// The ranks other than 0 that are somebody's parent.
#[must_use]
pub fn routers(parents: &[Option<u32>]) -> IdSet {
    let mut interior: Vec<u32> = parents.iter().copied().flatten().filter(|&p| p > 0 && p <= MAX_ID).collect();
    interior.sort_unstable();
    interior.dedup();
    IdSet::from_ids(interior).unwrap_or_default()
}

/// The number of levels below rank 0.
#[must_use]
pub fn max_level(parents: &[Option<u32>]) -> u32 {
    let mut level = vec![None; parents.len()];
    let mut deepest = 0;
    for rank in 0..parents.len() {
        let (mut path, mut at) = (Vec::new(), rank);
        // Upwards until a rank whose level is known, then back down.
        while level[at].is_none() && !path.contains(&at) {
            match parents[at] {
                Some(parent) if (parent as usize) < parents.len() => {
                    path.push(at);
                    at = parent as usize;
                }
                _ => level[at] = Some(0),
            }
        }
        for below in path.into_iter().rev() {
            let above = parents[below].and_then(|p| level[p as usize]).unwrap_or(0);
            level[below] = Some(above + 1);
            deepest = deepest.max(above + 1);
        }
    }
    deepest
}

/// Why the `parent` keys of `[bootstrap] hosts` make no tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CustomTreeError {
    /// Rank 0 is the root.
    #[error("rank 0 may not have a parent")]
    RootHasParent,
    /// Following parents from this rank comes back to it.
    #[error("the parent of rank {0} leads back to itself")]
    Cycle(u32),
}

/// The tree of [`Topology::Custom`]: `given[rank]` is the rank that a `parent` key names. Ranks without
/// one are children of rank 0.
///
/// # Errors
/// A parent of rank 0, or a cycle.
pub fn custom_parents(given: &[Option<u32>]) -> Result<Vec<Option<u32>>, CustomTreeError> {
    if given.first().copied().flatten().is_some() {
        return Err(CustomTreeError::RootHasParent);
    }
    let parents: Vec<Option<u32>> =
        (0..given.len()).map(|rank| if rank == 0 { None } else { given[rank].or(Some(0)) }).collect();
    // 0 = not looked at, n+1 = seen on the walk that began at rank n.
    let mut seen = vec![0usize; parents.len()];
    for start in 1..parents.len() {
        let mut at = start;
        while seen[at] == 0 && at != 0 {
            seen[at] = start + 1;
            at = parents[at].map_or(0, |p| p as usize).min(parents.len() - 1);
        }
        if at != 0 && seen[at] == start + 1 {
            return Err(CustomTreeError::Cycle(at as u32));
        }
    }
    Ok(parents)
}

/// The k that Flux chooses: flat while rank 0 can serve all, else as few routers (at least 2) as serve the rest.
fn mincrit_k(size: u32) -> u32 {
    if size <= MINCRIT_FANOUT + 1 {
        return 0;
    }
    // ceil((size - 1 - k) / k) <= fanout  <=>  (size - 1) <= k * (fanout + 1)
    (size - 1).div_ceil(MINCRIT_FANOUT + 1).max(2)
}

impl fmt::Display for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kary(k) => write!(f, "kary:{k}"),
            Self::Mincrit(Some(k)) => write!(f, "mincrit:{k}"),
            Self::Mincrit(None) => f.write_str("mincrit"),
            Self::Binomial => f.write_str("binomial"),
            Self::Custom => f.write_str("custom"),
        }
    }
}

impl FromStr for Topology {
    type Err = TopologyError;

    /// Accepts what flux-core accepts, including numbers in C's spelling (`kary: 2`, `kary:02`, `kary:-1`,
    /// where negative and overflowing values end up flat). The canonical spelling is that of `Display`.
    fn from_str(text: &str) -> Result<Self, TopologyError> {
        let (scheme, argument) = text.split_once(':').unwrap_or((text, ""));
        let nothing = |name, value| match argument {
            "" => Ok(value),
            _ => Err(TopologyError::UnexpectedArgument(name, argument.to_owned())),
        };
        match scheme {
            "kary" => parse_k(argument).map(Self::Kary).ok_or(TopologyError::BadNumber("kary")),
            "mincrit" if argument.is_empty() => Ok(Self::Mincrit(None)),
            "mincrit" => parse_k(argument).map(|k| Self::Mincrit(Some(k))).ok_or(TopologyError::BadNumber("mincrit")),
            "binomial" => nothing("binomial", Self::Binomial),
            "custom" => nothing("custom", Self::Custom),
            _ => Err(TopologyError::UnknownScheme(scheme.to_owned())),
        }
    }
}

/// A number as C's `strtoul` reads it, stored in a C int: a sign and leading blanks are allowed, more than
/// 64 bits are not, only the low 32 bits count, and what is then negative means 0.
fn parse_k(text: &str) -> Option<u32> {
    let text = text.trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let magnitude: u64 = digits.parse().ok()?;
    let value = if negative { magnitude.wrapping_neg() } else { magnitude };
    let low = value as u32;
    Some(if low > i32::MAX as u32 { 0 } else { low })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parents(text: &str, size: u32) -> Vec<i64> {
        let tree: Topology = text.parse().unwrap();
        tree.parents(size).into_iter().map(|p| p.map_or(-1, i64::from)).collect()
    }

    #[test]
    fn shapes() {
        assert_eq!(parents("kary:0", 4), [-1, 0, 0, 0]);
        assert_eq!(parents("kary:1", 4), [-1, 0, 1, 2]);
        assert_eq!(parents("kary:2", 8), [-1, 0, 0, 1, 1, 2, 2, 3]);
        assert_eq!(parents("binomial", 11), [-1, 0, 0, 2, 0, 4, 4, 6, 0, 8, 8]);
        assert_eq!(parents("mincrit:1", 5), [-1, 0, 1, 1, 1]);
        assert_eq!(parents("mincrit:4", 15), [-1, 0, 0, 0, 0, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2]);
        assert_eq!(parents("custom", 3), [-1, 0, 0]);
        assert_eq!(parents("mincrit", 1), [-1]);
    }

    #[test]
    fn mincrit_chooses_the_fewest_routers() {
        for (size, k) in [(1025, 0), (1026, 2), (2051, 2), (2052, 3), (3076, 3), (3077, 4)] {
            assert_eq!(mincrit_k(size), k, "{size}");
            if k > 0 {
                let most = |k: u32| (size - 1 - k).div_ceil(k);
                assert!(most(k) <= MINCRIT_FANOUT && (k == 2 || most(k - 1) > MINCRIT_FANOUT), "{size}");
            }
        }
    }

    #[test]
    fn spellings() {
        for (text, canonical) in [
            ("kary: 2", "kary:2"),
            ("kary:02", "kary:2"),
            ("kary:-1", "kary:0"),
            ("kary:99999999999", "kary:1215752191"),
            ("binomial:", "binomial"),
            ("mincrit:", "mincrit"),
        ] {
            assert_eq!(text.parse::<Topology>().unwrap().to_string(), canonical);
        }
        for text in [
            "",
            "kary",
            "kary:",
            "kary:x",
            "kary:2.5",
            "kary:2 ",
            "KARY:2",
            "kary:0x2",
            "mincrit:x",
            "custom:x",
            "binomial:2",
            "foo",
            "kary:99999999999999999999",
        ] {
            assert!(text.parse::<Topology>().is_err(), "{text}");
        }
    }

    #[test]
    fn custom_trees() {
        let ok = custom_parents(&[None, Some(5), None, None, None, None]).unwrap();
        assert_eq!(ok, [None, Some(5), Some(0), Some(0), Some(0), Some(0)]);
        assert_eq!((routers(&ok).to_string().as_str(), max_level(&ok)), ("5", 2));
        assert_eq!(custom_parents(&[Some(1), None]), Err(CustomTreeError::RootHasParent));
        assert!(matches!(custom_parents(&[None, Some(2), Some(1)]), Err(CustomTreeError::Cycle(_))));
        assert_eq!(custom_parents(&[None, Some(1)]), Err(CustomTreeError::Cycle(1)));
        assert_eq!(custom_parents(&[]), Ok(vec![]));
    }

    fn any_topology() -> impl Strategy<Value = Topology> {
        prop_oneof![
            (0u32..40).prop_map(Topology::Kary),
            proptest::option::of(0u32..40).prop_map(Topology::Mincrit),
            Just(Topology::Binomial),
            Just(Topology::Custom),
        ]
    }

    proptest! {
        #[test]
        fn every_rank_leads_to_the_root(tree in any_topology(), size in 1u32..300) {
            let parents = tree.parents(size);
            prop_assert_eq!(parents[0], None);
            let level = max_level(&parents);
            for rank in 1..size {
                let mut at = rank;
                let mut steps = 0;
                while let Some(parent) = tree.parent(at, size) {
                    prop_assert!(parent < at);
                    prop_assert!(tree.children(parent, size).contains(&at));
                    at = parent;
                    steps += 1;
                }
                prop_assert_eq!(at, 0);
                prop_assert!(steps <= level);
            }
            let text = tree.to_string();
            prop_assert_eq!(text.parse::<Topology>().unwrap(), tree);
        }

        #[test]
        fn never_panics(text in "(kary|mincrit|custom|binomial)?:?\\PC{0,12}", size in 0u32..50) {
            if let Ok(tree) = text.parse::<Topology>() {
                prop_assert_eq!(tree.parents(size).len(), size as usize);
            }
        }

        #[test]
        fn custom_trees_never_loop(given in proptest::collection::vec(proptest::option::of(0u32..12), 0..12)) {
            let given: Vec<_> = given.iter().map(|p| p.filter(|&p| (p as usize) < given.len())).collect();
            if let Ok(parents) = custom_parents(&given) {
                for start in 0..parents.len() {
                    let (mut at, mut steps) = (start, 0);
                    while let Some(parent) = parents[at] {
                        at = parent as usize;
                        steps += 1;
                        prop_assert!(steps <= parents.len());
                    }
                    prop_assert_eq!(at, 0);
                }
            }
            prop_assert!(max_level(&given) <= given.len() as u32);
        }
    }
}
