//! Images from one place to another: blobs at the same time, then manifests, then indexes, and tags last, so that whoever
//! asks for a tag gets a whole image or the one before.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::descriptor::Descriptor;
use super::digest::Digest;
use super::error::Error;
use super::graph::{Graph, Node};
use super::layout::LayoutWriter;
use super::media;
use super::registry::{Outcome, Repository};
use super::source::Source;

/// What happened; for progress bars and JSON lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<'a> {
    /// How much there is to do, once, at the beginning.
    Planned {
        /// Number of blobs.
        blobs: usize,
        /// Their bytes.
        bytes: u64,
        /// Number of manifests and indexes.
        documents: usize,
    },
    /// A blob.
    Blob {
        /// Which.
        blob: &'a Descriptor,
        /// What about it.
        step: Step,
    },
    /// A manifest or index is where it should be.
    Document {
        /// Which.
        document: &'a Descriptor,
        /// Whether it was there already.
        present: bool,
    },
    /// A tag points to its image.
    Tag {
        /// The tag.
        name: &'a str,
        /// The image.
        digest: &'a Digest,
    },
}

/// What happened to a blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// It was there: nothing is sent.
    Present,
    /// The registry took it from another repository.
    Mounted {
        /// That repository.
        from: String,
    },
    /// So many of its bytes are through. Goes back when a transfer starts again.
    At(u64),
    /// All of it is there.
    Done,
}

/// Gets events, from several threads.
pub trait Events: Sync {
    /// Something happened.
    fn event(&self, event: &Event<'_>);
}

/// For those who do not want to know.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quiet;

impl Events for Quiet {
    fn event(&self, _event: &Event<'_>) {}
}

/// How to transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferOptions {
    /// How many blobs at the same time; at least one.
    pub parallel: usize,
    /// Repositories of the target's registry that may have blobs already. The target must have been opened with them.
    pub mount_from: Vec<String>,
}

impl Default for TransferOptions {
    fn default() -> Self {
        Self { parallel: 4, mount_from: Vec::new() }
    }
}

/// An image and the tags that it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tagged {
    /// The image: an index or a manifest.
    pub root: Descriptor,
    /// Its tags; none when the digest is enough.
    pub tags: Vec<String>,
}

/// What a transfer did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Blobs that were there.
    pub present: usize,
    /// Blobs that were mounted.
    pub mounted: usize,
    /// Blobs that were sent or fetched.
    pub moved: usize,
    /// Bytes of those.
    pub bytes: u64,
    /// Manifests and indexes that were put.
    pub documents: usize,
}

impl Summary {
    /// Adds what another transfer did.
    pub fn add(&mut self, other: &Self) {
        let Self { present, mounted, moved, bytes, documents } = other;
        self.present += present;
        self.mounted += mounted;
        self.moved += moved;
        self.bytes += bytes;
        self.documents += documents;
    }
}

/// Brings images into a repository, from a layout, an archive or another registry.
///
/// # Errors
/// The first thing that did not work. Tags are as they were then.
pub fn push(
    source: &dyn Source,
    images: &[Tagged],
    target: &Repository,
    options: &TransferOptions,
    events: &dyn Events,
) -> Result<Summary, Error> {
    let roots: Vec<Descriptor> = images.iter().map(|image| image.root.clone()).collect();
    let graph = Graph::walk(source, &roots)?;
    let blobs = wanted(source, &graph)?;
    plan(&blobs, &graph, events);
    let mut summary = Summary::default();
    let outcomes = each(options.parallel, &blobs, |blob| {
        let at = |done| events.event(&Event::Blob { blob, step: Step::At(done) });
        let outcome = target.upload(source, blob, &options.mount_from, &at)?;
        let step = match &outcome {
            Outcome::Present => Step::Present,
            Outcome::Mounted { from } => Step::Mounted { from: from.clone() },
            Outcome::Uploaded => Step::Done,
        };
        events.event(&Event::Blob { blob, step });
        Ok(outcome)
    })?;
    for (blob, outcome) in blobs.iter().zip(outcomes) {
        match outcome {
            Outcome::Present => summary.present += 1,
            Outcome::Mounted { .. } => summary.mounted += 1,
            Outcome::Uploaded => {
                summary.moved += 1;
                summary.bytes += blob.size;
            }
        }
    }
    for node in &graph.documents {
        let present = put_document(target, node)?;
        summary.documents += usize::from(!present);
        events.event(&Event::Document { document: &node.descriptor, present });
    }
    for image in images {
        move_tags(target, image, &graph, events)?;
    }
    Ok(summary)
}

/// Puts a document by its digest unless it is there, and into the list of referrers if it has a subject.
///
/// # Errors
/// When the registry refuses it.
pub fn put_document(target: &Repository, node: &Node) -> Result<bool, Error> {
    let Node { descriptor, loaded } = node;
    let name = descriptor.digest.to_string();
    let described = described(node);
    let present = target.resolve(&name)?.is_some();
    let listed =
        if present { None } else { Some(target.put_manifest(&name, &described, &loaded.bytes)?.subject_listed) };
    if let Some(subject) = loaded.document.subject() {
        let known = match listed {
            Some(listed) => listed,
            // Put by somebody who may have been stopped before the list was written.
            None => target.referrers(&subject.digest, None)?.iter().any(|d| d.digest == descriptor.digest),
        };
        if !known {
            target
                .add_referrer(&subject.digest, &loaded.document.referrer(descriptor.digest.clone(), descriptor.size))?;
        }
    }
    Ok(present)
}

/// The descriptor with a media type: old layouts leave it out.
fn described(node: &Node) -> Descriptor {
    let mut made = node.descriptor.clone();
    if made.media_type.is_empty() {
        node.loaded.document.media_type().clone_into(&mut made.media_type);
    }
    made
}

fn move_tags(target: &Repository, image: &Tagged, graph: &Graph, events: &dyn Events) -> Result<(), Error> {
    let Some(node) = graph.documents.iter().find(|node| node.descriptor.digest == image.root.digest) else {
        return Ok(());
    };
    for tag in &image.tags {
        put_tag(target, tag, node)?;
        events.event(&Event::Tag { name: tag, digest: &image.root.digest });
    }
    Ok(())
}

/// Makes a tag stand for a document, unless it does.
///
/// # Errors
/// When the registry refuses it.
pub fn put_tag(target: &Repository, tag: &str, node: &Node) -> Result<(), Error> {
    let there = target.resolve(tag)?.is_some_and(|found| found.digest == node.descriptor.digest);
    if !there {
        target.put_manifest(tag, &described(node), &node.loaded.bytes)?;
    }
    Ok(())
}

/// Brings images into a layout. Its index is the caller's: see [`LayoutWriter::finish`].
///
/// # Errors
/// The first thing that did not work.
pub fn pull(
    source: &dyn Source,
    roots: &[Descriptor],
    target: &LayoutWriter,
    options: &TransferOptions,
    events: &dyn Events,
) -> Result<Summary, Error> {
    let graph = Graph::walk(source, roots)?;
    let blobs = wanted(source, &graph)?;
    plan(&blobs, &graph, events);
    let moved = each(options.parallel, &blobs, |blob| {
        if target.has(blob) {
            events.event(&Event::Blob { blob, step: Step::Present });
            return Ok(false);
        }
        let mut done = 0;
        target.copy(source, blob, &mut |count| {
            done += count;
            events.event(&Event::Blob { blob, step: Step::At(done) });
        })?;
        events.event(&Event::Blob { blob, step: Step::Done });
        Ok(true)
    })?;
    let mut summary = Summary::default();
    for (blob, moved) in blobs.iter().zip(moved) {
        if moved {
            summary.moved += 1;
            summary.bytes += blob.size;
        } else {
            summary.present += 1;
        }
    }
    for node in &graph.documents {
        let present = target.has(&node.descriptor);
        target.document(&node.descriptor, &node.loaded.bytes)?;
        summary.documents += usize::from(!present);
        events.event(&Event::Document { document: &node.descriptor, present });
    }
    Ok(summary)
}

/// Blobs to transfer: foreign layers only when the source has them.
fn wanted(source: &dyn Source, graph: &Graph) -> Result<Vec<Descriptor>, Error> {
    let mut blobs = Vec::new();
    for blob in &graph.blobs {
        if !is_elsewhere(blob) || source.size(blob)?.is_some() {
            blobs.push(blob.clone());
        }
    }
    Ok(blobs)
}

/// Whether a blob need not be there, because its descriptor says where else it is.
#[must_use]
pub fn is_elsewhere(blob: &Descriptor) -> bool {
    media::is_foreign(&blob.media_type) && !blob.urls.is_empty()
}

fn plan(blobs: &[Descriptor], graph: &Graph, events: &dyn Events) {
    let bytes = blobs.iter().map(|blob| blob.size).sum();
    events.event(&Event::Planned { blobs: blobs.len(), bytes, documents: graph.documents.len() });
}

/// [`each_of`] for blobs.
pub(crate) fn each<T: Send, E: Send>(
    threads: usize,
    items: &[Descriptor],
    work: impl Fn(&Descriptor) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    each_of(threads, items, |blob| blob.size, work)
}

/// Runs `work` on all items with so many threads, the largest ones first; after an error no new item is begun. Gives the
/// results in the order of the items.
///
/// # Errors
/// That of the first item that has one.
pub(crate) fn each_of<I: Sync, T: Send, E: Send>(
    threads: usize,
    items: &[I],
    size: impl Fn(&I) -> u64,
    work: impl Fn(&I) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    // Large ones first: a large one at the end would be alone.
    let mut order: Vec<usize> = (0..items.len()).collect();
    order.sort_by_key(|i| std::cmp::Reverse(size(&items[*i])));
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let results: Mutex<BTreeMap<usize, Result<T, E>>> = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, items.len().max(1)) {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let Some(&item) = order.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                    let result = work(&items[item]);
                    if result.is_err() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).insert(item, result);
                }
            });
        }
    });
    results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).into_values().collect()
}
