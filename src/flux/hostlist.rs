//! Lists of host names and their compact text form (RFC 29, *Hostlist Format*).
//!
//! `node[0-3],login` stands for five names. A hostlist keeps order and repetitions: it is a list, not a set.
//!
//! There are two readers. [`Hostlist::parse`] is for what people and flux-gen write: it refuses everything
//! whose meaning is doubtful. [`Hostlist::decode_as_flux`] reads exactly what flux-core 0.88 reads, oddities
//! included, so that a check can say what Flux would do with a text.

mod parse;
mod range;

use std::fmt;
use std::str::FromStr;

pub use parse::{HostlistError, HostlistErrorKind};
use range::HostRange;

/// Most hosts that one `lo-hi` range may stand for (2^20), as in flux-core.
pub const MAX_RANGE: u64 = 1 << 20;

/// Most hosts in a whole list. flux-core has no such limit; no instance is near it, and a few bytes of text
/// could otherwise stand for billions of names.
pub const MAX_HOSTS: usize = 1 << 20;

/// Most ranges in one pair of brackets, as in flux-core.
pub const MAX_RANGES: usize = 10_240;

/// An ordered list of host names.
///
/// ```
/// use flux_gen::flux::Hostlist;
/// let hosts: Hostlist = "flux-[0-1],login".parse()?;
/// assert_eq!(hosts.iter().collect::<Vec<_>>(), ["flux-0", "flux-1", "login"]);
/// assert_eq!(Hostlist::indexed("sim", 4).to_string(), "sim-[0-3]");
/// # Ok::<(), flux_gen::flux::HostlistError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Hostlist {
    ranges: Vec<HostRange>,
}

impl Hostlist {
    /// The empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The hosts of an Indexed Job with `count` pods: `NAME-0` … `NAME-(count-1)`, never padded.
    #[must_use]
    pub fn indexed(name: &str, count: u32) -> Self {
        let mut list = Self::new();
        if let Some(last) = count.checked_sub(1) {
            list.ranges.push(HostRange::numbered(format!("{name}-"), 0, u64::from(last), 1));
        }
        list
    }

    /// Reads a hostlist strictly. Beyond what Flux refuses, these are errors, because Flux either
    /// reads them differently from what is meant or drops hosts silently: blanks, empty elements,
    /// brackets after the first pair, signs and open ends in ranges, an upper end narrower than
    /// the lower one, numbers beyond 64 bits. Both readers refuse more than [`MAX_HOSTS`] hosts.
    ///
    /// # Errors
    /// The first thing that is wrong, with its byte offset.
    pub fn parse(text: &str) -> Result<Self, HostlistError> {
        parse::strict(text)
    }

    /// Reads a hostlist as flux-core 0.88 does: comma, space and tab separate, only the first pair of brackets
    /// is expanded (later ones stay in the names), `5-` is `5`, names with overlong numbers vanish.
    ///
    /// # Errors
    /// What Flux itself refuses: unbalanced brackets, ranges that do not ascend or are too large.
    pub fn decode_as_flux(text: &str) -> Result<Self, HostlistError> {
        parse::lenient(text)
    }

    /// Builds a list from single names.
    ///
    /// # Errors
    /// A name that [`Hostlist::push`] refuses.
    pub fn from_hosts<S: AsRef<str>>(hosts: impl IntoIterator<Item = S>) -> Result<Self, HostlistError> {
        let mut list = Self::new();
        for host in hosts {
            list.push(host.as_ref())?;
        }
        Ok(list)
    }

    /// Appends one host.
    ///
    /// # Errors
    /// An empty name, a name with a comma, bracket or blank, or one whose trailing number exceeds 64 bits.
    pub fn push(&mut self, host: &str) -> Result<(), HostlistError> {
        let range = parse::single_host(host, 0)?;
        self.push_range(range);
        Ok(())
    }

    /// Appends all hosts of `other`.
    pub fn append(&mut self, other: &Self) {
        for range in &other.ranges {
            self.push_range(range.clone());
        }
    }

    /// Appends a range, joined to the last one where that changes no name.
    fn push_range(&mut self, mut range: HostRange) {
        if let Some(last) = self.ranges.last_mut()
            && last.same_prefix(&range)
            && last.hi.checked_add(1) == Some(range.lo)
            && !last.single
            && last.unify_width(&mut range)
        {
            last.hi = range.hi;
            return;
        }
        self.ranges.push(range);
    }

    /// Number of hosts, repetitions counted.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ranges.iter().map(HostRange::count).sum()
    }

    /// True if there is no host.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The hosts in order.
    pub fn iter(&self) -> impl Iterator<Item = String> + '_ {
        self.ranges.iter().flat_map(HostRange::hosts)
    }

    /// The host at position `index`, from 0. With [bootstrap] this is the host of rank `index`.
    #[must_use]
    pub fn nth(&self, mut index: usize) -> Option<String> {
        for range in &self.ranges {
            match index.checked_sub(range.count()) {
                None => return Some(range.nth(index as u64)),
                Some(rest) => index = rest,
            }
        }
        None
    }

    /// The position of the first host that is spelled exactly `host` (case and zeros included).
    #[must_use]
    pub fn find(&self, host: &str) -> Option<usize> {
        let mut before = 0;
        for range in &self.ranges {
            if let Some(offset) = range.position(host) {
                return Some(before + offset);
            }
            before += range.count();
        }
        None
    }

    /// Removes the first occurrence of each host of `hosts` and returns how many were there.
    pub fn delete(&mut self, hosts: &Self) -> usize {
        hosts.iter().filter(|host| self.delete_host(host)).count()
    }

    fn delete_host(&mut self, host: &str) -> bool {
        for index in 0..self.ranges.len() {
            if let Some(offset) = self.ranges[index].position(host) {
                let pieces = self.ranges[index].without(offset as u64);
                self.ranges.splice(index..=index, pieces);
                return true;
            }
        }
        false
    }

    /// Sorts by prefix, then number, as `flux hostlist --sort` does; repetitions stay.
    pub fn sort(&mut self) {
        range::sort(&mut self.ranges);
    }

    /// Sorts and removes repetitions, as `flux hostlist --unique` does.
    pub fn uniq(&mut self) {
        range::uniq(&mut self.ranges);
    }

    /// The first host that stands in the list more than once.
    #[must_use]
    pub fn first_repeated(&self) -> Option<String> {
        let mut seen = std::collections::BTreeSet::new();
        self.iter().find(|host| !seen.insert(host.clone()))
    }

    /// True if numbers of different widths follow one prefix (`node[1,01]`). RFC 29 spreads the width
    /// of the first number over all, flux-core does not: better never written.
    #[must_use]
    pub fn has_mixed_widths(&self) -> bool {
        self.ranges
            .chunk_by(|a, b| !a.single && !b.single && a.prefix == b.prefix)
            .any(|group| group.iter().any(|range| !range.reads_same_at_width(group[0].width)))
    }
}

impl PartialEq for Hostlist {
    /// Same names in the same order.
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Hostlist {}

impl fmt::Display for Hostlist {
    /// The encoding of flux-core: order kept, neighbours with one prefix in one pair of brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.ranges.as_slice();
        while let Some(first) = rest.first() {
            let group = 1 + rest[1..]
                .iter()
                .take_while(|next| !first.single && !next.single && next.prefix == first.prefix)
                .count();
            let bracket = group > 1 || first.count() > 1;
            f.write_str(&first.prefix)?;
            f.write_str(if bracket { "[" } else { "" })?;
            for (i, range) in rest[..group].iter().enumerate() {
                f.write_str(if i > 0 { "," } else { "" })?;
                range.fmt_numbers(f)?;
            }
            f.write_str(if bracket { "]" } else { "" })?;
            rest = &rest[group..];
            if !rest.is_empty() {
                f.write_str(",")?;
            }
        }
        Ok(())
    }
}

impl FromStr for Hostlist {
    type Err = HostlistError;

    fn from_str(text: &str) -> Result<Self, HostlistError> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests;
