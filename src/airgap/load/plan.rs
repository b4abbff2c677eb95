//! What goes where: repositories behind the gap, each with its documents, blobs and tags.

use std::collections::{BTreeMap, BTreeSet};

use crate::airgap::archive::{ATTACHED, Archive, Problem};
use crate::airgap::mirror::{Mirror, Place};
use crate::diag::codes::airgap as codes;
use crate::oci::cosign;
use crate::oci::graph::{Graph, Node};
use crate::oci::layout::Layout;
use crate::oci::{Descriptor, Digest, ErrorKind, Reference, Source, media};

/// An image to be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// What it is called outside.
    pub name: Reference,
    /// What there is of it.
    pub root: Descriptor,
    /// What it was published as: `root`, or the index that `root` is derived from. Documents may be about this one.
    pub published: Digest,
}

/// A repository behind the gap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// Registry and repository.
    pub repository: Reference,
    /// Indexes and manifests, children before parents, documents about others last.
    pub documents: Vec<Node>,
    /// Tags, and what they will stand for.
    pub tags: BTreeMap<String, Digest>,
}

/// Where a blob goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// The blob.
    pub descriptor: Descriptor,
    /// Numbers of the destinations that need it, at least one.
    pub wanted_by: Vec<usize>,
}

/// Everything that is to be done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Repositories in order of their names.
    pub destinations: Vec<Destination>,
    /// Blobs in order of their digests.
    pub blobs: Vec<Blob>,
}

/// The images of an archive of flux-gen, and what refers to them.
///
/// # Errors
/// Images that its index does not have.
pub fn of_archive(archive: &Archive) -> Result<(Vec<Image>, Vec<Descriptor>), Vec<Problem>> {
    let (mut images, mut problems) = (Vec::new(), Vec::new());
    for image in &archive.about().images {
        let made = archive.root(image).and_then(|root| {
            Ok(Image { name: image.name.parse()?, root: root.clone(), published: image.digest.clone() })
        });
        match made {
            Ok(made) => images.push(made),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok((images, archive.referrers().cloned().collect())) } else { Err(problems) }
}

/// The images of any other layout or archive; `name` is for the only image of one that does not tell its whole name.
///
/// # Errors
/// Images without a name.
pub fn of_layout(layout: &Layout, name: Option<&Reference>) -> Result<(Vec<Image>, Vec<Descriptor>), Vec<Problem>> {
    let of = |root: &Descriptor, name: Reference| Image { name, published: root.digest.clone(), root: root.clone() };
    if let Some(name) = name {
        return match layout.roots() {
            [root] => Ok((vec![of(root, name.clone())], Vec::new())),
            roots => {
                let message = format!("{} has {} images, and one name was given", layout.name(), roots.len());
                Err(vec![Problem::new(codes::LOAD_NAMELESS, message).help("leave --name out")])
            }
        };
    }
    let (mut images, mut others, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for root in layout.roots() {
        let name = whole_name(root);
        match name.and_then(|name| name.parse().ok()) {
            Some(name) => images.push(of(root, name)),
            None if root.artifact_type.is_some() => others.push(root.clone()),
            None => {
                let message = format!("{} does not tell the whole name of the image {}", layout.name(), root.digest);
                problems
                    .push(Problem::new(codes::LOAD_NAMELESS, message).help(
                        "name it: `--name docker.io/library/ubuntu:noble`, or save it again with its whole name",
                    ));
            }
        }
    }
    if problems.is_empty() { Ok((images, others)) } else { Err(problems) }
}

/// The name of an image in `index.json` if it is more than a tag.
#[must_use]
pub fn whole_name(root: &Descriptor) -> Option<&str> {
    let names = [crate::oci::descriptor::CONTAINERD_NAME, crate::oci::descriptor::REF_NAME];
    names.iter().filter_map(|key| root.annotations.get(*key)).map(String::as_str).find(|name| name.contains(['/', ':']))
}

/// Where an image of the archive goes.
///
/// # Errors
/// When no rule is for it.
pub fn target(mirror: &Mirror, name: &Reference) -> Result<Reference, Problem> {
    match mirror.place(name) {
        Place::At(made, _) => Ok(made),
        Place::Same => Ok(name.clone()),
        Place::Outside => {
            let message = format!("no rule is for the image {name}");
            Err(Problem::new(codes::MIRROR_OUTSIDE, message)
                .help("give --to, which is for all the rest, or one more --map"))
        }
    }
}

/// Plans a load. All documents are read; no blob is.
///
/// # Errors
/// Every problem: images outside of the mirror, documents that cannot be read, blobs that are missing, tags that two images
/// would get.
pub fn plan(
    source: &dyn Source,
    images: &[Image],
    referrers: &[Descriptor],
    mirror: &Mirror,
) -> Result<Plan, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut repositories: BTreeMap<String, Repository> = BTreeMap::new();
    for image in images {
        match target(mirror, &image.name) {
            Ok(target) => {
                let repository = repositories.entry(target.name()).or_insert_with(|| Repository::new(&target));
                repository.add(image, &target, &mut problems);
            }
            Err(problem) => problems.push(problem),
        }
    }
    let mut plan = Plan::default();
    let mut blobs: BTreeMap<Digest, Blob> = BTreeMap::new();
    for (number, repository) in repositories.into_values().enumerate() {
        let mut errors = Vec::new();
        let mut roots = repository.roots;
        let published = repository.published;
        let graph = about(source, &mut roots, published.clone(), referrers, &mut errors);
        problems.extend(errors.into_iter().map(Problem::from));
        for blob in graph.blobs {
            match source.size(&blob) {
                Ok(Some(size)) if size == blob.size => {
                    let entry = blobs.entry(blob.digest.clone());
                    let entry = entry.or_insert_with(|| Blob { descriptor: blob, wanted_by: Vec::new() });
                    entry.wanted_by.push(number);
                }
                Ok(Some(size)) => {
                    let message = format!("{}: {} has {size} bytes, not {}", source.name(), blob.digest, blob.size);
                    problems.push(crate::oci::Error::new(ErrorKind::Digest, message).into());
                }
                // Foreign layers are where their descriptor says.
                Ok(None) if media::is_foreign(&blob.media_type) && !blob.urls.is_empty() => {}
                Ok(None) => problems.push(crate::oci::Error::missing(&source.name(), &blob.digest).into()),
                Err(error) => problems.push(error.into()),
            }
        }
        let mut tags = repository.tags;
        let there: BTreeSet<&Digest> = graph.documents.iter().map(|node| &node.descriptor.digest).collect();
        for (tag, subject, referrer) in referrers.iter().filter_map(attached) {
            if (there.contains(&subject) || published.contains(&subject)) && there.contains(&referrer.digest) {
                tags.insert(tag.to_owned(), referrer.digest.clone());
            }
        }
        plan.destinations.push(Destination { repository: repository.reference, documents: graph.documents, tags });
    }
    plan.blobs = blobs.into_values().collect();
    if problems.is_empty() { Ok(plan) } else { Err(problems) }
}

/// The images of a repository with all that is about them: what is about a document of this repository belongs into it.
fn about(
    source: &dyn Source,
    roots: &mut Vec<Descriptor>,
    mut known: BTreeSet<Digest>,
    referrers: &[Descriptor],
    errors: &mut Vec<crate::oci::Error>,
) -> Graph {
    loop {
        errors.clear();
        let graph = Graph::explore(source, roots, errors);
        known.extend(graph.documents.iter().map(|node| node.descriptor.digest.clone()));
        let mut new = Vec::new();
        for referrer in referrers.iter().filter(|referrer| !known.contains(&referrer.digest)) {
            if let Some((_, subject, _)) = attached(referrer) {
                new.extend(known.contains(&subject).then(|| referrer.clone()));
                continue;
            }
            match crate::oci::source::document(source, referrer) {
                Ok(loaded) if loaded.document.subject().is_some_and(|subject| known.contains(&subject.digest)) => {
                    new.push(referrer.clone());
                }
                Ok(_) => {}
                Err(error) => errors.push(error),
            }
        }
        if new.is_empty() || !errors.is_empty() {
            return graph;
        }
        roots.extend(new);
    }
}

/// The tag that cosign keeps a document under, and what it is about.
fn attached(referrer: &Descriptor) -> Option<(&str, Digest, &Descriptor)> {
    let tag = referrer.annotations.get(ATTACHED)?;
    Some((tag, cosign::subject(tag)?, referrer))
}

/// A repository while images are added.
struct Repository {
    reference: Reference,
    roots: Vec<Descriptor>,
    published: BTreeSet<Digest>,
    tags: BTreeMap<String, Digest>,
}

impl Repository {
    fn new(target: &Reference) -> Self {
        let reference = target.clone();
        Self { reference, roots: Vec::new(), published: BTreeSet::new(), tags: BTreeMap::new() }
    }

    fn add(&mut self, image: &Image, target: &Reference, problems: &mut Vec<Problem>) {
        self.roots.push(image.root.clone());
        self.published.insert(image.published.clone());
        let Some(tag) = target.tag_or_latest() else { return };
        let old = self.tags.insert(tag.to_owned(), image.root.digest.clone());
        if let Some(old) = old.filter(|old| *old != image.root.digest) {
            let message = format!("{}:{tag} would be both {old} and {}", target.name(), image.root.digest);
            problems.push(
                Problem::new(codes::LOAD_TAG_CLASH, message).help("give one of the images another place with --map"),
            );
        }
    }
}

impl Plan {
    /// The registries, for people.
    #[must_use]
    pub fn places(&self) -> String {
        let names: BTreeSet<&str> = self.destinations.iter().map(|d| d.repository.registry()).collect();
        names.into_iter().collect::<Vec<_>>().join(", ")
    }

    /// What will be there: repositories with the digests of their documents.
    #[must_use]
    pub fn loaded(&self) -> super::bundles::Loaded {
        let of = |destination: &Destination| {
            let name = destination.repository.name();
            let digests = destination.documents.iter().map(|node| node.descriptor.digest.clone());
            digests.map(|digest| (name.clone(), digest)).collect::<Vec<_>>()
        };
        self.destinations.iter().flat_map(of).collect()
    }
}
