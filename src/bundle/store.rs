//! The certificate store: private keys beside the project file, their encrypted forms, and a record of the public ones.
//!
//! ```text
//! certs/<namespace or default>/<name>.cert         the certificate, mode 0600, never committed
//! certs/<namespace or default>/<name>.sops.yaml    its Secret, encrypted to age recipients, to be committed
//! certs/<namespace or default>/<name>.sealed.yaml  its SealedSecret, to be committed
//! certs/public.json                                public keys, and what the encrypted forms were made for, to be committed
//! certs/.gitignore                                 keeps *.cert out of git
//! ```
//! The record makes bundles where no private key is (CI), and tells when a certificate is not the agreed one.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use zeroize::{Zeroize, Zeroizing};

use super::cipher::{CipherKind, Made};
use super::files::Lock;
use super::names;
use super::record::Record;
use super::secret::PrivateText;
use crate::flux::{Certificate, CertificateError};
use crate::model::CertificateNeed;

/// Folder of the store beside the project file.
pub const STORE_FOLDER: &str = "certs";
/// The record of public keys in the store's folder.
pub const PUBLIC_FILE: &str = "public.json";
/// What keeps private keys out of git.
const IGNORE_LINE: &str = "*.cert";

/// A problem with the store. Never holds key text.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system refused something.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried: a verb.
        action: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Not a certificate that Flux takes.
    #[error("{}: {source}", path.display())]
    Certificate {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: CertificateError,
    },
    /// The record of public keys is not one.
    #[error("{} is not a record of public keys: {why}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// There is a certificate (or a recorded public key) already, and it was not to be replaced.
    #[error("{title} has a certificate already (public key {public_key})")]
    Exists {
        /// `<namespace or default>/<name>`.
        title: String,
        /// The public key that it has.
        public_key: String,
    },
    /// The operating system gives no random numbers.
    #[error("no random numbers from the operating system: {0}")]
    Random(String),
}

trait At<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, StoreError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, action: &'static str, path: &Path) -> Result<T, StoreError> {
        self.map_err(|source| StoreError::Io { action, path: path.to_owned(), source })
    }
}

/// A certificate as the store holds it.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The file's bytes.
    pub text: PrivateText,
    /// Its public key in Z85.
    pub public_key: String,
    /// Whether group or others may read the file.
    pub open: bool,
}

/// What making or importing a certificate did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Added {
    /// The certificate's file.
    pub path: PathBuf,
    /// Its public key in Z85.
    pub public_key: String,
    /// The `.gitignore` that was made or got a line, if one was.
    pub ignored_in: Option<PathBuf>,
}

/// A store. Nothing is read or made before it is needed.
#[derive(Debug, Clone)]
pub struct Store {
    folder: PathBuf,
}

impl Store {
    /// The store in this folder, usually [`STORE_FOLDER`] beside the project file.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The store's folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How the record and people call a certificate: `<namespace or default>/<name>`.
    #[must_use]
    pub fn title(need: &CertificateNeed) -> String {
        format!("{}/{}", names::namespace_folder(need.namespace.as_deref()), names::safe(&need.name))
    }

    /// Where a certificate is or would be.
    #[must_use]
    pub fn path(&self, need: &CertificateNeed) -> PathBuf {
        self.folder.join(format!("{}.cert", Self::title(need)))
    }

    /// The certificate, if the store has it.
    ///
    /// # Errors
    /// When the file cannot be read or is not a certificate.
    pub fn read(&self, need: &CertificateNeed) -> Result<Option<Stored>, StoreError> {
        let path = self.path(need);
        let bytes = match fs::read(&path) {
            Ok(bytes) => PrivateText::new(bytes),
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(e).at("read", &path),
        };
        let certificate = Certificate::parse(bytes.expose())
            .map_err(|source| StoreError::Certificate { path: path.clone(), source })?;
        let mode = fs::metadata(&path).at("read", &path)?.permissions().mode();
        Ok(Some(Stored {
            text: bytes,
            public_key: certificate.public_key().to_owned(),
            open: crate::flux::certificate::check_mode(mode).is_err(),
        }))
    }

    /// Where an encrypted form is or would be.
    #[must_use]
    pub fn encrypted_path(&self, need: &CertificateNeed, kind: CipherKind) -> PathBuf {
        self.folder.join(format!("{}{}", Self::title(need), kind.suffix()))
    }

    /// An encrypted form, if the store has it.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn encrypted(&self, need: &CertificateNeed, kind: CipherKind) -> Result<Option<Vec<u8>>, StoreError> {
        let path = self.encrypted_path(need, kind);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e).at("read", &path),
        }
    }

    /// Stores an encrypted form and records what it was made for.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn keep_encrypted(
        &self,
        need: &CertificateNeed,
        kind: CipherKind,
        bytes: &[u8],
        made: Made,
    ) -> Result<PathBuf, StoreError> {
        let path = self.encrypted_path(need, kind);
        let folder = path.parent().unwrap_or(&self.folder);
        DirBuilder::new().recursive(true).mode(0o700).create(folder).at("make", folder)?;
        self.locked(|| {
            let mut record = self.record()?;
            // The file first: without its record it is taken for what it says itself.
            write_file(&path, bytes, 0o644, true).at("write", &path)?;
            record.encrypted.entry(Self::title(need)).or_default().insert(kind, made);
            self.write_record(&record)
        })?;
        Ok(path)
    }

    /// What is recorded of all certificates.
    ///
    /// # Errors
    /// When the record cannot be read or is not one.
    pub fn record(&self) -> Result<Record, StoreError> {
        let path = self.folder.join(PUBLIC_FILE);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Record::new()),
            Err(e) => return Err(e).at("read", &path),
        };
        Record::parse(&bytes).map_err(|why| StoreError::Record { path, why })
    }

    /// Makes a key pair with the operating system's random numbers, stores and records it.
    ///
    /// # Errors
    /// [`StoreError::Exists`] unless `replace`; what the operating system says.
    pub fn make(&self, need: &CertificateNeed, replace: bool) -> Result<Added, StoreError> {
        let certificate = fresh(&need.name)?;
        let text = certificate.to_file_text();
        self.add(need, text.as_bytes(), certificate.public_key(), replace)
    }

    /// Stores and records a certificate that was made elsewhere, byte for byte.
    ///
    /// # Errors
    /// When Flux would not take it; else as [`Store::make`].
    pub fn import(&self, need: &CertificateNeed, bytes: &[u8], replace: bool) -> Result<Added, StoreError> {
        let path = self.path(need);
        let certificate =
            Certificate::parse(bytes).map_err(|source| StoreError::Certificate { path: path.clone(), source })?;
        // The private half of a recorded public key is no replacement.
        let known = self.record()?.keys.get(&Self::title(need)).is_some_and(|key| key == certificate.public_key());
        let replace = replace || (known && !path.exists());
        self.add(need, bytes, certificate.public_key(), replace)
    }

    fn add(&self, need: &CertificateNeed, text: &[u8], public_key: &str, replace: bool) -> Result<Added, StoreError> {
        let title = Self::title(need);
        let path = self.path(need);
        let folder = path.parent().unwrap_or(&self.folder);
        DirBuilder::new().recursive(true).mode(0o700).create(folder).at("make", folder)?;
        let ignored_in = self.ignore()?;
        self.locked(|| self.add_locked(&title, &path, text, public_key, replace))?;
        Ok(Added { path, public_key: public_key.to_owned(), ignored_in })
    }

    /// Does something while no other process changes the store.
    fn locked(&self, work: impl FnOnce() -> Result<(), StoreError>) -> Result<(), StoreError> {
        let path = self.folder.join(".lock");
        let lock = Lock::take(&path).at("lock", &path)?;
        let result = work();
        let removed = fs::remove_file(&path).at("remove", &path);
        drop(lock);
        result.and(removed)
    }

    fn add_locked(
        &self,
        title: &str,
        path: &Path,
        text: &[u8],
        public_key: &str,
        replace: bool,
    ) -> Result<(), StoreError> {
        let mut record = self.record()?;
        let recorded = record.keys.get(title).cloned();
        if !replace && let Some(public_key) = recorded {
            return Err(StoreError::Exists { title: title.to_owned(), public_key });
        }
        // The certificate first: a record without certificate could not be told from one whose certificate is elsewhere.
        match write_file(path, text, 0o600, replace) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                let there = Zeroizing::new(fs::read(path).at("read", path)?);
                let public_key = Certificate::parse(&there).map_or("unknown".to_owned(), |c| c.public_key().to_owned());
                return Err(StoreError::Exists { title: title.to_owned(), public_key });
            }
            result => result.at("write", path)?,
        }
        record.keys.insert(title.to_owned(), public_key.to_owned());
        self.write_record(&record)
    }

    fn write_record(&self, record: &Record) -> Result<(), StoreError> {
        let path = self.folder.join(PUBLIC_FILE);
        let bytes = record.to_bytes().map_err(io::Error::from).at("write", &path)?;
        write_file(&path, &bytes, 0o644, true).at("write", &path)
    }

    /// Records the public keys of certificates that are in the store but not in the record (put there by hand).
    ///
    /// # Errors
    /// What the operating system says.
    pub fn record_keys(&self, keys: &BTreeMap<String, String>) -> Result<(), StoreError> {
        self.locked(|| {
            let mut record = self.record()?;
            for (title, key) in keys {
                record.keys.entry(title.clone()).or_insert_with(|| key.clone());
            }
            self.write_record(&record)
        })
    }

    /// Makes sure that git ignores certificates: a `.gitignore` in the store's folder. Returns it when it was changed.
    fn ignore(&self) -> Result<Option<PathBuf>, StoreError> {
        let path = self.folder.join(".gitignore");
        let old = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(e).at("read", &path),
        };
        if old.lines().any(|line| line.trim() == IGNORE_LINE) {
            return Ok(None);
        }
        let gap = if old.is_empty() || old.ends_with('\n') { "" } else { "\n" };
        let text = format!("{old}{gap}# Private keys of Flux clusters.\n{IGNORE_LINE}\n");
        write_file(&path, text.as_bytes(), 0o644, true).at("write", &path)?;
        Ok(Some(path))
    }
}

/// A new key pair from the operating system's random numbers, kept nowhere.
///
/// # Errors
/// When there are no random numbers.
pub fn fresh(name: &str) -> Result<Certificate, StoreError> {
    let mut random = [0; crate::flux::certificate::KEY_BYTES];
    getrandom::fill(&mut random).map_err(|e| StoreError::Random(e.to_string()))?;
    let certificate = Certificate::from_secret_bytes(random, name);
    random.zeroize();
    Ok(certificate)
}

/// Writes a file in one step: whoever looks sees nothing, the old or the whole new one. Without `replace` an existing file
/// is an error.
fn write_file(path: &Path, bytes: &[u8], mode: u32, replace: bool) -> io::Result<()> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    // Drafts end like certificates, so that git ignores one that a kill left behind.
    let mut draft = tempfile::Builder::new().prefix(".draft-").suffix(".cert").tempfile_in(folder)?;
    draft.write_all(bytes)?;
    draft.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
    draft.as_file().sync_all()?;
    if replace {
        draft.persist(path)?
    } else {
        draft.persist_noclobber(path)?
    };
    fs::File::open(folder)?.sync_all()
}
