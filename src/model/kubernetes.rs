//! Kubernetes versions and what each of them has.

use std::fmt;
use std::str::FromStr;

/// A Kubernetes minor version, 1.28 to 1.37.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KubernetesVersion(u8);

/// Something that not every supported Kubernetes version has on by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// Sidecar containers: init containers with `restartPolicy: Always` (KEP-753).
    NativeSidecars,
    /// `successPolicy` of Jobs (KEP-3998).
    SuccessPolicy,
    /// `podFailurePolicy` of Jobs (KEP-3329).
    PodFailurePolicy,
    /// `podReplacementPolicy` of Jobs (KEP-3939).
    PodReplacementPolicy,
    /// Resources of a whole pod (KEP-2837).
    PodLevelResources,
    /// OCI image volumes (KEP-4639).
    ImageVolumes,
}

impl Feature {
    /// First version that has it on by default (beta or stable).
    #[must_use]
    pub fn since(self) -> KubernetesVersion {
        KubernetesVersion(match self {
            Self::PodFailurePolicy => 26,
            Self::NativeSidecars | Self::PodReplacementPolicy => 29,
            Self::SuccessPolicy => 31,
            Self::PodLevelResources => 34,
            Self::ImageVolumes => 35,
        })
    }

    /// What people call it.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::NativeSidecars => "native sidecars",
            Self::SuccessPolicy => "successPolicy of Jobs",
            Self::PodFailurePolicy => "podFailurePolicy of Jobs",
            Self::PodReplacementPolicy => "podReplacementPolicy of Jobs",
            Self::PodLevelResources => "pod-level resources",
            Self::ImageVolumes => "image volumes",
        }
    }
}

impl KubernetesVersion {
    /// The oldest version that bundles can be made for.
    pub const OLDEST: Self = Self(28);
    /// The newest version that bundles can be made for.
    pub const NEWEST: Self = Self(37);

    /// The minor number.
    #[must_use]
    pub fn minor(self) -> u8 {
        self.0
    }

    /// Whether this version has the feature on by default.
    #[must_use]
    pub fn has(self, feature: Feature) -> bool {
        self >= feature.since()
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.0)
    }
}

/// Not a version from 1.28 to 1.37.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a Kubernetes version from 1.28 to 1.37")]
pub struct UnknownVersion;

impl FromStr for KubernetesVersion {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        let minor: u8 = text.strip_prefix("1.").and_then(|m| m.parse().ok()).ok_or(UnknownVersion)?;
        let version = Self(minor);
        if (Self::OLDEST..=Self::NEWEST).contains(&version) { Ok(version) } else { Err(UnknownVersion) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_parse_within_the_supported_range() {
        for (text, ok) in [
            ("1.28", true),
            ("1.37", true),
            ("1.27", false),
            ("1.38", false),
            ("1.31.2", false),
            ("v1.31", false),
            ("", false),
        ] {
            assert_eq!(text.parse::<KubernetesVersion>().is_ok(), ok, "{text}");
        }
        assert_eq!("1.31".parse::<KubernetesVersion>().map(|v| v.to_string()), Ok("1.31".to_owned()));
    }

    #[test]
    fn features_begin_where_they_are_on_by_default() {
        let v = |text: &str| text.parse::<KubernetesVersion>().unwrap();
        assert!(!v("1.30").has(Feature::SuccessPolicy) && v("1.31").has(Feature::SuccessPolicy));
        assert!(!v("1.28").has(Feature::NativeSidecars) && v("1.29").has(Feature::NativeSidecars));
        assert!(!v("1.34").has(Feature::ImageVolumes) && v("1.35").has(Feature::ImageVolumes));
    }
}
