//! `archive save --with-tool`: flux-gen itself, from a layout at hand or from a registry.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::places::Places;
use crate::airgap::answer::answer;
use crate::airgap::archive::contents::ToolFiles;
use crate::airgap::archive::{Place, Problem};
use crate::airgap::load::plan::whole_name;
use crate::airgap::lock::{Lock, LockedImage, Origin};
use crate::airgap::tool::programs;
use crate::diag::codes::airgap as codes;
use crate::oci::layout::{Layout, Limits};
use crate::oci::registry::Repository;
use crate::oci::{Descriptor, Error, ErrorKind, Platform, Reference};

/// What was asked for.
pub(super) struct Wish<'a> {
    /// A reference, or the path of a layout or archive.
    pub(super) image: &'a str,
    /// Where the programs are put until the archive is written.
    pub(super) scratch: &'a Path,
}

/// The image of flux-gen as the lock would have it, and its programs.
///
/// # Errors
/// When it cannot be had, is not for all platforms, or has no static program.
pub(super) fn find(
    wish: &Wish<'_>,
    lock: &Lock,
    platforms: &BTreeSet<Platform>,
    places: &mut Places,
) -> Result<(ToolFiles, LockedImage), Problem> {
    let (image, root, place) = match Path::new(wish.image).exists() {
        true => in_layout(wish.image, places)?,
        false => by_name(wish.image, places)?,
    };
    // A bundle may use the image too; then it is the one of the lock.
    let (locked, place) = match lock.images.get(&image) {
        Some(locked) => (locked.clone(), places.find(&image, locked)?),
        None => (answer(&image, place.as_ref(), &root, platforms, Origin::Registry)?, place),
    };
    let programs = programs(&image, place.as_ref(), &locked, wish.scratch)?;
    Ok((ToolFiles { image, programs }, locked))
}

/// The only image of a layout or archive; from now on it is looked for there.
fn in_layout(path: &str, places: &mut Places) -> Result<(String, Descriptor, Arc<Place>), Problem> {
    let layout = Layout::open(Path::new(path), &Limits::default())?;
    let root = layout.find(None)?.clone();
    let name = whole_name(&root).ok_or_else(|| {
        let message = format!("{path} does not tell the whole name of its image");
        Problem::new(codes::ARCHIVE_TOOL, message).help("make it under one, such as registry.example/flux-gen:v1")
    })?;
    let name = name.to_owned();
    let place = Arc::new(Place::layout(layout));
    places.files.push(Arc::clone(&place));
    Ok((name, root, place))
}

fn by_name(name: &str, places: &Places) -> Result<(String, Descriptor, Arc<Place>), Problem> {
    let reference: Reference = name.parse()?;
    for place in &places.files {
        if let Some(root) = place.named(&reference)? {
            return Ok((name.to_owned(), root, Arc::clone(place)));
        }
    }
    let place = Place::repository(Repository::to_pull(&places.client, &reference));
    let missing = || Error::new(ErrorKind::NotFound, format!("there is no image {name}"));
    let root = place.named(&reference)?.ok_or_else(missing)?;
    Ok((name.to_owned(), root, Arc::new(place)))
}
