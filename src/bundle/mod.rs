//! From typed objects to files: one [`FileTree`] that is written, checked, compared or printed, and the certificate store.
//!
//! What enters: [`Bundle`]s (the objects of one cluster each) and [`Companion`]s (documents that are passed through).
//! What leaves: the tree, and reports as data. [`layout`](fn@layout::layout) and all below it are pure; files are touched
//! through [`files::Files`] only. Nothing here prints.

pub mod audit;
pub mod certificates;
pub mod check;
pub mod cipher;
pub mod companion;
pub mod files;
pub mod gitops;
pub mod index;
pub mod kustomization;
pub mod layout;
pub mod names;
pub mod record;
mod recover;
pub mod report;
pub mod sealed;
pub mod secret;
pub mod sops;
pub mod store;
pub mod survey;
pub mod tree;
pub mod write;
pub mod yaml;

use serde::{Deserialize, Serialize};

use crate::diag::Span;
use crate::model::hardening::PodSecurity;
use crate::object::Object;

pub use companion::Companion;
pub use secret::SecretForm;
pub use tree::FileTree;

/// Where a bundle came from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SourceRef {
    /// The file, relative to the project, with `/`; `-` for the standard input.
    pub path: String,
    /// SHA-256 of the whole file, 64 lower-case hexadecimal digits.
    pub sha256: String,
}

/// Everything that the folder of one MiniCluster is made from.
#[derive(Debug)]
pub struct Bundle {
    /// `metadata.namespace` of all its objects; `None` when they carry none.
    pub namespace: Option<String>,
    /// The cluster's name: the folder's name.
    pub name: String,
    /// The objects, in any order. The certificate's Secret is not among them.
    pub objects: Vec<Object>,
    /// The file of the MiniCluster.
    pub source: SourceRef,
    /// Where the MiniCluster stands in it, for diagnostics.
    pub span: Option<Span>,
    /// Public half of the certificate in Z85, when there is one.
    pub public_key: Option<String>,
    /// What becomes of the private half.
    pub secret: SecretForm,
    /// Whether the Namespace object is part of the bundles (setting `create-namespace`).
    pub create_namespace: bool,
    /// Level of pod security that its pods keep.
    pub pod_security: PodSecurity,
}

impl Bundle {
    /// How diagnostics call it: `namespace/name`, or the name alone.
    #[must_use]
    pub fn title(&self) -> String {
        self.namespace.as_ref().map_or_else(|| self.name.clone(), |namespace| format!("{namespace}/{}", self.name))
    }
}

/// SHA-256 as 64 lower-case hexadecimal digits.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    hex(&Sha256::digest(bytes))
}

/// Lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])).collect()
}
