//! What a registry, layout or archive says of an image, as an entry of the lock.

use std::collections::{BTreeMap, BTreeSet};

use super::derive::{Chosen, choose};
use super::lock::{Derived, LockedImage, LockedPlatform, Origin};
use crate::oci::document::{Document, Index};
use crate::oci::image::ImageConfig;
use crate::oci::{Descriptor, Error, ErrorKind, Platform, Source, source};

/// Looks an image up. `name` is for messages; without platforms, all that the image has are recorded.
///
/// # Errors
/// When a document is missing or damaged, or a platform is asked for that the image does not have.
pub fn answer(
    name: &str,
    source: &dyn Source,
    root: &Descriptor,
    platforms: &BTreeSet<Platform>,
    origin: Origin,
) -> Result<LockedImage, Error> {
    let loaded = source::document(source, root)?;
    let mut locked = LockedImage {
        digest: root.digest.clone(),
        media_type: loaded.document.media_type().to_owned(),
        size: loaded.bytes.len() as u64,
        source: origin,
        derived: None,
        platforms: BTreeMap::new(),
    };
    match &loaded.document {
        Document::Manifest(_) => {
            let (platform, entry) = manifest(source, root)?;
            if let Some(other) = platforms.iter().find(|wanted| platform.distance(wanted).is_none()) {
                let message = format!("{name} is an image for {platform} alone, not for {other}");
                return Err(Error::new(ErrorKind::Platform, message)
                    .help("leave this platform out, or use an image that has it"));
            }
            locked.platforms.insert(platform.to_string(), entry);
        }
        Document::Index(index) => {
            let wanted: Vec<Platform> = platforms.iter().cloned().collect();
            let chosen = choose(name, &root.digest, index, &wanted)?;
            let manifests = match &chosen {
                Chosen::Whole => &index.manifests,
                Chosen::Derived(derived) => {
                    let descriptor = &derived.descriptor;
                    locked.derived = Some(Derived { digest: descriptor.digest.clone(), size: descriptor.size });
                    &derived.manifests
                }
            };
            locked.platforms = of_index(source, index, manifests)?;
        }
    }
    Ok(locked)
}

/// The images in an index; what has no platform of its own (attestations, indexes in an index) is no image to run.
fn of_index(
    source: &dyn Source,
    index: &Index,
    manifests: &[Descriptor],
) -> Result<BTreeMap<String, LockedPlatform>, Error> {
    let mut found = BTreeMap::new();
    for descriptor in manifests {
        let Some(platform) = descriptor.platform.as_ref().filter(|platform| platform.os != "unknown") else { continue };
        // An index may hold several images of one platform (Windows versions, compressions); the first is what runs.
        if platform.select(&index.manifests).is_some_and(|first| first.digest != descriptor.digest) {
            continue;
        }
        let (_, entry) = manifest(source, descriptor)?;
        found.entry(platform.normalised().to_string()).or_insert(entry);
    }
    Ok(found)
}

fn manifest(source: &dyn Source, descriptor: &Descriptor) -> Result<(Platform, LockedPlatform), Error> {
    let loaded = source::document(source, descriptor)?;
    let Document::Manifest(manifest) = &loaded.document else {
        let message = format!("{} {} is no manifest of an image", source.name(), descriptor.digest);
        return Err(Error::new(ErrorKind::Document, message));
    };
    let platform = match &descriptor.platform {
        Some(platform) => platform.normalised(),
        None => {
            let place = format!("{} {}", source.name(), manifest.config.digest);
            ImageConfig::parse(&place, &source::small(source, &manifest.config)?)?.platform.normalised()
        }
    };
    // A layer that an image has twice is transferred once.
    let blobs: BTreeMap<_, u64> = manifest.blobs().map(|blob| (&blob.digest, blob.size)).collect();
    let entry = LockedPlatform {
        digest: descriptor.digest.clone(),
        size: loaded.bytes.len() as u64,
        content: blobs.values().sum(),
        facts: None,
        view: None,
    };
    Ok((platform, entry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oci::document::Manifest;
    use crate::oci::layout::{Layout, LayoutWriter, WriteOptions};
    use crate::oci::{Digest, media};

    /// A layout with an index of images for these architectures; each has a layer of its own, twice.
    fn layout(folder: &std::path::Path, architectures: &[&str]) -> (Layout, Descriptor) {
        let writer = LayoutWriter::create(folder, WriteOptions { durable: false }).unwrap();
        let mut manifests = Vec::new();
        for architecture in architectures {
            let platform = Platform::linux(architecture);
            let layer = writer.bytes(media::LAYER, architecture.as_bytes()).unwrap();
            let config = ImageConfig::new(platform.clone(), vec![Digest::of(architecture.as_bytes()); 2]);
            let config = writer.json(media::CONFIG, &config).unwrap();
            let manifest = Manifest::new(config, vec![layer.clone(), layer]);
            manifests.push(writer.json(media::MANIFEST, &manifest).unwrap().platform(platform));
        }
        let root = match manifests.as_slice() {
            [one] => Descriptor { platform: None, ..one.clone() },
            _ => writer.json(media::INDEX, &Index::new(manifests)).unwrap(),
        };
        let layout = writer.finish(&Index::new(vec![root.clone()])).unwrap();
        (layout, root)
    }

    fn ask(architectures: &[&str], wanted: &[&str]) -> Result<LockedImage, Error> {
        let folder = tempfile::tempdir().unwrap();
        let (layout, root) = layout(&folder.path().join("l"), architectures);
        let wanted = wanted.iter().map(|p| p.parse().unwrap()).collect();
        answer("app:1", &layout, &root, &wanted, Origin::Registry)
    }

    #[test]
    fn an_index_gives_its_platforms_and_a_derived_one_when_some_are_chosen() {
        let all = ask(&["amd64", "arm64"], &[]).unwrap();
        assert_eq!(all.platforms.keys().collect::<Vec<_>>(), ["linux/amd64", "linux/arm64"]);
        assert_eq!(all.derived, None);
        assert_eq!(all.media_type, media::INDEX);
        let one = ask(&["amd64", "arm64"], &["linux/arm64"]).unwrap();
        assert_eq!(one.platforms.keys().collect::<Vec<_>>(), ["linux/arm64"]);
        assert!(one.derived.is_some_and(|derived| derived.digest != all.digest));
        assert_eq!(one.digest, all.digest);
        assert_eq!(one.platforms["linux/arm64"], all.platforms["linux/arm64"]);
    }

    #[test]
    fn content_counts_each_blob_once() {
        let image = ask(&["amd64"], &[]).unwrap();
        let entry = &image.platforms["linux/amd64"];
        assert_eq!(entry.digest, image.digest);
        assert!(entry.content > 5 && entry.content < entry.size, "{entry:?}");
    }

    #[test]
    fn a_platform_that_is_not_there_is_an_error() {
        let error = ask(&["amd64", "arm64"], &["linux/s390x"]).unwrap_err();
        assert_eq!(error.to_string(), "app:1 has no image for linux/s390x");
        let error = ask(&["amd64"], &["linux/arm64"]).unwrap_err();
        assert_eq!(error.to_string(), "app:1 is an image for linux/amd64 alone, not for linux/arm64");
    }
}
