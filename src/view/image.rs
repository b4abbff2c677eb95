//! Images as trees: reads the layers of an image, one on the other, without unpacking anything.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::contract::is_view_path;
use super::entry::{Entry, Tree, parent};
use super::plain::PlainTar;
use super::problem::Problems;
use super::tree::{self, Meaning, ReadError, ReadOptions, Spooled};
use crate::oci::document::{Document, Manifest};
use crate::oci::image::ImageConfig;
use crate::oci::{Descriptor, Error, ErrorKind, Platform, Source, source};

/// Why an image could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A document or blob.
    #[error("{}", .0.message())]
    Oci(Box<Error>),
    /// A layer.
    #[error(transparent)]
    Layer(#[from] ReadError),
}

impl From<Error> for ImageError {
    fn from(error: Error) -> Self {
        Self::Oci(Box::new(error))
    }
}

/// The documents of an image of one platform.
#[derive(Debug, Clone)]
pub struct Image {
    /// Its manifest.
    pub descriptor: Descriptor,
    /// What the manifest says.
    pub manifest: Manifest,
    /// Its configuration.
    pub config: ImageConfig,
}

/// One layer of an image.
#[derive(Debug, Clone)]
pub struct LayerRow {
    /// Digest, media type and compressed size.
    pub descriptor: Descriptor,
    /// How it was made, as far as the configuration tells.
    pub created_by: Option<String>,
    /// Entries.
    pub entries: usize,
    /// Bytes of its files.
    pub bytes: u64,
}

/// Reads the documents of an image.
///
/// # Errors
/// When they are not there, or there is no image for the platform.
pub fn open(source: &dyn Source, root: &Descriptor, platform: &Platform) -> Result<Image, ImageError> {
    let descriptor = source::of_platform(source, root, platform)?;
    read(source, descriptor)
}

/// Reads the documents of an image by the descriptor of its manifest.
///
/// # Errors
/// When they are not there, or it is no manifest.
pub fn read(source: &dyn Source, descriptor: Descriptor) -> Result<Image, ImageError> {
    let Document::Manifest(manifest) = source::document(source, &descriptor)?.document else {
        return Err(Error::new(ErrorKind::Document, format!("{} is no manifest of an image", descriptor.digest)).into());
    };
    let place = format!("{} {}", source.name(), manifest.config.digest);
    let config = ImageConfig::parse(&place, &source::small(source, &manifest.config)?)?;
    Ok(Image { descriptor, manifest: *manifest, config })
}

/// Reads all layers of an image into one tree.
///
/// # Errors
/// When a layer cannot be read, or is not what its digests say.
pub fn tree(
    source: &Arc<dyn Source>,
    image: &Image,
    options: &ReadOptions,
    problems: &mut Problems,
) -> Result<(Tree, Vec<LayerRow>), ImageError> {
    let diff_ids = &image.config.rootfs.diff_ids;
    if diff_ids.len() != image.manifest.layers.len() {
        let message = format!(
            "{} has {} layers, and its configuration names {}",
            image.descriptor.digest,
            image.manifest.layers.len(),
            diff_ids.len()
        );
        return Err(Error::new(ErrorKind::Document, message).into());
    }
    let mut made_by = image.config.history.iter().filter(|step| !step.empty_layer).map(|step| step.created_by.clone());
    let mut all = Tree::default();
    let mut rows = Vec::new();
    for (serial, (layer, diff_id)) in image.manifest.layers.iter().zip(diff_ids).enumerate() {
        let one = Layer { source: Arc::clone(source), layer: layer.clone(), diff_id: diff_id.to_string() };
        let one = one.tree(options, problems)?;
        let bytes = one.entries.values().filter_map(Entry::content).map(|content| content.size).sum();
        rows.push(LayerRow {
            descriptor: layer.clone(),
            created_by: made_by.next().flatten(),
            entries: one.entries.len(),
            bytes,
        });
        tree::apply_layer(&mut all, one, serial as u64);
    }
    Ok((all, rows))
}

/// A layer, and what it unpacks to.
struct Layer {
    source: Arc<dyn Source>,
    layer: Descriptor,
    diff_id: String,
}

impl Layer {
    fn place(&self) -> PathBuf {
        PathBuf::from(format!("{} {}", self.source.name(), self.layer.digest))
    }

    /// Fetches and decompresses it.
    fn spool(&self, scratch: &Path) -> Result<Spooled, ImageError> {
        let stream = source::open(self.source.as_ref(), &self.layer)?;
        let (place, identity) = (self.place(), self.layer.digest.to_string().into());
        let spooled = tree::spool_stream(&place, stream, self.layer.size, identity, scratch)?;
        if spooled.digest.as_ref() != Some(&self.diff_id) {
            let got = spooled.digest.unwrap_or_default();
            let message = format!("{} unpacks to {got}, and its configuration says {}", place.display(), self.diff_id);
            return Err(Error::new(ErrorKind::Digest, message).into());
        }
        Ok(spooled)
    }

    /// Its entries: as they were kept, or read now.
    fn tree(self, options: &ReadOptions, problems: &mut Problems) -> Result<Tree, ImageError> {
        let identity = self.layer.digest.to_string();
        let kept = options.kept.as_ref();
        let known = kept.and_then(|kept| kept.get(&identity, Meaning::Layer, options));
        if let Some(known) = known.filter(|known| known.digest.as_ref() == Some(&self.diff_id)) {
            let scratch = options.scratch.clone();
            let archive = PlainTar::later(identity.into(), move || match self.spool(&scratch) {
                Ok(spooled) => spooled.archive.file(),
                Err(ImageError::Oci(error)) => Err(error.into_io()),
                Err(error) => Err(io::Error::other(error)),
            });
            return Ok(known.tree(&archive));
        }
        let (place, spooled) = (self.place(), self.spool(&options.scratch)?);
        let mut found = Problems::default();
        let tree = tree::index_archive(&place, &spooled, Meaning::Layer, options, &mut found)?;
        if let (Some(kept), true) = (kept, found.is_empty()) {
            let read = (&tree, spooled.digest);
            let put = kept.put(&identity, Meaning::Layer, options, read, None);
            put.map_err(|error| ReadError::Io { path: place, error })?;
        }
        problems.extend(found);
        Ok(tree)
    }
}

/// Leaves what is a view's, and the folders above it.
pub fn keep_view(tree: &mut Tree) {
    tree.entries.retain(|path, _| is_view_path(path));
    let paths: Vec<_> = tree.entries.keys().cloned().collect();
    for path in paths {
        let mut above = parent(&path);
        while !above.is_empty() && tree.get(above).is_none() {
            tree.entries.insert(above.to_vec(), Entry::folder());
            above = parent(above);
        }
    }
}
