//! Bundles: their layout, writing them, secrets in them, and what goes wrong on the way.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod faults;
mod kill;
mod kustomize;
mod layout;
mod secrets;
mod support;
mod write;
