//! `flux-gen view diff`.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;

use super::build::{options, size};
use super::find::{ProjectArgs, Views};
use super::open::{Opener, RegistryArgs, Target, command_error, images};
use crate::cli::error::CommandError;
use crate::cli::exit::Exit;
use crate::cli::ui::Ui;
use crate::oci::{Digest, Source};
use crate::view::entry::{Content, EntryKind, Tree, TreePath, shown};
use crate::view::image::{self, Image};
use crate::view::problem::Problems;
use crate::view::tree::ReadOptions;

/// Compare two images: which layers they share, which files differ.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The old one: a view of the project, an image, an OCI layout or an archive.
    #[arg(value_name = "OLD")]
    old: String,
    /// The new one.
    #[arg(value_name = "NEW")]
    new: String,
    /// Compare layers only, without reading them.
    #[arg(long)]
    layers: bool,
    #[command(flatten)]
    project: ProjectArgs,
    #[command(flatten)]
    registry: RegistryArgs,
}

pub(super) fn run(args: &DiffArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let views = Views::open(&args.project, ui)?;
    let opener = Opener::new(&args.registry, views.root())?;
    let read = ReadOptions { scratch: options(&views, None)?.scratch, ..ReadOptions::default() };
    let open = |name: &str| match opener.target(name, &views).map_err(|error| command_error(&error))? {
        Target::Image(opened) => Ok(opened),
        Target::Tree(_) => Err(CommandError::operation(format!("{name} is a tree, not an image"))),
    };
    let failed = |error: image::ImageError| CommandError::operation(error.to_string());
    let ((old_source, old), (new_source, new)) = (open(&args.old)?, open(&args.new)?);
    if old.digest == new.digest {
        ui.status("the same image");
        return Ok(Exit::Ok);
    }
    let old_images = images(old_source.as_ref(), &old, None).map_err(failed)?;
    let new_images = images(new_source.as_ref(), &new, None).map_err(failed)?;
    let mut text = String::new();
    for image in &new_images {
        let platform = &image.config.platform;
        let Some(other) = old_images.iter().find(|old| old.config.platform == *platform) else {
            text.push_str(&format!("{platform}: only in {}\n", args.new));
            continue;
        };
        text.push_str(&layers(other, image));
        text.push_str(&documents(other, image));
        if !args.layers && other.descriptor.digest != image.descriptor.digest {
            let tree = |source: &dyn Source, image| image::tree(source, image, &read, &mut Problems::default());
            let (before, _) = tree(old_source.as_ref(), other).map_err(failed)?;
            let (after, _) = tree(new_source.as_ref(), image).map_err(failed)?;
            text.push_str(
                &files(&before, &after).map_err(|e| CommandError::operation(format!("cannot compare: {e}")))?,
            );
        }
    }
    let gone = |old: &&Image| !new_images.iter().any(|new| new.config.platform == old.config.platform);
    text.extend(old_images.iter().filter(gone).map(|old| format!("{}: only in {}\n", old.config.platform, args.old)));
    ui.print(text.as_bytes())?;
    Ok(Exit::Drift)
}

fn layers(old: &Image, new: &Image) -> String {
    let mut text = format!("{}\n", new.config.platform);
    let names = |image: &Image| -> Vec<String> {
        let steps = image.config.history.iter().filter(|step| !step.empty_layer);
        steps.map(|step| step.created_by.clone().unwrap_or_default()).collect()
    };
    let has = |image: &Image, digest: &Digest| image.manifest.layers.iter().any(|layer| layer.digest == *digest);
    for (sign, one, other) in [("-", old, new), ("+", new, old)] {
        let names = names(one);
        for (number, layer) in one.manifest.layers.iter().enumerate().filter(|(_, l)| !has(other, &l.digest)) {
            let name = names.get(number).map_or("", String::as_str);
            text.push_str(&format!("  {sign} layer {} {:>10}  {name}\n", layer.digest, size(layer.size)));
        }
    }
    let shared: Vec<u64> = new.manifest.layers.iter().filter(|l| has(old, &l.digest)).map(|l| l.size).collect();
    text.push_str(&format!("  = {} layers, {}\n", shared.len(), size(shared.iter().sum())));
    text
}

/// What the documents say otherwise: labels and annotations by name, then any other part of the configuration.
fn documents(old: &Image, new: &Image) -> String {
    let mut text = String::new();
    let mut compare = |what: &str, old: &BTreeMap<String, String>, new: &BTreeMap<String, String>| {
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names.into_iter().filter(|name| old.get(*name) != new.get(*name)) {
            for (sign, value) in [('-', old.get(name)), ('+', new.get(name))] {
                text.extend(value.map(|value| format!("  {sign} {what} {name}={value}\n")));
            }
        }
    };
    let labels = |image: &Image| image.config.config.as_ref().map(|c| c.labels.clone()).unwrap_or_default();
    compare("label", &labels(old), &labels(new));
    compare("annotation", &old.manifest.annotations, &new.manifest.annotations);
    let rest = |image: &Image| {
        let mut rest = image.config.clone();
        rest.rootfs.diff_ids.clear();
        rest.history.clear();
        if let Some(config) = &mut rest.config {
            config.labels.clear();
        }
        rest
    };
    if rest(old) != rest(new) {
        text.push_str("  ~ configuration: `view inspect` prints both\n");
    }
    text
}

/// Names that are new, gone or other.
fn files(old: &Tree, new: &Tree) -> std::io::Result<String> {
    let mut lines: BTreeMap<&TreePath, char> = BTreeMap::new();
    lines.extend(old.entries.keys().filter(|path| !new.entries.contains_key(*path)).map(|path| (path, '-')));
    for (path, entry) in &new.entries {
        let Some(before) = old.get(path) else {
            lines.insert(path, '+');
            continue;
        };
        let same = match (&before.kind, &entry.kind) {
            (EntryKind::Folder, EntryKind::Folder) => true,
            (EntryKind::Link(a), EntryKind::Link(b)) => a == b,
            (EntryKind::File(a), EntryKind::File(b)) => equal(a, b)?,
            _ => false,
        };
        if !same || before.mode != entry.mode {
            lines.insert(path, '~');
        }
    }
    Ok(lines.into_iter().map(|(path, sign)| format!("  {sign} {}\n", shown(path))).collect())
}

fn equal(a: &Content, b: &Content) -> std::io::Result<bool> {
    const STEP: usize = 1 << 20;
    if a.size != b.size || a.identity() == b.identity() {
        return Ok(a.size == b.size);
    }
    let (a, b, size) = (a.open()?, b.open()?, a.size);
    let mut at = 0;
    while at < size {
        if a.read_range(at, STEP)? != b.read_range(at, STEP)? {
            return Ok(false);
        }
        at += STEP as u64;
    }
    Ok(true)
}
