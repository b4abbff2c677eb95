//! Keeps secrets out of excerpts.
//!
//! An excerpt quotes the user's file, and that file may hold a certificate (`flux.curveCert`) or be a Secret. What could be
//! secret is overwritten byte for byte, so that offsets stay right. It errs on the side of hiding too much.

use std::borrow::Cow;
use std::ops::Range;

/// The text with every byte that may be secret replaced by `*`: what stands at the `known` places, and what looks like a
/// secret, because where a text could not be understood nobody knows the places.
pub(super) fn secrets(text: &str, known: Vec<Range<usize>>) -> Cow<'_, str> {
    let mut hidden = known;
    hidden.retain(|r| r.end <= text.len() && text.is_char_boundary(r.start) && text.is_char_boundary(r.end));
    for document in documents(text) {
        certificate_lines(text, document.clone(), &mut hidden);
        if is_secret(&text[document.clone()]) {
            secret_data(text, document, &mut hidden);
        }
    }
    if hidden.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut masked = String::with_capacity(text.len());
    let mut offset = 0;
    hidden.sort_by_key(|r| r.start);
    for range in hidden {
        let start = range.start.max(offset);
        if range.end <= start {
            continue;
        }
        masked.push_str(&text[offset..start]);
        masked.extend(text.as_bytes()[start..range.end].iter().map(|b| if *b == b'\n' { '\n' } else { '*' }));
        offset = range.end;
    }
    masked.push_str(&text[offset..]);
    Cow::Owned(masked)
}

/// Byte ranges of the YAML documents of a text, `---` lines belonging to the document that they open.
fn documents(text: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = 0;
    for line in lines(text, 0..text.len()) {
        if text[line.clone()].starts_with("---") && line.start > start {
            ranges.push(start..line.start);
            start = line.start;
        }
    }
    ranges.push(start..text.len());
    ranges
}

/// Ranges of the lines in `range`, without their line ends.
fn lines(text: &str, range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut start = range.start;
    text[range].split('\n').map(move |line| {
        let this = start..start + line.len();
        start = this.end + 1;
        this
    })
}

/// Hides what follows `secret-key` in a CURVE certificate, on the same line and, when nothing stands there, on the next.
fn certificate_lines(text: &str, range: Range<usize>, hidden: &mut Vec<Range<usize>>) {
    let mut next = false;
    for line in lines(text, range) {
        let content = &text[line.clone()];
        if next && !content.trim().is_empty() {
            hidden.push(line.start + indent(content)..line.end);
            next = false;
        }
        if let Some(at) = content.find("secret-key") {
            let rest = line.start + at + "secret-key".len();
            hidden.push(rest..line.end);
            next = !text[rest..line.end].contains(|c: char| c.is_ascii_alphanumeric());
        }
    }
}

/// Whether a document is a Kubernetes Secret, or a List with one in it.
fn is_secret(document: &str) -> bool {
    document.match_indices("kind").any(|(i, _)| {
        let rest = document[i + 4..].trim_start_matches(['"', '\'', ' ', ':', '\t']);
        rest.strip_prefix("Secret").is_some_and(|r| !r.starts_with(|c: char| c.is_ascii_alphanumeric()))
    })
}

/// Hides the values below `data` and `stringData`; the names of the keys stay where they are on lines of their own.
fn secret_data(text: &str, range: Range<usize>, hidden: &mut Vec<Range<usize>>) {
    let mut block: Option<Block> = None;
    for line in lines(text, range) {
        let content = &text[line.clone()];
        if content.trim().is_empty() {
            continue;
        }
        let depth = indent(content);
        if let Some(block) = block.as_mut().filter(|b| depth > b.depth) {
            let keys = *block.keys.get_or_insert(depth);
            let value = if depth == keys { content.find(':').map_or(depth, |i| i + 1) } else { depth };
            hidden.push(line.start + value..line.end);
            continue;
        }
        block = data_key(content).map(|value| {
            hidden.push(line.start + value..line.end);
            Block { depth, keys: None }
        });
    }
}

/// Lines that are deeper than the line of `data`.
struct Block {
    /// Indentation of the line of `data`.
    depth: usize,
    /// Indentation of the first deeper line: that of the keys.
    keys: Option<usize>,
}

/// Offset in the line just after `data:` or `stringData:`, wherever in the line it stands.
fn data_key(line: &str) -> Option<usize> {
    line.match_indices("ata").find_map(|(i, _)| {
        let word = line[..i + 3].rsplit(|c: char| !c.is_ascii_alphanumeric()).next();
        let rest = line[i + 3..].trim_start_matches(['"', '\'']);
        let colon = rest.trim_start();
        let after = line.len() - colon.len() + 1;
        (matches!(word, Some("data" | "stringData")) && colon.starts_with(':')).then_some(after)
    })
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

#[cfg(test)]
mod tests {
    use super::secrets;

    #[track_caller]
    fn check(text: &str, expect: &str) {
        let masked = secrets(text, Vec::new());
        assert_eq!(masked, expect);
        assert_eq!(masked.len(), text.len());
    }

    #[test]
    fn certificates() {
        check("curve\n    secret-key = \"abc\"\nend", "curve\n    secret-key********\nend");
        check("curveCert: \"[curve]\\nsecret-key = 'q'\"", "curveCert: \"[curve]\\nsecret-key*******");
        check("secret-key =\n  \"abc\"\nnext: 1", "secret-key**\n  *****\nnext: 1");
    }

    #[test]
    fn known_places() {
        assert_eq!(secrets("a: bé\n  c\n", vec![3..9, 0..99]), "a: ***\n**c\n");
    }

    #[test]
    fn secrets_in_yaml_and_json() {
        check(
            "kind: Secret\nmetadata:\n  name: a\ndata:\n  key: abc\n  k2: |\n    x: é\ntype: Opaque\n",
            "kind: Secret\nmetadata:\n  name: a\ndata:\n  key:****\n  k2:**\n    *****\ntype: Opaque\n",
        );
        check(r#"{"kind": "Secret", "stringData": {"a": "b"}}"#, r#"{"kind": "Secret", "stringData":************"#);
        check(
            "{\n  \"kind\": \"Secret\",\n  \"data\": {\n    \"a\": \"b\"\n  }\n}",
            "{\n  \"kind\": \"Secret\",\n  \"data\":**\n    \"a\":****\n  }\n}",
        );
    }

    #[test]
    fn other_documents_stay() {
        for text in [
            "kind: ConfigMap\ndata:\n  key: abc\n",
            "kind: ExternalSecret\ndata: [a]\n",
            "kind: SecretStore\ndata: [a]\n",
            "",
        ] {
            check(text, text);
        }
        check(
            "kind: Secret\ndata: {a: b}\n---\nkind: ConfigMap\ndata: {a: b}\n",
            "kind: Secret\ndata:*******\n---\nkind: ConfigMap\ndata: {a: b}\n",
        );
    }
}
