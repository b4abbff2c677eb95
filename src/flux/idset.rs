//! Sets of small non-negative integers, such as ranks and core ids, and their text form (RFC 22, *Idset String Representation*).
//!
//! The text form is a comma separated list of ids and `lo-hi` ranges in strictly ascending order: `0-3,7`.
//! [`IdSet`] keeps ranges, not single ids, so `0-2147483647` costs as much as `0-1`.

use std::fmt;
use std::str::FromStr;

/// The largest id that fits: Flux keeps idsets in a universe of 2^31 ids. Larger numbers wrap around
/// silently in flux-core, so they are refused here.
pub const MAX_ID: u32 = i32::MAX as u32;

/// Why a text is not an idset, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct IdSetError {
    /// Byte offset of the offending part in the parsed text; 0 for errors that have no text.
    pub offset: usize,
    /// What is wrong there.
    pub kind: IdSetErrorKind,
}

/// What can be wrong with an idset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdSetErrorKind {
    /// Something other than digits stands where an id belongs.
    #[error("expected an id (decimal digits), found {0:?}")]
    NotAnId(String),
    /// `[0-3` or `0-3]`.
    #[error("brackets must enclose the whole idset or be left out")]
    UnbalancedBracket,
    /// `007`.
    #[error("id {0:?} must not have leading zeros")]
    LeadingZero(String),
    /// `3-1` or `3-3`.
    #[error("the range {0}-{1} must ascend")]
    EmptyRange(u32, u32),
    /// `3,2` or `0-3,2` or `1,1`.
    #[error("id {0} is not larger than the id before it")]
    NotAscending(u32),
    /// Larger than [`MAX_ID`].
    #[error("id {0} is larger than {MAX_ID}")]
    TooLarge(String),
}

/// A set of ids, written as RFC 22 says.
///
/// ```
/// use flux_gen::flux::IdSet;
/// let ranks: IdSet = "[0-2,3,7]".parse()?;
/// assert_eq!(ranks.to_string(), "0-3,7");
/// assert_eq!(ranks.len(), 5);
/// assert!("3,2".parse::<IdSet>().is_err());
/// # Ok::<(), flux_gen::flux::IdSetError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IdSet {
    /// Inclusive ranges, ascending, with a gap of at least one id between neighbours.
    ranges: Vec<(u32, u32)>,
}

impl IdSet {
    /// The empty set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The `count` ids `0..count`.
    #[must_use]
    pub fn first_n(count: u32) -> Self {
        match count.min(MAX_ID).checked_sub(1) {
            None => Self::new(),
            Some(last) => Self { ranges: vec![(0, last)] },
        }
    }

    /// All ids of a list in any order. A repeated id is an error, as it is for Flux.
    ///
    /// # Errors
    /// An id twice, or one above [`MAX_ID`].
    pub fn from_ids(ids: impl IntoIterator<Item = u32>) -> Result<Self, IdSetError> {
        let mut sorted: Vec<u32> = ids.into_iter().collect();
        sorted.sort_unstable();
        let mut set = Self::new();
        for id in sorted {
            set.push_range(id, id).map_err(|kind| IdSetError { offset: 0, kind })?;
        }
        Ok(set)
    }

    /// Adds one id; adding it again changes nothing. False, and nothing added, for ids above [`MAX_ID`].
    pub fn insert(&mut self, id: u32) -> bool {
        if id > MAX_ID {
            return false;
        }
        *self = self.union(&Self { ranges: vec![(id, id)] });
        true
    }

    /// Appends a range that must lie above everything in the set.
    fn push_range(&mut self, lo: u32, hi: u32) -> Result<(), IdSetErrorKind> {
        if hi > MAX_ID {
            return Err(IdSetErrorKind::TooLarge(hi.to_string()));
        }
        match self.ranges.last_mut() {
            Some((_, last)) if lo <= *last => return Err(IdSetErrorKind::NotAscending(lo)),
            Some((_, last)) if lo == *last + 1 => *last = hi,
            _ => self.ranges.push((lo, hi)),
        }
        Ok(())
    }

    /// Number of ids.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ranges.iter().map(|&(lo, hi)| (hi - lo) as usize + 1).sum()
    }

    /// True for the empty set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The smallest id.
    #[must_use]
    pub fn first(&self) -> Option<u32> {
        self.ranges.first().map(|&(lo, _)| lo)
    }

    /// The largest id.
    #[must_use]
    pub fn last(&self) -> Option<u32> {
        self.ranges.last().map(|&(_, hi)| hi)
    }

    /// True if `id` is in the set.
    #[must_use]
    pub fn contains(&self, id: u32) -> bool {
        let after = self.ranges.partition_point(|&(lo, _)| lo <= id);
        after > 0 && id <= self.ranges[after - 1].1
    }

    /// The ids, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.ranges.iter().flat_map(|&(lo, hi)| lo..=hi)
    }

    /// The maximal runs of neighbouring ids, ascending, both ends inclusive.
    pub fn ranges(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.ranges.iter().copied()
    }

    /// Ids in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut all: Vec<(u32, u32)> = self.ranges.iter().chain(&other.ranges).copied().collect();
        all.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(all.len());
        for (lo, hi) in all {
            match merged.last_mut() {
                Some((_, last)) if lo <= *last + 1 => *last = hi.max(*last),
                _ => merged.push((lo, hi)),
            }
        }
        Self { ranges: merged }
    }

    /// Ids in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let (mut a, mut b) = (self.ranges.iter().peekable(), other.ranges.iter().peekable());
        let mut ranges = Vec::new();
        while let (Some(&&(a_lo, a_hi)), Some(&&(b_lo, b_hi))) = (a.peek(), b.peek()) {
            let (lo, hi) = (a_lo.max(b_lo), a_hi.min(b_hi));
            if lo <= hi {
                ranges.push((lo, hi));
            }
            if a_hi < b_hi {
                a.next();
            } else {
                b.next();
            }
        }
        Self { ranges }
    }

    /// Ids of `self` that are not in `other`.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut ranges = Vec::new();
        for &(lo, hi) in &self.ranges {
            let mut from = lo;
            for &(cut_lo, cut_hi) in other.ranges.iter().filter(|cut| cut.1 >= lo && cut.0 <= hi) {
                if cut_lo > from {
                    ranges.push((from, cut_lo - 1));
                }
                from = cut_hi + 1; // cannot overflow: ids end at MAX_ID
            }
            if from <= hi {
                ranges.push((from, hi));
            }
        }
        Self { ranges }
    }

    /// The form with brackets that Flux prints for people: brackets unless the set has at most one id.
    #[must_use]
    pub fn to_bracketed_string(&self) -> String {
        if self.len() > 1 { format!("[{self}]") } else { self.to_string() }
    }
}

impl fmt::Display for IdSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (lo, hi)) in self.ranges.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            if lo == hi {
                write!(f, "{lo}")?;
            } else {
                write!(f, "{lo}-{hi}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for IdSet {
    type Err = IdSetError;

    /// Reads what Flux reads: optional brackets around everything; empty list elements are skipped.
    fn from_str(text: &str) -> Result<Self, IdSetError> {
        let unbalanced = |offset| IdSetError { offset, kind: IdSetErrorKind::UnbalancedBracket };
        let (list, mut offset) = match (text.strip_prefix('['), text.ends_with(']')) {
            (Some(rest), true) => (&rest[..rest.len() - 1], 1),
            (Some(_), false) => return Err(unbalanced(0)),
            (None, true) => return Err(unbalanced(text.len() - 1)),
            (None, false) => (text, 0),
        };
        let mut set = Self::new();
        for element in list.split(',') {
            if !element.is_empty() {
                parse_element(element)
                    .and_then(|(lo, hi)| set.push_range(lo, hi))
                    .map_err(|kind| IdSetError { offset, kind })?;
            }
            offset += element.len() + 1;
        }
        Ok(set)
    }
}

/// `n` or `lo-hi` with `hi > lo`.
fn parse_element(element: &str) -> Result<(u32, u32), IdSetErrorKind> {
    let Some((lo, hi)) = element.split_once('-') else {
        return parse_id(element, element).map(|id| (id, id));
    };
    let (lo, hi) = (parse_id(lo, element)?, parse_id(hi, element)?);
    if hi <= lo {
        return Err(IdSetErrorKind::EmptyRange(lo, hi));
    }
    Ok((lo, hi))
}

fn parse_id(digits: &str, element: &str) -> Result<u32, IdSetErrorKind> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(IdSetErrorKind::NotAnId(element.to_owned()));
    }
    if digits.len() > 1 && digits.starts_with('0') {
        return Err(IdSetErrorKind::LeadingZero(digits.to_owned()));
    }
    match digits.parse::<u32>() {
        Ok(id) if id <= MAX_ID => Ok(id),
        _ => Err(IdSetErrorKind::TooLarge(digits.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn reads_and_writes_the_canonical_form() {
        for (text, canonical, count) in [
            ("", "", 0),
            (",,", "", 0),
            ("[]", "", 0),
            ("0", "0", 1),
            ("0,1", "0-1", 2),
            ("[0-3,5]", "0-3,5", 5),
            ("0-1,2-3", "0-3", 4),
            ("0-2147483647", "0-2147483647", 1 << 31),
        ] {
            let set: IdSet = text.parse().unwrap();
            assert_eq!((set.to_string().as_str(), set.len()), (canonical, count), "{text}");
        }
    }

    #[test]
    fn refuses_with_the_place() {
        for (text, offset) in [
            ("3,2", 2),
            ("0,0", 2),
            ("0-3,2", 4),
            ("00", 0),
            ("1,02", 2),
            ("0-0", 0),
            ("1-", 0),
            ("-", 0),
            ("0, 1", 2),
            ("+1", 0),
            ("[0", 0),
            ("0]", 1),
            ("[[0]]", 1),
            ("[0],1", 0),
            ("2147483648", 0),
            ("0,4294967296", 2),
        ] {
            assert_eq!(text.parse::<IdSet>().map_err(|e| e.offset), Err(offset), "{text}");
        }
    }

    #[test]
    fn repeated_ids_are_refused_and_inserted_ones_merge() {
        assert!(IdSet::from_ids([1, 1]).is_err());
        assert!(IdSet::from_ids([MAX_ID + 1]).is_err());
        let mut set = IdSet::from_ids([5, 3]).unwrap();
        assert!(set.insert(4));
        assert!(!set.insert(MAX_ID + 1));
        assert_eq!(set.to_string(), "3-5");
        assert_eq!(set.to_bracketed_string(), "[3-5]");
        assert_eq!(IdSet::first_n(0), IdSet::new());
        assert_eq!(IdSet::first_n(4).to_string(), "0-3");
    }

    fn small_ids() -> impl Strategy<Value = BTreeSet<u32>> {
        proptest::collection::btree_set(0u32..40, 0..20)
    }

    proptest! {
        #[test]
        fn behaves_as_a_set(a in small_ids(), b in small_ids()) {
            let (x, y) = (IdSet::from_ids(a.clone()).unwrap(), IdSet::from_ids(b.clone()).unwrap());
            let plain = |set: IdSet| set.iter().collect::<BTreeSet<u32>>();
            prop_assert_eq!(plain(x.union(&y)), a.union(&b).copied().collect::<BTreeSet<_>>());
            prop_assert_eq!(plain(x.intersection(&y)), a.intersection(&b).copied().collect::<BTreeSet<_>>());
            prop_assert_eq!(plain(x.difference(&y)), a.difference(&b).copied().collect::<BTreeSet<_>>());
            prop_assert_eq!((x.first(), x.last(), x.len()), (a.first().copied(), a.last().copied(), a.len()));
            for id in 0..42 {
                prop_assert_eq!(x.contains(id), a.contains(&id));
            }
            prop_assert_eq!(x.to_string().parse::<IdSet>().unwrap(), x.clone());
            prop_assert_eq!(x.to_bracketed_string().parse::<IdSet>().unwrap(), x);
        }

        #[test]
        fn never_panics(text in "\\PC{0,40}|[0-9,\\[\\]-]{0,30}") {
            if let Ok(set) = text.parse::<IdSet>() {
                prop_assert_eq!(set.to_string().parse::<IdSet>().unwrap(), set);
            }
        }
    }
}
