//! The project behind the gap: the sources of an archive, the lock of what it carries, and a project file with
//! `images.mirror`, so that `flux-gen build` gives what [`super::bundles`] made.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::airgap::archive::{Archive, Problem, SOURCES};
use crate::airgap::lock::{Derived, LOCK_FILE, Lock};
use crate::airgap::mirror::Mirror;
use crate::bundle::{sha256_hex, yaml};
use crate::diag::codes::airgap as codes;
use crate::diag::{Diagnostics, SourceMap};
use crate::oci::Platform;
use crate::oci::digest::{Algorithm, Hasher};
use crate::spec::Project;

/// The project file.
const PROJECT_FILE: &str = "flux-gen.yaml";
/// What a load wrote into a folder, so that the next one knows what was changed there.
pub const LOADED_FILE: &str = ".flux-gen-loaded.json";
const DEFAULT_OUTPUT: &str = "generated";

/// The project file behind the gap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteProject {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The folder of bundles, relative to it.
    pub output: String,
}

/// The project file of an archive, with the mirror.
///
/// # Errors
/// When it cannot be read, has a mirror already, or puts bundles outside of its folder.
pub fn project(archive: &Archive, mirror: &Mirror) -> Result<SiteProject, Problem> {
    let is_there = archive.sources().any(|(name, _)| name == PROJECT_FILE);
    let text = if is_there { archive.read_member(&format!("{SOURCES}{PROJECT_FILE}"))? } else { Vec::new() };
    with_mirror(&text, mirror)
}

fn with_mirror(text: &[u8], mirror: &Mirror) -> Result<SiteProject, Problem> {
    let wrong = |why: &str, help: &str| {
        Problem::new(codes::LOAD_SOURCES, format!("{PROJECT_FILE} of the archive {why}")).help(help)
    };
    let read = |bytes: &[u8]| {
        let (project, problems) = Project::read(&mut SourceMap::new(), PROJECT_FILE, bytes.to_vec());
        (!problems.has_errors()).then_some(project)
    };
    let unreadable = || wrong("cannot be read", "`flux-gen validate` outside says why; save the archive again");
    let before = read(text).ok_or_else(unreadable)?;
    if before.images.is_some() {
        let help = "save the archive from the project without `images`, whose bundles name the first registries";
        return Err(wrong("has `images` already", help));
    }
    let output = before.output.as_ref().map_or(DEFAULT_OUTPUT, |output| output.value.as_str()).to_owned();
    let inside = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
    if output.is_empty() || !Path::new(&output).components().all(inside) {
        return Err(wrong(&format!("has the output folder {output}"), "choose one inside of the project"));
    }
    let mut bytes = text.to_vec();
    if bytes.last().is_some_and(|last| *last != b'\n') {
        bytes.push(b'\n');
    }
    let added = yaml::to_yaml(&json!({ "images": { "mirror": rules(mirror) } }));
    bytes.extend_from_slice(added.map_err(|e| wrong(&e.to_string(), "please report this"))?.as_bytes());
    // The end of a file is the end of its mapping only when that is written in blocks. Whether it was is seen from the result.
    let strange =
        || wrong("is not one mapping in blocks", "write `key: value` lines at its top level, without `{}` and `...`");
    let mut after = read(&bytes).ok_or_else(strange)?;
    let images = after.images.take().ok_or_else(strange)?;
    let mut found = Diagnostics::new();
    let again = images.value.mirror.map(|list| Mirror::of_project(&list.value, &mut found)).unwrap_or_default();
    let bare = |mirror: &Mirror| mirror.rules().iter().map(|r| (r.from.clone(), r.to.clone())).collect::<Vec<_>>();
    if after != before || bare(&again) != bare(mirror) || found.has_errors() {
        return Err(strange());
    }
    Ok(SiteProject { bytes, output })
}

/// The rules as the project file has them.
fn rules(mirror: &Mirror) -> Vec<Value> {
    let rule = |rule: &crate::airgap::mirror::Rule| match &rule.from {
        Some(from) => json!({ "from": from.to_string(), "to": rule.to.to_string() }),
        None => json!({ "to": rule.to.to_string() }),
    };
    mirror.rules().iter().map(rule).collect()
}

/// The lock behind the gap: of each image, what the archive carries. The archive's own bytes when that is all.
///
/// # Errors
/// When it cannot be written as text.
pub fn lock(archive: &Archive) -> Result<(Lock, String), Problem> {
    let about = archive.about();
    let mut lock = archive.lock().clone();
    for image in &about.images {
        let Some(locked) = lock.images.get_mut(&image.name) else { continue };
        locked.platforms.retain(|platform, _| image.platforms.contains_key(platform));
        locked.derived = None;
        if image.is_derived() {
            let size = archive.root(image)?.size;
            locked.derived = Some(Derived { digest: image.carried.clone(), size });
        }
    }
    if !about.platforms.is_empty() {
        let platforms: Result<_, _> = about.platforms.iter().map(|p| p.parse::<Platform>()).collect();
        lock.platforms = platforms?;
    }
    if lock == *archive.lock() {
        return Ok((lock, archive.lock_text().to_owned()));
    }
    let text = lock.to_text().map_err(|e| Problem::new(codes::LOAD_SOURCES, format!("{LOCK_FILE}: {e}")))?;
    Ok((lock, text))
}

/// Where the bytes of a file come from.
enum Content<'a> {
    Given(&'a [u8]),
    Member(String),
}

/// What a load wrote.
#[derive(Debug, Default, Serialize, Deserialize)]
struct LoadedFiles {
    files: BTreeMap<String, String>,
}

/// The files of the project, ready to be written.
pub struct Site<'a> {
    archive: &'a Archive,
    files: BTreeMap<String, (Content<'a>, String)>,
}

impl<'a> Site<'a> {
    /// The archive's sources with this project file and lock in place of theirs.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub fn new(archive: &'a Archive, project: &'a SiteProject, lock: &'a str) -> Result<Self, Problem> {
        let mut files = BTreeMap::new();
        for (name, _) in archive.sources() {
            let member = format!("{SOURCES}{name}");
            let digest = hash(archive.open_member(&member)?).map_err(|e| Problem::file("read", archive.path(), &e))?;
            files.insert(name.to_owned(), (Content::Member(member), digest));
        }
        for (name, bytes) in [(PROJECT_FILE, project.bytes.as_slice()), (LOCK_FILE, lock.as_bytes())] {
            files.insert(name.to_owned(), (Content::Given(bytes), sha256_hex(bytes)));
        }
        Ok(Self { archive, files })
    }

    /// Files in the folder that are neither as an earlier load left them nor as this one would.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn conflicts(&self, folder: &Path) -> Result<Vec<Problem>, Problem> {
        let earlier = earlier(folder)?;
        let mut problems = Vec::new();
        let wanted = self.files.iter().map(|(name, (_, digest))| (name, Some(digest)));
        let gone = earlier.files.keys().filter(|name| !self.files.contains_key(*name)).map(|name| (name, None));
        for (name, digest) in wanted.chain(gone) {
            let Some(there) = on_disk(&folder.join(name))? else { continue };
            let expected = [digest, earlier.files.get(name)];
            if !expected.into_iter().flatten().any(|digest| *digest == there) {
                let message =
                    format!("{} was not written by `archive load`, or was changed since", folder.join(name).display());
                problems.push(
                    Problem::new(codes::LOAD_CHANGED_HERE, message).help("move it away, or run again with --force"),
                );
            }
        }
        Ok(problems)
    }

    /// Writes the files; each is old or new at any moment.
    ///
    /// # Errors
    /// The first file operation that failed.
    pub fn write(&self, folder: &Path) -> Result<(), Problem> {
        let earlier = earlier(folder)?;
        let mut files = BTreeMap::new();
        for (name, (content, digest)) in &self.files {
            let path = folder.join(name);
            if on_disk(&path)?.as_ref() != Some(digest) {
                match content {
                    Content::Given(bytes) => put(&path, &mut &bytes[..])?,
                    Content::Member(member) => put(&path, &mut self.archive.open_member(member)?)?,
                }
            }
            files.insert(name.clone(), digest.clone());
        }
        for name in earlier.files.keys().filter(|name| !files.contains_key(*name)) {
            let path = folder.join(name);
            match fs::remove_file(&path) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(Problem::file("remove", &path, &e)),
                _ => {}
            }
        }
        let path = folder.join(LOADED_FILE);
        let mut bytes = serde_json::to_vec_pretty(&LoadedFiles { files })
            .map_err(|e| Problem::new(codes::LOAD_SOURCES, format!("{}: {e}", path.display())))?;
        bytes.push(b'\n');
        put(&path, &mut bytes.as_slice())
    }
}

/// What an earlier load wrote into a folder.
fn earlier(folder: &Path) -> Result<LoadedFiles, Problem> {
    let path = folder.join(LOADED_FILE);
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(LoadedFiles::default()),
        Err(e) => return Err(Problem::file("read", &path, &e)),
    };
    // One that is damaged proves nothing: everything that is there then counts as somebody else's.
    let read: LoadedFiles = serde_json::from_slice(&bytes).unwrap_or_default();
    let plain = |name: &str| Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
    Ok(LoadedFiles { files: read.files.into_iter().filter(|(name, _)| plain(name)).collect() })
}

/// SHA-256 of a file; `None` when nothing is there.
fn on_disk(path: &Path) -> Result<Option<String>, Problem> {
    match File::open(path) {
        Ok(file) => hash(file).map(Some).map_err(|e| Problem::file("read", path, &e)),
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(e) => Err(Problem::file("read", path, &e)),
    }
}

fn hash(mut reader: impl Read) -> io::Result<String> {
    let mut hasher = Hasher::new(Algorithm::Sha256);
    let mut buffer = vec![0; 1 << 16];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(hasher.finish().hex().to_owned()),
            count => hasher.update(&buffer[..count]),
        }
    }
}

fn put(path: &Path, content: &mut dyn Read) -> Result<(), Problem> {
    let failed = |e: &io::Error| Problem::file("write", path, e);
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(|e| failed(&e))?;
    let mut builder = tempfile::Builder::new();
    builder.prefix(".flux-gen-").permissions(Permissions::from_mode(0o644));
    let mut file = builder.tempfile_in(folder).map_err(|e| failed(&e))?;
    io::copy(content, &mut file).map_err(|e| failed(&e))?;
    file.flush().and_then(|()| file.as_file().sync_all()).map_err(|e| failed(&e))?;
    file.persist(path).map(drop).map_err(|e| failed(&e.error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::airgap::mirror::{Prefix, Rule};

    fn mirror() -> Mirror {
        let prefix = |text| Prefix::parse(text).unwrap();
        let rules = vec![
            Rule { from: None, to: prefix("site:5000/all"), span: None },
            Rule { from: Some(prefix("docker.io")), to: prefix("site:5000/hub"), span: None },
        ];
        Mirror::of_rules(rules, &mut Diagnostics::new())
    }

    const ADDED: &str = "images:\n  mirror:\n";

    #[test]
    fn the_mirror_is_added_to_what_is_there() {
        for (text, output) in [
            ("", "generated"),
            ("# nothing but a remark", "generated"),
            ("settings:\n  cores: 4\noutput: out/x\n# end", "out/x"),
            ("---\nsources:\n- a\n- b\n", "generated"),
        ] {
            let made = with_mirror(text.as_bytes(), &mirror()).unwrap();
            let after = String::from_utf8(made.bytes).unwrap();
            assert!(after.starts_with(text) && after.contains(ADDED), "{after}");
            assert_eq!(made.output, output);
        }
    }

    #[test]
    fn what_cannot_be_added_to_is_refused() {
        for (text, why) in [
            ("images: {mirror: [{to: a.b}]}\n", "has `images` already"),
            ("output: ../elsewhere\n", "has the output folder ../elsewhere"),
            ("output: /abs\n", "has the output folder /abs"),
            ("{output: a}\n", "is not one mapping in blocks"),
            ("output: a\n...\n", "is not one mapping in blocks"),
            ("outputt: a\n", "cannot be read"),
        ] {
            let problem = with_mirror(text.as_bytes(), &mirror()).unwrap_err();
            assert!(problem.message.contains(why), "{text}: {problem}");
            assert_eq!(problem.code.id, "FG944");
        }
    }
}
