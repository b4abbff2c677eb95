//! Layers on top of each other, as the image specification says (OCI image-spec, layer.md).

use crate::view::entry::{Entry, EntryKind, Tree, TreePath, name, parent};

const WHITEOUT: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";

/// Puts a layer on a tree: whiteouts hide what is below, other entries replace it. `serial` keeps the hard links of layers
/// apart.
pub fn apply_layer(tree: &mut Tree, layer: Tree, serial: u64) {
    let (whiteouts, entries): (Vec<_>, Vec<_>) =
        layer.entries.into_iter().partition(|(path, _)| name(path).starts_with(WHITEOUT));
    for (path, _) in whiteouts {
        let folder = parent(&path);
        let hidden = &name(&path)[WHITEOUT.len()..];
        if name(&path) == OPAQUE {
            remove_below(tree, folder);
        } else if !hidden.is_empty() {
            let mut target = folder.to_vec();
            if !target.is_empty() {
                target.push(b'/');
            }
            target.extend(hidden);
            remove_below(tree, &target);
            tree.entries.remove(&target);
        }
    }
    for (path, mut entry) in entries {
        if !matches!(entry.kind, EntryKind::Folder) {
            remove_below(tree, &path);
        }
        if let EntryKind::File(content) = &mut entry.kind {
            content.shared = content.shared.map(|set| (serial << 32) | (set & 0xffff_ffff));
        }
        replace_parents(tree, &path);
        tree.entries.insert(path, entry);
    }
}

/// A folder of a higher layer takes the place of a file or link of a lower one.
fn replace_parents(tree: &mut Tree, path: &[u8]) {
    let mut above = parent(path);
    while !above.is_empty() {
        if tree.get(above).is_some_and(|entry| !matches!(entry.kind, EntryKind::Folder)) {
            tree.entries.insert(above.to_vec(), Entry::folder());
        }
        above = parent(above);
    }
}

fn remove_below(tree: &mut Tree, folder: &[u8]) {
    let below: Vec<TreePath> = if folder.is_empty() {
        tree.entries.keys().cloned().collect()
    } else {
        tree.below(folder).map(|(path, _)| path.clone()).collect()
    };
    for path in below {
        tree.entries.remove(&path);
    }
}
