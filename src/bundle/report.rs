//! What a comparison or a write found, as data. `cli` prints it.

use std::io;
use std::path::{Path, PathBuf};

use crate::diag::Diagnostics;

/// How a file of the output differs from what the sources give.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangeKind {
    /// It is not there.
    Missing,
    /// It has other bytes.
    Changed,
    /// It is ours and no longer wanted.
    Extra,
}

/// One file that differs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// Path relative to the output, with `/`.
    pub path: String,
    /// How.
    pub kind: ChangeKind,
}

/// Everything that a comparison found. After a successful write: what was done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Files that differ, by path.
    pub changes: Vec<Change>,
    /// Number of files that are as they should be.
    pub unchanged: usize,
    /// Encrypted files that stay although the store's file has been encrypted again since they were copied from it. Found by
    /// comparisons only: a write copies.
    pub re_encrypted: Vec<String>,
    /// Files in our folders that flux-gen did not write, by path. They are never touched and are no drift.
    pub foreign: Vec<String>,
    /// What keeps a write from happening: edited files, foreign ones in the way, links. Errors unless the write was forced.
    pub conflicts: Diagnostics,
    /// An earlier write was stopped in the middle (see `FG613`).
    pub interrupted: bool,
}

impl Report {
    /// Whether the output differs from what the sources give.
    #[must_use]
    pub fn has_drift(&self) -> bool {
        !self.changes.is_empty() || self.interrupted
    }
}

/// A file operation that failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct FileError {
    /// What was tried: a verb.
    pub action: &'static str,
    /// With what.
    pub path: PathBuf,
    /// Why not.
    pub source: io::Error,
}

/// Adds action and path to an I/O error.
pub(super) trait Context<T> {
    fn context(self, action: &'static str, path: &Path) -> Result<T, FileError>;
}

impl<T> Context<T> for io::Result<T> {
    fn context(self, action: &'static str, path: &Path) -> Result<T, FileError> {
        self.map_err(|source| FileError { action, path: path.to_owned(), source })
    }
}
