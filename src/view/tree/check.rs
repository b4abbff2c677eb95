//! What may not be in a tree that becomes an image.

use crate::diag::codes::view as codes;
use crate::view::contract::is_view_path;
use crate::view::entry::{Entry, EntryKind, Tree, TreePath, link_destination, name, relative_link, shown};
use crate::view::problem::Problems;

/// Set-user-id and set-group-id.
const SETUID: u32 = 0o6000;

/// What is allowed beyond the usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckOptions {
    /// What to do with set-user-id and set-group-id bits.
    pub setuid: Setuid,
    /// Links out of `/opt/software` and `/opt/views` stay.
    pub outside_links: bool,
}

/// What to do with set-user-id and set-group-id bits of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Setuid {
    /// An error.
    #[default]
    Refuse,
    /// The bits are taken away.
    Drop,
    /// They stay.
    Keep,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self { setuid: Setuid::Refuse, outside_links: false }
    }
}

/// Checks a tree and brings it into the form that images have: modes 0755 and 0644, links inside it relative.
pub fn check(tree: &mut Tree, options: CheckOptions, problems: &mut Problems) {
    let mut relative = Vec::new();
    for (path, entry) in &mut tree.entries {
        if name(path).starts_with(b".wh.") {
            let help = "in a layer such a name hides another file; rename or remove it";
            problems.error(codes::WHITEOUT, shown(path), "the name is a whiteout", help);
        }
        mode(path, entry, options.setuid, problems);
        // Links of the base or the helper are used in containers of the view itself, where all of it is.
        if let EntryKind::Link(target) = &entry.kind
            && is_view_path(path)
            && let Some(better) = link(path, target, options, problems)
        {
            relative.push((path.clone(), better));
        }
    }
    for (path, target) in relative {
        problems.note(codes::ABSOLUTE_LINK, shown(&path), "an absolute link is packed as a relative one", "");
        tree.entries.insert(path, Entry::link(target));
    }
}

/// The umask of who made the tree must not show.
fn mode(path: &[u8], entry: &mut Entry, setuid: Setuid, problems: &mut Problems) {
    entry.mode = match &entry.kind {
        EntryKind::Folder => 0o755,
        EntryKind::Link(_) => 0o777,
        EntryKind::File(_) => {
            let special = entry.mode & SETUID;
            if special != 0 && setuid == Setuid::Refuse {
                let help = "write `setuid: drop` or `setuid: keep` in view.yaml, or exclude the file";
                problems.error(codes::SETUID, shown(path), "the file has a set-user-id or set-group-id bit", help);
            }
            let kept = if setuid == Setuid::Keep { special } else { 0 };
            kept | if entry.mode & 0o111 == 0 { 0o644 } else { 0o755 }
        }
    };
}

/// A better target for a link, if there is one; reports those that lead out.
fn link(path: &TreePath, target: &[u8], options: CheckOptions, problems: &mut Problems) -> Option<Vec<u8>> {
    let destination = link_destination(path, target);
    let inside = destination.as_ref().is_some_and(|to| is_view_path(to));
    if inside {
        return (target.first() == Some(&b'/')).then(|| relative_link(path, &destination.unwrap_or_default()));
    }
    if !options.outside_links || destination.is_none() {
        let help = "only /opt/software and /opt/views are there in application containers; replace the link by what it \
                    leads to, exclude it, or write `outsideLinks: keep` in view.yaml";
        let what = match destination {
            Some(_) => "a link leads out of the view",
            None => "a link climbs above the root",
        };
        problems.error(codes::LINK_OUT, shown(path), what, help);
    }
    None
}
