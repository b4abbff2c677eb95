//! Shows diagnostics: as text for people, as JSON lines for programs, as workflow commands for GitHub. Pure: text in, text out.

mod excerpt;
mod github;
mod human;
mod json;
mod mask;

use super::args::MessageFormat;
use crate::bundle::report::ChangeKind;
use crate::diag::{Code, Diagnostic, FileId, Severity, Span};
use excerpt::Excerpts;

/// One source text with the name to show it by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SourceText<'a> {
    /// The id that spans carry.
    pub(crate) id: FileId,
    /// The name to show.
    pub(crate) name: &'a str,
    /// The whole text.
    pub(crate) text: &'a str,
}

/// How to show.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// The format.
    pub(crate) format: MessageFormat,
    /// Whether text for people may hold colour.
    pub(crate) color: bool,
}

/// How many diagnostics there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Number of errors.
    pub(crate) errors: usize,
    /// Number of warnings.
    pub(crate) warnings: usize,
}

impl Tally {
    /// Counts.
    pub(crate) fn of(diagnostics: &[Diagnostic]) -> Self {
        let count = |severity| diagnostics.iter().filter(|d| d.severity == severity).count();
        Self { errors: count(Severity::Error), warnings: count(Severity::Warning) }
    }

    /// `2 errors and 1 warning`, `no errors`.
    pub(crate) fn words(self) -> String {
        match (self.errors, self.warnings) {
            (0, 0) => "no errors".to_owned(),
            (0, warnings) => plural(warnings, "warning"),
            (errors, 0) => plural(errors, "error"),
            (errors, warnings) => format!("{} and {}", plural(errors, "error"), plural(warnings, "warning")),
        }
    }
}

/// `1 file`, `2 files`.
pub(crate) fn plural(count: usize, noun: &str) -> String {
    let end = match (count, noun.as_bytes().last()) {
        (1, _) => "",
        (_, Some(b's' | b'x')) => "es",
        _ => "s",
    };
    format!("{count} {noun}{end}")
}

/// All diagnostics as text that ends in a line end (or is empty). What stands at the places of `secrets` is not shown.
pub(crate) fn render<'a, 'd>(
    sources: impl IntoIterator<Item = SourceText<'a>>,
    secrets: &[Span],
    diagnostics: impl IntoIterator<Item = &'d Diagnostic>,
    style: Style,
) -> String {
    let excerpts = Excerpts::new(sources, secrets);
    let mut out = String::new();
    for diagnostic in diagnostics {
        match style.format {
            MessageFormat::Human => human::diagnostic(&mut out, &excerpts, diagnostic, style.color),
            MessageFormat::Json => json::diagnostic(&mut out, &excerpts, diagnostic),
            MessageFormat::Github => github::diagnostic(&mut out, &excerpts, diagnostic),
        }
    }
    out
}

/// An operation that failed, in the same three formats.
pub(crate) fn failure(message: &str, help: Option<&str>, style: Style) -> String {
    match style.format {
        MessageFormat::Human => human::failure(message, help, style.color),
        MessageFormat::Json => json::plain("error", message, help),
        MessageFormat::Github => github::failure(message, help),
    }
}

/// A line about what was done.
pub(crate) fn status(message: &str, format: MessageFormat) -> String {
    match format {
        MessageFormat::Human | MessageFormat::Github => format!("{}\n", printable(message)),
        MessageFormat::Json => json::plain("info", message, None),
    }
}

/// Something that is worth knowing about a file of the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remark {
    /// Its code.
    pub(crate) code: Code,
    /// What is.
    pub(crate) message: String,
    /// What to do.
    pub(crate) help: Option<String>,
    /// The file.
    pub(crate) file: String,
}

/// A remark as JSON.
pub(crate) fn remark(remark: &Remark) -> String {
    json::remark(remark.code.id, &remark.message, remark.help.as_deref(), &remark.file)
}

/// A file of the output that is not what the specs give.
pub(crate) fn change(kind: ChangeKind, path: &str, format: MessageFormat) -> String {
    let word = match kind {
        ChangeKind::Missing => "missing",
        ChangeKind::Changed => "changed",
        ChangeKind::Extra => "extra",
    };
    match format {
        MessageFormat::Human => format!("{word:<8} {}\n", printable(path)),
        MessageFormat::Json => json::file("error", word, path),
        MessageFormat::Github => github::file(word, path),
    }
}

/// The text with control characters (a terminal would obey them) shown as such; line ends and tabs stay.
fn printable(text: &str) -> String {
    annotate_snippets::normalize_untrusted_str(text)
}

#[cfg(test)]
mod tests;
