//! `flux-gen view pull`.

use std::path::PathBuf;

use clap::Args;

use super::find::{ProjectArgs, Views};
use super::open::{Opener, RegistryArgs, command_error};
use crate::cli::error::CommandError;
use crate::cli::exit::Exit;
use crate::cli::progress::Progress;
use crate::cli::ui::Ui;
use crate::oci::descriptor::REF_NAME;
use crate::oci::document::Index;
use crate::oci::layout::{LayoutWriter, WriteOptions};
use crate::oci::transfer;
use crate::oci::{Platform, Reference, source};

/// Pull an image into an OCI layout, with all its platforms and every digest checked.
#[derive(Debug, Args)]
pub(crate) struct PullArgs {
    /// The image.
    #[arg(value_name = "IMAGE")]
    image: Reference,
    /// Folder for the layout; one that exists gets the image besides.
    #[arg(short, long, value_name = "DIR", help_heading = "Output options")]
    output: PathBuf,
    /// Only this platform.
    #[arg(long, value_name = "PLATFORM")]
    platform: Option<Platform>,
    #[command(flatten)]
    project: ProjectArgs,
    #[command(flatten)]
    registry: RegistryArgs,
}

pub(super) fn run(args: &PullArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let views = Views::open(&args.project, ui)?;
    let opener = Opener::new(&args.registry, views.root())?;
    let failed = |error| command_error(&error);
    let (from, mut root) = opener.open(&args.image.to_string()).map_err(failed)?;
    if let Some(platform) = &args.platform {
        root = source::of_platform(from.as_ref(), &root, platform).map_err(failed)?;
    }
    let writer = LayoutWriter::create(&args.output, WriteOptions::default()).map_err(failed)?;
    let roots = [root.clone()];
    let options = args.registry.transfer(&[]);
    let summary = transfer::pull(from.as_ref(), &roots, &writer, &options, &Progress::new(ui)).map_err(failed)?;
    let name = args.image.tag().map_or_else(|| root.digest.to_string(), str::to_owned);
    let mut index: Index = writer.present().clone();
    index.manifests.retain(|other| other.ref_name() != Some(name.as_str()));
    index.manifests.push(root.clone().annotation(REF_NAME, name.as_str()));
    writer.finish(&index).map_err(failed)?;
    let moved = super::build::size(summary.bytes);
    ui.status(&format!("{}: {name} is {} ({moved} fetched)", args.output.display(), root.digest));
    Ok(Exit::Ok)
}
