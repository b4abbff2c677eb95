//! Removes what a layout does not need any longer.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::super::error::Error;
use super::super::graph::Graph;
use super::{Layout, LayoutWriter};

/// What was removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Removed {
    /// Number of files.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
}

impl Removed {
    /// Counts a file.
    pub fn add(&mut self, bytes: u64) {
        self.files += 1;
        self.bytes += bytes;
    }
}

impl std::ops::AddAssign for Removed {
    fn add_assign(&mut self, other: Self) {
        self.files += other.files;
        self.bytes += other.bytes;
    }
}

impl LayoutWriter {
    /// Removes blobs that no image of the index has and that were written before a time, in nanoseconds since 1970; without `really` they are only counted.
    /// Younger ones may be an SBOM that is just being pushed, which no index names.
    ///
    /// # Errors
    /// When the layout is damaged, so that it cannot be told what its images have, or a file cannot be removed.
    pub fn prune(&self, before: i128, really: bool) -> Result<Removed, Error> {
        let layout = Layout::open_folder(&self.root)?;
        let graph = Graph::walk(&layout, layout.roots())?;
        let needed: BTreeSet<String> = graph.descriptors().map(|d| d.digest.blob_path()).collect();
        let mut removed = Removed::default();
        for algorithm in ["sha256", "sha512"] {
            let folder = format!("blobs/{algorithm}");
            old_files(&self.root.join(&folder), before, &mut |path, bytes| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if needed.contains(&format!("{folder}/{name}")) {
                    return Ok(());
                }
                removed.add(bytes);
                if really { fs::remove_file(path).map_err(|e| Error::file("remove", path, &e)) } else { Ok(()) }
            })?;
        }
        Ok(removed)
    }
}

/// When a file was written to last, in nanoseconds since 1970.
pub(super) fn modified(metadata: &fs::Metadata) -> i128 {
    i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec())
}

/// Calls `found` for the files of a folder that were written before a time, with their bytes; none when there is no such folder.
fn old_files(folder: &Path, before: i128, found: &mut dyn FnMut(&Path, u64) -> Result<(), Error>) -> Result<(), Error> {
    let failed = |e: &std::io::Error| Error::file("read", folder, e);
    if !folder.exists() {
        return Ok(());
    }
    for entry in fs::read_dir(folder).map_err(|e| failed(&e))? {
        let entry = entry.map_err(|e| failed(&e))?;
        let metadata = entry.metadata().map_err(|e| failed(&e))?;
        if metadata.is_file() && modified(&metadata) < before {
            found(&entry.path(), metadata.len())?;
        }
    }
    Ok(())
}
