//! Whether a registry has everything that bundles behind the gap name: read back from there, every byte compared with its
//! digest. Needs no archive.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::airgap::archive::{Problem, bundles};
use crate::airgap::lock::Lock;
use crate::airgap::mirror::{Mirror, Place, Prefix};
use crate::diag::codes::airgap as codes;
use crate::oci::layout::{self, Report as Read};
use crate::oci::registry::{Client, Repository};
use crate::oci::{Descriptor, Digest, Error, ErrorKind, Platform, Reference, source};

/// What is to be there: references with a digest, and who names each first.
#[derive(Debug, Default)]
pub struct Wanted {
    images: BTreeMap<(String, Digest), (Reference, String)>,
    problems: Vec<Problem>,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Report {
    /// Number of images.
    pub images: usize,
    /// Number of documents and blobs that were read.
    pub blobs: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Everything that is wrong, in a stable order.
    pub problems: Vec<Problem>,
}

impl Wanted {
    /// Adds what a file of a bundle names. Everything must be named by digest, and be below one of `places`.
    pub fn add_file(&mut self, name: &str, bytes: Vec<u8>, places: &[Prefix]) {
        let images = match bundles::images(name, bytes) {
            Ok(images) => images,
            Err(why) => {
                self.problems.push(Problem::new(codes::LOAD_NOT_OURS, format!("{name}: {why}")));
                return;
            }
        };
        for (path, image) in images {
            let reference = image.parse::<Reference>().ok();
            match reference.as_ref().and_then(|r| Some((r, r.digest()?))) {
                None => self.wrong(name, &format!("the image {image} ({path}) is not named by a digest")),
                Some((reference, _)) if !places.iter().any(|place| place.holds(reference)) => {
                    self.wrong(name, &format!("the image {image} ({path}) is elsewhere"));
                }
                Some((reference, digest)) => self.add(reference.clone(), digest.clone(), name),
            }
        }
    }

    /// Adds the images of a lock, each where the mirror has it. Images that stay where they are named are for others to check.
    pub fn add_lock(&mut self, lock: &Lock, mirror: &Mirror) {
        for (name, image) in &lock.images {
            let Ok(reference) = name.parse::<Reference>() else { continue };
            if let Place::At(place, _) = mirror.place(&reference) {
                let digest = image.derived.as_ref().map_or(&image.digest, |derived| &derived.digest);
                self.add(place, digest.clone(), name);
            }
        }
    }

    fn add(&mut self, reference: Reference, digest: Digest, whose: &str) {
        self.images.entry((reference.name(), digest)).or_insert_with(|| (reference, whose.to_owned()));
    }

    fn wrong(&mut self, name: &str, message: &str) {
        self.problems.push(Problem::new(codes::LOAD_MISSING, format!("{name}: {message}")));
    }

    /// Reads everything back. Every image must be there for each of the platforms.
    #[must_use]
    pub fn check(self, platforms: &[Platform], client: &Arc<Client>) -> Report {
        let mut report = Report { images: self.images.len(), problems: self.problems, ..Report::default() };
        let mut repositories: BTreeMap<String, Vec<(Reference, Digest, String)>> = BTreeMap::new();
        for ((name, digest), (reference, whose)) in self.images {
            repositories.entry(name).or_default().push((reference, digest, whose));
        }
        for (name, images) in repositories {
            // A blob that several images of a repository have is read once.
            let mut roots = Vec::new();
            for (reference, digest, whose) in images {
                let repository = Repository::to_pull(client, &reference);
                match root(&repository, &name, &digest, platforms) {
                    Ok(root) => roots.push((repository, root)),
                    Err(mut problem) => {
                        problem.message = format!("{whose}: {}", problem.message);
                        report.problems.push(problem);
                    }
                }
            }
            let Some((repository, _)) = roots.first() else { continue };
            let roots: Vec<Descriptor> = roots.iter().map(|(_, root)| root.clone()).collect();
            report.add(layout::verify(repository, &roots));
        }
        report
    }
}

/// What to do about something that the registry does not have.
const LOAD_AGAIN: &str = "load the archive again; what is there is not sent twice";

/// An error of reading back what was loaded.
#[must_use]
pub fn lost(error: Error) -> Problem {
    let is_missing = error.kind() == ErrorKind::Missing;
    let problem = Problem::from(error);
    if is_missing { problem.help(LOAD_AGAIN) } else { problem }
}

/// What a digest stands for, if the registry has it, for all of these platforms.
fn root(repository: &Repository, name: &str, digest: &Digest, platforms: &[Platform]) -> Result<Descriptor, Problem> {
    let missing = || Problem::new(codes::LOAD_MISSING, format!("{name} does not have {digest}")).help(LOAD_AGAIN);
    let root = repository.resolve(&digest.to_string())?.ok_or_else(missing)?;
    for platform in platforms {
        let found = source::of_platform(repository, &root, platform)?;
        let has = crate::view::image::read(repository, found)
            .map_err(|e| Problem::new(codes::LOAD_MISSING, format!("{name}: {e}")).help("load the archive again"))?;
        if has.config.platform.distance(platform).is_none() {
            let message = format!("{name}@{digest} is for {}, not for {platform}", has.config.platform);
            return Err(Problem::new(codes::LOAD_MISSING, message).help("save the archive with this platform"));
        }
    }
    Ok(root)
}

impl Report {
    fn add(&mut self, read: Read) {
        self.blobs += read.documents + read.blobs;
        self.bytes += read.bytes;
        self.problems.extend(read.problems.into_iter().map(lost));
    }
}
