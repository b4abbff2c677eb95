//! podlet: the kubelet's part of flux-gen's integration tests. See `README.md`.

mod api;
mod cleanup;
mod cli;
mod context;
mod dns;
mod env;
mod files;
mod images;
mod logs;
mod net;
mod node;
mod podman;
mod say;
mod spec;
mod volumes;
mod worker;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::main() {
        Ok(code) => code,
        Err(e) => {
            eprintln!("podlet: {e}");
            ExitCode::from(1)
        }
    }
}
