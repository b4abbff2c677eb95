//! What becomes of the private half of a certificate: the forms of a Secret.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use zeroize::{Zeroize, Zeroizing};

use super::cipher::{CipherKind, Leeway, read_document};
use super::yaml::{self, YamlError};

/// The key of the Secret that holds the certificate file.
pub const SECRET_KEY: &str = "curve.cert";

/// A certificate file with its private key. Wiped from memory when dropped; never shown by `{:?}`.
#[derive(Clone, PartialEq, Eq)]
pub struct PrivateText(Zeroizing<Vec<u8>>);

impl PrivateText {
    /// Takes the bytes over.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The bytes, for the Secret and the store only.
    #[must_use]
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for PrivateText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PrivateText(..)")
    }
}

/// How a cluster's Secret gets into the Kubernetes cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretForm {
    /// Nothing to carry: no certificate, or somebody else makes the Secret and the bundle only refers to it.
    Existing,
    /// A Secret with the private key in the bundle.
    Plain {
        /// `metadata.name`.
        name: String,
        /// The certificate file.
        certificate: PrivateText,
    },
    /// The Secret in an encrypted form: a copy of the store's file.
    Encrypted {
        /// `metadata.name`.
        name: String,
        /// Which form.
        kind: CipherKind,
        /// The file, to be copied byte for byte.
        bytes: Vec<u8>,
        /// How far what is in the output may be from it.
        leeway: Leeway,
    },
}

impl SecretForm {
    /// `metadata.name` of the Secret, when the bundle carries it.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Existing => None,
            Self::Plain { name, .. } | Self::Encrypted { name, .. } => Some(name),
        }
    }
}

/// The Secret as an object without its data: immutable, of type `Opaque`.
pub(super) fn skeleton(namespace: Option<&str>, name: &str) -> Value {
    let mut metadata = json!({ "name": name });
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.into();
    }
    json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "immutable": true })
}

/// The Secret as YAML without a header line: the certificate file under [`SECRET_KEY`]. Contains the private key.
///
/// For the bundle with the `plain` form, and for a trial with `existing` (`cert new NAME --secret | kubectl apply -f -`).
///
/// # Errors
/// As [`yaml::to_yaml`]; the message never contains the value.
pub fn secret_yaml(
    namespace: Option<&str>,
    name: &str,
    certificate: &PrivateText,
) -> Result<Zeroizing<String>, YamlError> {
    let mut value = skeleton(namespace, name);
    value["data"] = json!({ SECRET_KEY: STANDARD.encode(certificate.expose()) });
    let text = yaml::to_yaml(&value).map(Zeroizing::new);
    if let Value::String(encoded) = &mut value["data"][SECRET_KEY] {
        encoded.zeroize();
    }
    text
}

/// The certificate file in a plain Secret, if the text is one. Contains the private key.
#[must_use]
pub fn certificate_in(yaml: &[u8]) -> Option<PrivateText> {
    let mut document = read_document(yaml)?;
    let is_secret = document.get("kind").and_then(Value::as_str) == Some("Secret");
    let Some(Value::String(encoded)) = document.pointer_mut(&format!("/data/{SECRET_KEY}")) else { return None };
    let encoded = Zeroizing::new(std::mem::take(encoded));
    let bytes = STANDARD.decode(encoded.as_bytes()).ok()?;
    is_secret.then(|| PrivateText::new(bytes))
}
