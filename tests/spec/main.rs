//! Reading specs and projects: values, places, messages, schemas.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod conformance;
mod documents;
mod messages;
mod project;
mod properties;
mod schema;
mod texts;
