//! Text, booleans, numbers and quantities.

use super::{Decoder, FromNode};
use crate::diag::codes::syntax;
use crate::spec::record::Shape;
use crate::spec::value::IntOrString;
use crate::spec::yaml::scalar::{self, Ambiguity, Reading};
use crate::spec::yaml::{Kind, Node, Scalar, short};

impl Decoder<'_> {
    /// The scalar and its meaning; reports lists and mappings. `wanted` follows "takes".
    fn scalar<'n>(&mut self, node: &'n Node, wanted: &str) -> Option<(&'n Scalar, Reading)> {
        match &node.kind {
            Kind::Scalar(scalar) => Some((scalar, scalar::read(scalar))),
            Kind::Sequence(_) | Kind::Mapping(_) => {
                self.wrong_type(node, wanted, None);
                None
            }
        }
    }

    /// Reports a word on which readers disagree. `write` says what to write instead.
    pub(crate) fn ambiguous(&mut self, node: &Node, scalar: &Scalar, ambiguity: Ambiguity, write: String) {
        let what = if self.secret > 0 { "this value".to_owned() } else { format!("`{}`", short(&scalar.text)) };
        let message = format!("{}: {what} without quotes is {}", self.path, ambiguity.describe());
        self.report(syntax::AMBIGUOUS_WORD, node.span, message, Some(write));
    }

    /// A scalar in quotes, for a help text; secret values are not repeated.
    pub(crate) fn quoted(&self, scalar: &Scalar) -> String {
        if self.secret > 0 { "put it in quotes".to_owned() } else { format!("write {:?}", short(&scalar.text)) }
    }

    fn integer(&mut self, node: &Node, range: std::ops::RangeInclusive<i128>) -> Option<i128> {
        let (scalar, reading) = self.scalar(node, "a whole number")?;
        let number = match reading {
            Reading::Int(n) => n,
            Reading::Float(x) if whole(x).is_some() => whole(x)?,
            Reading::Ambiguous(ambiguity) => {
                let write = match ambiguity.kubernetes() {
                    Reading::Int(n) => format!("write {n} if that is meant"),
                    _ => "write a plain decimal number".to_owned(),
                };
                self.ambiguous(node, scalar, ambiguity, write);
                return match ambiguity.kubernetes() {
                    Reading::Int(n) if range.contains(&n) => Some(n),
                    _ => None,
                };
            }
            Reading::Text => {
                let number = scalar.text.trim().parse().ok().filter(|n| range.contains(n));
                self.wrong_type(node, "a whole number", number.map(|n| format!("write {n} without quotes")));
                return number;
            }
            Reading::Null | Reading::Bool(_) | Reading::Float(_) => {
                self.wrong_type(node, "a whole number", None);
                return None;
            }
        };
        if range.contains(&number) {
            return Some(number);
        }
        let message = format!("{}: {} is out of range", self.path, short(&scalar.text));
        let help = format!("it can be {} to {}", range.start(), range.end());
        self.report(syntax::OUT_OF_RANGE, node.span, message, Some(help));
        None
    }
}

/// A float that JSON writes as a whole number, as an API server takes it.
pub(crate) fn whole(x: f64) -> Option<i128> {
    // Beyond 2^53 not every whole number is a float, so such a text did not mean one.
    (x.fract() == 0.0 && x.abs() < 9_007_199_254_740_992.0).then_some(x as i128)
}

impl FromNode for String {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        let (scalar, reading) = decoder.scalar(node, "text")?;
        match reading {
            Reading::Text | Reading::Null => {}
            Reading::Ambiguous(ambiguity) => {
                let write = decoder.quoted(scalar);
                decoder.ambiguous(node, scalar, ambiguity, write);
            }
            Reading::Bool(_) | Reading::Int(_) | Reading::Float(_) => {
                let help = decoder.quoted(scalar);
                decoder.wrong_type(node, "text", Some(help));
            }
        }
        Some(scalar.text.clone())
    }

    fn shape() -> Shape {
        Shape::Text
    }
}

impl FromNode for bool {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        let (scalar, reading) = decoder.scalar(node, "true or false")?;
        match reading {
            Reading::Bool(value) => Some(value),
            Reading::Ambiguous(Ambiguity::Bool(value)) => {
                decoder.ambiguous(node, scalar, Ambiguity::Bool(value), format!("write {value}"));
                Some(value)
            }
            Reading::Text => {
                let value = match scalar.text.trim().to_ascii_lowercase().as_str() {
                    "true" => Some(true),
                    "false" => Some(false),
                    _ => None,
                };
                decoder.wrong_type(node, "true or false", value.map(|value| format!("write {value} without quotes")));
                value
            }
            Reading::Null | Reading::Int(_) | Reading::Float(_) | Reading::Ambiguous(_) => {
                decoder.wrong_type(node, "true or false", None);
                None
            }
        }
    }

    fn shape() -> Shape {
        Shape::Boolean
    }
}

impl FromNode for i32 {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        decoder.integer(node, i128::from(i32::MIN)..=i128::from(i32::MAX)).and_then(|n| n.try_into().ok())
    }

    fn shape() -> Shape {
        Shape::Int32
    }
}

impl FromNode for i64 {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        decoder.integer(node, i128::from(i64::MIN)..=i128::from(i64::MAX)).and_then(|n| n.try_into().ok())
    }

    fn shape() -> Shape {
        Shape::Int64
    }
}

/// In the MiniCluster API every `IntOrString` is a quantity.
impl FromNode for IntOrString {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        const WANTED: &str = "a quantity (a whole number or text)";
        let (scalar, reading) = decoder.scalar(node, WANTED)?;
        let text = || Some(Self::String(scalar.text.clone()));
        let number = match reading {
            Reading::Int(n) => Some(n),
            Reading::Float(x) => whole(x),
            Reading::Text if is_quantity(&scalar.text) => return text(),
            Reading::Text => {
                let message = format!("{}: `{}` is not a quantity", decoder.path, short(&scalar.text));
                let help = "write a number with an optional suffix and nothing between them: 4, 500m, 1.5, 64Gi, 500M";
                decoder.report(syntax::BAD_QUANTITY, node.span, message, Some(help.to_owned()));
                return text();
            }
            Reading::Ambiguous(ambiguity) => {
                let write = format!("{} if the text is meant, or a plain decimal number", decoder.quoted(scalar));
                decoder.ambiguous(node, scalar, ambiguity, write);
                return text();
            }
            Reading::Null | Reading::Bool(_) => {
                decoder.wrong_type(node, WANTED, None);
                return None;
            }
        };
        match number.map(i64::try_from) {
            Some(Ok(n)) => Some(Self::Int(n)),
            Some(Err(_)) => {
                let message = format!("{}: {} is out of range", decoder.path, short(&scalar.text));
                let help = format!("it can be {} to {}; larger ones need a suffix", i64::MIN, i64::MAX);
                decoder.report(syntax::OUT_OF_RANGE, node.span, message, Some(help));
                None
            }
            None => {
                let message = format!(
                    "{}: the API takes a fraction as text only, and {} has no quotes",
                    decoder.path, scalar.text
                );
                let help = decoder.quoted(scalar);
                decoder.report(syntax::BAD_QUANTITY, node.span, message, Some(help));
                text()
            }
        }
    }

    fn shape() -> Shape {
        Shape::Quantity
    }
}

/// The grammar of quantities as the CRD checks it (`resource.Quantity` of apimachinery, the pattern of controller-gen):
/// a signed number and either a suffix or a decimal exponent.
pub(crate) fn is_quantity(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let Some(rest) = after_number(unsigned) else {
        return false;
    };
    match rest.as_bytes() {
        []
        | [b'n' | b'u' | b'm' | b'k' | b'M' | b'G' | b'T' | b'P' | b'E']
        | [b'K' | b'M' | b'G' | b'T' | b'P' | b'E', b'i'] => true,
        [b'e' | b'E', ..] => {
            let exponent = &rest[1..];
            after_number(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)) == Some("")
        }
        _ => false,
    }
}

/// What follows a decimal number without sign; `None` when the text does not start with one.
fn after_number(text: &str) -> Option<&str> {
    let digits = |s: &str| s.bytes().take_while(u8::is_ascii_digit).count();
    let whole = digits(text);
    let Some(fraction) = text[whole..].strip_prefix('.') else {
        return (whole > 0).then(|| &text[whole..]);
    };
    let decimals = digits(fraction);
    (whole + decimals > 0).then(|| &fraction[decimals..])
}
