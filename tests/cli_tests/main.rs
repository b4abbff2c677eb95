//! The program as a user runs it: one process per test, an empty environment, a folder of its own.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod build;
mod cert;
mod codes;
mod harness;
mod help;
mod lock;
#[path = "../oci/mock.rs"]
#[allow(dead_code)]
mod mock;
mod project;
mod publish;
mod robust;
mod secrets;
mod starter;
mod strategy;
mod view;
#[path = "../view/support.rs"]
mod view_support;
