//! From the paths of a command line to the texts to compile.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use super::error::plain;
use crate::bundle::store::STORE_FOLDER;
use crate::diag::codes::files as codes;
use crate::diag::{Diagnostic, Diagnostics, Span};
use crate::parallel;

/// Name of standard input in messages.
const STDIN: &str = "<stdin>";
/// Name of standard input in what is generated.
const STDIN_ORIGIN: &str = "-";

/// A path to read, and where it was named if that was in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// A file, a folder, or `-`.
    pub(crate) path: PathBuf,
    /// Its place in the project file.
    pub(crate) named_at: Option<Span>,
}

/// A text that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    /// Its path as given on the command line: what messages show.
    pub(crate) shown: String,
    /// Its path seen from the project's folder, the same on every machine: what generated files name.
    pub(crate) origin: String,
    /// What it holds.
    pub(crate) bytes: Vec<u8>,
}

/// Where to look and what to pass over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Surroundings<'a> {
    /// The project's folder.
    pub(crate) root: &'a Path,
    /// The output folder, which is passed over, as the certificate store and any folder called `generated` are; `None`: no
    /// folder is.
    pub(crate) output: Option<&'a Path>,
    /// The project file, which is no spec.
    pub(crate) project_file: Option<&'a Path>,
}

/// Reads everything that is wanted; texts are ordered by origin, whatever the order of the paths, and each file comes once.
pub(crate) fn read(
    wanted: &[Wanted],
    around: Surroundings<'_>,
    stdin: &mut dyn Read,
    diagnostics: &mut Diagnostics,
) -> Vec<Text> {
    let mut finder = Finder::new(around, diagnostics);
    let mut texts = Vec::new();
    let mut stdin_read = false;
    for one in wanted {
        if one.path.as_os_str() != "-" {
            finder.add(one);
        } else if stdin_read {
            finder.diagnostics.push(at(one, codes::STDIN_TWICE, "`-` is given more than once".to_owned()));
        } else {
            stdin_read = true;
            texts.extend(read_stdin(stdin, finder.diagnostics));
        }
    }
    let Finder { found, diagnostics, .. } = finder;
    let root = absolute(around.root);
    let contents = parallel::map(&found, |file| fs::read(&file.path));
    for (file, content) in found.into_iter().zip(contents) {
        match content {
            Ok(bytes) => {
                let origin = origin_in(&file.path, root.as_deref());
                texts.push(Text { shown: shown(&file.path), origin, bytes });
            }
            Err(error) => diagnostics.push(unreadable(&file, &error)),
        }
    }
    texts.sort_by(|a, b| (&a.origin, &a.shown).cmp(&(&b.origin, &b.shown)));
    texts
}

fn read_stdin(stdin: &mut dyn Read, diagnostics: &mut Diagnostics) -> Option<Text> {
    let mut bytes = Vec::new();
    match stdin.read_to_end(&mut bytes) {
        Ok(_) => Some(Text { shown: STDIN.to_owned(), origin: STDIN_ORIGIN.to_owned(), bytes }),
        Err(error) => {
            let message = format!("cannot read standard input: {}", plain(&error));
            diagnostics.push(Diagnostic::global_error(codes::PATH_UNREADABLE, message));
            None
        }
    }
}

/// Collects files.
struct Finder<'a> {
    /// Folders that are passed over.
    ours: Vec<PathBuf>,
    skips_generated: bool,
    project_file: Option<PathBuf>,
    /// Files by their real path, so that a file reached on two ways is read once.
    seen: BTreeSet<PathBuf>,
    found: Vec<Wanted>,
    diagnostics: &'a mut Diagnostics,
}

impl<'a> Finder<'a> {
    fn new(around: Surroundings<'_>, diagnostics: &'a mut Diagnostics) -> Self {
        // Neither needs to exist: then there is nothing to pass over.
        let store = around.root.join(STORE_FOLDER);
        let ours = around.output.into_iter().flat_map(|output| [output, &store]);
        let ours = ours.filter_map(|folder| fs::canonicalize(folder).ok()).collect();
        let project_file = around.project_file.and_then(|p| fs::canonicalize(p).ok());
        Self {
            ours,
            skips_generated: around.output.is_some(),
            project_file,
            seen: BTreeSet::new(),
            found: Vec::new(),
            diagnostics,
        }
    }

    /// Adds a path that the user named.
    fn add(&mut self, wanted: &Wanted) {
        match fs::metadata(&wanted.path) {
            Ok(metadata) if metadata.is_dir() => {
                let before = self.seen.len();
                self.folder(wanted, &mut Vec::new());
                if self.seen.len() == before && !self.found.iter().any(|f| f.path.starts_with(&wanted.path)) {
                    self.diagnostics.push(no_specs(wanted));
                }
            }
            Ok(_) => self.file(wanted),
            Err(error) => self.diagnostics.push(unreadable(wanted, &error)),
        }
    }

    /// Adds a file.
    fn file(&mut self, file: &Wanted) {
        match fs::canonicalize(&file.path) {
            Ok(real) => self.real_file(real, file),
            Err(error) => self.diagnostics.push(unreadable(file, &error)),
        }
    }

    /// Adds a file unless it is there already.
    fn real_file(&mut self, real: PathBuf, file: &Wanted) {
        if self.seen.insert(real) {
            self.found.push(file.clone());
        }
    }

    /// Adds what is in a folder and below. `above` holds the real paths of the folders we are in, because links may lead back.
    fn folder(&mut self, folder: &Wanted, above: &mut Vec<PathBuf>) {
        let real = fs::canonicalize(&folder.path);
        let entries = fs::read_dir(&folder.path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let (real, mut entries) = match (real, entries) {
            (Ok(real), Ok(entries)) => (real, entries),
            (Err(error), _) | (_, Err(error)) => return self.diagnostics.push(unreadable(folder, &error)),
        };
        if above.contains(&real) {
            return;
        }
        above.push(real.clone());
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let inner = Wanted { path: entry.path(), named_at: folder.named_at };
            if is_hidden(&inner.path) {
                continue;
            }
            // The listing says so itself, without a look at each file.
            if entry.file_type().is_ok_and(|kind| kind.is_file()) {
                let file = real.join(entry.file_name());
                if is_spec(&inner.path) && self.project_file.as_ref() != Some(&file) {
                    self.real_file(file, &inner);
                }
                continue;
            }
            match fs::metadata(&inner.path) {
                Ok(metadata) if metadata.is_dir() => {
                    if !self.is_ours(&inner.path) {
                        self.folder(&inner, above);
                    }
                }
                Ok(_) if is_spec(&inner.path) && !self.is_project_file(&inner.path) => self.file(&inner),
                Ok(_) => {}
                Err(error) if is_spec(&inner.path) => self.diagnostics.push(unreadable(&inner, &error)),
                // A dangling link that would not be a spec is none of our business.
                Err(_) => {}
            }
        }
        above.pop();
    }

    /// Whether what is in a folder comes from flux-gen.
    fn is_ours(&self, folder: &Path) -> bool {
        self.skips_generated && folder.file_name().is_some_and(|name| name == "generated")
            || fs::canonicalize(folder).is_ok_and(|real| self.ours.contains(&real))
    }

    fn is_project_file(&self, file: &Path) -> bool {
        self.project_file.is_some() && fs::canonicalize(file).ok() == self.project_file
    }
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

fn is_spec(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "yaml" || e == "yml" || e == "json")
}

/// A path for people: without `./`, with `/`, control characters and what is not UTF-8 replaced.
pub(crate) fn shown(path: &Path) -> String {
    let clean: PathBuf = path.components().filter(|c| *c != Component::CurDir).collect();
    let text = if clean.as_os_str().is_empty() { ".".into() } else { clean.to_string_lossy() };
    let text = if std::path::MAIN_SEPARATOR == '/' { text } else { text.replace('\\', "/").into() };
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// A path seen from the project's folder; of files outside it only the name, because where they lie differs from machine to
/// machine.
pub(crate) fn origin(path: &Path, root: &Path) -> String {
    if path.as_os_str() == STDIN_ORIGIN {
        return STDIN_ORIGIN.to_owned();
    }
    origin_in(path, absolute(root).as_deref())
}

/// As [`origin`], for a folder whose absolute path is known.
fn origin_in(path: &Path, root: Option<&Path>) -> String {
    let inside = absolute(path).zip(root).and_then(|(p, r)| p.strip_prefix(r).ok().map(Path::to_path_buf));
    match inside {
        Some(inside) => shown(&inside),
        None => shown(Path::new(path.file_name().unwrap_or(path.as_os_str()))),
    }
}

fn absolute(path: &Path) -> Option<PathBuf> {
    Some(normalized(&std::path::absolute(path).ok()?))
}

/// Takes `..` away as text, as a shell does.
fn normalized(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    clean
}

fn unreadable(wanted: &Wanted, error: &io::Error) -> Diagnostic {
    let message = format!("cannot read {}: {}", shown(&wanted.path), plain(error));
    at(wanted, codes::PATH_UNREADABLE, message)
}

fn no_specs(wanted: &Wanted) -> Diagnostic {
    let message = format!("there are no .yaml, .yml or .json files in {}", shown(&wanted.path));
    at(wanted, codes::NO_SPECS, message).help("`flux-gen new NAME` prints a spec to start from")
}

fn at(wanted: &Wanted, code: crate::diag::Code, message: String) -> Diagnostic {
    match wanted.named_at {
        Some(span) => Diagnostic::error(code, span, message),
        None => Diagnostic::global_error(code, message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Tree(tempfile::TempDir);

    impl Tree {
        fn new(files: &[&str]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            for file in files {
                let path = folder.path().join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, file).unwrap();
            }
            Self(folder)
        }

        /// Origins (or what is wrong) of the given paths, relative to the tree.
        fn read(&self, paths: &[&str]) -> (Vec<String>, Vec<&'static str>) {
            let root = self.0.path();
            let wanted: Vec<_> = paths
                .iter()
                .map(|p| if *p == "-" { PathBuf::from("-") } else { root.join(p) })
                .map(|path| Wanted { path, named_at: None })
                .collect();
            let (output, project) = (root.join("out"), root.join("flux-gen.yaml"));
            let around = Surroundings { root, output: Some(&output), project_file: Some(&project) };
            let mut diagnostics = Diagnostics::new();
            let texts = read(&wanted, around, &mut &b"in"[..], &mut diagnostics);
            let names = texts.into_iter().map(|t| t.origin).collect();
            (names, diagnostics.iter().map(|d| d.code.id).collect())
        }
    }

    #[test]
    fn folders_are_walked_in_order_and_what_is_no_spec_is_passed_over() {
        let tree = Tree::new(&[
            "b.yaml",
            "a/z.yml",
            "a/b.json",
            "a/n.txt",
            "a/.hidden.yaml",
            ".git/x.yaml",
            "a/generated/x.yaml",
            "out/x.yaml",
            "certs/hpc/a.sops.yaml",
            "a/certs/x.yaml",
            "flux-gen.yaml",
            "é x.yaml",
        ]);
        let (names, problems) = tree.read(&["."]);
        assert_eq!(names, ["a/b.json", "a/certs/x.yaml", "a/z.yml", "b.yaml", "é x.yaml"]);
        assert!(problems.is_empty());
    }

    #[test]
    fn a_named_file_is_read_whatever_its_name_and_only_once() {
        let tree = Tree::new(&["a/n.txt", "a/.h.yaml"]);
        let (names, problems) = tree.read(&["a/n.txt", "a/../a/n.txt", "a/.h.yaml", "-"]);
        assert_eq!((names, problems), (vec!["-".into(), "a/.h.yaml".into(), "a/n.txt".into()], vec![]));
    }

    #[test]
    fn every_problem_is_reported() {
        let tree = Tree::new(&["a/n.txt", "b.yaml"]);
        let (names, problems) = tree.read(&["none", "a", "-", "-", "b.yaml/x"]);
        assert_eq!(names, ["-"]);
        assert_eq!(problems, ["FG701", "FG702", "FG703", "FG701"]);
    }

    #[test]
    fn a_folder_given_twice_is_no_empty_folder() {
        let tree = Tree::new(&["a/x.yaml"]);
        assert_eq!(tree.read(&["a", "a"]), (vec!["a/x.yaml".to_owned()], vec![]));
    }

    #[cfg(unix)]
    #[test]
    fn links_that_lead_back_end_and_dangling_ones_are_reported() {
        let tree = Tree::new(&["a/x.yaml"]);
        std::os::unix::fs::symlink("..", tree.0.path().join("a/up")).unwrap();
        std::os::unix::fs::symlink("nowhere", tree.0.path().join("a/gone.yaml")).unwrap();
        assert_eq!(tree.read(&["a"]), (vec!["a/x.yaml".to_owned()], vec!["FG701"]));
    }

    #[test]
    fn names() {
        for (path, expect) in [("./a//b.yaml", "a/b.yaml"), (".", "."), ("../x", "../x"), ("a\nb", "a\u{fffd}b")] {
            assert_eq!(shown(Path::new(path)), expect);
        }
        assert_eq!(origin(Path::new("/p/q/a.yaml"), Path::new("/p")), "q/a.yaml");
        assert_eq!(origin(Path::new("/p/q/../a.yaml"), Path::new("/p/")), "a.yaml");
        assert_eq!(origin(Path::new("/elsewhere/a.yaml"), Path::new("/p")), "a.yaml");
    }
}
