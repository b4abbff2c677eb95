//! Rules on specs, between documents and on objects.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod conformance;
mod documents;
mod fuzz;
mod objects;
mod pod_security;
mod spec;
