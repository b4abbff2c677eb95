//! Cuts a tree into layers: what seldom changes first, the view itself last.
//!
//! A package is a folder that Spack made: `/opt/software/<arch>/<compiler>/<name>-<version>-<hash>` (up to Spack 0.23) or
//! `/opt/software/<platform>-<target>/<name>-<version>-<hash>` (from 1.0). Its files are never spread over layers, so a new
//! build of one package changes its layer and the view's.

use std::collections::{BTreeMap, BTreeSet};

use super::entry::{EntryKind, Tree, TreePath, name, parent, parts};
use super::glob;

/// Layers of a view unless it says otherwise.
pub const BUDGET: usize = 12;
/// Name of the layer with all small packages.
pub const SMALL: &str = "packages";
/// Name of the last layer: the view's links, and what belongs to no package.
pub const VIEW: &str = "view";

/// Characters of a Spack hash.
const HASH: usize = 32;

/// A layer that a view asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Its name.
    pub name: String,
    /// Patterns for names of packages.
    pub packages: Vec<String>,
    /// Patterns for paths.
    pub paths: Vec<String>,
}

/// A Spack package in a tree.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Package {
    /// Name: `flux-core`.
    pub name: String,
    /// Version: `0.88.0`.
    pub version: String,
    /// Hash.
    pub hash: String,
    /// Its folder.
    pub prefix: TreePath,
}

/// The entries of one layer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Name, shown in the image's history.
    pub name: String,
    /// Paths in order.
    pub paths: Vec<TreePath>,
    /// Bytes of the files.
    pub size: u64,
}

/// Reads `<name>-<version>-<hash>`.
fn package(folder: &[u8], prefix: &[u8]) -> Option<Package> {
    let text = std::str::from_utf8(folder).ok()?;
    let (rest, hash) = text.rsplit_once('-')?;
    // Spack writes hashes in lower case base 32 (RFC 4648).
    let base32 = |byte: u8| byte.is_ascii_lowercase() || (b'2'..=b'7').contains(&byte);
    if hash.len() != HASH || !hash.bytes().all(base32) {
        return None;
    }
    // The version starts at the first part that begins with a digit; `develop` and the like are the last part.
    let dashes = || rest.match_indices('-').map(|(at, _)| at);
    let digit = |at: &usize| rest.as_bytes().get(at + 1).is_some_and(u8::is_ascii_digit);
    let at = dashes().find(digit).or_else(|| rest.rfind('-'))?;
    Some(Package {
        name: rest[..at].to_owned(),
        version: rest[at + 1..].to_owned(),
        hash: hash.to_owned(),
        prefix: prefix.to_vec(),
    })
}

/// The Spack packages of a tree, in the order of their paths.
#[must_use]
pub fn packages(tree: &Tree) -> Vec<Package> {
    let mut found: BTreeMap<&[u8], Package> = BTreeMap::new();
    for (path, entry) in tree.below(b"opt/software") {
        let depth = parts(path).count() - 2;
        if depth > 3 || !matches!(entry.kind, EntryKind::Folder) || above(path, &found).is_some() {
            continue;
        }
        found.extend(package(name(path), path).map(|package| (path.as_slice(), package)));
    }
    found.into_values().collect()
}

/// What is known of the nearest folder above a path, the path itself included.
fn above<'m, T>(path: &[u8], known: &'m BTreeMap<&[u8], T>) -> Option<&'m T> {
    let mut at = path;
    while !at.is_empty() {
        if let Some(found) = known.get(at) {
            return Some(found);
        }
        at = parent(at);
    }
    None
}

fn is_below(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.first() == Some(&b'/'))
}

/// Packages, and folders of `/opt/software` that are none of Spack's: each is taken for one package.
fn parts_of(tree: &Tree) -> Vec<Package> {
    let mut all = packages(tree);
    let mut others = Vec::new();
    for (name, entry) in tree.names(b"opt/software") {
        let prefix = [b"opt/software/", name].concat();
        let spack = all.iter().any(|package| package.prefix == prefix || is_below(&package.prefix, &prefix));
        if !spack && matches!(entry.kind, EntryKind::Folder) {
            let name = String::from_utf8_lossy(name).into_owned();
            others.push(Package { name, version: String::new(), hash: String::new(), prefix });
        }
    }
    all.extend(others);
    all.sort_by(|a, b| a.prefix.cmp(&b.prefix));
    all
}

/// Which layer something belongs to. The order of the variants is that of the layers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Layer {
    Small,
    Own(String),
    Ruled(usize),
    /// Packages of Flux itself change most often.
    Flux(String),
    View,
}

/// Cuts a tree into at most `budget` groups. Every entry is in one of them; folders that lead to a group's entries are not
/// repeated here.
#[must_use]
pub fn group(tree: &Tree, rules: &[Rule], budget: usize) -> Vec<Group> {
    let packages = parts_of(tree);
    let sizes = sizes(tree, &packages);
    let own = own_layers(&packages, &sizes, rules, budget);
    let layer_of_package = |package: &Package| match rule_of(package, rules) {
        Some(rule) => Layer::Ruled(rule),
        // With one layer left there is none for small packages.
        None if !own.contains(&package.name) && budget <= rules.len() + 1 => Layer::View,
        None if !own.contains(&package.name) => Layer::Small,
        None if is_flux(&package.name) => Layer::Flux(package.name.clone()),
        None => Layer::Own(package.name.clone()),
    };
    let mut layers: BTreeMap<Layer, Group> = BTreeMap::new();
    let by_prefix: BTreeMap<&[u8], &Package> = packages.iter().map(|p| (p.prefix.as_slice(), p)).collect();
    for (path, entry) in &tree.entries {
        let by_path = rules.iter().position(|rule| rule.paths.iter().any(|pattern| glob::names(pattern, path)));
        let package = above(path, &by_prefix).copied();
        let layer = match (by_path, package) {
            (Some(rule), _) => Layer::Ruled(rule),
            (None, Some(package)) => layer_of_package(package),
            (None, None) => Layer::View,
        };
        let name = layer_name(&layer, rules);
        let group = layers.entry(layer).or_insert_with(|| Group { name, paths: Vec::new(), size: 0 });
        group.size += entry.content().map_or(0, |content| content.size);
        group.paths.push(path.clone());
    }
    layers.into_values().collect()
}

fn layer_name(layer: &Layer, rules: &[Rule]) -> String {
    match layer {
        Layer::Small => SMALL.to_owned(),
        Layer::Own(name) | Layer::Flux(name) => name.clone(),
        Layer::Ruled(rule) => rules.get(*rule).map(|rule| rule.name.clone()).unwrap_or_default(),
        Layer::View => VIEW.to_owned(),
    }
}

fn is_flux(package: &str) -> bool {
    package.starts_with("flux-")
}

fn rule_of(package: &Package, rules: &[Rule]) -> Option<usize> {
    let named = |rule: &Rule| rule.packages.iter().any(|p| glob::matches(p.as_bytes(), package.name.as_bytes()));
    rules.iter().position(named)
}

/// Bytes of each package name; two builds of one package share a layer.
fn sizes(tree: &Tree, packages: &[Package]) -> BTreeMap<String, u64> {
    let mut sizes = BTreeMap::new();
    for package in packages {
        let bytes: u64 = tree.below(&package.prefix).filter_map(|(_, e)| e.content()).map(|c| c.size).sum();
        *sizes.entry(package.name.clone()).or_default() += bytes;
    }
    sizes
}

/// The packages with a layer of their own: those of Flux, then the largest, as far as the budget goes.
fn own_layers(packages: &[Package], sizes: &BTreeMap<String, u64>, rules: &[Rule], budget: usize) -> BTreeSet<String> {
    let free: BTreeSet<&str> =
        packages.iter().filter(|p| rule_of(p, rules).is_none()).map(|p| p.name.as_str()).collect();
    // One for the view; one for small packages, if not all have their own.
    let left = budget.saturating_sub(rules.len() + 1);
    let count = if free.len() <= left { free.len() } else { left.saturating_sub(1) };
    let mut order: Vec<(bool, std::cmp::Reverse<u64>, &str)> = free
        .into_iter()
        .map(|name| (!is_flux(name), std::cmp::Reverse(sizes.get(name).copied().unwrap_or_default()), name))
        .collect();
    order.sort_unstable();
    order.into_iter().take(count).map(|(_, _, name)| name.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::entry::Entry;

    const A: &str = "abcdefghijklmnopqrstuvwxyz234567";

    fn tree(packages: &[(&str, usize)]) -> Tree {
        let mut tree = Tree::default();
        let mut add = |path: String, entry| tree.entries.insert(path.into_bytes(), entry);
        for folder in ["opt", "opt/software", "opt/views", "opt/software/linux-x86_64_v3"] {
            add(folder.to_owned(), Entry::folder());
        }
        for (name, size) in packages {
            let prefix = format!("opt/software/linux-x86_64_v3/{name}-{A}");
            add(prefix.clone(), Entry::folder());
            add(format!("{prefix}/lib"), Entry::folder());
            add(format!("{prefix}/lib/x"), Entry::made(&vec![0; *size], 0o644));
        }
        add("opt/view".to_owned(), Entry::link("views/._view/x"));
        tree
    }

    fn names(groups: &[Group]) -> Vec<&str> {
        groups.iter().map(|group| group.name.as_str()).collect()
    }

    #[test]
    fn names_of_packages() {
        for (folder, expect) in [
            ("flux-core-0.88.0", Some(("flux-core", "0.88.0"))),
            ("gcc-runtime-13.2.1", Some(("gcc-runtime", "13.2.1"))),
            ("py-cffi-1.15", Some(("py-cffi", "1.15"))),
            ("util-linux-uuid-2.40", Some(("util-linux-uuid", "2.40"))),
            ("flux-core-develop", Some(("flux-core", "develop"))),
            ("7zip-24", Some(("7zip", "24"))),
            ("nothing", None),
        ] {
            let found = package(format!("{folder}-{A}").as_bytes(), b"p");
            let found = found.as_ref().map(|p| (p.name.as_str(), p.version.as_str()));
            assert_eq!(found, expect, "{folder}");
        }
        for folder in ["flux-core-0.88.0", "flux-core-0.88.0-abc", "x-1-ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "\u{fffd}"] {
            assert_eq!(package(folder.as_bytes(), b"p"), None, "{folder}");
        }
    }

    #[test]
    fn old_and_new_folders_of_spack() {
        let mut tree = Tree::default();
        let old = format!("opt/software/linux-rocky9-x86_64/gcc-11/zlib-1.3-{A}");
        let new = format!("opt/software/linux-x86_64/zstd-1.5-{A}");
        let inside = format!("{new}/share/x-1-{A}");
        for path in [old.clone(), new.clone(), inside, format!("opt/software/a/b/c/d/e-1-{A}")] {
            tree.entries.insert(path.into_bytes(), Entry::folder());
        }
        let found: Vec<TreePath> = packages(&tree).into_iter().map(|p| p.prefix).collect();
        assert_eq!(found, [old.into_bytes(), new.into_bytes()]);
    }

    #[test]
    fn stable_first_flux_and_the_view_last() {
        let tree = tree(&[("python-3.11", 50), ("flux-core-1", 5), ("zlib-1", 1), ("boost-1", 40), ("hwloc-1", 2)]);
        let all = group(&tree, &[], BUDGET);
        assert_eq!(names(&all), ["boost", "hwloc", "python", "zlib", "flux-core", "view"]);
        assert_eq!(all.iter().map(|g| g.paths.len()).sum::<usize>(), tree.entries.len());
        assert_eq!(all.iter().map(|g| g.size).sum::<u64>(), 98);
        assert_eq!(names(&group(&tree, &[], 5)), ["packages", "boost", "python", "flux-core", "view"]);
        assert_eq!(names(&group(&tree, &[], 3)), ["packages", "flux-core", "view"]);
        assert_eq!(names(&group(&tree, &[], 2)), ["packages", "view"]);
        assert_eq!(names(&group(&tree, &[], 1)), ["view"]);
    }

    #[test]
    fn folders_that_are_none_of_spack() {
        let mut tree = tree(&[("zlib-1", 1)]);
        for (path, entry) in [
            ("opt/software/flux", Entry::folder()),
            ("opt/software/flux/bin", Entry::folder()),
            ("opt/software/flux-more", Entry::folder()),
            ("opt/software/mine", Entry::folder()),
        ] {
            tree.entries.insert(path.as_bytes().to_vec(), entry);
        }
        assert_eq!(names(&group(&tree, &[], BUDGET)), ["flux", "mine", "zlib", "flux-more", "view"]);
    }

    #[test]
    fn rules_make_layers() {
        let tree = tree(&[("python-3.11", 50), ("py-cffi-1", 5), ("zlib-1", 1), ("flux-core-1", 1)]);
        let rules = [
            Rule { name: "snakes".to_owned(), packages: vec!["py*".to_owned()], paths: Vec::new() },
            Rule { name: "links".to_owned(), packages: Vec::new(), paths: vec!["/opt/view".to_owned()] },
        ];
        let groups = group(&tree, &rules, BUDGET);
        assert_eq!(names(&groups), ["zlib", "snakes", "links", "flux-core", "view"]);
        assert_eq!(groups[2].paths, [b"opt/view".to_vec()]);
        for budget in 3..8 {
            assert!(group(&tree, &rules, budget).len() <= budget, "{budget}");
        }
    }
}
