//! What a load has proven to be in registries, so that one that was stopped goes on without asking for everything again.
//!
//! A text file beside the archive: the digest of the archive, then a line for each blob with its repository. Lines are facts
//! about named registries, so loads into other ones, and two at once, may share the file. A registry that was emptied since is
//! noticed by [`super::push`], which asks for one blob of each repository, and for all when a manifest is refused.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use crate::oci::Digest;

/// Most bytes of a ledger that are read: some 400,000 blobs.
const LIMIT: u64 = 64 << 20;

/// A ledger; without a file it knows what this run has done.
#[derive(Debug, Default)]
pub struct Ledger {
    known: Mutex<BTreeSet<(String, Digest)>>,
    file: Mutex<Option<File>>,
    problem: Mutex<Option<String>>,
}

impl Ledger {
    /// Opens the ledger of an archive. One of another archive, or what is no ledger, is begun anew.
    ///
    /// # Errors
    /// When it cannot be read or written.
    pub fn open(path: &Path, archive: &Digest) -> io::Result<Self> {
        let head = head(archive);
        let mut text = String::new();
        match File::open(path) {
            Ok(file) => drop(file.take(LIMIT).read_to_string(&mut text).or_else(not_text)?),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(e),
        }
        let known = text.strip_prefix(head.as_str()).map(lines);
        if known.is_none() {
            let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            let mut new = tempfile::Builder::new().prefix(".flux-gen-").tempfile_in(folder)?;
            new.write_all(head.as_bytes())?;
            new.persist(path).map_err(|e| e.error)?;
        }
        let file = OpenOptions::new().append(true).open(path)?;
        Ok(Self { known: Mutex::new(known.unwrap_or_default()), file: Mutex::new(Some(file)), ..Self::default() })
    }

    /// Whether a repository (registry included) was seen to have a blob.
    #[must_use]
    pub fn has(&self, repository: &str, blob: &Digest) -> bool {
        locked(&self.known).contains(&(repository.to_owned(), blob.clone()))
    }

    /// Notes that it has. A file that cannot be written is no reason to stop; see [`Self::problem`].
    pub fn add(&self, repository: &str, blob: &Digest) {
        if !locked(&self.known).insert((repository.to_owned(), blob.clone())) {
            return;
        }
        let mut file = locked(&self.file);
        // In one write, so that lines of two loads do not mix.
        let line = format!("{repository} {blob}\n");
        if let Some(Err(e)) = file.as_mut().map(|file| file.write_all(line.as_bytes())) {
            *file = None;
            locked(&self.problem).get_or_insert_with(|| e.to_string());
        }
    }

    /// How much is noted.
    #[must_use]
    pub fn count(&self) -> usize {
        locked(&self.known).len()
    }

    /// No longer believes what it says of a repository.
    pub fn forget(&self, repository: &str) {
        locked(&self.known).retain(|(known, _)| known != repository);
    }

    /// Why the file was not written to the end.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        locked(&self.problem).clone()
    }
}

fn head(archive: &Digest) -> String {
    format!("flux-gen load 1 {archive}\n")
}

/// A ledger with other bytes than text is none.
fn not_text(e: io::Error) -> io::Result<usize> {
    if e.kind() == io::ErrorKind::InvalidData { Ok(0) } else { Err(e) }
}

/// Whole lines; what a kill cut off does not count.
fn lines(text: &str) -> BTreeSet<(String, Digest)> {
    let whole = text.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
    whole.filter_map(|line| line.split_once(' ')).filter_map(|(r, d)| Some((r.to_owned(), d.parse().ok()?))).collect()
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_noted_is_known_to_the_next_load_of_the_same_archive_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tar.loaded");
        let (archive, blob, other) = (Digest::of(b"archive"), Digest::of(b"blob"), Digest::of(b"other"));
        let first = Ledger::open(&path, &archive).unwrap();
        let second = Ledger::open(&path, &archive).unwrap();
        first.add("r:1/a", &blob);
        second.add("r:2/a", &blob);
        second.add("r:2/a", &blob);
        std::fs::OpenOptions::new().append(true).open(&path).unwrap().write_all(b"r:1/a sha256:12").unwrap();
        let again = Ledger::open(&path, &archive).unwrap();
        assert!(again.has("r:1/a", &blob) && again.has("r:2/a", &blob));
        assert!(!again.has("r:1/b", &blob) && !again.has("r:1/a", &other));
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 4);
        again.forget("r:1/a");
        assert!(!again.has("r:1/a", &blob) && again.has("r:2/a", &blob));
        assert!(!Ledger::open(&path, &other).unwrap().has("r:1/a", &blob));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), head(&other));
    }

    #[test]
    fn other_files_are_no_ledgers_and_missing_folders_are_errors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("l");
        let archive = Digest::of(b"archive");
        for bytes in [&b"\xff\xfe"[..], b"", b"flux-gen load 2 x\n"] {
            std::fs::write(&path, bytes).unwrap();
            let _ = Ledger::open(&path, &archive).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), head(&archive));
        }
        assert!(Ledger::open(&folder.path().join("none/l"), &archive).is_err());
        let lasting = Ledger::default();
        lasting.add("r/a", &archive);
        assert!(lasting.has("r/a", &archive) && lasting.problem().is_none());
    }
}
