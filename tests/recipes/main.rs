//! Recipes that compile: what is said about wrong ones, what the shipped ones come to, downloads, engines and their faults.

#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod engines;
mod fetching;
mod messages;
mod shipped;
