//! Characters that kustomize cannot carry.
//!
//! kustomize (`kubectl -k`, Argo CD, Flux CD) writes objects as YAML again and reads that, and its reader refuses some
//! characters that its writer does not escape. Tried with kustomize 5.5: one such character anywhere makes it fail on the
//! whole folder.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;

/// Whether kustomize can carry this character.
#[must_use]
pub fn can_carry(c: char) -> bool {
    !matches!(c, '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}')
}

/// Whether kustomize can carry this text.
fn can_carry_all(text: &str) -> bool {
    // Nearly all texts are ASCII, and that is told without looking at characters.
    text.bytes().fold(true, |plain, b| plain & (b < 0x7f)) || text.chars().all(can_carry)
}

/// Moves texts that kustomize cannot carry from `data` to `binaryData`. Pods see the same files.
pub fn move_to_binary(map: &mut ConfigMap) {
    let Some(data) = &mut map.data else { return };
    let bad: Vec<String> = data.iter().filter(|(_, text)| !can_carry_all(text)).map(|(key, _)| key.clone()).collect();
    for key in bad {
        if let Some(text) = data.remove(&key) {
            map.binary_data.get_or_insert_default().insert(key, ByteString(text.into_bytes()));
        }
    }
    if data.is_empty() {
        map.data = None;
    }
}

/// The first character in a value that kustomize cannot carry, with the path to it (`spec.template…args[0]`).
#[must_use]
pub fn find_uncarried(value: &Value) -> Option<(String, char)> {
    match value {
        Value::String(text) => text.chars().find(|c| !can_carry(*c)).map(|c| (String::new(), c)),
        Value::Array(items) => items.iter().enumerate().find_map(|(i, item)| {
            let (path, c) = find_uncarried(item)?;
            Some((format!("[{i}]{path}"), c))
        }),
        Value::Object(map) => map.iter().find_map(|(key, item)| {
            if let Some(c) = key.chars().find(|c| !can_carry(*c)) {
                return Some((String::new(), c));
            }
            let (path, c) = find_uncarried(item)?;
            Some((format!(".{key}{path}"), c))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn texts_move_and_others_are_found() {
        let data = [("a".to_owned(), "x\u{7f}".to_owned()), ("b".to_owned(), "é\u{85}😀\t".to_owned())];
        let mut map = ConfigMap { data: Some(data.into()), ..ConfigMap::default() };
        move_to_binary(&mut map);
        assert_eq!(map.binary_data.as_ref().map(|m| m["a"].0.clone()), Some(b"x\x7f".to_vec()));
        assert_eq!(map.data.as_ref().map(std::collections::BTreeMap::len), Some(1));
        let found = find_uncarried(&json!({"spec": {"args": ["a", "b\u{9b}c"]}}));
        assert_eq!(found, Some((".spec.args[1]".to_owned(), '\u{9b}')));
        assert_eq!(find_uncarried(&json!({"a": "\u{1b}é"})), None);
    }
}
