//! Kubernetes quantities, exact.
//!
//! Grammar and limits as in `apimachinery/pkg/api/resource`: a signed decimal number and a suffix (`n u m k M G T P E`,
//! `Ki Mi Gi Ti Pi Ei`, or `e`/`E` and an integer). Nothing is smaller than a billionth (rounded away from zero) and nothing is
//! larger than 2^63-1 (held there).

use std::str::FromStr;

const NANOS: i128 = 1_000_000_000;
const LARGEST: i128 = i64::MAX as i128 * NANOS;

/// A quantity in billionths. Compares by value: `1` equals `1000m`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantity(i128);

/// Why a text is no quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text has no digits where the number should be.
    #[error("it must begin with a number")]
    NoNumber,
    /// What follows the number is no suffix.
    #[error("`{0}` is not a unit")]
    Suffix(String),
}

impl Quantity {
    /// Zero.
    pub const ZERO: Self = Self(0);

    /// A whole number.
    #[must_use]
    pub fn from_integer(value: i64) -> Self {
        Self(i128::from(value) * NANOS)
    }

    /// The sum, held at the largest quantity.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self((self.0 + other.0).clamp(-LARGEST, LARGEST))
    }

    /// This many of it, held at the largest quantity.
    #[must_use]
    pub fn times(self, count: u32) -> Self {
        Self(self.0.saturating_mul(i128::from(count)).clamp(-LARGEST, LARGEST))
    }

    /// How many of `part` fit into it; nothing fits into what is negative, and as many as one likes of what is nothing.
    #[must_use]
    pub fn holds(self, part: Self) -> u32 {
        if part.0 <= 0 {
            return u32::MAX;
        }
        u32::try_from(self.0.max(0) / part.0).unwrap_or(u32::MAX)
    }

    /// The value in billionths.
    #[must_use]
    pub fn nanos(self) -> i128 {
        self.0
    }

    /// Whether the value is less than zero.
    #[must_use]
    pub fn is_negative(self) -> bool {
        self.0 < 0
    }

    /// The value if it is a whole number.
    #[must_use]
    pub fn as_integer(self) -> Option<i64> {
        if self.0 % NANOS == 0 { i64::try_from(self.0 / NANOS).ok() } else { None }
    }

    /// The smallest whole number that is not less.
    #[must_use]
    pub fn ceil(self) -> i64 {
        let whole = self.0.div_euclid(NANOS) + i128::from(self.0.rem_euclid(NANOS) != 0);
        i64::try_from(whole).unwrap_or(if self.is_negative() { i64::MIN } else { i64::MAX })
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let (negative, rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        let number_end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, suffix) = rest.split_at(number_end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(QuantityError::NoNumber);
        }
        let (exponent, multiplier) = unit(suffix).ok_or_else(|| QuantityError::Suffix(suffix.to_owned()))?;
        let magnitude = scaled(whole, fraction, exponent, multiplier * NANOS);
        Ok(Self(if negative { -magnitude } else { magnitude }))
    }
}

/// Decimal exponent and binary multiplier of a suffix.
fn unit(suffix: &str) -> Option<(i64, i128)> {
    let decimal = |exponent| Some((exponent, 1));
    let binary = |power: u32| Some((0, 1_i128 << (10 * power)));
    match suffix {
        "" => decimal(0),
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(1),
        "Mi" => binary(2),
        "Gi" => binary(3),
        "Ti" => binary(4),
        "Pi" => binary(5),
        "Ei" => binary(6),
        _ => {
            let digits = suffix.strip_prefix(['e', 'E'])?;
            if digits.strip_prefix(['+', '-']).unwrap_or(digits).starts_with(['+', '-']) {
                return None;
            }
            digits.parse::<i32>().ok().and_then(|exponent| decimal(i64::from(exponent)))
        }
    }
}

/// `whole.fraction × 10^exponent × factor`, rounded up to a whole number and held at the largest quantity.
fn scaled(whole: &str, fraction: &str, exponent: i64, factor: i128) -> i128 {
    let digits: Vec<u8> = whole.bytes().chain(fraction.bytes()).map(|b| b - b'0').collect();
    let Some(first) = digits.iter().position(|d| *d != 0) else { return 0 };
    let digits = &digits[first..];
    // Number of digits before the decimal point; negative when zeros follow the point first.
    let point = i64::try_from(whole.len()).unwrap_or(i64::MAX).saturating_add(exponent)
        - i64::try_from(first).unwrap_or(i64::MAX);
    // 10^20 exceeds 2^63 with any suffix, as the factor is at least one unit.
    if point > 20 {
        return LARGEST;
    }
    // 10^-40 of the largest factor is far below a billionth.
    if point < -40 {
        return 1;
    }
    let before = usize::try_from(point.max(0)).unwrap_or(0);
    let integer = (0..before).fold(0_i128, |sum, at| sum * 10 + i128::from(digits.get(at).copied().unwrap_or(0)));
    // Horner's scheme from the last digit; nested floors lose nothing but what `inexact` records.
    let leading_zeros = usize::try_from((-point).max(0)).unwrap_or(0);
    let after = std::iter::repeat_n(&0, leading_zeros).chain(digits.get(before..).unwrap_or_default());
    let mut part = 0_i128;
    let mut inexact = false;
    for digit in after.collect::<Vec<_>>().into_iter().rev() {
        let sum = i128::from(*digit) * factor + part;
        inexact |= sum % 10 != 0;
        part = sum / 10;
    }
    let total = integer.checked_mul(factor).and_then(|n| n.checked_add(part + i128::from(inexact)));
    total.map_or(LARGEST, |n| n.min(LARGEST))
}

/// Shortest form that is exact: `1500m`, `64`, `96Gi` for whole binary units.
impl std::fmt::Display for Quantity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Some(whole) = self.as_integer() else {
            return if self.0 % 1_000_000 == 0 {
                write!(f, "{}m", self.0 / 1_000_000)
            } else {
                write!(f, "{}n", self.0)
            };
        };
        let units = [(1_i64 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi")];
        match units.into_iter().find(|(unit, _)| whole != 0 && whole % unit == 0) {
            Some((unit, suffix)) => write!(f, "{}{suffix}", whole / unit),
            None => write!(f, "{whole}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nanos(text: &str) -> i128 {
        text.parse::<Quantity>().unwrap().nanos()
    }

    #[test]
    fn reads_every_form() {
        let unit = NANOS;
        for (text, expected) in [
            ("0", 0),
            ("4", 4 * unit),
            ("+4", 4 * unit),
            ("-4", -4 * unit),
            ("4.", 4 * unit),
            (".5", unit / 2),
            ("0.5", unit / 2),
            ("500m", unit / 2),
            ("2500m", 5 * unit / 2),
            ("1u", unit / 1_000_000),
            ("1n", 1),
            ("1k", 1_000 * unit),
            ("1Ki", 1_024 * unit),
            ("1.5Gi", 1_610_612_736 * unit),
            ("1e3", 1_000 * unit),
            ("1E3", 1_000 * unit),
            ("1E", 1_000_000_000_000_000_000 * unit),
            ("12e-1", 12 * unit / 10),
            ("1e+2", 100 * unit),
            ("0.1n", 1),
            ("-0.1n", -1),
            ("0.0000000001Ki", 103),
            ("1e-999", 1),
            ("0e999999999", 0),
            ("9223372036854775808", LARGEST),
            ("8Ei", LARGEST),
            ("1e999999999", LARGEST),
            ("00000000000000000000000000000000000000000000000001", unit),
        ] {
            assert_eq!(nanos(text), expected, "{text}");
        }
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "", "four", "-", "+", ".", "1 Gi", "1.2.3", "1gi", "1K", "1KI", "1e", "1e1.5", "1e--1", "1e+-1", "0x10",
            "١", "Ki", "--1", "1Mi ",
        ] {
            assert!(text.parse::<Quantity>().is_err(), "{text}");
        }
    }

    #[test]
    fn multiplies_divides_and_prints() {
        let q = |text: &str| text.parse::<Quantity>().unwrap();
        for (text, shown) in [
            ("1.5", "1500m"),
            ("64", "64"),
            ("96Gi", "96Gi"),
            ("2048Gi", "2Ti"),
            ("1G", "1000000000"),
            ("0", "0"),
            ("3n", "3n"),
        ] {
            assert_eq!(q(text).to_string(), shown);
            assert_eq!(q(shown), q(text));
        }
        assert_eq!(q("500m").times(3), q("1.5"));
        assert_eq!(q("8Ei").times(u32::MAX), q("8Ei"));
        assert_eq!((q("64").holds(q("3")), q("2").holds(q("3")), q("2").holds(Quantity::ZERO)), (21, 0, u32::MAX));
    }

    #[test]
    fn compares_by_value() {
        let q = |text: &str| text.parse::<Quantity>().unwrap();
        assert_eq!(q("1"), q("1000m"));
        assert_eq!(q("8Gi"), q("8589934592"));
        assert!(q("1G") < q("1Gi"));
        assert!(q("999m") < q("1"));
        assert_eq!(q("1500m").ceil(), 2);
        assert_eq!(q("-1500m").ceil(), -1);
        assert_eq!(q("2000m").as_integer(), Some(2));
        assert_eq!(q("1m").as_integer(), None);
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC{0,40}") {
            let _ = text.parse::<Quantity>();
        }

        #[test]
        fn never_panics_on_number_like_text(text in "[+-]?[0-9.]{0,60}[numkKMGTPEie+-]{0,3}[0-9]{0,12}") {
            if let Ok(q) = text.parse::<Quantity>() {
                prop_assert!(q.nanos().abs() <= LARGEST);
            }
        }

        #[test]
        fn milli_is_a_thousandth(n in 0_i64..9_000_000_000_000_000) {
            prop_assert_eq!(nanos(&format!("{n}m")) * 1000, nanos(&n.to_string()));
        }

        #[test]
        fn moving_the_point_is_an_exponent(whole in 0_u32.., fraction in 0_u32..1_000_000, shift in 0_i32..6) {
            let dotted = format!("{whole}.{fraction:06}e{shift}");
            let shifted = format!("{whole}{fraction:06}e{}", shift - 6);
            prop_assert_eq!(nanos(&dotted), nanos(&shifted));
        }
    }
}
