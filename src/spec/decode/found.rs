//! What was found in place of what was wanted, in words.

use crate::diag::Span;
use crate::spec::yaml::scalar::{self, Reading};
use crate::spec::yaml::{Kind, Node, short};

/// The kind of a value: "a list", "text".
pub(super) fn found(node: &Node) -> &'static str {
    match &node.kind {
        Kind::Sequence(_) => "a list",
        Kind::Mapping(_) => "a mapping",
        Kind::Scalar(scalar) => match scalar::read(scalar) {
            Reading::Null => "an empty value",
            Reading::Bool(_) => "the boolean",
            Reading::Int(_) | Reading::Float(_) => "the number",
            Reading::Text | Reading::Ambiguous(_) => "the text",
        },
    }
}

/// The kind of a value and, for scalars, the value: "the number 1.5", "the text `4`".
pub(super) fn shown(node: &Node) -> String {
    match &node.kind {
        Kind::Scalar(scalar) if !node.is_null() => {
            format!("{} `{}`", found(node), short(&scalar.text))
        }
        _ => found(node).to_owned(),
    }
}

/// The part of a value that a message points at: all of a scalar, the start of anything longer.
pub(crate) fn head(node: &Node) -> Span {
    match &node.kind {
        Kind::Scalar(_) => node.span,
        Kind::Sequence(items) => match items.first() {
            // The `-` or `[`; a list that is not indented more than its key starts at its first item.
            Some(first) if node.span.start < first.span.start => Span { end: node.span.start + 1, ..node.span },
            Some(first) => head(first),
            None => node.span,
        },
        Kind::Mapping(pairs) => pairs.first().map_or(node.span, |first| first.key_span),
    }
}
