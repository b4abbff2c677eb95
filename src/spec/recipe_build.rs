//! Reading recipes that compile: `kind: source` and `kind: spack`.

use super::decode::{Decoder, FromNode};
use super::recipe_source::SourceRecipe;
use super::recipe_spack::SpackRecipe;
use super::yaml::{self, Kind, Node};
use super::{Spanned, explain};
use crate::diag::codes::recipe;
use crate::diag::{Diagnostic, Diagnostics, SourceMap};

/// A recipe that compiles, as written.
#[derive(Debug, Clone, PartialEq)]
pub enum BuildRecipe {
    /// Packages compiled from their sources.
    Source(Spanned<Box<SourceRecipe>>),
    /// An environment that Spack installs.
    Spack(Spanned<Box<SpackRecipe>>),
}

impl BuildRecipe {
    /// Reads a recipe file. `None` when it is no recipe of these kinds: then, unless the kind is another known one, it has
    /// been reported why.
    pub fn read(sources: &mut SourceMap, name: impl Into<String>, bytes: Vec<u8>) -> (Option<Self>, Diagnostics) {
        let mut diagnostics = Diagnostics::new();
        let Some(file) = yaml::decode_text(sources, name.into(), bytes, &mut diagnostics) else {
            return (None, diagnostics);
        };
        let text = sources.get(file).map(|source| source.text.as_str()).unwrap_or_default();
        let (documents, aliases) = yaml::parse(file, text, &mut diagnostics);
        let read = match documents.as_slice() {
            [only] => Self::of(only, &mut diagnostics),
            [] => {
                let span = crate::diag::Span { file, start: 0, end: 0 };
                diagnostics.push(Diagnostic::error(
                    recipe::VALUE,
                    span,
                    "a recipe is one document, and this file is empty",
                ));
                None
            }
            [_, second, ..] => {
                let message = "a recipe is one document, and here a second one starts";
                diagnostics.push(Diagnostic::error(recipe::VALUE, super::decode::head(second), message));
                None
            }
        };
        yaml::point_at_anchors(&aliases, &mut diagnostics);
        (read, diagnostics)
    }

    /// The images to build in, as written.
    pub fn bases(&self) -> impl Iterator<Item = &Spanned<String>> {
        let systems = match self {
            Self::Source(recipe) => recipe.value.systems.as_ref(),
            Self::Spack(recipe) => recipe.value.systems.as_ref(),
        };
        systems.into_iter().flat_map(|map| map.iter()).filter_map(|entry| entry.value.value.base.as_ref())
    }

    /// Whether a recipe file is of one of these kinds, as far as that can be seen.
    #[must_use]
    pub fn is_one(bytes: &[u8]) -> bool {
        let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let Some(file) = yaml::decode_text(&mut sources, String::new(), bytes.to_vec(), &mut diagnostics) else {
            return false;
        };
        let text_of_file = sources.get(file).map(|source| source.text.as_str()).unwrap_or_default();
        let (documents, _) = yaml::parse(file, text_of_file, &mut diagnostics);
        let kind = documents.first().and_then(|node| node.get("kind")).and_then(text);
        matches!(kind, Some("source" | "spack"))
    }

    fn of(node: &Node, diagnostics: &mut Diagnostics) -> Option<Self> {
        let kind = node.get("kind").map(|kind| (text(kind), kind));
        let mut secrets = Vec::new();
        match kind {
            Some((Some("spack"), _)) => {
                let mut decoder =
                    Decoder::new(false, explain::paths_for(SpackRecipe::RECORD), diagnostics, &mut secrets);
                SpackRecipe::from_node(node, &mut decoder).map(|r| Self::Spack(Spanned::new(Box::new(r), node.span)))
            }
            // Kinds that make a tree without compiling are read elsewhere.
            Some((Some("tree" | "image"), _)) => None,
            Some((kind, at)) if kind != Some("source") => {
                let message = format!("`{}` is no kind of recipe", kind.unwrap_or("this"));
                let help = "it can be `tree`, `image`, `source` or `spack`";
                diagnostics.push(Diagnostic::error(recipe::VALUE, super::decode::head(at), message).help(help));
                None
            }
            _ => {
                let mut decoder =
                    Decoder::new(false, explain::paths_for(SourceRecipe::RECORD), diagnostics, &mut secrets);
                SourceRecipe::from_node(node, &mut decoder).map(|r| Self::Source(Spanned::new(Box::new(r), node.span)))
            }
        }
    }
}

fn text(node: &Node) -> Option<&str> {
    match &node.kind {
        Kind::Scalar(scalar) => Some(scalar.text.as_str()),
        Kind::Sequence(_) | Kind::Mapping(_) => None,
    }
}
