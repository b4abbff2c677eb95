//! Broker attributes: what `-S name=value` of `flux start` and `flux broker` accepts.
//!
//! Since flux-core 0.82 a broker ends at once over a name it does not know, a read-only one, or an immutable one
//! given twice. Before, unknown names were kept without effect.

use std::str::FromStr;

use super::duration::FluxDuration;
use super::topology::Topology;
use super::version::FluxVersion;

/// The first version that refuses unknown attributes.
pub const STRICT_SINCE: FluxVersion = FluxVersion::release(82);

/// Most bytes of `rundir`, so that a socket fits into it.
pub const MAX_RUNDIR: usize = 96;

/// Most bytes of the path of `local-uri`.
pub const MAX_SOCKET_PATH: usize = 107;

/// What values an attribute takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// Any text, or nothing that can be checked.
    Text,
    /// A whole number.
    Integer,
    /// FSD; a bare number means seconds.
    Duration,
    /// 0 (emergencies) to 7 (debugging).
    LogLevel,
    /// `leader` or `local`.
    LogMode,
    /// A number of brokers, 1 to the size.
    Quorum,
    /// A topology.
    Topology,
    /// The k of `kary:k`.
    Fanout,
    /// A path of at most [`MAX_RUNDIR`] bytes.
    RunDirectory,
    /// `local://` and a path of at most [`MAX_SOCKET_PATH`] bytes.
    LocalUri,
    /// Set by the broker itself.
    ReadOnly,
}

/// A broker attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute {
    /// Name. One that ends in `*` stands for all that start so.
    pub name: &'static str,
    /// What values it takes.
    pub kind: ValueKind,
    /// Giving it twice is fatal.
    pub immutable: bool,
    /// The release (0.N) that brought it, if that is known to be after 0.51.
    pub since: Option<u16>,
    /// The last release (0.N) that had it.
    pub until: Option<u16>,
    /// Means the same in every release from 0.51 to 0.88.
    pub portable: bool,
}

const fn attribute(name: &'static str, kind: ValueKind) -> Attribute {
    Attribute { name, kind, immutable: false, since: None, until: None, portable: false }
}

impl Attribute {
    const fn immutable(self) -> Self {
        Self { immutable: true, ..self }
    }

    const fn portable(self) -> Self {
        Self { portable: true, ..self }
    }

    const fn since(self, minor: u16) -> Self {
        Self { since: Some(minor), ..self }
    }

    const fn until(self, minor: u16) -> Self {
        Self { until: Some(minor), ..self }
    }

    fn is_named(&self, name: &str) -> bool {
        match self.name.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => self.name == name,
        }
    }
}

use ValueKind::{Duration, Integer, ReadOnly, Text};

/// Every attribute of flux-core 0.88, and those that were renamed.
pub const ATTRIBUTES: &[Attribute] = &[
    attribute("broker.boot-method", Text).immutable(),
    attribute("broker.cleanup-timeout", Duration),
    attribute("broker.critical-ranks", Text).immutable(),
    attribute("broker.exit-norestart", Text),
    attribute("broker.exit-restart", Text),
    attribute("broker.mapping", ReadOnly),
    attribute("broker.module-nopanic", Text),
    attribute("broker.pid", ReadOnly),
    attribute("broker.quorum", ValueKind::Quorum).immutable().portable(),
    attribute("broker.quorum-timeout", Duration).until(71),
    attribute("broker.quorum-warn", Duration).immutable().since(72),
    attribute("broker.rc1_path", Text),
    attribute("broker.rc2_none", Text).portable(),
    attribute("broker.rc2_pgrp", Text),
    attribute("broker.rc3_path", Text),
    attribute("broker.recovery-mode", Text),
    attribute("broker.sd-notify", Text),
    attribute("broker.sd-stop-timeout", Duration).immutable(),
    attribute("broker.shutdown-timeout", Duration).immutable().since(82),
    attribute("broker.shutdown-warn", Duration).immutable().since(72),
    attribute("broker.starttime", ReadOnly),
    attribute("broker.uuid", ReadOnly),
    attribute("conf.shell_initrc", Text),
    attribute("conf.shell_pluginpath", Text),
    attribute("config.path", Text).immutable(),
    attribute("content.backing-module", Text),
    attribute("content.dump", Text).portable(),
    attribute("content.hash", Text),
    attribute("content.restore", Text).portable(),
    attribute("cron.directory", Text),
    attribute("hostlist", Text).immutable(),
    attribute("hostname", Text).immutable().since(82),
    attribute("instance-level", ReadOnly),
    attribute("jobid", ReadOnly),
    attribute("jobid-path", ReadOnly),
    attribute("local-uri", ValueKind::LocalUri).immutable().portable(),
    attribute("log-critical-level", ValueKind::LogLevel).immutable(),
    attribute("log-filename", Text),
    attribute("log-forward-level", ValueKind::LogLevel).immutable(),
    attribute("log-level", ValueKind::LogLevel).immutable(),
    attribute("log-ring-size", Integer).immutable(),
    attribute("log-stderr-level", ValueKind::LogLevel).portable(),
    attribute("log-stderr-mode", ValueKind::LogMode).immutable().portable(),
    attribute("log-syslog-enable", Text).immutable(),
    attribute("log-syslog-level", ValueKind::LogLevel).immutable(),
    attribute("parent-kvs-namespace", ReadOnly),
    attribute("parent-uri", ReadOnly),
    attribute("rank", ReadOnly),
    attribute("rundir", ValueKind::RunDirectory).portable(),
    attribute("rundir-cleanup", Text).immutable(),
    attribute("security.owner", ReadOnly),
    attribute("size", ReadOnly),
    attribute("statedir", Text).portable(),
    attribute("statedir-cleanup", Text).immutable(),
    attribute("tbon.child_rcvhwm", Integer),
    attribute("tbon.connect_timeout", Duration).portable(),
    attribute("tbon.descendants", ReadOnly),
    attribute("tbon.endpoint", ReadOnly),
    attribute("tbon.fanout", ValueKind::Fanout),
    attribute("tbon.interface-hint", Text).immutable().since(67),
    attribute("tbon.level", ReadOnly),
    attribute("tbon.maxlevel", ReadOnly),
    attribute("tbon.parent-endpoint", ReadOnly),
    attribute("tbon.prefertcp", Integer),
    attribute("tbon.tcp_user_timeout", Duration),
    attribute("tbon.topo", ValueKind::Topology).portable(),
    attribute("tbon.torpid_max", Duration),
    attribute("tbon.torpid_min", Duration),
    attribute("tbon.zmq_io_threads", Integer),
    attribute("tbon.zmqdebug", Integer).portable(),
    attribute("test-im.*", Text).immutable(),
    attribute("test-nr.*", Text),
    attribute("test-ro.*", ReadOnly),
    attribute("test.*", Text),
    attribute("vendor.*", Text).immutable(),
    attribute("version", ReadOnly),
];

/// The attribute of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Attribute> {
    ATTRIBUTES.iter().find(|attribute| attribute.is_named(name))
}

/// What is wrong with a setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttributeProblem {
    /// No version has it.
    #[error("there is no broker attribute {0}")]
    Unknown(String),
    /// The broker sets it itself.
    #[error("the broker attribute {0} cannot be set")]
    ReadOnly(String),
    /// The version does not have it yet, or no longer.
    #[error("flux-core {version} has no broker attribute {name}")]
    OtherVersion {
        /// The attribute.
        name: String,
        /// The version that was asked about.
        version: FluxVersion,
    },
    /// An immutable attribute for the second time.
    #[error("the broker attribute {0} must not be given twice")]
    Twice(String),
    /// The value is not one that the attribute takes.
    #[error("{name}={value}: {expected}")]
    Value {
        /// The attribute.
        name: String,
        /// The value.
        value: String,
        /// What belongs there.
        expected: String,
    },
    /// `0` or `0-N` for a quorum: the spelling of an earlier meaning, still understood.
    #[error("broker.quorum={0} is an old spelling: write the number of brokers, 1 or larger")]
    OldQuorum(String),
}

impl AttributeProblem {
    /// True if a broker of this version (`None`: the newest) ends at once because of it.
    #[must_use]
    pub fn is_fatal(&self, version: Option<FluxVersion>) -> bool {
        let strict = version.is_none_or(|version| version >= STRICT_SINCE);
        match self {
            Self::OldQuorum(_) => false,
            Self::Unknown(_) | Self::OtherVersion { .. } => strict,
            Self::ReadOnly(_) | Self::Twice(_) | Self::Value { .. } => true,
        }
    }
}

/// Checks settings in the order of the command line, for an instance of `size` brokers.
///
/// ```
/// use flux_gen::flux::attribute::{AttributeProblem, check};
/// let problems = check(&[("log-stderr-level", "8"), ("broker.quorum", "2")], 4, None);
/// assert!(matches!(&problems[..], [(0, AttributeProblem::Value { .. })]));
/// ```
#[must_use]
pub fn check(settings: &[(&str, &str)], size: u32, version: Option<FluxVersion>) -> Vec<(usize, AttributeProblem)> {
    let mut problems = Vec::new();
    for (index, (name, value)) in settings.iter().enumerate() {
        let twice = settings[..index].iter().any(|(earlier, _)| earlier == name);
        match find(name) {
            None => problems.push((index, AttributeProblem::Unknown((*name).to_owned()))),
            Some(attribute) if attribute.immutable && twice => {
                problems.push((index, AttributeProblem::Twice((*name).to_owned())));
            }
            Some(attribute) => {
                let problem = check_one(attribute, name, value, size, version);
                problems.extend(problem.err().map(|problem| (index, problem)));
            }
        }
    }
    problems
}

fn check_one(
    attribute: &Attribute,
    name: &str,
    value: &str,
    size: u32,
    version: Option<FluxVersion>,
) -> Result<(), AttributeProblem> {
    let at = version.unwrap_or(FluxVersion::NEWEST);
    let early = attribute.since.is_some_and(|since| at < FluxVersion::release(since));
    let late = attribute.until.is_some_and(|until| at >= FluxVersion::release(until + 1));
    if early || late {
        return Err(AttributeProblem::OtherVersion { name: name.to_owned(), version: at });
    }
    let unless = |good: bool, expected: String| match good {
        true => Ok(()),
        false => Err(AttributeProblem::Value { name: name.to_owned(), value: value.to_owned(), expected }),
    };
    match attribute.kind {
        ValueKind::Text => Ok(()),
        ValueKind::ReadOnly => Err(AttributeProblem::ReadOnly(name.to_owned())),
        ValueKind::Integer => unless(is_c_integer(value), "expected a whole number".to_owned()),
        ValueKind::Duration => {
            FluxDuration::from_str(value).map(|_| ()).or_else(|error| unless(false, error.to_string()))
        }
        ValueKind::LogLevel => {
            let good = matches!(value.as_bytes(), [b'0'..=b'7']);
            unless(good, "expected a level from 0 (emergencies only) to 7 (everything)".to_owned())
        }
        ValueKind::LogMode => unless(value == "leader" || value == "local", "expected leader or local".to_owned()),
        ValueKind::Topology => Topology::from_str(value).map(|_| ()).or_else(|error| unless(false, error.to_string())),
        ValueKind::Fanout => {
            let parsed = Topology::from_str(&format!("kary:{value}"));
            parsed.map(|_| ()).or_else(|error| unless(false, error.to_string()))
        }
        ValueKind::RunDirectory => {
            unless(value.len() <= MAX_RUNDIR, format!("the path must not be longer than {MAX_RUNDIR} bytes"))
        }
        ValueKind::LocalUri => match value.strip_prefix("local://") {
            Some(path) => unless(
                path.len() <= MAX_SOCKET_PATH,
                format!("the path must not be longer than {MAX_SOCKET_PATH} bytes"),
            ),
            None => unless(false, "expected local:// and a path".to_owned()),
        },
        ValueKind::Quorum => quorum(value, size)
            .unwrap_or_else(|| unless(false, format!("expected a number of brokers from 1 to {size}"))),
    }
}

/// `None`: not a quorum.
fn quorum(value: &str, size: u32) -> Option<Result<(), AttributeProblem>> {
    let old = value == "0" || size > 1 && value == format!("0-{}", size - 1);
    if old {
        return Some(Err(AttributeProblem::OldQuorum(value.to_owned())));
    }
    let digits = value.bytes().all(|b| b.is_ascii_digit());
    let number: u32 = value.parse().ok().filter(|_| digits)?;
    (1..=size).contains(&number).then_some(Ok(()))
}

/// What C's `strtol` reads to the end of the text.
fn is_c_integer(text: &str) -> bool {
    let text = text.trim_start_matches([' ', '\t', '\n']);
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    digits.len() < 19 && digits.bytes().all(|b| b.is_ascii_digit()) && (!digits.is_empty() || text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fatal(name: &str, value: &str) -> bool {
        check(&[(name, value)], 4, None).iter().any(|(_, problem)| problem.is_fatal(None))
    }

    #[test]
    fn values() {
        for (name, value) in [
            ("log-stderr-level", "0"),
            ("log-stderr-level", "7"),
            ("log-stderr-mode", "leader"),
            ("broker.quorum", "1"),
            ("broker.quorum", "4"),
            ("broker.quorum", "0-3"),
            ("broker.quorum", "0"),
            ("tbon.connect_timeout", "5"),
            ("tbon.topo", "mincrit:3"),
            ("tbon.fanout", "-1"),
            ("tbon.zmqdebug", "1"),
            ("broker.rc2_none", ""),
            ("content.restore", "auto"),
            ("vendor.x", "y"),
            ("local-uri", &format!("local://{}", "x".repeat(107))),
        ] {
            assert!(!fatal(name, value), "{name}={value}");
        }
        for (name, value) in [
            ("log-stderr-level", "8"),
            ("log-stderr-level", "info"),
            ("log-stderr-mode", "foo"),
            ("broker.quorum", "5"),
            ("broker.quorum", "0-1"),
            ("broker.quorum", "x"),
            ("broker.quorum", "+1"),
            ("tbon.connect_timeout", "x"),
            ("tbon.topo", "foo"),
            ("tbon.fanout", "x"),
            ("local-uri", "/run/x"),
            ("local-uri", &format!("local://{}", "x".repeat(108))),
            ("rundir", &"x".repeat(97)),
            ("rank", "0"),
            ("foo", "bar"),
            ("broker.quorum-timeout", "5s"),
        ] {
            assert!(fatal(name, value), "{name}={value}");
        }
    }

    #[test]
    fn repetition_and_versions() {
        let twice = check(
            &[
                ("log-stderr-level", "1"),
                ("log-stderr-level", "2"),
                ("local-uri", "local:///a"),
                ("local-uri", "local:///a"),
            ],
            1,
            None,
        );
        assert_eq!(twice, [(3, AttributeProblem::Twice("local-uri".into()))]);
        let old = Some(FluxVersion::release(70));
        let problems = check(&[("hostname", "h"), ("broker.quorum-timeout", "5s"), ("foo", "1")], 1, old);
        assert_eq!(
            problems.iter().map(|(index, problem)| (*index, problem.is_fatal(old))).collect::<Vec<_>>(),
            [(0, false), (2, false)]
        );
    }

    #[test]
    fn the_table_is_sorted_and_unambiguous() {
        assert!(ATTRIBUTES.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(ATTRIBUTES.iter().filter(|a| a.portable).all(|a| a.since.is_none() && a.until.is_none()));
    }
}
