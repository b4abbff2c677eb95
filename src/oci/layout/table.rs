//! Where the files of a tar archive are, so that they can be read without unpacking anything.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tar::EntryType;

use super::super::digest::Digest;
use super::super::document::{DOCUMENT_LIMIT, check_size};
use super::super::error::{Error, ErrorKind};
use super::super::media::Compression;
use super::super::source::Bytes;
use super::{Limits, plain_name};

/// Most links that lead to one file.
const MAX_LINKS: usize = 8;
/// Longest name of an entry in bytes.
const NAME_LIMIT: usize = 4096;

/// The files of an archive.
#[derive(Debug)]
pub(super) struct Table {
    path: PathBuf,
    file: Arc<File>,
    /// Name to offset and size.
    files: BTreeMap<String, (u64, u64)>,
    /// Name to the name that it stands for, both as plain names.
    links: BTreeMap<String, String>,
}

impl Table {
    /// Reads all headers. A whole archive in gzip or zstd is decompressed first.
    pub(super) fn open(path: &Path, limits: &Limits) -> Result<Self, Error> {
        let failed = |e: &io::Error| Error::file("read", path, e);
        let mut file = File::open(path).map_err(|e| failed(&e))?;
        let mut start = [0; 4];
        let count = read_up_to(&mut file, &mut start).map_err(|e| failed(&e))?;
        file.seek(SeekFrom::Start(0)).map_err(|e| failed(&e))?;
        let file = match Compression::sniff(&start[..count]) {
            Compression::None => file,
            Compression::Gzip => spool(path, flate2::read::MultiGzDecoder::new(BufReader::new(file)), limits)?,
            Compression::Zstd => {
                let decoder = zstd::stream::read::Decoder::new(file).map_err(|e| failed(&e))?;
                spool(path, decoder, limits)?
            }
        };
        let mut table =
            Self { path: path.to_owned(), file: Arc::new(file), files: BTreeMap::new(), links: BTreeMap::new() };
        table.index(limits)?;
        Ok(table)
    }

    fn index(&mut self, limits: &Limits) -> Result<(), Error> {
        let path = self.path.clone();
        let broken = |e: &io::Error| self::broken(&path, &super::super::error::plain(e));
        let length = self.file.metadata().map_err(|e| Error::file("read", &path, &e))?.len();
        let mut archive = tar::Archive::new(Whole { file: Arc::clone(&self.file), at: 0, length });
        let mut count = 0;
        for entry in archive.entries_with_seek().map_err(|e| broken(&e))? {
            let entry = entry.map_err(|e| match count {
                0 => super::not_a_layout(&path, "it is no tar archive"),
                _ => broken(&e),
            })?;
            count += 1;
            if count > limits.entries {
                return Err(self::broken(&path, &format!("it has more than {} entries", limits.entries)));
            }
            let raw = entry.path_bytes();
            if raw.len() > NAME_LIMIT {
                return Err(self::broken(&path, "a name has more than 4096 bytes"));
            }
            let shown = String::from_utf8_lossy(&raw).into_owned();
            let name = plain_name(&shown).map_err(|why| self::broken(&path, &format!("the entry `{shown}` {why}")))?;
            let (offset, size) = (entry.raw_file_position(), entry.size());
            if offset.checked_add(size).is_none_or(|end| end > length) {
                return Err(self::broken(&path, &format!("it ends in the middle of `{name}`")));
            }
            let link = entry.link_name_bytes().map(|b| String::from_utf8_lossy(&b).into_owned());
            self.add(name, entry.header().entry_type(), (offset, size), link.as_deref())?;
        }
        if count == 0 {
            return Err(super::not_a_layout(&path, "it is an empty archive"));
        }
        Ok(())
    }

    fn add(&mut self, name: &str, kind: EntryType, place: (u64, u64), link: Option<&str>) -> Result<(), Error> {
        match kind {
            EntryType::Directory => return Ok(()),
            EntryType::Regular | EntryType::Continuous => {}
            EntryType::Symlink | EntryType::Link => {
                let target = link.unwrap_or_default();
                let base =
                    if kind == EntryType::Symlink { name.rsplit_once('/').map_or("", |(base, _)| base) } else { "" };
                let target = resolve(base, target).ok_or_else(|| {
                    broken(&self.path, &format!("the link `{name}` to `{target}` leaves the archive"))
                })?;
                if self.files.contains_key(name) || self.links.insert(name.to_owned(), target).is_some() {
                    return Err(broken(&self.path, &format!("`{name}` is in it twice")));
                }
                return Ok(());
            }
            other => {
                let message = format!("the entry `{name}` is no plain file (type {:?})", char::from(other.as_byte()));
                return Err(broken(&self.path, &message));
            }
        }
        if self.links.contains_key(name) || self.files.insert(name.to_owned(), place).is_some() {
            return Err(broken(&self.path, &format!("`{name}` is in it twice")));
        }
        Ok(())
    }

    /// Offset and size of a file, through links.
    pub(super) fn place(&self, name: &str) -> Option<(u64, u64)> {
        let mut name = plain_name(name).ok()?;
        for _ in 0..MAX_LINKS {
            if let Some(place) = self.files.get(name) {
                return Some(*place);
            }
            name = self.links.get(name)?;
        }
        None
    }

    /// A whole small file; `None` when there is none.
    pub(super) fn small(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let Some((offset, size)) = self.place(name) else { return Ok(None) };
        check_size(&format!("{}: {name}", self.path.display()), size)?;
        let mut bytes = Vec::new();
        let reader = self.range(offset, size);
        reader.take(DOCUMENT_LIMIT).read_to_end(&mut bytes).map_err(|e| Error::file("read", &self.path, &e))?;
        Ok(Some(bytes))
    }

    /// The bytes of a file.
    pub(super) fn open_file(&self, name: &str) -> Option<Bytes> {
        self.place(name).map(|(offset, size)| self.range(offset, size))
    }

    /// Bytes of the archive file.
    pub(super) fn range(&self, offset: u64, size: u64) -> Bytes {
        Box::new(Whole { file: Arc::clone(&self.file), at: offset, length: offset.saturating_add(size) })
    }

    /// Names and sizes.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, u64)> {
        self.files.iter().map(|(name, (_, size))| (name.as_str(), *size))
    }

    /// Blobs of a layout.
    pub(super) fn blobs(&self) -> BTreeMap<Digest, (u64, u64)> {
        let blob = |name: &str| {
            let (algorithm, hex) = name.strip_prefix("blobs/")?.split_once('/')?;
            format!("{algorithm}:{hex}").parse::<Digest>().ok()
        };
        let files = self.files.keys().chain(self.links.keys());
        files.filter_map(|name| Some((blob(name)?, self.place(name)?))).collect()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

/// `base/target` without `.` and `..`; `None` when it leaves the archive.
fn resolve(base: &str, target: &str) -> Option<String> {
    if target.starts_with('/') || target.contains('\0') {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in base.split('/').chain(target.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

pub(super) fn broken(path: &Path, why: &str) -> Error {
    Error::new(ErrorKind::Archive, format!("{} cannot be used: {why}", path.display()))
        .help("make the archive again with skopeo, podman save, docker save or flux-gen")
}

fn read_up_to(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut count = 0;
    while count < buffer.len() {
        match file.read(&mut buffer[count..])? {
            0 => break,
            more => count += more,
        }
    }
    Ok(count)
}

/// Decompresses to a file without a name, up to a limit.
fn spool(path: &Path, mut reader: impl Read, limits: &Limits) -> Result<File, Error> {
    let beside = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = limits.spool.as_deref().unwrap_or(beside);
    let write_failed = |e: &io::Error| Error::file("unpack the archive to", folder, e);
    let mut file = tempfile::tempfile_in(folder).map_err(|e| write_failed(&e))?;
    let mut buffer = vec![0; 1 << 16];
    let mut total: u64 = 0;
    loop {
        let count = reader.read(&mut buffer).map_err(|e| broken(path, &super::super::error::plain(&e)))?;
        if count == 0 {
            break;
        }
        total += count as u64;
        if total > limits.unpacked {
            return Err(broken(path, &format!("it unpacks to more than {} bytes", limits.unpacked)));
        }
        file.write_all(&buffer[..count]).map_err(|e| write_failed(&e))?;
    }
    file.seek(SeekFrom::Start(0)).map_err(|e| write_failed(&e))?;
    Ok(file)
}

/// A part of a file with a position of its own, so that many can be read at once.
#[derive(Debug)]
struct Whole {
    file: Arc<File>,
    at: u64,
    /// Offset after the last byte.
    length: u64,
}

impl Read for Whole {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.length.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let most = left.min(buffer.len());
        let count = self.file.read_at(&mut buffer[..most], self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Whole {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.length.checked_add_signed(by),
        };
        self.at = target.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
