//! Why a command could not do its work, apart from diagnostics about what the user wrote.

use std::io;
use std::path::Path;

use super::exit::Exit;

/// An operation that failed, ready to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandError {
    kind: Kind,
    /// One sentence without a full stop.
    message: String,
    /// What to do about it.
    help: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Something did not work.
    Operation,
    /// Arguments that do not fit together.
    Usage,
    /// The diagnostics that were printed already say all.
    Reported,
    /// Whoever read our output has gone: no reason to complain.
    ReaderGone,
}

impl CommandError {
    /// An operation that failed.
    #[must_use]
    pub(crate) fn operation(message: impl Into<String>) -> Self {
        Self { kind: Kind::Operation, message: message.into(), help: None }
    }

    /// Arguments that do not fit together.
    #[must_use]
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { kind: Kind::Usage, message: message.into(), help: None }
    }

    /// Errors that were shown already.
    #[must_use]
    pub(crate) fn reported() -> Self {
        Self { kind: Kind::Reported, message: String::new(), help: None }
    }

    /// A file operation that failed: `what` is the verb ("read", "write").
    #[must_use]
    pub(crate) fn file(what: &str, path: &Path, error: &io::Error) -> Self {
        Self::operation(format!("cannot {what} {}: {}", path.display(), plain(error)))
    }

    /// Writing to standard output failed.
    #[must_use]
    pub(crate) fn stdout(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self { kind: Kind::ReaderGone, message: String::new(), help: None };
        }
        Self::operation(format!("cannot write to standard output: {}", plain(error)))
    }

    /// Adds what to do about it.
    #[must_use]
    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// What to print, if anything: the message and the help.
    pub(crate) fn text(&self) -> Option<(&str, Option<&str>)> {
        match self.kind {
            Kind::Operation | Kind::Usage => Some((&self.message, self.help.as_deref())),
            Kind::Reported | Kind::ReaderGone => None,
        }
    }

    /// The exit code that goes with it.
    pub(crate) fn exit(&self) -> Exit {
        match self.kind {
            Kind::Operation | Kind::Reported => Exit::Failed,
            Kind::Usage => Exit::Usage,
            Kind::ReaderGone => Exit::Ok,
        }
    }
}

/// The words of an I/O error without Rust's "(os error 2)".
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_that_has_gone_is_no_error() {
        let gone = CommandError::stdout(&io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!((gone.exit(), gone.text()), (Exit::Ok, None));
        let full = CommandError::stdout(&io::Error::from_raw_os_error(28));
        assert_eq!(full.exit(), Exit::Failed);
        assert_eq!(full.text().map(|t| t.0), Some("cannot write to standard output: No space left on device"));
    }

    #[test]
    fn exits() {
        assert_eq!(CommandError::usage("x").exit(), Exit::Usage);
        assert_eq!(CommandError::operation("x").exit(), Exit::Failed);
        assert_eq!(CommandError::reported().exit(), Exit::Failed);
    }
}
