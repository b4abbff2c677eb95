//! Where output goes: products to standard output, everything else to standard error.

use std::io::{self, Write};

use super::args::{ColorChoice, GlobalArgs, MessageFormat};
use super::error::CommandError;
use super::report::{self, Remark, SourceText, Tally};
use crate::bundle::report::ChangeKind;
use crate::diag::{Diagnostics, Severity, Span};

/// How to talk to the user.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ui {
    format: MessageFormat,
    least: Severity,
    quiet: bool,
    /// Colour on standard error.
    color: bool,
    /// Colour on standard output.
    color_stdout: bool,
}

impl Ui {
    /// Decides once from the arguments, the terminal and the usual variables (NO_COLOR, CLICOLOR, CLICOLOR_FORCE).
    pub(crate) fn new(args: &GlobalArgs) -> Self {
        let colored = |auto: anstream::ColorChoice| match args.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => auto != anstream::ColorChoice::Never,
        };
        let least = match (args.quiet, args.verbose) {
            (true, _) => Severity::Error,
            (false, true) => Severity::Note,
            (false, false) => Severity::Warning,
        };
        Self {
            format: args.message_format,
            least,
            quiet: args.quiet,
            color: colored(anstream::AutoStream::choice(&io::stderr())),
            color_stdout: colored(anstream::AutoStream::choice(&io::stdout())),
        }
    }

    /// Whether standard output may hold colour.
    pub(crate) fn color_stdout(&self) -> bool {
        self.color_stdout
    }

    /// Whether somebody may look at the lines: text for people, and not quiet.
    pub(crate) fn is_for_people(&self) -> bool {
        !self.quiet && matches!(self.format, MessageFormat::Human)
    }

    /// The format of messages.
    pub(crate) fn format(&self) -> MessageFormat {
        self.format
    }

    /// Prints a line for programs, unless quiet.
    pub(crate) fn json_line(&self, line: &impl serde::Serialize) {
        if self.quiet {
            return;
        }
        // Only maps with keys that are no strings make this fail.
        if let Ok(text) = serde_json::to_string(line) {
            to_stderr(&format!("{text}\n"));
        }
    }

    /// Prints diagnostics in the order of the text and counts them, hidden ones included.
    pub(crate) fn diagnostics<'a>(
        &self,
        sources: impl IntoIterator<Item = SourceText<'a>>,
        secrets: &[Span],
        diagnostics: Diagnostics,
    ) -> Tally {
        let all = diagnostics.sorted();
        let tally = Tally::of(&all);
        let style = report::Style { format: self.format, color: self.color };
        to_stderr(&report::render(sources, secrets, all.iter().filter(|d| d.severity <= self.least), style));
        tally
    }

    /// Prints one line about what was done, unless quiet.
    pub(crate) fn status(&self, message: &str) {
        if !self.quiet {
            to_stderr(&report::status(message, self.format));
        }
    }

    /// Prints one line of what a program that was started says; only when asked for much.
    pub(crate) fn detail(&self, message: &str) {
        if self.least == Severity::Note {
            to_stderr(&report::status(message, self.format));
        }
    }

    /// Prints remarks, unless quiet: one by one for programs, `summary` for people.
    pub(crate) fn remarks(&self, remarks: &[Remark], summary: &[String]) {
        if self.quiet {
            return;
        }
        match self.format {
            MessageFormat::Json => remarks.iter().for_each(|remark| to_stderr(&report::remark(remark))),
            MessageFormat::Human | MessageFormat::Github => summary.iter().for_each(|line| self.status(line)),
        }
    }

    /// Prints why a command failed.
    pub(crate) fn error(&self, error: &CommandError) {
        if let Some((message, help)) = error.text() {
            to_stderr(&report::failure(message, help, report::Style { format: self.format, color: self.color }));
        }
    }

    /// Prints how it ended when diagnostics have told why.
    pub(crate) fn failure(&self, message: &str, help: Option<&str>) {
        to_stderr(&report::failure(message, help, report::Style { format: self.format, color: self.color }));
    }

    /// Prints one file that differs.
    pub(crate) fn change(&self, kind: ChangeKind, path: &str) {
        to_stderr(&report::change(kind, path, self.format));
    }

    /// Writes a product to standard output.
    pub(crate) fn print(&self, product: &[u8]) -> Result<(), CommandError> {
        let mut out = io::stdout().lock();
        out.write_all(product).and_then(|()| out.flush()).map_err(|e| CommandError::stdout(&e))
    }
}

fn to_stderr(text: &str) {
    // When stderr is closed there is nobody to tell; the exit code still says how it ended.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
