//! Which changes of an object an API server refuses: those for which a Job or a Pod has to be made anew.
//!
//! Jobs: `ValidateJobUpdate` of Kubernetes (`pkg/apis/batch/validation`), KEP-3715 for `completions`. Pods:
//! `ValidatePodUpdate` (`pkg/apis/core/validation`). Jobs that Kueue has suspended may be changed a little more; flux-gen does
//! not know whether one is.

use serde_json::Value;

/// Fields of a Job's spec that are compared as a whole.
const JOB_FIELDS: [&str; 7] = [
    "backoffLimitPerIndex",
    "completionMode",
    "managedBy",
    "podFailurePolicy",
    "selector",
    "successPolicy",
    "template",
];
/// Fields of a Pod's spec that may change, and in its containers.
const POD_MUTABLE: [&str; 2] = ["activeDeadlineSeconds", "tolerations"];
const CONTAINER_LISTS: [&str; 2] = ["containers", "initContainers"];

/// Paths at which `new` has to differ from `old` and cannot, for two descriptions of one Job or Pod. Objects of other kinds,
/// and those with different names, have none: they are replaced by their names.
#[must_use]
pub fn refused_changes(old: &Value, new: &Value) -> Vec<String> {
    let same = |pointer: &str| old.pointer(pointer) == new.pointer(pointer);
    if !(same("/kind") && same("/metadata/name")) {
        return Vec::new();
    }
    match new.pointer("/kind").and_then(Value::as_str) {
        Some("Job") => job(&old["spec"], &new["spec"]),
        Some("Pod") => pod(&old["spec"], &new["spec"]),
        _ => Vec::new(),
    }
}

fn job(old: &Value, new: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    if old["completions"] != new["completions"] {
        let indexed = new["completionMode"] == "Indexed";
        if !indexed || new["completions"] != new["parallelism"] {
            paths.push("spec.completions".to_owned());
        }
    }
    for field in JOB_FIELDS {
        differences(&old[field], &new[field], &format!("spec.{field}"), &mut paths);
    }
    paths
}

fn pod(old: &Value, new: &Value) -> Vec<String> {
    let (mut old, mut new) = (old.clone(), new.clone());
    let mut paths = Vec::new();
    let tolerations = |spec: &Value| spec["tolerations"].as_array().cloned().unwrap_or_default();
    if !tolerations(&old).iter().all(|toleration| tolerations(&new).contains(toleration)) {
        paths.push("spec.tolerations".to_owned());
    }
    for spec in [&mut old, &mut new] {
        let Some(map) = spec.as_object_mut() else { continue };
        map.retain(|field, _| !POD_MUTABLE.contains(&field.as_str()));
        for list in CONTAINER_LISTS {
            for container in map.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(container) = container.as_object_mut() {
                    container.retain(|field, _| field != "image");
                }
            }
        }
    }
    differences(&old, &new, "spec", &mut paths);
    paths
}

/// Paths of what differs, as deep as both sides have the same shape.
fn differences(old: &Value, new: &Value, path: &str, found: &mut Vec<String>) {
    match (old, new) {
        _ if old == new => {}
        (Value::Object(a), Value::Object(b)) => {
            let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                differences(&old[key], &new[key], &format!("{path}{}", member(key)), found);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differences(a, b, &format!("{path}[{index}]"), found);
            }
        }
        _ => found.push(path.to_owned()),
    }
}

/// `.image`, or `['kubernetes.io/hostname']` for a key that is no plain word.
fn member(key: &str) -> String {
    let plain = key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if plain && !key.is_empty() { format!(".{key}") } else { format!("['{key}']") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn job_of(spec: &Value) -> Value {
        json!({"kind": "Job", "metadata": {"name": "a"}, "spec": spec})
    }

    #[test]
    fn changes_of_jobs() {
        let old = job_of(&json!({
            "activeDeadlineSeconds": 1, "backoffLimit": 0, "completionMode": "Indexed", "completions": 2, "parallelism": 2,
            "podReplacementPolicy": "Failed",
            "template": {"metadata": {"labels": {"a.b/c": "d"}}, "spec": {"containers": [{"image": "x"}, {"image": "y"}]}},
        }));
        for (pointer, value, expected) in [
            ("/spec/backoffLimit", json!(3), &[][..]),
            ("/spec/activeDeadlineSeconds", json!(3), &[]),
            ("/spec/podReplacementPolicy", json!("TerminatingOrFailed"), &[]),
            ("/spec/parallelism", json!(1), &[]),
            ("/spec/completions", json!(3), &["spec.completions"]),
            ("/spec/completionMode", json!("NonIndexed"), &["spec.completionMode"]),
            ("/spec/template/spec/containers/1/image", json!("z"), &["spec.template.spec.containers[1].image"]),
            ("/spec/template/spec/containers", json!([{"image": "x"}]), &["spec.template.spec.containers"]),
            ("/spec/template/metadata/labels", json!({}), &["spec.template.metadata.labels['a.b/c']"]),
            ("/metadata/name", json!("b"), &[]),
        ] {
            let mut new = old.clone();
            *new.pointer_mut(pointer).unwrap() = value;
            assert_eq!(refused_changes(&old, &new), expected, "{pointer}");
        }
        let mut resized = old.clone();
        resized["spec"]["completions"] = json!(5);
        resized["spec"]["parallelism"] = json!(5);
        assert!(refused_changes(&old, &resized).is_empty());
        resized["spec"]["completionMode"] = json!(null);
        assert_eq!(refused_changes(&old, &resized), ["spec.completions", "spec.completionMode"]);
        let mut policy = old.clone();
        policy["spec"]["successPolicy"] = json!({"rules": []});
        assert_eq!(refused_changes(&old, &policy), ["spec.successPolicy"]);
    }

    #[test]
    fn changes_of_pods() {
        let old = json!({"kind": "Pod", "metadata": {"name": "a"}, "spec": {
            "containers": [{"image": "x", "command": ["a"]}], "tolerations": [{"key": "a"}],
        }});
        for (pointer, value, expected) in [
            ("/spec/containers/0/image", json!("y"), &[][..]),
            ("/spec/containers/0/command", json!(["a", "b"]), &["spec.containers[0].command"]),
            ("/spec/tolerations", json!([{"key": "b"}, {"key": "a"}]), &[]),
            ("/spec/tolerations", json!([{"key": "b"}]), &["spec.tolerations"]),
            ("/metadata", json!({"name": "a", "labels": {"x": "y"}}), &[]),
        ] {
            let mut new = old.clone();
            *new.pointer_mut(pointer).unwrap() = value;
            assert_eq!(refused_changes(&old, &new), expected, "{pointer}");
        }
        let service = json!({"kind": "Service", "metadata": {"name": "a"}, "spec": {"clusterIP": "None"}});
        let other = json!({"kind": "Service", "metadata": {"name": "a"}, "spec": {}});
        assert!(refused_changes(&service, &other).is_empty());
    }
}
