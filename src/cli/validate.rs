//! `flux-gen validate`.

use clap::Args;

use super::bundles::{self, Use};
use super::error::CommandError;
use super::exit::Exit;
use super::pipeline::InputArgs;
use super::report::plural;
use super::ui::Ui;

/// Report every problem of the specs; write nothing.
///
/// Compiles as `build` does, without looking at the output folder, and reports all problems of all specs at once.
#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    #[command(flatten)]
    input: InputArgs,
}

pub(crate) fn run(args: &ValidateArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let rendered = bundles::render(&args.input, None, Use::Alone, ui)?;
    let companions = rendered.inputs.documents.companions.len();
    let others = if companions > 0 { format!(", {}", plural(companions, "other document")) } else { String::new() };
    ui.status(&format!("{}{others}: {}", plural(rendered.clusters, "cluster"), rendered.tally.words()));
    Ok(Exit::Ok)
}
