//! What the user wrote, with the place of every value. Nothing is filled in here.

pub(crate) mod decode;
mod documents;
pub mod explain;
mod json;
pub mod minicluster;
mod names;
mod objects;
pub mod pins;
pub mod project;
pub mod recipe;
pub mod recipe_build;
pub mod recipe_common;
pub mod recipe_source;
pub mod recipe_spack;
pub mod record;
pub mod schema;
mod single;
mod value;
pub mod view;
pub(crate) mod yaml;

pub use documents::{ReadOptions, read};
pub use objects::{Objects, read_objects};
pub use project::Project;
pub use recipe::Recipe;
pub use recipe_build::BuildRecipe;
pub use value::{Entry, Ignored, IntOrString, Map, Spanned};
pub use view::View;
pub use yaml::Alias;

use crate::diag::{Diagnostics, Span};

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

impl Companion {
    /// The place of the part that a JSON pointer names, or of the nearest part around it whose place is known.
    #[must_use]
    pub fn place(&self, pointer: &str) -> Span {
        let mut pointer = pointer;
        loop {
            if let Some(span) = self.places.get(pointer) {
                return *span;
            }
            match pointer.rfind('/') {
                Some(at) => pointer = &pointer[..at],
                None => return self.span,
            }
        }
    }
}

/// Everything that a set of source texts holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Documents {
    /// MiniClusters in the order of files and documents.
    pub miniclusters: Vec<MiniCluster>,
    /// All other Kubernetes documents in the same order.
    pub companions: Vec<Companion>,
    /// Which images stand for `view:<name>`; filled in by whoever knows the project's folder.
    pub views: pins::ViewPins,
    /// Digests of images.
    pub images: pins::ImagePins,
    /// What images have and views need.
    pub facts: pins::LockedFacts,
    /// Places of secret values (a certificate, the data of a Secret): excerpts of the text must not show them.
    pub secrets: Vec<Span>,
    /// Aliases, which are the places of the values that they stand for.
    pub aliases: Vec<Alias>,
}

impl Documents {
    /// Adds to every diagnostic about an alias where the value is written.
    pub fn point_at_anchors(&self, diagnostics: &mut Diagnostics) {
        yaml::point_at_anchors(&self.aliases, diagnostics);
    }
}
