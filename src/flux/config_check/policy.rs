//! `[policy]` and `[queues]` (RFC 33, *Flux Job Queues*).

use super::Severity;
use super::reader::Checker;
use super::syntax::{Entry, Node, Table, Value, join};

const POLICY_KEYS: [&str; 4] = ["jobspec", "limits", "access", "scheduler"];
const QUEUE_KEYS: [&str; 3] = ["policy", "requires", "parent"];
const SIZE_KEYS: [&str; 3] = ["nnodes", "ncores", "ngpus"];

/// Characters that a property in `requires` must not have.
const BAD_REQUIRES: &str = " \t!&'\"`|()";

/// What a policy sets.
#[derive(Default)]
struct Policy {
    default_queue: Option<(String, std::ops::Range<usize>)>,
    default_duration: bool,
    limits_duration: bool,
    has_scheduler: bool,
}

/// Checks both tables and how they go together.
pub(super) fn check(checker: &mut Checker<'_>, root: &Table) {
    let policy = match checker.top(root, "policy") {
        Some(table) => policy(checker, table, "policy"),
        None => Policy::default(),
    };
    let queues = checker.top(root, "queues");
    if let Some(queues) = queues {
        check_queues(checker, queues);
    }
    let none = Table::default();
    let queues = queues.unwrap_or(&none);
    let span = root.entry("queues").map_or(0..0, |entry| entry.key_span.clone());
    match &policy.default_queue {
        Some((name, place)) if queues.get(name).is_none() => {
            let key = "policy.jobspec.defaults.system.queue";
            checker.error(place.clone(), key, format!("the default queue {name:?} is not in [queues]"));
        }
        Some(_) => {
            checker
                .warning(span, "queues", "named queues are stopped at first: jobs wait")
                .help("run `flux queue start --all` before the first job");
        }
        None if !queues.entries.is_empty() => {
            checker
                .warning(span, "queues", "there are queues but no default one: a job without a queue is refused")
                .help("set queue in [policy.jobspec.defaults.system], or give every job a queue with -q");
        }
        None => {}
    }
    if policy.limits_duration && !policy.default_duration {
        let span = root.entry("policy").map_or(0..0, |entry| entry.key_span.clone());
        checker
            .warning(span, "policy.limits.duration", "with a limit on the duration a job without one is refused")
            .help("set duration in [policy.jobspec.defaults.system], or give every job a duration with -t");
    }
}

fn policy(checker: &mut Checker<'_>, table: &Table, path: &str) -> Policy {
    checker.unknown_keys(Severity::Error, table, path, &POLICY_KEYS);
    let mut found = Policy { has_scheduler: table.get("scheduler").is_some(), ..Policy::default() };
    jobspec(checker, table, path, &mut found);
    if let Some(limits) = checker.table_at(table, path, "limits") {
        found.limits_duration = check_limits(checker, limits, &join(path, "limits"));
    }
    if let Some(access) = checker.table_at(table, path, "access") {
        let path = join(path, "access");
        checker.unknown_keys(Severity::Error, access, &path, &["allow-user", "allow-group"]);
        checker.strings_at(access, &path, "allow-user");
        checker.strings_at(access, &path, "allow-group");
    }
    found
}

fn jobspec(checker: &mut Checker<'_>, table: &Table, path: &str, found: &mut Policy) {
    let mut table = table;
    let mut path = path.to_owned();
    for (key, known) in [("jobspec", ["defaults"]), ("defaults", ["system"])] {
        let Some(inner) = checker.table_at(table, &path, key) else { return };
        path = join(&path, key);
        checker.unknown_keys(Severity::Error, inner, &path, &known);
        table = inner;
    }
    let Some(system) = checker.table_at(table, &path, "system") else { return };
    let path = join(&path, "system");
    checker.unknown_keys(Severity::Error, system, &path, &["duration", "queue"]);
    found.default_duration = checker.duration_at(system, &path, "duration").is_some_and(|d| d.value.seconds() > 0.0);
    found.default_queue = checker.string_at(system, &path, "queue").map(|queue| (queue.value, queue.span));
}

/// True if the duration is limited.
fn check_limits(checker: &mut Checker<'_>, limits: &Table, path: &str) -> bool {
    checker.unknown_keys(Severity::Error, limits, path, &["duration", "job-size"]);
    let duration = checker.duration_at(limits, path, "duration");
    if let Some(sizes) = checker.table_at(limits, path, "job-size") {
        let path = join(path, "job-size");
        checker.unknown_keys(Severity::Error, sizes, &path, &["min", "max"]);
        for bound in ["min", "max"] {
            if let Some(table) = checker.table_at(sizes, &path, bound) {
                check_size(checker, table, &join(&path, bound), bound == "min");
            }
        }
    }
    duration.is_some_and(|d| d.value.seconds() > 0.0 && d.value.seconds().is_finite())
}

/// -1 means no limit.
fn check_size(checker: &mut Checker<'_>, table: &Table, path: &str, minimum: bool) {
    checker.unknown_keys(Severity::Error, table, path, &SIZE_KEYS);
    for key in SIZE_KEYS {
        let Some(number) = checker.integer_at(table, path, key) else { continue };
        let one = i64::from(key != "ngpus");
        let key = join(path, key);
        if number.value < -1 {
            checker.error(number.span, &key, format!("{key} must be -1 (no limit) or larger, not {}", number.value));
        } else if minimum && number.value > one || !minimum && (0..one).contains(&number.value) {
            checker.warning(number.span, &key, format!("with {key} = {} small jobs are refused", number.value));
        }
    }
}

fn check_queues(checker: &mut Checker<'_>, queues: &Table) {
    for entry in &queues.entries {
        let path = join("queues", &entry.key);
        if let Some(table) = checker.as_table(&entry.node, &path) {
            check_queue(checker, table, &path);
            check_parent(checker, queues, entry, table, &path);
        }
    }
}

fn check_queue(checker: &mut Checker<'_>, table: &Table, path: &str) {
    checker.unknown_keys(Severity::Error, table, path, &QUEUE_KEYS);
    let is_virtual = table.get("parent").is_some();
    if let Some(inner) = checker.table_at(table, path, "policy") {
        let path = join(path, "policy");
        let found = policy(checker, inner, &path);
        if let Some((_, span)) = found.default_queue {
            checker.error(span, &path, "the policy of a queue must not set a default queue");
        }
        if found.has_scheduler && is_virtual {
            let span = inner.entry("scheduler").map_or(0..0, |entry| entry.key_span.clone());
            checker.error(span, &path, "a queue with a parent must not set policy.scheduler");
        }
        if found.limits_duration && !found.default_duration {
            let span = inner.entry("limits").map_or(0..0, |entry| entry.key_span.clone());
            checker.warning(span, &path, "with a limit on the duration a job without one is refused");
        }
    }
    if let Some(requires) = table.entry("requires").filter(|_| is_virtual) {
        checker.error(requires.key_span.clone(), path, "a queue with a parent must not set requires");
    }
    for property in checker.strings_at(table, path, "requires").unwrap_or_default() {
        if let Some(bad) = property.value.chars().find(|&c| BAD_REQUIRES.contains(c)) {
            let message = format!("{bad:?} must not stand in the property {:?}", property.value);
            checker.error(property.span, &join(path, "requires"), message);
        }
    }
}

/// `parent`: an ordinary queue.
fn check_parent(checker: &mut Checker<'_>, queues: &Table, entry: &Entry, table: &Table, path: &str) {
    let Some(parent) = checker.string_at(table, path, "parent") else { return };
    let key = join(path, "parent");
    let is_virtual = |node: &Node| matches!(&node.value, Value::Table(table) if table.get("parent").is_some());
    let message = match queues.get(&parent.value) {
        _ if parent.value == entry.key => "a queue cannot be its own parent".to_owned(),
        None => format!("the parent queue {:?} is not configured", parent.value),
        Some(node) if is_virtual(node) => format!("the parent queue {:?} has a parent itself", parent.value),
        Some(_) => return,
    };
    checker.error(parent.span, &key, message);
}
