//! Differences between two trees of JSON, each with a path that rows can name.

use serde_json::{Map, Value};

/// One place where ours and the operator's are not the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    pub path: String,
    pub ours: Option<Value>,
    pub operator: Option<Value>,
}

/// Everything that differs.
pub fn compare(path: &str, ours: &Value, operator: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    walk(path, Some(ours), Some(operator), &mut found);
    found
}

fn walk(path: &str, ours: Option<&Value>, operator: Option<&Value>, found: &mut Vec<Difference>) {
    match (ours, operator) {
        (Some(ours), Some(operator)) if ours == operator => {}
        (Some(Value::Object(a)), Some(Value::Object(b))) => walk_maps(path, a, b, found),
        (Some(Value::Object(a)), None) if opens(path) => walk_maps(path, a, &Map::new(), found),
        (None, Some(Value::Object(b))) if opens(path) => walk_maps(path, &Map::new(), b, found),
        (ours, operator) => {
            found.push(Difference { path: path.to_owned(), ours: ours.cloned(), operator: operator.cloned() });
        }
    }
}

/// Groups whose members are compared one by one also where one side has none of them.
fn opens(path: &str) -> bool {
    const GROUPS: &[&str] = &[
        ".calls", ".prints", ".annotations", ".labels", ".volumeMounts", ".imagePullSecrets", ".securityContext",
        ".attribute", ".env", ".resources", ".affinity", ".tolerations", ".order", ".access", ".archive", ".resource",
    ];
    GROUPS.iter().any(|group| path.ends_with(group))
}

fn walk_maps(path: &str, ours: &Map<String, Value>, operator: &Map<String, Value>, found: &mut Vec<Difference>) {
    for (key, value) in ours {
        walk(&join(path, key), Some(value), operator.get(key), found);
    }
    for (key, value) in operator.iter().filter(|(key, _)| !ours.contains_key(*key)) {
        walk(&join(path, key), None, Some(value), found);
    }
}

/// `[key]` keys come from lists; they follow without a dot.
fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else if key.starts_with('[') {
        format!("{path}{key}")
    } else if key.contains(['.', '/', ' ', '[']) {
        format!("{path}[{key}]")
    } else {
        format!("{path}.{key}")
    }
}

/// Takes out what means nothing: null, `{}`, `[]`, and empty texts.
pub fn without_empties(value: &Value) -> Option<Value> {
    match value {
        Value::Null => None,
        Value::String(text) if text.is_empty() => None,
        Value::Object(map) => {
            let kept: Map<String, Value> =
                map.iter().filter_map(|(key, value)| Some((key.clone(), without_empties(value)?))).collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        Value::Array(list) => {
            let kept: Vec<Value> = list.iter().filter_map(without_empties).collect();
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        other => Some(other.clone()),
    }
}
