//! Tables whose keys only need a type, as data.

use super::Severity;
use super::reader::Checker;
use super::syntax::{Table, join};
use crate::flux::version::FluxVersion;

/// What a key must be.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// A string.
    Text,
    /// True or false.
    Flag,
    /// An integer.
    Integer,
    /// An integer of at least this.
    AtLeast(i64),
    /// A duration in quotes (FSD).
    Duration,
    /// A duration above zero.
    PositiveDuration,
    /// An array of strings.
    Texts,
    /// A table of strings.
    TextTable,
    /// Checked elsewhere, or not at all.
    Any,
}

/// What happens with keys that are not listed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    /// The broker does not start.
    Fatal,
    /// Nothing: probably a slip.
    Ignored,
    /// Nothing is known about them.
    Allowed,
}

/// The keys of one table.
pub(super) struct Schema {
    pub(super) path: &'static str,
    pub(super) unknown: Unknown,
    pub(super) keys: &'static [(&'static str, Kind)],
    /// Keys that older versions refuse: name and the minor version that brought them.
    pub(super) since: &'static [(&'static str, u16)],
}

impl Schema {
    /// Checks the table for unknown keys and wrong types.
    pub(super) fn check(&self, checker: &mut Checker<'_>, table: &Table) {
        let known: Vec<&str> = self.keys.iter().map(|(name, _)| *name).collect();
        match self.unknown {
            Unknown::Fatal => checker.unknown_keys(Severity::Error, table, self.path, &known),
            Unknown::Ignored => checker.unknown_keys(Severity::Warning, table, self.path, &known),
            Unknown::Allowed => {}
        }
        for (name, kind) in self.keys {
            check_key(checker, table, self.path, name, *kind);
        }
        for (name, minor) in self.since {
            checker.needs_version(table, self.path, name, FluxVersion::release(*minor));
        }
    }
}

fn check_key(checker: &mut Checker<'_>, table: &Table, path: &str, name: &str, kind: Kind) {
    match kind {
        Kind::Any => {}
        Kind::Text => {
            checker.string_at(table, path, name);
        }
        Kind::Flag => {
            checker.flag_at(table, path, name);
        }
        Kind::Integer => {
            checker.integer_at(table, path, name);
        }
        Kind::AtLeast(least) => {
            let low = checker.integer_at(table, path, name).filter(|number| number.value < least);
            if let Some(number) = low {
                let key = join(path, name);
                let message = format!("{key} must be at least {least}, not {}", number.value);
                checker.error(number.span, &key, message);
            }
        }
        Kind::Duration => {
            checker.duration_at(table, path, name);
        }
        Kind::PositiveDuration => {
            if let Some(zero) = checker.duration_at(table, path, name).filter(|d| d.value.seconds() == 0.0) {
                let key = join(path, name);
                checker.error(zero.span, &key, format!("{key} must be longer than 0s"));
            }
        }
        Kind::Texts => {
            checker.strings_at(table, path, name);
        }
        Kind::TextTable => {
            if let Some(inner) = checker.table_at(table, path, name) {
                let path = join(path, name);
                for entry in &inner.entries {
                    checker.string_at(inner, &path, &entry.key);
                }
            }
        }
    }
}
