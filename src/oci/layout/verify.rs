//! Compares every byte of some images with the digests that name them.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use rayon::prelude::*;

use super::super::descriptor::Descriptor;
use super::super::digest::Digest;
use super::super::error::{Error, ErrorKind};
use super::super::graph::Graph;
use super::super::media;
use super::super::source::{self, Source};
use super::Layout;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of indexes and manifests.
    pub documents: usize,
    /// Number of other blobs.
    pub blobs: usize,
    /// Bytes that were read.
    pub bytes: u64,
    /// Everything that is wrong, in a stable order.
    pub problems: Vec<Error>,
}

/// Reads everything below `roots` and compares digests and sizes. Layers that are elsewhere (foreign) may be missing.
#[must_use]
pub fn verify(source: &dyn Source, roots: &[Descriptor]) -> Report {
    let mut problems = Vec::new();
    let graph = Graph::explore(source, roots, &mut problems);
    let mut report = Report { documents: graph.documents.len(), blobs: graph.blobs.len(), bytes: 0, problems };
    report.bytes = graph.documents.iter().map(|node| node.loaded.bytes.len() as u64).sum();
    report.check(source, &graph.blobs);
    report
}

impl Report {
    fn check(&mut self, source: &dyn Source, blobs: &[Descriptor]) {
        let results: Vec<Result<u64, Error>> = blobs.par_iter().map(|blob| check(source, blob)).collect();
        for result in results {
            match result {
                Ok(count) => self.bytes += count,
                Err(problem) => self.problems.push(problem),
            }
        }
    }
}

fn check(source: &dyn Source, blob: &Descriptor) -> Result<u64, Error> {
    let foreign = media::is_foreign(&blob.media_type) && !blob.urls.is_empty();
    if foreign && source.size(blob)?.is_none() {
        return Ok(0);
    }
    let mut reader = source::open(source, blob)?;
    io::copy(&mut reader, &mut io::sink()).map_err(|e| Error::from_io("read", Path::new(&source.name()), &e))
}

impl Layout {
    /// [`verify`] of everything that the index names, and of blobs that nothing names.
    ///
    /// # Errors
    /// When the layout cannot be listed.
    pub fn verify(&self) -> Result<Report, Error> {
        let mut problems = Vec::new();
        let graph = Graph::explore(self, self.roots(), &mut problems);
        let mut report = Report { documents: graph.documents.len(), blobs: graph.blobs.len(), bytes: 0, problems };
        report.bytes = graph.documents.iter().map(|node| node.loaded.bytes.len() as u64).sum();
        report.check(self, &graph.blobs);
        let mut others: BTreeMap<Digest, u64> = BTreeMap::new();
        for (name, size) in self.files()? {
            let Some((algorithm, hex)) = name.strip_prefix("blobs/").and_then(|rest| rest.split_once('/')) else {
                continue;
            };
            match format!("{algorithm}:{hex}").parse::<Digest>() {
                Ok(digest) => drop(others.insert(digest, size)),
                Err(_) => report.problems.push(Error::new(
                    ErrorKind::Layout,
                    format!("{}: `{name}` is not named by a digest", self.path().display()),
                )),
            }
        }
        // A root that could not be read is no document of the graph, and one problem is enough.
        let broken = |digest: &Digest| report.problems.iter().any(|p| p.message().contains(digest.hex()));
        others.retain(|digest, _| !graph.descriptors().any(|d| d.digest == *digest) && !broken(digest));
        let others: Vec<Descriptor> =
            others.into_iter().map(|(digest, size)| Descriptor::new("", digest, size)).collect();
        report.blobs += others.len();
        report.check(self, &others);
        Ok(report)
    }
}
