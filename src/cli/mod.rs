//! The command line: the only place that prints, reads the environment and the clock, and picks exit codes.
//!
//! Arguments ([`args`]) become validated options, one file per command; products go to standard output, everything else to
//! standard error ([`ui`], [`report`]); [`exit`] has the exit codes.

mod archive;
mod args;
mod asking;
mod audit;
mod build;
mod bundles;
mod cert;
mod cert_rotate;
mod cert_users;
mod certificates;
mod check;
mod completions;
mod diff;
mod epoch;
mod error;
mod exit;
mod explain;
mod gitops;
mod gitops_options;
mod guard;
mod images;
mod jobs;
mod lock;
mod lock_facts;
mod man;
mod mirror;
mod new;
mod pipeline;
mod progress;
mod project;
mod publish;
mod recipe;
mod registry;
mod report;
mod schema;
mod sources;
mod ui;
mod validate;
mod view;

use std::process::ExitCode;

use clap::Parser;

use args::{Command, CommandLine};
use exit::Exit;
use ui::Ui;

/// Runs the program and returns its exit code.
pub fn main() -> ExitCode {
    guard::guard(run).into()
}

fn run() -> Exit {
    let line = match CommandLine::try_parse() {
        Ok(line) => line,
        Err(error) => return not_parsed(&error),
    };
    let ui = Ui::new(&line.global);
    let result = match &line.command {
        Command::Build(args) => build::run(args, &ui),
        Command::Check(args) => check::run(args, &ui),
        Command::Diff(args) => diff::run(args, &ui),
        Command::Validate(args) => validate::run(args, &ui),
        Command::Audit(args) => audit::run(args, &ui),
        Command::Explain(args) => explain::run(args, &ui),
        Command::Schema(args) => schema::run(args, &ui),
        Command::New(args) => new::run(args, &ui),
        Command::Cert(args) => cert::run(args, &ui),
        Command::Lock(args) => lock::run(args, &ui),
        Command::Archive(args) => archive::run(args, &ui),
        Command::Gitops(args) => gitops::run(args, &ui),
        Command::Publish(args) => publish::run(args, &ui),
        Command::Recipe(args) => recipe::run(args, &ui),
        Command::View(args) => view::run(args, &ui),
        Command::Completions(args) => completions::run(args, &ui),
        Command::Man(args) => man::run(args, &ui),
    };
    result.unwrap_or_else(|error| {
        ui.error(&error);
        error.exit()
    })
}

/// Prints help, version, or what is wrong with the arguments.
fn not_parsed(error: &clap::Error) -> Exit {
    // A reader that has gone does not want the help any more.
    let _ = error.print();
    if error.use_stderr() { Exit::Usage } else { Exit::Ok }
}
