//! `flux-gen lock`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use rayon::prelude::*;

use super::bundles::EXPLAIN;
use super::error::CommandError;
use super::exit::Exit;
use super::images;
use super::lock_facts;
use super::pipeline::{InputArgs, Inputs};
use super::registry::RegistryArgs;
use super::report::plural;
use super::sources::shown;
use super::ui::Ui;
use crate::airgap::answer::answer;
use crate::airgap::lock::{LOCK_FILE, Lock, LockedImage, Origin, Staleness};
use crate::compile::compile;
use crate::diag::codes::airgap as codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::oci::layout::{Layout, Limits};
use crate::oci::registry::{Client, Repository};
use crate::oci::{Descriptor, Error, ErrorKind, Platform, Reference, Source};

/// Find out the digest of every image and keep them in images.lock.
///
/// Asks registries, and the layouts and archives named with --from, what each name means that specs, documents beside them
/// and views use. `build` writes these digests into bundles from then on. Names that the lock has are not asked for again
/// without --update.
#[derive(Debug, Args)]
pub(crate) struct LockArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Ask again for images that the lock has.
    #[arg(long, conflicts_with = "check")]
    update: bool,
    /// Ask nobody and write nothing: exit 3 when the lock does not belong to the specs.
    #[arg(long)]
    check: bool,
    /// Platforms that are needed; all that each image has without it. May be repeated.
    #[arg(long, value_name = "PLATFORM")]
    platform: Vec<Platform>,
    /// OCI layout or archive (OCI, `docker save`) to look into before registries are asked. May be repeated.
    #[arg(long, value_name = "PATH")]
    from: Vec<PathBuf>,
    /// Do not read what application images have (os-release, C library, bash), which takes their layers.
    #[arg(long, conflicts_with = "check")]
    no_facts: bool,
    #[command(flatten)]
    registry: RegistryArgs,
}

/// Where images are looked for.
pub(super) struct Places {
    pub(super) files: Vec<(String, Arc<Layout>)>,
    pub(super) client: Arc<Client>,
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
    fn source(&self, name: &str) -> Result<Arc<dyn Source>, Error> {
        match self.file(name) {
            Some((_, layout, _)) => Ok(Arc::<Layout>::clone(layout)),
            None => Ok(Arc::new(Repository::to_pull(&self.client, &name.parse()?))),
        }
    }
}

pub(crate) fn run(args: &LockArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let mut inputs = Inputs::open(&args.input, None, ui)?;
    inputs.read_specs(&args.input, ui)?;
    let (names, for_facts) = wanted(&mut inputs, ui)?;
    let old = match images::lock(&inputs.project) {
        Ok(lock) => lock.unwrap_or_default(),
        Err(_) if args.update => Lock::default(),
        Err(problem) => return failed(&mut inputs, [*problem].into_iter().collect(), ui),
    };
    let platforms = match args.platform.as_slice() {
        [] => old.platforms.clone(),
        given => given.iter().map(Platform::normalised).collect(),
    };
    let path = inputs.project.inside(LOCK_FILE);
    let stale = old.staleness(&names, &platforms);
    if args.check {
        return Ok(report_staleness(&stale, &path, "specs", "lock", ui));
    }
    let keep = |name: &String| !args.update && !stale.platforms && old.images.contains_key(name);
    let asked: Vec<&String> = names.iter().filter(|name| !keep(name)).collect();
    let places = Places { files: open_files(&args.from)?, client: args.registry.client()? };
    let answers: Vec<(&String, Result<LockedImage, Error>)> =
        asked.par_iter().map(|name| (*name, look_up(name, &places, &platforms))).collect();
    let mut lock = Lock { platforms, images: old.images.clone() };
    lock.images.retain(|name, _| names.contains(name));
    let mut problems = Diagnostics::new();
    for (name, result) in answers {
        match result {
            Ok(image) => {
                problems.extend(moved(name, old.images.get(name), &image).into_iter().collect());
                lock.images.insert(name.clone(), image);
            }
            Err(error) => problems.push(no_answer(name, &error)),
        }
    }
    if problems.has_errors() {
        return failed(&mut inputs, problems, ui);
    }
    if !args.no_facts {
        problems.extend(lock_facts::add(&mut lock, &old, &for_facts, &|name| places.source(name), ui));
    }
    inputs.report(ui, problems);
    let text = lock.to_text().map_err(|e| CommandError::operation(e.to_string()))?;
    let same = lock == old && path.exists();
    if !same {
        images::write_lock(&path, &text)?;
    }
    let verb = if same { "is up to date" } else { "written" };
    ui.status(&format!("{} {verb}: {}", shown(&path), plural(lock.images.len(), "image")));
    Ok(Exit::Ok)
}

/// The names of all images, as written, and those whose facts count.
fn wanted(inputs: &mut Inputs, ui: &Ui) -> Result<(BTreeSet<String>, lock_facts::Wanted), CommandError> {
    let compiled = compile(&inputs.to_compile(&std::collections::BTreeMap::new()));
    let names = images::names(&compiled.clusters, inputs);
    let wrong = compiled.diagnostics.has_errors() || inputs.diagnostics.has_errors();
    if wrong {
        let tally = inputs.report(ui, compiled.diagnostics);
        ui.failure(&format!("found {}; nothing was written", tally.words()), Some(EXPLAIN));
        return Err(CommandError::reported());
    }
    Ok((names, lock_facts::Wanted::of(&compiled.clusters)))
}

fn failed(inputs: &mut Inputs, problems: Diagnostics, ui: &Ui) -> Result<Exit, CommandError> {
    let tally = inputs.report(ui, problems);
    ui.failure(&format!("found {}; nothing was written", tally.words()), Some(EXPLAIN));
    Ok(Exit::Failed)
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

pub(super) fn look_up(name: &str, places: &Places, platforms: &BTreeSet<Platform>) -> Result<LockedImage, Error> {
    let reference: Reference = name.parse()?;
    if let Some((path, layout, root)) = places.file(name) {
        return answer(name, layout.as_ref(), root, platforms, Origin::File(path.to_owned()));
    }
    let repository = Repository::to_pull(&places.client, &reference);
    let wanted = match (reference.digest(), reference.tag_or_latest()) {
        (Some(digest), _) => digest.to_string(),
        (None, tag) => tag.unwrap_or("latest").to_owned(),
    };
    let missing = || Error::new(ErrorKind::NotFound, format!("{} has no image `{wanted}`", reference.name()));
    let root = repository.resolve(&wanted)?.ok_or_else(missing)?;
    let source: &dyn Source = &repository;
    answer(name, source, &root, platforms, Origin::Registry)
}

pub(super) fn no_answer(name: &str, error: &Error) -> Diagnostic {
    let made = Diagnostic::global_error(codes::LOCK_NO_ANSWER, format!("{name}: {error}"));
    match error.advice() {
        Some(help) => made.help(help),
        None => made,
    }
}

/// What to say when a name means something else than before.
pub(super) fn moved(name: &str, old: Option<&LockedImage>, new: &LockedImage) -> Option<Diagnostic> {
    let old = old.filter(|old| old.digest != new.digest)?;
    let message = format!("{name} was {} and is {} now", old.digest, new.digest);
    Some(Diagnostic::global_warning(codes::LOCK_MOVED, message).help("review it as you would a new version"))
}
