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

pub(crate) use node::{Kind, Node, Pair, Scalar, Style};
pub(crate) use text::{decode_text, short};

use crate::diag::{Diagnostics, FileId};

/// Largest source text, in bytes. Far above any cluster document and below what would make a run slow.
pub(crate) const MAX_BYTES: usize = 16 << 20;
/// Deepest nesting of sequences and mappings.
pub(crate) const MAX_DEPTH: usize = 64;
/// Most nodes of one text, aliases expanded.
pub(crate) const MAX_NODES: usize = 1_000_000;
/// Most that all aliases of one text together may add: nodes, with long texts counted once more for each 64 bytes.
pub(crate) const MAX_ALIAS_WEIGHT: usize = 200_000;

/// Reads all documents of a text. A document with a syntax error is left out and reading goes on with the next `---` line;
/// empty documents are left out silently.
pub(crate) fn parse(file: FileId, text: &str, diagnostics: &mut Diagnostics) -> Vec<Node> {
    build::Reader::new(file, text, diagnostics).documents()
}
