//! Derived indexes: an index with only the platforms that a site wants.
//!
//! A registry refuses an index whose manifests it does not have, so an archive of some platforms cannot carry the index as
//! it was published. The derived one holds the same descriptors, fewer of them, and says what it is made from. It is a
//! function of the published bytes and the platforms: whoever makes it gets the same digest.

use std::collections::BTreeSet;

use crate::oci::descriptor::Descriptor;
use crate::oci::document::Index;
use crate::oci::{Digest, Error, ErrorKind, Platform, media};

/// Annotation of a derived index: digest of the published one.
pub const DERIVED_FROM: &str = "dev.flux-gen.derived-from";

/// Annotation with which BuildKit ties an attestation (provenance, SBOM) to the manifest that it is about.
const ATTESTS: &str = "vnd.docker.reference.digest";

/// What an archive of some platforms carries of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chosen {
    /// Every manifest is wanted: the published bytes.
    Whole,
    /// Only some of them.
    Derived(Box<Derived>),
}

/// A derived index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Derived {
    /// What names it.
    pub descriptor: Descriptor,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// What is left of the published one.
    pub manifests: Vec<Descriptor>,
}

/// Chooses from a published index. Without platforms everything is wanted, attestations included.
///
/// # Errors
/// [`ErrorKind::Platform`] naming every platform that the index does not have, and those that it has.
pub fn choose(place: &str, digest: &Digest, index: &Index, platforms: &[Platform]) -> Result<Chosen, Error> {
    if platforms.is_empty() {
        return Ok(Chosen::Whole);
    }
    let (mut wanted, mut missing) = (BTreeSet::new(), Vec::new());
    for platform in platforms {
        match platform.select(&index.manifests) {
            Some(found) => drop(wanted.insert(found.digest.clone())),
            None => missing.push(platform.to_string()),
        }
    }
    if !missing.is_empty() {
        let has: BTreeSet<String> =
            index.manifests.iter().filter_map(|d| d.platform.as_ref()).map(ToString::to_string).collect();
        let has: Vec<String> = has.into_iter().filter(|p| !p.starts_with("unknown/")).collect();
        let message = format!("{place} has no image for {}", missing.join(" and "));
        return Err(Error::new(ErrorKind::Platform, message).help(format!("it has: {}", has.join(", "))));
    }
    let attests_wanted = |d: &Descriptor| {
        d.annotations.get(ATTESTS).is_some_and(|about| wanted.iter().any(|digest| digest.to_string() == *about))
    };
    let is_kept = |d: &&Descriptor| wanted.contains(&d.digest) || attests_wanted(d);
    let kept: Vec<Descriptor> = index.manifests.iter().filter(is_kept).cloned().collect();
    if kept.len() == index.manifests.len() {
        return Ok(Chosen::Whole);
    }
    let mut derived = index.clone();
    // A published Docker list stays one, so that its children's media types go with it.
    derived.media_type = Some(index.media_type.clone().unwrap_or_else(|| media::INDEX.to_owned()));
    derived.manifests.clone_from(&kept);
    derived.annotations.insert(DERIVED_FROM.to_owned(), digest.to_string());
    let bytes = serde_json::to_vec(&derived)
        .map_err(|e| Error::new(ErrorKind::Document, format!("{place}: cannot write an index of it: {e}")))?;
    let media_type = derived.media_type.unwrap_or_default();
    let descriptor = Descriptor::of(media_type, &bytes);
    Ok(Chosen::Derived(Box::new(Derived { descriptor, bytes, manifests: kept })))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(platforms: &[&str]) -> Index {
        let one = |p: &&str| {
            let (os, architecture) = p.split_once('/').unwrap();
            let mut platform = Platform::linux(architecture);
            platform.os = os.to_owned();
            Descriptor::of(media::MANIFEST, p.as_bytes()).platform(platform)
        };
        Index::new(platforms.iter().map(one).collect())
    }

    fn platforms(names: &[&str]) -> Vec<Platform> {
        names.iter().map(|n| n.parse().unwrap()).collect()
    }

    #[test]
    fn keeps_what_is_wanted_and_says_where_it_came_from() {
        let published = index(&["linux/amd64", "linux/arm64", "linux/s390x", "unknown/unknown"]);
        let digest = Digest::of(b"published");
        let made = choose("a", &digest, &published, &platforms(&["linux/arm64", "linux/amd64"])).unwrap();
        let Chosen::Derived(derived) = made else { panic!("{made:?}") };
        let Derived { descriptor, bytes, manifests: kept } = *derived;
        assert_eq!(descriptor.digest, Digest::of(&bytes));
        assert_eq!(kept, published.manifests[..2]);
        let read: Index = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(read.manifests, kept);
        assert_eq!(read.annotations[DERIVED_FROM], digest.to_string());
        // The order in which platforms are asked for does not count.
        let again = choose("a", &digest, &published, &platforms(&["amd64", "arm64"])).unwrap();
        assert!(matches!(again, Chosen::Derived(d) if d.descriptor == descriptor));
    }

    #[test]
    fn attestations_stay_with_what_they_are_about() {
        let mut published = index(&["linux/amd64", "linux/arm64", "unknown/a", "unknown/b"]);
        for (attestation, about) in [(2, 0), (3, 1)] {
            let about = published.manifests[about].digest.to_string();
            published.manifests[attestation].annotations.insert(ATTESTS.to_owned(), about);
        }
        let made = choose("a", &Digest::of(b"x"), &published, &platforms(&["arm64"])).unwrap();
        let Chosen::Derived(derived) = made else { panic!("{made:?}") };
        assert_eq!(derived.manifests, [published.manifests[1].clone(), published.manifests[3].clone()]);
    }

    #[test]
    fn all_of_an_index_is_the_index() {
        let published = index(&["linux/amd64", "linux/arm64"]);
        let digest = Digest::of(b"x");
        for names in [&[][..], &["linux/amd64", "linux/arm64"][..]] {
            assert_eq!(choose("a", &digest, &published, &platforms(names)).unwrap(), Chosen::Whole);
        }
    }

    #[test]
    fn names_every_platform_that_is_missing() {
        let published = index(&["linux/amd64", "unknown/unknown"]);
        let wanted = platforms(&["linux/arm64", "linux/amd64", "linux/s390x"]);
        let error = choose("ubuntu:noble", &Digest::of(b"x"), &published, &wanted).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Platform);
        assert_eq!(error.to_string(), "ubuntu:noble has no image for linux/arm64 and linux/s390x");
    }
}
