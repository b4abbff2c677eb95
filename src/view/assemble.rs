//! Completes a tree: puts a prefix where it belongs, makes the view and its links, adds the helper of a view on `scratch`.

use std::path::Path;
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::entry::{Content, Entry, EntryKind, Source, Tree, TreePath, parent, relative_link};
use super::problem::Problems;
use super::{elf, group};
use crate::diag::codes::view as codes;

/// Folder of the trees of views.
const VIEWS: &str = "opt/views/._view";
/// Programs of busybox that scripts of bundles use; the shell has the others built in.
const PROGRAMS: [&str; 22] = [
    "sh", "ash", "cat", "chmod", "chown", "cp", "du", "env", "find", "id", "ln", "ls", "mkdir", "mv", "printf",
    "readlink", "rm", "sleep", "stat", "tar", "touch", "true",
];
/// The shell of the init container. The kernel runs a script's interpreter with its argument, so this is `busybox sh`.
const BASH: &[u8] = b"#!/bin/busybox sh\nexec /bin/busybox sh \"$@\"\n";
/// The name of the layer with the helper.
pub const HELPER_LAYER: &str = "helper";

/// Puts a tree below `prefix` (without a slash in front) and makes a view of it at `/opt/views`. A tree that has the folder
/// `prefix` itself, as `make install DESTDIR=...` makes it, is taken from there.
#[must_use]
pub fn place(tree: Tree, prefix: &str) -> Tree {
    let mut placed = Tree::default();
    let prefix = prefix.as_bytes();
    if is_staged(&tree, prefix) {
        let below = |path: &[u8]| path.strip_prefix(prefix).is_some_and(|rest| rest.first() == Some(&b'/'));
        placed.entries.extend(tree.entries.into_iter().filter(|(path, _)| below(path)));
    } else {
        for (path, entry) in tree.entries {
            placed.entries.insert([prefix, b"/", path.as_slice()].concat(), entry);
        }
    }
    for folder in [prefix, b"opt/software", b"opt/views"] {
        add_folder(&mut placed, folder);
    }
    make_view(&mut placed, prefix);
    placed
}

/// A folder and those above it.
fn add_folder(tree: &mut Tree, path: &[u8]) {
    let mut at = path;
    while !at.is_empty() && tree.get(at).is_none() {
        tree.entries.insert(at.to_vec(), Entry::folder());
        at = parent(at);
    }
}

/// A view of one prefix: `bin` and `lib` are folders of links, so that links can be added to them; everything else is a
/// link to the prefix.
fn make_view(tree: &mut Tree, prefix: &[u8]) {
    let view = format!("{VIEWS}/{}", hash(tree)).into_bytes();
    add_folder(tree, &view);
    let names: Vec<(Vec<u8>, bool)> =
        tree.names(prefix).map(|(name, entry)| (name.to_vec(), matches!(entry.kind, EntryKind::Folder))).collect();
    for (name, folder) in &names {
        let target = join(prefix, name);
        if *folder && matches!(name.as_slice(), b"bin" | b"lib" | b"lib64") {
            link_all(tree, &target, &join(&view, name));
        } else {
            add_link(tree, &join(&view, name), &target);
        }
    }
    // Bundles put `lib` of the view into LD_LIBRARY_PATH.
    let lib = join(&view, b"lib");
    link_all(tree, &join(prefix, b"lib64"), &lib);
    let multiarch: Vec<TreePath> = tree
        .names(&join(prefix, b"lib"))
        .filter(|(name, entry)| matches!(entry.kind, EntryKind::Folder) && name.windows(6).any(|w| w == b"-linux"))
        .map(|(name, _)| join(&join(prefix, b"lib"), name))
        .collect();
    for folder in multiarch {
        link_all(tree, &folder, &lib);
    }
    tree.entries.insert(b"opt/view".to_vec(), Entry::link(relative_link(b"opt/view", &view)));
}

fn join(folder: &[u8], name: &[u8]) -> TreePath {
    [folder, b"/", name].concat()
}

/// Links everything in a folder from another, except names that are there already.
fn link_all(tree: &mut Tree, from: &[u8], to: &[u8]) {
    let names: Vec<TreePath> = tree.names(from).map(|(name, _)| name.to_vec()).collect();
    if !names.is_empty() {
        add_folder(tree, to);
    }
    for name in names {
        add_link(tree, &join(to, &name), &join(from, &name));
    }
}

fn add_link(tree: &mut Tree, path: &[u8], target: &[u8]) {
    if tree.get(path).is_none() {
        tree.entries.insert(path.to_vec(), Entry::link(relative_link(path, target)));
    }
}

/// A name for the view that changes with what is in it, in the alphabet of Spack's hashes.
fn hash(tree: &Tree) -> String {
    let mut hash = Sha256::new();
    for (path, entry) in &tree.entries {
        let (kind, size) = match &entry.kind {
            EntryKind::Folder => (&b"folder"[..], 0),
            EntryKind::Link(target) => (target.as_slice(), 0),
            EntryKind::File(content) => (&b"file"[..], content.size),
        };
        for part in [path.as_slice(), kind] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        hash.update(size.to_le_bytes());
    }
    let letters = b"abcdefghijklmnopqrstuvwxyz234567";
    hash.finalize().iter().take(32).map(|byte| char::from(letters[usize::from(byte & 31)])).collect()
}

/// Adds what is missing of the links that the contract asks for: `/opt/view`, when there is one view, and its python.
pub fn complete(tree: &mut Tree) {
    if tree.get(b"opt/views").is_some() {
        add_folder(tree, b"opt/software");
    }
    let views: Vec<TreePath> = tree
        .names(VIEWS.as_bytes())
        .filter(|(_, entry)| matches!(entry.kind, EntryKind::Folder))
        .map(|(name, _)| join(VIEWS.as_bytes(), name))
        .collect();
    if let [view] = views.as_slice()
        && tree.get(b"opt/view").is_none()
    {
        tree.entries.insert(b"opt/view".to_vec(), Entry::link(relative_link(b"opt/view", view)));
    }
    let Some(view) = tree.follow(b"opt/view") else { return };
    let Some(bin) = tree.follow(&join(&view, b"bin")) else { return };
    if !matches!(tree.get(&bin).map(|entry| &entry.kind), Some(EntryKind::Folder)) {
        return;
    }
    let minor = |name: &[u8]| {
        let number = std::str::from_utf8(name).ok()?.strip_prefix("python3.")?;
        number.parse::<u32>().ok().map(|number| (number, name.to_vec()))
    };
    if let Some((_, python)) = tree.names(&bin).filter_map(|(name, _)| minor(name)).max() {
        for link in [&b"python3"[..], b"python"] {
            let path = join(&bin, link);
            if tree.follow(&path).is_none() {
                tree.entries.insert(path, Entry::link(python.clone()));
            }
        }
    }
}

/// Adds the helper of a view on `scratch`: busybox, and what a bundle's init container calls.
///
/// # Errors
/// When it cannot be read. What is wrong with it goes to the problems.
pub fn add_helper(tree: &mut Tree, path: &Path, architecture: &str, problems: &mut Problems) -> std::io::Result<()> {
    let bytes = std::fs::read(path)?;
    let help = "take /bin/busybox of Debian's package busybox-static for the platform";
    let mut wrong = |what: String| problems.error(codes::HELPER, path.display().to_string(), what, help);
    let content = Content { size: bytes.len() as u64, source: Source::Bytes(Arc::from(bytes)), shared: None };
    match elf::read(&content)? {
        None => wrong("the helper is no program".to_owned()),
        Some(program) => {
            if program.interpreter.is_some() {
                wrong("the helper is not static, and a view on `scratch` has no loader".to_owned());
            }
            if elf::machine_of(architecture).is_some_and(|machine| machine != program.machine) {
                wrong(format!("the helper is for {}, not for {architecture}", elf::machine_name(program.machine)));
            }
        }
    }
    add_folder(tree, b"bin");
    tree.entries
        .insert(b"bin/busybox".to_vec(), Entry { mode: 0o755, xattrs: Vec::new(), kind: EntryKind::File(content) });
    tree.entries.insert(b"bin/bash".to_vec(), Entry::made(BASH, 0o755));
    for program in PROGRAMS {
        add_link(tree, &join(b"bin", program.as_bytes()), b"bin/busybox");
    }
    Ok(())
}

/// The rule that gives the helper its own layer.
#[must_use]
pub fn helper_rule() -> group::Rule {
    group::Rule { name: HELPER_LAYER.to_owned(), packages: Vec::new(), paths: vec!["/bin".to_owned()] }
}

/// Whether the tree has a folder at `prefix`, and no program at its own root.
fn is_staged(tree: &Tree, prefix: &[u8]) -> bool {
    tree.get(b"bin").is_none() && matches!(tree.get(prefix).map(|entry| &entry.kind), Some(EntryKind::Folder))
}

/// Why a tree cannot be what the recipe says that it is, and what to write instead; `None` when it can, or nothing is known.
#[must_use]
pub fn other_shape(tree: &Tree, prefix: Option<&str>) -> Option<(TreePath, &'static str, String)> {
    const PREFIX: &str = "write `prefix:` with the path that it was compiled for, such as /opt/software/flux";
    if tree.get(b"bin/flux").is_some() || tree.get(b"opt/views").is_some() {
        let bare = prefix.is_none() && tree.get(b"opt/views").is_none();
        return bare
            .then(|| (b"bin/flux".to_vec(), "the tree is a prefix, not the root of an image", PREFIX.to_owned()));
    }
    if prefix.is_some_and(|prefix| is_staged(tree, prefix.as_bytes())) {
        return None;
    }
    let flux = tree.entries.keys().find(|path| path.ends_with(b"/bin/flux"))?;
    let folder = parent(parent(flux));
    if prefix.is_none() && folder.starts_with(b"opt/software/") {
        let help = format!("write `prefix: /{}`, and flux-gen makes the view of it", String::from_utf8_lossy(folder));
        return Some((flux.clone(), "the tree holds an installation, and no view of it", help));
    }
    let help = format!(
        "name the folder `{0}` in `path`, or pack the archive with `tar -C {0} -cf ... .`",
        String::from_utf8_lossy(folder)
    );
    Some((flux.clone(), "the installation is in a folder of the tree, not at its root", help))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::contract::{Expected, check};
    use crate::view::programs::Programs;

    fn prefix() -> Tree {
        let mut tree = Tree::default();
        let mut add = |path: &str, entry| tree.entries.insert(path.as_bytes().to_vec(), entry);
        for folder in [
            "bin",
            "lib64",
            "lib",
            "lib/x86_64-linux-gnu",
            "share",
            "lib/python3.11",
            "lib/python3.11/site-packages",
            "lib/python3.11/site-packages/flux",
        ] {
            add(folder, Entry::folder());
        }
        add("bin/flux", Entry::made(b"x", 0o755));
        add("bin/python3.9", Entry::made(b"x", 0o755));
        add("bin/python3.11", Entry::made(b"x", 0o755));
        add("lib64/libflux.so", Entry::made(b"x", 0o755));
        add("lib/x86_64-linux-gnu/libz.so.1", Entry::made(b"x", 0o755));
        tree
    }

    #[test]
    fn a_prefix_becomes_a_view() {
        let mut tree = place(prefix(), "opt/software/flux");
        complete(&mut tree);
        let report = check(&tree, &Programs::default(), Expected::default());
        assert!(report.problems.is_empty(), "{:?}", report.problems);
        for (path, to) in [
            ("opt/view/bin/flux", "opt/software/flux/bin/flux"),
            ("opt/view/lib/libflux.so", "opt/software/flux/lib64/libflux.so"),
            ("opt/view/lib64/libflux.so", "opt/software/flux/lib64/libflux.so"),
            ("opt/view/lib/libz.so.1", "opt/software/flux/lib/x86_64-linux-gnu/libz.so.1"),
            ("opt/view/share", "opt/software/flux/share"),
            ("opt/view/bin/python", "opt/software/flux/bin/python3.11"),
        ] {
            assert_eq!(tree.follow(path.as_bytes()).as_deref(), Some(to.as_bytes()), "{path}");
        }
        let mut other = prefix();
        other.entries.insert(b"bin/more".to_vec(), Entry::made(b"x", 0o755));
        assert_ne!(tree.follow(b"opt/view"), place(other, "opt/software/flux").follow(b"opt/view"));
    }

    fn below(folder: &str) -> Tree {
        let mut tree = Tree::default();
        add_folder(&mut tree, folder.as_bytes());
        for (path, entry) in prefix().entries {
            tree.entries.insert(join(folder.as_bytes(), &path), entry);
        }
        tree
    }

    #[test]
    fn what_was_staged_is_taken_from_its_folder() {
        let plain = place(prefix(), "opt/software/flux");
        let mut staged = below("opt/software/flux");
        staged.entries.insert(b"etc/more".to_vec(), Entry::made(b"x", 0o644));
        let staged = place(staged, "opt/software/flux");
        assert!(plain.entries.keys().eq(staged.entries.keys()));
        assert_eq!(plain.follow(b"opt/view"), staged.follow(b"opt/view"), "the same view");
    }

    #[test]
    fn trees_of_another_shape_are_told() {
        let flux = Some("opt/software/flux");
        for (tree, prefix, help) in [
            (prefix(), flux, None),
            (prefix(), None, Some("write `prefix:`")),
            (place(prefix(), "opt/software/flux"), None, None),
            (below("opt/software/flux"), flux, None),
            (below("opt/software/flux"), None, Some("write `prefix: /opt/software/flux`")),
            (below("opt/software/flux"), Some("opt/software/other"), Some("name the folder `opt/software/flux`")),
            (below("flux-0.79.0"), flux, Some("name the folder `flux-0.79.0`")),
            (below("flux-0.79.0"), None, Some("name the folder `flux-0.79.0`")),
            (Tree::default(), flux, None),
        ] {
            let told = other_shape(&tree, prefix).map(|(_, _, help)| help);
            let fits = match (&told, help) {
                (Some(told), Some(help)) => told.starts_with(help),
                (told, help) => told.is_none() && help.is_none(),
            };
            assert!(fits, "{prefix:?}: {told:?} is not {help:?}");
        }
    }

    #[test]
    fn helpers() {
        let mut problems = Problems::default();
        let mut tree = Tree::default();
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("x");
        std::fs::write(&script, "#!/bin/sh\n").unwrap();
        add_helper(&mut tree, &script, "amd64", &mut problems).unwrap();
        add_helper(&mut tree, &std::env::current_exe().unwrap(), "s390x", &mut problems).unwrap();
        let found = problems.diagnostics().sorted();
        assert_eq!(found.iter().map(|d| d.code.id).collect::<Vec<_>>(), ["FG822", "FG822", "FG822"]);
        assert_eq!(tree.follow(b"bin/sh").as_deref(), Some(&b"bin/busybox"[..]));
        assert!(add_helper(&mut tree, Path::new("/none"), "amd64", &mut Problems::default()).is_err());
    }
}
