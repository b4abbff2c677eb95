//! `flux-gen archive inspect`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;

use super::failed;
use crate::airgap::archive::about::{About, Docker};
use crate::airgap::archive::{ATTACHED, Archive, ArchivedImage, Problem};
use crate::cli::error::CommandError;
use crate::cli::exit::Exit;
use crate::cli::progress::size;
use crate::cli::ui::Ui;
use crate::oci::graph::Graph;
use crate::oci::{Descriptor, Digest};

/// Print what is in an archive: images with digests and sizes, bundles, sources, and what `docker load` would take of it.
///
/// Reads headers and manifests only; `archive verify` checks the bytes.
#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// The archive, or the folder that it was extracted into.
    #[arg(value_name = "FILE|FOLDER")]
    archive: PathBuf,
    /// Print `archive.json` as it is.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &InspectArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let text = Archive::open(&args.archive).and_then(|archive| match args.json {
        true => Ok(String::from_utf8_lossy(&archive.about().to_bytes()?).into_owned()),
        false => describe(&archive),
    });
    match text {
        Ok(text) => ui.print(text.as_bytes()).map(|()| Exit::Ok),
        Err(problem) => Ok(failed(&[problem], "", ui)),
    }
}

fn describe(archive: &Archive) -> Result<String, Problem> {
    let about = archive.about();
    let platforms = match about.platforms.as_slice() {
        [] => "all that the images have".to_owned(),
        some => some.join(", "),
    };
    let mut text = format!("format     {} (flux-gen {} or later)\n", about.format, about.needs);
    text.push_str(&format!("platforms  {platforms}\n"));
    let mut clusters = BTreeSet::new();
    for (path, _) in archive.bundles() {
        clusters.extend(path.strip_suffix("/bundle.json"));
    }
    for (title, files) in [("bundles", archive.bundles().collect::<Vec<_>>()), ("sources", archive.sources().collect())]
    {
        let bytes = files.iter().map(|(_, size)| size).sum();
        text.push_str(&format!("{title:<9}  {} files, {}\n", files.len(), size(bytes)));
    }
    text.extend(clusters.iter().map(|path| format!("  {path}\n")));
    text.push_str(&format!("images     {}\n", about.images.len()));
    for image in &about.images {
        text.push_str(&one(archive, image)?);
    }
    text.push_str(&tool(about));
    let referrers: Vec<&Descriptor> = archive.referrers().collect();
    text.push_str(&format!("documents about images  {}\n", referrers.len()));
    for referrer in referrers {
        let tag = referrer.annotations.get(ATTACHED).map(String::as_str);
        let kind = referrer.artifact_type.as_deref().or(tag).unwrap_or("unknown kind");
        text.push_str(&format!("  {} {kind}\n", referrer.digest));
    }
    text.push_str(&docker(about));
    Ok(text)
}

fn one(archive: &Archive, image: &ArchivedImage) -> Result<String, Problem> {
    let graph = Graph::walk(archive, std::slice::from_ref(archive.root(image)?))?;
    let bytes: std::collections::BTreeMap<&Digest, u64> = graph.descriptors().map(|d| (&d.digest, d.size)).collect();
    let mut text = format!("  {} {} {}\n", image.name, image.digest, size(bytes.values().sum()));
    if image.is_derived() {
        text.push_str(&format!("    carried as {}, the index of these platforms alone\n", image.carried));
    }
    text.extend(image.platforms.iter().map(|(platform, digest)| format!("    {platform:<14} {digest}\n")));
    Ok(text)
}

/// The programs of flux-gen itself, and how to get them out.
fn tool(about: &About) -> String {
    let Some(tool) = &about.tool else { return String::new() };
    let mut text = format!("flux-gen   {}\n", tool.image);
    text.extend(tool.programs.iter().map(|(platform, member)| format!("    {platform:<14} {member}\n")));
    text
}

/// What `docker load` and `podman load` take, and what not.
fn docker(about: &About) -> String {
    let Some(Docker { platform, left_out }) = &about.docker else {
        return "docker load takes none of the images\n".to_owned();
    };
    let taken = about.images.len() - left_out.len();
    let mut text = format!("docker load takes {taken} of {} images, for {platform}\n", about.images.len());
    text.push_str("  it leaves out indexes, other platforms, and documents about images\n");
    text.extend(left_out.iter().map(|(name, why)| format!("  it leaves out {name}: {why}\n")));
    text
}
