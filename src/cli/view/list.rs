//! `flux-gen view list`.

use clap::Args;

use super::compiled::Compiled;
use super::find::{ProjectArgs, Views};
use crate::cli::error::CommandError;
use crate::cli::exit::Exit;
use crate::cli::report::plural;
use crate::cli::ui::Ui;
use crate::diag::Diagnostics;
use crate::view::plan::Plan;

/// List the views of the project.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    project: ProjectArgs,
}

pub(super) fn run(args: &ListArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let mut views = Views::open(&args.project, ui)?;
    let mut text = String::new();
    let names = views.names()?;
    for name in &names {
        text.push_str(&match views.plan(name)? {
            Some(plan) => line(&plan) + &trees(views.compiled(name)),
            None => format!("{name}: has errors\n"),
        });
    }
    if names.is_empty() {
        ui.status("there are no views; a view is a folder views/NAME with a file view.yaml");
    }
    ui.print(text.as_bytes())?;
    let tally = views.report(ui, Diagnostics::new());
    Ok(if tally.errors > 0 { Exit::Failed } else { Exit::Ok })
}

/// Which trees of a recipe that compiles are there, and what nobody has checked.
fn trees(compiled: &[Compiled]) -> String {
    let mut text = String::new();
    for tree in compiled {
        let state = if tree.is_there() { "compiled" } else { "not compiled yet" };
        let elsewhere = tree.plan.downloads.iter().filter(|d| d.checksum_from.is_some()).count();
        let note = if elsewhere > 0 {
            format!("; {} not verified here", plural(elsewhere, "checksum"))
        } else {
            String::new()
        };
        text.push_str(&format!("  {}: {state}{note}\n", tree.plan.key));
    }
    if let Some(reason) = compiled.first().and_then(|tree| tree.not_checked.as_ref()) {
        text.push_str(&format!("  not checked: {reason}\n"));
    }
    text
}

/// `rocky-9: linux/amd64, linux/arm64; recipe rocky-9; tags tag-9, arm-9`.
fn line(plan: &Plan) -> String {
    let platforms: Vec<String> = plan.inputs.iter().map(|(platform, _)| platform.to_string()).collect();
    let tags: Vec<&str> = plan.tags.iter().map(|tag| tag.name.as_str()).collect();
    let tags = if tags.is_empty() { String::new() } else { format!("; tags {}", tags.join(", ")) };
    format!("{}: {}; recipe {}{tags}\n", plan.name, platforms.join(", "), plan.recipe)
}
