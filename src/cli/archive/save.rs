//! `flux-gen archive save`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::{failed, project};
use crate::airgap::archive::collect::collect;
use crate::airgap::archive::contents::Contents;
use crate::airgap::archive::save::{SaveOptions, partial, save};
use crate::airgap::archive::{Place, Problem};
use crate::airgap::lock::{Lock, LockedImage, Origin};
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
use crate::oci::layout::{Layout, Limits};
use crate::oci::registry::{Client, Repository};
use crate::oci::{Descriptor, Error, Platform, Reference, Source};

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
    #[command(flatten)]
    registry: RegistryArgs,
}

pub(super) fn run(args: &SaveArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let rendered = bundles::render(&args.input, args.output.as_deref(), Use::Compare, ui)?;
    let report = check(&Disk, &rendered.inputs.output, &rendered.tree, &rendered.kept).map_err(|e| file_error(&e))?;
    let inputs = &rendered.inputs;
    let mut problems = Vec::new();
    if report.has_drift() {
        let message = format!("{} is not what the specs give", shown(&inputs.output));
        problems.push(Problem::new(codes::ARCHIVE_STALE, message).help("run `flux-gen build`, review and commit"));
    }
    let lock = match images::lock(&inputs.project) {
        Ok(Some(lock)) => lock,
        Ok(None) => {
            let problem = Problem::new(codes::ARCHIVE_STALE, "there is no images.lock");
            problems.push(problem.help("run `flux-gen lock` and `flux-gen build`"));
            return Ok(failed(&problems, "; nothing was written", ui));
        }
        Err(problem) => {
            ui.diagnostics([], &[], [*problem].into_iter().collect());
            return Err(CommandError::reported());
        }
    };
    let text = lock.to_text().map_err(|e| CommandError::operation(e.to_string()))?;
    let files = match project::files(inputs, text) {
        Ok(files) => files,
        Err(problem) => {
            problems.push(problem);
            return Ok(failed(&problems, "; nothing was written", ui));
        }
    };
    if !args.include_secrets {
        problems.extend(project::secrets(&files));
    }
    if !problems.is_empty() {
        return Ok(failed(&problems, "; nothing was written", ui));
    }
    let platforms: BTreeSet<Platform> = match args.platform.as_slice() {
        [] => lock.platforms.clone(),
        given => given.iter().map(Platform::normalised).collect(),
    };
    let places = Places::open(args, &lock)?;
    let collected = match collect(&lock, &platforms, &|name, image| places.find(name, image)) {
        Ok(collected) => collected,
        Err(problems) => return Ok(failed(&problems, "; nothing was written", ui)),
    };
    let contents = match Contents::new(collected, &platforms, &files) {
        Ok(contents) => contents,
        Err(problem) => return Ok(failed(&[problem], "; nothing was written", ui)),
    };
    let options = SaveOptions { parallel: args.registry.transfer(&[]).parallel, durable: true };
    if let Err(problem) = save(&contents, &args.file, options, &Progress::new(ui)) {
        let kept = partial(&args.file);
        let end = match kept.exists() {
            true => format!("; {} keeps what is there, and the same command goes on with it", kept.display()),
            false => "; nothing was written".to_owned(),
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

/// Where images are looked for.
struct Places {
    files: Vec<Arc<Place>>,
    client: Arc<Client>,
}

impl Places {
    /// Opens what `--from` names, and the files that the lock names as far as they are there.
    fn open(args: &SaveArgs, lock: &Lock) -> Result<Self, CommandError> {
        let of_lock = lock.images.values().filter_map(|image| match &image.source {
            Origin::File(path) => Some(PathBuf::from(path)),
            Origin::Registry => None,
        });
        let there: BTreeSet<PathBuf> = of_lock.filter(|path| path.exists() && !args.from.contains(path)).collect();
        let open = |path: &PathBuf| {
            let layout = Layout::open(path, &Limits::default()).map_err(|e| crate::cli::registry::failed(&e))?;
            Ok(Arc::new(Place::layout(layout)))
        };
        let files: Result<_, CommandError> = args.from.iter().chain(&there).map(open).collect();
        Ok(Self { files: files?, client: args.registry.client()? })
    }

    fn find(&self, name: &str, image: &LockedImage) -> Result<Arc<Place>, Error> {
        let root = Descriptor::new(image.media_type.clone(), image.digest.clone(), image.size);
        for place in &self.files {
            if place.size(&root)?.is_some() {
                return Ok(Arc::clone(place));
            }
        }
        let reference: Reference = name.parse()?;
        Ok(Arc::new(Place::repository(Repository::to_pull(&self.client, &reference))))
    }
}
