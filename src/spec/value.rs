//! Values with places.

use crate::diag::Span;

/// A value and where it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Where it was written.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// Puts a value and its place together.
    pub fn new(value: T, span: Span) -> Self {
        Self { value, span }
    }

    /// The same place with another value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Spanned<U> {
        Spanned { value: f(self.value), span: self.span }
    }
}

impl<T> std::ops::Deref for Spanned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// One pair of a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<T> {
    /// The key and its place.
    pub key: Spanned<String>,
    /// The value and its place.
    pub value: Spanned<T>,
}

/// A mapping from free names to values, in the order of the text. Keys are unique: duplicates were reported while reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Map<T>(pub Vec<Entry<T>>);

impl<T> Default for Map<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Map<T> {
    /// Pairs in the order of the text.
    pub fn iter(&self) -> std::slice::Iter<'_, Entry<T>> {
        self.0.iter()
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Spanned<T>> {
        self.0.iter().find(|e| e.key.value == key).map(|e| &e.value)
    }

    /// Whether there is no pair.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of pairs.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl<'a, T> IntoIterator for &'a Map<T> {
    type Item = &'a Entry<T>;
    type IntoIter = std::slice::Iter<'a, Entry<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

/// A quantity as written: Kubernetes takes `4` and `"4"`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IntOrString {
    /// A bare integer.
    Int(i64),
    /// A string.
    String(String),
}

impl std::fmt::Display for IntOrString {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Int(n) => n.fmt(f),
            Self::String(s) => s.fmt(f),
        }
    }
}

/// A value that is accepted and not used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ignored;
