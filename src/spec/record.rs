//! The one place where a record of the API is described: its fields, their names in YAML and what `explain` says of them.

/// Defines a record as written. `"name" field: Type,` becomes `pub field: Option<Spanned<Type>>`; the doc comments are what
/// `flux-gen explain` and the JSON Schema show.
macro_rules! record {
    (
        $(#[doc = $doc:literal])*
        pub struct $name:ident {
            $(
                $(#[doc = $field_doc:literal])*
                $yaml:literal $field:ident : $ty:ty,
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
    };
}
pub(crate) use record;
