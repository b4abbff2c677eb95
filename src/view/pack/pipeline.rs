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

/// Packs a layer into `out`.
///
/// # Errors
/// When the tree cannot be read or `out` not be written; what was written then is of no use.
pub fn pack(layer: &Layer, options: PackOptions, out: &mut impl Write) -> Result<Packed, PackError> {
    let threads = options.threads.get();
    // So many chunks wait at most between two steps.
    let (to_encode, encode) = bounded::<(u64, Chunk)>(threads);
    let (to_hash, hash) = bounded::<Chunk>(threads);
    let (to_write, write) = bounded::<(u64, Result<Vec<u8>, PackError>)>(threads);
    thread::scope(|scope| {
        let producer = scope.spawn(move || {
            let mut chunks = Chunks { to_encode, to_hash, chunk: Vec::with_capacity(CHUNK), number: 0 };
            tar::write(layer, options.time, &mut chunks)?;
            chunks.send().map_err(PackError::Write)
        });
        let hasher = scope.spawn(move || diff_id(&hash));
        for _ in 0..threads {
            let (encode, to_write) = (encode.clone(), to_write.clone());
            scope.spawn(move || compress(options.compression, &encode, &to_write));
        }
        // When these are gone, each step ends after the one before it.
        drop((encode, to_write));
        let written = in_order(&write, out);
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

/// Hashes the tar bytes.
fn diff_id(chunks: &Receiver<Chunk>) -> (String, u64) {
    let mut hash = Sha256::new();
    let mut size = 0;
    for chunk in chunks {
        hash.update(chunk.as_slice());
        size += chunk.len() as u64;
    }
    (sha256_text(hash), size)
}

fn compress(
    compression: Compression,
    chunks: &Receiver<(u64, Chunk)>,
    out: &Sender<(u64, Result<Vec<u8>, PackError>)>,
) {
    let mut encoder = Encoder::new(compression);
    for (number, chunk) in chunks {
        let encoded = match &mut encoder {
            Ok(encoder) => encoder.encode(&chunk),
            Err(error) => Err(PackError::Compress(error.to_string())),
        };
        // Nobody there: the writer has failed and says so.
        if out.send((number, encoded)).is_err() {
            return;
        }
    }
}

/// Writes chunks in the order of their numbers.
fn in_order(chunks: &Receiver<(u64, Result<Vec<u8>, PackError>)>, out: &mut impl Write) -> Result<u64, PackError> {
    let mut size = 0;
    let mut next = 0;
    let mut early = BTreeMap::new();
    for (number, encoded) in chunks {
        early.insert(number, encoded?);
        while let Some(encoded) = early.remove(&next) {
            out.write_all(&encoded).map_err(PackError::Write)?;
            size += encoded.len() as u64;
            next += 1;
        }
    }
    out.flush().map_err(PackError::Write)?;
    Ok(size)
}

/// Cuts what is written into chunks and sends each to the compressors and to the hash.
struct Chunks {
    to_encode: Sender<(u64, Chunk)>,
    to_hash: Sender<Chunk>,
    chunk: Vec<u8>,
    number: u64,
}

impl Chunks {
    fn send(&mut self) -> io::Result<()> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let chunk = Arc::new(std::mem::replace(&mut self.chunk, Vec::with_capacity(CHUNK)));
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
