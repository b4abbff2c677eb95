//! Everything that belongs to some images: documents with their bytes, and the blobs that they name.

use std::collections::{BTreeMap, BTreeSet};

use super::descriptor::Descriptor;
use super::digest::Digest;
use super::document::Document;
use super::error::{Error, ErrorKind};
use super::media::Kind;
use super::source::{self, Loaded, MAX_DEPTH, Source, too_deep};

/// Most bytes of all documents of one walk. Ten thousand images have some 50 MB.
const DOCUMENTS_LIMIT: usize = 256 << 20;

/// A document and its descriptor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// What names it.
    pub descriptor: Descriptor,
    /// Its bytes and what they say.
    pub loaded: Loaded,
}

/// Documents and blobs, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Graph {
    /// Children before parents: the order in which a registry takes them.
    pub documents: Vec<Node>,
    /// Configurations and layers in order of first mention.
    pub blobs: Vec<Descriptor>,
    /// Sum of the sizes of the documents, in bytes.
    size: usize,
    seen: BTreeSet<Digest>,
}

impl Graph {
    /// Reads the documents below `roots`.
    ///
    /// # Errors
    /// The first document that is missing, damaged or no document.
    pub fn walk(source: &dyn Source, roots: &[Descriptor]) -> Result<Self, Error> {
        let mut problems = Vec::new();
        let graph = Self::explore(source, roots, &mut problems);
        match problems.into_iter().next() {
            Some(first) => Err(first),
            None => Ok(graph),
        }
    }

    /// As [`Graph::walk`], with every problem instead of the first.
    pub fn explore(source: &dyn Source, roots: &[Descriptor], problems: &mut Vec<Error>) -> Self {
        let mut graph = Self::default();
        for root in roots {
            graph.visit(source, root, 0, problems);
        }
        graph
    }

    /// All descriptors: documents and blobs.
    pub fn descriptors(&self) -> impl Iterator<Item = &Descriptor> {
        self.documents.iter().map(|node| &node.descriptor).chain(&self.blobs)
    }

    /// The documents that say what they are about, by the digest of that.
    #[must_use]
    pub fn referrers(&self) -> BTreeMap<Digest, Vec<&Node>> {
        let mut map: BTreeMap<Digest, Vec<&Node>> = BTreeMap::new();
        for node in &self.documents {
            if let Some(subject) = node.loaded.document.subject() {
                map.entry(subject.digest.clone()).or_default().push(node);
            }
        }
        map
    }

    fn visit(&mut self, source: &dyn Source, at: &Descriptor, depth: usize, problems: &mut Vec<Error>) {
        if depth > MAX_DEPTH {
            problems.push(too_deep(source, &at.digest));
            return;
        }
        if !self.seen.insert(at.digest.clone()) {
            return;
        }
        // A root or child without a media type that says more is looked at: old indexes have none.
        if at.kind() == Kind::Blob && (depth > 1 || !at.media_type.is_empty()) {
            self.blobs.push(at.clone());
            return;
        }
        let loaded = match source::document(source, at) {
            Ok(loaded) => loaded,
            Err(error) => return problems.push(error),
        };
        self.size += loaded.bytes.len();
        if self.size > DOCUMENTS_LIMIT {
            let message = format!("{}: more than 256 MiB of indexes and manifests", source.name());
            problems.push(Error::new(ErrorKind::Document, message));
            return;
        }
        let is_index = matches!(loaded.document, Document::Index(_));
        for child in loaded.document.children() {
            if is_index {
                self.visit(source, child, depth + 1, problems);
            } else if self.seen.insert(child.digest.clone()) {
                self.blobs.push(child.clone());
            }
        }
        self.documents.push(Node { descriptor: at.clone(), loaded });
    }
}
