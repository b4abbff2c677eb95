//! Hostlists (RFC 29) and idsets (RFC 22), the parts that a bundle uses.

/// Expands a hostlist. Only the first bracket group of a name is expanded, as in Flux.
///
/// # Errors
/// Unbalanced brackets, a range that runs backwards, or no number.
pub fn expand(text: &str) -> Result<Vec<String>, String> {
    let mut out = Vec::new();
    for word in words(text)? {
        match word.split_once('[') {
            None => out.push(word.to_owned()),
            Some((prefix, rest)) => {
                let (ids, suffix) = rest.split_once(']').ok_or_else(|| bad(text))?;
                for part in ids.split(',') {
                    let (lo, hi) = part.split_once('-').unwrap_or((part, part));
                    let (low, high): (u64, u64) = match (lo.parse(), hi.parse()) {
                        (Ok(l), Ok(h)) if l <= h && h - l < 1 << 20 => (l, h),
                        _ => return Err(bad(text)),
                    };
                    let width = lo.len();
                    out.extend((low..=high).map(|n| format!("{prefix}{n:0width$}{suffix}")));
                }
            }
        }
    }
    Ok(out)
}

fn bad(text: &str) -> String {
    format!("invalid hostlist {text:?}")
}

/// Words between separators that are outside brackets.
fn words(text: &str) -> Result<Vec<&str>, String> {
    let (mut out, mut start, mut depth) = (Vec::new(), 0, 0i32);
    for (i, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' | ' ' | '\t' if depth == 0 => {
                out.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
        if !(0..=1).contains(&depth) {
            return Err(bad(text));
        }
    }
    if depth != 0 {
        return Err(bad(text));
    }
    out.push(&text[start..]);
    out.retain(|w| !w.is_empty());
    Ok(out)
}

/// Hosts that share a prefix and differ by number, or one host as it is.
type Group = (String, Vec<(u64, u64)>, Option<String>);

/// The shortest form of hosts without padded numbers; others are listed one by one.
pub fn encode(hosts: &[String]) -> String {
    let mut groups: Vec<Group> = Vec::new();
    for host in hosts {
        let digits = host.len() - host.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let (prefix, number) = host.split_at(host.len() - digits);
        let plain = !number.is_empty() && (number == "0" || !number.starts_with('0'));
        match (plain, number.parse::<u64>(), groups.last_mut()) {
            (true, Ok(n), Some((p, ranges, None))) if p == prefix => match ranges.last_mut() {
                Some((_, hi)) if *hi + 1 == n => *hi = n,
                _ => ranges.push((n, n)),
            },
            (true, Ok(n), _) => groups.push((prefix.to_owned(), vec![(n, n)], None)),
            _ => groups.push((String::new(), Vec::new(), Some(host.clone()))),
        }
    }
    let text = |(prefix, ranges, literal): &Group| match literal {
        Some(host) => host.clone(),
        None => match ranges[..] {
            [(lo, hi)] if lo == hi => format!("{prefix}{lo}"),
            _ => format!("{prefix}[{}]", ranges_text(ranges)),
        },
    };
    groups.iter().map(text).collect::<Vec<_>>().join(",")
}

fn ranges_text(ranges: &[(u64, u64)]) -> String {
    let one = |(lo, hi): &(u64, u64)| if lo == hi { lo.to_string() } else { format!("{lo}-{hi}") };
    ranges.iter().map(one).collect::<Vec<_>>().join(",")
}

/// Decodes an idset: strictly ascending, no leading zeros, no blanks.
///
/// # Errors
/// Anything that RFC 22 refuses.
pub fn ids(text: &str) -> Result<Vec<u32>, String> {
    let bad = || format!("invalid idset {text:?}");
    let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
    let mut out: Vec<u32> = Vec::new();
    if inner.is_empty() {
        return Ok(out);
    }
    let number = |t: &str| -> Result<u32, String> {
        let plain = t.bytes().all(|b| b.is_ascii_digit()) && (t == "0" || !t.starts_with('0'));
        t.parse().ok().filter(|n| plain && *n < 1 << 31).ok_or_else(bad)
    };
    for part in inner.split(',') {
        let (lo, hi) = match part.split_once('-') {
            Some((lo, hi)) => (number(lo)?, number(hi)?),
            None => (number(part)?, number(part)?),
        };
        let backwards = part.contains('-') && hi <= lo;
        if backwards || out.last().is_some_and(|last| lo <= *last) || hi - lo > 1 << 24 {
            return Err(bad());
        }
        out.extend(lo..=hi);
    }
    Ok(out)
}

/// Encodes ascending ids.
pub fn encode_ids(ids: &[u32]) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for id in ids.iter().map(|i| u64::from(*i)) {
        match ranges.last_mut() {
            Some((_, hi)) if *hi + 1 == id => *hi = id,
            _ => ranges.push((id, id)),
        }
    }
    ranges_text(&ranges)
}

#[cfg(test)]
mod tests {
    use super::{encode, encode_ids, expand, ids};

    #[test]
    fn hostlists() {
        for (text, want) in [
            ("sim-0", "sim-0"),
            ("sim-[0-2]", "sim-0 sim-1 sim-2"),
            ("a,b[1,3-4]x c", "a b1x b3x b4x c"),
            ("n[08-10]", "n08 n09 n10"),
            ("", ""),
        ] {
            assert_eq!(expand(text).expect(text).join(" "), want);
        }
        for text in ["a[0-1", "a]", "a[3-1]", "a[x]", "a[]", "a[[0]]"] {
            assert!(expand(text).is_err(), "{text}");
        }
    }

    #[test]
    fn encoding() {
        let hosts = |t: &str| t.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (list, want) in [
            ("sim-0", "sim-0"),
            ("sim-0 sim-1 sim-2", "sim-[0-2]"),
            ("a b a1 a2", "a,b,a[1-2]"),
            ("foo3 foo2 foo1", "foo[3,2,1]"),
        ] {
            assert_eq!(encode(&hosts(list)), want);
        }
        assert_eq!(encode_ids(&[0, 1, 2, 5]), "0-2,5");
    }

    #[test]
    fn idsets() {
        assert_eq!(ids("0-2,5").expect("ids"), [0, 1, 2, 5]);
        assert_eq!(ids("[0-1]").expect("ids"), [0, 1]);
        for text in ["3,2", "0,0", "00-3", "0-0", "1-", "0-3,2", "0, 1", "2147483648", "x"] {
            assert!(ids(text).is_err(), "{text}");
        }
    }
}
