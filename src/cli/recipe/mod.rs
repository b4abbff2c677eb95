//! `flux-gen recipe …`: from recipes that compile to trees.

mod build;
mod load;
mod lock;
mod plan;

pub(crate) use build::cache;
pub(crate) use lock::{LOCK_FILE as RECIPES_LOCK, pins};
pub(crate) use plan::as_text;

use clap::{Args, Subcommand};

use super::error::CommandError;
use super::exit::Exit;
use super::ui::Ui;

/// Compile the trees that view images are made of.
///
/// A recipe is a folder `recipes/NAME` with a file `recipe.yaml`. Recipes of kind `source` and `spack` compile Flux in a
/// container: here they are planned, shown and run. `flux-gen view` makes images of the trees.
#[derive(Debug, Args)]
pub(crate) struct RecipeArgs {
    #[command(subcommand)]
    command: RecipeCommand,
}

#[derive(Debug, Subcommand)]
enum RecipeCommand {
    List(plan::ListArgs),
    Plan(plan::PlanArgs),
    Render(plan::RenderArgs),
    Lock(lock::LockArgs),
    Fetch(build::FetchArgs),
    Build(build::BuildArgs),
}

pub(crate) fn run(args: &RecipeArgs, ui: &Ui) -> Result<Exit, CommandError> {
    match &args.command {
        RecipeCommand::List(args) => plan::list(args, ui),
        RecipeCommand::Plan(args) => plan::plan(args, ui),
        RecipeCommand::Render(args) => plan::render(args, ui),
        RecipeCommand::Lock(args) => lock::run(args, ui),
        RecipeCommand::Fetch(args) => build::fetch(args, ui),
        RecipeCommand::Build(args) => build::build(args, ui),
    }
}
