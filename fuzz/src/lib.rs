//! Fuzz targets of flux-gen. `cargo fuzz run -s none idset` fuzzes; without `cargo fuzz`,
//! `cargo run --bin idset FILE…` runs the target over files.

pub mod targets;

use std::process::ExitCode;

/// The main program of a target that is built without `cargo fuzz`: runs it over the files it is given.
pub fn replay(target: targets::Target) -> ExitCode {
    let files: Vec<_> = std::env::args_os().skip(1).collect();
    if files.is_empty() {
        eprintln!("give files to run the target over, or use: cargo fuzz run -s none NAME");
        return ExitCode::from(2);
    }
    for file in files {
        match std::fs::read(&file) {
            Ok(bytes) => target(&bytes),
            Err(error) => {
                eprintln!("{}: {error}", file.to_string_lossy());
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// The program of one target: libFuzzer's under `cargo fuzz`, [`replay`] otherwise.
#[macro_export]
macro_rules! target {
    ($function:path) => {
        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_target!(|data: &[u8]| $function(data));

        #[cfg(not(fuzzing))]
        fn main() -> std::process::ExitCode {
            $crate::replay($function)
        }
    };
}
