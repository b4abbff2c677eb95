//! The files of a project that go into an archive.

use std::fs;
use std::io;
use std::path::Path;

use crate::airgap::archive::Problem;
use crate::airgap::archive::bundles::plain_secrets;
use crate::airgap::archive::contents::{Project, ProjectFile};
use crate::airgap::plain::has_private_key;
use crate::bundle::cipher::CipherKind;
use crate::bundle::store::{PUBLIC_FILE, STORE_FOLDER};
use crate::bundle::survey::WORK_FOLDER;
use crate::cli::bundles::Rendered;
use crate::cli::recipe::RECIPES_LOCK;
use crate::diag::codes::airgap as codes;

/// Folders beside the project file that views are made from.
const FOLDERS: [&str; 2] = ["views", "recipes"];

/// Everything of a project: the bundles as they are in the output folder, and what they were made from.
pub(super) fn files(rendered: &Rendered, lock: String) -> Result<Project, Problem> {
    let inputs = &rendered.inputs;
    let mut bundles = Vec::new();
    walk(&inputs.output, "", &|name| name != WORK_FOLDER, &mut bundles)?;
    let mut sources = Vec::new();
    for (name, path) in inputs.files() {
        if path.as_os_str() == "-" || name == "-" {
            let message = "a spec from standard input cannot be in an archive";
            return Err(Problem::new(codes::ARCHIVE_STALE, message).help("write it to a file of the project"));
        }
        sources.push(ProjectFile::of(name, &path)?);
    }
    for folder in FOLDERS {
        let path = inputs.project.inside(folder);
        if path.is_dir() {
            walk(&path, folder, &is_visible, &mut sources)?;
        }
    }
    for name in rendered.sealing.iter().map(String::as_str).chain([RECIPES_LOCK]) {
        let path = inputs.project.inside(name);
        if path.exists() {
            sources.push(ProjectFile::of(name, &path)?);
        }
    }
    let store = inputs.project.inside(STORE_FOLDER);
    if store.is_dir() {
        let mut all = Vec::new();
        walk(&store, STORE_FOLDER, &is_visible, &mut all)?;
        sources.extend(all.into_iter().filter(|file| is_public(&file.name)));
    }
    sources.sort_by(|a, b| (&a.name, &a.path).cmp(&(&b.name, &b.path)));
    // Specs may lie in `views` or beside the store.
    sources.dedup_by(|a, b| a.name == b.name && fs::canonicalize(&a.path).ok() == fs::canonicalize(&b.path).ok());
    Ok(Project { lock, bundles, sources, tool: None })
}

fn is_visible(name: &str) -> bool {
    !name.starts_with('.')
}

/// Of the certificate store only the record of public keys and encrypted Secrets are for others.
fn is_public(name: &str) -> bool {
    let encrypted = CipherKind::ALL.iter().any(|kind| name.ends_with(kind.suffix()));
    encrypted || name.strip_prefix(STORE_FOLDER).is_some_and(|rest| rest.trim_start_matches('/') == PUBLIC_FILE)
}

/// All files below a folder, in order; links are followed, as git and kubectl do.
fn walk(
    folder: &Path,
    below: &str,
    wanted: &dyn Fn(&str) -> bool,
    found: &mut Vec<ProjectFile>,
) -> Result<(), Problem> {
    let failed = |e: io::Error| Problem::file("read", folder, &e);
    let mut entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(failed)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name().into_string().map_err(|name| {
            let message = format!("{}: the name is no UTF-8", folder.join(name).display());
            Problem::new(codes::ARCHIVE_STALE, message)
        })?;
        if !wanted(&name) {
            continue;
        }
        let path = entry.path();
        let name = if below.is_empty() { name } else { format!("{below}/{name}") };
        if entry.file_type().map_err(failed)?.is_dir() {
            walk(&path, &name, wanted, found)?;
        } else {
            found.push(ProjectFile::of(name, &path)?);
        }
    }
    Ok(())
}

/// A problem for each file with Secrets or private keys that anybody can read.
pub(super) fn secrets(project: &Project) -> Vec<Problem> {
    project.bundles.iter().chain(&project.sources).filter_map(secret).collect()
}

fn secret(file: &ProjectFile) -> Option<Problem> {
    let bytes = match fs::read(&file.path) {
        Ok(bytes) => bytes,
        Err(e) => return Some(Problem::file("read", &file.path, &e)),
    };
    let problem = |message: &str, help: &str| {
        let message = format!("{} {message}", file.path.display());
        Some(Problem::new(codes::ARCHIVE_SECRET, message).help(help))
    };
    let has_key = has_private_key(&bytes);
    match plain_secrets(&file.name, bytes) {
        Err(why) => {
            let message = format!("cannot be looked into for Secrets: {why}");
            problem(&message, "mend the file, or say --include-secrets")
        }
        Ok(names) if !names.is_empty() => {
            let help = "encrypt it (setting `secrets`), make it at the site, or say --include-secrets";
            problem(&format!("holds the plain Secret {}", names.join(", ")), help)
        }
        Ok(_) if has_key => {
            let help = "take the certificate out of it (docs/secrets.md), or say --include-secrets";
            problem("holds the private key of a certificate", help)
        }
        Ok(_) => None,
    }
}
