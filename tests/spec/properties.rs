//! What holds for every input: no panic, places inside the text, the same result twice.

use flux_gen::diag::{Diagnostics, SourceMap, Span};
use flux_gen::spec::{self, Documents, Project, ReadOptions};
use proptest::prelude::*;

const VALID: &str = r#"# a cluster 🦕
apiVersion: flux-framework.org/v1alpha2
kind: MiniCluster
metadata: {name: é-a, labels: {a: "b"}}
spec:
  size: 4
  defaults: &d {cpu: 1, memory: "4Gi"}
  interactive: false
  flux:
    logLevel: 7
    bursting: {clusters: [{size: 4, name: burst-0}]}
  containers:
    - image: 'rockylinux:9'
      command: |
        echo "é" | cat <<EOF
        EOF
      resources: {limits: *d, requests: {<<: *d}}
      volumes:
        data: {path: /data, hostPath: /data}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: c
data: {a: >-
    folded
    text}
"#;

fn read(bytes: &[u8]) -> (Documents, Diagnostics, SourceMap) {
    let mut sources = SourceMap::new();
    let inputs = vec![("a.yaml".to_owned(), bytes.to_vec())];
    let (documents, diagnostics) = spec::read(&mut sources, inputs, &ReadOptions::default());
    (documents, diagnostics, sources)
}

fn inside(span: Span, sources: &SourceMap) -> bool {
    sources.get(span.file).is_some_and(|file| file.text.get(span.start..span.end).is_some())
}

/// Reads bytes as specs and as a project file and checks what always holds.
fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    let (documents, diagnostics, sources) = read(bytes);
    for d in &diagnostics {
        prop_assert!(d.span.is_none_or(|span| inside(span, &sources)), "{d:?}");
        prop_assert!(d.related.iter().all(|(span, _)| inside(*span, &sources)), "{d:?}");
        prop_assert!(!d.message.is_empty() && !d.message.contains('\n'), "{d:?}");
    }
    for cluster in &documents.miniclusters {
        prop_assert!(inside(cluster.span, &sources) && inside(cluster.spec.span, &sources));
    }
    for companion in &documents.companions {
        prop_assert!(companion.places.values().all(|span| inside(*span, &sources)));
    }
    let nothing = documents.miniclusters.is_empty() && documents.companions.is_empty();
    prop_assert!(!nothing || diagnostics.has_errors(), "nothing was read and nothing is said");
    let again = read(bytes);
    prop_assert_eq!((&documents, &diagnostics), (&again.0, &again.1));
    let mut sources = SourceMap::new();
    let (_, diagnostics) = Project::read(&mut sources, "p", bytes.to_vec());
    for d in &diagnostics {
        prop_assert!(d.span.is_none_or(|span| inside(span, &sources)), "{d:?}");
    }
    Ok(())
}

/// A change to the text at some place.
#[derive(Debug, Clone)]
enum Edit {
    Insert(prop::sample::Index, String),
    Remove(prop::sample::Index, usize),
    Copy(prop::sample::Index, prop::sample::Index, usize),
}

fn edits() -> impl Strategy<Value = Vec<Edit>> {
    let snippet = prop_oneof![
        "[-:?,\\[\\]{}#&*!|>'\"%@` \t\n\r]{1,3}",
        "[a-zé🦕0-9~_.+]{1,4}",
        Just("\n---\n".to_owned()),
        Just("<<: *d\n".to_owned()),
        Just("&d ".to_owned()),
        Just("!!str ".to_owned()),
        Just("yes".to_owned()),
        Just("\u{feff}".to_owned()),
    ];
    let edit = prop_oneof![
        (any::<prop::sample::Index>(), snippet).prop_map(|(at, text)| Edit::Insert(at, text)),
        (any::<prop::sample::Index>(), 1..12_usize).prop_map(|(at, length)| Edit::Remove(at, length)),
        (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 1..60_usize)
            .prop_map(|(from, to, length)| Edit::Copy(from, to, length)),
    ];
    prop::collection::vec(edit, 0..6)
}

fn edited(text: &str, edits: &[Edit]) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for edit in edits {
        match edit {
            Edit::Insert(at, text) => {
                let at = at.index(chars.len() + 1);
                chars.splice(at..at, text.chars());
            }
            Edit::Remove(at, length) => {
                let at = at.index(chars.len() + 1);
                chars.drain(at..(at + length).min(chars.len()));
            }
            Edit::Copy(from, to, length) => {
                let from = from.index(chars.len() + 1);
                let piece: Vec<char> = chars[from..(from + length).min(chars.len())].to_vec();
                let to = to.index(chars.len() + 1);
                chars.splice(to..to, piece);
            }
        }
    }
    chars.into_iter().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check(&bytes)?;
    }

    #[test]
    fn any_text_with_the_characters_of_yaml(text in "[-:?,\\[\\]{}#&*!|>'\"%@` \t\n\ra-c0é]{0,80}") {
        check(text.as_bytes())?;
    }

    #[test]
    fn a_valid_text_with_mistakes(edits in edits()) {
        check(edited(VALID, &edits).as_bytes())?;
    }

    #[test]
    fn line_ends_do_not_matter(edits in edits()) {
        let text = edited(VALID, &edits).replace('\r', "");
        let codes = |text: &str| -> Vec<&str> { read(text.as_bytes()).1.sorted().iter().map(|d| d.code.id).collect() };
        prop_assert_eq!(codes(&text), codes(&text.replace('\n', "\r\n")));
    }
}

#[test]
fn the_text_that_is_edited_has_two_mistakes() {
    let (documents, diagnostics, _) = read(VALID.as_bytes());
    let found: Vec<(&str, &str)> = diagnostics.iter().map(|d| (d.code.id, d.message.as_str())).collect();
    assert_eq!(
        found,
        [
            ("FG102", "spec.defaults is no field of the API"),
            ("FG108", "metadata.name: `é-a` is not a lower-case RFC 1123 subdomain"),
        ]
    );
    assert_eq!((documents.miniclusters.len(), documents.companions.len()), (1, 1));
}
