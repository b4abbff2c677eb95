//! Interpreters of scripts that neither the view holds nor every application's image has.

use std::collections::BTreeMap;

use crate::diag::codes::view as codes;
use crate::view::contract::is_view_path;
use crate::view::entry::{Tree, TreePath, shown};
use crate::view::problem::Problems;

/// Shells that every image has in which a view runs: bundles need bash, and where there is bash there is sh.
const SHELLS: [&str; 4] = ["/bin/sh", "/bin/bash", "/usr/bin/sh", "/usr/bin/bash"];

/// What to do about it.
const HELP: &str = "bring the interpreter along and name it by its path in the view or by `/usr/bin/env`, or leave the script \
                    out (`exclude`)";

/// Reports scripts whose interpreter is missing.
pub(super) fn check(tree: &Tree, scripts: &BTreeMap<TreePath, String>, view: &[u8], problems: &mut Problems) {
    for (path, line) in scripts.iter().filter(|(path, _)| is_view_path(path)) {
        if let Some(missing) = missing(tree, view, line) {
            let what = format!("a script asks for {missing}, which the view does not hold");
            problems.warning(codes::SCRIPT, shown(path), what, HELP);
        }
    }
}

/// What a first line asks for in vain.
fn missing<'l>(tree: &Tree, view: &[u8], line: &'l str) -> Option<&'l str> {
    let mut words = line.split_whitespace();
    // Without one the kernel refuses, and shells run it themselves.
    let program = words.next()?;
    if !matches!(program, "/usr/bin/env" | "/bin/env") {
        let there = SHELLS.contains(&program) || (program.starts_with('/') && is_program(tree, program.as_bytes()));
        return (!there).then_some(program);
    }
    let name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    // The view's `bin` is in the PATH of brokers and jobs. That a view has no python at all is said elsewhere.
    let usual = matches!(name, "sh" | "bash") || is_python3(name);
    (!usual && !is_program(tree, &[view, b"/bin/", name.as_bytes()].concat())).then_some(name)
}

fn is_program(tree: &Tree, path: &[u8]) -> bool {
    let entry = tree.follow(path).filter(|path| is_view_path(path)).and_then(|path| tree.get(&path));
    entry.is_some_and(|entry| entry.content().is_some() && entry.mode & 0o111 != 0)
}

fn is_python3(name: &str) -> bool {
    let version = name.strip_prefix("python3");
    version
        .is_some_and(|rest| rest.is_empty() || rest.strip_prefix('.').is_some_and(|minor| minor.parse::<u32>().is_ok()))
}
