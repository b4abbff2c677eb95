//! Finding an engine and checking that it can do the work.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::adapter::{Engine, Kind};
use super::error::BuildError;
use super::run::capture;
use crate::view::recipe::Arch;

/// Which engine is wanted: `buildah`, `podman`, `docker`, `docker:CONTEXT`, `podman:CONNECTION`, `buildkit:ADDRESS`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The engine.
    pub kind: Kind,
    /// The context, connection or address.
    pub at: Option<String>,
}

impl std::str::FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, at) = match text.split_once(':') {
            Some((name, at)) => (name, Some(at.to_owned())),
            None => (text, None),
        };
        let Some(kind) = Kind::ALL.into_iter().find(|kind| kind.name() == name) else {
            return Err("it can be buildah, podman[:CONNECTION], docker[:CONTEXT] or buildkit:ADDRESS".to_owned());
        };
        match (kind, &at) {
            (Kind::Buildah, Some(_)) => Err("buildah works on this machine only".to_owned()),
            (Kind::Buildkit, None) => Err("give the daemon's address: buildkit:tcp://host:1234".to_owned()),
            (_, Some(at)) if at.is_empty() || at.starts_with('-') => Err("what stands after `:` is no name".to_owned()),
            _ => Ok(Self { kind, at }),
        }
    }
}

/// Finds the engine that was chosen, or the first that there is, in a `PATH`.
///
/// # Errors
/// [`BuildError::NoEngine`].
pub fn find(choice: Option<&Choice>, path: &OsStr) -> Result<Engine, BuildError> {
    let wanted: Vec<Choice> = match choice {
        Some(choice) => vec![choice.clone()],
        None => [Kind::Buildah, Kind::Podman, Kind::Docker].map(|kind| Choice { kind, at: None }).to_vec(),
    };
    let there = wanted.iter().find_map(|choice| {
        let program = folders(path).map(|p| p.join(choice.kind.program())).find(|p| is_program(p))?;
        Some(Engine { kind: choice.kind, program: program.display().to_string(), at: choice.at.clone() })
    });
    there.ok_or_else(|| BuildError::NoEngine {
        wanted: wanted.iter().map(|c| c.kind.program().to_owned()).collect(),
        reason: "not in PATH".to_owned(),
    })
}

/// The folders of a `PATH`.
fn folders(path: &OsStr) -> impl Iterator<Item = PathBuf> {
    path.as_bytes().split(|b| *b == b':').map(|part| PathBuf::from(OsStr::from_bytes(part)))
}

/// The architecture that flux-gen was compiled for, which is that of its machine.
fn own_machine() -> Option<Arch> {
    if cfg!(target_arch = "x86_64") {
        Some(Arch::Amd64)
    } else if cfg!(target_arch = "aarch64") {
        Some(Arch::Arm64)
    } else {
        None
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// Checks that an engine answers, is new enough, and is on a machine of the right architecture; returns a warning when it
/// will emulate.
///
/// # Errors
/// An engine that does not answer, is too old, or would have to emulate without being allowed to.
pub fn check(engine: &Engine, arch: Arch, allow_emulation: bool) -> Result<Option<String>, BuildError> {
    let unusable = |e: super::run::RunError| BuildError::NoEngine {
        wanted: vec![engine.program.clone()],
        reason: match e {
            super::run::RunError::Failed { command, code, tail, .. } => {
                format!("`{command}` failed with exit code {code}: {}", tail.join(" "))
            }
            other => other.to_string(),
        },
    };
    let name = engine.kind.name();
    new_enough(engine, name, &capture(&engine.version()).map_err(unusable)?)?;
    if let Some(command) = engine.daemon() {
        new_enough(engine, &format!("the daemon of {name}"), &capture(&command).map_err(unusable)?)?;
    }
    let machine = match engine.machine() {
        Some(command) => Arch::parse(&capture(&command).map_err(unusable)?),
        None => own_machine(),
    };
    match machine {
        Some(machine) if machine != arch && !allow_emulation => Err(BuildError::Emulation { arch, machine }),
        Some(machine) if machine != arch => {
            Ok(Some(format!("{name} emulates {arch} on {machine}: five to ten times as slow, and some programs fail")))
        }
        _ => Ok(None),
    }
}

/// Checks what an engine's program or daemon has answered about its version.
fn new_enough(engine: &Engine, name: &str, answer: &str) -> Result<(), BuildError> {
    let minimum = engine.kind.minimum();
    let found = version(answer).ok_or_else(|| BuildError::NoEngine {
        wanted: vec![engine.program.clone()],
        reason: format!("its version is not understood: {answer}"),
    })?;
    if found < minimum {
        let (found, minimum) = (format!("{}.{}", found.0, found.1), format!("{}.{}", minimum.0, minimum.1));
        return Err(BuildError::TooOld { engine: name.to_owned(), found, minimum });
    }
    Ok(())
}

/// The first version number in a text, such as `buildah version 1.28.2 (image-spec 1.1.0)`. What was compiled without saying
/// which version it is says 0.0.0.
fn version(text: &str) -> Option<(u64, u64)> {
    let found = text.split_whitespace().find_map(|word| {
        let word = word.trim_start_matches('v').trim_end_matches(',');
        let mut parts = word.split('.');
        Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
    });
    found.filter(|version| *version != (0, 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        for (text, expect) in [
            ("buildah version 1.28.2 (image-spec 1.1.0-rc2, runtime-spec 1.0.2-dev)", Some((1, 28))),
            ("podman version 4.3.1", Some((4, 3))),
            ("Docker version 28.2.2, build e6534b4", Some((28, 2))),
            ("20.10.24+dfsg1", Some((20, 10))),
            ("BuildKit: github.com/moby/buildkit v0.12.5 bac3f2b673f3f9d33e79046008e7a38e856b3dc6", Some((0, 12))),
            ("BuildKit:   github.com/moby/buildkit v0.33.1 \nDockerfile: 1.27.0", Some((0, 33))),
            ("BuildKit: github.com/moby/buildkit v0.0.0+unknown", None),
        ] {
            assert_eq!(version(text), expect, "{text}");
        }
    }

    #[test]
    fn choices() {
        let parse = |text: &str| text.parse::<Choice>();
        assert_eq!(parse("docker:arm").unwrap(), Choice { kind: Kind::Docker, at: Some("arm".to_owned()) });
        let address = Some("tcp://10.0.0.1:1234".to_owned());
        assert_eq!(parse("buildkit:tcp://10.0.0.1:1234").unwrap(), Choice { kind: Kind::Buildkit, at: address });
        for wrong in ["", "kaniko", "buildah:x", "buildkit", "docker:", "docker:--host=x"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
