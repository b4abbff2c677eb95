//! Checks every byte of an archive, and whether everything is in it that its bundles need. Finds all problems at once.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;

use rayon::prelude::*;

use super::about::{About, ArchivedImage};
use super::reader::refuse_compressed;
use super::scan::{Damage, is_ours};
use super::store::Store;
use super::{ABOUT_FILE, BUNDLES, CHECKSUMS_FILE, LOCK_MEMBER, Problem, TOOL_FOLDER, bundles, checksums};
use crate::airgap::derive::{Chosen, choose};
use crate::airgap::lock::{Lock, LockedImage};
use crate::diag::codes::airgap as codes;
use crate::oci::digest::{Algorithm, Hasher};
use crate::oci::document::{DOCUMENT_LIMIT, Document, Index};
use crate::oci::graph::Graph;
use crate::oci::transfer::is_elsewhere;
use crate::oci::{Descriptor, Digest, Platform, Reference};

/// Most bytes of the list of checksums and of a file of a bundle.
const TEXT_LIMIT: u64 = 256 << 20;
/// How many names a message lists.
const LISTED: usize = 5;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Number of members.
    pub members: usize,
    /// Bytes of their contents.
    pub bytes: u64,
    /// Number of images.
    pub images: usize,
    /// Digest of the list of checksums: the same on both sides of the gap when the archives are.
    pub digest: Option<Digest>,
    /// Everything that is wrong, in a stable order.
    pub problems: Vec<Problem>,
}

/// Checks a file or an extracted folder. Every image of a bundle must be there for each of `platforms`.
///
/// # Errors
/// When it cannot be read at all, is no archive, or is one of a later format.
pub fn verify(path: &Path, platforms: &[Platform]) -> Result<Report, Problem> {
    refuse_compressed(path)?;
    let store = Store::open(path)?;
    if !store.order.iter().any(|name| is_ours(name)) {
        let message = format!("{} is no archive of flux-gen", path.display());
        return Err(Problem::new(codes::NOT_AN_ARCHIVE, message).help("`flux-gen archive save` makes one"));
    }
    let mut check = Check { store: &store, report: Report::default(), broken: BTreeSet::new() };
    let about = check.about()?;
    check.bytes()?;
    let lock = check.lock();
    let index = check.index();
    if let (Some(about), Some(lock), Some(index)) = (about, lock, index) {
        check.report.images = about.images.len();
        check.images(&about, &lock, &index);
        check.tool(&about);
        check.bundles(&about, platforms);
    }
    Ok(check.report)
}

struct Check<'a> {
    store: &'a Store,
    report: Report,
    /// Members about which something was said already.
    broken: BTreeSet<String>,
}

impl Check<'_> {
    fn say(&mut self, code: crate::diag::Code, message: impl Into<String>) {
        let place = self.store.path_shown();
        self.report.problems.push(Problem::new(code, format!("{place}: {}", message.into())));
    }

    fn damaged(&mut self, name: &str, message: impl Into<String>) {
        if self.broken.insert(name.to_owned()) {
            self.say(codes::ARCHIVE_DAMAGED, message);
        }
    }

    fn about(&mut self) -> Result<Option<About>, Problem> {
        if !self.store.members.contains_key(ABOUT_FILE) {
            if self.store.damages.is_empty() && !self.store.members.contains_key(CHECKSUMS_FILE) {
                let message = format!("{} has no {ABOUT_FILE}: it is no archive of flux-gen", self.store.path_shown());
                return Err(Problem::new(codes::NOT_AN_ARCHIVE, message));
            }
            return Ok(None);
        }
        let bytes = self.store.whole(ABOUT_FILE, DOCUMENT_LIMIT)?;
        match About::parse(&self.store.path_shown(), &bytes) {
            Ok(about) => Ok(Some(about)),
            Err(newer) if newer.code == codes::ARCHIVE_NEWER => Err(newer),
            Err(problem) => {
                self.broken.insert(ABOUT_FILE.to_owned());
                self.report.problems.push(problem);
                Ok(None)
            }
        }
    }

    /// Headers, padding and end of the file; contents against checksums and names.
    fn bytes(&mut self) -> Result<(), Problem> {
        let hashes = self.hashes()?;
        let list = match self.store.members.contains_key(CHECKSUMS_FILE) {
            true => {
                let bytes = self.store.whole(CHECKSUMS_FILE, TEXT_LIMIT)?;
                self.report.digest = Some(Digest::of(&bytes));
                Some(String::from_utf8_lossy(&bytes).into_owned())
            }
            false => None,
        };
        let listed = list.as_deref().map(checksums::parse).unwrap_or_default();
        self.damages(&listed);
        self.against_names(&hashes);
        if let Some(list) = list {
            self.against_list(&list, &listed, &hashes);
        } else {
            self.damaged(CHECKSUMS_FILE, format!("{CHECKSUMS_FILE} is not there"));
        }
        Ok(())
    }

    /// The digest of each member: with the hash of its name for blobs, else SHA-256.
    fn hashes(&mut self) -> Result<BTreeMap<String, Digest>, Problem> {
        let names: Vec<&String> = self.store.members.keys().collect();
        let hashed: Vec<Result<Digest, Problem>> = names.par_iter().map(|name| hash(self.store, name)).collect();
        self.report.members = names.len();
        self.report.bytes = self.store.members.values().map(|member| member.size).sum();
        names.into_iter().zip(hashed).map(|(name, digest)| Ok((name.clone(), digest?))).collect()
    }

    fn damages(&mut self, listed: &[(String, Digest)]) {
        for damage in &self.store.damages {
            match damage {
                Damage::Header { offset, after } => {
                    // Members stand in the order of the list, but for the list itself.
                    let lost = next_name(after.as_deref(), listed).filter(|n| !self.store.members.contains_key(*n));
                    let whose = lost.map_or_else(|| "a member".to_owned(), str::to_owned);
                    self.broken.extend(lost.map(str::to_owned));
                    self.say(codes::ARCHIVE_DAMAGED, format!("the header of {whose} is damaged (at offset {offset})"));
                }
                Damage::Padding { name, offset } => {
                    let message = format!("the filling after {name} is damaged (at offset {offset})");
                    self.say(codes::ARCHIVE_DAMAGED, message);
                }
                Damage::Cut { name, length, wanted } => {
                    let inside = name.as_ref().map(|name| format!(" in the middle of {name}")).unwrap_or_default();
                    let message = format!("it ends after {length} bytes{inside}, and should have {wanted} or more");
                    self.broken.extend(name.clone());
                    self.say(codes::ARCHIVE_DAMAGED, message);
                }
                Damage::Trailing { offset } => {
                    self.say(codes::ARCHIVE_DAMAGED, format!("there is something after the end (at offset {offset})"));
                }
            }
        }
        if self.store.order.len() != self.store.members.len() {
            self.say(codes::ARCHIVE_DAMAGED, "a member is in it twice");
        }
        let strangers: Vec<&String> = self.store.members.keys().filter(|name| !is_ours(name)).collect();
        if !strangers.is_empty() {
            let message = format!("it has files that no archive has: {}", several(&strangers));
            self.say(codes::ARCHIVE_DAMAGED, message);
        }
    }

    /// Blobs are named by their digests.
    fn against_names(&mut self, hashes: &BTreeMap<String, Digest>) {
        for (name, digest) in hashes {
            let Some(wanted) = blob_digest(name) else { continue };
            if wanted != *digest {
                let message = format!("the content of {} has the digest {digest}", self.store.place(name));
                self.damaged(name, message);
            }
        }
    }

    fn against_list(&mut self, text: &str, listed: &[(String, Digest)], hashes: &BTreeMap<String, Digest>) {
        let mut missing: Vec<&String> = Vec::new();
        for (name, wanted) in listed {
            match hashes.get(name) {
                Some(digest) if digest != wanted => {
                    let place = self.store.place(name);
                    self.damaged(name, format!("the content of {place} is not what {CHECKSUMS_FILE} says of it"));
                }
                Some(_) => {}
                None if self.broken.contains(name) => {}
                None => missing.push(name),
            }
        }
        if !missing.is_empty() {
            let message = format!("members are missing that {CHECKSUMS_FILE} names: {}", several(&missing));
            self.say(codes::ARCHIVE_DAMAGED, message);
        }
        let names: BTreeSet<&String> = listed.iter().map(|(name, _)| name).collect();
        let covered = |name: &String| {
            names.contains(name)
                || name == CHECKSUMS_FILE
                || blob_digest(name).is_some_and(|d| d.algorithm() != Algorithm::Sha256)
        };
        let extra: Vec<&String> = hashes.keys().filter(|name| is_ours(name) && !covered(name)).collect();
        if !extra.is_empty() {
            let message = format!("{CHECKSUMS_FILE} does not name {}", several(&extra));
            self.say(codes::ARCHIVE_DAMAGED, message);
        }
        // The list itself: every line as it is written, in the order of the file.
        let made: String = listed.iter().map(|(name, digest)| checksums::line(name, digest)).collect();
        let in_list = |name: &&String| names.contains(name);
        let order: Vec<&String> = self.store.order.iter().filter(in_list).collect();
        let sorted = self.store.is_folder()
            || order.iter().copied().eq(listed.iter().map(|(name, _)| name).filter(|name| hashes.contains_key(*name)));
        if made != text || !sorted {
            self.damaged(CHECKSUMS_FILE, format!("{} is damaged", self.store.place(CHECKSUMS_FILE)));
        }
    }

    fn lock(&mut self) -> Option<Lock> {
        let bytes = self.needed(LOCK_MEMBER)?;
        match Lock::parse(&String::from_utf8_lossy(&bytes)) {
            Ok(lock) => Some(lock),
            Err(e) => {
                self.damaged(LOCK_MEMBER, format!("{}: {e}", self.store.place(LOCK_MEMBER)));
                None
            }
        }
    }

    fn index(&mut self) -> Option<Index> {
        let bytes = self.needed("index.json")?;
        match serde_json::from_slice(&bytes) {
            Ok(index) => Some(index),
            Err(e) => {
                self.damaged("index.json", format!("{}: {e}", self.store.place("index.json")));
                None
            }
        }
    }

    fn needed(&mut self, name: &str) -> Option<Vec<u8>> {
        match self.store.whole(name, DOCUMENT_LIMIT) {
            Ok(bytes) => Some(bytes),
            Err(error) => {
                self.damaged(name, error.to_string());
                None
            }
        }
    }

    /// Every image of the lock with everything below it, and nothing that belongs to none.
    fn images(&mut self, about: &About, lock: &Lock, index: &Index) {
        let mut used: BTreeSet<String> = BTreeSet::new();
        for root in &index.manifests {
            used.extend(self.below(root));
        }
        let named: BTreeSet<&String> = about.images.iter().map(|image| &image.name).collect();
        for name in lock.images.keys().filter(|name| !named.contains(name)) {
            self.say(codes::ARCHIVE_INCOMPLETE, format!("the image {name} of the lock is not in it"));
        }
        for image in &about.images {
            let there = index.manifests.iter().any(|d| d.digest == image.carried && d.ref_name() == Some(&image.name));
            if !there {
                let message = format!("index.json does not name the image {} ({})", image.name, image.carried);
                self.say(codes::ARCHIVE_INCOMPLETE, message);
            }
            match lock.images.get(&image.name) {
                Some(locked) => self.against_lock(image, locked, about),
                None if about.is_tool(&image.name) => self.derived_from(image, about),
                None => self.say(codes::ARCHIVE_INCOMPLETE, format!("the lock does not have the image {}", image.name)),
            }
            used.insert(image.digest.blob_path());
        }
        let blobs = self.store.members.keys().filter(|name| name.starts_with("blobs/"));
        let idle: Vec<&String> = blobs.filter(|name| !used.contains(*name) && !self.broken.contains(*name)).collect();
        // What hangs on a document that cannot be read looks idle too.
        if !idle.is_empty() && self.broken.is_empty() {
            let message = format!("blobs belong to no image: {}", several(&idle));
            self.say(codes::ARCHIVE_DAMAGED, message);
        }
    }

    /// Paths of all blobs below a descriptor of `index.json`; tells what is missing or of another size.
    fn below(&mut self, root: &Descriptor) -> Vec<String> {
        let title = root.ref_name().map_or_else(|| root.digest.to_string(), str::to_owned);
        let mut problems = Vec::new();
        let graph = Graph::explore(self.store, std::slice::from_ref(root), &mut problems);
        for error in problems {
            let mut damaged = self.broken.iter().filter_map(|name| blob_digest(name));
            match damaged.find(|digest| error.message().contains(digest.hex())) {
                Some(digest) => {
                    let message = format!("{} of {title} cannot be used", digest.blob_path());
                    self.say(codes::ARCHIVE_INCOMPLETE, message);
                }
                None => {
                    let message = format!("{} ({title})", error.message());
                    self.report.problems.push(Problem::new(codes::ARCHIVE_INCOMPLETE, message));
                }
            }
        }
        for blob in &graph.blobs {
            let name = blob.digest.blob_path();
            match self.store.members.get(&name) {
                _ if self.broken.contains(&name) => {
                    self.say(codes::ARCHIVE_INCOMPLETE, format!("{name} of {title} cannot be used"));
                }
                Some(member) if member.size != blob.size => {
                    let place = self.store.place(&name);
                    let message = format!("{place} of {title} has {} bytes instead of {}", member.size, blob.size);
                    self.damaged(&name, message);
                }
                Some(_) => {}
                None if is_elsewhere(blob) => {}
                None => self.say(codes::ARCHIVE_INCOMPLETE, format!("{name} of {title} is not in it")),
            }
        }
        graph.descriptors().map(|descriptor| descriptor.digest.blob_path()).collect()
    }

    /// The chain from the lock to the bytes: the published digest, and the index that is derived from it.
    fn against_lock(&mut self, image: &ArchivedImage, locked: &LockedImage, about: &About) {
        let name = &image.name;
        if locked.digest != image.digest {
            let message = format!("{name} is {} in the lock and {} in the archive", locked.digest, image.digest);
            return self.say(codes::ARCHIVE_INCOMPLETE, message);
        }
        for (platform, digest) in &image.platforms {
            if locked.platforms.get(platform).is_none_or(|entry| entry.digest != *digest) {
                let message = format!("{name} for {platform} is not the image that the lock has");
                self.say(codes::ARCHIVE_INCOMPLETE, message);
            }
        }
        self.derived_from(image, about);
    }

    /// Tells when what is carried is not made from what was published.
    fn derived_from(&mut self, image: &ArchivedImage, about: &About) {
        if image.is_derived()
            && let Err(why) = self.derived(image, about)
        {
            self.say(codes::ARCHIVE_INCOMPLETE, format!("{}: {why}", image.name));
        }
    }

    /// The programs of flux-gen itself: one for each platform of its image, and no other.
    fn tool(&mut self, about: &About) {
        let Some(tool) = &about.tool else { return };
        let image = about.image(&tool.image);
        if image.is_none() {
            self.say(codes::ARCHIVE_INCOMPLETE, format!("the image {} of flux-gen is not in it", tool.image));
        }
        let platforms: BTreeSet<&String> = image.into_iter().flat_map(|image| image.platforms.keys()).collect();
        for platform in platforms.iter().filter(|platform| !tool.programs.contains_key(**platform)) {
            self.say(codes::ARCHIVE_INCOMPLETE, format!("flux-gen for {platform} is not in it"));
        }
        for member in tool.programs.values().filter(|member| !self.store.members.contains_key(*member)) {
            if !self.broken.contains(member) {
                self.say(codes::ARCHIVE_INCOMPLETE, format!("{member} is not in it"));
            }
        }
        let named: BTreeSet<&String> = tool.programs.values().collect();
        let there = self.store.members.keys().filter(|name| name.starts_with(TOOL_FOLDER));
        let idle: Vec<&String> = there.filter(|name| !named.contains(name)).collect();
        if !idle.is_empty() {
            self.say(codes::ARCHIVE_DAMAGED, format!("{ABOUT_FILE} does not name {}", several(&idle)));
        }
    }

    fn derived(&self, image: &ArchivedImage, about: &About) -> Result<(), String> {
        let path = image.digest.blob_path();
        let bytes = self.store.whole(&path, DOCUMENT_LIMIT).map_err(|e| e.to_string())?;
        let Document::Index(index) = Document::parse(&path, "", &bytes).map_err(|e| e.to_string())? else {
            return Err(format!("{path} is no index"));
        };
        let platforms: Result<Vec<Platform>, _> = about.platforms.iter().map(|p| p.parse::<Platform>()).collect();
        let chosen = choose(&image.name, &image.digest, &index, &platforms.map_err(|e| e.to_string())?);
        match chosen.map_err(|e| e.to_string())? {
            Chosen::Derived(derived) if derived.descriptor.digest == image.carried => Ok(()),
            _ => Err(format!("{} is not the index of these platforms of {}", image.carried, image.digest)),
        }
    }

    /// Every image that a bundle names, for each platform that is asked for.
    fn bundles(&mut self, about: &About, platforms: &[Platform]) {
        let files: Vec<&String> = self.store.members.keys().filter(|name| name.starts_with(BUNDLES)).collect();
        // The first file that names an image stands for all that do.
        let mut needed: BTreeMap<&str, (&ArchivedImage, &String)> = BTreeMap::new();
        for file in files {
            let images = match self.store.whole(file, TEXT_LIMIT).map(|bytes| bundles::images(file, bytes)) {
                Ok(Ok(images)) => images,
                Ok(Err(why)) => {
                    self.damaged(file, format!("{}: {why}", self.store.place(file)));
                    continue;
                }
                Err(error) => {
                    self.damaged(file, error.to_string());
                    continue;
                }
            };
            for (path, name) in images {
                let found = named_by(about, &name);
                if found.is_empty() {
                    let why = if name.contains('@') { "is not in the archive" } else { "is not named by a digest" };
                    let message = format!("{file}: the image {name} ({path}) {why}");
                    self.say(codes::ARCHIVE_INCOMPLETE, message);
                }
                for image in found {
                    needed.entry(&image.name).or_insert((image, file));
                }
            }
        }
        for (image, file) in needed.into_values() {
            for wanted in platforms {
                let has = |have: &String| have.parse::<Platform>().is_ok_and(|have| have.distance(wanted).is_some());
                if !image.platforms.keys().any(has) {
                    let all: Vec<&str> = image.platforms.keys().map(String::as_str).collect();
                    let message = format!("{} is not there for {wanted}, only for {}", image.name, all.join(", "));
                    self.say(codes::ARCHIVE_INCOMPLETE, format!("{message}; {file} needs it"));
                }
            }
        }
    }
}

/// The images that a bundle means by a repository with a digest: more than one when several tags of it stand for the same
/// bytes. Behind a mirror the repository is another one, and the digest alone counts.
fn named_by<'a>(about: &'a About, name: &str) -> Vec<&'a ArchivedImage> {
    let Ok(wanted) = name.parse::<Reference>() else { return Vec::new() };
    let same: Vec<_> = about.images.iter().filter(|image| wanted.digest() == Some(&image.digest)).collect();
    let is_there = |image: &ArchivedImage| image.name.parse().is_ok_and(|own: Reference| own.name() == wanted.name());
    match same.iter().any(|image| is_there(image)) {
        true => same.into_iter().filter(|image| is_there(image)).collect(),
        false => same,
    }
}

/// The member that stands after another one.
fn next_name<'a>(after: Option<&str>, listed: &'a [(String, Digest)]) -> Option<&'a str> {
    let names = || listed.iter().map(|(name, _)| name.as_str());
    match after {
        None => names().next(),
        Some(CHECKSUMS_FILE) => names().find(|name| name.starts_with("blobs/")),
        Some(after) => names().skip_while(|name| *name != after).nth(1),
    }
}

/// The digest that names a blob.
fn blob_digest(name: &str) -> Option<Digest> {
    let (algorithm, hex) = name.strip_prefix("blobs/")?.split_once('/')?;
    format!("{algorithm}:{hex}").parse().ok()
}

fn hash(store: &Store, name: &str) -> Result<Digest, Problem> {
    let algorithm = blob_digest(name).map_or(Algorithm::Sha256, |digest| digest.algorithm());
    let mut hasher = Hasher::new(algorithm);
    let mut reader = store.read(name)?;
    let mut buffer = vec![0; 256 << 10];
    loop {
        match reader.read(&mut buffer).map_err(|e| Problem::file("read", Path::new(name), &e))? {
            0 => return Ok(hasher.finish()),
            count => hasher.update(&buffer[..count]),
        }
    }
}

/// The first names of a list.
fn several(names: &[&String]) -> String {
    let first: Vec<&str> = names.iter().take(LISTED).map(|name| name.as_str()).collect();
    match names.len().saturating_sub(LISTED) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}
