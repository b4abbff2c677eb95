//! Patterns for paths: `*` (not over a slash), `**`, `?`.

/// Whether a pattern matches a text as a whole. `**/` matches no folder too. Takes pattern × text steps.
#[must_use]
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let mut states = vec![false; pattern.len() + 1];
    enter(pattern, &mut states, 0);
    for byte in text {
        let mut next = vec![false; pattern.len() + 1];
        for at in (0..pattern.len()).filter(|at| states[*at]) {
            match pattern[at] {
                b'*' if pattern.get(at + 1) == Some(&b'*') => stay(pattern, &mut next, at),
                // The second star of two is left by the first one only.
                b'*' if at > 0 && pattern[at - 1] == b'*' => {}
                b'*' if *byte != b'/' => stay(pattern, &mut next, at),
                b'?' if *byte != b'/' => enter(pattern, &mut next, at + 1),
                b'*' | b'?' => {}
                literal if literal == *byte => enter(pattern, &mut next, at + 1),
                _ => {}
            }
        }
        states = next;
    }
    states[pattern.len()]
}

/// Reaches a place of the pattern by reading what stands before it.
fn enter(pattern: &[u8], states: &mut [bool], at: usize) {
    stay(pattern, states, at);
    // `**/` is nothing too, at the start of a part.
    if pattern[at..].starts_with(b"**/") && (at == 0 || pattern[at - 1] == b'/') {
        enter(pattern, states, at + 3);
    }
}

/// Is at a place, and behind the stars there, which may be nothing.
fn stay(pattern: &[u8], states: &mut [bool], at: usize) {
    states[at] = true;
    if pattern.get(at) == Some(&b'*') {
        stay(pattern, states, at + 1);
    }
}

/// Whether a pattern names a path: one without a slash any part of it, one with a slash the path from the root or a folder
/// above it.
#[must_use]
pub fn names(pattern: &str, path: &[u8]) -> bool {
    let pattern = pattern.as_bytes();
    if !pattern.contains(&b'/') {
        return path.split(|byte| *byte == b'/').any(|part| matches(pattern, part));
    }
    let pattern = pattern.strip_prefix(b"/").unwrap_or(pattern);
    let pattern = pattern.strip_suffix(b"/").unwrap_or(pattern);
    let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
    ends.chain([path.len()]).any(|end| matches(pattern, &path[..end]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, expect) in [
            ("py-*", "py-cffi", true),
            ("py-*", "python", false),
            ("*", "a/b", false),
            ("**", "a/b", true),
            ("a/**/z", "a/z", true),
            ("a/**/z", "a/b/c/z", true),
            ("a/**/z", "a/bz", false),
            ("**/z", "bz", false),
            ("**/z", "z", true),
            ("a/**", "a/b/c", true),
            ("a/*/c", "a/b/c", true),
            ("a/*/c", "a/b/d/c", false),
            ("?x", "ax", true),
            ("?x", "/x", false),
            ("", "", true),
            ("a**b", "a/x/b", true),
            ("*a*a*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expect, "{pattern} {text}");
        }
    }

    #[test]
    fn paths() {
        for (pattern, path, expect) in [
            ("__pycache__", "opt/lib/__pycache__/a.pyc", true),
            ("*.la", "opt/lib/x.la", true),
            ("*.la", "opt/lib/x.lab", false),
            ("/opt/share", "opt/share/doc/x", true),
            ("opt/share/", "opt/share", true),
            ("opt/share", "x/opt/share", false),
            ("**/doc/**", "opt/share/doc/x", true),
        ] {
            assert_eq!(names(pattern, path.as_bytes()), expect, "{pattern} {path}");
        }
    }
}
