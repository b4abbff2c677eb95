//! The Secret of a certificate.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

/// The Secret that holds a certificate file; immutable, because its name changes with the key pair.
#[must_use]
pub fn certificate_secret(name: &str, namespace: Option<&str>, file: &[u8]) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: namespace.map(str::to_owned),
            ..ObjectMeta::default()
        },
        data: Some(BTreeMap::from([("curve.cert".to_owned(), ByteString(file.to_vec()))])),
        immutable: Some(true),
        type_: Some("Opaque".to_owned()),
        ..Secret::default()
    }
}
