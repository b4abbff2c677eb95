//! What an application's image has: os-release, C library, bash. Read from its files, never by running it.

use super::entry::{Tree, TreePath};
use crate::model::fit::{Glibc, ImageFacts};

/// Most bytes of a C library that are looked at.
const LIBRARY: usize = 8 << 20;

/// Reads the facts of an image of an architecture.
#[must_use]
pub fn of_tree(tree: &Tree, architecture: &str) -> ImageFacts {
    ImageFacts {
        architecture: architecture.to_owned(),
        os: os(tree),
        glibc: glibc(tree),
        bash: ["bin/bash", "usr/bin/bash"].iter().any(|path| is_program(tree, path)),
    }
}

fn is_program(tree: &Tree, path: &str) -> bool {
    let entry = tree.follow(path.as_bytes()).and_then(|path| tree.get(&path));
    entry.is_some_and(|entry| entry.content().is_some() && entry.mode & 0o111 != 0)
}

/// The first bytes of a file.
fn bytes(tree: &Tree, path: &[u8], length: usize) -> Option<Vec<u8>> {
    let content = tree.get(&tree.follow(path)?)?.content()?;
    content.open().ok()?.read_range(0, length).ok()
}

/// `ID` and the major version of os-release(5): `rocky-9`, `ubuntu-24.04`.
fn os(tree: &Tree) -> Option<String> {
    let bytes = ["etc/os-release", "usr/lib/os-release"].iter().find_map(|p| bytes(tree, p.as_bytes(), 64 << 10))?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
        Some(line.trim().trim_matches(['"', '\'']).to_owned())
    };
    let id = value("ID")?;
    let Some(version) = value("VERSION_ID").filter(|version| !version.is_empty()) else { return Some(id) };
    // Minor versions of the Red Hat family change nothing that counts here; those of Ubuntu are other systems.
    let version = match id.as_str() {
        "ubuntu" => version.as_str(),
        _ => version.split('.').next().unwrap_or_default(),
    };
    Some(format!("{id}-{version}"))
}

/// The version that the C library says of itself.
fn glibc(tree: &Tree) -> Option<Glibc> {
    let paths = tree.entries.keys().filter(|path| is_libc(path));
    paths.filter_map(|path| version_in(&bytes(tree, path, LIBRARY)?)).max()
}

/// Whether a path is that of the system's C library: `/lib64/libc.so.6`, `/usr/lib/x86_64-linux-gnu/libc.so.6`.
fn is_libc(path: &TreePath) -> bool {
    let text = String::from_utf8_lossy(path);
    let Some(folder) = text.strip_suffix("/libc.so.6") else { return false };
    let folder = folder.strip_prefix("usr/").unwrap_or(folder);
    matches!(folder, "lib" | "lib64") || (folder.starts_with("lib/") && folder.matches('/').count() == 1)
}

/// The banner of glibc: `GNU C Library (...) stable release version 2.36.`
fn version_in(library: &[u8]) -> Option<Glibc> {
    const MARK: &[u8] = b"release version ";
    let at = library.windows(MARK.len()).position(|window| window == MARK)? + MARK.len();
    let text = library.get(at..(at + 16).min(library.len()))?;
    let end = text.iter().position(|byte| !byte.is_ascii_digit() && *byte != b'.').unwrap_or(text.len());
    std::str::from_utf8(&text[..end]).ok()?.trim_end_matches('.').parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::entry::Entry;

    fn tree(files: &[(&str, &str)]) -> Tree {
        let mut tree = Tree::default();
        for (path, text) in files {
            let mut at = crate::view::entry::parent(path.as_bytes());
            while !at.is_empty() {
                tree.entries.entry(at.to_vec()).or_insert_with(Entry::folder);
                at = crate::view::entry::parent(at);
            }
            let entry = match text.strip_prefix("-> ") {
                Some(target) => Entry::link(target),
                None => Entry::made(text.as_bytes(), 0o755),
            };
            tree.entries.insert(path.as_bytes().to_vec(), entry);
        }
        tree
    }

    #[test]
    fn images() {
        let banner = "xx GNU C Library (GNU libc) stable release version 2.34.\n";
        let rocky = tree(&[
            ("etc/os-release", "-> ../usr/lib/os-release"),
            ("usr/lib/os-release", "NAME=\"Rocky\"\nID=\"rocky\"\nVERSION_ID=\"9.3\"\n"),
            ("usr/lib64/libc.so.6", banner),
            ("lib64", "-> usr/lib64"),
            ("bin", "-> usr/bin"),
            ("usr/bin/bash", "x"),
        ]);
        let facts = of_tree(&rocky, "amd64");
        assert_eq!((facts.os.as_deref(), facts.glibc, facts.bash), (Some("rocky-9"), Some(Glibc(2, 34, 0)), true));
        let ubuntu = tree(&[
            ("etc/os-release", "ID=ubuntu\nVERSION_ID=\"20.04\"\n"),
            ("lib/x86_64-linux-gnu/libc.so.6", "-> libc-2.31.so"),
            ("lib/x86_64-linux-gnu/libc-2.31.so", "Ubuntu GLIBC 2.31-0ubuntu9) stable release version 2.31."),
        ]);
        let facts = of_tree(&ubuntu, "amd64");
        assert_eq!(
            (facts.os.as_deref(), facts.glibc, facts.bash),
            (Some("ubuntu-20.04"), Some(Glibc(2, 31, 0)), false)
        );
        let alpine = tree(&[("etc/os-release", "ID=alpine\nVERSION_ID=3.20.1\n"), ("lib/ld-musl-x86_64.so.1", "x")]);
        let facts = of_tree(&alpine, "amd64");
        assert_eq!((facts.os.as_deref(), facts.glibc), (Some("alpine-3"), None));
        // A copy that some program brings along is not the system's.
        let nested = tree(&[("opt/x/lib/libc.so.6", banner)]);
        assert_eq!(of_tree(&nested, "amd64"), ImageFacts { architecture: "amd64".into(), ..ImageFacts::default() });
    }
}
