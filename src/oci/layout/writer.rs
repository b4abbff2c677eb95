//! Writing a layout folder. A new one appears under its name when it is complete; one that exists gets more blobs and then,
//! in one step, a new index.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tempfile::{NamedTempFile, TempDir};

use super::super::descriptor::Descriptor;
use super::super::digest::{Algorithm, Digest, Hasher};
use super::super::document::{Index, to_vec};
use super::super::error::{Error, ErrorKind};
use super::super::source::{self, Source};
use super::flush::Flushes;
use super::{Layout, OCI_LAYOUT};

/// Prefix of files that are not complete.
const PARTIAL: &str = ".flux-gen-";

/// How to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteOptions {
    /// Wait until everything is on the disk, so that a power failure is as harmless as a kill.
    pub durable: bool,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self { durable: true }
    }
}

/// A layout that is being written. Blobs may come from many threads at once. Without [`LayoutWriter::finish`] a new layout
/// vanishes, and one that existed keeps its index.
#[derive(Debug)]
pub struct LayoutWriter {
    /// Where it will be.
    path: PathBuf,
    /// Where it is.
    pub(super) root: PathBuf,
    /// Removes a new layout that was not finished.
    staged: Option<TempDir>,
    /// The index that was there.
    present: Index,
    options: WriteOptions,
    /// Blobs that get their names as soon as they are on the disk.
    flushes: Flushes,
    /// Keeps other writers of the same layout waiting.
    _lock: Option<File>,
}

impl LayoutWriter {
    /// Starts a new layout, or goes on with one that exists. Waits for other writers of an existing one.
    ///
    /// # Errors
    /// When the path is something else than a layout, an empty folder or nothing, or cannot be written.
    pub fn create(path: &Path, options: WriteOptions) -> Result<Self, Error> {
        let failed = |e: &io::Error| Error::file("make", path, e);
        if path.join("oci-layout").exists() {
            return Self::reopen(path, options);
        }
        match fs::read_dir(path) {
            Ok(mut entries) => {
                if entries.next().is_some() {
                    let message = format!("{} is neither empty nor an OCI layout", path.display());
                    return Err(Error::new(ErrorKind::Layout, message).help("write elsewhere, or remove what is there"));
                }
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(failed(&e)),
        }
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(|e| failed(&e))?;
        let staged = tempfile::Builder::new().prefix(PARTIAL).tempdir_in(parent).map_err(|e| failed(&e))?;
        let root = staged.path().to_owned();
        let made = Self {
            path: path.to_owned(),
            root,
            staged: Some(staged),
            present: Index::new(Vec::new()),
            options,
            flushes: Flushes::default(),
            _lock: None,
        };
        made.make_blob_folder()?;
        Ok(made)
    }

    fn reopen(path: &Path, options: WriteOptions) -> Result<Self, Error> {
        let marker = path.join("oci-layout");
        let lock = File::open(&marker).map_err(|e| Error::file("open", &marker, &e))?;
        lock.lock().map_err(|e| Error::file("lock", &marker, &e))?;
        let present = Layout::open_folder(path)?.index;
        for folder in ["blobs", "blobs/sha256", "blobs/sha512"].map(|name| path.join(name)) {
            if fs::symlink_metadata(&folder).is_ok_and(|m| !m.is_dir()) {
                let message = format!("{} is no folder of its own; nothing is written through links", folder.display());
                return Err(Error::new(ErrorKind::Layout, message));
            }
        }
        let made = Self {
            path: path.to_owned(),
            root: path.to_owned(),
            staged: None,
            present,
            options,
            flushes: Flushes::default(),
            _lock: Some(lock),
        };
        made.make_blob_folder()?;
        made.remove_partial();
        Ok(made)
    }

    fn make_blob_folder(&self) -> Result<(), Error> {
        let folder = self.blob_folder();
        fs::create_dir_all(&folder).map_err(|e| Error::file("make", &folder, &e))
    }

    fn blob_folder(&self) -> PathBuf {
        self.root.join("blobs").join(Algorithm::Sha256.as_str())
    }

    /// Removes what killed writers left; with the lock held nobody else is at work.
    fn remove_partial(&self) {
        for folder in [self.root.clone(), self.blob_folder()] {
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PARTIAL)) {
                // What cannot be removed is in nobody's way.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// The index of the layout as it was; empty for a new one.
    #[must_use]
    pub fn present(&self) -> &Index {
        &self.present
    }

    /// Starts a blob. It has its name by the end of [`LayoutWriter::finish`] at the latest.
    ///
    /// # Errors
    /// When no file can be made.
    pub fn blob(&self) -> Result<BlobWriter, Error> {
        self.blob_in(&self.blob_folder(), Algorithm::Sha256)
    }

    fn blob_in(&self, folder: &Path, algorithm: Algorithm) -> Result<BlobWriter, Error> {
        let flushes = self.options.durable.then(|| self.flushes.clone());
        BlobWriter::new(folder, self.root.clone(), flushes, algorithm)
    }

    /// Writes a whole blob.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn bytes(&self, media_type: &str, bytes: &[u8]) -> Result<Descriptor, Error> {
        let made = Descriptor::of(media_type, bytes);
        if self.has(&made) {
            return Ok(made);
        }
        let mut blob = self.blob()?;
        blob.write_all(bytes).map_err(|e| Error::file("write", &self.path, &e))?;
        blob.finish(media_type)
    }

    /// Writes a document as compact JSON.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn json<T: Serialize>(&self, media_type: &str, value: &T) -> Result<Descriptor, Error> {
        self.bytes(media_type, &to_vec(value)?)
    }

    /// Whether a blob of that digest and size is there.
    #[must_use]
    pub fn has(&self, descriptor: &Descriptor) -> bool {
        let path = self.root.join(descriptor.digest.blob_path());
        fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() == descriptor.size)
    }

    /// Copies a blob, checked, unless it is there. `seen` gets the number of bytes of each step.
    ///
    /// # Errors
    /// When it cannot be read, is not what its digest says, or cannot be written.
    pub fn copy(&self, source: &dyn Source, descriptor: &Descriptor, seen: &mut dyn FnMut(u64)) -> Result<(), Error> {
        if self.has(descriptor) {
            return Ok(());
        }
        let mut blob = self.blob_of(descriptor)?;
        let mut reader = source::open(source, descriptor)?;
        let mut buffer = vec![0; 1 << 17];
        loop {
            let count = match reader.read(&mut buffer) {
                Ok(count) => count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(Error::from_io("read", Path::new(&source.name()), &e)),
            };
            if count == 0 {
                break;
            }
            blob.write_all(&buffer[..count]).map_err(|e| Error::file("write", &self.path, &e))?;
            seen(count as u64);
        }
        blob.finish_as(descriptor, &source.name())
    }

    /// Writes bytes that were read already and are those of a descriptor.
    ///
    /// # Errors
    /// When they are not, or cannot be written.
    pub fn document(&self, descriptor: &Descriptor, bytes: &[u8]) -> Result<(), Error> {
        if self.has(descriptor) {
            return Ok(());
        }
        let mut blob = self.blob_of(descriptor)?;
        blob.write_all(bytes).map_err(|e| Error::file("write", &self.path, &e))?;
        blob.finish_as(descriptor, &self.path.display().to_string())
    }

    fn blob_of(&self, descriptor: &Descriptor) -> Result<BlobWriter, Error> {
        let algorithm = descriptor.digest.algorithm();
        let folder = self.root.join("blobs").join(algorithm.as_str());
        fs::create_dir_all(&folder).map_err(|e| Error::file("make", &folder, &e))?;
        self.blob_in(&folder, algorithm)
    }

    /// Writes the index; from now on the layout is what it says. Blobs that are no longer named stay.
    ///
    /// # Errors
    /// When a file cannot be written or moved into place.
    pub fn finish(mut self, index: &Index) -> Result<Layout, Error> {
        let bytes = to_vec(index)?;
        self.flushes.all().map_err(|e| Error::file("write", &self.path, &e))?;
        self.put_file("oci-layout", OCI_LAYOUT)?;
        self.put_file("index.json", &bytes)?;
        let failed = |e: &io::Error| Error::file("write", &self.path, e);
        if self.options.durable {
            for folder in [self.blob_folder(), self.root.join("blobs"), self.root.clone()] {
                sync_folder(&folder).map_err(|e| failed(&e))?;
            }
        }
        if let Some(staged) = self.staged.take() {
            fs::set_permissions(staged.path(), fs::Permissions::from_mode(0o755)).map_err(|e| failed(&e))?;
            fs::rename(staged.path(), &self.path).map_err(|e| failed(&e))?;
            // It has another name now and is to stay.
            let _ = staged.keep();
            if let (true, Some(parent)) = (self.options.durable, self.path.parent()) {
                let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
                sync_folder(parent).map_err(|e| failed(&e))?;
            }
        }
        Layout::open_folder(&self.path)
    }

    fn put_file(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let place = self.root.join(name);
        let failed = |e: &io::Error| Error::file("write", &self.path.join(name), e);
        if name == "oci-layout" && place.exists() {
            // Other writers wait for a lock on this very file.
            return Ok(());
        }
        let mut file = partial(&self.root).map_err(|e| failed(&e))?;
        file.write_all(bytes).map_err(|e| failed(&e))?;
        if self.options.durable {
            file.as_file().sync_all().map_err(|e| failed(&e))?;
        }
        file.persist(&place).map_err(|e| failed(&e.error))?;
        Ok(())
    }
}

impl Drop for LayoutWriter {
    fn drop(&mut self) {
        // Nothing gets a name in a folder that is about to be removed. What did not work has been told, or is not wanted.
        let _ = self.flushes.all();
    }
}

fn partial(folder: &Path) -> io::Result<NamedTempFile> {
    let permissions = fs::Permissions::from_mode(0o644);
    tempfile::Builder::new().prefix(PARTIAL).permissions(permissions).tempfile_in(folder)
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// A blob that is being written; its digest is computed on the way. Dropped without an end it vanishes.
#[derive(Debug)]
pub struct BlobWriter {
    file: NamedTempFile,
    root: PathBuf,
    hasher: Hasher,
    size: u64,
    /// When it has to reach the disk.
    flushes: Option<Flushes>,
    /// Bytes that are not yet on their way there.
    behind: u64,
}

/// So many bytes go to the disk together.
const FLUSH: u64 = 16 << 20;

impl BlobWriter {
    fn new(folder: &Path, root: PathBuf, flushes: Option<Flushes>, algorithm: Algorithm) -> Result<Self, Error> {
        let file = partial(folder).map_err(|e| Error::file("write to", folder, &e))?;
        Ok(Self { file, root, hasher: Hasher::new(algorithm), size: 0, flushes, behind: 0 })
    }

    /// Sends what was written on its way to the disk.
    fn flush_behind(&mut self) -> io::Result<()> {
        let Some(flushes) = self.flushes.as_ref().filter(|_| self.behind >= FLUSH) else { return Ok(()) };
        self.behind = 0;
        let file = self.file.as_file().try_clone()?;
        flushes.begin(move || file.sync_data())
    }

    /// When it was written to last, in nanoseconds since 1970.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn modified(&self) -> io::Result<i128> {
        Ok(super::prune::modified(&self.file.as_file().metadata()?))
    }

    /// Number of bytes so far.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Ends the blob and moves it to its name.
    ///
    /// # Errors
    /// When that does not work.
    pub fn finish(self, media_type: &str) -> Result<Descriptor, Error> {
        let digest = self.hasher.clone().finish();
        let made = Descriptor::new(media_type, digest, self.size);
        self.put(&made.digest)?;
        Ok(made)
    }

    /// Ends a blob that must be that of a descriptor.
    fn finish_as(self, wanted: &Descriptor, place: &str) -> Result<(), Error> {
        let digest = self.hasher.clone().finish();
        if digest != wanted.digest || self.size != wanted.size {
            return Err(Error::mismatch(place, &wanted.digest, Some(wanted.size), &digest, self.size));
        }
        self.put(&digest)
    }

    fn put(self, digest: &Digest) -> Result<(), Error> {
        let place = self.root.join(digest.blob_path());
        let failed = |e: &io::Error| Error::file("write", &self.root.join(digest.blob_path()), e);
        let Some(flushes) = self.flushes else {
            self.file.persist(&place).map_err(|e| failed(&e.error))?;
            return Ok(());
        };
        let file = self.file;
        // The name comes after the bytes are on the disk, so that no power failure leaves other bytes under it.
        let begun = flushes.begin(move || {
            file.as_file().sync_all()?;
            file.persist(&place).map(drop).map_err(|e| e.error)
        });
        begun.map_err(|e| failed(&e))
    }
}

impl Write for BlobWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.as_file_mut().write(bytes)?;
        self.hasher.update(&bytes[..count]);
        self.size += count as u64;
        self.behind += count as u64;
        self.flush_behind()?;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_file_mut().flush()
    }
}
