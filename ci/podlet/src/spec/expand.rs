//! `$(NAME)` in command, args, env values and subPathExpr, as the kubelet expands it.
//!
//! Rules (Kubernetes API reference, `Container.command`): a known name is replaced, an unknown
//! reference stays as written, `$$` is one `$` and shields what follows.

/// Expands `text` with `lookup`.
pub fn expand<F: Fn(&str) -> Option<String>>(text: &str, lookup: F) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) = rest.strip_prefix('(').and_then(|r| r.split_once(')')) {
            match lookup(name) {
                Some(value) => out.push_str(&value),
                None => out.push_str(&format!("$({name})")),
            }
            rest = after;
        } else {
            out.push('$');
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn table() {
        let look = |n: &str| match n {
            "A" => Some("1".to_owned()),
            "E" => Some(String::new()),
            "R" => Some("$(A)".to_owned()),
            _ => None,
        };
        for (text, want) in [
            ("plain", "plain"),
            ("$(A)", "1"),
            ("x$(A)y$(A)", "x1y1"),
            ("$(E)", ""),
            ("$(NO)", "$(NO)"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$1"),
            ("$$$$(A)", "$$(A)"),
            ("$A ${A}", "$A ${A}"),
            ("$(A", "$(A"),
            ("$", "$"),
            ("$(R)", "$(A)"),
            ("ü$(A)ü", "ü1ü"),
        ] {
            assert_eq!(expand(text, look), want, "{text}");
        }
    }
}
