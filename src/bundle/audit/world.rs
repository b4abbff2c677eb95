//! All objects, and ways to find one.

use std::collections::BTreeMap;

use serde_json::Value;

use super::item::Item;
use crate::render::{OBJECTS, paths};
use crate::spec::Companion;

/// What a ConfigMap of flux-gen is for. It is told by its files, which no tool renames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// Scripts.
    Scripts,
    /// `broker.toml`, `R`, `hostlist`.
    Flux,
    /// The numbers of an elastic cluster.
    Size,
}

/// All objects.
pub(super) struct World<'a> {
    items: Vec<Item<'a>>,
    /// Positions by lower-case kind and name.
    by_name: BTreeMap<(String, String), Vec<usize>>,
}

impl<'a> World<'a> {
    pub(super) fn new(objects: &'a [Companion]) -> Self {
        let items: Vec<Item<'a>> = objects.iter().map(Item::new).collect();
        let mut by_name: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (index, item) in items.iter().enumerate() {
            by_name.entry((item.kind.to_lowercase(), item.name.to_owned())).or_default().push(index);
        }
        Self { items, by_name }
    }

    pub(super) fn items(&self) -> impl Iterator<Item = Item<'a>> + '_ {
        self.items.iter().copied()
    }

    /// The Jobs that flux-gen made.
    pub(super) fn jobs(&self) -> impl Iterator<Item = Item<'a>> + '_ {
        self.items().filter(|item| is_our_job(*item))
    }

    /// All objects of a kind (lower case) and name, in whatever namespace.
    pub(super) fn named(&self, kind: &str, name: &str) -> impl Iterator<Item = Item<'a>> + use<'_, 'a> {
        let found = self.by_name.get(&(kind.to_owned(), name.to_owned())).into_iter().flatten();
        found.filter_map(|index| self.items.get(*index).copied())
    }

    /// The object of a kind (lower case), namespace and name.
    pub(super) fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<Item<'a>> {
        self.named(kind, name).find(|item| item.namespace == namespace)
    }
}

/// By its record, or by what starts in its pods.
fn is_our_job(item: Item<'_>) -> bool {
    if item.kind != "Job" {
        return false;
    }
    let ours = |container: &Value| {
        let words = container.get("command").and_then(Value::as_array);
        words.into_iter().flatten().filter_map(Value::as_str).any(|word| word.starts_with(paths::SCRIPTS.1))
    };
    let volumes = item.list("/spec/template/spec/volumes").iter().filter_map(|volume| volume.get("name")?.as_str());
    item.annotation(OBJECTS).is_some()
        || volumes.into_iter().any(|name| name == paths::CONFIG.0 || name == paths::CURVE.0)
        || item.list("/spec/template/spec/containers").iter().any(ours)
}

/// What a ConfigMap is for, if it is one of ours.
pub(super) fn role(item: Item<'_>) -> Option<Role> {
    let has = |key: &str| item.file(key).is_some();
    if item.kind != "ConfigMap" {
        None
    } else if has("common.sh") && has("flux-view.sh") {
        Some(Role::Scripts)
    } else if has("broker.toml") && has("hostlist") {
        Some(Role::Flux)
    } else if has("quorum") && has("nodes") {
        Some(Role::Size)
    } else {
        None
    }
}
