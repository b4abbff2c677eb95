//! ConfigMap, Secret and projected volumes on disk, with the kubelet's layout and modes.
//!
//! Layout: the files are in a dated folder, `..data` links to it, and each top-level name links into
//! `..data`, so that an update is one rename (the kubelet's AtomicWriter).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

/// A file of a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// Content.
    pub data: Vec<u8>,
    /// Permission bits before fsGroup.
    pub mode: u32,
}

/// Files by relative path.
pub type Payloads = BTreeMap<String, Payload>;

/// Mode bits that fsGroup adds (`volume_linux.go` of the kubelet): read-only volumes get `r--r-----`,
/// others `rw-rw----`; folders also set-group-id and search.
pub fn fs_group_mode(mode: u32, read_only: bool, directory: bool) -> u32 {
    let mask = if read_only { 0o440 } else { 0o660 };
    mode | mask | if directory { 0o2110 } else { 0 }
}

/// Writes (or replaces) the files of a volume. Returns whether anything changed.
///
/// # Errors
/// The folder cannot be written.
pub fn write_atomic(dir: &Path, files: &Payloads, fs_group: Option<u32>) -> std::io::Result<bool> {
    fs::create_dir_all(dir)?;
    let link = dir.join("..data");
    if let Ok(current) = fs::canonicalize(&link)
        && read_back(&current)? == without_modes(files)
    {
        return Ok(false);
    }
    let stamp = jiff::Timestamp::now().as_nanosecond();
    let fresh = dir.join(format!("..{stamp}"));
    fs::create_dir(&fresh)?;
    for (name, payload) in files {
        let path = fresh.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(&path, &payload.data)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(payload.mode))?;
    }
    own_tree(&fresh, fs_group, true)?;
    let old = fs::read_link(&link).ok();
    let staged = dir.join("..data_tmp");
    symlink(format!("..{stamp}"), &staged)?;
    fs::rename(&staged, &link)?;
    links(dir, files)?;
    if let Some(old) = old {
        fs::remove_dir_all(dir.join(old))?;
    }
    Ok(true)
}

/// Gives a tree to a group as the kubelet does for `fsGroup`.
///
/// # Errors
/// An entry cannot be changed.
pub fn own_tree(path: &Path, fs_group: Option<u32>, read_only: bool) -> std::io::Result<()> {
    let Some(group) = fs_group else { return Ok(()) };
    let meta = fs::symlink_metadata(path)?;
    if meta.file_type().is_symlink() {
        return Ok(());
    }
    chown(path, None, Some(group))?;
    let mode = fs_group_mode(meta.mode() & 0o7777, read_only, meta.is_dir());
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    if meta.is_dir() {
        for entry in fs::read_dir(path)? {
            own_tree(&entry?.path(), fs_group, read_only)?;
        }
    }
    Ok(())
}

fn without_modes(files: &Payloads) -> BTreeMap<String, Vec<u8>> {
    files.iter().map(|(k, v)| (k.clone(), v.data.clone())).collect()
}

fn read_back(root: &Path) -> std::io::Result<BTreeMap<String, Vec<u8>>> {
    let mut out = BTreeMap::new();
    let mut todo: Vec<PathBuf> = vec![root.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in fs::read_dir(dir)? {
            let path = entry?.path();
            if path.is_dir() {
                todo.push(path);
            } else if let Ok(name) = path.strip_prefix(root) {
                out.insert(name.to_string_lossy().into_owned(), fs::read(&path)?);
            }
        }
    }
    Ok(out)
}

/// Makes the top-level links that are missing, and removes those of keys that are gone.
fn links(dir: &Path, files: &Payloads) -> std::io::Result<()> {
    let want: BTreeSet<&str> = files.keys().filter_map(|k| k.split('/').next()).collect();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with("..") && !want.contains(name.as_ref()) {
            fs::remove_file(entry.path())?;
        }
    }
    for name in want {
        let path = dir.join(name);
        if fs::symlink_metadata(&path).is_err() {
            symlink(format!("..data/{name}"), path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::{Payload, Payloads, fs_group_mode, write_atomic};

    #[test]
    fn fs_group_modes() {
        for (mode, read_only, directory, want) in [
            (0o400, true, false, 0o440),
            (0o644, true, false, 0o644),
            (0o600, true, false, 0o640),
            (0o777, true, false, 0o777),
            (0o755, true, true, 0o2755),
            (0o700, true, true, 0o2750),
            (0o777, false, true, 0o2777),
            (0o600, false, false, 0o660),
        ] {
            assert_eq!(fs_group_mode(mode, read_only, directory), want, "{mode:o}");
        }
    }

    fn files(list: &[(&str, &str)]) -> Payloads {
        list.iter().map(|(k, v)| ((*k).to_owned(), Payload { data: v.as_bytes().to_vec(), mode: 0o400 })).collect()
    }

    #[test]
    fn layout_update_and_removal() {
        let dir = tempfile::tempdir().expect("tempdir");
        let at = dir.path();
        assert!(write_atomic(at, &files(&[("a", "1"), ("d/b", "2")]), None).expect("first"));
        assert_eq!(std::fs::read_link(at.join("a")).expect("link").to_str(), Some("..data/a"));
        assert_eq!(std::fs::read_to_string(at.join("d/b")).expect("nested"), "2");
        assert_eq!(std::fs::metadata(at.join("a")).expect("meta").mode() & 0o7777, 0o400);
        assert!(!write_atomic(at, &files(&[("a", "1"), ("d/b", "2")]), None).expect("same"));
        assert!(write_atomic(at, &files(&[("a", "3")]), None).expect("changed"));
        assert_eq!(std::fs::read_to_string(at.join("a")).expect("new"), "3");
        assert!(!at.join("d").exists());
        let dated = std::fs::read_dir(at).expect("list").count();
        assert_eq!(dated, 3, "..data, one dated folder, a");
    }
}
