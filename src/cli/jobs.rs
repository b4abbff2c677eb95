//! Which Jobs a change makes anew: most of a Job cannot be changed once it is there.

use std::path::Path;

use super::report::plural;
use crate::bundle::FileTree;
use crate::bundle::files::{Disk, Files};
use crate::bundle::report::FileError;

/// Fields of a Job's spec that may change while it runs; all others are immutable
/// (`ValidateJobSpecUpdate` of Kubernetes; completions of an Indexed Job may change together with parallelism).
const MUTABLE: [&str; 6] =
    ["activeDeadlineSeconds", "backoffLimit", "completions", "parallelism", "suspend", "ttlSecondsAfterFinished"];

/// In how many lines from the top `kind` stands: after our comment and `apiVersion`.
const HEAD: usize = 4;

/// Folders (`namespace/name`) whose Job exists in the output and would have to be another one.
///
/// # Errors
/// When a file of the output cannot be read.
pub(crate) fn recreated(output: &Path, tree: &FileTree) -> Result<Vec<String>, FileError> {
    let mut folders = Vec::new();
    for (folder, content) in &tree.folders {
        for (name, new) in &content.files {
            let Some(new) = immutable_part(new) else { continue };
            let path = output.join(folder).join(name);
            let old = Disk.read(&path).map_err(|source| FileError { action: "read", path: path.clone(), source })?;
            if old.is_some_and(|old| immutable_part(&old).is_some_and(|old| old != new)) {
                folders.push(folder.clone());
            }
        }
    }
    Ok(folders)
}

/// What to say about them.
pub(crate) fn sentence(folders: &[String]) -> Option<String> {
    let one = folders.len() == 1;
    let (them, old) = if one { ("it", "the old Job") } else { ("them", "the old Jobs") };
    (!folders.is_empty()).then(|| {
        format!(
            "recreates {}: {} (Kubernetes cannot change {them} in place: delete {old} before you apply)",
            plural(folders.len(), "Job"),
            folders.join(", ")
        )
    })
}

/// The lines of a Job's `spec` that are immutable, as flux-gen writes them; `None` when the file holds no Job.
///
/// Our YAML is canonical (two blanks per level, sorted the same way each time), so equal text is an equal Job.
fn immutable_part(file: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(file).ok()?;
    if !text.lines().take(HEAD).any(|line| line == "kind: Job") {
        return None;
    }
    let mut part = String::new();
    let (mut in_spec, mut keep) = (false, false);
    for line in text.lines() {
        let depth = line.len() - line.trim_start_matches(' ').len();
        if depth == 0 && !line.is_empty() {
            (in_spec, keep) = (line == "spec:", false);
        } else if depth == 2 && !line.trim_start().starts_with('-') {
            keep = !MUTABLE.contains(&line.trim_start().split(':').next().unwrap_or_default());
        }
        if in_spec && keep {
            part.push_str(line);
            part.push('\n');
        }
    }
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_immutable_fields_count() {
        let job = |completions: u8, image: &str| {
            format!(
                "kind: Job\nmetadata:\n  name: a\nspec:\n  completions: {completions}\n  template:\n    x: {image}\n"
            )
        };
        let part = |text: String| immutable_part(text.as_bytes()).unwrap();
        assert_eq!(part(job(1, "a")), part(job(2, "a")));
        assert_ne!(part(job(1, "a")), part(job(1, "b")));
        assert_eq!(part(job(1, "a")), "  template:\n    x: a\n");
        assert_eq!(immutable_part(b"kind: ConfigMap\ndata:\n  a: |\n    kind: Job\n"), None);
        assert_eq!(immutable_part(b"\xff"), None);
    }

    #[test]
    fn sentences() {
        assert_eq!(sentence(&[]), None);
        let one = sentence(&["default/a".to_owned()]).unwrap();
        assert!(one.starts_with("recreates 1 Job: default/a (Kubernetes cannot change it in place"), "{one}");
        let two = sentence(&["a/b".to_owned(), "a/c".to_owned()]).unwrap();
        assert!(two.starts_with("recreates 2 Jobs: a/b, a/c ("), "{two}");
    }
}
