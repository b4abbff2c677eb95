//! `flux-gen/archive.json`: what an archive holds. A function of the lock and the platforms: no clock, no host, no version of
//! the program that wrote it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{ABOUT_FILE, FORMAT, Problem, READ_SINCE};
use crate::diag::codes::airgap as codes;
use crate::oci::Digest;

/// What an archive holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct About {
    /// Version of the format: [`FORMAT`].
    pub format: u32,
    /// The first flux-gen that reads this format; what is said to those who have an older one.
    pub needs: String,
    /// The platforms that were asked for, in order; none: all that each image has.
    pub platforms: Vec<String>,
    /// The locked images, in order of their names.
    pub images: Vec<ArchivedImage>,
    /// Which images `docker load` can read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docker: Option<Docker>,
    /// flux-gen itself, if it came along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Tool>,
}

/// An image of the lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArchivedImage {
    /// Its name as written in specs, which is its `org.opencontainers.image.ref.name` in `index.json`.
    pub name: String,
    /// Digest of the published index or manifest: what the lock and the bundles name.
    pub digest: Digest,
    /// Digest of what the archive has in its place: the same, or an index of chosen platforms that is derived from it
    /// ([`crate::airgap::derive`]). The published index is then a blob that `index.json` does not name.
    pub carried: Digest,
    /// Digests of the manifests by platform.
    pub platforms: BTreeMap<String, Digest>,
}

impl ArchivedImage {
    /// Whether only some platforms of the published index are there.
    #[must_use]
    pub fn is_derived(&self) -> bool {
        self.digest != self.carried
    }
}

/// What `manifest.json` offers to programs that read archives of `docker save`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Docker {
    /// The one platform of its images.
    pub platform: String,
    /// Names of images that it leaves out, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub left_out: BTreeMap<String, String>,
}

/// flux-gen itself: its image, which is one of the images although no bundle and no lock names it, and the programs out of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Tool {
    /// Name of the image.
    pub image: String,
    /// Members by platform.
    pub programs: BTreeMap<String, String>,
}

impl About {
    /// Of the present format, without flux-gen itself.
    #[must_use]
    pub fn new(platforms: Vec<String>, images: Vec<ArchivedImage>, docker: Option<Docker>) -> Self {
        Self { format: FORMAT, needs: READ_SINCE.to_owned(), platforms, images, docker, tool: None }
    }

    /// Reads the file.
    ///
    /// # Errors
    /// [`codes::ARCHIVE_NEWER`] for a later format, whatever else is in it; [`codes::ARCHIVE_DAMAGED`] for what is none.
    pub fn parse(place: &str, bytes: &[u8]) -> Result<Self, Problem> {
        #[derive(Deserialize)]
        struct Probe {
            format: u32,
            #[serde(default)]
            needs: String,
        }
        let damaged =
            |e: serde_json::Error| Problem::new(codes::ARCHIVE_DAMAGED, format!("{place}: {ABOUT_FILE}: {e}"));
        let Probe { format, needs } = serde_json::from_slice(bytes).map_err(damaged)?;
        if format > FORMAT {
            let message = format!("{place} has format {format}, and this flux-gen reads format {FORMAT}");
            let needs: String = needs.chars().filter(|c| !c.is_control()).take(40).collect();
            return Err(Problem::new(codes::ARCHIVE_NEWER, message).help(format!("use flux-gen {needs} or later")));
        }
        serde_json::from_slice(bytes).map_err(damaged)
    }

    /// The bytes of the file.
    ///
    /// # Errors
    /// Never: its maps have strings for keys.
    pub fn to_bytes(&self) -> Result<Vec<u8>, Problem> {
        let mut bytes = serde_json::to_vec_pretty(self)
            .map_err(|e| Problem::new(codes::ARCHIVE_DAMAGED, format!("{ABOUT_FILE}: {e}")))?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Whether an image is that of flux-gen itself.
    #[must_use]
    pub fn is_tool(&self, name: &str) -> bool {
        self.tool.as_ref().is_some_and(|tool| tool.image == name)
    }

    /// The image of a name as written in specs.
    #[must_use]
    pub fn image(&self, name: &str) -> Option<&ArchivedImage> {
        self.images.iter().find(|image| image.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_and_read() {
        let digest = Digest::of(b"x");
        let platforms = [("linux/amd64".to_owned(), digest.clone())].into();
        let image = ArchivedImage { name: "ubuntu".to_owned(), digest: digest.clone(), carried: digest, platforms };
        let about = About::new(vec!["linux/amd64".to_owned()], vec![image], None);
        let bytes = about.to_bytes().unwrap();
        assert_eq!(About::parse("a", &bytes), Ok(about.clone()));
        assert!(about.image("ubuntu").is_some_and(|image| !image.is_derived()) && about.image("x").is_none());
    }

    #[test]
    fn later_formats_say_what_they_need() {
        let later = br#"{"format": 2, "needs": "0.9.0", "other": {}}"#;
        let problem = About::parse("a.tar", later).unwrap_err();
        assert_eq!(problem.code, codes::ARCHIVE_NEWER);
        assert_eq!(problem.help.as_deref(), Some("use flux-gen 0.9.0 or later"));
        for bad in [&b""[..], b"{}", br#"{"format": 1, "strange": 1}"#] {
            assert_eq!(About::parse("a", bad).unwrap_err().code, codes::ARCHIVE_DAMAGED);
        }
    }
}
