//! One run of numbered hosts with a common prefix, or one host without a number.

use std::cmp::Ordering;
use std::fmt;

/// `prefix` followed by the numbers `lo..=hi`, zero padded to `width`; or just `prefix` when `single`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostRange {
    pub(super) prefix: String,
    pub(super) lo: u64,
    pub(super) hi: u64,
    pub(super) width: usize,
    pub(super) single: bool,
}

impl HostRange {
    pub(super) fn numbered(prefix: String, lo: u64, hi: u64, width: usize) -> Self {
        Self { prefix, lo, hi, width, single: false }
    }

    pub(super) fn single(name: String) -> Self {
        Self { prefix: name, lo: 0, hi: 0, width: 0, single: true }
    }

    /// Splits a name before its trailing digits. Digits beyond 64 bits give `None`.
    pub(super) fn from_name(name: &str) -> Option<Self> {
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &name[prefix.len()..];
        if digits.is_empty() {
            return Some(Self::single(name.to_owned()));
        }
        let number = digits.parse().ok()?;
        Some(Self::numbered(prefix.to_owned(), number, number, digits.len()))
    }

    pub(super) fn count(&self) -> usize {
        (self.hi - self.lo) as usize + 1
    }

    pub(super) fn nth(&self, offset: u64) -> String {
        if self.single {
            return self.prefix.clone();
        }
        let number = self.lo + offset;
        format!("{}{}{number}", self.prefix, zeros(number, self.width))
    }

    pub(super) fn hosts(&self) -> impl Iterator<Item = String> + '_ {
        (0..=self.hi - self.lo).map(|offset| self.nth(offset))
    }

    /// Offset of `host` in this run.
    pub(super) fn position(&self, host: &str) -> Option<usize> {
        let digits = host.strip_prefix(self.prefix.as_str())?;
        if self.single {
            return digits.is_empty().then_some(0);
        }
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let number: u64 = digits.parse().ok()?;
        let inside = (self.lo..=self.hi).contains(&number);
        (inside && digits.len() == self.width.max(decimal_digits(number))).then(|| (number - self.lo) as usize)
    }

    /// What is left when the host at `offset` is taken out: nothing, one run or two.
    pub(super) fn without(&self, offset: u64) -> Vec<Self> {
        let at = self.lo + offset;
        let mut pieces = Vec::new();
        if self.lo < at {
            pieces.push(Self { hi: at - 1, ..self.clone() });
        }
        if at < self.hi {
            pieces.push(Self { lo: at + 1, ..self.clone() });
        }
        pieces
    }

    pub(super) fn same_prefix(&self, other: &Self) -> bool {
        self.single == other.single && self.prefix == other.prefix
    }

    /// True if padding to `width` instead of the own width changes no name.
    pub(super) fn reads_same_at_width(&self, width: usize) -> bool {
        padding(self.lo, width) == padding(self.lo, self.width)
    }

    /// Gives both runs one width if that changes no name, and says whether it did. `9` and `10` go
    /// together, `09` and `10` too; `8` and `09` do not.
    pub(super) fn unify_width(&mut self, other: &mut Self) -> bool {
        let mine_changes = padding(self.lo, self.width) != padding(self.lo, other.width);
        let theirs_changes = padding(other.lo, self.width) != padding(other.lo, other.width);
        match (mine_changes, theirs_changes) {
            (true, true) => false,
            (true, false) => {
                other.width = self.width;
                true
            }
            (false, _) => {
                self.width = other.width;
                true
            }
        }
    }

    pub(super) fn fmt_numbers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.single {
            return Ok(());
        }
        write!(f, "{}{}", zeros(self.lo, self.width), self.lo)?;
        if self.lo < self.hi {
            write!(f, "-{}{}", zeros(self.hi, self.width), self.hi)?;
        }
        Ok(())
    }

    /// The order of `flux hostlist --sort`: prefix, names without a number first, then number, or
    /// width where the widths do not go together.
    fn order(&self, other: &Self) -> Ordering {
        self.prefix.cmp(&other.prefix).then(other.single.cmp(&self.single)).then_with(|| {
            if self.clone().unify_width(&mut other.clone()) {
                self.lo.cmp(&other.lo)
            } else {
                self.width.cmp(&other.width)
            }
        })
    }
}

/// Zeros in front of `number` when it is written `width` wide.
fn padding(number: u64, width: usize) -> usize {
    width.saturating_sub(decimal_digits(number))
}

/// The padding itself. (Not `{:0width$}`: the formatter's width is limited and would panic.)
fn zeros(number: u64, width: usize) -> String {
    "0".repeat(padding(number, width))
}

fn decimal_digits(number: u64) -> usize {
    number.checked_ilog10().unwrap_or(0) as usize + 1
}

/// Stable merge sort. Not `slice::sort_by`: with several widths [`HostRange::order`] is not transitive,
/// and the result has to be the one that a plain merge sort (the C library's `qsort`) gives.
fn merge_sort(ranges: &mut Vec<HostRange>) {
    if ranges.len() < 2 {
        return;
    }
    let mut right = ranges.split_off(ranges.len() / 2);
    merge_sort(ranges);
    merge_sort(&mut right);
    let mut merged = Vec::with_capacity(ranges.len() + right.len());
    let (mut left, mut right) = (ranges.drain(..).peekable(), right.into_iter().peekable());
    while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
        let next = if a.order(b).is_le() { left.next() } else { right.next() };
        merged.extend(next);
    }
    merged.extend(left);
    merged.extend(right);
    *ranges = merged;
}

/// Sorts, then joins neighbours where no name changes; repeated hosts stay.
pub(super) fn sort(ranges: &mut Vec<HostRange>) {
    if ranges.len() < 2 {
        return;
    }
    merge_sort(ranges);
    interleave_repeated(ranges);
    let mut joined: Vec<HostRange> = Vec::with_capacity(ranges.len());
    // From the back: a run takes in its right neighbour before its left one looks at it.
    for mut left in std::mem::take(ranges).into_iter().rev() {
        if let Some(right) = joined.last_mut()
            && left.same_prefix(right)
            && !left.single
            && left.hi.checked_add(1) == Some(right.lo)
            && left.unify_width(right)
        {
            left.hi = right.hi;
            joined.pop();
        }
        joined.push(left);
    }
    joined.reverse();
    *ranges = joined;
}

/// Cuts overlapping runs so that repeated numbers stand beside each other: `[1-3],[2-5]` becomes
/// `[1-2],[2-3],[3-5]`.
fn interleave_repeated(ranges: &mut Vec<HostRange>) {
    let mut i = ranges.len().saturating_sub(1);
    while i > 0 {
        let Some(common) = common_part(&ranges[i - 1], &ranges[i]) else {
            i -= 1;
            continue;
        };
        let (left_hi, right_hi) = (ranges[i - 1].hi, ranges[i].hi);
        ranges[i].hi = right_hi.max(left_hi);
        ranges[i - 1].hi = common.lo;
        ranges[i].lo = common.hi;
        let mut between = Vec::new();
        for number in common.lo..=common.hi {
            let one = HostRange { lo: number, hi: number, ..common.clone() };
            if number > common.lo {
                between.push(one.clone());
            }
            if number < common.hi {
                between.push(one);
            }
        }
        ranges.splice(i..i, between);
        i = ranges.len() - 1;
    }
}

/// The numbers that two sorted neighbours share, if the left one reaches past the start of the right one.
fn common_part(left: &HostRange, right: &HostRange) -> Option<HostRange> {
    let overlap = !left.single && left.same_prefix(right) && left.hi > right.lo;
    (overlap && left.clone().unify_width(&mut right.clone())).then(|| HostRange {
        lo: right.lo,
        hi: right.hi.min(left.hi),
        ..left.clone()
    })
}

/// Sorts and merges runs that touch or overlap.
pub(super) fn uniq(ranges: &mut Vec<HostRange>) {
    if ranges.len() < 2 {
        return;
    }
    merge_sort(ranges);
    let mut merged: Vec<HostRange> = Vec::with_capacity(ranges.len());
    for mut next in std::mem::take(ranges) {
        if let Some(last) = merged.last_mut()
            && last.same_prefix(&next)
            && (last.single || last.hi.checked_add(1).is_none_or(|after| after >= next.lo))
            && last.unify_width(&mut next)
        {
            last.hi = last.hi.max(next.hi);
        } else {
            merged.push(next);
        }
    }
    *ranges = merged;
}
