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

pub use about::{About, ArchivedImage, Tool};
pub use place::Place;
pub use problem::Problem;
pub use reader::Archive;

use crate::oci::tar::Entry;

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
/// Before the names of programs of flux-gen, one for each platform: what a site without any needs first.
pub const TOOL_FOLDER: &str = "flux-gen/tool/";
/// Annotation in `index.json` of what cosign keeps beside an image: the tag that it has in the image's repository.
pub const ATTACHED: &str = "dev.flux-gen.attached-tag";
/// For `docker load`.
pub const DOCKER_FILE: &str = "manifest.json";

/// The header of a member: a function of its name and size. Programs are executable, so that tar alone makes them usable.
fn header(name: &str, size: u64) -> Vec<u8> {
    let mode = if name.starts_with(TOOL_FOLDER) { 0o755 } else { 0o644 };
    Entry { mode, ..Entry::file(name, size) }.header()
}
