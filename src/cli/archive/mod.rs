//! `flux-gen archive …`: one file for a site without internet.

mod inspect;
mod load;
mod places;
mod present;
mod project;
mod save;
mod tool;
mod verify;

use clap::{Args, Subcommand};

use super::error::CommandError;
use super::exit::Exit;
use super::ui::Ui;
use crate::airgap::archive::Problem;

/// Carry bundles and their images to a site without internet: one file with everything in it.
///
/// `save` writes it where there is internet, `verify` checks every byte of it on either side, `load` puts it into the registry
/// behind the gap. The file is an OCI image layout in a tar, so other programs can read its images too.
#[derive(Debug, Args)]
pub(crate) struct ArchiveArgs {
    #[command(subcommand)]
    command: ArchiveCommand,
}

#[derive(Debug, Subcommand)]
enum ArchiveCommand {
    Save(save::SaveArgs),
    Inspect(inspect::InspectArgs),
    Verify(verify::VerifyArgs),
    Load(load::LoadArgs),
}

pub(crate) fn run(args: &ArchiveArgs, ui: &Ui) -> Result<Exit, CommandError> {
    match &args.command {
        ArchiveCommand::Save(args) => save::run(args, ui),
        ArchiveCommand::Inspect(args) => inspect::run(args, ui),
        ArchiveCommand::Verify(args) => verify::run(args, ui),
        ArchiveCommand::Load(args) => load::run(args, ui),
    }
}

/// Shows problems with their codes.
fn failed(problems: &[Problem], end: &str, ui: &Ui) -> Exit {
    let found = problems.iter().map(Problem::diagnostic).collect();
    let tally = ui.diagnostics([], &[], found);
    ui.failure(&format!("found {}{end}", tally.words()), Some(super::bundles::EXPLAIN));
    Exit::Failed
}
