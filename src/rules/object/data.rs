//! ConfigMaps and Secrets.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};

use super::check::{Check, Path};
use crate::rules::syntax;

/// All values of a ConfigMap or Secret together (`MaxSecretSize`).
const MOST_BYTES: usize = 1024 * 1024;

pub(super) fn config_map(check: &mut Check, map: &ConfigMap) {
    let (data, binary) = (Path::root("data"), Path::root("binaryData"));
    let mut bytes = 0;
    for (key, value) in map.data.iter().flatten() {
        check.form(&data.entry(key), key, syntax::data_key);
        bytes += value.len();
    }
    for (key, value) in map.binary_data.iter().flatten() {
        check.form(&binary.entry(key), key, syntax::data_key);
        if map.data.as_ref().is_some_and(|data| data.contains_key(key)) {
            check.problem(&binary.entry(key), "is also a key of data");
        }
        bytes += value.0.len();
    }
    size(check, bytes);
}

/// Messages hold keys and sizes, never values.
pub(super) fn secret(check: &mut Check, secret: &Secret) {
    let mut keys: Vec<&String> = Vec::new();
    let mut bytes = 0;
    for (key, value) in secret.data.iter().flatten() {
        check.form(&Path::root("data").entry(key), key, syntax::data_key);
        keys.push(key);
        bytes += value.0.len();
    }
    for (key, value) in secret.string_data.iter().flatten() {
        check.form(&Path::root("stringData").entry(key), key, syntax::data_key);
        keys.push(key);
        bytes += value.len();
    }
    size(check, bytes);
    let needed: &[&str] = match secret.type_.as_deref() {
        Some("kubernetes.io/dockerconfigjson") => &[".dockerconfigjson"],
        Some("kubernetes.io/dockercfg") => &[".dockercfg"],
        Some("kubernetes.io/ssh-auth") => &["ssh-privatekey"],
        Some("kubernetes.io/tls") => &["tls.crt", "tls.key"],
        _ => &[],
    };
    for key in needed {
        if !keys.iter().any(|there| there == key) {
            check.required(&Path::root("data").entry(key));
        }
    }
}

fn size(check: &mut Check, bytes: usize) {
    if bytes > MOST_BYTES {
        check.problem(&Path::root("data"), format!("{bytes} bytes are more than {MOST_BYTES}"));
    }
}
