//! Why a build did not make a tree, and how that is said.

use super::run::RunError;
use crate::diag::Diagnostic;
use crate::diag::codes::recipe as codes;
use crate::view::recipe::Arch;
use crate::view::recipe::fetch::FetchError;

/// A command with which a user looks at what a failed step has left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Inside {
    /// A shell in its container.
    Container(String),
    /// The files that it found, where the engine keeps nothing of a step that fails.
    Before(String),
}

/// Why a build did not make a tree.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// There is no engine, or it does not answer.
    #[error("no container engine: {} ({reason})", wanted.join(", "))]
    NoEngine {
        /// What was looked for.
        wanted: Vec<String>,
        /// What is wrong with it.
        reason: String,
    },
    /// The engine is too old.
    #[error("{engine} {found} is too old; {minimum} or newer is needed")]
    TooOld {
        /// The engine.
        engine: String,
        /// Its version.
        found: String,
        /// The first that works.
        minimum: String,
    },
    /// The engine's machine has another processor.
    #[error("the engine is on a machine for {machine}, and the view is for {arch}")]
    Emulation {
        /// What the view is for.
        arch: Arch,
        /// What the machine is.
        machine: Arch,
    },
    /// A download failed.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// A command of the engine failed.
    #[error("{error}")]
    Run {
        /// The command and its end.
        error: Box<RunError>,
        /// Where all output is.
        log: String,
        /// How to look inside.
        inside: Option<Inside>,
    },
    /// A file of the build or of the cache.
    #[error(transparent)]
    File(RunError),
    /// A file of the recipe changed between planning and building.
    #[error("{0} changed while the recipe was being built")]
    Changed(String),
}

/// An error as a diagnostic: one, with what to do.
#[must_use]
pub fn diagnostic(error: &BuildError) -> Diagnostic {
    match error {
        BuildError::NoEngine { .. } => Diagnostic::global_error(codes::ENGINE_MISSING, error.to_string())
            .help("install buildah, podman or docker, or name a BuildKit daemon with --engine buildkit:ADDRESS"),
        BuildError::TooOld { minimum, .. } => Diagnostic::global_error(codes::ENGINE_OLD, error.to_string())
            .help(format!("install version {minimum} or newer, or choose another engine with --engine")),
        BuildError::Emulation { arch, .. } => {
            Diagnostic::global_error(codes::EMULATION, error.to_string()).help(format!(
                "use an engine on {arch} (--engine docker:CONTEXT, --engine buildkit:ADDRESS), or --allow-emulation"
            ))
        }
        BuildError::Fetch(error) => of_fetch(error),
        BuildError::Run { error, log, inside } => of_run(error, log, inside.as_ref()),
        BuildError::File(RunError::Full(_)) => full(&error.to_string()),
        BuildError::File(_) => Diagnostic::global_error(codes::BUILD_IO, error.to_string())
            .help("look at the rights of the folder, or choose another cache with --cache"),
        BuildError::Changed(_) => {
            Diagnostic::global_error(codes::FILE, error.to_string()).help("run the build again when nobody edits it")
        }
    }
}

fn full(message: &str) -> Diagnostic {
    Diagnostic::global_error(codes::DISK_FULL, message.to_owned())
        .help("make room where the engine and the cache keep their files, or choose another cache with --cache")
}

fn of_fetch(error: &FetchError) -> Diagnostic {
    match error {
        FetchError::Checksum { .. } => Diagnostic::global_error(codes::CHECKSUM_DIFFERS, error.to_string())
            .help("find out why before changing the recipe; the file has been thrown away"),
        FetchError::Unreachable { .. } => Diagnostic::global_error(codes::DOWNLOAD_FAILED, error.to_string())
            .help("try again, or name a place that has the files with --mirror URL; what has arrived is kept"),
        FetchError::Full(_) => full(&error.to_string()),
        FetchError::Io { .. } => Diagnostic::global_error(codes::BUILD_IO, error.to_string())
            .help("look at the rights of the folder, or choose another cache with --cache"),
    }
}

fn of_run(error: &RunError, log: &str, inside: Option<&Inside>) -> Diagnostic {
    let ended = |tail: &[String]| -> String {
        let lines: String = tail.iter().map(|line| format!("\n  | {line}")).collect();
        if lines.is_empty() { String::new() } else { format!("; its last lines:{lines}") }
    };
    match error {
        RunError::Failed { tail, step, .. } => {
            let message = match step {
                Some(step) => format!("step `{step}` failed{}", ended(tail)),
                None => format!("{error}{}", ended(tail)),
            };
            let help = match inside {
                Some(Inside::Container(command)) => format!("all output is in {log}; to look inside: {command}"),
                Some(Inside::Before(command)) => {
                    format!("all output is in {log}; to get the files as they were before this step: {command}")
                }
                None => format!("all output is in {log}"),
            };
            Diagnostic::global_error(codes::BUILD_FAILED, message).help(help)
        }
        RunError::Killed { tail, .. } => {
            Diagnostic::global_error(codes::BUILD_KILLED, format!("{error}{}", ended(tail)))
                .help(format!("signal 9 often means that memory ran out: try fewer --jobs; all output is in {log}"))
        }
        RunError::Full(_) => full(&error.to_string()),
        RunError::Start { .. } => Diagnostic::global_error(codes::ENGINE_MISSING, error.to_string())
            .help("it was there a moment ago: is it being replaced?"),
        RunError::Io { .. } => Diagnostic::global_error(codes::BUILD_IO, error.to_string())
            .help("look at the rights of the folder, or choose another cache with --cache"),
    }
}
