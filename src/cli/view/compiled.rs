//! Views whose recipe compiles: which trees they are made of, and whether these are there.

use std::path::{Path, PathBuf};

use crate::cli::sources::shown;
use crate::diag::codes::{recipe as codes, view as view_codes};
use crate::diag::{Diagnostic, Diagnostics, Severity};
use crate::spec::pins::ImagePins;
use crate::spec::recipe::TreeSource;
use crate::spec::{BuildRecipe, Entry, Map, Recipe, Spanned, View};
use crate::view::recipe::{Arch, Plan, plan, resolve};

/// The tree of one platform.
#[derive(Debug)]
pub(super) struct Compiled {
    platform: Spanned<String>,
    /// What compiling comes to.
    pub(super) plan: Plan,
    tree: PathBuf,
    /// What could not be checked where the recipe was written.
    pub(super) not_checked: Option<String>,
}

impl Compiled {
    /// Whether it has been compiled.
    pub(super) fn is_there(&self) -> bool {
        self.tree.is_file()
    }

    /// What to do when it is not there.
    pub(super) fn missing(&self) -> Option<Diagnostic> {
        let Plan { recipe, system, arch, key, .. } = &self.plan;
        let message = format!("the tree {key} is not compiled yet");
        let help = format!("flux-gen recipe build {recipe} --system {system} --arch {arch}");
        let missing = Diagnostic::error(view_codes::NOT_COMPILED, self.platform.span, message).help(help);
        (!self.is_there()).then_some(missing)
    }
}

/// The trees of a view; `None` when something is wrong, which is then in `diagnostics`.
pub(super) fn trees(
    name: &str,
    folder: &Path,
    written: &BuildRecipe,
    view: &View,
    cache: &Path,
    pins: &ImagePins,
    diagnostics: &mut Diagnostics,
) -> Option<Vec<Compiled>> {
    // Bases that are not pinned are told by the commands of recipes.
    let mut found = Diagnostics::new();
    let recipe = resolve(name, folder, written, pins, &mut found);
    diagnostics.extend(found.iter().filter(|d| d.severity == Severity::Error).cloned().collect());
    if found.has_errors() {
        return None;
    }
    let recipe = recipe?;
    let known: Vec<&str> = recipe.systems.keys().map(String::as_str).collect();
    let Some(system) = view.os.as_ref().filter(|os| known.contains(&os.value.as_str())) else {
        let span = view.os.as_ref().or(view.recipe.as_ref())?.span;
        let message = format!("recipe `{name}` compiles, and `os` does not name one of its systems");
        let help = format!("`os` can be {}", known.join(", "));
        diagnostics.push(Diagnostic::error(codes::SYSTEM, span, message).help(help));
        return None;
    };
    let mut trees = Vec::new();
    for platform in &view.platforms.as_ref()?.value {
        // Whether it is a platform at all is said elsewhere.
        let Some(arch) = Arch::parse(&platform.value) else { continue };
        match plan(&recipe, &system.value, arch) {
            Ok(plan) => {
                let tree = cache.join("trees").join(format!("{}.tar", plan.key));
                let not_checked = recipe.not_checked.clone();
                trees.push(Compiled { platform: platform.clone(), plan, tree, not_checked });
            }
            Err(e) => diagnostics.push(Diagnostic::error(codes::SYSTEM, platform.span, e.to_string())),
        }
    }
    Some(trees)
}

/// The same as a recipe of kind `tree`, whose archives are those of the cache.
pub(super) fn as_tree(name: &Spanned<String>, trees: &[Compiled]) -> Recipe {
    let at = |text: String| Spanned::new(text, name.span);
    let entry = |compiled: &Compiled| {
        let source = TreeSource { path: Some(at(shown(&compiled.tree))), ..TreeSource::default() };
        Entry { key: compiled.platform.clone(), value: Spanned::new(source, name.span) }
    };
    Recipe {
        kind: Some(at("tree".to_owned())),
        trees: Some(Spanned::new(Map(trees.iter().map(entry).collect()), name.span)),
        ..Recipe::default()
    }
}
