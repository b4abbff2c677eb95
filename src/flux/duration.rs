//! Durations as Flux writes them (RFC 23, *Flux Standard Duration*): a number and `ms`, `s`, `m`, `h` or `d`.
//!
//! In a configuration file a duration is a string. As a broker attribute or option a bare number means seconds;
//! the reader is the same one.

use std::fmt;
use std::str::FromStr;

/// The text is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a duration: write a number and ms, s, m, h or d, such as 30s")]
pub struct DurationError(String);

/// A duration in seconds, 0 or larger, possibly infinite.
///
/// ```
/// use flux_gen::flux::FluxDuration;
/// let wait: FluxDuration = "1.5m".parse()?;
/// assert_eq!((wait.seconds(), wait.to_string().as_str()), (90.0, "1.5m"));
/// assert!("90 seconds".parse::<FluxDuration>().is_err());
/// # Ok::<(), flux_gen::flux::duration::DurationError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct FluxDuration(f64);

impl FluxDuration {
    /// A number of seconds; `None` for negative numbers and not-a-number.
    #[must_use]
    pub fn from_seconds(seconds: f64) -> Option<Self> {
        (seconds >= 0.0).then_some(Self(seconds))
    }

    /// Whole seconds.
    #[must_use]
    pub const fn from_whole_seconds(seconds: u32) -> Self {
        Self(seconds as f64)
    }

    /// The number of seconds.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.0
    }
}

impl FromStr for FluxDuration {
    type Err = DurationError;

    /// Accepts exactly what flux-core accepts, that is C's `strtod` and a unit: `1e3`, `.5h`, `inf`, and, because
    /// an absent number counts as 0, also an empty text and a unit alone.
    fn from_str(text: &str) -> Result<Self, DurationError> {
        let (number, unit) = c_double(text);
        let factor = match unit {
            "" | "s" => 1.0,
            "ms" => 0.001,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86400.0,
            _ => f64::NAN,
        };
        let infinite_with_unit = number.is_infinite() && !unit.is_empty();
        Self::from_seconds(number * factor)
            .filter(|_| !infinite_with_unit)
            .ok_or_else(|| DurationError(text.to_owned()))
    }
}

impl fmt::Display for FluxDuration {
    /// As flux-core prints it, with up to six digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = match self.0 {
            s if s.is_infinite() => return f.write_str("infinity"),
            s if s < 0.1 && s > 0.0 => (s * 1000.0, "ms"),
            s if s < 60.0 => (s, "s"),
            s if s < 3600.0 => (s / 60.0, "m"),
            s if s < 86400.0 => (s / 3600.0, "h"),
            s => (s / 86400.0, "d"),
        };
        write!(f, "{}{unit}", six_digits(number))
    }
}

/// C's `%.6g`.
fn six_digits(number: f64) -> String {
    let scientific = format!("{number:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |digits: &str| match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits.to_owned(),
    };
    if (-4..6).contains(&exponent) {
        trimmed(&format!("{number:.*}", (5 - exponent).unsigned_abs() as usize))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", trimmed(mantissa), exponent.unsigned_abs())
    }
}

/// The number at the start of a text as C's `strtod` reads it (0 if there is none), and what follows it.
fn c_double(text: &str) -> (f64, &str) {
    let body = text.trim_start_matches([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']);
    let (sign, body) = match body.as_bytes().first() {
        Some(b'-') => (-1.0, &body[1..]),
        Some(b'+') => (1.0, &body[1..]),
        _ => (1.0, body),
    };
    let starts_with = |word: &str| body.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word));
    for (word, value) in [("infinity", f64::INFINITY), ("inf", f64::INFINITY), ("nan", f64::NAN)] {
        if starts_with(word) {
            return (sign * value, &body[word.len()..]);
        }
    }
    let hexadecimal = starts_with("0x").then(|| c_hexadecimal(&body[2..])).flatten();
    match hexadecimal.or_else(|| c_decimal(body)) {
        Some((value, rest)) => (sign * value, rest),
        None => (0.0, text),
    }
}

/// Digits with at most one point among them: their text, their length, how many stand behind the point.
fn digits(text: &str, is_digit: impl Fn(u8) -> bool) -> Option<(usize, usize)> {
    let (mut seen, mut point, mut length, mut behind) = (false, false, 0, 0);
    for b in text.bytes() {
        match b {
            b'.' if !point => point = true,
            b if is_digit(b) => {
                seen = true;
                behind += usize::from(point);
            }
            _ => break,
        }
        length += 1;
    }
    seen.then_some((length, behind))
}

/// `e` or `p`, an optional sign and digits: their length and value; nothing if incomplete.
fn exponent(text: &str, letter: u8) -> (usize, i32) {
    let bytes = text.as_bytes();
    if bytes.first().map(u8::to_ascii_lowercase) != Some(letter) {
        return (0, 0);
    }
    let signed = usize::from(matches!(bytes.get(1), Some(b'+' | b'-')));
    let count = bytes.iter().skip(1 + signed).take_while(|b| b.is_ascii_digit()).count();
    if count == 0 {
        return (0, 0);
    }
    let end = 1 + signed + count;
    let limit = if bytes[1] == b'-' { i32::MIN } else { i32::MAX };
    (end, text[1..end].parse().unwrap_or(limit))
}

fn c_decimal(text: &str) -> Option<(f64, &str)> {
    let (length, _) = digits(text, |b| b.is_ascii_digit())?;
    let end = length + exponent(&text[length..], b'e').0;
    Some((text[..end].parse().ok()?, &text[end..]))
}

fn c_hexadecimal(text: &str) -> Option<(f64, &str)> {
    let (length, behind) = digits(text, |b| b.is_ascii_hexdigit())?;
    let value =
        text[..length].chars().filter_map(|c| c.to_digit(16)).fold(0.0, |sum, digit| sum * 16.0 + f64::from(digit));
    let (more, power) = exponent(&text[length..], b'p');
    let shift = f64::from(power) - 4.0 * behind as f64;
    Some((value * shift.exp2(), &text[length + more..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads() {
        for (text, seconds) in [
            ("5s", 5.0),
            ("5", 5.0),
            ("500ms", 0.5),
            ("1.5m", 90.0),
            (".5h", 1800.0),
            ("1d", 86400.0),
            ("1e2s", 100.0),
            ("0x10", 16.0),
            ("0x1p4s", 16.0),
            (" +2s", 2.0),
            ("-0", 0.0),
            ("inf", f64::INFINITY),
            ("Infinity", f64::INFINITY),
            ("", 0.0),
            ("s", 0.0),
        ] {
            assert_eq!(text.parse::<FluxDuration>().map(FluxDuration::seconds), Ok(seconds), "{text:?}");
        }
        for text in
            ["abc", "1 hour", "5 s", "5S", "-1s", "1.0sec", "nan", "infs", " ", "1h30m", "0x", "1e", "5ss", "½s"]
        {
            assert!(text.parse::<FluxDuration>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn prints() {
        for (seconds, text) in [
            (0.0, "0s"),
            (0.001, "1ms"),
            (0.0621, "62.1ms"),
            (5.1, "5.1s"),
            (62.0, "1.03333m"),
            (3600.0, "1h"),
            (4500.0, "1.25h"),
            (103_680.0, "1.2d"),
            (8.64e11, "1e+07d"),
            (f64::INFINITY, "infinity"),
        ] {
            assert_eq!(FluxDuration::from_seconds(seconds).unwrap().to_string(), text);
        }
        assert_eq!(FluxDuration::from_seconds(-1.0), None);
        assert_eq!(FluxDuration::from_seconds(f64::NAN), None);
    }

    proptest! {
        #[test]
        fn whole_seconds_survive(seconds in 0u32..86_400) {
            let made = FluxDuration::from_whole_seconds(seconds);
            let read: FluxDuration = made.to_string().parse().unwrap();
            prop_assert!((read.seconds() - f64::from(seconds)).abs() <= f64::from(seconds) * 1e-5);
        }

        #[test]
        fn never_panics(text in "\\PC{0,20}|[0-9a-fxps.+-]{0,12}") {
            if let Ok(read) = text.parse::<FluxDuration>() {
                prop_assert!(read.seconds() >= 0.0);
                prop_assert!(read.to_string().parse::<FluxDuration>().is_ok());
            }
        }
    }
}
