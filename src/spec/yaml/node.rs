//! The tree.

use crate::diag::Span;

/// A value and its place.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    /// Where it was written. Values that came through an alias have the place of the alias; [`Alias`] has the anchor's.
    pub(crate) span: Span,
    pub(crate) kind: Kind,
}

/// An alias and what it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alias {
    /// Where the alias is.
    pub used: Span,
    /// The value that has the anchor.
    pub written: Span,
}

/// What a node is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Kind {
    Scalar(Scalar),
    Sequence(Vec<Node>),
    /// Pairs in the order of the text; keys are unique.
    Mapping(Vec<Pair>),
}

/// One pair of a mapping.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pair {
    pub(crate) key: Scalar,
    pub(crate) key_span: Span,
    pub(crate) value: Node,
}

/// A scalar before anyone decides what it means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scalar {
    /// The text with quotes, escapes and indentation taken away.
    pub(crate) text: String,
    pub(crate) style: Style,
    pub(crate) tag: Tag,
}

/// How a scalar was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// Without quotes: the only style whose meaning depends on the text.
    Plain,
    /// In single or double quotes.
    Quoted,
    /// `|` or `>`.
    Block,
}

/// The tags that Kubernetes documents may have. Others are reported while reading and then treated as absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tag {
    /// No tag.
    None,
    /// `!!str` or `!`.
    Text,
    /// `!!null`, `!!bool`, `!!int`, `!!float`: the plain meaning of the text, whatever its style.
    Plain,
}

impl Node {
    /// Gives the node and all in it one place.
    pub(super) fn place_at(&mut self, span: Span) {
        self.span = span;
        match &mut self.kind {
            Kind::Scalar(_) => {}
            Kind::Sequence(items) => items.iter_mut().for_each(|item| item.place_at(span)),
            Kind::Mapping(pairs) => {
                for pair in pairs {
                    pair.key_span = span;
                    pair.value.place_at(span);
                }
            }
        }
    }

    /// The pairs, if it is a mapping.
    pub(crate) fn pairs(&self) -> Option<&[Pair]> {
        match &self.kind {
            Kind::Mapping(pairs) => Some(pairs),
            _ => None,
        }
    }

    /// The value of a key, if it is a mapping with that key.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.pairs()?.iter().find(|pair| pair.key.text == key).map(|pair| &pair.value)
    }

    /// Whether it means null, which Kubernetes treats like an absent field.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Scalar(scalar) if super::scalar::is_null(scalar))
    }
}
