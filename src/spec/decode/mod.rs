//! Trees to records: every problem of a document in one run.
//!
//! After a problem the nearest sensible value is kept, so that later stages do not report the consequences of it; an error
//! has been reported by then, so nothing is built from such a value.

mod found;
mod older;
mod path;
mod scalars;
mod unknown;

pub(crate) use found::head;
pub(crate) use older::PLACES as OLDER_PLACES;
use path::Path;
pub(crate) use scalars::whole;
pub(crate) use unknown::nearest;

use std::cell::LazyCell;

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
    /// The key of the field that is being read; `None` in list items and documents.
    key: Option<Span>,
    /// How many fields with secret values are around the current one.
    secret: usize,
    /// Places of secret values.
    secrets: &'d mut Vec<Span>,
    /// All field paths of this kind of document, made when first needed: to find where a misplaced name belongs.
    fields: LazyCell<Vec<String>>,
}

impl<'d> Decoder<'d> {
    /// A decoder for one document; `fields` gives all field paths of this kind of document.
    pub(crate) fn new(
        allow_unknown: bool,
        fields: fn() -> Vec<String>,
        diagnostics: &'d mut Diagnostics,
        secrets: &'d mut Vec<Span>,
    ) -> Self {
        Self {
            diagnostics,
            path: Path::default(),
            allow_unknown,
            key: None,
            secret: 0,
            secrets,
            fields: LazyCell::new(fields),
        }
    }

    /// The pairs of a record; reports what is no mapping and the required fields that are not there.
    pub(crate) fn record<'n>(&mut self, node: &'n Node, record: &'static Record) -> Option<&'n [Pair]> {
        let Some(pairs) = node.pairs() else {
            self.wrong_type(node, "a mapping", None);
            return None;
        };
        let place = self.key.unwrap_or_else(|| head(node));
        for field in record.fields.iter().filter(|field| field.is(Mark::Required)) {
            if node.get(field.name).is_none_or(Node::is_null) {
                let message = format!("{} is required", self.path.child(field.name));
                let help = format!("add `{}:`. {}", field.name, field.description());
                self.report(syntax::REQUIRED, place, message, Some(help));
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
        self.key = Some(pair.key_span);
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
        self.key = None;
        let value = f(self);
        self.path.pop();
        value
    }

    /// Treats all values as secret from here on.
    pub(crate) fn hide_values(&mut self) {
        self.secret += 1;
    }

    /// The path of the value that is being read.
    pub(crate) fn path(&self) -> String {
        self.path.to_string()
    }

    /// Reports a value of the wrong kind. `wanted` follows "takes"; `help` says what to write.
    pub(crate) fn wrong_type(&mut self, node: &Node, wanted: &str, help: Option<String>) {
        let what = if self.secret > 0 { found(node).to_owned() } else { shown(node) };
        let message = format!("{} takes {wanted}, not {what}", self.path.name());
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
                if node.pairs().is_none() || !matches!(T::shape(), Shape::Record(_)) {
                    return None;
                }
                std::slice::from_ref(node)
            }
        };
        let mut list = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            decoder.at_index(index, |decoder| {
                if item.is_null() {
                    decoder.empty_value(item.span, "item");
                } else if let Some(value) = T::from_node(item, decoder) {
                    list.push(Spanned::new(value, item.span));
                }
            });
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
            decoder.at_key(&pair.key.text, |decoder| {
                decoder.key = Some(pair.key_span);
                if pair.value.is_null() {
                    decoder.empty_value(pair.key_span, "entry");
                } else if let Some(value) = T::from_node(&pair.value, decoder) {
                    let key = Spanned::new(pair.key.text.clone(), pair.key_span);
                    entries.push(Entry { key, value: Spanned::new(value, pair.value.span) });
                }
            });
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
