//! Reads an archive: a file as it was saved, or extracted into a folder.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::about::About;
use super::{ABOUT_FILE, ArchivedImage, BUNDLES, LOCK_MEMBER, Problem, SOURCES};
use crate::airgap::lock::Lock;
use crate::diag::codes::airgap as codes;
use crate::oci::document::DOCUMENT_LIMIT;
use crate::oci::layout::{Layout, Limits};
use crate::oci::media::Compression;
use crate::oci::source::Bytes;
use crate::oci::{Descriptor, Digest, Error, Source};

/// An archive that can be read at any place. Blobs are read with [`Source`], from the file itself: nothing is unpacked.
#[derive(Debug)]
pub struct Archive {
    layout: Layout,
    about: About,
    lock: Lock,
    lock_text: String,
    /// Names and sizes of all members, in order of the names.
    members: Vec<(String, u64)>,
}

impl Archive {
    /// Opens a file or an extracted folder. Reads headers, `index.json`, `archive.json` and the lock; whether all bytes are
    /// right is what `verify` finds out.
    ///
    /// # Errors
    /// When it is no archive of flux-gen, of a later format, or one of these parts is damaged.
    pub fn open(path: &Path) -> Result<Self, Problem> {
        let place = path.display().to_string();
        refuse_compressed(path)?;
        let layout = Layout::open(path, &Limits::default())?;
        let about = layout.file(ABOUT_FILE)?.ok_or_else(|| {
            Problem::new(codes::NOT_AN_ARCHIVE, format!("{place} has no {ABOUT_FILE}: it is no archive of flux-gen"))
                .help("`flux-gen archive save` makes one; images of other archives are taken by `flux-gen lock --from`")
        })?;
        let about = About::parse(&place, &whole(about, &place, ABOUT_FILE)?)?;
        let damaged = |why: String| Problem::new(codes::ARCHIVE_DAMAGED, format!("{place}: {LOCK_MEMBER}: {why}"));
        let lock = layout.file(LOCK_MEMBER)?.ok_or_else(|| damaged("it is not there".to_owned()))?;
        let lock_text = String::from_utf8(whole(lock, &place, LOCK_MEMBER)?).map_err(|e| damaged(e.to_string()))?;
        let lock = Lock::parse(&lock_text).map_err(|e| damaged(e.to_string()))?;
        let members = layout.files()?;
        Ok(Self { layout, about, lock, lock_text, members })
    }

    /// Path of the file or folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.layout.path()
    }

    /// `archive.json`.
    #[must_use]
    pub fn about(&self) -> &About {
        &self.about
    }

    /// The lock of images.
    #[must_use]
    pub fn lock(&self) -> &Lock {
        &self.lock
    }

    /// The bytes of the lock.
    #[must_use]
    pub fn lock_text(&self) -> &str {
        &self.lock_text
    }

    /// What `index.json` names: every image once for each of its names, then what refers to images (SBOMs, signatures).
    #[must_use]
    pub fn roots(&self) -> &[Descriptor] {
        self.layout.roots()
    }

    /// The descriptor of what the archive has of an image.
    ///
    /// # Errors
    /// When `index.json` does not have it.
    pub fn root(&self, image: &ArchivedImage) -> Result<&Descriptor, Problem> {
        let found = self
            .roots()
            .iter()
            .find(|root| root.digest == image.carried && root.ref_name() == Some(image.name.as_str()));
        found.ok_or_else(|| {
            let message = format!("{}: index.json does not have the image {}", self.name(), image.name);
            Problem::new(codes::ARCHIVE_INCOMPLETE, message)
        })
    }

    /// What `index.json` names besides images: documents about them.
    pub fn referrers(&self) -> impl Iterator<Item = &Descriptor> {
        self.roots().iter().filter(|root| root.ref_name().is_none())
    }

    /// The files of bundles: paths relative to the output folder, and sizes in bytes; in order.
    pub fn bundles(&self) -> impl Iterator<Item = (&str, u64)> {
        self.below(BUNDLES)
    }

    /// The files of the project: paths relative to its folder, and sizes in bytes; in order.
    pub fn sources(&self) -> impl Iterator<Item = (&str, u64)> {
        self.below(SOURCES)
    }

    /// All members with their sizes in bytes, blobs included; in order of the names.
    pub fn members(&self) -> impl Iterator<Item = (&str, u64)> {
        self.members.iter().map(|(name, size)| (name.as_str(), *size))
    }

    fn below<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = (&'a str, u64)> {
        self.members().filter_map(move |(name, size)| Some((name.strip_prefix(folder)?, size)))
    }

    /// The bytes of a member by its whole name, such as `flux-gen/generated/default/a/job.yaml`. They are not checked.
    ///
    /// # Errors
    /// When it is not there or cannot be read.
    pub fn open_member(&self, name: &str) -> Result<Bytes, Problem> {
        let missing = || Problem::new(codes::ARCHIVE_INCOMPLETE, format!("{} has no member {name}", self.name()));
        self.layout.file(name)?.ok_or_else(missing)
    }

    /// All bytes of a small member.
    ///
    /// # Errors
    /// As [`Self::open_member`], and when it has more than 4 MiB.
    pub fn read_member(&self, name: &str) -> Result<Vec<u8>, Problem> {
        whole(self.open_member(name)?, &self.name(), name)
    }

    /// The size of a blob in bytes, if it is there.
    ///
    /// # Errors
    /// When an extracted folder cannot be read.
    pub fn blob_size(&self, digest: &Digest) -> Result<Option<u64>, Error> {
        self.layout.size(&Descriptor::new("", digest.clone(), 0))
    }
}

impl Source for Archive {
    fn name(&self) -> String {
        self.layout.name()
    }

    fn size(&self, descriptor: &Descriptor) -> Result<Option<u64>, Error> {
        self.layout.size(descriptor)
    }

    fn read(&self, descriptor: &Descriptor, offset: u64) -> Result<Bytes, Error> {
        self.layout.read(descriptor, offset)
    }
}

/// A compressed archive would have to be unpacked to a place that a small disk may not have.
pub(super) fn refuse_compressed(path: &Path) -> Result<(), Problem> {
    let failed = |e: std::io::Error| Problem::file("read", path, &e);
    let file = File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_dir() {
        return Ok(());
    }
    let mut start = Vec::new();
    file.take(4).read_to_end(&mut start).map_err(failed)?;
    if Compression::sniff(&start) == Compression::None {
        return Ok(());
    }
    Err(Problem::new(codes::NOT_AN_ARCHIVE, format!("{} is compressed", path.display()))
        .help("decompress it first (gunzip, unzstd); its layers are compressed already"))
}

fn whole(reader: Bytes, place: &str, name: &str) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    let read = reader.take(DOCUMENT_LIMIT + 1).read_to_end(&mut bytes);
    read.map_err(|e| Problem::file("read", Path::new(place), &e))?;
    if bytes.len() as u64 > DOCUMENT_LIMIT {
        return Err(Problem::new(codes::ARCHIVE_DAMAGED, format!("{place}: {name} has more than 4 MiB")));
    }
    Ok(bytes)
}
