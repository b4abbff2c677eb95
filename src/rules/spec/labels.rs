//! Labels, annotations and node labels.

use super::check::{Check, shown};
use crate::diag::codes::spec as codes;
use crate::rules::syntax;
use crate::spec::{Map, Spanned};

/// All annotations of an object together, keys and values (Kubernetes `ValidateAnnotationsSize`).
const MOST_ANNOTATION_BYTES: usize = 256 * 1024;

/// Labels that the Job controller puts on pods.
const CONTROLLER_LABELS: &[&str] = &[
    "job-name",
    "controller-uid",
    "batch.kubernetes.io/job-name",
    "batch.kubernetes.io/controller-uid",
    "batch.kubernetes.io/job-completion-index",
];

pub(super) fn check(check: &mut Check<'_>) {
    labels(check, "label of the Job", &check.spec.job_labels);
    let Some(pod) = check.spec.pod.as_ref().map(|pod| &pod.value) else { return };
    labels(check, "label of pods", &pod.labels);
    labels(check, "node label", &pod.node_selector);
    for entry in pod.labels.iter().flat_map(|map| &map.value) {
        if CONTROLLER_LABELS.contains(&entry.key.value.as_str()) {
            let message = format!("label `{}` is set by the Job controller", entry.key.value);
            check.warn(codes::OWNED_LABEL, entry.key.span, message, "remove it");
        }
    }
    annotations(check, &pod.annotations);
}

fn labels(check: &mut Check<'_>, what: &str, map: &Option<Spanned<Map<String>>>) {
    for entry in map.iter().flat_map(|map| &map.value) {
        check.form(codes::LABEL, what, &entry.key, syntax::qualified_name);
        check.form(codes::LABEL, &format!("value of {what}"), &entry.value, syntax::label_value);
    }
}

fn annotations(check: &mut Check<'_>, map: &Option<Spanned<Map<String>>>) {
    let Some(map) = map else { return };
    for entry in &map.value {
        check.form(codes::LABEL, "annotation", &entry.key, syntax::annotation_key);
    }
    let bytes: usize = map.value.iter().map(|entry| entry.key.value.len() + entry.value.value.len()).sum();
    if bytes > MOST_ANNOTATION_BYTES {
        let largest = map.value.iter().max_by_key(|entry| entry.value.value.len());
        let largest =
            largest.map(|entry| format!("; the largest is `{}`", shown(&entry.key.value))).unwrap_or_default();
        let message =
            format!("annotations hold {bytes} bytes and at most {MOST_ANNOTATION_BYTES} are allowed{largest}");
        check.error(codes::ANNOTATIONS_SIZE, map.span, message, "move large texts to a ConfigMap");
    }
}
