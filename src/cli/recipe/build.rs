//! `flux-gen recipe fetch` and `build`.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::load::{Recipes, SelectArgs};
use crate::cli::error::CommandError;
use crate::cli::exit::Exit;
use crate::cli::registry::client_options;
use crate::cli::report::plural;
use crate::cli::sources::shown;
use crate::cli::ui::Ui;
use crate::diag::codes::recipe as codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::oci::registry::Files;
use crate::view::engine::{self, BuildError, BuildOptions, Choice, Event, diagnostic};
use crate::view::recipe::fetch::{FetchEvent, Fetcher};
use crate::view::recipe::{Arch, Download, Plan};

/// Where downloads come from and go to.
#[derive(Debug, Args)]
struct FetchOptions {
    /// Folder for downloads, trees and logs [default: flux-gen in the user's cache folder].
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Ask here first for files of the same names: a URL, or file:///FOLDER. May be given several times.
    #[arg(long, value_name = "URL")]
    mirror: Vec<String>,
    /// Trust these certificates (PEM) too when downloading.
    #[arg(long, value_name = "FILE")]
    ca: Vec<PathBuf>,
    /// Seconds that a download may stand still.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86400))]
    timeout: u64,
}

/// Download what recipes need, so that building needs no network for it.
#[derive(Debug, Args)]
pub(super) struct FetchArgs {
    #[command(flatten)]
    select: SelectArgs,
    #[command(flatten)]
    options: FetchOptions,
}

/// Compile the tree of a view in a container.
///
/// Downloads first, by checksum; then the system's packages are installed, kept as an image for later builds; then the steps
/// run without network. The result is a tar archive of `opt/software` and `opt/views`. A tree that was built before is not
/// built again. Without --arch these are the trees that the engine's machine can compile; for the others there is a warning.
/// When this program is stopped, whatever the way, its containers are removed.
#[derive(Debug, Args)]
pub(super) struct BuildArgs {
    #[command(flatten)]
    select: SelectArgs,
    #[command(flatten)]
    options: FetchOptions,
    /// Container engine: buildah, podman[:CONNECTION], docker[:CONTEXT] or buildkit:ADDRESS [default: the first that is there].
    #[arg(long, value_name = "ENGINE", help_heading = "Engine options")]
    engine: Option<Choice>,
    /// Processes that `make` may run at once [default: one per processor].
    #[arg(short, long, value_name = "N", help_heading = "Engine options")]
    jobs: Option<NonZeroUsize>,
    /// Emulate another processor when the engine's machine has not the right one: slow, and not always right.
    #[arg(long, help_heading = "Engine options")]
    allow_emulation: bool,
    /// Build again what was built before.
    #[arg(long)]
    again: bool,
    /// Copy the tree to this file; for one recipe, system and architecture only.
    #[arg(short, long, value_name = "FILE", help_heading = "Output options")]
    output: Option<PathBuf>,
}

/// The cache folder: what was said, else XDG_CACHE_HOME or ~/.cache (XDG Base Directory Specification).
#[allow(clippy::disallowed_methods)] // cli/ is where the environment is read.
pub(crate) fn cache(named: Option<&Path>) -> Result<PathBuf, CommandError> {
    if let Some(cache) = named {
        return Ok(cache.to_path_buf());
    }
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    let folder = folder.ok_or_else(|| {
        CommandError::operation("no cache folder: neither XDG_CACHE_HOME nor HOME is set")
            .help("give one with --cache DIR")
    })?;
    Ok(folder.join("flux-gen"))
}

fn fetcher(options: &FetchOptions, cache: &Path) -> Result<Fetcher, CommandError> {
    let how = client_options(&options.ca, options.timeout)?;
    let files = Files::new(how).map_err(|error| crate::cli::registry::failed(&error))?;
    Ok(Fetcher::new(cache, options.mirror.clone(), files))
}

/// Shows downloads: a bar on a terminal, else a line for each.
struct Downloads<'a> {
    ui: &'a Ui,
    bar: ProgressBar,
}

impl<'a> Downloads<'a> {
    fn new(ui: &'a Ui) -> Self {
        // No terminal, no bar.
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {bytes}/{total_bytes} {bytes_per_sec}") {
            bar.set_style(style);
        }
        Self { ui, bar }
    }

    fn tell(&self, download: &Download, event: FetchEvent) {
        match event {
            FetchEvent::Cached => {}
            FetchEvent::Waiting => self.line(&format!("{}: another run is downloading it", download.file)),
            FetchEvent::Start { url, have, size } => {
                let so_far = if have > 0 { format!(", going on after {have} bytes") } else { String::new() };
                self.line(&format!("downloading {url}{so_far}"));
                self.bar.set_message(download.file.clone());
                self.bar.set_length(size.unwrap_or(0));
                self.bar.set_position(have);
            }
            FetchEvent::Progress(have) => self.bar.set_position(have),
            FetchEvent::Retry(reason) => self.line(&format!("{}: {reason}", download.file)),
        }
    }

    fn line(&self, text: &str) {
        self.bar.suspend(|| self.ui.status(text));
    }
}

impl Drop for Downloads<'_> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn failed(ui: &Ui, error: &BuildError) -> CommandError {
    let mut found = Diagnostics::new();
    found.push(diagnostic(error));
    ui.diagnostics([], &[], found);
    CommandError::reported()
}

pub(super) fn fetch(args: &FetchArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let mut recipes = Recipes::load(&args.select.place, args.select.name.as_deref())?;
    recipes.report(ui, Diagnostics::new())?;
    let cache = cache(args.options.cache.as_deref())?;
    let fetcher = fetcher(&args.options, &cache)?;
    let mut downloads: Vec<Download> = Vec::new();
    for (_, plan) in recipes.plans(&args.select)? {
        downloads.extend(plan.downloads);
    }
    downloads.sort();
    downloads.dedup();
    let mut wrong = 0;
    for download in &downloads {
        let shown = Downloads::new(ui);
        if let Err(error) = fetcher.fetch(download, &mut |event| shown.tell(download, event)) {
            drop(shown);
            failed(ui, &BuildError::Fetch(error));
            wrong += 1;
        }
    }
    if wrong > 0 {
        ui.failure(&format!("{wrong} of {} failed", plural(downloads.len(), "download")), None);
        return Ok(Exit::Failed);
    }
    ui.status(&format!("{}: {} at hand", shown(&cache), plural(downloads.len(), "download")));
    Ok(Exit::Ok)
}

#[allow(clippy::disallowed_methods)] // cli/ is where the environment is read.
pub(super) fn build(args: &BuildArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let mut recipes = Recipes::load(&args.select.place, args.select.name.as_deref())?;
    recipes.report(ui, Diagnostics::new())?;
    let plans = recipes.plans(&args.select)?;
    if args.output.is_some() && plans.len() > 1 {
        return Err(CommandError::usage(format!("--output is for one tree, and these are {}", plans.len()))
            .help("say which with NAME, --system and --arch"));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let engine = engine::find(args.engine.as_ref(), &path).map_err(|e| failed(ui, &e))?;
    let cache = cache(args.options.cache.as_deref())?;
    let fetcher = fetcher(&args.options, &cache)?;
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let options = BuildOptions {
        cache,
        engine,
        jobs: args.jobs.map_or(processors, NonZeroUsize::get),
        allow_emulation: args.allow_emulation,
        again: args.again,
    };
    let mut left = 0;
    for (folder, plan) in &plans {
        let start = Instant::now();
        let downloads = Downloads::new(ui);
        let mut events = |event| tell(ui, event);
        let mut fetched = |download: &Download, event| downloads.tell(download, event);
        let built = engine::build(plan, folder, &fetcher, &options, &mut events, &mut fetched);
        drop(downloads);
        let built = match built {
            Err(BuildError::Emulation { machine, .. }) if args.select.arch.is_none() && natives(&plans, machine) => {
                not_built(ui, plan, machine);
                left += 1;
                continue;
            }
            built => built.map_err(|e| failed(ui, &e))?,
        };
        let what = match &built.log {
            Some(log) => {
                format!("built in {} s, log {}", start.elapsed().max(Duration::from_secs(1)).as_secs(), shown(log))
            }
            None => "built before".to_owned(),
        };
        ui.status(&format!("{}: {what}", plan.key));
        let tree = match &args.output {
            Some(output) => {
                fs::copy(&built.tree, output).map_err(|e| CommandError::file("write", output, &e))?;
                shown(output)
            }
            None => shown(&built.tree),
        };
        ui.print(format!("{tree}\n").as_bytes())?;
    }
    if left > 0 {
        ui.status(&format!("{} built, {left} not", plural(plans.len() - left, "tree")));
    }
    Ok(Exit::Ok)
}

/// Whether some of the plans are for a machine.
fn natives(plans: &[(&Path, Plan)], machine: Arch) -> bool {
    plans.iter().any(|(_, plan)| plan.arch == machine)
}

/// Nobody asked for this architecture by its name, so that another one is built is no error.
fn not_built(ui: &Ui, plan: &Plan, machine: Arch) {
    let what = format!("{} is not built: the engine is on a machine for {machine}", plan.key);
    let help = format!(
        "build it with an engine on {arch}: --arch {arch} --engine docker:CONTEXT, podman:CONNECTION or buildkit:ADDRESS; \
         or with --allow-emulation",
        arch = plan.arch
    );
    let mut found = Diagnostics::new();
    found.push(Diagnostic::global_warning(codes::EMULATION, what).help(help));
    ui.diagnostics([], &[], found);
}

fn tell(ui: &Ui, event: Event) {
    match event {
        Event::Phase(text) => ui.status(&text),
        Event::Step { number, count, title } => ui.status(&format!("step {number} of {count}: {title}")),
        Event::Line(line) => ui.detail(&line),
        Event::Waiting => ui.status("another run is building the same; waiting for it"),
        Event::Warning(text) => {
            let mut found = Diagnostics::new();
            found.push(Diagnostic::global_warning(codes::EMULATION, text));
            ui.diagnostics([], &[], found);
        }
    }
}
