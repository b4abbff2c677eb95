//! The bundles of an archive with references behind the gap: typed objects are read, changed and written again in the one
//! spelling that `build` has. Files without images stay byte for byte.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde_json::Value;

use crate::airgap::archive::{Archive, BUNDLES, Problem};
use crate::airgap::rewrite::{Found, Rewriter};
use crate::bundle::index::{INDEX_FILE, Index};
use crate::bundle::names::KUSTOMIZATION_FILE;
use crate::bundle::tree::{Folder, is_object_file};
use crate::bundle::{FileTree, sha256_hex, yaml};
use crate::diag::SourceMap;
use crate::diag::codes::airgap as codes;
use crate::object::{Object, images};
use crate::oci::{Digest, Reference};
use crate::spec::read_objects;

/// What an archive gives for an output folder.
#[derive(Debug, Default)]
pub struct Rewritten {
    /// The files.
    pub tree: FileTree,
    /// Files of the archive that no bundle lists; they are left out.
    pub foreign: Vec<String>,
    /// Rules of the mirror that were used.
    pub used: BTreeSet<usize>,
}

/// What is loaded: repositories with the digests of their indexes and manifests.
pub type Loaded = BTreeSet<(String, Digest)>;

/// Files of one folder by name.
type Files = BTreeMap<String, Vec<u8>>;

/// Rewrites all bundles of an archive.
///
/// # Errors
/// Every problem: files that are not as flux-gen writes them, images outside of the mirror, images that are not loaded.
pub fn rewrite(archive: &Archive, rewriter: &Rewriter, loaded: &Loaded) -> Result<Rewritten, Vec<Problem>> {
    let mut folders: BTreeMap<String, Files> = BTreeMap::new();
    let mut problems = Vec::new();
    for (name, _) in archive.bundles() {
        let (folder, file) = name.rsplit_once('/').unwrap_or(("", name));
        match archive.read_member(&format!("{BUNDLES}{name}")) {
            Ok(bytes) => drop(folders.entry(folder.to_owned()).or_default().insert(file.to_owned(), bytes)),
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let one = |(path, files): (String, Files)| {
        let made = folder(&path, files, rewriter, loaded);
        (path, made)
    };
    let made: Vec<(String, Result<Made, Vec<Problem>>)> = folders.into_par_iter().map(one).collect();
    let mut rewritten = Rewritten::default();
    for (path, result) in made {
        match result {
            Ok(made) => made.join(&path, &mut rewritten),
            Err(more) => problems.extend(more),
        }
    }
    if problems.is_empty() { Ok(rewritten) } else { Err(problems) }
}

/// A folder: one of a cluster or of companions, or one above these with nothing but a kustomization.
#[derive(Default)]
struct Made {
    folder: Option<Folder>,
    kustomization: Option<Vec<u8>>,
    foreign: Vec<String>,
    used: BTreeSet<usize>,
}

impl Made {
    fn join(self, path: &str, into: &mut Rewritten) {
        let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
        into.foreign.extend(self.foreign.iter().map(|name| below(name)));
        into.used.extend(self.used);
        if let Some(bytes) = self.kustomization {
            into.tree.files.insert(below(KUSTOMIZATION_FILE), bytes);
        }
        if let Some(folder) = self.folder {
            into.tree.folders.insert(path.to_owned(), folder);
        }
    }
}

fn folder(path: &str, mut files: Files, rewriter: &Rewriter, loaded: &Loaded) -> Result<Made, Vec<Problem>> {
    let Some(index) = files.remove(INDEX_FILE) else {
        let kustomization = files.remove(KUSTOMIZATION_FILE);
        return Ok(Made { kustomization, foreign: files.into_keys().collect(), ..Made::default() });
    };
    let not_ours = |name: &str, why: String| Problem::new(codes::LOAD_NOT_OURS, format!("{path}/{name}: {why}"));
    let mut index = Index::parse(&index).map_err(|e| vec![not_ours(INDEX_FILE, e.to_string())])?;
    let (own, foreign): (Files, Files) = files.into_iter().partition(|(name, _)| index.files.contains_key(name));
    let (mut made, mut problems) = (BTreeMap::new(), Vec::new());
    let mut found = Found::default();
    let is_cluster = index.name.is_some();
    for (name, digest) in &mut index.files {
        let Some(bytes) = own.get(name) else {
            problems.push(not_ours(name, "it is listed in bundle.json and is not there".to_owned()));
            continue;
        };
        if sha256_hex(bytes) != *digest {
            problems.push(not_ours(name, "it was changed since `flux-gen build` wrote it".to_owned()));
            continue;
        }
        let place = format!("{path}/{name}");
        let mut here = Found::default();
        match file(&place, name, bytes, is_cluster, rewriter, &mut here) {
            Ok(bytes) => {
                problems.extend(here.outside.iter().map(|o| outside(&place, &o.name, &o.path)));
                if here.outside.is_empty() {
                    problems.extend(not_loaded(&place, name, &bytes, loaded));
                }
                *digest = sha256_hex(&bytes);
                made.insert(name.clone(), bytes);
            }
            Err(problem) => problems.push(problem),
        }
        found.extend(here);
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let bytes = index.to_bytes().map_err(|e| vec![not_ours(INDEX_FILE, e.to_string())])?;
    made.insert(INDEX_FILE.to_owned(), bytes);
    let documents = index.files.keys().filter(|name| is_object_file(name)).cloned().collect();
    let folder = Folder { files: made, index, documents, encrypted: BTreeMap::new() };
    Ok(Made { folder: Some(folder), foreign: foreign.into_keys().collect(), used: found.used, kustomization: None })
}

fn outside(place: &str, name: &str, path: &str) -> Problem {
    Problem::new(codes::MIRROR_OUTSIDE, format!("{place}: no rule is for the image {name} ({path})"))
        .help("give --to, which is for all the rest, or one more --map")
}

/// Whether a file may name images: objects, but no Secrets, which may be encrypted. Those that hold no such word cannot.
fn may_name_images(name: &str, bytes: &[u8]) -> bool {
    let kind = name.split(['-', '.']).next().unwrap_or_default();
    is_object_file(name) && !matches!(kind, "secret" | "sealedsecret") && bytes.windows(5).any(|part| part == b"image")
}

/// One file.
fn file(
    place: &str,
    name: &str,
    bytes: &[u8],
    is_cluster: bool,
    rewriter: &Rewriter,
    found: &mut Found,
) -> Result<Vec<u8>, Problem> {
    if !may_name_images(name, bytes) {
        return Ok(bytes.to_vec());
    }
    let not_ours = |why: &str| {
        Problem::new(codes::LOAD_NOT_OURS, format!("{place}: {why}"))
            .help("run `flux-gen build` outside, and save again")
    };
    let header = bytes.iter().position(|b| *b == b'\n').map_or(&b""[..], |end| &bytes[..=end]);
    let header = std::str::from_utf8(header).ok().filter(|line| line.starts_with('#'));
    let header = header.ok_or_else(|| not_ours("its first line is not that of a generated file"))?;
    let mut value = one_object(bytes).ok_or_else(|| not_ours("it is no object"))?;
    let failed = |e: yaml::YamlError| not_ours(&e.to_string());
    let kind = value.get("kind").and_then(Value::as_str).unwrap_or_default();
    let typed = if is_cluster { typed(kind, &value).map_err(|e| not_ours(&e))? } else { None };
    // What would be written without a change must be what is there, or more would change than references.
    let as_it_is = match &typed {
        Some(object) => yaml::below(header, object, bytes.len()),
        None => yaml::below(header, &value, bytes.len()),
    };
    if as_it_is.map_err(failed)?.as_bytes() != bytes {
        return Err(not_ours("it is not spelled as flux-gen writes it"));
    }
    let text = match typed {
        Some(mut object) => {
            rewriter.object(&mut object, found);
            yaml::below(header, &object, bytes.len())
        }
        None => {
            rewriter.value(&mut value, found);
            yaml::below(header, &value, bytes.len())
        }
    };
    text.map(String::into_bytes).map_err(failed)
}

/// The kinds of a cluster's bundle that have images.
fn typed(kind: &str, value: &Value) -> Result<Option<Object>, String> {
    let made = match kind {
        "Job" => serde_json::from_value(value.clone()).map(|job| Object::Job(Box::new(job))),
        "Pod" => serde_json::from_value(value.clone()).map(|pod| Object::Pod(Box::new(pod))),
        _ => return Ok(None),
    };
    made.map(Some).map_err(|e| format!("it is no {kind}: {e}"))
}

fn one_object(bytes: &[u8]) -> Option<Value> {
    let (objects, problems) = read_objects(&mut SourceMap::new(), vec![(String::new(), bytes.to_vec())]);
    let mut objects = objects.objects.into_iter();
    objects.next().filter(|_| objects.next().is_none() && !problems.has_errors()).map(|object| object.value)
}

/// Images of a rewritten file that are not loaded where it says.
fn not_loaded(place: &str, name: &str, bytes: &[u8], loaded: &Loaded) -> Vec<Problem> {
    if !may_name_images(name, bytes) {
        return Vec::new();
    }
    let mut missing = BTreeSet::new();
    if let Some(mut value) = one_object(bytes) {
        images::visit_value(&mut value, &mut |path, image| {
            let reference = image.parse::<Reference>().ok();
            let key = reference.and_then(|r| Some((r.name(), r.digest()?.clone())));
            if !key.is_some_and(|key| loaded.contains(&key)) {
                missing.insert(format!("{place}: the archive does not have the image {image} ({path})"));
            }
            None
        });
    }
    let problem = |message| Problem::new(codes::LOAD_NOT_CARRIED, message).help("lock, build and save again outside");
    missing.into_iter().map(problem).collect()
}
