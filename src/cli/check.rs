//! `flux-gen check`.

use clap::Args;

use super::bundles::{self, Use, file_error};
use super::error::CommandError;
use super::exit::Exit;
use super::jobs;
use super::pipeline::{InputArgs, OutputArgs};
use super::ui::Ui;
use crate::bundle::check::check;
use crate::bundle::files::Disk;

/// Tell whether the bundles are what the specs give; exit 3 if not.
///
/// Compiles as `build` does and compares with the output folder, byte for byte. Lists what is missing, changed or no longer
/// wanted. Writes nothing.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) fn run(args: &CheckArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let rendered = bundles::render(&args.input, args.output.output.as_deref(), Use::Compare, ui)?;
    let output = &rendered.inputs.output;
    let report = check(&Disk, output, &rendered.tree, &rendered.kept).map_err(|e| file_error(&e))?;
    for change in &report.changes {
        ui.change(change.kind, &super::sources::shown(&output.join(&change.path)));
    }
    let exit = bundles::drift(&rendered, &report, ui);
    // Where no file differs no Job does.
    if !report.changes.is_empty() {
        let jobs = jobs::changes(output, &rendered.tree, &rendered.rollouts).map_err(|e| file_error(&e))?;
        jobs::say(&jobs, ui);
    }
    rendered.leave();
    Ok(exit)
}
