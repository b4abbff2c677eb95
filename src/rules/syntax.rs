//! The forms that Kubernetes asks of names, keys and values. Each function says what is wrong, or nothing.

/// What is wrong with a text, as the end of a sentence ("it must …").
pub type Wrong = String;

fn is_lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn label_characters(text: &str) -> Result<(), Wrong> {
    if let Some(c) = text.chars().find(|c| !(c.is_ascii_lowercase() || c.is_ascii_digit() || *c == '-')) {
        return Err(format!("it may hold lower-case letters, digits and `-` only, not {}", shown(c)));
    }
    Ok(())
}

/// A character as it can be shown in a message.
fn shown(c: char) -> String {
    if c.is_control() || c.is_whitespace() { format!("U+{:04X}", u32::from(c)) } else { format!("`{c}`") }
}

/// A DNS label of RFC 1123 of any length: lower-case letters, digits and `-`, a letter or digit at both ends.
fn dns1123_characters(text: &str) -> Result<(), Wrong> {
    if text.is_empty() {
        return Err("it must not be empty".to_owned());
    }
    label_characters(text)?;
    if text.starts_with('-') || text.ends_with('-') {
        return Err("it must begin and end with a letter or digit".to_owned());
    }
    Ok(())
}

/// A DNS label of RFC 1035 of any length: as RFC 1123 has it, and it begins with a letter.
///
/// # Errors
/// What is wrong with it.
pub fn dns1035_characters(text: &str) -> Result<(), Wrong> {
    dns1123_characters(text)?;
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err("it must begin with a letter".to_owned());
    }
    Ok(())
}

/// A DNS label of RFC 1123: at most 63 lower-case letters, digits and `-`, a letter or digit at both ends.
///
/// # Errors
/// What is wrong with it.
pub fn dns1123_label(text: &str) -> Result<(), Wrong> {
    dns1123_characters(text)?;
    at_most(text, 63)
}

/// A DNS label of RFC 1035: as [`dns1123_label`], and it begins with a letter.
///
/// # Errors
/// What is wrong with it.
pub fn dns1035_label(text: &str) -> Result<(), Wrong> {
    dns1035_characters(text)?;
    at_most(text, 63)
}

/// A DNS subdomain of RFC 1123: labels with `.` between, at most 253 bytes.
///
/// # Errors
/// What is wrong with it.
pub fn dns1123_subdomain(text: &str) -> Result<(), Wrong> {
    if text.is_empty() {
        return Err("it must not be empty".to_owned());
    }
    for label in text.split('.') {
        if label.is_empty() {
            return Err("it must not begin or end with `.` nor have two in a row".to_owned());
        }
        label_characters(label)?;
        if label.starts_with('-') || label.ends_with('-') {
            return Err("each part between dots must begin and end with a letter or digit".to_owned());
        }
    }
    at_most(text, 253)
}

fn at_most(text: &str, limit: usize) -> Result<(), Wrong> {
    if text.len() > limit {
        return Err(format!("it has {} characters and at most {limit} are allowed", text.len()));
    }
    Ok(())
}

/// Alphanumerics with `-`, `_`, `.` inside: the name part of a label key, and a label value that is not empty.
fn name_part(text: &str) -> Result<(), Wrong> {
    if text.is_empty() {
        return Err("the name must not be empty".to_owned());
    }
    if let Some(c) = text.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))) {
        return Err(format!("it may hold letters, digits, `-`, `_` and `.` only, not {}", shown(c)));
    }
    let ends = [text.bytes().next(), text.bytes().last()];
    if !ends.into_iter().flatten().all(|b| b.is_ascii_alphanumeric()) {
        return Err("it must begin and end with a letter or digit".to_owned());
    }
    at_most(text, 63)
}

/// A qualified name: `[prefix/]name`, prefix a DNS subdomain, as keys of labels and annotations and names of resources are.
///
/// # Errors
/// What is wrong with it.
pub fn qualified_name(text: &str) -> Result<(), Wrong> {
    match text.split_once('/') {
        None => name_part(text),
        Some((_, name)) if name.contains('/') => Err("it may hold one `/` only".to_owned()),
        Some((prefix, name)) => {
            dns1123_subdomain(prefix).map_err(|wrong| format!("the part before `/`: {wrong}"))?;
            name_part(name)
        }
    }
}

/// A label value: empty, or at most 63 letters, digits, `-`, `_`, `.`, a letter or digit at both ends.
///
/// # Errors
/// What is wrong with it.
pub fn label_value(text: &str) -> Result<(), Wrong> {
    if text.is_empty() { Ok(()) } else { name_part(text) }
}

/// An annotation key: a qualified name; capitals in the prefix are tolerated.
///
/// # Errors
/// What is wrong with it.
pub fn annotation_key(text: &str) -> Result<(), Wrong> {
    qualified_name(&text.to_ascii_lowercase())
}

/// A key of a ConfigMap or Secret.
///
/// # Errors
/// What is wrong with it.
pub fn data_key(text: &str) -> Result<(), Wrong> {
    if text.is_empty() {
        return Err("it must not be empty".to_owned());
    }
    if let Some(c) = text.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))) {
        return Err(format!("it may hold letters, digits, `-`, `_` and `.` only, not {}", shown(c)));
    }
    if text == "." || text.starts_with("..") {
        return Err("it must not be `.` nor begin with `..`".to_owned());
    }
    at_most(text, 253)
}

/// A name of an environment variable as every Kubernetes version takes it: letters, digits, `_`, `-`, `.`, no digit first.
///
/// # Errors
/// What is wrong with it.
pub fn environment_name(text: &str) -> Result<(), Wrong> {
    if text.is_empty() {
        return Err("it must not be empty".to_owned());
    }
    if let Some(c) = text.chars().find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))) {
        return Err(format!("it may hold letters, digits, `_`, `-` and `.` only, not {}", shown(c)));
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err("it must not begin with a digit".to_owned());
    }
    if text == "." || text.starts_with("..") {
        return Err("it must not be `.` nor begin with `..`".to_owned());
    }
    Ok(())
}

/// A name of an environment variable as Kubernetes takes it since 1.30: printable ASCII but `=`.
///
/// # Errors
/// What is wrong with it.
pub fn relaxed_environment_name(text: &str) -> Result<(), Wrong> {
    if text.is_empty() {
        return Err("it must not be empty".to_owned());
    }
    match text.chars().find(|c| !(' '..='~').contains(c) || *c == '=') {
        Some(c) => Err(format!("it may hold printable ASCII without `=` only, not {}", shown(c))),
        None => Ok(()),
    }
}

/// A name that a shell can assign and export: letters, digits and `_`, no digit first.
///
/// # Errors
/// What is wrong with it.
pub fn shell_name(text: &str) -> Result<(), Wrong> {
    if text.is_empty() {
        return Err("it must not be empty".to_owned());
    }
    if let Some(c) = text.chars().find(|c| !(c.is_ascii_alphanumeric() || *c == '_')) {
        return Err(format!("it may hold letters, digits and `_` only, not {}", shown(c)));
    }
    if text.starts_with(|c: char| c.is_ascii_digit()) {
        return Err("it must not begin with a digit".to_owned());
    }
    Ok(())
}

/// A port name (IANA service name, RFC 6335): at most 15 lower-case letters, digits and `-`, with a letter.
///
/// # Errors
/// What is wrong with it.
pub fn port_name(text: &str) -> Result<(), Wrong> {
    if text.is_empty() {
        return Err("it must not be empty".to_owned());
    }
    label_characters(text)?;
    at_most(text, 15)?;
    if !text.bytes().any(|b| b.is_ascii_lowercase()) {
        return Err("it must hold a letter".to_owned());
    }
    if text.contains("--") || text.starts_with('-') || text.ends_with('-') {
        return Err("`-` must stand alone between letters and digits".to_owned());
    }
    Ok(())
}

/// A path relative to a volume: not empty, not absolute, no `..`.
///
/// # Errors
/// What is wrong with it.
pub fn relative_path(text: &str) -> Result<(), Wrong> {
    if text.is_empty() {
        return Err("it must not be empty".to_owned());
    }
    if text.starts_with('/') {
        return Err("it must be relative".to_owned());
    }
    if text.split('/').any(|part| part == "..") {
        return Err("it must not hold `..`".to_owned());
    }
    Ok(())
}

/// A kernel parameter: lower-case letters, digits, `-`, `_` in parts with `.` or `/` between, at most 253 bytes.
///
/// # Errors
/// What is wrong with it.
pub fn sysctl(text: &str) -> Result<(), Wrong> {
    let part_is_good = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| is_lower_alphanumeric(b) || matches!(b, b'-' | b'_'))
            && part.bytes().next().is_some_and(is_lower_alphanumeric)
            && part.bytes().last().is_some_and(is_lower_alphanumeric)
    };
    if !text.split(['.', '/']).all(part_is_good) {
        return Err("it must be parts of lower-case letters, digits, `-` and `_` with `.` or `/` between".to_owned());
    }
    at_most(text, 253)
}

/// A path without a doubled or trailing `/` and without `.` parts, so that two spellings of one place compare equal.
#[must_use]
pub fn clean_path(text: &str) -> String {
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if text.starts_with('/') { format!("/{}", parts.join("/")) } else { parts.join("/") }
}

/// Whether `inner` is `outer` or lies below it; both clean.
#[must_use]
pub fn is_within(inner: &str, outer: &str) -> bool {
    inner == outer || outer == "/" || inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(check: fn(&str) -> Result<(), Wrong>, good: &[&str], bad: &[&str]) {
        for text in good {
            assert_eq!(check(text), Ok(()), "{text}");
        }
        for text in bad {
            assert!(check(text).is_err(), "{text}");
        }
    }

    #[test]
    fn labels_and_subdomains() {
        let long = "a".repeat(64);
        let fits = "a".repeat(63);
        table(dns1123_label, &["a", "0", "a-b", "9a9", &fits], &["", "-a", "a-", "A", "a.b", "a_b", "é", "a b", &long]);
        table(dns1035_label, &["a", "a0", &fits], &["", "0a", "-a", "A", &long]);
        let deep = format!("{}.{}.{}.{}", fits, fits, fits, "a".repeat(62));
        table(dns1123_subdomain, &["a", "a.b", "0.a-b.c"], &["", ".a", "a.", "a..b", "a.-b", "A.b", &deep]);
    }

    #[test]
    fn keys_and_values() {
        let long = "a".repeat(64);
        table(
            qualified_name,
            &["a", "A_b.c", "x.y/Z", "nvidia.com/gpu"],
            &["", "/a", "a/", "a/b/c", "-a", "X.Y/z", "a b", &long],
        );
        table(label_value, &["", "a", "A.b_c-0"], &["-a", "a-", "a b", "a/b", &long]);
        table(annotation_key, &["A.b/c"], &["a b", "/x"]);
        table(data_key, &["a", "A_B-.c", ".hidden"], &["", ".", "..", "..a", "a/b", "a b"]);
        table(environment_name, &["A", "_x.y-z", "a.b"], &["", "0A", "A B", "A=B", "..", "É"]);
        table(relaxed_environment_name, &["A B", "0"], &["", "A=B", "é", "a\tb"]);
        table(shell_name, &["A_0", "_"], &["", "0A", "a-b", "a.b"]);
        table(port_name, &["http", "a", "p-80"], &["", "80", "-a", "a-", "a--b", "A", "abcdefghijklmnop"]);
        table(relative_path, &["a", "a/b", "a..b"], &["", "/a", "..", "a/../b", "../a"]);
        table(sysctl, &["net.core.somaxconn", "kernel/shm_rmid_forced"], &["", "a..b", "A.b", ".a", "a b"]);
    }

    #[test]
    fn paths() {
        assert_eq!(clean_path("//a/./b//c/"), "/a/b/c");
        assert_eq!(clean_path("/"), "/");
        assert_eq!(clean_path("a/"), "a");
        assert!(is_within("/a/b", "/a") && is_within("/a", "/a") && is_within("/a", "/"));
        assert!(!is_within("/ab", "/a") && !is_within("/a", "/a/b"));
    }
}
