//! View images: trees that hold Flux, packed into layers, checked, and pushed.
//!
//! [`recipe`] plans what has to be compiled and [`engine`] runs it in a container. [`tree`] reads what a recipe names,
//! [`group`] cuts it into layers, [`pack`] makes their bytes, [`contract`] checks what bundles rely on.

pub mod assemble;
pub mod build;
pub mod cache;
pub mod contract;
pub mod elf;
pub mod engine;
pub mod entry;
pub mod facts;
pub mod glob;
pub mod group;
pub mod image;
pub mod pack;
pub mod plain;
pub mod plan;
pub mod problem;
pub mod programs;
pub mod recipe;
pub mod tree;

use sha2::{Digest, Sha256};

use crate::bundle::hex;

/// `sha256:<hex>` of what was hashed.
pub(crate) fn sha256_text(hash: Sha256) -> String {
    format!("sha256:{}", hex(&hash.finalize()))
}
