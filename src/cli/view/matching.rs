//! `flux-gen view match`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;

use super::build::{cache_of, layout_of, options};
use super::find::{ProjectArgs, Views};
use super::open::{Opener, RegistryArgs, Target, images};
use super::pin;
use crate::cli::error::CommandError;
use crate::cli::exit::Exit;
use crate::cli::ui::Ui;
use crate::diag::codes::view as codes;
use crate::diag::{Diagnostic, Diagnostics, SourceMap};
use crate::model::fit::{ImageFacts, ViewFacts, misfits, rank};
use crate::oci::Platform;
use crate::spec::{ReadOptions as SpecOptions, read};
use crate::view::cache::Cache;
use crate::view::facts;
use crate::view::image;
use crate::view::problem::Problems;
use crate::view::tree::ReadOptions;

/// Tell which views of the project run in application images, best first.
///
/// Reads os-release, C library, bash and architecture of each image, and compares them with what the views need. Views that do
/// not fit are listed with the reason.
#[derive(Debug, Args)]
pub(crate) struct MatchArgs {
    /// Application images (references, OCI layouts, archives), or specs whose images are meant (.yaml, .yml, .json).
    #[arg(value_name = "IMAGE|SPEC", required = true)]
    targets: Vec<String>,
    /// Only this platform [default: all that the image has].
    #[arg(long, value_name = "PLATFORM")]
    platform: Option<Platform>,
    #[command(flatten)]
    project: ProjectArgs,
    #[command(flatten)]
    registry: RegistryArgs,
}

pub(super) fn run(args: &MatchArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let mut views = Views::open(&args.project, ui)?;
    let opener = Opener::new(&args.registry, views.root())?;
    let scratch = options(&views, None)?.scratch;
    let known = view_facts(&views, &opener)?;
    let mut found = Diagnostics::new();
    let mut text = String::new();
    for target in targets(args)? {
        match image_facts(&target, args, &opener, &views, &scratch) {
            Ok(all) => {
                for image in all {
                    text.push_str(&one(&target, &image, &known, &mut found));
                }
            }
            Err(diagnostic) => found.push(*diagnostic),
        }
    }
    ui.print(text.as_bytes())?;
    let tally = views.report(ui, found);
    Ok(if tally.errors > 0 { Exit::Failed } else { Exit::Ok })
}

/// Images that are named, and those of specs.
fn targets(args: &MatchArgs) -> Result<BTreeSet<String>, CommandError> {
    let mut all = BTreeSet::new();
    for target in &args.targets {
        let path = PathBuf::from(target);
        let spec = path.extension().is_some_and(|e| e == "yaml" || e == "yml" || e == "json");
        if !spec || !path.is_file() {
            all.insert(target.clone());
            continue;
        }
        let bytes = std::fs::read(&path).map_err(|e| CommandError::file("read", &path, &e))?;
        let (documents, problems) =
            read(&mut SourceMap::new(), vec![(target.clone(), bytes)], &SpecOptions { allow_unknown: true });
        if problems.has_errors() {
            let message = format!("{target} has errors");
            return Err(CommandError::operation(message).help(format!("`flux-gen validate {target}` shows them")));
        }
        let containers = documents.miniclusters.iter().flat_map(|cluster| &cluster.spec.containers);
        all.extend(containers.flat_map(|list| &list.value).filter_map(|c| c.image.as_ref()).map(|i| i.value.clone()));
    }
    Ok(all)
}

/// What the project's views need: from the record of the last push, else from the built layout.
fn view_facts(views: &Views, opener: &Opener) -> Result<Vec<(String, ViewFacts)>, CommandError> {
    let mut known = Vec::new();
    for (name, pin) in pin::read_all(&views.root().join("views"))? {
        let layout = layout_of(views, &name);
        if let Some(pin) = pin {
            known.extend(pin.platforms.into_values().map(|platform| (name.clone(), platform.facts)));
        } else if layout.exists()
            && let Ok((source, root)) = opener.open(&format!("layout:{}", absolute(&layout)?.display()))
            && let Ok(images) = images(source.as_ref(), &root, None)
        {
            known.extend(images.iter().map(|image| (name.clone(), pin::facts(image))));
        }
    }
    Ok(known)
}

fn absolute(path: &std::path::Path) -> Result<PathBuf, CommandError> {
    std::path::absolute(path).map_err(|e| CommandError::file("find", path, &e))
}

fn image_facts(
    target: &str,
    args: &MatchArgs,
    opener: &Opener,
    views: &Views,
    scratch: &std::path::Path,
) -> Result<Vec<ImageFacts>, Box<Diagnostic>> {
    let failed = |why: String| Box::new(Diagnostic::global_error(codes::NOT_AN_IMAGE, format!("{target}: {why}")));
    let read = ReadOptions { scratch: scratch.to_path_buf(), ..ReadOptions::default() };
    let (source, root) = match opener.target(target, views).map_err(|error| Box::new(error.diagnostic()))? {
        Target::Image(opened) => opened,
        Target::Tree(_) => return Err(failed("it is a tree, not an image".to_owned())),
    };
    let all = images(source.as_ref(), &root, args.platform.as_ref()).map_err(|error| failed(error.to_string()))?;
    // An image by its digest has what it had.
    let cache = Cache::new(&cache_of(views));
    let facts = |image: &image::Image| {
        if let Some(known) = cache.facts(&image.descriptor.digest) {
            return Ok(known);
        }
        let (tree, _) =
            image::tree(&source, image, &read, &mut Problems::default()).map_err(|e| failed(e.to_string()))?;
        let facts = facts::of_tree(&tree, &image.config.platform.architecture);
        cache.put_facts(&image.descriptor.digest, &facts).map_err(|e| failed(e.to_string()))?;
        Ok(facts)
    };
    all.iter().map(facts).collect()
}

/// What is said of one image.
fn one(target: &str, image: &ImageFacts, views: &[(String, ViewFacts)], found: &mut Diagnostics) -> String {
    let glibc = image.glibc.map_or_else(|| "no glibc".to_owned(), |version| format!("glibc {version}"));
    let bash = if image.bash { "bash" } else { "no bash" };
    let os = image.os.as_deref().unwrap_or("unknown system");
    let mut text = format!("{target}: {}, {os}, {glibc}, {bash}\n", image.architecture);
    let same = views.iter().filter(|(_, view)| view.architecture == image.architecture);
    let (mut fits, not): (Vec<_>, Vec<_>) = same.partition(|(_, view)| misfits(view, image).is_empty());
    fits.sort_by_key(|(name, view)| (rank(view, image), name.clone()));
    for (name, view) in &fits {
        let needs = view.glibc.map_or_else(String::new, |version| format!(", needs glibc {version}"));
        let flux = view.flux.as_ref().map_or_else(String::new, |version| format!(", Flux {version}"));
        text.push_str(&format!("  fits  view:{name}{flux}{needs}\n"));
    }
    for (name, view) in not {
        text.push_str(&format!("  no    view:{name}: {}\n", misfits(view, image).join("; ")));
    }
    if fits.is_empty() {
        let message = format!("no view of the project runs in {target} ({})", image.architecture);
        let help =
            "build one on a system that is not newer than the image's; `flux-gen view list` shows those there are";
        found.push(Diagnostic::global_error(codes::DOES_NOT_FIT, message).help(help));
    }
    text
}
