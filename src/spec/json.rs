//! Trees to plain JSON, as Kubernetes reads them: companions and patches.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use super::decode::{Decoder, FromNode};
use super::project::PatchBody;
use super::record::Shape;
use super::yaml::scalar::{self, Ambiguity, Reading};
use super::yaml::{Kind, Node, Scalar};
use crate::diag::Span;
use crate::diag::codes::syntax;

/// A tree as JSON. Numbers such as `0644` and dates are read as kubectl reads them; words that are booleans only for some
/// readers (`yes`, `on`) are reported.
pub(super) fn value(node: &Node, decoder: &mut Decoder<'_>) -> Value {
    match &node.kind {
        Kind::Scalar(scalar) => scalar_value(node, scalar, decoder),
        Kind::Sequence(items) => {
            let mut list = Vec::with_capacity(items.len());
            for (index, item) in items.iter().enumerate() {
                list.push(decoder.at_index(index, |decoder| value(item, decoder)));
            }
            Value::Array(list)
        }
        Kind::Mapping(pairs) => {
            let mut map = Map::with_capacity(pairs.len());
            for pair in pairs {
                let member = decoder.at_key(&pair.key.text, |decoder| value(&pair.value, decoder));
                map.insert(pair.key.text.clone(), member);
            }
            Value::Object(map)
        }
    }
}

fn scalar_value(node: &Node, scalar: &Scalar, decoder: &mut Decoder<'_>) -> Value {
    let reading = match scalar::read(scalar) {
        Reading::Ambiguous(ambiguity) => {
            if let Ambiguity::Bool(value) = ambiguity {
                let write = format!("write {value} if that is meant, else {}", decoder.quoted(scalar));
                decoder.ambiguous(node, scalar, ambiguity, write);
            }
            ambiguity.kubernetes()
        }
        reading => reading,
    };
    match reading {
        Reading::Null => Value::Null,
        Reading::Bool(value) => Value::Bool(value),
        Reading::Int(n) => Value::Number(integer(n)),
        Reading::Float(x) => match number(x) {
            Some(number) => Value::Number(number),
            None => {
                let message = format!("{}: JSON has no such number", decoder.path());
                let help = decoder.quoted(scalar);
                decoder.report(syntax::WRONG_TYPE, node.span, message, Some(help));
                Value::Null
            }
        },
        Reading::Text | Reading::Ambiguous(_) => Value::String(scalar.text.clone()),
    }
}

fn integer(n: i128) -> Number {
    if let Ok(n) = i64::try_from(n) {
        Number::from(n)
    } else if let Ok(n) = u64::try_from(n) {
        Number::from(n)
    } else {
        Number::from_f64(n as f64).unwrap_or_else(|| Number::from(0))
    }
}

/// A float as JSON has it for Kubernetes: whole ones without a point.
fn number(x: f64) -> Option<Number> {
    match super::decode::whole(x) {
        Some(n) => Some(integer(n)),
        None => Number::from_f64(x),
    }
}

/// The place of each pair (its key) and of each scalar in a list, by JSON pointer (RFC 6901).
pub(super) fn places(node: &Node) -> BTreeMap<String, Span> {
    let mut places = BTreeMap::new();
    collect(node, &mut String::new(), &mut places);
    places
}

fn collect(node: &Node, pointer: &mut String, places: &mut BTreeMap<String, Span>) {
    let length = pointer.len();
    match &node.kind {
        Kind::Scalar(_) => {}
        Kind::Sequence(items) => {
            for (index, item) in items.iter().enumerate() {
                pointer.push_str(&format!("/{index}"));
                if matches!(item.kind, Kind::Scalar(_)) {
                    places.insert(pointer.clone(), item.span);
                }
                collect(item, pointer, places);
                pointer.truncate(length);
            }
        }
        Kind::Mapping(pairs) => {
            for pair in pairs {
                pointer.push('/');
                pointer.push_str(&pair.key.text.replace('~', "~0").replace('/', "~1"));
                places.insert(pointer.clone(), pair.key_span);
                collect(&pair.value, pointer, places);
                pointer.truncate(length);
            }
        }
    }
}

impl FromNode for PatchBody {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        if node.pairs().is_none() {
            decoder.wrong_type(node, "a mapping", None);
            return None;
        }
        Some(Self(value(node, decoder)))
    }

    fn shape() -> Shape {
        Shape::Object
    }
}
