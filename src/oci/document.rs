//! Indexes and image manifests, read with limits. Their bytes are never written anew: what is changed becomes a new document.

use serde::{Deserialize, Serialize};

use super::descriptor::{Annotations, Descriptor, null_is_default};
use super::error::{Error, ErrorKind};
use super::media::{self, Kind};

/// Most bytes of an index, manifest or configuration: 4 MiB, which the distribution specification asks of registries.
pub const DOCUMENT_LIMIT: u64 = 4 << 20;

fn two() -> u32 {
    2
}

/// An image index (`image-index.md`), or Docker's manifest list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Index {
    /// Always 2.
    #[serde(default = "two")]
    pub schema_version: u32,
    /// Its own media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Kind of an artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// What it holds.
    #[serde(default, deserialize_with = "null_is_default")]
    pub manifests: Vec<Descriptor>,
    /// What it is about (referrers).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "Annotations::is_empty", deserialize_with = "null_is_default")]
    pub annotations: Annotations,
}

impl Index {
    /// An OCI index of these.
    #[must_use]
    pub fn new(manifests: Vec<Descriptor>) -> Self {
        Self {
            schema_version: 2,
            media_type: Some(media::INDEX.to_owned()),
            artifact_type: None,
            manifests,
            subject: None,
            annotations: Annotations::new(),
        }
    }
}

/// An image manifest (`manifest.md`), or Docker's schema 2.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Always 2.
    #[serde(default = "two")]
    pub schema_version: u32,
    /// Its own media type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// Kind of an artifact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// The configuration.
    pub config: Descriptor,
    /// The layers, lowest first.
    #[serde(default, deserialize_with = "null_is_default")]
    pub layers: Vec<Descriptor>,
    /// What it is about (referrers).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "Annotations::is_empty", deserialize_with = "null_is_default")]
    pub annotations: Annotations,
}

impl Manifest {
    /// An OCI image manifest.
    #[must_use]
    pub fn new(config: Descriptor, layers: Vec<Descriptor>) -> Self {
        Self {
            schema_version: 2,
            media_type: Some(media::MANIFEST.to_owned()),
            artifact_type: None,
            config,
            layers,
            subject: None,
            annotations: Annotations::new(),
        }
    }

    /// An artifact manifest without configuration; its config is [`empty_object`].
    #[must_use]
    pub fn artifact(artifact_type: &str, layers: Vec<Descriptor>) -> Self {
        let (config, _) = empty_object();
        Self { artifact_type: Some(artifact_type.to_owned()), ..Self::new(config, layers) }
    }

    /// Configuration and layers.
    pub fn blobs(&self) -> impl Iterator<Item = &Descriptor> {
        std::iter::once(&self.config).chain(&self.layers)
    }
}

/// The empty object `{}` of artifacts without configuration: descriptor and bytes.
#[must_use]
pub fn empty_object() -> (Descriptor, &'static [u8]) {
    (Descriptor::of(media::EMPTY, b"{}"), b"{}")
}

/// An index or a manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Document {
    /// An index.
    Index(Box<Index>),
    /// An image manifest.
    Manifest(Box<Manifest>),
}

impl Document {
    /// Reads a document. `media_type` is what a descriptor or a registry said it is; when it says nothing useful the
    /// document's own word counts. `place` is for messages.
    ///
    /// # Errors
    /// [`ErrorKind::Document`] when it is larger than [`DOCUMENT_LIMIT`], no JSON, no document of the specification, of
    /// Docker's schema 1, or when the media types contradict each other (a known attack: distribution specification,
    /// GHSA-mc8v-mgrf-8f4m).
    pub fn parse(place: &str, media_type: &str, bytes: &[u8]) -> Result<Self, Error> {
        let bad = |why: String| Error::new(ErrorKind::Document, format!("{place}: {why}"));
        check_size(place, bytes.len() as u64)?;
        let probe: Probe = from_slice(place, bytes)?;
        if probe.schema_version == Some(1) {
            return Err(
                bad("Docker's schema 1 is not read".to_owned()).help("push the image again with a current program")
            );
        }
        let known = |kind: &Kind| *kind != Kind::Blob;
        let own = probe.media_type.as_deref().filter(|own| !own.is_empty()).map(Kind::of);
        let said = Some(Kind::of(media_type)).filter(known);
        let looks = match (probe.manifests.is_some(), probe.layers.is_some() || probe.config.is_some()) {
            (true, true) => return Err(bad("it has both `manifests` and `layers`".to_owned())),
            (true, false) => Some(Kind::Index),
            (false, true) => Some(Kind::Manifest),
            (false, false) => None,
        };
        let kind = said.or(own.filter(known)).or(looks);
        // A word of its own that nobody knows contradicts an announcement, too.
        let counts = |own: &Kind| known(own) || said.is_some();
        if own.filter(counts).is_some_and(|own| Some(own) != kind) || looks.is_some_and(|looks| Some(looks) != kind) {
            return Err(bad(format!("it is not of the media type {media_type} that was announced")));
        }
        match kind {
            Some(Kind::Index) => Ok(Self::Index(Box::new(from_slice(place, bytes)?))),
            Some(Kind::Manifest) => Ok(Self::Manifest(Box::new(from_slice(place, bytes)?))),
            _ => Err(bad("it is neither an image manifest nor an index".to_owned())),
        }
    }

    /// Its media type: its own word, else that of the specification.
    #[must_use]
    pub fn media_type(&self) -> &str {
        match self {
            Self::Index(index) => index.media_type.as_deref().unwrap_or(media::INDEX),
            Self::Manifest(manifest) => manifest.media_type.as_deref().unwrap_or(media::MANIFEST),
        }
    }

    /// What it is about, for referrers.
    #[must_use]
    pub fn subject(&self) -> Option<&Descriptor> {
        match self {
            Self::Index(index) => index.subject.as_ref(),
            Self::Manifest(manifest) => manifest.subject.as_ref(),
        }
    }

    /// Everything that has to be there before it: manifests of an index; configuration and layers of a manifest.
    #[must_use]
    pub fn children(&self) -> Vec<&Descriptor> {
        match self {
            Self::Index(index) => index.manifests.iter().collect(),
            Self::Manifest(manifest) => manifest.blobs().collect(),
        }
    }

    /// The descriptor that a list of referrers has of it: `artifactType` is that of the manifest, else the media type of
    /// its configuration (distribution specification, "Listing Referrers").
    #[must_use]
    pub fn referrer(&self, digest: super::Digest, size: u64) -> Descriptor {
        let mut made = Descriptor::new(self.media_type(), digest, size);
        (made.artifact_type, made.annotations) = match self {
            Self::Index(index) => (index.artifact_type.clone(), index.annotations.clone()),
            Self::Manifest(manifest) => {
                let kind = manifest.artifact_type.clone().filter(|t| !t.is_empty());
                (kind.or_else(|| Some(manifest.config.media_type.clone())), manifest.annotations.clone())
            }
        };
        made
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Probe {
    schema_version: Option<u32>,
    media_type: Option<String>,
    manifests: Option<serde::de::IgnoredAny>,
    layers: Option<serde::de::IgnoredAny>,
    config: Option<serde::de::IgnoredAny>,
}

/// Refuses documents that no registry takes.
///
/// # Errors
/// [`ErrorKind::Document`].
pub fn check_size(place: &str, size: u64) -> Result<(), Error> {
    if size <= DOCUMENT_LIMIT {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Document, format!("{place}: {size} bytes are more than the 4 MiB of any such document")))
}

/// JSON with a message that says where it came from. Nothing of the content is shown.
pub(super) fn from_slice<'a, T: Deserialize<'a>>(place: &str, bytes: &'a [u8]) -> Result<T, Error> {
    serde_json::from_slice(bytes).map_err(|e| {
        let what =
            if e.is_data() { e.to_string() } else { format!("not JSON at line {} column {}", e.line(), e.column()) };
        Error::new(ErrorKind::Document, format!("{place}: {what}"))
    })
}

/// Compact JSON. Only maps with keys that are no strings could fail, and the types of this module have none.
pub(super) fn to_vec<T: Serialize>(value: &T) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(value).map_err(|e| Error::new(ErrorKind::Document, format!("cannot write JSON: {e}")))
}

#[cfg(test)]
mod tests {
    use super::super::Digest;
    use super::*;

    fn manifest() -> Manifest {
        Manifest::new(Descriptor::of(media::CONFIG, b"{}"), vec![Descriptor::of(media::LAYER, b"layer")])
    }

    #[test]
    fn kinds_are_told_by_what_was_announced_or_by_content() {
        let bytes = to_vec(&manifest()).unwrap();
        for said in [media::MANIFEST, "application/octet-stream", ""] {
            let read = Document::parse("x", said, &bytes).unwrap();
            assert_eq!(read, Document::Manifest(Box::new(manifest())), "{said}");
            assert_eq!(read.children().len(), 2);
        }
        let plain = br#"{"schemaVersion":2,"manifests":null}"#;
        assert!(Document::parse("x", "", plain).is_err());
        assert!(matches!(Document::parse("x", media::INDEX, plain), Ok(Document::Index(_))));
        let strange = br#"{"mediaType":"text/x","schemaVersion":2,"manifests":[]}"#;
        assert!(matches!(Document::parse("x", "", strange), Ok(Document::Index(_))));
    }

    #[test]
    fn contradictions_and_strangers_are_refused() {
        let bytes = to_vec(&manifest()).unwrap();
        let both = br#"{"schemaVersion":2,"manifests":[],"layers":[],"config":{}}"#;
        let v1 = br#"{"schemaVersion":1,"fsLayers":[]}"#;
        let cases: [(&str, &[u8], &str); 8] = [
            (media::INDEX, &bytes, "not of the media type"),
            (media::INDEX, br#"{"mediaType":"text/x","schemaVersion":2}"#, "not of the media type"),
            ("", both, "both"),
            ("", v1, "schema 1"),
            ("", b"{}", "neither"),
            ("", b"[1", "not JSON at line 1"),
            (media::MANIFEST, br#"{"layers":[]}"#, "missing field `config`"),
            ("", br#"{"mediaType":7}"#, "invalid type"),
        ];
        for (said, bytes, why) in cases {
            let error = Document::parse("x", said, bytes).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
            assert_eq!(error.kind(), ErrorKind::Document);
        }
        let large = vec![b' '; usize::try_from(DOCUMENT_LIMIT).unwrap() + 1];
        assert!(Document::parse("x", "", &large).unwrap_err().to_string().contains("4 MiB"));
    }

    #[test]
    fn referrers_name_their_kind() {
        let artifact = Manifest::artifact("application/spdx+json", vec![]);
        let kind = |m: Manifest| Document::Manifest(Box::new(m)).referrer(Digest::of(b""), 0).artifact_type;
        assert_eq!(kind(artifact).as_deref(), Some("application/spdx+json"));
        assert_eq!(kind(manifest()).as_deref(), Some(media::CONFIG));
    }

    /// An independent reader sees the same.
    #[test]
    fn oci_spec_reads_what_is_written() {
        let bytes = to_vec(&manifest()).unwrap();
        let read = oci_spec::image::ImageManifest::from_reader(bytes.as_slice()).unwrap();
        assert_eq!(read.layers()[0].digest().to_string(), Digest::of(b"layer").to_string());
        assert_eq!(read.config().size(), 2);
        let list =
            Index::new(vec![Descriptor::of(media::MANIFEST, &bytes).platform(super::super::Platform::linux("arm64"))]);
        let read = oci_spec::image::ImageIndex::from_reader(to_vec(&list).unwrap().as_slice()).unwrap();
        assert_eq!(read.manifests()[0].platform().as_ref().unwrap().architecture().to_string(), "arm64");
    }
}
