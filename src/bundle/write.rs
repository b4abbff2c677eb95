//! Brings an output up to date so that each folder is, at any moment, either as it was or as it should be.
//!
//! 1. Everything new is written below `.flux-gen/` in the output; files that stay are linked there, so that they keep their
//!    inode and time. Any failure up to here leaves the output as it was.
//! 2. Folder after folder takes its place in one step: a rename where nothing was, else an exchange of both folders
//!    (`renameat2` with `RENAME_EXCHANGE` on Linux, its like on macOS). What is then below `.flux-gen/` is the old content.
//! 3. Kustomizations follow, each by one rename; only then folders that are no longer wanted go.
//!
//! Where a file system has no exchange, the files of a folder are moved one by one, after a note that lets the next run
//! finish the work ([`super::recover`]); only there a kill can leave a folder in between until the next run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::files::{EntryKind, Files, Lock, cannot_exchange};
use super::layout::Kept;
use super::recover::{self, MoveNote};
use super::report::{ChangeKind, Context, FileError, Report};
use super::survey::{self, FolderPlan, How, Plan, WORK_FOLDER};
use super::tree::FileTree;
use crate::diag::codes::bundle as codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::parallel;

/// Above this number of files one wait for the whole file system is quicker than one per file.
const MANY_FILES: usize = 64;

/// How often the work folder may vanish between two steps before that is an error.
const LOCK_TRIES: usize = 1000;

/// How to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteOptions {
    /// Overwrite and remove generated files that were edited by hand, and take the place of foreign ones.
    pub force: bool,
    /// Wait until everything is on the disk, so that a power failure is as harmless as a kill.
    pub durable: bool,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self { force: false, durable: true }
    }
}

/// Writes the tree. Nothing is written when the report holds conflicts.
///
/// # Errors
/// The first file operation that failed. Folders are old or new, and the next write goes on from there.
pub fn write(
    files: &impl Files,
    root: &Path,
    tree: &FileTree,
    kept: &Kept,
    options: WriteOptions,
) -> Result<Report, FileError> {
    if tree.folders.is_empty() {
        let message = "there is nothing to write; an empty result never empties an output folder";
        let conflicts: Diagnostics = [Diagnostic::global_error(codes::EMPTY_RESULT, message)].into_iter().collect();
        return Ok(Report { conflicts, ..Report::default() });
    }
    let work = root.join(WORK_FOLDER);
    let entries = files.list(root).context("list", root)?.unwrap_or_default();
    if entries.iter().any(|entry| entry.name == WORK_FOLDER && entry.kind != EntryKind::Folder) {
        let message =
            format!("{WORK_FOLDER} in the output is a link or a file; flux-gen works in a folder of that name");
        let conflict = Diagnostic::global_error(codes::LEAVES_OUTPUT, message).help("remove it");
        return Ok(Report { conflicts: [conflict].into_iter().collect(), ..Report::default() });
    }
    let lock = lock(files, &work)?;
    let result = locked(files, root, tree, kept, options);
    // After a failure too: what was not moved into place is of no use. What cannot be cleaned up is for the next run.
    let cleaned = recover::clean(files, root);
    drop(lock);
    let mut report = result?;
    cleaned?;
    report.interrupted = false;
    Ok(report)
}

/// Makes the work folder and takes the lock in it.
fn lock(files: &impl Files, work: &Path) -> Result<Lock, FileError> {
    let path = work.join(recover::LOCK_FILE);
    let gone = |e: &std::io::Error| e.kind() == std::io::ErrorKind::NotFound;
    for _ in 1..LOCK_TRIES {
        // The holder before us may remove the folder at any of these points.
        match files.make_folder(work).and_then(|()| Lock::take(&path)) {
            Err(e) if gone(&e) => {}
            result => return result.context("lock", &path),
        }
    }
    files.make_folder(work).context("make", work)?;
    Lock::take(&path).context("lock", &path)
}

fn locked(
    files: &impl Files,
    root: &Path,
    tree: &FileTree,
    kept: &Kept,
    options: WriteOptions,
) -> Result<Report, FileError> {
    recover::finish(files, root)?;
    let plan = survey::survey(files, root, tree, kept, How::Write { force: options.force })?;
    if !plan.report.conflicts.is_empty() || plan.report.changes.is_empty() {
        return Ok(plan.report);
    }
    let writer = Writer { files, root, tree, durable: options.durable };
    writer.run(&plan)?;
    Ok(plan.report)
}

struct Writer<'a, F> {
    files: &'a F,
    root: &'a Path,
    tree: &'a FileTree,
    durable: bool,
}

impl<F: Files> Writer<'_, F> {
    fn run(&self, plan: &Plan) -> Result<(), FileError> {
        let new = self.root.join(WORK_FOLDER).join(recover::NEW);
        self.files.make_folder(&new).context("make", &new)?;
        let count: usize = plan.update.iter().map(|folder| folder.changes.len()).sum();
        let one_by_one = self.durable && count <= MANY_FILES;
        each(&plan.update, |folder| self.stage_folder(folder, one_by_one))?;
        let partly: Vec<&FolderPlan> = plan.remove.iter().filter(|folder| !folder.foreign.is_empty()).collect();
        each(&partly, |folder| self.stage_folder(folder, one_by_one))?;
        for path in &plan.write {
            self.create(&recover::staged(self.root, path), &self.tree.files[path], one_by_one)?;
        }
        if self.durable && !one_by_one {
            self.files.sync_file_system(&new).context("sync", &new)?;
        }

        let tops: BTreeSet<&str> =
            plan.update.iter().filter_map(|folder| folder.path.split_once('/')).map(|p| p.0).collect();
        for top in tops.iter().copied() {
            let folder = self.root.join(top);
            self.files.make_folder(&folder).context("make", &folder)?;
        }
        each(&plan.update, |folder| self.commit_folder(folder))?;
        self.sync_tops(tops)?;
        each(&plan.update, |folder| self.clear_folder(folder))?;
        self.commit_files(plan)?;
        each(&plan.remove, |folder| self.remove_folder(folder))?;
        self.sync_tops(plan.remove.iter().filter_map(|folder| folder.path.split_once('/')).map(|p| p.0))?;
        each(&plan.remove, |folder| self.clear_folder(folder))?;
        self.remove_empty_tops(plan);
        self.sync_tops([""])
    }

    fn create(&self, path: &Path, bytes: &[u8], durable: bool) -> Result<(), FileError> {
        self.files.create(path, bytes, durable).context("write", path)
    }

    /// Writes what a folder will hold.
    fn stage_folder(&self, folder: &FolderPlan, durable: bool) -> Result<(), FileError> {
        let whole = recover::staged(self.root, &folder.path);
        let staged = recover::part(&whole);
        let place = self.root.join(&folder.path);
        self.files.make_folder(&staged).context("make", &staged)?;
        for entry in folder.foreign.iter().filter(|entry| entry.kind == EntryKind::File) {
            // Where it cannot be linked it is moved back after the exchange, as folders are.
            let _ = self.files.link(&place.join(&entry.name), &staged.join(&entry.name));
        }
        let wanted = self.tree.folders.get(&folder.path);
        for (name, bytes) in wanted.iter().flat_map(|wanted| &wanted.files) {
            let file = staged.join(name);
            if folder.same.contains(name) && self.files.link(&place.join(name), &file).is_ok() {
                continue;
            }
            self.create(&file, bytes, durable)?;
        }
        if durable {
            self.files.sync_folder(&staged).context("sync", &staged)?;
        }
        self.files.rename(&staged, &whole).context("name", &whole)
    }

    /// The step after which the folder is new.
    fn commit_folder(&self, folder: &FolderPlan) -> Result<(), FileError> {
        let staged = recover::staged(self.root, &folder.path);
        let place = self.root.join(&folder.path);
        if !folder.exists {
            return self.files.rename(&staged, &place).context("move into place", &place);
        }
        match self.files.exchange(&staged, &place) {
            Err(e) if cannot_exchange(&e) => self.move_files(folder),
            result => result.context("replace", &place),
        }
    }

    /// The step after which a folder that is no longer wanted is gone; what others put there stays.
    fn remove_folder(&self, folder: &FolderPlan) -> Result<(), FileError> {
        if !folder.foreign.is_empty() {
            return self.commit_folder(folder);
        }
        let place = self.root.join(&folder.path);
        match self.files.rename(&place, &recover::staged(self.root, &folder.path)) {
            Err(e) if cannot_exchange(&e) => self.move_files(folder),
            result => result.context("remove", &place),
        }
    }

    /// Removes the old content of a folder.
    fn clear_folder(&self, folder: &FolderPlan) -> Result<(), FileError> {
        let old = recover::staged(self.root, &folder.path);
        let ours = ours(folder);
        recover::dissolve(self.files, &old, &self.root.join(&folder.path), &|name| ours.contains(name))
    }

    /// For file systems without exchange: file after file, announced by a note.
    fn move_files(&self, folder: &FolderPlan) -> Result<(), FileError> {
        let extra = folder.changes.iter().filter(|(_, kind)| *kind == ChangeKind::Extra);
        let note = MoveNote { path: folder.path.clone(), remove: extra.map(|(name, _)| name.clone()).collect() };
        recover::announce(self.files, self.root, &note, self.durable)?;
        recover::move_files(self.files, self.root, &note)
    }

    fn commit_files(&self, plan: &Plan) -> Result<(), FileError> {
        // Deeper ones first: a new namespace has its kustomization before the root names it.
        let mut write: Vec<&String> = plan.write.iter().collect();
        write.sort_by_key(|path| (std::cmp::Reverse(path.matches('/').count()), *path));
        for path in write {
            let place = self.root.join(path);
            self.files.rename(&recover::staged(self.root, path), &place).context("replace", &place)?;
        }
        for path in &plan.erase {
            let place = self.root.join(path);
            self.files.remove_file(&place).context("remove", &place)?;
        }
        self.sync_tops(plan.write.iter().chain(&plan.erase).filter_map(|path| path.split_once('/')).map(|p| p.0))
    }

    /// Removes folders of namespaces in which nothing is left.
    fn remove_empty_tops(&self, plan: &Plan) {
        let paths = plan.remove.iter().map(|folder| &folder.path).chain(&plan.erase);
        let tops: BTreeSet<&str> = paths.filter_map(|path| path.split_once('/')).map(|p| p.0).collect();
        for top in tops {
            // Fails when something is left, and then it is to stay.
            let _ = self.files.remove_folder(&self.root.join(top));
        }
    }

    fn sync_tops<'a>(&self, tops: impl IntoIterator<Item = &'a str>) -> Result<(), FileError> {
        if !self.durable {
            return Ok(());
        }
        let tops: BTreeSet<PathBuf> = tops.into_iter().map(|top| self.root.join(top)).collect();
        tops.iter().try_for_each(|folder| self.files.sync_folder(folder).context("sync", folder))
    }
}

/// Files of the old folder that have done their service.
fn ours(folder: &FolderPlan) -> BTreeSet<&str> {
    let changes = folder.changes.iter().filter(|(_, kind)| *kind != ChangeKind::Missing).map(|(name, _)| name.as_str());
    changes.chain(folder.same.iter().map(String::as_str)).collect()
}

/// Runs `work` on all items and gives the error of the first that failed.
fn each<T: Sync>(items: &[T], work: impl Fn(&T) -> Result<(), FileError> + Sync + Send) -> Result<(), FileError> {
    parallel::map(items, work).into_iter().collect()
}
