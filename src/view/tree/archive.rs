//! A tar archive as a tree (POSIX.1-2017 pax, ustar, GNU long names).

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use tar::{EntryType, Header};

use super::{LONGEST, ReadError, ReadOptions, Spooled};
use crate::diag::codes::view as codes;
use crate::view::contract::{is_looked_into, is_view_path};
use crate::view::entry::{Content, Entry, EntryKind, Source, Tree, TreePath, parent, parts, shown};
use crate::view::problem::Problems;

/// Most bytes of a long name or of the extended headers of one entry.
const EXTENSION: u64 = 1 << 20;
const BLOCK: u64 = 512;

/// What an archive is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// A tree: one entry for a name, no whiteouts.
    Tree,
    /// A layer of an image: the last entry of a name counts, whiteouts are entries that [`super::apply_layer`] obeys.
    Layer,
}

/// Reads the entries of an archive.
///
/// # Errors
/// When the archive is damaged. What is wrong with single entries goes to the problems.
pub fn index(
    path: &Path,
    spooled: &Spooled,
    meaning: Meaning,
    options: &ReadOptions,
    problems: &mut Problems,
) -> Result<Tree, ReadError> {
    let mut index = Index {
        archive: path,
        spooled,
        file: spooled.archive.file().map_err(|e| ReadError::io(path, e))?,
        meaning,
        options,
        problems,
        tree: Tree::default(),
        hard_links: Vec::new(),
        at: 0,
        seen: 0,
    };
    while let Some(raw) = index.next()? {
        index.entry(&raw)?;
    }
    index.resolve_hard_links();
    index.check_parents();
    Ok(index.tree)
}

/// A header with the extended ones before it.
struct Raw {
    kind: EntryType,
    path: Vec<u8>,
    link: Vec<u8>,
    mode: u32,
    size: u64,
    offset: u64,
    xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    sparse: bool,
}

/// What pax and GNU headers say of the next entry.
#[derive(Default)]
struct Extended {
    path: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
    size: Option<u64>,
    xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    sparse: bool,
}

struct Index<'a> {
    archive: &'a Path,
    spooled: &'a Spooled,
    file: Arc<File>,
    meaning: Meaning,
    options: &'a ReadOptions,
    problems: &'a mut Problems,
    tree: Tree,
    hard_links: Vec<(TreePath, TreePath, u32)>,
    at: u64,
    seen: u64,
}

impl Index<'_> {
    fn damaged(&self, why: impl Into<String>) -> ReadError {
        ReadError::Archive { path: self.archive.to_path_buf(), why: why.into() }
    }

    fn read(&self, offset: u64, length: u64) -> Result<Vec<u8>, ReadError> {
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        match self.file.read_exact_at(&mut bytes, offset) {
            Ok(()) => Ok(bytes),
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => Err(self.damaged("it ends in the middle")),
            Err(e) => Err(ReadError::io(self.archive, e)),
        }
    }

    /// The next entry that is no extended header; `None` at the end.
    fn next(&mut self) -> Result<Option<Raw>, ReadError> {
        let mut extended = Extended::default();
        loop {
            if self.at >= self.spooled.size {
                // Without any entry it is no archive; without the two final blocks it is a careless one.
                return if self.seen == 0 { Err(self.damaged("it is empty")) } else { Ok(None) };
            }
            let block = self.read(self.at, BLOCK)?;
            if block.iter().all(|byte| *byte == 0) {
                return Ok(None);
            }
            let header = Header::from_byte_slice(&block);
            self.check_header(header, &block)?;
            self.seen += 1;
            let kind = header.entry_type();
            let size = header.entry_size().map_err(|e| self.damaged(e.to_string()))?;
            let offset = self.at + BLOCK;
            if kind.is_pax_local_extensions()
                || kind.is_pax_global_extensions()
                || kind.is_gnu_longname()
                || kind.is_gnu_longlink()
            {
                if size > EXTENSION {
                    return Err(self.damaged(format!("an extended header has {size} bytes; {EXTENSION} are allowed")));
                }
                let bytes = self.read(offset, size)?;
                self.skip(offset, size)?;
                self.extend(&mut extended, kind, &bytes)?;
                continue;
            }
            let mode = header.mode().map_err(|e| self.damaged(e.to_string()))? & 0o7777;
            let holds = matches!(kind, EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse);
            let size = if holds { extended.size.unwrap_or(size) } else { size };
            self.skip(offset, if holds { size } else { 0 })?;
            return Ok(Some(Raw {
                kind,
                path: extended.path.unwrap_or_else(|| header.path_bytes().into_owned()),
                link: extended.link.unwrap_or_else(|| header.link_name_bytes().unwrap_or_default().into_owned()),
                mode,
                size,
                offset,
                xattrs: extended.xattrs,
                sparse: extended.sparse || kind == EntryType::GNUSparse,
            }));
        }
    }

    fn check_header(&self, header: &Header, block: &[u8]) -> Result<(), ReadError> {
        let sum: u32 = block[..148].iter().chain(&block[156..]).map(|byte| u32::from(*byte)).sum::<u32>() + 8 * 32;
        match header.cksum() {
            Ok(written) if written == sum => Ok(()),
            _ if self.seen == 0 => Err(self.damaged("it does not begin like a tar archive")),
            _ => Err(self.damaged(format!("the checksum of the header at byte {} is wrong", self.at))),
        }
    }

    fn skip(&mut self, offset: u64, size: u64) -> Result<(), ReadError> {
        let end = offset.checked_add(size).filter(|end| *end <= self.spooled.size);
        let end = end.ok_or_else(|| self.damaged("it ends in the middle"))?;
        self.at = end.div_ceil(BLOCK) * BLOCK;
        Ok(())
    }

    fn extend(&self, extended: &mut Extended, kind: EntryType, bytes: &[u8]) -> Result<(), ReadError> {
        let text = |bytes: &[u8]| bytes.split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
        if kind.is_gnu_longname() {
            extended.path = Some(text(bytes));
        } else if kind.is_gnu_longlink() {
            extended.link = Some(text(bytes));
        } else if kind.is_pax_local_extensions() {
            for record in tar::PaxExtensions::new(bytes) {
                let record = record.map_err(|e| self.damaged(e.to_string()))?;
                let value = record.value_bytes();
                match record.key_bytes() {
                    b"path" => extended.path = Some(value.to_vec()),
                    b"linkpath" => extended.link = Some(value.to_vec()),
                    b"size" => {
                        let size = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                        extended.size = Some(size.ok_or_else(|| self.damaged("a pax size is no number"))?);
                    }
                    key if key.starts_with(b"GNU.sparse.") => extended.sparse = true,
                    key => {
                        if let Some(name) = key.strip_prefix(b"SCHILY.xattr.")
                            && self.options.xattrs.keeps(name)
                        {
                            extended.xattrs.push((name.to_vec(), value.to_vec()));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Where the content of a file is. What the check of views looks into is taken at once, so that the archive need not be
    /// there for it.
    fn source(&self, path: &[u8], raw: &Raw) -> Result<Source, ReadError> {
        if is_looked_into(path) && raw.size <= EXTENSION {
            return Ok(Source::Bytes(self.read(raw.offset, raw.size)?.into()));
        }
        Ok(Source::Part { archive: Arc::clone(&self.spooled.archive), offset: raw.offset })
    }

    fn entry(&mut self, raw: &Raw) -> Result<(), ReadError> {
        let Some(path) = self.clean(&raw.path) else { return Ok(()) };
        if path.is_empty() || self.options.excludes(&path) {
            return Ok(());
        }
        let kind = match raw.kind {
            EntryType::Directory => EntryKind::Folder,
            EntryType::Symlink => EntryKind::Link(raw.link.clone()),
            EntryType::Link => {
                if let Some(target) = self.clean(&raw.link) {
                    self.hard_links.push((path, target, raw.mode));
                }
                return Ok(());
            }
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse if raw.sparse => {
                let help = "make the archive without `--sparse`; holes are packed as zeros, which compress well";
                self.problems.error(codes::BAD_ARCHIVE, shown(&path), "sparse entries cannot be read", help);
                return Ok(());
            }
            // Old archives have a slash behind the names of folders, and no type for them.
            EntryType::Regular if raw.path.last() == Some(&b'/') => EntryKind::Folder,
            EntryType::Regular | EntryType::Continuous => {
                EntryKind::File(Content { size: raw.size, source: self.source(&path, raw)?, shared: None })
            }
            // The base of an image may have them; nothing of it is packed.
            EntryType::Char | EntryType::Block | EntryType::Fifo
                if self.meaning == Meaning::Layer && !is_view_path(&path) =>
            {
                return Ok(());
            }
            EntryType::Char | EntryType::Block | EntryType::Fifo => {
                let help = "remove it, or name it in `exclude`";
                self.problems.error(codes::SPECIAL_FILE, shown(&path), "devices and pipes cannot be packed", help);
                return Ok(());
            }
            other => {
                let what = format!("entries of type {:?} cannot be read", char::from(other.as_byte()));
                self.problems.error(codes::BAD_ARCHIVE, shown(&path), what, "");
                return Ok(());
            }
        };
        let mut xattrs = raw.xattrs.clone();
        xattrs.sort();
        self.insert(path, Entry { mode: raw.mode, xattrs, kind });
        Ok(())
    }

    fn insert(&mut self, path: TreePath, entry: Entry) {
        let both_folders = |old: &Entry| matches!((&old.kind, &entry.kind), (EntryKind::Folder, EntryKind::Folder));
        if self.meaning == Meaning::Tree && self.tree.get(&path).is_some_and(|old| !both_folders(old)) {
            let help = "make the archive anew; tools disagree which one counts";
            self.problems.error(codes::DUPLICATE, shown(&path), "the archive holds a name twice", help);
            return;
        }
        self.tree.entries.insert(path, entry);
    }

    /// A name from the root; reports one that climbs or is too long.
    fn clean(&mut self, path: &[u8]) -> Option<TreePath> {
        if parts(path).any(|part| part == b"..") {
            let help = "such a name leaves the tree; make the archive with names below its root";
            self.problems.error(codes::BAD_NAME, shown(path), "the name has `..` in it", help);
            return None;
        }
        if path.len() > LONGEST || path.contains(&0) {
            let start = &path[..path.len().min(60)];
            self.problems.error(
                codes::BAD_NAME,
                shown(start),
                "the name is longer than 4095 bytes or holds a zero",
                "",
            );
            return None;
        }
        Some(parts(path).collect::<Vec<_>>().join(&b'/'))
    }

    /// Gives the names of one file one number.
    fn resolve_hard_links(&mut self) {
        let mut sets: BTreeMap<TreePath, u64> = BTreeMap::new();
        for (path, target, mode) in std::mem::take(&mut self.hard_links) {
            let next = sets.len() as u64;
            let Some(EntryKind::File(content)) = self.tree.entries.get_mut(&target).map(|entry| &mut entry.kind) else {
                let help = "a hard link names a file that stands in the same archive";
                self.problems.error(codes::BAD_ARCHIVE, shown(&path), "a hard link leads to no file", help);
                continue;
            };
            let set = *content.shared.get_or_insert_with(|| *sets.entry(target.clone()).or_insert(next));
            sets.entry(target.clone()).or_insert(set);
            let content = content.clone();
            let xattrs = self.tree.get(&target).map(|entry| entry.xattrs.clone()).unwrap_or_default();
            self.insert(path, Entry { mode, xattrs, kind: EntryKind::File(content) });
        }
    }

    /// Everything has to be in folders; those that the archive left out are added.
    fn check_parents(&mut self) {
        let mut missing = Vec::new();
        for path in self.tree.entries.keys() {
            let mut above = parent(path);
            while !above.is_empty() {
                match self.tree.get(above).map(|entry| &entry.kind) {
                    Some(EntryKind::Folder) => break,
                    Some(_) => {
                        let help = "unpackers would follow the link or fail; make the archive anew";
                        let what = "the name is below one that is no folder";
                        self.problems.error(codes::BAD_NAME, shown(path), what, help);
                        break;
                    }
                    None => missing.push(above.to_vec()),
                }
                above = parent(above);
            }
        }
        for path in missing {
            self.tree.entries.entry(path).or_insert_with(Entry::folder);
        }
    }
}
