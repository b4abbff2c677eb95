//! flux-gen itself, for sites that do not have it: the static programs out of its image.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::archive::Problem;
use super::archive::contents::ProjectFile;
use super::lock::LockedImage;
use crate::diag::codes::airgap as codes;
use crate::oci::{Descriptor, Platform, Source, media};
use crate::view::entry::Content;
use crate::view::problem::Problems;
use crate::view::tree::ReadOptions;
use crate::view::{elf, image};

/// Where the image of flux-gen has its program.
pub const PROGRAM: &str = "usr/bin/flux-gen";

/// What is wrong with a program that is to run on a platform without anything else: it is none, is for another processor, or
/// needs libraries.
///
/// # Errors
/// When it cannot be read.
pub fn unusable(content: &Content, platform: &Platform) -> io::Result<Option<String>> {
    let Some(found) = elf::read(content)? else { return Ok(Some("is no program".to_owned())) };
    if elf::machine_of(&platform.architecture) != Some(found.machine) {
        return Ok(Some(format!("is for {}, not for {platform}", elf::machine_name(found.machine))));
    }
    let alone = found.interpreter.is_none() && found.needed.is_empty();
    Ok((!alone).then(|| "needs libraries, and there may be none".to_owned()))
}

/// Takes the program of each platform out of an image of flux-gen, into a folder.
///
/// # Errors
/// When the image cannot be read, has no such program, or one that does not run by itself.
pub fn programs(
    name: &str,
    source: &dyn Source,
    locked: &LockedImage,
    folder: &Path,
) -> Result<BTreeMap<String, ProjectFile>, Problem> {
    let refused = |message: String| {
        Problem::new(codes::ARCHIVE_TOOL, message).help("name an image as `ci/release` of flux-gen makes it")
    };
    let mut programs = BTreeMap::new();
    for (platform, entry) in &locked.platforms {
        let of = format!("{name} ({platform})");
        let root = Descriptor::new(media::MANIFEST, entry.digest.clone(), entry.size);
        let image = image::read(source, root).map_err(|e| refused(format!("{of}: {e}")))?;
        let options = ReadOptions { scratch: folder.to_path_buf(), ..ReadOptions::default() };
        let read = image::tree(source, &image, &options, &mut Problems::default());
        let (tree, _) = read.map_err(|e| refused(format!("{of}: {e}")))?;
        let content = tree.get(PROGRAM.as_bytes()).and_then(|entry| entry.content());
        let content = content.ok_or_else(|| refused(format!("{of} has no program /{PROGRAM}")))?;
        let file = format!("flux-gen-{}", platform.replace('/', "-"));
        let path = folder.join(&file);
        let failed = |e: io::Error| Problem::file("write", &path, &e);
        if let Some(why) = unusable(content, &platform.parse()?).map_err(failed)? {
            return Err(refused(format!("/{PROGRAM} of {of} {why}")));
        }
        copy(content, &path).map_err(failed)?;
        programs.insert(platform.clone(), ProjectFile::of(file, &path)?);
    }
    Ok(programs)
}

fn copy(content: &Content, path: &PathBuf) -> io::Result<()> {
    let mut file = File::create(path)?;
    io::copy(&mut content.open()?, &mut file).map(drop)
}
