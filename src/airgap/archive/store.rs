//! The members of an archive that may be damaged: unlike [`super::Archive`] it does not need anything to be right.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Problem;
use super::scan::{Damage, Found, scan};
use crate::oci::source::Bytes;
use crate::oci::{Descriptor, Error, ErrorKind, Source};

/// The members by name.
#[derive(Debug)]
pub(super) struct Store {
    path: PathBuf,
    /// The archive file; none for a folder.
    file: Option<Arc<File>>,
    pub(super) members: BTreeMap<String, Found>,
    /// Names in the order of the file; that of the names for a folder.
    pub(super) order: Vec<String>,
    pub(super) damages: Vec<Damage>,
}

impl Store {
    pub(super) fn open(path: &Path) -> Result<Self, Problem> {
        let failed = |e: io::Error| Problem::file("read", path, &e);
        let metadata = std::fs::metadata(path).map_err(failed)?;
        let (file, found, damages) = if metadata.is_dir() {
            let mut found = Vec::new();
            list(path, "", &mut found)?;
            (None, found, Vec::new())
        } else {
            let file = File::open(path).map_err(failed)?;
            let (found, damages) = scan(&file, metadata.len()).map_err(failed)?;
            (Some(Arc::new(file)), found, damages)
        };
        let order = found.iter().map(|member| member.name.clone()).collect();
        let members = found.into_iter().map(|member| (member.name.clone(), member)).collect();
        Ok(Self { path: path.to_owned(), file, members, order, damages })
    }

    /// What messages call it.
    pub(super) fn path_shown(&self) -> String {
        self.path.display().to_string()
    }

    pub(super) fn is_folder(&self) -> bool {
        self.file.is_none()
    }

    /// Where a member is, for messages: its name, and its offset in a file.
    pub(super) fn place(&self, name: &str) -> String {
        match self.members.get(name) {
            Some(member) if !self.is_folder() => format!("{name} (at offset {})", member.offset),
            _ => name.to_owned(),
        }
    }

    /// The bytes of a member, not checked.
    pub(super) fn read(&self, name: &str) -> Result<Bytes, Error> {
        let missing = || Error::new(ErrorKind::Missing, format!("{} has no {name}", self.path.display()));
        let member = self.members.get(name).ok_or_else(missing)?;
        match &self.file {
            Some(file) => Ok(Box::new(Part { file: Arc::clone(file), at: member.offset, left: member.size })),
            None => {
                let path = self.path.join(name);
                Ok(Box::new(File::open(&path).map_err(|e| Error::file("read", &path, &e))?))
            }
        }
    }

    /// All bytes of a member of at most `limit` bytes.
    pub(super) fn whole(&self, name: &str, limit: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let read = self.read(name)?.take(limit + 1).read_to_end(&mut bytes);
        read.map_err(|e| Error::from_io("read", &self.path, &e))?;
        if bytes.len() as u64 > limit {
            return Err(Error::new(ErrorKind::Archive, format!("{name} has more than {limit} bytes")));
        }
        Ok(bytes)
    }
}

/// Files below a folder, in order of their names. Links are not followed: an archive has none.
fn list(root: &Path, below: &str, found: &mut Vec<Found>) -> Result<(), Problem> {
    let folder = root.join(below);
    let failed = |e: io::Error| Problem::file("read", &folder, &e);
    let mut entries = std::fs::read_dir(&folder).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(failed)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let name = if below.is_empty() { name } else { format!("{below}/{name}") };
        let metadata = entry.metadata().map_err(failed)?;
        if metadata.is_dir() {
            list(root, &name, found)?;
        } else {
            found.push(Found { name, header: 0, offset: 0, size: metadata.len() });
        }
    }
    Ok(())
}

impl Source for Store {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn size(&self, descriptor: &Descriptor) -> Result<Option<u64>, Error> {
        Ok(self.members.get(&descriptor.digest.blob_path()).map(|member| member.size))
    }

    fn read(&self, descriptor: &Descriptor, offset: u64) -> Result<Bytes, Error> {
        let mut reader = self.read(&descriptor.digest.blob_path())?;
        io::copy(&mut (&mut reader).take(offset), &mut io::sink()).map_err(|e| Error::file("read", &self.path, &e))?;
        Ok(reader)
    }
}

/// A part of a file with a position of its own.
struct Part {
    file: Arc<File>,
    at: u64,
    left: u64,
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(buffer.len()).min(buffer.len());
        let count = self.file.read_at(&mut buffer[..most], self.at)?;
        self.at += count as u64;
        self.left -= count as u64;
        Ok(count)
    }
}
