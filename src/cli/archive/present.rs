//! `archive verify REGISTRY/PREFIX`: the registry behind the gap against the bundles that were loaded.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::airgap::load::present::{Report, Wanted};
use crate::airgap::mirror::{Mirror, Prefix};
use crate::airgap::plain::may_hold_objects;
use crate::cli::error::CommandError;
use crate::cli::images;
use crate::cli::project::{FILE, Found};
use crate::cli::registry::RegistryArgs;
use crate::diag::{Diagnostics, SourceMap};
use crate::oci::Platform;

/// Reads everything back that the bundles and the lock of a folder name.
///
/// # Errors
/// When the folder has no bundles, or something of it cannot be read.
pub(super) fn check(
    prefix: Prefix,
    folder: &Path,
    platforms: &[Platform],
    registry: &RegistryArgs,
) -> Result<Report, CommandError> {
    let file = folder.join(FILE);
    if !file.exists() {
        let message = format!("there is no {}, so it is not known what the registry should have", file.display());
        return Err(
            CommandError::operation(message).help("name the folder that `archive load -o` wrote with --bundles")
        );
    }
    let (mut sources, mut found) = (SourceMap::new(), Diagnostics::new());
    let project = Found::find(Some(&file), &mut sources, &mut found)?;
    let written = project.written.as_ref().and_then(|project| project.images.as_ref());
    let mirror = written.and_then(|images| images.value.mirror.as_ref());
    let mirror = mirror.map(|list| Mirror::of_project(&list.value, &mut found)).unwrap_or_default();
    if let Some(wrong) = found.iter().next() {
        let message = format!("{}: {}", file.display(), wrong.message);
        return Err(CommandError::operation(message).help("`flux-gen validate` there tells more"));
    }
    let mut wanted = Wanted::default();
    if let Some(lock) = images::lock(&project).map_err(|problem| CommandError::operation(problem.message))? {
        wanted.add_lock(&lock, &mirror);
    }
    let places = places(prefix, &mirror, &file)?;
    let output = project.output(None);
    if !output.is_dir() {
        let message = format!("there are no bundles in {}", output.display());
        return Err(
            CommandError::operation(message).help("name the folder that `archive load -o` wrote with --bundles")
        );
    }
    add(&output, &places, &mut wanted)?;
    Ok(wanted.check(platforms, &registry.client()?))
}

/// Where the project has its images. What was asked for has to be one of these places, or `has everything` would be said of
/// another one.
fn places(asked: Prefix, mirror: &Mirror, file: &Path) -> Result<Vec<Prefix>, CommandError> {
    if mirror.rules().is_empty() {
        return Ok(vec![asked]);
    }
    let places: BTreeSet<Prefix> = mirror.rules().iter().map(|rule| rule.to.clone()).collect();
    if places.iter().any(|place| asked.covers(place)) {
        return Ok(places.into_iter().collect());
    }
    let names: Vec<String> = places.iter().map(ToString::to_string).collect();
    let message = format!("{} has its images in {}, not in {asked}", file.display(), names.join(", "));
    Err(CommandError::operation(message).help("name one of these, or the folder of another load with --bundles"))
}

/// Adds all files of a folder that may hold objects, in the order of their names.
fn add(folder: &Path, places: &[Prefix], wanted: &mut Wanted) -> Result<(), CommandError> {
    let failed = |e: std::io::Error| CommandError::file("read", folder, &e);
    let mut entries = fs::read_dir(folder).and_then(Iterator::collect::<std::io::Result<Vec<_>>>).map_err(failed)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            add(&path, places, wanted)?;
        } else if may_hold_objects(&path.to_string_lossy()) {
            let bytes = fs::read(&path).map_err(|e| CommandError::file("read", &path, &e))?;
            wanted.add_file(&path.display().to_string(), bytes, places);
        }
    }
    Ok(())
}
