//! One object, and the few questions that every check asks of it.

use serde_json::Value;

use crate::diag::Span;
use crate::spec::Companion;

/// One object as it came.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item<'a> {
    object: &'a Companion,
    pub(super) kind: &'a str,
    pub(super) name: &'a str,
    /// Empty when none is written.
    pub(super) namespace: &'a str,
}

impl<'a> Item<'a> {
    pub(super) fn new(object: &'a Companion) -> Self {
        let text = |pointer: &str| object.value.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        Self { object, kind: text("/kind"), name: text("/metadata/name"), namespace: text("/metadata/namespace") }
    }

    pub(super) fn value(self) -> &'a Value {
        &self.object.value
    }

    pub(super) fn at(self, pointer: &str) -> Option<&'a Value> {
        self.object.value.pointer(pointer)
    }

    pub(super) fn text(self, pointer: &str) -> Option<&'a str> {
        self.at(pointer)?.as_str()
    }

    pub(super) fn number(self, pointer: &str) -> Option<i64> {
        self.at(pointer)?.as_i64()
    }

    /// Items of a list; none when there is no list.
    pub(super) fn list(self, pointer: &str) -> &'a [Value] {
        self.at(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
    }

    /// An annotation.
    pub(super) fn annotation(self, key: &str) -> Option<&'a str> {
        self.at("/metadata/annotations")?.get(key)?.as_str()
    }

    /// A file of a ConfigMap.
    pub(super) fn file(self, key: &str) -> Option<&'a str> {
        self.at("/data")?.get(key)?.as_str()
    }

    /// `Job hpc/elastic`.
    pub(super) fn title(self) -> String {
        match self.namespace {
            "" => format!("{} {}", self.kind, self.name),
            namespace => format!("{} {namespace}/{}", self.kind, self.name),
        }
    }

    /// The place of a part of it, or of the nearest part around.
    pub(super) fn place(self, pointer: &str) -> Span {
        self.object.place(pointer)
    }

    /// Whether it is the same document as another one.
    pub(super) fn is(self, other: Item<'_>) -> bool {
        std::ptr::eq(self.object, other.object)
    }
}

/// A JSON pointer as Kubernetes writes paths: `/spec/template/spec/volumes/0` is `spec.template.spec.volumes[0]`.
pub(super) fn path(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        let part = part.replace("~1", "/").replace("~0", "~");
        let index = part.bytes().all(|b| b.is_ascii_digit()) && !path.is_empty();
        if index || part.contains(['.', '/']) {
            path.push_str(&format!("[{part}]"));
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&part);
        }
    }
    path
}

/// A key as a part of a JSON pointer (RFC 6901).
pub(super) fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// The way back from Kubernetes' path to a JSON pointer, as far as it can be told: `a.b[0].c`, `data[common.sh]`.
pub(super) fn pointer(path: &str) -> String {
    let mut pointer = String::new();
    let mut rest = path;
    while !rest.is_empty() {
        let (part, after) = match rest.strip_prefix('[') {
            Some(inner) => inner.split_once(']').unwrap_or((inner, "")),
            None => {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                rest.split_at(end)
            }
        };
        if !part.is_empty() {
            pointer.push('/');
            pointer.push_str(&escaped(part));
        }
        rest = after.strip_prefix('.').unwrap_or(after);
    }
    pointer
}

#[cfg(test)]
mod tests {
    #[test]
    fn paths_and_pointers() {
        for (pointer, path) in [
            ("/spec/template/spec/volumes/0/name", "spec.template.spec.volumes[0].name"),
            ("/data/common.sh", "data[common.sh]"),
            ("/metadata/annotations/a.b~1c", "metadata.annotations[a.b/c]"),
        ] {
            assert_eq!(super::path(pointer), path);
            assert_eq!(super::pointer(path), pointer);
        }
    }
}
