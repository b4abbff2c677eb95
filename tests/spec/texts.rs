//! Bytes that are not text, sizes, order and names of source texts.

use flux_gen::diag::{Diagnostics, SourceMap};
use flux_gen::spec::{self, Documents, ReadOptions};

const GOOD: &str =
    "apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\nmetadata: {name: a}\nspec: {containers: [{}]}\n";

fn read(inputs: &[(&str, &[u8])]) -> (Documents, Diagnostics, SourceMap) {
    let mut sources = SourceMap::new();
    let inputs = inputs.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect();
    let (documents, diagnostics) = spec::read(&mut sources, inputs, &ReadOptions::default());
    (documents, diagnostics, sources)
}

#[track_caller]
fn refused(bytes: &[u8], code: &str, start: usize, message: &str) {
    let (documents, diagnostics, sources) = read(&[("bad.yaml", bytes), ("good.yaml", GOOD.as_bytes())]);
    assert_eq!(documents.miniclusters.len(), 1, "the good file is read");
    let found: Vec<_> = diagnostics.iter().collect();
    assert_eq!(found.len(), 1, "{found:?}");
    let span = found[0].span.unwrap();
    assert_eq!((found[0].code.id, span.start, found[0].message.as_str()), (code, start, message));
    let file = sources.get(span.file).unwrap();
    assert_eq!(file.name, "bad.yaml");
    assert!(file.text.get(span.start..span.end).is_some());
}

#[test]
fn bytes_that_are_no_text() {
    refused(b"a: \xff\n", "FG111", 3, "byte 3 (0xFF) is not UTF-8");
    refused("é: ü".as_bytes().split_last().unwrap().1, "FG111", 4, "byte 4 (0xC3) is not UTF-8");
    refused(b"\xff\xfea\x00:\x00", "FG111", 0, "the file is UTF-16, not UTF-8");
    refused(b"\xfe\xff\x00a", "FG111", 0, "the file is UTF-16, not UTF-8");
    refused(b"a: b\x00c\n", "FG112", 4, "the character U+0000 at byte 4 may not stand in YAML");
    refused(b"a: \x1b[31m\n", "FG112", 3, "the character U+001B at byte 3 may not stand in YAML");
    refused("é: \u{9b}\n".as_bytes(), "FG112", 4, "the character U+009B at byte 4 may not stand in YAML");
}

#[test]
fn files_that_are_too_large() {
    let limit = 16 << 20;
    let big = vec![b' '; limit + 1];
    refused(&big, "FG113", 0, "the file has 16777217 bytes; flux-gen reads up to 16777216 bytes");
    let many = format!("a:\n{}", "- 1\n".repeat(1_000_000));
    let (_, diagnostics, _) = read(&[("many.yaml", many.as_bytes())]);
    let codes: Vec<&str> = diagnostics.iter().map(|d| d.code.id).collect();
    assert_eq!(codes, ["FG113"]);
}

#[test]
fn nothing_to_read() {
    let (_, diagnostics, _) = read(&[]);
    let found: Vec<(&str, bool)> = diagnostics.iter().map(|d| (d.code.id, d.span.is_some())).collect();
    assert_eq!(found, [("FG120", false)]);
    assert!(diagnostics.has_errors());
    let (_, diagnostics, _) = read(&[("empty.yaml", b""), ("good.yaml", GOOD.as_bytes())]);
    assert!(!diagnostics.is_empty() && !diagnostics.has_errors());
}

#[test]
fn order_is_that_of_the_files_however_many_there_are() {
    let texts: Vec<String> = (0..100).map(|i| GOOD.replace("name: a", &format!("name: a{i}"))).collect();
    let names: Vec<String> = (0..100).map(|i| format!("{i}.yaml")).collect();
    let inputs: Vec<(&str, &[u8])> = names.iter().zip(&texts).map(|(n, t)| (n.as_str(), t.as_bytes())).collect();
    let (documents, diagnostics, sources) = read(&inputs);
    assert!(diagnostics.is_empty());
    for (i, cluster) in documents.miniclusters.iter().enumerate() {
        assert_eq!(cluster.metadata.name.as_ref().unwrap().value, format!("a{i}"));
        assert_eq!(sources.get(cluster.span.file).unwrap().name, names[i]);
    }
}
