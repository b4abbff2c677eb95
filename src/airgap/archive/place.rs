//! Where images come from: a layout or archive at hand, or the registry of their name.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::ATTACHED;
use crate::oci::cosign;
use crate::oci::layout::Layout;
use crate::oci::media::Kind;
use crate::oci::registry::Repository;
use crate::oci::source::{self, Bytes};
use crate::oci::{Descriptor, Digest, Error, Reference, Source};

/// A source that also knows what refers to an image.
#[derive(Debug)]
pub struct Place {
    store: Store,
    /// What the documents that a layout names are about; read when it is first asked for.
    subjects: OnceLock<BTreeMap<Digest, Vec<Descriptor>>>,
}

#[derive(Debug)]
enum Store {
    Layout(Box<Layout>),
    Repository(Repository),
}

impl Place {
    /// A layout, or an archive of images.
    #[must_use]
    pub fn layout(layout: Layout) -> Self {
        Self { store: Store::Layout(Box::new(layout)), subjects: OnceLock::new() }
    }

    /// A repository of a registry.
    #[must_use]
    pub fn repository(repository: Repository) -> Self {
        Self { store: Store::Repository(repository), subjects: OnceLock::new() }
    }

    /// What a name stands for; `None` when there is nothing of that name.
    ///
    /// # Errors
    /// When the registry does not tell.
    pub fn named(&self, name: &Reference) -> Result<Option<Descriptor>, Error> {
        match &self.store {
            Store::Layout(layout) => Ok(layout.find(Some(&name.to_string())).ok().cloned()),
            Store::Repository(repository) => match (name.digest(), name.tag_or_latest()) {
                (Some(digest), _) => repository.resolve(&digest.to_string()),
                (None, tag) => repository.resolve(tag.unwrap_or("latest")),
            },
        }
    }

    fn source(&self) -> &dyn Source {
        match &self.store {
            Store::Layout(layout) => layout.as_ref(),
            Store::Repository(repository) => repository,
        }
    }

    /// What cosign has put beside a digest under tags that are made from it: the tags, and what they stand for.
    ///
    /// # Errors
    /// When the registry does not tell.
    pub fn attached(&self, digest: &Digest) -> Result<Vec<(String, Descriptor)>, Error> {
        let mut found = Vec::new();
        for tag in cosign::tags(digest) {
            let there = match &self.store {
                Store::Repository(repository) => repository.resolve(&tag)?,
                Store::Layout(layout) => layout.roots().iter().find(|root| tag_of(root) == Some(tag.as_str())).cloned(),
            };
            found.extend(there.map(|descriptor| (tag, descriptor)));
        }
        Ok(found)
    }

    /// Descriptors of the documents about a digest, in order of their digests.
    ///
    /// # Errors
    /// When the registry does not tell, or a document that the layout names cannot be read.
    pub fn referrers(&self, digest: &Digest) -> Result<Vec<Descriptor>, Error> {
        let mut found = match &self.store {
            Store::Repository(repository) => repository.referrers(digest, None)?,
            Store::Layout(layout) => match self.subjects.get() {
                Some(subjects) => subjects.get(digest).cloned().unwrap_or_default(),
                None => {
                    let subjects = subjects(layout)?;
                    self.subjects.get_or_init(|| subjects).get(digest).cloned().unwrap_or_default()
                }
            },
        };
        found.sort_by(|a, b| a.digest.cmp(&b.digest));
        found.dedup_by(|a, b| a.digest == b.digest);
        Ok(found)
    }
}

/// The tag of what a layout names: it is its whole name, the end of it, or what an archive of ours noted.
fn tag_of(root: &Descriptor) -> Option<&str> {
    let noted = root.annotations.get(ATTACHED).map(String::as_str);
    noted.or_else(|| root.ref_name().map(|name| name.rsplit_once(':').map_or(name, |(_, tag)| tag)))
}

/// What the documents are about that a layout names.
fn subjects(layout: &Layout) -> Result<BTreeMap<Digest, Vec<Descriptor>>, Error> {
    let mut all: BTreeMap<Digest, Vec<Descriptor>> = BTreeMap::new();
    for root in layout.roots().iter().filter(|root| root.kind() != Kind::Blob) {
        if let Some(subject) = source::document(layout, root)?.document.subject() {
            all.entry(subject.digest.clone()).or_default().push(root.clone());
        }
    }
    Ok(all)
}

impl Source for Place {
    fn name(&self) -> String {
        self.source().name()
    }

    fn size(&self, descriptor: &Descriptor) -> Result<Option<u64>, Error> {
        self.source().size(descriptor)
    }

    fn read(&self, descriptor: &Descriptor, offset: u64) -> Result<Bytes, Error> {
        self.source().read(descriptor, offset)
    }

    fn checks(&self) -> bool {
        self.source().checks()
    }
}
