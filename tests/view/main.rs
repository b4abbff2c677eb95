//! View trees and images.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod build;
mod support;
mod tree;
