//! Which settings a cluster has: the layers, from the project's to the command line's.

use super::written::text;
use crate::diag::codes::project as codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::model::settings::{ANNOTATION_PREFIX, Layers, Origin, Settings};
use crate::spec::decode::nearest;
use crate::spec::project::{ClusterOverride, Project};
use crate::spec::{Entry, MiniCluster};

/// The settings of one MiniCluster: project, its overrides there, its annotations, then `set` from the command line.
#[must_use]
pub fn effective_settings(
    spec: &MiniCluster,
    project: Option<&Project>,
    set: &[(String, String)],
    diagnostics: &mut Diagnostics,
) -> Settings {
    let mut layers = of_project(project, diagnostics);
    let own = overrides(project).filter(|entry| is_for(entry, spec, || project_settings(project, set).namespace));
    for entry in own.flat_map(|cluster| cluster.value.settings.iter()).flat_map(|settings| settings.value.iter()) {
        layers.add(Origin::ClusterOverride, &entry.key, &entry.value.value.0, Some(entry.value.span), diagnostics);
    }
    for entry in spec.metadata.annotations.iter().flat_map(|a| a.value.iter()) {
        if let Some(key) = entry.key.strip_prefix(ANNOTATION_PREFIX) {
            layers.add(Origin::Annotation, key, &entry.value, Some(entry.key.span), diagnostics);
        }
    }
    with_command_line(layers, set, diagnostics)
}

/// The settings of the whole project, as they are for a cluster that overrides nothing. Mistakes in them are reported by
/// [`effective_settings`].
#[must_use]
pub fn project_settings(project: Option<&Project>, set: &[(String, String)]) -> Settings {
    checked_project_settings(project, set, &mut Diagnostics::new())
}

/// As [`project_settings`], with every mistake in them, at its place.
pub fn checked_project_settings(
    project: Option<&Project>,
    set: &[(String, String)],
    diagnostics: &mut Diagnostics,
) -> Settings {
    let layers = of_project(project, diagnostics);
    with_command_line(layers, set, diagnostics)
}

/// Warns of `clusters.<name>` of a project file where none of `specs`, which are all of the project, is called that.
#[must_use]
pub fn unused_overrides(specs: &[MiniCluster], project: Option<&Project>, set: &[(String, String)]) -> Diagnostics {
    let namespace = || project_settings(project, set).namespace;
    let unused = overrides(project).filter(|entry| !specs.iter().any(|spec| is_for(entry, spec, namespace)));
    unused.map(|entry| no_such_cluster(entry, specs)).collect()
}

fn no_such_cluster(entry: &Entry<ClusterOverride>, specs: &[MiniCluster]) -> Diagnostic {
    let written = &entry.key.value;
    let names: Vec<&str> = specs.iter().filter_map(|spec| text(&spec.metadata.name)).collect();
    let name = written.rsplit('/').next().unwrap_or(written);
    let help = match nearest(name, &names) {
        Some(near) if near == name => format!("there is a `{near}`, but in another namespace"),
        Some(near) => format!("did you mean `{near}`?"),
        None => "a cluster is called by its `name`, or by `namespace/name`".to_owned(),
    };
    let message = format!("no MiniCluster of this project is called `{written}`, so these settings are nobody's");
    Diagnostic::warning(codes::NO_SUCH_CLUSTER, entry.key.span, message).help(help)
}

fn overrides(project: Option<&Project>) -> impl Iterator<Item = &Entry<ClusterOverride>> {
    project.and_then(|project| project.clusters.as_ref()).into_iter().flat_map(|clusters| clusters.value.iter())
}

/// Whether an override is for a cluster. `namespace` is asked for that of documents without one.
fn is_for(entry: &Entry<ClusterOverride>, spec: &MiniCluster, namespace: impl Fn() -> Option<String>) -> bool {
    let name = text(&spec.metadata.name).unwrap_or_default();
    match entry.key.value.split_once('/') {
        None => entry.key.value == name,
        Some((wanted, wanted_name)) if wanted_name == name => {
            text(&spec.metadata.namespace).map_or_else(|| namespace().as_deref() == Some(wanted), |own| own == wanted)
        }
        Some(_) => false,
    }
}

fn of_project(project: Option<&Project>, diagnostics: &mut Diagnostics) -> Layers {
    let mut layers = Layers::new();
    for entry in project.and_then(|p| p.settings.as_ref()).iter().flat_map(|s| s.value.iter()) {
        layers.add(Origin::Project, &entry.key, &entry.value.value.0, Some(entry.value.span), diagnostics);
    }
    layers
}

fn with_command_line(mut layers: Layers, set: &[(String, String)], diagnostics: &mut Diagnostics) -> Settings {
    for (key, value) in set {
        layers.add(Origin::CommandLine, key, value, None, diagnostics);
    }
    layers.resolve(diagnostics)
}
