//! Text for people: the message, the line it is about with a mark under the place, and what to do.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::excerpt::{Excerpts, Place};
use super::printable;
use crate::diag::{Diagnostic, Severity};

pub(super) fn diagnostic(out: &mut String, excerpts: &Excerpts<'_>, diagnostic: &Diagnostic, color: bool) {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let mut group = Group::with_title(level.primary_title(diagnostic.message.as_str()).id(diagnostic.code.id));
    if let Some(place) = diagnostic.span.and_then(|span| excerpts.place(span)) {
        group = snippet(group, &place, AnnotationKind::Primary, None);
    }
    for (span, label) in &diagnostic.related {
        if let Some(place) = excerpts.place(*span) {
            group = snippet(group, &place, AnnotationKind::Context, Some(label.as_str()));
        }
    }
    let (within, below) = if diagnostic.span.is_some() { (&diagnostic.help, &None) } else { (&None, &diagnostic.help) };
    if let Some(help) = within {
        group = group.element(Level::HELP.message(printable(help)));
    }
    push(out, group, color);
    if let Some(help) = below {
        push(out, Group::with_title(Level::HELP.primary_title(help.as_str())), color);
    }
    out.push('\n');
}

/// An operation that failed.
pub(super) fn failure(message: &str, help: Option<&str>, color: bool) -> String {
    let mut out = String::new();
    push(&mut out, Group::with_title(Level::ERROR.primary_title(message)), color);
    if let Some(help) = help {
        push(&mut out, Group::with_title(Level::HELP.primary_title(help)), color);
    }
    out
}

fn snippet<'a>(group: Group<'a>, place: &Place<'_>, kind: AnnotationKind, label: Option<&'a str>) -> Group<'a> {
    let mark = kind.span(place.marked.clone()).label(label.map(printable));
    let snippet = Snippet::source(place.line.to_owned()).line_start(place.start.line).annotation(mark);
    if !place.cut {
        return group.element(snippet.path(place.file.to_owned()));
    }
    // The renderer would count columns from where the piece begins, so the place is given apart from it.
    let origin = Origin::path(place.file.to_owned()).line(place.start.line).char_column(place.start.column);
    group.element(origin).element(snippet)
}

fn push(out: &mut String, group: Group<'_>, color: bool) {
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    out.push_str(&renderer.decor_style(DecorStyle::Ascii).render(&[group]));
    out.push('\n');
}
