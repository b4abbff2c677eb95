//! One entry of a tree: what it is and where its content lies, never the content itself.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;

use super::plain::PlainTar;

/// Path in the image, without a slash in front: `opt/view`. Bytes, because names need not be UTF-8.
pub type TreePath = Vec<u8>;

/// Everything below the root of an image, by path. A folder comes before what is in it.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// The entries; the root itself is none of them.
    pub entries: BTreeMap<TreePath, Entry>,
}

/// One entry.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Permission bits (07777) as found.
    pub mode: u32,
    /// Extended attributes, sorted by name.
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    /// What it is.
    pub kind: EntryKind,
}

/// What an entry is.
#[derive(Debug, Clone)]
pub enum EntryKind {
    /// A folder.
    Folder,
    /// A regular file.
    File(Content),
    /// A symbolic link, with its target as written.
    Link(Vec<u8>),
}

/// The content of a regular file.
#[derive(Debug, Clone)]
pub struct Content {
    /// Bytes.
    pub size: u64,
    /// Where they are.
    pub source: Source,
    /// Files with the same number are one file with several names (hard links).
    pub shared: Option<u64>,
}

/// Where bytes are.
#[derive(Debug, Clone)]
pub enum Source {
    /// A file of a folder, with what told its state when the tree was read.
    Disk {
        /// Its path.
        path: PathBuf,
        /// Its state.
        facts: Facts,
    },
    /// A part of an archive.
    Part {
        /// The archive.
        archive: Arc<PlainTar>,
        /// Offset of the first byte.
        offset: u64,
    },
    /// Made by flux-gen.
    Bytes(Arc<[u8]>),
}

/// Times of files are as exact as the kernel's clock tick, in nanoseconds: a file that changed so shortly before it was read may
/// change once more without another time.
pub const TICK: i128 = 20_000_000;

/// What tells a changed file from an unchanged one without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Facts {
    /// Device.
    pub device: u64,
    /// Inode.
    pub inode: u64,
    /// Bytes.
    pub size: u64,
    /// Last change of the content, in nanoseconds since 1970.
    pub modified: i128,
    /// Last change of content or inode, in nanoseconds since 1970.
    pub changed: i128,
}

impl Facts {
    /// Of a file's metadata.
    #[must_use]
    pub fn of(metadata: &std::fs::Metadata) -> Self {
        let nanoseconds = |seconds: i64, part: i64| i128::from(seconds) * 1_000_000_000 + i128::from(part);
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            changed: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl std::fmt::Display for Facts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}:{}:{}", self.device, self.inode, self.size, self.modified, self.changed)
    }
}

impl Content {
    /// Opens it for reading.
    ///
    /// # Errors
    /// As the operating system says; [`io::ErrorKind::InvalidData`] when the file is not the one that was indexed.
    pub fn open(&self) -> io::Result<Reader> {
        let (file, at, facts) = match &self.source {
            Source::Bytes(bytes) => {
                return Ok(Reader { inner: Inner::Bytes(Arc::clone(bytes)), at: 0, left: self.size, facts: None });
            }
            Source::Part { archive, offset } => (archive.file()?, *offset, None),
            Source::Disk { path, facts } => {
                // A link that took the file's place since is not followed.
                let no_follow = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default();
                let file = OpenOptions::new().read(true).custom_flags(no_follow).open(path)?;
                if Facts::of(&file.metadata()?) != *facts {
                    return Err(changed());
                }
                (Arc::new(file), 0, Some(*facts))
            }
        };
        Ok(Reader { inner: Inner::File(file), at, left: self.size, facts })
    }

    /// What decides whether a packed copy is still good: the same text means the same bytes.
    #[must_use]
    pub fn identity(&self) -> String {
        match &self.source {
            Source::Disk { facts, .. } => facts.to_string(),
            Source::Part { archive, offset } => format!("{}@{offset}", archive.identity()),
            Source::Bytes(bytes) => {
                let mut hash = sha2::Sha256::default();
                sha2::Digest::update(&mut hash, bytes);
                super::sha256_text(hash)
            }
        }
    }

    /// When the file's content or inode changed last, for files of a folder.
    #[must_use]
    pub fn changed(&self) -> Option<i128> {
        match &self.source {
            Source::Disk { facts, .. } => Some(facts.changed),
            Source::Part { .. } | Source::Bytes(_) => None,
        }
    }
}

fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the file changed while it was read")
}

/// Reads a file's content, from its start or at offsets.
#[derive(Debug)]
pub struct Reader {
    inner: Inner,
    /// Where the next byte is.
    at: u64,
    /// Bytes left.
    left: u64,
    /// The state of a file of a folder when it was indexed.
    facts: Option<Facts>,
}

#[derive(Debug)]
enum Inner {
    File(Arc<File>),
    Bytes(Arc<[u8]>),
}

impl Reader {
    /// Fails when the file changed since it was indexed. Its name is not looked at: if that has got another file since, what was
    /// read is still what was indexed.
    ///
    /// # Errors
    /// As [`Content::open`].
    pub fn check_unchanged(&self) -> io::Result<()> {
        match (&self.inner, &self.facts) {
            (Inner::File(file), Some(facts)) if Facts::of(&file.metadata()?) != *facts => Err(changed()),
            _ => Ok(()),
        }
    }

    /// Up to `length` bytes at `offset` of what is left; fewer at the end.
    ///
    /// # Errors
    /// As the operating system says.
    pub fn read_range(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let available = self.left.saturating_sub(offset);
        let length = usize::try_from(available).unwrap_or(usize::MAX).min(length);
        let mut bytes = vec![0; length];
        match &self.inner {
            Inner::File(file) => file.read_exact_at(&mut bytes, self.at + offset)?,
            Inner::Bytes(all) => {
                let start = usize::try_from(self.at + offset).unwrap_or(usize::MAX);
                bytes.copy_from_slice(all.get(start..start + length).unwrap_or_default());
            }
        }
        Ok(bytes)
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = match &self.inner {
            Inner::File(file) => file.read_at(&mut buffer[..wanted], self.at)?,
            Inner::Bytes(bytes) => {
                let start = usize::try_from(self.at).unwrap_or(usize::MAX).min(bytes.len());
                let part = &bytes[start..(start + wanted).min(bytes.len())];
                buffer[..part.len()].copy_from_slice(part);
                part.len()
            }
        };
        self.at += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}

impl Entry {
    /// A folder of mode 0755.
    #[must_use]
    pub fn folder() -> Self {
        Self { mode: 0o755, xattrs: Vec::new(), kind: EntryKind::Folder }
    }

    /// A symbolic link.
    #[must_use]
    pub fn link(target: impl Into<Vec<u8>>) -> Self {
        Self { mode: 0o777, xattrs: Vec::new(), kind: EntryKind::Link(target.into()) }
    }

    /// A file that flux-gen makes.
    #[must_use]
    pub fn made(bytes: &[u8], mode: u32) -> Self {
        let content = Content { size: bytes.len() as u64, source: Source::Bytes(bytes.into()), shared: None };
        Self { mode, xattrs: Vec::new(), kind: EntryKind::File(content) }
    }

    /// The content of a regular file.
    #[must_use]
    pub fn content(&self) -> Option<&Content> {
        match &self.kind {
            EntryKind::File(content) => Some(content),
            EntryKind::Folder | EntryKind::Link(_) => None,
        }
    }
}

impl Tree {
    /// The entry at a path.
    #[must_use]
    pub fn get(&self, path: &[u8]) -> Option<&Entry> {
        self.entries.get(path)
    }

    /// What is below a folder, without the folder.
    pub fn below<'a>(&'a self, folder: &[u8]) -> impl Iterator<Item = (&'a TreePath, &'a Entry)> + use<'a> {
        let mut start = folder.to_vec();
        start.push(b'/');
        let prefix = start.clone();
        self.entries.range(start..).take_while(move |(path, _)| path.starts_with(&prefix))
    }

    /// The names in a folder.
    pub fn names<'a>(&'a self, folder: &[u8]) -> impl Iterator<Item = (&'a [u8], &'a Entry)> + use<'a> {
        let length = folder.len() + 1;
        self.below(folder).map(move |(path, entry)| (&path[length..], entry)).filter(|(name, _)| !name.contains(&b'/'))
    }

    /// The path that a path leads to when links inside the tree are followed; `None` when it leads out, nowhere or in a
    /// circle. `path` is taken from the root.
    #[must_use]
    pub fn follow(&self, path: &[u8]) -> Option<TreePath> {
        let mut rest: Vec<Vec<u8>> = parts(path).rev().map(<[u8]>::to_vec).collect();
        let mut at: Vec<Vec<u8>> = Vec::new();
        let mut hops = 0;
        while let Some(part) = rest.pop() {
            if part == b".." {
                at.pop()?;
                continue;
            }
            at.push(part);
            match &self.get(&at.join(&b'/'))?.kind {
                EntryKind::Link(target) => {
                    hops += 1;
                    if hops > 40 {
                        return None;
                    }
                    at.pop();
                    if target.first() == Some(&b'/') {
                        at.clear();
                    }
                    rest.extend(parts(target).rev().map(<[u8]>::to_vec));
                }
                EntryKind::Folder | EntryKind::File(_) => {}
            }
        }
        Some(at.join(&b'/'))
    }
}

/// The parts of a path; empty ones and `.` left out.
pub fn parts(path: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".")
}

/// The folder that a path is in; empty for the root.
#[must_use]
pub fn parent(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| *byte == b'/').map_or(&[], |at| &path[..at])
}

/// The last part of a path.
#[must_use]
pub fn name(path: &[u8]) -> &[u8] {
    path.iter().rposition(|byte| *byte == b'/').map_or(path, |at| &path[at + 1..])
}

/// A path for messages: as in the image, bytes that are no text replaced.
#[must_use]
pub fn shown(path: &[u8]) -> String {
    format!("/{}", String::from_utf8_lossy(path))
}

/// The link target that leads from the folder of `from` to `to`; both are paths of the image.
#[must_use]
pub fn relative_link(from: &[u8], to: &[u8]) -> Vec<u8> {
    let from: Vec<&[u8]> = parts(parent(from)).collect();
    let to: Vec<&[u8]> = parts(to).collect();
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let mut target: Vec<&[u8]> = vec![b".."; from.len() - common];
    target.extend(&to[common..]);
    if target.is_empty() {
        return b".".to_vec();
    }
    target.join(&b'/')
}

/// Where a link leads when `..` is taken away as text; `None` when it climbs above the root.
#[must_use]
pub fn link_destination(from: &[u8], target: &[u8]) -> Option<TreePath> {
    let mut at: Vec<&[u8]> = if target.first() == Some(&b'/') { Vec::new() } else { parts(parent(from)).collect() };
    for part in parts(target) {
        if part == b".." {
            at.pop()?;
        } else {
            at.push(part);
        }
    }
    Some(at.join(&b'/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links() {
        for (from, target, to) in [
            ("opt/view", "views/._view/h", Some("opt/views/._view/h")),
            ("opt/views/._view/h/bin/flux", "../../../../software/f/bin/flux", Some("opt/software/f/bin/flux")),
            ("opt/a", "/opt/b", Some("opt/b")),
            ("opt/a", "../..", None),
            ("opt/a", "./b/../c", Some("opt/c")),
        ] {
            let found = link_destination(from.as_bytes(), target.as_bytes());
            assert_eq!(found.as_deref(), to.map(str::as_bytes), "{from} -> {target}");
        }
        for (from, to, target) in [
            ("opt/view", "opt/views/._view/h", "views/._view/h"),
            ("opt/views/._view/h/bin/flux", "opt/software/f", "../../../../software/f"),
            ("a", "b", "b"),
            ("a/b", "a", "."),
        ] {
            assert_eq!(relative_link(from.as_bytes(), to.as_bytes()), target.as_bytes(), "{from} -> {to}");
        }
    }

    #[test]
    fn following() {
        let mut tree = Tree::default();
        for (path, entry) in [
            ("opt", Entry::folder()),
            ("opt/v", Entry::folder()),
            ("opt/v/f", Entry::made(b"x", 0o644)),
            ("opt/l", Entry::link("v")),
            ("opt/abs", Entry::link("/opt/l/f")),
            ("opt/loop", Entry::link("loop")),
            ("opt/gone", Entry::link("none")),
        ] {
            tree.entries.insert(path.as_bytes().to_vec(), entry);
        }
        for (path, to) in [
            ("opt/l/f", Some("opt/v/f")),
            ("opt/abs", Some("opt/v/f")),
            ("opt/loop", None),
            ("opt/gone", None),
            ("opt/v", Some("opt/v")),
        ] {
            assert_eq!(tree.follow(path.as_bytes()).as_deref(), to.map(str::as_bytes), "{path}");
        }
        assert_eq!(tree.names(b"opt/v").count(), 1);
    }
}
