//! The Secret as a SOPS file: names in the clear, values encrypted to age recipients.
//!
//! The form is that of `sops` 3.13 (`aes/cipher.go`, `sops.go`, `stores/stores.go` of getsops/sops): a random data key per
//! file, encrypted to each recipient in an age file of its own; values as `ENC[AES256_GCM,…]` under AES-256-GCM with a nonce
//! of 32 bytes and the path as additional data; and an authentication code over the encrypted values
//! (`mac_only_encrypted`), so that labels which another tool adds do not break it.

use std::collections::BTreeSet;
use std::time::Duration;

use aes_gcm::aead::consts::U32;
use aes_gcm::aead::{Aead, KeyInit, Payload};
use aes_gcm::aes::Aes256;
use aes_gcm::{AesGcm, Nonce};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256, Sha512};
use x509_cert::der::DateTime;
use zeroize::Zeroizing;

use super::cipher::{EncryptError, Target};
use super::secret::{PrivateText, SECRET_KEY, skeleton};
use super::yaml;

/// The version whose form is written.
const VERSION: &str = "3.13.3";
/// Which values are encrypted.
const ENCRYPTED: &str = "^(data|stringData)$";
/// Where SOPS keeps what belongs to it.
const SOPS: &str = "sops";
/// How an encrypted value begins.
const VALUE_PREFIX: &str = "ENC[AES256_GCM,data:";
/// Bytes of the data key and of nonces.
const KEY_BYTES: usize = 32;
/// Bytes of an authentication tag.
const TAG_BYTES: usize = 16;

type Cipher = AesGcm<Aes256, U32>;

/// The file for `sops` and Flux CD. Different bytes each time.
///
/// # Errors
/// When there are no random numbers, a recipient is none, or `now` is no date.
pub fn encrypt(
    target: &Target,
    certificate: &PrivateText,
    recipients: &BTreeSet<String>,
    now: Duration,
) -> Result<Vec<u8>, EncryptError> {
    let mut key = Zeroizing::new([0; KEY_BYTES]);
    random(key.as_mut_slice())?;
    // SOPS encrypts what stands in the file, which in a Secret is base64.
    let encoded = Zeroizing::new(STANDARD.encode(certificate.expose()));
    let value = encrypt_value(&key, encoded.as_bytes(), &format!("data:{SECRET_KEY}:"))?;
    let modified = DateTime::from_unix_duration(now).map_err(|_| EncryptError::Clock)?.to_string();
    let mac = encrypt_value(&key, mac_of(encoded.as_bytes()).as_bytes(), &modified)?;
    let keys: Vec<Value> =
        recipients.iter().map(|recipient| data_key_for(recipient, key.as_slice())).collect::<Result<_, _>>()?;
    let mut document = skeleton(target.namespace.as_deref(), &target.name);
    document["data"] = json!({ SECRET_KEY: value });
    document[SOPS] = json!({
        "age": keys,
        "lastmodified": modified,
        "mac": mac,
        "encrypted_regex": ENCRYPTED,
        "mac_only_encrypted": true,
        "version": VERSION,
    });
    Ok(yaml::to_yaml(&document)?.into_bytes())
}

fn random(bytes: &mut [u8]) -> Result<(), EncryptError> {
    getrandom::fill(bytes).map_err(|e| EncryptError::Random(e.to_string()))
}

/// The data key in an age file for one recipient.
fn data_key_for(recipient: &str, key: &[u8]) -> Result<Value, EncryptError> {
    let parsed: age::x25519::Recipient =
        recipient.parse().map_err(|_| EncryptError::Recipient(recipient.to_owned()))?;
    let enc = age::encrypt_and_armor(&parsed, key).map_err(|e| EncryptError::Age(e.to_string()))?;
    Ok(json!({ "recipient": recipient, "enc": enc }))
}

/// `ENC[…]` of a text.
fn encrypt_value(key: &[u8; KEY_BYTES], text: &[u8], path: &str) -> Result<String, EncryptError> {
    let mut nonce = [0; KEY_BYTES];
    random(&mut nonce)?;
    let cipher = Cipher::new(key.into());
    let payload = Payload { msg: text, aad: path.as_bytes() };
    let sealed = cipher.encrypt(&Nonce::<U32>::from(nonce), payload).map_err(|_| EncryptError::Cipher)?;
    let (data, tag) = sealed.split_at(sealed.len().saturating_sub(TAG_BYTES));
    let [data, nonce, tag] = [data, &nonce, tag].map(|bytes| STANDARD.encode(bytes));
    Ok(format!("{VALUE_PREFIX}{data},iv:{nonce},tag:{tag},type:str]"))
}

/// The authentication code over the only encrypted value, as SOPS writes it: SHA-512 in upper-case hexadecimal digits.
/// Codes over encrypted values only begin with SHA-256 of `sops`, so that they differ from those over all values.
fn mac_of(value: &[u8]) -> Zeroizing<String> {
    let mut hash = Sha512::new();
    hash.update(Sha256::digest(SOPS));
    hash.update(value);
    Zeroizing::new(super::hex(&hash.finalize()).to_ascii_uppercase())
}

/// Takes what SOPS added out of a document: what is left has an empty text in place of each encrypted value of `data`.
/// `None` when it is no SOPS file of a Secret.
pub(super) fn take_apart(mut document: Value) -> Option<(Value, Keys)> {
    let sops = document.as_object_mut()?.shift_remove(SOPS)?;
    let keys = Keys::of(&sops)?;
    let data = document.get_mut("data")?.as_object_mut()?;
    for value in data.values_mut() {
        value.as_str().filter(|text| text.starts_with(VALUE_PREFIX) && text.ends_with(']'))?;
        *value = Value::String(String::new());
    }
    Some((document, keys))
}

/// Whether an object is a SOPS file whose `data` and `stringData` hold nothing but encrypted values.
#[must_use]
pub fn hides_data(object: &Value) -> bool {
    let is_hidden = |value: &Value| value.as_str().is_some_and(|t| t.starts_with(VALUE_PREFIX) && t.ends_with(']'));
    let signed = object.pointer("/sops/mac").is_some_and(is_hidden);
    let values = ["data", "stringData"].iter().filter_map(|field| object.get(*field)?.as_object());
    signed && values.flat_map(|map| map.values()).all(is_hidden)
}

/// Who can decrypt a file: read from the file itself, because `sops updatekeys` changes it there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Keys {
    /// age recipients.
    pub(super) age: BTreeSet<String>,
    /// Keys of other kinds (PGP, a cloud's key management), as written, without what changes each time.
    pub(super) others: BTreeSet<String>,
}

/// Fields of `sops` that are lists of keys of other kinds.
const OTHER_KINDS: [&str; 6] = ["kms", "gcp_kms", "hckms", "azure_kv", "hc_vault", "pgp"];

impl Keys {
    /// Keys of all key groups. `None` when something is not as SOPS writes it.
    fn of(sops: &Value) -> Option<Self> {
        sops.get("mac")?.as_str().filter(|mac| mac.starts_with(VALUE_PREFIX))?;
        let mut keys = Self { age: BTreeSet::new(), others: BTreeSet::new() };
        let groups = sops.get("key_groups").and_then(Value::as_array).into_iter().flatten();
        for group in groups.chain([sops]) {
            for key in group.get("age").and_then(Value::as_array).into_iter().flatten() {
                key.get("enc")?.as_str().filter(|enc| !enc.is_empty())?;
                keys.age.insert(key.get("recipient")?.as_str()?.to_owned());
            }
            for kind in OTHER_KINDS {
                for key in group.get(kind).and_then(Value::as_array).into_iter().flatten() {
                    let fields = key.as_object()?.iter().filter(|(name, _)| *name != "enc" && *name != "created_at");
                    let fields: serde_json::Map<String, Value> = fields.map(|(k, v)| (k.clone(), v.clone())).collect();
                    keys.others.insert(format!("{kind} {}", Value::Object(fields)));
                }
            }
        }
        Some(keys)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::bundle::cipher::read_document;
    use proptest::prelude::*;

    /// What `sops -d` does, written against its Go source: data key with an identity, value, authentication code.
    pub(crate) fn decrypt(bytes: &[u8], identity: &age::x25519::Identity) -> Result<Vec<u8>, String> {
        let document = read_document(bytes).ok_or("no document")?;
        let sops = &document[SOPS];
        let enc = |key: &Value| key["enc"].as_str().unwrap_or_default().as_bytes().to_vec();
        let keys = sops["age"].as_array().ok_or("no age")?;
        let key = keys.iter().find_map(|key| age::decrypt(identity, &enc(key)).ok()).ok_or("not a recipient")?;
        let open = |text: &Value, path: &str| -> Result<Vec<u8>, String> {
            let inner = text.as_str().and_then(|t| t.strip_prefix("ENC[AES256_GCM,")?.strip_suffix(']'));
            let mut parts = inner.ok_or("no ENC")?.split(',').map(|part| part.split_once(':').unwrap().1);
            let mut bytes = || STANDARD.decode(parts.next().unwrap()).map_err(|e| e.to_string());
            let (mut data, nonce, tag) = (bytes()?, bytes()?, bytes()?);
            data.extend(tag);
            let nonce: [u8; KEY_BYTES] = nonce.try_into().map_err(|_| "nonce")?;
            let cipher = Cipher::new_from_slice(&key).map_err(|e| e.to_string())?;
            let payload = Payload { msg: &data, aad: path.as_bytes() };
            cipher.decrypt(&Nonce::<U32>::from(nonce), payload).map_err(|_| format!("cannot open {path}"))
        };
        let value = open(&document["data"][SECRET_KEY], "data:curve.cert:")?;
        let mac = open(&sops["mac"], sops["lastmodified"].as_str().unwrap())?;
        let expect = mac_of(&value);
        if mac != expect.as_bytes() {
            return Err("authentication code".to_owned());
        }
        STANDARD.decode(value).map_err(|e| e.to_string())
    }

    fn target() -> Target {
        Target { namespace: Some("hpc".to_owned()), name: "lammps-curve-0123456789".to_owned() }
    }

    fn now() -> Duration {
        Duration::from_secs(1_800_000_000)
    }

    #[test]
    fn the_form_is_that_of_sops() {
        let identity = age::x25519::Identity::generate();
        let recipients = BTreeSet::from([identity.to_public().to_string()]);
        let bytes = encrypt(&target(), &PrivateText::new(b"text".to_vec()), &recipients, now()).unwrap();
        let text = String::from_utf8(bytes.clone()).unwrap();
        for line in [
            "  name: lammps-curve-0123456789",
            "  namespace: hpc",
            "immutable: true",
            "  lastmodified: 2027-01-15T08:00:00Z",
            "  encrypted_regex: ^(data|stringData)$",
            "  mac_only_encrypted: true",
        ] {
            assert!(text.lines().any(|l| l.replace('"', "") == line), "{line}\n{text}");
        }
        let document = read_document(&bytes).unwrap();
        assert_eq!(document["data"].as_object().unwrap().len(), 1);
        let (rest, keys) = take_apart(document).unwrap();
        assert_eq!(keys, Keys { age: recipients, others: BTreeSet::new() });
        assert_eq!(rest["kind"], "Secret");
        // `echo -n sops | sha256sum` as in sops.go.
        assert_eq!(super::super::hex(&Sha256::digest("sops"))[..16], *"8a3fd2ad54ce6652");
    }

    #[test]
    fn what_is_no_sops_file_is_refused() {
        let good = json!({"data": {"a": "ENC[AES256_GCM,data:x]"}, "sops": {"mac": "ENC[AES256_GCM,data:x]"}});
        assert!(take_apart(good.clone()).is_some());
        for (pointer, value) in [
            ("/data/a", json!("plain")),
            ("/data", json!(1)),
            ("/sops/mac", json!("")),
            ("/sops", json!({"mac": "ENC[AES256_GCM,data:x]", "age": [{"recipient": "age1"}]})),
            ("/sops", json!({"mac": "ENC[AES256_GCM,data:x]", "pgp": ["x"]})),
        ] {
            let mut bad = good.clone();
            *bad.pointer_mut(pointer).unwrap() = value;
            assert!(take_apart(bad).is_none(), "{pointer}");
        }
        assert!(take_apart(json!({"data": {}})).is_none() && take_apart(json!([])).is_none());
    }

    #[test]
    fn keys_of_other_kinds_and_groups_are_seen() {
        let sops = |created: &str| {
            let age = json!([{"recipient": "age1a", "enc": "x"}]);
            json!({
                "mac": "ENC[AES256_GCM,data:x]",
                "key_groups": [{"age": age}, {"pgp": [{"fp": "00", "enc": created, "created_at": created}]}],
                "kms": [{"arn": "arn:x", "enc": created}],
            })
        };
        let keys = Keys::of(&sops("1")).unwrap();
        assert_eq!(keys, Keys::of(&sops("2")).unwrap());
        assert!(keys.age.contains("age1a") && keys.others.len() == 2);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn any_certificate_for_any_number_of_people(
            text in proptest::collection::vec(any::<u8>(), 1..2000),
            people in 1usize..4,
        ) {
            let identities: Vec<_> = (0..people).map(|_| age::x25519::Identity::generate()).collect();
            let recipients: BTreeSet<String> = identities.iter().map(|i| i.to_public().to_string()).collect();
            let bytes = encrypt(&target(), &PrivateText::new(text.clone()), &recipients, now()).unwrap();
            for identity in &identities {
                prop_assert_eq!(decrypt(&bytes, identity).unwrap(), text.clone());
            }
            prop_assert!(decrypt(&bytes, &age::x25519::Identity::generate()).is_err());
            let again = encrypt(&target(), &PrivateText::new(text), &recipients, now()).unwrap();
            prop_assert_ne!(bytes, again);
        }
    }
}
