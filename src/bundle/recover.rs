//! The work folder `.flux-gen`, and what to do with one that a killed write left behind.
//!
//! `.flux-gen/lock` is held while writing. In `.flux-gen/new/`, with commas for slashes:
//! - `<path>,part` is a folder being written: all its files are ours, or second names of files that are in their place;
//! - `<path>` is a whole folder: new before it takes its place, old after it has given it up. Its `bundle.json` lists what
//!   is ours and is removed last. Whatever else lies there and is not in the place belongs to somebody and goes back.
//!   Files are kustomizations before their rename.
//!
//! `.flux-gen/move/<path>.json` says that the files of such a folder are being moved one by one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::files::{EntryKind, Files};
use super::index::{INDEX_FILE, Index};
use super::names::is_plain_file_name;
use super::report::{Context, FileError};
use super::survey::WORK_FOLDER;

/// Name of the lock file in the work folder.
pub(super) const LOCK_FILE: &str = "lock";
/// Name of the folder for what takes its place.
pub(super) const NEW: &str = "new";
/// Name of the folder for notes about files that are moved one by one.
const MOVE: &str = "move";

/// Ending of a folder that is being written.
const PART: &str = ",part";

/// The note that the files of a folder are being moved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MoveNote {
    /// The folder, relative to the output.
    pub(super) path: String,
    /// Its files that are no longer wanted.
    pub(super) remove: Vec<String>,
}

/// Where a folder or kustomization is before it takes its place. Names of folders hold no comma.
pub(super) fn staged(root: &Path, path: &str) -> PathBuf {
    root.join(WORK_FOLDER).join(NEW).join(path.replace('/', ","))
}

/// The name of a folder while it is being written.
pub(super) fn part(staged: &Path) -> PathBuf {
    let mut name = staged.as_os_str().to_owned();
    name.push(PART);
    name.into()
}

fn note_file(root: &Path, path: &str) -> PathBuf {
    root.join(WORK_FOLDER).join(MOVE).join(format!("{}.json", path.replace('/', ",")))
}

/// Writes a note. It counts from the rename on.
pub(super) fn announce(files: &impl Files, root: &Path, note: &MoveNote, durable: bool) -> Result<(), FileError> {
    let path = note_file(root, &note.path);
    let folder = root.join(WORK_FOLDER).join(MOVE);
    files.make_folder(&folder).context("make", &folder)?;
    let draft = path.with_extension("draft");
    let bytes = serde_json::to_vec(note).map_err(std::io::Error::from).context("write", &path)?;
    files.create(&draft, &bytes, durable).context("write", &draft)?;
    files.rename(&draft, &path).context("write", &path)?;
    if durable { files.sync_folder(&folder).context("sync", &folder) } else { Ok(()) }
}

/// Moves the staged files of a folder into it, removes unwanted ones, and then the note. May be repeated at any point.
pub(super) fn move_files(files: &impl Files, root: &Path, note: &MoveNote) -> Result<(), FileError> {
    let from = staged(root, &note.path);
    let to = root.join(&note.path);
    files.make_folder(&to).context("make", &to)?;
    let entries = files.list(&from).context("list", &from)?.unwrap_or_default();
    let index = read_index(files, &from)?;
    let listed = |name: &str| index.as_ref().is_some_and(|index| index.files.contains_key(name));
    // Second names of foreign files have no use here.
    for entry in entries.iter().filter(|entry| !listed(&entry.name) && entry.name != INDEX_FILE) {
        let path = from.join(&entry.name);
        files.remove_file(&path).context("remove", &path)?;
    }
    let names = entries.iter().map(|entry| entry.name.as_str()).filter(|name| listed(name));
    let last = entries.iter().map(|entry| entry.name.as_str()).filter(|name| *name == INDEX_FILE);
    for name in names.chain(last) {
        let (source, target) = (from.join(name), to.join(name));
        files.rename(&source, &target).context("replace", &target)?;
        // Two names of one file: renaming one to the other does nothing.
        files.remove_file(&source).context("remove", &source)?;
    }
    for name in &note.remove {
        let file = to.join(name);
        files.remove_file(&file).context("remove", &file)?;
    }
    if files.list(&from).context("list", &from)?.is_some() {
        files.remove_folder(&from).context("remove", &from)?;
    }
    // Where everything was unwanted nothing is left, unless it belongs to others.
    let _ = files.remove_folder(&to);
    let note = note_file(root, &note.path);
    files.remove_file(&note).context("remove", &note)
}

/// Removes a folder that has done its service, if it is there: files that `is_ours`, then the folder; anything else goes back to `place`.
/// `bundle.json` goes last.
pub(super) fn dissolve(
    files: &impl Files,
    folder: &Path,
    place: &Path,
    is_ours: &dyn Fn(&str) -> bool,
) -> Result<(), FileError> {
    let Some(entries) = files.list(folder).context("list", folder)? else { return Ok(()) };
    let back: Option<BTreeSet<String>> = if entries.iter().all(|entry| is_ours(&entry.name)) {
        None
    } else {
        let there = files.list(place).context("list", place)?;
        Some(there.unwrap_or_default().into_iter().map(|entry| entry.name).collect())
    };
    let mut last = None;
    for entry in &entries {
        let path = folder.join(&entry.name);
        let there = back.as_ref().is_some_and(|back| back.contains(&entry.name));
        if entry.kind == EntryKind::Folder || !(is_ours(&entry.name) || there) {
            let target = place.join(&entry.name);
            if !there {
                files.make_folder(place).context("make", place)?;
                files.rename(&path, &target).context("give back", &target)?;
            }
        } else if entry.name == INDEX_FILE {
            last = Some(path);
        } else {
            files.remove_file(&path).context("remove", &path)?;
        }
    }
    if let Some(path) = last {
        files.remove_file(&path).context("remove", &path)?;
    }
    files.remove_folder(folder).context("remove", folder)
}

/// Finishes what a killed write left: moves that were announced, folders that were exchanged but not cleared, and drafts.
pub(super) fn finish(files: &impl Files, root: &Path) -> Result<(), FileError> {
    let notes = root.join(WORK_FOLDER).join(MOVE);
    for entry in files.list(&notes).context("list", &notes)?.unwrap_or_default() {
        let path = notes.join(&entry.name);
        let bytes = files.read(&path).context("read", &path)?.unwrap_or_default();
        match serde_json::from_slice::<MoveNote>(&bytes) {
            Ok(note) if entry.name.ends_with(".json") && is_safe(&note) => move_files(files, root, &note)?,
            _ => files.remove_file(&path).context("remove", &path)?,
        }
    }
    let new = root.join(WORK_FOLDER).join(NEW);
    for entry in files.list(&new).context("list", &new)?.unwrap_or_default() {
        let path = new.join(&entry.name);
        if entry.kind != EntryKind::Folder {
            files.remove_file(&path).context("remove", &path)?;
            continue;
        }
        if let Some(place) = entry.name.strip_suffix(PART) {
            dissolve(files, &path, &root.join(place.replace(',', "/")), &|_| true)?;
            continue;
        }
        let index = read_index(files, &path)?;
        let is_ours =
            |name: &str| name == INDEX_FILE || index.as_ref().is_some_and(|index| index.files.contains_key(name));
        dissolve(files, &path, &root.join(entry.name.replace(',', "/")), &is_ours)?;
    }
    Ok(())
}

/// The index of a folder, when there is a usable one.
fn read_index(files: &impl Files, folder: &Path) -> Result<Option<Index>, FileError> {
    let path = folder.join(INDEX_FILE);
    Ok(files.read(&path).context("read", &path)?.and_then(|bytes| Index::parse(&bytes).ok()))
}

/// A note is followed only within the output.
fn is_safe(note: &MoveNote) -> bool {
    note.path.split('/').all(is_plain_file_name) && note.remove.iter().all(|name| is_plain_file_name(name))
}

/// Removes the work folder of a write that is over, the lock file last.
pub(super) fn clean(files: &impl Files, root: &Path) -> Result<(), FileError> {
    let work = root.join(WORK_FOLDER);
    finish(files, root)?;
    for name in [MOVE, NEW] {
        let folder = work.join(name);
        if files.list(&folder).context("list", &folder)?.is_some() {
            files.remove_folder(&folder).context("remove", &folder)?;
        }
    }
    let lock = work.join(LOCK_FILE);
    files.remove_file(&lock).context("remove", &lock)?;
    // Another writer may have made its lock file there already.
    let _ = files.remove_folder(&work);
    Ok(())
}
