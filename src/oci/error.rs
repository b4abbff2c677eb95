//! Why something with an image did not work.

use std::fmt;
use std::io;
use std::path::Path;

use super::digest::Digest;
use crate::diag::codes::oci as codes;
use crate::diag::{Code, Diagnostic};

/// What went wrong, as far as a caller may want to act on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ErrorKind {
    /// A reference, tag, digest or platform is not well formed.
    Reference,
    /// Bytes that do not have the digest or size that was asked for.
    Digest,
    /// Neither layout nor image archive.
    Layout,
    /// A named blob is not there.
    Missing,
    /// An archive with entries that are not used.
    Archive,
    /// A document that is not JSON of the specification, or is too large.
    Document,
    /// An index without the wanted platform.
    Platform,
    /// The operating system refused to read or write.
    Store,
    /// No connection, or it broke.
    Unreachable,
    /// A connection that is not trusted.
    Tls,
    /// 401 with the best credentials there are.
    Unauthorized,
    /// 403.
    Denied,
    /// 404.
    NotFound,
    /// 429.
    RateLimited,
    /// 5xx.
    Failed,
    /// Another refusal.
    Refused,
    /// An answer that the specification does not know.
    Protocol,
    /// No progress for too long.
    Timeout,
    /// An unreadable file of credentials.
    Credentials,
    /// A credential helper that failed.
    Helper,
}

impl ErrorKind {
    /// The diagnostic code.
    #[must_use]
    pub fn code(self) -> Code {
        match self {
            Self::Reference => codes::REFERENCE_INVALID,
            Self::Digest => codes::DIGEST_MISMATCH,
            Self::Layout => codes::NOT_A_LAYOUT,
            Self::Missing => codes::BLOB_MISSING,
            Self::Archive => codes::ARCHIVE_UNSAFE,
            Self::Document => codes::DOCUMENT_INVALID,
            Self::Platform => codes::PLATFORM_MISSING,
            Self::Store => codes::STORE_FAILED,
            Self::Unreachable => codes::UNREACHABLE,
            Self::Tls => codes::TLS_FAILED,
            Self::Unauthorized => codes::UNAUTHORIZED,
            Self::Denied => codes::DENIED,
            Self::NotFound => codes::NOT_FOUND,
            Self::RateLimited => codes::RATE_LIMITED,
            Self::Failed => codes::REGISTRY_FAILED,
            Self::Refused => codes::REFUSED,
            Self::Protocol => codes::PROTOCOL,
            Self::Timeout => codes::TIMEOUT,
            Self::Credentials => codes::CREDENTIALS_UNREADABLE,
            Self::Helper => codes::HELPER_FAILED,
        }
    }
}

/// Which request to which registry failed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Exchange {
    /// Host and port.
    pub registry: String,
    /// Repository, without the registry; empty when the request was of none.
    pub repository: String,
    /// What was tried: "upload blob sha256:…".
    pub action: String,
    /// HTTP status, when there was an answer.
    pub status: Option<u16>,
    /// Codes of the registry's error body, such as `MANIFEST_UNKNOWN`.
    pub codes: Vec<String>,
}

/// An error of this module. Shows as one sentence without a full stop and never holds a credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    inner: Box<Inner>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    kind: ErrorKind,
    message: String,
    help: Option<String>,
    exchange: Option<Exchange>,
}

impl Error {
    /// An error with one sentence without a full stop.
    #[must_use]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { inner: Box::new(Inner { kind, message: message.into(), help: None, exchange: None }) }
    }

    /// A file operation that failed; `what` is the verb ("read", "write").
    #[must_use]
    pub fn file(what: &str, path: &Path, error: &io::Error) -> Self {
        let made = Self::new(ErrorKind::Store, format!("cannot {what} {}: {}", path.display(), plain(error)));
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                made.help("free space there or write elsewhere")
            }
            _ => made,
        }
    }

    /// Bytes that are not those of the digest. `place` says where they came from.
    #[must_use]
    pub fn mismatch(place: &str, wanted: &Digest, wanted_size: Option<u64>, got: &Digest, got_size: u64) -> Self {
        let sizes = match wanted_size {
            Some(size) if size != got_size => format!(" ({got_size} bytes instead of {size})"),
            _ => String::new(),
        };
        Self::new(ErrorKind::Digest, format!("{place}: content of {wanted} has the digest {got}{sizes}"))
            .help("the bytes are damaged; fetch or build them again")
    }

    /// A blob that is not there.
    #[must_use]
    pub fn missing(place: &str, digest: &Digest) -> Self {
        Self::new(ErrorKind::Missing, format!("{place} has no blob {digest}"))
            .help("copy the image again, with all its platforms")
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.inner.help = Some(help.into());
        self
    }

    /// Adds the request that failed; it is part of what is shown.
    #[must_use]
    pub fn exchange(mut self, exchange: Exchange) -> Self {
        self.inner.exchange = Some(exchange);
        self
    }

    /// Whether the same again may work.
    pub(super) fn may_pass(&self) -> bool {
        use ErrorKind::{Failed, RateLimited, Timeout, Unreachable};
        matches!(self.kind(), Failed | RateLimited | Timeout | Unreachable)
    }

    /// What went wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.inner.kind
    }

    /// The sentence without the request.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// What to do, if there is something to say.
    #[must_use]
    pub fn advice(&self) -> Option<&str> {
        self.inner.help.as_deref()
    }

    /// The request that failed, if one did.
    #[must_use]
    pub fn request(&self) -> Option<&Exchange> {
        self.inner.exchange.as_ref()
    }

    /// As a diagnostic of no file.
    #[must_use]
    pub fn diagnostic(&self) -> Diagnostic {
        let made = Diagnostic::global_error(self.kind().code(), self.to_string());
        match self.advice() {
            Some(help) => made.help(help),
            None => made,
        }
    }

    /// Carries the error through [`io::Read`]; [`Error::from_io`] gets it back.
    #[must_use]
    pub fn into_io(self) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, self)
    }

    /// The error that a reader carries, or a file operation that failed.
    #[must_use]
    pub fn from_io(what: &str, path: &Path, error: &io::Error) -> Self {
        match Self::carried(error) {
            Some(own) => own.clone(),
            None => Self::file(what, path, error),
        }
    }

    /// The error of this module that an I/O error carries.
    #[must_use]
    pub fn carried(error: &io::Error) -> Option<&Self> {
        error.get_ref().and_then(|inner| inner.downcast_ref::<Self>())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { message, exchange, .. } = &*self.inner;
        let Some(Exchange { registry, repository, action, status, codes }) = exchange else {
            return f.write_str(message);
        };
        write!(f, "cannot {action}")?;
        match repository.as_str() {
            "" => write!(f, " at {registry}")?,
            repository => write!(f, " at {registry}/{repository}")?,
        }
        write!(f, ": {message}")?;
        match status {
            Some(status) if codes.is_empty() => write!(f, " (HTTP {status})"),
            Some(status) => write!(f, " (HTTP {status}, {})", codes.join(", ")),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

/// The words of an I/O error without Rust's "(os error 2)".
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_its_own_code() {
        let kinds = [
            (ErrorKind::Reference, "FG860"),
            (ErrorKind::Digest, "FG861"),
            (ErrorKind::Layout, "FG862"),
            (ErrorKind::Missing, "FG863"),
            (ErrorKind::Archive, "FG864"),
            (ErrorKind::Document, "FG865"),
            (ErrorKind::Platform, "FG866"),
            (ErrorKind::Store, "FG867"),
            (ErrorKind::Unreachable, "FG870"),
            (ErrorKind::Tls, "FG871"),
            (ErrorKind::Unauthorized, "FG872"),
            (ErrorKind::Denied, "FG873"),
            (ErrorKind::NotFound, "FG874"),
            (ErrorKind::RateLimited, "FG875"),
            (ErrorKind::Failed, "FG876"),
            (ErrorKind::Refused, "FG877"),
            (ErrorKind::Protocol, "FG878"),
            (ErrorKind::Timeout, "FG879"),
            (ErrorKind::Credentials, "FG880"),
            (ErrorKind::Helper, "FG881"),
        ];
        assert_eq!(kinds.len(), codes::ALL.len());
        for (kind, id) in kinds {
            assert_eq!(kind.code().id, id);
        }
    }

    #[test]
    fn the_request_is_part_of_the_text() {
        let exchange = Exchange {
            registry: "localhost:5000".to_owned(),
            repository: "a/b".to_owned(),
            action: "put manifest x".to_owned(),
            status: Some(400),
            codes: vec!["MANIFEST_BLOB_UNKNOWN".to_owned()],
        };
        let error = Error::new(ErrorKind::Refused, "blob unknown").exchange(exchange).help("push it");
        let text = "cannot put manifest x at localhost:5000/a/b: blob unknown (HTTP 400, MANIFEST_BLOB_UNKNOWN)";
        assert_eq!(error.to_string(), text);
        let diagnostic = error.diagnostic();
        assert_eq!((diagnostic.code.id, diagnostic.help.as_deref()), ("FG877", Some("push it")));
        let back = Error::from_io("read", Path::new("x"), &error.clone().into_io());
        assert_eq!(back, error);
    }

    #[test]
    fn a_full_disk_is_told() {
        let error = Error::file("write", Path::new("out"), &io::Error::from_raw_os_error(28));
        assert_eq!(error.to_string(), "cannot write out: No space left on device");
        assert!(error.advice().is_some());
    }
}
