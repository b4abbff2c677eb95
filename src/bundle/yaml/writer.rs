//! Block style YAML straight from a value's own serialisation. A copy of each object as a tree of JSON values would cost
//! more than the writing.

use serde::ser::{Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, Serializer};

use super::YamlError;
use super::scalar::{self, STEP, blanks};

/// Writes a document behind what is in `out`.
pub(super) fn write<T: Serialize>(out: &mut String, value: &T) -> Result<(), YamlError> {
    value.serialize(Node { out, place: Place::Root })
}

/// Where a node stands. The numbers are columns of keys and dashes.
#[derive(Clone, Copy)]
enum Place {
    /// It is the document.
    Root,
    /// It is a key of a mapping.
    Key,
    /// Behind a key and its colon.
    Value(usize),
    /// Behind a dash and a blank.
    Item(usize),
}

/// Writes one node.
struct Node<'o> {
    out: &'o mut String,
    place: Place,
}

impl<'o> Node<'o> {
    /// Writes a scalar that needs no quotes.
    fn plain(self, text: &str) -> Result<(), YamlError> {
        match self.place {
            Place::Key => return Err(YamlError::new(&"a mapping key is not text")),
            Place::Value(_) => self.out.push(' '),
            Place::Root | Place::Item(_) => {}
        }
        self.out.push_str(text);
        self.out.push('\n');
        Ok(())
    }

    /// Starts a mapping or a list.
    fn collection(self, list: bool) -> Result<Collection<'o>, YamlError> {
        let (column, inline) = match self.place {
            Place::Key => return Err(YamlError::new(&"a mapping key is not text")),
            Place::Root => (0, true),
            // Dashes stand below the key, keys to the right of it.
            Place::Value(column) => (if list { column } else { column + STEP }, false),
            Place::Item(column) => (column + STEP, true),
        };
        Ok(Collection { out: self.out, column, inline, empty: true })
    }
}

/// Writes the parts of a mapping or a list.
struct Collection<'o> {
    out: &'o mut String,
    /// Of its keys or dashes.
    column: usize,
    /// The first part stands where we are, not on a line of its own.
    inline: bool,
    empty: bool,
}

impl Collection<'_> {
    fn begin_part(&mut self) {
        if self.empty && !self.inline {
            self.out.push('\n');
        }
        if !self.empty || !self.inline {
            blanks(self.out, self.column);
        }
        self.empty = false;
    }

    fn finish(self, nothing: &str) {
        if self.empty {
            self.out.push_str(if self.inline { "" } else { " " });
            self.out.push_str(nothing);
            self.out.push('\n');
        }
    }
}

impl SerializeSeq for Collection<'_> {
    type Ok = ();
    type Error = YamlError;

    fn serialize_element<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), YamlError> {
        self.begin_part();
        self.out.push_str("- ");
        value.serialize(Node { out: self.out, place: Place::Item(self.column) })
    }

    fn end(self) -> Result<(), YamlError> {
        self.finish("[]");
        Ok(())
    }
}

impl SerializeMap for Collection<'_> {
    type Ok = ();
    type Error = YamlError;

    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), YamlError> {
        self.begin_part();
        key.serialize(Node { out: self.out, place: Place::Key })
    }

    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), YamlError> {
        value.serialize(Node { out: self.out, place: Place::Value(self.column) })
    }

    fn end(self) -> Result<(), YamlError> {
        self.finish("{}");
        Ok(())
    }
}

impl SerializeStruct for Collection<'_> {
    type Ok = ();
    type Error = YamlError;

    fn serialize_field<T: ?Sized + Serialize>(&mut self, key: &'static str, value: &T) -> Result<(), YamlError> {
        self.serialize_entry(key, value)
    }

    fn end(self) -> Result<(), YamlError> {
        SerializeMap::end(self)
    }
}

/// Numbers whose spelling is that of Rust.
macro_rules! integers {
    ($($method:ident: $number:ty),*) => {
        $(fn $method(self, number: $number) -> Result<(), YamlError> {
            self.plain(&number.to_string())
        })*
    };
}

/// Shapes that neither Kubernetes objects nor JSON have.
fn foreign<T>() -> Result<T, YamlError> {
    Err(YamlError::new(&"a value has a shape that JSON does not know"))
}

impl<'o> Serializer for Node<'o> {
    type Ok = ();
    type Error = YamlError;
    type SerializeSeq = Collection<'o>;
    type SerializeMap = Collection<'o>;
    type SerializeStruct = Collection<'o>;
    type SerializeTuple = Impossible<(), YamlError>;
    type SerializeTupleStruct = Impossible<(), YamlError>;
    type SerializeTupleVariant = Impossible<(), YamlError>;
    type SerializeStructVariant = Impossible<(), YamlError>;

    integers!(serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64);
    integers!(serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64);

    fn serialize_bool(self, value: bool) -> Result<(), YamlError> {
        self.plain(if value { "true" } else { "false" })
    }

    fn serialize_f32(self, value: f32) -> Result<(), YamlError> {
        self.serialize_f64(f64::from(value))
    }

    fn serialize_f64(self, value: f64) -> Result<(), YamlError> {
        self.plain(&scalar::spelled(&value)?)
    }

    fn serialize_char(self, value: char) -> Result<(), YamlError> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, text: &str) -> Result<(), YamlError> {
        match self.place {
            Place::Key => scalar::key(self.out, text),
            Place::Root => scalar::text(self.out, text, STEP),
            Place::Value(column) => {
                self.out.push(' ');
                scalar::text(self.out, text, column + STEP)
            }
            Place::Item(column) => scalar::text(self.out, text, column + STEP),
        }
    }

    fn serialize_unit(self) -> Result<(), YamlError> {
        self.plain("null")
    }

    fn serialize_none(self) -> Result<(), YamlError> {
        self.serialize_unit()
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<(), YamlError> {
        value.serialize(self)
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), YamlError> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _name: &'static str, _: u32, variant: &'static str) -> Result<(), YamlError> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(self, _: &'static str, value: &T) -> Result<(), YamlError> {
        value.serialize(self)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Collection<'o>, YamlError> {
        self.collection(true)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Collection<'o>, YamlError> {
        self.collection(false)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Collection<'o>, YamlError> {
        self.collection(false)
    }

    fn serialize_bytes(self, _: &[u8]) -> Result<(), YamlError> {
        foreign()
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), YamlError> {
        foreign()
    }

    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, YamlError> {
        foreign()
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self::SerializeTupleStruct, YamlError> {
        foreign()
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, YamlError> {
        foreign()
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, YamlError> {
        foreign()
    }
}
