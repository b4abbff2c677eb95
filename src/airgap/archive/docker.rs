//! `manifest.json`: what programs read that know only archives of `docker save`. It names configuration and layers by their
//! place among the blobs, so it costs nothing; but it has no indexes, no referrers, and layers in gzip or none.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::about::{ArchivedImage, Docker};
use super::collect::Collected;
use crate::oci::document::{Document, Manifest};
use crate::oci::media::{self, Compression};
use crate::oci::{Digest, Platform, Reference};

/// What most people who have Docker at hand run.
const COMMON: &str = "linux/amd64";

/// One image of `manifest.json`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    config: String,
    repo_tags: Vec<String>,
    layers: Vec<String>,
}

/// The file, and what it leaves out; `None` when there is nothing to put into it.
pub(super) fn manifest(
    collected: &Collected,
    platforms: &BTreeSet<Platform>,
) -> Result<Option<(Docker, Vec<u8>)>, serde_json::Error> {
    let Some(platform) = platform(&collected.images, platforms) else { return Ok(None) };
    let (mut entries, mut left_out): (BTreeMap<&Digest, Entry>, _) = (BTreeMap::new(), BTreeMap::new());
    for image in &collected.images {
        let found = image.platforms.get(&platform).and_then(|digest| Some((digest, collected.documents.get(digest)?)));
        let Some((digest, loaded)) = found else {
            left_out.insert(image.name.clone(), format!("it has no image for {platform}"));
            continue;
        };
        let Document::Manifest(manifest) = &loaded.document else { continue };
        if let Err(why) = readable(manifest) {
            left_out.insert(image.name.clone(), why);
            continue;
        }
        let entry = entries.entry(digest).or_insert_with(|| Entry {
            config: manifest.config.digest.blob_path(),
            repo_tags: Vec::new(),
            layers: manifest.layers.iter().map(|layer| layer.digest.blob_path()).collect(),
        });
        entry.repo_tags.extend(tag(&image.name));
    }
    if entries.is_empty() {
        return Ok(None);
    }
    let mut entries: Vec<Entry> = entries.into_values().collect();
    for entry in &mut entries {
        entry.repo_tags.sort();
        entry.repo_tags.dedup();
    }
    entries.sort_by(|a, b| (&a.repo_tags, &a.config).cmp(&(&b.repo_tags, &b.config)));
    Ok(Some((Docker { platform, left_out }, serde_json::to_vec(&entries)?)))
}

/// The only platform that was asked for, else the common one, else the first that there is.
fn platform(images: &[ArchivedImage], wanted: &BTreeSet<Platform>) -> Option<String> {
    let there: BTreeSet<&String> = images.iter().flat_map(|image| image.platforms.keys()).collect();
    let only = match wanted.iter().collect::<Vec<_>>().as_slice() {
        [one] => Some(one.to_string()),
        _ => None,
    };
    let common = || there.iter().find(|platform| platform.as_str() == COMMON);
    only.filter(|only| there.contains(only)).or_else(|| common().or(there.first()).map(|p| (*p).clone()))
}

fn readable(manifest: &Manifest) -> Result<(), String> {
    let config = media::essence(&manifest.config.media_type);
    if config != media::CONFIG && config != media::DOCKER_CONFIG {
        return Err("it is no image of a container".to_owned());
    }
    for layer in &manifest.layers {
        match Compression::of_layer(&layer.media_type) {
            Some(Compression::None | Compression::Gzip) if layer.urls.is_empty() => {}
            Some(Compression::Zstd) => return Err("it has layers in zstd, which such archives cannot name".to_owned()),
            _ => return Err("it has layers that such archives cannot name".to_owned()),
        }
    }
    Ok(())
}

/// `registry/repository:tag`; none for a name with nothing but a digest.
fn tag(name: &str) -> Option<String> {
    let reference: Reference = name.parse().ok()?;
    let tag = reference.tag_or_latest()?;
    Some(format!("{}:{tag}", reference.name()))
}
