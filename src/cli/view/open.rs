//! Opens what the command line or a view file names: layouts, archives, trees, images of registries.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::find::Views;
use crate::cli::error::CommandError;
pub(super) use crate::cli::registry::{RegistryArgs, failed as command_error};
use crate::oci::document::Document;
use crate::oci::kept::{Kept, Store};
use crate::oci::layout::{Layout, Limits};
use crate::oci::registry::{Client, Repository};
use crate::oci::{Descriptor, Error, ErrorKind, Platform, Reference, Source, source};
use crate::view::build::Opened;
use crate::view::image::{self, Image, ImageError};

/// What a word on the command line names.
#[expect(clippy::large_enum_variant, reason = "one per command")]
pub(super) enum Target {
    /// An image.
    Image(Opened),
    /// A folder or archive with files.
    Tree(PathBuf),
}

/// Opens images.
pub(super) struct Opener {
    root: PathBuf,
    client: Arc<Client>,
    /// Keeps what is fetched of registries.
    store: Option<Store>,
}

impl Opener {
    pub(super) fn new(args: &RegistryArgs, root: &Path) -> Result<Self, CommandError> {
        Ok(Self { root: root.to_path_buf(), client: args.client()?, store: None })
    }

    /// The same, for commands that read what is kept in place of the registry.
    pub(super) fn keeping(self, folder: &Path) -> Self {
        Self { store: Some(Store::new(folder)), ..self }
    }

    /// The client for registries.
    pub(super) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Opens an image of a view or recipe file: `layout:PATH[:NAME]`, relative to the project, or a reference.
    pub(super) fn open(&self, text: &str) -> Result<Opened, Error> {
        match text.strip_prefix("layout:") {
            Some(rest) => named_layout(&self.root, rest),
            None => self.registry(text),
        }
    }

    fn registry(&self, text: &str) -> Result<Opened, Error> {
        let reference: Reference = text.parse()?;
        let repository = Repository::to_pull(&self.client, &reference);
        let known = self.store.as_ref().zip(reference.digest()).and_then(|(store, digest)| store.document(digest));
        if let Some(root) = known {
            return Ok((self.source(repository), root));
        }
        let name = match (reference.digest(), reference.tag_or_latest()) {
            (Some(digest), _) => digest.to_string(),
            (None, tag) => tag.unwrap_or("latest").to_owned(),
        };
        let missing = || Error::new(ErrorKind::NotFound, format!("{} has no image `{name}`", reference.name()));
        let root = repository.resolve(&name)?.ok_or_else(missing)?;
        Ok((self.source(repository), root))
    }

    fn source(&self, repository: Repository) -> Arc<dyn Source> {
        match &self.store {
            Some(store) => Arc::new(Kept::new(repository, store.clone())),
            None => Arc::new(repository),
        }
    }

    /// Finds out what a word of the command line is: a view of the project, a path, or a reference.
    pub(super) fn target(&self, text: &str, views: &Views) -> Result<Target, Error> {
        if let Some(rest) = text.strip_prefix("layout:") {
            return named_layout(Path::new(""), rest).map(Target::Image);
        }
        if !text.contains(['/', '\\']) && views.folder(text).join("view.yaml").is_file() {
            let built = super::build::layout_of(views, text);
            return layout(&built, None).map(Target::Image).map_err(|error| not_built(text, &built, error));
        }
        let path = Path::new(text);
        if !path.exists() {
            return self.registry(text).map(Target::Image);
        }
        match layout(path, None) {
            Ok(opened) => Ok(Target::Image(opened)),
            // Not an image: a folder or archive with files in it.
            Err(error) if error.kind() == ErrorKind::Layout => Ok(Target::Tree(path.to_path_buf())),
            Err(error) => Err(error),
        }
    }
}

/// A view without a layout was not built.
fn not_built(view: &str, layout: &Path, error: Error) -> Error {
    if layout.exists() {
        return error;
    }
    let message = format!("the view `{view}` is not built: there is no {}", layout.display());
    Error::new(ErrorKind::NotFound, message).help(format!("run `flux-gen view build {view}`"))
}

/// `PATH[:NAME]`, from a folder.
fn named_layout(root: &Path, text: &str) -> Result<Opened, Error> {
    let whole = root.join(text);
    if whole.exists() {
        return layout(&whole, None);
    }
    match text.rsplit_once(':') {
        Some((path, name)) => layout(&root.join(path), Some(name)),
        None => layout(&whole, None),
    }
}

/// An image of a layout. Without a name: the only one, else the index that has all the others.
fn layout(path: &Path, name: Option<&str>) -> Result<Opened, Error> {
    let layout = Layout::open(path, &Limits::default())?;
    let root = match (name, layout.find(name)) {
        (_, Ok(root)) => root.clone(),
        (None, Err(error)) => whole(&layout).ok_or(error)?,
        (Some(_), Err(error)) => return Err(error),
    };
    Ok((Arc::new(layout), root))
}

/// The one index of a layout that names all manifests that the layout names beside it.
fn whole(layout: &Layout) -> Option<Descriptor> {
    let mut found: Option<Descriptor> = None;
    for root in layout.roots() {
        let Ok(loaded) = source::document(layout, root) else { continue };
        if let Document::Index(index) = loaded.document {
            let has = |other: &Descriptor| {
                other.digest == root.digest || index.manifests.iter().any(|d| d.digest == other.digest)
            };
            if layout.roots().iter().all(has) && found.as_ref().is_none_or(|known| known.digest == root.digest) {
                found = Some(root.clone());
            }
        }
    }
    found
}

/// The images of an index, or the one of a manifest; only one platform's if one is given.
pub(super) fn images(
    source: &dyn Source,
    root: &Descriptor,
    platform: Option<&Platform>,
) -> Result<Vec<Image>, ImageError> {
    if let Some(platform) = platform {
        return Ok(vec![image::open(source, root, platform)?]);
    }
    match source::document(source, root)?.document {
        Document::Manifest(_) => Ok(vec![image::read(source, root.clone())?]),
        Document::Index(index) => {
            // Attestations stand beside images under a platform that does not exist.
            let real = |d: &&Descriptor| d.platform.as_ref().is_none_or(|platform| platform.os != "unknown");
            index.manifests.iter().filter(real).map(|d| image::read(source, d.clone())).collect()
        }
    }
}
