//! `flux submit`, `flux run`, `flux batch`.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::args::{Parsed, Spec, Takes, parse};
use crate::attrs::duration;
use crate::client::Client;
use crate::jobs::{Request, f58};
use crate::{Failure, Outcome, hostlist};

use Takes::{Nothing, Optional, Value as Val};

/// Options of all three.
const COMMON: &[Spec] = &[
    (Some('h'), "help", Nothing),
    (Some('N'), "nodes", Val),
    (Some('x'), "exclusive", Nothing),
    (Some('t'), "time-limit", Val),
    (Some('q'), "queue", Val),
    (Some('B'), "bank", Val),
    (Some('o'), "setopt", Val),
    (Some('S'), "setattr", Val),
    (None, "job-name", Val),
    (None, "dependency", Val),
    (None, "requires", Val),
    (None, "begin-time", Val),
    (None, "env", Val),
    (None, "env-remove", Val),
    (None, "env-file", Val),
    (None, "rlimit", Val),
    (None, "input", Val),
    (None, "output", Val),
    (None, "error", Val),
    (None, "cwd", Val),
    (None, "urgency", Val),
    (None, "flags", Val),
    (None, "taskmap", Val),
    (None, "signal", Val),
    (None, "add-file", Val),
    (Some('u'), "unbuffered", Nothing),
    (Some('l'), "label-io", Nothing),
    (None, "dry-run", Nothing),
    (None, "quiet", Nothing),
    (None, "debug", Nothing),
    (Some('v'), "verbose", Optional),
];
/// Options of submit and run only.
const TASKS: &[Spec] = &[
    (Some('n'), "ntasks", Val),
    (Some('c'), "cores-per-task", Val),
    (Some('g'), "gpus-per-task", Val),
    (None, "cores", Val),
    (None, "tasks-per-node", Val),
    (None, "tasks-per-core", Val),
    (None, "gpus-per-node", Val),
    (None, "wait-event", Val),
];
/// Options of submit only.
const SUBMIT: &[Spec] = &[(None, "watch", Nothing), (None, "wait", Nothing)];
/// Options of batch only.
const BATCH: &[Spec] = &[
    (Some('n'), "nslots", Val),
    (Some('c'), "cores-per-slot", Val),
    (Some('g'), "gpus-per-slot", Val),
    (None, "wrap", Nothing),
    (None, "conf", Val),
    (None, "broker-opts", Val),
    (None, "dump", Optional),
];

/// The command `flux NAME`.
pub fn command(name: &str, argv: &[String]) -> Outcome {
    let fail = |m: String| Failure::from(format!("flux-{name}: ERROR: {m}"));
    let specs: Vec<Spec> = match name {
        "submit" => [COMMON, TASKS, SUBMIT].concat(),
        "run" => [COMMON, TASKS].concat(),
        _ => [COMMON, BATCH].concat(),
    };
    let mut p = parse(&specs, argv).map_err(fail)?;
    let script = if name == "batch" { Some(batch_script(&specs, &mut p).map_err(fail)?) } else { None };
    if p.operands.is_empty() && script.is_none() {
        return Err(fail("job command and arguments are missing".to_owned()));
    }
    let mut job = request(name, &p).map_err(fail)?;
    job.script = script;
    if job.script.is_some() && job.output.is_none() {
        job.output = Some("flux-{{id}}.out".to_owned());
    }
    if p.has("dry-run") {
        println!("{}", json!({"version": 1, "tasks": [{"command": job.argv}]}));
        return Ok(0);
    }
    let mut client = Client::new(name)?;
    let answer = client.ask(&json!({"op": "submit", "job": job})).map_err(fail)?;
    let id = answer["id"].as_u64().unwrap_or_default();
    let watch = name == "run" || p.has("watch") || p.has("wait");
    let quiet = p.has("quiet") || name == "run";
    if !quiet {
        println!("{}", f58(id));
    }
    if p.has("verbose") {
        eprintln!("jobid: {}", f58(id));
    }
    if watch { attach(&mut client, id, !p.has("wait") || p.has("watch")).map_err(fail) } else { Ok(0) }
}

fn number(p: &Parsed, name: &str, least: u32) -> Result<Option<u32>, String> {
    match p.last(name) {
        None => Ok(None),
        Some(text) => match text.parse::<u32>() {
            Ok(n) if n >= least => Ok(Some(n)),
            _ => Err(format!("invalid value for --{name}: {text}")),
        },
    }
}

fn request(name: &str, p: &Parsed) -> Result<Request, String> {
    let batch = name == "batch";
    let (tasks_name, cores_name, gpus_name) = if batch {
        ("nslots", "cores-per-slot", "gpus-per-slot")
    } else {
        ("ntasks", "cores-per-task", "gpus-per-task")
    };
    let nodes = number(p, "nodes", 1)?;
    let tasks = number(p, tasks_name, 1)?;
    if batch && nodes.is_none() && tasks.is_none() {
        return Err("Number of slots to allocate must be specified".to_owned());
    }
    let per_resource = ["cores", "tasks-per-node", "tasks-per-core", "gpus-per-node"].iter().any(|o| p.has(o));
    if per_resource && (p.has("ntasks") || p.has("cores-per-task") || p.has("gpus-per-task")) {
        return Err("Per-resource options can't be used with per-task options".to_owned());
    }
    let per_node = number(p, "tasks-per-node", 1)?.unwrap_or(1);
    let tasks = tasks.unwrap_or_else(|| nodes.unwrap_or(1) * per_node);
    if nodes.is_some_and(|n| n > tasks) {
        return Err("node count must not be greater than task count".to_owned());
    }
    for text in p.all("time-limit") {
        // A bare number is minutes.
        if !duration(text) {
            return Err(format!("invalid Flux standard duration: {text}"));
        }
    }
    let mut waitable = false;
    for flag in p.all("flags").iter().flat_map(|f| f.split(',')) {
        match flag {
            "waitable" => waitable = true,
            "debug" | "signed" | "novalidate" => {}
            other => return Err(format!("Unknown flag: {other}")),
        }
    }
    number(p, "urgency", 0)?;
    let cwd = std::env::current_dir().map_err(|e| e.to_string())?.display().to_string();
    Ok(Request {
        argv: p.operands.clone(),
        cwd: p.last("cwd").map_or(cwd, str::to_owned),
        env: environment(p)?,
        nodes: nodes.unwrap_or(0),
        tasks,
        cores: number(p, cores_name, 1)?.unwrap_or(1),
        gpus: number(p, gpus_name, 0)?.unwrap_or(0),
        waitable,
        script: None,
        output: p.last("output").map(str::to_owned),
        error: p.last("error").map(str::to_owned),
    })
}

/// The caller's environment with `--env` and `--env-remove` applied.
fn environment(p: &Parsed) -> Result<std::collections::BTreeMap<String, String>, String> {
    let mut env: std::collections::BTreeMap<String, String> = std::env::vars_os()
        .map(|(k, v)| (k.to_string_lossy().into_owned(), v.to_string_lossy().into_owned()))
        .collect();
    for rule in p.all("env") {
        match (rule.strip_prefix('-'), rule.split_once('=')) {
            (Some("*"), _) => env.clear(),
            (Some(name), _) => {
                env.remove(name);
            }
            (None, Some((name, value))) => {
                env.insert(name.to_owned(), value.to_owned());
            }
            (None, None) => {
                let value = std::env::var(rule)
                    .map_err(|_| format!("--env: Variable {rule} not found in current environment"))?;
                env.insert(rule.clone(), value);
            }
        }
    }
    for name in p.all("env-remove") {
        env.remove(name);
    }
    Ok(env)
}

/// The batch script's text; its `#FLUX:` lines are options that the command line overrides.
fn batch_script(specs: &[Spec], p: &mut Parsed) -> Result<String, String> {
    if p.operands.is_empty() {
        return Err("job command and arguments are missing".to_owned());
    }
    if p.has("wrap") {
        let text = p.operands.join(" ");
        p.operands.clear();
        return Ok(format!("#!/bin/sh\n{text}\n"));
    }
    let path = p.operands.remove(0);
    let text = std::fs::read_to_string(&path).map_err(|e| format!("{path}: {}", crate::cert::describe(&e)))?;
    if !text.starts_with("#!") {
        return Err(format!("{path} does not appear to start with '#!'"));
    }
    for line in text.lines() {
        let Some(directive) = line.strip_prefix("#FLUX:").or(line.strip_prefix("# FLUX:")) else { continue };
        let words: Vec<String> = directive.split_whitespace().map(str::to_owned).collect();
        let inner = parse(specs, &words)?;
        if !inner.operands.is_empty() {
            return Err(format!("{path}: unexpected words in {line:?}"));
        }
        for (name, values) in inner.options {
            p.options.entry(name).or_insert(values);
        }
    }
    Ok(text)
}

/// Prints a job's output until it ends; its code.
///
/// # Errors
/// The broker is gone.
pub fn attach(client: &mut Client, id: u64, print: bool) -> Result<u8, String> {
    client.send(&json!({"op": "attach", "id": id}))?;
    loop {
        let Some(part) = client.receive()? else { return Err("the broker is gone".to_owned()) };
        if let Some(code) = part.get("code").and_then(Value::as_u64) {
            return Ok(u8::try_from(code).unwrap_or(1));
        }
        for (key, error) in [("out", false), ("err", true)] {
            let Some(text) = part.get(key).and_then(Value::as_str).filter(|_| print) else { continue };
            let bytes = STANDARD.decode(text).map_err(|e| e.to_string())?;
            let written = if error { std::io::stderr().write_all(&bytes) } else { std::io::stdout().write_all(&bytes) };
            written.map_err(|e| e.to_string())?;
        }
        std::io::stdout().flush().map_err(|e| e.to_string())?;
    }
}

/// `R` for hosts with the given cores and GPUs, as `flux R encode` prints it.
pub fn encode_r(hosts: &[String], ranks: &[u32], cores: &str, gpus: &str) -> String {
    let mut children = format!("\"core\": \"{cores}\"");
    if !gpus.is_empty() {
        children = format!("\"gpu\": \"{gpus}\", {children}");
    }
    format!(
        "{{\"version\": 1, \"execution\": {{\"R_lite\": [{{\"rank\": \"{}\", \"children\": {{{children}}}}}], \"starttime\": 0.0, \"expiration\": 0.0, \"nodelist\": [\"{}\"]}}}}",
        hostlist::encode_ids(ranks),
        hostlist::encode(hosts)
    )
}

#[cfg(test)]
mod tests {
    use super::{BATCH, COMMON, SUBMIT, Spec, TASKS, encode_r, parse, request};

    fn ask(name: &str, text: &str) -> Result<(u32, u32, u32, bool), String> {
        let specs: Vec<Spec> =
            if name == "batch" { [COMMON, BATCH].concat() } else { [COMMON, TASKS, SUBMIT].concat() };
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let r = request(name, &parse(&specs, &words)?)?;
        Ok((r.nodes, r.tasks, r.cores, r.waitable))
    }

    #[test]
    fn shapes() {
        for (name, text, want) in [
            ("submit", "cmd", Some((0, 1, 1, false))),
            ("submit", "-N 2 --quiet --watch cmd", Some((2, 2, 1, false))),
            ("submit", "-N2 -n 8 -c4 --flags=waitable cmd -n1", Some((2, 8, 4, true))),
            ("submit", "-ompi=pmi2 -o cpu-affinity=off -vvv cmd", Some((0, 1, 1, false))),
            ("submit", "-N2 --tasks-per-node=3 cmd", Some((2, 6, 1, false))),
            ("submit", "-N2 -n1 cmd", None),
            ("submit", "-n0 cmd", None),
            ("submit", "-n-1 cmd", None),
            ("submit", "--flags=nope cmd", None),
            ("submit", "--nope cmd", None),
            ("submit", "-n2 --tasks-per-node=3 cmd", None),
            ("submit", "-t 1hour cmd", None),
            ("batch", "-N2 x", Some((2, 2, 1, false))),
            ("batch", "x", None),
        ] {
            assert_eq!(ask(name, text).ok(), want, "{name} {text}");
        }
    }

    #[test]
    fn r_as_flux_prints_it() {
        let hosts: Vec<String> = (0..2).map(|i| format!("h{i}")).collect();
        let text = encode_r(&hosts, &[0, 1], "0-3", "0");
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{text}");
        assert!(text.contains("\"rank\": \"0-1\"") && text.ends_with("\"nodelist\": [\"h[0-1]\"]}}"));
    }
}
