//! Versions of flux-core, and what the supported ones are.

use std::fmt;
use std::str::FromStr;

/// A flux-core version such as 0.88.0.
///
/// ```
/// use flux_gen::flux::FluxVersion;
/// let declared: FluxVersion = "0.75".parse()?;
/// assert!(declared < FluxVersion::NEWEST && declared.can_join("v0.75.2".parse()?));
/// # Ok::<(), flux_gen::flux::version::VersionError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FluxVersion {
    /// Always 0 so far.
    pub major: u16,
    /// The release.
    pub minor: u16,
    /// The bug fix.
    pub patch: u16,
}

/// The text is no version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a flux-core version such as 0.88.0")]
pub struct VersionError(String);

impl FluxVersion {
    /// The oldest release that what flux-gen writes without a declared version works with.
    pub const OLDEST: Self = Self::release(51);
    /// The newest release whose behaviour was measured.
    pub const NEWEST: Self = Self::release(88);

    /// 0.`minor`.0.
    #[must_use]
    pub const fn release(minor: u16) -> Self {
        Self { major: 0, minor, patch: 0 }
    }

    /// True if brokers of both versions may be in one instance: the same major and minor number
    /// (since 0.61.2; before, all three had to agree).
    #[must_use]
    pub fn can_join(self, other: Self) -> bool {
        (self.major, self.minor) == (other.major, other.minor)
    }
}

impl fmt::Display for FluxVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl FromStr for FluxVersion {
    type Err = VersionError;

    /// Reads `0.88.0`, `0.88`, a leading `v`, and what `git describe` adds behind a dash.
    fn from_str(text: &str) -> Result<Self, VersionError> {
        let error = || VersionError(text.to_owned());
        let text = text.strip_prefix('v').unwrap_or(text);
        let numbers = text.split_once('-').map_or(text, |(numbers, _)| numbers);
        let mut parts = numbers.split('.').map(|part| {
            let digits = !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| part.parse::<u16>().ok()).flatten().ok_or_else(error)
        });
        let mut next = || parts.next().transpose();
        let (Some(major), Some(minor), patch, None) = (next()?, next()?, next()?, next()?) else {
            return Err(error());
        };
        Ok(Self { major, minor, patch: patch.unwrap_or(0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_compares() {
        for (text, shown) in
            [("0.88.0", "0.88.0"), ("0.51", "0.51.0"), ("v0.61.2", "0.61.2"), ("0.88.0-59-g4a5e79f56", "0.88.0")]
        {
            assert_eq!(text.parse::<FluxVersion>().unwrap().to_string(), shown);
        }
        for text in ["", "0", "0.x", "0.88.", "0.1.2.3", "1.-2", "0.+8", "latest", "0.99999999"] {
            assert!(text.parse::<FluxVersion>().is_err(), "{text}");
        }
        assert!(FluxVersion::release(9) < FluxVersion::release(10));
        assert!(!FluxVersion::release(75).can_join(FluxVersion::release(76)));
    }
}
