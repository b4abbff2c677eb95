//! Air-gapped sites: the lock of images, archives, loading them and rewriting references.
//!
//! `lock` asks registries once and writes down what they said ([`lock::Lock`]); everything after that is about digests:
//! `build` writes them into bundles, `archive save` packs exactly these bytes, `archive load` puts them into a registry
//! behind the gap.
//!
//! [`artifact`] makes one OCI artifact of a folder of bundles, for Argo CD and Flux CD.

pub mod answer;
pub mod archive;
pub mod artifact;
pub mod derive;
pub mod load;
pub mod lock;
pub mod mirror;
pub mod plain;
pub mod rewrite;
pub mod tool;
