//! Asking what names of images mean, and keeping the answers: what `lock` and `recipe lock` have in common.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use super::error::CommandError;
use super::exit::Exit;
use super::images::write_lock;
use super::report::plural;
use super::sources::shown;
use super::ui::Ui;
use crate::airgap::answer::answer;
use crate::airgap::lock::{Lock, LockedImage, Origin, Staleness};
use crate::airgap::mirror::{Mirror, Place};
use crate::diag::codes::airgap as codes;
use crate::diag::{Diagnostic, Diagnostics, Span};
use crate::oci::layout::{Layout, Limits};
use crate::oci::registry::{Client, Repository};
use crate::oci::{Descriptor, Error, ErrorKind, Platform, Reference, Source};

/// What is asked for.
pub(super) struct Asked<'a> {
    /// Names as they are written.
    pub(super) names: &'a BTreeSet<String>,
    /// Platforms that are needed; none: all that each image has.
    pub(super) platforms: BTreeSet<Platform>,
    /// Whether names are asked for that the lock has.
    pub(super) again: bool,
    /// Where a name is written, for messages.
    pub(super) place: &'a dyn Fn(&str) -> Option<Span>,
}

impl Asked<'_> {
    /// The lock with what is asked for and nothing else. A name without an answer is an error, one that means something else
    /// than before a warning.
    pub(super) fn ask(self, old: &Lock, places: &Places) -> (Lock, Diagnostics) {
        let keep = |name: &String| !self.again && old.images.contains_key(name);
        let unknown: Vec<&String> = self.names.iter().filter(|name| !keep(name)).collect();
        let answers: Vec<(&String, Result<LockedImage, Error>)> =
            unknown.par_iter().map(|name| (*name, look_up(name, places, &self.platforms))).collect();
        let mut lock = Lock { platforms: self.platforms, images: old.images.clone() };
        lock.images.retain(|name, _| self.names.contains(name));
        let mut problems = Diagnostics::new();
        for (name, result) in answers {
            let before = old.images.get(name);
            match result.map(|image| as_it_was(before, image)) {
                Ok(image) => {
                    problems.extend(moved(name, before, &image).into_iter().collect());
                    lock.images.insert(name.clone(), image);
                }
                Err(error) => problems.push(no_answer(name, (self.place)(name), &error)),
            }
        }
        (lock, problems)
    }
}

/// A registry behind a gap has the derived index in the place of the published one. Where that is the answer, nothing has changed.
fn as_it_was(before: Option<&LockedImage>, new: LockedImage) -> LockedImage {
    let derived = |image: &&LockedImage| image.derived.as_ref().is_some_and(|derived| derived.digest == new.digest);
    before.filter(derived).cloned().unwrap_or(new)
}

/// Writes a lock, unless it is there as it should be; `what` is counted.
pub(super) fn write(
    lock: &Lock,
    old: &Lock,
    path: &Path,
    command: &str,
    what: &str,
    ui: &Ui,
) -> Result<(), CommandError> {
    let same = lock == old && path.exists();
    if !same {
        store(lock, path, command)?;
    }
    let verb = if same { "is up to date" } else { "written" };
    ui.status(&format!("{} {verb}: {}", shown(path), plural(lock.images.len(), what)));
    Ok(())
}

/// Writes a lock, and in it the command that did.
pub(super) fn store(lock: &Lock, path: &Path, command: &str) -> Result<(), CommandError> {
    let text = lock.to_text_by(command).map_err(|e| CommandError::operation(e.to_string()))?;
    write_lock(path, &text)
}

/// Where images are looked for.
pub(super) struct Places {
    pub(super) files: Vec<(String, Arc<Layout>)>,
    pub(super) client: Arc<Client>,
    /// Where images are behind a gap.
    pub(super) mirror: Option<Mirror>,
}

impl Places {
    /// The file that has a name.
    fn file(&self, name: &str) -> Option<(&str, &Arc<Layout>, &Descriptor)> {
        let full = name.parse::<Reference>().map_or_else(|_| name.to_owned(), |reference| reference.to_string());
        self.files.iter().find_map(|(path, layout)| {
            let root = [name, full.as_str()].into_iter().find_map(|name| layout.find(Some(name)).ok())?;
            Some((path.as_str(), layout, root))
        })
    }

    /// The place of an image.
    pub(super) fn source(&self, name: &str) -> Result<Arc<dyn Source>, Error> {
        match self.file(name) {
            Some((_, layout, _)) => Ok(Arc::<Layout>::clone(layout)),
            None => Ok(Arc::new(self.repository(&name.parse()?).0)),
        }
    }

    /// The repository of an image, and what the image is called there. With a mirror it is the site's own.
    fn repository(&self, name: &Reference) -> (Repository, Reference) {
        let there = match self.mirror.as_ref().map(|mirror| mirror.place(name)) {
            Some(Place::At(there, _)) => there,
            Some(Place::Same | Place::Outside) | None => name.clone(),
        };
        (Repository::to_pull(&self.client, &there), there)
    }
}

/// Says in what a lock differs from what is asked for now by `whom`; `command` mends it.
pub(super) fn report_staleness(stale: &Staleness, path: &Path, whom: &str, command: &str, ui: &Ui) -> Exit {
    let path = shown(path);
    if stale.is_fresh() {
        ui.status(&format!("{path} belongs to the {whom}"));
        return Exit::Ok;
    }
    let mut parts = Vec::new();
    for (names, what) in [(&stale.missing, "it does not have"), (&stale.unused, "nobody uses")] {
        if !names.is_empty() {
            parts.push(format!("{what} {}", names.join(", ")));
        }
    }
    if stale.platforms {
        parts.push("other platforms are asked for".to_owned());
    }
    let help = format!("run `flux-gen {command}`");
    ui.failure(&format!("{path} does not belong to the {whom}: {}", parts.join("; ")), Some(&help));
    Exit::Drift
}

pub(super) fn open_files(paths: &[PathBuf]) -> Result<Vec<(String, Arc<Layout>)>, CommandError> {
    let open = |path: &PathBuf| {
        let layout = Layout::open(path, &Limits::default()).map_err(|e| super::registry::failed(&e))?;
        Ok((shown(path), Arc::new(layout)))
    };
    paths.iter().map(open).collect()
}

fn look_up(name: &str, places: &Places, platforms: &BTreeSet<Platform>) -> Result<LockedImage, Error> {
    let reference: Reference = name.parse()?;
    if let Some((path, layout, root)) = places.file(name) {
        return answer(name, layout.as_ref(), root, platforms, Origin::File(path.to_owned()));
    }
    let (repository, there) = places.repository(&reference);
    let wanted = match (reference.digest(), reference.tag_or_latest()) {
        (Some(digest), _) => digest.to_string(),
        (None, tag) => tag.unwrap_or("latest").to_owned(),
    };
    let missing = || Error::new(ErrorKind::NotFound, format!("{} has no image `{wanted}`", there.name()));
    let root = repository.resolve(&wanted)?.ok_or_else(missing)?;
    let source: &dyn Source = &repository;
    answer(name, source, &root, platforms, Origin::Registry)
}

fn no_answer(name: &str, place: Option<Span>, error: &Error) -> Diagnostic {
    let text = error.to_string();
    // Some errors begin with the name themselves.
    let message = if text.starts_with(name) { text } else { format!("{name}: {text}") };
    let made = match place {
        Some(span) => Diagnostic::error(codes::LOCK_NO_ANSWER, span, message),
        None => Diagnostic::global_error(codes::LOCK_NO_ANSWER, message),
    };
    match error.advice() {
        Some(help) => made.help(help),
        None => made,
    }
}

/// What to say when a name means something else than before.
fn moved(name: &str, old: Option<&LockedImage>, new: &LockedImage) -> Option<Diagnostic> {
    let old = old.filter(|old| old.digest != new.digest)?;
    let message = format!("{name} was {} and is {} now", old.digest, new.digest);
    Some(Diagnostic::global_warning(codes::LOCK_MOVED, message).help("review it as you would a new version"))
}
