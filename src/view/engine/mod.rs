//! Running the plan of a recipe in a container engine. The engine only makes a tree; layers, labels and pushing are done
//! elsewhere.

#![allow(clippy::result_large_err)] // An error once per build; boxes would only blur every match.

mod adapter;
mod build;
mod error;
mod find;
mod kept;
mod run;

pub use adapter::{Action, Engine, Job, Kind};
pub use build::{BuildOptions, Built, build, write_context};
pub use error::{BuildError, Inside, diagnostic};
pub use find::{Choice, check, find};
pub use run::{Event, RunError};
