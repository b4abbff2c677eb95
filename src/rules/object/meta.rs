//! Names, labels, annotations and label selectors.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use super::check::{Check, Path};
use crate::object::Object;
use crate::rules::syntax;

/// All annotations of an object together, keys and values (`ValidateAnnotationsSize`).
const MOST_ANNOTATION_BYTES: usize = 256 * 1024;

pub(super) fn object(check: &mut Check, object: &Object) {
    let at = Path::root("metadata");
    let name = at.key("name");
    match object {
        _ if object.name().is_empty() => check.required(&name),
        Object::Namespace(_) => check.form(&name, object.name(), syntax::dns1123_label),
        Object::Service(_) => check.form(&name, object.name(), syntax::dns1035_label),
        _ => check.form(&name, object.name(), syntax::dns1123_subdomain),
    }
    metadata(check, &at, object.metadata());
}

pub(super) fn metadata(check: &mut Check, at: &Path, metadata: &ObjectMeta) {
    check.optional_form(&at.key("namespace"), metadata.namespace.as_ref(), syntax::dns1123_label);
    labels(check, &at.key("labels"), metadata.labels.as_ref());
    let at = at.key("annotations");
    let annotations = metadata.annotations.iter().flatten();
    let mut bytes = 0;
    for (key, value) in annotations {
        check.form(&at, key, syntax::annotation_key);
        bytes += key.len() + value.len();
    }
    if bytes > MOST_ANNOTATION_BYTES {
        check.problem(&at, format!("{bytes} bytes are more than {MOST_ANNOTATION_BYTES}"));
    }
}

pub(super) fn labels(check: &mut Check, at: &Path, labels: Option<&BTreeMap<String, String>>) {
    for (key, value) in labels.into_iter().flatten() {
        check.form(at, key, syntax::qualified_name);
        check.form(&at.entry(key), value, syntax::label_value);
    }
}

pub(super) fn selector(check: &mut Check, at: &Path, selector: &LabelSelector) {
    labels(check, &at.key("matchLabels"), selector.match_labels.as_ref());
    for (index, requirement) in selector.match_expressions.iter().flatten().enumerate() {
        let at = at.item("matchExpressions", index);
        check.form(&at.key("key"), &requirement.key, syntax::qualified_name);
        check.word(&at.key("operator"), &requirement.operator, &["In", "NotIn", "Exists", "DoesNotExist"]);
        let values = requirement.values.as_deref().unwrap_or_default();
        match requirement.operator.as_str() {
            "In" | "NotIn" if values.is_empty() => check.required(&at.key("values")),
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                check.problem(&at.key("values"), format!("must be empty with {}", requirement.operator));
            }
            _ => {}
        }
        for (index, value) in values.iter().enumerate() {
            check.form(&at.item("values", index), value, syntax::label_value);
        }
    }
}
