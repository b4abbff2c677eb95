//! Finds views and reads them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

use super::compiled::{self, Compiled};
use crate::cli::error::CommandError;
use crate::cli::project::Found;
use crate::cli::report::{SourceText, Tally};
use crate::cli::sources::shown;
use crate::cli::ui::Ui;
use crate::diag::codes::view as codes;
use crate::diag::{Diagnostic, Diagnostics, SourceMap};
use crate::spec::pins::ImagePins;
use crate::spec::{BuildRecipe, Recipe, Spanned, View};
use crate::view::plan::{self, Plan};

/// Folder of views beside the project file.
const VIEWS: &str = "views";
/// Folder of recipes beside the project file.
const RECIPES: &str = "recipes";
/// Folder beside the project file that commands of views write to.
pub(crate) const STATE: &str = ".flux-gen";

/// Where views are.
#[derive(Debug, Args)]
pub(super) struct ProjectArgs {
    /// Project file; views and recipes are beside it [default: flux-gen.yaml, if it is there].
    #[arg(long, value_name = "FILE")]
    project: Option<PathBuf>,
}

/// The project's views.
#[derive(Debug)]
pub(super) struct Views {
    project: Found,
    sources: SourceMap,
    diagnostics: Diagnostics,
    /// Trees of views whose recipe compiles, by view.
    compiled: BTreeMap<String, Vec<Compiled>>,
    /// What base images are pinned to.
    pins: ImagePins,
}

impl Views {
    /// Reads the project file.
    pub(super) fn open(args: &ProjectArgs, ui: &Ui) -> Result<Self, CommandError> {
        let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let project = Found::find(args.project.as_deref(), &mut sources, &mut diagnostics)?;
        let pins = crate::cli::recipe::pins(&project.inside(RECIPES))?;
        let mut views = Self { project, sources, diagnostics, compiled: BTreeMap::new(), pins };
        if views.diagnostics.has_errors() {
            views.report(ui, Diagnostics::new());
            return Err(CommandError::reported());
        }
        Ok(views)
    }

    /// Folder of the project file.
    pub(super) fn root(&self) -> &Path {
        &self.project.root
    }

    /// Folder that commands of views write to; it is no part of the project.
    pub(super) fn state(&self) -> PathBuf {
        self.project.inside(STATE)
    }

    /// Folder of a view.
    pub(super) fn folder(&self, name: &str) -> PathBuf {
        self.project.inside(VIEWS).join(name)
    }

    /// Names of all views, sorted.
    pub(super) fn names(&self) -> Result<Vec<String>, CommandError> {
        let folder = self.project.inside(VIEWS);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(CommandError::file("read", &folder, &e)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|e| CommandError::file("read", &folder, &e))?;
            if entry.path().join("view.yaml").is_file()
                && let Ok(name) = entry.file_name().into_string()
            {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Reads a view and its recipe; `None` when something is wrong with them, which is kept for [`Views::report`].
    pub(super) fn plan(&mut self, name: &str) -> Result<Option<Plan>, CommandError> {
        let file = self.folder(name).join("view.yaml");
        let plain = !name.is_empty() && !name.contains(['/', '\\']) && !name.starts_with('.');
        let bytes = match fs::read(&file) {
            Ok(bytes) if plain => bytes,
            Err(e) if plain && e.kind() != io::ErrorKind::NotFound => {
                return Err(CommandError::file("read", &file, &e));
            }
            _ => {
                self.no_view(name)?;
                return Ok(None);
            }
        };
        let (mut view, found) = View::read(&mut self.sources, shown(&file), bytes);
        let broken = found.has_errors();
        view.base.iter_mut().for_each(|base| self.pin(base));
        self.diagnostics.extend(found);
        let Some(recipe) = self.recipe(name, &view)? else { return Ok(None) };
        let (plan, found) = plan::resolve(name, &view, &recipe);
        let broken = broken || found.has_errors() || self.diagnostics.has_errors();
        self.diagnostics.extend(found);
        Ok(plan.filter(|_| !broken))
    }

    /// Trees of a view whose recipe compiles; empty for other views, and before [`Views::plan`].
    pub(super) fn compiled(&self, view: &str) -> &[Compiled] {
        self.compiled.get(view).map(Vec::as_slice).unwrap_or_default()
    }

    /// Reports trees that have to be compiled first for the platforms of a plan.
    pub(super) fn require_trees(&mut self, plan: &Plan, ui: &Ui) -> Result<(), CommandError> {
        let wanted = |tree: &&Compiled| plan.inputs.iter().any(|(p, _)| p.architecture == tree.plan.arch.oci());
        let trees = self.compiled(&plan.name).iter();
        let missing: Vec<Diagnostic> = trees.filter(wanted).filter_map(Compiled::missing).collect();
        if missing.is_empty() {
            return Ok(());
        }
        self.report(ui, missing.into_iter().collect());
        Err(CommandError::reported())
    }

    fn recipe(&mut self, of: &str, view: &View) -> Result<Option<Recipe>, CommandError> {
        let Some(name) = view.recipe.as_ref() else { return Ok(None) };
        let file = self.project.inside(RECIPES).join(&name.value).join("recipe.yaml");
        let plain = !name.value.is_empty() && !name.value.contains(['/', '\\']) && !name.value.starts_with('.');
        match fs::read(&file) {
            Ok(bytes) if plain && BuildRecipe::is_one(&bytes) => {
                let folder = self.project.inside(RECIPES).join(&name.value);
                let (written, found) = BuildRecipe::read(&mut self.sources, shown(&file), bytes);
                self.diagnostics.extend(found);
                let Some(written) = written else { return Ok(None) };
                let cache = crate::cli::recipe::cache(None)?;
                let trees =
                    compiled::trees(&name.value, &folder, &written, view, &cache, &self.pins, &mut self.diagnostics);
                let Some(trees) = trees else { return Ok(None) };
                let recipe = compiled::as_tree(name, &trees);
                self.compiled.insert(of.to_owned(), trees);
                Ok(Some(recipe))
            }
            Ok(bytes) if plain => {
                let (mut recipe, found) = Recipe::read(&mut self.sources, shown(&file), bytes);
                self.diagnostics.extend(found);
                recipe.image.iter_mut().for_each(|image| self.pin(image));
                recipe.images.iter_mut().flat_map(|m| m.value.0.iter_mut()).for_each(|e| self.pin(&mut e.value));
                Ok(Some(recipe))
            }
            _ => {
                let message = format!("there is no recipe `{}`: {} cannot be read", name.value, shown(&file));
                self.diagnostics.push(Diagnostic::error(codes::BAD_RECIPE, name.span, message));
                Ok(None)
            }
        }
    }

    /// Puts the digest of the lock in the place of a tag.
    fn pin(&self, image: &mut Spanned<String>) {
        if let Some(pinned) = self.pins.get(&image.value) {
            image.value.clone_from(pinned);
        }
    }

    fn no_view(&mut self, name: &str) -> Result<(), CommandError> {
        let names = self.names()?;
        let help = match names.as_slice() {
            [] => "there are none; a view is a folder views/NAME with a file view.yaml".to_owned(),
            names => format!("there are {}", names.join(", ")),
        };
        let message = format!("there is no view `{name}`");
        self.diagnostics.push(Diagnostic::global_error(codes::NO_VIEW, message).help(help));
        Ok(())
    }

    /// The plan of a view, or what is wrong with it printed.
    pub(super) fn require(&mut self, name: &str, ui: &Ui) -> Result<Plan, CommandError> {
        match self.plan(name)? {
            Some(plan) => Ok(plan),
            None => {
                self.report(ui, Diagnostics::new());
                Err(CommandError::reported())
            }
        }
    }

    /// Prints what was found so far and `more`.
    pub(super) fn report(&mut self, ui: &Ui, more: Diagnostics) -> Tally {
        let mut all = std::mem::take(&mut self.diagnostics);
        all.extend(more);
        let texts = self.sources.iter().map(|(id, file)| SourceText { id, name: &file.name, text: &file.text });
        ui.diagnostics(texts, &[], all)
    }
}
