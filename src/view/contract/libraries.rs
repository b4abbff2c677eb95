//! Libraries that programs of the view need and the view does not hold (ld.so(8), "the loader searches").

use std::collections::{BTreeMap, BTreeSet};

use crate::diag::codes::view as codes;
use crate::view::contract::is_view_path;
use crate::view::elf::{Elf, is_glibc, is_guest};
use crate::view::entry::{Tree, TreePath, parent, parts, shown};
use crate::view::glob;
use crate::view::problem::Problems;

/// What to do about a library that is in the view's `lib` only.
const NOT_SEARCHED: &str = "link with `-Wl,-rpath,FOLDER` of the library, or set it with `patchelf --set-rpath`";

/// Reports what is missing. A library is looked for where its user says (`RUNPATH`, `RPATH`), and where those say whose `RPATH`
/// counts for what they load. What is elsewhere in the view does not help a program: brokers and jobs get no `LD_LIBRARY_PATH`,
/// which would reach the application too. A library may find it loaded already by the program that loads itself, so that is a
/// warning.
pub(super) fn check(
    tree: &Tree,
    elves: &BTreeMap<TreePath, Elf>,
    view: &[u8],
    provided: &[String],
    problems: &mut Problems,
) {
    let elves = || elves.iter().filter(|(path, elf)| is_view_path(path) && !is_guest(elf.machine));
    let shared = elves().filter(|(_, elf)| elf.inherited && elf.interpreter.is_some());
    let inherited: BTreeSet<TreePath> = shared.flat_map(|(path, elf)| folders(path, elf)).collect();
    let lib = [view, b"/lib"].concat();
    for (path, elf) in elves() {
        let own: Vec<TreePath> = folders(path, elf).collect();
        for library in &elf.needed {
            let usual = is_glibc(library)
                || provided.iter().any(|pattern| glob::matches(pattern.as_bytes(), library.as_bytes()));
            if usual || found(tree, library, own.iter().chain(&inherited)) {
                continue;
            }
            if !found(tree, library, [&lib].into_iter()) {
                let help = "add the library to the tree, or list it in `provided` when every application image has it";
                problems.error(codes::MISSING_LIBRARY, shown(path), format!("the view does not hold {library}"), help);
            } else if elf.interpreter.is_some() {
                let what = format!("the view holds {library}, but not where the program looks for it");
                problems.error(codes::MISSING_LIBRARY, shown(path), what, NOT_SEARCHED);
            } else {
                let what = format!("the view holds {library}, but not where the library looks for it");
                problems.warning(codes::MISSING_LIBRARY, shown(path), what, NOT_SEARCHED);
            }
        }
    }
}

/// Whether a library is in one of the folders, or is named by a path that is there.
fn found<'a>(tree: &Tree, library: &str, mut folders: impl Iterator<Item = &'a TreePath>) -> bool {
    let is_file = |path: &[u8]| {
        tree.follow(path).is_some_and(|path| tree.get(&path).is_some_and(|entry| entry.content().is_some()))
    };
    if library.contains('/') {
        return is_file(library.as_bytes());
    }
    folders.any(|folder| is_file(&[folder, &b"/"[..], library.as_bytes()].concat()))
}

/// The folders that a file searches, from the root. `$ORIGIN` is the file's own folder; `$LIB` may be either of two.
fn folders<'a>(path: &'a [u8], elf: &'a Elf) -> impl Iterator<Item = TreePath> + 'a {
    let origin = format!("/{}", String::from_utf8_lossy(parent(path)));
    elf.search.iter().flat_map(move |folder| {
        let folder = folder.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin);
        let folder = folder.replace("${LIB}", "$LIB");
        let choices = if folder.contains("$LIB") { vec!["lib", "lib64"] } else { vec![""] };
        choices.into_iter().map(move |lib| lexical(folder.replace("$LIB", lib).as_bytes()))
    })
}

/// Takes `.` and `..` away as text.
fn lexical(path: &[u8]) -> TreePath {
    let mut at: Vec<&[u8]> = Vec::new();
    for part in parts(path) {
        if part == b".." {
            at.pop();
        } else {
            at.push(part);
        }
    }
    at.join(&b'/')
}
