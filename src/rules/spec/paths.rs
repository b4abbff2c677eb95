//! Paths in containers, the view's mount path, and where the archive is kept.

use super::check::{Check, shown, text};
use super::reserved::{LONGEST_MOUNT_PATH, OWN_PATHS, SCRIPTS_PATH, VIEW_PATHS};
use super::volumes::absolute;
use crate::diag::codes::spec as codes;
use crate::rules::syntax::{self, Wrong};

pub(super) fn check(check: &mut Check<'_>) {
    for place in check.all_containers() {
        check.optional_form(codes::PATH, "workingDir", &place.container.working_dir, absolute);
        check.optional_form(codes::PATH, "logs", &place.container.logs, absolute);
    }
    if let Some(view) = check.view() {
        check.optional_form(codes::PATH, "workingDir", &view.working_dir, absolute);
        check.optional_form(codes::MOUNT_PATH, "mountPath", &view.mount_path, mount_path);
    }
    archive(check);
}

fn mount_path(path: &str) -> Result<(), Wrong> {
    absolute(path)?;
    if let Some(c) = path.chars().find(|c| !(c.is_ascii_alphanumeric() || "/._-+@".contains(*c))) {
        return Err(format!("`{}` would need quoting in scripts and socket names", c.escape_default()));
    }
    let clean = syntax::clean_path(path);
    if clean == "/" {
        return Err("nothing can be mounted over the root folder".to_owned());
    }
    if clean != path.strip_suffix('/').unwrap_or(path) {
        return Err(format!("write it as `{clean}`"));
    }
    if path.len() > LONGEST_MOUNT_PATH {
        let most = LONGEST_MOUNT_PATH;
        return Err(format!("it has {} characters, and socket names below it allow {most}", path.len()));
    }
    let others = OWN_PATHS.iter().map(|(path, _)| *path).chain([SCRIPTS_PATH]);
    for own in VIEW_PATHS.iter().copied().chain(others) {
        if syntax::is_within(&clean, own) {
            return Err(format!("`{own}` is one of flux-gen's own folders"));
        }
    }
    Ok(())
}

fn archive(check: &mut Check<'_>) {
    let Some(path) = check.spec.archive.as_ref().and_then(|archive| text(&archive.value.path)) else { return };
    if !check.form(codes::PATH, "archive path", path, |path| {
        absolute(path)?;
        if path.ends_with('/') { Err("it must name a file".to_owned()) } else { Ok(()) }
    }) {
        return;
    }
    let Some(runner) = check.runner() else { return };
    let clean = syntax::clean_path(&path.value);
    let volumes = runner.container.volumes.iter().flat_map(|map| &map.value);
    let kept = volumes.filter_map(|entry| {
        let is_empty_dir = super::check::is_true(&entry.value.value.empty_dir);
        text(&entry.value.value.path).filter(|_| !is_empty_dir)
    });
    if !kept.into_iter().any(|path| syntax::is_within(&clean, &syntax::clean_path(&path.value))) {
        let message = format!("nothing lasting is mounted where the archive `{}` is saved", shown(&path.value));
        check.warn(codes::ARCHIVE_NOT_KEPT, path.span, message, "mount a claim or host path at its folder");
    }
}
