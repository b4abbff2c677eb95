//! `flux-gen archive save`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;

use super::places::Places;
use super::tool::{self, Wish};
use super::{failed, project};
use crate::airgap::archive::Problem;
use crate::airgap::archive::collect::collect;
use crate::airgap::archive::contents::{Contents, Project};
use crate::airgap::archive::save::{SaveOptions, partial, save};
use crate::airgap::lock::Lock;
use crate::bundle::check::check;
use crate::bundle::files::Disk;
use crate::cli::bundles::{self, Use, file_error};
use crate::cli::error::CommandError;
use crate::cli::exit::Exit;
use crate::cli::images;
use crate::cli::pipeline::InputArgs;
use crate::cli::progress::{Progress, size};
use crate::cli::registry::RegistryArgs;
use crate::cli::report::plural;
use crate::cli::sources::shown;
use crate::cli::ui::Ui;
use crate::diag::codes::airgap as codes;
use crate::oci::Platform;

/// Write bundles, their images and what they were made from into one file.
///
/// Needs an up-to-date output folder and images.lock. Images are fetched by the digests of the lock, straight into their place in
/// the file. A save that was stopped goes on where it was when it is run again: until everything is in it the file is called
/// FILE.partial. The same project and images give the same bytes.
#[derive(Debug, Args)]
pub(crate) struct SaveArgs {
    #[command(flatten)]
    input: InputArgs,
    /// The file to write.
    #[arg(short = 'o', long = "file", value_name = "FILE", help_heading = "Output options")]
    file: PathBuf,
    /// Folder with the bundles [default: `output` of the project file, else generated].
    #[arg(long, value_name = "DIR", help_heading = "Output options")]
    output: Option<PathBuf>,
    /// Platforms that the site has; those of the lock without it. May be repeated.
    #[arg(long, value_name = "PLATFORM")]
    platform: Vec<Platform>,
    /// Put plain Secrets into the archive too; without it they are refused.
    #[arg(long)]
    include_secrets: bool,
    /// OCI layout or archive (OCI, `docker save`) to take images from before registries are asked. May be repeated.
    #[arg(long, value_name = "PATH")]
    from: Vec<PathBuf>,
    /// Put flux-gen itself into the archive, for a site that does not have it: its image, and out of it a static program for
    /// each platform. A reference (a layout of --from is looked into first), or the path of an OCI layout or archive.
    #[arg(long, value_name = "IMAGE|PATH")]
    with_tool: Option<String>,
    #[command(flatten)]
    registry: RegistryArgs,
}

/// The end of a message about what was found before anything was done.
const NOTHING: &str = "; nothing was written";

pub(super) fn run(args: &SaveArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let rendered = bundles::render(&args.input, args.output.as_deref(), Use::Compare, ui)?;
    let report = check(&Disk, &rendered.inputs.output, &rendered.tree, &rendered.kept).map_err(|e| file_error(&e))?;
    let inputs = &rendered.inputs;
    let mut problems = Vec::new();
    if report.has_drift() {
        let message = format!("{} is not what the specs give", shown(&inputs.output));
        problems.push(
            Problem::new(codes::ARCHIVE_STALE, message)
                .help("`flux-gen diff` shows it; run `flux-gen build`, review and commit"),
        );
    }
    let lock = match images::lock(&inputs.project) {
        Ok(Some(lock)) => lock,
        Ok(None) => {
            let problem = Problem::new(codes::ARCHIVE_STALE, "there is no images.lock");
            problems.push(problem.help("run `flux-gen lock` and `flux-gen build`"));
            return Ok(failed(&problems, NOTHING, ui));
        }
        Err(problem) => {
            ui.diagnostics([], &[], [*problem].into_iter().collect());
            return Err(CommandError::reported());
        }
    };
    let text = lock.to_text().map_err(|e| CommandError::operation(e.to_string()))?;
    let mut files = match project::files(&rendered, text) {
        Ok(files) => files,
        Err(problem) => {
            problems.push(problem);
            return Ok(failed(&problems, NOTHING, ui));
        }
    };
    if !args.include_secrets {
        problems.extend(project::secrets(&files));
    }
    if !problems.is_empty() {
        return Ok(failed(&problems, NOTHING, ui));
    }
    let platforms: BTreeSet<Platform> = match args.platform.as_slice() {
        [] => lock.platforms.clone(),
        given => given.iter().map(Platform::normalised).collect(),
    };
    let mut places = Places::open(&args.from, &args.registry, &lock)?;
    // Programs of flux-gen itself are there until they have been written.
    let scratch = tempfile::tempdir().map_err(|e| CommandError::file("make", Path::new("a temporary folder"), &e))?;
    let wish = args.with_tool.as_deref().map(|wish| Wish { image: wish, scratch: scratch.path() });
    let contents = match contents(&lock, &platforms, &mut files, wish, &mut places) {
        Ok(contents) => contents,
        Err(problems) => return Ok(failed(&problems, NOTHING, ui)),
    };
    let options = SaveOptions { parallel: args.registry.transfer(&[]).parallel, durable: true };
    if let Err(problem) = save(&contents, &args.file, options, &Progress::new(ui)) {
        let kept = partial(&args.file);
        let end = match kept.exists() {
            true => format!("; {} keeps what is there, and the same command goes on with it", kept.display()),
            false => NOTHING.to_owned(),
        };
        return Ok(failed(&[problem], &end, ui));
    }
    let what = [
        plural(contents.about.images.len(), "image"),
        format!("{} of bundles", plural(files.bundles.len(), "file")),
        size(contents.size),
    ];
    ui.status(&format!("{}: {}", args.file.display(), what.join(", ")));
    ui.print(format!("{}\n", contents.digest).as_bytes())?;
    rendered.leave();
    Ok(Exit::Ok)
}

/// Everything of the archive, with its place; nothing big is fetched.
fn contents(
    lock: &Lock,
    platforms: &BTreeSet<Platform>,
    files: &mut Project,
    wish: Option<Wish<'_>>,
    places: &mut Places,
) -> Result<Contents, Vec<Problem>> {
    let mut lock = lock.clone();
    if let Some(wish) = wish {
        let (tool, locked) = tool::find(&wish, &lock, platforms, places).map_err(|problem| vec![problem])?;
        lock.images.insert(tool.image.clone(), locked);
        files.tool = Some(tool);
    }
    let collected = collect(&lock, platforms, &|name, image| places.find(name, image))?;
    Contents::new(collected, platforms, files).map_err(|problem| vec![problem])
}
