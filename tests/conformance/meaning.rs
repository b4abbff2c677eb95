//! What a run means, in one form for ours and the operator's: the broker's command line taken apart, other calls by name.

use std::collections::BTreeMap;

use flux_gen::flux::hostlist::Hostlist;
use flux_gen::model::words;
use serde_json::{Map, Value, json};

use crate::sandbox::{Call, Recorded};

/// What the forms of both sides need to know of the document.
pub struct Words<'a> {
    pub input: &'a Value,
    pub submit: Vec<String>,
    /// Variables to compare besides those of Flux.
    pub variables: Vec<String>,
    pub secret_key: String,
}

/// A run's meaning and the order of its calls.
pub struct Meaning {
    pub value: Value,
    pub order: Vec<String>,
}

/// Ours.
pub fn of_run(run: &Recorded, complete: bool, words: &Words<'_>) -> Meaning {
    let (mut value, order) = of_calls(&run.calls, words);
    // A run that was cut ends by the signal; how is of no meaning.
    value.insert("exit".to_owned(), if run.cut { Value::Null } else { json!(run.exit) });
    value.insert("cut".to_owned(), if run.cut { json!(true) } else { Value::Null });
    value.insert("complete".to_owned(), if complete { json!(true) } else { Value::Null });
    value.insert("waits-for".to_owned(), run.ports.first().map_or(Value::Null, |p| json!(p)));
    let curve = run.curve.as_deref().and_then(|c| c.split_once(' '));
    value.insert("curve".to_owned(), curve.map_or(Value::Null, |(mode, owner)| json!({"mode": format!("{mode:0>4}"), "owner": owner})));
    let all = format!("{}{}", run.stdout, run.stderr);
    let printed = all.matches(&words.secret_key).count();
    value.insert("prints".to_owned(), prints(run.stdout.lines(), printed, words));
    Meaning { value: tidy(value), order }
}

/// The operator's.
pub fn of_expected(role: &Value, words: &Words<'_>) -> Meaning {
    let mut env = BTreeMap::new();
    let mut calls = Vec::new();
    for call in role["calls"].as_array().into_iter().flatten() {
        let list = |v: &Value| -> Vec<String> {
            v.as_array().into_iter().flatten().filter_map(|w| w.as_str().map(str::to_owned)).collect()
        };
        if let Some(map) = call["env"].as_object() {
            env = map.iter().map(|(n, v)| (n.clone(), v.as_str().unwrap_or_default().to_owned())).collect();
        }
        let not_found = list(&call["notFound"]);
        calls.push(Call {
            run: call["run"].as_str().unwrap_or("?").to_owned(),
            cwd: call["cwd"].as_str().unwrap_or_default().to_owned(),
            exe: call["exe"].as_str().unwrap_or_default().to_owned(),
            argv: if call["run"].is_null() { not_found } else { list(&call["argv"]) },
            env: env.clone(),
        });
    }
    let (mut value, order) = of_calls(&calls, words);
    value.insert("exit".to_owned(), if role["cut"].is_null() { role["exit"].clone() } else { Value::Null });
    value.insert("cut".to_owned(), if role["cut"].is_null() { Value::Null } else { json!(true) });
    let complete = role["wrote"].as_object().is_some_and(|w| w.keys().any(|k| k.ends_with("/flux-operator-complete.txt")));
    value.insert("complete".to_owned(), if complete { json!(true) } else { Value::Null });
    let curve = role["curveCert"].as_object().and_then(|c| c.values().next()).cloned();
    value.insert("curve".to_owned(), curve.unwrap_or(Value::Null));
    let user = role["stdout"]["user"].as_array().cloned().unwrap_or_default();
    let printed = role["stdout"]["certificatePrinted"].as_u64().unwrap_or(0);
    let printed = usize::try_from(printed).unwrap_or(usize::MAX);
    value.insert("prints".to_owned(), prints(user.iter().filter_map(Value::as_str), printed, words));
    Meaning { value: tidy(value), order }
}

fn tidy(value: Map<String, Value>) -> Value {
    crate::compare::without_empties(&Value::Object(value)).unwrap_or_else(|| json!({}))
}

/// Lines that the document's own commands print, and how often the secret key is printed.
fn prints<'a>(lines: impl Iterator<Item = &'a str>, certificate: usize, words: &Words<'_>) -> Value {
    let document = words.input.to_string();
    let own = |line: &&str| {
        let quoted = Value::from(line.trim()).to_string();
        line.trim().len() > 2 && document.contains(quoted.trim_matches('"'))
    };
    let user: Vec<&str> = lines.filter(own).collect();
    json!({"user": user.join("\n"), "certificate": if certificate > 0 { json!(certificate) } else { Value::Null }})
}

fn of_calls(calls: &[Call], words: &Words<'_>) -> (Map<String, Value>, Vec<String>) {
    let mut value = Map::new();
    let mut others: Map<String, Value> = Map::new();
    let mut order = Vec::new();
    let mut brokers: Vec<(Value, u32)> = Vec::new();
    for call in calls {
        let first = call.argv.first().map(String::as_str).unwrap_or_default();
        if call.run == "flux" && matches!(first, "broker" | "start") {
            let broker = broker(call, words);
            match brokers.last_mut() {
                Some((last, times)) if *last == broker => *times += 1,
                _ => {
                    brokers.push((broker, 1));
                    order.push(format!("broker{}", brokers.len()));
                }
            }
            continue;
        }
        let name = match call.run.as_str() {
            "flux" => format!("flux {first}"),
            "?" => format!("not found: {first}"),
            run => run.to_owned(),
        };
        let number = (1..).find(|n| !others.contains_key(&format!("[{name}#{n}]"))).unwrap_or(0);
        let key = format!("[{name}#{number}]");
        order.push(key.clone());
        let argv = Value::from(call.argv.clone());
        others.insert(key, json!({"argv": argv, "cwd": call.cwd}));
    }
    value.insert("calls".to_owned(), Value::Object(others));
    for (index, (mut broker, times)) in brokers.into_iter().enumerate() {
        broker["times"] = json!(times);
        value.insert(if index == 0 { "broker".to_owned() } else { format!("broker#{}", index + 1) }, broker);
    }
    (value, order)
}

/// A broker's command line: configuration, attributes, initial program.
fn broker(call: &Call, document: &Words<'_>) -> Value {
    let mut config = Value::Null;
    let mut wrap = Value::Null;
    let mut attributes = Map::new();
    let mut words = call.argv.iter().skip(1).map(String::as_str).peekable();
    while let Some(word) = words.peek() {
        let option = word.strip_prefix("-o-").map_or_else(|| (*word).to_owned(), |rest| format!("-{rest}"));
        if let Some(path) = option.strip_prefix("--config-path=") {
            config = json!(path);
        } else if option == "--config" || option == "--config-path" {
            words.next();
            config = words.peek().map_or(Value::Null, |path| json!(path));
        } else if let Some(value) = option.strip_prefix("--wrap=") {
            wrap = json!(value);
        } else if let Some(attribute) = option.strip_prefix("-S") {
            let (name, value) = attribute.split_once('=').unwrap_or((attribute, "<set>"));
            attributes.insert(name.to_owned(), json!(value));
        } else if option != "-o" {
            break;
        }
        words.next();
    }
    let program: Vec<String> = words.map(str::to_owned).collect();
    let kept = |name: &str| {
        matches!(name, "PATH" | "PYTHONPATH" | "LD_LIBRARY_PATH" | "HOME" | "USER" | "STATE_DIR")
            || name.starts_with("FLUX_")
            || document.variables.iter().any(|v| v == name)
    };
    let env: Map<String, Value> =
        call.env.iter().filter(|(n, _)| kept(n)).map(|(n, v)| (n.clone(), json!(v))).collect();
    json!({
        "how": call.argv.first(),
        "config": config,
        "wrap": wrap,
        "attribute": attributes,
        "program": self::program(&program, document),
        "env": env,
        "exe": call.exe,
        "cwd": call.cwd,
    })
}

/// The initial program: what measures or records it, how it is submitted, the command.
fn program(all: &[String], document: &Words<'_>) -> Value {
    let mut rest = all;
    let mut out = Map::new();
    loop {
        rest = match rest {
            [bash, script, after @ ..] if bash == "/bin/bash" && script == "/flux_operator/record.sh" => {
                out.insert("recorded".to_owned(), json!(true));
                after
            }
            [bash, script, name, after @ ..] if bash == "/bin/bash" && script == "/flux_operator/timed.sh" => {
                out.insert("timed".to_owned(), json!({"name": name, "by": "shell"}));
                after
            }
            [time, f, format, after @ ..] if time == "/usr/bin/time" && f == "-f" && format.starts_with("FLUXTIME ") => {
                let name = format.trim_start_matches("FLUXTIME ").trim_end_matches(" wall time %E");
                out.insert("timed".to_owned(), json!({"name": name, "by": time}));
                after
            }
            rest => {
                command(rest, document, &mut out);
                return Value::Object(out);
            }
        };
    }
}

fn command(words: &[String], document: &Words<'_>, out: &mut Map<String, Value>) {
    let batch = words.iter().position(|w| w == "sh").filter(|at| words.get(at + 1).is_some_and(|w| w == "-c") && words.len() == at + 3);
    if let Some(text) = batch.and_then(|at| words.get(at + 2)).filter(|text| text.contains(" batch ") || text.contains("--flags waitable")) {
        out.insert("prefix".to_owned(), json!(words[..batch.unwrap_or(0)]));
        out.insert("mode".to_owned(), json!("batch"));
        let text = words::split(text).unwrap_or_default();
        submission(&text, out);
        return;
    }
    let submit = &document.submit;
    let at = (0..words.len()).find(|at| words[*at..].starts_with(submit) && words[at + submit.len()..].first().is_some_and(|w| w.starts_with('-')));
    match at {
        Some(at) => {
            out.insert("prefix".to_owned(), json!(words[..at]));
            out.insert("mode".to_owned(), json!("submit"));
            submission(&words[at..], out);
        }
        None if words.is_empty() => {
            out.insert("mode".to_owned(), json!("none"));
        }
        None => {
            out.insert("mode".to_owned(), json!("launcher"));
            out.insert("command".to_owned(), json!(words));
        }
    }
}

/// `SUBMIT… -N n -nN FLAGS… (--quiet --watch COMMAND… | --flags waitable FILE && …)`.
fn submission(words: &[String], out: &mut Map<String, Value>) {
    let start = words.iter().position(|w| w.starts_with('-')).unwrap_or(words.len());
    out.insert("submit".to_owned(), json!(words[..start].join(" ")));
    let mut rest = &words[start..];
    let mut nodes = Vec::new();
    while let Some(word) = rest.first() {
        if word == "-N" && rest.len() > 1 {
            nodes.push(format!("-N{}", rest[1]));
            rest = &rest[2..];
        } else if word.starts_with("-n") || word.starts_with("-N") {
            nodes.push(word.clone());
            rest = &rest[1..];
        } else {
            break;
        }
    }
    out.insert("nodes".to_owned(), json!(nodes.join(" ")));
    let end = rest.iter().position(|w| w == "--quiet" || w == "--flags").unwrap_or(rest.len());
    out.insert("flags".to_owned(), json!(rest[..end].join(" ")));
    rest = &rest[end..];
    let fixed = rest.iter().take(2).cloned().collect::<Vec<_>>().join(" ");
    out.insert("watch".to_owned(), json!(fixed));
    out.insert("command".to_owned(), json!(rest[rest.len().min(2)..]));
}

/// A broker configuration as data; hosts by position.
pub fn broker_toml(text: &str) -> Value {
    let Ok(mut value) = toml::from_str::<Value>(text) else { return json!({"invalid": true}) };
    let hosts = value["bootstrap"]["hosts"].as_array().cloned();
    if let Some(hosts) = hosts {
        let by_position: Map<String, Value> =
            hosts.into_iter().enumerate().map(|(index, host)| (format!("[{index}]"), host)).collect();
        value["bootstrap"]["hosts"] = Value::Object(by_position);
    }
    crate::compare::without_empties(&value).unwrap_or(Value::Null)
}

/// A host list, expanded.
pub fn hostlist(text: &str) -> Value {
    match Hostlist::parse(text.trim()) {
        Ok(list) => json!(list.iter().collect::<Vec<_>>().join(" ")),
        Err(_) => json!({"invalid": text.trim()}),
    }
}
