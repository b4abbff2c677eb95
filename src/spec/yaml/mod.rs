//! YAML text to spanned trees: encoding, limits, anchors, merge keys and duplicate keys; no meaning yet.
//!
//! The grammar is that of YAML 1.2 as `saphyr-parser` reads it. What a bare word *means* is decided later, in [`scalar`],
//! because YAML 1.1 readers (kubectl, Argo CD, Flux CD) and YAML 1.2 readers disagree about it.

mod build;
mod mapping;
mod node;
mod positions;
pub(crate) mod scalar;
mod text;

#[cfg(test)]
mod tests;

pub use node::Alias;
pub(crate) use node::{Kind, Node, Pair, Scalar, Style};
pub(crate) use text::{decode_text, short};

use std::collections::{BTreeMap, BTreeSet};

use crate::diag::{Diagnostics, FileId, Span};

/// Largest source text, in bytes. Far above any cluster document and below what would make a run slow.
pub(crate) const MAX_BYTES: usize = 16 << 20;
/// Deepest nesting of sequences and mappings.
pub(crate) const MAX_DEPTH: usize = 64;
/// Most nodes of one text, aliases expanded.
pub(crate) const MAX_NODES: usize = 1_000_000;
/// Most that all aliases of one text together may add: nodes, with long texts counted once more for each 64 bytes.
pub(crate) const MAX_ALIAS_WEIGHT: usize = 200_000;

/// Reads all documents of a text. A document with a syntax error is left out and reading goes on with the next `---` line;
/// empty documents are left out silently. With them come the aliases of all documents.
pub(crate) fn parse(file: FileId, text: &str, diagnostics: &mut Diagnostics) -> (Vec<Node>, Vec<Alias>) {
    build::Reader::new(file, text, diagnostics).documents()
}

/// Adds to the places of secret values where those are written that came through an alias.
pub(crate) fn hide_written(aliases: &[Alias], secrets: &mut Vec<Span>) {
    let secret: BTreeSet<Span> = secrets.iter().copied().collect();
    secrets.extend(aliases.iter().filter(|alias| secret.contains(&alias.used)).map(|alias| alias.written));
}

/// Adds to every diagnostic about an alias where the value is written.
pub(crate) fn point_at_anchors(aliases: &[Alias], diagnostics: &mut Diagnostics) {
    let written: BTreeMap<Span, Span> = aliases.iter().map(|alias| (alias.used, alias.written)).collect();
    if !written.is_empty() {
        diagnostics.relate("the value that the alias stands for is written here", |span| written.get(&span).copied());
    }
}
