//! OCI image layouts (`image-layout.md`): a folder, the same in a tar archive, or an archive of `docker save`.

pub mod archive;
mod docker;
mod flush;
mod prune;
mod table;
pub mod verify;
mod writer;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::descriptor::{CONTAINERD_NAME, Descriptor};
use super::digest::Digest;
use super::document::{DOCUMENT_LIMIT, Index, check_size, from_slice};
use super::error::{Error, ErrorKind};
use super::source::{Bytes, Source};
use table::Table;

pub use prune::Removed;
pub use verify::{Report, verify};
pub use writer::{BlobWriter, LayoutWriter, WriteOptions};

/// Content of the file `oci-layout`.
pub const OCI_LAYOUT: &[u8] = br#"{"imageLayoutVersion":"1.0.0"}"#;

/// What an archive may be before it is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Most entries of an archive.
    pub entries: usize,
    /// Most bytes that a compressed archive (`docker save | gzip`) may unpack to.
    pub unpacked: u64,
    /// Where such an archive is unpacked; beside itself when `None`. The file has no name and vanishes with the process.
    pub spool: Option<PathBuf>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries: 200_000, unpacked: 64 << 30, spool: None }
    }
}

/// A layout to read from.
#[derive(Debug)]
pub struct Layout {
    path: PathBuf,
    index: Index,
    index_bytes: Vec<u8>,
    store: Store,
}

#[derive(Debug)]
enum Store {
    Folder,
    Archive {
        table: Table,
        /// Where the blobs are in the file.
        blobs: BTreeMap<Digest, (u64, u64)>,
        /// Documents that were made for an archive of `docker save`, which has none.
        made: BTreeMap<Digest, Vec<u8>>,
    },
}

impl Layout {
    /// Opens a folder or an archive, whatever it is. Archives are indexed, not unpacked; only one that is compressed as a
    /// whole is decompressed to a file without a name.
    ///
    /// # Errors
    /// When it is not readable, no layout or image archive, or has entries that are not used.
    pub fn open(path: &Path, limits: &Limits) -> Result<Self, Error> {
        let metadata = fs::metadata(path).map_err(|e| Error::file("read", path, &e))?;
        if metadata.is_dir() { Self::open_folder(path) } else { Self::open_archive(path, limits) }
    }

    fn open_folder(path: &Path) -> Result<Self, Error> {
        let read = |name: &str| read_limited(&path.join(name));
        let Some(marker) = read("oci-layout")? else {
            return Err(not_a_layout(path, "it has no file `oci-layout`"));
        };
        check_marker(path, &marker)?;
        let Some(index_bytes) = read("index.json")? else {
            return Err(not_a_layout(path, "it has no `index.json`"));
        };
        let index = from_slice(&path.join("index.json").display().to_string(), &index_bytes)?;
        Ok(Self { path: path.to_owned(), index, index_bytes, store: Store::Folder })
    }

    fn open_archive(path: &Path, limits: &Limits) -> Result<Self, Error> {
        let table = Table::open(path, limits)?;
        let marker = table.small("oci-layout")?;
        let index_bytes = table.small("index.json")?;
        if let (Some(marker), Some(index_bytes)) = (&marker, index_bytes) {
            check_marker(path, marker)?;
            let index = from_slice(&format!("{}: index.json", path.display()), &index_bytes)?;
            let blobs = table.blobs();
            return Ok(Self {
                path: path.to_owned(),
                index,
                index_bytes,
                store: Store::Archive { table, blobs, made: BTreeMap::new() },
            });
        }
        let Some(manifest) = table.small("manifest.json")? else {
            return Err(not_a_layout(path, "it has neither `oci-layout` with `index.json` nor `manifest.json`"));
        };
        let docker::Converted { index, blobs, made } = docker::convert(&table, &manifest)?;
        let index_bytes = super::document::to_vec(&index)?;
        Ok(Self { path: path.to_owned(), index, index_bytes, store: Store::Archive { table, blobs, made } })
    }

    /// Path of the folder or file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// `index.json`.
    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The bytes of `index.json`.
    #[must_use]
    pub fn index_bytes(&self) -> &[u8] {
        &self.index_bytes
    }

    /// What `index.json` lists.
    #[must_use]
    pub fn roots(&self) -> &[Descriptor] {
        &self.index.manifests
    }

    /// The image of a name (`org.opencontainers.image.ref.name`, containerd's name, or a digest); the only one when no
    /// name is given.
    ///
    /// # Errors
    /// When there is none, or more than one to choose from.
    pub fn find(&self, name: Option<&str>) -> Result<&Descriptor, Error> {
        let named = |d: &&Descriptor| match name {
            None => true,
            Some(name) => {
                d.ref_name() == Some(name)
                    || d.annotations.get(CONTAINERD_NAME).is_some_and(|n| n == name)
                    || d.digest.to_string() == name
            }
        };
        let mut found: Vec<&Descriptor> = self.index.manifests.iter().filter(named).collect();
        found.dedup_by_key(|d| &d.digest);
        let place = self.path.display();
        let error = |message: String| Error::new(ErrorKind::Missing, message).help(self.names());
        match (found.as_slice(), name) {
            ([one], _) => Ok(one),
            ([], Some(name)) => Err(error(format!("{place} has no image `{name}`"))),
            ([], None) => Err(Error::new(ErrorKind::Missing, format!("{place} has no image"))),
            (_, Some(name)) => Err(error(format!("{place} has more than one image `{name}`"))),
            (_, None) => Err(error(format!("{place} has more than one image; say which one"))),
        }
    }

    fn names(&self) -> String {
        let names: Vec<String> = self
            .index
            .manifests
            .iter()
            .take(20)
            .map(|d| d.ref_name().map_or_else(|| d.digest.to_string(), str::to_owned))
            .collect();
        format!("it has {}", names.join(", "))
    }

    /// A file of the layout that is no blob, such as those that an archive for an air-gapped site has besides.
    ///
    /// # Errors
    /// When it is there but cannot be read.
    pub fn file(&self, name: &str) -> Result<Option<Bytes>, Error> {
        match &self.store {
            Store::Archive { table, .. } => Ok(table.open_file(name)),
            Store::Folder => {
                let path = self
                    .path
                    .join(plain_name(name).map_err(|why| Error::new(ErrorKind::Archive, format!("`{name}` {why}")))?);
                match File::open(&path) {
                    Ok(file) => Ok(Some(Box::new(file))),
                    Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
                    Err(e) => Err(Error::file("read", &path, &e)),
                }
            }
        }
    }

    /// Names and sizes of all files, blobs included, in order of their names.
    ///
    /// # Errors
    /// When a folder cannot be listed.
    pub fn files(&self) -> Result<Vec<(String, u64)>, Error> {
        match &self.store {
            Store::Archive { table, .. } => Ok(table.files().map(|(name, size)| (name.to_owned(), size)).collect()),
            Store::Folder => {
                let mut found = Vec::new();
                list_folder(&self.path, "", &mut found)?;
                found.sort();
                Ok(found)
            }
        }
    }

    fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.path.join(digest.blob_path())
    }
}

impl Source for Layout {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn size(&self, descriptor: &Descriptor) -> Result<Option<u64>, Error> {
        match &self.store {
            Store::Folder => match fs::metadata(self.blob_path(&descriptor.digest)) {
                Ok(metadata) if metadata.is_file() => Ok(Some(metadata.len())),
                Ok(_) => Ok(None),
                Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(e) => Err(Error::file("read", &self.blob_path(&descriptor.digest), &e)),
            },
            Store::Archive { blobs, made, .. } => {
                let there = blobs.get(&descriptor.digest).map(|(_, size)| *size);
                Ok(there.or_else(|| made.get(&descriptor.digest).map(|bytes| bytes.len() as u64)))
            }
        }
    }

    fn read(&self, descriptor: &Descriptor, offset: u64) -> Result<Bytes, Error> {
        let missing = || Error::missing(&self.name(), &descriptor.digest);
        match &self.store {
            Store::Folder => {
                let path = self.blob_path(&descriptor.digest);
                let failed = |e: io::Error| match e.kind() {
                    io::ErrorKind::NotFound => missing(),
                    _ => Error::file("read", &path, &e),
                };
                let mut file = File::open(&path).map_err(failed)?;
                if offset > 0 {
                    file.seek(SeekFrom::Start(offset)).map_err(failed)?;
                }
                Ok(Box::new(file))
            }
            Store::Archive { table, blobs, made } => {
                if let Some(bytes) = made.get(&descriptor.digest) {
                    let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
                    return Ok(Box::new(io::Cursor::new(bytes[from..].to_vec())));
                }
                let (start, size) = blobs.get(&descriptor.digest).ok_or_else(missing)?;
                Ok(table.range(start.saturating_add(offset), size.saturating_sub(offset)))
            }
        }
    }
}

/// A name of an archive as this module uses it: relative, with plain parts. `./` before it and `/` after it do not count.
fn plain_name(name: &str) -> Result<&str, &'static str> {
    let name = name.trim_start_matches("./").trim_end_matches('/');
    if name.starts_with('/') {
        return Err("is an absolute name");
    }
    if name.contains('\0') || name.split('/').any(|part| part == "..") {
        return Err("leaves the archive");
    }
    Ok(name)
}

fn not_a_layout(path: &Path, why: &str) -> Error {
    Error::new(ErrorKind::Layout, format!("{} is no OCI layout: {why}", path.display()))
}

fn check_marker(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    #[derive(serde::Deserialize)]
    struct Marker {
        #[serde(rename = "imageLayoutVersion")]
        version: String,
    }
    let marker: Marker = from_slice(&format!("{}: oci-layout", path.display()), bytes)?;
    if marker.version.split('.').next() == Some("1") {
        return Ok(());
    }
    let shown: String = marker.version.chars().take(20).collect();
    Err(not_a_layout(path, &format!("version {shown} of the layout is not known")))
}

/// A small file; `None` when there is none.
fn read_limited(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::file("read", path, &e)),
    };
    let mut bytes = Vec::new();
    file.take(DOCUMENT_LIMIT + 1).read_to_end(&mut bytes).map_err(|e| Error::file("read", path, &e))?;
    check_size(&path.display().to_string(), bytes.len() as u64)?;
    Ok(Some(bytes))
}

fn list_folder(root: &Path, below: &str, found: &mut Vec<(String, u64)>) -> Result<(), Error> {
    let folder = root.join(below);
    let failed = |e: &io::Error| Error::file("read", &folder, e);
    for entry in fs::read_dir(&folder).map_err(|e| failed(&e))? {
        let entry = entry.map_err(|e| failed(&e))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        let metadata = entry.metadata().map_err(|e| failed(&e))?;
        if metadata.is_dir() {
            list_folder(root, &path, found)?;
        } else {
            found.push((path, metadata.len()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
