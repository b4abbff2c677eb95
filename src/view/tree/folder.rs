//! A folder as a tree.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;

use super::{LONGEST, ReadError, ReadOptions, Xattrs};
use crate::diag::codes::view as codes;
use crate::view::entry::{Content, Entry, EntryKind, Facts, Source, Tree, TreePath, shown};
use crate::view::problem::Problems;

/// Reads a folder. Links are never followed, other than `root` itself.
///
/// # Errors
/// When something in it cannot be read.
pub fn index(root: &Path, options: &ReadOptions, problems: &mut Problems) -> Result<Tree, ReadError> {
    let mut walk = Walk { options, problems, tree: Tree::default(), shared: BTreeMap::new() };
    let mut folders = vec![(root.to_path_buf(), Vec::new())];
    while let Some((folder, inside)) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|e| ReadError::io(&folder, e))? {
            let entry = entry.map_err(|e| ReadError::io(&folder, e))?;
            let name = entry.file_name().into_vec();
            let mut path: TreePath = inside.clone();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend(&name);
            if walk.entry(&entry.path(), &path)? {
                folders.push((entry.path(), path));
            }
        }
    }
    Ok(walk.finish())
}

struct Walk<'a> {
    options: &'a ReadOptions,
    problems: &'a mut Problems,
    tree: Tree,
    /// Number of each file with several names, by device and inode; how often it was seen.
    shared: BTreeMap<(u64, u64), (u64, usize)>,
}

impl Walk<'_> {
    /// Takes one entry; whether it is a folder to look into.
    fn entry(&mut self, disk: &Path, path: &TreePath) -> Result<bool, ReadError> {
        if self.options.excludes(path) {
            return Ok(false);
        }
        if path.len() > LONGEST {
            self.problems.error(codes::BAD_NAME, shown(&path[..60]), "the name is longer than 4095 bytes", "");
            return Ok(false);
        }
        let metadata = fs::symlink_metadata(disk).map_err(|e| ReadError::io(disk, e))?;
        let kind = metadata.file_type();
        let kind = if kind.is_dir() {
            EntryKind::Folder
        } else if kind.is_symlink() {
            EntryKind::Link(fs::read_link(disk).map_err(|e| ReadError::io(disk, e))?.into_os_string().into_vec())
        } else if kind.is_file() {
            EntryKind::File(self.content(disk, &metadata))
        } else {
            let what = if kind.is_fifo() {
                "a named pipe cannot be packed"
            } else if kind.is_socket() {
                "a socket cannot be packed"
            } else {
                "a device cannot be packed"
            };
            self.problems.error(codes::SPECIAL_FILE, shown(path), what, "remove it, or name it in `exclude`");
            return Ok(false);
        };
        let folder = matches!(kind, EntryKind::Folder);
        let xattrs = xattrs(disk, self.options.xattrs)?;
        self.tree.entries.insert(path.clone(), Entry { mode: metadata.permissions().mode() & 0o7777, xattrs, kind });
        Ok(folder)
    }

    fn content(&mut self, disk: &Path, metadata: &fs::Metadata) -> Content {
        let shared = (metadata.nlink() > 1).then(|| {
            let next = self.shared.len() as u64;
            let set = self.shared.entry((metadata.dev(), metadata.ino())).or_insert((next, 0));
            set.1 += 1;
            set.0
        });
        let source = Source::Disk { path: disk.to_path_buf(), facts: Facts::of(metadata) };
        Content { size: metadata.len(), source, shared }
    }

    /// Names of one file outside of the tree are nobody's business.
    fn finish(mut self) -> Tree {
        let single: BTreeSet<u64> = self.shared.values().filter(|(_, count)| *count < 2).map(|(set, _)| *set).collect();
        for entry in self.tree.entries.values_mut() {
            if let EntryKind::File(content) = &mut entry.kind
                && content.shared.is_some_and(|set| single.contains(&set))
            {
                content.shared = None;
            }
        }
        self.tree
    }
}

/// Extended attributes: names and values.
type Attributes = Vec<(Vec<u8>, Vec<u8>)>;

/// The extended attributes that the policy keeps, sorted.
fn xattrs(path: &Path, policy: Xattrs) -> Result<Attributes, ReadError> {
    if policy == Xattrs::None {
        return Ok(Vec::new());
    }
    let failed = |e: rustix::io::Errno| ReadError::io(path, e.into());
    let mut names = vec![0; 64 << 10];
    let length = match rustix::fs::llistxattr(path, &mut names[..]) {
        Ok(length) => length,
        Err(rustix::io::Errno::NOTSUP) => return Ok(Vec::new()),
        Err(e) => return Err(failed(e)),
    };
    let mut found = Vec::new();
    for name in names[..length].split(|byte| *byte == 0).filter(|name| policy.keeps(name)) {
        let mut value = vec![0; 64 << 10];
        let length = rustix::fs::lgetxattr(path, name, &mut value[..]).map_err(failed)?;
        value.truncate(length);
        found.push((name.to_vec(), value));
    }
    found.sort();
    Ok(found)
}
