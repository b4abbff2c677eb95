//! Reads folders and archives into a [`Tree`]: names, kinds and facts, not content. Nothing is ever unpacked.
//!
//! | found | in a folder or archive | in a layer of an image |
//! |---|---|---|
//! | absolute name, `./` in front | taken from the root | the same |
//! | `..` in a name, a name longer than 4095 bytes | error | error |
//! | something below a file or link | error | error |
//! | the same name twice | error, folders excepted | the last one counts |
//! | `.wh.` names (whiteouts) | error | hide what lower layers have |
//! | devices, pipes, sockets | error | error, below the paths that are taken |
//! | sparse files | packed with their holes as zeros | the same |
//! | sparse entries of an archive | error | error |

mod archive;
mod check;
mod folder;
mod kept;
mod merge;
mod spool;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use archive::{Meaning, index as index_archive};
pub use check::{CheckOptions, Setuid, check};
pub use folder::index as index_folder;
pub use kept::{Kept, KeptTrees};
pub use merge::apply_layer;
pub use spool::{Archive, Spooled, spool_stream};

use super::entry::Tree;
use super::glob;
use super::plain::PlainTar;
use super::problem::Problems;

/// Longest name of an entry, as Linux has it (`PATH_MAX` without its final zero).
const LONGEST: usize = 4095;

/// Which extended attributes are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Xattrs {
    /// None: the same bytes on every file system.
    #[default]
    None,
    /// `security.capability` only.
    Capabilities,
    /// `security.capability` and everything of `user.`; never labels of the machine such as `security.selinux`.
    User,
}

impl Xattrs {
    /// Whether an attribute is kept.
    #[must_use]
    pub fn keeps(self, name: &[u8]) -> bool {
        match self {
            Self::None => false,
            Self::Capabilities => name == b"security.capability",
            Self::User => name == b"security.capability" || name.starts_with(b"user."),
        }
    }
}

/// How a tree is read.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// Extended attributes to keep.
    pub xattrs: Xattrs,
    /// Patterns of what is left out ([`glob::names`]).
    pub exclude: Vec<String>,
    /// Folder for temporary copies of compressed archives.
    pub scratch: PathBuf,
    /// What was read of archives before; `None` reads everything again.
    pub kept: Option<KeptTrees>,
}

impl ReadOptions {
    fn excludes(&self, path: &[u8]) -> bool {
        self.exclude.iter().any(|pattern| glob::names(pattern, path))
    }
}

/// A tree that could not be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file or folder that cannot be read.
    #[error("cannot read {path}: {error}")]
    Io {
        /// Its path.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// An archive that is none, or is damaged.
    #[error("{path} is no archive that can be read: {why}")]
    Archive {
        /// Its path.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

impl ReadError {
    fn io(path: &Path, error: io::Error) -> Self {
        Self::Io { path: path.to_path_buf(), error }
    }
}

/// Reads a folder or an archive (tar, plain or compressed with gzip or zstd) as the root of an image.
///
/// # Errors
/// When it cannot be read at all. What is wrong with single entries goes to the problems.
pub fn index(path: &Path, options: &ReadOptions, problems: &mut Problems) -> Result<Tree, ReadError> {
    let metadata = std::fs::metadata(path).map_err(|e| ReadError::io(path, e))?;
    if metadata.is_dir() {
        return index_folder(path, options, problems);
    }
    let archive = Archive::open(path)?;
    if let (true, Some(kept)) = (archive.is_compressed(), &options.kept) {
        return kept_archive(archive, kept, options, problems);
    }
    index_archive(path, &archive.spool(&options.scratch)?, Meaning::Tree, options, problems)
}

/// A compressed archive: decompressed when it changed, or when a content is needed.
fn kept_archive(
    archive: Archive,
    kept: &KeptTrees,
    options: &ReadOptions,
    problems: &mut Problems,
) -> Result<Tree, ReadError> {
    let (identity, path) = (archive.identity(), archive.path().to_path_buf());
    if let Some(known) = kept.get(&identity, Meaning::Tree, options) {
        let scratch = options.scratch.clone();
        let plain = PlainTar::later(Arc::clone(&identity), move || {
            let archive = Archive::open(&path).map_err(io::Error::other)?;
            if archive.identity() != identity {
                return Err(io::Error::new(io::ErrorKind::InvalidData, "the archive changed while it was read"));
            }
            archive.spool(&scratch).map_err(io::Error::other)?.archive.file()
        });
        return Ok(known.tree(&plain));
    }
    let facts = archive.facts();
    let spooled = archive.spool(&options.scratch)?;
    let mut found = Problems::default();
    let tree = index_archive(&path, &spooled, Meaning::Tree, options, &mut found)?;
    if found.is_empty() {
        let read = (&tree, spooled.digest.clone());
        kept.put(&identity, Meaning::Tree, options, read, Some(facts)).map_err(|e| ReadError::io(&path, e))?;
    }
    problems.extend(found);
    Ok(tree)
}
