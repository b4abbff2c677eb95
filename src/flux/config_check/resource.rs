//! `[resource]`: where the resources come from, and whether they are those of the hosts.

use std::ops::Range;

use super::bootstrap::Found;
use super::reader::Checker;
use super::schema::{Kind, Schema, Unknown};
use super::syntax::{Node, Table, Value, join};
use super::{PodFile, Severity};
use crate::flux::hostlist::Hostlist;
use crate::flux::idset::IdSet;
use crate::flux::resource_set::{ConfigEntry, ResourceSet, VerifyMode, VerifyPolicy};

const TABLE: &str = "resource";

const SCHEMA: Schema = Schema {
    path: TABLE,
    unknown: Unknown::Fatal,
    keys: &[
        ("path", Kind::Text),
        ("config", Kind::Any),
        ("exclude", Kind::Text),
        ("noverify", Kind::Flag),
        ("norestrict", Kind::Flag),
        ("verify", Kind::Any),
        ("scheduling", Kind::Text),
        ("rediscover", Kind::Flag),
        ("journal-max", Kind::Integer),
        ("history", Kind::Duration),
        ("no-update-watch", Kind::Flag),
    ],
    since: &[("verify", 82)],
};

const CONFIG_KEYS: [&str; 4] = ["hosts", "cores", "gpus", "properties"];

const VERIFY_KEYS: [&str; 4] = ["default", "hostname", "core", "gpu"];

/// Checks the table, the resources it names, and their agreement with `[bootstrap]`.
pub(super) fn check(checker: &mut Checker<'_>, root: &Table, bootstrap: Option<&Found>) {
    let Some(table) = checker.top(root, TABLE) else {
        dynamic_discovery(checker, root, bootstrap);
        return;
    };
    SCHEMA.check(checker, table);
    let policy = verify_policy(checker, table);
    let source = resources(checker, table);
    if let Source::Discovery = source {
        dynamic_discovery(checker, root, bootstrap);
        scheduling(checker, table, false);
    } else {
        scheduling(checker, table, true);
    }
    let mut ranked = None;
    if let Source::Known(set, span) = &source {
        ranked = rank(checker, set, span.clone(), bootstrap);
        checker.report.resources.clone_from(&ranked);
        if let (Some(set), Some(policy)) = (&ranked, policy) {
            verify(checker, set, span.clone(), &policy);
        }
    }
    exclude(checker, table, &source, ranked.as_ref(), bootstrap);
}

/// Where the resources come from.
enum Source {
    /// Written or in a known file, and where that is said.
    Known(ResourceSet, Range<usize>),
    /// In a file that is not known, or wrong.
    Unknown,
    /// The brokers look at their hardware.
    Discovery,
}

fn resources(checker: &mut Checker<'_>, table: &Table) -> Source {
    if let Some(node) = table.get("config") {
        if let Some(path) = table.entry("path") {
            checker.warning(path.key_span.clone(), "resource.path", "path has no effect beside config");
        }
        return config(checker, node);
    }
    let Some(node) = table.get("path") else { return Source::Discovery };
    let Value::String(path) = &node.value else { return Source::Unknown };
    let span = node.span.clone();
    let file = if path.is_empty() { PodFile::Missing } else { (checker.context.files)(path) };
    match file {
        PodFile::Unknown => Source::Unknown,
        PodFile::Missing => {
            checker.error(span, "resource.path", format!("there will be no file {path:?} in the pods"));
            Source::Unknown
        }
        PodFile::Text { text, .. } => match ResourceSet::parse(&text) {
            Ok(set) => Source::Known(set, span),
            Err(error) => {
                checker.error(span, "resource.path", format!("{path}: {error}"));
                Source::Unknown
            }
        },
    }
}

/// `[[resource.config]]`.
fn config(checker: &mut Checker<'_>, node: &Node) -> Source {
    let Value::Array(items) = &node.value else {
        checker.wrong_kind::<()>(node, "resource.config", "an array of tables");
        return Source::Unknown;
    };
    let mut entries = Vec::new();
    let before = checker.report.problems.len();
    for (index, item) in items.iter().enumerate() {
        let path = format!("resource.config[{index}]");
        if let Some(table) = checker.as_table(item, &path) {
            entries.push(config_entry(checker, table, item, &path));
        }
    }
    if checker.report.problems[before..].iter().any(|problem| problem.severity == Severity::Error) {
        return Source::Unknown;
    }
    match ResourceSet::from_config(&entries) {
        Ok(set) => Source::Known(set, node.span.clone()),
        Err(error) => {
            checker.error(node.span.clone(), "resource.config", format!("resource.config: {error}"));
            Source::Unknown
        }
    }
}

fn config_entry(checker: &mut Checker<'_>, table: &Table, item: &Node, path: &str) -> ConfigEntry {
    checker.unknown_keys(Severity::Error, table, path, &CONFIG_KEYS);
    if table.get("hosts").is_none() {
        checker.error(item.span.clone(), path, format!("{path} has no hosts"));
    }
    let hosts = checker.string_at(table, path, "hosts");
    if let Some(hosts) = &hosts
        && let Err(error) = Hostlist::decode_as_flux(&hosts.value)
    {
        checker.error(hosts.span.clone(), &join(path, "hosts"), format!("{path}.hosts: {error}"));
    }
    let mut ids = |key: &str| {
        let text = checker.string_at(table, path, key)?;
        if let Err(error) = text.value.parse::<IdSet>() {
            checker.error(text.span, &join(path, key), format!("{path}.{key}: {error}"));
        }
        Some(text.value)
    };
    let (cores, gpus) = (ids("cores"), ids("gpus"));
    let properties = checker.strings_at(table, path, "properties").unwrap_or_default();
    ConfigEntry {
        hosts: hosts.map(|hosts| hosts.value).unwrap_or_default(),
        cores,
        gpus,
        properties: properties.into_iter().map(|text| text.value).collect(),
    }
}

/// Without written resources every configured broker has to come before any job can start.
fn dynamic_discovery(checker: &mut Checker<'_>, root: &Table, bootstrap: Option<&Found>) {
    let size = bootstrap.and_then(|found| found.hosts.as_ref()).map_or(1, |hosts| hosts.len().max(1));
    let missing = checker.context.online.map_or(0, |online| size.saturating_sub(online.len()));
    if missing > 0 {
        let message = format!(
            "nothing says what resources there are, and {missing} of {size} brokers may be missing: \
             discovery never ends, jobs never start, and the brokers hang when they stop"
        );
        let header = root.entry(TABLE).or(root.entry("bootstrap")).map_or(0..0, |entry| entry.key_span.clone());
        checker.error(header, TABLE, message).help("give [resource] a path to R, or [[resource.config]] for all hosts");
    }
}

fn scheduling(checker: &mut Checker<'_>, table: &Table, has_resources: bool) {
    let Some(Node { span, value: Value::String(path) }) = table.get("scheduling") else { return };
    let key = "resource.scheduling";
    if !has_resources {
        checker.error(span.clone(), key, "scheduling needs path or config beside it");
        return;
    }
    match (checker.context.files)(path) {
        PodFile::Unknown => {}
        PodFile::Missing => {
            checker.error(span.clone(), key, format!("there will be no file {path:?} in the pods"));
        }
        PodFile::Text { text, .. } => {
            if let Err(error) = serde_json::from_str::<serde_json::Value>(&text) {
                checker.error(span.clone(), key, format!("{path}: not valid JSON: {error}"));
            }
        }
    }
}

/// The resources with the ranks that they get at start.
fn rank(
    checker: &mut Checker<'_>,
    set: &ResourceSet,
    span: Range<usize>,
    bootstrap: Option<&Found>,
) -> Option<ResourceSet> {
    if let Some(rank) = set.first_rank_without_resources() {
        checker.error(span, TABLE, format!("rank {rank} has neither cores nor GPUs"));
        return None;
    }
    if set.is_expired() {
        checker.warning(
            span.clone(),
            TABLE,
            "the resources expire at a time in the past: jobs end as soon as they start",
        );
    }
    let hosts = match bootstrap {
        None => return Some(set.clone()),
        Some(found) => found.hosts.as_ref()?,
    };
    let names = if hosts.is_empty() { checker.context.hosts.clone() } else { hosts.names() };
    match set.rerank(&names) {
        Ok(ranked) => Some(ranked),
        Err(error) => {
            checker
                .error(span, TABLE, format!("the resources do not fit [bootstrap]: {error}"))
                .help("they must have exactly the same host names; the order does not matter");
            None
        }
    }
}

/// The `verify` and `noverify` keys; `None` if nothing is compared.
fn verify_policy(checker: &mut Checker<'_>, table: &Table) -> Option<VerifyPolicy> {
    let policy = match table.get("verify").map(|node| (node, &node.value)) {
        None => VerifyPolicy::default(),
        Some((_, Value::Boolean(true))) => VerifyPolicy::all(VerifyMode::Strict),
        Some((_, Value::Boolean(false))) => VerifyPolicy::all(VerifyMode::Ignore),
        Some((_, Value::Table(verify))) => verify_table(checker, verify),
        Some((node, _)) => {
            checker.wrong_kind::<()>(node, "resource.verify", "a table, true or false");
            return None;
        }
    };
    let off = matches!(table.get("noverify").map(|node| &node.value), Some(Value::Boolean(true)));
    (!off && policy != VerifyPolicy::all(VerifyMode::Ignore)).then_some(policy)
}

fn verify_table(checker: &mut Checker<'_>, table: &Table) -> VerifyPolicy {
    let path = "resource.verify";
    checker.unknown_keys(Severity::Error, table, path, &VERIFY_KEYS);
    let mut mode = |key: &str| {
        let text = checker.string_at(table, path, key)?;
        let mode = text.value.parse::<VerifyMode>();
        if mode.is_err() {
            let key = join(path, key);
            let message = format!("{key}: unknown mode {:?}", text.value);
            checker.error(text.span, &key, message).help(format!("modes: {}", VerifyMode::NAMES.join(", ")));
        }
        mode.ok()
    };
    let default = mode("default").unwrap_or(VerifyMode::Strict);
    let mut policy = VerifyPolicy::all(default);
    policy.hostname = mode("hostname").unwrap_or(default);
    policy.core = mode("core").unwrap_or(default);
    policy.gpu = mode("gpu").unwrap_or(default);
    policy
}

fn verify(checker: &mut Checker<'_>, set: &ResourceSet, span: Range<usize>, policy: &VerifyPolicy) {
    let Some(hardware) = checker.context.hardware else { return };
    if let Err(error) = set.verify(hardware, policy) {
        checker
            .warning(span, TABLE, format!("{error}: that broker drains itself, and jobs wait for ever"))
            .help("list the cores that there are, or set noverify = true");
    }
}

/// `exclude`: an idset of ranks, or else a hostlist.
fn exclude(
    checker: &mut Checker<'_>,
    table: &Table,
    source: &Source,
    set: Option<&ResourceSet>,
    bootstrap: Option<&Found>,
) {
    let Some(Node { span, value: Value::String(text) }) = table.get("exclude") else { return };
    let key = "resource.exclude";
    let size = match bootstrap {
        None => Some(1),
        Some(found) => found.hosts.as_ref().map(|hosts| hosts.len().max(1)),
    };
    let ranks = match (text.parse::<IdSet>(), source, set) {
        (Ok(ranks), _, _) => ranks,
        (Err(_), Source::Discovery, _) => {
            let message = "exclude can only name hosts if path or config says what resources there are";
            checker.error(span.clone(), key, message).help("exclude ranks instead");
            return;
        }
        (Err(_), _, None) => return,
        (Err(_), _, Some(set)) => match ranks_of_hosts(set, text) {
            Ok(ranks) => ranks,
            Err(why) => {
                checker.error(
                    span.clone(),
                    key,
                    format!("exclude {text:?} is neither an idset nor a list of hosts: {why}"),
                );
                return;
            }
        },
    };
    let Some(size) = size else { return };
    if ranks.last().is_some_and(|last| last as usize >= size) {
        checker.error(span.clone(), key, format!("exclude {text:?} names ranks beyond {}", size - 1));
        return;
    }
    let all = IdSet::first_n(u32::try_from(size).unwrap_or(u32::MAX));
    let online = checker.context.online.unwrap_or(&all);
    if !online.is_empty() && online.intersection(&all).difference(&ranks).is_empty() {
        checker.warning(span.clone(), key, "exclude leaves no broker for jobs that is sure to be up");
    }
}

fn ranks_of_hosts(set: &ResourceSet, text: &str) -> Result<IdSet, String> {
    let hosts = Hostlist::decode_as_flux(text).map_err(|error| error.to_string())?;
    let names = set.hosts().ok_or("the resources have no host names")?;
    let all: Vec<u32> = set.ranks().iter().collect();
    let mut ranks = Vec::new();
    for host in hosts.iter() {
        let at = names.find(&host).ok_or(format!("{host} is not in the resources"))?;
        ranks.extend(all.get(at));
    }
    ranks.sort_unstable();
    ranks.dedup();
    IdSet::from_ids(ranks).map_err(|error| error.to_string())
}
