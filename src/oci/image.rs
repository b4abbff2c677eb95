//! The configuration of an image (image specification, `config.md`): what view images need to write and checks need to read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::descriptor::null_is_default;
use super::digest::Digest;
use super::document::{check_size, from_slice};
use super::error::Error;
use super::platform::Platform;

/// An image's configuration document. Fields that are not listed are skipped when it is read; the bytes that came are what
/// is passed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageConfig {
    /// When it was made (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// Who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// What it runs on.
    #[serde(flatten)]
    pub platform: Platform,
    /// How containers of it run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<ContainerConfig>,
    /// Its layers, uncompressed.
    pub rootfs: RootFs,
    /// How it was made.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub history: Vec<History>,
}

/// How containers of an image run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ContainerConfig {
    /// User and group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// `KEY=value`.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub env: Vec<String>,
    /// The program.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub entrypoint: Vec<String>,
    /// The program's arguments, or the program when there is no entrypoint.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "null_is_default")]
    pub cmd: Vec<String>,
    /// Where it starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "null_is_default")]
    pub labels: BTreeMap<String, String>,
}

/// The layers of an image by the digests of their uncompressed bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootFs {
    /// Always `layers`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Digests of the tar streams, lowest layer first.
    #[serde(default, deserialize_with = "null_is_default")]
    pub diff_ids: Vec<Digest>,
}

impl RootFs {
    /// Of these layers.
    #[must_use]
    pub fn new(diff_ids: Vec<Digest>) -> Self {
        Self { kind: "layers".to_owned(), diff_ids }
    }
}

/// One step of how an image was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct History {
    /// When (RFC 3339).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// By which command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// A remark.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// The step made no layer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub empty_layer: bool,
}

impl ImageConfig {
    /// For a platform, with layers.
    #[must_use]
    pub fn new(platform: Platform, diff_ids: Vec<Digest>) -> Self {
        Self { created: None, author: None, platform, config: None, rootfs: RootFs::new(diff_ids), history: Vec::new() }
    }

    /// Reads a configuration.
    ///
    /// # Errors
    /// When it is larger than any configuration or not one.
    pub fn parse(place: &str, bytes: &[u8]) -> Result<Self, Error> {
        check_size(place, bytes.len() as u64)?;
        from_slice(place, bytes)
    }

    /// The labels, if there are any.
    #[must_use]
    pub fn label(&self, key: &str) -> Option<&str> {
        self.config.as_ref()?.labels.get(key).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::super::document::to_vec;
    use super::*;

    #[test]
    fn written_and_read() {
        let mut made = ImageConfig::new(Platform::linux("arm64"), vec![Digest::of(b"tar")]);
        let labels = [("b".to_owned(), "2".to_owned()), ("a".to_owned(), "1".to_owned())].into();
        made.config = Some(ContainerConfig { labels, entrypoint: vec!["/x".to_owned()], ..Default::default() });
        made.history = vec![History { created_by: Some("flux-gen".to_owned()), ..History::default() }];
        let bytes = to_vec(&made).unwrap();
        assert_eq!(ImageConfig::parse("x", &bytes).unwrap(), made);
        let text = String::from_utf8(bytes.clone()).unwrap();
        assert!(text.starts_with(r#"{"architecture":"arm64","os":"linux","config":{"Entrypoint":["/x"]"#), "{text}");
        assert!(text.contains(r#""Labels":{"a":"1","b":"2"}"#), "{text}");
        let other = oci_spec::image::ImageConfiguration::from_reader(bytes.as_slice()).unwrap();
        assert_eq!(other.rootfs().diff_ids(), &[Digest::of(b"tar").to_string()]);
    }

    #[test]
    fn what_docker_writes_is_read() {
        let text = r#"{"architecture":"amd64","os":"linux","config":{"Env":null,"Cmd":["sh"],"Labels":null,"Hostname":""},
            "rootfs":{"type":"layers","diff_ids":null},"history":null,"docker_version":"20"}"#;
        let read = ImageConfig::parse("x", text.as_bytes()).unwrap();
        assert_eq!(read.config.unwrap().cmd, ["sh"]);
        assert!(ImageConfig::parse("x", b"{}").is_err());
    }
}
