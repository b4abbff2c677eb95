//! `images.lock`: what every image name meant when somebody asked the registries.
//!
//! TOML, sorted, with nothing in it that differs between two machines or two days: the same answers give the same bytes.
//! `inputs` is a digest over all names and platforms that were asked for, so that a lock which does not belong to the specs
//! any more is noticed without asking a registry.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::oci::{Digest, Platform, Reference};
use crate::spec::pins::{ImageFacts, ViewFacts};

/// The file, beside the project file.
pub const LOCK_FILE: &str = "images.lock";
/// Version of the format.
const VERSION: u32 = 1;
/// The command that writes [`LOCK_FILE`].
pub const COMMAND: &str = "lock";

/// All images of a project.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lock {
    /// The platforms that were asked for; none: all that each image has.
    pub platforms: BTreeSet<Platform>,
    /// By name as written in specs.
    pub images: BTreeMap<String, LockedImage>,
}

/// One image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LockedImage {
    /// Digest of the index, or of the manifest where there is no index.
    pub digest: Digest,
    /// Media type of that document.
    pub media_type: String,
    /// Bytes of that document.
    pub size: u64,
    /// Where the answer came from.
    #[serde(default, skip_serializing_if = "Origin::is_registry")]
    pub source: Origin,
    /// The index of the chosen platforms alone, where they are not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub derived: Option<Derived>,
    /// Its images, by platform.
    #[serde(rename = "platform", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub platforms: BTreeMap<String, LockedPlatform>,
}

/// Where an image was found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// In the registry of its name.
    #[default]
    Registry,
    /// In a layout or archive: the path relative to the project.
    File(String),
}

impl Origin {
    fn is_registry(&self) -> bool {
        *self == Self::Registry
    }
}

/// An index of chosen platforms ([`super::derive`]).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Derived {
    /// Its digest.
    pub digest: Digest,
    /// Its bytes.
    pub size: u64,
}

/// The image of one platform.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LockedPlatform {
    /// Digest of its manifest.
    pub digest: Digest,
    /// Bytes of its manifest.
    pub size: u64,
    /// Bytes of configuration and layers together, as they are transferred.
    pub content: u64,
    /// What the image has, when a view is to run in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<ImageFacts>,
    /// What the view needs, when it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view: Option<ViewFacts>,
}

/// The file as it is written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Written {
    version: u32,
    inputs: Digest,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    platforms: Vec<String>,
    #[serde(rename = "image", default)]
    images: BTreeMap<String, LockedImage>,
}

/// Why a text is no lock.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// Written by a later flux-gen.
    #[error("it has format {0} and this flux-gen knows {VERSION}")]
    Newer(u32),
    /// Not TOML of this form. The text has line and column.
    #[error("{0}")]
    Form(String),
    /// Its own digest of what was asked for is not that of its contents: it was edited or badly merged.
    #[error("its `inputs` do not belong to its images: it was edited, or two versions were merged")]
    Edited,
}

/// In what a lock differs from what is asked for now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Staleness {
    /// Names that the lock does not have.
    pub missing: Vec<String>,
    /// Names that nobody uses any more.
    pub unused: Vec<String>,
    /// Other platforms are wanted now.
    pub platforms: bool,
}

impl Staleness {
    /// Nothing differs.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        self == &Self::default()
    }
}

impl Lock {
    /// Reads a lock.
    ///
    /// # Errors
    /// When it is not one, or its parts do not belong together.
    pub fn parse(text: &str) -> Result<Self, LockError> {
        #[derive(Deserialize)]
        struct Probe {
            version: u32,
        }
        let form = |e: toml::de::Error| LockError::Form(e.to_string().trim_end().to_owned());
        let Probe { version } = toml::from_str(text).map_err(form)?;
        if version != VERSION {
            return Err(LockError::Newer(version));
        }
        let written: Written = toml::from_str(text).map_err(form)?;
        let platforms: Result<BTreeSet<Platform>, _> = written.platforms.iter().map(|p| p.parse()).collect();
        let platforms = platforms.map_err(|e: crate::oci::Error| LockError::Form(e.to_string()))?;
        let lock = Self { platforms, images: written.images };
        if lock.inputs() != written.inputs {
            return Err(LockError::Edited);
        }
        Ok(lock)
    }

    /// The text of the file.
    ///
    /// # Errors
    /// Never for names without control characters, which references do not have.
    pub fn to_text(&self) -> Result<String, LockError> {
        self.to_text_by(COMMAND)
    }

    /// The text of a lock that another command writes: `recipe lock`.
    ///
    /// # Errors
    /// As [`Self::to_text`].
    pub fn to_text_by(&self, command: &str) -> Result<String, LockError> {
        let written = Written {
            version: VERSION,
            inputs: self.inputs(),
            platforms: self.platforms.iter().map(ToString::to_string).collect(),
            images: self.images.clone(),
        };
        let body = toml::to_string(&written).map_err(|e| LockError::Form(e.to_string()))?;
        let made = format!("# Made by `flux-gen {command}`; do not edit. ");
        Ok(format!("{made}`flux-gen {command} --update` asks the registries again.\n{body}"))
    }

    /// Digest over everything that was asked for.
    fn inputs(&self) -> Digest {
        let names: Vec<&String> = self.images.keys().collect();
        let platforms: Vec<String> = self.platforms.iter().map(ToString::to_string).collect();
        Digest::of(serde_json::json!({ "images": names, "platforms": platforms }).to_string().as_bytes())
    }

    /// Compares with what is asked for now.
    #[must_use]
    pub fn staleness(&self, names: &BTreeSet<String>, platforms: &BTreeSet<Platform>) -> Staleness {
        Staleness {
            missing: names.iter().filter(|name| !self.images.contains_key(*name)).cloned().collect(),
            unused: self.images.keys().filter(|name| !names.contains(*name)).cloned().collect(),
            platforms: *platforms != self.platforms,
        }
    }
}

/// What a bundle writes for a name: its repository with the digest. `None` for a name that is no reference.
#[must_use]
pub fn pinned_name(name: &str, image: &LockedImage) -> Option<String> {
    name.parse::<Reference>().ok()?;
    let repository = match name.rsplit_once('/') {
        Some((path, last)) => format!("{path}/{}", last.split([':', '@']).next().unwrap_or(last)),
        None => name.split([':', '@']).next().unwrap_or(name).to_owned(),
    };
    Some(format!("{repository}@{}", image.digest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> Lock {
        let platform = |text: &str| LockedPlatform {
            digest: Digest::of(text.as_bytes()),
            size: 500,
            content: 1 << 20,
            facts: None,
            view: None,
        };
        let image = |text: &str, source: Origin| LockedImage {
            digest: Digest::of(text.as_bytes()),
            media_type: crate::oci::media::INDEX.to_owned(),
            size: 700,
            source,
            derived: Some(Derived { digest: Digest::of(b"derived"), size: 300 }),
            platforms: [("linux/amd64".to_owned(), platform("a")), ("linux/arm64".to_owned(), platform("b"))].into(),
        };
        Lock {
            platforms: ["linux/arm64", "linux/amd64"].iter().map(|p| p.parse().unwrap()).collect(),
            images: [
                ("ubuntu:noble".to_owned(), image("u", Origin::Registry)),
                ("ghcr.io/a/b@sha256:0".to_owned(), image("g", Origin::File("images/b.tar".to_owned()))),
            ]
            .into(),
        }
    }

    #[test]
    fn text_is_stable_and_read_back() {
        let lock = lock();
        let text = lock.to_text().unwrap();
        assert_eq!(Lock::parse(&text), Ok(lock.clone()));
        assert_eq!(Lock::parse(&text).unwrap().to_text().unwrap(), text);
        assert!(text.starts_with("# Made by `flux-gen lock`"), "{text}");
        let (ghcr, ubuntu) = (text.find("[image.\"ghcr.io/a/b"), text.find("[image.\"ubuntu:noble\"]"));
        assert!(ghcr.is_some() && ghcr < ubuntu, "{text}");
        let empty = Lock::default();
        assert_eq!(Lock::parse(&empty.to_text().unwrap()), Ok(empty));
    }

    #[test]
    fn what_was_edited_or_is_of_another_version_is_refused() {
        let text = lock().to_text().unwrap();
        assert_eq!(Lock::parse(&text.replace("ubuntu:noble", "ubuntu:jammy")), Err(LockError::Edited));
        assert_eq!(Lock::parse(&text.replace("linux/arm64\"]", "linux/s390x\"]")), Err(LockError::Edited));
        assert_eq!(Lock::parse(&text.replace("version = 1", "version = 2")), Err(LockError::Newer(2)));
        for bad in ["", "version = 1", "version = 1\ninputs = \"x\"", "nonsense", &text.replace("size", "sise")] {
            assert!(matches!(Lock::parse(bad), Err(LockError::Form(_))), "{bad}");
        }
    }

    #[test]
    fn pinned_names_keep_the_repository_as_written() {
        let image = &lock().images["ubuntu:noble"];
        for (name, expect) in [
            ("ubuntu:noble", Some("ubuntu@")),
            ("ubuntu", Some("ubuntu@")),
            ("localhost:5000/a/b", Some("localhost:5000/a/b@")),
            ("localhost:5000/a/b:1", Some("localhost:5000/a/b@")),
            (
                "ghcr.io/a/b:1@sha256:0000000000000000000000000000000000000000000000000000000000000000",
                Some("ghcr.io/a/b@"),
            ),
            ("Not A Name", None),
        ] {
            assert_eq!(pinned_name(name, image), expect.map(|e| format!("{e}{}", image.digest)), "{name}");
        }
    }

    #[test]
    fn staleness_names_what_differs() {
        let lock = lock();
        let names: BTreeSet<String> = lock.images.keys().cloned().collect();
        assert!(lock.staleness(&names, &lock.platforms).is_fresh());
        let wanted: BTreeSet<String> = ["ubuntu:noble", "new:1"].map(str::to_owned).into();
        let stale = lock.staleness(&wanted, &BTreeSet::new());
        assert_eq!(stale.missing, ["new:1"]);
        assert_eq!(stale.unused, ["ghcr.io/a/b@sha256:0"]);
        assert!(stale.platforms);
    }
}
