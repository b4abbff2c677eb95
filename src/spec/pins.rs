//! What names of images stand for: views of the project by what `view push` recorded in `views/<name>/pushed.json`, other
//! images by what `lock` wrote down in `images.lock`.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A version of glibc: `2.34`, `2.2.5`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Glibc(pub u32, pub u32, pub u32);

impl fmt::Display for Glibc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0, self.1)?;
        if self.2 > 0 { write!(f, ".{}", self.2) } else { Ok(()) }
    }
}

impl FromStr for Glibc {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no version of glibc");
        let numbers: Vec<u32> = text.split('.').map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
        match numbers.as_slice() {
            [major, minor] => Ok(Self(*major, *minor, 0)),
            [major, minor, patch] => Ok(Self(*major, *minor, *patch)),
            _ => Err(wrong()),
        }
    }
}

impl From<Glibc> for String {
    fn from(version: Glibc) -> Self {
        version.to_string()
    }
}

impl TryFrom<String> for Glibc {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// What a view needs, for one platform.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ViewFacts {
    /// Architecture in OCI words: `amd64`.
    pub architecture: String,
    /// The oldest glibc it runs with; none when nothing in it needs glibc.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub glibc: Option<Glibc>,
    /// Operating system that it was made on: `rocky-9`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os: Option<String>,
    /// Version of Flux.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flux: Option<String>,
}

/// What an application's image has, for one platform.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageFacts {
    /// Architecture in OCI words: `amd64`.
    pub architecture: String,
    /// Operating system: `rocky-9`, from `ID` and `VERSION_ID` of os-release(5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub os: Option<String>,
    /// Its glibc; none for musl and for images without a C library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub glibc: Option<Glibc>,
    /// Whether it has a bash, which runs the entrypoint of a bundle.
    pub bash: bool,
}

/// What is known of the image of one platform.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownFacts {
    /// What it has, when it is an application's.
    pub image: Option<ImageFacts>,
    /// What it needs, when it is a view.
    pub view: Option<ViewFacts>,
}

/// What `images.lock` knows of images: by the name that objects have, then by platform.
pub type LockedFacts = BTreeMap<String, BTreeMap<String, KnownFacts>>;

/// Names of images as written, and what they are pinned to: the same repository by digest.
pub type ImagePins = BTreeMap<String, String>;

/// Whether the name of an image says itself which bytes it means.
#[must_use]
pub fn is_pinned(image: &str) -> bool {
    image.contains('@')
}

/// The pins of a project, by name of the view. A view without a pin is there with `None`.
pub type ViewPins = BTreeMap<String, Option<ViewPin>>;

/// A pushed view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ViewPin {
    /// Repository: `ghcr.io/me/flux-view-rocky`.
    pub repository: String,
    /// Digest of the index.
    pub digest: String,
    /// Tags that were moved to it or to its images.
    #[serde(default)]
    pub tags: Vec<String>,
    /// The images in it by platform.
    pub platforms: BTreeMap<String, PlatformPin>,
}

/// The image of one platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlatformPin {
    /// Digest of its manifest.
    pub digest: String,
    /// What it needs.
    pub facts: ViewFacts,
}

impl ViewPin {
    /// The reference that bundles use: the index, from which each node's runtime takes its platform.
    #[must_use]
    pub fn reference(&self) -> String {
        format!("{}@{}", self.repository, self.digest)
    }

    /// Whether there is an image for an architecture of Linux, whatever its variant.
    #[must_use]
    pub fn has_architecture(&self, architecture: &str) -> bool {
        self.platforms.keys().any(|platform| platform.split('/').nth(1) == Some(architecture))
    }
}

/// The name of the view that an image stands for: `view:<name>`.
#[must_use]
pub fn view_name(image: &str) -> Option<&str> {
    image.strip_prefix("view:")
}
