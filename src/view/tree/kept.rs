//! What was read of archives before: their entries without contents, so that an archive or layer that has not changed is
//! neither fetched nor decompressed again.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Meaning, ReadOptions, Xattrs};
use crate::oci::kept::mark_used;
use crate::view::cache::Fields;
use crate::view::entry::{Content, Entry, EntryKind, Facts, Source, TICK, Tree};
use crate::view::plain::PlainTar;

/// Raised when an archive is read in another way.
const FORMAT: u32 = 1;

/// A folder of trees.
#[derive(Debug, Clone)]
pub struct KeptTrees {
    folder: PathBuf,
}

/// A tree that was kept, without the archive that its contents are in.
#[derive(Debug, Serialize, Deserialize)]
pub struct Kept {
    /// `sha256:…` of the plain bytes, when they were read.
    pub digest: Option<String>,
    rows: Vec<Row>,
}

/// Path, mode, extended attributes, kind.
#[derive(Debug, Serialize, Deserialize)]
struct Row(Name, u32, Vec<(Name, Name)>, Kind);

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Folder,
    Link(Name),
    /// Bytes, offset in the archive, number of the file if it has several names.
    Part(u64, u64, Option<u64>),
    /// Bytes that are kept themselves, number of the file.
    Bytes(Name, Option<u64>),
}

/// Bytes, as text if they are.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<&[u8]> for Name {
    fn from(bytes: &[u8]) -> Self {
        std::str::from_utf8(bytes).map_or_else(|_| Self::Bytes(bytes.to_vec()), |text| Self::Text(text.to_owned()))
    }
}

impl From<Name> for Vec<u8> {
    fn from(name: Name) -> Self {
        match name {
            Name::Text(text) => text.into_bytes(),
            Name::Bytes(bytes) => bytes,
        }
    }
}

impl Kept {
    /// `None` when something of the tree lies elsewhere than in the archive.
    fn of(tree: &Tree, digest: Option<String>) -> Option<Self> {
        let row = |(path, entry): (&Vec<u8>, &Entry)| {
            let kind = match &entry.kind {
                EntryKind::Folder => Kind::Folder,
                EntryKind::Link(target) => Kind::Link(target.as_slice().into()),
                EntryKind::File(Content { size, source: Source::Part { offset, .. }, shared }) => {
                    Kind::Part(*size, *offset, *shared)
                }
                EntryKind::File(Content { source: Source::Bytes(bytes), shared, .. }) => {
                    Kind::Bytes((&**bytes).into(), *shared)
                }
                EntryKind::File(Content { source: Source::Disk { .. }, .. }) => return None,
            };
            let xattrs = entry.xattrs.iter().map(|(name, value)| (name.as_slice().into(), value.as_slice().into()));
            Some(Row(path.as_slice().into(), entry.mode, xattrs.collect(), kind))
        };
        Some(Self { digest, rows: tree.entries.iter().map(row).collect::<Option<_>>()? })
    }

    /// The tree, with its contents in `archive`.
    #[must_use]
    pub fn tree(self, archive: &Arc<PlainTar>) -> Tree {
        let entry = |Row(path, mode, xattrs, kind)| {
            let kind = match kind {
                Kind::Folder => EntryKind::Folder,
                Kind::Link(target) => EntryKind::Link(target.into()),
                Kind::Part(size, offset, shared) => {
                    let source = Source::Part { archive: Arc::clone(archive), offset };
                    EntryKind::File(Content { size, source, shared })
                }
                Kind::Bytes(bytes, shared) => {
                    let bytes: Vec<u8> = bytes.into();
                    EntryKind::File(Content { size: bytes.len() as u64, source: Source::Bytes(bytes.into()), shared })
                }
            };
            let xattrs = xattrs.into_iter().map(|(name, value): (Name, Name)| (name.into(), value.into())).collect();
            (path.into(), Entry { mode, xattrs, kind })
        };
        Tree { entries: self.rows.into_iter().map(entry).collect() }
    }
}

impl KeptTrees {
    /// The trees in a folder, which is made when one is kept.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf() }
    }

    fn path(&self, identity: &str, meaning: Meaning, options: &ReadOptions) -> PathBuf {
        let mut key = Fields::default();
        key.add(&FORMAT.to_le_bytes());
        key.add(identity.as_bytes());
        key.add(match meaning {
            Meaning::Tree => b"tree",
            Meaning::Layer => b"layer",
        });
        key.add(match options.xattrs {
            Xattrs::None => b"none",
            Xattrs::Capabilities => b"capabilities",
            Xattrs::User => b"user",
        });
        options.exclude.iter().for_each(|pattern| key.add(pattern.as_bytes()));
        self.folder.join(format!("{}.json", key.hex()))
    }

    /// What was read of an archive before. A file that cannot be read is as good as none.
    #[must_use]
    pub fn get(&self, identity: &str, meaning: Meaning, options: &ReadOptions) -> Option<Kept> {
        let path = self.path(identity, meaning, options);
        let kept = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
        mark_used(&path);
        Some(kept)
    }

    /// Keeps what was read of an archive that nothing was wrong with. `facts`: those of its file; one that changed just now
    /// is not kept, because another change might not show in its times.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put(
        &self,
        identity: &str,
        meaning: Meaning,
        options: &ReadOptions,
        (tree, digest): (&Tree, Option<String>),
        facts: Option<Facts>,
    ) -> io::Result<()> {
        let Some(kept) = Kept::of(tree, digest) else { return Ok(()) };
        fs::create_dir_all(&self.folder)?;
        let mut file = tempfile::NamedTempFile::new_in(&self.folder)?;
        file.write_all(&serde_json::to_vec(&kept)?)?;
        let now = Facts::of(&file.as_file().metadata()?).modified;
        if facts.is_none_or(|facts| facts.changed + TICK <= now) {
            file.persist(self.path(identity, meaning, options)).map_err(|e| e.error)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_come_back_as_they_were() {
        let archive = PlainTar::of(tempfile::tempfile().unwrap(), "id".into());
        let mut tree = Tree::default();
        let part = Source::Part { archive: Arc::clone(&archive), offset: 512 };
        let file = EntryKind::File(Content { size: 7, source: part, shared: Some(3) });
        let xattrs = vec![(b"user.x".to_vec(), vec![0, 255])];
        tree.entries.insert(b"f\xff".to_vec(), Entry { mode: 0o4755, xattrs, kind: file });
        tree.entries.insert(b"folder".to_vec(), Entry::folder());
        tree.entries.insert(b"link".to_vec(), Entry::link(b"\xfe".to_vec()));
        tree.entries.insert(b"made".to_vec(), Entry::made(b"text", 0o644));
        let folder = tempfile::tempdir().unwrap();
        let trees = KeptTrees::new(&folder.path().join("trees"));
        let options = ReadOptions::default();
        let put = |facts| trees.put("id", Meaning::Tree, &options, (&tree, Some("sha256:x".into())), facts).unwrap();
        let young = Facts { changed: i128::MAX - TICK, ..Facts::default() };
        put(Some(young));
        assert!(trees.get("id", Meaning::Tree, &options).is_none());
        put(Some(Facts::default()));
        let kept = trees.get("id", Meaning::Tree, &options).unwrap();
        assert_eq!(kept.digest.as_deref(), Some("sha256:x"));
        let again = kept.tree(&archive);
        assert_eq!(format!("{tree:?}"), format!("{again:?}"));
        let other = ReadOptions { xattrs: Xattrs::User, ..ReadOptions::default() };
        let without = ReadOptions { exclude: vec!["*.pyc".into()], ..ReadOptions::default() };
        assert!(trees.get("id", Meaning::Tree, &other).is_none());
        assert!(trees.get("id", Meaning::Tree, &without).is_none());
        assert!(trees.get("id", Meaning::Layer, &options).is_none());
        assert!(trees.get("other", Meaning::Tree, &options).is_none());
        fs::write(trees.path("id", Meaning::Tree, &options), "{").unwrap();
        assert!(trees.get("id", Meaning::Tree, &options).is_none());
    }
}
