//! Trees: shape, places, limits.

use super::{Kind, MAX_ALIAS_WEIGHT, MAX_DEPTH, Node, parse};
use crate::diag::{Diagnostics, FileId};

/// A tree in one line: scalars with their place cut out of the text.
fn shown(node: &Node, text: &str) -> String {
    match &node.kind {
        Kind::Scalar(scalar) => {
            let there = &text[node.span.start..node.span.end];
            if there == scalar.text { format!("{there:?}") } else { format!("{:?}@{there:?}", scalar.text) }
        }
        Kind::Sequence(items) => {
            let items: Vec<String> = items.iter().map(|item| shown(item, text)).collect();
            format!("[{}]", items.join(" "))
        }
        Kind::Mapping(pairs) => {
            let pairs: Vec<String> = pairs
                .iter()
                .map(|pair| {
                    let key = &text[pair.key_span.start..pair.key_span.end];
                    format!("{key}={}", shown(&pair.value, text))
                })
                .collect();
            format!("{{{}}}", pairs.join(" "))
        }
    }
}

fn trees(text: &str) -> (Vec<String>, Vec<&'static str>) {
    let mut diagnostics = Diagnostics::new();
    let (nodes, _) = parse(FileId(0), text, &mut diagnostics);
    let codes = diagnostics.iter().map(|d| d.code.id).collect();
    (nodes.iter().map(|node| shown(node, text)).collect(), codes)
}

#[test]
fn shapes_and_places() {
    for (text, expected) in [
        ("a: 1\nb: [x, 'y', \"z\"]\n", r#"{a="1" b=["x" "y"@"'y'" "z"@"\"z\""]}"#),
        ("é: 🦕\nb: c\n", r#"{é="🦕" b="c"}"#),
        ("a: é # é\r\nb:\r\n- ü\r\n", r#"{a="é" b=["ü"]}"#),
        ("\u{feff}a: 1\n", r#"{a="1"}"#),
        ("a: |\n  x\n  y\n\nb: 1\n", "{a=\"x\\ny\\n\"@\"x\\n  y\" b=\"1\"}"),
        ("a: >-\n  x\n  y\n", "{a=\"x y\"@\"x\\n  y\"}"),
        ("a:\nb: ''\n", r#"{a=""@"a" b=""@"''"}"#),
        ("{\"a\": {\"b\": [1,2]}}", r#"{"a"={"b"=["1" "2"]}}"#),
        ("a: &x {b: 1}\nc: *x\n", r#"{a={b="1"} c={*x="1"@"*x"}}"#),
        ("a: !!str 1\n", r#"{a="1"@"!!str 1"}"#),
        ("# only a comment\n", ""),
        ("---\n---\n~\n---\na: 1\n...\n# end\n", r#"{a="1"}"#),
        ("%YAML 1.1\n---\na: 1\n", r#"{a="1"}"#),
    ] {
        let (documents, codes) = trees(text);
        assert_eq!((documents.join(" | ").as_str(), codes), (expected, vec![]), "{text:?}");
    }
}

#[test]
fn collections_end_where_their_text_ends() {
    for (text, expected) in [
        ("a:\n  b: 1\n\n# c\nd: 2\n", "b: 1"),
        ("a: {b: 1}\nd: 2\n", "{b: 1}"),
        ("a:\n  - b\n  - c: |\n      x\n\nd: 2\n", "- b\n  - c: |\n      x"),
        ("a: [\n b,\n ] # c\nd: 2", "[\n b,\n ]"),
        ("a: {}\n", "{}"),
    ] {
        let (nodes, _) = parse(FileId(0), text, &mut Diagnostics::new());
        let span = nodes[0].get("a").unwrap().span;
        assert_eq!(&text[span.start..span.end], expected, "{text:?}");
    }
}

#[test]
fn merge_keys_bring_what_is_not_written() {
    for (text, expected) in [
        ("a: &a {x: 1, z: 2}\nb: {<<: *a, z: 3}\n", r#"{*a="1"@"*a" z="3"}"#),
        ("a: &a {x: 1, z: 2}\nb: {z: 3, <<: *a}\n", r#"{z="3" *a="1"@"*a"}"#),
        ("a: [&a {x: 1}, &b {x: 2, z: 2}]\nb: {<<: [*a, *b]}\n", r#"{*a="1"@"*a" *b="2"@"*b"}"#),
        ("a: &a {x: 1}\nb: {\"<<\": *a}\n", r#"{"<<"={*a="1"@"*a"}}"#),
    ] {
        let mut diagnostics = Diagnostics::new();
        let (nodes, _) = parse(FileId(0), text, &mut diagnostics);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        assert_eq!(shown(nodes[0].get("b").unwrap(), text), expected, "{text:?}");
    }
}

#[test]
fn a_bad_document_does_not_hide_the_others() {
    let (documents, codes) = trees("a: 1\n---\nb: [\n---\nc: '\n---\nd: 1\n--- \n- *x\n--- {e: 1}\n");
    assert_eq!(documents, [r#"{a="1"}"#, r#"{d="1"}"#, r#"{e="1"}"#]);
    assert_eq!(codes, ["FG101", "FG101", "FG101"]);
    let (documents, _) = trees("a: \"\n--- x\nb\n----\n---\nc: 1\n");
    assert_eq!(documents.last().unwrap(), r#"{c="1"}"#);
}

#[test]
fn depth_is_limited_with_and_without_aliases() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(trees(&nested(MAX_DEPTH)).1, Vec::<&str>::new());
    assert_eq!(trees(&nested(MAX_DEPTH + 1)).1, ["FG114"]);
    // The document after it is read.
    let (documents, codes) = trees(&format!("{}\n---\na: 1\n", nested(100_000)));
    assert_eq!((documents, codes), (vec![r#"{a="1"}"#.to_owned()], vec!["FG114"]));
    let half = MAX_DEPTH / 2;
    let aliased = |depth: usize| format!("[&a {}, {}*a{}]", nested(half), "[".repeat(depth), "]".repeat(depth));
    assert_eq!(trees(&aliased(half - 1)).1, Vec::<&str>::new());
    assert_eq!(trees(&aliased(half)).1, ["FG114"]);
}

#[test]
fn alias_bombs_are_refused() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb += &format!("a{level}: &a{level} [{aliases}]\n");
    }
    assert_eq!(trees(&bomb).1, ["FG115"]);
    // Few aliases of a long text are as bad as many of a short one.
    let long = format!("a: &a {}\nb: [{}]\n", "x".repeat(1 << 20), vec!["*a"; 1000].join(", "));
    assert_eq!(trees(&long).1, ["FG115"]);
    let many = format!("a: &a x\nb: [{}]\n", vec!["*a"; MAX_ALIAS_WEIGHT].join(", "));
    assert_eq!(trees(&many).1, Vec::<&str>::new());
}
