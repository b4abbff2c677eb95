//! From the certificate store to what bundles need of it: public keys, the private half where a bundle carries it, and
//! encrypted forms.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use x509_cert::der::DateTime;

use crate::bundle::cipher::{Cipher, CipherKind, EncryptError, Leeway, Target};
use crate::bundle::record::Record;
use crate::bundle::secret::{PrivateText, SecretForm, certificate_in};
use crate::bundle::store::{Added, PUBLIC_FILE, Store, StoreError};
use crate::diag::codes::cert as codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::flux::Certificate;
use crate::model::{CertificateNeed, secret_name};
use crate::parallel;

/// What the store gave.
#[derive(Debug, Default)]
pub struct Certificates {
    /// Public keys, for compiling.
    pub public_keys: BTreeMap<CertificateNeed, String>,
    /// Private halves at hand.
    private: BTreeMap<CertificateNeed, PrivateText>,
    /// Encrypted forms.
    encrypted: BTreeMap<(CertificateNeed, CipherKind), Encrypted>,
    /// Certificates that were made because they were missing.
    pub made: Vec<Added>,
    /// Encrypted forms that were made and stored.
    pub stored: Vec<Stored>,
    /// Encrypted forms of the store that are missing or out of date and were made without being stored: which, and why.
    pub pending: Vec<String>,
    /// What is wrong with others.
    pub diagnostics: Diagnostics,
}

/// An encrypted form of a Secret.
#[derive(Debug)]
struct Encrypted {
    bytes: Vec<u8>,
    leeway: Leeway,
}

/// An encrypted form that was made and stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The file.
    pub path: PathBuf,
    /// For whom, in words.
    pub audience: String,
    /// Why the one that was there would not do; `None` when there was none.
    pub why: Option<String>,
}

/// What bundles need of a certificate, besides its public key if that is known. Nothing more with `secrets: existing`:
/// without a public key the bundle takes whatever key the Secret holds.
#[derive(Debug, Clone, Default)]
pub struct Want {
    /// The private half (`secrets: plain`).
    pub private: bool,
    /// Folders of bundles whose plain Secret, left by an earlier build, serves where the store has no private half.
    pub earlier: Vec<PathBuf>,
    /// Encrypted forms, at most one of each kind (`secrets: sops` and `sealed`).
    pub ciphers: Vec<Cipher>,
    /// The certificate, when it stands in the spec.
    pub inline: Option<Certificate>,
}

impl Want {
    /// Whether a bundle cannot be made without the certificate.
    fn is_firm(&self) -> bool {
        self.private || !self.ciphers.is_empty()
    }
}

/// What to do about certificates and encrypted forms that are missing or out of date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Make and store them: for a build into a folder.
    Make,
    /// Report missing certificates, and encrypt without storing: for comparisons.
    Encrypt,
    /// Report both: for everything else that writes nothing.
    Report,
}

/// Looks up all certificates. `now` is the time since 1970. Every problem is among the diagnostics.
#[must_use]
pub fn gather(store: &Store, needs: &BTreeMap<CertificateNeed, Want>, missing: Missing, now: Duration) -> Certificates {
    let mut found = Certificates::default();
    let record = match store.record() {
        Ok(record) => record,
        Err(e) => {
            found.diagnostics.push(diagnostic(&e));
            return found;
        }
    };
    // To see whether two keys belong together takes longer than all else here.
    let all: Vec<(&CertificateNeed, &Want)> = needs.iter().collect();
    let read = |(need, want): &(&CertificateNeed, &Want)| match want.inline {
        Some(_) => Ok(None),
        None => store.read(need),
    };
    let stored = parallel::map(&all, read);
    let mut unrecorded = BTreeMap::new();
    let search = Search { store, record: &record, missing, now };
    for ((need, want), stored) in all.into_iter().zip(stored) {
        match search.find(need, want, stored, &mut found) {
            Ok(Some(new)) => drop(unrecorded.insert(Store::title(need), new)),
            Ok(None) => {}
            Err(problem) => found.diagnostics.push(*problem),
        }
    }
    if missing == Missing::Make
        && !unrecorded.is_empty()
        && let Err(e) = store.record_keys(&unrecorded)
    {
        found.diagnostics.push(diagnostic(&e));
    }
    found
}

/// What the store has of a certificate.
type Read = Result<Option<crate::bundle::store::Stored>, StoreError>;

/// What the look-ups of one [`gather`] share.
struct Search<'a> {
    store: &'a Store,
    record: &'a Record,
    missing: Missing,
    now: Duration,
}

/// A certificate as far as it is known.
struct Known {
    public_key: String,
    private: Option<PrivateText>,
    /// The store has it and the record does not.
    unrecorded: bool,
}

impl Search<'_> {
    /// Looks up one certificate and its forms. Returns its public key when the record lacks it.
    fn find(
        &self,
        need: &CertificateNeed,
        want: &Want,
        stored: Read,
        found: &mut Certificates,
    ) -> Result<Option<String>, Box<Diagnostic>> {
        let Some(mut known) = self.certificate(need, want, stored, found)? else { return Ok(None) };
        // One that stands in a spec is that cluster's, and compiling finds it there.
        if want.inline.is_none() {
            found.public_keys.insert(need.clone(), known.public_key.clone());
        }
        if want.private && known.private.is_none() {
            known.private = earlier_secret(&want.earlier, &known.public_key);
            if known.private.is_none() {
                return Err(Box::new(private_missing(need)));
            }
        }
        for cipher in &want.ciphers {
            let form = self.encrypted(need, cipher, &known, found)?;
            found.encrypted.insert((need.clone(), cipher.kind()), form);
        }
        found.private.extend(known.private.map(|text| (need.clone(), text)));
        Ok(known.unrecorded.then_some(known.public_key))
    }

    /// The certificate, made if that is to be done; `None` when nothing is known of it and that will do.
    fn certificate(
        &self,
        need: &CertificateNeed,
        want: &Want,
        stored: Read,
        found: &mut Certificates,
    ) -> Result<Option<Known>, Box<Diagnostic>> {
        if let Some(inline) = &want.inline {
            let text = PrivateText::new(inline.to_file_text().as_bytes().to_vec());
            let public_key = inline.public_key().to_owned();
            return Ok(Some(Known { public_key, private: Some(text), unrecorded: false }));
        }
        if let Some(known) = self.stored(need, stored, found)? {
            return Ok(Some(known));
        }
        if let Some(key) = self.record.keys.get(&Store::title(need)) {
            return Ok(Some(Known { public_key: key.clone(), private: None, unrecorded: false }));
        }
        if !want.is_firm() {
            return Ok(None);
        }
        if self.missing != Missing::Make {
            let message = format!("cluster {} has no certificate", Store::title(need));
            let help = format!("make it with `flux-gen cert new {}`, or build into a folder", spelled(need));
            return Err(Box::new(Diagnostic::global_error(codes::CERTIFICATE_MISSING, message).help(help)));
        }
        match self.store.make(need, false) {
            // Somebody else has just made it.
            Err(StoreError::Exists { .. }) => {}
            result => found.made.push(result.map_err(|e| Box::new(diagnostic(&e)))?),
        }
        Ok(self.stored(need, self.store.read(need), found)?.map(|known| Known { unrecorded: false, ..known }))
    }

    /// The certificate of the store, if it has it, compared with the record.
    fn stored(
        &self,
        need: &CertificateNeed,
        read: Read,
        found: &mut Certificates,
    ) -> Result<Option<Known>, Box<Diagnostic>> {
        let Some(stored) = read.map_err(|e| Box::new(diagnostic(&e)))? else { return Ok(None) };
        let title = Store::title(need);
        let recorded = self.record.keys.get(&title);
        if let Some(key) = recorded.filter(|key| **key != stored.public_key) {
            let message = format!(
                "{} has the public key {}, but {} records {key} for {title}",
                self.store.path(need).display(),
                stored.public_key,
                self.store.folder().join(PUBLIC_FILE).display()
            );
            let help =
                "import the right certificate with `flux-gen cert import`, with --replace if the record is wrong";
            return Err(Box::new(Diagnostic::global_error(codes::KEYS_DISAGREE, message).help(help)));
        }
        if stored.open {
            let path = self.store.path(need);
            let message = format!("{} can be read by group or others", path.display());
            let warning = Diagnostic::global_warning(codes::CERTIFICATE_OPEN, message);
            found.diagnostics.push(warning.help(format!("chmod 600 {}", path.display())));
        }
        let unrecorded = recorded.is_none();
        Ok(Some(Known { public_key: stored.public_key, private: Some(stored.text), unrecorded }))
    }

    /// The encrypted form of the store while it is up to date, else a new one.
    fn encrypted(
        &self,
        need: &CertificateNeed,
        cipher: &Cipher,
        known: &Known,
        found: &mut Certificates,
    ) -> Result<Encrypted, Box<Diagnostic>> {
        let kind = cipher.kind();
        let there = self.store.encrypted(need, kind).map_err(|e| Box::new(diagnostic(&e)))?;
        let target = Target { namespace: need.namespace.clone(), name: secret_name(&need.name, &known.public_key) };
        let made = self.record.made(&Store::title(need), kind);
        let why = match there {
            None => None,
            Some(bytes) => match cipher.outdated(&target, &known.public_key, &bytes, made) {
                None => return Ok(Encrypted { leeway: cipher.leeway(&bytes, made), bytes }),
                why => why,
            },
        };
        let path = self.store.encrypted_path(need, kind);
        let state = format!(
            "{} {}",
            path.display(),
            why.as_ref().map_or("is missing".to_owned(), |why| format!("is out of date: {why}"))
        );
        let Some(private) = &known.private else { return Err(Box::new(locked(need, kind, &state, why.is_some()))) };
        if self.missing == Missing::Report {
            let error = Diagnostic::global_error(codes::ENCRYPTED_STALE, state);
            return Err(Box::new(error.help("`flux-gen build` into a folder encrypts it")));
        }
        if let Cipher::Sealed { certificate, .. } = cipher
            && certificate.expires() < self.now
        {
            return Err(Box::new(expired(certificate.expires())));
        }
        let bytes = cipher.encrypt(&target, private, self.now).map_err(|e| Box::new(not_encrypted(need, &e)))?;
        if self.missing != Missing::Make {
            found.pending.push(state);
            return Ok(Encrypted { bytes, leeway: Leeway::Exact });
        }
        let made = cipher.made(&bytes, &known.public_key);
        let leeway = cipher.leeway(&bytes, Some(&made));
        let path = self.store.keep_encrypted(need, kind, &bytes, made).map_err(|e| Box::new(diagnostic(&e)))?;
        found.stored.push(Stored { path, audience: cipher.audience(), why });
        Ok(Encrypted { bytes, leeway })
    }
}

/// The certificate in the plain Secret of a bundle, when it has this public key.
fn earlier_secret(bundles: &[PathBuf], public_key: &str) -> Option<PrivateText> {
    let entries = bundles.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    let is_secret = |path: &&PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("secret") && name.ends_with(".yaml")
    };
    let texts = files.iter().filter(is_secret).filter_map(|path| certificate_in(&std::fs::read(path).ok()?));
    texts
        .into_iter()
        .find(|text| Certificate::parse(text.expose()).is_ok_and(|certificate| certificate.public_key() == public_key))
}

impl Certificates {
    /// The private half, when it is at hand.
    #[must_use]
    pub fn private(&self, need: &CertificateNeed) -> Option<&PrivateText> {
        self.private.get(need)
    }

    /// The form of a Secret that the bundle carries (setting `secrets: plain`). [`SecretForm::Existing`] when the private
    /// half is not at hand, of which the diagnostics of [`gather`] tell.
    #[must_use]
    pub fn plain(&self, need: &CertificateNeed, secret: &str) -> SecretForm {
        match self.private(need) {
            Some(text) => SecretForm::Plain { name: secret.to_owned(), certificate: text.clone() },
            None => SecretForm::Existing,
        }
    }

    /// The encrypted form that the bundle carries (settings `secrets: sops` and `sealed`); [`SecretForm::Existing`] when
    /// there is none, of which the diagnostics of [`gather`] tell.
    #[must_use]
    pub fn encrypted(&self, need: &CertificateNeed, kind: CipherKind, secret: &str) -> SecretForm {
        match self.encrypted.get(&(need.clone(), kind)) {
            Some(Encrypted { bytes, leeway }) => {
                SecretForm::Encrypted { name: secret.to_owned(), kind, bytes: bytes.clone(), leeway: *leeway }
            }
            None => SecretForm::Existing,
        }
    }
}

fn private_missing(need: &CertificateNeed) -> Diagnostic {
    let message = format!("the Secret of {} needs its private key, which is not here", Store::title(need));
    let help =
        format!("import it with `flux-gen cert import {} FILE`, or use another setting for `secrets`", spelled(need));
    Diagnostic::global_error(codes::PRIVATE_HALF_MISSING, message).help(help)
}

/// An encrypted form has to be made anew, and cannot be.
fn locked(need: &CertificateNeed, kind: CipherKind, state: &str, decryptable: bool) -> Diagnostic {
    let name = spelled(need);
    let message = format!("{state}; to encrypt it anew the private key is needed, which is not here");
    let help = match kind {
        CipherKind::Sops if decryptable => format!(
            "build where the certificate is, or take it from there: `sops -d --extract '[\"data\"][\"curve.cert\"]' FILE | \
             base64 -d | flux-gen cert import {name} -`; `flux-gen cert rotate {name}` makes a new one"
        ),
        _ => format!(
            "build where the certificate is, or `flux-gen cert import {name} FILE`; `flux-gen cert rotate {name}` makes \
             a new one"
        ),
    };
    Diagnostic::global_error(codes::ENCRYPTED_LOCKED, message).help(help)
}

fn expired(when: Duration) -> Diagnostic {
    let date = DateTime::from_unix_duration(when).map(|date| format!(" on {date}")).unwrap_or_default();
    let message = format!("the sealing certificate has expired{date}, so nothing is sealed with it");
    let error = Diagnostic::global_error(codes::SEALING_CERTIFICATE_UNUSABLE, message);
    error.help("fetch the current one with `kubeseal --fetch-cert`")
}

fn not_encrypted(need: &CertificateNeed, error: &EncryptError) -> Diagnostic {
    let message = format!("the Secret of {} cannot be encrypted: {error}", Store::title(need));
    Diagnostic::global_error(codes::ENCRYPTION_FAILED, message)
}

/// A certificate as commands take its name.
#[must_use]
pub fn spelled(need: &CertificateNeed) -> String {
    need.namespace.as_ref().map_or_else(|| need.name.clone(), |namespace| format!("{namespace}/{}", need.name))
}

/// A problem of the store as a diagnostic.
#[must_use]
pub fn diagnostic(error: &StoreError) -> Diagnostic {
    let code = match error {
        StoreError::Io { .. } | StoreError::Random(_) => codes::STORE_FAILED,
        StoreError::Certificate { .. } => codes::CERTIFICATE_UNUSABLE,
        StoreError::Record { .. } => codes::PUBLIC_KEYS_UNREADABLE,
        StoreError::Exists { .. } => codes::CERTIFICATE_EXISTS,
    };
    Diagnostic::global_error(code, error.to_string())
}

/// Refuses to write private keys to where git would pick them up (setting `plain-secrets-in-git`).
///
/// `titles`: the clusters whose bundles hold a private key. `None` when there is nothing to object to.
#[must_use]
pub fn refuse_plain_in_git(titles: &[String], output: &Path, allowed: bool) -> Option<Diagnostic> {
    if allowed || titles.is_empty() {
        return None;
    }
    let tree = git_work_tree(output)?;
    let message = format!(
        "private keys of {} would be written to {}, which is in the git work tree {}",
        titles.join(", "),
        output.display(),
        tree.display()
    );
    let help = "use `secrets: existing`, write elsewhere with -o, or set `plain-secrets-in-git: true`";
    Some(Diagnostic::global_error(codes::PLAIN_SECRET_IN_GIT, message).help(help))
}

/// The git work tree that a path is in or would be in, links followed.
#[must_use]
pub fn git_work_tree(path: &Path) -> Option<PathBuf> {
    let mut there = path;
    let real = loop {
        let candidate = if there.as_os_str().is_empty() { Path::new(".") } else { there };
        match candidate.canonicalize() {
            Ok(real) => break real,
            Err(_) => there = there.parent()?,
        }
    };
    // A file `.git` stands in linked work trees and submodules.
    real.ancestors().find(|folder| folder.join(".git").exists()).map(Path::to_owned)
}

#[cfg(test)]
mod tests;
