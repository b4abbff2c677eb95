//! `flux-gen new`.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use super::error::CommandError;
use super::exit::Exit;
use super::sources::shown;
use super::ui::Ui;

/// The starter. It is text because its comments are what it is for; what goes into it is checked first.
const STARTER: &str = include_str!("starter.yaml");
/// Longest name: the pods' host names are `<name>-<index>` and a host name has at most 63 characters.
const LONGEST_NAME: usize = 57;

/// Print a commented MiniCluster to start from.
///
/// Its comments say how to build it, bring it up, see the leader's log and attach.
#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// Name of the cluster.
    name: String,
    /// Image with your program.
    #[arg(long, default_value = "ubuntu:noble")]
    image: String,
    /// Write to this file, which must not exist yet, instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &NewArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let text = starter(&args.name, &args.image)?;
    match &args.output {
        None => ui.print(text.as_bytes())?,
        Some(path) => {
            create(path, &text)?;
            let name = shown(path);
            let quoted = shlex::try_quote(&name).map_err(|e| CommandError::operation(e.to_string()))?;
            ui.status(&format!("wrote {name}; next: flux-gen build {quoted}"));
        }
    }
    Ok(Exit::Ok)
}

fn starter(name: &str, image: &str) -> Result<String, CommandError> {
    let wrong = |w: &str| CommandError::usage(format!("`{name}` cannot be the name of a cluster: {w}"));
    if name.len() > LONGEST_NAME {
        return Err(wrong(&format!("it has {} characters and at most {LONGEST_NAME} are allowed", name.len())));
    }
    if !is_dns_label(name) {
        let form = "it must be lower-case letters, digits and `-`, begin with a letter and not end with `-`";
        return Err(wrong(form).help("for example: my-job"));
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    if image.is_empty() || !image.chars().all(allowed) || !image.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return Err(CommandError::usage(format!("`{image}` is no image reference")).help("for example: ubuntu:noble"));
    }
    let (comment, view) = match view_for(image) {
        Some(view) => ("", view),
        None => ("# ", "ubuntu:tag-focal"),
    };
    Ok(STARTER
        .replace("@NAME@", name)
        .replace("@QUOTED_NAME@", &quoted(name))
        .replace("@IMAGE@", image)
        .replace("@VIEW_COMMENT@", comment)
        .replace("@VIEW@", view))
}

/// The published view for a base image that is known by its name: of the same distribution, or of one with the same or an
/// older C library. None for all other images, whose name does not tell what is in them.
fn view_for(image: &str) -> Option<&'static str> {
    let (name, tag) = image.split('@').next()?.rsplit_once(':')?;
    let release = |releases: &[&str]| releases.iter().any(|r| tag == *r || tag.starts_with(&format!("{r}-")));
    let major = |major: &str| tag.split(['.', '-']).next() == Some(major);
    match name.rsplit('/').next()? {
        "ubuntu" if release(&["noble", "24.04"]) => Some("ubuntu:tag-noble"),
        "ubuntu" if release(&["jammy", "22.04"]) => Some("ubuntu:tag-jammy"),
        "ubuntu" if release(&["focal", "20.04"]) => Some("ubuntu:tag-focal"),
        // glibc 2.36 and 2.41; the views need 2.35 and 2.39 at the most.
        "debian" if release(&["bookworm"]) || major("12") => Some("ubuntu:tag-jammy"),
        "debian" if release(&["trixie"]) || major("13") => Some("ubuntu:tag-noble"),
        "rockylinux" | "almalinux" if major("9") => Some("rocky:tag-9"),
        "rockylinux" | "almalinux" if major("8") => Some("rocky:tag-8"),
        _ => None,
    }
}

/// The name as YAML text; some names are booleans or nothing to YAML 1.1 readers unless they have quotes.
fn quoted(name: &str) -> String {
    let word = matches!(name, "y" | "n" | "yes" | "no" | "on" | "off" | "true" | "false" | "null");
    if word { format!("\"{name}\"") } else { name.to_owned() }
}

/// A DNS label as RFC 1035 has it: Services of the cluster carry the name.
fn is_dns_label(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
}

/// Writes a new file; never over an existing one.
fn create(path: &Path, text: &str) -> Result<(), CommandError> {
    let failed = |e| CommandError::file("write", path, &e);
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).open(path).map_err(|e| match e.kind() {
        ErrorKind::AlreadyExists => CommandError::operation(format!("{} exists already", shown(path)))
            .help("give another name, or remove it first"),
        _ => failed(e),
    })?;
    file.write_all(text.as_bytes()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_view_fits_a_base_image_that_is_known_by_its_name() {
        for (image, view) in [
            ("ubuntu:noble", Some("ubuntu:tag-noble")),
            ("docker.io/library/ubuntu:22.04@sha256:0", Some("ubuntu:tag-jammy")),
            ("ubuntu:focal-20240101", Some("ubuntu:tag-focal")),
            ("ubuntu:latest", None),
            ("ubuntu", None),
            ("debian:bookworm-slim", Some("ubuntu:tag-jammy")),
            ("debian:12.5", Some("ubuntu:tag-jammy")),
            ("rockylinux:9", Some("rocky:tag-9")),
            ("rockylinux:9.3-minimal", Some("rocky:tag-9")),
            ("almalinux:8", Some("rocky:tag-8")),
            ("registry:5000/lammps:1", None),
        ] {
            assert_eq!(view_for(image), view, "{image}");
            let text = starter("a", image).unwrap();
            let line = format!("image: ghcr.io/converged-computing/flux-view-{}\n", view.unwrap_or("ubuntu:tag-focal"));
            assert!(text.contains(&line), "{image}: {text}");
            assert_eq!(text.contains(&format!("\n      {line}")), view.is_some(), "{image}: {text}");
        }
    }

    #[test]
    fn names_and_images_are_checked_before_they_go_into_text() {
        for name in ["", "A", "a b", "-a", "a-", "1a", "a\nb", &"a".repeat(58)] {
            assert_eq!(starter(name, "x").map_err(|e| e.exit()), Err(Exit::Usage), "{name:?}");
        }
        for image in ["", "a b", "a\n", "a #", "-a", "&a"] {
            assert_eq!(starter("a", image).map_err(|e| e.exit()), Err(Exit::Usage), "{image:?}");
        }
        assert!(starter("on", "x").unwrap().contains("\n  name: \"on\"\n"));
        let text = starter("lammps", "ghcr.io/a/b:c@sha256:0").unwrap();
        assert!(text.contains("\n  name: lammps\n") && text.contains("\n      image: ghcr.io/a/b:c@sha256:0\n"));
        assert!(!text.contains('@') || !text.contains("@NAME@"));
        assert!(text.contains("-l batch.kubernetes.io/job-name=lammps,batch.kubernetes.io/job-completion-index=0"));
    }
}
