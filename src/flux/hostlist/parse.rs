//! The two readers of hostlists: strict, and exactly as flux-core.

use super::range::HostRange;
use super::{Hostlist, MAX_HOSTS, MAX_RANGE, MAX_RANGES};

/// Why a text is not an acceptable hostlist, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind} at byte {offset}")]
pub struct HostlistError {
    /// Byte offset of the offending part in the parsed text.
    pub offset: usize,
    /// What is wrong there.
    pub kind: HostlistErrorKind,
}

/// What can be wrong with a hostlist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostlistErrorKind {
    /// Flux: `node[0-3` or `node0]`.
    #[error("brackets are not balanced")]
    UnbalancedBracket,
    /// Flux: `node[]`, `node[a]`, `node[1--3]`; strict: `node[+1]`, `node[1-]` as well.
    #[error("{0:?} is not a number or a range lo-hi")]
    BadRange(String),
    /// Flux: `node[3-1]`.
    #[error("the range {0:?} must not descend")]
    Descending(String),
    /// Flux: more than [`MAX_RANGE`] hosts.
    #[error("the range {0:?} has more than {MAX_RANGE} hosts")]
    TooManyHosts(String),
    /// Flux: more than [`MAX_RANGES`] ranges.
    #[error("more than {MAX_RANGES} ranges in one pair of brackets")]
    TooManyRanges,
    /// More than [`MAX_HOSTS`] hosts in the list.
    #[error("the list has more than {MAX_HOSTS} hosts")]
    ListTooLong,
    /// Strict: Flux expands only the first pair and keeps the text of the others in the names.
    #[error("only one pair of brackets per name is expanded")]
    SecondBracket,
    /// Strict: Flux takes a blank for a separator, and control characters for a part of the name.
    #[error("blanks and control characters are not allowed in a hostlist")]
    Blank,
    /// Strict: `a,,b` or a comma at an end.
    #[error("a host name is missing beside a comma")]
    EmptyElement,
    /// Strict: Flux drops hosts whose trailing number does not fit.
    #[error("the number in {0:?} does not fit in 64 bits")]
    NumberTooLarge(String),
    /// Strict: `node[001-3]`.
    #[error("the ends of the range {0:?} are padded differently")]
    MixedWidth(String),
}

fn error(offset: usize, kind: HostlistErrorKind) -> HostlistError {
    HostlistError { offset, kind }
}

fn is_blank(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

/// One host name without any list syntax.
pub(super) fn single_host(host: &str, offset: usize) -> Result<HostRange, HostlistError> {
    for (at, c) in host.char_indices() {
        match c {
            ',' => return Err(error(offset + at, HostlistErrorKind::EmptyElement)),
            '[' | ']' => return Err(error(offset + at, HostlistErrorKind::UnbalancedBracket)),
            c if is_blank(c) => return Err(error(offset + at, HostlistErrorKind::Blank)),
            _ => {}
        }
    }
    if host.is_empty() {
        return Err(error(offset, HostlistErrorKind::EmptyElement));
    }
    HostRange::from_name(host).ok_or_else(|| error(offset, HostlistErrorKind::NumberTooLarge(host.to_owned())))
}

pub(super) fn strict(text: &str) -> Result<Hostlist, HostlistError> {
    let (mut list, mut expanded) = (Hostlist::new(), 0);
    if text.is_empty() {
        return Ok(list);
    }
    if let Some(at) = text.find(is_blank) {
        return Err(error(at, HostlistErrorKind::Blank));
    }
    for (offset, token) in tokens(text, |c| c == ',') {
        match token.find('[') {
            None => {
                if let Some(at) = token.find(']') {
                    return Err(error(offset + at, HostlistErrorKind::UnbalancedBracket));
                }
                list.push_range(single_host(token, offset)?);
            }
            Some(open) => strict_bracketed(token, open, offset)?.push_to(&mut list, &mut expanded, offset)?,
        }
    }
    Ok(list)
}

fn strict_bracketed(token: &str, open: usize, offset: usize) -> Result<Expression<'_>, HostlistError> {
    let inner_at = open + 1;
    let Some(length) = token[inner_at..].find(']') else {
        return Err(error(offset + open, HostlistErrorKind::UnbalancedBracket));
    };
    let (prefix, inner, suffix) =
        (&token[..open], &token[inner_at..inner_at + length], &token[inner_at + length + 1..]);
    if let Some(at) = prefix.find([']', ',']) {
        return Err(error(offset + at, HostlistErrorKind::UnbalancedBracket));
    }
    if let Some(at) = suffix.find(['[', ']', ',']) {
        let kind = if suffix[at..].starts_with('[') {
            HostlistErrorKind::SecondBracket
        } else {
            HostlistErrorKind::UnbalancedBracket
        };
        return Err(error(offset + inner_at + length + 1 + at, kind));
    }
    let mut ranges = Vec::new();
    for (at, element) in tokens(inner, |c| c == ',') {
        ranges.push(strict_range(element, offset + inner_at + at)?);
        if ranges.len() > MAX_RANGES {
            return Err(error(offset + inner_at + at, HostlistErrorKind::TooManyRanges));
        }
    }
    for range in &ranges {
        let numbered = HostRange::numbered(prefix.to_owned(), range.hi, range.hi, range.width);
        let name = numbered.nth(0) + suffix;
        if HostRange::from_name(&name).is_none() {
            return Err(error(offset, HostlistErrorKind::NumberTooLarge(name)));
        }
    }
    Ok(Expression { prefix, ranges, suffix })
}

/// Numbers of one bracket element.
struct NumberRange {
    lo: u64,
    hi: u64,
    width: usize,
}

fn strict_range(element: &str, offset: usize) -> Result<NumberRange, HostlistError> {
    let (lo, hi) = element.split_once('-').unwrap_or((element, element));
    let number = |digits: &str| {
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(error(offset, HostlistErrorKind::BadRange(element.to_owned())));
        }
        digits.parse::<u64>().map_err(|_| error(offset, HostlistErrorKind::NumberTooLarge(digits.to_owned())))
    };
    let range = NumberRange { lo: number(lo)?, hi: number(hi)?, width: lo.len() };
    check_order(&range, element, offset)?;
    if hi.len() < lo.len() || (hi.len() > lo.len() && hi.starts_with('0')) {
        return Err(error(offset, HostlistErrorKind::MixedWidth(element.to_owned())));
    }
    Ok(range)
}

fn check_order(range: &NumberRange, element: &str, offset: usize) -> Result<(), HostlistError> {
    if range.lo > range.hi {
        return Err(error(offset, HostlistErrorKind::Descending(element.to_owned())));
    }
    if range.hi - range.lo >= MAX_RANGE {
        return Err(error(offset, HostlistErrorKind::TooManyHosts(element.to_owned())));
    }
    Ok(())
}

/// `prefix[ranges]suffix`.
struct Expression<'t> {
    prefix: &'t str,
    ranges: Vec<NumberRange>,
    suffix: &'t str,
}

impl Expression<'_> {
    /// Adds the hosts to a list. With a suffix every host stands for itself. `expanded` counts the hosts that came
    /// out of brackets so far.
    fn push_to(&self, list: &mut Hostlist, expanded: &mut u64, offset: usize) -> Result<(), HostlistError> {
        *expanded += self.ranges.iter().map(|range| range.hi - range.lo + 1).sum::<u64>();
        if *expanded > MAX_HOSTS as u64 {
            return Err(error(offset, HostlistErrorKind::ListTooLong));
        }
        for range in &self.ranges {
            let numbered = HostRange::numbered(self.prefix.to_owned(), range.lo, range.hi, range.width);
            if self.suffix.is_empty() {
                list.push_range(numbered);
            } else {
                list.ranges.extend(numbered.hosts().map(|host| HostRange::single(host + self.suffix)));
            }
        }
        Ok(())
    }
}

/// Splits at separators outside brackets; keeps empty tokens; gives byte offsets.
fn tokens(text: &str, separator: impl Fn(char) -> bool) -> Vec<(usize, &str)> {
    let (mut found, mut start, mut depth) = (Vec::new(), 0, 0i64);
    for (at, c) in text.char_indices() {
        match c {
            c if depth == 0 && separator(c) => {
                found.push((start, &text[start..at]));
                start = at + c.len_utf8();
            }
            '[' => depth += 1,
            ']' => depth -= 1,
            _ => {}
        }
    }
    found.push((start, &text[start..]));
    found
}

pub(super) fn lenient(text: &str) -> Result<Hostlist, HostlistError> {
    let (mut list, mut expanded) = (Hostlist::new(), 0);
    for (offset, token) in tokens(text, |c| matches!(c, ',' | ' ' | '\t')) {
        let Some(open) = token.find('[') else {
            if let Some(at) = token.find(']') {
                return Err(error(offset + at, HostlistErrorKind::UnbalancedBracket));
            }
            // A number that does not fit makes the host vanish.
            if let Some(range) = Some(token).filter(|t| !t.is_empty()).and_then(HostRange::from_name) {
                list.push_range(range);
            }
            continue;
        };
        let (prefix, rest) = (&token[..open], &token[open + 1..]);
        let Some((inner, suffix)) = rest.split_once(']') else {
            return Err(error(offset + open, HostlistErrorKind::UnbalancedBracket));
        };
        let mut ranges = Vec::new();
        let mut at = offset + open + 1;
        for element in inner.split(',') {
            if ranges.len() == MAX_RANGES {
                return Err(error(at, HostlistErrorKind::TooManyRanges));
            }
            ranges.push(lenient_range(element, at)?);
            at += element.len() + 1;
        }
        Expression { prefix, ranges, suffix }.push_to(&mut list, &mut expanded, offset)?;
    }
    Ok(list)
}

/// `n`, `lo-hi` or `lo-`; numbers as C's `strtoul` reads them (leading blanks and a plus sign allowed,
/// too large ones become the largest). The width is the length of the text before the dash.
fn lenient_range(element: &str, offset: usize) -> Result<NumberRange, HostlistError> {
    let bad = || error(offset, HostlistErrorKind::BadRange(element.to_owned()));
    let (lo_text, hi_text) = match element.split_once('-') {
        Some((lo, hi)) => (lo, Some(hi)),
        None => (element, None),
    };
    let (lo, lo_rest) = c_unsigned(lo_text).ok_or_else(bad)?;
    let (hi, rest) = match hi_text {
        None | Some("") => (lo, lo_rest),
        Some(hi) if hi.starts_with('-') => return Err(bad()),
        Some(hi) => c_unsigned(hi).ok_or_else(bad)?,
    };
    if !rest.is_empty() {
        return Err(bad());
    }
    let range = NumberRange { lo, hi, width: lo_text.len() };
    check_order(&range, element, offset)?;
    Ok(range)
}

/// The number at the start of `text` and what follows it.
fn c_unsigned(text: &str) -> Option<(u64, &str)> {
    let text = text.trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
    let text = text.strip_prefix('+').unwrap_or(text);
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = &text[..text.len() - rest.len()];
    (!digits.is_empty()).then(|| (digits.parse().unwrap_or(u64::MAX), rest))
}
