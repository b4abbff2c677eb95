//! What becomes of the private half of a certificate: the forms of a Secret.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use zeroize::{Zeroize, Zeroizing};

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
}

/// The Secret as an object: immutable, type `Opaque`, the certificate file under [`SECRET_KEY`].
///
/// Contains the private key. For the bundle with the `plain` form, and for a trial with `existing`
/// (`cert show NAME --secret | kubectl apply -f -`).
fn secret_value(namespace: Option<&str>, name: &str, certificate: &PrivateText) -> Value {
    let mut metadata = json!({ "name": name });
    if let Some(namespace) = namespace {
        metadata["namespace"] = namespace.into();
    }
    json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "type": "Opaque",
        "immutable": true,
        "data": { SECRET_KEY: STANDARD.encode(certificate.expose()) },
    })
}

/// The Secret as YAML without a header line. Contains the private key.
///
/// # Errors
/// As [`yaml::value_to_yaml`]; the message never contains the value.
pub fn secret_yaml(
    namespace: Option<&str>,
    name: &str,
    certificate: &PrivateText,
) -> Result<Zeroizing<String>, YamlError> {
    let mut value = secret_value(namespace, name, certificate);
    let text = yaml::value_to_yaml(&value).map(Zeroizing::new);
    if let Value::String(encoded) = &mut value["data"][SECRET_KEY] {
        encoded.zeroize();
    }
    text
}
