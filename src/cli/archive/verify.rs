//! `flux-gen archive verify`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use super::load::rules;
use super::{failed, present};
use crate::airgap::archive::verify::verify;
use crate::airgap::archive::{Archive, ArchivedImage, Problem};
use crate::airgap::load::plan::target;
use crate::airgap::load::present::lost;
use crate::airgap::mirror::{Mirror, Prefix};
use crate::cli::error::CommandError;
use crate::cli::exit::Exit;
use crate::cli::progress::size;
use crate::cli::registry::RegistryArgs;
use crate::cli::report::plural;
use crate::cli::ui::Ui;
use crate::diag::codes::airgap as codes;
use crate::oci::layout;
use crate::oci::registry::{Client, Repository};
use crate::oci::{Digest, Platform, Reference};

/// Check every byte of an archive, or of a registry that one was loaded into, and that all images of the bundles are there.
///
/// Takes the file, the folder that it was extracted into, or the registry with the beginning of its repositories. Tells all problems at once: which member, at which place of the
/// file, and which image or bundle it belongs to. Prints the digest of the list of checksums, which is the same on both sides
/// when the archives are. With --to or --map, the registry is read too, and every byte of the images there compared. A registry
/// alone is compared with the bundles and the lock that `archive load` wrote (--bundles).
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The archive, the folder that it was extracted into, or a registry: `registry.site:5000/flux`.
    #[arg(value_name = "FILE|FOLDER|REGISTRY/PREFIX")]
    archive: PathBuf,
    /// For a registry: the folder that `archive load --output` wrote.
    #[arg(long, value_name = "DIR", default_value = ".", conflicts_with_all = ["expect", "to", "map"])]
    bundles: PathBuf,
    /// Platform that every image of the bundles must have. May be repeated.
    #[arg(long, value_name = "PLATFORM")]
    platform: Vec<Platform>,
    /// The digest that `archive save` printed; another archive is refused.
    #[arg(long, value_name = "DIGEST")]
    expect: Option<Digest>,
    /// Where `archive load --to` has put the images: read them back from there.
    #[arg(long, value_name = "REGISTRY/PREFIX")]
    to: Option<String>,
    /// The --map of that `archive load`. May be repeated.
    #[arg(long, value_name = "FROM=TO")]
    map: Vec<String>,
    #[command(flatten)]
    registry: RegistryArgs,
}

pub(super) fn run(args: &VerifyArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let platforms: Vec<Platform> = args.platform.iter().map(Platform::normalised).collect();
    if let Some(prefix) = registry(&args.archive) {
        return loaded_there(prefix, &platforms, args, ui);
    }
    let mut report = match verify(&args.archive, &platforms) {
        Ok(report) => report,
        Err(problem) => return Ok(failed(&[problem], "", ui)),
    };
    let place = args.archive.display();
    if let Some(expected) = &args.expect
        && report.digest.as_ref() != Some(expected)
    {
        let found = report.digest.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string);
        let message = format!("{place}: it is another archive: its digest is {found} instead of {expected}");
        let problem = Problem::new(codes::ARCHIVE_DAMAGED, message);
        report.problems.push(problem.help("compare with what `archive save` printed, and fetch the file again"));
    }
    if report.problems.is_empty() && (args.to.is_some() || !args.map.is_empty()) {
        let mirror = match rules(args.to.as_deref(), &args.map) {
            Ok(mirror) => mirror,
            Err(found) => {
                ui.diagnostics([], &[], found);
                return Err(CommandError::reported());
            }
        };
        report.problems = in_registry(args, &mirror)?;
    }
    if !report.problems.is_empty() {
        return Ok(failed(&report.problems, "", ui));
    }
    let (images, members) = (plural(report.images, "image"), plural(report.members, "member"));
    ui.status(&format!("{place} is whole: {images}, {members}, {}", size(report.bytes)));
    if let Some(digest) = &report.digest {
        ui.print(format!("{digest}\n").as_bytes())?;
    }
    Ok(Exit::Ok)
}

/// The registry that is meant, when there is no such file. A single word without a port is a misspelt file.
fn registry(name: &Path) -> Option<Prefix> {
    let text = name.to_str().filter(|text| !name.exists() && text.contains(['/', ':']))?;
    Prefix::parse(text).ok()
}

/// Compares a registry with the bundles that were loaded.
fn loaded_there(prefix: Prefix, platforms: &[Platform], args: &VerifyArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let place = prefix.to_string();
    let report = present::check(prefix, &args.bundles, platforms, &args.registry)?;
    if !report.problems.is_empty() {
        return Ok(failed(&report.problems, "", ui));
    }
    let (images, blobs) = (plural(report.images, "image"), plural(report.blobs, "blob"));
    ui.status(&format!("{place} has everything: {images}, {blobs}, {}", size(report.bytes)));
    Ok(Exit::Ok)
}

/// Reads back what was loaded; every problem of every image.
fn in_registry(args: &VerifyArgs, mirror: &Mirror) -> Result<Vec<Problem>, CommandError> {
    let archive = match Archive::open(&args.archive) {
        Ok(archive) => archive,
        Err(problem) => return Ok(vec![problem]),
    };
    let client = args.registry.client()?;
    let mut found = Vec::new();
    for image in &archive.about().images {
        let problems = loaded(&archive, image, mirror, &client).unwrap_or_else(|problem| vec![problem]);
        found.extend(problems.into_iter().map(|mut problem| {
            problem.message = format!("{}: {}", image.name, problem.message);
            problem
        }));
    }
    Ok(found)
}

/// Compares everything of one image, and what its tag means.
fn loaded(
    archive: &Archive,
    image: &ArchivedImage,
    mirror: &Mirror,
    client: &Arc<Client>,
) -> Result<Vec<Problem>, Problem> {
    let root = archive.root(image)?;
    let place = target(mirror, &image.name.parse::<Reference>()?)?;
    let repository = Repository::to_pull(client, &place);
    let report = layout::verify(&repository, std::slice::from_ref(root));
    let mut found: Vec<Problem> = report.problems.into_iter().map(lost).collect();
    if let Some(tag) = place.tag_or_latest() {
        match repository.resolve(tag)? {
            Some(there) if there.digest == root.digest => {}
            Some(there) => {
                let message = format!("the tag {tag} of {} is {}, not {}", place.name(), there.digest, root.digest);
                found.push(Problem::new(codes::ARCHIVE_INCOMPLETE, message));
            }
            None => {
                let message = format!("{} has no tag {tag}", place.name());
                found.push(Problem::new(codes::ARCHIVE_INCOMPLETE, message));
            }
        }
    }
    Ok(found)
}
