//! Compares a [`FileTree`] with what is in the output. Reads only.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::cipher::{Leeway, is_encrypted, same_meaning};
use super::files::{Entry, EntryKind, Files};
use super::index::{INDEX_FILE, Index};
use super::layout::{Kept, KeptFile};
use super::names::{CLUSTER_FOLDER, KUSTOMIZATION_FILE};
use super::report::{Change, ChangeKind, Context, FileError, Report};
use super::tree::{FileTree, Folder};
use super::{kustomization, sha256_hex};
use crate::diag::codes::bundle as codes;
use crate::diag::{Code, Diagnostic, Diagnostics};
use crate::parallel;

/// Folder in the output that exists while flux-gen writes: lock, new folders before they take their place, old ones after.
pub const WORK_FOLDER: &str = ".flux-gen";

/// What a build is about: only bundles from these sources may be removed when they are no longer made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// The whole project: everything that flux-gen owns in the output.
    Whole,
    /// Only these files and folders, spelled as [`SourceRef::path`](super::SourceRef::path) is.
    Sources(Vec<String>),
}

impl Scope {
    /// Whether a bundle of this source is one of the build's.
    #[must_use]
    pub fn covers(&self, source: &str) -> bool {
        let Self::Sources(paths) = self else { return true };
        paths.iter().any(|path| {
            let path = path.strip_prefix("./").unwrap_or(path).trim_end_matches('/');
            path.is_empty()
                || path == "."
                || source == path
                || source.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))
        })
    }
}

/// What to do with one folder.
#[derive(Debug, Default)]
pub(super) struct FolderPlan {
    /// Path relative to the output.
    pub(super) path: String,
    /// Whether it is there.
    pub(super) exists: bool,
    /// Files that stay as they are.
    pub(super) same: BTreeSet<String>,
    /// What differs.
    pub(super) changes: Vec<(String, ChangeKind)>,
    /// Entries of others.
    pub(super) foreign: Vec<Entry>,
    /// Of the files that stay: encrypted ones whose original has been encrypted again since they were copied.
    pub(super) outrun: Vec<String>,
}

/// What a comparison is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// To tell what differs. An encrypted file with the same content is the same file.
    Compare,
    /// To write. The encrypted files of the store are copied byte for byte.
    Write {
        /// Take conflicts for changes.
        force: bool,
    },
}

impl How {
    fn force(self) -> bool {
        self == Self::Write { force: true }
    }
}

/// What to do with the whole output.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Folders that get new content.
    pub(super) update: Vec<FolderPlan>,
    /// Folders that go.
    pub(super) remove: Vec<FolderPlan>,
    /// Kustomizations to write.
    pub(super) write: Vec<String>,
    /// Kustomizations to remove.
    pub(super) erase: Vec<String>,
    /// What was found.
    pub(super) report: Report,
}

/// What stays of an earlier build, for [`layout`](fn@super::layout::layout): bundles whose sources the scope does not cover.
///
/// # Errors
/// When something in the output cannot be read.
pub fn kept(files: &impl Files, root: &Path, scope: &Scope) -> Result<Kept, FileError> {
    let mut kept = Kept::default();
    if *scope == Scope::Whole {
        return Ok(kept);
    }
    for path in folders_on_disk(files, root, &mut BTreeMap::new())? {
        let folder = root.join(&path);
        let index = folder.join(INDEX_FILE);
        let Some(bytes) = files.read(&index).context("read", &index)? else { continue };
        let Ok(index) = Index::parse(&bytes) else { continue };
        if let Some(source) = &index.source {
            if !scope.covers(&source.path) {
                kept.clusters.insert(path);
            }
            continue;
        }
        for (name, source) in index.sources.iter().filter(|(_, source)| !scope.covers(&source.path)) {
            let file = folder.join(name);
            let Some(bytes) = files.read(&file).context("read", &file)? else { continue };
            let companions = kept.companions.entry(path.clone()).or_default();
            companions.insert(name.clone(), KeptFile { source: source.clone(), bytes });
        }
    }
    Ok(kept)
}

/// Compares.
pub(super) fn survey(
    files: &impl Files,
    root: &Path,
    tree: &FileTree,
    kept: &Kept,
    how: How,
) -> Result<Plan, FileError> {
    let mut plan = Plan::default();
    let mut listings = BTreeMap::new();
    let on_disk = folders_on_disk(files, root, &mut listings)?;
    plan.report.interrupted = listings.get("").is_some_and(|top| top.iter().any(|entry| entry.name == WORK_FOLDER));
    check_links(tree, &listings, &mut plan.report.conflicts);

    let wanted = tree.folders.iter().map(|(path, folder)| (path, Some(folder)));
    let gone = on_disk.iter().filter(|path| !tree.folders.contains_key(*path) && !kept.clusters.contains(*path));
    let all: Vec<(&String, Option<&Folder>)> = wanted.chain(gone.map(|path| (path, None))).collect();
    let survey_one = |(path, wanted): &(&String, Option<&Folder>)| {
        let known = on_disk.contains(*path);
        survey_folder(files, root, path, *wanted, known, how).map(|found| (wanted.is_some(), found))
    };
    for result in parallel::map(&all, survey_one) {
        let (wanted, Some(Surveyed { plan: folder, conflicts })) = result? else { continue };
        plan.report.unchanged += folder.same.len();
        let changes = folder.changes.iter();
        let change = |name: &String, kind| Change { path: format!("{}/{name}", folder.path), kind };
        plan.report.changes.extend(changes.map(|(name, kind)| change(name, *kind)));
        plan.report.foreign.extend(folder.foreign.iter().map(|entry| format!("{}/{}", folder.path, entry.name)));
        plan.report.re_encrypted.extend(folder.outrun.iter().map(|name| format!("{}/{name}", folder.path)));
        plan.report.conflicts.extend(conflicts);
        match (wanted, folder.changes.is_empty()) {
            (true, false) => plan.update.push(folder),
            (false, false) => plan.remove.push(folder),
            (_, true) => {}
        }
    }
    survey_files(files, root, tree, &listings, how.force(), &mut plan)?;
    plan.report.changes.sort();
    plan.report.foreign.sort();
    Ok(plan)
}

/// Entries of the output folder (key: the empty string) and of the folders in it (key: name).
type Listings = BTreeMap<String, Vec<Entry>>;

/// Paths of folders that may be ours: `cluster`, and the folders in the folders of the output.
fn folders_on_disk(files: &impl Files, root: &Path, listings: &mut Listings) -> Result<BTreeSet<String>, FileError> {
    let mut found = BTreeSet::new();
    let Some(top) = files.list(root).context("list", root)? else { return Ok(found) };
    let is_ours = |entry: &&Entry| entry.kind == EntryKind::Folder && !entry.name.starts_with('.');
    for namespace in top.iter().filter(is_ours) {
        let folder = root.join(&namespace.name);
        let entries = files.list(&folder).context("list", &folder)?.unwrap_or_default();
        if namespace.name == CLUSTER_FOLDER {
            found.insert(namespace.name.clone());
        }
        found.extend(entries.iter().filter(is_ours).map(|entry| format!("{}/{}", namespace.name, entry.name)));
        listings.insert(namespace.name.clone(), entries);
    }
    listings.insert(String::new(), top);
    Ok(found)
}

/// Where a folder of ours belongs there must be a folder or nothing.
fn check_links(tree: &FileTree, listings: &Listings, conflicts: &mut Diagnostics) {
    let is_bad = |folder: &str, name: &str| {
        let entry = listings.get(folder).and_then(|entries| entries.iter().find(|entry| entry.name == name));
        entry.is_some_and(|entry| entry.kind != EntryKind::Folder)
    };
    let mut bad = BTreeSet::new();
    for path in tree.folders.keys() {
        let (top, inner) = path.split_once('/').map_or((path.as_str(), None), |(top, inner)| (top, Some(inner)));
        if is_bad("", top) {
            bad.insert(top.to_owned());
        } else if inner.is_some_and(|inner| is_bad(top, inner)) {
            bad.insert(path.clone());
        }
    }
    for path in bad {
        let message = format!("{path} in the output is a link or a file where a folder belongs");
        let help = "replace it with a folder, or choose another output folder";
        conflicts.push(Diagnostic::global_error(codes::LEAVES_OUTPUT, message).help(help));
    }
}

/// A plan, and what stands against it.
struct Surveyed {
    plan: FolderPlan,
    conflicts: Diagnostics,
}

/// The entries of one folder, by name.
type Entries<'a> = BTreeMap<&'a str, &'a Entry>;

/// Compares one folder; `None` for a folder that is neither wanted nor ours.
fn survey_folder(
    files: &impl Files,
    root: &Path,
    path: &str,
    wanted: Option<&Folder>,
    exists: bool,
    how: How,
) -> Result<Option<Surveyed>, FileError> {
    let mut plan = FolderPlan { path: path.to_owned(), exists, ..FolderPlan::default() };
    let nothing = BTreeMap::new();
    let wanted_files = wanted.map_or(&nothing, |folder| &folder.files);
    if !exists {
        plan.changes = wanted_files.keys().map(|name| (name.clone(), ChangeKind::Missing)).collect();
        return Ok(Some(Surveyed { plan, conflicts: Diagnostics::new() }));
    }
    let folder = root.join(path);
    let entries = files.list(&folder).context("list", &folder)?.unwrap_or_default();
    let entries: Entries<'_> = entries.iter().map(|entry| (entry.name.as_str(), entry)).collect();
    let owned = owned_files(files, &folder, wanted, &entries)?;
    // A folder that nobody wants is ours only if its index says so; a `bundle.json` of some other program does not.
    if wanted.is_none() && !matches!(owned, Owned::Listed(_)) {
        return Ok(None);
    }
    let mut conflicts = Diagnostics::new();
    if let Owned::Unreadable(why) = &owned {
        let message = format!("{path}/{INDEX_FILE} cannot be used: {why}");
        conflict(codes::UNREADABLE_INDEX, message, how.force(), &mut conflicts);
    }
    let judge = Judge { path, owned: &owned, force: how.force(), conflicts };
    let mut survey = FolderSurvey { files, folder: &folder, wanted, how, judge, plan };
    for (name, bytes) in wanted_files {
        survey.compare(name, bytes, entries.get(name.as_str()).copied())?;
    }
    if let (Owned::Listed(index), Some(wanted), How::Compare) = (&owned, wanted, how) {
        forgive_index(index, wanted, &mut survey.plan);
    }
    for entry in entries.values().filter(|entry| !wanted_files.contains_key(&entry.name)) {
        survey.other(entry)?;
    }
    Ok(Some(Surveyed { plan: survey.plan, conflicts: survey.judge.conflicts }))
}

/// One folder that is there, and what was found of it so far.
struct FolderSurvey<'a, F> {
    files: &'a F,
    folder: &'a Path,
    wanted: Option<&'a Folder>,
    how: How,
    judge: Judge<'a>,
    plan: FolderPlan,
}

impl<F: Files> FolderSurvey<'_, F> {
    /// A file that is wanted.
    fn compare(&mut self, name: &str, bytes: &[u8], entry: Option<&Entry>) -> Result<(), FileError> {
        let Some(entry) = entry else {
            self.plan.changes.push((name.to_owned(), ChangeKind::Missing));
            return Ok(());
        };
        let found = if entry.kind == EntryKind::File { self.read(name)? } else { None };
        let leeway = self.wanted.and_then(|folder| folder.encrypted.get(name));
        let is_same = match (found.as_deref(), leeway) {
            (Some(found), _) if found == bytes => true,
            (Some(found), Some(leeway)) => self.compare_secret(name, entry.kind, found, bytes, *leeway),
            (found, _) => {
                self.judge.replaced(name, entry.kind, found);
                false
            }
        };
        if is_same {
            self.plan.same.insert(name.to_owned());
        } else {
            self.plan.changes.push((name.to_owned(), ChangeKind::Changed));
        }
        Ok(())
    }

    /// An encrypted file of other bytes: whether it will do.
    fn compare_secret(&mut self, name: &str, kind: EntryKind, found: &[u8], bytes: &[u8], leeway: Leeway) -> bool {
        let copied = self.judge.owned.digest(name) == Some(&sha256_hex(bytes));
        let is_same = is_same_secret(found, bytes, leeway, copied, self.how);
        if is_same && !copied {
            self.plan.outrun.push(name.to_owned());
        }
        // What is encrypted the store has too: nothing is lost with it.
        if !is_same && !is_encrypted(found) {
            self.judge.replaced(name, kind, Some(found));
        }
        is_same
    }

    /// A file that is not wanted: removed if it is ours.
    fn other(&mut self, entry: &Entry) -> Result<(), FileError> {
        let is_ours = self.judge.owned.digest(&entry.name).is_some() || entry.name == INDEX_FILE;
        if !is_ours || entry.kind != EntryKind::File {
            self.plan.foreign.push(entry.clone());
            return Ok(());
        }
        let found = self.read(&entry.name)?;
        self.judge.removed(&entry.name, found.as_deref());
        self.plan.changes.push((entry.name.clone(), ChangeKind::Extra));
        Ok(())
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, FileError> {
        let file = self.folder.join(name);
        self.files.read(&file).context("read", &file)
    }
}

/// Whether an encrypted file of other bytes will do. `copied`: the store's file is still the one that was copied.
fn is_same_secret(found: &[u8], wanted: &[u8], leeway: Leeway, copied: bool, how: How) -> bool {
    let may_differ = match leeway {
        Leeway::Exact => false,
        Leeway::Copy => copied,
        Leeway::Either => copied || how == How::Compare,
    };
    may_differ && same_meaning(found, wanted)
}

/// An index that differs only in the digests of encrypted files which will do is as it should be, too.
fn forgive_index(found: &Index, wanted: &Folder, plan: &mut FolderPlan) {
    let mut as_found = wanted.index.clone();
    for name in wanted.encrypted.keys().filter(|name| plan.same.contains(*name)) {
        if let Some(digest) = found.files.get(name) {
            as_found.files.insert(name.clone(), digest.clone());
        }
    }
    if as_found == *found && as_found != wanted.index {
        plan.changes.retain(|(name, _)| name != INDEX_FILE);
        plan.same.insert(INDEX_FILE.to_owned());
    }
}

/// What the `bundle.json` on the disk says.
enum Owned<'a> {
    Nothing,
    Unreadable(String),
    Listed(Cow<'a, Index>),
}

impl Owned<'_> {
    fn digest(&self, name: &str) -> Option<&str> {
        match self {
            Self::Listed(index) => index.files.get(name).map(String::as_str),
            Self::Nothing | Self::Unreadable(_) => None,
        }
    }
}

fn owned_files<'a>(
    files: &impl Files,
    folder: &Path,
    wanted: Option<&'a Folder>,
    entries: &Entries<'_>,
) -> Result<Owned<'a>, FileError> {
    if !entries.contains_key(INDEX_FILE) {
        return Ok(Owned::Nothing);
    }
    let file = folder.join(INDEX_FILE);
    let Some(bytes) = files.read(&file).context("read", &file)? else { return Ok(Owned::Nothing) };
    // The usual case, nothing changed, needs no parsing.
    if let Some(wanted) = wanted.filter(|wanted| wanted.files.get(INDEX_FILE) == Some(&bytes)) {
        return Ok(Owned::Listed(Cow::Borrowed(&wanted.index)));
    }
    Ok(match Index::parse(&bytes) {
        Ok(index) => Owned::Listed(Cow::Owned(index)),
        Err(e) => Owned::Unreadable(e.to_string()),
    })
}

/// Decides whether a file may be replaced or removed.
struct Judge<'a> {
    path: &'a str,
    owned: &'a Owned<'a>,
    force: bool,
    conflicts: Diagnostics,
}

impl Judge<'_> {
    fn replaced(&mut self, name: &str, kind: EntryKind, found: Option<&[u8]>) {
        if kind == EntryKind::Folder {
            let message = format!("{}/{name} is a folder where a generated file belongs", self.path);
            conflict(codes::FOREIGN_IN_THE_WAY, message, false, &mut self.conflicts);
        } else if name == INDEX_FILE || matches!(self.owned, Owned::Unreadable(_)) {
            // The index has no digest of its own; an unreadable one is told of already.
        } else if let Some(digest) = self.owned.digest(name) {
            if found.is_none_or(|bytes| sha256_hex(bytes) != digest) {
                let message = format!("{}/{name} was edited by hand", self.path);
                conflict(codes::HAND_EDITED, message, self.force, &mut self.conflicts);
            }
        } else {
            let message = format!("{}/{name} stands in the way and was not written by flux-gen", self.path);
            conflict(codes::FOREIGN_IN_THE_WAY, message, self.force, &mut self.conflicts);
        }
    }

    fn removed(&mut self, name: &str, found: Option<&[u8]>) {
        let Some(digest) = self.owned.digest(name) else { return };
        if found.is_some_and(|bytes| sha256_hex(bytes) != digest) {
            let message = format!("{}/{name} was edited by hand and is no longer generated", self.path);
            conflict(codes::HAND_EDITED, message, self.force, &mut self.conflicts);
        }
    }
}

fn conflict(code: Code, message: String, force: bool, conflicts: &mut Diagnostics) {
    if !force {
        conflicts.push(Diagnostic::global_error(code, message).help("run again with --force, or move the file away"));
    }
}

/// Compares the kustomizations above the folders, and finds those that are no longer wanted.
fn survey_files(
    files: &impl Files,
    root: &Path,
    tree: &FileTree,
    listings: &Listings,
    force: bool,
    plan: &mut Plan,
) -> Result<(), FileError> {
    let present = listings.iter().filter_map(|(folder, entries)| {
        let entry = entries.iter().find(|entry| entry.name == KUSTOMIZATION_FILE)?;
        let path = if folder.is_empty() { KUSTOMIZATION_FILE.to_owned() } else { format!("{folder}/{}", entry.name) };
        Some((path, entry.kind))
    });
    let present: BTreeMap<String, EntryKind> = present.collect();
    for (path, bytes) in &tree.files {
        let Some(kind) = present.get(path) else {
            plan.report.changes.push(Change { path: path.clone(), kind: ChangeKind::Missing });
            plan.write.push(path.clone());
            continue;
        };
        let file = root.join(path);
        let found = if *kind == EntryKind::File { files.read(&file).context("read", &file)? } else { None };
        if found.as_ref() == Some(bytes) {
            plan.report.unchanged += 1;
            continue;
        }
        let found = found.unwrap_or_default();
        if *kind == EntryKind::Folder {
            let message = format!("{path} is a folder where a generated file belongs");
            conflict(codes::FOREIGN_IN_THE_WAY, message, false, &mut plan.report.conflicts);
        } else if kustomization::was_sealed(&found) && !kustomization::is_sealed(&found) {
            conflict(codes::HAND_EDITED, format!("{path} was edited by hand"), force, &mut plan.report.conflicts);
        } else if !kustomization::was_sealed(&found) {
            let message = format!("{path} stands in the way and was not written by flux-gen");
            conflict(codes::FOREIGN_IN_THE_WAY, message, force, &mut plan.report.conflicts);
        }
        plan.report.changes.push(Change { path: path.clone(), kind: ChangeKind::Changed });
        plan.write.push(path.clone());
    }
    let unwanted = present.iter().filter(|(path, kind)| **kind == EntryKind::File && !tree.files.contains_key(*path));
    for (path, _) in unwanted {
        let file = root.join(path);
        let found = files.read(&file).context("read", &file)?.unwrap_or_default();
        // The kustomization of cluster-wide documents has an index of its own.
        if kustomization::is_sealed(&found) {
            plan.report.changes.push(Change { path: path.clone(), kind: ChangeKind::Extra });
            plan.erase.push(path.clone());
        } else if kustomization::was_sealed(&found) {
            let message = format!("{path} was edited by hand and is no longer generated");
            conflict(codes::HAND_EDITED, message, force, &mut plan.report.conflicts);
            plan.report.changes.push(Change { path: path.clone(), kind: ChangeKind::Extra });
            plan.erase.push(path.clone());
        }
    }
    Ok(())
}
