//! The end of a pod: its last status, what is left of it, and the word to the API server.

use serde_json::json;

use super::container::{Role, State, Terminated};
use super::status::{Phase, View, final_phase, live_phase, stamp};
use super::{Ending, Worker};
use crate::api::STRATEGIC_MERGE;
use crate::context::seconds;
use crate::say::say;
use crate::{podman, volumes};

impl Worker {
    /// Settles the states, reports them, and removes what is left.
    pub(super) fn finish(&mut self) {
        let deleted = self.ending == Some(Ending::Deleted);
        for slot in &mut self.slots {
            let State::Waiting(..) = slot.state else { continue };
            match slot.last.take() {
                Some(last) => slot.state = State::Terminated(last),
                None if deleted && slot.role == Role::Main => {
                    slot.state = State::Terminated(Terminated {
                        id: String::new(),
                        code: 137,
                        reason: "ContainerStatusUnknown".to_owned(),
                        message: "The container could not be located when the pod was terminated".to_owned(),
                        started: String::new(),
                        finished: String::new(),
                    });
                }
                None => {}
            }
        }
        self.done = true;
        // The status first: tests that see the pod gone must be able to rely on its logs and codes.
        self.publish();
        if let Err(e) = self.tear_down() {
            say!("{}: {e}", self.pod.id());
        }
        if self.deleted && !self.gone {
            self.delete_from_api();
        }
    }

    fn tear_down(&mut self) -> std::io::Result<()> {
        if let Some(sandbox) = self.sandbox.take() {
            let ip = sandbox.ip;
            drop(sandbox);
            self.ctx.net.release(ip);
        }
        for source in self.sources.values() {
            if let Some(image) = &source.image
                && let Err(e) = podman::run(&podman::args(["image", "unmount", image]))
            {
                say!("{e}");
            }
        }
        self.sources.clear();
        volumes::unmount_below(&self.dir)?;
        if self.dir.exists() { std::fs::remove_dir_all(&self.dir) } else { Ok(()) }
    }

    /// The kubelet's last word on a deleted pod. Returns whether it was heard.
    pub(super) fn delete_from_api(&mut self) -> bool {
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
                             "preconditions": {"uid": self.pod.meta.uid}});
        match self.ctx.client.delete(&self.pod.path(), &options) {
            Ok(_) => true,
            Err(e) if matches!(e.code(), Some(404 | 409)) => true,
            Err(e) => {
                say!("delete {}: {e}", self.pod.id());
                false
            }
        }
    }

    fn phase(&self) -> Phase {
        match &self.ending {
            Some(Ending::Refused(..) | Ending::DeadlineExceeded) if self.done => Phase::Failed,
            _ if self.done => final_phase(&self.slots),
            _ => live_phase(&self.slots),
        }
    }

    /// Tells the API server what changed. Returns whether it knows.
    pub(super) fn publish(&mut self) -> bool {
        if self.gone
            || self.ending == Some(Ending::Shutdown)
            || (self.done && self.published.is_null() && self.ending.is_none())
        {
            return true;
        }
        let now = seconds(jiff::Timestamp::now());
        let ip = self.sandbox.as_ref().filter(|_| self.prepared).map(|s| s.ip);
        let why = match &self.ending {
            Some(Ending::Refused(reason, message)) => Some((reason.as_str(), message.as_str())),
            Some(Ending::DeadlineExceeded) => {
                Some(("DeadlineExceeded", "Pod was active on the node longer than the specified deadline"))
            }
            _ => None,
        };
        let view = View {
            slots: &self.slots,
            phase: self.phase(),
            why,
            ip,
            host_ip: self.ctx.net.gateway(),
            start_time: &self.start_time,
        };
        let mut status = view.status();
        stamp(&mut status, &self.published, &now);
        if status == self.published {
            return true;
        }
        let patch = json!({"metadata": {"uid": self.pod.meta.uid}, "status": status});
        match self.ctx.client.patch(&format!("{}/status", self.pod.path()), STRATEGIC_MERGE, &patch) {
            Ok(_) => {
                self.published = status;
                true
            }
            Err(e) if matches!(e.code(), Some(404 | 409)) => true,
            Err(e) => {
                say!("status of {}: {e}", self.pod.id());
                false
            }
        }
    }
}
