//! The pure pipeline: documents and settings in, objects and diagnostics out. No files, no clock, no environment.

use std::collections::{BTreeMap, BTreeSet};

use crate::diag::codes::{model as codes, queue as queue_codes};
use crate::diag::{Diagnostic, Diagnostics, FileId, Span};
use crate::flux::certificate::Certificate;
use crate::model::rollout::JobStrategy;
use crate::model::settings::{Settings, Strategy};
use crate::model::{self, CertificateNeed, Cluster, Context};
use crate::object::{self, Object};
use crate::parallel;
use crate::render::{self, Templates};
use crate::rules::spec::RuleContext;
use crate::rules::{self};
use crate::spec::minicluster::List;
use crate::spec::project::{Patch, Project};
use crate::spec::{Documents, MiniCluster, Spanned};

/// Bytes that the strategy `run-once` adds to names: a hyphen and ten characters.
const RUN_SUFFIX: usize = 11;

/// Everything that a compilation depends on.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// MiniClusters and companions as read.
    pub documents: &'a Documents,
    /// The project file, if there is one.
    pub project: Option<&'a Project>,
    /// Settings from the command line.
    pub set: &'a [(String, String)],
    /// Whether the documents are all of the project: then what the project file says of other clusters is a mistake.
    pub is_whole: bool,
    /// Public keys (Z85) of the certificates that are known.
    pub public_keys: &'a BTreeMap<CertificateNeed, String>,
}

/// One MiniCluster, compiled.
#[derive(Debug, Clone)]
pub struct CompiledCluster {
    /// The resolved model that the objects were made from.
    pub cluster: Cluster,
    /// Its settings.
    pub settings: Settings,
    /// Whose certificate it uses.
    pub certificate: CertificateNeed,
    /// The certificate that stands in the spec (`flux.curveCert`), which then is the one to use.
    pub inline_certificate: Option<Certificate>,
    /// Its objects but the Secret, with final names, in the order in which they are applied.
    pub objects: Vec<Object>,
    /// The text it came from.
    pub file: FileId,
    /// Its document.
    pub span: Span,
    /// Its name in it.
    pub name_span: Span,
}

/// The result of a compilation. The clusters are only to be used when no diagnostic is an error.
#[derive(Debug, Clone, Default)]
pub struct Compiled {
    /// In the order of the documents; those with errors are left out.
    pub clusters: Vec<CompiledCluster>,
    /// Every problem and remark.
    pub diagnostics: Diagnostics,
}

/// Which certificates the documents need beside those that stand in them.
#[must_use]
pub fn certificate_needs(input: &Input<'_>) -> BTreeSet<CertificateNeed> {
    let ignored = &mut Diagnostics::new();
    let without = input.documents.miniclusters.iter().filter(|spec| inline_certificate(spec).is_none());
    let needs = without.map(|spec| {
        let settings = model::effective_settings(spec, input.project, input.set, ignored);
        model::certificate_need(spec, &settings)
    });
    needs.collect()
}

/// Compiles every MiniCluster: rules, resolve, render, patch, hash. The order of the documents is the order of the result,
/// however many threads there are.
#[must_use]
pub fn compile(input: &Input<'_>) -> Compiled {
    let templates = match Templates::new() {
        Ok(templates) => templates,
        Err(error) => return bug(&error),
    };
    let compile_one = |spec: &MiniCluster| compile_cluster(spec, input, &templates);
    let specs = &input.documents.miniclusters;
    let mut compiled = Compiled { clusters: Vec::new(), diagnostics: document_rules(input) };
    let mut used = BTreeSet::new();
    for (cluster, used_patches, diagnostics) in parallel::map(specs, compile_one) {
        compiled.clusters.extend(cluster);
        compiled.diagnostics.extend(diagnostics);
        used.extend(used_patches);
    }
    compiled.diagnostics.extend(capacity_rules(input, &compiled.clusters));
    if input.is_whole {
        compiled.diagnostics.extend(model::unused_overrides(specs, input.project, input.set));
    }
    if input.is_whole && compiled.clusters.len() == specs.len() {
        compiled.diagnostics.extend(unused_patches(input.project, &used));
    }
    compiled
}

/// Rules that look at more than one document, and at companions.
fn document_rules(input: &Input<'_>) -> Diagnostics {
    let settings = model::project_settings(input.project, input.set);
    let named_alone = |spec: &MiniCluster| {
        let settings = model::effective_settings(spec, input.project, input.set, &mut Diagnostics::new());
        is_run_once(&settings)
    };
    let namespace = settings.namespace.as_deref().unwrap_or_default();
    let mut found = rules::documents::check(input.documents, namespace, &named_alone);
    for companion in &input.documents.companions {
        found.extend(rules::companion::check(companion));
    }
    found
}

/// Whether the clusters fit into what the project file says there is.
fn capacity_rules(input: &Input<'_>, clusters: &[CompiledCluster]) -> Diagnostics {
    let mut found = Diagnostics::new();
    let Some(written) = input.project.and_then(|project| project.capacity.as_ref()) else { return found };
    let capacity = model::capacity::resolve(written, &mut found);
    if found.has_errors() {
        return found;
    }
    let demands: Vec<rules::capacity::Demand> = clusters
        .iter()
        .filter_map(|compiled| {
            let job = compiled.objects.iter().find_map(|object| match object {
                Object::Job(job) => Some(job),
                _ => None,
            })?;
            let CompiledCluster { cluster, settings, name_span, .. } = compiled;
            rules::capacity::Demand::of(cluster, job, settings.cores, *name_span)
        })
        .collect();
    found.extend(rules::capacity::check(&capacity, &demands));
    found
}

fn bug(error: &render::RenderError) -> Compiled {
    let diagnostic = Diagnostic::global_error(codes::RENDER_BUG, error.to_string());
    Compiled { clusters: Vec::new(), diagnostics: [diagnostic].into_iter().collect() }
}

type One = (Option<CompiledCluster>, BTreeSet<usize>, Diagnostics);

fn compile_cluster(spec: &MiniCluster, input: &Input<'_>, templates: &Templates) -> One {
    let mut diagnostics = Diagnostics::new();
    let mut used = BTreeSet::new();
    let settings = model::effective_settings(spec, input.project, input.set, &mut diagnostics);
    let context = RuleContext {
        kubernetes: settings.kubernetes_version,
        name_suffix: if is_run_once(&settings) { RUN_SUFFIX } else { 0 },
        flux_version: settings.flux_version,
        pod_security: settings.pod_security,
    };
    diagnostics.extend(rules::spec::check(spec, &context));
    if diagnostics.has_errors() || !is_whole(spec) {
        return (None, used, diagnostics);
    }
    let certificate = model::certificate_need(spec, &settings);
    let inline_certificate = inline_certificate(spec);
    let stored = input.public_keys.get(&certificate).map(String::as_str);
    let public_key = inline_certificate.as_ref().map(Certificate::public_key).or(stored);
    let patches = patches_of(spec, input.project, &settings);
    let (views, images) = (&input.documents.views, &input.documents.images);
    let (cluster, remarks) =
        model::resolve(spec, &Context { settings: &settings, public_key, patches: &patches, views, images });
    diagnostics.extend(remarks);
    if diagnostics.has_errors() {
        return (None, used, diagnostics);
    }
    let rendered = render::render(&cluster, templates)
        .map_err(|error| Diagnostic::error(codes::RENDER_BUG, spec.span, error.to_string()));
    let mut objects = match rendered {
        Ok(objects) => patched(&cluster, objects, input, &mut used, &mut diagnostics),
        Err(bug) => {
            diagnostics.push(bug);
            return (None, used, diagnostics);
        }
    };
    render::finish(&mut objects);
    render::mark(&mut objects, &cluster, origin_of_secret(&settings, certificate.name == cluster.name));
    diagnostics.extend(object_rules(spec, &objects, &settings, !used.is_empty()));
    diagnostics.extend(rules::strategy::check(&cluster.rollout, &objects, name_span(spec)));
    diagnostics.extend(rules::fit::check(&cluster, &input.documents.facts, views, image_span(spec)));
    if diagnostics.has_errors() {
        return (None, used, diagnostics);
    }
    let compiled = CompiledCluster {
        cluster,
        settings,
        certificate,
        inline_certificate,
        objects,
        file: spec.span.file,
        span: spec.span,
        name_span: spec.metadata.name.as_ref().map_or(spec.span, |name| name.span),
    };
    (Some(compiled), used, diagnostics)
}

/// Whether what every object is made of could be read. Reading has reported what is missing, and objects without it would
/// only say the same again in other words.
fn is_whole(spec: &MiniCluster) -> bool {
    spec.metadata.name.is_some() && spec.spec.containers.is_some()
}

/// What an API server would refuse in the objects, whoever is to blame: a patch, or a case that the rules on specs miss.
fn object_rules(spec: &MiniCluster, objects: &[Object], settings: &Settings, patched: bool) -> Diagnostics {
    let span = name_span(spec);
    let help = if patched { "look at the patches of the project file" } else { "look at the field that it comes from" };
    let target = settings.kubernetes_version;
    let refused = rules::object::check(objects, target).into_iter().map(|problem| (codes::REFUSED_OBJECT, problem));
    let insecure = rules::object::pod_security(objects, settings.pod_security, target);
    let insecure = insecure.into_iter().map(|problem| (queue_codes::POD_SECURITY, problem));
    refused
        .chain(insecure)
        .map(|(code, problem)| {
            let message = format!("{} {}: {} {}", problem.kind, problem.name, problem.path, problem.message);
            Diagnostic::error(code, span, message).help(help)
        })
        .collect()
}

fn is_run_once(settings: &Settings) -> bool {
    settings.strategy == Strategy::Chosen(JobStrategy::RunOnce)
}

fn name_span(spec: &MiniCluster) -> Span {
    spec.metadata.name.as_ref().map_or(spec.span, |name| name.span)
}

/// Where the image is written in which Flux runs.
fn image_span(spec: &MiniCluster) -> Span {
    let containers = spec.spec.containers.iter().flat_map(|list| &list.value);
    let runs_flux = |run: &Option<Spanned<bool>>| run.as_ref().is_some_and(|run| run.value);
    let mut all: Vec<_> = containers.collect();
    if all.len() > 1 {
        all.retain(|container| runs_flux(&container.run_flux));
    }
    all.first().and_then(|container| container.image.as_ref()).map_or_else(|| name_span(spec), |image| image.span)
}

/// The setting `secrets`, as far as it is about this bundle: the Secret of a bursting group is in its main cluster's.
fn origin_of_secret(settings: &Settings, is_owner: bool) -> &str {
    let chosen = settings.origins().find(|(key, _, _)| *key == "secrets").map(|(_, value, _)| value);
    chosen.filter(|_| is_owner).unwrap_or("existing")
}

/// The certificate that stands in a spec (`flux.curveCert`), if it can be read; the rules report one that cannot.
#[must_use]
pub fn inline_certificate(spec: &MiniCluster) -> Option<Certificate> {
    let text = spec.spec.flux.as_ref()?.curve_cert.as_ref()?;
    Certificate::parse(text.value.as_bytes()).ok()
}

/// The objects as the project's patches want them, with the digests of images that patches brought in.
fn patched(
    cluster: &Cluster,
    mut objects: Vec<Object>,
    input: &Input<'_>,
    used: &mut BTreeSet<usize>,
    diagnostics: &mut Diagnostics,
) -> Vec<Object> {
    if let Some(patches) = input.project.and_then(|project| project.patches.as_ref()) {
        apply_patches(cluster, &mut objects, patches, used, diagnostics);
    }
    for object in &mut objects {
        object::images::visit(object, &mut |_, name| input.documents.images.get(name).cloned());
    }
    objects
}

/// Applies every patch that is for this cluster, in the order of the project file.
fn apply_patches(
    cluster: &Cluster,
    objects: &mut [Object],
    patches: &Spanned<List<Patch>>,
    used: &mut BTreeSet<usize>,
    diagnostics: &mut Diagnostics,
) {
    for (index, patch) in patches.iter().enumerate() {
        let Some(body) = patch.patch.as_ref() else { continue };
        for object in objects.iter_mut().filter(|object| is_target(patch, cluster, object)) {
            used.insert(index);
            match render::apply_patch(object, &body.value.0) {
                Ok(patched) => *object = patched,
                Err(error) => {
                    diagnostics.push(Diagnostic::error(codes::PATCH_FAILED, body.span, error.to_string()));
                }
            }
        }
    }
}

fn is_target(patch: &Patch, cluster: &Cluster, object: &Object) -> bool {
    let Some(target) = patch.target.as_ref() else { return true };
    let is = |wanted: &Option<Spanned<String>>, actual: &str| wanted.as_ref().is_none_or(|w| w.value == actual);
    is_for(patch, &cluster.minicluster, cluster.namespace.as_deref())
        && is(&target.kind, object.kind())
        && is(&target.name, &cluster.without_run(object.name()))
}

/// Whether a patch is for a cluster, whichever of its objects it is for.
fn is_for(patch: &Patch, name: &str, namespace: Option<&str>) -> bool {
    let Some(wanted) = patch.target.as_ref().and_then(|target| target.cluster.as_ref()) else { return true };
    wanted.value == name || namespace.is_some_and(|namespace| wanted.value == format!("{namespace}/{name}"))
}

/// What patches make of a cluster is part of what a run depends on.
fn patches_of<'a>(spec: &MiniCluster, project: Option<&'a Project>, settings: &Settings) -> Vec<&'a serde_json::Value> {
    let written = |value: &Option<Spanned<String>>| value.as_ref().map(|text| text.value.clone());
    let name = written(&spec.metadata.name).unwrap_or_default();
    let namespace = written(&spec.metadata.namespace).or_else(|| settings.namespace.clone());
    let patches = project.into_iter().flat_map(Project::patches);
    let own = patches.filter(|patch| is_for(patch, &name, namespace.as_deref()));
    own.filter_map(|patch| patch.patch.as_ref()).map(|body| &body.value.0).collect()
}

fn unused_patches(project: Option<&Project>, used: &BTreeSet<usize>) -> Diagnostics {
    let patches = project.and_then(|p| p.patches.as_ref()).into_iter().flat_map(|p| p.value.iter());
    let unused = patches.enumerate().filter(|(index, _)| !used.contains(index)).map(|(_, patch)| {
        Diagnostic::warning(codes::PATCH_UNUSED, patch.span, "no rendered object matches this patch")
            .help("its target names cluster, kind and name; names are those before the hash suffix")
    });
    unused.collect()
}
