//! Registries that misbehave in every way that is known, and some that do not.

#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod archive;
mod auth;
mod faults;
mod loading;
mod mock;
mod support;
mod tls;
mod transfers;
