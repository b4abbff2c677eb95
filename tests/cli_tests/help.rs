//! Help, usage errors, explain, completions and manual pages.

use std::io::Read;
use std::process::Stdio;

use crate::harness::Sandbox;

/// What `-h` prints. To renew: `cargo run -q -- -h > tests/cli_tests/help.txt`, and read what changed.
const HELP: &str = include_str!("help.txt");

#[test]
fn help_and_version_go_to_stdout() {
    let sandbox = Sandbox::new();
    let help = sandbox.run(&["-h"]).exits(0).quietly();
    assert_eq!(help.stdout, HELP);
    let help = sandbox.run(&["--help"]).exits(0).quietly();
    assert!(help.stdout.contains("Start here:") && help.stdout.lines().count() < 70, "{}", help.stdout);
    let version = sandbox.run(&["--version"]).exits(0).quietly();
    assert_eq!(version.stdout, format!("flux-gen {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_wrong_command_line_exits_2_and_helps() {
    let sandbox = Sandbox::new();
    for (args, expect) in [
        (&[][..], "Usage: flux-gen"),
        (&["explian"], "a similar subcommand exists: 'explain'"),
        (&["explain", "--colour", "always"], "a similar argument exists: '--color'"),
        (&["explain", "-q", "-v"], "cannot be used with"),
        (&["new"], "<NAME>"),
        (&["new", "Not A Name"], "`Not A Name` cannot be the name of a cluster"),
        (&["completions", "tcsh"], "[possible values: bash"),
    ] {
        let run = sandbox.run(args).exits(2);
        assert!(run.stderr.contains(expect), "{args:?}: {}", run.stderr);
        assert_eq!(run.stdout, "");
    }
}

#[test]
fn explain_knows_codes_and_exit_codes() {
    let sandbox = Sandbox::new();
    let list = sandbox.run(&["explain"]).exits(0).quietly().stdout;
    assert_eq!(list.lines().count(), flux_gen::diag::codes::all().len());
    for code in flux_gen::diag::codes::all() {
        let page = sandbox.run(&["explain", code.id]).exits(0).quietly().stdout;
        assert!(page.starts_with(&format!("{}: {}\n\n", code.id, code.title)), "{page}");
        assert!(page.lines().all(|l| l.chars().count() <= 100), "{page}");
    }
    let exits = sandbox.run(&["explain", "exit-codes"]).exits(0).quietly().stdout;
    let codes: Vec<&str> = exits.lines().map(|l| l[..3].trim()).collect();
    assert_eq!(codes, ["0", "1", "2", "3", "70"]);
    let unknown = sandbox.run(&["explain", "FG999"]).exits(2);
    assert_eq!(
        unknown.stderr,
        "error: there is nothing to explain under `FG999`\nhelp: `flux-gen explain` lists all codes\n"
    );
}

#[test]
fn schemas_are_json_with_documentation() {
    let sandbox = Sandbox::new();
    for (args, property) in
        [(&["schema"][..], "spec"), (&["schema", "minicluster"], "spec"), (&["schema", "project"], "output")]
    {
        let text = sandbox.run(args).exits(0).quietly().stdout;
        let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
        let description = schema["properties"][property]["description"].as_str().unwrap_or_default();
        assert!(!description.is_empty(), "{args:?}: {}", schema["properties"][property]);
    }
}

#[test]
fn completions_and_manual_pages() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = sandbox.run(&["completions", shell]).exits(0).quietly().stdout;
        assert!(script.contains("flux-gen") && script.contains("exit") || script.contains("explain"), "{shell}");
    }
    let page = sandbox.run(&["man"]).exits(0).quietly().stdout;
    assert!(page.contains(".TH flux-gen 1"), "{page}");
    assert!(page.contains(".SH \"EXIT STATUS\"\n.TP\n0\n"), "{page}");
    let run = sandbox.run(&["man", "share/man"]).exits(0);
    assert!(run.stderr.starts_with("wrote ") && run.stderr.ends_with(" pages to share/man\n"), "{}", run.stderr);
    assert_eq!(sandbox.read("share/man/flux-gen.1"), page);
    assert!(sandbox.read("share/man/flux-gen-explain.1").contains("explain"));
    assert_eq!(std::fs::read_dir(sandbox.path(".")).unwrap().count(), 1);
    sandbox.write("file", "");
    let run = sandbox.run(&["man", "file/man"]).exits(1);
    assert_eq!(run.stderr, "error: cannot create file/man: Not a directory\n");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let sandbox = Sandbox::new();
    for args in [&["completions", "bash"][..], &["man"], &["explain"], &["--help"]] {
        let mut command = sandbox.command(args);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        let status = child.wait().unwrap();
        assert_eq!((status.code(), stderr.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let sandbox = Sandbox::new();
    let full = || Stdio::from(std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    let run = crate::harness::Run::of(sandbox.command(["explain"]).stdout(full()).output().unwrap()).exits(1);
    assert_eq!(run.stderr, "error: cannot write to standard output: No space left on device\n");
    // Nobody reads the message, the exit code still tells.
    let run = crate::harness::Run::of(sandbox.command(["explain", "FG999"]).stderr(full()).output().unwrap());
    assert_eq!(run.exit, 2);
}

#[test]
fn failures_in_other_formats_and_colours() {
    let sandbox = Sandbox::new();
    let run = sandbox.run(&["explain", "nope", "--message-format", "json"]).exits(2);
    let value: serde_json::Value = serde_json::from_str(&run.stderr).unwrap();
    assert_eq!((&value["severity"], &value["code"]), (&"error".into(), &serde_json::Value::Null));
    let run = sandbox.run(&["explain", "nope", "--message-format", "github"]).exits(2);
    assert!(run.stderr.starts_with("::error title=flux-gen::there is nothing"), "{}", run.stderr);
    for (args, variable, colored) in [
        (&["explain", "nope"][..], None, false),
        (&["explain", "nope", "--color", "always"], None, true),
        (&["explain", "nope"], Some(("CLICOLOR_FORCE", "1")), true),
        (&["explain", "nope", "--color", "never"], Some(("CLICOLOR_FORCE", "1")), false),
        (&["explain", "nope", "--color", "always"], Some(("NO_COLOR", "1")), true),
    ] {
        let output = sandbox.command(args).envs(variable).output().unwrap();
        assert_eq!(output.stderr.contains(&0x1b), colored, "{args:?} {variable:?}");
    }
}
