//! The program as a user runs it: one process per test, an empty environment, a folder of its own.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod archive;
mod build;
mod cert;
mod codes;
mod harness;
mod help;
mod load;
mod lock;
mod mirror;
#[allow(dead_code, clippy::disallowed_methods)] // Other tests use the rest.
#[path = "../oci/mock.rs"]
mod mock;
mod project;
mod publish;
mod recipes;
mod robust;
mod same_bytes;
mod secrets;
mod starter;
mod strategy;
mod view;
#[path = "../view/support.rs"]
mod view_support;
