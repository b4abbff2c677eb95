//! Lines of source texts: found fast, cut short, without secrets.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;

use super::{SourceText, mask};
use crate::diag::{FileId, LineColumn, Span};

/// Longest piece of a line that is shown, in bytes. Files made by programs may be one line of a megabyte.
const LONGEST: usize = 400;
/// How much of a longer line is shown before the place, in bytes.
const BEFORE: usize = 100;

/// Source texts with an index of their lines, made when first asked for.
pub(super) struct Excerpts<'a> {
    files: BTreeMap<FileId, File<'a>>,
}

struct File<'a> {
    name: &'a str,
    text: &'a str,
    secrets: Vec<std::ops::Range<usize>>,
    index: OnceCell<Index<'a>>,
}

struct Index<'a> {
    /// Byte offset of the start of each line.
    starts: Vec<usize>,
    /// The text with secrets overwritten, byte for byte.
    masked: Cow<'a, str>,
}

/// A span as people count, with the line it starts on.
pub(super) struct Place<'a> {
    /// Name of the file.
    pub(super) file: &'a str,
    /// First character.
    pub(super) start: LineColumn,
    /// Just after the last character.
    pub(super) end: LineColumn,
    /// The line of `start`, or the piece of it around the span if it is very long.
    pub(super) line: &'a str,
    /// Byte range of the span in `line`, cut at its end.
    pub(super) marked: std::ops::Range<usize>,
    /// Whether `line` does not begin where the line begins.
    pub(super) cut: bool,
}

impl<'a> Excerpts<'a> {
    pub(super) fn new(sources: impl IntoIterator<Item = SourceText<'a>>, secrets: &[Span]) -> Self {
        let file = |s: SourceText<'a>| {
            let secrets = secrets.iter().filter(|secret| secret.file == s.id).map(|secret| secret.start..secret.end);
            (s.id, File { name: s.name, text: s.text, secrets: secrets.collect(), index: OnceCell::new() })
        };
        Self { files: sources.into_iter().map(file).collect() }
    }

    /// Resolves a span; `None` when the file is not known.
    pub(super) fn place(&self, span: Span) -> Option<Place<'_>> {
        let file = self.files.get(&span.file)?;
        let index = file.index.get_or_init(|| Index::new(file.text, file.secrets.clone()));
        let start = floor(file.text, span.start);
        let end = floor(file.text, span.end).max(start);
        let line_number = index.line(start);
        let line_start = index.starts[line_number];
        let line_end = file.text[line_start..].find('\n').map_or(file.text.len(), |i| line_start + i);
        let line_end = if file.text[..line_end].ends_with('\r') { line_end - 1 } else { line_end }.max(start);
        let shown = window(file.text, line_start..line_end, start);
        let marked = start - shown.start..end.min(shown.end).max(start) - shown.start;
        Some(Place {
            file: file.name,
            start: index.line_column(file.text, start),
            end: index.line_column(file.text, end),
            line: &index.masked[shown.clone()],
            marked,
            cut: shown.start > line_start,
        })
    }
}

impl<'a> Index<'a> {
    fn new(text: &'a str, secrets: Vec<std::ops::Range<usize>>) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(i, _)| i + 1)).collect();
        Self { starts, masked: mask::secrets(text, secrets) }
    }

    /// The line (from 0) that holds a byte offset.
    fn line(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset).saturating_sub(1)
    }

    fn line_column(&self, text: &str, offset: usize) -> LineColumn {
        let line = self.line(offset);
        LineColumn { line: line + 1, column: text[self.starts[line]..offset].chars().count() + 1 }
    }
}

/// The part of a line that is shown: all of it, or the piece around `place`.
fn window(text: &str, line: std::ops::Range<usize>, place: usize) -> std::ops::Range<usize> {
    if line.len() <= LONGEST {
        return line;
    }
    let start = floor(text, place.saturating_sub(BEFORE)).max(line.start);
    let end = floor(text, start + LONGEST).min(line.end);
    start..end
}

/// The nearest character boundary at or before an offset.
fn floor(text: &str, offset: usize) -> usize {
    let mut at = offset.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}
