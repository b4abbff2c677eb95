//! The contract of views: what bundles rely on, checked on any tree, whoever made it.

mod libraries;
mod scripts;

use std::collections::BTreeMap;

use super::elf::{Elf, Glibc, is_guest, loader_of, machine_name, machine_of};
use super::entry::{Entry, EntryKind, Tree, TreePath, link_destination, shown};
use super::group;
use super::problem::Problems;
use super::programs::Programs;
use crate::diag::codes::view as codes;

/// Prefix of the labels of views.
pub const LABEL: &str = "dev.flux-gen.view.";
/// The label with the libraries that application images have to have, separated by blanks.
const PROVIDED: &str = "dev.flux-gen.view.provided";
/// Where the trees of views are.
const VIEWS: &[u8] = b"opt/views";

/// What a tree is held against.
#[derive(Debug, Clone, Copy, Default)]
pub struct Expected<'a> {
    /// Architecture in OCI words (`amd64`); not known of a bare tree.
    pub architecture: Option<&'a str>,
    /// The newest glibc it may need.
    pub glibc: Option<Glibc>,
    /// Libraries that application images have: patterns.
    pub provided: &'a [String],
    /// Labels of the image, when it is one.
    pub labels: Option<&'a BTreeMap<String, String>>,
}

/// What a view is.
#[derive(Debug, Default)]
pub struct Report {
    /// Folder of the view: `/opt/views/._view/<hash>`.
    pub view: Option<String>,
    /// Version of Flux, as far as the tree tells.
    pub flux: Option<String>,
    /// Version of python in the view: `3.11`.
    pub python: Option<String>,
    /// The oldest glibc it runs with, and the file that needs it.
    pub glibc: Option<(Glibc, String)>,
    /// Architectures of its programs.
    pub architectures: Vec<String>,
    /// Number of programs and libraries.
    pub programs: usize,
    /// What is wrong.
    pub problems: Problems,
}

impl Report {
    /// The labels that say so.
    #[must_use]
    pub fn labels(&self, architecture: &str, os: Option<&str>) -> BTreeMap<String, String> {
        let mut labels = BTreeMap::new();
        let mut label = |key: &str, value: Option<String>| {
            labels.extend(value.map(|value| (format!("{LABEL}{key}"), value)));
        };
        label("flux-version", self.flux.clone());
        label("python", self.python.clone());
        label("glibc", self.glibc.as_ref().map(|(version, _)| version.to_string()));
        label("architecture", Some(architecture.to_owned()));
        label("os", os.map(str::to_owned));
        labels
    }
}

/// The label that says what application images have to have; none when they need not have anything.
#[must_use]
pub fn provided_label(provided: &[String]) -> Option<(String, String)> {
    (!provided.is_empty()).then(|| (PROVIDED.to_owned(), provided.join(" ")))
}

/// What application images have to have, as the labels of a view say.
#[must_use]
pub fn provided_by(labels: &BTreeMap<String, String>) -> Vec<String> {
    labels.get(PROVIDED).into_iter().flat_map(|list| list.split_whitespace()).map(str::to_owned).collect()
}

/// Whether a path of the image is there in the pods of a bundle: `/opt/software`, `/opt/views`, what is in them, and `/opt/view`.
#[must_use]
pub fn is_view_path(path: &[u8]) -> bool {
    let below = |folder: &[u8]| path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest[0] == b'/');
    below(b"opt/software") || below(b"opt/views") || below(b"opt/view")
}

/// Checks a tree with its programs, libraries and scripts.
#[must_use]
pub fn check(tree: &Tree, programs: &Programs, expected: Expected<'_>) -> Report {
    let elves = &programs.elves;
    let mut report = Report { programs: elves.len(), ..Report::default() };
    folders(tree, &mut report.problems);
    if let Some(view) = view_folder(tree, &mut report.problems) {
        flux(tree, &view, &mut report);
        python(tree, &view, &mut report);
        libraries::check(tree, elves, &view, expected.provided, &mut report.problems);
        scripts::check(tree, &programs.scripts, &view, &mut report.problems);
        report.view = Some(shown(&view));
    }
    absolute_links(tree, &mut report.problems);
    machines(tree, elves, expected, &mut report);
    glibc(elves, expected, &mut report);
    if let Some(labels) = expected.labels {
        check_labels(labels, expected, &mut report);
    }
    report
}

fn folders(tree: &Tree, problems: &mut Problems) {
    for path in [&b"opt/software"[..], VIEWS] {
        let what = match tree.get(path).map(|entry| &entry.kind) {
            Some(EntryKind::Folder) => continue,
            Some(_) => "is not a real folder, so it cannot be mounted",
            None => "is not there",
        };
        problems.error(codes::LAYOUT, shown(path), format!("a folder that bundles mount {what}"), "");
    }
}

/// The folder that `/opt/view` leads to.
fn view_folder(tree: &Tree, problems: &mut Problems) -> Option<TreePath> {
    let help = "/opt/view is a relative link into /opt/views/._view/";
    let mut wrong = |what: &str| problems.error(codes::LAYOUT, "/opt/view".to_owned(), what, help);
    match tree.get(b"opt/view").map(|entry| &entry.kind) {
        Some(EntryKind::Link(_)) => {}
        Some(_) => {
            wrong("it is no link");
            return None;
        }
        None => {
            wrong("it is not there");
            return None;
        }
    }
    let Some(folder) = tree.follow(b"opt/view") else {
        wrong("it leads nowhere");
        return None;
    };
    if !folder.starts_with(b"opt/views/") {
        wrong("it leads out of /opt/views");
    } else if !folder.starts_with(b"opt/views/._view/") {
        let what = "the view is not in /opt/views/._view";
        problems.warning(codes::LAYOUT, shown(&folder), what, help);
    }
    Some(folder)
}

/// The path of a name in the view.
fn inside(view: &[u8], name: &str) -> TreePath {
    [view, b"/", name.as_bytes()].concat()
}

/// The file that a name in the view leads to.
fn file<'t>(tree: &'t Tree, view: &[u8], name: &str) -> Option<(TreePath, &'t Entry)> {
    let path = tree.follow(&inside(view, name))?;
    let entry = tree.get(&path)?;
    entry.content().map(|_| (path, entry))
}

fn flux(tree: &Tree, view: &[u8], report: &mut Report) {
    let place = shown(&inside(view, "bin/flux"));
    match file(tree, view, "bin/flux") {
        Some((_, entry)) if entry.mode & 0o111 != 0 => {}
        Some(_) => report.problems.error(codes::NO_FLUX, place, "flux is not executable", ""),
        None => report.problems.error(codes::NO_FLUX, place, "there is no program flux", ""),
    }
    let package = group::packages(tree).into_iter().find(|package| package.name == "flux-core");
    let told = || pkgconfig_version(tree, view).or_else(|| header_version(tree, view));
    report.flux = package.map(|package| package.version).or_else(told);
}

/// The first 64 KiB of a file of the view, as text.
fn text(tree: &Tree, view: &[u8], names: &[&str]) -> Option<String> {
    let (_, entry) = names.iter().find_map(|name| file(tree, view, name))?;
    String::from_utf8(entry.content()?.open().ok()?.read_range(0, 64 << 10).ok()?).ok()
}

/// Whether the content of a file that is no program is looked at.
#[must_use]
pub fn is_looked_into(path: &[u8]) -> bool {
    path.ends_with(b"/pkgconfig/flux-core.pc")
}

/// The version that `flux-core.pc` has.
fn pkgconfig_version(tree: &Tree, view: &[u8]) -> Option<String> {
    let names = ["lib/pkgconfig/flux-core.pc", "lib64/pkgconfig/flux-core.pc"];
    let text = text(tree, view, &names)?;
    let line = text.lines().find_map(|line| line.strip_prefix("Version:"))?;
    Some(line.trim().to_owned()).filter(|version| !version.is_empty())
}

/// The version that Flux's header has: `#define FLUX_CORE_VERSION_STRING "0.79.0"`.
fn header_version(tree: &Tree, view: &[u8]) -> Option<String> {
    let text = text(tree, view, &["include/flux/core/version.h"])?;
    let mut words = text.lines().map(str::split_whitespace).filter_map(|mut words| {
        (words.next() == Some("#define") && words.next() == Some("FLUX_CORE_VERSION_STRING")).then(|| words.next())?
    });
    Some(words.next()?.trim_matches('"').to_owned()).filter(|version| !version.is_empty())
}

fn python(tree: &Tree, view: &[u8], report: &mut Report) {
    let bin = tree.follow(&inside(view, "bin")).unwrap_or_default();
    let versions = tree.names(&bin).filter_map(|(name, _)| {
        let version = std::str::from_utf8(name).ok()?.strip_prefix("python")?;
        let (major, minor) = version.split_once('.')?;
        let number = |text: &str| text.parse::<u32>().ok();
        Some((number(major)?, number(minor)?))
    });
    let Some((major, minor)) = versions.max() else {
        let what = "there is no python, so `flux` commands that are written in python do not run";
        report.problems.warning(codes::PYTHON, shown(&inside(view, "bin")), what, "");
        return;
    };
    report.python = Some(format!("{major}.{minor}"));
    for name in ["bin/python3", "bin/python"] {
        if file(tree, view, name).is_none() {
            let help = "make it a relative link to the python that Flux was built with";
            report.problems.error(
                codes::PYTHON,
                shown(&inside(view, name)),
                "the link is not there or leads nowhere",
                help,
            );
        }
    }
    let module = format!("lib/python{major}.{minor}/site-packages/flux");
    if tree.follow(&inside(view, &module)).is_none() {
        let what = "flux's python module is not there";
        report.problems.warning(codes::PYTHON, shown(&inside(view, &module)), what, "");
    }
}

fn absolute_links(tree: &Tree, problems: &mut Problems) {
    for (path, entry) in tree.entries.iter().filter(|(path, _)| is_view_path(path)) {
        let EntryKind::Link(target) = &entry.kind else { continue };
        match link_destination(path, target) {
            None => problems.error(codes::LINK_OUT, shown(path), "a link climbs above the root", ""),
            Some(to) if !is_view_path(&to) => {
                let help = "in pods it leads to what the application's image has there, or nowhere";
                problems.warning(codes::LINK_OUT, shown(path), "a link leads out of the view", help);
            }
            Some(_) if target.first() == Some(&b'/') => {
                let help = "`flux-gen view build` with a recipe of kind `image` packs it with relative ones";
                problems.warning(codes::ABSOLUTE_LINK, shown(path), "a link is absolute", help);
            }
            Some(_) => {}
        }
    }
}

/// Machines of programs, and their loaders.
fn machines(tree: &Tree, elves: &BTreeMap<TreePath, Elf>, expected: Expected<'_>, report: &mut Report) {
    let mut seen: BTreeMap<u16, usize> = BTreeMap::new();
    for (path, elf) in elves.iter().filter(|(_, elf)| !is_guest(elf.machine)) {
        *seen.entry(elf.machine).or_default() += 1;
        let wanted = expected.architecture.and_then(machine_of);
        if wanted.is_some_and(|wanted| wanted != elf.machine) {
            let what = format!(
                "a file is for {}, and the image for {}",
                machine_name(elf.machine),
                expected.architecture.unwrap_or_default()
            );
            report.problems.error(codes::WRONG_MACHINE, shown(path), what, "");
            continue;
        }
        let usual = loader_of(&machine_name(elf.machine));
        if let Some(interpreter) = &elf.interpreter
            && Some(interpreter.as_str()) != usual
            && tree.follow(interpreter.as_bytes()).is_none()
        {
            let what = format!("a program asks for the loader {interpreter}");
            let help = format!("glibc's is {}; another one has to be in the view", usual.unwrap_or("not known"));
            report.problems.error(codes::INTERPRETER, shown(path), what, help);
        }
    }
    if expected.architecture.is_none() && seen.len() > 1 {
        let names: Vec<String> = seen.keys().map(|machine| machine_name(*machine)).collect();
        let what = format!("the tree has programs for {}", names.join(" and "));
        report.problems.error(codes::WRONG_MACHINE, "/".to_owned(), what, "");
    }
    report.architectures = seen.keys().map(|machine| machine_name(*machine)).collect();
}

fn glibc(elves: &BTreeMap<TreePath, Elf>, expected: Expected<'_>, report: &mut Report) {
    // What stands outside is a base's, and has its own glibc.
    for (path, elf) in elves.iter().filter(|(path, _)| is_view_path(path)) {
        let Some(version) = elf.glibc else { continue };
        if report.glibc.as_ref().is_none_or(|(newest, _)| version > *newest) {
            report.glibc = Some((version, shown(path)));
        }
        if let Some(promised) = expected.glibc.filter(|promised| version > *promised) {
            let what = format!("a file needs glibc {version}, and {promised} is promised");
            report.problems.error(
                codes::NEWER_GLIBC,
                shown(path),
                what,
                "compile on an older system, or raise `glibc`",
            );
        }
    }
}

fn check_labels(labels: &BTreeMap<String, String>, expected: Expected<'_>, report: &mut Report) {
    if !labels.keys().any(|key| key.starts_with(LABEL)) {
        let what = "the image has no labels of a view";
        let help = "they are made by `flux-gen view build`; without them `view match` looks into the image";
        report.problems.note(codes::BAD_LABEL, format!("{LABEL}*"), what, help);
        return;
    }
    for (key, value) in report.labels(expected.architecture.unwrap_or_default(), None) {
        match labels.get(&key) {
            Some(written) if *written == value => {}
            written => {
                let written = written.map_or("nothing", String::as_str);
                let what = format!("the tree says {value}, and the label {written}");
                report.problems.error(codes::BAD_LABEL, key, what, "build the image again");
            }
        }
    }
}

#[cfg(test)]
mod tests;
