//! Recipes that compile, resolved: nothing optional is left that a later stage would have to decide.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use serde::Serialize;

/// Processor architecture of an image, with the names that the tools have for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Arch {
    /// 64-bit x86.
    Amd64,
    /// 64-bit ARM.
    Arm64,
}

impl Arch {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Amd64, Self::Arm64];

    /// As in OCI platforms (`GOARCH`).
    #[must_use]
    pub fn oci(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// As in GNU triples, Spack and `uname -m`.
    #[must_use]
    pub fn gnu(self) -> &'static str {
        match self {
            Self::Amd64 => "x86_64",
            Self::Arm64 => "aarch64",
        }
    }

    /// From any of its names.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "amd64" | "x86_64" | "x86-64" | "linux/amd64" => Some(Self::Amd64),
            "arm64" | "aarch64" | "arm" | "linux/arm64" | "linux/arm64/v8" => Some(Self::Arm64),
            _ => None,
        }
    }
}

impl Display for Arch {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.oci())
    }
}

/// A recipe that compiles.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recipe {
    /// Name of its folder.
    pub name: String,
    /// What it makes.
    pub description: String,
    /// Folder for installed packages.
    pub prefix: String,
    /// Folder for the view.
    pub views: String,
    /// Oldest processor, by architecture; in GCC's words for `source`, in Spack's for `spack`.
    pub target: BTreeMap<Arch, String>,
    /// Whether symbols are taken off.
    pub strip: bool,
    /// Systems it can be built on, by name.
    pub systems: BTreeMap<String, System>,
    /// What could not be checked where it was written.
    pub not_checked: Option<String>,
    /// What is built, and how.
    pub how: How,
}

/// What is built, and how.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum How {
    /// Packages one after the other.
    Source(Source),
    /// An environment that Spack installs.
    Spack(Spack),
}

/// A system to build on.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct System {
    /// Image to build in.
    pub base: String,
    /// Packages for apt-get.
    pub apt: Vec<String>,
    /// Packages for dnf.
    pub dnf: Vec<String>,
    /// Shell before packages are installed.
    pub before: Option<String>,
    /// Environment of every later step.
    pub environment: BTreeMap<String, String>,
    /// Folders in front of PATH.
    pub path: Vec<String>,
}

impl System {
    /// Whether the base is pinned by digest.
    #[must_use]
    pub fn is_pinned(&self) -> bool {
        self.base.contains("@sha256:")
    }
}

/// What a recipe of kind `source` builds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Source {
    /// Whether libraries of the system are copied into the tree.
    pub copy_libraries: bool,
    /// The packages, in the order of building.
    pub packages: Vec<Package>,
}

/// A package of a recipe of kind `source`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Package {
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
    /// Where its sources are.
    pub origin: Origin,
    /// How it is built.
    pub build: BuildKind,
    /// Arguments of `configure` or `cmake`.
    pub configure: Vec<String>,
    /// Arguments of `make`.
    pub make: Vec<String>,
    /// Arguments of `make` when installing.
    pub install: Vec<String>,
    /// Shell of a `script` build.
    pub script: Option<String>,
    /// Environment of its steps.
    pub environment: BTreeMap<String, String>,
    /// Changes to its sources.
    pub patches: Vec<Patch>,
    /// Package whose folder it is installed into.
    pub into: Option<String>,
    /// Systems it is built on; empty means all.
    pub systems: Vec<String>,
    /// Needed for building only.
    pub build_only: bool,
}

/// Where the sources of a package are.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// One file for all architectures.
    Download(Download),
    /// A file for each architecture.
    ByArch(BTreeMap<Arch, Download>),
    /// A folder of the recipe, with its files read when the recipe was loaded.
    Folder(FolderFiles),
}

/// The files of a folder of the recipe.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FolderFiles {
    /// Its name in the recipe's folder.
    pub name: String,
    /// SHA-256 of each file by its path in the folder, `x:` before that of an executable one.
    pub digests: BTreeMap<String, String>,
}

/// How a package is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BuildKind {
    /// `configure`, `make`, `make install`.
    Autotools,
    /// `cmake`.
    Cmake,
    /// `make` with PREFIX.
    Make,
    /// `pip install` of one file, without index.
    Python,
    /// A shell script of the recipe.
    Script,
}

/// A file to download.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Download {
    /// Where it is.
    pub url: String,
    /// SHA-256 in lower-case hexadecimal.
    pub sha256: String,
    /// Who recorded the checksum when it was not compared with the file. Words for people: no part of any key.
    #[serde(skip)]
    pub checksum_from: Option<String>,
    /// Its name on disk.
    pub file: String,
}

/// A change to the sources of a package.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Patch {
    /// Where it is.
    pub origin: PatchOrigin,
    /// Folders to take off the names in it.
    pub strip: u32,
}

/// Where a patch is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PatchOrigin {
    /// A file of the recipe's folder, with its SHA-256.
    File {
        /// Its name there.
        name: String,
        /// SHA-256 of its bytes.
        sha256: String,
    },
    /// A file to download.
    Download(Download),
}

/// What a recipe of kind `spack` installs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Spack {
    /// Where Spack is in the base images.
    pub root: String,
    /// What to install.
    pub specs: Vec<String>,
    /// More specs by system.
    pub specs_by_system: BTreeMap<String, Vec<String>>,
    /// Requirements by package.
    pub require: BTreeMap<String, Vec<String>>,
    /// Whether all specs share one version of each package.
    pub unify: bool,
    /// Whether built packages are preferred.
    pub reuse: bool,
    /// Mirrors in order.
    pub mirrors: Vec<Mirror>,
    /// Where packages come from.
    pub install: SpackInstall,
    /// Texts of lock files by `<system>-<architecture>`.
    pub locks: BTreeMap<String, String>,
    /// Packages that stay out of the view.
    pub exclude: Vec<String>,
    /// Whether everything is there without network.
    pub offline: bool,
}

/// Where Spack takes packages from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SpackInstall {
    /// Build caches, else compiled.
    Auto,
    /// Build caches only.
    CacheOnly,
    /// Compiled only.
    Source,
}

/// A mirror of Spack.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mirror {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// Whether it has sources.
    pub source: bool,
    /// Whether it has built packages.
    pub binary: bool,
    /// Whether built packages must be signed.
    pub signed: bool,
}

impl Package {
    /// Whether it is built on a system.
    #[must_use]
    pub fn is_on(&self, system: &str) -> bool {
        self.systems.is_empty() || self.systems.iter().any(|s| s == system)
    }

    /// What is downloaded for it, on one architecture or on all.
    pub fn downloads(&self, arch: Option<Arch>) -> Vec<&Download> {
        let sources: Vec<&Download> = match &self.origin {
            Origin::Download(download) => vec![download],
            Origin::ByArch(downloads) => match arch {
                Some(arch) => downloads.get(&arch).into_iter().collect(),
                None => downloads.values().collect(),
            },
            Origin::Folder(_) => Vec::new(),
        };
        let patches = self.patches.iter().filter_map(|patch| match &patch.origin {
            PatchOrigin::Download(download) => Some(download),
            PatchOrigin::File { .. } => None,
        });
        sources.into_iter().chain(patches).collect()
    }
}

impl Recipe {
    /// The architectures that it can be built for on a system.
    #[must_use]
    pub fn architectures(&self, system: &str) -> Vec<Arch> {
        let fits = |arch: &Arch| match &self.how {
            How::Spack(_) => true,
            How::Source(source) => source.packages.iter().filter(|p| p.is_on(system)).all(|p| match &p.origin {
                Origin::ByArch(downloads) => downloads.contains_key(arch),
                Origin::Download(_) | Origin::Folder(_) => true,
            }),
        };
        Arch::ALL.into_iter().filter(fits).collect()
    }

    /// The word for its kind.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self.how {
            How::Source(_) => "source",
            How::Spack(_) => "spack",
        }
    }
}
