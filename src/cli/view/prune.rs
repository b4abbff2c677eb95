//! `flux-gen view prune`.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;

use super::build::{cache_of, layouts_of, size};
use super::find::{ProjectArgs, Views};
use crate::cli::error::CommandError;
use crate::cli::exit::Exit;
use crate::cli::report::plural;
use crate::cli::ui::Ui;
use crate::oci::layout::{LayoutWriter, Removed, WriteOptions};
use crate::view::cache::Cache;

/// Remove what earlier builds left in .flux-gen and nothing uses any longer.
///
/// These are layers and documents that no built view has any more, what is known of trees and archives, and what was fetched of
/// registries. Everything that a later build misses it makes or fetches again. The layouts of built views stay whole.
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Days that a file was not used; 0 is everything that no built view has.
    #[arg(long, value_name = "DAYS", default_value_t = 7, value_parser = clap::value_parser!(u64).range(..=36500))]
    unused_for: u64,
    /// Only say how much it is.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    project: ProjectArgs,
}

pub(super) fn run(args: &PruneArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let views = Views::open(&args.project, ui)?;
    let before = limit(args.unused_for);
    let cache = cache_of(&views);
    let mut removed = Cache::new(&cache)
        .prune(before, !args.dry_run)
        .map_err(|error| CommandError::file("remove files in", &cache, &error))?;
    for layout in layouts(&views)? {
        removed += LayoutWriter::create(&layout, WriteOptions::default())
            .and_then(|writer| writer.prune(before, !args.dry_run))
            .map_err(|error| super::open::command_error(&error))?;
    }
    let Removed { files, bytes } = removed;
    let done = if args.dry_run { "would be removed" } else { "removed" };
    ui.status(&format!("{} ({}) {done}", plural(files, "file"), size(bytes)));
    Ok(Exit::Ok)
}

/// The time of so many days ago, in nanoseconds since 1970. With none it lies ahead, so that files of this very moment count too.
#[allow(clippy::disallowed_methods)] // cli/ is where the clock is read.
fn limit(days: u64) -> i128 {
    if days == 0 {
        return i128::MAX;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i128::try_from(now.as_nanos()).unwrap_or(i128::MAX) - i128::from(days) * 86_400 * 1_000_000_000
}

/// The layouts of views that were built, also of those that the project no longer has.
fn layouts(views: &Views) -> Result<Vec<PathBuf>, CommandError> {
    let folder = layouts_of(views);
    let entries = match fs::read_dir(&folder) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|e| CommandError::file("read", &folder, &e))?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| CommandError::file("read", &folder, &e))?.path();
        if path.join("oci-layout").is_file() {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
