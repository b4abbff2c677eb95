//! The pure pipeline: documents and settings in, objects and diagnostics out. No files, no clock, no environment.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use crate::diag::codes::model as codes;
use crate::diag::{Diagnostic, Diagnostics, FileId, Span};
use crate::flux::certificate::Certificate;
use crate::model::settings::Settings;
use crate::model::{self, CertificateNeed, Cluster, Context};
use crate::object::Object;
use crate::render::{self, Templates};
use crate::rules::spec::RuleContext;
use crate::rules::{self};
use crate::spec::minicluster::List;
use crate::spec::project::{Patch, Project};
use crate::spec::{Documents, MiniCluster, Spanned};

/// From how many clusters on several threads are worth their start.
const PARALLEL: usize = 8;

/// Everything that a compilation depends on.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// MiniClusters and companions as read.
    pub documents: &'a Documents,
    /// The project file, if there is one.
    pub project: Option<&'a Project>,
    /// Settings from the command line.
    pub set: &'a [(String, String)],
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
}

/// The result of a compilation. The clusters are only to be used when no diagnostic is an error.
#[derive(Debug, Clone, Default)]
pub struct Compiled {
    /// In the order of the documents; those with errors are left out.
    pub clusters: Vec<CompiledCluster>,
    /// Every problem and remark.
    pub diagnostics: Diagnostics,
}

/// Which certificates the documents need, so that missing ones can be made or reported before compiling.
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
    let results: Vec<_> = if specs.len() < PARALLEL {
        specs.iter().map(compile_one).collect()
    } else {
        specs.par_iter().map(compile_one).collect()
    };
    let mut compiled = Compiled { clusters: Vec::new(), diagnostics: document_rules(input) };
    let mut used = BTreeSet::new();
    for (cluster, used_patches, diagnostics) in results {
        compiled.clusters.extend(cluster);
        compiled.diagnostics.extend(diagnostics);
        used.extend(used_patches);
    }
    if compiled.clusters.len() == specs.len() {
        compiled.diagnostics.extend(unused_patches(input.project, &used));
    }
    compiled
}

/// Rules that look at more than one document, and at companions.
fn document_rules(input: &Input<'_>) -> Diagnostics {
    let settings = model::project_settings(input.project, input.set);
    let mut found = rules::documents::check(input.documents, settings.namespace.as_deref().unwrap_or_default());
    for companion in &input.documents.companions {
        found.extend(rules::companion::check(companion));
    }
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
    let context = RuleContext { kubernetes: settings.kubernetes_version, name_suffix: 0, flux_version: settings.flux_version };
    diagnostics.extend(rules::spec::check(spec, &context));
    if diagnostics.has_errors() {
        return (None, used, diagnostics);
    }
    let certificate = model::certificate_need(spec, &settings);
    let inline_certificate = inline_certificate(spec);
    let stored = input.public_keys.get(&certificate).map(String::as_str);
    let public_key = inline_certificate.as_ref().map(Certificate::public_key).or(stored);
    let (cluster, remarks) = model::resolve(spec, &Context { settings: &settings, public_key });
    diagnostics.extend(remarks);
    if diagnostics.has_errors() {
        return (None, used, diagnostics);
    }
    let mut objects = match render::render(&cluster, templates) {
        Ok(objects) => objects,
        Err(error) => {
            diagnostics.push(Diagnostic::error(codes::RENDER_BUG, spec.span, error.to_string()));
            return (None, used, diagnostics);
        }
    };
    if let Some(patches) = input.project.and_then(|p| p.patches.as_ref()) {
        apply_patches(&cluster, &mut objects, patches, &mut used, &mut diagnostics);
    }
    render::finish(&mut objects);
    diagnostics.extend(object_rules(spec, &objects, &settings, !used.is_empty()));
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
    };
    (Some(compiled), used, diagnostics)
}

/// What an API server would refuse in the objects, whoever is to blame: a patch, or a case that the rules on specs miss.
fn object_rules(spec: &MiniCluster, objects: &[Object], settings: &Settings, patched: bool) -> Diagnostics {
    let span = spec.metadata.name.as_ref().map_or(spec.span, |name| name.span);
    let help = if patched { "look at the patches of the project file" } else { "look at the field that it comes from" };
    let problems = rules::object::check(objects, settings.kubernetes_version).into_iter();
    problems
        .map(|problem| {
            let message = format!("{} {}: {} {}", problem.kind, problem.name, problem.path, problem.message);
            Diagnostic::error(codes::REFUSED_OBJECT, span, message).help(help)
        })
        .collect()
}

/// `flux.curveCert`; the rules have checked that it can be read.
fn inline_certificate(spec: &MiniCluster) -> Option<Certificate> {
    let text = spec.spec.flux.as_ref()?.curve_cert.as_ref()?;
    Certificate::parse(text.value.as_bytes()).ok()
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
    let qualified = cluster.namespace.as_ref().map(|namespace| format!("{namespace}/{}", cluster.name));
    let this_cluster = target
        .cluster
        .as_ref()
        .is_none_or(|wanted| wanted.value == cluster.name || Some(&wanted.value) == qualified.as_ref());
    this_cluster && is(&target.kind, object.kind()) && is(&target.name, object.name())
}

fn unused_patches(project: Option<&Project>, used: &BTreeSet<usize>) -> Diagnostics {
    let patches = project.and_then(|p| p.patches.as_ref()).into_iter().flat_map(|p| p.value.iter());
    let unused = patches.enumerate().filter(|(index, _)| !used.contains(index)).map(|(_, patch)| {
        Diagnostic::warning(codes::PATCH_UNUSED, patch.span, "no rendered object matches this patch")
            .help("its target names cluster, kind and name; names are those before the hash suffix")
    });
    unused.collect()
}
