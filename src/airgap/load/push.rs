//! Carries out a plan: blobs first, several at the same time and each from its place in the archive, then manifests, then
//! indexes, then what is about them, and tags last.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::ledger::Ledger;
use super::plan::{Blob, Destination, Plan};
use crate::oci::graph::Node;
use crate::oci::registry::{Client, Outcome, Repository};
use crate::oci::transfer::{Event, Events, Step, Summary, each_of, put_document, put_tag};
use crate::oci::{Error, ErrorKind, Source};

/// A load under way.
struct Load<'a> {
    source: &'a dyn Source,
    plan: &'a Plan,
    repositories: Vec<Repository>,
    ledger: &'a Ledger,
    events: &'a dyn Events,
}

/// Loads everything.
///
/// # Errors
/// The first thing that did not work. What was there and what has been sent is in the ledger; tags are as they were, but for
/// those of repositories that were done.
pub fn push(
    source: &dyn Source,
    plan: &Plan,
    client: &Arc<Client>,
    ledger: &Ledger,
    parallel: usize,
    events: &dyn Events,
) -> Result<Summary, Error> {
    let mounts = |number: usize| plan.mount_sources(number);
    let open = |(number, destination): (usize, &Destination)| {
        Repository::to_push(client, &destination.repository, &mounts(number))
    };
    let repositories = plan.destinations.iter().enumerate().map(open).collect();
    let load = Load { source, plan, repositories, ledger, events };
    events.event(&Event::Planned {
        blobs: plan.blobs.len(),
        bytes: plan.blobs.iter().map(|blob| blob.descriptor.size).sum(),
        documents: plan.destinations.iter().map(|destination| destination.documents.len()).sum(),
    });
    let numbers: Vec<usize> = (0..plan.destinations.len()).collect();
    each_of(parallel, &numbers, |_| 0, |number| load.test_ledger(*number))?;
    let mut summary = Summary::default();
    let blobs = each_of(parallel, &plan.blobs, |blob| blob.descriptor.size, |blob| load.blob(blob))?;
    blobs.iter().for_each(|one| summary.add(one));
    let documents = each_of(parallel, &numbers, |_| 0, |number| load.documents(*number))?;
    documents.iter().for_each(|one| summary.add(one));
    each_of(parallel, &numbers, |_| 0, |number| load.tags(*number))?;
    Ok(summary)
}

impl Load<'_> {
    fn name(&self, number: usize) -> String {
        self.plan.destinations[number].repository.name()
    }

    /// The ledger is believed for a repository that still has the first of the blobs that it names.
    fn test_ledger(&self, number: usize) -> Result<(), Error> {
        let name = self.name(number);
        let known = |blob: &&Blob| blob.wanted_by.contains(&number) && self.ledger.has(&name, &blob.descriptor.digest);
        let Some(first) = self.plan.blobs.iter().find(known) else { return Ok(()) };
        if self.repositories[number].blob(&first.descriptor.digest)?.is_none() {
            self.ledger.forget(&name);
        }
        Ok(())
    }

    /// A blob into every repository that needs it: sent to the first, taken over by the others of the same registry.
    fn blob(&self, blob: &Blob) -> Result<Summary, Error> {
        let mut summary = Summary::default();
        let mut done: Vec<usize> = Vec::new();
        for &number in &blob.wanted_by {
            let registry = self.repositories[number].registry();
            let from = done.iter().find(|other| self.repositories[**other].registry() == registry);
            let from: Vec<String> =
                from.map(|other| self.repositories[*other].repository().to_owned()).into_iter().collect();
            summary.add(&self.blob_into(blob, number, &from)?);
            done.push(number);
        }
        Ok(summary)
    }

    fn blob_into(&self, blob: &Blob, number: usize, from: &[String]) -> Result<Summary, Error> {
        let (name, descriptor) = (self.name(number), &blob.descriptor);
        let tell = |step| self.events.event(&Event::Blob { blob: descriptor, step });
        let mut summary = Summary::default();
        if self.ledger.has(&name, &descriptor.digest) {
            summary.present += 1;
            tell(Step::Present);
            return Ok(summary);
        }
        let at = |done| tell(Step::At(done));
        match self.repositories[number].upload(self.source, descriptor, from, &at)? {
            Outcome::Present => {
                summary.present += 1;
                tell(Step::Present);
            }
            Outcome::Mounted { from } => {
                summary.mounted += 1;
                tell(Step::Mounted { from });
            }
            Outcome::Uploaded => {
                summary.moved += 1;
                summary.bytes += descriptor.size;
                tell(Step::Done);
            }
        }
        self.ledger.add(&name, &descriptor.digest);
        Ok(summary)
    }

    fn documents(&self, number: usize) -> Result<Summary, Error> {
        let mut summary = Summary::default();
        let mut mended = false;
        for node in &self.plan.destinations[number].documents {
            let present = match self.document(number, node) {
                // A registry that has lost blobs since the ledger was written says so now.
                Err(error) if !mended && matches!(error.kind(), ErrorKind::Refused | ErrorKind::NotFound) => {
                    mended = true;
                    summary.add(&self.again(number)?);
                    self.document(number, node)?
                }
                other => other?,
            };
            summary.documents += usize::from(!present);
            self.events.event(&Event::Document { document: &node.descriptor, present });
        }
        Ok(summary)
    }

    fn document(&self, number: usize, node: &Node) -> Result<bool, Error> {
        put_document(&self.repositories[number], node)
    }

    /// All blobs of a repository, whatever the ledger says.
    fn again(&self, number: usize) -> Result<Summary, Error> {
        let name = self.name(number);
        self.ledger.forget(&name);
        let mut summary = Summary::default();
        for blob in self.plan.blobs.iter().filter(|blob| blob.wanted_by.contains(&number)) {
            let one = self.blob_into(blob, number, &[])?;
            // Those that are there have been counted.
            summary.add(&Summary { present: 0, ..one });
        }
        Ok(summary)
    }

    fn tags(&self, number: usize) -> Result<(), Error> {
        let destination = &self.plan.destinations[number];
        for (tag, digest) in &destination.tags {
            let node = destination.documents.iter().find(|node| node.descriptor.digest == *digest);
            if let Some(node) = node {
                put_tag(&self.repositories[number], tag, node)?;
                // Many repositories have the same tag, so it is told with its place.
                let name = format!("{}:{tag}", destination.repository.name());
                self.events.event(&Event::Tag { name: &name, digest });
            }
        }
        Ok(())
    }
}

impl Plan {
    /// Repositories that a destination may take blobs from: those that come first for a blob that it needs too.
    fn mount_sources(&self, number: usize) -> Vec<String> {
        let registry = self.destinations[number].repository.registry();
        let shared = self.blobs.iter().filter(|blob| blob.wanted_by.contains(&number));
        let first = shared.filter_map(|blob| {
            blob.wanted_by.iter().map(|n| &self.destinations[*n].repository).find(|r| r.registry() == registry)
        });
        let own = self.destinations[number].repository.repository();
        let names: BTreeSet<&str> = first.map(crate::oci::Reference::repository).filter(|name| *name != own).collect();
        names.into_iter().map(str::to_owned).collect()
    }
}
