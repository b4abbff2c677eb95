//! `flux-gen archive load`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;

use super::failed;
use crate::airgap::archive::{ABOUT_FILE, Archive, Problem, verify};
use crate::airgap::load::bundles::{self, Loaded, Rewritten};
use crate::airgap::load::ledger::Ledger;
use crate::airgap::load::plan::{self, Plan};
use crate::airgap::load::push;
use crate::airgap::load::site::{self, Site, SiteProject};
use crate::airgap::mirror::{Mirror, Prefix, Rule, not_a_prefix};
use crate::airgap::rewrite::Rewriter;
use crate::bundle::check::check;
use crate::bundle::files::Disk;
use crate::bundle::layout::Kept;
use crate::bundle::write::{WriteOptions, write};
use crate::cli::bundles::{EXPLAIN, file_error};
use crate::cli::error::CommandError;
use crate::cli::exit::Exit;
use crate::cli::progress::Progress;
use crate::cli::registry::{self, RegistryArgs};
use crate::cli::report::plural;
use crate::cli::sources::shown;
use crate::cli::ui::Ui;
use crate::diag::codes::airgap as codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::oci::layout::{self, Layout, Limits};
use crate::oci::transfer::Summary;
use crate::oci::{Digest, Platform, Reference, Source};

/// Load an archive into the registry behind the gap.
///
/// Checks every byte first; nothing is sent or written when something is wrong. Images go from the file into the registry
/// without being unpacked, and what the registry has is not sent again. With --output, DIR gets a copy of the project and its
/// bundles, in which every image is named by its place in this registry and by digest. Archives of images alone (skopeo's
/// oci-archive and docker-archive, `docker save`) are taken too.
#[derive(Debug, Args)]
pub(crate) struct LoadArgs {
    /// Archive, or the folder that it was extracted into.
    #[arg(value_name = "FILE")]
    archive: PathBuf,
    /// Where images go that no --map is for: `registry.site:5000/hub`. Their own registry becomes the first part of the
    /// repository.
    #[arg(long, value_name = "REGISTRY/PREFIX", required_unless_present = "map")]
    to: Option<String>,
    /// Where images of one registry, or of a part of it, go: `docker.io/library=registry.site:5000/hub`. The longest one that
    /// fits counts. May be repeated.
    #[arg(long, value_name = "FROM=TO")]
    map: Vec<String>,
    /// Platform that every image of the bundles must have; nothing is loaded when one has not. May be repeated.
    #[arg(long, value_name = "PLATFORM")]
    platform: Vec<Platform>,
    /// Folder for the project and its bundles.
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Overwrite files in DIR that were changed since an earlier load.
    #[arg(long, requires = "output")]
    force: bool,
    /// The whole name of the only image of an archive that does not tell it.
    #[arg(long, value_name = "REFERENCE", conflicts_with = "output")]
    name: Option<Reference>,
    /// Where to note what the registry has, for a load that is stopped [default: FILE.loaded].
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    #[command(flatten)]
    registry: RegistryArgs,
}

/// The end of a message about what was found before anything was done.
const END: &str = "; nothing was sent or written";

/// What is wrong, to be told all at once.
type Problems = Vec<Problem>;

/// What the archive holds.
enum Opened {
    /// One of flux-gen, checked, with the digest of its checksums.
    Whole(Box<Archive>, Digest),
    /// Images alone, checked.
    Images(Box<Layout>),
}

impl Opened {
    fn source(&self) -> &dyn Source {
        match self {
            Self::Whole(archive, _) => archive.as_ref(),
            Self::Images(layout) => layout.as_ref(),
        }
    }

    /// What tells this archive from others, whatever its file is called.
    fn identity(&self) -> Digest {
        match self {
            Self::Whole(_, digest) => digest.clone(),
            Self::Images(layout) => Digest::of(layout.index_bytes()),
        }
    }
}

/// The project and its bundles, ready to be written.
struct Output<'a> {
    folder: &'a Path,
    project: SiteProject,
    lock: String,
    rewritten: Rewritten,
}

pub(super) fn run(args: &LoadArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let mirror = match rules(args.to.as_deref(), &args.map) {
        Ok(mirror) => mirror,
        Err(found) => {
            let tally = ui.diagnostics([], &[], found);
            ui.failure(&format!("found {}", tally.words()), Some(EXPLAIN));
            return Ok(Exit::Failed);
        }
    };
    let opened = match open(args) {
        Ok(opened) => opened,
        Err(problems) => return Ok(failed(&problems, END, ui)),
    };
    let ready = prepare(args, &opened, &mirror);
    let (plan, output) = match ready {
        Ok(ready) => ready,
        Err(problems) => return Ok(failed(&problems, END, ui)),
    };
    if let Some(output) = &output {
        remarks(args, output, &mirror, ui);
    }
    let ledger = ledger(args, &opened, ui);
    let client = args.registry.client()?;
    let parallel = args.registry.transfer(&[]).parallel;
    let known = ledger.count();
    let pushed = push::push(opened.source(), &plan, &client, &ledger, parallel, &Progress::new(ui));
    if let Some(why) = ledger.problem() {
        warn(&format!("the ledger could not be written to its end: {why}"), ui);
    }
    let summary = match pushed {
        Ok(summary) => summary,
        Err(error) => {
            if ledger.count() > known {
                ui.status("what has been sent stays; the same command goes on from there");
            }
            return Err(registry::failed(&error));
        }
    };
    ui.status(&sentence(&plan, &summary));
    match output {
        Some(output) => save(args, &opened, &output, ui),
        None => Ok(Exit::Ok),
    }
}

/// `--to` and `--map` as rules.
pub(super) fn rules(to: Option<&str>, map: &[String]) -> Result<Mirror, Diagnostics> {
    let (mut rules, mut found) = (Vec::new(), Diagnostics::new());
    let prefix = |text: &str, found: &mut Diagnostics| match Prefix::parse(text) {
        Ok(prefix) => Some(prefix),
        Err(why) => {
            found.push(not_a_prefix(text, &why, None));
            None
        }
    };
    for map in map {
        let Some((from, to)) = map.split_once('=') else {
            found.push(not_a_prefix(map, "--map takes FROM=TO", None));
            continue;
        };
        if let (Some(from), Some(to)) = (prefix(from, &mut found), prefix(to, &mut found)) {
            rules.push(Rule { from: Some(from), to, span: None });
        }
    }
    if let Some(to) = to.and_then(|to| prefix(to, &mut found)) {
        rules.push(Rule { from: None, to, span: None });
    }
    let mirror = Mirror::of_rules(rules, &mut found);
    if found.has_errors() { Err(found) } else { Ok(mirror) }
}

/// Opens the archive and checks all of it.
fn open(args: &LoadArgs) -> Result<Opened, Problems> {
    let path = &args.archive;
    let platforms: Vec<Platform> = args.platform.iter().map(Platform::normalised).collect();
    match verify::verify(path, &platforms) {
        Ok(report) if report.problems.is_empty() => {
            let archive = Archive::open(path).map_err(|problem| vec![problem])?;
            // Without problems there is a list of checksums.
            let digest = report.digest.unwrap_or_else(|| Digest::of(b""));
            Ok(Opened::Whole(Box::new(archive), digest))
        }
        Ok(report) => Err(report.problems),
        Err(problem) if problem.code != codes::NOT_AN_ARCHIVE => Err(vec![problem]),
        Err(problem) => images_alone(args, problem),
    }
}

/// Opens what is no archive of flux-gen as `problem` says: images alone, in whatever form.
fn images_alone(args: &LoadArgs, problem: Problem) -> Result<Opened, Problems> {
    let path = &args.archive;
    let one = |error: crate::oci::Error| vec![Problem::from(error)];
    let layout = Layout::open(path, &Limits::default()).map_err(one)?;
    if layout.file(ABOUT_FILE).map_err(one)?.is_some() {
        // It is one, compressed as a whole: its checksums and bundles would be passed over.
        return Err(vec![problem]);
    }
    if args.output.is_some() {
        let message = format!("{} holds images alone: there is nothing for --output", path.display());
        return Err(vec![Problem::new(codes::NOT_AN_ARCHIVE, message).help("leave --output out")]);
    }
    let report = layout::verify(&layout, layout.roots());
    if report.problems.is_empty() {
        return Ok(Opened::Images(Box::new(layout)));
    }
    Err(report.problems.into_iter().map(Problem::from).collect())
}

/// Everything that can be found out before the first byte is sent.
fn prepare<'a>(args: &'a LoadArgs, opened: &Opened, mirror: &Mirror) -> Result<(Plan, Option<Output<'a>>), Problems> {
    let (images, referrers) = match opened {
        Opened::Whole(archive, _) => plan::of_archive(archive)?,
        Opened::Images(layout) => plan::of_layout(layout, args.name.as_ref())?,
    };
    let plan = plan::plan(opened.source(), &images, &referrers, mirror)?;
    let (Opened::Whole(archive, _), Some(folder)) = (opened, args.output.as_deref()) else { return Ok((plan, None)) };
    let one = |problem: Problem| vec![problem];
    let project = site::project(archive, mirror).map_err(one)?;
    let (lock, lock_text) = site::lock(archive).map_err(one)?;
    let loaded: Loaded = plan.loaded();
    let rewritten = bundles::rewrite(archive, &Rewriter::new(mirror.clone(), Some(&lock)), &loaded)?;
    let output = Output { folder, project, lock: lock_text, rewritten };
    if !args.force {
        let conflicts = conflicts(archive, &output).map_err(one)?;
        if !conflicts.is_empty() {
            return Err(conflicts);
        }
    }
    writable(folder).map_err(one)?;
    Ok((plan, Some(output)))
}

/// What stands in the way in the output: files that somebody has changed there.
fn conflicts(archive: &Archive, output: &Output<'_>) -> Result<Problems, Problem> {
    let mut problems = site(archive, output)?.conflicts(output.folder)?;
    let folder = output.folder.join(&output.project.output);
    let report = check(&Disk, &folder, &output.rewritten.tree, &Kept::default())
        .map_err(|e| Problem::file(e.action, &e.path, &e.source))?;
    // Their places are relative to that folder.
    let of = |d: &Diagnostic| {
        let message = format!("{}/{}", folder.display(), d.message);
        Problem { code: d.code, message, help: d.help.clone() }
    };
    problems.extend(report.conflicts.iter().map(of));
    Ok(problems)
}

fn site<'a>(archive: &'a Archive, output: &'a Output<'_>) -> Result<Site<'a>, Problem> {
    Site::new(archive, &output.project, &output.lock)
}

/// Whether files can be made in the output; better known before hours of sending than after.
fn writable(folder: &Path) -> Result<(), Problem> {
    let failed =
        |e: std::io::Error| Problem::file("write", folder, &e).help("choose another folder, or mend the permissions");
    fs::create_dir_all(folder).map_err(failed)?;
    tempfile::tempfile_in(folder).map(drop).map_err(failed)
}

fn warn(message: &str, ui: &Ui) {
    let warning = Diagnostic::global_warning(codes::LOAD_LEDGER, message);
    let warning = warning.help("a load that is stopped then asks the registry for each blob again; see --ledger");
    ui.diagnostics([], &[], [warning].into_iter().collect());
}

/// The ledger; without one things take longer after a stop, and nothing else.
fn ledger(args: &LoadArgs, opened: &Opened, ui: &Ui) -> Ledger {
    let beside = || {
        let mut name = args.archive.as_os_str().to_owned();
        name.push(".loaded");
        PathBuf::from(name)
    };
    let path = args.ledger.clone().unwrap_or_else(beside);
    match Ledger::open(&path, &opened.identity()).map_err(|e| crate::cli::error::plain(&e)) {
        Ok(ledger) => ledger,
        Err(why) => {
            warn(&format!("cannot keep {}: {why}", shown(&path)), ui);
            Ledger::default()
        }
    }
}

/// Remarks about what is left out, and about rules that are for nothing.
fn remarks(args: &LoadArgs, output: &Output<'_>, mirror: &Mirror, ui: &Ui) {
    let foreign = &output.rewritten.foreign;
    if !foreign.is_empty() {
        ui.status(&format!("left out, because no bundle lists them: {}", foreign.join(", ")));
    }
    let used: &BTreeSet<usize> = &output.rewritten.used;
    let idle = mirror.rules().iter().enumerate().filter(|(number, rule)| !used.contains(number) && rule.from.is_some());
    let told = idle.filter_map(|(_, rule)| {
        let from = rule.from.as_ref().filter(|from| **from != rule.to)?;
        let warning =
            Diagnostic::global_warning(codes::MIRROR_UNUSED, format!("no image of the bundles begins with {from}"));
        Some(warning.help("correct this --map, or leave it out"))
    });
    let told: Diagnostics = told.collect();
    if !told.is_empty() && !args.map.is_empty() {
        ui.diagnostics([], &[], told);
    }
}

fn sentence(plan: &Plan, summary: &Summary) -> String {
    format!(
        "loaded into {}: {} sent ({} bytes), {} mounted, {} there already",
        plan.places(),
        plural(summary.moved, "blob"),
        summary.bytes,
        summary.mounted,
        summary.present
    )
}

/// Writes the project, then its bundles, as `build` would.
fn save(args: &LoadArgs, opened: &Opened, output: &Output<'_>, ui: &Ui) -> Result<Exit, CommandError> {
    let Opened::Whole(archive, _) = opened else { return Ok(Exit::Ok) };
    let failed = |problem: Problem| CommandError::operation(problem.to_string());
    let site = site(archive, output).map_err(failed)?;
    site.write(output.folder).map_err(failed)?;
    let folder = output.folder.join(&output.project.output);
    let tree = &output.rewritten.tree;
    if tree.folders.is_empty() {
        ui.status(&format!("{}: the sources; the archive has no bundles", shown(output.folder)));
        return Ok(Exit::Ok);
    }
    let options = WriteOptions { force: args.force, durable: true };
    let report = write(&Disk, &folder, tree, &Kept::default(), options).map_err(|e| file_error(&e))?;
    if !report.conflicts.is_empty() {
        let tally = ui.diagnostics([], &[], report.conflicts);
        ui.failure(&format!("found {}; the bundles were not written", tally.words()), Some(EXPLAIN));
        return Ok(Exit::Failed);
    }
    let bundles = tree.folders.values().filter(|folder| folder.index.name.is_some()).count();
    ui.status(&format!(
        "{}: {} in {}; {} written, {} unchanged",
        shown(output.folder),
        plural(bundles, "bundle"),
        shown(&folder),
        plural(report.changes.len(), "file"),
        report.unchanged
    ));
    Ok(Exit::Ok)
}
