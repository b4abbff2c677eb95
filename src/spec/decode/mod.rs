//! Trees to records: every problem of a document in one run.
//!
//! After a problem the nearest sensible value is kept, so that later stages do not report the consequences of it; an error
//! has been reported by then, so nothing is built from such a value.

mod found;
mod older;
mod path;
mod scalars;
mod unknown;

#[cfg(test)]
mod tests;

pub(crate) use found::{head, short};
use path::Path;
pub(crate) use scalars::whole;
pub(crate) use unknown::nearest;

use super::record::{Field, Mark, Record, Shape};
use super::value::{Entry, Ignored, Map, Spanned};
use super::yaml::{Kind, Node, Pair};
use crate::diag::codes::syntax;
use crate::diag::{Code, Diagnostic, Diagnostics, Span};
use found::{found, shown};

/// A value that can be read from a tree.
pub(crate) trait FromNode: Sized {
    /// Reads it; `None` when there is nothing to go on with, which has then been reported.
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self>;
    /// What it may be.
    fn shape() -> Shape;
}

/// Where decoding is and what it has found.
#[derive(Debug)]
pub(crate) struct Decoder<'d> {
    diagnostics: &'d mut Diagnostics,
    path: Path,
    allow_unknown: bool,
    /// How many fields with secret values are around the current one.
    secret: usize,
    /// Places of secret values.
    secrets: &'d mut Vec<Span>,
    /// All field paths of this kind of document, to find where a misplaced name belongs.
    fields: fn() -> Vec<String>,
}

impl<'d> Decoder<'d> {
    /// A decoder for one document; `fields` gives all field paths of this kind of document.
    pub(crate) fn new(
        allow_unknown: bool,
        fields: fn() -> Vec<String>,
        diagnostics: &'d mut Diagnostics,
        secrets: &'d mut Vec<Span>,
    ) -> Self {
        Self { diagnostics, path: Path::default(), allow_unknown, secret: 0, secrets, fields }
    }

    /// The pairs of a record; reports what is no mapping and the required fields that are not there.
    pub(crate) fn record<'n>(&mut self, node: &'n Node, record: &'static Record) -> Option<&'n [Pair]> {
        let Some(pairs) = node.pairs() else {
            self.wrong_type(node, "a mapping", None);
            return None;
        };
        for field in record.fields.iter().filter(|field| field.is(Mark::Required)) {
            if node.get(field.name).is_none_or(Node::is_null) {
                self.missing(node.span, field.name, &field.description());
            }
        }
        Some(pairs)
    }

    /// The value of a known field. Null is the same as absent, as for an API server.
    pub(crate) fn field<T: FromNode>(&mut self, pair: &Pair, record: &'static Record) -> Option<Spanned<T>> {
        if pair.value.is_null() {
            return None;
        }
        let secret = record.field(&pair.key.text).is_some_and(|field: &Field| field.is(Mark::Secret));
        if secret {
            self.secrets.push(pair.value.span);
        }
        self.secret += usize::from(secret);
        let value = self.at_key(&pair.key.text, |decoder| T::from_node(&pair.value, decoder));
        self.secret -= usize::from(secret);
        value.map(|value| Spanned::new(value, pair.value.span))
    }

    /// Runs `f` with the path of a key.
    pub(crate) fn at_key<T>(&mut self, key: &str, f: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push_key(key);
        let value = f(self);
        self.path.pop();
        value
    }

    /// Runs `f` with the path of a list item.
    pub(crate) fn at_index<T>(&mut self, index: usize, f: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push_index(index);
        let value = f(self);
        self.path.pop();
        value
    }

    /// Reports a required field that is not there.
    pub(crate) fn missing(&mut self, span: Span, name: &str, description: &str) {
        let message = format!("{} is required", self.path.child(name));
        // The first line of a record is where it starts; all of it would be too much to underline.
        let start = Span { end: span.start, ..span };
        self.report(syntax::REQUIRED, start, message, Some(format!("add `{name}:`. {description}")));
    }

    /// Reports a value of the wrong kind. `wanted` follows "takes"; `help` says what to write.
    pub(crate) fn wrong_type(&mut self, node: &Node, wanted: &str, help: Option<String>) {
        let what = if self.secret > 0 { found(node).to_owned() } else { shown(node) };
        let message = format!("{} takes {wanted}, not {what}", self.path);
        self.report(syntax::WRONG_TYPE, head(node), message, help);
    }

    /// Reports an error here.
    pub(crate) fn report(&mut self, code: Code, span: Span, message: String, help: Option<String>) {
        let diagnostic = Diagnostic::error(code, span, message);
        self.diagnostics.push(match help {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        });
    }

    /// Reports a list item or an entry of a free mapping that is empty.
    pub(crate) fn empty_value(&mut self, span: Span, what: &str) {
        let message = format!("{} is empty", self.path);
        let help = format!("write a value (`\"\"` for an empty text), or take the {what} out");
        self.report(syntax::EMPTY_VALUE, span, message, Some(help));
    }
}

impl<T: FromNode> FromNode for Vec<Spanned<T>> {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        let items = match &node.kind {
            Kind::Sequence(items) => items.as_slice(),
            // A single value where a list belongs: read it too, for its own problems.
            _ => {
                decoder.wrong_type(node, "a list", Some("start each item with `- `".to_owned()));
                if !matches!(T::shape(), Shape::Record(_)) {
                    return None;
                }
                std::slice::from_ref(node)
            }
        };
        let mut list = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            decoder.path.push_index(index);
            if item.is_null() {
                decoder.empty_value(item.span, "item");
            } else if let Some(value) = T::from_node(item, decoder) {
                list.push(Spanned::new(value, item.span));
            }
            decoder.path.pop();
        }
        Some(list)
    }

    fn shape() -> Shape {
        Shape::List(T::shape)
    }
}

impl<T: FromNode> FromNode for Map<T> {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        let Some(pairs) = node.pairs() else {
            decoder.wrong_type(
                node,
                "a mapping",
                Some("write `name: value` for each, without `- ` before it".to_owned()),
            );
            return None;
        };
        let mut entries = Vec::with_capacity(pairs.len());
        for pair in pairs {
            decoder.path.push_key(&pair.key.text);
            if pair.value.is_null() {
                decoder.empty_value(pair.key_span, "entry");
            } else if let Some(value) = T::from_node(&pair.value, decoder) {
                let key = Spanned::new(pair.key.text.clone(), pair.key_span);
                entries.push(Entry { key, value: Spanned::new(value, pair.value.span) });
            }
            decoder.path.pop();
        }
        Some(Map(entries))
    }

    fn shape() -> Shape {
        Shape::Map(T::shape)
    }
}

impl FromNode for Ignored {
    fn from_node(_: &Node, _: &mut Decoder<'_>) -> Option<Self> {
        Some(Self)
    }

    fn shape() -> Shape {
        Shape::Ignored
    }
}
