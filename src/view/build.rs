//! Builds a view: each platform's tree is read, completed, checked, cut and packed; then the documents are written, and last
//! the index that makes them visible.

mod config;

pub use config::rfc3339;

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;

use rayon::prelude::*;

use super::cache::{self, Cache, Cached};
use super::contract::{self, Expected, Report};
use super::elf::{self, Elf};
use super::entry::{Tree, TreePath, shown};
use super::group::{self, Group};
use super::image::{self, Image, ImageError};
use super::pack::{Compression, Item, ItemKind, Layer, PackError, PackOptions, pack};
use super::plan::{Base, Input, Plan};
use super::problem::Problems;
use super::tree::{self, ReadError, ReadOptions};
use super::{assemble, entry};
use crate::diag::codes::view as codes;
use crate::diag::{Diagnostic, Diagnostics, Span};
use crate::oci::descriptor::REF_NAME;
use crate::oci::document::Index;

use crate::oci::layout::{Layout, LayoutWriter};
use crate::oci::{Descriptor, Digest, Error, Platform, Source, media};

/// How to build.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// Threads that compress.
    pub threads: NonZeroUsize,
    /// Modification time of everything, in seconds since 1970 (`SOURCE_DATE_EPOCH`).
    pub time: u64,
    /// What was packed before; `None` reads everything again.
    pub cache: Option<Cache>,
    /// Folder for temporary copies of compressed archives and layers.
    pub scratch: std::path::PathBuf,
    /// Folder that paths of the view are relative to.
    pub root: std::path::PathBuf,
}

/// An image that was opened, with the descriptor of its index or manifest.
pub type Opened = (Arc<dyn Source>, Descriptor);
/// Opens an image by what a view file says of it.
pub type OpenImage<'a> = dyn Fn(&str) -> Result<Opened, Error> + 'a;

/// Why a view was not built: diagnostics, at least one of them an error.
#[derive(Debug)]
pub struct Failed(pub Diagnostics);

/// A layer of a built image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltLayer {
    /// Name of the group.
    pub name: String,
    /// Digest of the tar stream.
    pub diff_id: String,
    /// Digest and size of the blob.
    pub descriptor: Descriptor,
    /// Bytes of its files.
    pub bytes: u64,
    /// Number of its entries.
    pub entries: usize,
    /// It was packed by an earlier build.
    pub reused: bool,
}

/// The image of one platform.
#[derive(Debug)]
pub struct BuiltImage {
    /// The platform.
    pub platform: Platform,
    /// Its manifest.
    pub manifest: Descriptor,
    /// Its layers, without the base's.
    pub layers: Vec<BuiltLayer>,
    /// Number of layers of the base.
    pub base_layers: usize,
    /// What the contract says of it.
    pub report: Report,
}

/// What is told on the way.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// A tree is read.
    Reading(&'a Platform),
    /// A layer is packed; its number of all, its name and bytes.
    Packing(usize, usize, &'a Group),
    /// A layer is as it was.
    Reused(usize, usize, &'a Group),
}

/// A tree that is ready to be packed.
#[derive(Debug)]
pub struct Prepared {
    /// The tree.
    pub tree: Tree,
    /// Its layers.
    pub groups: Vec<Group>,
    /// What was remarked.
    pub problems: Problems,
}

/// Turns an error of the operating system into what is said of a tree.
fn failed(code: crate::diag::Code, span: Option<Span>, message: impl Into<String>) -> Failed {
    let mut diagnostic = Diagnostic::global_error(code, message);
    diagnostic.span = span;
    Failed([diagnostic].into_iter().collect())
}

fn tree_error(span: Span, error: &ReadError) -> Failed {
    failed(codes::TREE_UNREADABLE, Some(span), error.to_string())
}

fn image_error(span: Span, error: &ImageError) -> Failed {
    let mut diagnostic = Diagnostic::error(codes::BASE_UNUSABLE, span, error.to_string());
    if let ImageError::Oci(error) = error {
        diagnostic.help = error.advice().map(str::to_owned);
    }
    Failed([diagnostic].into_iter().collect())
}

/// Problems as diagnostics at a place.
fn at(span: Span, problems: Problems) -> Diagnostics {
    let diagnostics = problems.diagnostics().sorted().into_iter();
    diagnostics.map(|diagnostic| Diagnostic { span: Some(span), ..diagnostic }).collect()
}

impl Input {
    /// Where the view or its recipe names it.
    #[must_use]
    pub fn span(&self) -> Span {
        match self {
            Self::Tree { path, .. } => path.span,
            Self::Image(image) => image.span,
        }
    }
}

/// Reads, completes, checks and groups the tree of one platform.
///
/// # Errors
/// When it cannot be read, or holds what cannot be packed.
pub fn prepare(
    plan: &Plan,
    platform: &Platform,
    input: &Input,
    options: &BuildOptions,
    open: &OpenImage<'_>,
) -> Result<Prepared, Failed> {
    let span = input.span();
    let mut problems = Problems::default();
    let read = ReadOptions {
        xattrs: plan.xattrs,
        exclude: plan.exclude.clone(),
        scratch: options.scratch.clone(),
        kept: options.cache.as_ref().map(Cache::trees),
    };
    let mut tree = match input {
        Input::Tree { path, prefix } => {
            let folder = options.root.join(&path.value);
            let tree = tree::index(&folder, &read, &mut problems).map_err(|e| tree_error(span, &e))?;
            let prefix = prefix.as_deref();
            if let Some((path, what, help)) = assemble::other_shape(&tree, prefix) {
                problems.error(codes::LAYOUT, shown(&path), what, help.as_str());
                return Err(Failed(at(span, problems)));
            }
            match prefix {
                Some(prefix) => assemble::place(tree, prefix),
                None => tree,
            }
        }
        Input::Image(reference) => {
            let (source, root) = open(&reference.value).map_err(|e| image_error(span, &e.into()))?;
            let image = image::open(source.as_ref(), &root, platform).map_err(|e| image_error(span, &e))?;
            let (mut tree, _) =
                image::kept_tree(&source, &image, &read, &mut problems).map_err(|e| image_error(span, &e))?;
            image::keep_view(&mut tree);
            tree
        }
    };
    assemble::complete(&mut tree);
    let mut rules = plan.rules.clone();
    if let Base::Scratch(helpers) = &plan.base
        && let Some(helper) = helpers.get(platform)
    {
        let path = options.root.join(&helper.value);
        assemble::add_helper(&mut tree, &path, &platform.architecture, &mut problems).map_err(|error| {
            failed(codes::HELPER, Some(helper.span), format!("cannot read {}: {error}", path.display()))
        })?;
        rules.insert(0, assemble::helper_rule());
    }
    tree::check(&mut tree, plan.check, &mut problems);
    if problems.has_errors() {
        return Err(Failed(at(span, problems)));
    }
    // The helper's layer is one more.
    let budget = plan.budget + (rules.len() - plan.rules.len());
    Ok(Prepared { groups: group::group(&tree, &rules, budget), tree, problems })
}

/// Builds all platforms of a view into a layout. Nothing of it is visible before [`publish`].
///
/// # Errors
/// With everything that is wrong; what was written so far is of no use without an index.
pub fn build(
    plan: &Plan,
    writer: &LayoutWriter,
    options: &BuildOptions,
    open: &OpenImage<'_>,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<(Vec<BuiltImage>, Diagnostics), Failed> {
    let mut images = Vec::new();
    let mut remarks = Diagnostics::new();
    for (platform, input) in &plan.inputs {
        tell(Event::Reading(platform));
        let (image, said) = build_image(plan, platform, input, writer, options, open, tell)?;
        images.push(image);
        remarks.extend(said);
    }
    Ok((images, remarks))
}

fn build_image(
    plan: &Plan,
    platform: &Platform,
    input: &Input,
    writer: &LayoutWriter,
    options: &BuildOptions,
    open: &OpenImage<'_>,
    tell: &mut dyn FnMut(Event<'_>),
) -> Result<(BuiltImage, Diagnostics), Failed> {
    let span = input.span();
    let Prepared { tree, groups, problems } = prepare(plan, platform, input, options, open)?;
    let jobs: Vec<Job<'_>> = groups.iter().map(|group| Job::new(&tree, group, plan, writer, options)).collect();
    let mut elves = Elves::new();
    for job in &jobs {
        elves.extend(job.elves().map_err(|error| pack_failed(span, &error))?);
    }
    let provided = plan.provided.as_slice();
    let expected = Expected { architecture: Some(&platform.architecture), glibc: plan.glibc, provided, labels: None };
    let mut report = contract::check(&tree, &elves, expected);
    let mut remarks = at(span, problems);
    let broken = report.problems.has_errors();
    remarks.extend(at(span, std::mem::take(&mut report.problems)));
    if broken {
        return Err(Failed(remarks));
    }
    let mut layers = Vec::new();
    for (number, job) in jobs.into_iter().enumerate() {
        let event = (number + 1, groups.len(), job.group);
        if job.cached.is_some() {
            tell(Event::Reused(event.0, event.1, event.2));
        } else {
            tell(Event::Packing(event.0, event.1, event.2));
        }
        layers.push(job.run(&elves, plan.compression, writer, options).map_err(|error| pack_failed(span, &error))?);
    }
    let base = base_image(plan, platform, writer, open)?;
    let manifest = config::write(plan, platform, &layers, &report, base.as_ref(), writer, options.time)
        .map_err(|error| oci_failed(span, &error))?;
    let base_layers = base.map_or(0, |base| base.manifest.layers.len());
    Ok((BuiltImage { platform: platform.clone(), manifest, layers, base_layers, report }, remarks))
}

fn pack_failed(span: Span, error: &PackError) -> Failed {
    let full = |e: &io::Error| matches!(e.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let mut diagnostic = Diagnostic::error(codes::PACK_FAILED, span, error.to_string());
    if let PackError::Write(e) = error
        && full(e)
    {
        diagnostic.help = Some("free space, or write the layout elsewhere with -o".to_owned());
    }
    Failed([diagnostic].into_iter().collect())
}

fn oci_failed(span: Span, error: &Error) -> Failed {
    let mut diagnostic = error.diagnostic();
    diagnostic.span = Some(span);
    Failed([diagnostic].into_iter().collect())
}

/// Brings the base's layers into the layout.
fn base_image(
    plan: &Plan,
    platform: &Platform,
    writer: &LayoutWriter,
    open: &OpenImage<'_>,
) -> Result<Option<Image>, Failed> {
    let Base::Image(base) = &plan.base else { return Ok(None) };
    let failed = |error: ImageError| image_error(base.span, &error);
    let (source, root) = open(&base.value).map_err(|e| failed(e.into()))?;
    let image = image::open(source.as_ref(), &root, platform).map_err(failed)?;
    for layer in &image.manifest.layers {
        writer.copy(source.as_ref(), layer, &mut |_| ()).map_err(|e| failed(e.into()))?;
    }
    Ok(Some(image))
}

/// Programs and libraries, by path.
type Elves = BTreeMap<TreePath, Elf>;

/// A layer that is to be packed, or was.
struct Job<'a> {
    group: &'a Group,
    layer: Layer<'a>,
    key: String,
    cached: Option<Cached>,
}

impl<'a> Job<'a> {
    fn new(tree: &'a Tree, group: &'a Group, plan: &Plan, writer: &LayoutWriter, options: &BuildOptions) -> Self {
        let layer = Layer::of(tree, &group.paths);
        let key = cache::key(&layer, plan.compression, options.time);
        let cached = options.cache.as_ref().and_then(|cache| cache.get(&key));
        let cached = cached.filter(|cached| descriptor(plan.compression, cached).is_some_and(|d| writer.has(&d)));
        Self { group, layer, key, cached }
    }

    /// The layer's programs and libraries, from an earlier build if they are known.
    fn elves(&self) -> Result<Elves, PackError> {
        let elf = |item: &Item<'_>| {
            let ItemKind::File(content) = item.kind else { return Ok(None) };
            let elf = match &self.cached {
                Some(cached) => cached.elves.get(&cache::text(item.path)).cloned(),
                None => elf::read(content).map_err(|error| PackError::Read { path: shown(item.path), error })?,
            };
            Ok(elf.map(|elf| (item.path.to_vec(), elf)))
        };
        let found: Vec<Result<Option<(TreePath, Elf)>, PackError>> = self.layer.items.par_iter().map(elf).collect();
        // In order, so that of several errors always the first is told.
        found.into_iter().filter_map(Result::transpose).collect()
    }

    fn run(
        self,
        elves: &Elves,
        compression: Compression,
        writer: &LayoutWriter,
        options: &BuildOptions,
    ) -> Result<BuiltLayer, PackError> {
        let (bytes, entries) = (self.layer.size(), self.layer.items.len());
        let reused = self.cached.is_some();
        let cached = match self.cached {
            Some(cached) => cached,
            None => self.pack(elves, compression, writer, options)?,
        };
        let descriptor = descriptor(compression, &cached);
        let descriptor = descriptor.ok_or_else(|| PackError::Compress("a digest is none".to_owned()))?;
        Ok(BuiltLayer { name: self.group.name.clone(), diff_id: cached.diff_id, descriptor, bytes, entries, reused })
    }

    fn pack(
        &self,
        elves: &Elves,
        compression: Compression,
        writer: &LayoutWriter,
        options: &BuildOptions,
    ) -> Result<Cached, PackError> {
        let failed = |error: Error| PackError::Write(error.into_io());
        let mut blob = writer.blob().map_err(failed)?;
        let how = PackOptions { compression, threads: options.threads, time: options.time };
        let packed = pack(&self.layer, how, &mut blob)?;
        let written = blob.modified().map_err(PackError::Write)?;
        let made = blob.finish(compression.media_type()).map_err(failed)?;
        let paths = self.layer.items.iter().map(|item| item.path);
        let own = paths.filter_map(|path| Some((cache::text(path), elves.get(path)?.clone())));
        let cached = Cached {
            digest: made.digest.to_string(),
            size: made.size,
            diff_id: packed.diff_id,
            tar_size: packed.tar_size,
            elves: own.collect(),
        };
        if let Some(cache) = &options.cache
            && !self.just_changed(written)
        {
            cache.put(&self.key, &cached).map_err(PackError::Write)?;
        }
        Ok(cached)
    }

    /// Whether a file changed so shortly before it was packed that another change might not show in its times, which are
    /// only as exact as the kernel's clock tick. The blob was `written` after.
    fn just_changed(&self, written: i128) -> bool {
        let content = |kind| if let ItemKind::File(content) = kind { content.changed() } else { None };
        self.layer.items.iter().filter_map(|item| content(item.kind)).any(|changed| changed + entry::TICK > written)
    }
}

fn descriptor(compression: Compression, cached: &Cached) -> Option<Descriptor> {
    let digest: Digest = cached.digest.parse().ok()?;
    Some(Descriptor::new(compression.media_type(), digest, cached.size))
}

/// The programs and libraries of a tree.
///
/// # Errors
/// When a file cannot be read.
pub fn elves_of(tree: &Tree) -> Result<Elves, PackError> {
    let mut all = BTreeMap::new();
    let files = tree.entries.iter().filter_map(|(path, entry)| Some((path, entry.content()?)));
    for (path, content) in files.filter(|(path, _)| contract::is_view_path(path)) {
        let elf = elf::read(content).map_err(|error| PackError::Read { path: shown(path), error })?;
        all.extend(elf.map(|elf| (path.clone(), elf)));
    }
    Ok(all)
}

/// Makes the built images visible in the layout: their index and their tags.
///
/// # Errors
/// When the layout cannot be written.
pub fn publish(plan: &Plan, images: &[BuiltImage], writer: LayoutWriter) -> Result<(Layout, Descriptor), Error> {
    let manifests = images.iter().map(|image| image.manifest.clone().platform(image.platform.clone())).collect();
    let mut index = Index::new(manifests);
    index.annotations = config::annotations(plan);
    let root = writer.json(media::INDEX, &index)?;
    let mut names = Vec::new();
    for tag in &plan.tags {
        let image = tag.platform.as_ref().and_then(|p| images.iter().find(|image| image.platform == *p));
        let named = image.map_or_else(|| root.clone(), |image| image.manifest.clone().platform(image.platform.clone()));
        names.push(named.annotation(REF_NAME, tag.name.as_str()));
    }
    if !plan.tags.iter().any(|tag| tag.platform.is_none()) {
        names.push(root.clone().annotation(REF_NAME, plan.name.as_str()));
    }
    let layout = writer.finish(&Index::new(names))?;
    Ok((layout, root))
}
