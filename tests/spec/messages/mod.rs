//! What reading says about documents with problems.

mod api;
mod fields;
mod yaml;

use flux_gen::diag::{Diagnostic, Severity, SourceMap, Span};
use flux_gen::spec::{self, ReadOptions};

/// A MiniCluster with this `spec`.
fn minicluster(spec: &str) -> String {
    format!("apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\nmetadata:\n  name: a\nspec:\n{spec}")
}

/// Checks what reading a text says: for each diagnostic a line with code, severity unless error, line:column, the text that
/// is underlined, message, help, and other places.
#[track_caller]
fn says(text: &str, expected: &str) {
    let lines = said(text);
    assert_eq!(lines, expected, "\n{lines}\n");
}

fn said(text: &str) -> String {
    let mut sources = SourceMap::new();
    let inputs = vec![("a.yaml".to_owned(), text.as_bytes().to_vec())];
    let (_, diagnostics) = spec::read(&mut sources, inputs, &ReadOptions::default());
    let lines: Vec<String> = diagnostics.sorted().iter().map(|d| shown(d, &sources)).collect();
    lines.join("\n")
}

fn shown(d: &Diagnostic, sources: &SourceMap) -> String {
    let place = |span: Span| {
        let file = sources.get(span.file).unwrap();
        let at = file.line_column(span.start);
        (format!("{}:{}", at.line, at.column), &file.text[span.start..span.end])
    };
    let (at, text) = d.span.map_or(("-".to_owned(), ""), place);
    let severity = match d.severity {
        Severity::Error => String::new(),
        other => format!(" {}", other.as_str()),
    };
    let help = d.help.as_ref().map(|help| format!(" | {help}")).unwrap_or_default();
    let related: String = d.related.iter().map(|(span, label)| format!(" | {} {label}", place(*span).0)).collect();
    format!("{}{severity} {at} `{text}` {}{help}{related}", d.code.id, d.message)
}
