//! `flux-gen view push`.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use super::find::{ProjectArgs, Views};
use super::open::{Opener, RegistryArgs, command_error, images};
use super::pin;
use crate::cli::error::CommandError;
use crate::cli::exit::Exit;
use crate::cli::progress::Progress;
use crate::cli::report::plural;
use crate::cli::ui::Ui;
use crate::oci::document::{Manifest, empty_object};
use crate::oci::layout::{Layout, LayoutWriter, Limits, WriteOptions};
use crate::oci::registry::Repository;
use crate::oci::transfer::{self, Tagged};
use crate::oci::{Descriptor, Reference, media};
use crate::view::plan::Plan;

/// Push a built view, and record its digest for bundles.
///
/// What the registry has is not sent again. Tags are moved last, so whoever asks for one gets a whole image. The digest goes to
/// views/NAME/pushed.json, which belongs into git: `flux.container.image: view:NAME` of a MiniCluster stands for it. What was
/// built for some of the view's platforms is pushed by digest alone, for `view index` to join.
#[derive(Debug, Args)]
pub(crate) struct PushArgs {
    /// Name of the view.
    #[arg(value_name = "NAME")]
    name: String,
    /// Repository to push to [default: `repository` of the view].
    #[arg(long, value_name = "REPOSITORY")]
    to: Option<Reference>,
    /// Layout or archive to push [default: what `view build` made].
    #[arg(long, value_name = "LAYOUT")]
    layout: Option<PathBuf>,
    /// Repository of the same registry that may have layers already. May be repeated.
    #[arg(long, value_name = "NAME")]
    mount_from: Vec<String>,
    /// SBOM (SPDX or CycloneDX, JSON) to attach to the image.
    #[arg(long, value_name = "FILE")]
    sbom: Option<PathBuf>,
    /// Do not record the digest.
    #[arg(long)]
    no_record: bool,
    #[command(flatten)]
    project: ProjectArgs,
    #[command(flatten)]
    registry: RegistryArgs,
}

pub(super) fn run(args: &PushArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let mut views = Views::open(&args.project, ui)?;
    let plan = views.require(&args.name, ui)?;
    let reference = repository(args.to.as_ref().or(plan.repository.as_ref()), &args.name)?;
    let path = args.layout.clone().unwrap_or_else(|| super::build::layout_of(&views, &args.name));
    if !path.exists() {
        let message = format!("the view is not built: there is no {}", path.display());
        return Err(CommandError::operation(message).help(format!("run `flux-gen view build {}`", args.name)));
    }
    let failed = |error| command_error(&error);
    let mut layout = Layout::open(&path, &Limits::default()).map_err(failed)?;
    let root = index_of(&layout, &plan)?;
    let all = images(&layout, &root, None).map_err(|error| CommandError::operation(error.to_string()))?;
    let whole = plan.inputs.iter().all(|(platform, _)| all.iter().any(|image| image.config.platform == *platform));
    let mut wanted =
        if whole { tagged(&layout, &plan, &root)? } else { vec![Tagged { root: root.clone(), tags: Vec::new() }] };
    if let Some(file) = &args.sbom {
        wanted.push(Tagged { root: attach(&path, &layout, &root, file)?, tags: Vec::new() });
        layout = Layout::open(&path, &Limits::default()).map_err(failed)?;
    }
    let opener = Opener::new(&args.registry, views.root())?;
    let target = Repository::to_push(opener.client(), &reference, &args.mount_from);
    let options = args.registry.transfer(&args.mount_from);
    let summary = transfer::push(&layout, &wanted, &target, &options, &Progress::new(ui)).map_err(failed)?;
    ui.status(&format!(
        "{}@{}: {} sent ({} bytes), {} mounted, {} there already",
        reference.name(),
        root.digest,
        plural(summary.moved, "blob"),
        summary.bytes,
        summary.mounted,
        summary.present
    ));
    if !whole {
        let platforms: Vec<String> = all.iter().map(|image| image.config.platform.to_string()).collect();
        let what = format!("only {}: no tag was moved and nothing recorded", platforms.join(", "));
        ui.status(&format!("{what}; join the parts with `flux-gen view index {} DIGEST...`", args.name));
        ui.print(format!("{}@{}\n", reference.name(), root.digest).as_bytes())?;
    } else if !args.no_record {
        let tags = plan.tags.iter().map(|tag| tag.name.clone()).collect();
        pin::write(&views.folder(&args.name), &pin::pin(&reference, &root.digest, tags, &all))?;
        ui.status(&format!("{}: recorded", views.folder(&args.name).join(pin::FILE).display()));
    }
    Ok(Exit::Ok)
}

/// A repository without a tag or digest.
pub(super) fn repository(named: Option<&Reference>, view: &str) -> Result<Reference, CommandError> {
    let Some(reference) = named else {
        let message = format!("it is not known where to push `{view}`");
        return Err(CommandError::operation(message).help("write `repository:` in its view.yaml, or give --to"));
    };
    if reference.tag().is_some() || reference.digest().is_some() {
        return Err(CommandError::usage("--to takes a repository, without a tag or digest"));
    }
    Ok(reference.clone())
}

/// The index of a built view: the entry of its first tag for all platforms, else that of its name.
fn index_of(layout: &Layout, plan: &Plan) -> Result<Descriptor, CommandError> {
    let tag = plan.tags.iter().find(|tag| tag.platform.is_none());
    let name = tag.map_or(plan.name.as_str(), |tag| tag.name.as_str());
    let help = format!("the tags in view.yaml may have changed since; run `flux-gen view build {}`", plan.name);
    layout.find(Some(name)).cloned().map_err(|error| command_error(&error).help(help))
}

/// Every image of the view with its tags.
fn tagged(layout: &Layout, plan: &Plan, root: &Descriptor) -> Result<Vec<Tagged>, CommandError> {
    let mut all = vec![Tagged { root: root.clone(), tags: Vec::new() }];
    for tag in &plan.tags {
        let found = layout.find(Some(&tag.name)).map_err(|error| command_error(&error))?;
        match all.iter_mut().find(|image| image.root.digest == found.digest) {
            Some(image) => image.tags.push(tag.name.clone()),
            None => all.push(Tagged { root: found.clone(), tags: vec![tag.name.clone()] }),
        }
    }
    // The index comes last, because it is what bundles and people use.
    all.rotate_left(1);
    Ok(all)
}

/// Puts an SBOM into the layout as an artifact that refers to the image (OCI image specification, "subject").
fn attach(path: &Path, layout: &Layout, root: &Descriptor, file: &Path) -> Result<Descriptor, CommandError> {
    let bytes = fs::read(file).map_err(|e| CommandError::file("read", file, &e))?;
    let value: serde_json::Value = serde_json::from_slice(&bytes)
        .map_err(|e| CommandError::operation(format!("{} is no JSON: {e}", file.display())))?;
    let kind = if value.get("spdxVersion").is_some() {
        "application/spdx+json"
    } else if value.get("bomFormat").is_some() {
        "application/vnd.cyclonedx+json"
    } else {
        let message = format!("{} is neither SPDX nor CycloneDX", file.display());
        return Err(CommandError::operation(message));
    };
    let failed = |error| command_error(&error);
    let writer = LayoutWriter::create(path, WriteOptions::default()).map_err(failed)?;
    let blob = writer.bytes(kind, &bytes).map_err(failed)?;
    writer.bytes(media::EMPTY, empty_object().1).map_err(failed)?;
    let mut manifest = Manifest::artifact(kind, vec![blob]);
    let subject = Descriptor::new(root.media_type.clone(), root.digest.clone(), root.size);
    manifest.subject = Some(subject);
    let made = writer.json(media::MANIFEST, &manifest).map_err(failed)?;
    writer.finish(layout.index()).map_err(failed)?;
    Ok(made)
}
