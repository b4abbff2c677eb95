//! `flux-gen view inspect`.

use clap::Args;

use super::build::size;
use super::find::{ProjectArgs, Views};
use super::open::{Opener, RegistryArgs, Target, command_error, images};
use crate::cli::error::CommandError;
use crate::cli::exit::Exit;
use crate::cli::ui::Ui;
use crate::oci::Platform;
use crate::view::image::Image;

/// Print what an image says of itself: digests, labels, layers. Layers are not read; `view verify` does that.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// A view of the project, an image, an OCI layout or an archive.
    #[arg(value_name = "VIEW|IMAGE|LAYOUT|ARCHIVE")]
    target: String,
    /// Only this platform [default: all that the image has].
    #[arg(long, value_name = "PLATFORM")]
    platform: Option<Platform>,
    #[command(flatten)]
    project: ProjectArgs,
    #[command(flatten)]
    registry: RegistryArgs,
}

pub(super) fn run(args: &InspectArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let views = Views::open(&args.project, ui)?;
    let opener = Opener::new(&args.registry, views.root())?;
    let target = opener.target(&args.target, &views).map_err(|error| command_error(&error))?;
    let Target::Image((source, root)) = target else {
        return Err(CommandError::operation(format!("{} is a tree, not an image", args.target))
            .help("`flux-gen view verify` reads trees"));
    };
    let all = images(source.as_ref(), &root, args.platform.as_ref())
        .map_err(|error| CommandError::operation(error.to_string()))?;
    let mut text = format!("{} {}\n", args.target, root.digest);
    text.extend(all.iter().map(describe));
    ui.print(text.as_bytes())?;
    Ok(Exit::Ok)
}

fn describe(image: &Image) -> String {
    let mut text = format!("{} {}\n", image.config.platform, image.descriptor.digest);
    text.extend(image.config.created.iter().map(|created| format!("  created {created}\n")));
    let labels = image.config.config.iter().flat_map(|config| &config.labels);
    text.extend(labels.map(|(key, value)| format!("  label {key}={value}\n")));
    text.extend(image.manifest.annotations.iter().map(|(key, value)| format!("  annotation {key}={value}\n")));
    let mut steps = image.config.history.iter().filter(|step| !step.empty_layer);
    for layer in &image.manifest.layers {
        let step = steps.next().and_then(|step| step.created_by.clone()).unwrap_or_default();
        text.push_str(&format!("  layer {} {:>10}  {step}\n", layer.digest, size(layer.size)));
    }
    text
}
