//! `flux-gen recipe list`, `plan` and `render`.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::load::{PlaceArgs, Recipes, SelectArgs};
use crate::cli::error::CommandError;
use crate::cli::exit::Exit;
use crate::cli::report::plural;
use crate::cli::sources::shown;
use crate::cli::ui::Ui;
use crate::diag::Diagnostics;
use crate::model::words::join;
use crate::view::engine::{diagnostic, write_context};
use crate::view::recipe::{Download, How, Plan, Recipe};

/// List recipes that compile: systems, architectures, and what nobody has checked.
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    place: PlaceArgs,
}

/// Print what building would do: steps, keys, downloads, what needs the network.
///
/// The same key means the same tree; `recipe build` does not build it twice.
#[derive(Debug, Args)]
pub(super) struct PlanArgs {
    #[command(flatten)]
    select: SelectArgs,
    /// Print JSON, one object per line.
    #[arg(long)]
    json: bool,
}

/// Write a Containerfile, the scripts and, for Spack, the spack.yaml that `build` uses.
#[derive(Debug, Args)]
pub(super) struct RenderArgs {
    #[command(flatten)]
    select: SelectArgs,
    /// Folder to write to; each recipe, system and architecture gets a folder of its own in it.
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
}

pub(super) fn list(args: &ListArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let recipes = Recipes::load(&args.place, None)?;
    let mut text = String::new();
    for (_, recipe) in &recipes.all {
        describe(recipe, &mut text);
    }
    ui.print(text.as_bytes())?;
    Ok(Exit::Ok)
}

fn describe(recipe: &Recipe, text: &mut String) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{} ({}): {}", recipe.name, recipe.kind(), recipe.description);
    for (name, system) in &recipe.systems {
        let architectures: Vec<&str> = recipe.architectures(name).iter().map(|a| a.oci()).collect();
        let pin = if system.is_pinned() { "" } else { " (not pinned)" };
        let _ = writeln!(text, "  {name}: {}, in {}{pin}", architectures.join(", "), system.base);
    }
    if let How::Source(source) = &recipe.how {
        let downloads: Vec<&Download> = source.packages.iter().flat_map(|p| p.downloads(None)).collect();
        let elsewhere = downloads.iter().filter(|d| d.checksum_from.is_some()).count();
        if elsewhere > 0 {
            let all = plural(downloads.len(), "download");
            let _ = writeln!(text, "  checksums: {elsewhere} of {all} recorded by others, not verified here");
        }
    }
    if let Some(reason) = &recipe.not_checked {
        let _ = writeln!(text, "  not checked: {reason}");
    }
}

pub(super) fn plan(args: &PlanArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let mut recipes = Recipes::load(&args.select.place, args.select.name.as_deref())?;
    recipes.report(ui, Diagnostics::new())?;
    let plans = recipes.plans(&args.select)?;
    let text: String = plans.iter().map(|(_, p)| if args.json { as_json(p) } else { as_text(p) }).collect();
    ui.print(text.as_bytes())?;
    Ok(Exit::Ok)
}

/// A plan for people.
pub(crate) fn as_text(plan: &Plan) -> String {
    let mut text = format!("{}\n", plan.key);
    let pin = if plan.pinned { "" } else { " (not pinned)" };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "  base {}{pin}, with packages {}", plan.base, plan.system_key);
    if let Some(view) = &plan.view {
        let _ = writeln!(text, "  view {view}");
    }
    for (number, step) in plan.steps.iter().enumerate() {
        let _ = writeln!(text, "  {:>2} {}", number + 1, step.title);
        for command in &step.commands {
            let _ = writeln!(text, "       {}", join(command));
        }
    }
    let _ = writeln!(text, "  needs the network:");
    for need in plan.network() {
        let _ = writeln!(text, "     {need}");
    }
    for download in &plan.downloads {
        let from =
            download.checksum_from.as_ref().map(|f| format!(" (from {f}: not verified here)")).unwrap_or_default();
        let _ = writeln!(text, "  sha256 {} {}{from}", download.sha256, download.file);
    }
    text
}

fn as_json(plan: &Plan) -> String {
    let downloads: Vec<_> = plan
        .downloads
        .iter()
        .map(|d| json!({ "url": d.url, "file": d.file, "sha256": d.sha256, "checksumFrom": d.checksum_from }))
        .collect();
    let value = json!({
        "key": plan.key, "recipe": plan.recipe, "kind": plan.kind, "system": plan.system, "architecture": plan.arch,
        "base": plan.base, "pinned": plan.pinned, "packages": plan.system_key, "view": plan.view, "steps": plan.steps,
        "network": plan.network(), "downloads": downloads,
    });
    format!("{value}\n")
}

pub(super) fn render(args: &RenderArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let mut recipes = Recipes::load(&args.select.place, args.select.name.as_deref())?;
    recipes.report(ui, Diagnostics::new())?;
    let plans = recipes.plans(&args.select)?;
    for (folder, plan) in &plans {
        let output = args.output.join(format!("{}-{}-{}", plan.recipe, plan.system, plan.arch));
        if fs::symlink_metadata(&output).is_ok() {
            return Err(CommandError::operation(format!("{} exists already", shown(&output)))
                .help("remove it, or choose another folder"));
        }
        if let Err(error) = write_context(plan, folder, None, &output) {
            let mut found = Diagnostics::new();
            found.push(diagnostic(&error));
            ui.diagnostics([], &[], found);
            return Err(CommandError::reported());
        }
        ui.status(&format!("wrote {}", shown(&output)));
        if !plan.downloads.is_empty() {
            ui.status("its sources are not in it: put the files of `flux-gen recipe plan` into build/sources");
        }
    }
    Ok(Exit::Ok)
}
