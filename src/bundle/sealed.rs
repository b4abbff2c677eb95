//! The Secret as a SealedSecret (`bitnami.com/v1alpha1`), sealed with the certificate of the controller.
//!
//! The form is that of `pkg/crypto/crypto.go` and `sealedsecret_expansion.go` of sealed-secrets: a random session key under
//! RSA-OAEP-SHA256 whose label binds the value to where it may be unsealed, then the value under AES-256-GCM.

use aes_gcm::aead::{Aead, KeyInit};
use aes_gcm::{Aes256Gcm, Nonce};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rsa::pkcs1::RsaPublicKey as Pkcs1Key;
use rsa::pkcs1::der::Decode;
use rsa::rand_core::OsRng;
use rsa::sha2::Sha256;
use rsa::{BigUint, Oaep, RsaPublicKey};
use serde_json::{Value, json};
use std::time::Duration;
use x509_cert::Certificate;
use x509_cert::der::{DecodePem, Encode};
use zeroize::Zeroizing;

use super::cipher::{EncryptError, Target};
use super::secret::{PrivateText, SECRET_KEY};
use super::{sha256_hex, yaml};
use crate::model::settings::SealedScope;

/// API of SealedSecrets.
pub const API_VERSION: &str = "bitnami.com/v1alpha1";
/// Their kind.
pub const KIND: &str = "SealedSecret";
/// Annotation of SealedSecrets that can be unsealed under any name.
const NAMESPACE_WIDE: &str = "sealedsecrets.bitnami.com/namespace-wide";
/// Annotation of SealedSecrets that can be unsealed anywhere.
const CLUSTER_WIDE: &str = "sealedsecrets.bitnami.com/cluster-wide";
/// Object identifier of RSA keys (RFC 8017).
const RSA_ENCRYPTION: &str = "1.2.840.113549.1.1.1";
/// Longest key in bits: controllers make 4,096, and arithmetic with far longer ones would take minutes.
const LONGEST_KEY: usize = 16_384;
/// Bytes of the session key.
const KEY_BYTES: usize = 32;

/// The certificate of a controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealingCertificate {
    key: RsaPublicKey,
    fingerprint: String,
    expires: Duration,
}

/// Why a file is no sealing certificate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SealingCertificateError {
    /// Not PEM, or not X.509.
    #[error("it holds no X.509 certificate in PEM: {0}")]
    Shape(String),
    /// A key of another kind.
    #[error("its key is not an RSA key")]
    NotRsa,
    /// A key with impossible numbers.
    #[error("its RSA key is unusable: {0}")]
    Key(String),
}

impl SealingCertificate {
    /// Reads PEM. Of several certificates the first counts, as for `kubeseal`.
    ///
    /// # Errors
    /// When there is no certificate with an RSA key.
    pub fn parse(pem: &[u8]) -> Result<Self, SealingCertificateError> {
        let shape = |why: String| SealingCertificateError::Shape(why);
        let first = first_block(pem).ok_or_else(|| shape("there is none".to_owned()))?;
        let first = Certificate::from_pem(first).map_err(|e| shape(e.to_string()))?;
        let der = first.to_der().map_err(|e| shape(e.to_string()))?;
        let info = &first.tbs_certificate.subject_public_key_info;
        if info.algorithm.oid.to_string() != RSA_ENCRYPTION {
            return Err(SealingCertificateError::NotRsa);
        }
        let key = |why: String| SealingCertificateError::Key(why);
        let numbers = Pkcs1Key::from_der(info.subject_public_key.raw_bytes()).map_err(|e| key(e.to_string()))?;
        let [modulus, exponent] =
            [numbers.modulus, numbers.public_exponent].map(|n| BigUint::from_bytes_be(n.as_bytes()));
        Ok(Self {
            key: RsaPublicKey::new_with_max_size(modulus, exponent, LONGEST_KEY).map_err(|e| key(e.to_string()))?,
            fingerprint: sha256_hex(&der),
            expires: first.tbs_certificate.validity.not_after.to_unix_duration(),
        })
    }

    /// SHA-256 of the certificate, as `openssl x509 -fingerprint -sha256` computes it, in lower-case digits.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// When it ends, since 1970: nothing is sealed with it afterwards.
    #[must_use]
    pub fn expires(&self) -> Duration {
        self.expires
    }
}

/// The first certificate of a PEM text, which may hold words and other certificates around it. (The library's own reader of
/// chains panics on short texts.)
fn first_block(pem: &[u8]) -> Option<&str> {
    const END: &str = "-----END CERTIFICATE-----";
    let text = std::str::from_utf8(pem).ok()?;
    let text = &text[text.find("-----BEGIN CERTIFICATE-----")?..];
    Some(&text[..text.find(END)? + END.len()])
}

/// The SealedSecret. Different bytes each time.
///
/// # Errors
/// When there are no random numbers or the key is too short.
pub fn seal(
    target: &Target,
    certificate: &PrivateText,
    sealing: &SealingCertificate,
    scope: SealedScope,
) -> Result<Vec<u8>, EncryptError> {
    let blob = hybrid(certificate.expose(), sealing, &label(target, scope))?;
    let mut metadata = json!({ "name": target.name });
    if let Some(namespace) = &target.namespace {
        metadata["namespace"] = namespace.as_str().into();
    }
    if let Some(annotation) = annotation(scope) {
        metadata["annotations"] = json!({ annotation: "true" });
    }
    let document = json!({
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata,
        "spec": {
            "encryptedData": { SECRET_KEY: STANDARD.encode(blob) },
            "template": { "metadata": metadata, "type": "Opaque", "immutable": true },
        },
    });
    Ok(yaml::to_yaml(&document)?.into_bytes())
}

/// What binds a value to where it may be unsealed.
fn label(target: &Target, scope: SealedScope) -> String {
    let namespace = target.namespace.as_deref().unwrap_or_default();
    match scope {
        SealedScope::Strict => format!("{namespace}/{}", target.name),
        SealedScope::NamespaceWide => namespace.to_owned(),
        SealedScope::ClusterWide => String::new(),
    }
}

fn annotation(scope: SealedScope) -> Option<&'static str> {
    match scope {
        SealedScope::Strict => None,
        SealedScope::NamespaceWide => Some(NAMESPACE_WIDE),
        SealedScope::ClusterWide => Some(CLUSTER_WIDE),
    }
}

/// Length of the encrypted session key (two bytes, big endian), that key, the encrypted value.
fn hybrid(text: &[u8], sealing: &SealingCertificate, label: &str) -> Result<Vec<u8>, EncryptError> {
    let mut session = Zeroizing::new([0; KEY_BYTES]);
    getrandom::fill(session.as_mut_slice()).map_err(|e| EncryptError::Random(e.to_string()))?;
    let padding = Oaep::new_with_label::<Sha256, _>(label);
    let key = sealing
        .key
        .encrypt(&mut OsRng, padding, session.as_slice())
        .map_err(|e| EncryptError::SealingKey(e.to_string()))?;
    let length = u16::try_from(key.len()).map_err(|_| EncryptError::Cipher)?;
    let cipher = Aes256Gcm::new((&*session).into());
    // The session key is used once, so the nonce may be zero; unsealing takes it for granted.
    let sealed = cipher.encrypt(&Nonce::default(), text).map_err(|_| EncryptError::Cipher)?;
    Ok([length.to_be_bytes().as_slice(), &key, &sealed].concat())
}

/// Takes the encrypted values out of a SealedSecret: an empty text stays in place of each. `None` when it is none.
pub(super) fn take_apart(mut document: Value) -> Option<(Value, SealedScope)> {
    let is = |field: &str, text: &str| document.get(field).and_then(Value::as_str) == Some(text);
    if !is("apiVersion", API_VERSION) || !is("kind", KIND) {
        return None;
    }
    let marked = |annotation: &str| {
        let annotations = document.pointer("/metadata/annotations")?;
        annotations.get(annotation)?.as_str().filter(|text| *text == "true")
    };
    let scope = match (marked(CLUSTER_WIDE), marked(NAMESPACE_WIDE)) {
        (Some(_), _) => SealedScope::ClusterWide,
        (None, Some(_)) => SealedScope::NamespaceWide,
        (None, None) => SealedScope::Strict,
    };
    for value in document.pointer_mut("/spec/encryptedData")?.as_object_mut()?.values_mut() {
        let blob = STANDARD.decode(value.as_str()?).ok()?;
        let length = usize::from(u16::from_be_bytes([*blob.first()?, *blob.get(1)?]));
        // The session key, and at least a tag.
        (blob.len() >= 2 + length + 16).then_some(())?;
        *value = Value::String(String::new());
    }
    Some((document, scope))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::bundle::cipher::read_document;
    use proptest::prelude::*;
    use rsa::RsaPrivateKey;
    use rsa::pkcs8::DecodePrivateKey;

    /// A controller's pair, made for this test run.
    pub(crate) fn controller() -> (RsaPrivateKey, SealingCertificate) {
        // Small, because making a key of 4,096 bits takes seconds without optimisation.
        let private = RsaPrivateKey::new(&mut OsRng, 1024).unwrap();
        let sealing =
            SealingCertificate { key: private.to_public_key(), fingerprint: "00".to_owned(), expires: Duration::ZERO };
        (private, sealing)
    }

    /// What the controller does, written against its Go source.
    pub(crate) fn unseal(bytes: &[u8], private: &RsaPrivateKey) -> Result<Vec<u8>, String> {
        let document = read_document(bytes).ok_or("no document")?;
        let text = |pointer: &str| document.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let metadata = &document["metadata"]["annotations"];
        let label = if metadata[CLUSTER_WIDE] == "true" {
            String::new()
        } else if metadata[NAMESPACE_WIDE] == "true" {
            text("/metadata/namespace")
        } else {
            format!("{}/{}", text("/metadata/namespace"), text("/metadata/name"))
        };
        let blob = STANDARD.decode(text("/spec/encryptedData/curve.cert")).map_err(|e| e.to_string())?;
        let length = usize::from(u16::from_be_bytes([blob[0], blob[1]]));
        let (key, sealed) = blob[2..].split_at(length);
        let session = private.decrypt(Oaep::new_with_label::<Sha256, _>(label), key).map_err(|e| e.to_string())?;
        let cipher = Aes256Gcm::new_from_slice(&session).map_err(|e| e.to_string())?;
        cipher.decrypt(&Nonce::default(), sealed).map_err(|e| e.to_string())
    }

    fn target() -> Target {
        Target { namespace: Some("hpc".to_owned()), name: "a-curve-0123456789".to_owned() }
    }

    #[test]
    fn scopes_bind_to_what_they_say() {
        let (private, sealing) = controller();
        let secret = PrivateText::new(b"certificate".to_vec());
        for (scope, other_name, other_namespace) in [
            (SealedScope::Strict, false, false),
            (SealedScope::NamespaceWide, true, false),
            (SealedScope::ClusterWide, true, true),
        ] {
            let bytes = seal(&target(), &secret, &sealing, scope).unwrap();
            assert_eq!(unseal(&bytes, &private).unwrap(), b"certificate");
            let text = String::from_utf8(bytes.clone()).unwrap();
            let renamed = text.replace("name: a-curve", "name: b-curve");
            let moved = text.replace("namespace: hpc", "namespace: other");
            assert_eq!(unseal(renamed.as_bytes(), &private).is_ok(), other_name, "{scope:?}");
            assert_eq!(unseal(moved.as_bytes(), &private).is_ok(), other_namespace, "{scope:?}");
            let (rest, seen) = take_apart(read_document(&bytes).unwrap()).unwrap();
            assert_eq!((seen, rest["spec"]["encryptedData"][SECRET_KEY].as_str()), (scope, Some("")));
            assert_eq!(rest["spec"]["template"]["immutable"], true);
        }
    }

    #[test]
    fn what_is_no_sealed_secret_is_refused() {
        let (_, sealing) = controller();
        let bytes = seal(&target(), &PrivateText::new(vec![1]), &sealing, SealedScope::Strict).unwrap();
        let good = read_document(&bytes).unwrap();
        for (pointer, value) in [
            ("/kind", json!("Secret")),
            ("/apiVersion", json!("v1")),
            ("/spec/encryptedData", json!([])),
            ("/spec/encryptedData/curve.cert", json!("!")),
            ("/spec/encryptedData/curve.cert", json!("")),
            ("/spec/encryptedData/curve.cert", json!(STANDARD.encode([1, 0, 7]))),
        ] {
            let mut bad = good.clone();
            *bad.pointer_mut(pointer).unwrap() = value;
            assert!(take_apart(bad).is_none(), "{pointer}");
        }
    }

    #[test]
    fn certificates_are_read_or_refused() {
        let elliptic = rcgen::generate_simple_self_signed(vec!["a".to_owned()]).unwrap().cert.pem();
        assert_eq!(SealingCertificate::parse(elliptic.as_bytes()), Err(SealingCertificateError::NotRsa));
        let [one, two] = [include_str!("../../tests/sealing/one.pem"), include_str!("../../tests/sealing/two.pem")];
        let first = SealingCertificate::parse(one.as_bytes()).unwrap();
        assert_eq!(SealingCertificate::parse(format!("words\n{one}{two}").as_bytes()), Ok(first.clone()));
        assert_ne!(SealingCertificate::parse(two.as_bytes()), Ok(first));
        for cut in 0..one.len() - 1 {
            assert!(SealingCertificate::parse(&one.as_bytes()[..cut]).is_err() || cut > one.len() - 3, "{cut}");
        }
        for wrong in [
            &b""[..],
            b"text",
            b"\xff",
            b"-----END CERTIFICATE----------BEGIN CERTIFICATE-----",
            b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            let refused = SealingCertificate::parse(wrong);
            assert!(matches!(refused, Err(SealingCertificateError::Shape(_))), "{refused:?}");
        }
        // A private key by mistake is refused, and not quoted.
        let key = rcgen::KeyPair::generate().unwrap().serialize_pem();
        let refused = SealingCertificate::parse(key.as_bytes()).unwrap_err().to_string();
        assert!(!refused.contains(key.lines().nth(1).unwrap()), "{refused}");
        assert!(RsaPrivateKey::from_pkcs8_pem(&key).is_err());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 16))]
        #[test]
        fn any_certificate_under_any_name(
            text in proptest::collection::vec(any::<u8>(), 0..2000),
            name in "[a-z]([a-z0-9-]{0,40}[a-z0-9])?",
            namespace in "[a-z]{1,20}",
        ) {
            thread_local!(static PAIR: (RsaPrivateKey, SealingCertificate) = controller());
            PAIR.with(|(private, sealing)| {
                let target = Target { namespace: Some(namespace), name };
                let secret = PrivateText::new(text.clone());
                for scope in [SealedScope::Strict, SealedScope::NamespaceWide, SealedScope::ClusterWide] {
                    let bytes = seal(&target, &secret, sealing, scope).unwrap();
                    prop_assert_eq!(unseal(&bytes, private).unwrap(), text.clone());
                    prop_assert_ne!(bytes, seal(&target, &secret, sealing, scope).unwrap());
                }
                Ok(())
            })?;
        }
    }
}
