//! The node: registration, heartbeats, binding of pods, one worker per pod.

use std::collections::BTreeMap;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Value, json};

use crate::api::{ApiError, Delta, STRATEGIC_MERGE, text_at};
use crate::context::{Context, Pod, seconds};
use crate::say::say;
use crate::spec::{DecodeError, Meta, PodSpec, decode};
use crate::worker::{Msg, Worker};

/// How often the lease is renewed.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// The pods of this node.
#[derive(Clone)]
pub struct Pods {
    ctx: Arc<Context>,
    workers: Arc<Mutex<Workers>>,
}

/// Workers by pod uid.
type Workers = BTreeMap<String, (Sender<Msg>, JoinHandle<()>)>;

impl Pods {
    /// None yet.
    pub fn new(ctx: Arc<Context>) -> Self {
        Pods { ctx, workers: Arc::default() }
    }

    /// Takes a change of the pods.
    pub fn on_delta(&self, delta: Delta) {
        match delta {
            Delta::Replace(all) => {
                let uids: Vec<String> = all.iter().map(|p| text_at(p, "/metadata/uid")).collect();
                let gone: Vec<String> = {
                    let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
                    workers.keys().filter(|k| !uids.contains(k)).cloned().collect()
                };
                gone.iter().for_each(|uid| self.gone(uid));
                all.into_iter().for_each(|p| self.apply(p));
            }
            Delta::Apply(pod) => self.apply(pod),
            Delta::Delete(pod) => self.gone(&text_at(&pod, "/metadata/uid")),
        }
    }

    /// Stops every pod at once and waits until nothing of them is left.
    pub fn shut_down(&self) {
        let workers = std::mem::take(&mut *self.workers.lock().unwrap_or_else(PoisonError::into_inner));
        for (tx, _) in workers.values() {
            // A worker that has ended needs no telling.
            let _ended = tx.send(Msg::Shutdown);
        }
        for (uid, (_, thread)) in workers {
            if thread.join().is_err() {
                say!("the worker of pod {uid} had crashed");
            }
        }
    }

    fn gone(&self, uid: &str) {
        let worker = self.workers.lock().unwrap_or_else(PoisonError::into_inner).get(uid).map(|w| w.0.clone());
        if let Some(tx) = worker {
            // It ends by itself once the containers are stopped; `sweep` forgets it then.
            let _ended = tx.send(Msg::Gone);
        }
        self.sweep();
    }

    fn sweep(&self) {
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.retain(|_, (_, thread)| !thread.is_finished());
    }

    fn apply(&self, pod: Value) {
        let node = text_at(&pod, "/spec/nodeName");
        if node.is_empty() {
            if let Err(e) = self.bind(&pod) {
                say!("bind {}: {e}", text_at(&pod, "/metadata/name"));
            }
        } else if node == self.ctx.options.node {
            self.run(pod);
        }
    }

    fn bind(&self, pod: &Value) -> Result<(), ApiError> {
        let gated = pod.pointer("/spec/schedulingGates").and_then(Value::as_array).is_some_and(|g| !g.is_empty());
        if gated || pod.pointer("/metadata/deletionTimestamp").is_some() {
            return Ok(());
        }
        let (ns, name) = (text_at(pod, "/metadata/namespace"), text_at(pod, "/metadata/name"));
        let binding = json!({
            "apiVersion": "v1", "kind": "Binding",
            "metadata": {"name": name, "namespace": ns, "uid": text_at(pod, "/metadata/uid")},
            "target": {"apiVersion": "v1", "kind": "Node", "name": self.ctx.options.node}
        });
        match self.ctx.client.post(&format!("/api/v1/namespaces/{ns}/pods/{name}/binding"), &binding) {
            // Already bound, or already gone.
            Err(e) if matches!(e.code(), Some(404 | 409)) => Ok(()),
            other => other.map(|_| ()),
        }
    }

    fn run(&self, pod: Value) {
        let uid = text_at(&pod, "/metadata/uid");
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((tx, _)) = workers.get(&uid) {
            let _ended = tx.send(Msg::Update(Box::new(pod)));
            return;
        }
        let (tx, rx) = channel();
        let meta: Meta = match serde_json::from_value(pod["metadata"].clone()) {
            Ok(meta) => meta,
            Err(e) => {
                say!("pod metadata: {e}");
                return;
            }
        };
        let (spec, refusal) = match decode(&pod) {
            Ok(spec) => (spec, None),
            Err(e) => (nothing(), Some(refusal(&e))),
        };
        let mut worker = Worker::new(self.ctx.clone(), Pod { meta: meta.clone(), spec }, tx.clone(), &pod);
        let terminal = matches!(text_at(&pod, "/status/phase").as_str(), "Succeeded" | "Failed");
        if let Some((reason, message)) = refusal.filter(|_| !terminal) {
            self.ctx.event(&meta, "Warning", reason, &message);
            worker.refuse(reason, &message);
        }
        // The first look at the pod may already show its deletion.
        let _just_made = tx.send(Msg::Update(Box::new(pod)));
        let thread = std::thread::spawn(move || worker.run(&rx));
        workers.insert(uid, (tx, thread));
    }
}

fn refusal(e: &DecodeError) -> (&'static str, String) {
    match e {
        DecodeError::Unsupported(_) => ("PodletUnsupportedField", e.to_string()),
        DecodeError::Invalid(_) => ("PodletInvalidPod", e.to_string()),
    }
}

/// The spec of a pod that is not run at all.
fn nothing() -> PodSpec {
    PodSpec::default()
}

/// Makes the Node object, or takes over the one that is there, and marks it ready.
///
/// # Errors
/// The API server refuses.
pub fn register(ctx: &Context) -> Result<(), ApiError> {
    let name = &ctx.options.node;
    let labels = json!({
        "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": arch(),
        "node.kubernetes.io/instance-type": "podlet"
    });
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
    match ctx.client.post("/api/v1/nodes", &node) {
        Err(e) if e.code() != Some(409) => return Err(e),
        _ => {}
    }
    mark(ctx, true)?;
    renew(ctx)
}

fn arch() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Sets the node's conditions, address and capacity.
///
/// # Errors
/// The API server refuses.
pub fn mark(ctx: &Context, ready: bool) -> Result<(), ApiError> {
    let now = seconds(jiff::Timestamp::now());
    let condition = |kind: &str, status: &str, reason: &str| json!({"type": kind, "status": status, "reason": reason, "lastHeartbeatTime": now, "lastTransitionTime": now});
    let (status, reason) = if ready { ("True", "KubeletReady") } else { ("False", "PodletStopped") };
    // More than the machine has: the tests declare what a cluster has.
    let capacity = json!({"cpu": "64", "memory": "256Gi", "pods": "200", "ephemeral-storage": "100Gi"});
    let patch = json!({"status": {
        "capacity": capacity, "allocatable": capacity,
        "addresses": [{"type": "InternalIP", "address": ctx.net.gateway().to_string()},
                      {"type": "Hostname", "address": ctx.options.node}],
        "conditions": [
            condition("Ready", status, reason),
            condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
            condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
            condition("PIDPressure", "False", "KubeletHasSufficientPID"),
        ],
        "nodeInfo": {"architecture": arch(), "operatingSystem": "linux", "kubeletVersion": "v1.36.0-podlet",
                     "containerRuntimeVersion": "podman", "machineID": "", "systemUUID": "", "bootID": "",
                     "kernelVersion": "", "osImage": "", "kubeProxyVersion": ""}
    }});
    ctx.client.patch(&format!("/api/v1/nodes/{}/status", ctx.options.node), STRATEGIC_MERGE, &patch).map(|_| ())
}

fn renew(ctx: &Context) -> Result<(), ApiError> {
    const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let name = &ctx.options.node;
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string();
    let spec = json!({"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": now});
    let patch = json!({ "spec": spec });
    match ctx.client.patch(&format!("{LEASES}/{name}"), "application/merge-patch+json", &patch) {
        Err(e) if e.code() == Some(404) => {
            let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                               "metadata": {"name": name, "namespace": "kube-node-lease"}, "spec": spec});
            match ctx.client.post(LEASES, &lease) {
                // The namespace is made by a controller that may not run here.
                Err(e) if e.code() == Some(404) => Ok(()),
                other => other.map(|_| ()),
            }
        }
        other => other.map(|_| ()),
    }
}

/// Renews the lease until the process ends.
pub fn heartbeats(ctx: Arc<Context>) {
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(HEARTBEAT);
            if let Err(e) = renew(&ctx) {
                say!("lease: {e}");
            }
        }
    });
}
