//! Collecting problems, and typed access to tables that records what is wrong with them.

use std::ops::Range;
use std::str::FromStr;

use super::syntax::{Entry, Node, Table, Value, join};
use super::{Context, Problem, Report, Severity};
use crate::flux::duration::FluxDuration;
use crate::flux::version::FluxVersion;

/// The state of one check.
pub(super) struct Checker<'a> {
    pub(super) text: &'a str,
    pub(super) context: &'a Context<'a>,
    pub(super) report: Report,
    /// Where each line starts.
    lines: Vec<usize>,
}

/// A problem that was just recorded; help can be added to it.
pub(super) struct Recorded<'p>(&'p mut Problem);

impl Recorded<'_> {
    pub(super) fn help(self, help: impl Into<String>) {
        self.0.help = Some(help.into());
    }
}

/// A value with the place it stands at.
#[derive(Clone)]
pub(super) struct Placed<T> {
    pub(super) value: T,
    pub(super) span: Range<usize>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(text: &'a str, context: &'a Context<'a>) -> Self {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, context, report: Report::default(), lines }
    }

    pub(super) fn finish(mut self) -> Report {
        self.report.problems.sort_by_key(|problem| problem.offset);
        self.report
    }

    pub(super) fn error(&mut self, span: Range<usize>, key: &str, message: impl Into<String>) -> Recorded<'_> {
        self.problem(Severity::Error, span, key, message.into())
    }

    pub(super) fn warning(&mut self, span: Range<usize>, key: &str, message: impl Into<String>) -> Recorded<'_> {
        self.problem(Severity::Warning, span, key, message.into())
    }

    pub(super) fn problem(
        &mut self,
        severity: Severity,
        span: Range<usize>,
        key: &str,
        message: String,
    ) -> Recorded<'_> {
        let mut offset = span.start.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.lines.partition_point(|&start| start <= offset).max(1);
        let column = 1 + self.text[self.lines[line - 1]..offset].chars().count();
        let problems = &mut self.report.problems;
        problems.push(Problem {
            severity,
            offset,
            length: span.end.min(self.text.len()).saturating_sub(offset),
            line,
            column,
            key: key.to_owned(),
            message,
            help: None,
        });
        let last = problems.len() - 1;
        Recorded(&mut problems[last])
    }

    /// The table at a top-level key, which must be a table.
    pub(super) fn top<'t>(&mut self, root: &'t Table, name: &str) -> Option<&'t Table> {
        self.table_at(root, "", name)
    }

    pub(super) fn table_at<'t>(&mut self, table: &'t Table, path: &str, key: &str) -> Option<&'t Table> {
        let node = table.get(key)?;
        self.as_table(node, &join(path, key))
    }

    pub(super) fn as_table<'t>(&mut self, node: &'t Node, path: &str) -> Option<&'t Table> {
        match &node.value {
            Value::Table(table) => Some(table),
            _ => self.wrong_kind(node, path, "a table"),
        }
    }

    /// Records that a value is of the wrong kind.
    pub(super) fn wrong_kind<T>(&mut self, node: &Node, path: &str, expected: &str) -> Option<T> {
        let message = format!("{path} must be {expected}, not {}", node.value.kind());
        self.error(node.span.clone(), path, message);
        None
    }

    pub(super) fn string_at(&mut self, table: &Table, path: &str, key: &str) -> Option<Placed<String>> {
        let node = table.get(key)?;
        match &node.value {
            Value::String(text) => Some(Placed { value: text.clone(), span: node.span.clone() }),
            _ => self.wrong_kind(node, &join(path, key), "a string"),
        }
    }

    pub(super) fn integer_at(&mut self, table: &Table, path: &str, key: &str) -> Option<Placed<i64>> {
        let node = table.get(key)?;
        match &node.value {
            Value::Integer(number) => Some(Placed { value: *number, span: node.span.clone() }),
            _ => self.wrong_kind(node, &join(path, key), "an integer"),
        }
    }

    pub(super) fn flag_at(&mut self, table: &Table, path: &str, key: &str) -> Option<Placed<bool>> {
        let node = table.get(key)?;
        match &node.value {
            Value::Boolean(flag) => Some(Placed { value: *flag, span: node.span.clone() }),
            _ => self.wrong_kind(node, &join(path, key), "true or false"),
        }
    }

    pub(super) fn array_at<'t>(&mut self, table: &'t Table, path: &str, key: &str) -> Option<&'t [Node]> {
        let node = table.get(key)?;
        match &node.value {
            Value::Array(items) => Some(items),
            _ => self.wrong_kind(node, &join(path, key), "an array"),
        }
    }

    pub(super) fn strings_at(&mut self, table: &Table, path: &str, key: &str) -> Option<Vec<Placed<String>>> {
        let items = self.array_at(table, path, key)?;
        let path = join(path, key);
        let mut texts = Vec::new();
        for (index, item) in items.iter().enumerate() {
            match &item.value {
                Value::String(text) => texts.push(Placed { value: text.clone(), span: item.span.clone() }),
                _ => self.wrong_kind(item, &format!("{path}[{index}]"), "a string")?,
            }
        }
        Some(texts)
    }

    /// A duration (FSD). Durations are strings in a configuration file.
    pub(super) fn duration_at(&mut self, table: &Table, path: &str, key: &str) -> Option<Placed<FluxDuration>> {
        let node = table.get(key)?;
        let key = join(path, key);
        let Value::String(text) = &node.value else {
            let message = format!("{key} must be a duration in quotes, not {}", node.value.kind());
            self.error(node.span.clone(), &key, message).help("write \"30s\", \"5m\", \"2h\" or \"1d\"");
            return None;
        };
        match FluxDuration::from_str(text) {
            Ok(value) => Some(Placed { value, span: node.span.clone() }),
            Err(error) => {
                self.error(node.span.clone(), &key, format!("{key}: {error}"));
                None
            }
        }
    }

    /// Reports keys that are not among `known`, with the nearest known one as help.
    pub(super) fn unknown_keys(&mut self, severity: Severity, table: &Table, path: &str, known: &[&str]) {
        for entry in &table.entries {
            if !known.contains(&entry.key.as_str()) {
                self.unknown_key(severity, entry, path, known);
            }
        }
    }

    pub(super) fn unknown_key(&mut self, severity: Severity, entry: &Entry, path: &str, known: &[&str]) {
        let key = join(path, &entry.key);
        let message = match severity {
            Severity::Error => {
                format!("unknown key {:?} in [{path}], where Flux accepts no others than its own", entry.key)
            }
            Severity::Warning => format!("unknown key {:?} in [{path}], which Flux ignores", entry.key),
        };
        let help = nearest(&entry.key, known)
            .map(|key| format!("did you mean {key:?}?"))
            .unwrap_or_else(|| format!("known keys: {}", known.join(", ")));
        self.problem(severity, entry.key_span.clone(), &key, message).help(help);
    }

    /// Reports a key of a strict table that the declared flux-core does not know yet.
    pub(super) fn needs_version(&mut self, table: &Table, path: &str, key: &str, since: FluxVersion) {
        let Some(version) = self.context.version.filter(|&version| version < since) else { return };
        if let Some(entry) = table.entry(key) {
            let key = join(path, key);
            let message = format!("{key} needs flux-core {since} or newer, {version} does not start with it");
            self.error(entry.key_span.clone(), &key, message);
        }
    }
}

/// The most similar of some words, if any is similar at all.
pub(super) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let normal = |text: &str| text.to_ascii_lowercase().replace('_', "-");
    known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(&normal(word), &normal(candidate)), *candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len() / 4)
        .min()
        .map(|(_, candidate)| candidate)
}
