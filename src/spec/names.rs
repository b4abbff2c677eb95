//! Names as the API server checks them when a document is stored.

use super::decode::Decoder;
use super::minicluster::Metadata;
use super::yaml::short;
use crate::diag::codes::syntax;

/// Checks `metadata.name` (RFC 1123 subdomain) and `metadata.namespace` (RFC 1123 label).
pub(super) fn check(metadata: &Metadata, decoder: &mut Decoder<'_>) {
    if let Some(name) = &metadata.name
        && !is_subdomain(name)
    {
        let message = format!("metadata.name: `{}` is not a lower-case RFC 1123 subdomain", short(name));
        decoder.report(syntax::BAD_NAME, name.span, message, Some(advice(name, is_subdomain)));
    }
    if let Some(namespace) = &metadata.namespace
        && !is_label(namespace)
    {
        let message = format!("metadata.namespace: `{}` is not a lower-case RFC 1123 label", short(namespace));
        decoder.report(syntax::BAD_NAME, namespace.span, message, Some(advice(namespace, is_label)));
    }
}

/// What to write: the same name in lower case with `-`, when that is one.
fn advice(name: &str, is_name: impl Fn(&str) -> bool) -> String {
    let lower = name.to_lowercase().replace(['_', ' '], "-");
    if is_name(&lower) {
        format!("write `{lower}`")
    } else {
        "use lower-case letters, digits and `-`, with a letter or digit at both ends".to_owned()
    }
}

/// RFC 1123 label: up to 63 lower-case letters, digits and `-`, with a letter or digit at both ends.
fn is_label(text: &str) -> bool {
    let edge = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && edge(bytes.first())
        && edge(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
}

/// RFC 1123 subdomain as Kubernetes checks it: labels joined by `.`, at most 253 characters. The length of the single
/// labels is not checked there.
fn is_subdomain(text: &str) -> bool {
    text.len() <= 253
        && text.split('.').all(|label| {
            let edge = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
            edge(label.as_bytes().first())
                && edge(label.as_bytes().last())
                && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        })
}
