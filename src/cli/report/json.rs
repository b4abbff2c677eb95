//! One JSON object per line, always with the same keys.

use serde::Serialize;

use super::excerpt::Excerpts;
use crate::diag::Diagnostic;

/// The line. Lines and columns count from 1, columns in characters; the end is just after the last character.
#[derive(Serialize)]
struct Line<'a> {
    code: Option<&'a str>,
    severity: &'a str,
    message: &'a str,
    help: Option<&'a str>,
    file: Option<&'a str>,
    line: Option<usize>,
    column: Option<usize>,
    end_line: Option<usize>,
    end_column: Option<usize>,
    excerpt: Option<&'a str>,
    related: Vec<Related<'a>>,
}

/// Another place that matters.
#[derive(Serialize)]
struct Related<'a> {
    message: &'a str,
    file: &'a str,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
}

pub(super) fn diagnostic(out: &mut String, excerpts: &Excerpts<'_>, diagnostic: &Diagnostic) {
    let place = diagnostic.span.and_then(|span| excerpts.place(span));
    let related = diagnostic.related.iter().filter_map(|(span, message)| {
        let place = excerpts.place(*span)?;
        Some(Related {
            message,
            file: place.file,
            line: place.start.line,
            column: place.start.column,
            end_line: place.end.line,
            end_column: place.end.column,
        })
    });
    write(
        out,
        &Line {
            code: Some(diagnostic.code.id),
            severity: diagnostic.severity.as_str(),
            message: &diagnostic.message,
            help: diagnostic.help.as_deref(),
            file: place.as_ref().map(|p| p.file),
            line: place.as_ref().map(|p| p.start.line),
            column: place.as_ref().map(|p| p.start.column),
            end_line: place.as_ref().map(|p| p.end.line),
            end_column: place.as_ref().map(|p| p.end.column),
            excerpt: place.as_ref().map(|p| p.line),
            related: related.collect(),
        },
    );
}

/// A line of no file and no code.
pub(super) fn plain(severity: &str, message: &str, help: Option<&str>) -> String {
    simple(None, severity, message, help, None)
}

/// A line about a whole file.
pub(super) fn file(severity: &str, message: &str, file: &str) -> String {
    simple(None, severity, message, None, Some(file))
}

/// A line about a whole file that has a code and is no fault.
pub(super) fn remark(code: &str, message: &str, help: Option<&str>, file: &str) -> String {
    simple(Some(code), "info", message, help, Some(file))
}

fn simple(code: Option<&str>, severity: &str, message: &str, help: Option<&str>, file: Option<&str>) -> String {
    let mut out = String::new();
    write(
        &mut out,
        &Line {
            code,
            severity,
            message,
            help,
            file,
            line: None,
            column: None,
            end_line: None,
            end_column: None,
            excerpt: None,
            related: Vec::new(),
        },
    );
    out
}

fn write(out: &mut String, line: &Line<'_>) {
    // Only maps with keys that are no strings and failing `Serialize` implementations make this fail; there are none here.
    if let Ok(text) = serde_json::to_string(line) {
        out.push_str(&text);
        out.push('\n');
    }
}
