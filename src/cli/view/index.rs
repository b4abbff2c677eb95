//! `flux-gen view index`.

use clap::Args;

use super::find::{ProjectArgs, Views};
use super::open::{Opener, RegistryArgs, command_error};
use super::pin;
use crate::cli::error::CommandError;
use crate::cli::exit::Exit;
use crate::cli::ui::Ui;
use crate::oci::document::Index;
use crate::oci::registry::Repository;
use crate::oci::{Descriptor, Digest, Reference, Source, media};
use crate::view::image::{self, Image};

/// Join images that were pushed by different machines into one index, tag it, and record it for bundles.
///
/// Each machine builds and pushes its platform (`view push --no-record`); one of them then joins the digests.
#[derive(Debug, Args)]
pub(crate) struct IndexArgs {
    /// Name of the view.
    #[arg(value_name = "NAME")]
    name: String,
    /// Digests of indexes or images in the view's repository.
    #[arg(value_name = "DIGEST", required = true)]
    digests: Vec<Digest>,
    /// Repository [default: `repository` of the view].
    #[arg(long, value_name = "REPOSITORY")]
    to: Option<Reference>,
    #[command(flatten)]
    project: ProjectArgs,
    #[command(flatten)]
    registry: RegistryArgs,
}

pub(super) fn run(args: &IndexArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let mut views = Views::open(&args.project, ui)?;
    let plan = views.require(&args.name, ui)?;
    let reference = super::push::repository(args.to.as_ref().or(plan.repository.as_ref()), &args.name)?;
    let opener = Opener::new(&args.registry, views.root())?;
    let failed = |error| command_error(&error);
    let target = Repository::to_push(opener.client(), &reference, &[]);
    let mut images: Vec<Image> = Vec::new();
    for digest in &args.digests {
        for image in read(&target, digest)? {
            if let Some(other) = images.iter().find(|other| other.config.platform == image.config.platform) {
                let (a, b) = (&other.descriptor.digest, &image.descriptor.digest);
                return Err(CommandError::operation(format!("{a} and {b} are both for {}", image.config.platform)));
            }
            images.push(image);
        }
    }
    images.sort_by(|a, b| a.config.platform.cmp(&b.config.platform));
    let manifest = |image: &Image| image.descriptor.clone().platform(image.config.platform.clone());
    let index = Index::new(images.iter().map(manifest).collect());
    let bytes = serde_json::to_vec(&index).map_err(|e| CommandError::operation(format!("cannot write JSON: {e}")))?;
    let root = Descriptor::of(media::INDEX, &bytes);
    target.put_manifest(&root.digest.to_string(), &root, &bytes).map_err(failed)?;
    for tag in &plan.tags {
        let named = match &tag.platform {
            None => Some((root.clone(), bytes.clone())),
            Some(platform) => match images.iter().find(|image| image.config.platform == *platform) {
                Some(image) => target.manifest(&image.descriptor.digest.to_string()).map_err(failed)?,
                None => None,
            },
        };
        if let Some((descriptor, bytes)) = named {
            target.put_manifest(&tag.name, &descriptor, &bytes).map_err(failed)?;
            ui.status(&format!("  {} is {}", tag.name, descriptor.digest));
        }
    }
    let tags = plan.tags.iter().map(|tag| tag.name.clone()).collect();
    pin::write(&views.folder(&args.name), &pin::pin(&reference, &root.digest, tags, &images))?;
    ui.print(format!("{}@{}\n", reference.name(), root.digest).as_bytes())?;
    Ok(Exit::Ok)
}

/// The images that a digest stands for.
fn read(repository: &Repository, digest: &Digest) -> Result<Vec<Image>, CommandError> {
    let root = repository.resolve(&digest.to_string()).map_err(|error| command_error(&error))?;
    let root = root.ok_or_else(|| CommandError::operation(format!("{} has no {digest}", repository.name())))?;
    super::open::images(repository, &root, None)
        .map_err(|error: image::ImageError| CommandError::operation(error.to_string()))
}
