//! The entrypoint, and the paths where it finds its files.

use serde_json::Value;

use super::cause::{Cause, Renaming};
use super::cluster::{Cluster, line_value};
use super::{Findings, Item};
use crate::diag::codes::audit as codes;
use crate::render::paths;

/// The script that copies the view.
const INIT: &str = "flux-init.sh";

/// What has to be mounted somewhere.
#[derive(Clone, Copy)]
enum Source<'a> {
    /// This ConfigMap (`None`: it is missing, which is told elsewhere).
    ConfigMap(Option<Item<'a>>),
    /// Some Secret.
    Secret,
    /// A volume in memory.
    Memory,
    /// Any volume.
    Any,
}

pub(super) fn check(cluster: &Cluster<'_>, findings: &mut Findings) {
    let job = cluster.job;
    let mut runs_flux = false;
    for list in ["containers", "initContainers"] {
        let pointer = format!("/spec/template/spec/{list}");
        for (index, container) in job.list(&pointer).iter().enumerate() {
            let at = format!("{pointer}/{index}");
            let Some(file) = script_of(container) else { continue };
            let needs_flux = file.starts_with("wait-");
            runs_flux |= needs_flux;
            script_exists(cluster, &at, file, findings);
            for (path, source) in needed(cluster, needs_flux) {
                mount(cluster, container, &at, path, source, findings);
            }
        }
    }
    if !runs_flux {
        let what = format!("no container starts a script of {}: no broker starts", paths::SCRIPTS.1);
        findings.error(codes::ENTRYPOINT, job, "/spec/template/spec/containers", &what, &Cause::Patch);
    }
    view(cluster, findings);
}

/// The file of ours that a container starts.
fn script_of(container: &Value) -> Option<&str> {
    let words = container.get("command")?.as_array()?.iter().filter_map(Value::as_str);
    words.into_iter().find_map(|word| word.strip_prefix(paths::SCRIPTS.1)?.strip_prefix('/'))
}

fn script_exists(cluster: &Cluster<'_>, at: &str, file: &str, findings: &mut Findings) {
    let Some(scripts) = cluster.scripts else { return };
    let key = super::item::escaped(file);
    let known = scripts.file(file).is_some() || scripts.at(&format!("/binaryData/{key}")).is_some();
    if !known {
        let what = format!("`{file}` is not among the scripts of {}: the container fails", scripts.title());
        findings.error(codes::ENTRYPOINT, cluster.job, &format!("{at}/command"), &what, &Cause::Patch);
    }
}

/// Paths that a container of ours needs.
fn needed<'a>(cluster: &Cluster<'a>, runs_flux: bool) -> Vec<(&'a str, Source<'a>)> {
    let mut needed = vec![(paths::SCRIPTS.1, Source::ConfigMap(cluster.scripts))];
    let common = cluster.scripts.and_then(|scripts| scripts.file("common.sh")).unwrap_or_default();
    if let Some(view) = line_value(common, "export viewbase=") {
        needed.push((view.trim_matches('\''), Source::Any));
    }
    if !runs_flux {
        return needed;
    }
    needed.push((paths::CONFIG.1, Source::ConfigMap(cluster.flux)));
    needed.push((paths::CURVE.1, Source::Secret));
    needed.push((paths::RUN.1, Source::Memory));
    if cluster.entrypoint().is_some_and(|script| script.contains(paths::SIZE.1)) {
        needed.push((paths::SIZE.1, Source::ConfigMap(cluster.size)));
    }
    if common.contains(paths::VIEWS) {
        needed.extend([(paths::SOFTWARE, Source::Any), (paths::VIEWS, Source::Any)]);
    }
    needed
}

fn mount(cluster: &Cluster<'_>, container: &Value, at: &str, path: &str, source: Source<'_>, findings: &mut Findings) {
    let job = cluster.job;
    let mounts = container.get("volumeMounts").and_then(Value::as_array);
    let found = mounts.into_iter().flatten().enumerate().find(|(_, mount)| text(mount, "mountPath") == Some(path));
    let Some((index, mount)) = found else {
        let what = format!("nothing is mounted at {path}, where the entrypoint looks for its files");
        return findings.error(codes::MOUNT, job, &format!("{at}/volumeMounts"), &what, &Cause::Patch);
    };
    let name = text(mount, "name").unwrap_or_default();
    let volumes = job.list("/spec/template/spec/volumes");
    let Some(number) = volumes.iter().position(|volume| text(volume, "name") == Some(name)) else {
        let what = format!("there is no volume `{name}` for {path}");
        return findings.error(codes::MOUNT, job, &format!("{at}/volumeMounts/{index}/name"), &what, &Cause::Patch);
    };
    let Some(volume) = volumes.get(number) else { return };
    let place = format!("/spec/template/spec/volumes/{number}");
    let shows = match source {
        Source::Any => return,
        Source::ConfigMap(wanted) => match (text_at(volume, "/configMap/name"), wanted) {
            (Some(name), Some(wanted)) if name != wanted.name => {
                return reference(job, &place, name, wanted, findings);
            }
            (Some(_), _) => return,
            (None, _) => "no ConfigMap",
        },
        Source::Secret if volume.get("secret").is_none() => "no Secret",
        Source::Memory if text_at(volume, "/emptyDir/medium") != Some("Memory") => {
            "no volume in memory, so the certificate would be written to a disk"
        }
        Source::Secret | Source::Memory => return,
    };
    let what = format!("the volume at {path} is {shows}");
    findings.error(codes::MOUNT, job, &place, &what, &Cause::Patch);
}

/// A volume that names another ConfigMap than the bundle has.
fn reference(job: Item<'_>, place: &str, name: &str, wanted: Item<'_>, findings: &mut Findings) {
    let what = format!("pods mount `{name}`, but the bundle has `{}`: they wait in ContainerCreating", wanted.name);
    let cause = Cause::renamed(&Renaming::between(name, wanted.name));
    findings.error(codes::BROKEN_REFERENCE, job, &format!("{place}/configMap/name"), &what, &cause);
}

/// A view that is copied needs its init container. A mirror of its image is allowed; `-v` tells of it.
fn view(cluster: &Cluster<'_>, findings: &mut Findings) {
    let job = cluster.job;
    let Some(script) = cluster.scripts.and_then(|scripts| scripts.file(INIT)) else { return };
    if !script.contains("/opt/view/bin/flux") {
        return;
    }
    let at = "/spec/template/spec/initContainers";
    let containers = job.list(at);
    let Some(index) = containers.iter().position(|container| script_of(container) == Some(INIT)) else {
        let what = "no init container brings the view: there is no Flux in the pods";
        return findings.error(codes::ENTRYPOINT, job, at, what, &Cause::Patch);
    };
    let image = containers.get(index).and_then(|container| text(container, "image")).unwrap_or_default();
    if !image.is_empty() && !script.contains(image) {
        let what = format!("the view is `{image}` now; it has to hold /opt/view and to fit the application image");
        findings.note(codes::OTHER_VIEW, job, &format!("{at}/{index}/image"), &what);
    }
}

fn text<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value.get(key)?.as_str()
}

fn text_at<'v>(value: &'v Value, pointer: &str) -> Option<&'v str> {
    value.pointer(pointer)?.as_str()
}
