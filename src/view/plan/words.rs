//! Grammars of single words.

/// Whether a text is a tag: `[a-zA-Z0-9_][a-zA-Z0-9._-]{0,127}` (OCI distribution specification).
pub(super) fn is_tag(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=128).contains(&text.len())
        && text.bytes().next().is_some_and(word)
        && text.bytes().all(|byte| word(byte) || byte == b'.' || byte == b'-')
}
