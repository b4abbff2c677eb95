//! What each format looks like, character for character.

use super::*;
use crate::diag::SourceMap;
use crate::diag::codes::syntax::{UNKNOWN_FIELD, YAML_SYNTAX};

const TEXT: &str = "kind: MiniCluster\r\nspec:\n  sizé: 4\n  size: 5\n";

fn sources(text: &str) -> SourceMap {
    let mut map = SourceMap::new();
    map.add("a, b:c.yaml", text);
    map
}

fn show(map: &SourceMap, diagnostics: &[Diagnostic], format: MessageFormat) -> String {
    let sources = map.iter().map(|(id, file)| SourceText { id, name: &file.name, text: &file.text });
    render(sources, &[], diagnostics, Style { format, color: false })
}

fn span(text: &str, part: &str) -> Span {
    let start = text.find(part).unwrap();
    Span { file: FileId(0), start, end: start + part.len() }
}

fn example() -> Diagnostic {
    Diagnostic::error(UNKNOWN_FIELD, span(TEXT, "sizé"), "unknown field `sizé`\n100%")
        .help("did you mean `size`?")
        .related(span(TEXT, "size"), "this one exists")
}

#[test]
fn human() {
    let expect = "\
error[FG102]: unknown field `sizé`
              100%
 --> a, b:c.yaml:3:3
  |
3 |   sizé: 4
  |   ^^^^
  |
 ::: a, b:c.yaml:4:3
  |
4 |   size: 5
  |   ---- this one exists
  |
  = help: did you mean `size`?

";
    assert_eq!(show(&sources(TEXT), &[example()], MessageFormat::Human), expect);
}

#[test]
fn json() {
    let line = show(&sources(TEXT), &[example()], MessageFormat::Json);
    let value: serde_json::Value = serde_json::from_str(line.strip_suffix('\n').unwrap()).unwrap();
    let expect = serde_json::json!({
        "code": "FG102", "severity": "error", "message": "unknown field `sizé`\n100%", "help": "did you mean `size`?",
        "file": "a, b:c.yaml", "line": 3, "column": 3, "end_line": 3, "end_column": 7, "excerpt": "  sizé: 4",
        "related": [{"message": "this one exists", "file": "a, b:c.yaml", "line": 4, "column": 3, "end_line": 4, "end_column": 7}],
    });
    assert_eq!(value, expect);
    assert_eq!(line.lines().count(), 1);
}

#[test]
fn github() {
    let expect = "::error file=a%2C b%3Ac.yaml,line=3,endLine=3,col=3,endColumn=7,title=FG102 unknown field::\
                  unknown field `sizé`%0A100%25%0Aa, b:c.yaml:4:3: this one exists%0Ahelp: did you mean `size`?\n";
    assert_eq!(show(&sources(TEXT), &[example()], MessageFormat::Github), expect);
}

#[test]
fn several_lines_are_marked_at_the_first() {
    let whole = Diagnostic::warning(YAML_SYNTAX, span(TEXT, "kind: MiniCluster\r\nspec:"), "x");
    let map = sources(TEXT);
    let human = show(&map, std::slice::from_ref(&whole), MessageFormat::Human);
    assert!(human.contains("1 | kind: MiniCluster\n  | ^^^^^^^^^^^^^^^^^\n"), "{human}");
    let github = show(&map, std::slice::from_ref(&whole), MessageFormat::Github);
    assert_eq!(github, "::warning file=a%2C b%3Ac.yaml,line=1,title=FG101 YAML syntax error::x\n");
}

#[test]
fn places_at_the_very_end_and_beyond() {
    for text in ["", "a", "a\n", "é", "a\r\n"] {
        for start in 0..6 {
            for end in start..7 {
                let at = Span { file: FileId(0), start, end };
                for format in [MessageFormat::Human, MessageFormat::Json, MessageFormat::Github] {
                    let shown = show(&sources(text), &[Diagnostic::error(YAML_SYNTAX, at, "m")], format);
                    assert!(shown.contains("FG101"), "{shown}");
                }
            }
        }
    }
}

#[test]
fn unknown_files_and_no_files_show_the_message_alone() {
    let lost = Span { file: FileId(9), start: 0, end: 1 };
    for diagnostic in [Diagnostic::error(YAML_SYNTAX, lost, "m"), Diagnostic::global_error(YAML_SYNTAX, "m")] {
        let map = sources("");
        assert_eq!(show(&map, std::slice::from_ref(&diagnostic), MessageFormat::Human), "error[FG101]: m\n\n");
        let github = show(&map, std::slice::from_ref(&diagnostic), MessageFormat::Github);
        assert_eq!(github, "::error title=FG101 YAML syntax error::m\n");
    }
}

#[test]
fn very_long_lines_are_cut_and_the_column_stays_right() {
    let text = format!("{}BAD{}", "é".repeat(300_000), "x".repeat(300_000));
    let diagnostic = Diagnostic::error(YAML_SYNTAX, span(&text, "BAD"), "m");
    let human = show(&sources(&text), std::slice::from_ref(&diagnostic), MessageFormat::Human);
    assert!(human.contains("a, b:c.yaml:1:300001"), "{human}");
    assert!(human.contains("BAD") && human.contains("^^^") && human.len() < 2000, "{human}");
    let json = show(&sources(&text), &[diagnostic], MessageFormat::Json);
    assert!(json.len() < 2000 && json.contains("\"column\":300001"), "{json}");
}

#[test]
fn secrets_and_terminal_escapes_do_not_get_through() {
    let text = "kind: Secret\ndata: {key: c2VjcmV0}\n# \u{1b}[2J\n";
    let map = sources(text);
    for format in [MessageFormat::Human, MessageFormat::Json] {
        let shown = show(&map, &[Diagnostic::error(YAML_SYNTAX, span(text, "key"), "m")], format);
        assert!(shown.contains("data:***") && !shown.contains("c2Vj"), "{shown}");
    }
    let bad = Diagnostic::error(YAML_SYNTAX, span(text, "#"), "\u{1b}[2J")
        .help("\u{1b}[2J")
        .related(span(text, "#"), "\u{1b}[2J");
    let human = show(&map, &[bad], MessageFormat::Human);
    assert!(!human.contains('\u{1b}'), "{human:?}");
    assert!(!status("\u{1b}[2J", MessageFormat::Human).contains('\u{1b}'));
    assert!(
        !failure("\u{1b}[2J", Some("\u{1b}"), Style { format: MessageFormat::Human, color: false }).contains('\u{1b}')
    );
}

#[test]
fn failures_and_states_in_each_format() {
    let style = |format| Style { format, color: false };
    let shown = failure("cannot read x", Some("make it"), style(MessageFormat::Human));
    assert_eq!(shown, "error: cannot read x\nhelp: make it\n");
    let shown = failure("50%", None, style(MessageFormat::Github));
    assert_eq!(shown, "::error title=flux-gen::50%25\n");
    let shown: serde_json::Value = serde_json::from_str(&failure("m", None, style(MessageFormat::Json))).unwrap();
    assert_eq!((&shown["severity"], &shown["message"], &shown["file"]), (&"error".into(), &"m".into(), &().into()));
    let shown: serde_json::Value = serde_json::from_str(&status("done", MessageFormat::Json)).unwrap();
    assert_eq!((&shown["severity"], &shown["message"]), (&"info".into(), &"done".into()));
}

#[test]
fn words() {
    assert_eq!(Tally { errors: 2, warnings: 1 }.words(), "2 errors and 1 warning");
    assert_eq!(Tally::default().words(), "no errors");
    assert_eq!(plural(2, "box"), "2 boxes");
}
