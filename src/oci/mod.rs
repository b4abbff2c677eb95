//! OCI images without a daemon: descriptors, layouts (folder and tar), registries, credentials.
//!
//! Source of the words: OCI image specification 1.1 and distribution specification 1.1.
//!
//! Bytes are kept as they are: an index or image manifest is never written anew on its way from one place to another, and
//! whatever is read is compared with the digest that named it. Content comes from a [`Source`] (a layout folder, an archive,
//! a repository in a registry) and goes to a [`layout::LayoutWriter`], an archive ([`layout::archive`]) or a registry
//! ([`transfer`]). Nothing here prints or reads the environment or the clock.

pub mod cosign;
pub mod credentials;
pub mod descriptor;
pub mod digest;
pub mod document;
pub mod error;
pub mod graph;
pub mod image;
pub mod kept;
pub mod layout;
pub mod media;
pub mod platform;
pub mod reference;
pub mod registry;
pub mod source;
pub(crate) mod tar;
pub mod transfer;

pub use descriptor::Descriptor;
pub use digest::Digest;
pub use error::{Error, ErrorKind};
pub use platform::Platform;
pub use reference::Reference;
pub use source::Source;
