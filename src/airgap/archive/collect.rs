//! From the lock to everything that belongs to its images: documents with their bytes, blobs with the place to fetch them
//! from, and what refers to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rayon::prelude::*;

use super::about::ArchivedImage;
use super::place::Place;
use super::{ATTACHED, Problem};
use crate::airgap::derive::{Chosen, DERIVED_FROM, choose};
use crate::airgap::lock::{Lock, LockedImage};
use crate::oci::descriptor::{Annotations, CONTAINERD_NAME, REF_NAME};
use crate::oci::document::Document;
use crate::oci::graph::Graph;
use crate::oci::source::{self, Loaded};
use crate::oci::transfer::is_elsewhere;
use crate::oci::{Descriptor, Digest, Error, ErrorKind, Platform, Reference, Source};

/// Documents about documents about an image (a signature of an SBOM): more levels have never been seen.
const REFERRER_DEPTH: usize = 4;

/// What is about images, once for each tag that it has. Which image is named first does not count.
type Referrers = BTreeMap<(Digest, Annotations), Descriptor>;

/// Everything that belongs to the images of a lock.
#[derive(Debug, Default)]
pub struct Collected {
    /// The images, in order of their names.
    pub images: Vec<ArchivedImage>,
    /// What `index.json` names: images, then what refers to them.
    pub roots: Vec<Descriptor>,
    /// Indexes and manifests, with their bytes.
    pub documents: BTreeMap<Digest, Loaded>,
    /// Configurations and layers, and where each is.
    pub blobs: BTreeMap<Digest, (Descriptor, Arc<Place>)>,
}

/// One image with all that belongs to it.
struct Image {
    about: ArchivedImage,
    root: Descriptor,
    referrers: Vec<Descriptor>,
    documents: Vec<(Digest, Loaded)>,
    blobs: Vec<Descriptor>,
    place: Arc<Place>,
}

/// Says where an image is, by the name that specs have for it and what the lock knows.
pub type Find<'a> = dyn Fn(&str, &LockedImage) -> Result<Arc<Place>, Error> + Sync + 'a;

/// Reads the documents of all images; `find` says where an image is. Without platforms, all that the lock has are taken.
///
/// # Errors
/// Every image that cannot be had, and why.
pub fn collect(lock: &Lock, platforms: &BTreeSet<Platform>, find: &Find<'_>) -> Result<Collected, Vec<Problem>> {
    let entries: Vec<(&String, &LockedImage)> = lock.images.iter().collect();
    let read: Vec<Result<Image, Error>> = entries
        .par_iter()
        .map(|(name, locked)| {
            lacks(locked, platforms)?;
            image(name, locked, platforms, find(name, locked)?)
        })
        .collect();
    let (mut collected, mut problems) = (Collected::default(), Vec::new());
    let mut referrers = Referrers::new();
    for ((name, _), result) in entries.iter().zip(read) {
        match result {
            Ok(image) => collected.add(image, &mut referrers),
            Err(error) => {
                let mut problem = Problem::from(error);
                problem.message = format!("{name}: {}", problem.message);
                problems.push(problem);
            }
        }
    }
    collected.roots.extend(referrers.into_values());
    if problems.is_empty() { Ok(collected) } else { Err(problems) }
}

impl Collected {
    fn add(&mut self, image: Image, referrers: &mut Referrers) {
        self.images.push(image.about);
        self.roots.push(image.root);
        referrers.extend(image.referrers.into_iter().map(|d| ((d.digest.clone(), d.annotations.clone()), d)));
        self.documents.extend(image.documents);
        for blob in image.blobs {
            self.blobs.entry(blob.digest.clone()).or_insert_with(|| (blob, Arc::clone(&image.place)));
        }
    }

    /// Bytes of all blobs and documents.
    #[must_use]
    pub fn size(&self) -> u64 {
        let documents: u64 = self.documents.values().map(|loaded| loaded.bytes.len() as u64).sum();
        documents + self.blobs.values().map(|(blob, _)| blob.size).sum::<u64>()
    }
}

/// Refuses platforms that the lock does not have of an image.
fn lacks(locked: &LockedImage, wanted: &BTreeSet<Platform>) -> Result<(), Error> {
    let has = |wanted: &&Platform| {
        locked.platforms.keys().filter_map(|p| p.parse::<Platform>().ok()).any(|p| p.distance(wanted).is_some())
    };
    let missing: Vec<String> = wanted.iter().filter(|p| !has(p)).map(ToString::to_string).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let has: Vec<&str> = locked.platforms.keys().map(String::as_str).collect();
    let message = format!("the lock has no image for {}; it has {}", missing.join(" and "), has.join(", "));
    let help = format!("run `flux-gen lock --platform` with {}, or use an image that has it", missing.join(" and "));
    Err(Error::new(ErrorKind::Platform, message).help(help))
}

fn image(name: &str, locked: &LockedImage, wanted: &BTreeSet<Platform>, place: Arc<Place>) -> Result<Image, Error> {
    let published = Descriptor::new(locked.media_type.clone(), locked.digest.clone(), locked.size);
    let loaded = source::document(place.as_ref(), &published)?;
    let wanted: Vec<Platform> = wanted.iter().cloned().collect();
    let chosen = match &loaded.document {
        Document::Manifest(_) => Chosen::Whole,
        Document::Index(index) => choose(name, &locked.digest, index, &wanted)?,
    };
    let (graph, carried, extra) = match chosen {
        Chosen::Whole => {
            (Graph::walk(place.as_ref(), std::slice::from_ref(&published))?, published.clone(), Vec::new())
        }
        Chosen::Derived(derived) => {
            let document = Document::parse(name, &derived.descriptor.media_type, &derived.bytes)?;
            let made = Loaded { bytes: derived.bytes, document };
            let graph = Graph::walk(place.as_ref(), &derived.manifests)?;
            let extra = vec![(derived.descriptor.digest.clone(), made), (locked.digest.clone(), loaded)];
            (graph, derived.descriptor, extra)
        }
    };
    let there: BTreeSet<&Digest> = graph.documents.iter().map(|node| &node.descriptor.digest).collect();
    let platforms = locked.platforms.iter().filter(|(_, p)| there.contains(&p.digest));
    let about = ArchivedImage {
        name: name.to_owned(),
        digest: locked.digest.clone(),
        carried: carried.digest.clone(),
        platforms: platforms.map(|(platform, entry)| (platform.clone(), entry.digest.clone())).collect(),
    };
    let root = named(name, &about, carried)?;
    let mut made = Image { about, root, referrers: Vec::new(), documents: extra, blobs: Vec::new(), place };
    let about: Vec<Digest> = std::iter::once(locked.digest.clone())
        .chain(graph.documents.iter().map(|node| node.descriptor.digest.clone()))
        .collect();
    made.take(graph)?;
    made.add_attached(&about)?;
    made.add_referrers(about)?;
    Ok(made)
}

/// The descriptor as it stands in `index.json`: the original name, and where a derived index comes from.
fn named(name: &str, about: &ArchivedImage, carried: Descriptor) -> Result<Descriptor, Error> {
    let full = name.parse::<Reference>()?.to_string();
    let mut annotations = Annotations::from([(REF_NAME.to_owned(), name.to_owned())]);
    annotations.insert(CONTAINERD_NAME.to_owned(), full);
    if about.is_derived() {
        annotations.insert(DERIVED_FROM.to_owned(), about.digest.to_string());
    }
    Ok(Descriptor { annotations, ..carried })
}

impl Image {
    /// Takes the documents and blobs of a walk. Layers that are elsewhere (foreign) are left there, unless the place has them.
    fn take(&mut self, graph: Graph) -> Result<(), Error> {
        for blob in graph.blobs {
            if !is_elsewhere(&blob) || self.place.size(&blob)?.is_some() {
                self.blobs.push(blob);
            }
        }
        self.documents.extend(graph.documents.into_iter().map(|node| (node.descriptor.digest, node.loaded)));
        Ok(())
    }

    /// Adds what stands beside these digests under tags of cosign.
    fn add_attached(&mut self, about: &[Digest]) -> Result<(), Error> {
        for digest in about {
            for (tag, found) in self.place.attached(digest)? {
                let plain = Descriptor::new(found.media_type, found.digest, found.size);
                self.take(Graph::walk(self.place.as_ref(), std::slice::from_ref(&plain))?)?;
                self.referrers.push(plain.annotation(ATTACHED, tag));
            }
        }
        Ok(())
    }

    /// Adds what refers to these digests, and what refers to that.
    fn add_referrers(&mut self, mut about: Vec<Digest>) -> Result<(), Error> {
        let mut seen: BTreeSet<Digest> = about.iter().cloned().collect();
        for _ in 0..REFERRER_DEPTH {
            let mut next = Vec::new();
            for digest in std::mem::take(&mut about) {
                for found in self.place.referrers(&digest)? {
                    if !seen.insert(found.digest.clone()) {
                        continue;
                    }
                    // What the list says of it besides may differ from registry to registry.
                    let plain = Descriptor::new(found.media_type, found.digest, found.size);
                    let graph = Graph::walk(self.place.as_ref(), std::slice::from_ref(&plain))?;
                    if let Some(node) = graph.documents.iter().find(|node| node.descriptor.digest == plain.digest) {
                        self.referrers.push(node.loaded.document.referrer(plain.digest.clone(), plain.size));
                    }
                    self.take(graph)?;
                    next.push(plain.digest);
                }
            }
            about = next;
        }
        Ok(())
    }
}
