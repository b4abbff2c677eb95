//! A broker's local socket, and what its clients may ask.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::attrs::Attributes;
use crate::jobs::{Job, Jobs, Request, State, f58, read_from};
use crate::overlay::Overlay;
use crate::resources::Node;

/// A running broker, as its clients see it.
pub struct Instance {
    /// Its attributes.
    pub attributes: Mutex<Attributes>,
    /// Its place in the tree.
    pub overlay: Arc<Overlay>,
    /// Its jobs (rank 0).
    pub jobs: Arc<Jobs>,
    /// The resources of all ranks (rank 0).
    pub nodes: Vec<Node>,
    /// When it started.
    pub started: Instant,
    /// Loaded modules.
    pub modules: Mutex<BTreeSet<String>>,
    /// Clients may ask for an end.
    pub stop: Mutex<bool>,
    /// The socket.
    pub socket: PathBuf,
}

impl Instance {
    /// Listens on the socket.
    ///
    /// # Errors
    /// The socket cannot be made.
    pub fn serve(self: &Arc<Self>) -> std::io::Result<()> {
        if self.socket.exists() {
            std::fs::remove_file(&self.socket)?;
        }
        let listener = UnixListener::bind(&self.socket)?;
        let instance = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let instance = instance.clone();
                std::thread::spawn(move || {
                    if let Err(e) = instance.client(stream)
                        && e.kind() != std::io::ErrorKind::BrokenPipe
                    {
                        eprintln!("connector-local.err[{}]: {e}", instance.overlay.rank);
                    }
                });
            }
        });
        Ok(())
    }

    /// Whether an end was asked for.
    pub fn stopping(&self) -> bool {
        *self.stop.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn client(&self, stream: UnixStream) -> std::io::Result<()> {
        let mut writer = stream.try_clone()?;
        for line in BufReader::new(stream).lines() {
            let request: Value = serde_json::from_str(&line?)?;
            let op = request["op"].as_str().unwrap_or_default().to_owned();
            if op == "attach" {
                self.attach(&request, &mut writer)?;
                continue;
            }
            let answer = self.answer(&op, &request).unwrap_or_else(|e| json!({ "error": e }));
            writeln!(writer, "{answer}")?;
        }
        Ok(())
    }

    fn answer(&self, op: &str, request: &Value) -> Result<Value, String> {
        let text = |key: &str| request[key].as_str().unwrap_or_default().to_owned();
        match op {
            "getattr" => {
                let name = text("name");
                let attributes = self.attributes.lock().unwrap_or_else(PoisonError::into_inner);
                let value = attributes.get(&name).ok_or("No such file or directory")?;
                return Ok(json!({ "value": value }));
            }
            "lsattr" => {
                let attributes = self.attributes.lock().unwrap_or_else(PoisonError::into_inner);
                return Ok(json!({ "attributes": *attributes }));
            }
            "status" => return Ok(self.status()),
            "shutdown" => {
                *self.stop.lock().unwrap_or_else(PoisonError::into_inner) = true;
                self.overlay.notify();
                return Ok(json!({}));
            }
            _ => {}
        }
        if self.overlay.rank != 0 {
            return Err(format!("stub-flux: {op}: only on rank 0"));
        }
        match op {
            "setattr" => {
                let mut attributes = self.attributes.lock().unwrap_or_else(PoisonError::into_inner);
                // Only attributes that may be set again can be set at run time.
                let setting = format!("{}={}", text("name"), text("value"));
                crate::attrs::set(&mut attributes, &setting).map(|()| json!({}))
            }
            "submit" => self.submit(request),
            "jobs" => Ok(self.list()),
            "wait" => self.wait(request),
            "idle" => {
                let limit = request["timeout"].as_f64().map(Duration::from_secs_f64);
                let active = |j: &Job| !matches!(j.state, State::Done(_));
                let idle = self.jobs.wait_until(limit, |t| !t.values().any(active));
                if idle { Ok(json!({})) } else { Err("timeout".to_owned()) }
            }
            "cancel" => {
                let id = request["id"].as_u64();
                Ok(json!({"count": self.jobs.cancel(|i| id.is_none_or(|id| id == i))}))
            }
            "modules" => {
                let modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
                Ok(json!({ "modules": *modules }))
            }
            "module" => self.module(&text("action"), &text("name")),
            other => Err(format!("stub-flux: {other}: Function not implemented")),
        }
    }

    fn status(&self) -> Value {
        let tree = self.overlay.tree();
        let hosts: Vec<&str> = self.overlay.hosts.iter().map(|h| h.name.as_str()).collect();
        json!({
            "rank": self.overlay.rank, "hosts": hosts, "parents": self.overlay.parents,
            "online": tree.online, "drained": tree.drained, "running": tree.running,
            "seconds": self.started.elapsed().as_secs_f64(),
            "cores": self.nodes.iter().map(|n| n.cores).collect::<Vec<_>>(),
            "gpus": self.nodes.iter().map(|n| n.gpus).collect::<Vec<_>>(),
        })
    }

    fn module(&self, action: &str, name: &str) -> Result<Value, String> {
        let mut modules = self.modules.lock().unwrap_or_else(PoisonError::into_inner);
        match action {
            "load" if modules.contains(name) => Err(format!("load {name}: File exists")),
            "load" if name.starts_with("sched-fluxion") => Err(format!("load {name}: module not found in search path")),
            "load" => {
                modules.insert(name.to_owned());
                Ok(json!({}))
            }
            _ if modules.remove(name) => Ok(json!({})),
            _ => Err(format!("remove {name}: No such file or directory")),
        }
    }

    fn submit(&self, request: &Value) -> Result<Value, String> {
        let wanted: Request = serde_json::from_value(request["job"].clone()).map_err(|e| e.to_string())?;
        let total = |f: fn(&Node) -> u32| self.nodes.iter().map(|n| u64::from(f(n))).sum::<u64>();
        let need = |each: u32| u64::from(wanted.tasks.max(1)) * u64::from(each);
        let unsatisfiable = wanted.nodes as usize > self.nodes.len()
            || need(wanted.cores.max(1)) > total(|n| n.cores)
            || need(wanted.gpus) > total(|n| n.gpus);
        if unsatisfiable {
            return Err("unsatisfiable request".to_owned());
        }
        let overlay = self.overlay.clone();
        let nodes = self.nodes.clone();
        let ready = move |r: &Request| {
            let tree = overlay.tree();
            let up = |rank: &u32| tree.online.contains(rank) && !tree.drained.contains(rank);
            let up: Vec<&Node> = (0..).zip(&nodes).filter(|(r, _)| up(r)).map(|(_, n)| n).collect();
            let cores: u64 = up.iter().map(|n| u64::from(n.cores)).sum();
            up.len() >= r.nodes.max(1) as usize && cores >= u64::from(r.tasks.max(1)) * u64::from(r.cores.max(1))
        };
        let uri = format!("local://{}", self.socket.display());
        let hosts: Vec<String> = self.nodes.iter().map(|n| n.host.clone()).collect();
        let cores = self.nodes.first().map_or(1, |n| n.cores);
        let nested = wanted.script.is_some();
        let id = self.jobs.submit(wanted, ready, move |id, r| {
            let nodes = r.nodes.max(1);
            let mut env = vec![
                ("FLUX_URI".to_owned(), uri),
                ("FLUX_JOB_ID".to_owned(), f58(id)),
                ("FLUX_JOB_NNODES".to_owned(), nodes.to_string()),
                ("FLUX_JOB_SIZE".to_owned(), r.tasks.max(1).to_string()),
                ("FLUX_TASK_RANK".to_owned(), "0".to_owned()),
                ("FLUX_TASK_LOCAL_ID".to_owned(), "0".to_owned()),
            ];
            if nested {
                let hosts = &hosts[..(nodes as usize).min(hosts.len())];
                env.push(("STUB_FLUX_NESTED".to_owned(), json!({"hosts": hosts, "cores": cores}).to_string()));
            }
            env
        })?;
        Ok(json!({ "id": id }))
    }

    fn list(&self) -> Value {
        let one = |(id, job): (&u64, &Job)| {
            let (state, code) = match job.state {
                State::Pending => ("S", None),
                State::Running(_) => ("R", None),
                State::Done(0) => ("CD", Some(0)),
                State::Done(code) => ("F", Some(code)),
            };
            let r = &job.request;
            json!({"id": id, "state": state, "code": code, "name": r.argv.first(), "tasks": r.tasks.max(1),
                   "nodes": r.nodes.max(1), "seconds": job.ran.as_secs_f64()})
        };
        json!({"jobs": self.jobs.table().iter().map(one).collect::<Vec<_>>()})
    }

    /// The results of one waitable job, or of all.
    fn wait(&self, request: &Value) -> Result<Value, String> {
        let one = request["id"].as_u64();
        let chosen = |id: u64, j: &Job| j.request.waitable && !j.waited && one.is_none_or(|o| o == id);
        if one.is_some() && !self.jobs.table().iter().any(|(id, j)| chosen(*id, j)) {
            return Err("not waitable".to_owned());
        }
        self.jobs.wait_until(None, |t| {
            t.iter().filter(|(id, j)| chosen(**id, j)).all(|(_, j)| matches!(j.state, State::Done(_)))
        });
        let mut results = Vec::new();
        for (id, job) in self.jobs.table().iter_mut() {
            if chosen(*id, job)
                && let State::Done(code) = job.state
            {
                job.waited = true;
                results.push(json!([id, code]));
            }
        }
        Ok(json!({ "results": results }))
    }

    fn attach(&self, request: &Value, writer: &mut UnixStream) -> std::io::Result<()> {
        let id = request["id"].as_u64().unwrap_or_default();
        let (mut out_at, mut err_at) = (0, 0);
        loop {
            let Some(job) = self.jobs.table().get(&id).cloned() else {
                return writeln!(writer, "{}", json!({"error": "No such file or directory"}));
            };
            // The state first: what a finished job wrote is then complete.
            let own = |path: &std::path::Path| path.parent() == self.socket_dir().as_deref();
            for (key, path, at) in [("out", &job.out, &mut out_at), ("err", &job.err, &mut err_at)] {
                if !own(path) {
                    continue;
                }
                let bytes = read_from(path, at)?;
                if !bytes.is_empty() {
                    writeln!(writer, "{}", json!({ key: STANDARD.encode(bytes) }))?;
                }
            }
            if let State::Done(code) = job.state {
                return writeln!(writer, "{}", json!({ "code": code }));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Where the output of jobs is kept that was not sent to a file.
    fn socket_dir(&self) -> Option<PathBuf> {
        let attributes = self.attributes.lock().unwrap_or_else(PoisonError::into_inner);
        attributes.get("rundir").map(|d| PathBuf::from(d).join("jobs"))
    }
}
