//! Diagnostics as data: a stable code, a severity, what is wrong, where, and what to do.
//!
//! Nothing here prints. [`Diagnostics`] collects every problem of a run; `cli` shows them.

pub mod codes;
mod source;

pub use source::{FileId, LineColumn, SourceFile, SourceMap, Span};

/// A stable diagnostic code such as `FG101`, with what `flux-gen explain FG101` says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Code {
    /// `FG` and three digits. Never reused for another meaning.
    pub id: &'static str,
    /// A few words, lower case, no full stop.
    pub title: &'static str,
    /// A paragraph for `explain`: what it means, why it matters, how to mend it.
    pub explanation: &'static str,
}

/// How bad a diagnostic is. Only errors stop a bundle from being made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing is written.
    Error,
    /// Worth a look; the bundle is made.
    Warning,
    /// Where a value came from and the like; shown only when asked for.
    Note,
}

impl Severity {
    /// The word used in every output format.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// One problem (or remark) about what the user wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The stable code.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, one sentence without a full stop, with the offending text in it.
    pub message: String,
    /// Where; `None` only for problems of no file (a missing certificate, say).
    pub span: Option<Span>,
    /// What to do, if there is something to say beyond the message.
    pub help: Option<String>,
    /// Other places that matter ("first written here").
    pub related: Vec<(Span, String)>,
}

impl Diagnostic {
    /// An error at `span`.
    #[must_use]
    pub fn error(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Error, Some(span), message.into())
    }

    /// A warning at `span`.
    #[must_use]
    pub fn warning(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Warning, Some(span), message.into())
    }

    /// A note at `span`.
    #[must_use]
    pub fn note(code: Code, span: Span, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Note, Some(span), message.into())
    }

    /// An error that belongs to no file.
    #[must_use]
    pub fn global_error(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Error, None, message.into())
    }

    /// A warning that belongs to no file.
    #[must_use]
    pub fn global_warning(code: Code, message: impl Into<String>) -> Self {
        Self::new(code, Severity::Warning, None, message.into())
    }

    fn new(code: Code, severity: Severity, span: Option<Span>, message: String) -> Self {
        Self { code, severity, message, span, help: None, related: Vec::new() }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds another place that matters.
    #[must_use]
    pub fn related(mut self, span: Span, label: impl Into<String>) -> Self {
        self.related.push((span, label.into()));
        self
    }
}

/// Every diagnostic of a run, in the order in which they were found; [`Diagnostics::sorted`] gives the order of the text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// An empty collection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    /// Adds all of another collection.
    pub fn extend(&mut self, other: Diagnostics) {
        self.0.extend(other.0);
    }

    /// Adds another place to each that does not have it yet and whose own place `find` knows one for.
    pub fn relate(&mut self, label: &str, find: impl Fn(Span) -> Option<Span>) {
        for diagnostic in &mut self.0 {
            let other = diagnostic.span.and_then(&find);
            if let Some(other) = other.filter(|other| diagnostic.related.iter().all(|(place, _)| place != other)) {
                diagnostic.related.push((other, label.to_owned()));
            }
        }
    }

    /// Whether there is an error among them.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|d| d.severity == Severity::Error)
    }

    /// Whether there is none at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All of them, in the order in which they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }

    /// Ordered by file, place, code; equal ones once.
    #[must_use]
    pub fn sorted(mut self) -> Vec<Diagnostic> {
        self.0.sort_by(|a, b| {
            let key = |d: &Diagnostic| (d.span.map(|s| (s.file, s.start, s.end)), d.code.id, d.severity);
            key(a).cmp(&key(b)).then_with(|| a.message.cmp(&b.message))
        });
        self.0.dedup();
        self.0
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl FromIterator<Diagnostic> for Diagnostics {
    fn from_iter<I: IntoIterator<Item = Diagnostic>>(iter: I) -> Self {
        Self(iter.into_iter().collect())
    }
}
