//! `certs/public.json`: what is known of each certificate without its private key. To be committed; nothing in it is secret.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::cipher::{CipherKind, Made};

/// The record of a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Record {
    api_version: String,
    kind: String,
    /// Public keys in Z85 by `<namespace or default>/<name>`.
    pub keys: BTreeMap<String, String>,
    /// What the encrypted forms of each certificate were made for.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub encrypted: BTreeMap<String, BTreeMap<CipherKind, Made>>,
}

impl Record {
    const API_VERSION: &str = "flux-gen.dev/v1";
    const KIND: &str = "PublicKeys";

    /// A record of nothing.
    #[must_use]
    pub fn new() -> Self {
        Self {
            api_version: Self::API_VERSION.to_owned(),
            kind: Self::KIND.to_owned(),
            keys: BTreeMap::new(),
            encrypted: BTreeMap::new(),
        }
    }

    /// Reads the file.
    ///
    /// # Errors
    /// Why it is no record, in words.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let record: Self = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
        if record.api_version != Self::API_VERSION || record.kind != Self::KIND {
            return Err(format!("it says {} {}", record.api_version, record.kind));
        }
        match record.keys.iter().find(|(_, key)| !is_public_key(key)) {
            Some((title, _)) => Err(format!("{title} has no Z85 key of 40 characters")),
            None => Ok(record),
        }
    }

    /// The bytes of the file.
    ///
    /// # Errors
    /// Never for a record; serde's signature asks for it.
    pub fn to_bytes(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut bytes = serde_json::to_vec_pretty(self)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// What an encrypted form was made for, if that is known.
    #[must_use]
    pub fn made(&self, title: &str, kind: CipherKind) -> Option<&Made> {
        self.encrypted.get(title)?.get(&kind)
    }
}

impl Default for Record {
    fn default() -> Self {
        Self::new()
    }
}

/// 40 characters of Z85 that stand for 32 bytes.
fn is_public_key(text: &str) -> bool {
    text.len() == crate::flux::certificate::KEY_CHARS && z85::decode(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_and_refusals() {
        let mut record = Record::new();
        let key = crate::flux::Certificate::from_secret_bytes([3; 32], "a").public_key().to_owned();
        record.keys.insert("hpc/a".to_owned(), key.clone());
        let plain = String::from_utf8(record.to_bytes().unwrap()).unwrap();
        assert!(!plain.contains("encrypted"), "{plain}");
        let made = Made { public_key: key, sealed_with: None, sha256: None };
        record.encrypted.entry("hpc/a".to_owned()).or_default().insert(CipherKind::Sops, made.clone());
        let bytes = record.to_bytes().unwrap();
        let read = Record::parse(&bytes).unwrap();
        assert_eq!((read.made("hpc/a", CipherKind::Sops), read.made("hpc/a", CipherKind::Sealed)), (Some(&made), None));
        assert_eq!(read.made("hpc/b", CipherKind::Sops), None);
        for (from, to) in [("flux-gen.dev/v1", "v2"), ("PublicKeys", "X"), ("sops", "other"), ("\"keys\"", "\"k\"")] {
            assert!(Record::parse(String::from_utf8_lossy(&bytes).replace(from, to).as_bytes()).is_err(), "{from}");
        }
        record.keys.insert("hpc/b".to_owned(), "short".to_owned());
        assert_eq!(Record::parse(&record.to_bytes().unwrap()).unwrap_err(), "hpc/b has no Z85 key of 40 characters");
    }
}
