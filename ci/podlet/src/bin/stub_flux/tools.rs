//! The smaller commands.

use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::args::{Parsed, Spec, Takes, parse};
use crate::attrs::duration;
use crate::client::{self, Client};
use crate::jobs::f58;
use crate::resources::local_cores;
use crate::submit::{attach, encode_r};
use crate::{Failure, Outcome, VERSION, hostlist};

use Takes::{Nothing, Optional, Value as Val};

/// First line of what the stub calls a dump.
pub const DUMP_MARK: &str = "stub-flux dump";

const NONE: &[Spec] = &[(Some('h'), "help", Nothing)];

fn read(command: &str, specs: &[Spec], argv: &[String]) -> Result<Parsed, Failure> {
    parse(specs, argv).map_err(|e| Failure::from(format!("flux-{command}: {e}")))
}

fn error(command: &'static str) -> impl Fn(String) -> Failure {
    move |m| Failure::from(format!("flux-{command}: {m}"))
}

/// Splits `SUBCOMMAND ARGS`.
fn sub<'a>(command: &str, argv: &'a [String]) -> Result<(&'a str, &'a [String]), Failure> {
    match argv.split_first() {
        Some((name, rest)) => Ok((name, rest)),
        None => Err(Failure::from(format!("flux-{command}: missing subcommand"))),
    }
}

fn unknown(command: &str, name: &str) -> Failure {
    Failure::from(format!("flux-{command}: unknown subcommand {name:?}"))
}

/// `flux version`.
pub fn version() -> Outcome {
    println!("commands:    \t\t{VERSION}\nlibflux-core:\t\t{VERSION}");
    Ok(0)
}

/// The number in a job id.
fn job_id(text: &str, jobs: &Value) -> Option<u64> {
    let all = jobs["jobs"].as_array()?;
    let wanted = text.trim_start_matches(['ƒ', 'f']);
    all.iter()
        .filter_map(|j| j["id"].as_u64())
        .find(|id| id.to_string() == text || f58(*id).trim_start_matches('ƒ') == wanted)
}

fn find(client: &mut Client, command: &'static str, text: &str) -> Result<u64, Failure> {
    let jobs = client.ask(&json!({"op": "jobs"})).map_err(error(command))?;
    job_id(text, &jobs).ok_or_else(|| Failure::from(format!("flux-{command}: {text}: No such file or directory")))
}

/// `flux job wait|attach|list|last|cancel`.
pub fn job(argv: &[String]) -> Outcome {
    let (name, rest) = sub("job", argv)?;
    let mut client = Client::new("job")?;
    match name {
        "wait" => {
            let p = read("job", &[(Some('a'), "all", Nothing), (Some('v'), "verbose", Nothing)], rest)?;
            wait(&mut client, &p)
        }
        "attach" => {
            let p = read("job", NONE, rest)?;
            let id = find(&mut client, "job", p.operands.first().map_or("", String::as_str))?;
            attach(&mut client, id, true).map_err(error("job"))
        }
        "last" => {
            let jobs = client.ask(&json!({"op": "jobs"})).map_err(error("job"))?;
            let last = jobs["jobs"].as_array().and_then(|j| j.last()).and_then(|j| j["id"].as_u64());
            println!("{}", f58(last.ok_or("flux-job: job history is empty")?));
            Ok(0)
        }
        "cancel" => cancel(rest),
        other => Err(unknown("job", other)),
    }
}

fn wait(client: &mut Client, p: &Parsed) -> Outcome {
    let all = p.has("all");
    let id = match (all, p.operands.first()) {
        (true, None) | (false, None) => None,
        (false, Some(text)) => Some(find(client, "job", text)?),
        (true, Some(_)) => return Err(Failure::from("flux-job: --all and an id exclude each other")),
    };
    let answer = match client.ask(&json!({"op": "wait", "id": id})) {
        Ok(answer) => answer,
        Err(m) => return Err(Failure::new(format!("flux-job: {m}"), 2)),
    };
    let mut failed = false;
    for result in answer["results"].as_array().into_iter().flatten() {
        let (id, code) = (result[0].as_u64().unwrap_or_default(), result[1].as_u64().unwrap_or(1));
        if code != 0 {
            failed = true;
            eprintln!("{}: task(s) exited with exit code {code}", f58(id));
        }
    }
    Ok(u8::from(failed))
}

/// `flux jobs`.
pub fn jobs(argv: &[String]) -> Outcome {
    let specs = [
        (Some('a'), "all", Nothing),
        (Some('A'), "all-users", Nothing),
        (Some('n'), "no-header", Nothing),
        (Some('c'), "count", Val),
        (Some('f'), "filter", Val),
        (Some('o'), "format", Val),
        (Some('u'), "user", Val),
        (None, "stats", Nothing),
    ];
    let p = read("jobs", &specs, argv)?;
    let mut client = Client::new("jobs")?;
    let answer = client.ask(&json!({"op": "jobs"})).map_err(error("jobs"))?;
    if !p.has("no-header") {
        println!("       JOBID USER     NAME       ST NTASKS NNODES     TIME INFO");
    }
    for job in answer["jobs"].as_array().into_iter().flatten().rev() {
        let state = job["state"].as_str().unwrap_or_default();
        if !p.has("all") && matches!(state, "CD" | "F") {
            continue;
        }
        let name = job["name"].as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        println!(
            "{:>12} {:<8} {name:<10.10} {state:>2} {:>6} {:>6} {:>7.3}s",
            f58(job["id"].as_u64().unwrap_or_default()),
            user(),
            job["tasks"],
            job["nodes"],
            job["seconds"].as_f64().unwrap_or_default()
        );
    }
    Ok(0)
}

fn user() -> String {
    match rustix::process::getuid().as_raw() {
        0 => "root".to_owned(),
        uid => uid.to_string(),
    }
}

/// `flux queue idle|drain|status|start|stop|enable|disable|list`.
pub fn queue(argv: &[String]) -> Outcome {
    let (name, rest) = sub("queue", argv)?;
    let specs =
        [(Some('t'), "timeout", Val), (Some('a'), "all", Nothing), (Some('q'), "queue", Val), (None, "quiet", Nothing)];
    let p = read("queue", &specs, rest)?;
    let mut client = Client::new("queue")?;
    match name {
        "idle" | "drain" => {
            let timeout = match p.last("timeout") {
                None => None,
                Some(t) if duration(t) => t.trim_end_matches('s').parse::<f64>().ok(),
                Some(t) => return Err(Failure::from(format!("flux-queue: invalid duration {t}"))),
            };
            client.ask(&json!({"op": "idle", "timeout": timeout})).map_err(error("queue"))?;
            if name == "idle" && !p.has("quiet") {
                println!("0 jobs");
            }
            Ok(0)
        }
        "status" | "list" | "start" | "stop" | "enable" | "disable" => {
            client.ask(&json!({"op": "status"})).map_err(error("queue"))?;
            Ok(0)
        }
        other => Err(unknown("queue", other)),
    }
}

/// `flux watch --all` or `flux watch ID…`.
pub fn watch(argv: &[String]) -> Outcome {
    let specs = [(Some('a'), "all", Nothing), (Some('v'), "verbose", Optional), (None, "progress", Nothing)];
    let p = read("watch", &specs, argv)?;
    let mut client = Client::new("watch")?;
    let jobs = client.ask(&json!({"op": "jobs"})).map_err(error("watch"))?;
    let ids: Vec<u64> = if p.has("all") {
        jobs["jobs"].as_array().into_iter().flatten().filter_map(|j| j["id"].as_u64()).collect()
    } else {
        let one = |t: &String| job_id(t, &jobs).ok_or_else(|| Failure::from(format!("flux-watch: no job {t}")));
        p.operands.iter().map(one).collect::<Result<_, _>>()?
    };
    let mut worst = 0;
    for id in ids {
        worst = worst.max(attach(&mut client, id, true).map_err(error("watch"))?);
    }
    Ok(worst)
}

/// `flux cancel`.
pub fn cancel(argv: &[String]) -> Outcome {
    let specs = [(None, "all", Nothing), (Some('u'), "user", Val), (Some('m'), "message", Val)];
    let p = read("cancel", &specs, argv)?;
    let mut client = Client::new("cancel")?;
    if p.has("all") {
        let answer = client.ask(&json!({"op": "cancel"})).map_err(error("cancel"))?;
        eprintln!("flux-cancel: Canceled {} jobs", answer["count"]);
        return Ok(0);
    }
    for text in &p.operands {
        let id = find(&mut client, "cancel", text)?;
        client.ask(&json!({"op": "cancel", "id": id})).map_err(error("cancel"))?;
    }
    Ok(0)
}

/// `flux proxy URI [COMMAND…]`: `$SHELL -c` of the words, joined with blanks.
pub fn proxy(argv: &[String]) -> Outcome {
    let specs = [(Some('f'), "force", Nothing), (Some('n'), "nohup", Nothing), (None, "reconnect", Nothing)];
    let p = read("proxy", &specs, argv)?;
    let (uri, command) = p.operands.split_first().ok_or("Usage: flux proxy JOB|URI [COMMAND...]")?;
    client::socket(uri).map_err(error("proxy"))?;
    drop(Client::connect("proxy", uri)?);
    let shell = std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned());
    let mut child = Command::new(&shell);
    if !command.is_empty() {
        child.arg("-c").arg(command.join(" "));
    }
    let error = child.env("FLUX_URI", uri).exec();
    Err(Failure::from(format!("flux-proxy: {shell}: {error}")))
}

/// `flux shutdown [URI]`: returns when the broker is gone.
pub fn shutdown(argv: &[String]) -> Outcome {
    let specs = [
        (Some('q'), "quiet", Nothing),
        (Some('v'), "verbose", Optional),
        (Some('y'), "yes", Nothing),
        (None, "background", Nothing),
        (None, "dump", Val),
        (None, "gc", Nothing),
        (None, "skip-gc", Nothing),
    ];
    let p = read("shutdown", &specs, argv)?;
    let mut client = match p.operands.first() {
        Some(uri) => Client::connect("shutdown", uri)?,
        None => Client::new("shutdown")?,
    };
    client.ask(&json!({"op": "shutdown"})).map_err(error("shutdown"))?;
    if !p.has("background") {
        while matches!(client.receive(), Ok(Some(_))) {}
    }
    Ok(0)
}

/// `flux getattr NAME`.
pub fn getattr(argv: &[String]) -> Outcome {
    let p = read("getattr", NONE, argv)?;
    let [name] = &p.operands[..] else { return Err(Failure::from("Usage: flux-getattr name")) };
    let answer = Client::new("getattr")?.ask(&json!({"op": "getattr", "name": name}));
    let answer = answer.map_err(|m| Failure::from(format!("flux-getattr: {name}: {m}")))?;
    println!("{}", answer["value"].as_str().unwrap_or_default());
    Ok(0)
}

/// `flux lsattr [-v]`.
pub fn lsattr(argv: &[String]) -> Outcome {
    let p = read("lsattr", &[(Some('v'), "values", Nothing), (Some('h'), "help", Nothing)], argv)?;
    let answer = Client::new("lsattr")?.ask(&json!({"op": "lsattr"})).map_err(error("lsattr"))?;
    for (name, value) in answer["attributes"].as_object().into_iter().flatten() {
        if p.has("values") {
            println!("{name:<40}{}", value.as_str().unwrap_or_default());
        } else {
            println!("{name}");
        }
    }
    Ok(0)
}

/// `flux dmesg`: the stub keeps no log, what it had to say is on its standard error.
pub fn dmesg(argv: &[String]) -> Outcome {
    let specs = [
        (Some('f'), "follow", Nothing),
        (Some('n'), "new", Nothing),
        (Some('H'), "human", Nothing),
        (Some('C'), "clear", Nothing),
        (Some('L'), "color", Optional),
    ];
    read("dmesg", &specs, argv)?;
    status("dmesg").map(|_| 0)
}

/// `flux setattr NAME VALUE`.
pub fn setattr(argv: &[String]) -> Outcome {
    let p = read("setattr", NONE, argv)?;
    let [name, value] = &p.operands[..] else { return Err(Failure::from("Usage: flux-setattr name value")) };
    Client::new("setattr")?.ask(&json!({"op": "setattr", "name": name, "value": value})).map_err(error("setattr"))?;
    Ok(0)
}

fn status(command: &'static str) -> Result<Value, Failure> {
    Client::new(command)?.ask(&json!({"op": "status"})).map_err(error(command))
}

/// `flux uptime`.
pub fn uptime(argv: &[String]) -> Outcome {
    read("uptime", NONE, argv)?;
    let s = status("uptime")?;
    let time = jiff::Timestamp::now().strftime("%H:%M:%S").to_string();
    let state = if s["running"] == true || s["rank"] != 0 { "run" } else { "quorum" };
    let size = s["hosts"].as_array().map_or(0, Vec::len);
    println!(
        " {time} {state} {:.1}s,  owner {},  depth 0,  size {size}",
        s["seconds"].as_f64().unwrap_or_default(),
        user()
    );
    Ok(0)
}

/// `flux resource list|status|drain|info`.
pub fn resource(argv: &[String]) -> Outcome {
    let (name, rest) = sub("resource", argv)?;
    let specs = [
        (Some('s'), "states", Val),
        (Some('o'), "format", Val),
        (Some('n'), "no-header", Nothing),
        (Some('v'), "verbose", Nothing),
    ];
    let p = read("resource", &specs, rest)?;
    let s = status("resource")?;
    let strings = |key: &str| -> Vec<String> {
        s[key].as_array().into_iter().flatten().map(|v| v.as_str().unwrap_or_default().to_owned()).collect()
    };
    let hosts = strings("hosts");
    let has = |key: &str, rank: usize| s[key].as_array().is_some_and(|a| a.contains(&json!(rank)));
    let up = |rank: &usize| has("online", *rank) && !has("drained", *rank);
    match name {
        "list" => {
            if !p.has("no-header") {
                println!("     STATE NNODES NCORES NGPUS NODELIST");
            }
            let row = |state: &str, ranks: &[usize]| {
                let sum = |key: &str| ranks.iter().filter_map(|r| s[key][*r].as_u64()).sum::<u64>();
                let names: Vec<String> = ranks.iter().filter_map(|r| hosts.get(*r).cloned()).collect();
                println!(
                    "{state:>10} {:>6} {:>6} {:>5} {}",
                    ranks.len(),
                    sum("cores"),
                    sum("gpus"),
                    hostlist::encode(&names)
                );
            };
            let (free, down): (Vec<usize>, Vec<usize>) = (0..hosts.len()).partition(up);
            row("free", &free);
            row("allocated", &[]);
            row("down", &down);
            Ok(0)
        }
        "status" => {
            println!("     STATE  UP NNODES NODELIST");
            println!("     avail   * {:>6} {}", hosts.len(), hostlist::encode(&hosts));
            Ok(0)
        }
        "drain" if p.operands.is_empty() => {
            println!("TIME         STATE    REASON                         NODELIST");
            for (_, host) in hosts.iter().enumerate().filter(|(r, _)| has("drained", *r)) {
                println!("             drained  missing resources              {host}");
            }
            Ok(0)
        }
        other => Err(unknown("resource", other)),
    }
}

/// `flux overlay status`.
pub fn overlay(argv: &[String]) -> Outcome {
    let (name, rest) = sub("overlay", argv)?;
    if name != "status" {
        return Err(unknown("overlay", name));
    }
    let specs = [
        (Some('v'), "verbose", Optional),
        (Some('s'), "summary", Nothing),
        (None, "no-pretty", Nothing),
        (None, "wait", Val),
        (Some('t'), "timeout", Val),
    ];
    read("overlay", &specs, rest)?;
    let s = status("overlay")?;
    let hosts: Vec<&str> = s["hosts"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let online = |rank: usize| s["online"].as_array().is_some_and(|a| a.contains(&json!(rank)));
    let full = (0..hosts.len()).all(online);
    println!("0 {}: {}", hosts.first().unwrap_or(&""), if full { "full" } else { "partial" });
    for (rank, host) in hosts.iter().enumerate().skip(1) {
        let edge = if rank + 1 == hosts.len() { "└─" } else { "├─" };
        println!("{edge} {rank} {host}: {}", if online(rank) { "full" } else { "offline" });
    }
    Ok(0)
}

/// `flux module list|load|remove|reload|stats`.
pub fn module(argv: &[String]) -> Outcome {
    let (action, rest) = sub("module", argv)?;
    let p =
        read("module", &[(Some('f'), "force", Nothing), (Some('n'), "name", Val), (Some('l'), "long", Nothing)], rest)?;
    let mut client = Client::new("module")?;
    let name = p.operands.first().cloned().unwrap_or_default();
    match action {
        "list" => {
            let answer = client.ask(&json!({"op": "modules"})).map_err(error("module"))?;
            for name in answer["modules"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                println!("{name}");
            }
            Ok(0)
        }
        "load" | "remove" => {
            let result = client.ask(&json!({"op": "module", "action": action, "name": name}));
            if action == "load" || !p.has("force") {
                result.map_err(error("module"))?;
            }
            Ok(0)
        }
        "reload" => {
            let removed = client.ask(&json!({"op": "module", "action": "remove", "name": name}));
            if !p.has("force") {
                removed.map_err(error("module"))?;
            }
            client.ask(&json!({"op": "module", "action": "load", "name": name})).map_err(error("module"))?;
            Ok(0)
        }
        other => Err(unknown("module", other)),
    }
}

/// `flux cron …`: accepted and recorded, nothing is ever run.
pub fn cron(argv: &[String]) -> Outcome {
    let (name, _) = sub("cron", argv)?;
    match name {
        "list" | "tab" | "interval" | "event" | "at" | "stop" | "start" | "delete" => status("cron").map(|_| 0),
        other => Err(unknown("cron", other)),
    }
}

/// Writes what the stub calls a dump.
///
/// # Errors
/// The file cannot be written.
pub fn write_dump(path: &Path, jobs: usize) -> std::io::Result<()> {
    let mut file = std::fs::File::create(path)?;
    writeln!(file, "{DUMP_MARK}\n{jobs} jobs")
}

/// `flux dump FILE`.
pub fn dump(argv: &[String]) -> Outcome {
    let specs = [
        (Some('q'), "quiet", Nothing),
        (Some('v'), "verbose", Nothing),
        (None, "checkpoint", Nothing),
        (None, "no-cache", Nothing),
    ];
    let p = read("dump", &specs, argv)?;
    let [path] = &p.operands[..] else { return Err(Failure::from("Usage: flux-dump [OPTIONS] OUTFILE")) };
    let jobs = Client::new("dump")?.ask(&json!({"op": "jobs"})).map_err(error("dump"))?;
    let count = jobs["jobs"].as_array().map_or(0, Vec::len);
    write_dump(Path::new(path), count).map_err(|e| format!("flux-dump: {path}: {e}"))?;
    Ok(0)
}

/// `flux exec`: on rank 0 only, once.
pub fn exec(argv: &[String]) -> Outcome {
    let specs = [
        (Some('r'), "rank", Val),
        (Some('x'), "exclude", Val),
        (Some('d'), "dir", Val),
        (Some('l'), "label-io", Nothing),
        (Some('n'), "noinput", Nothing),
        (Some('v'), "verbose", Nothing),
        (Some('q'), "quiet", Nothing),
    ];
    let p = read("exec", &specs, argv)?;
    status("exec")?;
    if let Some(ranks) = p.last("rank").filter(|r| *r != "all") {
        hostlist::ids(ranks).map_err(error("exec"))?;
    }
    run(&p.operands, p.last("dir"))
}

/// `flux env [COMMAND…]`.
pub fn env(argv: &[String]) -> Outcome {
    run(argv, None)
}

/// `flux python …`.
pub fn python(argv: &[String]) -> Outcome {
    let mut command = vec!["python3".to_owned()];
    command.extend_from_slice(argv);
    run(&command, None)
}

fn run(argv: &[String], dir: Option<&str>) -> Outcome {
    let Some((program, arguments)) = argv.split_first() else { return Ok(0) };
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(dir) = dir {
        command.current_dir(dir);
    }
    let error = command.exec();
    let code = if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 };
    Err(Failure::new(format!("flux: {program}: {}", crate::cert::describe(&error)), code))
}

/// `flux R encode`.
pub fn r(argv: &[String]) -> Outcome {
    let (name, rest) = sub("R", argv)?;
    if name != "encode" {
        return Err(unknown("R", name));
    }
    let specs = [
        (Some('r'), "ranks", Val),
        (Some('c'), "cores", Val),
        (Some('g'), "gpus", Val),
        (Some('H'), "hosts", Val),
        (Some('p'), "property", Val),
        (Some('l'), "local", Nothing),
    ];
    let p = read("R", &specs, rest)?;
    if p.has("local") && (p.has("cores") || p.has("gpus")) {
        return Err(Failure::from("flux-R: --cores/--gpus may not be used with --local"));
    }
    let hosts = match p.last("hosts") {
        Some(list) => hostlist::expand(list).map_err(error("R"))?,
        None => vec![crate::record::hostname()],
    };
    let ranks: Vec<u32> = match p.last("ranks") {
        Some(ids) => hostlist::ids(ids).map_err(error("R"))?,
        None => (0..u32::try_from(hosts.len()).unwrap_or(u32::MAX)).collect(),
    };
    if ranks.len() != hosts.len() {
        return Err(Failure::from("flux-R: number of ranks and hosts must match"));
    }
    let local = hostlist::encode_ids(&(0..local_cores()).collect::<Vec<_>>());
    let cores = if p.has("local") { local } else { p.last("cores").unwrap_or("0").to_owned() };
    let gpus = p.last("gpus").unwrap_or_default();
    for set in [cores.as_str(), gpus] {
        hostlist::ids(set).map_err(error("R"))?;
    }
    println!("{}", encode_r(&hosts, &ranks, &cores, gpus));
    Ok(0)
}
