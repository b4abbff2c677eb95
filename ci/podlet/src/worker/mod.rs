//! One thread per pod: it starts the containers in order, restarts them by policy, ends them, and
//! reports the status.

pub mod container;
mod probe;
mod report;
mod start;
pub mod status;
mod stop;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::api::text_at;
use crate::context::{Context, Pod, seconds};
use crate::net::{Sandbox, Sharing};
use crate::say::say;
use crate::spec::Meta;
use crate::volumes::{self, Source, Volumes};
use container::{Handle, Role, Running, Slot, State, Terminated};
use start::{Start, StartError};

/// The kubelet gives sidecars at least this long after the main containers.
const SIDECAR_LEAST_GRACE: Duration = Duration::from_secs(2);
/// Time until something that could not be done is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// What a worker is told.
pub enum Msg {
    /// The pod as the API server has it now.
    Update(Box<Value>),
    /// The pod is no longer in the API.
    Gone,
    /// A container ended.
    #[allow(missing_docs)]
    Exited { key: usize, id: String, ended: Terminated },
    /// A probe is certain.
    #[allow(missing_docs)]
    Probe { key: usize, id: String, kind: probe::Kind, ok: bool, message: String },
    /// A postStart hook ended.
    #[allow(missing_docs)]
    Hook { key: usize, id: String, result: Result<(), String> },
    /// podlet ends: stop everything now, tell nobody.
    Shutdown,
}

/// Why no container is started any more.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Ending {
    /// The main containers ended, or an init container failed for good.
    Completed,
    /// `activeDeadlineSeconds`.
    DeadlineExceeded,
    /// The pod is being deleted.
    Deleted,
    /// podlet cannot run it: reason and message.
    Refused(String, String),
    /// podlet ends.
    Shutdown,
}

/// A pod's thread.
pub struct Worker {
    ctx: Arc<Context>,
    pod: Pod,
    tx: Sender<Msg>,
    dir: PathBuf,
    slots: Vec<Slot>,
    attempts: Vec<u32>,
    signals: Vec<String>,
    sandbox: Option<Sandbox>,
    sources: BTreeMap<String, Source>,
    prepared: bool,
    ending: Option<Ending>,
    end_by: Instant,
    begun: Instant,
    start_time: String,
    published: Value,
    not_before: Instant,
    next_sync: Instant,
    done: bool,
    gone: bool,
    deleted: bool,
}

impl Worker {
    /// For a pod that podlet can run.
    pub fn new(ctx: Arc<Context>, pod: Pod, tx: Sender<Msg>, api: &Value) -> Self {
        let dir = ctx.options.state.join("pods").join(&pod.meta.uid);
        let waiting = if pod.spec.init_containers.is_empty() { "ContainerCreating" } else { "PodInitializing" };
        let init = pod.spec.init_containers.iter().map(|c| {
            let role = if c.is_sidecar() { Role::Sidecar } else { Role::Init };
            Slot::new(c, role, waiting)
        });
        let slots: Vec<Slot> =
            init.chain(pod.spec.containers.iter().map(|c| Slot::new(c, Role::Main, waiting))).collect();
        let now = Instant::now();
        let phase = text_at(api, "/status/phase");
        let done = matches!(phase.as_str(), "Succeeded" | "Failed");
        // A podlet that ended has taken the containers along.
        let lost = !done && api.pointer("/status/startTime").is_some();
        let ending = lost.then(|| {
            Ending::Refused("PodletRestarted".to_owned(), "the podlet that ran this pod has ended".to_owned())
        });
        Worker {
            attempts: vec![0; slots.len()],
            signals: vec!["TERM".to_owned(); slots.len()],
            slots,
            ctx,
            pod,
            tx,
            dir,
            sandbox: None,
            sources: BTreeMap::new(),
            prepared: false,
            ending,
            end_by: now,
            begun: now,
            start_time: seconds(jiff::Timestamp::now()),
            published: Value::Null,
            not_before: now,
            next_sync: now,
            done,
            gone: false,
            deleted: false,
        }
    }

    /// Makes the pod fail at once.
    pub fn refuse(&mut self, reason: &str, message: &str) {
        self.ending = Some(Ending::Refused(reason.to_owned(), message.to_owned()));
    }

    /// Works until the pod is gone from the API, or podlet ends.
    pub fn run(mut self, rx: &Receiver<Msg>) {
        loop {
            let wake = self.step();
            let wake = if self.publish() { wake } else { wake.min(Instant::now() + RETRY) };
            if self.done && (self.gone || self.ending == Some(Ending::Shutdown)) {
                return;
            }
            match rx.recv_timeout(wake.saturating_duration_since(Instant::now())) {
                Ok(msg) => self.take(msg),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            for msg in rx.try_iter() {
                self.take(msg);
            }
        }
    }

    fn take(&mut self, msg: Msg) {
        match msg {
            Msg::Update(pod) => self.update(&pod),
            Msg::Gone => {
                self.gone = true;
                self.end(Ending::Deleted, Duration::ZERO);
            }
            Msg::Shutdown => self.end(Ending::Shutdown, Duration::ZERO),
            Msg::Exited { key, id, ended } if self.is_current(key, &id) => self.ended(key, ended),
            Msg::Hook { key, id, result } if self.is_current(key, &id) => self.hooked(key, result),
            Msg::Probe { key, id, kind, ok, message } if self.is_current(key, &id) => {
                self.probed(key, kind, ok, &message);
            }
            // About a container that has been replaced since.
            Msg::Exited { .. } | Msg::Hook { .. } | Msg::Probe { .. } => {}
        }
    }

    fn is_current(&self, key: usize, id: &str) -> bool {
        self.slots.get(key).and_then(Slot::running).is_some_and(|r| r.handle.id == id)
    }

    fn update(&mut self, pod: &Value) {
        let Ok(meta) = serde_json::from_value::<Meta>(pod["metadata"].clone()) else { return };
        let spec = pod.pointer("/spec/activeDeadlineSeconds").and_then(Value::as_u64);
        self.pod.spec.active_deadline_seconds = spec;
        let deleting = meta.deletion_timestamp.is_some();
        let grace = meta.deletion_grace_period_seconds.unwrap_or(0);
        self.pod.meta = meta;
        if deleting {
            if !self.deleted && !self.done {
                self.ctx.event(&self.pod.meta, "Normal", "Killing", &format!("Stopping the pod within {grace} s"));
            }
            self.deleted = true;
            self.end(Ending::Deleted, Duration::from_secs(grace));
        }
    }

    /// Starts the end of the pod, or brings it forward.
    fn end(&mut self, why: Ending, grace: Duration) {
        let by = Instant::now() + grace;
        match &self.ending {
            None => (self.ending, self.end_by) = (Some(why), by),
            Some(_) => {
                self.end_by = self.end_by.min(by);
                // A pod that already ended for another reason keeps that reason.
                if why == Ending::Shutdown || self.ending == Some(Ending::Completed) {
                    self.ending = Some(why);
                }
            }
        }
    }

    /// Does what can be done now; returns when to look again without a message.
    fn step(&mut self) -> Instant {
        let now = Instant::now();
        if self.done {
            return if self.deleted && !self.gone && !self.delete_from_api() { now + RETRY } else { far(now) };
        }
        if self.ending.is_none() {
            let limit = self.pod.spec.active_deadline_seconds.map(Duration::from_secs);
            if limit.is_some_and(|l| now >= self.begun + l) {
                let grace = Duration::from_secs(self.pod.spec.grace_seconds());
                self.end(Ending::DeadlineExceeded, grace);
            }
        }
        if self.ending.is_none() {
            let wake = self.advance(now);
            if self.ending.is_none() {
                let limit = self.pod.spec.active_deadline_seconds.map(|l| self.begun + Duration::from_secs(l));
                return limit.map_or(wake, |l| l.min(wake));
            }
        }
        self.wind_down()
    }

    /// Brings the pod forward: sandbox, init containers in order, main containers, restarts.
    fn advance(&mut self, now: Instant) -> Instant {
        if !self.prepared {
            if now < self.not_before {
                return self.not_before;
            }
            if let Err(message) = self.prepare() {
                self.ctx.event(&self.pod.meta, "Warning", "FailedMount", &message);
                self.not_before = Instant::now() + RETRY;
                return self.not_before;
            }
            self.prepared = true;
            self.next_sync = Instant::now() + self.ctx.options.sync_period;
        }
        if now >= self.next_sync {
            self.sync_volumes();
        }
        let mut wake = self.next_sync;
        for key in 0..self.slots.len() {
            if let Some(at) = self.start_if_due(key) {
                wake = wake.min(at);
            }
            if self.slots[key].role == Role::Init && self.slots[key].terminated().is_some_and(|t| t.code != 0) {
                self.end(Ending::Completed, self.grace());
                return now;
            }
            let go_on = match self.slots[key].role {
                Role::Init => self.slots[key].succeeded(),
                // Once it was up, a restart of it holds nobody back.
                Role::Sidecar => self.slots[key].started || self.slots[key].restarts > 0,
                Role::Main => self.slots[key].running().is_none_or(|r| !r.hook_pending),
            };
            if !go_on {
                return wake;
            }
        }
        if self.slots.iter().filter(|s| s.role == Role::Main).all(|s| s.terminated().is_some()) {
            self.end(Ending::Completed, self.grace());
        }
        wake
    }

    fn grace(&self) -> Duration {
        Duration::from_secs(self.pod.spec.grace_seconds())
    }

    fn sync_volumes(&mut self) {
        self.next_sync = Instant::now() + self.ctx.options.sync_period;
        if let Some(ip) = self.sandbox.as_ref().map(|s| s.ip)
            && let Err(e) = Volumes::new(&self.ctx, &self.pod, &self.dir, ip).refresh()
        {
            say!("{}: {e}", self.pod.id());
        }
    }

    /// Starts a waiting container whose time has come; returns the time when it has not.
    fn start_if_due(&mut self, key: usize) -> Option<Instant> {
        let slot = &self.slots[key];
        if !matches!(slot.state, State::Waiting(..)) {
            return None;
        }
        if slot.not_before > Instant::now() {
            return Some(slot.not_before);
        }
        self.start(key);
        matches!(self.slots[key].state, State::Waiting(..)).then_some(self.slots[key].not_before)
    }

    fn prepare(&mut self) -> Result<(), String> {
        let hostname = self.pod.hostname();
        if self.sandbox.is_none() {
            let sharing = Sharing { pid: self.pod.spec.share_process_namespace };
            let made = self.ctx.net.sandbox(&hostname, &self.ctx.options.state, sharing);
            self.sandbox = Some(made.map_err(|e| format!("pod sandbox: {e}"))?);
        }
        let Some(ip) = self.sandbox.as_ref().map(|s| s.ip) else { return Ok(()) };
        for name in ["shm", "memory"] {
            let dir = self.dir.join(name);
            if !dir.exists() {
                volumes::make_dir(&dir, 0o700)?;
                let data = if name == "shm" { "mode=1777,size=64m" } else { "mode=0700" };
                volumes::mount_tmpfs(&dir, data)?;
            }
        }
        let files = [
            ("hosts", self.pod.hosts_file(ip)),
            ("hostname", format!("{hostname}\n")),
            ("resolv.conf", self.pod.resolv_conf(self.ctx.net.gateway())),
        ];
        for (name, text) in files {
            std::fs::write(self.dir.join(name), text).map_err(|e| e.to_string())?;
        }
        self.sources = Volumes::new(&self.ctx, &self.pod, &self.dir, ip).prepare().map_err(|e| e.to_string())?;
        Ok(())
    }

    fn start(&mut self, key: usize) {
        let Some(sandbox) = &self.sandbox else { return };
        let attempt = self.attempts[key];
        self.attempts[key] += 1;
        let start = Start { ctx: &self.ctx, pod: &self.pod, sandbox, dir: &self.dir, sources: &self.sources };
        let outcome = start.run(&self.slots[key].spec, attempt);
        let ip = sandbox.ip;
        match outcome {
            Ok(started) => {
                say!("{}: {} started", self.pod.id(), self.slots[key].spec.name);
                let slot = &mut self.slots[key];
                if slot.last.is_some() {
                    slot.restarts += 1;
                }
                slot.image_id = started.image.id;
                self.signals[key] = started.image.stop_signal.unwrap_or_else(|| "TERM".to_owned());
                let handle = Arc::new(Handle::new(started.id));
                let spec = slot.spec.clone();
                let hook = spec.lifecycle.as_ref().and_then(|l| l.post_start.clone());
                slot.state = State::Running(Running {
                    handle: handle.clone(),
                    since: seconds(jiff::Timestamp::now()),
                    hook_pending: hook.is_some(),
                    stopping: false,
                });
                let (ctx, tx) = (self.ctx.clone(), self.tx.clone());
                stop::watch(ctx.clone(), key, started.pid, handle.clone(), started.paths, spec.clone(), tx.clone());
                match hook {
                    None => self.hooked(key, Ok(())),
                    Some(hook) => {
                        std::thread::spawn(move || {
                            let result = stop::run_hook(&ctx, &handle, &spec, &hook, ip);
                            // The worker may have ended meanwhile.
                            let _nobody = tx.send(Msg::Hook { key, id: handle.id.clone(), result });
                        });
                    }
                }
            }
            Err(StartError::Wait(reason, message)) => self.wait(key, reason, message),
            Err(StartError::Failed(message)) => {
                let now = jiff::Timestamp::now().to_string();
                self.ctx.event(&self.pod.meta, "Warning", "Failed", &message);
                let reason = "StartError".to_owned();
                let (started, finished) = (now.clone(), now);
                self.ended(key, Terminated { id: String::new(), code: 128, reason, message, started, finished });
            }
        }
    }

    fn wait(&mut self, key: usize, reason: &str, message: String) {
        let old = match &self.slots[key].state {
            State::Waiting(reason, _) => reason.clone(),
            _ => String::new(),
        };
        let known = [reason, "ImagePullBackOff"].contains(&old.as_str());
        if !known {
            self.ctx.event(&self.pod.meta, "Warning", "Failed", &message);
        }
        // A kubelet shows the error and the back-off from it in turns.
        let shown = if reason == "ErrImagePull" && old == reason { "ImagePullBackOff" } else { reason };
        let slot = &mut self.slots[key];
        slot.state = State::Waiting(shown.to_owned(), message);
        slot.not_before = Instant::now() + RETRY;
    }

    fn hooked(&mut self, key: usize, result: Result<(), String>) {
        if let State::Running(r) = &mut self.slots[key].state {
            r.hook_pending = false;
        }
        if let Err(message) = result {
            self.ctx.event(&self.pod.meta, "Warning", "FailedPostStartHook", &message);
            self.stop(key, Instant::now() + self.grace());
            return;
        }
        let slot = &mut self.slots[key];
        slot.started = slot.spec.startup_probe.is_none();
        slot.ready = slot.started && slot.spec.readiness_probe.is_none();
        if let (Some(r), Some(ip)) = (slot.running(), self.sandbox.as_ref().map(|s| s.ip)) {
            probe::watch(self.ctx.clone(), key, r.handle.clone(), slot.spec.clone(), ip, self.tx.clone());
        }
    }

    fn probed(&mut self, key: usize, kind: probe::Kind, ok: bool, message: &str) {
        let slot = &mut self.slots[key];
        match (kind, ok) {
            (probe::Kind::Startup, true) => {
                slot.started = true;
                slot.ready = slot.spec.readiness_probe.is_none();
            }
            (probe::Kind::Readiness, _) => slot.ready = ok,
            (probe::Kind::Liveness, true) => {}
            (probe::Kind::Startup | probe::Kind::Liveness, false) => {
                let probe =
                    [&slot.spec.startup_probe, &slot.spec.liveness_probe][usize::from(kind == probe::Kind::Liveness)];
                let grace = probe.as_ref().and_then(|p| p.termination_grace_period_seconds);
                let grace = Duration::from_secs(grace.unwrap_or_else(|| self.pod.spec.grace_seconds()));
                let message = format!("{kind:?} probe of {} failed: {message}", slot.spec.name);
                self.ctx.event(&self.pod.meta, "Warning", "Unhealthy", &message);
                self.stop(key, Instant::now() + grace);
            }
        }
    }

    fn ended(&mut self, key: usize, ended: Terminated) {
        let policy = self.pod.spec.restart_policy;
        let (first, max) = (self.ctx.options.backoff_first, self.ctx.options.backoff_max);
        let slot = &mut self.slots[key];
        (slot.started, slot.ready) = (slot.started && slot.role == Role::Init, false);
        say!("{}: {} ended: {} ({})", self.pod.id(), slot.spec.name, ended.code, ended.reason);
        if self.ending.is_none() && slot.restarts_after(ended.code, policy) {
            slot.back_off(first, max);
            let message = format!("restarting container {} of pod {}", slot.spec.name, self.pod.meta.name);
            slot.state = State::Waiting("CrashLoopBackOff".to_owned(), message);
            slot.last = Some(ended);
        } else {
            slot.state = State::Terminated(ended);
        }
    }

    /// Asks a container to end, hard at `by`.
    fn stop(&mut self, key: usize, by: Instant) {
        let signal = self.signals[key].clone();
        let Some(ip) = self.sandbox.as_ref().map(|s| s.ip) else { return };
        let slot = &mut self.slots[key];
        let spec = slot.spec.clone();
        if let State::Running(r) = &mut slot.state {
            r.handle.kill_by(by);
            if !r.stopping {
                r.stopping = true;
                stop::stop(self.ctx.clone(), r.handle.clone(), spec, signal, ip);
            }
        }
    }

    /// Ends what runs: main containers first and together, then sidecars, last first, one by one.
    fn wind_down(&mut self) -> Instant {
        let now = Instant::now();
        let running: Vec<usize> = (0..self.slots.len()).filter(|k| self.slots[*k].running().is_some()).collect();
        let (sidecars, others): (Vec<usize>, Vec<usize>) =
            running.iter().partition(|k| self.slots[**k].role == Role::Sidecar);
        for key in &others {
            self.stop(*key, self.end_by);
        }
        let all_at_once = self.ending == Some(Ending::Shutdown);
        if others.is_empty() || all_at_once {
            let by = match self.ending {
                Some(Ending::Shutdown) => now,
                Some(Ending::Deleted) => self.end_by.max(now + SIDECAR_LEAST_GRACE),
                _ => now + self.grace(),
            };
            let count = if all_at_once { sidecars.len() } else { 1 };
            for key in sidecars.iter().rev().take(count) {
                self.stop(*key, by);
            }
        }
        if running.is_empty() {
            self.finish();
            return now;
        }
        far(now)
    }
}

fn far(now: Instant) -> Instant {
    now + Duration::from_secs(3600)
}
