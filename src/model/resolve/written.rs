//! Small readers of written values.

use std::collections::BTreeMap;

use crate::spec::{Map, Spanned};

/// A text that is there and not empty: the API treats empty strings as absent.
pub(super) fn text(value: &Option<Spanned<String>>) -> Option<&str> {
    value.as_ref().map(|s| s.value.as_str()).filter(|s| !s.is_empty())
}

/// A text as an owned value.
pub(super) fn owned(value: &Option<Spanned<String>>) -> Option<String> {
    text(value).map(str::to_owned)
}

/// A flag; absent is false.
pub(super) fn flag(value: &Option<Spanned<bool>>) -> bool {
    value.as_ref().is_some_and(|b| b.value)
}

/// A number that is not negative.
pub(super) fn number(value: &Option<Spanned<i32>>) -> Option<u32> {
    value.as_ref().and_then(|n| u32::try_from(n.value).ok())
}

/// A mapping of texts.
pub(super) fn texts(value: &Option<Spanned<Map<String>>>) -> BTreeMap<String, String> {
    value.iter().flat_map(|m| m.value.iter()).map(|e| (e.key.value.clone(), e.value.value.clone())).collect()
}

/// A list of values.
pub(super) fn list<T: Clone>(value: &Option<Spanned<Vec<Spanned<T>>>>) -> Option<Vec<T>> {
    value.as_ref().map(|l| l.value.iter().map(|s| s.value.clone()).collect())
}
