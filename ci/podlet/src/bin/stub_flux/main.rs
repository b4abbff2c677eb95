//! A stand-in for Flux in tests: it records every call, checks what a real flux-core 0.88 would check
//! of a bundle's files and options, really listens on the leader's port and keeps a roll call.
//! It runs each job once, on the leader. See `../../../README.md` for what it does not do.

mod args;
mod attrs;
mod broker;
mod cert;
mod client;
mod config;
mod hostlist;
mod jobs;
mod local;
mod overlay;
mod record;
mod resources;
mod submit;
mod tools;

use std::process::ExitCode;

/// The version that the stub claims to be.
pub const VERSION: &str = "0.88.0";

/// A failed command: what to say, and the exit code.
pub struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    /// A message and a code.
    pub fn new(message: impl Into<String>, code: u8) -> Self {
        Failure { message: message.into(), code }
    }
}

impl<T: Into<String>> From<T> for Failure {
    fn from(message: T) -> Self {
        Failure::new(message, 1)
    }
}

/// What a command ends with.
pub type Outcome = Result<u8, Failure>;

fn main() -> ExitCode {
    let argv: Vec<String> = std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
    if let Err(e) = record::call(&argv) {
        eprintln!("stub-flux: cannot record the call: {e}");
    }
    match dispatch(&argv) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            if !failure.message.is_empty() {
                eprintln!("{}", failure.message);
            }
            ExitCode::from(failure.code)
        }
    }
}

fn dispatch(argv: &[String]) -> Outcome {
    let mut rest = argv;
    while let Some(option) = rest.first().filter(|a| a.starts_with('-')) {
        match option.as_str() {
            "-V" | "--version" => return tools::version(),
            "-v" | "--verbose" => rest = &rest[1..],
            other => return Err(Failure::from(format!("flux: unrecognized option '{other}'"))),
        }
    }
    let Some((name, rest)) = rest.split_first() else {
        return Err(Failure::from("Usage: flux [OPTIONS] COMMAND ARGS"));
    };
    match name.as_str() {
        "broker" => broker::command(rest),
        "start" => broker::start(rest),
        "submit" => submit::command("submit", rest),
        "run" => submit::command("run", rest),
        "batch" => submit::command("batch", rest),
        "job" => tools::job(rest),
        "jobs" => tools::jobs(rest),
        "queue" => tools::queue(rest),
        "watch" => tools::watch(rest),
        "cancel" => tools::cancel(rest),
        "proxy" => tools::proxy(rest),
        "shutdown" => tools::shutdown(rest),
        "getattr" => tools::getattr(rest),
        "lsattr" => tools::lsattr(rest),
        "dmesg" => tools::dmesg(rest),
        "setattr" => tools::setattr(rest),
        "uptime" => tools::uptime(rest),
        "resource" => tools::resource(rest),
        "overlay" => tools::overlay(rest),
        "module" => tools::module(rest),
        "cron" => tools::cron(rest),
        "dump" => tools::dump(rest),
        "exec" => tools::exec(rest),
        "env" => tools::env(rest),
        "python" => tools::python(rest),
        "R" => tools::r(rest),
        "version" => tools::version(),
        other => Err(Failure::from(format!("flux: `{other}' is not a flux command. See 'flux --help'"))),
    }
}

#[cfg(test)]
mod conformance_tests;
