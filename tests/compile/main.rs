//! From a spec to objects: what documents, examples, strategies, queues and target versions promise.

#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

mod audit;
mod elastic;
mod examples;
mod kubernetes_versions;
mod queues;
mod resolve;
mod seeds;
mod strategies;
mod text;
