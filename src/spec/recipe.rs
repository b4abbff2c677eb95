//! `recipes/<name>/recipe.yaml` as written.

use super::Map;
use super::minicluster::List;
use super::record::record;
use super::single;
use crate::diag::{Diagnostics, SourceMap};

record! {
    /// `recipes/<name>/recipe.yaml`: where the tree of a view comes from.
    pub struct Recipe {
        /// `tree` (a folder or archive for each platform) or `image` (a published view image, packed anew).
        "kind" kind: String [Required],
        /// For people.
        "description" description: String,
        /// Kind `tree`: the source of each platform, by platform.
        "trees" trees: Map<TreeSource>,
        /// Kind `image`: an image with all platforms, by digest, or `layout:PATH[:NAME]` for an OCI layout or archive.
        "image" image: String,
        /// Kind `image`: images by platform, when they are not one index.
        "images" images: Map<String>,
        /// What to leave out. Patterns take `*` and `**`; one without a slash is any name in a path. Default `__pycache__`,
        /// because python takes cached files for stale when times change.
        "exclude" exclude: List<String>,
    }
}

record! {
    /// A folder or archive with the files of a view.
    pub struct TreeSource {
        /// Folder, or tar archive (plain, gzip, zstd), relative to the project file.
        "path" path: String [Required],
        /// Where the tree belongs in the image, below `/opt/software` or `/opt/views`: the prefix that Flux was compiled for.
        /// Then the view at `/opt/views` is made by flux-gen. When left out, the tree is the root of the image and holds
        /// `opt/software`, `opt/views` and `opt/view`.
        "prefix" prefix: String,
    }
}

impl Recipe {
    /// Reads a recipe file. What cannot be read is reported and left out.
    pub fn read(sources: &mut SourceMap, name: impl Into<String>, bytes: Vec<u8>) -> (Self, Diagnostics) {
        single::read(sources, name.into(), bytes, Self::RECORD, "recipe")
    }
}
