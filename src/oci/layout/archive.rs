//! Writing a layout as one tar archive: the same images give the same bytes. Small files come first and big blobs last, so
//! that whoever reads a stream knows early what is coming.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::super::descriptor::Descriptor;
use super::super::digest::Digest;
use super::super::error::{Error, ErrorKind};
use super::super::source::{self, Source};
use super::{OCI_LAYOUT, plain_name};

/// What goes into an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// Bytes of `index.json`.
    pub index: Vec<u8>,
    /// Other files by name; they come after `index.json` in order of their names.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Blobs, documents among them; each is written once.
    pub blobs: Vec<Descriptor>,
}

/// Writes an archive as a stream. `seen` gets the number of bytes of each step of a blob.
///
/// # Errors
/// When a blob is missing or not what its digest says, a name leaves the archive, or `out` fails.
pub fn write(
    source: &dyn Source,
    contents: &Contents,
    out: impl Write,
    place: &Path,
    seen: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let failed = |e: io::Error| Error::from_io("write", place, &e);
    let mut builder = tar::Builder::new(out);
    put(&mut builder, "oci-layout", OCI_LAYOUT.len() as u64, OCI_LAYOUT).map_err(failed)?;
    put(&mut builder, "index.json", contents.index.len() as u64, contents.index.as_slice()).map_err(failed)?;
    for (name, bytes) in &contents.files {
        let reserved = name == "oci-layout" || name == "index.json" || name.starts_with("blobs/");
        if reserved || plain_name(name) != Ok(name) || name.is_empty() {
            return Err(Error::new(ErrorKind::Archive, format!("`{name}` cannot be a file of an archive")));
        }
        put(&mut builder, name, bytes.len() as u64, bytes.as_slice()).map_err(failed)?;
    }
    let mut written: BTreeSet<&Digest> = BTreeSet::new();
    let mut blobs: Vec<&Descriptor> = contents.blobs.iter().filter(|d| written.insert(&d.digest)).collect();
    blobs.sort_by_key(|d| (d.size, &d.digest));
    for blob in blobs {
        let reader = Counted { inner: source::open(source, blob)?, seen };
        put(&mut builder, &blob.digest.blob_path(), blob.size, reader).map_err(failed)?;
    }
    builder.into_inner().and_then(|mut out| out.flush()).map_err(failed)
}

/// Writes an archive to a file that appears under its name when it is complete.
///
/// # Errors
/// As [`write`], and when the file cannot be made or moved into place.
pub fn save(
    source: &dyn Source,
    contents: &Contents,
    path: &Path,
    durable: bool,
    seen: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let failed = |e: &io::Error| Error::file("write", path, e);
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let permissions = fs::Permissions::from_mode(0o644);
    let file = tempfile::Builder::new().prefix(".flux-gen-").permissions(permissions).tempfile_in(folder);
    let mut file = file.map_err(|e| failed(&e))?;
    write(source, contents, BufWriter::with_capacity(1 << 17, file.as_file_mut()), path, seen)?;
    if durable {
        file.as_file().sync_all().map_err(|e| failed(&e))?;
    }
    file.persist(path).map_err(|e| failed(&e.error))?;
    if durable {
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(|e| failed(&e))?;
    }
    Ok(())
}

/// One entry: owner, mode and time are fixed.
fn put<W: Write>(builder: &mut tar::Builder<W>, name: &str, size: u64, content: impl Read) -> io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    builder.append_data(&mut header, name, content)
}

/// Tells how much was read. The writer reads to the end, where the check of digest and size takes place.
struct Counted<'a, R> {
    inner: R,
    seen: &'a mut dyn FnMut(u64),
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        (self.seen)(count as u64);
        Ok(count)
    }
}
