//! What was packed before: for each layer a key made of everything that decides its bytes, files by their state and not by
//! their content, so that an unchanged tree is not read again.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::elf::Elf;
use super::entry::Facts;
use super::pack::{Compression, ItemKind, Layer};
use super::tree::KeptTrees;
use crate::bundle::hex;
use crate::model::fit::ImageFacts;
use crate::oci::Digest;
use crate::oci::kept::mark_used;
use crate::oci::layout::Removed;

/// Raised when anything changes that decides a layer's bytes and is not in the key, or when other facts are read of programs.
const FORMAT: u32 = 2;

/// Raised when other facts are read of an image, or in another way.
const FACTS: u32 = 1;

/// A layer that was packed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cached {
    /// Digest of the blob.
    pub digest: String,
    /// Its bytes.
    pub size: u64,
    /// Digest of the tar stream.
    pub diff_id: String,
    /// Its bytes.
    pub tar_size: u64,
    /// Programs and libraries by path (bytes that are no text replaced).
    pub elves: BTreeMap<String, Elf>,
}

/// Makes keys of fields.
#[derive(Debug, Default)]
pub(super) struct Fields(Sha256);

impl Fields {
    /// Adds a field with its length, so that no two lists of fields look alike.
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// The key of all fields.
    pub(super) fn hex(self) -> String {
        hex(&self.0.finalize())
    }
}

/// The key of a layer.
#[must_use]
pub fn key(layer: &Layer<'_>, compression: Compression, time: u64) -> String {
    let mut fields = Fields::default();
    let mut field = |bytes: &[u8]| fields.add(bytes);
    field(format!("{FORMAT} {} {time}", compression.encoder()).as_bytes());
    for item in &layer.items {
        field(item.path);
        field(&item.mode.to_le_bytes());
        for (name, value) in item.xattrs {
            field(name);
            field(value);
        }
        match item.kind {
            ItemKind::Folder => field(b"folder"),
            ItemKind::Link(target) => {
                field(b"link");
                field(target);
            }
            ItemKind::HardLink(target) => {
                field(b"hard link");
                field(target);
            }
            ItemKind::File(content) => {
                field(b"file");
                field(&content.size.to_le_bytes());
                field(content.identity().as_bytes());
            }
        }
    }
    fields.hex()
}

/// A folder of what is known of layers and archives. Writers replace whole files, so any number of builds may use it at once.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// The cache in a folder, which is made when something is kept.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self { folder: folder.to_path_buf() }
    }

    /// What was read of archives.
    #[must_use]
    pub fn trees(&self) -> KeptTrees {
        KeptTrees::new(&self.folder.join("trees"))
    }

    /// Removes what was not used since `before`, in nanoseconds since 1970; without `really` it is only counted.
    ///
    /// # Errors
    /// When a file cannot be removed.
    pub fn prune(&self, before: i128, really: bool) -> io::Result<Removed> {
        let mut removed = Removed::default();
        prune(&self.folder, before, really, &mut removed)?;
        Ok(removed)
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join("layers").join(format!("{key}.json"))
    }

    /// What is known of a layer. A file that cannot be read is as good as none.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Cached> {
        read(&self.path(key))
    }

    /// Keeps a layer.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put(&self, key: &str, cached: &Cached) -> io::Result<()> {
        write(&self.folder.join("layers"), &self.path(key), cached)
    }

    fn facts_path(&self, image: &Digest) -> PathBuf {
        self.folder.join("facts").join(format!("{}-{FACTS}.json", image.hex()))
    }

    /// What an application's image has, by the digest of its manifest.
    #[must_use]
    pub fn facts(&self, image: &Digest) -> Option<ImageFacts> {
        read(&self.facts_path(image))
    }

    /// Keeps what an application's image has.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn put_facts(&self, image: &Digest, facts: &ImageFacts) -> io::Result<()> {
        write(&self.folder.join("facts"), &self.facts_path(image), facts)
    }
}

/// A file of the cache, marked as used.
fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let value = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    mark_used(path);
    Some(value)
}

/// Replaces a whole file.
fn write<T: Serialize>(folder: &Path, path: &Path, value: &T) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(&serde_json::to_vec(value)?)?;
    file.persist(path).map_err(|e| e.error)?;
    Ok(())
}

/// Removes what was not used since `before` from a folder and those in it.
fn prune(folder: &Path, before: i128, really: bool, removed: &mut Removed) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            prune(&entry.path(), before, really, removed)?;
        } else if Facts::of(&metadata).modified < before {
            removed.add(metadata.len());
            if really {
                fs::remove_file(entry.path())?;
            }
        }
    }
    Ok(())
}

/// A path as the cache has it.
#[must_use]
pub fn text(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::entry::{Entry, Tree, TreePath};

    #[test]
    fn keys_tell_layers_apart() {
        let mut tree = Tree::default();
        tree.entries.insert(b"a".to_vec(), Entry::made(b"x", 0o644));
        tree.entries.insert(b"b".to_vec(), Entry::link("a"));
        let key_of = |tree: &Tree, compression, time| {
            let paths: Vec<TreePath> = tree.entries.keys().cloned().collect();
            key(&Layer::of(tree, &paths), compression, time)
        };
        let mut keys = vec![
            key_of(&tree, Compression::Gzip, 0),
            key_of(&tree, Compression::Zstd, 0),
            key_of(&tree, Compression::Gzip, 1),
        ];
        for (path, entry) in [
            (b"a", Entry::made(b"y", 0o644)),
            (b"a", Entry::made(b"x", 0o755)),
            (b"b", Entry::link("c")),
            (b"b", Entry::folder()),
        ] {
            let mut other = tree.clone();
            other.entries.insert(path.to_vec(), entry);
            keys.push(key_of(&other, Compression::Gzip, 0));
        }
        assert_eq!(keys[0], key_of(&tree.clone(), Compression::Gzip, 0));
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 7);
    }

    #[test]
    fn kept_and_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(&folder.path().join("cache"));
        let cached = Cached {
            digest: "sha256:a".into(),
            size: 1,
            diff_id: "sha256:b".into(),
            tar_size: 2,
            elves: [("x".to_owned(), Elf::default())].into(),
        };
        assert_eq!(cache.get("k"), None);
        cache.put("k", &cached).unwrap();
        assert_eq!(cache.get("k"), Some(cached));
        let (image, facts) = (Digest::of(b"image"), ImageFacts { bash: true, ..ImageFacts::default() });
        assert_eq!(cache.facts(&image), None);
        cache.put_facts(&image, &facts).unwrap();
        assert_eq!((cache.facts(&image), cache.facts(&Digest::of(b"other"))), (Some(facts), None));
        fs::write(cache.path("k"), "{").unwrap();
        assert_eq!(cache.get("k"), None);
    }
}
