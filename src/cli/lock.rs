//! `flux-gen lock`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;

use super::asking::{Asked, Places, open_files, report_staleness, write};
use super::bundles::EXPLAIN;
use super::error::CommandError;
use super::exit::Exit;
use super::images;
use super::lock_facts;
use super::mirror;
use super::pipeline::{InputArgs, Inputs};
use super::registry::RegistryArgs;
use super::ui::Ui;
use super::view::STATE;
use crate::airgap::lock::{COMMAND, LOCK_FILE, Lock};
use crate::compile::compile;
use crate::diag::Diagnostics;
use crate::oci::Platform;

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
        return Ok(report_staleness(&stale, &path, "specs", COMMAND, ui));
    }
    let mirror = mirror::of_project(inputs.project.written.as_ref(), Some(&old), &mut inputs.diagnostics);
    let places = Places {
        files: open_files(&args.from)?,
        client: args.registry.client()?,
        mirror: mirror.map(|rewriter| rewriter.mirror().clone()),
    };
    let place = |name: &str| images::place_of(&inputs, name);
    let asked = Asked { names: &names, platforms, again: args.update || stale.platforms, place: &place };
    let (mut lock, mut problems) = asked.ask(&old, &places);
    if problems.has_errors() {
        return failed(&mut inputs, problems, ui);
    }
    if !args.no_facts {
        let state = inputs.project.inside(STATE);
        problems.extend(lock_facts::add(&mut lock, &old, &for_facts, &state, &|name| places.source(name), ui));
    }
    inputs.report(ui, problems);
    write(&lock, &old, &path, COMMAND, "image", ui)?;
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
