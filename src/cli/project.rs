//! The project: its folder, its file if there is one, where specs come from and bundles go.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use semver::{Version, VersionReq};

use super::error::CommandError;
use super::sources::{Wanted, shown};
use crate::diag::codes::project as codes;
use crate::diag::{Diagnostic, Diagnostics, SourceMap, Span};
use crate::spec::{Project, Spanned};

/// Name of the project file.
pub(crate) const FILE: &str = "flux-gen.yaml";
/// Where specs are when nobody says otherwise.
const DEFAULT_SOURCES: &str = "examples";
/// Where bundles go when nobody says otherwise.
const DEFAULT_OUTPUT: &str = "generated";

/// A project, found and read.
#[derive(Debug)]
pub(crate) struct Found {
    /// Its folder: that of the project file, else the current one.
    pub(crate) root: PathBuf,
    /// Its file, as shown in messages.
    pub(crate) file: Option<PathBuf>,
    /// What the file says.
    pub(crate) written: Option<Project>,
}

impl Found {
    /// Reads the file that was named, else `flux-gen.yaml` of the current folder if there is one.
    ///
    /// # Errors
    /// A file that was named and is not there, or one that cannot be read.
    pub(crate) fn find(
        named: Option<&Path>,
        sources: &mut SourceMap,
        diagnostics: &mut Diagnostics,
    ) -> Result<Self, CommandError> {
        let path = named.unwrap_or(Path::new(FILE));
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(e) if named.is_none() && e.kind() == io::ErrorKind::NotFound => {
                return Ok(Self { root: PathBuf::from("."), file: None, written: None });
            }
            Err(e) => return Err(CommandError::file("read the project file", path, &e)),
        };
        let (written, problems) = Project::read(sources, shown(path), bytes);
        match written.required_version.as_ref().and_then(|r| check_version(r, env!("CARGO_PKG_VERSION"))) {
            // A file for another version may have any number of other problems, and none of them matters.
            Some(wrong) => diagnostics.push(wrong),
            None => diagnostics.extend(problems),
        }
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(Self { root: folder.to_path_buf(), file: Some(path.to_path_buf()), written: Some(written) })
    }

    /// Whether specs are found without naming them on the command line.
    pub(crate) fn names_sources(&self) -> bool {
        self.written.as_ref().is_some_and(|p| p.sources.is_some()) || self.inside(DEFAULT_SOURCES).exists()
    }

    /// What to read: the paths of the command line, else the project's sources, else `examples`.
    pub(crate) fn wanted(&self, paths: &[PathBuf]) -> Result<Vec<Wanted>, CommandError> {
        if !paths.is_empty() {
            return Ok(paths.iter().map(|path| Wanted { path: path.clone(), named_at: None }).collect());
        }
        if let Some(sources) = self.written.as_ref().and_then(|p| p.sources.as_ref()) {
            let wanted = |s: &Spanned<String>| Wanted { path: self.inside(&s.value), named_at: Some(s.span) };
            return Ok(sources.value.iter().map(wanted).collect());
        }
        let examples = self.inside(DEFAULT_SOURCES);
        if !examples.exists() {
            let message = format!("there is no folder {}, where specs are looked for by default", shown(&examples));
            let help = "name files or folders: `flux-gen build PATH`; `flux-gen new NAME` prints a spec to start from";
            return Err(CommandError::operation(message).help(help));
        }
        Ok(vec![Wanted { path: examples, named_at: None }])
    }

    /// Where bundles go: what the command line says, else the project, else `generated`.
    pub(crate) fn output(&self, named: Option<&Path>) -> PathBuf {
        let written = || self.written.as_ref().and_then(|p| p.output.as_ref());
        match named {
            Some(path) => path.to_path_buf(),
            None => self.inside(written().map_or(DEFAULT_OUTPUT, |o| &o.value)),
        }
    }

    /// Where bundles go, seen from the project's folder.
    pub(crate) fn output_path(&self) -> String {
        self.written.as_ref().and_then(|p| p.output.as_ref()).map_or(DEFAULT_OUTPUT.to_owned(), |o| o.value.clone())
    }

    /// A path of the project file, seen from the current folder.
    pub(crate) fn inside(&self, path: &str) -> PathBuf {
        if self.root == Path::new(".") { PathBuf::from(path) } else { self.root.join(path) }
    }
}

/// What is wrong when `version` is not what the project asks for.
fn check_version(required: &Spanned<String>, version: &str) -> Option<Diagnostic> {
    let span: Span = required.span;
    let wanted = match VersionReq::parse(&required.value) {
        Ok(wanted) => wanted,
        Err(e) => {
            let message = format!("`{}` is no version requirement: {e}", required.value);
            return Some(Diagnostic::error(codes::BAD_REQUIREMENT, span, message).help("for example: \">=0.1, <0.3\""));
        }
    };
    // Cargo writes the version; were it no version, no requirement could be met.
    let fits = Version::parse(version).is_ok_and(|version| wanted.matches(&version));
    (!fits).then(|| {
        let message = format!("this project needs flux-gen {}, and this is {version}", required.value);
        Diagnostic::error(codes::WRONG_VERSION, span, message)
            .help("use a version that fits; another one may write other files")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::FileId;

    #[test]
    fn required_versions() {
        for (required, version, expect) in [
            (">=0.1, <0.3", "0.2.5", None),
            ("0.2", "0.2.5", None),
            ("=0.2.4", "0.2.5", Some("FG491")),
            (">=1", "0.2.5", Some("FG491")),
            ("new", "0.2.5", Some("FG490")),
            ("", "0.2.5", Some("FG490")),
        ] {
            let required = Spanned::new(required.to_owned(), Span { file: FileId(0), start: 0, end: 0 });
            assert_eq!(check_version(&required, version).map(|d| d.code.id), expect, "{required:?}");
        }
    }
}
