//! What building a recipe for one system and one architecture comes to: downloads, steps, files, and a key over all of it.
//!
//! Pure: the same recipe gives the same plan on every machine.

use std::collections::BTreeMap;

use minijinja::value::Serde;
use minijinja::{Value, context};
use serde::Serialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::containerfile;
use super::model::{Arch, Download, FolderFiles, How, Recipe, System};
use super::script::{ScriptError, Scripts};
use super::{source, spack};
use crate::bundle::sha256_hex;
use crate::model::words::join;

/// Raised when the same recipe has to be built anew because flux-gen makes something else of it.
const FORMAT: u32 = 1;

/// What building comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Name of the recipe.
    pub recipe: String,
    /// `source` or `spack`.
    pub kind: &'static str,
    /// The system's name.
    pub system: String,
    /// The architecture.
    pub arch: Arch,
    /// `<recipe>-<system>-<architecture>-<16 hexadecimal digits>`: the same key, the same tree.
    pub key: String,
    /// Tag of the image with the system's packages: 16 hexadecimal digits.
    pub system_key: String,
    /// The image to build in.
    pub base: String,
    /// Whether the base is pinned by digest.
    pub pinned: bool,
    /// The view's folder in the tree; `None` when Spack chooses it.
    pub view: Option<String>,
    /// What flux-gen downloads before the build.
    pub downloads: Vec<Download>,
    /// Folders of the recipe that are copied to the build.
    pub folders: Vec<FolderFiles>,
    /// Files of the recipe (patches) that are copied to the build: name there, name in the recipe's folder.
    pub patches: BTreeMap<String, String>,
    /// What happens in the container, in order.
    pub steps: Vec<Step>,
    /// Files of the build by path: scripts, `spack.yaml` and so on.
    pub files: BTreeMap<String, String>,
    /// All of it for `docker build`.
    pub containerfile: String,
}

/// A step in the container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Step {
    /// What it does.
    pub title: String,
    /// What it needs the network for, if it does.
    pub network: Option<String>,
    /// Its commands as argument vectors, for people; empty where the script says more.
    pub commands: Vec<Vec<String>>,
    /// Its script in `steps/`.
    pub file: String,
}

/// Parts of a plan that differ between `source` and `spack`.
pub(super) struct Parts {
    pub(super) downloads: Vec<Download>,
    pub(super) folders: Vec<FolderFiles>,
    pub(super) patches: BTreeMap<String, String>,
    pub(super) steps: Vec<(Step, String)>,
    pub(super) files: BTreeMap<String, String>,
    pub(super) view: Option<String>,
    pub(super) facts: serde_json::Value,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The recipe does not have the system.
    #[error("recipe `{recipe}` has no system `{system}`; it has {}", known.join(", "))]
    System {
        /// The recipe.
        recipe: String,
        /// What was asked for.
        system: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A package has no sources for the architecture.
    #[error("recipe `{recipe}` cannot be built on {system} for {arch}: a package has no sources for it")]
    Arch {
        /// The recipe.
        recipe: String,
        /// The system.
        system: String,
        /// What was asked for.
        arch: Arch,
    },
    /// A bug.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// A bug.
    #[error(transparent)]
    Yaml(#[from] crate::bundle::yaml::YamlError),
}

/// Makes the plan.
///
/// # Errors
/// A system or architecture that the recipe does not have.
pub fn plan(recipe: &Recipe, system_name: &str, arch: Arch) -> Result<Plan, PlanError> {
    let Some(system) = recipe.systems.get(system_name) else {
        let known = recipe.systems.keys().cloned().collect();
        return Err(PlanError::System { recipe: recipe.name.clone(), system: system_name.to_owned(), known });
    };
    if !recipe.architectures(system_name).contains(&arch) {
        return Err(PlanError::Arch { recipe: recipe.name.clone(), system: system_name.to_owned(), arch });
    }
    let scripts = Scripts::new()?;
    let target = Target { recipe, name: system_name, system, arch, scripts: &scripts };
    let parts = match &recipe.how {
        How::Source(how) => source::parts(how, &target)?,
        How::Spack(how) => spack::parts(how, &target)?,
    };
    assemble(parts, &target)
}

/// What a plan is made for.
pub(super) struct Target<'a> {
    pub(super) recipe: &'a Recipe,
    pub(super) name: &'a str,
    pub(super) system: &'a System,
    pub(super) arch: Arch,
    pub(super) scripts: &'a Scripts,
}

impl Target<'_> {
    /// For headings: `flux on rocky-9, amd64`.
    pub(super) fn title(&self) -> String {
        format!("{} on {}, {}", self.recipe.name, self.name, self.arch)
    }
}

fn assemble(parts: Parts, target: &Target<'_>) -> Result<Plan, PlanError> {
    let Target { recipe, name, system, arch, scripts } = target;
    let mut files = parts.files;
    let system_values = context! {
        title => target.title(), before => system.before.is_some(), apt => join(&system.apt), dnf => join(&system.dnf),
    };
    files.insert("system/system.sh".to_owned(), scripts.render("system.sh", &system_values)?);
    if let Some(before) = &system.before {
        files.insert("system/before.sh".to_owned(), shell_file(before));
    }
    let steps: Vec<Step> = parts.steps.iter().map(|(step, _)| step.clone()).collect();
    for (step, script) in parts.steps {
        files.insert(format!("build/steps/{}", step.file), script);
    }
    let network = steps.iter().any(|s| s.network.is_some());
    let run = context! { title => target.title(), count => steps.len(), steps => Value::from(Serde(&steps)), network };
    files.insert("build/run.sh".to_owned(), scripts.render("run.sh", &run)?);

    let of_system = |(path, _): &(&String, &String)| path.starts_with("system/");
    let system_files: BTreeMap<_, _> = files.iter().filter(of_system).collect();
    let system_facts = json!({ "format": FORMAT, "base": system.base, "arch": arch, "files": system_files });
    let system_key = short(&system_facts);
    let digests: BTreeMap<_, _> = files.iter().map(|(path, text)| (path, sha256_hex(text.as_bytes()))).collect();
    let sources: BTreeMap<_, _> = parts.downloads.iter().map(|d| (&d.file, &d.sha256)).collect();
    let facts = json!({
        "format": FORMAT, "system": system_key, "files": digests, "sources": sources, "folders": parts.folders,
        "facts": parts.facts,
    });
    let mut plan = Plan {
        recipe: recipe.name.clone(),
        kind: recipe.kind(),
        system: (*name).to_owned(),
        arch: *arch,
        key: format!("{}-{name}-{arch}-{}", recipe.name, short(&facts)),
        system_key,
        base: system.base.clone(),
        pinned: system.is_pinned(),
        view: parts.view,
        downloads: parts.downloads,
        folders: parts.folders,
        patches: parts.patches,
        steps,
        files,
        containerfile: String::new(),
    };
    plan.containerfile = containerfile::render(&plan);
    Ok(plan)
}

/// The first 16 hexadecimal digits of the SHA-256 of a value.
pub(super) fn short(facts: &serde_json::Value) -> String {
    let mut digest = sha256_hex(facts.to_string().as_bytes());
    digest.truncate(16);
    digest
}

/// The SHA-256 of a value as 32 letters of base 32, which is how the folders of Spack's packages end: by that, layers and
/// versions of packages are found in a tree.
pub(super) fn letters(facts: &serde_json::Value) -> String {
    const ALPHABET: [u8; 32] = *b"abcdefghijklmnopqrstuvwxyz234567";
    let digest = Sha256::digest(facts.to_string().as_bytes());
    digest.iter().map(|byte| char::from(ALPHABET[usize::from(byte & 31)])).collect()
}

/// Shell of a recipe as a file of its own.
pub(super) fn shell_file(text: &str) -> String {
    format!("# shellcheck shell=bash\n{}\n", text.trim_end())
}

impl Plan {
    /// What needs the network, in order: what for, and where it happens.
    #[must_use]
    pub fn network(&self) -> Vec<String> {
        let mut needs = vec![format!("base image {}", self.base)];
        if self.files.get("system/system.sh").is_some_and(|s| s.contains(" install ") || s.contains("before.sh")) {
            needs.push("packages of the system".to_owned());
        }
        needs.extend(self.downloads.iter().filter(|d| !d.url.starts_with("file:")).map(|d| d.url.clone()));
        needs.extend(self.steps.iter().filter_map(|s| s.network.as_ref().map(|what| format!("{}: {what}", s.title))));
        needs
    }
}
