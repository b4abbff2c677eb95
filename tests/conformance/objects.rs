//! Kubernetes objects in a form that compares by meaning: lists keyed by what identifies their items, mounts with the source
//! they show (so that names of volumes do not matter), nothing that is empty.

use serde_json::{Map, Value, json};

use crate::compare::without_empties;

/// All objects of a bundle, or of the operator, as one tree.
pub fn tree(objects: &[Value]) -> Value {
    let mut tree = Map::new();
    for object in objects {
        let kind = object["kind"].as_str().unwrap_or("?");
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("ownerReferences");
            metadata.remove("creationTimestamp");
        }
        let name = without_hash(kind, &object);
        let key = if kind == "Job" { kind.to_owned() } else { format!("{kind}[{name}]") };
        match kind {
            "ConfigMap" => reduce_config_map(&mut object),
            "Job" => pod_spec(&mut object["spec"]["template"]["spec"]),
            "Pod" => pod_spec(&mut object["spec"]),
            _ => {}
        }
        if let Some(map) = object.as_object_mut() {
            map.remove("apiVersion");
            map.remove("kind");
        }
        let Some(value) = without_empties(&keyed(&object)) else { continue };
        tree.insert(key, value);
    }
    Value::Object(tree)
}

/// Names of our immutable ConfigMaps end in a hash of their content.
fn without_hash(kind: &str, object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if kind == "ConfigMap" && object["immutable"] == json!(true) {
        return name.rsplit_once('-').map_or(name, |(stem, _)| stem).to_owned();
    }
    name.to_owned()
}

/// Texts of scripts are compared by running them.
fn reduce_config_map(object: &mut Value) {
    let name = without_hash("ConfigMap", object);
    object["metadata"]["name"] = json!(name);
    if let Some(map) = object.as_object_mut() {
        map.remove("data");
    }
}

/// Native sidecars stand with the other containers, mounts carry their source, volumes that nobody mounts are kept.
fn pod_spec(spec: &mut Value) {
    let volumes: Vec<Value> = spec["volumes"].as_array().cloned().unwrap_or_default();
    let init = spec["initContainers"].as_array().cloned().unwrap_or_default();
    let (native, init): (Vec<Value>, Vec<Value>) = init.into_iter().partition(|c| c["restartPolicy"] == "Always");
    let mut containers = spec["containers"].as_array().cloned().unwrap_or_default();
    containers.extend(native);
    let mut used = Vec::new();
    let mut resolve = |list: Vec<Value>| -> Value {
        list.into_iter().map(|container| with_sources(container, &volumes, &mut used)).collect()
    };
    spec["containers"] = resolve(containers);
    spec["initContainers"] = resolve(init);
    let unused: Vec<Value> =
        volumes.iter().filter(|v| !used.iter().any(|name| name == v["name"].as_str().unwrap_or_default())).cloned().collect();
    spec["volumes"] = json!(unused);
}

fn with_sources(mut container: Value, volumes: &[Value], used: &mut Vec<String>) -> Value {
    let mounts = container["volumeMounts"].as_array().cloned().unwrap_or_default();
    let mounts: Vec<Value> = mounts
        .into_iter()
        .map(|mut mount| {
            let name = mount["name"].as_str().unwrap_or_default().to_owned();
            let path = mount["mountPath"].as_str().unwrap_or_default();
            let trimmed = if path.len() > 1 { path.trim_end_matches('/') } else { path };
            mount["mountPath"] = json!(trimmed);
            let volume = volumes.iter().find(|v| v["name"] == json!(name));
            let mut source = volume.cloned().unwrap_or_else(|| json!({"name": name, "missing": true}));
            if let Some(map) = source.as_object_mut() {
                map.remove("name");
            }
            if let Some(map) = mount.as_object_mut() {
                map.remove("name");
                // An emptyDir without fields is still a source.
                let kinds: Vec<String> = source.as_object().map(|s| s.keys().cloned().collect()).unwrap_or_default();
                map.insert("from".to_owned(), json!(kinds.join(",")));
                map.insert("source".to_owned(), source);
            }
            used.push(name);
            mount
        })
        .collect();
    container["volumeMounts"] = json!(mounts);
    container
}

/// Quantities by value: `1`, `1000m` and `1.0` are one amount.
pub fn quantity(value: &Value) -> Value {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let factors = [
        ("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50),
    ];
    let powers = [("m", -3), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("", 0)];
    let binary = factors.iter().find_map(|(end, bits)| Some((text.strip_suffix(end)?, 2_f64.powi(*bits))));
    let decimal = || powers.iter().find_map(|(end, ten)| Some((text.strip_suffix(end)?, 10_f64.powi(*ten))));
    let amount = binary.or_else(decimal).and_then(|(number, factor)| Some(number.parse::<f64>().ok()? * factor));
    amount.map_or_else(|| value.clone(), |amount| json!(amount.to_string()))
}

/// What identifies items of a list; other lists are compared whole.
fn key_of(field: &str, item: &Value) -> Option<String> {
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    match field {
        "containers" | "initContainers" | "env" | "volumes" | "imagePullSecrets" => text(&item["name"]),
        "volumeMounts" => text(&item["mountPath"]),
        "ports" => text(&item["containerPort"]).or_else(|| text(&item["port"])),
        "tolerations" => text(&item["key"]).or_else(|| Some("every".to_owned())),
        "items" => text(&item["key"]),
        "sysctls" => text(&item["name"]),
        _ => None,
    }
}

/// Turns keyed lists into maps; their order stands beside them where it matters.
pub fn keyed(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut out = Map::new();
            for (field, value) in map {
                match value {
                    Value::Object(list) if matches!(field.as_str(), "limits" | "requests" | "overhead") => {
                        let list: Map<String, Value> = list.iter().map(|(n, q)| (n.clone(), quantity(q))).collect();
                        out.insert(field.clone(), Value::Object(list));
                    }
                    size if field == "sizeLimit" => {
                        out.insert(field.clone(), quantity(size));
                    }
                    Value::Array(list) if !list.is_empty() && list.iter().all(|item| key_of(field, item).is_some()) => {
                        out.insert(field.clone(), keyed_list(field, list));
                    }
                    other => {
                        out.insert(field.clone(), keyed(other));
                    }
                }
            }
            Value::Object(out)
        }
        other => other.clone(),
    }
}

fn keyed_list(field: &str, list: &[Value]) -> Value {
    let mut out = Map::new();
    for item in list {
        let key = key_of(field, item).unwrap_or_default();
        let same = (1..).map(|n| if n == 1 { format!("[{key}]") } else { format!("[{key}#{n}]") });
        let free = same.into_iter().find(|key| !out.contains_key(key)).unwrap_or_default();
        out.insert(free, keyed(item));
    }
    if field == "env" {
        let names: Vec<String> = list.iter().filter_map(|item| key_of(field, item)).collect();
        out.insert("order".to_owned(), json!(names.join(" ")));
    }
    Value::Object(out)
}
