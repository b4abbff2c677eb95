//! `flux-gen publish`.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use rayon::prelude::*;

use super::bundles::{self, EXPLAIN, Use, file_error};
use super::epoch::source_date_epoch;
use super::error::CommandError;
use super::exit::Exit;
use super::pipeline::{InputArgs, key_value};
use super::progress::Progress;
use super::project::Found;
use super::registry::{RegistryArgs, failed};
use super::report::plural;
use super::sources::shown;
use super::ui::Ui;
use crate::airgap::artifact::{self, Files, Form};
use crate::airgap::plain::{may_hold_objects, plain_secrets};
use crate::bundle::check::check;
use crate::bundle::files::Disk;
use crate::bundle::gitops::has_password;
use crate::diag::{Diagnostics, SourceMap};
use crate::oci::descriptor::REF_NAME;
use crate::oci::document::Index;
use crate::oci::layout::{Layout, LayoutWriter, WriteOptions};
use crate::oci::registry::Repository;
use crate::oci::transfer::{self, Tagged};
use crate::oci::{Descriptor, Reference};
use crate::view::build::rfc3339;

/// Publish the bundles as one artifact in a registry, for Argo CD and Flux CD.
///
/// The output folder becomes an OCI artifact with one layer, whose digest depends on nothing but the files. It has to be what
/// the specs give, as `check` tells. What the registry has is not sent again, and tags are moved last. Prints the artifact's
/// name with its digest; `gitops` writes what the tools need to find it.
#[derive(Debug, Args)]
pub(crate) struct PublishArgs {
    /// Where to: `oci://REGISTRY/NAME[:TAG]` [default tag: latest].
    #[arg(value_name = "ARTIFACT", value_parser = target, help_heading = "Arguments")]
    artifact: Reference,
    /// Folder to publish [default: `output` of the project file, else generated].
    #[arg(value_name = "DIR", help_heading = "Arguments")]
    folder: Option<PathBuf>,
    /// More tags for the same artifact. May be repeated.
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// Media types of the artifact.
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    media_type: MediaType,
    /// Version of the source that the bundles were made from; Flux CD's own way is `main@sha1:COMMIT`.
    #[arg(long, value_name = "TEXT")]
    revision: Option<String>,
    /// Address of the source that the bundles were made from.
    #[arg(long, value_name = "URL")]
    source: Option<String>,
    /// When it was made, as the tools show it (RFC 3339) [default: SOURCE_DATE_EPOCH, else not said].
    #[arg(long, value_name = "TIME")]
    created: Option<String>,
    /// Another annotation of the artifact. May be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = annotation)]
    annotation: Vec<(String, String)>,
    /// Publish plain Secrets too.
    #[arg(long)]
    include_secrets: bool,
    /// Do not compare the folder with the specs first.
    #[arg(long)]
    no_check: bool,
    /// Write an OCI layout to this folder instead of pushing.
    #[arg(long, value_name = "LAYOUT")]
    layout: Option<PathBuf>,
    /// Repository of the same registry that may have the layer already. May be repeated.
    #[arg(long, value_name = "NAME")]
    mount_from: Vec<String>,
    /// Project file [default: flux-gen.yaml, if it is there].
    #[arg(long, value_name = "FILE")]
    project: Option<PathBuf>,
    /// Choose a setting for the comparison, as with `check`. May be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = key_value)]
    set: Vec<(String, String)>,
    #[command(flatten)]
    registry: RegistryArgs,
}

/// Media types of an artifact, as words of the command line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum MediaType {
    /// An OCI layer: Argo CD allows it by default, and Flux CD takes it.
    #[default]
    Argocd,
    /// Those of `flux push artifact`: Flux CD only.
    Flux,
}

fn target(text: &str) -> Result<Reference, String> {
    let name = text.strip_prefix("oci://").ok_or("write oci://REGISTRY/NAME, with a tag if you like")?;
    let reference: Reference = name.parse().map_err(|e: crate::oci::Error| e.to_string())?;
    match reference.digest() {
        Some(_) => Err("the digest follows from the files: name a tag".to_owned()),
        None => Ok(reference),
    }
}

fn annotation(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}

pub(crate) fn run(args: &PublishArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let tags = tags(args)?;
    let annotations = annotations(args)?;
    let folder = if args.no_check { output(args)? } else { compared(args, ui)? };
    let folder = match folder {
        Ok(folder) => folder,
        Err(exit) => return Ok(exit),
    };
    let files = files(args, &folder, ui)?;
    // Made beside the layout, or in a folder that vanishes: the artifact is as small as its bundles.
    let scratch = tempfile::tempdir().map_err(|e| CommandError::file("make", Path::new("a temporary folder"), &e))?;
    let place = args.layout.clone().unwrap_or_else(|| scratch.path().join("layout"));
    let (layout, root) = write(args, &files, &annotations, &tags, &place)?;
    let name = args.artifact.name();
    let made = format!("{}, {} bytes", plural(files.count(), "file"), size(&layout, &root)?);
    if args.layout.is_some() {
        ui.status(&format!("{}: {made}", shown(&place)));
    } else {
        let target = Repository::to_push(&args.registry.client()?, &args.artifact, &args.mount_from);
        let images = [Tagged { root: root.clone(), tags: tags.clone() }];
        let options = args.registry.transfer(&args.mount_from);
        let summary =
            transfer::push(&layout, &images, &target, &options, &Progress::new(ui)).map_err(|e| failed(&e))?;
        ui.status(&format!(
            "{name}: {made}; {} sent, {} there already; tagged {}",
            plural(summary.moved, "blob"),
            summary.present + summary.mounted,
            tags.join(", ")
        ));
    }
    ui.print(format!("{name}@{}\n", root.digest).as_bytes())?;
    Ok(Exit::Ok)
}

/// The tag of the reference and the others, each once.
fn tags(args: &PublishArgs) -> Result<Vec<String>, CommandError> {
    let mut tags: Vec<String> = args.artifact.tag_or_latest().map(str::to_owned).into_iter().collect();
    for tag in &args.tag {
        args.artifact.with_tag(tag).map_err(|e| CommandError::usage(e.to_string()))?;
        if !tags.contains(tag) {
            tags.push(tag.clone());
        }
    }
    Ok(tags)
}

/// What Argo CD and Flux CD show of the artifact (OCI image specification, `annotations.md`).
fn annotations(args: &PublishArgs) -> Result<BTreeMap<String, String>, CommandError> {
    let created = match &args.created {
        Some(time) => Some(time.clone()),
        None => source_date_epoch()?.map(rfc3339),
    };
    let known = [("revision", args.revision.clone()), ("source", args.source.clone()), ("created", created)];
    let own = known.into_iter().filter_map(|(key, value)| Some((format!("org.opencontainers.image.{key}"), value?)));
    let all: BTreeMap<String, String> = own.chain(args.annotation.iter().cloned()).collect();
    // CI systems put tokens into the addresses of their clones, and annotations are read by everybody. The value is not shown.
    match all.iter().find(|(_, value)| has_password(value)) {
        None => Ok(all),
        Some((key, _)) => {
            Err(CommandError::usage(format!("the address in {key} holds a password; nothing was published"))
                .help("give it without `user:password@`"))
        }
    }
}

/// The folder, when nobody wants to know whether it is up to date.
fn output(args: &PublishArgs) -> Result<Result<PathBuf, Exit>, CommandError> {
    if let Some(folder) = &args.folder {
        return Ok(Ok(folder.clone()));
    }
    let (mut sources, mut problems) = (SourceMap::new(), Diagnostics::new());
    let project = Found::find(args.project.as_deref(), &mut sources, &mut problems)?;
    Ok(Ok(project.output(None)))
}

/// The folder, if it is what the specs give.
fn compared(args: &PublishArgs, ui: &Ui) -> Result<Result<PathBuf, Exit>, CommandError> {
    let input = InputArgs::of_project(args.project.clone(), args.set.clone());
    let rendered = bundles::render(&input, args.folder.as_deref(), Use::Compare, ui)?;
    let output = rendered.inputs.output.clone();
    let report = check(&Disk, &output, &rendered.tree, &rendered.kept).map_err(|e| file_error(&e))?;
    if !report.has_drift() {
        rendered.leave();
        return Ok(Ok(output));
    }
    for change in &report.changes {
        ui.change(change.kind, &shown(&output.join(&change.path)));
    }
    let exit = bundles::drift(&rendered, &report, ui);
    ui.failure("nothing was published", Some("--no-check publishes the folder as it is"));
    rendered.leave();
    Ok(Err(exit))
}

/// Finds the files, and stops at those that may not or cannot be published.
fn files(args: &PublishArgs, folder: &Path, ui: &Ui) -> Result<Files, CommandError> {
    let (files, mut problems) = Files::find(folder).map_err(|e| failed(&e))?;
    if args.media_type == MediaType::Argocd {
        problems.extend(files.too_large().into_iter().collect());
    }
    if !args.include_secrets && !problems.has_errors() {
        let objects: Vec<(&str, &Path)> = files.paths().filter(|(name, _)| may_hold_objects(name)).collect();
        let found: Vec<Diagnostics> =
            objects.par_iter().map(|(_, path)| secrets_of(path)).collect::<Result<_, CommandError>>()?;
        found.into_iter().for_each(|more| problems.extend(more));
    }
    let tally = ui.diagnostics([], &[], problems);
    if tally.errors > 0 {
        ui.failure(&format!("found {}; nothing was published", tally.words()), Some(EXPLAIN));
        return Err(CommandError::reported());
    }
    Ok(files)
}

fn secrets_of(path: &Path) -> Result<Diagnostics, CommandError> {
    let bytes = fs::read(path).map_err(|e| CommandError::file("read", path, &e))?;
    Ok(plain_secrets(&shown(path), bytes))
}

/// Writes the artifact into a layout that has it under its tags.
fn write(
    args: &PublishArgs,
    files: &Files,
    annotations: &BTreeMap<String, String>,
    tags: &[String],
    place: &Path,
) -> Result<(Layout, Descriptor), CommandError> {
    let error = |e| failed(&e);
    let durable = args.layout.is_some();
    let writer = LayoutWriter::create(place, WriteOptions { durable }).map_err(error)?;
    let form = match args.media_type {
        MediaType::Argocd => Form::Both,
        MediaType::Flux => Form::FluxCd,
    };
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let root = artifact::write(files, form, annotations, threads, &writer).map_err(error)?;
    let named = |tag: &String| root.clone().annotation(REF_NAME, tag.as_str());
    // What else an existing layout has stays in it; a tag names one thing.
    let others =
        writer.present().manifests.iter().filter(|d| !d.ref_name().is_some_and(|n| tags.iter().any(|t| t == n)));
    let index = Index::new(others.cloned().chain(tags.iter().map(named)).collect());
    Ok((writer.finish(&index).map_err(error)?, root))
}

/// Bytes of everything that the artifact is made of.
fn size(layout: &Layout, root: &Descriptor) -> Result<u64, CommandError> {
    let graph = crate::oci::graph::Graph::walk(layout, std::slice::from_ref(root)).map_err(|e| failed(&e))?;
    Ok(graph.blobs.iter().map(|blob| blob.size).sum())
}
