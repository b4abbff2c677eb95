//! GitHub workflow commands (`::error file=…::message`), which GitHub shows beside the changed lines.

use std::fmt::Write;

use super::excerpt::Excerpts;
use crate::diag::{Diagnostic, Severity};

pub(super) fn diagnostic(out: &mut String, excerpts: &Excerpts<'_>, diagnostic: &Diagnostic) {
    let command = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "notice",
    };
    let mut properties = Vec::new();
    if let Some(place) = diagnostic.span.and_then(|span| excerpts.place(span)) {
        properties.push(format!("file={}", property(place.file)));
        properties.push(format!("line={}", place.start.line));
        // GitHub takes columns only for places within one line.
        if place.end.line == place.start.line {
            properties.push(format!("endLine={}", place.end.line));
            properties.push(format!("col={}", place.start.column));
            properties.push(format!("endColumn={}", place.end.column));
        }
    }
    properties.push(format!("title={}", property(&format!("{} {}", diagnostic.code.id, diagnostic.code.title))));
    let mut message = diagnostic.message.clone();
    for (span, label) in &diagnostic.related {
        if let Some(place) = excerpts.place(*span) {
            let at = place.start;
            message.push_str(&format!("\n{}:{}:{}: {label}", place.file, at.line, at.column));
        }
    }
    line(out, command, &properties, &message, diagnostic.help.as_deref());
}

/// An operation that failed: no place, no code.
pub(super) fn failure(message: &str, help: Option<&str>) -> String {
    let mut out = String::new();
    line(&mut out, "error", &["title=flux-gen".to_owned()], message, help);
    out
}

/// Something about a whole file.
pub(super) fn file(message: &str, path: &str) -> String {
    let mut out = String::new();
    let properties = [format!("file={}", property(path)), "title=flux-gen drift".to_owned()];
    let help = "`flux-gen build` brings it up to date";
    line(&mut out, "error", &properties, &format!("{message}: {path}"), Some(help));
    out
}

fn line(out: &mut String, command: &str, properties: &[String], message: &str, help: Option<&str>) {
    let message = match help {
        Some(help) => format!("{message}\nhelp: {help}"),
        None => message.to_owned(),
    };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "::{command} {}::{}", properties.join(","), data(&message));
}

/// Escapes the message part.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes the value of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
