//! The one place where a record of the API is described: its fields, their names in YAML and what `explain` says of them.
//!
//! From one description come the struct, its decoder ([`FromNode`]), and its [`Record`], from which [`super::explain`] and
//! [`super::schema`] are made.

use super::decode::FromNode;

/// What a record is, for `explain` and the JSON Schema.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// Name of the type.
    pub name: &'static str,
    /// Doc comment, line by line, each with the blank that stands after `///`.
    pub docs: &'static [&'static str],
    /// Fields in the order of their description.
    pub fields: &'static [Field],
}

/// A field of a [`Record`].
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Name in YAML.
    pub name: &'static str,
    /// Doc comment, line by line, each with the blank that stands after `///`.
    pub docs: &'static [&'static str],
    /// What it takes.
    pub shape: fn() -> Shape,
    /// What else there is to know.
    pub marks: &'static [Mark],
}

/// What else there is to know of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The document is refused without it.
    Required,
    /// An older field: documented and working, no longer in the CRD.
    Older,
    /// Its value is secret: never shown in a message.
    Secret,
}

/// What a value may be.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// Text.
    Text,
    /// `true` or `false`.
    Boolean,
    /// A whole number of 32 bits.
    Int32,
    /// A whole number of 64 bits.
    Int64,
    /// A Kubernetes quantity: an integer or text.
    Quantity,
    /// Any scalar, or a list of scalars.
    Setting,
    /// Any mapping.
    Object,
    /// Anything; accepted and not used.
    Ignored,
    /// A list.
    List(fn() -> Shape),
    /// A mapping from free names.
    Map(fn() -> Shape),
    /// A mapping with known fields.
    Record(&'static Record),
}

impl Record {
    /// The field with this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Field {
    /// Whether it has a mark.
    #[must_use]
    pub fn is(&self, mark: Mark) -> bool {
        self.marks.contains(&mark)
    }

    /// The doc comment as one paragraph.
    #[must_use]
    pub fn description(&self) -> String {
        paragraph(self.docs)
    }
}

/// The lines of a doc comment as one paragraph.
pub(crate) fn paragraph(docs: &[&str]) -> String {
    docs.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// The shape of a type, as a function for constants.
pub(crate) fn shape_of<T: FromNode>() -> Shape {
    T::shape()
}

/// Defines a record as written. `"name" field: Type,` becomes `pub field: Option<Spanned<Type>>`; the doc comments are what
/// `flux-gen explain` and the JSON Schema show. Marks follow the type: `"name" field: Type [Required],`.
macro_rules! record {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident {
            $(
                $(#[doc = $field_doc:literal])*
                $yaml:literal $field:ident : $ty:ty $([$($mark:ident),*])?,
            )*
        }
    ) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct $name {
            $(
                $(#[doc = $field_doc])*
                pub $field: Option<$crate::spec::Spanned<$ty>>,
            )*
        }

        impl $name {
            /// Its fields, for `explain` and the JSON Schema.
            pub const RECORD: &'static $crate::spec::record::Record = &$crate::spec::record::Record {
                name: stringify!($name),
                docs: &[$($doc),*],
                fields: &[$(
                    $crate::spec::record::Field {
                        name: $yaml,
                        docs: &[$($field_doc),*],
                        shape: $crate::spec::record::shape_of::<$ty>,
                        marks: &[$($($crate::spec::record::Mark::$mark),*)?],
                    },
                )*],
            };
        }

        impl $crate::spec::decode::FromNode for $name {
            fn from_node(
                node: &$crate::spec::yaml::Node,
                decoder: &mut $crate::spec::decode::Decoder<'_>,
            ) -> Option<Self> {
                let pairs = decoder.record(node, Self::RECORD)?;
                let mut written = Self::default();
                for pair in pairs {
                    match pair.key.text.as_str() {
                        $($yaml => written.$field = decoder.field(pair, Self::RECORD),)*
                        _ => decoder.unknown_field(pair, Self::RECORD),
                    }
                }
                Some(written)
            }

            fn shape() -> $crate::spec::record::Shape {
                $crate::spec::record::Shape::Record(Self::RECORD)
            }
        }
    };
}
pub(crate) use record;
