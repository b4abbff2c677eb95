//! `flux-gen recipe lock`, and what it wrote: digests of the images that recipes and views start from.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;

use super::load::{PlaceArgs, names};
use crate::airgap::lock::{Lock, pinned_name};
use crate::cli::asking::{Asked, Places, open_files, report_staleness, store, write};
use crate::cli::error::CommandError;
use crate::cli::exit::Exit;
use crate::cli::registry::RegistryArgs;
use crate::cli::report::{SourceText, plural};
use crate::cli::sources::shown;
use crate::cli::ui::Ui;
use crate::diag::{Diagnostics, SourceMap};
use crate::spec::pins::ImagePins;
use crate::spec::{BuildRecipe, Recipe, Spanned, View};
use crate::view::recipe::is_tag_only;

/// The file, beside the folder of recipes; of the form of `images.lock`.
pub(crate) const LOCK_FILE: &str = "recipes.lock";
/// The command that writes it.
const COMMAND: &str = "recipe lock";

/// Find out the digests of base images and keep them in recipes.lock.
///
/// Asks registries, and the layouts and archives named with --from, what the names mean by which recipes and views call the
/// images that they start from. `recipe` and `view` commands use these digests from then on, so the same plan means the same
/// base. Names that the lock has are not asked for again without --update.
#[derive(Debug, Args)]
pub(super) struct LockArgs {
    #[command(flatten)]
    place: PlaceArgs,
    /// Ask again for images that the lock has.
    #[arg(long, conflicts_with = "check")]
    update: bool,
    /// Ask nobody and write nothing: exit 3 when the lock does not belong to recipes and views.
    #[arg(long)]
    check: bool,
    /// OCI layout or archive (OCI, `docker save`) to look into before registries are asked. May be repeated.
    #[arg(long, value_name = "PATH")]
    from: Vec<PathBuf>,
    #[command(flatten)]
    registry: RegistryArgs,
}

/// What the images of recipes and views are pinned to.
///
/// # Errors
/// A lock that cannot be read.
pub(crate) fn pins(recipes: &Path) -> Result<ImagePins, CommandError> {
    let pin = |(name, image): (&String, &_)| Some((name.clone(), pinned_name(name, image)?));
    Ok(read(&path(recipes))?.images.iter().filter_map(pin).collect())
}

/// Where the lock of a folder of recipes is.
fn path(recipes: &Path) -> PathBuf {
    recipes.with_file_name(LOCK_FILE)
}

/// Reads a lock; none is an empty one.
fn read(path: &Path) -> Result<Lock, CommandError> {
    let failed = |why: String| {
        CommandError::operation(format!("{}: {why}", shown(path))).help("run `flux-gen recipe lock --update`")
    };
    match fs::read_to_string(path) {
        Ok(text) => Lock::parse(&text).map_err(|e| failed(e.to_string())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Lock::default()),
        Err(e) => Err(CommandError::file("read", path, &e)),
    }
}

pub(super) fn run(args: &LockArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let mut written = Written::default();
    let recipes = args.place.root(&mut written.sources, &mut written.diagnostics)?;
    written.recipes(&recipes)?;
    written.views(&recipes.with_file_name("views"))?;
    let wanted = std::mem::take(&mut written.images);
    if written.diagnostics.has_errors() {
        return Ok(written.fails(Diagnostics::new(), ui));
    }
    let path = path(&recipes);
    let old = match read(&path) {
        Err(_) if args.update => Lock::default(),
        other => other?,
    };
    let stale = old.staleness(&wanted, &BTreeSet::new());
    if args.check {
        return Ok(report_staleness(&stale, &path, "recipes and views", COMMAND, ui));
    }
    let places = Places { files: open_files(&args.from)?, client: args.registry.client()?, mirror: None };
    let asked = Asked { names: &wanted, platforms: BTreeSet::new(), again: args.update, place: &|_| None };
    let (lock, problems) = asked.ask(&old, &places);
    if problems.has_errors() {
        if lock == old {
            return Ok(written.fails(problems, ui));
        }
        // Registries limit how much is asked: what was answered need not be asked again.
        store(&lock, &path, COMMAND)?;
        return Ok(written.fails_in_part(problems, &path, &lock, ui));
    }
    written.report(problems, ui);
    write(&lock, &old, &path, COMMAND, "base image", ui)?;
    Ok(Exit::Ok)
}

/// Recipes and views as far as images are concerned.
#[derive(Debug, Default)]
struct Written {
    sources: SourceMap,
    diagnostics: Diagnostics,
    /// Names that may mean another image tomorrow.
    images: BTreeSet<String>,
}

impl Written {
    fn take<'a>(&mut self, images: impl IntoIterator<Item = &'a Spanned<String>>) {
        let tags = images.into_iter().filter(|image| is_tag_only(image) && !image.starts_with("layout:"));
        self.images.extend(tags.map(|image| image.value.clone()));
    }

    fn recipes(&mut self, root: &Path) -> Result<(), CommandError> {
        for name in names(root)? {
            let file = root.join(name).join("recipe.yaml");
            let bytes = fs::read(&file).map_err(|e| CommandError::file("read the recipe", &file, &e))?;
            if BuildRecipe::is_one(&bytes) {
                let (recipe, found) = BuildRecipe::read(&mut self.sources, shown(&file), bytes);
                self.diagnostics.extend(found);
                self.take(recipe.iter().flat_map(BuildRecipe::bases));
            } else {
                let (recipe, found) = Recipe::read(&mut self.sources, shown(&file), bytes);
                self.diagnostics.extend(found);
                self.take(recipe.image.iter().chain(recipe.images.iter().flat_map(|m| m.iter()).map(|e| &e.value)));
            }
        }
        Ok(())
    }

    fn views(&mut self, root: &Path) -> Result<(), CommandError> {
        let entries = match fs::read_dir(root) {
            Ok(entries) => entries,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) => return Err(CommandError::file("read", root, &e)),
        };
        let mut files = Vec::new();
        for entry in entries {
            files.push(entry.map_err(|e| CommandError::file("read", root, &e))?.path().join("view.yaml"));
        }
        files.sort();
        for file in files.iter().filter(|file| file.is_file()) {
            let bytes = fs::read(file).map_err(|e| CommandError::file("read", file, &e))?;
            let (view, found) = View::read(&mut self.sources, shown(file), bytes);
            self.diagnostics.extend(found);
            self.take(view.base.iter().filter(|base| base.value != "scratch"));
        }
        Ok(())
    }

    fn report(&mut self, more: Diagnostics, ui: &Ui) -> String {
        let mut all = std::mem::take(&mut self.diagnostics);
        all.extend(more);
        let texts = self.sources.iter().map(|(id, file)| SourceText { id, name: &file.name, text: &file.text });
        ui.diagnostics(texts, &[], all).words()
    }

    /// Some images were not answered for: the others are in the lock.
    fn fails_in_part(&mut self, problems: Diagnostics, path: &Path, lock: &Lock, ui: &Ui) -> Exit {
        let words = self.report(problems, ui);
        let known = plural(lock.images.len(), "image");
        let message = format!("found {words}; {} has the digests of {known}", shown(path));
        ui.failure(&message, Some("run it again: only what the lock does not have is asked for"));
        Exit::Failed
    }

    fn fails(&mut self, problems: Diagnostics, ui: &Ui) -> Exit {
        let words = self.report(problems, ui);
        ui.failure(&format!("found {words}; nothing was written"), Some("`flux-gen explain CODE` tells more"));
        Exit::Failed
    }
}
