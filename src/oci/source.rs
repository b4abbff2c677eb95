//! Where images come from: one trait for layouts, archives and registries.

use std::io::Read;

use super::descriptor::Descriptor;
use super::digest::{Digest, VerifyReader};
use super::document::{DOCUMENT_LIMIT, Document, check_size};
use super::error::Error;
use super::media::Kind;
use super::platform::Platform;

/// Bytes that can be sent to another thread.
pub type Bytes = Box<dyn Read + Send>;

/// Content that is found by its digest.
pub trait Source: Send + Sync {
    /// What messages call it: a path, or a registry with repository.
    fn name(&self) -> String;

    /// The size of a blob in bytes; `None` when it is not there.
    ///
    /// # Errors
    /// When it cannot be told.
    fn size(&self, descriptor: &Descriptor) -> Result<Option<u64>, Error>;

    /// The bytes of a blob from `offset` on, not checked. Use [`open`] for whole blobs.
    ///
    /// # Errors
    /// [`super::ErrorKind::Missing`] when it is not there; others when it cannot be read.
    fn read(&self, descriptor: &Descriptor, offset: u64) -> Result<Bytes, Error>;

    /// Whether reads of a whole blob are checked by the source itself, so that nobody needs to do it again.
    fn checks(&self) -> bool {
        false
    }
}

/// The bytes of a whole blob; digest and size are checked when its end is read.
///
/// # Errors
/// When it is not there or cannot be read.
pub fn open(source: &dyn Source, descriptor: &Descriptor) -> Result<Bytes, Error> {
    let bytes = source.read(descriptor, 0)?;
    if source.checks() {
        return Ok(bytes);
    }
    Ok(Box::new(VerifyReader::new(bytes, &descriptor.digest, Some(descriptor.size), source.name())))
}

/// A whole small blob, checked.
///
/// # Errors
/// When it is larger than [`DOCUMENT_LIMIT`], not there, or not what its digest says.
pub fn small(source: &dyn Source, descriptor: &Descriptor) -> Result<Vec<u8>, Error> {
    let place = format!("{} {}", source.name(), descriptor.digest);
    check_size(&place, descriptor.size)?;
    let mut bytes = Vec::new();
    let reader = open(source, descriptor)?;
    reader
        .take(DOCUMENT_LIMIT + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| Error::from_io("read", std::path::Path::new(&source.name()), &e))?;
    check_size(&place, bytes.len() as u64)?;
    Ok(bytes)
}

/// A document with its own bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The bytes as they came.
    pub bytes: Vec<u8>,
    /// What they say.
    pub document: Document,
}

/// An index or manifest, checked, with the bytes as they are.
///
/// # Errors
/// As [`small`], and when it is no such document.
pub fn document(source: &dyn Source, descriptor: &Descriptor) -> Result<Loaded, Error> {
    let bytes = small(source, descriptor)?;
    let place = format!("{} {}", source.name(), descriptor.digest);
    let document = Document::parse(&place, &descriptor.media_type, &bytes)?;
    Ok(Loaded { bytes, document })
}

/// Finds the manifest of one platform: `root` itself when it is a manifest, else the best entry of the index, also of
/// indexes in it.
///
/// # Errors
/// [`super::ErrorKind::Platform`] when there is none, with those that there are.
pub fn of_platform(source: &dyn Source, root: &Descriptor, wanted: &Platform) -> Result<Descriptor, Error> {
    let mut at = root.clone();
    // An index in an index in an index has never been seen; the bound keeps hostile ones from going on.
    for _ in 0..MAX_DEPTH {
        if at.kind() != Kind::Index {
            return Ok(at);
        }
        let Document::Index(index) = document(source, &at)?.document else { return Ok(at) };
        let nested = || index.manifests.iter().find(|d| d.kind() == Kind::Index && d.platform.is_none());
        match wanted.select(&index.manifests).or_else(nested) {
            Some(found) => at = found.clone(),
            None => return Err(no_platform(source, &at.digest, &index.manifests, wanted)),
        }
    }
    Err(too_deep(source, &root.digest))
}

/// Most indexes within each other.
pub(super) const MAX_DEPTH: usize = 8;

pub(super) fn too_deep(source: &dyn Source, digest: &Digest) -> Error {
    let message = format!("{}: {digest} holds indexes in indexes, more than {MAX_DEPTH} deep", source.name());
    Error::new(super::ErrorKind::Document, message)
}

fn no_platform(source: &dyn Source, digest: &Digest, manifests: &[Descriptor], wanted: &Platform) -> Error {
    let mut all: Vec<String> =
        manifests.iter().filter_map(|d| d.platform.as_ref()).map(|p| p.normalised().to_string()).collect();
    all.sort();
    all.dedup();
    let message = format!("{}: the index {digest} has no image for {wanted}", source.name());
    let made = Error::new(super::ErrorKind::Platform, message);
    if all.is_empty() { made } else { made.help(format!("it has {}", all.join(", "))) }
}
