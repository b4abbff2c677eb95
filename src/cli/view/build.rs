//! `flux-gen view build`.

use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;

use super::find::{ProjectArgs, Views};
use super::open::{Opener, RegistryArgs};
use crate::cli::epoch::source_date_epoch;
use crate::cli::error::CommandError;
use crate::cli::exit::Exit;
use crate::cli::report::plural;
use crate::cli::sources::shown;
use crate::cli::ui::Ui;
use crate::diag::{Diagnostics, Severity};
use crate::oci::Platform;
use crate::oci::layout::{LayoutWriter, WriteOptions};
use crate::view::build::{self, BuildOptions, BuiltImage, Event};
use crate::view::cache::Cache;
use crate::view::plan::Plan;

/// Build a view into an OCI layout.
///
/// Reads the tree that the recipe names, checks it, cuts it into layers and packs them. The same tree gives the same digest
/// on every machine and with any number of threads. No code of the tree is run, so any machine makes images for any platform. Layers of files that have not changed since the last build are not read
/// again. The time of everything in the image is SOURCE_DATE_EPOCH, or 0.
#[derive(Debug, Args)]
pub(crate) struct BuildArgs {
    /// Name of the view.
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    project: ProjectArgs,
    #[command(flatten)]
    registry: RegistryArgs,
    /// Build this platform only. May be repeated. Other machines build the others; `view index` joins them.
    #[arg(long, value_name = "PLATFORM")]
    platform: Vec<Platform>,
    /// Folder for the layout [default: .flux-gen/views/NAME beside the project file].
    #[arg(short, long, value_name = "DIR", help_heading = "Output options")]
    output: Option<PathBuf>,
    /// Read and pack everything anew.
    #[arg(long, help_heading = "Output options")]
    no_cache: bool,
    /// Do not wait for the disk; a power failure may then lose the layout.
    #[arg(long, help_heading = "Output options")]
    no_sync: bool,
    /// Threads to compress with [default: one per processor].
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

pub(super) fn run(args: &BuildArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let mut views = Views::open(&args.project, ui)?;
    let mut plan = views.require(&args.name, ui)?;
    choose(&mut plan, &args.platform)?;
    views.require_trees(&plan, ui)?;
    let output = args.output.clone().unwrap_or_else(|| layout_of(&views, &args.name));
    let mut options = options(&views, args.threads)?;
    if args.no_cache {
        options.cache = None;
    }
    let opener = Opener::new(&args.registry, views.root())?;
    let opener = if args.no_cache { opener } else { opener.keeping(&cache_of(&views)) };
    let writer = LayoutWriter::create(&output, WriteOptions { durable: !args.no_sync })
        .map_err(|error| super::open::command_error(&error))?;
    let open = |text: &str| opener.open(text);
    let built = build::build(&plan, &writer, &options, &open, &mut |event| tell(ui, event));
    let (images, remarks) = match built {
        Ok(built) => built,
        Err(failed) => {
            let tally = views.report(ui, failed.0);
            ui.failure(&format!("found {}; the view was not built", tally.words()), None);
            return Ok(Exit::Failed);
        }
    };
    let (_, root) = build::publish(&plan, &images, writer).map_err(|error| super::open::command_error(&error))?;
    views.report(ui, remarks);
    for image in &images {
        ui.status(&summary(image));
    }
    ui.status(&format!("{}: {}", shown(&output), root.digest));
    Ok(Exit::Ok)
}

/// Leaves the platforms that were asked for, if any were.
fn choose(plan: &mut Plan, wanted: &[Platform]) -> Result<(), CommandError> {
    if wanted.is_empty() {
        return Ok(());
    }
    let known: Vec<String> = plan.inputs.iter().map(|(platform, _)| platform.to_string()).collect();
    let wanted: Vec<Platform> = wanted.iter().map(Platform::normalised).collect();
    plan.only(&wanted).map_err(|unknown| {
        CommandError::usage(format!("the view `{}` is not made for {unknown}", plan.name))
            .help(format!("its view.yaml has {}", known.join(", ")))
    })
}

/// Where a view's layout is unless said otherwise.
pub(super) fn layout_of(views: &Views, name: &str) -> PathBuf {
    layouts_of(views).join(name)
}

/// Folder of the layouts of built views.
pub(super) fn layouts_of(views: &Views) -> PathBuf {
    views.state().join("views")
}

/// Folder of what is known of trees, layers and images of registries.
pub(super) fn cache_of(views: &Views) -> PathBuf {
    cache_in(&views.state())
}

/// The same, in the folder of what is no part of the project.
pub(crate) fn cache_in(state: &Path) -> PathBuf {
    state.join("cache")
}

/// What all commands that read trees have in common.
pub(super) fn options(views: &Views, threads: Option<NonZeroUsize>) -> Result<BuildOptions, CommandError> {
    let scratch = views.state().join("scratch");
    let made = make_state(&views.state()).and_then(|()| fs::create_dir_all(&scratch));
    made.map_err(|e| CommandError::file("make", &scratch, &e))?;
    let one = NonZeroUsize::MIN;
    Ok(BuildOptions {
        threads: threads.unwrap_or_else(|| std::thread::available_parallelism().unwrap_or(one)),
        time: source_date_epoch()?.unwrap_or(0),
        cache: Some(Cache::new(&cache_of(views))),
        scratch,
        root: views.root().to_path_buf(),
    })
}

/// Makes the folder for what is no part of the project, and tells git so.
pub(crate) fn make_state(state: &Path) -> io::Result<()> {
    fs::create_dir_all(state)?;
    let ignore = state.join(".gitignore");
    if ignore.exists() { Ok(()) } else { fs::write(&ignore, "*\n") }
}

fn tell(ui: &Ui, event: Event<'_>) {
    match event {
        Event::Reading(platform) => ui.status(&format!("{platform}: reading the tree")),
        Event::Packing(number, all, group) => {
            ui.status(&format!("  layer {number} of {all}: {} ({})", group.name, size(group.size)));
        }
        Event::Reused(number, all, group) => {
            ui.status(&format!("  layer {number} of {all}: {} (unchanged)", group.name));
        }
    }
}

fn summary(image: &BuiltImage) -> String {
    let reused = image.layers.iter().filter(|layer| layer.reused).count();
    let packed: u64 = image.layers.iter().map(|layer| layer.descriptor.size).sum();
    let mut parts = vec![plural(image.layers.len(), "layer"), format!("{reused} unchanged"), size(packed)];
    parts.extend(image.report.flux.as_ref().map(|version| format!("Flux {version}")));
    parts.extend(image.report.glibc.as_ref().map(|(version, _)| format!("glibc {version} or later")));
    format!("{}: {}; {}", image.platform, image.manifest.digest, parts.join(", "))
}

/// A number of bytes for people.
pub(super) fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "kB", "MB", "GB", "TB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// Whether any of these is an error.
pub(super) fn worst(diagnostics: &Diagnostics) -> Exit {
    let error = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    if error { Exit::Failed } else { Exit::Ok }
}
