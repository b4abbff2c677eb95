//! Checks a `broker.toml` that a user wrote, before a broker does.
//!
//! An error means that a broker does not start with it (flux-core 0.88 is strict about many tables), a warning
//! that it starts but something in it has no effect or jobs will not run. All problems are reported, not only the first.
//! What cannot be known from the text (which files exist in the pod, what hardware there is) comes with [`Context`].

mod bootstrap;
mod modules;
mod policy;
mod reader;
mod resource;
mod schema;
mod syntax;

use std::fmt;

use super::bootstrap::Hosts;
use super::hostlist::Hostlist;
use super::idset::IdSet;
use super::resource_set::ResourceSet;
use super::topology::Topology;
use super::version::FluxVersion;
use reader::Checker;

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A broker does not start.
    Error,
    /// It starts, but something is ignored or jobs will not run as meant.
    Warning,
}

/// Something wrong at a place of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// How bad.
    pub severity: Severity,
    /// Byte offset in the text.
    pub offset: usize,
    /// Bytes from there that are meant; 0 for a place between characters.
    pub length: usize,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Key path such as `bootstrap.hosts[1].bind`; empty for the text as a whole.
    pub key: String,
    /// What is wrong, without a full stop.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(f, "{}:{}: {word}: {}", self.line, self.column, self.message)
    }
}

/// What is known of a file that the configuration names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PodFile {
    /// Nothing.
    Unknown,
    /// It will not exist.
    Missing,
    /// It will exist with this text and these permission bits.
    Text {
        /// The whole text.
        text: String,
        /// Permission bits such as 0o600.
        mode: u32,
    },
}

/// What is known about where the brokers run.
pub struct Context<'a> {
    /// The host names of the pods, leader first. Every one must be in `[bootstrap]`.
    pub hosts: &'a Hostlist,
    /// The ranks that are sure to be up when work starts; `None`: all, or nobody knows.
    pub online: Option<&'a IdSet>,
    /// The files of the pods by path.
    pub files: &'a dyn Fn(&str) -> PodFile,
    /// Names and addresses of the leader's network interfaces; `None`: not known.
    pub interfaces: Option<&'a [&'a str]>,
    /// The hardware of the leader, a set of the single rank 0; `None`: not known.
    pub hardware: Option<&'a ResourceSet>,
    /// The version of flux-core; `None`: the newest.
    pub version: Option<FluxVersion>,
    /// Whether flux-sched is installed; `None`: not known.
    pub fluxion: Option<bool>,
}

impl<'a> Context<'a> {
    /// Pods of which only the host names are known.
    #[must_use]
    pub fn of_hosts(hosts: &'a Hostlist) -> Self {
        Self {
            hosts,
            online: None,
            files: &|_| PodFile::Unknown,
            interfaces: None,
            hardware: None,
            version: None,
            fluxion: None,
        }
    }
}

/// What the check found, and what the configuration says.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// All problems by place.
    pub problems: Vec<Problem>,
    /// The hosts of `[bootstrap]`; `None` if there is no such table or it is wrong.
    pub hosts: Option<Hosts>,
    /// The topology that will be used, if what is written is one.
    pub topology: Option<Topology>,
    /// The resources, if they are in `[[resource.config]]` or in a file that is known.
    pub resources: Option<ResourceSet>,
}

impl Report {
    /// True if a broker does not start.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(|problem| problem.severity == Severity::Error)
    }
}

/// Checks the text of a `broker.toml`.
///
/// ```
/// use flux_gen::flux::Hostlist;
/// use flux_gen::flux::config_check::{Context, check};
/// let pods = Hostlist::indexed("sim", 2);
/// let report = check("[bootstrap]\nhosts = 1\n", &Context::of_hosts(&pods));
/// let problem = &report.problems[0];
/// assert_eq!((problem.line, problem.column, problem.key.as_str()), (2, 9, "bootstrap.hosts"));
/// ```
#[must_use]
pub fn check(text: &str, context: &Context<'_>) -> Report {
    let mut checker = Checker::new(text, context);
    if let Some(root) = syntax::parse(&mut checker) {
        let bootstrap = bootstrap::check(&mut checker, &root);
        resource::check(&mut checker, &root, bootstrap.as_ref());
        policy::check(&mut checker, &root);
        modules::check(&mut checker, &root);
    }
    checker.finish()
}

#[cfg(test)]
mod tests;
