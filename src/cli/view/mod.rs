//! `flux-gen view …`: the images that bring Flux into application pods.

mod build;
mod compiled;
mod diff;
mod find;
mod index;
mod inspect;
mod list;
mod matching;
mod open;
pub(crate) mod pin;
mod plan;
mod prune;
mod pull;
mod push;
mod verify;

pub(crate) use build::{cache_in, make_state};
pub(crate) use find::STATE;

use clap::{Args, Subcommand};

use super::error::CommandError;
use super::exit::Exit;
use super::ui::Ui;

/// Assemble, check and publish view images: the images that bring Flux into application pods.
///
/// A view is a folder `views/NAME` with a file `view.yaml`; its recipe in `recipes/` says where the files come from. Nothing
/// here needs a container engine; `flux-gen recipe build` does, which compiles the trees of recipes of kind `source` and
/// `spack`.
#[derive(Debug, Args)]
pub(crate) struct ViewArgs {
    #[command(subcommand)]
    command: ViewCommand,
}

#[derive(Debug, Subcommand)]
enum ViewCommand {
    List(list::ListArgs),
    Plan(plan::PlanArgs),
    Build(build::BuildArgs),
    Verify(verify::VerifyArgs),
    Inspect(inspect::InspectArgs),
    Diff(diff::DiffArgs),
    Push(push::PushArgs),
    Pull(pull::PullArgs),
    Match(matching::MatchArgs),
    Index(index::IndexArgs),
    Prune(prune::PruneArgs),
}

pub(crate) fn run(args: &ViewArgs, ui: &Ui) -> Result<Exit, CommandError> {
    match &args.command {
        ViewCommand::List(args) => list::run(args, ui),
        ViewCommand::Plan(args) => plan::run(args, ui),
        ViewCommand::Build(args) => build::run(args, ui),
        ViewCommand::Verify(args) => verify::run(args, ui),
        ViewCommand::Inspect(args) => inspect::run(args, ui),
        ViewCommand::Diff(args) => diff::run(args, ui),
        ViewCommand::Push(args) => push::run(args, ui),
        ViewCommand::Pull(args) => pull::run(args, ui),
        ViewCommand::Match(args) => matching::run(args, ui),
        ViewCommand::Index(args) => index::run(args, ui),
        ViewCommand::Prune(args) => prune::run(args, ui),
    }
}
