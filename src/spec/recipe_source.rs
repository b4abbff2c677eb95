//! Recipes of kind `source` as written: packages that are downloaded by URL and checksum and compiled one after the other.

use super::Map;
use super::minicluster::List;
use super::recipe_common::{RecipeDownload, RecipeSystem};
use super::record::record;

record! {
    /// `recipes/<name>/recipe.yaml` of kind `source`: programs compiled from their sources in a container.
    pub struct SourceRecipe {
        /// `source`.
        "kind" kind: String [Required],
        /// What it makes, in a sentence.
        "description" description: String,
        /// Folder for installed packages, each in a folder of its own. Default `/opt/software`.
        "prefix" prefix: String,
        /// Folder for the view. Default `/opt/views`.
        "views" views: String,
        /// Oldest processor that must be able to run the result, as GCC's `-march`, by architecture: `amd64: x86-64-v2`.
        "target" target: Map<String>,
        /// Whether symbols are taken off programs and libraries. Default true.
        "strip" strip: bool,
        /// Libraries of the system that the tree needs and an application image may not have: `copy` them, all but those of glibc, or `none`. Default `copy`.
        "libraries" libraries: String,
        /// Systems it can be built on, by name.
        "systems" systems: Map<RecipeSystem> [Required],
        /// What is built, in this order.
        "packages" packages: List<SourcePackage> [Required],
        /// What could not be checked where the recipe was written; `recipe list` shows it.
        "not-checked" not_checked: String,
    }
}

record! {
    /// A package of a recipe of kind `source`.
    pub struct SourcePackage {
        /// Name: lower-case letters, digits, `-`, `_`, `.`.
        "name" name: String [Required],
        /// Version.
        "version" version: String [Required],
        /// Its sources.
        "source" source: RecipeDownload,
        /// Its sources where each architecture has its own: by `amd64` and `arm64`.
        "source-by-arch" source_by_arch: Map<RecipeDownload>,
        /// A folder of the recipe with its sources, instead of a download.
        "folder" folder: String,
        /// How it is built: `autotools`, `cmake`, `make`, `python` (pip, without index) or `script`. Default `autotools`.
        "build" build: String,
        /// Arguments of `configure` or `cmake`. `{prefix}` is its folder, `{prefix:NAME}` that of an earlier package.
        "configure" configure: List<String>,
        /// Arguments of `make`.
        "make" make: List<String>,
        /// Arguments of `make` when installing. Default `install`.
        "install" install: List<String>,
        /// Shell of a `script` build, run in the unpacked sources with PREFIX, VERSION and SOURCE set.
        "script" script: String,
        /// Environment of its steps.
        "environment" environment: Map<String>,
        /// Changes to its sources, in this order.
        "patches" patches: List<SourcePatch>,
        /// Package whose folder it is installed into, for parts that must be found there.
        "into" into: String,
        /// Systems it is built on; default all.
        "systems" systems: List<String>,
        /// Needed for building only: not in the view, removed at the end.
        "build-only" build_only: bool,
    }
}

record! {
    /// A change to the sources of a package.
    pub struct SourcePatch {
        /// File in the recipe's folder.
        "file" file: String,
        /// A file to download.
        "source" source: RecipeDownload,
        /// Folders to take off the names in it (`patch -p`). Default 1.
        "strip" strip: i32,
    }
}
