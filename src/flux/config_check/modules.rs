//! All other tables: the tree, access, job execution, schedulers, and tables that nothing reads.

use super::reader::{Checker, nearest};
use super::schema::{Kind, Schema, Unknown};
use super::syntax::{Node, Table, Value, join};
use super::{PodFile, Severity};
use crate::flux::config::QueuePolicy;

/// Tables that some part of Flux reads.
const TABLES: [&str; 34] = [
    "access",
    "archive",
    "bootstrap",
    "content",
    "content-files",
    "content-s3",
    "content-sqlite",
    "cron",
    "exec",
    "fake-resources",
    "heartbeat",
    "ingest",
    "job-exec",
    "job-info",
    "job-list",
    "job-manager",
    "kvs",
    "kvs-watch",
    "modules",
    "policy",
    "queues",
    "resource",
    "sched-backfill",
    "sched-fifo",
    "sched-fluxion-feasibility",
    "sched-fluxion-qmanager",
    "sched-fluxion-resource",
    "sched-simple",
    "sdbus",
    "sdexec",
    "sdmon",
    "systemd",
    "tbon",
    "accounting",
];

const TBON: Schema = Schema {
    path: "tbon",
    unknown: Unknown::Ignored,
    keys: &[
        ("topo", Kind::Any),
        ("torpid_min", Kind::PositiveDuration),
        ("torpid_max", Kind::Duration),
        ("tcp_user_timeout", Kind::Duration),
        ("connect_timeout", Kind::Duration),
        ("zmqdebug", Kind::Integer),
        ("zmq_io_threads", Kind::AtLeast(1)),
        ("child_rcvhwm", Kind::AtLeast(0)),
        ("interface-hint", Kind::Text),
    ],
    since: &[],
};

const ACCESS: Schema = Schema {
    path: "access",
    unknown: Unknown::Fatal,
    keys: &[
        ("allow-guest-user", Kind::Flag),
        ("allow-root-owner", Kind::Flag),
        ("private-mode", Kind::Flag),
        ("roles", Kind::Any),
    ],
    since: &[("private-mode", 87), ("roles", 88)],
};

const EXEC: Schema = Schema {
    path: "exec",
    unknown: Unknown::Ignored,
    keys: &[
        ("job-shell", Kind::Text),
        ("imp", Kind::Text),
        ("method", Kind::Text),
        ("service", Kind::Text),
        ("service-override", Kind::Flag),
        ("kill-timeout", Kind::PositiveDuration),
        ("max-kill-timeout", Kind::PositiveDuration),
        ("max-kill-count", Kind::AtLeast(1)),
        ("term-signal", Kind::Text),
        ("kill-signal", Kind::Text),
        ("barrier-timeout", Kind::Duration),
        ("sdexec-properties", Kind::TextTable),
        ("sdexec-constrain-cores", Kind::Flag),
        ("sdexec-stop-timer-sec", Kind::Integer),
        ("sdexec-stop-timer-signal", Kind::Integer),
        ("testexec", Kind::Any),
    ],
    since: &[],
};

const INGEST: Schema = Schema {
    path: "ingest",
    unknown: Unknown::Ignored,
    keys: &[
        ("batch-count", Kind::Integer),
        ("buffer-size", Kind::Text),
        ("validator", Kind::Any),
        ("frobnicator", Kind::Any),
    ],
    since: &[],
};

const JOB_MANAGER: Schema = Schema {
    path: "job-manager",
    unknown: Unknown::Allowed,
    keys: &[("inactive-age-limit", Kind::Duration), ("inactive-num-limit", Kind::AtLeast(-1))],
    since: &[],
};

const HOUSEKEEPING: Schema = Schema {
    path: "job-manager.housekeeping",
    unknown: Unknown::Fatal,
    keys: &[("command", Kind::Texts), ("release-after", Kind::Duration), ("use-systemd-unit", Kind::Flag)],
    since: &[],
};

const KVS: Schema =
    Schema { path: "kvs", unknown: Unknown::Allowed, keys: &[("checkpoint-period", Kind::Duration)], since: &[] };

const HEARTBEAT: Schema = Schema {
    path: "heartbeat",
    unknown: Unknown::Fatal,
    keys: &[("period", Kind::PositiveDuration), ("timeout", Kind::Duration), ("warn_thresh", Kind::Integer)],
    since: &[],
};

/// Plugins of the job manager that come with flux-core.
const JOBTAP_PLUGINS: [&str; 6] =
    ["alloc-bypass.so", "alloc-check.so", "cancel-on-exception.so", "perilog.so", "submit-hold.so", "update-hold.so"];

/// Schedulers that come with flux-core.
const SCHEDULERS: [&str; 3] = ["sched-simple", "sched-fifo", "sched-backfill"];

const QMANAGER_KEYS: [&str; 6] = [
    "queue-policy",
    "queue-params",
    "policy-params",
    "queue-policy-per-queue",
    "queue-params-per-queue",
    "policy-params-per-queue",
];

const FLUXION_RESOURCE_KEYS: [&str; 12] = [
    "load-file",
    "load-format",
    "load-allowlist",
    "match-policy",
    "match-format",
    "match-subsystems",
    "reserve-vtx-vec",
    "prune-filters",
    "update-interval",
    "traverser",
    "hwloc-allowlist",
    "policy-params",
];

const MATCH_POLICIES: [&str; 11] =
    ["first", "firstnodex", "high", "hinode", "hinodex", "low", "lonode", "lonodex", "locality", "variation", "greedy"];

/// Checks every table that has no file of its own here.
pub(super) fn check(checker: &mut Checker<'_>, root: &Table) {
    for (schema, more) in [
        (&TBON, tbon as fn(&mut Checker<'_>, &Table, &Table)),
        (&ACCESS, access),
        (&EXEC, exec),
        (&INGEST, ingest),
        (&JOB_MANAGER, job_manager),
        (&KVS, |_, _, _| {}),
        (&HEARTBEAT, heartbeat),
    ] {
        if let Some(table) = checker.top(root, schema.path) {
            schema.check(checker, table);
            more(checker, table, root);
        }
    }
    alternatives(checker, root);
    fluxion(checker, root);
    if let Some(archive) = root.entry("archive") {
        let message = "nothing reads [archive]: the job archive was removed in flux-core 0.68";
        checker.warning(archive.key_span.clone(), "archive", message);
    }
    for entry in root.entries.iter().filter(|entry| !TABLES.contains(&entry.key.as_str())) {
        let help = nearest(&entry.key, &TABLES).map(|name| format!("did you mean [{name}]?"));
        let message = format!("nothing in Flux reads {:?}", entry.key);
        let recorded = checker.warning(entry.key_span.clone(), &entry.key, message);
        if let Some(help) = help {
            recorded.help(help);
        }
    }
}

fn tbon(checker: &mut Checker<'_>, table: &Table, _: &Table) {
    if let Some(one) = checker_integer(table, "child_rcvhwm").filter(|(_, number)| *number == 1) {
        checker.error(one.0, "tbon.child_rcvhwm", "tbon.child_rcvhwm must be 0 (no limit) or at least 2");
    }
    let seconds = |key: &str, default: f64| match table.get(key).map(|node| &node.value) {
        Some(Value::String(text)) => text.parse::<crate::flux::FluxDuration>().ok().map(|d| d.seconds()),
        Some(_) => None,
        None => Some(default),
    };
    // 0 as the upper bound turns the check off.
    if let (Some(least), Some(most)) = (seconds("torpid_min", 5.0), seconds("torpid_max", 30.0))
        && most != 0.0
        && least >= most
    {
        let span = table.get("torpid_min").or(table.get("torpid_max")).map_or(0..0, |node| node.span.clone());
        checker.error(span, "tbon.torpid_min", format!("torpid_min ({least}s) must be less than torpid_max ({most}s)"));
    }
}

fn checker_integer(table: &Table, key: &str) -> Option<(std::ops::Range<usize>, i64)> {
    match table.get(key)? {
        Node { span, value: Value::Integer(number) } => Some((span.clone(), *number)),
        _ => None,
    }
}

fn access(checker: &mut Checker<'_>, table: &Table, _: &Table) {
    let Some(roles) = checker.table_at(table, "access", "roles") else { return };
    for entry in &roles.entries {
        let path = join("access.roles", &entry.key);
        if entry.key != "admin" {
            checker
                .error(entry.key_span.clone(), &path, format!("unknown role {:?}", entry.key))
                .help("the only role is admin");
            continue;
        }
        if let Some(role) = checker.as_table(&entry.node, &path) {
            checker.unknown_keys(Severity::Error, role, &path, &["users", "groups"]);
            checker.strings_at(role, &path, "users");
            checker.strings_at(role, &path, "groups");
        }
    }
}

fn exec(checker: &mut Checker<'_>, table: &Table, root: &Table) {
    if let Some(method) = checker.string_at(table, "exec", "method")
        && !["bulk-exec", "systemd", "testexec"].contains(&method.value.as_str())
    {
        checker.error(method.span, "exec.method", format!("unknown exec.method {:?}", method.value));
    }
    for key in ["job-shell", "imp"] {
        let Some(path) = checker.string_at(table, "exec", key) else { continue };
        if (checker.context.files)(&path.value) == PodFile::Missing {
            let key = join("exec", key);
            checker.warning(path.span, &key, format!("there will be no {} in the pods: every job fails", path.value));
        }
    }
    for key in ["term-signal", "kill-signal"] {
        if let Some(signal) = checker.string_at(table, "exec", key)
            && !is_signal(&signal.value)
        {
            checker.error(signal.span, &join("exec", key), format!("unknown signal {:?}", signal.value));
        }
    }
    let systemd = match root.get("systemd").map(|node| &node.value) {
        Some(Value::Table(systemd)) => matches!(systemd.get("enable").map(|n| &n.value), Some(Value::Boolean(true))),
        _ => false,
    };
    if let Some(service) = checker.string_at(table, "exec", "service") {
        match service.value.as_str() {
            "rexec" => {}
            "sdexec" if systemd => {}
            "sdexec" => {
                checker.warning(
                    service.span,
                    "exec.service",
                    "sdexec is only there with systemd.enable = true: every job fails",
                );
            }
            other => {
                let message = format!("unknown exec.service {other:?}: every job fails");
                checker.warning(service.span, "exec.service", message).help("services: rexec, sdexec");
            }
        }
    }
}

/// A signal by number or by name, with or without SIG.
fn is_signal(text: &str) -> bool {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM",
        "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF",
        "WINCH", "POLL", "PWR", "SYS",
    ];
    text.parse::<u8>().is_ok_and(|number| (1..=64).contains(&number))
        || NAMES.contains(&text.strip_prefix("SIG").unwrap_or(text))
}

fn ingest(checker: &mut Checker<'_>, table: &Table, _: &Table) {
    if let Some(size) = checker.string_at(table, "ingest", "buffer-size")
        && parse_size(&size.value).is_none_or(|bytes| bytes > f64::from(i32::MAX))
    {
        let message = format!("{:?} is not a size such as \"10M\" below 2G", size.value);
        checker.error(size.span, "ingest.buffer-size", message);
    }
    let stages = [
        ("validator", ["feasibility", "jobspec", "require-instance", "schema"].as_slice()),
        ("frobnicator", ["constraints", "defaults"].as_slice()),
    ];
    for (stage, plugins) in stages {
        let Some(inner) = checker.table_at(table, "ingest", stage) else { continue };
        let path = join("ingest", stage);
        let known = [&["disable", "plugins", "args"], plugins].concat();
        checker.unknown_keys(Severity::Warning, inner, &path, &known);
        checker.flag_at(inner, &path, "disable");
        checker.strings_at(inner, &path, "args");
        for plugin in checker.strings_at(inner, &path, "plugins").unwrap_or_default() {
            if !plugins.contains(&plugin.value.as_str()) {
                let message =
                    format!("{:?} is no {stage} of flux-core: without it jobs cannot be submitted", plugin.value);
                checker
                    .warning(plugin.span, &join(&path, "plugins"), message)
                    .help(format!("known: {}", plugins.join(", ")));
            }
        }
    }
}

/// Bytes, with k, K, M, G, T, P or E for powers of 1024.
fn parse_size(text: &str) -> Option<f64> {
    let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let scale = match &text[number.len()..] {
        "" => 0,
        "k" | "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        "P" => 5,
        "E" => 6,
        _ => return None,
    };
    let value: f64 = number.parse().ok().filter(|value: &f64| value.is_finite() && *value >= 0.0)?;
    Some(value * 1024f64.powi(scale))
}

fn job_manager(checker: &mut Checker<'_>, table: &Table, root: &Table) {
    for (index, item) in checker.array_at(table, "job-manager", "plugins").unwrap_or_default().iter().enumerate() {
        let path = format!("job-manager.plugins[{index}]");
        let Some(plugin) = checker.as_table(item, &path) else { continue };
        if let Some(remove) = checker.string_at(plugin, &path, "remove")
            && !removes_something(&remove.value)
        {
            let key = join(&path, "remove");
            checker
                .error(remove.span, &key, format!("no plugin is called {:?}", remove.value))
                .help("names of built-in plugins start with a dot; \"all\" removes every other one");
        }
        if let Some(load) = checker.string_at(plugin, &path, "load") {
            jobtap_plugin(checker, &load.value, load.span, &path);
        }
    }
    if let Some(housekeeping) = checker.table_at(table, "job-manager", "housekeeping") {
        HOUSEKEEPING.check(checker, housekeeping);
        let imp =
            matches!(root.get("exec").map(|node| &node.value), Some(Value::Table(exec)) if exec.get("imp").is_some());
        if housekeeping.get("command").is_none() && !imp {
            let span = table.entry("housekeeping").map_or(0..0, |entry| entry.key_span.clone());
            checker
                .error(span, "job-manager.housekeeping", "housekeeping without a command needs exec.imp")
                .help("set command = [\"…\"]");
        }
    }
}

/// Built-in plugins have names with a leading dot, which a pattern only matches with a dot of its own.
fn removes_something(name: &str) -> bool {
    name == "all" || name.starts_with('.') || JOBTAP_PLUGINS.contains(&name)
}

fn jobtap_plugin(checker: &mut Checker<'_>, load: &str, span: std::ops::Range<usize>, path: &str) {
    let file = if load.contains('/') { (checker.context.files)(load) } else { PodFile::Unknown };
    let key = join(path, "load");
    if file == PodFile::Missing {
        checker.error(span, &key, format!("there will be no plugin {load} in the pods"));
    } else if !load.contains('/') && !JOBTAP_PLUGINS.contains(&load) {
        checker
            .error(span, &key, format!("flux-core has no plugin {load:?}"))
            .help("give the absolute path of a plugin that the image brings along");
    }
}

fn heartbeat(checker: &mut Checker<'_>, table: &Table, _: &Table) {
    let seconds = |key: &str, default: f64| match table.get(key).map(|node| &node.value) {
        Some(Value::String(text)) => text.parse::<crate::flux::FluxDuration>().ok().map(|d| d.seconds()),
        Some(_) => None,
        None => Some(default),
    };
    let (Some(period), Some(timeout)) = (seconds("period", 2.0), seconds("timeout", 300.0)) else { return };
    if timeout != 0.0 && timeout < period * 2.0 {
        let span = table.get("timeout").or(table.get("period")).map_or(0..0, |node| node.span.clone());
        checker.error(span, "heartbeat.timeout", "heartbeat.timeout must be at least twice the period");
    }
}

/// `[modules] alternatives.sched`: which scheduler to load.
fn alternatives(checker: &mut Checker<'_>, root: &Table) {
    let Some(modules) = checker.top(root, "modules") else { return };
    let Some(alternatives) = checker.table_at(modules, "modules", "alternatives") else { return };
    let Some(scheduler) = checker.string_at(alternatives, "modules.alternatives", "sched") else { return };
    let key = "modules.alternatives.sched";
    let fluxion = scheduler.value.starts_with("sched-fluxion-qmanager");
    match (SCHEDULERS.contains(&scheduler.value.as_str()), fluxion, checker.context.fluxion) {
        (true, _, _) | (_, true, Some(true)) => {}
        (_, true, None) => {
            checker.warning(scheduler.span, key, "this scheduler is only there if flux-sched is installed");
        }
        _ => {
            checker
                .error(scheduler.span, key, format!("no scheduler {:?} is installed", scheduler.value))
                .help(format!("schedulers: {}", SCHEDULERS.join(", ")));
        }
    }
}

/// The tables of flux-sched: strict where it is installed, without effect where not.
fn fluxion(checker: &mut Checker<'_>, root: &Table) {
    let severity = match checker.context.fluxion {
        Some(true) => Severity::Error,
        Some(false) => return,
        None => Severity::Warning,
    };
    let name = "sched-fluxion-qmanager";
    if let Some(table) = fluxion_table(root, name) {
        checker.unknown_keys(severity, table, name, &QMANAGER_KEYS);
        let policy = table.get("queue-policy");
        let known = |node: &Node| matches!(&node.value, Value::String(text) if text.parse::<QueuePolicy>().is_ok());
        if let Some(node) = policy.filter(|node| !known(node)) {
            let names: Vec<&str> = QueuePolicy::ALL.iter().map(|policy| policy.as_str()).collect();
            checker
                .warning(
                    node.span.clone(),
                    "sched-fluxion-qmanager.queue-policy",
                    "unknown queue policy, taken for fcfs",
                )
                .help(format!("policies: {}", names.join(", ")));
        }
    }
    let name = "sched-fluxion-resource";
    if let Some(table) = fluxion_table(root, name) {
        checker.unknown_keys(severity, table, name, &FLUXION_RESOURCE_KEYS);
        // A text with "=" is a custom policy.
        let known = |text: &str| MATCH_POLICIES.contains(&text) || text.contains('=');
        if let Some(Node { span, value: Value::String(text) }) = table.get("match-policy")
            && !known(text)
        {
            let message = format!("unknown match policy {text:?}");
            checker
                .problem(severity, span.clone(), "sched-fluxion-resource.match-policy", message)
                .help(format!("policies: {}", MATCH_POLICIES.join(", ")));
        }
    }
}

fn fluxion_table<'t>(root: &'t Table, name: &str) -> Option<&'t Table> {
    match root.get(name).map(|node| &node.value) {
        Some(Value::Table(table)) => Some(table),
        _ => None,
    }
}
