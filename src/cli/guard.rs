//! A panic is a bug in flux-gen: say so, keep quiet about what was in memory, exit 70.

use std::io::Write;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind, set_hook};

use super::exit::Exit;

/// Runs `work`; a panic in it, or in a thread that it waits for, becomes [`Exit::Bug`].
pub(crate) fn guard(work: impl FnOnce() -> Exit) -> Exit {
    set_hook(Box::new(report));
    // `work` owns all that it touches, so nothing half-changed is seen afterwards.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(Exit::Bug)
}

/// Prints where it happened, never the panic's own message: slicing errors quote the text they were slicing, and that may be a
/// certificate.
fn report(info: &PanicHookInfo<'_>) {
    let place = info.location().map(|l| format!("{}:{}", source_path(l.file()), l.line())).unwrap_or_default();
    let text = format!(
        "error: this is a bug in flux-gen {version} (at {place})\n  \
         = help: please report this line and, if you may, the spec that led to it; generated files of clusters that were not \
         finished are unchanged\n",
        version = env!("CARGO_PKG_VERSION"),
    );
    // When stderr is closed there is nobody to tell.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// A source path without the folders of the machine that compiled the program.
fn source_path(file: &str) -> &str {
    ["/src/", "\\src\\"].iter().find_map(|mark| file.rfind(mark)).map_or(file, |i| &file[i + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Run by the test below in a process of its own, because the panic hook and the exit code belong to a process.
    #[test]
    #[ignore = "helper of a_panic_exits_70_without_quoting_memory"]
    fn child() {
        let exit = guard(|| {
            let secret = "secret-key é".to_owned();
            let (left, right) = rayon::join(|| secret[..12].len(), || 1);
            if left == right { Exit::Ok } else { Exit::Failed }
        });
        std::process::exit(exit.code().into());
    }

    #[test]
    fn a_panic_exits_70_without_quoting_memory() {
        let program = std::env::current_exe().unwrap();
        let args = ["--ignored", "--exact", "--nocapture", "cli::guard::tests::child"];
        let output = Command::new(program).args(args).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(70), "{stderr}");
        assert!(stderr.starts_with("error: this is a bug in flux-gen"), "{stderr}");
        assert!(stderr.contains("src/cli/guard.rs:"), "{stderr}");
        assert!(!stderr.contains("secret-key"), "{stderr}");
    }

    #[test]
    fn paths_of_the_building_machine_are_cut() {
        assert_eq!(source_path("/home/x/flux-gen/src/model/mod.rs"), "src/model/mod.rs");
        assert_eq!(source_path("src/model/mod.rs"), "src/model/mod.rs");
    }
}
