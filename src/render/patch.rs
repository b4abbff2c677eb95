//! Strategic merge patches on rendered objects: the project file's way to set what no field sets.

use serde_json::{Map, Value};

use crate::object::Object;

/// A patch that does not fit its object.
#[derive(Debug, thiserror::Error)]
pub enum PatchError {
    /// The result is no object of this kind any more.
    #[error("{kind} {name} cannot be read any more after the patch: {source}")]
    NotAnObject {
        /// Kind of the object.
        kind: &'static str,
        /// Name of the object.
        name: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// Fields that the kind has not; an API server would drop or refuse them.
    #[error("{kind} has no field {path}")]
    UnknownField {
        /// Kind of the object.
        kind: &'static str,
        /// Path of the field.
        path: String,
    },
    /// A patch may not make another object of it.
    #[error("a patch must not change {field} of {kind} {name}")]
    Identity {
        /// `kind`, `metadata.name` or `metadata.namespace`.
        field: &'static str,
        /// Kind of the object.
        kind: &'static str,
        /// Name of the object.
        name: String,
    },
}

/// Applies a strategic merge patch, as `kubectl patch --type strategic` does for the kinds that flux-gen writes.
///
/// # Errors
/// When the result is no valid object of the same kind and name.
pub fn apply(object: &Object, patch: &Value) -> Result<Object, PatchError> {
    let (kind, name) = (object.kind(), object.name().to_owned());
    let broken = |source| PatchError::NotAnObject { kind, name: name.clone(), source };
    let mut value = serde_json::to_value(object).map_err(broken)?;
    merge(&mut value, patch, "");
    let patched = read(object, value.clone()).map_err(broken)?;
    if patched.name() != object.name() {
        return Err(PatchError::Identity { field: "metadata.name", kind, name });
    }
    if patched.namespace() != object.namespace() {
        return Err(PatchError::Identity { field: "metadata.namespace", kind, name });
    }
    let kept = serde_json::to_value(&patched).map_err(broken)?;
    match first_lost(&value, &kept, "") {
        Some(path) => Err(PatchError::UnknownField { kind, path }),
        None => Ok(patched),
    }
}

fn read(like: &Object, value: Value) -> Result<Object, serde_json::Error> {
    Ok(match like {
        Object::Namespace(_) => Object::Namespace(serde_json::from_value(value)?),
        Object::ConfigMap(_) => Object::ConfigMap(serde_json::from_value(value)?),
        Object::Secret(_) => Object::Secret(serde_json::from_value(value)?),
        Object::NetworkPolicy(_) => Object::NetworkPolicy(serde_json::from_value(value)?),
        Object::Service(_) => Object::Service(serde_json::from_value(value)?),
        Object::Pod(_) => Object::Pod(Box::new(serde_json::from_value(value)?)),
        Object::Job(_) => Object::Job(Box::new(serde_json::from_value(value)?)),
    })
}

/// Merge keys of the lists that strategic merge patches know (`patchMergeKey` in the Kubernetes API types).
fn merge_key(field: &str, item: &Value) -> Option<&'static str> {
    match field {
        "containers" | "initContainers" | "ephemeralContainers" | "volumes" | "env" | "imagePullSecrets" => {
            Some("name")
        }
        "volumeMounts" => Some("mountPath"),
        "volumeDevices" => Some("devicePath"),
        "hostAliases" => Some("ip"),
        "topologySpreadConstraints" => Some("topologyKey"),
        "ports" if item.get("containerPort").is_some() => Some("containerPort"),
        "ports" if item.get("port").is_some() => Some("port"),
        _ => None,
    }
}

fn merge(target: &mut Value, patch: &Value, field: &str) {
    match (target, patch) {
        (Value::Object(target), Value::Object(patch)) => merge_maps(target, patch),
        (Value::Array(target), Value::Array(patch)) if patch.iter().all(|p| merge_key(field, p).is_some()) => {
            merge_lists(target, patch, field);
        }
        (target, patch) => *target = without_directives(patch),
    }
}

fn merge_maps(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    if patch.get("$patch").is_some_and(|directive| directive == "replace") {
        target.clear();
    }
    for (key, value) in patch.iter().filter(|(key, _)| *key != "$patch") {
        match target.get_mut(key) {
            _ if value.is_null() => {
                target.remove(key);
            }
            Some(old) => merge(old, value, key),
            None => {
                target.insert(key.clone(), without_directives(value));
            }
        }
    }
}

fn merge_lists(target: &mut Vec<Value>, patch: &[Value], field: &str) {
    for item in patch {
        let Some(key) = merge_key(field, item) else { continue };
        let same = target.iter().position(|old| old.get(key).is_some() && old.get(key) == item.get(key));
        let delete = item.get("$patch").is_some_and(|directive| directive == "delete");
        match same {
            Some(at) if delete => {
                target.remove(at);
            }
            Some(at) => {
                if let Some(old) = target.get_mut(at) {
                    merge(old, item, "");
                }
            }
            None if delete => {}
            None => target.push(without_directives(item)),
        }
    }
}

/// A new value: nulls and directives mean nothing where there was nothing.
fn without_directives(value: &Value) -> Value {
    match value {
        Value::Object(map) => Value::Object(
            map.iter()
                .filter(|(key, value)| !value.is_null() && *key != "$patch")
                .map(|(key, value)| (key.clone(), without_directives(value)))
                .collect(),
        ),
        Value::Array(list) => Value::Array(list.iter().map(without_directives).collect()),
        other => other.clone(),
    }
}

/// Path of the first field that reading the object dropped.
fn first_lost(before: &Value, after: &Value, path: &str) -> Option<String> {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => before.iter().find_map(|(key, value)| {
            let path = format!("{path}.{key}");
            match after.get(key) {
                Some(kept) => first_lost(value, kept, &path),
                None if is_empty(value) => None,
                None => Some(path.trim_start_matches('.').to_owned()),
            }
        }),
        (Value::Array(before), Value::Array(after)) => before
            .iter()
            .zip(after)
            .enumerate()
            .find_map(|(index, (before, after))| first_lost(before, after, &format!("{path}[{index}]"))),
        _ => None,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}
