//! Stopping a container: preStop, TERM, KILL; and waiting for its end.

use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::Msg;
use super::container::{Handle, Terminated};
use super::probe;
use super::start::Paths;
use crate::context::Context;
use crate::podman;
use crate::say::say;
use crate::spec::{Container, Hook};

/// The kubelet leaves a container this long after a preStop hook that used up the grace period.
const LEAST_GRACE: Duration = Duration::from_secs(2);

/// Stops a container in the background. `signal` is the image's STOPSIGNAL or TERM; the hard kill comes
/// at [`Handle::deadline`], which may be moved forward meanwhile.
pub fn stop(ctx: Arc<Context>, handle: Arc<Handle>, container: Container, signal: String, ip: std::net::Ipv4Addr) {
    std::thread::spawn(move || {
        let hook = container.lifecycle.as_ref().and_then(|l| l.pre_stop.as_ref());
        if let Some(hook) = hook
            && let Err(m) = run_hook(&ctx, &handle, &container, hook, ip)
        {
            say!("preStop of {}: {m}", container.name);
        }
        if !handle.gone()
            && let Err(e) = podman::kill(&handle.id, &signal)
            && !handle.gone()
        {
            say!("{e}");
        }
        let least = if hook.is_some() { Instant::now() + LEAST_GRACE } else { Instant::now() };
        while !handle.gone() {
            let due = handle.deadline().is_none_or(|d| Instant::now() >= d.max(least));
            if due {
                if let Err(e) = podman::kill(&handle.id, "KILL")
                    && !handle.gone()
                {
                    say!("{e}");
                }
                std::thread::sleep(Duration::from_millis(500));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    });
}

/// Runs a life cycle hook to its end, at most until the container's deadline.
///
/// # Errors
/// It failed, in words.
pub fn run_hook(
    ctx: &Context,
    handle: &Handle,
    container: &Container,
    hook: &Hook,
    ip: std::net::Ipv4Addr,
) -> Result<(), String> {
    let limit = handle.deadline().map_or(Duration::from_secs(3600), |d| d.saturating_duration_since(Instant::now()));
    if let Some(sleep) = &hook.sleep {
        let until = Instant::now() + Duration::from_secs(sleep.seconds).min(limit);
        while Instant::now() < until && !handle.gone() {
            std::thread::sleep(Duration::from_millis(20));
        }
        return Ok(());
    }
    if let Some(exec) = &hook.exec {
        return match podman::exec(&handle.id, &exec.command, limit) {
            Ok(Some((status, _))) if status.success() => Ok(()),
            Ok(Some((status, message))) => Err(format!("{status}: {message}")),
            Ok(None) => Err("it outlasted the grace period".to_owned()),
            Err(e) => Err(e.to_string()),
        };
    }
    if let Some(get) = &hook.http_get {
        return probe::http(ctx, container, get, ip, limit.min(Duration::from_secs(30)));
    }
    Ok(())
}

/// Waits for a container's end in the background, then reports it and removes the container.
pub fn watch(
    ctx: Arc<Context>,
    key: usize,
    pid: i32,
    handle: Arc<Handle>,
    paths: Paths,
    spec: Container,
    tx: Sender<Msg>,
) {
    std::thread::spawn(move || {
        wait_for(pid);
        handle.set_gone();
        let ended = podman::exit(&handle.id);
        if let Err(e) = ctx.logs.finish(&paths.cri_log) {
            say!("log of {}: {e}", spec.name);
        }
        let ended = match ended {
            Ok(exit) => {
                let reason = match (exit.oom || paths.dir.join("oom").exists(), exit.code) {
                    (true, _) => "OOMKilled",
                    (false, 0) => "Completed",
                    (false, _) => "Error",
                };
                Terminated {
                    id: handle.id.clone(),
                    code: exit.code,
                    reason: reason.to_owned(),
                    message: message(&spec, exit.code, &paths),
                    started: exit.started,
                    finished: exit.finished,
                }
            }
            Err(e) => Terminated {
                id: handle.id.clone(),
                code: 137,
                reason: "ContainerStatusUnknown".to_owned(),
                message: e.to_string(),
                started: String::new(),
                finished: jiff::Timestamp::now().to_string(),
            },
        };
        if let Err(e) = podman::remove(&handle.id) {
            say!("{e}");
        }
        // The worker may have ended already (shutdown); then nobody needs to know.
        let _nobody = tx.send(Msg::Exited { key, id: handle.id.clone(), ended });
    });
}

fn wait_for(pid: i32) {
    let Some(pid) = Pid::from_raw(pid) else { return };
    // No such process: it has ended already.
    let Ok(fd) = pidfd_open(pid, PidfdFlags::empty()) else { return };
    while poll(&mut [PollFd::new(&fd.as_fd(), PollFlags::IN)], None) == Err(rustix::io::Errno::INTR) {}
}

/// The termination message: the file, else by policy the end of the log (80 lines or 2 KiB).
fn message(spec: &Container, code: i64, paths: &Paths) -> String {
    let read = |p: &Path, max: usize| {
        let bytes = std::fs::read(p).unwrap_or_default();
        String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(max)..]).into_owned()
    };
    let own = read(&paths.message, 4096);
    if own.is_empty() && code != 0 && spec.termination_message_policy.as_deref() == Some("FallbackToLogsOnError") {
        let text = read(&paths.plain_log, 2048);
        let lines: Vec<&str> = text.lines().collect();
        return lines[lines.len().saturating_sub(80)..].join("\n");
    }
    own
}
