//! The program as a user runs it: one process per test, an empty environment, a folder of its own.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

#[path = "cli_tests/build.rs"]
mod build;
#[path = "cli_tests/cert.rs"]
mod cert;
#[path = "cli_tests/codes.rs"]
mod codes;
#[path = "cli_tests/harness.rs"]
mod harness;
#[path = "cli_tests/help.rs"]
mod help;
#[path = "cli_tests/lock.rs"]
mod lock;
#[path = "oci/mock.rs"]
#[allow(dead_code)]
mod mock;
#[path = "cli_tests/project.rs"]
mod project;
#[path = "cli_tests/publish.rs"]
mod publish;
#[path = "cli_tests/robust.rs"]
mod robust;
#[path = "cli_tests/secrets.rs"]
mod secrets;
#[path = "cli_tests/starter.rs"]
mod starter;
#[path = "cli_tests/strategy.rs"]
mod strategy;
