//! Compares without writing: drift, and the difference as text.

use std::path::Path;

use similar::TextDiff;

use super::files::Files;
use super::layout::Kept;
use super::report::{ChangeKind, Context, FileError, Report};
use super::survey::{self, How};
use super::tree::FileTree;

/// Compares the output with the tree. Writes nothing, takes no lock.
///
/// # Errors
/// When something in the output cannot be read.
pub fn check(files: &impl Files, root: &Path, tree: &FileTree, kept: &Kept) -> Result<Report, FileError> {
    Ok(survey::survey(files, root, tree, kept, How::Compare)?.report)
}

/// One file's difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    /// Path relative to the output.
    pub path: String,
    /// How it differs.
    pub kind: ChangeKind,
    /// Unified diff from the output to the tree, with three lines of context. `None` when the file is a Secret or not UTF-8.
    pub text: Option<String>,
}

/// The differences of a report as text, in the order of paths.
///
/// # Errors
/// When something in the output cannot be read.
pub fn diff(files: &impl Files, root: &Path, tree: &FileTree, report: &Report) -> Result<Vec<FileDiff>, FileError> {
    let wanted = tree.iter();
    let mut diffs = Vec::new();
    for change in &report.changes {
        let path = root.join(&change.path);
        let old = if change.kind == ChangeKind::Missing { None } else { files.read(&path).context("read", &path)? };
        let new = wanted.get(&change.path).copied();
        let text = match (
            std::str::from_utf8(old.as_deref().unwrap_or_default()),
            std::str::from_utf8(new.unwrap_or_default()),
        ) {
            (Ok(old_text), Ok(new_text)) if !holds_secret(&change.path) => {
                let side = |present: bool, letter: char| {
                    if present { format!("{letter}/{}", change.path) } else { "/dev/null".to_owned() }
                };
                let diff = TextDiff::from_lines(old_text, new_text);
                let (from, to) = (side(old.is_some(), 'a'), side(new.is_some(), 'b'));
                Some(diff.unified_diff().context_radius(3).header(&from, &to).to_string())
            }
            _ => None,
        };
        diffs.push(FileDiff { path: change.path.clone(), kind: change.kind, text });
    }
    Ok(diffs)
}

/// Whether a file may hold a Secret, by its name. Companions are named the same way.
fn holds_secret(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.starts_with("secret"))
}
