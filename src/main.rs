//! The `flux-gen` program: hands the command line to the library and returns its exit code.

/// Compiling makes and drops some two thousand small texts for each cluster, on all processors. With this allocator that takes a
/// fifth less time than with glibc's (docs/performance.md), and musl's, which a static program would have, is slower still.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    flux_gen::cli::main()
}
