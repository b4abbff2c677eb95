//! tar → chunks → compressors → in order again → file; the tar stream is hashed on the way, the file by its writer.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;

use crossbeam_channel::{Receiver, Sender, bounded};
use sha2::{Digest, Sha256};

use super::encode::Encoder;
use super::{CHUNK, Compression, Layer, PackError, tar};
use crate::view::sha256_text;

/// How to pack.
#[derive(Debug, Clone, Copy)]
pub struct PackOptions {
    /// Compression.
    pub compression: Compression,
    /// Threads that compress. They decide the speed, not the bytes.
    pub threads: NonZeroUsize,
    /// Modification time of every entry, in seconds since 1970.
    pub time: u64,
}

/// What was packed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// Number of compressed bytes.
    pub size: u64,
    /// `sha256:…` of the tar bytes (`diff_id` of the image configuration).
    pub diff_id: String,
    /// Number of tar bytes.
    pub tar_size: u64,
}

type Chunk = Arc<Vec<u8>>;
/// A compressed chunk: a buffer, and how many of its bytes count.
type Encoded = (Vec<u8>, usize);
/// Buffers that are to be used again: for new ones the kernel has to find and clear pages.
type Buffers = (Sender<Vec<u8>>, Receiver<Vec<u8>>);

/// Packs a layer into `out`.
///
/// # Errors
/// When the tree cannot be read or `out` not be written; what was written then is of no use.
pub fn pack(layer: &Layer<'_>, options: PackOptions, out: &mut impl Write) -> Result<Packed, PackError> {
    let threads = options.threads.get();
    // So many chunks wait at most between two steps.
    let (to_encode, encode) = bounded::<(u64, Chunk)>(threads);
    let (to_hash, hash) = bounded::<Chunk>(threads);
    let (to_write, write) = bounded::<(u64, Result<Encoded, PackError>)>(threads);
    // As many as can be under way at once, so that giving one back never waits.
    let plain: Buffers = bounded(4 * threads + 4);
    let encoded: Buffers = bounded(4 * threads + 4);
    thread::scope(|scope| {
        let empty = plain.1.clone();
        let producer = scope.spawn(move || {
            let mut chunks = Chunks { to_encode, to_hash, empty, chunk: Vec::with_capacity(CHUNK), number: 0 };
            tar::write(layer, options.time, &mut chunks)?;
            chunks.send().map_err(PackError::Write)
        });
        let used = plain.0.clone();
        let hasher = scope.spawn(move || diff_id(&hash, &used));
        for _ in 0..threads {
            let (encode, to_write) = (encode.clone(), to_write.clone());
            let (used, empty) = (plain.0.clone(), encoded.1.clone());
            scope.spawn(move || compress(options.compression, &encode, &to_write, &used, &empty));
        }
        // When these are gone, each step ends after the one before it.
        drop((encode, to_write));
        let written = in_order(&write, out, &encoded.0);
        // A step that still wants to send finds nobody and ends.
        drop(write);
        let produced = producer.join().unwrap_or_else(|_| Err(bug()));
        let (diff_id, tar_size) = hasher.join().map_err(|_| bug())?;
        // A full disk makes the producer fail too, with nothing to say.
        let size = match (written, produced) {
            (Err(error), _) => return Err(error),
            (Ok(_), Err(error)) => return Err(error),
            (Ok(written), Ok(())) => written,
        };
        Ok(Packed { size, diff_id, tar_size })
    })
}

/// A thread that panicked has said so already.
fn bug() -> PackError {
    PackError::Compress("a thread stopped".to_owned())
}

/// Gives a chunk's buffer back when nobody else has the chunk any longer.
fn done(chunk: Chunk, used: &Sender<Vec<u8>>) {
    if let Some(buffer) = Arc::into_inner(chunk) {
        // Nobody needs it, or there are enough: it is freed.
        let _ = used.try_send(buffer);
    }
}

/// Hashes the tar bytes.
fn diff_id(chunks: &Receiver<Chunk>, used: &Sender<Vec<u8>>) -> (String, u64) {
    let mut hash = Sha256::new();
    let mut size = 0;
    for chunk in chunks {
        hash.update(chunk.as_slice());
        size += chunk.len() as u64;
        done(chunk, used);
    }
    (sha256_text(hash), size)
}

fn compress(
    compression: Compression,
    chunks: &Receiver<(u64, Chunk)>,
    out: &Sender<(u64, Result<Encoded, PackError>)>,
    used: &Sender<Vec<u8>>,
    empty: &Receiver<Vec<u8>>,
) {
    let mut encoder = Encoder::new(compression);
    for (number, chunk) in chunks {
        let mut buffer = empty.try_recv().unwrap_or_default();
        let encoded = match &mut encoder {
            Ok(encoder) => encoder.encode(&chunk, &mut buffer).map(|length| (buffer, length)),
            Err(error) => Err(PackError::Compress(error.to_string())),
        };
        done(chunk, used);
        // Nobody there: the writer has failed and says so.
        if out.send((number, encoded)).is_err() {
            return;
        }
    }
}

/// Writes chunks in the order of their numbers.
fn in_order(
    chunks: &Receiver<(u64, Result<Encoded, PackError>)>,
    out: &mut impl Write,
    used: &Sender<Vec<u8>>,
) -> Result<u64, PackError> {
    let mut size = 0;
    let mut next = 0;
    let mut early = BTreeMap::new();
    for (number, encoded) in chunks {
        early.insert(number, encoded?);
        while let Some((buffer, length)) = early.remove(&next) {
            out.write_all(&buffer[..length]).map_err(PackError::Write)?;
            size += length as u64;
            next += 1;
            // As in `done`.
            let _ = used.try_send(buffer);
        }
    }
    out.flush().map_err(PackError::Write)?;
    Ok(size)
}

/// Cuts what is written into chunks and sends each to the compressors and to the hash.
struct Chunks {
    to_encode: Sender<(u64, Chunk)>,
    to_hash: Sender<Chunk>,
    empty: Receiver<Vec<u8>>,
    chunk: Vec<u8>,
    number: u64,
}

impl Chunks {
    fn send(&mut self) -> io::Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let mut empty = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(CHUNK));
        empty.clear();
        let chunk = Arc::new(std::mem::replace(&mut self.chunk, empty));
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        self.to_hash.send(Arc::clone(&chunk)).map_err(|_| gone(()))?;
        self.to_encode.send((self.number, chunk)).map_err(|_| gone(()))?;
        self.number += 1;
        Ok(())
    }
}

impl Write for Chunks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fits = bytes.len().min(CHUNK - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..fits]);
        if self.chunk.len() == CHUNK {
            self.send()?;
        }
        Ok(fits)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
