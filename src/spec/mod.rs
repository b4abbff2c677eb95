//! What the user wrote, with the place of every value. Nothing is filled in here.

pub(crate) mod decode;
mod documents;
pub mod explain;
mod json;
pub mod minicluster;
mod names;
pub mod project;
pub mod record;
pub mod schema;
mod value;
pub(crate) mod yaml;

pub use documents::{ReadOptions, read};
pub use project::Project;
pub use value::{Entry, Ignored, IntOrString, Map, Spanned};

use crate::diag::Span;

/// One MiniCluster document as written.
#[derive(Debug, Clone, PartialEq)]
pub struct MiniCluster {
    /// The whole document.
    pub span: Span,
    /// `apiVersion`.
    pub api_version: Spanned<String>,
    /// `metadata`.
    pub metadata: minicluster::Metadata,
    /// `spec`, with its place.
    pub spec: Spanned<minicluster::MiniClusterSpec>,
}

/// A Kubernetes document that stands beside MiniClusters and is passed through.
#[derive(Debug, Clone, PartialEq)]
pub struct Companion {
    /// The whole document.
    pub span: Span,
    /// Its value as plain JSON; keys in the order of the text.
    pub value: serde_json::Value,
    /// Places of the parts that rules look at, by JSON pointer (`/spec/selector/job-index`): of each pair its key, of each
    /// scalar in a list the scalar.
    pub places: std::collections::BTreeMap<String, Span>,
}

/// Everything that a set of source texts holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Documents {
    /// MiniClusters in the order of files and documents.
    pub miniclusters: Vec<MiniCluster>,
    /// All other Kubernetes documents in the same order.
    pub companions: Vec<Companion>,
    /// Places of secret values (a certificate, the data of a Secret): excerpts of the text must not show them.
    pub secrets: Vec<Span>,
}
