//! An archive into the registry behind the gap: images by their digests, then bundles and sources that name that registry
//! alone.
//!
//! Nothing is unpacked: blobs are read where they stand in the archive. Nothing is changed anywhere before the archive is
//! known to be whole and every reference has a place behind the gap.

pub mod bundles;
pub mod ledger;
pub mod plan;
pub mod present;
pub mod push;
pub mod site;
