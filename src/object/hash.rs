//! Kustomize's content hash of a ConfigMap or Secret: the suffix that makes a name change when the content changes.
//!
//! As kustomize's name suffix hasher does it for generated objects (`api/hasher`, unchanged since v4): SHA-256 over JSON as
//! Go writes it, the first ten hexadecimal digits, some of them replaced so that no words come out. The tests hold names
//! that `kubectl kustomize` made.

use std::borrow::Cow;
use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use sha2::{Digest, Sha256};

/// Width at which kustomize breaks long base64 text; the line feeds are part of what it hashes.
const BASE64_LINE: usize = 70;

/// The ten characters for a ConfigMap. Only its data counts: the name that kustomize hashes is always empty, because it
/// looks the name up under a key that no object has.
#[must_use]
pub fn config_map_hash(object: &ConfigMap) -> String {
    let length: usize = object.data.iter().flatten().map(|(key, value)| key.len() + value.len()).sum();
    // With room for what is escaped: one byte of a line, and some in between.
    let mut json = GoJson(String::with_capacity(length + length / 8 + 256));
    json.raw("{");
    if let Some(binary) = &object.binary_data {
        json.raw("\"binaryData\":");
        json.map(binary, |json, value| json.base64(value));
        json.raw(",");
    }
    json.raw("\"data\":");
    match &object.data {
        Some(data) => json.map(data, |json, value| json.string(value)),
        None => json.raw("\"\""),
    }
    json.raw(",\"kind\":\"ConfigMap\",\"name\":\"\"}");
    json.suffix()
}

/// The ten characters for a Secret. Only its data and type count, as for [`config_map_hash`].
#[must_use]
pub fn secret_hash(object: &Secret) -> String {
    let mut json = GoJson::default();
    json.raw("{\"data\":");
    match &object.data {
        Some(data) => json.map(data, |json, value| json.base64(value)),
        None => json.raw("\"\""),
    }
    json.raw(",\"kind\":\"Secret\",\"name\":\"\"");
    if let Some(data) = &object.string_data {
        json.raw(",\"stringData\":");
        json.map(data, |json, value| json.string(value));
    }
    json.raw(",\"type\":");
    json.string(object.type_.as_deref().unwrap_or_default());
    json.raw("}");
    json.suffix()
}

/// Bytes that can begin a character that is escaped. Scripts are long, so they are searched by byte and in a table.
const MAY_BE_ESCAPED: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < table.len() {
        table[byte] = byte < 0x20 || matches!(byte, 0x22 | 0x26 | 0x3c | 0x3e | 0x5c | 0xe2);
        byte += 1;
    }
    table
};

/// The ten characters for any bytes, in the alphabet of kustomize's suffixes: they fit into every name and spell no words.
#[must_use]
pub fn name_suffix(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.take(10).map(|digit| char::from(b"gh2k456789mbcdtf"[usize::from(digit)])).collect()
}

/// JSON in the spelling of Go's `encoding/json`, to be hashed.
#[derive(Default)]
struct GoJson(String);

impl GoJson {
    fn raw(&mut self, text: &str) {
        self.0.push_str(text);
    }

    fn map<V>(&mut self, map: &BTreeMap<String, V>, mut write: impl FnMut(&mut Self, &V)) {
        self.raw("{");
        for (i, (key, value)) in map.iter().enumerate() {
            if i > 0 {
                self.raw(",");
            }
            self.string(key);
            self.raw(":");
            write(self, value);
        }
        self.raw("}");
    }

    fn string(&mut self, text: &str) {
        self.raw("\"");
        let mut rest = text;
        while let Some(at) = rest.as_bytes().iter().position(|b| MAY_BE_ESCAPED[usize::from(*b)]) {
            let (plain, odd) = rest.split_at(at);
            self.raw(plain);
            let mut after = odd.chars();
            match after.next().map(|c| (c, escape(c))) {
                Some((_, Some(escape))) => self.raw(&escape),
                Some((c, None)) => self.0.push(c),
                None => {}
            }
            rest = after.as_str();
        }
        self.raw(rest);
        self.raw("\"");
    }

    fn base64(&mut self, bytes: &ByteString) {
        let text = STANDARD.encode(&bytes.0);
        if text.len() < BASE64_LINE {
            self.string(&text);
            return;
        }
        let mut lines = String::with_capacity(text.len() + text.len() / BASE64_LINE + 1);
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let (line, after) = rest.split_at(rest.len().min(BASE64_LINE));
            lines.push_str(line);
            lines.push('\n');
            rest = after;
        }
        self.string(&lines);
    }

    fn suffix(self) -> String {
        name_suffix(self.0.as_bytes())
    }
}

/// What Go writes for a character that it does not write as it is.
fn escape(c: char) -> Option<Cow<'static, str>> {
    let name = match c {
        '"' => "\\\"",
        '\\' => "\\\\",
        '\u{8}' => "\\b",
        '\u{c}' => "\\f",
        '\n' => "\\n",
        '\r' => "\\r",
        '\t' => "\\t",
        '<' => "\\u003c",
        '>' => "\\u003e",
        '&' => "\\u0026",
        '\0'..='\u{1f}' | '\u{2028}' | '\u{2029}' => {
            return Some(format!("\\u{:04x}", u32::from(c)).into());
        }
        _ => return None,
    };
    Some(name.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

    /// Name, files, suffix of the generated ConfigMap, suffix of the generated Secret.
    type Golden = (&'static str, Vec<(&'static str, Vec<u8>)>, &'static str, &'static str);

    /// Made with `configMapGenerator` and `secretGenerator` of kubectl 1.32 (kustomize 5.5.0).
    fn golden() -> Vec<Golden> {
        let long = format!("{}\n", "x".repeat(5000)).into_bytes();
        vec![
            ("simple", vec![("a", b"b".to_vec())], "4h2mbtbbt6", "k695gkmbtk"),
            ("empty", vec![("a", vec![])], "ddd6gb82mt", "m64m72k7hb"),
            (
                "two",
                vec![("b.sh", b"#!/bin/sh\necho \"$HOME\" <>&'\n".to_vec()), ("a.txt", b"tab\there\r\nlast".to_vec())],
                "f2d22mk66t",
                "tc77g5m74h",
            ),
            (
                "unicode",
                vec![(
                    "k",
                    "h\u{e9}llo \u{1f600} \u{2028} \u{2029} \u{7f} \u{1} \u{8} \u{c} \u{1b}".as_bytes().to_vec(),
                )],
                // kustomize fails on it, but only after it has made the name.
                "ctftt47c5k",
                "5fdg7c5cdb",
            ),
            ("binary", vec![("bin", (0..=255).collect()), ("t", b"text\n".to_vec())], "gfbh75m4b4", "6t5bgchdgh"),
            ("shortbin", vec![("bin", vec![0xff, 0xfe])], "2k5k4c2bm6", "5gft4bb54g"),
            ("long", vec![("k", long)], "m6d7g8ff54", "6k42f4kmtf"),
            ("nodata", vec![], "6ct58987ht", "46f8b28mk5"),
            ("nul", vec![("k", b"a\0b".to_vec())], "md6d47tfkf", "97mb4t8b4t"),
            ("quotes", vec![("k", b"\\ \" / ' \n \\n".to_vec())], "b2md7gcf2f", "5kk6cdmbk6"),
            ("seventy", vec![("k", vec![b'y'; 52])], "fmkcg6thtk", "f7hc9526c6"),
            ("seventyone", vec![("k", vec![b'y'; 53])], "7t2kcdbhf6", "b2g8kt675d"),
            ("nel", vec![("k", "a\u{85}b\u{feff}c".as_bytes().to_vec())], "76gd24dcd5", "kg2bbhk5ch"),
        ]
    }

    #[test]
    fn suffixes_are_those_of_kustomize() {
        for (name, files, config_map, secret) in golden() {
            let metadata = ObjectMeta { name: Some(format!("n-{name}")), ..ObjectMeta::default() };
            let mut data = BTreeMap::new();
            let mut binary = BTreeMap::new();
            let mut secret_data = BTreeMap::new();
            for (key, bytes) in files {
                secret_data.insert(key.to_owned(), ByteString(bytes.clone()));
                match String::from_utf8(bytes) {
                    Ok(text) => drop(data.insert(key.to_owned(), text)),
                    Err(e) => drop(binary.insert(key.to_owned(), ByteString(e.into_bytes()))),
                }
            }
            let object = ConfigMap {
                metadata: metadata.clone(),
                data: (!data.is_empty()).then_some(data),
                binary_data: (!binary.is_empty()).then_some(binary),
                ..ConfigMap::default()
            };
            assert_eq!(config_map_hash(&object), config_map, "config map {name}");
            let object =
                Secret { metadata, data: Some(secret_data), type_: Some("Opaque".to_owned()), ..Secret::default() };
            assert_eq!(secret_hash(&object), secret, "secret {name}");
        }
    }

    #[test]
    fn a_missing_map_is_not_an_empty_one() {
        // As kustomize: its ConfigMap without files has no `data`, its Secret without files has `data: {}`.
        let with = |data| ConfigMap { data, ..ConfigMap::default() };
        assert_eq!(config_map_hash(&with(None)), "6ct58987ht");
        assert_ne!(config_map_hash(&with(None)), config_map_hash(&with(Some(BTreeMap::new()))));
    }
}
