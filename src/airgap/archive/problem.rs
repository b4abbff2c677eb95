//! What is wrong with an archive, or keeps one from being made.

use std::path::Path;

use crate::diag::{Code, Diagnostic};
use crate::oci::Error;

/// One problem. Shows as one sentence without a full stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// The diagnostic code.
    pub code: Code,
    /// What is wrong, with the place.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Problem {
    /// A problem of a kind.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), help: None }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// A file operation that failed; `what` is the verb.
    #[must_use]
    pub fn file(what: &str, path: &Path, error: &std::io::Error) -> Self {
        Error::from_io(what, path, error).into()
    }

    /// As a diagnostic of no file of the project.
    #[must_use]
    pub fn diagnostic(&self) -> Diagnostic {
        let made = Diagnostic::global_error(self.code, self.message.clone());
        match &self.help {
            Some(help) => made.help(help.clone()),
            None => made,
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self { code: error.kind().code(), message: error.to_string(), help: error.advice().map(str::to_owned) }
    }
}
