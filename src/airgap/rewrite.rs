//! References to images as they are behind the gap: in typed objects of bundles, and wherever Kubernetes has images in other
//! documents.
//!
//! What an image was called stays in an annotation of the object itself, never in its pod template: a Job that runs may get
//! other annotations, but no other template.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::lock::Lock;
use super::mirror::{Mirror, Place};
use crate::object::{Object, images};
use crate::oci::{Digest, Reference};

/// The annotation with the original references: one line per image, what stands in the object and what stood there.
pub const ORIGINAL_IMAGES: &str = "flux-gen.dev/original-images";

/// Writes references behind the gap.
#[derive(Debug, Clone, Default)]
pub struct Rewriter {
    mirror: Mirror,
    /// Digests of published indexes that only a part of is behind the gap, with those of the derived ones.
    derived: BTreeMap<Digest, Digest>,
}

/// What was found on the way.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Rules that were used, by number.
    pub used: BTreeSet<usize>,
    /// Images that no rule is for.
    pub outside: Vec<Outside>,
}

/// An image that stays outside.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outside {
    /// Its name in the object.
    pub name: String,
    /// Where it stands in the object.
    pub path: String,
}

impl Found {
    /// Takes over what was found elsewhere.
    pub fn extend(&mut self, other: Self) {
        self.used.extend(other.used);
        self.outside.extend(other.outside);
    }
}

impl Rewriter {
    /// With the derived indexes of a lock: a registry that `archive load` filled has these in place of the published ones.
    #[must_use]
    pub fn new(mirror: Mirror, lock: Option<&Lock>) -> Self {
        let images = lock.into_iter().flat_map(|lock| lock.images.values());
        let derived = images.filter_map(|image| Some((image.digest.clone(), image.derived.as_ref()?.digest.clone())));
        Self { mirror, derived: derived.collect() }
    }

    /// The rules.
    #[must_use]
    pub fn mirror(&self) -> &Mirror {
        &self.mirror
    }

    /// The reference behind the gap: with a digest and then without a tag, or, where there is no digest, with the tag. `None`
    /// when it stays as it is.
    #[must_use]
    pub fn reference(&self, name: &str, path: &str, found: &mut Found) -> Option<String> {
        let place = name.parse::<Reference>().map_or(Place::Outside, |image| self.mirror.place(&image));
        match place {
            Place::At(made, rule) => {
                found.used.insert(rule);
                Some(match made.digest() {
                    Some(digest) => format!("{}@{}", made.name(), self.derived.get(digest).unwrap_or(digest)),
                    None => made.to_string(),
                })
            }
            Place::Same => None,
            Place::Outside => {
                found.outside.push(Outside { name: name.to_owned(), path: path.to_owned() });
                None
            }
        }
    }

    /// Rewrites a rendered object.
    pub fn object(&self, object: &mut Object, found: &mut Found) {
        let mut lines = BTreeSet::new();
        images::visit(object, &mut |path, name| self.step(name, path, &mut lines, found));
        if !lines.is_empty() {
            let annotations = object.metadata_mut().annotations.get_or_insert_default();
            annotations.insert(ORIGINAL_IMAGES.to_owned(), text(&lines));
        }
    }

    /// Rewrites a document of any kind; each item of a list is an object of its own.
    pub fn value(&self, value: &mut Value, found: &mut Found) {
        let is_list = value.get("kind").and_then(Value::as_str).is_some_and(|kind| kind.ends_with("List"));
        if let Some(items) = value.get_mut("items").and_then(Value::as_array_mut).filter(|_| is_list) {
            items.iter_mut().for_each(|item| self.value(item, found));
            return;
        }
        let mut lines = BTreeSet::new();
        images::visit_value(value, &mut |path, name| self.step(name, path, &mut lines, found));
        if !lines.is_empty() {
            annotate(value, text(&lines));
        }
    }

    fn step(&self, name: &str, path: &str, lines: &mut BTreeSet<String>, found: &mut Found) -> Option<String> {
        let new = self.reference(name, path, found)?;
        lines.insert(format!("{new} {name}"));
        Some(new)
    }
}

fn text(lines: &BTreeSet<String>) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Puts the annotation before all others: the place that does not depend on what is added later.
fn annotate(value: &mut Value, text: String) {
    let Some(object) = value.as_object_mut() else { return };
    let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    let Some(metadata) = metadata.as_object_mut() else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
    if annotations.is_null() {
        *annotations = Value::Object(Map::new());
    }
    if let Some(annotations) = annotations.as_object_mut() {
        annotations.shift_insert(0, ORIGINAL_IMAGES.to_owned(), Value::String(text));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::lock::{Derived, LockedImage, Origin};
    use super::super::mirror::{Prefix, Rule};
    use super::*;
    use crate::diag::Diagnostics;

    fn rewriter(lock: Option<&Lock>) -> Rewriter {
        let prefix = |text| Prefix::parse(text).unwrap();
        let rules = vec![Rule { from: Some(prefix("docker.io")), to: prefix("site:5000/hub"), span: None }];
        Rewriter::new(Mirror::of_rules(rules, &mut Diagnostics::new()), lock)
    }

    fn digest(text: &str) -> Digest {
        Digest::of(text.as_bytes())
    }

    #[test]
    fn digests_take_the_place_of_tags_and_derived_indexes_that_of_published_ones() {
        let image = LockedImage {
            digest: digest("published"),
            media_type: String::new(),
            size: 1,
            source: Origin::Registry,
            derived: Some(Derived { digest: digest("derived"), size: 1 }),
            platforms: BTreeMap::new(),
        };
        let lock = Lock { images: [("a:1".to_owned(), image)].into(), ..Lock::default() };
        let rewriter = rewriter(Some(&lock));
        let (published, derived, other) = (digest("published"), digest("derived"), digest("other"));
        for (name, expect) in [
            (format!("a@{published}"), Some(format!("site:5000/hub/library/a@{derived}"))),
            (format!("b/a:1@{published}"), Some(format!("site:5000/hub/b/a@{derived}"))),
            (format!("b@{other}"), Some(format!("site:5000/hub/library/b@{other}"))),
            ("b:1".to_owned(), Some("site:5000/hub/library/b:1".to_owned())),
            ("site:5000/own/b:1".to_owned(), None),
        ] {
            let mut found = Found::default();
            assert_eq!(rewriter.reference(&name, "p", &mut found), expect, "{name}");
            assert!(found.outside.is_empty());
        }
        for name in ["ghcr.io/a", "No Image"] {
            let mut found = Found::default();
            assert_eq!(rewriter.reference(name, "p", &mut found), None);
            assert_eq!(found.outside, [Outside { name: name.to_owned(), path: "p".to_owned() }]);
        }
    }

    fn pod_template() -> Value {
        json!({"spec": {
            "initContainers": [{"name": "i", "image": "a:1"}],
            "containers": [{"name": "c", "image": "a:1"}, {"name": "d", "image": "ghcr.io/x"}],
            "volumes": [{"name": "v", "image": {"reference": "b:1"}}]
        }})
    }

    const LINES: &str = "site:5000/hub/library/a:1 a:1\nsite:5000/hub/library/b:1 b:1\n";

    #[test]
    fn typed_objects_and_documents_are_rewritten_alike_and_the_template_gets_no_annotation() {
        let job = json!({"metadata": {"annotations": {"z": "1"}, "name": "j"}, "spec": {"template": pod_template()}});
        let mut typed = Object::Job(serde_json::from_value(job).unwrap());
        let mut value = serde_json::to_value(&typed).unwrap();
        let (mut one, mut two) = (Found::default(), Found::default());
        rewriter(None).object(&mut typed, &mut one);
        rewriter(None).value(&mut value, &mut two);
        assert_eq!(one, two);
        assert_eq!(serde_json::to_string(&typed).unwrap(), value.to_string());
        assert_eq!(one.outside.len(), 1);
        assert_eq!(value["metadata"]["annotations"][ORIGINAL_IMAGES], LINES);
        assert_eq!(value["spec"]["template"].get("metadata"), None);
        assert_eq!(value["spec"]["template"]["spec"]["initContainers"][0]["image"], "site:5000/hub/library/a:1");
        let before = value.clone();
        rewriter(None).value(&mut value, &mut two);
        assert_eq!(value, before, "a second time changes nothing");
    }

    #[test]
    fn items_of_lists_and_documents_without_metadata_are_annotated_where_they_can_be() {
        let pod = json!({"kind": "Pod", "metadata": {"name": "p", "annotations": null}, "spec": {"containers": [{"image": "a:1"}]}});
        let mut list = json!({"kind": "PodList", "items": [pod, {"kind": "ConfigMap", "metadata": {"name": "m"}}]});
        rewriter(None).value(&mut list, &mut Found::default());
        assert_eq!(list["items"][0]["metadata"]["annotations"][ORIGINAL_IMAGES], "site:5000/hub/library/a:1 a:1\n");
        assert_eq!(list["items"][1], json!({"kind": "ConfigMap", "metadata": {"name": "m"}}));
    }
}
