//! What an archive is made of, in the order of its members, with the place of each in the file: all known before the first
//! blob is fetched, because the lock and the manifests say how large blobs are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::about::{About, Tool};
use super::collect::Collected;
use super::place::Place;
use super::{
    ABOUT_FILE, BUNDLES, CHECKSUMS_FILE, DOCKER_FILE, FORMAT, LOCK_MEMBER, Problem, SOURCES, TOOL_FOLDER, checksums,
    docker,
};
use crate::diag::codes::airgap as codes;
use crate::oci::digest::{Algorithm, Hasher};
use crate::oci::document::Index;
use crate::oci::layout::OCI_LAYOUT;
use crate::oci::tar::{BLOCK, padding};
use crate::oci::{Descriptor, Digest, Platform};

/// Zeros at the end of a tar file.
pub(super) const END: u64 = 2 * BLOCK;

/// A file of the project that goes into the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectFile {
    /// Path relative to the output folder or the project's, with `/`.
    pub name: String,
    /// Where it is.
    pub path: PathBuf,
    /// Bytes.
    pub size: u64,
    /// SHA-256 of them.
    pub digest: Digest,
}

impl ProjectFile {
    /// Reads a file once for its size and digest; it is read again when the archive is written.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(name: impl Into<String>, path: &Path) -> Result<Self, Problem> {
        let failed = |e: std::io::Error| Problem::file("read", path, &e);
        let (size, digest) = measure(File::open(path).map_err(failed)?).map_err(failed)?;
        Ok(Self { name: name.into(), path: path.to_owned(), size, digest })
    }
}

fn measure(mut reader: impl Read) -> std::io::Result<(u64, Digest)> {
    let (mut hasher, mut size) = (Hasher::new(Algorithm::Sha256), 0);
    let mut buffer = vec![0; 1 << 16];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok((size, hasher.finish())),
            count => {
                hasher.update(&buffer[..count]);
                size += count as u64;
            }
        }
    }
}

/// The files of a project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Project {
    /// The text of `images.lock`.
    pub lock: String,
    /// The output folder as it is committed.
    pub bundles: Vec<ProjectFile>,
    /// Project file, specs, documents beside them, views, recipes, public halves of the store.
    pub sources: Vec<ProjectFile>,
    /// flux-gen itself, if it is to come along.
    pub tool: Option<ToolFiles>,
}

/// flux-gen itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolFiles {
    /// Name of its image, which is collected as the others are.
    pub image: String,
    /// The program of each platform, out of this image.
    pub programs: BTreeMap<String, ProjectFile>,
}

impl ToolFiles {
    /// What the archive says of it.
    fn about(&self) -> Tool {
        let member =
            |(platform, file): (&String, &ProjectFile)| (platform.clone(), format!("{TOOL_FOLDER}{}", file.name));
        Tool { image: self.image.clone(), programs: self.programs.iter().map(member).collect() }
    }
}

/// Where the bytes of a member are.
#[derive(Debug)]
pub(super) enum Content {
    Bytes(Vec<u8>),
    File(PathBuf),
    Blob(Box<Descriptor>, Arc<Place>),
}

/// A member of the archive.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) name: String,
    pub(super) size: u64,
    /// Of the content.
    pub(super) digest: Digest,
    pub(super) content: Content,
    /// Of the header in the file.
    pub(super) offset: u64,
}

impl Member {
    pub(super) fn header(&self) -> Vec<u8> {
        super::header(&self.name, self.size)
    }

    /// Bytes with header and padding.
    fn length(&self) -> u64 {
        self.header().len() as u64 + self.size + padding(self.size) as u64
    }
}

/// An archive before it is written.
#[derive(Debug)]
pub struct Contents {
    /// What it says of itself.
    pub about: About,
    /// Digest of its list of checksums, by which people can compare archives: the list covers everything else.
    pub digest: Digest,
    /// Bytes of the file.
    pub size: u64,
    pub(super) members: Vec<Member>,
}

impl Contents {
    /// Puts an archive together. The same collection, platforms and files give the same bytes.
    ///
    /// # Errors
    /// When the project has a file with a name that cannot be in an archive.
    pub fn new(collected: Collected, platforms: &BTreeSet<Platform>, project: &Project) -> Result<Self, Problem> {
        let json = |e: serde_json::Error| Problem::new(codes::ARCHIVE_DAMAGED, format!("cannot write JSON: {e}"));
        let (docker, docker_file) = docker::manifest(&collected, platforms).map_err(json)?.unzip();
        let index = serde_json::to_vec(&Index::new(collected.roots.clone())).map_err(json)?;
        let platforms = platforms.iter().map(ToString::to_string).collect();
        let about = About {
            tool: project.tool.as_ref().map(ToolFiles::about),
            ..About::new(platforms, collected.images.clone(), docker)
        };
        let mut list = List::default();
        list.bytes("oci-layout", OCI_LAYOUT.to_vec());
        list.bytes("index.json", index);
        if let Some(docker_file) = docker_file {
            list.bytes(DOCKER_FILE, docker_file);
        }
        list.bytes(ABOUT_FILE, about.to_bytes()?);
        list.bytes(LOCK_MEMBER, project.lock.clone().into_bytes());
        let programs = project.tool.iter().flat_map(|tool| tool.programs.values()).collect();
        let (bundles, sources) = (project.bundles.iter().collect(), project.sources.iter().collect());
        for (folder, files) in [(TOOL_FOLDER, programs), (BUNDLES, bundles), (SOURCES, sources)] {
            let mut files: Vec<&ProjectFile> = files;
            files.sort_by(|a, b| a.name.cmp(&b.name));
            for file in files {
                list.file(folder, file)?;
            }
        }
        let blobs = blobs(collected);
        let named: Vec<(String, &Digest)> = list
            .members
            .iter()
            .map(|member| (member.name.clone(), &member.digest))
            .chain(blobs.iter().map(|blob| (blob.name.clone(), &blob.digest)))
            .collect();
        // A blob that is named by another hash is covered by its name, and its SHA-256 is not known before it is fetched.
        let sha256 = named.iter().filter(|(_, digest)| digest.algorithm() == Algorithm::Sha256);
        let text: String = sha256.map(|(name, digest)| checksums::line(name, digest)).collect();
        let digest = Digest::of(text.as_bytes());
        list.bytes(CHECKSUMS_FILE, text.into_bytes());
        list.members.extend(blobs);
        let (members, end) = placed(list.members);
        Ok(Self { about, digest, size: end + END, members })
    }

    /// How many blobs, documents among them.
    #[must_use]
    pub fn blobs(&self) -> usize {
        self.members.iter().filter(|member| member.name.starts_with("blobs/")).count()
    }
}

/// Gives every member its place.
fn placed(mut members: Vec<Member>) -> (Vec<Member>, u64) {
    let mut at = 0;
    for member in &mut members {
        member.offset = at;
        at += member.length();
    }
    (members, at)
}

/// Blobs and documents, the smallest first.
fn blobs(collected: Collected) -> Vec<Member> {
    let documents = collected.documents.into_iter().map(|(digest, loaded)| {
        let (size, name) = (loaded.bytes.len() as u64, digest.blob_path());
        Member { name, size, digest, content: Content::Bytes(loaded.bytes), offset: 0 }
    });
    let blobs = collected.blobs.into_iter().map(|(digest, (blob, place))| {
        let (size, name) = (blob.size, digest.blob_path());
        Member { name, size, digest, content: Content::Blob(Box::new(blob), place), offset: 0 }
    });
    let mut all: Vec<Member> = documents.chain(blobs).collect();
    all.sort_by(|a, b| (a.size, &a.digest).cmp(&(b.size, &b.digest)));
    all.dedup_by(|a, b| a.name == b.name);
    all
}

/// Members before the blobs.
#[derive(Default)]
struct List {
    members: Vec<Member>,
}

impl List {
    fn bytes(&mut self, name: &str, bytes: Vec<u8>) {
        let (size, digest) = (bytes.len() as u64, Digest::of(&bytes));
        self.members.push(Member { name: name.to_owned(), size, digest, content: Content::Bytes(bytes), offset: 0 });
    }

    fn file(&mut self, folder: &str, file: &ProjectFile) -> Result<(), Problem> {
        let name = format!("{folder}{}", file.name);
        let strange = |c: char| c.is_control() || c == '\\';
        let plain = file.name.split('/').all(|part| !matches!(part, "" | "." | "..")) && !name.contains(strange);
        if !plain || self.members.iter().any(|member| member.name == name) {
            let why = if plain { "two files have this name" } else { "the name cannot be in an archive" };
            let message = format!("{}: {why} (`{}`, format {FORMAT})", file.path.display(), file.name.escape_debug());
            return Err(
                Problem::new(codes::ARCHIVE_STALE, message).help("rename the file, or leave it out of the sources")
            );
        }
        let content = Content::File(file.path.clone());
        self.members.push(Member { name, size: file.size, digest: file.digest.clone(), content, offset: 0 });
        Ok(())
    }
}
