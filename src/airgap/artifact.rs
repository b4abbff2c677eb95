//! A folder of bundles as one OCI artifact that Argo CD and Flux CD unpack.
//!
//! Argo CD takes a manifest with exactly one layer of tar, of a media type that it allows (`util/oci/client.go`); Flux CD takes
//! the first layer whatever its media type, if it is gzip (`pkg/oci/pull.go`). So there is one layer of tar and gzip, of the
//! type that both know. Names, modes and contents decide its bytes, and nothing else does: no owner, no time, no order.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroUsize;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::diag::codes::publish as codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::oci::document::{Manifest, empty_object};
use crate::oci::layout::LayoutWriter;
use crate::oci::{Descriptor, Error, ErrorKind, media};
use crate::view::entry::{Content, Facts, Source};
use crate::view::pack::{Compression, Item, ItemKind, Layer, PackError, PackOptions, pack};

/// What Argo CD unpacks of one artifact, in bytes (`--oci-manifest-max-extracted-size` of its repo-server, 1G).
pub const ARGO_CD_LIMIT: u64 = 1_000_000_000;

/// Block of tar, and the longest name that its header has room for.
const BLOCK: u64 = 512;
const LONG_NAME: usize = 100;

/// Kind of an artifact in the form for both.
const ARTIFACT_TYPE: &str = "application/vnd.flux-gen.bundles.v1";
/// What `flux push artifact` writes (fluxcd/pkg/oci, `constants.go`).
const FLUX_CONFIG: &str = "application/vnd.cncf.flux.config.v1+json";
const FLUX_CONTENT: &str = "application/vnd.cncf.flux.content.v1.tar+gzip";

/// Media types of the artifact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// An OCI layer, which Argo CD allows by default and Flux CD takes too.
    #[default]
    Both,
    /// Flux CD's own types, as `flux push artifact` writes them. Argo CD refuses them by default.
    FluxCd,
}

/// The files to publish, by path in the artifact.
#[derive(Debug, Clone, Default)]
pub struct Files {
    files: BTreeMap<String, (PathBuf, Content)>,
    folders: Vec<String>,
}

impl Files {
    /// Finds all files below a folder. Names that begin with a dot are left out: lock and work files of programs.
    ///
    /// # Errors
    /// [`ErrorKind::Store`] when something cannot be read.
    pub fn find(root: &Path) -> Result<(Self, Diagnostics), Error> {
        let mut found = Self::default();
        let mut problems = Diagnostics::new();
        found.add(root, "", &mut problems)?;
        if found.files.is_empty() && !problems.has_errors() {
            let message = format!("{} holds no file", root.display());
            problems.push(Diagnostic::global_error(codes::NOTHING_TO_PUBLISH, message).help("run `flux-gen build`"));
        }
        Ok((found, problems))
    }

    fn add(&mut self, folder: &Path, prefix: &str, problems: &mut Diagnostics) -> Result<(), Error> {
        let failed = |path: &Path, e: &std::io::Error| Error::file("read", path, e);
        let entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let mut entries = entries.map_err(|e| failed(folder, &e))?;
        // What is wrong is told in the same order everywhere.
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (path, name) = (entry.path(), entry.file_name());
            let Some(name) = name.to_str() else {
                problems.push(unpublishable(&path, "its name is not UTF-8"));
                continue;
            };
            if name.starts_with('.') {
                continue;
            }
            let inside = if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") };
            let metadata = fs::symlink_metadata(&path).map_err(|e| failed(&path, &e))?;
            if metadata.is_dir() {
                self.add(&path, &inside, problems)?;
                self.folders.push(inside);
            } else if metadata.is_file() {
                let source = Source::Disk { path: path.clone(), facts: Facts::of(&metadata) };
                self.files.insert(inside, (path, Content { size: metadata.size(), source, shared: None }));
            } else {
                let what = if metadata.is_symlink() { "it is a link" } else { "it is no file" };
                problems.push(unpublishable(&path, what));
            }
        }
        Ok(())
    }

    /// Paths in the artifact and on the disk, in order.
    pub fn paths(&self) -> impl Iterator<Item = (&str, &Path)> {
        self.files.iter().map(|(name, (path, _))| (name.as_str(), path.as_path()))
    }

    /// Number of files.
    #[must_use]
    pub fn count(&self) -> usize {
        self.files.len()
    }

    /// Bytes of the tar stream, from above: a header and padding for each entry, and one more for a long name.
    fn size(&self) -> u64 {
        let long = |name: &str| if name.len() > LONG_NAME { 2 * BLOCK } else { 0 };
        let file = |name: &str, size: u64| BLOCK + long(name) + size.next_multiple_of(BLOCK);
        let folders = self.folders.iter().map(|name| BLOCK + long(name)).sum::<u64>();
        folders + self.files.iter().map(|(name, (_, content))| file(name, content.size)).sum::<u64>() + 2 * BLOCK
    }

    /// What is wrong when they are too many bytes for Argo CD, which counts the tar stream.
    #[must_use]
    pub fn too_large(&self) -> Option<Diagnostic> {
        (self.size() > ARGO_CD_LIMIT).then(|| {
            let message = format!("the files are {} bytes of tar, and Argo CD unpacks {ARGO_CD_LIMIT}", self.size());
            Diagnostic::global_error(codes::ARTIFACT_TOO_LARGE, message)
        })
    }

    /// The layer: folders before what is in them, modes that do not depend on the disk's.
    fn layer(&self) -> Layer<'_> {
        fn item<'a>(path: &'a str, mode: u32, kind: ItemKind<'a>) -> Item<'a> {
            Item { path: path.as_bytes(), mode, xattrs: &[], kind }
        }
        let files = self.files.iter().map(|(path, (_, content))| item(path, 0o644, ItemKind::File(content)));
        let folders = self.folders.iter().map(|path| item(path, 0o755, ItemKind::Folder));
        let mut items: Vec<Item<'_>> = files.chain(folders).collect();
        items.sort_by_key(|item| item.path);
        Layer { items }
    }
}

fn unpublishable(path: &Path, what: &str) -> Diagnostic {
    Diagnostic::global_error(codes::UNPUBLISHABLE, format!("{}: {what}", path.display()))
}

/// Writes the artifact into a layout; gives the descriptor of its manifest. `annotations` are those of the manifest.
///
/// # Errors
/// When a file cannot be read, or changed since it was found, or the layout cannot be written.
pub fn write(
    files: &Files,
    form: Form,
    annotations: &BTreeMap<String, String>,
    threads: NonZeroUsize,
    writer: &LayoutWriter,
) -> Result<Descriptor, Error> {
    let mut blob = writer.blob()?;
    // No time: the layer of the same files is the same, whenever it is made.
    let options = PackOptions { compression: Compression::Gzip, threads, time: 0 };
    pack(&files.layer(), options, &mut blob).map_err(|error| not_packed(&error))?;
    let (_, empty) = empty_object();
    let mut manifest = match form {
        Form::Both => {
            writer.bytes(media::EMPTY, empty)?;
            Manifest::artifact(ARTIFACT_TYPE, vec![blob.finish(media::LAYER_GZIP)?])
        }
        Form::FluxCd => Manifest::new(writer.bytes(FLUX_CONFIG, empty)?, vec![blob.finish(FLUX_CONTENT)?]),
    };
    manifest.annotations.clone_from(annotations);
    writer.json(media::MANIFEST, &manifest)
}

fn not_packed(error: &PackError) -> Error {
    Error::new(ErrorKind::Store, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oci::layout::WriteOptions;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn fill(root: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn digest(root: &Path, form: Form, threads: usize) -> (Descriptor, String) {
        let (files, problems) = Files::find(root).unwrap();
        assert!(problems.iter().next().is_none());
        let out = tempfile::tempdir().unwrap();
        let writer = LayoutWriter::create(&out.path().join("l"), WriteOptions { durable: false }).unwrap();
        let annotations = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        let made = write(&files, form, &annotations, NonZeroUsize::new(threads).unwrap(), &writer).unwrap();
        let index = writer.present().clone();
        let layout = writer.finish(&index).unwrap();
        let text = String::from_utf8(crate::oci::source::small(&layout, &made).unwrap()).unwrap();
        (made, text)
    }

    const FILES: [(&str, &str); 4] = [("b/x.yaml", "1"), ("b-c/y.yaml", "2"), ("a/d/z.json", "3"), ("top.yaml", "4")];

    #[test]
    fn the_same_files_give_the_same_bytes() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fill(one.path(), &FILES);
        let mut turned = FILES;
        turned.reverse();
        fill(other.path(), &turned);
        fs::set_permissions(other.path().join("top.yaml"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::File::open(other.path().join("b")).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        fill(other.path(), &[(".git/config", "x"), ("a/.lock", "x")]);
        let (first, text) = digest(one.path(), Form::Both, 1);
        assert_eq!(digest(other.path(), Form::Both, 3).0.digest, first.digest);
        assert!(text.contains(r#""artifactType":"application/vnd.flux-gen.bundles.v1""#), "{text}");
        assert!(text.contains(r#""layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip""#), "{text}");
        let (flux, text) = digest(one.path(), Form::FluxCd, 1);
        assert_ne!(flux.digest, first.digest);
        assert!(text.contains(FLUX_CONFIG) && text.contains(FLUX_CONTENT) && !text.contains("artifactType"), "{text}");
        fill(other.path(), &[("top.yaml", "5")]);
        assert_ne!(digest(other.path(), Form::Both, 1).0.digest, first.digest);
    }

    #[test]
    fn another_reader_finds_the_files_in_order() {
        let root = tempfile::tempdir().unwrap();
        fill(root.path(), &FILES);
        let (files, _) = Files::find(root.path()).unwrap();
        let mut bytes = Vec::new();
        let options = PackOptions { compression: Compression::Gzip, threads: NonZeroUsize::MIN, time: 0 };
        pack(&files.layer(), options, &mut bytes).unwrap();
        let mut archive = tar::Archive::new(flate2::read::MultiGzDecoder::new(bytes.as_slice()));
        let entries = archive.entries().unwrap().map(|entry| {
            let entry = entry.unwrap();
            let (header, path) = (entry.header(), entry.path().unwrap().display().to_string());
            assert_eq!((header.uid().unwrap(), header.gid().unwrap(), header.mtime().unwrap()), (0, 0, 0));
            format!("{path} {:o}", header.mode().unwrap())
        });
        let expect = ["a/ 755", "a/d/ 755", "a/d/z.json 644", "b/ 755", "b-c/ 755", "b-c/y.yaml 644", "b/x.yaml 644"];
        let found: Vec<String> = entries.collect();
        assert_eq!(found[..7], expect);
    }

    #[test]
    fn links_empty_folders_and_too_much() {
        let root = tempfile::tempdir().unwrap();
        let codes = |found: Diagnostics| found.iter().map(|d| d.code.id).collect::<Vec<_>>();
        assert_eq!(codes(Files::find(root.path()).unwrap().1), ["FG953"]);
        symlink("nowhere", root.path().join("link")).unwrap();
        assert_eq!(codes(Files::find(root.path()).unwrap().1), ["FG951"]);
        fs::remove_file(root.path().join("link")).unwrap();
        let large = fs::File::create(root.path().join("large")).unwrap();
        // Header, content, end.
        large.set_len(ARGO_CD_LIMIT - 3 * BLOCK).unwrap();
        assert!(Files::find(root.path()).unwrap().0.too_large().is_none());
        large.set_len(ARGO_CD_LIMIT - 3 * BLOCK + 1).unwrap();
        assert_eq!(Files::find(root.path()).unwrap().0.too_large().unwrap().code.id, "FG952");
        assert!(Files::find(&root.path().join("gone")).is_err());
    }
}
