//! The repository itself: the rules of the source tree, and the pages that people read.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod docs;
mod layers;
