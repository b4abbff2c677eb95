//! Makes a layer's bytes: tar, compressed in chunks on several threads, hashed on the way.
//!
//! The same entries give the same bytes, whatever the number of threads: each chunk of 1 MiB is compressed for itself, gzip
//! as a member (RFC 1952, section 2.2), zstd as a frame (RFC 8878, section 3.1), and they are written in order. Memory is a few
//! chunks for each thread, however large the layer is.

mod encode;
mod layer;
mod pipeline;
mod tar;

use std::io;

pub use encode::Compression;
pub use layer::{Item, ItemKind, Layer};
pub use pipeline::{PackOptions, Packed, pack};

/// Bytes of a chunk.
pub const CHUNK: usize = 1 << 20;

/// Why a layer could not be packed.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// A file of the tree could not be read, or changed.
    #[error("cannot read {path}: {error}")]
    Read {
        /// Its path in the image.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// The layer could not be written.
    #[error("cannot write the layer: {0}")]
    Write(io::Error),
    /// The compressor failed.
    #[error("cannot compress: {0}")]
    Compress(String),
}
