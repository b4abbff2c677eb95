//! Recipes of kind `spack` as written: an environment that Spack concretizes and installs.

use super::Map;
use super::minicluster::List;
use super::recipe_common::RecipeSystem;
use super::record::record;

record! {
    /// `recipes/<name>/recipe.yaml` of kind `spack`: an environment that Spack installs in a container.
    pub struct SpackRecipe {
        /// `spack`.
        "kind" kind: String [Required],
        /// What it makes, in a sentence.
        "description" description: String,
        /// Folder for installed packages. Default `/opt/software`.
        "prefix" prefix: String,
        /// Folder for the view. Default `/opt/views`.
        "views" views: String,
        /// Oldest processor that must be able to run the result, as Spack names it, by architecture: `amd64: x86_64_v3`.
        "target" target: Map<String>,
        /// Whether symbols are taken off programs and libraries. Default true.
        "strip" strip: bool,
        /// Where Spack is in the base images. Default `/opt/spack`.
        "spack-root" spack_root: String,
        /// Systems it can be built on, by name.
        "systems" systems: Map<RecipeSystem> [Required],
        /// What to install, as Spack specs.
        "specs" specs: List<String> [Required],
        /// More specs by system.
        "specs-by-system" specs_by_system: Map<List<String>>,
        /// Requirements on single packages, as Spack specs, by package.
        "require" require: Map<List<String>>,
        /// How Spack chooses versions.
        "concretizer" concretizer: SpackConcretizer,
        /// Mirrors and build caches, by name, in this order.
        "mirrors" mirrors: Map<SpackMirror>,
        /// Where packages come from: `auto` (build caches, else compiled), `cache-only` (never compiled) or `source` (always compiled). Default `auto`.
        "install" install: String,
        /// Lock files (`spack.lock`) of the recipe's folder, by `<system>-<architecture>`: then nothing is chosen anew.
        "locks" locks: Map<String>,
        /// Packages that stay out of the view.
        "exclude" exclude: List<String>,
        /// Whether everything can be had without network: mirrors are files of the recipe's folder and locks are there.
        "offline" offline: bool,
        /// What could not be checked where the recipe was written; `recipe list` shows it.
        "not-checked" not_checked: String,
    }
}

record! {
    /// How Spack chooses versions.
    pub struct SpackConcretizer {
        /// Whether all specs share one version of each package. Default true.
        "unify" unify: bool,
        /// Whether what build caches have is preferred to newer versions. Default true.
        "reuse" reuse: bool,
    }
}

record! {
    /// A mirror of sources or built packages.
    pub struct SpackMirror {
        /// Where it is: `https://…`, `oci://…`, `s3://…`, `file://…`.
        "url" url: String [Required],
        /// Whether it has sources. Default true.
        "source" source: bool,
        /// Whether it has built packages. Default true.
        "binary" binary: bool,
        /// Whether built packages must be signed. Default true.
        "signed" signed: bool,
    }
}
