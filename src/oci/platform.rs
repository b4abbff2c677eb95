//! Platforms: operating system, architecture, variant; normalised and matched as containerd does (`platforms` package).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::descriptor::{Descriptor, null_is_default};
use super::error::{Error, ErrorKind};

/// A platform in the words of Go (`GOOS`, `GOARCH`, `GOARM`).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Platform {
    /// Architecture: `amd64`, `arm64`.
    pub architecture: String,
    /// Operating system: `linux`.
    pub os: String,
    /// Version of the operating system (Windows).
    #[serde(rename = "os.version", default, skip_serializing_if = "Option::is_none")]
    pub os_version: Option<String>,
    /// Features that the operating system must have (Windows).
    #[serde(
        rename = "os.features",
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "null_is_default"
    )]
    pub os_features: Vec<String>,
    /// Variant of the architecture: `v7` of `arm`, `v3` of `amd64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

impl Platform {
    /// Linux on an architecture.
    #[must_use]
    pub fn linux(architecture: &str) -> Self {
        Self::new("linux", architecture, None).normalised()
    }

    fn new(os: &str, architecture: &str, variant: Option<&str>) -> Self {
        Self {
            architecture: architecture.to_owned(),
            os: os.to_owned(),
            os_version: None,
            os_features: Vec::new(),
            variant: variant.filter(|v| !v.is_empty()).map(str::to_owned),
        }
    }

    /// One spelling for platforms that are the same: `x86_64` is `amd64`, `aarch64` and `arm64/v8` are `arm64`, `armhf` is
    /// `arm/v7`.
    #[must_use]
    pub fn normalised(&self) -> Self {
        let os = match self.os.to_lowercase().as_str() {
            "macos" => "darwin".to_owned(),
            other => other.to_owned(),
        };
        let variant = self.variant.as_deref().unwrap_or_default().to_lowercase();
        let (architecture, variant) = match (self.architecture.to_lowercase().as_str(), variant.as_str()) {
            ("i386", _) => ("386".to_owned(), ""),
            ("x86_64" | "x86-64" | "amd64", "v1") => ("amd64".to_owned(), ""),
            ("x86_64" | "x86-64" | "amd64", variant) => ("amd64".to_owned(), variant),
            ("aarch64" | "arm64", "8" | "v8" | "v8.0") => ("arm64".to_owned(), ""),
            ("aarch64" | "arm64", "9" | "9.0" | "v9.0") => ("arm64".to_owned(), "v9"),
            ("aarch64" | "arm64", variant) => ("arm64".to_owned(), variant),
            ("armhf", _) | ("arm", "" | "7") => ("arm".to_owned(), "v7"),
            ("armel", _) | ("arm", "6") => ("arm".to_owned(), "v6"),
            ("arm", "5") => ("arm".to_owned(), "v5"),
            ("arm", "8") => ("arm".to_owned(), "v8"),
            (other, variant) => (other.to_owned(), variant),
        };
        let variant = Some(variant).filter(|v| !v.is_empty()).map(str::to_owned);
        Self { architecture, os, variant, os_version: self.os_version.clone(), os_features: self.os_features.clone() }
    }

    /// How well an image of `self` runs where `wanted` is asked for: 0 is the same, more is an older variant, `None` does
    /// not run. Other architectures never match, not even those that a processor could run besides.
    #[must_use]
    pub fn distance(&self, wanted: &Self) -> Option<u8> {
        let (have, want) = (self.normalised(), wanted.normalised());
        if have.os != want.os || have.architecture != want.architecture {
            return None;
        }
        let floor = match want.architecture.as_str() {
            "amd64" => "v1",
            "arm64" => "v8",
            _ => "",
        };
        let have = have.variant.unwrap_or_else(|| floor.to_owned());
        let want = want.variant.unwrap_or_else(|| floor.to_owned());
        if have == want {
            return Some(0);
        }
        let step = |text: &str| text.strip_prefix('v').and_then(|n| n.parse::<u8>().ok());
        match (step(&have), step(&want)) {
            (Some(have), Some(want)) if have < want => Some(want - have),
            _ => None,
        }
    }

    /// The descriptor that fits best, the first of equals. Entries without a platform, and the attestations that BuildKit
    /// puts beside images (`unknown/unknown`), never fit.
    #[must_use]
    pub fn select<'a>(&self, manifests: &'a [Descriptor]) -> Option<&'a Descriptor> {
        let fits = |d: &'a Descriptor| d.platform.as_ref()?.distance(self).map(|distance| (distance, d));
        manifests.iter().filter_map(fits).min_by_key(|(distance, _)| *distance).map(|(_, d)| d)
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        match &self.variant {
            Some(variant) => write!(f, "/{variant}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Platform {
    type Err = Error;

    /// `os/architecture[/variant]`, or the architecture alone for Linux. The result is normalised.
    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = || {
            Error::new(ErrorKind::Reference, format!("`{text}` is no platform"))
                .help("write os/architecture or os/architecture/variant, such as linux/amd64 or linux/arm64")
        };
        let word = |w: &str| {
            w.starts_with(|c: char| c.is_ascii_alphanumeric())
                && w.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
        };
        let parts: Vec<&str> = text.split('/').collect();
        if !parts.iter().all(|part| word(part)) {
            return Err(bad());
        }
        match parts.as_slice() {
            [architecture] => Ok(Self::new("linux", architecture, None).normalised()),
            [os, architecture] => Ok(Self::new(os, architecture, None).normalised()),
            [os, architecture, variant] => Ok(Self::new(os, architecture, Some(variant)).normalised()),
            _ => Err(bad()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        let cases = [
            ("linux/amd64", "linux/amd64"),
            ("x86_64", "linux/amd64"),
            ("linux/amd64/v1", "linux/amd64"),
            ("linux/amd64/v3", "linux/amd64/v3"),
            ("aarch64", "linux/arm64"),
            ("linux/arm64/v8", "linux/arm64"),
            ("linux/arm", "linux/arm/v7"),
            ("linux/armel", "linux/arm/v6"),
            ("macos/arm64", "darwin/arm64"),
            ("linux/ppc64le", "linux/ppc64le"),
        ];
        for (text, shown) in cases {
            assert_eq!(text.parse::<Platform>().unwrap().to_string(), shown, "{text}");
        }
        for text in ["", "/", "linux/", "linux/amd64/v1/x", "linux amd64", "linux/../amd64"] {
            assert!(text.parse::<Platform>().is_err(), "{text}");
        }
    }

    #[test]
    fn older_variants_run_newer_ones_do_not() {
        let distance =
            |have: &str, want: &str| have.parse::<Platform>().unwrap().distance(&want.parse::<Platform>().unwrap());
        assert_eq!(distance("linux/amd64", "linux/amd64"), Some(0));
        assert_eq!(distance("linux/amd64", "linux/amd64/v3"), Some(2));
        assert_eq!(distance("linux/amd64/v3", "linux/amd64"), None);
        assert_eq!(distance("linux/arm/v6", "linux/arm/v7"), Some(1));
        assert_eq!(distance("linux/arm64", "linux/amd64"), None);
        assert_eq!(distance("linux/386", "linux/amd64"), None);
        assert_eq!(distance("windows/amd64", "linux/amd64"), None);
    }

    #[test]
    fn the_nearest_is_selected() {
        let entry =
            |platform: &str| Descriptor::of("m", platform.as_bytes()).platform(platform.parse::<Platform>().unwrap());
        let list = [
            Descriptor::of("m", b"none"),
            entry("unknown/unknown"),
            entry("linux/amd64"),
            entry("linux/amd64/v2"),
            entry("linux/arm64"),
        ];
        let select = |text: &str| text.parse::<Platform>().unwrap().select(&list).map(|d| d.digest.clone());
        assert_eq!(select("linux/amd64/v3"), Some(Digest::of(b"linux/amd64/v2")));
        assert_eq!(select("linux/amd64"), Some(Digest::of(b"linux/amd64")));
        assert_eq!(select("linux/s390x"), None);
    }

    use super::super::digest::Digest;

    #[test]
    fn json_keeps_the_dotted_names() {
        let text = r#"{"architecture":"amd64","os":"windows","os.version":"10.0","os.features":["win32k"]}"#;
        let platform: Platform = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&platform).unwrap(), text);
    }
}
