//! Media types of the image specification and of Docker's schema 2.

/// OCI image manifest.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// OCI image index.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// OCI image configuration.
pub const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// Layer, not compressed.
pub const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
/// Layer, gzip.
pub const LAYER_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// Layer, zstd.
pub const LAYER_ZSTD: &str = "application/vnd.oci.image.layer.v1.tar+zstd";
/// The empty JSON object `{}`, for artifacts without configuration.
pub const EMPTY: &str = "application/vnd.oci.empty.v1+json";
/// Docker image manifest, schema 2.
pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
/// Docker's index.
pub const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
/// Docker image configuration.
pub const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";
/// Docker layer (gzip).
pub const DOCKER_LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar.gzip";
/// Docker layer, not compressed.
pub const DOCKER_LAYER_TAR: &str = "application/vnd.docker.image.rootfs.diff.tar";

/// What a client accepts when it asks for a manifest, in order of preference.
pub const ACCEPTED: [&str; 4] = [INDEX, MANIFEST, DOCKER_LIST, DOCKER_MANIFEST];

/// What a descriptor points to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// An index: more descriptors of manifests.
    Index,
    /// An image manifest: a configuration and layers.
    Manifest,
    /// Anything else: bytes.
    Blob,
}

impl Kind {
    /// By media type; parameters after `;` do not count.
    #[must_use]
    pub fn of(media_type: &str) -> Self {
        match essence(media_type) {
            INDEX | DOCKER_LIST => Self::Index,
            MANIFEST | DOCKER_MANIFEST => Self::Manifest,
            _ => Self::Blob,
        }
    }
}

/// The media type without parameters.
#[must_use]
pub fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

/// How the bytes of a layer are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compression {
    /// Not at all.
    None,
    /// gzip, perhaps of several members.
    Gzip,
    /// zstd, perhaps of several frames.
    Zstd,
}

impl Compression {
    /// By the first bytes of the content (RFC 1952 and RFC 8878; zstd may begin with a skippable frame).
    #[must_use]
    pub fn sniff(start: &[u8]) -> Self {
        match start {
            [0x1f, 0x8b, ..] => Self::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Self::Zstd,
            _ => Self::None,
        }
    }

    /// Of a layer's media type; `None` when it is no layer that is known.
    #[must_use]
    pub fn of_layer(media_type: &str) -> Option<Self> {
        match essence(media_type) {
            LAYER | DOCKER_LAYER_TAR | "application/vnd.oci.image.layer.nondistributable.v1.tar" => Some(Self::None),
            LAYER_GZIP
            | DOCKER_LAYER
            | "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip"
            | "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip" => Some(Self::Gzip),
            LAYER_ZSTD
            | "application/vnd.oci.image.layer.nondistributable.v1.tar+zstd"
            | "application/vnd.docker.image.rootfs.diff.tar.zstd" => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Media type of an OCI layer compressed like this.
    #[must_use]
    pub fn layer(self) -> &'static str {
        match self {
            Self::None => LAYER,
            Self::Gzip => LAYER_GZIP,
            Self::Zstd => LAYER_ZSTD,
        }
    }
}

/// Whether a layer need not be in a registry, because its descriptor says where else it is.
#[must_use]
pub fn is_foreign(media_type: &str) -> bool {
    let name = essence(media_type);
    name.starts_with("application/vnd.oci.image.layer.nondistributable.")
        || name == "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        let cases = [
            (INDEX, Kind::Index),
            (DOCKER_LIST, Kind::Index),
            (MANIFEST, Kind::Manifest),
            ("application/vnd.docker.distribution.manifest.v2+json; charset=utf-8", Kind::Manifest),
            (CONFIG, Kind::Blob),
            ("", Kind::Blob),
        ];
        for (media_type, kind) in cases {
            assert_eq!(Kind::of(media_type), kind, "{media_type}");
        }
    }

    #[test]
    fn compression() {
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            assert_eq!(Compression::of_layer(compression.layer()), Some(compression));
        }
        assert_eq!(Compression::of_layer(DOCKER_LAYER), Some(Compression::Gzip));
        assert_eq!(Compression::of_layer(CONFIG), None);
        assert_eq!(Compression::sniff(&[0x1f, 0x8b, 8]), Compression::Gzip);
        assert_eq!(Compression::sniff(&[0x28, 0xb5, 0x2f, 0xfd]), Compression::Zstd);
        assert_eq!(Compression::sniff(b"blobs/"), Compression::None);
        assert!(is_foreign("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip") && !is_foreign(LAYER));
    }
}
