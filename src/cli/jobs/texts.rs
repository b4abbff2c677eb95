//! Which files of a ConfigMap made a Job mount another one: its name, a hash, tells nobody why.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use super::{object, read_file};
use crate::bundle::report::FileError;
use crate::bundle::tree::Folder;

/// Files that are told of one ConfigMap.
const MOST_FILES: usize = 2;
/// How the path of a volume's ConfigMap ends.
const REFERENCE: &str = ".configMap.name";

/// Adds to every path of a volume's ConfigMap which files in it differ: `…volumes[4].configMap.name: wait-0.sh`.
///
/// # Errors
/// When a file of the output cannot be read.
pub(super) fn name_them(
    paths: &mut [String],
    old: &Value,
    new: &Value,
    place: &Path,
    content: &Folder,
) -> Result<(), FileError> {
    for path in paths.iter_mut().filter(|path| path.ends_with(REFERENCE)) {
        let pointer = pointer(path);
        let name = |object: &Value| object.pointer(&pointer).and_then(Value::as_str).map(str::to_owned);
        let (Some(before), Some(now)) = (name(old), name(new)) else { continue };
        let files = differing(&before, &now, place, content)?;
        if !files.is_empty() {
            *path = format!("{path}: {}", listed(&files));
        }
    }
    Ok(())
}

/// `spec.volumes[4].configMap.name` as a JSON pointer.
fn pointer(path: &str) -> String {
    format!("/{}", path.replace(['.', '['], "/").replace(']', ""))
}

/// Files whose text is not the same in the ConfigMap of before and the one of now; none if either is not there.
fn differing(before: &str, now: &str, place: &Path, content: &Folder) -> Result<BTreeSet<String>, FileError> {
    for (file, bytes) in content.files.iter().filter(|(file, _)| file.starts_with("configmap")) {
        let Some(new) = object(bytes.clone()).filter(|map| map["metadata"]["name"] == now) else { continue };
        let old = read_file(&place.join(file))?.and_then(object);
        let Some(old) = old.filter(|map| map["metadata"]["name"] == before) else { break };
        let differs = |part: &str, key: &String| old[part].get(key) != new[part].get(key);
        let keys = |part: &'static str| {
            let both = [&old, &new].into_iter().filter_map(move |map| map[part].as_object());
            both.flat_map(|files| files.keys().cloned()).filter(move |key| differs(part, key))
        };
        return Ok(keys("data").chain(keys("binaryData")).collect());
    }
    Ok(BTreeSet::new())
}

fn listed(files: &BTreeSet<String>) -> String {
    let told: Vec<&str> = files.iter().take(MOST_FILES).map(String::as_str).collect();
    match files.len().saturating_sub(MOST_FILES) {
        0 => told.join(" and "),
        more => format!("{} and {more} more", told.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_files_are_named_and_many_counted() {
        let of = |names: &[&str]| listed(&names.iter().map(|name| (*name).to_owned()).collect());
        assert_eq!(of(&["R"]), "R");
        assert_eq!(of(&["b", "a"]), "a and b");
        assert_eq!(of(&["c", "a", "d", "b"]), "a, b and 2 more");
        assert_eq!(
            pointer("spec.template.spec.volumes[3].configMap.name"),
            "/spec/template/spec/volumes/3/configMap/name"
        );
    }
}
