//! `flux-gen view plan`.

use clap::Args;

use super::build::{cache_of, options, size};
use super::find::{ProjectArgs, Views};
use super::open::{Opener, RegistryArgs};
use crate::cli::error::CommandError;
use crate::cli::exit::Exit;
use crate::cli::report::plural;
use crate::cli::ui::Ui;
use crate::diag::Diagnostics;
use crate::oci::Platform;
use crate::view::build::{Prepared, prepare};
use crate::view::plan::{Base, Input, Plan};

/// Print what `view build` would do: trees, layers and what is in them, tags.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Name of the view.
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    project: ProjectArgs,
    #[command(flatten)]
    registry: RegistryArgs,
}

pub(super) fn run(args: &PlanArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let mut views = Views::open(&args.project, ui)?;
    let plan = views.require(&args.name, ui)?;
    let options = options(&views, None)?;
    let opener = Opener::new(&args.registry, views.root())?.keeping(&cache_of(&views));
    let mut text = head(&plan);
    let mut found = Diagnostics::new();
    let missing = views.compiled(&args.name).iter().filter(|compiled| !compiled.is_there());
    let to_compile: String = missing.map(|compiled| crate::cli::recipe::as_text(&compiled.plan)).collect();
    if !to_compile.is_empty() {
        // Layers are cut from trees, and these are not there yet.
        text.push_str(&format!("to be compiled first:\n{to_compile}"));
        ui.print(text.as_bytes())?;
        return Ok(Exit::Ok);
    }
    for (platform, input) in &plan.inputs {
        match prepare(&plan, platform, input, &options, &|text| opener.open(text)) {
            Ok(prepared) => text.push_str(&part(platform, input, &prepared)),
            Err(failed) => found.extend(failed.0),
        }
    }
    ui.print(text.as_bytes())?;
    let tally = views.report(ui, found);
    Ok(if tally.errors > 0 { Exit::Failed } else { Exit::Ok })
}

fn head(plan: &Plan) -> String {
    let base = match &plan.base {
        Base::Scratch(_) => "scratch, with a helper".to_owned(),
        Base::Image(image) => image.value.clone(),
    };
    let mut text = format!("view {}: recipe {}, base {base}, {}\n", plan.name, plan.recipe, plan.compression.as_str());
    for tag in &plan.tags {
        let what = tag.platform.as_ref().map_or_else(|| "the index".to_owned(), ToString::to_string);
        text.push_str(&format!("  tag {}: {what}\n", tag.name));
    }
    if let Some(repository) = &plan.repository {
        text.push_str(&format!("  pushed to {}\n", repository.name()));
    }
    text
}

fn part(platform: &Platform, input: &Input, prepared: &Prepared) -> String {
    let from = match input {
        Input::Tree { path, .. } => path.value.display().to_string(),
        Input::Image(image) => image.value.clone(),
    };
    let bytes: u64 = prepared.groups.iter().map(|group| group.size).sum();
    let mut text = format!(
        "{platform}: {from}: {}, {} in {}\n",
        plural(prepared.tree.entries.len(), "entry").replace("entrys", "entries"),
        size(bytes),
        plural(prepared.groups.len(), "layer")
    );
    for (number, group) in prepared.groups.iter().enumerate() {
        let entries = group.paths.len();
        text.push_str(&format!(
            "  {:>2}  {:<24} {:>10}  {entries} entries\n",
            number + 1,
            group.name,
            size(group.size)
        ));
    }
    text
}
