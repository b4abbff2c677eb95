//! From a view and its recipe as written to what will be built. Pure: no files are looked at.

mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::elf::Glibc;
use super::group::{BUDGET, Rule};
use super::pack::Compression;
use super::tree::{CheckOptions, Setuid, Xattrs};
use crate::diag::codes::view as codes;
use crate::diag::{Diagnostic, Diagnostics, Span};
use crate::oci::{Platform, Reference};
use crate::spec::minicluster::List;
use crate::spec::recipe::TreeSource;
use crate::spec::view::{LayerRule, Tag};
use crate::spec::{Map, Recipe, Spanned, View};

/// Most layers that `budget` may allow.
const MOST_LAYERS: i32 = 100;

/// What is under a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    /// Nothing; the helper for each platform fills the shared volume of a pod.
    Scratch(BTreeMap<Platform, Spanned<PathBuf>>),
    /// An image by digest, or one of a layout.
    Image(Spanned<String>),
}

/// Where the files of a platform come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A folder or archive.
    Tree {
        /// Its path.
        path: Spanned<PathBuf>,
        /// Where it belongs in the image, without a slash in front; the root when `None`.
        prefix: Option<String>,
    },
    /// A view image.
    Image(Spanned<String>),
}

/// A tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagPlan {
    /// Its name.
    pub name: String,
    /// Whose image it names; all of them when `None`.
    pub platform: Option<Platform>,
}

/// A view, resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Name of its folder.
    pub name: String,
    /// Name of its recipe.
    pub recipe: String,
    /// What it is for.
    pub description: Option<String>,
    /// What is under it.
    pub base: Base,
    /// Its platforms and where their files come from, in the order of the file.
    pub inputs: Vec<(Platform, Input)>,
    /// Where it is pushed to.
    pub repository: Option<Reference>,
    /// Tags.
    pub tags: Vec<TagPlan>,
    /// Labels beside those that flux-gen makes.
    pub labels: BTreeMap<String, String>,
    /// Operating system of the tree, for people.
    pub os: Option<String>,
    /// The newest glibc it may need.
    pub glibc: Option<Glibc>,
    /// Most layers.
    pub budget: usize,
    /// Layers to make.
    pub rules: Vec<Rule>,
    /// Compression of the layers.
    pub compression: Compression,
    /// Extended attributes to keep.
    pub xattrs: Xattrs,
    /// What is allowed beyond the usual.
    pub check: CheckOptions,
    /// Libraries that application images have.
    pub provided: Vec<String>,
    /// What is left out of the tree.
    pub exclude: Vec<String>,
}

impl Plan {
    /// Leaves these platforms, and the tags that name one of them or the whole.
    ///
    /// # Errors
    /// The first platform that the view does not have.
    pub fn only(&mut self, platforms: &[Platform]) -> Result<(), Platform> {
        let has = |wanted: &&Platform| self.inputs.iter().any(|(platform, _)| platform == *wanted);
        if let Some(unknown) = platforms.iter().find(|wanted| !has(wanted)) {
            return Err(unknown.clone());
        }
        self.inputs.retain(|(platform, _)| platforms.contains(platform));
        self.tags.retain(|tag| tag.platform.as_ref().is_none_or(|platform| platforms.contains(platform)));
        Ok(())
    }
}

/// Resolves a view. The plan is only to be used when no diagnostic is an error.
#[must_use]
pub fn resolve(name: &str, view: &View, recipe: &Recipe) -> (Option<Plan>, Diagnostics) {
    let mut resolver = Resolver { found: Diagnostics::new() };
    let plan = resolver.plan(name, view, recipe);
    (plan, resolver.found)
}

struct Resolver {
    found: Diagnostics,
}

impl Resolver {
    fn error(&mut self, code: crate::diag::Code, span: Span, message: String, help: &str) {
        self.found.push(Diagnostic::error(code, span, message).help(help));
    }

    fn plan(&mut self, name: &str, view: &View, recipe: &Recipe) -> Option<Plan> {
        let platforms = self.platforms(view.platforms.as_ref()?);
        let base = self.base(view, &platforms);
        let inputs = self.inputs(recipe, &platforms);
        let rules = self.rules(view.layers.as_ref());
        let list = |written: &Option<Spanned<List<String>>>| -> Option<Vec<String>> {
            Some(written.as_ref()?.value.iter().map(|item| item.value.clone()).collect())
        };
        let text = |written: &Option<Spanned<String>>| written.as_ref().map(|text| text.value.clone());
        Some(Plan {
            name: name.to_owned(),
            recipe: view.recipe.as_ref()?.value.clone(),
            description: text(&view.description),
            base,
            inputs: platforms.iter().map(|p| p.value.clone()).zip(inputs?).collect(),
            repository: self.repository(view.repository.as_ref()),
            tags: self.tags(view.tags.as_ref(), &platforms),
            labels: view
                .labels
                .iter()
                .flat_map(|l| l.iter())
                .map(|e| (e.key.value.clone(), e.value.value.clone()))
                .collect(),
            os: text(&view.os),
            glibc: self.glibc(view.glibc.as_ref()),
            budget: self.budget(view.budget.as_ref(), rules.len()),
            rules,
            compression: self.compression(view.compression.as_ref()),
            xattrs: self.xattrs(view.xattrs.as_ref()),
            check: CheckOptions {
                setuid: self.setuid(view.setuid.as_ref()),
                outside_links: self.outside_links(view.outside_links.as_ref()),
            },
            provided: list(&view.provided).unwrap_or_default(),
            exclude: list(&recipe.exclude).unwrap_or_else(|| vec!["__pycache__".to_owned()]),
        })
    }

    fn platform(&mut self, written: &Spanned<String>) -> Option<Platform> {
        match written.value.parse::<Platform>() {
            Ok(platform) if platform.os == "linux" => Some(platform),
            Ok(_) | Err(_) => {
                let message = format!("`{}` is no platform that a view can be for", written.value);
                self.error(codes::BAD_PLATFORM, written.span, message, "write linux/amd64, linux/arm64 or the like");
                None
            }
        }
    }

    fn platforms(&mut self, written: &Spanned<List<String>>) -> Vec<Spanned<Platform>> {
        let mut platforms: Vec<Spanned<Platform>> = Vec::new();
        for item in &written.value {
            let Some(platform) = self.platform(item) else { continue };
            if platforms.iter().any(|known| known.value == platform) {
                let message = format!("`{}` is in the list twice", item.value);
                self.error(codes::BAD_PLATFORM, item.span, message, "take one out");
                continue;
            }
            platforms.push(Spanned::new(platform, item.span));
        }
        if written.value.is_empty() {
            let message = "a view needs a platform".to_owned();
            self.error(codes::BAD_PLATFORM, written.span, message, "write `- linux/amd64`");
        }
        platforms
    }

    /// A mapping whose keys are platforms.
    fn by_platform<'m, T>(&mut self, map: Option<&'m Spanned<Map<T>>>) -> BTreeMap<Platform, &'m Spanned<T>> {
        let mut found = BTreeMap::new();
        for entry in map.into_iter().flat_map(|map| map.value.iter()) {
            if let Some(platform) = self.platform(&entry.key)
                && found.insert(platform, &entry.value).is_some()
            {
                let message = format!("`{}` is given twice", entry.key.value);
                self.error(codes::BAD_PLATFORM, entry.key.span, message, "take one out");
            }
        }
        found
    }

    fn base(&mut self, view: &View, platforms: &[Spanned<Platform>]) -> Base {
        let helpers = self.by_platform(view.helper.as_ref());
        match view.base.as_ref().filter(|base| base.value != "scratch") {
            Some(base) => {
                self.image_reference(base, codes::BAD_BASE);
                if let Some(helper) = &view.helper {
                    let message = "`helper` is for a view on `scratch`; this one has a base".to_owned();
                    self.error(codes::BAD_BASE, helper.span, message, "remove `helper`, or write `base: scratch`");
                }
                Base::Image(base.clone())
            }
            None => {
                for platform in platforms.iter().filter(|platform| !helpers.contains_key(&platform.value)) {
                    let message = format!("a view on `scratch` has no helper for {}", platform.value);
                    let help =
                        "write under `helper` the path of a static busybox for it, or name a `base` that has a shell";
                    self.error(codes::BAD_BASE, platform.span, message, help);
                }
                let path = |text: &Spanned<String>| text.clone().map(PathBuf::from);
                Base::Scratch(helpers.into_iter().map(|(platform, text)| (platform, path(text))).collect())
            }
        }
    }

    /// An image by digest, or one of a layout.
    fn image_reference(&mut self, written: &Spanned<String>, code: crate::diag::Code) {
        if written.value.starts_with("layout:") {
            return;
        }
        let help = "write registry/name@sha256:... or layout:PATH, or run `flux-gen recipe lock`, which pins tags";
        match written.value.parse::<Reference>() {
            Ok(reference) if reference.digest().is_some() => {}
            Ok(_) => {
                let message = format!("`{}` has no digest: another day it may be another image", written.value);
                self.error(code, written.span, message, help);
            }
            Err(error) => {
                let message = format!("`{}` is no image: {}", written.value, error.message());
                self.error(code, written.span, message, help);
            }
        }
    }

    /// Where the files of each platform come from, in the order of the platforms.
    fn inputs(&mut self, recipe: &Recipe, platforms: &[Spanned<Platform>]) -> Option<Vec<Input>> {
        let kind = recipe.kind.as_ref()?;
        match kind.value.as_str() {
            "tree" => {
                let others = [recipe.image.as_ref().map(|v| v.span), recipe.images.as_ref().map(|v| v.span)];
                self.other_kind("tree", others.into_iter().flatten());
                Some(self.trees(recipe, kind.span, platforms))
            }
            "image" => {
                self.other_kind("image", recipe.trees.iter().map(|v| v.span));
                Some(self.images(recipe, kind.span, platforms))
            }
            "source" | "spack" => {
                let message = format!("a recipe of kind `{}` has to be compiled first", kind.value);
                let help = "`flux-gen recipe build` compiles it; a recipe of kind `tree` takes the result";
                self.error(codes::NOT_COMPILED, kind.span, message, help);
                None
            }
            other => {
                self.error(
                    codes::BAD_RECIPE,
                    kind.span,
                    format!("`{other}` is no kind of recipe"),
                    "write `tree` or `image`",
                );
                None
            }
        }
    }

    fn other_kind(&mut self, kind: &str, spans: impl Iterator<Item = Span>) {
        for span in spans {
            let message = format!("a recipe of kind `{kind}` has no such field");
            self.error(codes::BAD_RECIPE, span, message, "remove it, or change `kind`");
        }
    }

    fn trees(&mut self, recipe: &Recipe, kind: Span, platforms: &[Spanned<Platform>]) -> Vec<Input> {
        let trees = self.by_platform(recipe.trees.as_ref());
        let mut inputs = Vec::new();
        for platform in platforms {
            let Some(tree) = trees.get(&platform.value) else {
                self.no_source(&platform.value, kind, "trees");
                continue;
            };
            inputs.extend(self.tree(tree));
        }
        inputs
    }

    fn tree(&mut self, tree: &Spanned<TreeSource>) -> Option<Input> {
        let path = tree.path.as_ref()?.clone().map(PathBuf::from);
        let prefix = match &tree.prefix {
            None => None,
            Some(prefix) => Some(self.prefix(prefix)?),
        };
        Some(Input::Tree { path, prefix })
    }

    /// A prefix is a plain path below the folders that pods mount.
    fn prefix(&mut self, written: &Spanned<String>) -> Option<String> {
        let path = written.value.trim_end_matches('/');
        let plain = path.strip_prefix('/').filter(|p| p.split('/').all(|part| !matches!(part, "" | "." | "..")));
        let good = plain.filter(|p| p.starts_with("opt/software/") || p.starts_with("opt/views/"));
        if good.is_none() {
            let message = format!("`{}` is not below /opt/software or /opt/views", written.value);
            let help = "pods mount these two only; Flux has to be compiled with a prefix in one of them";
            self.error(codes::BAD_RECIPE, written.span, message, help);
        }
        good.map(str::to_owned)
    }

    fn images(&mut self, recipe: &Recipe, kind: Span, platforms: &[Spanned<Platform>]) -> Vec<Input> {
        let images = self.by_platform(recipe.images.as_ref());
        for image in images.values().copied().chain(&recipe.image) {
            self.image_reference(image, codes::BAD_RECIPE);
        }
        let mut inputs = Vec::new();
        for platform in platforms {
            match images.get(&platform.value).copied().or(recipe.image.as_ref()) {
                Some(image) => inputs.push(Input::Image(image.clone())),
                None => self.no_source(&platform.value, kind, "images"),
            }
        }
        inputs
    }

    fn no_source(&mut self, platform: &Platform, span: Span, field: &str) {
        let message = format!("the recipe has nothing for {platform}");
        self.error(
            codes::BAD_RECIPE,
            span,
            message,
            &format!("add `{platform}:` under `{field}`, or take the platform out"),
        );
    }

    fn repository(&mut self, written: Option<&Spanned<String>>) -> Option<Reference> {
        let written = written?;
        let help = "write registry/name without a tag, such as ghcr.io/me/flux-view-rocky";
        match written.value.parse::<Reference>() {
            Ok(reference) if reference.tag().is_none() && reference.digest().is_none() => Some(reference),
            Ok(_) => {
                let message = format!("`{}` is an image, and a repository is asked for", written.value);
                self.error(codes::BAD_TAG, written.span, message, help);
                None
            }
            Err(error) => {
                self.error(codes::BAD_TAG, written.span, error.message().to_owned(), help);
                None
            }
        }
    }

    fn tags(&mut self, written: Option<&Spanned<List<Tag>>>, platforms: &[Spanned<Platform>]) -> Vec<TagPlan> {
        let mut seen = BTreeSet::new();
        let mut tags = Vec::new();
        for tag in written.into_iter().flat_map(|tags| &tags.value) {
            let Some(name) = &tag.name else { continue };
            if !words::is_tag(&name.value) {
                let help = "up to 128 letters, digits, `_`, `.` and `-`, the first a letter, digit or `_`";
                self.error(codes::BAD_TAG, name.span, format!("`{}` is no tag", name.value), help);
            } else if !seen.insert(name.value.clone()) {
                self.error(
                    codes::BAD_TAG,
                    name.span,
                    format!("the tag `{}` is given twice", name.value),
                    "take one out",
                );
            }
            let platform = tag.platform.as_ref().and_then(|written| {
                let platform = self.platform(written)?;
                if !platforms.iter().any(|known| known.value == platform) {
                    let message = format!("the view is not for {platform}");
                    self.error(codes::BAD_TAG, written.span, message, "add it to `platforms`, or take the tag out");
                }
                Some(platform)
            });
            tags.push(TagPlan { name: name.value.clone(), platform });
        }
        tags
    }

    fn rules(&mut self, written: Option<&Spanned<List<LayerRule>>>) -> Vec<Rule> {
        let mut rules: Vec<Rule> = Vec::new();
        let texts = |list: &Option<Spanned<List<String>>>| -> Vec<String> {
            list.iter().flat_map(|list| &list.value).map(|item| item.value.clone()).collect()
        };
        for rule in written.into_iter().flat_map(|rules| &rules.value) {
            let Some(name) = &rule.name else { continue };
            let made = Rule { name: name.value.clone(), packages: texts(&rule.packages), paths: texts(&rule.paths) };
            if made.packages.is_empty() && made.paths.is_empty() {
                let message = format!("the layer `{}` has no packages and no paths", made.name);
                self.error(codes::BAD_LAYER_RULE, rule.span, message, "add `packages` or `paths`");
            }
            if rules.iter().any(|known| known.name == made.name) {
                let message = format!("there are two layers `{}`", made.name);
                self.error(codes::BAD_LAYER_RULE, name.span, message, "join them, or rename one");
            }
            rules.push(made);
        }
        rules
    }

    fn glibc(&mut self, written: Option<&Spanned<String>>) -> Option<Glibc> {
        let written = written?;
        let version = written.value.parse().ok();
        if version.is_none() {
            let message = format!("`{}` is no version of glibc", written.value);
            self.error(codes::BAD_NUMBER, written.span, message, "write \"2.28\" or the like, in quotes");
        }
        version
    }

    fn budget(&mut self, written: Option<&Spanned<i32>>, rules: usize) -> usize {
        let Some(written) = written else { return BUDGET.max(rules + 2) };
        if !(1..=MOST_LAYERS).contains(&written.value) {
            let message = format!("{} layers are not possible", written.value);
            self.error(codes::BAD_NUMBER, written.span, message, "write a number from 1 to 100");
        }
        let budget = usize::try_from(written.value).unwrap_or(1);
        if budget < rules + 1 {
            let message = format!("{rules} layer rules and the view need {} layers", rules + 1);
            self.error(codes::SMALL_BUDGET, written.span, message, "raise `budget`, or join rules");
        }
        budget
    }

    fn compression(&mut self, written: Option<&Spanned<String>>) -> Compression {
        self.word(written, &[("gzip", Compression::Gzip), ("zstd", Compression::Zstd)])
    }

    fn xattrs(&mut self, written: Option<&Spanned<String>>) -> Xattrs {
        self.word(written, &[("none", Xattrs::None), ("capabilities", Xattrs::Capabilities), ("user", Xattrs::User)])
    }

    fn setuid(&mut self, written: Option<&Spanned<String>>) -> Setuid {
        self.word(written, &[("refuse", Setuid::Refuse), ("drop", Setuid::Drop), ("keep", Setuid::Keep)])
    }

    fn outside_links(&mut self, written: Option<&Spanned<String>>) -> bool {
        self.word(written, &[("refuse", false), ("keep", true)])
    }

    /// One of a few words; the first of them when nothing is written.
    fn word<T: Copy + Default>(&mut self, written: Option<&Spanned<String>>, words: &[(&str, T)]) -> T {
        let Some(written) = written else { return words.first().map(|(_, value)| *value).unwrap_or_default() };
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == written.value) {
            return *value;
        }
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let message = format!("`{}` is not known here", written.value);
        self.error(codes::BAD_CHOICE, written.span, message, &format!("write {}", known.join(", ")));
        T::default()
    }
}

#[cfg(test)]
mod tests;
