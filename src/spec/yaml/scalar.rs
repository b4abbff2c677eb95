//! What a scalar means, and where YAML 1.1 and YAML 1.2 readers disagree about it.
//!
//! Kubernetes reads YAML with sigs.k8s.io/yaml, which follows go-yaml v2: YAML 1.1 without sexagesimal numbers and with
//! dates left as text. Other tools follow the core schema of YAML 1.2 (section 10.3.2) or all of YAML 1.1
//! (yaml.org/type). A bare word that is not the same for all of them is [`Reading::Ambiguous`].

use super::node::Tag;
use super::{Scalar, Style};

/// What a scalar means.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reading {
    Null,
    Bool(bool),
    /// Saturates: nothing flux-gen reads is as wide.
    Int(i128),
    Float(f64),
    Text,
    /// Readers disagree.
    Ambiguous(Ambiguity),
}

/// Why readers disagree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Ambiguity {
    /// `yes`, `no`, `on`, `off`, `y`, `n`: a boolean in YAML 1.1, text in YAML 1.2.
    Bool(bool),
    /// `017`: octal in YAML 1.1 (this value), decimal in YAML 1.2.
    Octal(i128),
    /// `0o17`: octal in YAML 1.2 and for Kubernetes, text in YAML 1.1.
    NewOctal(i128),
    /// `089`: starts like an octal number and is none.
    LeadingZero(f64),
    /// `1_000`, `0b11`, `-0x1F`: a number in YAML 1.1, text in YAML 1.2.
    OldNumber(i128),
    /// `1_000.5`: a number in YAML 1.1, text in YAML 1.2.
    OldFloat(f64),
    /// `1e3`: a number in YAML 1.2 and for Kubernetes, text in YAML 1.1, which wants a point.
    Exponent(f64),
    /// `1:30`: 90 in YAML 1.1, text in YAML 1.2 and for Kubernetes.
    Sexagesimal,
    /// `2024-01-31`: a date in YAML 1.1, text in YAML 1.2 and for Kubernetes.
    Timestamp,
}

impl Ambiguity {
    /// What Kubernetes makes of it.
    pub(crate) fn kubernetes(self) -> Reading {
        match self {
            Self::Bool(value) => Reading::Bool(value),
            Self::Octal(n) | Self::NewOctal(n) | Self::OldNumber(n) => Reading::Int(n),
            Self::LeadingZero(x) | Self::OldFloat(x) | Self::Exponent(x) => Reading::Float(x),
            Self::Sexagesimal | Self::Timestamp => Reading::Text,
        }
    }

    /// The disagreement in words, to follow "`word` without quotes is".
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Bool(value) => {
                format!("the boolean {value} to YAML 1.1 readers (kubectl) and text to YAML 1.2 readers")
            }
            Self::Octal(n) => {
                format!("the octal number {n} to YAML 1.1 readers (kubectl) and decimal to YAML 1.2 readers")
            }
            Self::NewOctal(n) => format!("the number {n} to YAML 1.2 readers and kubectl and text to YAML 1.1 readers"),
            Self::LeadingZero(x) => {
                format!("the number {x} to kubectl and to YAML 1.2 readers and text to YAML 1.1 readers")
            }
            Self::OldNumber(n) => {
                format!("the number {n} to YAML 1.1 readers (kubectl) and text to YAML 1.2 readers")
            }
            Self::OldFloat(x) => {
                format!("the number {x} to YAML 1.1 readers (kubectl) and text to YAML 1.2 readers")
            }
            Self::Exponent(x) => format!("the number {x} to YAML 1.2 readers and kubectl and text to YAML 1.1 readers"),
            Self::Sexagesimal => "a number in base 60 to YAML 1.1 readers and text to YAML 1.2 readers".to_owned(),
            Self::Timestamp => "a date to YAML 1.1 readers and text to YAML 1.2 readers".to_owned(),
        }
    }
}

/// Whether a scalar means null.
pub(crate) fn is_null(scalar: &Scalar) -> bool {
    plain(scalar) && matches!(scalar.text.as_str(), "" | "~" | "null" | "Null" | "NULL")
}

/// What a scalar means.
pub(crate) fn read(scalar: &Scalar) -> Reading {
    if is_null(scalar) {
        Reading::Null
    } else if plain(scalar) {
        read_plain(&scalar.text)
    } else {
        Reading::Text
    }
}

fn plain(scalar: &Scalar) -> bool {
    match scalar.tag {
        Tag::None => scalar.style == Style::Plain,
        Tag::Text => false,
        Tag::Plain => true,
    }
}

fn read_plain(text: &str) -> Reading {
    match text {
        "true" | "True" | "TRUE" => return Reading::Bool(true),
        "false" | "False" | "FALSE" => return Reading::Bool(false),
        "y" | "Y" | "yes" | "Yes" | "YES" | "on" | "On" | "ON" => {
            return Reading::Ambiguous(Ambiguity::Bool(true));
        }
        "n" | "N" | "no" | "No" | "NO" | "off" | "Off" | "OFF" => {
            return Reading::Ambiguous(Ambiguity::Bool(false));
        }
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Reading::Float(f64::INFINITY);
        }
        "-.inf" | "-.Inf" | "-.INF" => return Reading::Float(f64::NEG_INFINITY),
        ".nan" | ".NaN" | ".NAN" => return Reading::Float(f64::NAN),
        _ => {}
    }
    // Everything else that is not text starts with a digit, a sign or a point.
    let (negative, body) = match text.as_bytes() {
        [b'-', ..] => (true, &text[1..]),
        [b'+', ..] => (false, &text[1..]),
        _ => (false, text),
    };
    let signed = body.len() != text.len();
    if !body.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Reading::Text;
    }
    if !signed && is_timestamp(text) {
        return Reading::Ambiguous(Ambiguity::Timestamp);
    }
    if is_sexagesimal(body) {
        return Reading::Ambiguous(Ambiguity::Sexagesimal);
    }
    integer(negative, signed, body).or_else(|| float(negative, body)).unwrap_or(Reading::Text)
}

/// Digits of a base with `_` between them; `None` when there are others or none at all.
fn digits(text: &str, radix: u32) -> Option<i128> {
    let mut value: i128 = 0;
    let mut any = false;
    for c in text.chars().filter(|c| *c != '_') {
        any = true;
        value = value.saturating_mul(i128::from(radix)).saturating_add(i128::from(c.to_digit(radix)?));
    }
    any.then_some(value)
}

fn integer(negative: bool, signed: bool, body: &str) -> Option<Reading> {
    let sign = |n: i128| if negative { -n } else { n };
    let underscore = body.contains('_');
    if let Some(rest) = body.strip_prefix("0x") {
        let n = sign(digits(rest, 16)?);
        let old = underscore || signed;
        return Some(if old { Reading::Ambiguous(Ambiguity::OldNumber(n)) } else { Reading::Int(n) });
    }
    if let Some(rest) = body.strip_prefix("0b") {
        return Some(Reading::Ambiguous(Ambiguity::OldNumber(sign(digits(rest, 2)?))));
    }
    if let Some(rest) = body.strip_prefix("0o") {
        return Some(Reading::Ambiguous(Ambiguity::NewOctal(sign(digits(rest, 8)?))));
    }
    if body.starts_with('_') {
        return None;
    }
    if body.len() > 1 && body.starts_with('0') {
        if let Some(n) = digits(&body[1..], 8) {
            return Some(Reading::Ambiguous(Ambiguity::Octal(sign(n))));
        }
        return None;
    }
    let n = sign(digits(body, 10)?);
    Some(if underscore { Reading::Ambiguous(Ambiguity::OldNumber(n)) } else { Reading::Int(n) })
}

fn float(negative: bool, body: &str) -> Option<Reading> {
    let clean = body.replace('_', "");
    let (mantissa, exponent) = match clean.find(['e', 'E']) {
        Some(at) => (&clean[..at], Some(&clean[at + 1..])),
        None => (clean.as_str(), None),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let exponent_digits = exponent.map(|e| e.strip_prefix(['+', '-']).unwrap_or(e));
    let well_formed = all_digits(whole)
        && all_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent_digits.is_none_or(|e| !e.is_empty() && all_digits(e));
    if !well_formed {
        return None;
    }
    let value: f64 = clean.parse().ok()?;
    let value = if negative { -value } else { value };
    Some(if body.contains('_') {
        Reading::Ambiguous(Ambiguity::OldFloat(value))
    } else if exponent.is_some() && (!mantissa.contains('.') || !signed_exponent(exponent)) {
        Reading::Ambiguous(Ambiguity::Exponent(value))
    } else if !mantissa.contains('.') {
        Reading::Ambiguous(Ambiguity::LeadingZero(value))
    } else {
        Reading::Float(value)
    })
}

/// YAML 1.1 wants a sign in an exponent: `1.0e+3`.
fn signed_exponent(exponent: Option<&str>) -> bool {
    exponent.is_none_or(|e| e.starts_with(['+', '-']))
}

/// `1:30`, `190:20:30`, `1:30.5` (yaml.org/type/int.html, float.html).
fn is_sexagesimal(body: &str) -> bool {
    let mut parts = body.split(':');
    let first = parts.next().unwrap_or_default();
    let rest: Vec<&str> = parts.collect();
    let Some((last, middle)) = rest.split_last() else {
        return false;
    };
    let last = last.split_once('.').map_or(*last, |(whole, fraction)| {
        if fraction.bytes().all(|b| b.is_ascii_digit() || b == b'_') { whole } else { "" }
    });
    let sixty = |s: &str| matches!(s.as_bytes(), [b'0'..=b'9'] | [b'0'..=b'5', b'0'..=b'9']);
    first.starts_with(|c: char| c.is_ascii_digit())
        && first.bytes().all(|b| b.is_ascii_digit() || b == b'_')
        && middle.iter().copied().all(sixty)
        && sixty(last)
}

/// `2024-01-31` and the longer forms (yaml.org/type/timestamp.html), read a little more widely.
fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits =
        |range: std::ops::Range<usize>| bytes.get(range).is_some_and(|part| part.iter().all(u8::is_ascii_digit));
    if !digits(0..4) || bytes.get(4) != Some(&b'-') {
        return false;
    }
    if bytes.len() == 10 {
        return digits(5..7) && bytes[7] == b'-' && digits(8..10);
    }
    let Some(at) = text.find(['T', 't', ' ', '\t']) else {
        return false;
    };
    let day = &text[5..at.max(5)];
    let time = text[at + 1..].trim_start();
    let day_ok = day.split_once('-').is_some_and(|(month, day)| {
        [month, day].iter().all(|p| matches!(p.len(), 1 | 2) && p.bytes().all(|b| b.is_ascii_digit()))
    });
    day_ok
        && time.split(':').count() >= 3
        && time.bytes().all(|b| b.is_ascii_digit() || b" \t:.Z+-".contains(&b))
        && time.starts_with(|c: char| c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain_reading(text: &str) -> Reading {
        read(&Scalar { text: text.to_owned(), style: Style::Plain, tag: Tag::None })
    }

    #[test]
    fn words_on_which_all_readers_agree() {
        for (text, expected) in [
            ("", Reading::Null),
            ("~", Reading::Null),
            ("null", Reading::Null),
            ("true", Reading::Bool(true)),
            ("FALSE", Reading::Bool(false)),
            ("0", Reading::Int(0)),
            ("-12", Reading::Int(-12)),
            ("+12", Reading::Int(12)),
            ("0x1F", Reading::Int(31)),
            ("2147483648", Reading::Int(2_147_483_648)),
            ("1.5", Reading::Float(1.5)),
            (".5", Reading::Float(0.5)),
            ("-1.", Reading::Float(-1.0)),
            ("1.0e+3", Reading::Float(1000.0)),
            (".inf", Reading::Float(f64::INFINITY)),
            ("hello", Reading::Text),
            ("1Gi", Reading::Text),
            ("rockylinux:9", Reading::Text),
            ("1.2.3", Reading::Text),
            ("24.123.50.123", Reading::Text),
            ("-ompi=openmpi@5", Reading::Text),
            ("5s", Reading::Text),
            ("-", Reading::Text),
            (".", Reading::Text),
            ("e3", Reading::Text),
            ("1e", Reading::Text),
            ("0x", Reading::Text),
            ("0xZ", Reading::Text),
            ("8080:80", Reading::Text),
            ("2024-01", Reading::Text),
            ("yess", Reading::Text),
            ("tRUE", Reading::Text),
            ("é", Reading::Text),
            ("1é", Reading::Text),
            ("0é", Reading::Text),
            ("2024-é1-01T", Reading::Text),
        ] {
            assert_eq!(plain_reading(text), expected, "{text}");
        }
    }

    #[test]
    fn words_on_which_readers_disagree() {
        for (text, expected) in [
            ("yes", Ambiguity::Bool(true)),
            ("Off", Ambiguity::Bool(false)),
            ("y", Ambiguity::Bool(true)),
            ("017", Ambiguity::Octal(15)),
            ("-017", Ambiguity::Octal(-15)),
            ("0o17", Ambiguity::NewOctal(15)),
            ("089", Ambiguity::LeadingZero(89.0)),
            ("1_000", Ambiguity::OldNumber(1000)),
            ("0b11", Ambiguity::OldNumber(3)),
            ("-0x1F", Ambiguity::OldNumber(-31)),
            ("1_000.5", Ambiguity::OldFloat(1000.5)),
            ("1e3", Ambiguity::Exponent(1000.0)),
            ("1.5e3", Ambiguity::Exponent(1500.0)),
            ("1:30", Ambiguity::Sexagesimal),
            ("190:20:30", Ambiguity::Sexagesimal),
            ("2024-01-31", Ambiguity::Timestamp),
            ("2024-01-31T10:00:00Z", Ambiguity::Timestamp),
        ] {
            assert_eq!(plain_reading(text), Reading::Ambiguous(expected), "{text}");
        }
    }

    #[test]
    fn quotes_and_tags_decide() {
        let read_as = |style, tag| read(&Scalar { text: "1".to_owned(), style, tag });
        assert_eq!(read_as(Style::Quoted, Tag::None), Reading::Text);
        assert_eq!(read_as(Style::Block, Tag::None), Reading::Text);
        assert_eq!(read_as(Style::Plain, Tag::Text), Reading::Text);
        assert_eq!(read_as(Style::Quoted, Tag::Plain), Reading::Int(1));
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text in "\\PC*") {
            let _ = plain_reading(&text);
        }

        #[test]
        fn never_panics_near_numbers(text in "[-+0-9:._eExobTZ é]{0,12}") {
            let _ = plain_reading(&text);
        }
    }
}
