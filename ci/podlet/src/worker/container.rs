//! The state of one container of a pod.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::spec::{Container, RestartPolicy};

/// What part a container plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Runs to its end before the next one.
    Init,
    /// An init container that keeps running (KEP 753).
    Sidecar,
    /// One of `spec.containers`.
    Main,
}

/// A running process that other threads look at.
#[derive(Debug, Default)]
pub struct Handle {
    /// podman's id.
    pub id: String,
    gone: AtomicBool,
    kill_at: Mutex<Option<Instant>>,
}

impl Handle {
    /// For the container with this id.
    pub fn new(id: String) -> Self {
        Handle { id, ..Handle::default() }
    }

    /// Whether its process has ended.
    pub fn gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Says that its process has ended.
    pub fn set_gone(&self) {
        self.gone.store(true, Ordering::Release);
    }

    /// When it is to be killed hard. An earlier time wins over a later one.
    pub fn kill_by(&self, at: Instant) -> Instant {
        let mut current = self.kill_at.lock().unwrap_or_else(PoisonError::into_inner);
        let earliest = current.map_or(at, |c| c.min(at));
        *current = Some(earliest);
        earliest
    }

    /// The time set by [`Handle::kill_by`].
    pub fn deadline(&self) -> Option<Instant> {
        *self.kill_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A running container.
#[derive(Debug, Clone)]
pub struct Running {
    /// Its process.
    pub handle: Arc<Handle>,
    /// RFC 3339.
    pub since: String,
    /// The postStart hook has not ended.
    pub hook_pending: bool,
    /// It was told to stop.
    pub stopping: bool,
}

/// An ended container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terminated {
    /// podman's id; empty when it never started.
    pub id: String,
    /// Exit code.
    pub code: i64,
    /// `Completed`, `Error`, `OOMKilled`, `StartError`, `ContainerStatusUnknown`.
    pub reason: String,
    /// The termination message.
    pub message: String,
    /// RFC 3339.
    pub started: String,
    /// RFC 3339.
    pub finished: String,
}

/// `ContainerState`.
#[derive(Debug, Clone)]
pub enum State {
    /// Not running; reason and message.
    Waiting(String, String),
    /// Running.
    Running(Running),
    /// Ended.
    Terminated(Terminated),
}

/// One container of a pod.
#[derive(Debug)]
pub struct Slot {
    /// As written.
    pub spec: Container,
    /// Its part.
    pub role: Role,
    /// Now.
    pub state: State,
    /// How it ended the time before.
    pub last: Option<Terminated>,
    /// How often it was started again.
    pub restarts: u32,
    /// Passed its startup probe (or has none) and its postStart hook.
    pub started: bool,
    /// Passes its readiness probe (or has none).
    pub ready: bool,
    /// Not to be started before.
    pub not_before: Instant,
    /// The next delay.
    pub delay: Duration,
    /// The id of its image.
    pub image_id: String,
}

impl Slot {
    /// A container that has not been started.
    pub fn new(spec: &Container, role: Role, waiting: &str) -> Self {
        Slot {
            spec: spec.clone(),
            role,
            state: State::Waiting(waiting.to_owned(), String::new()),
            last: None,
            restarts: 0,
            started: false,
            ready: false,
            not_before: Instant::now(),
            delay: Duration::ZERO,
            image_id: String::new(),
        }
    }

    /// Its process, while it runs.
    pub fn running(&self) -> Option<&Running> {
        match &self.state {
            State::Running(r) => Some(r),
            _ => None,
        }
    }

    /// How it ended, if it has.
    pub fn terminated(&self) -> Option<&Terminated> {
        match &self.state {
            State::Terminated(t) => Some(t),
            _ => None,
        }
    }

    /// Ended well.
    pub fn succeeded(&self) -> bool {
        self.terminated().is_some_and(|t| t.code == 0)
    }

    /// Whether an end with this code is followed by another start.
    pub fn restarts_after(&self, code: i64, policy: RestartPolicy) -> bool {
        match (self.role, policy) {
            (Role::Sidecar, _) => true,
            (Role::Init, RestartPolicy::Never) => false,
            (Role::Init, _) => code != 0,
            (Role::Main, RestartPolicy::Always) => true,
            (Role::Main, RestartPolicy::OnFailure) => code != 0,
            (Role::Main, RestartPolicy::Never) => false,
        }
    }

    /// The next delay before a start: none at first, then `first`, doubling up to `max`.
    pub fn back_off(&mut self, first: Duration, max: Duration) {
        self.not_before = Instant::now() + self.delay;
        self.delay = if self.delay.is_zero() { first } else { (self.delay * 2).min(max) };
    }

    /// `ContainerStatus`.
    pub fn status(&self) -> Value {
        let state = match &self.state {
            State::Waiting(reason, message) => {
                let mut waiting = json!({ "reason": reason });
                if !message.is_empty() {
                    waiting["message"] = json!(message);
                }
                json!({ "waiting": waiting })
            }
            State::Running(r) => json!({"running": {"startedAt": r.since}}),
            State::Terminated(t) => json!({"terminated": terminated(t)}),
        };
        let last = self.last.as_ref().map_or_else(|| json!({}), |t| json!({"terminated": terminated(t)}));
        let id = match (&self.state, &self.last) {
            (State::Running(r), _) => r.handle.id.clone(),
            (State::Terminated(t), _) | (State::Waiting(..), Some(t)) => t.id.clone(),
            (State::Waiting(..), None) => String::new(),
        };
        let mut status = json!({
            "name": self.spec.name, "image": self.spec.image, "imageID": self.image_id,
            "ready": self.ready, "started": self.started, "restartCount": self.restarts,
            "state": state, "lastState": last
        });
        if !id.is_empty() {
            status["containerID"] = json!(format!("podman://{id}"));
        }
        status
    }
}

fn terminated(t: &Terminated) -> Value {
    let mut out = json!({"exitCode": t.code, "reason": t.reason});
    for (key, value) in [("message", &t.message), ("startedAt", &t.started), ("finishedAt", &t.finished)] {
        if !value.is_empty() {
            out[key] = json!(value);
        }
    }
    if !t.id.is_empty() {
        out["containerID"] = json!(format!("podman://{}", t.id));
    }
    out
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::json;

    use super::{Handle, Role, Slot};
    use crate::spec::RestartPolicy::{Always, Never, OnFailure};

    fn slot(role: Role) -> Slot {
        let spec = serde_json::from_value(json!({"name": "a", "image": "i"})).expect("container");
        Slot::new(&spec, role, "PodInitializing")
    }

    #[test]
    fn restarts() {
        for (role, policy, code, want) in [
            (Role::Main, Never, 1, false),
            (Role::Main, OnFailure, 0, false),
            (Role::Main, OnFailure, 1, true),
            (Role::Main, Always, 0, true),
            (Role::Init, Never, 1, false),
            (Role::Init, OnFailure, 1, true),
            (Role::Init, Always, 0, false),
            (Role::Sidecar, Never, 0, true),
        ] {
            assert_eq!(slot(role).restarts_after(code, policy), want, "{role:?} {policy:?} {code}");
        }
    }

    #[test]
    fn back_off_doubles_to_its_maximum() {
        let mut s = slot(Role::Main);
        let mut seen = Vec::new();
        for _ in 0..5 {
            seen.push(s.delay.as_millis());
            s.back_off(Duration::from_millis(500), Duration::from_secs(2));
        }
        assert_eq!(seen, [0, 500, 1000, 2000, 2000]);
    }

    #[test]
    fn an_earlier_kill_wins() {
        let handle = Handle::new("x".to_owned());
        let now = Instant::now();
        assert_eq!(handle.kill_by(now + Duration::from_secs(9)), now + Duration::from_secs(9));
        assert_eq!(handle.kill_by(now + Duration::from_secs(1)), now + Duration::from_secs(1));
        assert_eq!(handle.kill_by(now + Duration::from_secs(5)), now + Duration::from_secs(1));
    }
}
