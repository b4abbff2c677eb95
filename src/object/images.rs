//! Names of images in objects: found and replaced where Kubernetes has them, not by looking through text.

use k8s_openapi::api::core::v1::{PodSpec, Volume};
use serde_json::Value;

use super::Object;

/// Lists of containers in a pod's spec.
const CONTAINER_LISTS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Calls `visit` with each image name of an object and the path to it; what it returns takes the name's place.
pub fn visit(object: &mut Object, visit: &mut dyn FnMut(&str, &str) -> Option<String>) {
    match object {
        Object::Job(job) => {
            if let Some(spec) = job.spec.as_mut().and_then(|spec| spec.template.spec.as_mut()) {
                pod_spec(spec, "spec.template.spec", visit);
            }
        }
        Object::Pod(pod) => {
            if let Some(spec) = &mut pod.spec {
                pod_spec(spec, "spec", visit);
            }
        }
        _ => {}
    }
}

fn pod_spec(spec: &mut PodSpec, path: &str, visit: &mut dyn FnMut(&str, &str) -> Option<String>) {
    let ephemeral = spec.ephemeral_containers.iter_mut().flatten().map(|c| &mut c.image);
    let init = spec.init_containers.iter_mut().flatten().map(|c| &mut c.image);
    let lists: [Box<dyn Iterator<Item = &mut Option<String>>>; 3] =
        [Box::new(init), Box::new(spec.containers.iter_mut().map(|c| &mut c.image)), Box::new(ephemeral)];
    for (name, list) in CONTAINER_LISTS.iter().zip(lists) {
        for (index, image) in list.enumerate() {
            replace(image, &format!("{path}.{name}[{index}].image"), visit);
        }
    }
    for (index, volume) in spec.volumes.iter_mut().flatten().enumerate() {
        let Volume { image: Some(source), .. } = volume else { continue };
        replace(&mut source.reference, &format!("{path}.volumes[{index}].image.reference"), visit);
    }
}

fn replace(image: &mut Option<String>, path: &str, visit: &mut dyn FnMut(&str, &str) -> Option<String>) {
    let Some(name) = image.as_ref().filter(|name| !name.is_empty()) else { return };
    if let Some(new) = visit(path, name) {
        *image = Some(new);
    }
}

/// [`visit`] for an object that is not one of ours, such as a Deployment or a custom resource: every list of containers and
/// every image volume at any depth counts, because pod templates have the same form wherever they stand.
pub fn visit_value(value: &mut Value, visit: &mut dyn FnMut(&str, &str) -> Option<String>) {
    walk(value, "", visit);
}

fn walk(value: &mut Value, path: &str, visit: &mut dyn FnMut(&str, &str) -> Option<String>) {
    match value {
        Value::Object(map) => {
            for (key, item) in map.iter_mut() {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                if CONTAINER_LISTS.contains(&key.as_str()) {
                    in_list(item, &path, &["image"], visit);
                } else if key == "volumes" {
                    in_list(item, &path, &["image", "reference"], visit);
                }
                walk(item, &path, visit);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                walk(item, &format!("{path}[{index}]"), visit);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Visits the text that stands under `keys` in every item of a list.
fn in_list(list: &mut Value, path: &str, keys: &[&str], visit: &mut dyn FnMut(&str, &str) -> Option<String>) {
    for (index, item) in list.as_array_mut().into_iter().flatten().enumerate() {
        let place = keys.iter().try_fold(item, |value, key| value.get_mut(key));
        let Some(Value::String(name)) = place else { continue };
        if name.is_empty() {
            continue;
        }
        if let Some(new) = visit(&format!("{path}[{index}].{}", keys.join(".")), name) {
            *name = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn template() -> Value {
        json!({"spec": {
            "initContainers": [{"name": "i", "image": "init:1"}],
            "containers": [{"name": "a", "image": "app:1"}, {"name": "b"}],
            "volumes": [
                {"name": "v", "image": {"reference": "view:1", "pullPolicy": "IfNotPresent"}},
                {"name": "e", "emptyDir": {}}
            ]
        }})
    }

    const WANTED: [(&str, &str); 3] = [
        ("spec.template.spec.initContainers[0].image", "init:1"),
        ("spec.template.spec.containers[0].image", "app:1"),
        ("spec.template.spec.volumes[0].image.reference", "view:1"),
    ];

    fn sorted(mut found: Vec<(String, String)>) -> Vec<(String, String)> {
        found.sort();
        found
    }

    fn wanted() -> Vec<(String, String)> {
        sorted(WANTED.iter().map(|(p, n)| ((*p).to_owned(), (*n).to_owned())).collect())
    }

    #[test]
    fn typed_jobs_and_other_templates_give_the_same_places() {
        let job = json!({"metadata": {"name": "j"}, "spec": {"template": template()}});
        let mut object = Object::Job(serde_json::from_value(job.clone()).unwrap());
        let mut found = Vec::new();
        visit(&mut object, &mut |path, name| {
            found.push((path.to_owned(), name.to_owned()));
            Some(format!("local/{name}"))
        });
        assert_eq!(sorted(found), wanted());
        let mut value = job;
        let mut found = Vec::new();
        visit_value(&mut value, &mut |path, name| {
            found.push((path.to_owned(), name.to_owned()));
            Some(format!("local/{name}"))
        });
        assert_eq!(sorted(found), wanted());
        let mut again = Vec::new();
        visit_value(&mut value, &mut |_, name| {
            again.push(name.to_owned());
            None
        });
        assert!(again.len() == 3 && again.iter().all(|name| name.starts_with("local/")), "{again:?}");
    }

    #[test]
    fn templates_of_any_kind_and_depth_are_found_and_nothing_else_is() {
        let cases = [
            (json!({"kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": template()}}}}), 3),
            (
                json!({"kind": "JobSet", "spec": {"replicatedJobs": [{"template": {"spec": {"template": template()}}}]}}),
                3,
            ),
            (json!({"kind": "ConfigMap", "data": {"containers": "image: a", "volumes": "x"}}), 0),
            (json!({"kind": "Widget", "spec": {"image": "not-in-a-list"}}), 0),
            (json!({"kind": "Pod", "spec": {"containers": [{"image": ""}, {"image": 1}, "x"], "volumes": "x"}}), 0),
        ];
        for (mut value, count) in cases {
            let mut found = 0;
            visit_value(&mut value, &mut |_, _| {
                found += 1;
                None
            });
            assert_eq!(found, count, "{value}");
        }
    }
}
