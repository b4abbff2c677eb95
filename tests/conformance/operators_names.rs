//! What an API server refuses of the operator's objects because of names and paths that only the operator gives.

use serde_json::Value;

use crate::rows::{Facts, runner};

/// Names of the operator's own volumes, besides the view's and the scripts'.
const OWN_VOLUMES: [&str; 2] = ["spack-software", "flux-operator-home"];
/// The longest name to which `-entrypoint` can be added.
const LONGEST_NAME: usize = 52;

/// Whether the document explains the API server's message.
pub fn refused(message: &Value, facts: &Facts<'_>) -> bool {
    let message = message.as_str().unwrap_or_default();
    let spec = &facts.input["spec"];
    let containers = list(&spec["containers"]);
    let services = list(&spec["services"]);
    let name = facts.words.get("name").map(String::as_str).unwrap_or_default();
    let view = facts.words.get("view").map(String::as_str).unwrap_or_default();
    let volumes: Vec<(&String, &Value)> = containers.iter().chain(&services).flat_map(volumes_of).collect();
    let about = |part: &str, problem: &str| message.contains(part) && message.contains(problem);
    let is_own = |volume: &str| OWN_VOLUMES.contains(&volume) || volume == format!("{name}-entrypoint");
    if about(".volumes[", ".name: Duplicate value") {
        return volumes.iter().any(|(key, volume)| is_own(key) || !volume["configMapName"].is_null()) || is_own(view);
    }
    if about(".volumeMounts[", ".name: Not found") {
        return volumes.iter().any(|(key, volume)| volume["configMapName"].as_str().is_some_and(|map| map != *key));
    }
    if about(".volumeMounts[", ".mountPath: Invalid value") && message.contains("must be unique") {
        return piled_up(&containers) || piled_up(&services);
    }
    if about(".volumes[", "-entrypoint") {
        return name.len() > LONGEST_NAME;
    }
    let ports = |container: &Value| container["ports"].as_array().map_or(0, Vec::len);
    let flux = runner(&containers);
    about("spec.ports[", ".name: Required value")
        && containers.iter().enumerate().any(|(index, c)| Some(index) != flux && ports(c) > 1)
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn volumes_of(container: &Value) -> impl Iterator<Item = (&String, &Value)> {
    container["volumes"].as_object().into_iter().flatten()
}

/// Two volumes at one path of a container, which mounts what those before it declared too, and every emptyDir at one path.
fn piled_up(containers: &[Value]) -> bool {
    let mut mounts: Vec<(&String, &str)> = Vec::new();
    for (key, volume) in containers.iter().flat_map(volumes_of) {
        let path = if volume["emptyDir"] == true { "/dev/shm" } else { volume["path"].as_str().unwrap_or_default() };
        if mounts.iter().any(|(name, at)| *at == path && *name != key) {
            return true;
        }
        mounts.push((key, path));
    }
    false
}
