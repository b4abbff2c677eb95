//! The encrypted forms of a certificate's Secret that can be committed, and how to see without decrypting whether one is
//! still what is wanted.
//!
//! Encryption gives other bytes each time, so a file is kept as long as it says what it should: names, namespace, recipients
//! and scope stand in it in the clear. What does not (which certificate sealed it, which key pair is in it) is recorded
//! beside it ([`Made`]).

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::sealed::{self, SealingCertificate};
use super::secret::{PrivateText, SECRET_KEY};
use super::sha256_hex;
use super::sops;
use super::yaml::YamlError;
use crate::diag::SourceMap;
use crate::model::settings::SealedScope;
use crate::spec::{ReadOptions, read};

/// Which Secret a form is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Its namespace; `None` when the bundle's objects carry none.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

/// The kinds of encrypted forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CipherKind {
    /// A SOPS file.
    Sops,
    /// A SealedSecret.
    Sealed,
}

impl CipherKind {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Sops, Self::Sealed];

    /// What the file's name ends in.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Sops => ".sops.yaml",
            Self::Sealed => ".sealed.yaml",
        }
    }
}

/// How far a bundle's copy of an encrypted form may be from the store's file and still be up to date. Both must say the
/// same ([`same_meaning`]); the question is who encrypted again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leeway {
    /// No difference: the form is new, so what is in the output is out of date.
    Exact,
    /// Somebody may have encrypted the copy again. A store's file that changed since it was copied is a change, because
    /// flux-gen has sealed it, and for whom cannot be seen in it.
    Copy,
    /// Somebody may have encrypted either again.
    Either,
}

/// How a Secret is encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cipher {
    /// As SOPS does, to these age recipients.
    Sops {
        /// `age1…`, at least one.
        recipients: BTreeSet<String>,
    },
    /// As `kubeseal` does.
    Sealed {
        /// The controller's certificate.
        certificate: SealingCertificate,
        /// Where it may be unsealed.
        scope: SealedScope,
    },
}

/// What an encrypted form was made for, as far as the file itself does not tell. Nothing in it is secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Made {
    /// The key pair in it, by its public half in Z85.
    pub public_key: String,
    /// Of a SealedSecret: SHA-256 of the certificate that it was sealed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_with: Option<String>,
    /// Of a SealedSecret: SHA-256 of the file. With another one somebody has sealed it anew since, and what is recorded of
    /// the sealing certificate no longer holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// Why something could not be encrypted. Never holds key text.
#[derive(Debug, thiserror::Error)]
pub enum EncryptError {
    /// The operating system gives no random numbers.
    #[error("no random numbers from the operating system: {0}")]
    Random(String),
    /// Not an age recipient.
    #[error("{0} is no age recipient")]
    Recipient(String),
    /// The age library refuses.
    #[error("age: {0}")]
    Age(String),
    /// AES-GCM refuses, which it does for impossible lengths only.
    #[error("the text is too long")]
    Cipher,
    /// RSA refuses: the key is too short for SHA-256.
    #[error("the sealing certificate's key cannot be used: {0}")]
    SealingKey(String),
    /// The date is after 9999.
    #[error("the clock of this machine is wrong")]
    Clock,
    /// The file cannot be written as YAML.
    #[error(transparent)]
    Yaml(#[from] YamlError),
}

impl Cipher {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> CipherKind {
        match self {
            Self::Sops { .. } => CipherKind::Sops,
            Self::Sealed { .. } => CipherKind::Sealed,
        }
    }

    /// For whom, in words: `2 age recipients`, `the certificate 0123456789ab…, scope strict`.
    #[must_use]
    pub fn audience(&self) -> String {
        match self {
            Self::Sops { recipients } if recipients.len() == 1 => "1 age recipient".to_owned(),
            Self::Sops { recipients } => format!("{} age recipients", recipients.len()),
            Self::Sealed { certificate, scope } => {
                format!("the certificate {:.12}, scope {}", certificate.fingerprint(), scope_name(*scope))
            }
        }
    }

    /// Encrypts. Different bytes each time.
    ///
    /// # Errors
    /// See [`EncryptError`].
    pub fn encrypt(&self, target: &Target, secret: &PrivateText, now: Duration) -> Result<Vec<u8>, EncryptError> {
        match self {
            Self::Sops { recipients } => sops::encrypt(target, secret, recipients, now),
            Self::Sealed { certificate, scope } => sealed::seal(target, secret, certificate, *scope),
        }
    }

    /// What to record of a form that was just made.
    #[must_use]
    pub fn made(&self, bytes: &[u8], public_key: &str) -> Made {
        let (sealed_with, sha256) = match self {
            Self::Sops { .. } => (None, None),
            Self::Sealed { certificate, .. } => (Some(certificate.fingerprint().to_owned()), Some(sha256_hex(bytes))),
        };
        Made { public_key: public_key.to_owned(), sealed_with, sha256 }
    }

    /// How far copies of a form of the store may be from it.
    #[must_use]
    pub fn leeway(&self, bytes: &[u8], made: Option<&Made>) -> Leeway {
        let ours = made.is_some_and(|made| made.sha256.as_deref() == Some(&sha256_hex(bytes)));
        match self {
            Self::Sealed { .. } if ours => Leeway::Copy,
            // Who can decrypt a SOPS file stands in it.
            Self::Sops { .. } | Self::Sealed { .. } => Leeway::Either,
        }
    }

    /// Why a form that is there is not the wanted one; `None` when it is.
    #[must_use]
    pub fn outdated(&self, target: &Target, public_key: &str, bytes: &[u8], made: Option<&Made>) -> Option<String> {
        if made.is_some_and(|made| made.public_key != public_key) {
            return Some("it holds another key pair".to_owned());
        }
        let Some(form) = Form::read(bytes) else {
            return Some(match self {
                Self::Sops { .. } => "it is no SOPS file of a Secret".to_owned(),
                Self::Sealed { .. } => "it is no SealedSecret".to_owned(),
            });
        };
        if let Some(wrong) = form.not_of(target) {
            return Some(wrong);
        }
        match (self, &form) {
            (Self::Sops { recipients }, Form::Sops { keys, .. }) => other_recipients(recipients, &keys.age),
            (Self::Sealed { certificate, scope }, Form::Sealed { scope: found, .. }) => {
                if found != scope {
                    return Some(format!("it is sealed with scope {}", scope_name(*found)));
                }
                let made = made.filter(|made| made.sha256.as_deref() == Some(&sha256_hex(bytes)))?;
                let other = made.sealed_with.as_deref() != Some(certificate.fingerprint());
                other.then(|| "it was sealed with another certificate".to_owned())
            }
            (Self::Sops { .. }, _) => Some("it is no SOPS file".to_owned()),
            (Self::Sealed { .. }, _) => Some("it is no SealedSecret".to_owned()),
        }
    }
}

/// A scope as the setting spells it.
fn scope_name(scope: SealedScope) -> &'static str {
    match scope {
        SealedScope::Strict => "strict",
        SealedScope::NamespaceWide => "namespace-wide",
        SealedScope::ClusterWide => "cluster-wide",
    }
}

/// How the recipients of a file differ from the wanted ones.
fn other_recipients(wanted: &BTreeSet<String>, found: &BTreeSet<String>) -> Option<String> {
    let list = |a: &BTreeSet<String>, b: &BTreeSet<String>| {
        let only: Vec<&str> = a.difference(b).map(String::as_str).collect();
        only.join(", ")
    };
    match (list(wanted, found), list(found, wanted)) {
        (lacking, extra) if lacking.is_empty() && extra.is_empty() => None,
        (lacking, extra) if extra.is_empty() => Some(format!("it cannot be decrypted by {lacking}")),
        (lacking, extra) if lacking.is_empty() => Some(format!("it can be decrypted by {extra} too")),
        (lacking, extra) => Some(format!("it can be decrypted by {extra} and not by {lacking}")),
    }
}

/// An encrypted file, taken apart: what stands in the clear, with an empty text for each encrypted value.
#[derive(PartialEq)]
enum Form {
    Sops { document: Value, keys: sops::Keys },
    Sealed { document: Value, scope: SealedScope },
}

impl Form {
    fn read(bytes: &[u8]) -> Option<Self> {
        let document = read_document(bytes)?;
        if let Some((document, scope)) = sealed::take_apart(document.clone()) {
            return Some(Self::Sealed { document, scope });
        }
        sops::take_apart(document).map(|(document, keys)| Self::Sops { document, keys })
    }

    /// Why this is not the Secret that is wanted. Labels and annotations that somebody added do not matter.
    fn not_of(&self, target: &Target) -> Option<String> {
        let (document, data, template) = match self {
            Self::Sops { document, .. } => (document, "/data", ""),
            Self::Sealed { document, .. } => (document, "/spec/encryptedData", "/spec/template"),
        };
        let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str);
        let sealed = !template.is_empty();
        if !sealed && (text("/kind") != Some("Secret") || text("/apiVersion") != Some("v1")) {
            return Some("it is no Secret".to_owned());
        }
        let (name, namespace) = (text("/metadata/name"), text("/metadata/namespace"));
        if name != Some(&target.name) {
            return Some(format!("it is the Secret {}, not {}", name.unwrap_or("without a name"), target.name));
        }
        if namespace != target.namespace.as_deref() {
            let [found, wanted] = [namespace, target.namespace.as_deref()].map(|n| n.unwrap_or("none"));
            return Some(format!("its namespace is {found}, not {wanted}"));
        }
        let keys: Vec<&String> = document.pointer(data).and_then(Value::as_object)?.keys().collect();
        (keys != [SECRET_KEY]).then(|| format!("it does not hold {SECRET_KEY} alone"))
    }
}

/// Whether two encrypted files are the same as far as anybody can see without decrypting: `sops rotate`, `sops` after an
/// edit that was none, or sealing anew.
#[must_use]
pub fn same_meaning(one: &[u8], other: &[u8]) -> bool {
    matches!((Form::read(one), Form::read(other)), (Some(one), Some(other)) if one == other)
}

/// Whether a file is an encrypted form of any Secret. One that is can be replaced: the store has it too.
#[must_use]
pub fn is_encrypted(bytes: &[u8]) -> bool {
    Form::read(bytes).is_some()
}

/// The one document of a YAML text, if there is one without mistakes.
pub(super) fn read_document(bytes: &[u8]) -> Option<Value> {
    let (mut documents, problems) =
        read(&mut SourceMap::new(), vec![(String::new(), bytes.to_vec())], &ReadOptions::default());
    if problems.has_errors() || !documents.miniclusters.is_empty() || documents.companions.len() != 1 {
        return None;
    }
    documents.companions.pop().map(|companion| companion.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> Target {
        Target { namespace: Some("hpc".to_owned()), name: "a-curve-0123456789".to_owned() }
    }

    fn person() -> String {
        age::x25519::Identity::generate().to_public().to_string()
    }

    fn sops(recipients: &[&String]) -> (Cipher, Vec<u8>) {
        let cipher = Cipher::Sops { recipients: recipients.iter().map(|r| (*r).clone()).collect() };
        let bytes = cipher.encrypt(&target(), &PrivateText::new(vec![1]), Duration::ZERO).unwrap();
        (cipher, bytes)
    }

    fn sealed(scope: SealedScope) -> (Cipher, Vec<u8>) {
        let (_, certificate) = sealed::tests::controller();
        let cipher = Cipher::Sealed { certificate, scope };
        let bytes = cipher.encrypt(&target(), &PrivateText::new(vec![1]), Duration::ZERO).unwrap();
        (cipher, bytes)
    }

    #[test]
    fn recipients_are_read_from_the_file() {
        let (a, b) = (person(), person());
        let ((one, file_of_one), (both, file_of_both)) = (sops(&[&a]), sops(&[&b, &a]));
        let why = |cipher: &Cipher, file: &[u8]| cipher.outdated(&target(), "key", file, None);
        assert_eq!(why(&one, &file_of_one), None);
        assert_eq!(why(&both, &file_of_both), None);
        assert_eq!(why(&both, &file_of_one), Some(format!("it cannot be decrypted by {b}")));
        assert_eq!(why(&one, &file_of_both), Some(format!("it can be decrypted by {b} too")));
        assert_eq!(why(&sops(&[&b]).0, &file_of_one), Some(format!("it can be decrypted by {a} and not by {b}")));
        assert_eq!(why(&one, b"kind: Secret\n"), Some("it is no SOPS file of a Secret".to_owned()));
        assert_eq!(why(&one, &sealed(SealedScope::Strict).1), Some("it is no SOPS file".to_owned()));
    }

    #[test]
    fn another_name_namespace_or_key_is_seen() {
        let a = person();
        let (cipher, file) = sops(&[&a]);
        let made = cipher.made(&file, "key");
        assert_eq!(cipher.outdated(&target(), "key", &file, Some(&made)), None);
        let why = cipher.outdated(&target(), "new", &file, Some(&made));
        assert_eq!(why.unwrap(), "it holds another key pair");
        let renamed = Target { name: "b".to_owned(), ..target() };
        let why = cipher.outdated(&renamed, "key", &file, None);
        assert_eq!(why.unwrap(), "it is the Secret a-curve-0123456789, not b");
        let moved = Target { namespace: None, ..target() };
        assert_eq!(cipher.outdated(&moved, "key", &file, None).unwrap(), "its namespace is hpc, not none");
        let text = String::from_utf8(file).unwrap();
        let more = text.replace("data:\n", "data:\n  x: \"ENC[AES256_GCM,data:x]\"\n");
        assert_eq!(
            cipher.outdated(&target(), "key", more.as_bytes(), None).unwrap(),
            "it does not hold curve.cert alone"
        );
        let labelled = text.replace("metadata:\n", "metadata:\n  labels: {a: b}\n");
        assert_eq!(cipher.outdated(&target(), "key", labelled.as_bytes(), None), None);
        let other = text.replace("kind: Secret", "kind: ConfigMap");
        assert_eq!(cipher.outdated(&target(), "key", other.as_bytes(), None).unwrap(), "it is no Secret");
    }

    #[test]
    fn a_sealing_certificate_counts_until_somebody_seals_anew() {
        let (cipher, file) = sealed(SealedScope::Strict);
        let made = cipher.made(&file, "key");
        assert_eq!(cipher.outdated(&target(), "key", &file, Some(&made)), None);
        let other = Made { sealed_with: Some("11".to_owned()), ..made.clone() };
        let why = cipher.outdated(&target(), "key", &file, Some(&other));
        assert_eq!(why.unwrap(), "it was sealed with another certificate");
        // `kubeseal --re-encrypt`: another file, of which only the controller knows with what it is sealed.
        let again = cipher.encrypt(&target(), &PrivateText::new(vec![1]), Duration::ZERO).unwrap();
        assert_eq!(cipher.outdated(&target(), "key", &again, Some(&other)), None);
        assert_eq!(cipher.outdated(&target(), "key", &again, None), None);
        let wide = sealed(SealedScope::ClusterWide).1;
        let why = cipher.outdated(&target(), "key", &wide, None);
        assert_eq!(why.unwrap(), "it is sealed with scope cluster-wide");
        assert_eq!(cipher.outdated(&target(), "key", b"", None).unwrap(), "it is no SealedSecret");
        let (_, of_sops) = sops(&[&person()]);
        assert_eq!(cipher.outdated(&target(), "key", &of_sops, None).unwrap(), "it is no SealedSecret");
    }

    #[test]
    fn re_encrypted_files_mean_the_same() {
        let (a, b) = (person(), person());
        let (one, again, other) = (sops(&[&a]).1, sops(&[&a]).1, sops(&[&b]).1);
        assert!(one != again && same_meaning(&one, &again));
        assert!(!same_meaning(&one, &other));
        let labelled = String::from_utf8(one.clone()).unwrap().replace("metadata:\n", "metadata:\n  labels: {a: b}\n");
        assert!(!same_meaning(&one, labelled.as_bytes()));
        let (seal, reseal) = (sealed(SealedScope::Strict).1, sealed(SealedScope::Strict).1);
        assert!(seal != reseal && same_meaning(&seal, &reseal));
        assert!(!same_meaning(b"", b"") && !same_meaning(&one, &seal));
    }

    #[test]
    fn audiences() {
        assert_eq!(sops(&[&person()]).0.audience(), "1 age recipient");
        assert_eq!(sops(&[&person(), &person()]).0.audience(), "2 age recipients");
        assert_eq!(sealed(SealedScope::NamespaceWide).0.audience(), "the certificate 00, scope namespace-wide");
    }
}
