//! What a layer holds, in the order of its bytes.

use std::collections::{BTreeMap, BTreeSet};

use crate::view::entry::{Content, EntryKind, Tree, TreePath, parent};

/// A layer that is to be packed: a view of a part of a tree, which stays where it is. Trees have a hundred thousand entries.
#[derive(Debug, Clone)]
pub struct Layer<'a> {
    /// Its entries in order: folders before what is in them.
    pub items: Vec<Item<'a>>,
}

/// One entry.
#[derive(Debug, Clone, Copy)]
pub struct Item<'a> {
    /// Path in the image.
    pub path: &'a [u8],
    /// Permission bits.
    pub mode: u32,
    /// Extended attributes, sorted.
    pub xattrs: &'a [(Vec<u8>, Vec<u8>)],
    /// What it is.
    pub kind: ItemKind<'a>,
}

/// What an entry is.
#[derive(Debug, Clone, Copy)]
pub enum ItemKind<'a> {
    /// A folder.
    Folder,
    /// A file with its content.
    File(&'a Content),
    /// A symbolic link.
    Link(&'a [u8]),
    /// Another name of a file that came before.
    HardLink(&'a [u8]),
}

impl<'a> Layer<'a> {
    /// The layer of some entries of a tree. The folders above them are in it too, always with mode 0755, so that they do not
    /// differ from layer to layer. Names of one file are hard links if they are in the same layer, and files otherwise:
    /// layers are unpacked one by one.
    #[must_use]
    pub fn of(tree: &'a Tree, paths: &'a [TreePath]) -> Self {
        let mut all: BTreeSet<&[u8]> = BTreeSet::new();
        for path in paths {
            let mut at = path.as_slice();
            while !at.is_empty() && all.insert(at) {
                at = parent(at);
            }
        }
        let mut first: BTreeMap<u64, &[u8]> = BTreeMap::new();
        let mut items = Vec::with_capacity(all.len());
        for path in all {
            let Some(entry) = tree.get(path) else {
                items.push(Item { path, mode: 0o755, xattrs: &[], kind: ItemKind::Folder });
                continue;
            };
            let kind = match &entry.kind {
                EntryKind::Folder => ItemKind::Folder,
                EntryKind::Link(target) => ItemKind::Link(target),
                EntryKind::File(content) => match content.shared.and_then(|set| first.get(&set)) {
                    Some(target) => ItemKind::HardLink(target),
                    None => {
                        first.extend(content.shared.map(|set| (set, path)));
                        ItemKind::File(content)
                    }
                },
            };
            let xattrs = if matches!(kind, ItemKind::HardLink(_)) { &[][..] } else { entry.xattrs.as_slice() };
            items.push(Item { path, mode: entry.mode, xattrs, kind });
        }
        Self { items }
    }

    /// Bytes of all files.
    #[must_use]
    pub fn size(&self) -> u64 {
        let size = |item: &Item| if let ItemKind::File(content) = &item.kind { content.size } else { 0 };
        self.items.iter().map(size).sum()
    }
}
