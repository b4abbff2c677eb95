//! Downloads by URL and checksum into a cache, so that compiling needs no network.
//!
//! A file gets its final name, its SHA-256, only when all of it has been compared. What has arrived of a broken download
//! stays beside it and is gone on with. Two runs at once share the work: one downloads, the other waits.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};
use url::Url;

use super::model::Download;
use crate::bundle::hex;
use crate::oci::registry::{Files, NoFile};

/// Bytes of one piece.
const PIECE: usize = 128 << 10;

/// What happens, for whoever shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FetchEvent {
    /// The cache has it.
    Cached,
    /// Another run is downloading the same file.
    Waiting,
    /// It starts, or goes on after `have` bytes; `size` is that of the whole file when the server says so.
    Start {
        /// From where.
        url: String,
        /// What is there already.
        have: u64,
        /// The size of all.
        size: Option<u64>,
    },
    /// So many bytes are there.
    Progress(u64),
    /// An attempt failed; there may be another.
    Retry(String),
}

/// Why a file could not be had.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// Its checksum is another one.
    #[error("{url} has the SHA-256 {got}, and the recipe says {want}")]
    Checksum {
        /// Where it came from.
        url: String,
        /// What the recipe says.
        want: String,
        /// What arrived.
        got: String,
    },
    /// No address gave it.
    #[error("{file} cannot be downloaded: {}", reasons.join("; "))]
    Unreachable {
        /// Its name.
        file: String,
        /// What happened at each address.
        reasons: Vec<String>,
    },
    /// There is no space left.
    #[error("no space left for {}", .0.display())]
    Full(PathBuf),
    /// A file of the cache cannot be written.
    #[error("{} cannot be written: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

/// How one attempt ended when it did not end well.
enum Attempt {
    /// Worth another one, after the time that the server asks for.
    Again(String, Option<Duration>),
    /// Not at this address.
    Never(String),
    /// Nowhere.
    Fatal(FetchError),
}

/// Bytes, the place in the file where they start, and the size of the whole file if it is known.
type Opened = (Box<dyn Read>, u64, Option<u64>);

/// Downloads files into a cache.
pub struct Fetcher {
    folder: PathBuf,
    mirrors: Vec<String>,
    files: Files,
}

impl Fetcher {
    /// A fetcher that keeps files below `cache`. `mirrors` are asked first, for files of the same names.
    #[must_use]
    pub fn new(cache: &Path, mirrors: Vec<String>, files: Files) -> Self {
        Self { folder: cache.join("sources"), mirrors, files }
    }

    /// Where a file is once it has been downloaded.
    #[must_use]
    pub fn path(&self, download: &Download) -> PathBuf {
        self.folder.join(&download.sha256)
    }

    /// Makes sure that the cache has a file and returns its path.
    ///
    /// # Errors
    /// As [`FetchError`] says. What is there of it then is kept for the next attempt, unless its checksum is wrong.
    pub fn fetch(&self, download: &Download, events: &mut dyn FnMut(FetchEvent)) -> Result<PathBuf, FetchError> {
        let path = self.path(download);
        if path.exists() {
            events(FetchEvent::Cached);
            return Ok(path);
        }
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source: io::Error| disk_error(&path, source)
        };
        fs::create_dir_all(&self.folder).map_err(io(&self.folder))?;
        let lock_path = self.folder.join(format!("{}.lock", download.sha256));
        let lock = File::create(&lock_path).map_err(io(&lock_path))?;
        if lock.try_lock().is_err() {
            events(FetchEvent::Waiting);
            lock.lock().map_err(io(&lock_path))?;
        }
        if path.exists() {
            events(FetchEvent::Cached);
            return Ok(path);
        }
        let part = self.folder.join(format!("{}.part", download.sha256));
        if let Err(error) = self.try_addresses(download, &part, events) {
            // Nothing has arrived: then nothing is kept.
            if fs::metadata(&part).is_ok_and(|m| m.len() == 0) {
                let _ = fs::remove_file(&part);
            }
            return Err(error);
        }
        fs::rename(&part, &path).map_err(io(&path))?;
        // Whoever waits for the lock has it open already; nobody else needs it any more.
        let _ = fs::remove_file(&lock_path);
        Ok(path)
    }

    fn try_addresses(
        &self,
        download: &Download,
        part: &Path,
        events: &mut dyn FnMut(FetchEvent),
    ) -> Result<(), FetchError> {
        let mut reasons = Vec::new();
        let of_mirror = |mirror: &String| format!("{}/{}", mirror.trim_end_matches('/'), download.file);
        let addresses: Vec<String> = self.mirrors.iter().map(of_mirror).chain([download.url.clone()]).collect();
        for (index, address) in addresses.iter().enumerate() {
            match self.try_address(address, download, part, events) {
                Ok(()) => return Ok(()),
                Err(Attempt::Fatal(error)) if index + 1 == addresses.len() => return Err(error),
                // A mirror with another file of that name is no reason not to ask the next.
                Err(Attempt::Fatal(error @ FetchError::Checksum { .. })) => reasons.push(error.to_string()),
                Err(Attempt::Fatal(error)) => return Err(error),
                Err(Attempt::Again(reason, _) | Attempt::Never(reason)) => reasons.push(format!("{address}: {reason}")),
            }
        }
        Err(FetchError::Unreachable { file: download.file.clone(), reasons })
    }

    fn try_address(
        &self,
        address: &str,
        download: &Download,
        part: &Path,
        events: &mut dyn FnMut(FetchEvent),
    ) -> Result<(), Attempt> {
        let mut retry = self.files.retry();
        loop {
            let resumed = fs::metadata(part).map(|m| m.len()).unwrap_or(0) > 0;
            let (reason, asked) = match self.once(address, download, part, events) {
                Ok(()) => return Ok(()),
                Err(Attempt::Again(reason, asked)) => (reason, asked),
                // Perhaps only what was there before was wrong.
                Err(Attempt::Fatal(FetchError::Checksum { .. })) if resumed => {
                    ("what was there from an earlier attempt did not fit".to_owned(), None)
                }
                Err(other) => return Err(other),
            };
            events(FetchEvent::Retry(reason.clone()));
            if !retry.again(asked) {
                return Err(Attempt::Again(reason, asked));
            }
        }
    }

    /// One attempt: goes on after what is there.
    fn once(
        &self,
        address: &str,
        download: &Download,
        part: &Path,
        events: &mut dyn FnMut(FetchEvent),
    ) -> Result<(), Attempt> {
        let fatal = |e: io::Error| Attempt::Fatal(disk_error(part, e));
        let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).clone();
        let mut file = options.open(part).map_err(fatal)?;
        let mut hash = Sha256::new();
        let mut have = digest_of(&mut file, &mut hash).map_err(fatal)?;
        let (mut body, from, size) = self.open(address, have)?;
        if from != have {
            file.set_len(0).and_then(|()| file.rewind()).map_err(fatal)?;
            hash = Sha256::new();
            have = 0;
        }
        events(FetchEvent::Start { url: address.to_owned(), have, size });
        let mut piece = vec![0; PIECE];
        loop {
            let count = body.read(&mut piece).map_err(|e| Attempt::Again(format!("after {have} bytes: {e}"), None))?;
            if count == 0 {
                break;
            }
            hash.update(&piece[..count]);
            if let Err(e) = file.write_all(&piece[..count]) {
                // A full disk is not helped by keeping half a file.
                let _ = fs::remove_file(part);
                return Err(fatal(e));
            }
            have += count as u64;
            events(FetchEvent::Progress(have));
        }
        if size.is_some_and(|size| have < size) {
            return Err(Attempt::Again(format!("the connection ended after {have} bytes"), None));
        }
        let got = hex(&hash.finalize());
        if got != download.sha256 {
            fs::remove_file(part).map_err(fatal)?;
            let want = download.sha256.clone();
            return Err(Attempt::Fatal(FetchError::Checksum { url: address.to_owned(), want, got }));
        }
        file.sync_all().map_err(fatal)
    }

    /// The bytes from `have` on, from where they really start, and the size of the whole.
    fn open(&self, address: &str, have: u64) -> Result<Opened, Attempt> {
        if let Some(path) = address.strip_prefix("file://") {
            let never = |e: io::Error| Attempt::Never(e.to_string());
            let mut file = File::open(path).map_err(never)?;
            let size = file.metadata().map_err(never)?.len();
            file.seek(SeekFrom::Start(have.min(size))).map_err(never)?;
            return Ok((Box::new(file), have.min(size), Some(size)));
        }
        let url = Url::parse(address).map_err(|e| Attempt::Never(e.to_string()))?;
        let part = self.files.get(&url, have).map_err(|refusal| match refusal {
            NoFile::Again(why, asked) => Attempt::Again(why, asked),
            NoFile::Never(why) => Attempt::Never(why),
        })?;
        Ok((part.body, part.from, part.size))
    }
}

/// Takes what a file holds into a digest, and returns its length.
fn digest_of(file: &mut File, hash: &mut Sha256) -> io::Result<u64> {
    let mut piece = vec![0; PIECE];
    let mut length = 0;
    loop {
        let count = file.read(&mut piece)?;
        if count == 0 {
            return Ok(length);
        }
        hash.update(&piece[..count]);
        length += count as u64;
    }
}

fn disk_error(path: &Path, source: io::Error) -> FetchError {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FetchError::Full(path.to_owned()),
        _ => FetchError::Io { path: path.to_owned(), source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_told_apart() {
        // ENOSPC, EDQUOT, EACCES.
        for (code, full) in [(28, true), (122, true), (13, false)] {
            let error = disk_error(Path::new("/cache/x.part"), io::Error::from_raw_os_error(code));
            assert_eq!(matches!(error, FetchError::Full(_)), full, "{error}");
        }
    }
}
