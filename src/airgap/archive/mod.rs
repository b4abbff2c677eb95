//! Archives for air-gapped sites: one uncompressed tar that is an OCI image layout and carries bundles, lock and sources
//! besides (docs/archive-format.md).
//!
//! [`Archive`] reads one, as a file or extracted into a folder.

pub mod about;
pub mod bundles;
mod checksums;
pub mod collect;
pub mod contents;
mod docker;
mod place;
mod problem;
mod reader;
pub mod save;
mod scan;
mod store;
pub mod verify;

pub use about::{About, ArchivedImage};
pub use place::Place;
pub use problem::Problem;
pub use reader::Archive;

/// Version of the format that is written, and the newest that is read.
pub const FORMAT: u32 = 1;
/// The first flux-gen that reads [`FORMAT`].
pub const READ_SINCE: &str = "0.1.0";

/// What is in the archive ([`About`]).
pub const ABOUT_FILE: &str = "flux-gen/archive.json";
/// The lock of images, byte for byte.
pub const LOCK_MEMBER: &str = "flux-gen/images.lock";
/// SHA-256 of all other members, as `sha256sum` writes it.
pub const CHECKSUMS_FILE: &str = "flux-gen/checksums.sha256";
/// Before the names of bundles' files: the output folder as it is committed.
pub const BUNDLES: &str = "flux-gen/generated/";
/// Before the names of the project's files: project file, specs, documents beside them, views, public halves of the
/// certificate store.
pub const SOURCES: &str = "flux-gen/sources/";
/// For `docker load`.
pub const DOCKER_FILE: &str = "manifest.json";
