//! `bundle.json`: which files of a folder are ours, with the digests they were written with.
//!
//! JSON and not YAML, because Flux CD takes stray YAML files for objects. It holds no time, no version and nothing secret.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::SourceRef;

/// Name of the index in every folder that flux-gen owns files in.
pub const INDEX_FILE: &str = "bundle.json";

/// `kind` of an index.
const KIND: &str = "BundleIndex";
/// `apiVersion` of an index.
const API_VERSION: &str = "flux-gen.dev/v1";

/// The content of a `bundle.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Index {
    api_version: String,
    kind: String,
    /// The MiniCluster's namespace, when its objects carry one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The MiniCluster's name; absent for folders of companions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The file of the MiniCluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<SourceRef>,
    /// Public half of the certificate in Z85.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub public_key: Option<String>,
    /// In folders of companions: the source of each file.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, SourceRef>,
    /// SHA-256 of each file of the folder except the index itself.
    pub files: BTreeMap<String, String>,
}

/// Why a file is not a usable index.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// Not JSON of this shape.
    #[error("it is not a flux-gen index: {0}")]
    Shape(String),
    /// JSON of this shape, but of something else or of a later flux-gen.
    #[error("it says apiVersion {api_version:?} and kind {kind:?}, not {API_VERSION:?} and {KIND:?}")]
    Kind {
        /// As found.
        api_version: String,
        /// As found.
        kind: String,
    },
    /// A file name that would lead out of the folder.
    #[error("it lists {0:?}, which is not the name of a file in this folder")]
    Name(String),
}

impl Index {
    /// An index that lists nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            namespace: None,
            name: None,
            source: None,
            public_key: None,
            sources: BTreeMap::new(),
            files: BTreeMap::new(),
        }
    }

    /// The bytes of the file.
    ///
    /// # Errors
    /// Never for an index of this module; serde's signature asks for it.
    pub fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Reads an index and makes sure that each name in it is a plain file name.
    ///
    /// # Errors
    /// When the bytes are not an index of flux-gen.
    pub fn parse(bytes: &[u8]) -> Result<Self, IndexError> {
        let index: Self = serde_json::from_slice(bytes).map_err(|e| IndexError::Shape(e.to_string()))?;
        if index.api_version != API_VERSION || index.kind != KIND {
            return Err(IndexError::Kind { api_version: index.api_version, kind: index.kind });
        }
        match index.files.keys().chain(index.sources.keys()).find(|name| !super::names::is_plain_file_name(name)) {
            Some(name) => Err(IndexError::Name(name.clone())),
            None => Ok(index),
        }
    }

    /// Where the content of `file` came from.
    #[must_use]
    pub fn source_of(&self, file: &str) -> Option<&SourceRef> {
        self.sources.get(file).or(self.source.as_ref())
    }
}

impl Default for Index {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_refusals() {
        let mut index = Index::new();
        index.name = Some("lammps".to_owned());
        index.files.insert("job.yaml".to_owned(), "00".to_owned());
        let bytes = index.to_bytes().unwrap();
        assert_eq!(Index::parse(&bytes).unwrap(), index);
        let text = String::from_utf8(bytes).unwrap();
        for (from, to) in [("job.yaml", "../x"), ("job.yaml", ".."), ("job.yaml", ""), ("/v1", "/v2"), ("lammps", "\"")]
        {
            assert!(Index::parse(text.replace(from, to).as_bytes()).is_err(), "{from} -> {to}");
        }
        assert!(Index::parse(b"").is_err());
    }
}
