//! `flux-gen archive verify`.

use std::path::PathBuf;

use clap::Args;

use super::failed;
use crate::airgap::archive::Problem;
use crate::airgap::archive::verify::verify;
use crate::cli::error::CommandError;
use crate::cli::exit::Exit;
use crate::cli::progress::size;
use crate::cli::report::plural;
use crate::cli::ui::Ui;
use crate::diag::codes::airgap as codes;
use crate::oci::{Digest, Platform};

/// Check every byte of an archive, and that all images of its bundles are in it.
///
/// Takes the file, or the folder that it was extracted into. Tells all problems at once: which member, at which place of the
/// file, and which image or bundle it belongs to. Prints the digest of the list of checksums, which is the same on both sides
/// when the archives are.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The archive, or the folder that it was extracted into.
    #[arg(value_name = "FILE|FOLDER")]
    archive: PathBuf,
    /// Platform that every image of the bundles must have. May be repeated.
    #[arg(long, value_name = "PLATFORM")]
    platform: Vec<Platform>,
    /// The digest that `archive save` printed; another archive is refused.
    #[arg(long, value_name = "DIGEST")]
    expect: Option<Digest>,
}

pub(super) fn run(args: &VerifyArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let platforms: Vec<Platform> = args.platform.iter().map(Platform::normalised).collect();
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
        report.problems.push(Problem::new(codes::ARCHIVE_DAMAGED, message));
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
