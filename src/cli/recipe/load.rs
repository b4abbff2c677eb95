//! Finding and reading recipes.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use clap::Args;

use super::lock;
use crate::cli::error::CommandError;
use crate::cli::project::Found;
use crate::cli::report::{SourceText, Tally};
use crate::cli::sources::shown;
use crate::cli::ui::Ui;
use crate::diag::{Diagnostics, SourceMap};
use crate::spec::BuildRecipe;
use crate::view::recipe::{Arch, Plan, Recipe, plan, resolve};

/// Which recipes, systems and architectures.
#[derive(Debug, Args)]
pub(super) struct SelectArgs {
    /// Name of the recipe [default: all of them].
    #[arg(value_name = "NAME")]
    pub(super) name: Option<String>,
    /// System, as the recipe names it [default: all of them].
    #[arg(long, value_name = "SYSTEM")]
    pub(super) system: Option<String>,
    /// Architecture: amd64 or arm64, also as linux/amd64 [default: both].
    #[arg(long, visible_alias = "platform", value_name = "ARCH", value_parser = parse_arch)]
    pub(super) arch: Option<Arch>,
    #[command(flatten)]
    pub(super) place: PlaceArgs,
}

/// Where recipes are.
#[derive(Debug, Args)]
pub(super) struct PlaceArgs {
    /// Folder with recipes [default: `recipes` beside the project file].
    #[arg(long, value_name = "DIR")]
    pub(super) recipes: Option<PathBuf>,
}

impl PlaceArgs {
    /// The folder with recipes.
    pub(super) fn root(&self, sources: &mut SourceMap, diagnostics: &mut Diagnostics) -> Result<PathBuf, CommandError> {
        match &self.recipes {
            Some(folder) => Ok(folder.clone()),
            None => Ok(Found::find(None, sources, diagnostics)?.inside("recipes")),
        }
    }
}

fn parse_arch(text: &str) -> Result<Arch, String> {
    Arch::parse(text).ok_or_else(|| "it can be amd64 or arm64, or linux/amd64 or linux/arm64".to_owned())
}

/// Recipes that were read, with their folders.
#[derive(Debug)]
pub(super) struct Recipes {
    /// Each with its folder.
    pub(super) all: Vec<(PathBuf, Recipe)>,
    sources: SourceMap,
    diagnostics: Diagnostics,
}

impl Recipes {
    /// Reads one recipe or all of kinds that compile. What is wrong with them is reported by [`Self::report`].
    pub(super) fn load(place: &PlaceArgs, name: Option<&str>) -> Result<Self, CommandError> {
        let mut sources = SourceMap::new();
        let mut diagnostics = Diagnostics::new();
        let root = place.root(&mut sources, &mut diagnostics)?;
        let pins = lock::pins(&root)?;
        let names = match name {
            Some(name) => vec![name.to_owned()],
            None => names(&root)?,
        };
        let mut all = Vec::new();
        for name in names {
            let folder = root.join(&name);
            let file = folder.join("recipe.yaml");
            let bytes = fs::read(&file).map_err(|e| unreadable(&root, &name, &file, &e))?;
            let (written, problems) = BuildRecipe::read(&mut sources, shown(&file), bytes);
            diagnostics.extend(problems);
            let recipe = written.as_ref().and_then(|w| resolve(&name, &folder, w, &pins, &mut diagnostics));
            all.extend(recipe.map(|recipe| (folder, recipe)));
        }
        Ok(Self { all, sources, diagnostics })
    }

    /// Prints what was found wrong; fails on errors.
    pub(super) fn report(&mut self, ui: &Ui, more: Diagnostics) -> Result<Tally, CommandError> {
        let mut all = std::mem::take(&mut self.diagnostics);
        all.extend(more);
        let texts: Vec<SourceText<'_>> = self.sources.iter().map(|(id, file)| text_of(id, file)).collect();
        let tally = ui.diagnostics(texts, &[], all);
        if tally.errors > 0 {
            ui.failure(&format!("found {}", tally.words()), Some("`flux-gen explain CODE` tells more"));
            return Err(CommandError::reported());
        }
        Ok(tally)
    }

    /// The plans that were asked for, each with the folder of its recipe.
    pub(super) fn plans(&self, args: &SelectArgs) -> Result<Vec<(&Path, Plan)>, CommandError> {
        let mut plans = Vec::new();
        for (folder, recipe) in &self.all {
            let systems: Vec<&String> = match &args.system {
                // A system that only some of several recipes have is no mistake.
                Some(system) if args.name.is_none() => recipe.systems.keys().filter(|s| *s == system).collect(),
                Some(system) => vec![system],
                None => recipe.systems.keys().collect(),
            };
            for system in systems {
                let architectures = args.arch.map_or_else(|| recipe.architectures(system), |arch| vec![arch]);
                for arch in architectures {
                    let plan = plan(recipe, system, arch).map_err(|e| CommandError::operation(e.to_string()))?;
                    plans.push((folder.as_path(), plan));
                }
            }
        }
        if let (true, Some(name)) = (plans.is_empty() && self.all.is_empty(), &args.name) {
            return Err(CommandError::operation(format!("recipe `{name}` compiles nothing"))
                .help("`flux-gen view build` packs what it names"));
        }
        if plans.is_empty() {
            return Err(CommandError::operation("there is nothing to plan")
                .help("`flux-gen recipe list` shows recipes, systems and architectures"));
        }
        Ok(plans)
    }
}

/// A recipe that is not there, with those that are.
fn unreadable(root: &Path, name: &str, file: &Path, error: &std::io::Error) -> CommandError {
    match names(root) {
        Ok(known) if error.kind() == ErrorKind::NotFound => {
            CommandError::operation(format!("there is no recipe `{name}` in {}", shown(root)))
                .help(format!("there are {}", known.join(", ")))
        }
        _ => CommandError::file("read the recipe", file, error),
    }
}

fn text_of(id: crate::diag::FileId, file: &crate::diag::SourceFile) -> SourceText<'_> {
    SourceText { id, name: &file.name, text: &file.text }
}

/// Names of the folders that hold a recipe, in order.
pub(super) fn names(root: &Path) -> Result<Vec<String>, CommandError> {
    let entries = match fs::read_dir(root) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => {
            return Err(CommandError::operation(format!("there is no folder {}", shown(root)))
                .help("name it with --recipes DIR; docs/build-your-own-view.md says what belongs into it"));
        }
        Err(e) => return Err(CommandError::file("read", root, &e)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|e| CommandError::file("read", root, &e))?;
        if entry.path().join("recipe.yaml").is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}
