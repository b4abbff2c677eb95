//! Pod phase, conditions and the status patch, by the kubelet's rules.

use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::container::{Role, Slot, State};

/// `status.phase`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Phase {
    Pending,
    Running,
    Succeeded,
    Failed,
}

impl Phase {
    /// As the API spells it.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Pending => "Pending",
            Phase::Running => "Running",
            Phase::Succeeded => "Succeeded",
            Phase::Failed => "Failed",
        }
    }

    /// No container runs any more, and none will.
    pub fn terminal(self) -> bool {
        matches!(self, Phase::Succeeded | Phase::Failed)
    }
}

/// All init containers are done, and all sidecars started.
pub fn initialized(slots: &[Slot]) -> bool {
    slots.iter().all(|s| match s.role {
        Role::Init => s.succeeded(),
        Role::Sidecar => s.started || s.restarts > 0,
        Role::Main => true,
    })
}

/// The phase while containers may still run.
pub fn live_phase(slots: &[Slot]) -> Phase {
    let begun =
        slots.iter().any(|s| s.role == Role::Main && (!matches!(s.state, State::Waiting(..)) || s.last.is_some()));
    if begun { Phase::Running } else { Phase::Pending }
}

/// The phase when nothing runs and nothing will: `Succeeded` only if every main container ended with 0.
pub fn final_phase(slots: &[Slot]) -> Phase {
    let ok = slots.iter().filter(|s| s.role == Role::Main).all(Slot::succeeded);
    if ok { Phase::Succeeded } else { Phase::Failed }
}

/// What the status says beside the containers.
pub struct View<'a> {
    /// The containers.
    pub slots: &'a [Slot],
    /// The phase.
    pub phase: Phase,
    /// `status.reason` and `status.message`.
    pub why: Option<(&'a str, &'a str)>,
    /// The pod's address, once it has one.
    pub ip: Option<Ipv4Addr>,
    /// The node's address.
    pub host_ip: Ipv4Addr,
    /// RFC 3339.
    pub start_time: &'a str,
}

impl View<'_> {
    /// `status`, without transition times.
    pub fn status(&self) -> Value {
        let of = |init: bool| -> Vec<Value> {
            self.slots.iter().filter(|s| (s.role != Role::Main) == init).map(Slot::status).collect()
        };
        let mut status = json!({
            "phase": self.phase.name(),
            "startTime": self.start_time,
            "hostIP": self.host_ip.to_string(),
            "hostIPs": [{"ip": self.host_ip.to_string()}],
            "containerStatuses": of(false),
            "conditions": self.conditions(),
        });
        let init = of(true);
        if !init.is_empty() {
            status["initContainerStatuses"] = json!(init);
        }
        if let Some(ip) = self.ip {
            status["podIP"] = json!(ip.to_string());
            status["podIPs"] = json!([{"ip": ip.to_string()}]);
        }
        if let Some((reason, message)) = self.why {
            status["reason"] = json!(reason);
            status["message"] = json!(message);
        }
        status
    }

    fn conditions(&self) -> Vec<Value> {
        let mains = || self.slots.iter().filter(|s| s.role == Role::Main);
        let unready: Vec<&str> =
            self.slots.iter().filter(|s| s.role != Role::Init && !s.ready).map(|s| s.spec.name.as_str()).collect();
        let not_ready = match self.phase {
            Phase::Succeeded => Some("PodCompleted"),
            Phase::Failed => Some("PodFailed"),
            _ if unready.is_empty() => None,
            _ => Some("ContainersNotReady"),
        };
        let done_init =
            initialized(self.slots) || self.phase == Phase::Succeeded || mains().any(|s| s.terminated().is_some());
        let condition = |kind: &str, reason: Option<&str>, message: String| {
            let mut c = json!({"type": kind, "status": if reason.is_none() { "True" } else { "False" }});
            if let Some(reason) = reason {
                c["reason"] = json!(reason);
            }
            if !message.is_empty() {
                c["message"] = json!(message);
            }
            c
        };
        let message = match not_ready {
            Some("ContainersNotReady") => format!("containers with unready status: [{}]", unready.join(" ")),
            _ => String::new(),
        };
        let sandbox = (self.ip.is_none() || self.phase.terminal()).then_some("SandboxNotReady");
        vec![
            condition("PodReadyToStartContainers", sandbox, String::new()),
            condition("Initialized", (!done_init).then_some("ContainersNotInitialized"), String::new()),
            condition("Ready", not_ready, message.clone()),
            condition("ContainersReady", not_ready, message),
        ]
    }
}

/// Sets `lastTransitionTime` of each condition: kept from `before` when its status is the same, else `now`.
pub fn stamp(status: &mut Value, before: &Value, now: &str) {
    let old = before.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    for condition in status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        let same = old.iter().find(|o| o["type"] == condition["type"] && o["status"] == condition["status"]);
        condition["lastTransitionTime"] = match same {
            Some(o) => o["lastTransitionTime"].clone(),
            None => json!(now),
        };
    }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
