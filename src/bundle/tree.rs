//! The files of an output, before they are anywhere.

use std::collections::BTreeMap;

use super::cipher::Leeway;
use super::index::{INDEX_FILE, Index};
use super::names::KUSTOMIZATION_FILE;

/// One folder that changes as a whole: of a cluster, or of companions.
#[derive(Clone, PartialEq, Eq)]
pub struct Folder {
    /// Every file, `bundle.json` included.
    pub files: BTreeMap<String, Vec<u8>>,
    /// What `bundle.json` says.
    pub index: Index,
    /// Files with objects in the order in which they are to be applied.
    pub documents: Vec<String>,
    /// Encrypted files, whose bytes may differ in the output when somebody has encrypted the same again.
    pub encrypted: BTreeMap<String, Leeway>,
}

/// All files of an output: path relative to the output folder, with `/`, to bytes.
///
/// Two kinds, because they are written differently: folders that change as a whole, and the kustomizations above them,
/// which name folders and therefore appear after and vanish before them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct FileTree {
    /// Folders by path: `<namespace>/<cluster>`, `<namespace>/companions`, `cluster`.
    pub folders: BTreeMap<String, Folder>,
    /// Kustomizations of namespaces and of the root, by path.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl FileTree {
    /// Every file once, in the order of paths.
    #[must_use]
    pub fn iter(&self) -> BTreeMap<String, &[u8]> {
        let of_folders = self.folders.iter().flat_map(|(path, folder)| {
            folder.files.iter().map(move |(name, bytes)| (format!("{path}/{name}"), bytes.as_slice()))
        });
        let loose = self.files.iter().map(|(path, bytes)| (path.clone(), bytes.as_slice()));
        of_folders.chain(loose).collect()
    }

    /// The objects as one text of YAML documents, for `kubectl apply -f -` and the like: cluster-wide ones first, then
    /// each namespace's companions and clusters.
    #[must_use]
    pub fn documents(&self) -> Vec<u8> {
        let length = |folder: &Folder| folder.files.values().map(|bytes| bytes.len() + 4).sum::<usize>();
        let mut out = Vec::with_capacity(self.folders.values().map(length).sum());
        let mut paths: Vec<&String> = self.folders.keys().collect();
        paths.sort_by_key(|path| order(path));
        for path in paths {
            let folder = &self.folders[path];
            for name in &folder.documents {
                out.extend_from_slice(b"---\n");
                out.extend_from_slice(&folder.files[name]);
            }
        }
        out
    }
}

/// Sort key of a folder: what others need comes first.
pub(super) fn order(path: &str) -> (bool, &str, bool, &str) {
    match path.split_once('/') {
        None => (false, path, false, ""),
        Some((namespace, name)) => (true, namespace, name != super::names::COMPANIONS_FOLDER, name),
    }
}

impl std::fmt::Debug for Folder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.files.iter().map(|(name, bytes)| (name, bytes.len()))).finish()
    }
}

/// Sizes only: a file may be a Secret.
impl std::fmt::Debug for FileTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter().into_iter().map(|(path, bytes)| (path, bytes.len()))).finish()
    }
}

/// Whether a file of a folder holds objects.
#[must_use]
pub fn is_object_file(name: &str) -> bool {
    name != INDEX_FILE && name != KUSTOMIZATION_FILE
}
