//! Writes an archive. Every member has its place in the file from the beginning, so blobs are fetched at the same time, each
//! into its own place, with no copy anywhere else.
//!
//! Until it is whole the file is called `FILE.partial`. It is its own journal: the header of a member is written after its
//! content, so what has a right header was complete once, and is checked against its digest when somebody goes on.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use super::Problem;
use super::contents::{Content, Contents, END, Member};
use crate::diag::codes::airgap as codes;
use crate::oci::digest::{Hasher, VerifyReader};
use crate::oci::source;
use crate::oci::tar::padding;
use crate::oci::transfer::{Event, Events, Step, Summary, each};
use crate::oci::{Descriptor, Error};

/// What one read takes.
const BUFFER: usize = 256 << 10;
/// What the file is called until it is whole.
const PARTIAL: &str = ".partial";

/// How to save.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaveOptions {
    /// How many blobs at the same time; at least one.
    pub parallel: usize,
    /// Whether the file is on the disk when this returns.
    pub durable: bool,
}

/// Path of the file until it is whole.
#[must_use]
pub fn partial(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(PARTIAL);
    PathBuf::from(name)
}

/// Writes an archive. What an earlier run left in `FILE.partial` is checked and kept.
///
/// # Errors
/// The first thing that did not work; the file has its name only when everything is in it.
pub fn save(contents: &Contents, path: &Path, options: SaveOptions, events: &dyn Events) -> Result<Summary, Problem> {
    if path.is_dir() {
        let message = format!("{} is a folder", path.display());
        return Err(Problem::new(codes::ARCHIVE_STALE, message).help("name the file for the archive"));
    }
    let partial = Partial::open(path)?;
    partial.reserve(contents.size)?;
    let blobs = contents.members.iter().filter(|member| matches!(member.content, Content::Blob(..)));
    let (count, bytes) = blobs.fold((0, 0), |(count, bytes), blob| (count + 1, bytes + blob.size));
    let documents = contents.blobs() - count;
    events.event(&Event::Planned { blobs: count, bytes, documents });
    let summary = partial.fill(contents, options.parallel, events)?;
    partial.finish(contents.size, options.durable)?;
    Ok(summary)
}

/// The file while it is written. Nobody else writes it: it is locked as long as this lives.
struct Partial {
    file: File,
    path: PathBuf,
    target: PathBuf,
    /// Whether there is something of an earlier run.
    used: bool,
}

impl Partial {
    fn open(target: &Path) -> Result<Self, Problem> {
        let path = partial(target);
        let failed = |e: io::Error| Problem::file("write", &path, &e);
        loop {
            let mut options = OpenOptions::new();
            let file = options.read(true).write(true).create(true).truncate(false).open(&path).map_err(failed)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let message = format!("somebody else writes {} just now", path.display());
                    return Err(Problem::new(codes::ARCHIVE_BUSY, message).help("wait until that is done"));
                }
                Err(TryLockError::Error(e)) => return Err(failed(e)),
            }
            // Whoever held the lock before may have given the file its name meanwhile.
            let mine = file.metadata().map_err(failed)?;
            match std::fs::metadata(&path) {
                Ok(there) if (there.dev(), there.ino()) == (mine.dev(), mine.ino()) => {
                    return Ok(Self { file, path, target: target.to_owned(), used: mine.len() > 0 });
                }
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => return Err(failed(e)),
            }
        }
    }

    fn failed(&self, error: &io::Error) -> Problem {
        Problem::file("write", &self.path, error)
    }

    /// Takes the room for the whole file, so that a full disk is known now and not after hours.
    fn reserve(&self, size: u64) -> Result<(), Problem> {
        let there = self.file.metadata().map_err(|e| self.failed(&e))?.len();
        if there > size {
            self.file.set_len(size).map_err(|e| self.failed(&e))?;
        }
        match rustix::fs::fallocate(&self.file, rustix::fs::FallocateFlags::empty(), 0, size) {
            Ok(()) => Ok(()),
            // Not every file system can.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS | rustix::io::Errno::INVAL) => {
                self.file.set_len(size).map_err(|e| self.failed(&e))
            }
            Err(errno) => {
                let mut problem = self.failed(&errno.into());
                if !self.used {
                    // Nothing is in it that anybody could go on with.
                    std::fs::remove_file(&self.path).map_err(|e| self.failed(&e))?;
                }
                problem.message = format!("{} (the archive has {size} bytes)", problem.message);
                Err(problem)
            }
        }
    }

    /// Writes what is not there yet: first what is at hand, then blobs, the largest first.
    fn fill(&self, contents: &Contents, parallel: usize, events: &dyn Events) -> Result<Summary, Problem> {
        let there: Vec<bool> = match self.used {
            true => contents.members.par_iter().map(|member| self.has(member)).collect::<Result<_, _>>()?,
            false => vec![false; contents.members.len()],
        };
        let mut summary = Summary::default();
        let mut missing: Vec<(&Descriptor, &Member)> = Vec::new();
        for (member, there) in contents.members.iter().zip(there) {
            match (&member.content, there) {
                (Content::Blob(blob, _), true) => {
                    summary.present += 1;
                    events.event(&Event::Blob { blob, step: Step::Present });
                }
                (Content::Blob(blob, _), false) => missing.push((blob, member)),
                (Content::Bytes(_) | Content::File(_), true) => {}
                (Content::Bytes(bytes), false) => self.put(member, bytes.as_slice(), &mut |_| ())?,
                (Content::File(path), false) => self.put_file(member, path)?,
            }
        }
        let order: Vec<Descriptor> = missing.iter().map(|(blob, _)| Descriptor::clone(blob)).collect();
        each(parallel, &order, |blob| {
            let found = missing.iter().find(|(other, _)| other.digest == blob.digest);
            found.map_or(Ok(()), |(blob, member)| self.fetch(blob, member, events))
        })?;
        summary.moved = order.len();
        summary.bytes = order.iter().map(|blob| blob.size).sum();
        Ok(summary)
    }

    fn fetch(&self, blob: &Descriptor, member: &Member, events: &dyn Events) -> Result<(), Problem> {
        let Content::Blob(_, place) = &member.content else { return Ok(()) };
        let mut done = 0;
        self.put(member, source::open(place.as_ref(), blob)?, &mut |count| {
            done += count;
            events.event(&Event::Blob { blob, step: Step::At(done) });
        })?;
        events.event(&Event::Blob { blob, step: Step::Done });
        Ok(())
    }

    /// A file of the project, which must not have changed since its digest was taken.
    fn put_file(&self, member: &Member, path: &Path) -> Result<(), Problem> {
        let file = File::open(path).map_err(|e| Problem::file("read", path, &e))?;
        let reader = VerifyReader::new(file, &member.digest, Some(member.size), path.display().to_string());
        self.put(member, reader, &mut |_| ()).map_err(|problem| {
            if problem.code != crate::diag::codes::oci::DIGEST_MISMATCH {
                return problem;
            }
            Problem::new(codes::ARCHIVE_STALE, format!("{} changed while it was read", path.display()))
                .help("run the same command again")
        })
    }

    /// Content, padding, and then the header, which says that the rest is there. The reader checks what it reads.
    fn put(&self, member: &Member, mut reader: impl Read, seen: &mut dyn FnMut(u64)) -> Result<(), Problem> {
        let header = member.header();
        let start = member.offset + header.len() as u64;
        let mut buffer = vec![0; BUFFER.min(usize::try_from(member.size).unwrap_or(BUFFER).max(1))];
        let mut at = 0;
        loop {
            let count = match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(Error::from_io("read", Path::new(&member.name), &e).into()),
            };
            if at + count as u64 > member.size {
                return Err(self.failed(&io::ErrorKind::FileTooLarge.into()));
            }
            self.file.write_all_at(&buffer[..count], start + at).map_err(|e| self.failed(&e))?;
            at += count as u64;
            seen(count as u64);
        }
        if at != member.size {
            return Err(Error::from_io("read", Path::new(&member.name), &io::ErrorKind::UnexpectedEof.into()).into());
        }
        let zeros = vec![0; padding(member.size)];
        self.file.write_all_at(&zeros, start + at).map_err(|e| self.failed(&e))?;
        self.file.write_all_at(&header, member.offset).map_err(|e| self.failed(&e))
    }

    /// Whether a member is there as it should be.
    fn has(&self, member: &Member) -> Result<bool, Problem> {
        let header = member.header();
        let mut there = vec![0; header.len()];
        self.file.read_exact_at(&mut there, member.offset).map_err(|e| self.failed(&e))?;
        if there != header {
            return Ok(false);
        }
        let mut at = member.offset + header.len() as u64;
        let mut left = member.size;
        let mut hasher = Hasher::new(member.digest.algorithm());
        let mut buffer = vec![0; BUFFER];
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(BUFFER).min(BUFFER);
            self.file.read_exact_at(&mut buffer[..most], at).map_err(|e| self.failed(&e))?;
            hasher.update(&buffer[..most]);
            at += most as u64;
            left -= most as u64;
        }
        let mut rest = vec![0; padding(member.size)];
        self.file.read_exact_at(&mut rest, at).map_err(|e| self.failed(&e))?;
        Ok(hasher.finish() == member.digest && rest.iter().all(|byte| *byte == 0))
    }

    /// The end of the file, and its name.
    fn finish(&self, size: u64, durable: bool) -> Result<(), Problem> {
        self.file.write_all_at(&[0; END as usize], size - END).map_err(|e| self.failed(&e))?;
        if durable {
            self.file.sync_all().map_err(|e| self.failed(&e))?;
        }
        std::fs::rename(&self.path, &self.target).map_err(|e| Problem::file("write", &self.target, &e))?;
        if durable {
            let folder = self.target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
            File::open(folder).and_then(|f| f.sync_all()).map_err(|e| Problem::file("write", folder, &e))?;
        }
        Ok(())
    }
}
