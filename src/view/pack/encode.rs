//! Compressors that know nothing of each other's chunks.

use libdeflater::{CompressionLvl, Compressor};

use super::PackError;

/// How layers are compressed. Level and chunk size are fixed, because they decide the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Compression {
    /// gzip, which everything reads.
    #[default]
    Gzip,
    /// zstd, which is smaller and several times faster to unpack; containerd and CRI-O read it, Docker from 23 on.
    Zstd,
}

/// One byte in 150 more than level 6, for a sixth less time: with gzip, packing takes as long as the compressor does.
const GZIP_LEVEL: i32 = 5;
const ZSTD_LEVEL: i32 = 3;
/// RFC 1952: magic, deflate, no flags, no time, no extra flags, system unknown.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// RFC 1952: checksum and size.
const GZIP_END: usize = 8;

impl Compression {
    /// What made the bytes: another version may make others from the same tree.
    #[must_use]
    pub fn encoder(self) -> &'static str {
        match self {
            Self::Gzip => "libdeflater/1.26.1 level=5 chunk=1MiB",
            Self::Zstd => "zstd/1.5.7 level=3 chunk=1MiB",
        }
    }

    /// Media type of a layer (OCI image-spec, media-types.md).
    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Gzip => "application/vnd.oci.image.layer.v1.tar+gzip",
            Self::Zstd => "application/vnd.oci.image.layer.v1.tar+zstd",
        }
    }

    /// The word for it in view files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

/// Compresses chunks; one for each thread.
pub(super) enum Encoder {
    Gzip(Compressor),
    Zstd(zstd::bulk::Compressor<'static>),
}

impl Encoder {
    pub(super) fn new(compression: Compression) -> Result<Self, PackError> {
        let failed = |what: &dyn std::fmt::Display| PackError::Compress(what.to_string());
        Ok(match compression {
            Compression::Gzip => {
                let level = CompressionLvl::new(GZIP_LEVEL).map_err(|_| failed(&"level is out of range"))?;
                Self::Gzip(Compressor::new(level))
            }
            Compression::Zstd => Self::Zstd(zstd::bulk::Compressor::new(ZSTD_LEVEL).map_err(|e| failed(&e))?),
        })
    }

    /// Compresses a chunk into the first bytes of `out`, which grows if it has to; gives their number.
    pub(super) fn encode(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<usize, PackError> {
        let failed = |e: &dyn std::fmt::Display| PackError::Compress(e.to_string());
        match self {
            Self::Gzip(compressor) => {
                const START: usize = GZIP_HEADER.len();
                at_least(out, START + compressor.deflate_compress_bound(chunk.len()) + GZIP_END);
                out[..START].copy_from_slice(&GZIP_HEADER);
                let end = START + compressor.deflate_compress(chunk, &mut out[START..]).map_err(|e| failed(&e))?;
                out[end..end + 4].copy_from_slice(&libdeflater::crc32(chunk).to_le_bytes());
                // A chunk has less than 4 GiB.
                out[end + 4..end + GZIP_END].copy_from_slice(&(chunk.len() as u32).to_le_bytes());
                Ok(end + GZIP_END)
            }
            Self::Zstd(compressor) => {
                at_least(out, zstd::zstd_safe::compress_bound(chunk.len()));
                compressor.compress_to_buffer(chunk, &mut out[..]).map_err(|e| failed(&e))
            }
        }
    }
}

fn at_least(buffer: &mut Vec<u8>, length: usize) {
    if buffer.len() < length {
        buffer.resize(length, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoders_are_those_that_are_named() {
        let lock = include_str!("../../../Cargo.lock");
        assert!(lock.contains("name = \"libdeflater\"\nversion = \"1.26.1\""));
        assert!(Compression::Gzip.encoder().starts_with("libdeflater/1.26.1 level=5 "));
        let zstd = format!("zstd/{} level=3 ", zstd::zstd_safe::version_string());
        assert!(Compression::Zstd.encoder().starts_with(&zstd), "{zstd}");
        assert_eq!((GZIP_LEVEL, ZSTD_LEVEL, super::super::CHUNK), (5, 3, 1 << 20));
    }
}
