//! Blobs of registries that are kept: what is named by a digest is fetched once.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, utimensat};

use super::descriptor::Descriptor;
use super::digest::Digest;
use super::document::{DOCUMENT_LIMIT, Document};
use super::error::Error;
use super::source::{self, Bytes, Source};

/// A folder of blobs, laid out as the `blobs` of an OCI layout. Whole files get their name in one step, so any number of
/// programs may use it at once. The time of a file is that of its last use.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
}

/// A source whose blobs are kept in a store as soon as they are read.
#[derive(Debug)]
pub struct Kept<S> {
    source: S,
    store: Store,
}

/// Gives a file the time of now, so that whoever removes what is not used knows. When that does not work, it is only removed
/// earlier.
pub(crate) fn mark_used(path: &Path) {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT }, last_modification: now };
    let _ = utimensat(CWD, path, &times, AtFlags::empty());
}

impl Store {
    /// The store in a folder, which is made when something is kept.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned() }
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.folder.join(digest.blob_path())
    }

    /// The descriptor of an index or manifest that is kept, as its bytes have it.
    #[must_use]
    pub fn document(&self, digest: &Digest) -> Option<Descriptor> {
        let mut bytes = Vec::new();
        File::open(self.path(digest)).ok()?.take(DOCUMENT_LIMIT + 1).read_to_end(&mut bytes).ok()?;
        let document = Document::parse(&digest.to_string(), "", &bytes).ok().filter(|_| digest.matches(&bytes))?;
        Some(Descriptor::new(document.media_type(), digest.clone(), bytes.len() as u64))
    }

    /// A blob that is there and is what its name says. Another one is removed.
    fn get(&self, descriptor: &Descriptor) -> Option<File> {
        let path = self.path(&descriptor.digest);
        let mut file = File::open(&path).ok()?;
        let mut hasher = super::digest::Hasher::new(descriptor.digest.algorithm());
        let mut buffer = vec![0; 1 << 17];
        let mut size = 0;
        loop {
            match file.read(&mut buffer).ok()? {
                0 => break,
                count => {
                    hasher.update(&buffer[..count]);
                    size += count as u64;
                }
            }
        }
        if size != descriptor.size || hasher.finish() != descriptor.digest {
            // It is fetched again, and the new one takes its place even if this one cannot be removed.
            let _ = fs::remove_file(&path);
            return None;
        }
        mark_used(&path);
        Some(file)
    }

    /// Fetches a blob, checked.
    fn fetch(&self, from: &dyn Source, descriptor: &Descriptor) -> Result<File, Error> {
        let path = self.path(&descriptor.digest);
        let failed = |e: &io::Error| Error::file("write", &path, e);
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder).map_err(|e| failed(&e))?;
        let mut reader = source::open(from, descriptor)?;
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|e| failed(&e))?;
        let mut buffer = vec![0; 1 << 17];
        loop {
            let count = match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(Error::from_io("read", Path::new(&from.name()), &e)),
            };
            file.write_all(&buffer[..count]).map_err(|e| failed(&e))?;
        }
        file.persist(&path).map_err(|e| failed(&e.error))
    }
}

impl<S: Source> Kept<S> {
    /// Keeps what is read of a source.
    pub fn new(source: S, store: Store) -> Self {
        Self { source, store }
    }
}

impl<S: Source> Source for Kept<S> {
    fn name(&self) -> String {
        self.source.name()
    }

    fn size(&self, descriptor: &Descriptor) -> Result<Option<u64>, Error> {
        match fs::metadata(self.store.path(&descriptor.digest)) {
            Ok(metadata) if metadata.len() == descriptor.size => Ok(Some(descriptor.size)),
            _ => self.source.size(descriptor),
        }
    }

    fn read(&self, descriptor: &Descriptor, offset: u64) -> Result<Bytes, Error> {
        let mut file = match self.store.get(descriptor) {
            Some(file) => file,
            None => self.store.fetch(&self.source, descriptor)?,
        };
        let path = self.store.path(&descriptor.digest);
        file.seek(SeekFrom::Start(offset)).map_err(|e| Error::file("read", &path, &e))?;
        Ok(Box::new(file))
    }

    /// A kept blob was compared before it is read.
    fn checks(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::oci::document::Index;
    use crate::oci::{ErrorKind, document, media};

    /// A source of one blob that counts how often it is read.
    struct One(Vec<u8>, AtomicUsize);

    impl Source for &One {
        fn name(&self) -> String {
            "one".to_owned()
        }
        fn size(&self, descriptor: &Descriptor) -> Result<Option<u64>, Error> {
            Ok(descriptor.digest.matches(&self.0).then_some(self.0.len() as u64))
        }
        fn read(&self, _: &Descriptor, offset: u64) -> Result<Bytes, Error> {
            self.1.fetch_add(1, Ordering::Relaxed);
            Ok(Box::new(io::Cursor::new(self.0[usize::try_from(offset).unwrap()..].to_vec())))
        }
    }

    #[test]
    fn what_is_kept_is_not_read_again_unless_it_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = document::to_vec(&Index::new(Vec::new())).unwrap();
        let descriptor = Descriptor::of(media::INDEX, &bytes);
        let one = One(bytes.clone(), AtomicUsize::new(0));
        let store = Store::new(&folder.path().join("kept"));
        let kept = Kept::new(&one, store.clone());
        let reads = || one.1.load(Ordering::Relaxed);
        assert_eq!(store.document(&descriptor.digest), None);
        assert_eq!(kept.size(&descriptor).unwrap(), Some(descriptor.size));
        for _ in 0..2 {
            assert_eq!(source::small(&kept, &descriptor).unwrap(), bytes);
        }
        let mut rest = Vec::new();
        kept.read(&descriptor, 5).unwrap().read_to_end(&mut rest).unwrap();
        assert_eq!((rest.as_slice(), reads()), (&bytes[5..], 1));
        assert_eq!(store.document(&descriptor.digest), Some(descriptor.clone()));
        fs::write(store.path(&descriptor.digest), "damaged").unwrap();
        assert_eq!(store.document(&descriptor.digest), None);
        assert_eq!((source::small(&kept, &descriptor).unwrap(), reads()), (bytes, 2));
    }

    #[test]
    fn what_is_not_as_announced_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let one = One(b"other".to_vec(), AtomicUsize::new(0));
        let kept = Kept::new(&one, Store::new(folder.path()));
        let descriptor = Descriptor::of("x", b"wanted");
        assert_eq!(kept.read(&descriptor, 0).err().unwrap().kind(), ErrorKind::Digest);
        let left = fs::read_dir(folder.path().join("blobs/sha256")).unwrap().count();
        assert_eq!(left, 0);
    }
}
