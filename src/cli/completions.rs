//! `flux-gen completions`.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::args::CommandLine;
use super::error::CommandError;
use super::exit::Exit;
use super::ui::Ui;

/// Print a completion script for a shell.
///
/// For bash: `flux-gen completions bash > ~/.local/share/bash-completion/completions/flux-gen`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut CommandLine::command(), "flux-gen", &mut script);
    ui.print(&script)?;
    Ok(Exit::Ok)
}
