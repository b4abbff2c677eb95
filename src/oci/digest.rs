//! Digests: `sha256:` and 64 hexadecimal digits, `sha512:` and 128 (image specification, descriptor).

use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::Digest as _;

use super::error::{Error, ErrorKind};
use crate::bundle::hex;

/// The hash function of a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Algorithm {
    /// SHA-256: what everybody writes.
    Sha256,
    /// SHA-512: read and checked, never written.
    Sha512,
}

impl Algorithm {
    /// The word before the colon.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    fn digits(self) -> usize {
        match self {
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }
}

/// The digest of some bytes. Always well formed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest {
    algorithm: Algorithm,
    hex: String,
}

impl Digest {
    /// SHA-256 of the bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::new(Algorithm::Sha256);
        hasher.update(bytes);
        hasher.finish()
    }

    /// The hash function.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The digits after the colon.
    #[must_use]
    pub fn hex(&self) -> &str {
        &self.hex
    }

    /// Twelve digits, for people.
    #[must_use]
    pub fn short(&self) -> &str {
        &self.hex[..12]
    }

    /// Whether the bytes have this digest.
    #[must_use]
    pub fn matches(&self, bytes: &[u8]) -> bool {
        let mut hasher = Hasher::new(self.algorithm);
        hasher.update(bytes);
        hasher.finish() == *self
    }

    /// Path of the blob in a layout: `blobs/sha256/…`.
    #[must_use]
    pub fn blob_path(&self) -> String {
        format!("blobs/{}/{}", self.algorithm.as_str(), self.hex)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.algorithm.as_str(), self.hex)
    }
}

impl FromStr for Digest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = |why: &str| {
            let shown: String = text.chars().take(160).collect();
            Error::new(ErrorKind::Reference, format!("`{shown}` is no digest: {why}"))
        };
        let (name, hex) = text.split_once(':').ok_or_else(|| bad("it has no `:`"))?;
        let algorithm = match name {
            "sha256" => Algorithm::Sha256,
            "sha512" => Algorithm::Sha512,
            _ => return Err(bad("only sha256 and sha512 are known")),
        };
        if hex.len() != algorithm.digits() || !hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(bad(&format!("{name} wants {} lower-case hexadecimal digits", algorithm.digits())));
        }
        Ok(Self { algorithm, hex: hex.to_owned() })
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(|e: Error| serde::de::Error::custom(e.message()))
    }
}

/// Computes a digest piece by piece.
#[derive(Debug, Clone)]
pub struct Hasher(State);

#[derive(Debug, Clone)]
enum State {
    Sha256(sha2::Sha256),
    Sha512(Box<sha2::Sha512>),
}

impl Hasher {
    /// Of no bytes yet.
    #[must_use]
    pub fn new(algorithm: Algorithm) -> Self {
        Self(match algorithm {
            Algorithm::Sha256 => State::Sha256(sha2::Sha256::new()),
            Algorithm::Sha512 => State::Sha512(Box::default()),
        })
    }

    /// Adds bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            State::Sha256(state) => state.update(bytes),
            State::Sha512(state) => state.update(bytes),
        }
    }

    /// The digest of everything so far.
    #[must_use]
    pub fn finish(self) -> Digest {
        match self.0 {
            State::Sha256(state) => Digest { algorithm: Algorithm::Sha256, hex: hex(&state.finalize()) },
            State::Sha512(state) => Digest { algorithm: Algorithm::Sha512, hex: hex(&state.finalize()) },
        }
    }
}

/// Passes bytes on and checks at their end that they are those of a digest and size. A wrong end is an [`Error`] in the
/// [`io::Error`] ([`Error::carried`]); a reader that gets more bytes than announced fails at the first one too many.
#[derive(Debug)]
pub struct VerifyReader<R> {
    inner: R,
    hasher: Option<Hasher>,
    wanted: Digest,
    size: Option<u64>,
    seen: u64,
    place: String,
}

impl<R: Read> VerifyReader<R> {
    /// `place` says in messages where the bytes come from; `size` is the announced number of bytes, if one was.
    pub fn new(inner: R, wanted: &Digest, size: Option<u64>, place: impl Into<String>) -> Self {
        let hasher = Some(Hasher::new(wanted.algorithm()));
        Self { inner, hasher, wanted: wanted.clone(), size, seen: 0, place: place.into() }
    }

    fn check(&mut self) -> io::Result<()> {
        // Taken: after the end there is nothing to check again.
        let Some(hasher) = self.hasher.take() else { return Ok(()) };
        let got = hasher.finish();
        if got == self.wanted && self.size.is_none_or(|size| size == self.seen) {
            return Ok(());
        }
        Err(Error::mismatch(&self.place, &self.wanted, self.size, &got, self.seen).into_io())
    }
}

impl<R: Read> Read for VerifyReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        if count == 0 {
            if !buffer.is_empty() {
                self.check()?;
            }
            return Ok(0);
        }
        self.seen += count as u64;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&buffer[..count]);
        }
        if self.size.is_some_and(|size| self.seen > size) {
            let size = self.size.unwrap_or_default();
            let message = format!("{}: content of {} is longer than {size} bytes", self.place, self.wanted);
            return Err(Error::new(ErrorKind::Digest, message).into_io());
        }
        if self.size == Some(self.seen) {
            // At once: who knows the size does not ask for more, and must not have used the last bytes of wrong content.
            self.check()?;
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn well_formed_digests_are_read_and_shown_again() {
        let long = format!("sha512:{}", "0".repeat(128));
        for text in [EMPTY, &long] {
            assert_eq!(text.parse::<Digest>().unwrap().to_string(), text);
        }
        assert_eq!(Digest::of(b"").to_string(), EMPTY);
        assert_eq!(Digest::of(b"").blob_path(), format!("blobs/sha256/{}", &EMPTY[7..]));
    }

    #[test]
    fn others_are_refused() {
        for text in
            ["", "sha256", "sha256:", "sha256:ab", &EMPTY.to_uppercase(), "md5:d41d8cd98f00b204e9800998ecf8427e"]
        {
            let error = text.parse::<Digest>().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Reference, "{text}");
        }
        assert!(EMPTY.replace('e', "g").parse::<Digest>().is_err());
        assert!(format!("sha256:../{}", &EMPTY[10..]).parse::<Digest>().is_err());
    }

    #[test]
    fn both_functions_match() {
        let sha512: Digest = "sha512:ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                              2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
            .parse()
            .unwrap();
        assert!(sha512.matches(b"abc") && !sha512.matches(b"abd") && Digest::of(b"abc").matches(b"abc"));
    }

    #[test]
    fn readers_check_at_the_end() {
        let read = |bytes: &[u8], digest: &Digest, size| {
            let mut out = Vec::new();
            let result = VerifyReader::new(bytes, digest, size, "here").read_to_end(&mut out);
            result.map_err(|e| Error::carried(&e).unwrap().to_string())
        };
        let digest = Digest::of(b"abc");
        assert_eq!(read(b"abc", &digest, Some(3)), Ok(3));
        assert_eq!(read(b"abc", &digest, None), Ok(3));
        assert!(read(b"abd", &digest, Some(3)).unwrap_err().contains("has the digest"));
        assert!(read(b"ab", &digest, Some(3)).unwrap_err().contains("2 bytes instead of 3"));
        assert!(read(b"abcd", &digest, Some(3)).unwrap_err().contains("longer than 3"));
    }
}
