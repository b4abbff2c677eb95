//! A compressed archive as a plain one: read once, into a file without a name that vanishes with its last user.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::ReadError;
use crate::view::entry::Facts;
use crate::view::plain::PlainTar;

/// An archive may always grow to this many bytes,
const ALWAYS: u64 = 1 << 30;
/// and beyond that to this many times its compressed size. gzip reaches 1000 with zeros, programs and text 3 to 20.
const RATIO: u64 = 200;

/// A plain tar archive.
#[derive(Debug, Clone)]
pub struct Spooled {
    /// Its bytes.
    pub archive: Arc<PlainTar>,
    /// Number of bytes.
    pub size: u64,
    /// `sha256:…` of the plain bytes, when they were read.
    pub digest: Option<String>,
}

/// An archive that was opened.
#[derive(Debug)]
pub struct Archive {
    path: PathBuf,
    file: File,
    facts: Facts,
    compression: Compression,
}

impl Archive {
    /// Opens an archive.
    ///
    /// # Errors
    /// When it cannot be read, or is compressed in an unknown way.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let io_error = |e| ReadError::io(path, e);
        let mut file = File::open(path).map_err(io_error)?;
        let facts = Facts::of(&file.metadata().map_err(io_error)?);
        let mut magic = [0; 6];
        let read = file.read(&mut magic).map_err(io_error)?;
        file.seek(SeekFrom::Start(0)).map_err(io_error)?;
        let compression = compression(path, &magic[..read])?;
        Ok(Self { path: path.to_path_buf(), file, facts, compression })
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its state when it was opened.
    #[must_use]
    pub fn facts(&self) -> Facts {
        self.facts
    }

    /// What tells it from another, or from itself after a change.
    #[must_use]
    pub fn identity(&self) -> Arc<str> {
        self.facts.to_string().into()
    }

    /// Whether it has to be decompressed.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        self.compression != Compression::None
    }

    /// Its plain bytes; those of a compressed one are written to a temporary file in `scratch`.
    ///
    /// # Errors
    /// When it cannot be read or written, is damaged, or grows beyond measure.
    pub fn spool(self, scratch: &Path) -> Result<Spooled, ReadError> {
        let identity = self.identity();
        if self.is_compressed() {
            return spool_stream(&self.path, Box::new(self.file), self.facts.size, identity, scratch);
        }
        Ok(Spooled { archive: PlainTar::of(self.file, identity), size: self.facts.size, digest: None })
    }
}

/// Reads a stream, compressed or not, into a temporary file in `scratch`. `size`: its bytes; `place` names it in messages.
///
/// # Errors
/// As [`Archive::spool`].
pub fn spool_stream(
    place: &Path,
    stream: Box<dyn Read + '_>,
    size: u64,
    identity: Arc<str>,
    scratch: &Path,
) -> Result<Spooled, ReadError> {
    let damaged = |e: io::Error| ReadError::Archive { path: place.to_path_buf(), why: e.to_string() };
    let mut stream = BufReader::with_capacity(1 << 16, stream);
    let magic = stream.fill_buf().map_err(damaged)?;
    let limit = ALWAYS.max(size.saturating_mul(RATIO));
    let reader: Box<dyn Read + '_> = match compression(place, &magic[..magic.len().min(6)])? {
        Compression::None => Box::new(stream),
        Compression::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(stream)),
        Compression::Zstd => Box::new(zstd::Decoder::with_buffer(stream).map_err(damaged)?),
    };
    let target = tempfile::tempfile_in(scratch).map_err(|e| ReadError::io(scratch, e))?;
    let (digest, plain) = copy(reader.take(limit + 1), &target, scratch, &damaged)?;
    if plain > limit {
        let why = format!("its {size} bytes become more than {limit}, which no real tree does");
        return Err(ReadError::Archive { path: place.to_path_buf(), why });
    }
    Ok(Spooled { archive: PlainTar::of(target, identity), size: plain, digest: Some(digest) })
}

fn copy(
    mut reader: impl Read,
    mut target: &File,
    scratch: &Path,
    damaged: &dyn Fn(io::Error) -> ReadError,
) -> Result<(String, u64), ReadError> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    let mut size = 0;
    loop {
        let read = reader.read(&mut buffer).map_err(damaged)?;
        if read == 0 {
            return Ok((crate::view::sha256_text(hash), size));
        }
        hash.update(&buffer[..read]);
        target.write_all(&buffer[..read]).map_err(|e| ReadError::io(scratch, e))?;
        size += read as u64;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compression {
    None,
    Gzip,
    Zstd,
}

fn compression(place: &Path, magic: &[u8]) -> Result<Compression, ReadError> {
    let unknown = |what: &str| {
        let why = format!("it is compressed with {what}; gzip and zstd can be read");
        Err(ReadError::Archive { path: place.to_path_buf(), why })
    };
    match magic {
        [0x1f, 0x8b, ..] => Ok(Compression::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Ok(Compression::Zstd),
        [0xfd, b'7', b'z', b'X', b'Z', 0] => unknown("xz"),
        [b'B', b'Z', b'h', ..] => unknown("bzip2"),
        _ => Ok(Compression::None),
    }
}
