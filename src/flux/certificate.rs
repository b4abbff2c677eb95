//! CURVE certificates of a Flux instance: one key pair shared by all its brokers.
//!
//! Keys are X25519 (CurveZMQ, ZeroMQ RFC 26), written in Z85 (ZeroMQ RFC 32) in the file layout of `flux keygen`.
//! Whoever holds the secret key controls the instance: it is kept in memory that is wiped, and neither `Debug`
//! nor any error shows it. The file text is only given by [`Certificate::to_file_text`].

use std::collections::BTreeMap;
use std::fmt;

use zeroize::Zeroizing;

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;

/// Characters of a key in Z85.
pub const KEY_CHARS: usize = 40;

/// Most bytes of a line, without its end, that flux-core reads as one line.
pub const MAX_LINE: usize = 255;

/// What Z85 uses besides letters and digits.
const Z85_PUNCTUATION: &str = ".-:+=^!/*?&<>()[]{}@%$#";

/// Why a certificate file is unusable. Never contains key text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// An unindented line that is not `metadata` or `curve`, or an indented one before either.
    #[error("line {line}: expected `metadata`, `curve` or an indented `key = \"value\"`")]
    UnexpectedLine {
        /// From 1. flux-core takes what stands beyond [`MAX_LINE`] bytes for a line of its own.
        line: usize,
    },
    /// No `=`, a key with other characters than letters, digits, `-` and `.`, or a value without double quotes.
    #[error("line {line}: expected key = \"value\" with a key of letters, digits, '-' and '.'")]
    NotKeyValue {
        /// From 1.
        line: usize,
    },
    /// A value with a character that flux-core refuses, an underscore for example.
    #[error("line {line}: a value may hold letters, digits, blanks and {Z85_PUNCTUATION} only")]
    BadValue {
        /// From 1.
        line: usize,
    },
    /// Metadata keys must be unique.
    #[error("line {line}: this metadata key was given before")]
    DuplicateKey {
        /// From 1.
        line: usize,
    },
    /// Something else than `public-key` and `secret-key` under `curve`.
    #[error("line {line}: only public-key and secret-key may stand under curve")]
    UnknownCurveKey {
        /// From 1.
        line: usize,
    },
    /// Not 40 characters of Z85.
    #[error("line {line}: a key must be {KEY_CHARS} characters of Z85")]
    BadKey {
        /// From 1.
        line: usize,
    },
    /// A key is missing.
    #[error("the certificate lacks a {0}")]
    MissingKey(&'static str),
    /// The public key does not belong to the secret key.
    #[error("the public key does not belong to the secret key")]
    KeyMismatch,
    /// Group or others may read the file (permission bits 0044), which flux-core refuses.
    #[error("mode {0:04o} lets group or others read the certificate: flux-core refuses it; use 0400 or 0600")]
    Readable(u32),
}

/// A key pair with metadata.
///
/// ```
/// use flux_gen::flux::Certificate;
/// # let random = [7u8; 32];
/// let made = Certificate::from_secret_bytes(random, "my_cluster");
/// assert_eq!(made.name(), Some("my-cluster"));
/// let read = Certificate::parse(made.to_file_text().as_bytes())?;
/// assert_eq!(read.public_key(), made.public_key());
/// # Ok::<(), flux_gen::flux::CertificateError>(())
/// ```
#[derive(Clone)]
pub struct Certificate {
    metadata: BTreeMap<String, String>,
    public_key: String,
    secret_key: Zeroizing<[u8; KEY_BYTES]>,
}

impl Certificate {
    /// Makes a certificate from 32 random bytes of the caller. `name` goes into the metadata, with
    /// every character that flux-core would refuse replaced by `-` (see [`safe_name`]).
    #[must_use]
    pub fn from_secret_bytes(secret: [u8; KEY_BYTES], name: &str) -> Self {
        let secret_key = Zeroizing::new(secret);
        Self {
            metadata: BTreeMap::from([("name".to_owned(), safe_name(name))]),
            public_key: public_key_of(&secret_key),
            secret_key,
        }
    }

    /// Reads a certificate file exactly as flux-core (0.55 and later) does.
    ///
    /// # Errors
    /// The first thing that makes flux-core refuse it.
    pub fn parse(bytes: &[u8]) -> Result<Self, CertificateError> {
        Reader::default().read(bytes)
    }

    /// The public key in Z85. Not secret.
    #[must_use]
    pub fn public_key(&self) -> &str {
        &self.public_key
    }

    /// The `name` of the metadata. Every broker that has children refuses a certificate without one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.metadata.get("name").map(String::as_str)
    }

    /// All metadata, by key.
    #[must_use]
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// The certificate as a file. Contains the secret key: for the store and the Secret only.
    ///
    /// The layout is fixed: metadata sorted by key with `name` first, four blanks of indent (older
    /// flux-core needs them), no time and no versions, so that the same certificate gives the same bytes.
    #[must_use]
    pub fn to_file_text(&self) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::with_capacity(512));
        text.push_str(
            "# CURVE certificate of a Flux instance. Secret: whoever reads this controls the instance.\n\nmetadata\n",
        );
        let first = self.metadata.get_key_value("name");
        for (key, value) in first.into_iter().chain(self.metadata.iter().filter(|(key, _)| *key != "name")) {
            let line = format!("    {key} = \"{value}\"");
            // A line that was read without such blanks may only fit without them.
            let line = if line.len() <= MAX_LINE { line } else { format!(" {key}=\"{value}\"") };
            text.push_str(&line);
            text.push('\n');
        }
        let secret = Zeroizing::new(z85::encode(self.secret_key.as_slice()));
        text.push_str("curve\n    public-key = \"");
        text.push_str(&self.public_key);
        text.push_str("\"\n    secret-key = \"");
        text.push_str(&secret);
        text.push_str("\"\n");
        text
    }

    /// The secret key in Z85, for scanning outputs for it.
    #[must_use]
    pub fn secret_key_text(&self) -> Zeroizing<String> {
        Zeroizing::new(z85::encode(self.secret_key.as_slice()))
    }
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificate")
            .field("metadata", &self.metadata)
            .field("public_key", &self.public_key)
            .field("secret_key", &"…")
            .finish()
    }
}

/// The public key in Z85 that belongs to a secret key.
fn public_key_of(secret: &[u8; KEY_BYTES]) -> String {
    let secret = x25519_dalek::StaticSecret::from(*secret);
    z85::encode(x25519_dalek::PublicKey::from(&secret).as_bytes())
}

/// `name` in characters that flux-core accepts and that fit on a line: others become `-`.
#[must_use]
pub fn safe_name(name: &str) -> String {
    let longest = MAX_LINE - "    name = \"\"".len();
    name.chars()
        .take(longest)
        .map(|c| if c.is_ascii_alphanumeric() || c == '-' || c == '.' { c } else { '-' })
        .collect()
}

/// Checks a certificate file's permission bits as flux-core does when it opens the file (links are followed first).
///
/// # Errors
/// Group or others may read it.
pub fn check_mode(mode: u32) -> Result<(), CertificateError> {
    if mode & 0o044 != 0 { Err(CertificateError::Readable(mode & 0o7777)) } else { Ok(()) }
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Section {
    #[default]
    None,
    Metadata,
    Curve,
}

#[derive(Default)]
struct Reader {
    section: Section,
    metadata: BTreeMap<String, String>,
    public_key: Option<String>,
    secret_key: Option<Zeroizing<[u8; KEY_BYTES]>>,
}

impl Reader {
    fn read(mut self, bytes: &[u8]) -> Result<Certificate, CertificateError> {
        for (line, raw) in c_lines(bytes) {
            // A C string ends at the first NUL.
            let text = raw.split(|&b| b == 0).next().unwrap_or_default();
            let indented = matches!(text.first(), Some(b' ' | b'\t'));
            let text = trim_c(text);
            if text.is_empty() || text[0] == b'#' {
                continue;
            }
            match (indented, text, self.section) {
                (false, b"metadata", _) => self.section = Section::Metadata,
                (false, b"curve", _) => self.section = Section::Curve,
                (true, _, Section::Metadata) => self.read_metadata(text, line)?,
                (true, _, Section::Curve) => self.read_curve(text, line)?,
                _ => return Err(CertificateError::UnexpectedLine { line }),
            }
        }
        let public_key = self.public_key.ok_or(CertificateError::MissingKey("public-key"))?;
        let secret_key = self.secret_key.ok_or(CertificateError::MissingKey("secret-key"))?;
        if public_key_of(&secret_key) != public_key {
            return Err(CertificateError::KeyMismatch);
        }
        Ok(Certificate { metadata: self.metadata, public_key, secret_key })
    }

    fn read_metadata(&mut self, text: &[u8], line: usize) -> Result<(), CertificateError> {
        let (key, value) = key_value(text, line)?;
        if self.metadata.contains_key(key) {
            return Err(CertificateError::DuplicateKey { line });
        }
        self.metadata.insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    /// A repeated key replaces the one before, as in flux-core.
    fn read_curve(&mut self, text: &[u8], line: usize) -> Result<(), CertificateError> {
        let (key, value) = key_value(text, line)?;
        if key != "public-key" && key != "secret-key" {
            return Err(CertificateError::UnknownCurveKey { line });
        }
        let decoded = z85::decode(value).map(Zeroizing::new).map_err(|_| CertificateError::BadKey { line })?;
        let bytes: [u8; KEY_BYTES] = decoded.as_slice().try_into().map_err(|_| CertificateError::BadKey { line })?;
        if key == "public-key" {
            self.public_key = Some(value.to_owned());
        } else {
            self.secret_key = Some(Zeroizing::new(bytes));
        }
        Ok(())
    }
}

/// Lines as C's `fgets` with a buffer of 256 bytes gives them, with line numbers of the file.
fn c_lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    bytes
        .split_inclusive(|&b| b == b'\n')
        .zip(1..)
        .flat_map(|(line, number)| line.chunks(MAX_LINE).map(move |chunk| (number, chunk)))
}

/// Without the blanks of C at both ends.
fn trim_c(text: &[u8]) -> &[u8] {
    let blank = |b: &u8| matches!(b, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c);
    let start = text.iter().position(|b| !blank(b)).unwrap_or(text.len());
    let end = text.iter().rposition(|b| !blank(b)).map_or(start, |last| last + 1);
    &text[start..end]
}

/// `key = "value"`, both in their permitted characters.
fn key_value(text: &[u8], line: usize) -> Result<(&str, &str), CertificateError> {
    let bad = CertificateError::NotKeyValue { line };
    let equals = text.iter().position(|&b| b == b'=').ok_or(bad)?;
    let key = trim_c(&text[..equals]);
    if key.is_empty() || !key.iter().all(|&b| b.is_ascii_alphanumeric() || b == b'-' || b == b'.') {
        return Err(bad);
    }
    let value = trim_c(&text[equals + 1..]).strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).ok_or(bad)?;
    let good =
        |&b: &u8| b.is_ascii_alphanumeric() || b == b' ' || b == b'\t' || Z85_PUNCTUATION.as_bytes().contains(&b);
    if !value.iter().all(good) {
        return Err(CertificateError::BadValue { line });
    }
    // Both are ASCII by the checks above.
    let (Ok(key), Ok(value)) = (std::str::from_utf8(key), std::str::from_utf8(value)) else {
        return Err(bad);
    };
    Ok((key, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The pair published with the facts: the secret bytes are 0, 1, … 31.
    const PUBLIC: &str = "K3HW^WVq.zo69t)(umF>:XvwTj:QGN^yKlWaVH(S";

    fn counting() -> [u8; 32] {
        std::array::from_fn(|i| i as u8)
    }

    #[test]
    fn derives_the_public_key() {
        let made = Certificate::from_secret_bytes(counting(), "a_b c");
        assert_eq!(made.public_key(), PUBLIC);
        assert_eq!(made.secret_key_text().as_str(), "009c61o!#m2NH?C3>iWS5d]J*6CRx17-skh9337x");
        assert_eq!(made.name(), Some("a-b-c"));
    }

    #[test]
    fn the_secret_is_not_shown() {
        let made = Certificate::from_secret_bytes(counting(), "n");
        let shown = format!("{made:?} {made:#?}");
        assert!(!shown.contains("009c61o!") && !shown.contains("[0, 1, 2"), "{shown}");
        let text = made.to_file_text().replace("337x", "337y");
        let error = Certificate::parse(text.as_bytes()).unwrap_err();
        assert!(!format!("{error:?} {error}").contains("009c61"), "{error}");
    }

    #[test]
    fn modes() {
        for mode in [0o400, 0o600, 0o700, 0o620, 0o611, 0o733, 0o100_600] {
            assert_eq!(check_mode(mode), Ok(()), "{mode:o}");
        }
        for mode in [0o440, 0o604, 0o644, 0o777] {
            assert_eq!(check_mode(mode), Err(CertificateError::Readable(mode)), "{mode:o}");
        }
    }

    #[test]
    fn errors_name_the_line() {
        let good = Certificate::from_secret_bytes(counting(), "n").to_file_text();
        for (from, to, error) in [
            ("metadata\n", "meta\n", CertificateError::UnexpectedLine { line: 3 }),
            ("    name", "name", CertificateError::UnexpectedLine { line: 4 }),
            ("\"n\"", "'n'", CertificateError::NotKeyValue { line: 4 }),
            ("\"n\"", "\"a_b\"", CertificateError::BadValue { line: 4 }),
            ("    name = \"n\"\n", "    name = \"n\"\n    name = \"m\"\n", CertificateError::DuplicateKey { line: 5 }),
            ("public-key", "public.key", CertificateError::UnknownCurveKey { line: 6 }),
            ("K3HW", "K3H", CertificateError::BadKey { line: 6 }),
            ("K3HW", "K3HX", CertificateError::KeyMismatch),
        ] {
            let text = good.replacen(from, to, 1);
            assert_eq!(Certificate::parse(text.as_bytes()).map(|_| ()), Err(error), "{from}");
        }
        assert_eq!(Certificate::parse(b"").map(|_| ()), Err(CertificateError::MissingKey("public-key")));
    }

    #[test]
    fn long_lines_stay_readable() {
        let good = Certificate::from_secret_bytes(counting(), "n").to_file_text();
        let line = format!(" k=\"{}\"\ncurve\n", "v".repeat(MAX_LINE - 5));
        let read = Certificate::parse(good.replace("curve\n", &line).as_bytes()).unwrap();
        let again = Certificate::parse(read.to_file_text().as_bytes()).unwrap();
        assert_eq!(again.metadata(), read.metadata());
    }

    #[test]
    fn long_names_stay_readable() {
        let made = Certificate::from_secret_bytes(counting(), &"n".repeat(1000));
        assert!(Certificate::parse(made.to_file_text().as_bytes()).is_ok());
    }

    proptest! {
        #[test]
        fn round_trip(secret in any::<[u8; 32]>(), name in "\\PC{0,30}") {
            let made = Certificate::from_secret_bytes(secret, &name);
            let text = made.to_file_text();
            let read = Certificate::parse(text.as_bytes()).unwrap();
            prop_assert_eq!(read.public_key(), made.public_key());
            prop_assert_eq!(read.metadata(), made.metadata());
            prop_assert_eq!(read.to_file_text(), text.clone());
            prop_assert!(!made.public_key().contains(made.secret_key_text().as_str()));
            prop_assert!(text.lines().all(|line| line.len() < MAX_LINE));
        }

        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = Certificate::parse(&bytes);
        }
    }
}
