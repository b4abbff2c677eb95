//! What tells one run of a cluster from another: the suffix of the strategy `run-once`.

use serde_json::{Value, json};

use crate::model::Cluster;
use crate::object::hash::name_suffix;
use crate::object::images::visit_value;

/// Ten characters that change with everything that the run depends on, and with nothing else.
///
/// Left out are the size of an elastic cluster (a resize is no new run; `plain` has all its pods for that reason), the
/// registry that images come from (a mirror has the same images), the certificate, and what GitOps tools are told.
pub(super) fn suffix(plain: &Cluster, patches: &[&Value]) -> String {
    let mut model = identity(&without_registries(plain));
    drop_nulls(&mut model);
    let patches: Vec<Value> = patches.iter().map(|patch| patch_without_registries(patch)).collect();
    // The text of a `Value` cannot fail, and two different values have two different texts.
    name_suffix(json!({ "model": model, "patches": patches }).to_string().as_bytes())
}

/// A host of the cluster that its own commands or variables name, as it is called with other strategies.
pub(super) fn named_host(plain: &Cluster) -> Option<String> {
    let texts = json!([plain.program, plain.runner, plain.sidecars, plain.services, plain.broker.environment]);
    host_in(&texts, &plain.name)
}

fn host_in(value: &Value, name: &str) -> Option<String> {
    match value {
        Value::String(text) => host_in_text(text, name).map(str::to_owned),
        Value::Array(list) => list.iter().find_map(|item| host_in(item, name)),
        Value::Object(map) => map.values().find_map(|item| host_in(item, name)),
        _ => None,
    }
}

/// `<name>-services` or `<name>-<index>` as a word of its own.
fn host_in_text<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    text.match_indices(name).filter(|(at, _)| !text[..*at].ends_with(part)).find_map(|(at, _)| {
        let tail = text[at + name.len()..].strip_prefix('-')?;
        let word = tail.find(|c: char| !part(c)).map_or(tail, |end| &tail[..end]);
        let is_host = word == "services" || (!word.is_empty() && word.bytes().all(|b| b.is_ascii_digit()));
        is_host.then(|| &text[at..at + name.len() + 1 + word.len()])
    })
}

/// Taken apart field by field, so that a new field of the model has to be put on one side or the other.
fn identity(cluster: &Cluster) -> Value {
    let Cluster {
        minicluster,
        name: _,
        run: _,
        namespace,
        target,
        size,
        job,
        pod,
        network,
        view,
        broker,
        program,
        runner,
        sidecars,
        services,
        volumes,
        service_volumes,
        certificate: _,
        logging,
        rollout: _,
    } = cluster;
    json!({
        "minicluster": minicluster,
        "namespace": namespace,
        // Whether there is a file with the numbers; the numbers themselves may change.
        "elastic": size.elastic,
        "target": target.to_string(),
        "job": job,
        "pod": pod,
        "network": network,
        "view": view,
        "broker": broker,
        "program": program,
        "runner": runner,
        "sidecars": sidecars,
        "services": services,
        "volumes": volumes,
        "serviceVolumes": service_volumes,
        "logging": logging,
    })
}

/// An optional field that is not set is as good as one that a later version of flux-gen will know.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, member| !member.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(list) => list.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn without_registries(cluster: &Cluster) -> Cluster {
    let mut cluster = cluster.clone();
    for image in cluster.images_mut() {
        *image = without_registry(image).to_owned();
    }
    cluster
}

fn patch_without_registries(patch: &Value) -> Value {
    let mut patch = patch.clone();
    visit_value(&mut patch, &mut |_, image| Some(without_registry(image).to_owned()));
    patch
}

/// The reference without its registry: the part before the first `/`, if it is a host (it has a dot, a port, capital letters,
/// or is `localhost`; distribution's `reference` package). What `docker.io` adds for its own images goes too.
fn without_registry(image: &str) -> &str {
    let is_host =
        |part: &str| part.contains(['.', ':']) || part == "localhost" || part.bytes().any(|b| b.is_ascii_uppercase());
    match image.split_once('/') {
        Some(("docker.io" | "index.docker.io", path)) => path.strip_prefix("library/").unwrap_or(path),
        Some((host, path)) if is_host(host) => path,
        _ => image,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_are_told_from_paths() {
        for (image, path) in [
            ("rockylinux:9", "rockylinux:9"),
            ("docker.io/library/rockylinux:9", "rockylinux:9"),
            ("docker.io/fluxrm/flux-sched:noble", "fluxrm/flux-sched:noble"),
            ("fluxrm/flux-sched:noble", "fluxrm/flux-sched:noble"),
            ("ghcr.io/a/b@sha256:00", "a/b@sha256:00"),
            ("registry.example:5000/a/b:1.2", "a/b:1.2"),
            ("localhost/a", "a"),
            ("[::1]:5000/a", "a"),
        ] {
            assert_eq!(without_registry(image), path, "{image}");
        }
    }

    #[test]
    fn hosts_are_found_in_texts() {
        for (text, host) in [
            ("ping lammps-0.lammps", Some("lammps-0")),
            ("lammps-services:5000", Some("lammps-services")),
            ("a\nlammps-12\n", Some("lammps-12")),
            ("lammps-0x lammps-7", Some("lammps-7")),
            ("mylammps-0 lammps-data lammps lammps- lammps-services-2 lammps_0", None),
            ("ü lammps-ü", None),
        ] {
            assert_eq!(host_in_text(text, "lammps"), host, "{text}");
        }
    }

    #[test]
    fn patches_lose_registries_only() {
        let patch =
            json!({"spec": {"containers": [{"name": "a", "image": "r.io/x:1", "args": ["r.io/x:1"]}], "x": null}});
        let stripped =
            json!({"spec": {"containers": [{"name": "a", "image": "x:1", "args": ["r.io/x:1"]}], "x": null}});
        assert_eq!(patch_without_registries(&patch), stripped);
    }
}
