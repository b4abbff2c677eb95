//! Keys of mappings: usable ones, unique ones, merge keys.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::scalar::{self, Reading};
use super::{Kind, Node, Pair, Scalar, Style, short};
use crate::diag::codes::syntax;
use crate::diag::{Diagnostic, Diagnostics, Span};

/// A node as key. `None`, with a diagnostic, when Kubernetes could not use it or would read it as another text.
pub(super) fn key(node: Node, diagnostics: &mut Diagnostics) -> Option<(Scalar, Span)> {
    let span = node.span;
    let Kind::Scalar(scalar) = node.kind else {
        let message = "a list or a mapping stands where a key should be";
        let help = "keys of Kubernetes documents are text; put quotes around a key that has `[`, `{` or `?` at its \
                    start, and render a template (`{{ name }}`) before it is read";
        diagnostics.push(Diagnostic::error(syntax::BAD_KEY, span, message).help(help));
        return None;
    };
    let text = &scalar.text;
    match scalar::read(&scalar) {
        Reading::Text => Some((scalar, span)),
        Reading::Int(n) if n.to_string() == *text => Some((scalar, span)),
        Reading::Bool(value) if value.to_string() == *text => Some((scalar, span)),
        Reading::Float(x) if x.to_string() == *text => Some((scalar, span)),
        Reading::Null => {
            let message = "the key is empty";
            diagnostics.push(Diagnostic::error(syntax::BAD_KEY, span, message).help("write the key before the `:`"));
            None
        }
        Reading::Ambiguous(ambiguity) => {
            let message = format!("the key `{}` without quotes is {}", short(text), ambiguity.describe());
            let help = format!("write {text:?}");
            diagnostics.push(Diagnostic::error(syntax::AMBIGUOUS_WORD, span, message).help(help));
            Some((scalar, span))
        }
        Reading::Bool(_) | Reading::Int(_) | Reading::Float(_) => {
            let message = format!("the key `{}` without quotes is read as another text by Kubernetes", short(text));
            let help = format!("write {text:?}");
            diagnostics.push(Diagnostic::error(syntax::AMBIGUOUS_WORD, span, message).help(help));
            Some((scalar, span))
        }
    }
}

/// The pairs of a complete mapping: of keys written twice the first, reported; merge keys replaced by what they bring.
pub(super) fn finish(pairs: Vec<Pair>, diagnostics: &mut Diagnostics) -> Vec<Pair> {
    let mut seen: BTreeMap<&str, Span> = BTreeMap::new();
    let mut twice = Vec::new();
    for (index, pair) in pairs.iter().enumerate() {
        match seen.entry(&pair.key.text) {
            Entry::Vacant(entry) => {
                entry.insert(pair.key_span);
            }
            Entry::Occupied(first) => {
                let message = format!("the key `{}` is written twice", short(&pair.key.text));
                let help = "readers refuse the document or take the last value silently; keep one of them";
                let diagnostic = Diagnostic::error(syntax::DUPLICATE_KEY, pair.key_span, message);
                diagnostics.push(diagnostic.help(help).related(*first.get(), "first written here"));
                twice.push(index);
            }
        }
    }
    let mut pairs = pairs;
    if !twice.is_empty() {
        let mut index = 0..;
        pairs.retain(|_| index.next().is_none_or(|index| twice.binary_search(&index).is_err()));
    }
    if pairs.iter().any(|pair| is_merge(&pair.key)) { merge(pairs, diagnostics) } else { pairs }
}

fn is_merge(key: &Scalar) -> bool {
    key.style == Style::Plain && key.text == "<<"
}

/// Replaces `<<` by the pairs it brings (yaml.org/type/merge.html): written keys win, of several mappings the first.
fn merge(pairs: Vec<Pair>, diagnostics: &mut Diagnostics) -> Vec<Pair> {
    let mut taken: std::collections::BTreeSet<String> =
        pairs.iter().filter(|pair| !is_merge(&pair.key)).map(|pair| pair.key.text.clone()).collect();
    let mut merged = Vec::with_capacity(pairs.len());
    for pair in pairs {
        if !is_merge(&pair.key) {
            merged.push(pair);
            continue;
        }
        let sources = match pair.value.kind {
            Kind::Sequence(items) => items,
            _ => vec![pair.value],
        };
        for source in sources {
            let Kind::Mapping(brought) = source.kind else {
                let message = "`<<` merges mappings, and this is none";
                let help = "write `<<: *anchor` with the anchor of a mapping, or quote the key \"<<\"";
                diagnostics.push(Diagnostic::error(syntax::BAD_KEY, source.span, message).help(help));
                continue;
            };
            merged.extend(brought.into_iter().filter(|pair| taken.insert(pair.key.text.clone())));
        }
    }
    merged
}
