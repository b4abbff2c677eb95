//! `views/<name>/pushed.json`: what was pushed, for bundles.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use crate::cli::error::CommandError;
use crate::model::fit::ViewFacts;
use crate::oci::{Digest, Reference};
use crate::spec::pins::{PlatformPin, ViewPin, ViewPins};
use crate::view::contract::LABEL;
use crate::view::image::Image;

/// Name of the file.
pub(crate) const FILE: &str = "pushed.json";

/// What an image says that it needs.
pub(crate) fn facts(image: &Image) -> ViewFacts {
    let label = |key: &str| image.config.label(&format!("{LABEL}{key}")).map(str::to_owned);
    ViewFacts {
        architecture: image.config.platform.architecture.clone(),
        glibc: label("glibc").and_then(|text| text.parse().ok()),
        os: label("os"),
        flux: label("flux-version"),
    }
}

/// The pin of a pushed index.
pub(super) fn pin(repository: &Reference, digest: &Digest, tags: Vec<String>, images: &[Image]) -> ViewPin {
    let one = |image: &Image| {
        let pin = PlatformPin { digest: image.descriptor.digest.to_string(), facts: facts(image) };
        (image.config.platform.to_string(), pin)
    };
    let platforms: BTreeMap<String, PlatformPin> = images.iter().map(one).collect();
    ViewPin { repository: repository.name(), digest: digest.to_string(), tags, platforms }
}

/// Writes the pin of a view; the file is old or new, never in between.
pub(super) fn write(folder: &Path, pin: &ViewPin) -> Result<(), CommandError> {
    let path = folder.join(FILE);
    let failed = |e: &io::Error| CommandError::file("write", &path, e);
    let json = serde_json::to_string_pretty(pin).map_err(|e| failed(&e.into()))?;
    let mut file = tempfile::Builder::new()
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(folder)
        .map_err(|e| failed(&e))?;
    file.write_all(format!("{json}\n").as_bytes()).map_err(|e| failed(&e))?;
    file.persist(&path).map_err(|e| failed(&e.error))?;
    Ok(())
}

/// Reads the pins of all views below a folder.
pub(crate) fn read_all(views: &Path) -> Result<ViewPins, CommandError> {
    let mut pins = ViewPins::new();
    let entries = match fs::read_dir(views) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(pins),
        Err(e) => return Err(CommandError::file("read", views, &e)),
    };
    for entry in entries {
        let folder = entry.map_err(|e| CommandError::file("read", views, &e))?;
        let Ok(name) = folder.file_name().into_string() else { continue };
        if !folder.path().join("view.yaml").is_file() {
            continue;
        }
        let path = folder.path().join(FILE);
        let pin = match fs::read(&path) {
            Ok(bytes) => Some(serde_json::from_slice(&bytes).map_err(|e| {
                CommandError::operation(format!("{} is no record of a push: {e}", path.display()))
                    .help(format!("`flux-gen view push {name}` writes it anew"))
            })?),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(CommandError::file("read", &path, &e)),
        };
        pins.insert(name, pin);
    }
    Ok(pins)
}
