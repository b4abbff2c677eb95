//! bundle

pub mod yaml;
