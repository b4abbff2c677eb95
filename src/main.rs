//! The `flux-gen` program: hands the command line to the library and returns its exit code.

fn main() -> std::process::ExitCode {
    flux_gen::cli::main()
}
