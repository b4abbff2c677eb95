//! Descriptors: media type, digest and size of some content (image specification, `descriptor.md`).
//!
//! These types are our own because the maps of the crate oci-spec are hash maps: what is written from them differs from run
//! to run.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::digest::Digest;
use super::media::Kind;
use super::platform::Platform;

/// Annotations, in the order of their keys.
pub type Annotations = BTreeMap<String, String>;

/// The annotation with a tag or name of an image in `index.json`.
pub const REF_NAME: &str = "org.opencontainers.image.ref.name";
/// The annotation with the full name of an image, as containerd and Docker write it.
pub const CONTAINERD_NAME: &str = "io.containerd.image.name";

/// Points to content.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Media type of the content.
    #[serde(default)]
    pub media_type: String,
    /// Digest of the content.
    pub digest: Digest,
    /// Size of the content in bytes.
    pub size: u64,
    /// Where else the content is.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub urls: Vec<String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub annotations: Annotations,
    /// The content itself in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// Platform of an image in an index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// Kind of an artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
}

impl Descriptor {
    /// Of content that is known only by its digest and size.
    #[must_use]
    pub fn new(media_type: impl Into<String>, digest: Digest, size: u64) -> Self {
        Self {
            media_type: media_type.into(),
            digest,
            size,
            urls: Vec::new(),
            annotations: Annotations::new(),
            data: None,
            platform: None,
            artifact_type: None,
        }
    }

    /// Of these bytes (SHA-256).
    #[must_use]
    pub fn of(media_type: impl Into<String>, bytes: &[u8]) -> Self {
        Self::new(media_type, Digest::of(bytes), bytes.len() as u64)
    }

    /// With a platform.
    #[must_use]
    pub fn platform(mut self, platform: Platform) -> Self {
        self.platform = Some(platform);
        self
    }

    /// With an annotation.
    #[must_use]
    pub fn annotation(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.annotations.insert(key.into(), value.into());
        self
    }

    /// What it points to.
    #[must_use]
    pub fn kind(&self) -> Kind {
        Kind::of(&self.media_type)
    }

    /// The tag or name in `index.json`, if it has one.
    #[must_use]
    pub fn ref_name(&self) -> Option<&str> {
        self.annotations.get(REF_NAME).map(String::as_str)
    }
}

/// Go programs write `null` for empty lists and maps.
pub(super) fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_absent_is_not_written() {
        let made = Descriptor::of("a/b", b"x");
        let text = serde_json::to_string(&made).unwrap();
        let digest = Digest::of(b"x");
        assert_eq!(text, format!(r#"{{"mediaType":"a/b","digest":"{digest}","size":1}}"#));
        assert_eq!(serde_json::from_str::<Descriptor>(&text).unwrap(), made);
    }

    #[test]
    fn null_and_unknown_fields_are_fine_and_negative_sizes_are_not() {
        let digest = Digest::of(b"x");
        let text =
            format!(r#"{{"mediaType":"a/b","digest":"{digest}","size":1,"urls":null,"annotations":null,"new":1}}"#);
        assert_eq!(serde_json::from_str::<Descriptor>(&text).unwrap(), Descriptor::of("a/b", b"x"));
        let text = format!(r#"{{"mediaType":"a/b","digest":"{digest}","size":-1}}"#);
        assert!(serde_json::from_str::<Descriptor>(&text).is_err());
    }
}
