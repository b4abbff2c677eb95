//! A client for registries (OCI distribution specification 1.1, and Docker's registry HTTP API V2 which it grew from).
//!
//! Blocking; one [`Client`] may be used by many threads at once. Nothing is sent twice that is there already, blobs go in one
//! PUT from where they are, failures that may pass are tried again, and every error says which request it was.

mod auth;
mod client;
mod fetch;
mod files;
mod options;
mod referrers;
mod repository;
mod transport;
mod upload;

pub use client::{Client, Retry};
pub use fetch::BlobReader;
pub use files::{Files, NoFile, Part};
pub use options::{ClientOptions, Proxies, RetryPolicy, Sleep};
pub use repository::Repository;
pub use upload::{Outcome, Progress};
