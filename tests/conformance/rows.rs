//! `docs/differences.toml`: every deliberate difference, and the check that each is exactly what its row says.
//!
//! A row covers a difference when one of its path patterns fits (`*` stands for part of one segment, never for several),
//! its conditions hold for the document, and both values are the ones it states.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::compare::Difference;

/// The operator's known oddities are numbered from 1.
const QUIRKS: u64 = 104;

/// One deliberate difference.
pub struct Row {
    pub id: String,
    paths: Vec<String>,
    when: Vec<String>,
    operator: Value,
    ours: Value,
    check: Option<String>,
    pub quirks: Vec<u64>,
}

/// What conditions and placeholders are looked up in.
pub struct Facts<'a> {
    pub input: &'a Value,
    /// `{name}`-like placeholders of the whole cluster.
    pub words: BTreeMap<String, String>,
    /// Facts of the resolved cluster, for conditions that begin with `@`.
    pub facts: BTreeSet<String>,
}

/// Reads the table and refuses rows that could hide more than they say.
pub fn read(text: &str) -> Result<Vec<Row>, String> {
    let table: Value = toml::from_str(text).map_err(|e| e.to_string())?;
    let mut ids = BTreeSet::new();
    let mut rows = Vec::new();
    for row in table["row"].as_array().into_iter().flatten() {
        let row = read_row(row)?;
        if !ids.insert(row.id.clone()) {
            return Err(format!("{}: id used twice", row.id));
        }
        rows.push(row);
    }
    every_quirk(&table, &rows)?;
    Ok(rows)
}

/// Every oddity of the operator is in a row or settled without one, with a reason.
fn every_quirk(table: &Value, rows: &[Row]) -> Result<(), String> {
    let Some(settled) = table["settled"].as_array() else { return Ok(()) };
    let mut known: BTreeSet<u64> = rows.iter().flat_map(|row| row.quirks.iter().copied()).collect();
    for group in settled {
        if group["reason"].as_str().is_none_or(|reason| reason.len() < 20) {
            return Err("settled quirks without a reason".to_owned());
        }
        known.extend(group["quirk"].as_array().into_iter().flatten().filter_map(Value::as_u64));
    }
    let missing: Vec<u64> = (1..=QUIRKS).filter(|quirk| !known.contains(quirk)).collect();
    if missing.is_empty() { Ok(()) } else { Err(format!("quirks neither in a row nor settled: {missing:?}")) }
}

fn read_row(row: &Value) -> Result<Row, String> {
    let id = row["id"].as_str().ok_or("a row without id")?.to_owned();
    let missing = |what: &str| format!("{id}: no {what}");
    for field in row.as_object().into_iter().flatten().map(|(key, _)| key) {
        if !["id", "path", "when", "operator", "ours", "check", "quirk", "reason"].contains(&field.as_str()) {
            return Err(format!("{id}: unknown key {field}"));
        }
    }
    let list = |value: &Value| match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(list) => list.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    };
    let paths = list(&row["path"]);
    let reason = row["reason"].as_str().unwrap_or_default();
    if paths.is_empty() {
        return Err(missing("path"));
    }
    if reason.len() < 20 {
        return Err(missing("reason"));
    }
    if let Some(wide) = paths.iter().find(|p| p.contains("**") || segments(p).first().is_none_or(|s| s == "*")) {
        return Err(format!("{id}: path {wide} is too wide"));
    }
    let value = |key: &str| row.get(key).cloned().ok_or_else(|| missing(key));
    let (operator, ours) = (value("operator")?, value("ours")?);
    let check = row["check"].as_str().map(str::to_owned);
    let open = |value: &Value| value == "<any>" || value == "<whatever>";
    if open(&operator) && open(&ours) && check.is_none() {
        return Err(format!("{id}: says nothing about either value"));
    }
    let quirks = row["quirk"].as_array().into_iter().flatten().filter_map(Value::as_u64).collect();
    Ok(Row { id, paths, when: list(&row["when"]), operator, ours, check, quirks })
}

impl Row {
    /// Whether the row explains the difference.
    pub fn covers(&self, difference: &Difference, facts: &Facts<'_>) -> bool {
        let scopes = self.scopes(facts);
        scopes.iter().any(|scope| self.covers_in(difference, facts, scope))
    }

    /// Rows about sidecars or services are tried with each of them.
    fn scopes(&self, facts: &Facts<'_>) -> Vec<Scope> {
        let uses = |word: &str| self.paths.iter().chain(&self.when).any(|text| text.contains(word));
        let containers = facts.input["spec"]["containers"].as_array().cloned().unwrap_or_default();
        let runner = runner(&containers);
        if uses("{sidecar") || uses("sidecar.") {
            let others = containers.into_iter().enumerate().filter(|(i, _)| Some(*i) != runner);
            others.map(|(index, value)| Scope::of("sidecar", index, value)).collect()
        } else if uses("{service") || uses("service.") {
            let services = facts.input["spec"]["services"].as_array().cloned().unwrap_or_default();
            services.into_iter().enumerate().map(|(index, value)| Scope::of("service", index, value)).collect()
        } else {
            vec![Scope::default()]
        }
    }

    fn covers_in(&self, difference: &Difference, facts: &Facts<'_>, scope: &Scope) -> bool {
        let fill = |text: &str| fill(text, facts, scope);
        self.paths.iter().any(|path| path_fits(&fill(path), &difference.path))
            && self.when.iter().all(|condition| holds(&fill(condition), facts, scope))
            && value_fits(&self.operator, difference.operator.as_ref(), &fill)
            && value_fits(&self.ours, difference.ours.as_ref(), &fill)
            && self.check.as_ref().is_none_or(|check| crate::checks::holds(check, difference, facts))
    }
}

/// Position of the container that runs Flux.
pub fn runner(containers: &[Value]) -> Option<usize> {
    if containers.len() == 1 {
        return Some(0);
    }
    containers.iter().position(|c| c["runFlux"] == true)
}

#[derive(Default)]
struct Scope {
    kind: &'static str,
    words: Vec<(String, String)>,
    value: Value,
}

impl Scope {
    fn of(kind: &'static str, index: usize, value: Value) -> Self {
        let name = value["name"].as_str().unwrap_or_default().to_owned();
        let words = vec![(format!("{{{kind}}}"), name), (format!("{{{kind}-index}}"), index.to_string())];
        Self { kind, words, value }
    }
}

fn fill(text: &str, facts: &Facts<'_>, scope: &Scope) -> String {
    let mut text = text.to_owned();
    for (word, value) in &scope.words {
        text = text.replace(word, value);
    }
    for (word, value) in &facts.words {
        text = text.replace(&format!("{{{word}}}"), value);
    }
    text
}

/// `path`, `!path`, `path=value`, `path!=value`, `@fact`, `!@fact`. A path begins with `spec`, `metadata`, `runner`,
/// `sidecar` or `service`; `[*]` stands for any item.
fn holds(condition: &str, facts: &Facts<'_>, scope: &Scope) -> bool {
    if let Some(rest) = condition.strip_prefix('!') {
        return !holds(rest, facts, scope);
    }
    if let Some(fact) = condition.strip_prefix('@') {
        return facts.facts.contains(fact);
    }
    let (path, wanted) = match condition.split_once('=') {
        Some((path, value)) => (path, Some(value)),
        None => (condition, None),
    };
    let (path, negated) = path.strip_suffix('!').map_or((path, false), |path| (path, true));
    let (root, rest) = path.split_once('.').unwrap_or((path, ""));
    let containers = facts.input["spec"]["containers"].as_array().cloned().unwrap_or_default();
    let start = match root {
        "runner" => runner(&containers).and_then(|i| containers.get(i).cloned()).unwrap_or(Value::Null),
        word if word == scope.kind => scope.value.clone(),
        word => facts.input[word].clone(),
    };
    let values = select(&start, rest);
    let fits = values.iter().any(|value| match wanted {
        None => !is_empty(value),
        Some(wanted) => glob(wanted, &plain(value)),
    });
    fits != negated
}

/// As for the API: what is null or empty is not there.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn select(value: &Value, path: &str) -> Vec<Value> {
    let mut values = vec![value.clone()];
    for step in path.split('.').filter(|step| !step.is_empty()) {
        let (field, every) = step.strip_suffix("[*]").map_or((step, false), |field| (field, true));
        values = values.iter().map(|v| v[field].clone()).filter(|v| !v.is_null()).collect();
        if every {
            values = values
                .into_iter()
                .flat_map(|v| match v {
                    Value::Array(list) => list,
                    Value::Object(map) => map.into_iter().map(|(_, v)| v).collect(),
                    _ => Vec::new(),
                })
                .collect();
        }
    }
    values
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn value_fits(wanted: &Value, actual: Option<&Value>, fill: &dyn Fn(&str) -> String) -> bool {
    match (wanted, actual) {
        (Value::String(word), actual) if word == "<absent>" => actual.is_none(),
        (Value::String(word), actual) if word == "<any>" => actual.is_some(),
        (Value::String(word), _) if word == "<whatever>" => true,
        (_, None) => false,
        (Value::String(text), Some(Value::String(actual))) => glob(&fill(text), actual),
        (Value::String(text), Some(actual @ (Value::Number(_) | Value::Bool(_)))) => fill(text) == plain(actual),
        (Value::Array(wanted), Some(Value::Array(actual))) => {
            wanted.len() == actual.len() && wanted.iter().zip(actual).all(|(w, a)| value_fits(w, Some(a), fill))
        }
        (Value::Object(wanted), Some(Value::Object(actual))) => {
            wanted.len() == actual.len()
                && wanted.iter().all(|(key, w)| actual.get(&fill(key)).is_some_and(|a| value_fits(w, Some(a), fill)))
        }
        (wanted, Some(actual)) => wanted == actual,
    }
}

/// `<*>` in a value, `*` in a condition: any text.
fn glob(pattern: &str, text: &str) -> bool {
    let star = if pattern.contains("<*>") { "<*>" } else { "*" };
    if star == "*" && pattern == text {
        return true;
    }
    glob_parts(&pattern.split(star).collect::<Vec<_>>(), text)
}

fn glob_parts(parts: &[&str], text: &str) -> bool {
    let Some((first, rest)) = parts.split_first() else { return text.is_empty() };
    let Some(mut left) = text.strip_prefix(first) else { return false };
    let Some((last, middle)) = rest.split_last() else { return left.is_empty() };
    for part in middle {
        let Some(at) = left.find(part) else { return false };
        left = &left[at + part.len()..];
    }
    left.ends_with(last)
}

/// Segments of a path: names between dots, and `[keys]`, in which dots stay.
fn segments(path: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut depth = 0_usize;
    for c in path.chars() {
        match c {
            '.' if depth == 0 => out.push(String::new()),
            '[' => {
                if depth == 0 && out.last().is_some_and(|s| !s.is_empty()) {
                    out.push(String::new());
                }
                depth += 1;
                out.last_mut().into_iter().for_each(|s| s.push(c));
            }
            ']' => {
                depth = depth.saturating_sub(1);
                out.last_mut().into_iter().for_each(|s| s.push(c));
            }
            c => out.last_mut().into_iter().for_each(|s| s.push(c)),
        }
    }
    out
}

fn path_fits(pattern: &str, path: &str) -> bool {
    let (pattern, path) = (segments(pattern), segments(path));
    pattern.len() == path.len()
        && pattern.iter().zip(&path).all(|(p, s)| p == s || glob_parts(&p.split('*').collect::<Vec<_>>(), s))
}

/// Patterns, values and conditions behave as the table's readers expect.
pub fn self_check() {
    for (pattern, path, fits) in [
        ("Job.spec.backoffLimit", "Job.spec.backoffLimit", true),
        ("Job.spec.*", "Job.spec.template.spec", false),
        ("Job.c[*].command", "Job.c[a.b].command", true),
        ("Job.c[*]", "Job.c[a.b].command", false),
        ("lead.a[tbon.*]", "lead.a[tbon.topo]", true),
        ("lead.calls[sleep#*].argv", "lead.calls[sleep#12].argv", true),
        ("lead*.exit", "lead-failing.exit", true),
    ] {
        assert_eq!(path_fits(pattern, path), fits, "{pattern} {path}");
    }
    for (pattern, text, fits) in
        [("a<*>c", "abc", true), ("a<*>c", "ab", false), ("x*", "xyz", true), ("<*>", "", true)]
    {
        assert_eq!(glob(pattern, text), fits, "{pattern} {text}");
    }
    let row = |ours: &str| {
        format!("[[row]]\nid='D1'\npath='Job.x'\noperator='<any>'\n{ours}\nreason='a reason that says enough'\n")
    };
    assert!(read(&row("ours=1")).is_ok());
    assert!(read(&row("ours='<any>'")).is_err(), "a row that says nothing is refused");
    assert!(read(&row("ours=1").replace("Job.x", "Job.**")).is_err(), "wide rows are refused");
    assert!(read(&format!("{}{}", row("ours=1"), row("ours=1"))).is_err(), "ids are unique");
}
