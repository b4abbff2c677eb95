//! Recipes that compile: from `recipes/<name>/recipe.yaml` to a plan, a `spack.yaml`, a Containerfile, and downloads.
//!
//! [`resolve()`] reads the files that a recipe names; [`plan()`] is pure. [`fetch`] downloads; what runs the plan is
//! [`super::engine`].

mod containerfile;
pub mod fetch;
mod files;
mod model;
mod packages;
mod plan;
mod resolve;
mod script;
mod source;
mod spack;

pub use containerfile::stage_before;
pub use model::{
    Arch, BuildKind, Download, FolderFiles, How, Mirror, Origin, Package, Patch, PatchOrigin, Recipe, Source, Spack,
    SpackInstall, System,
};
pub use plan::{Plan, PlanError, Step, plan};
pub use resolve::{is_tag_only, resolve};
pub use script::ScriptError;
