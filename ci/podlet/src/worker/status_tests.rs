use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::{Phase, View, final_phase, initialized, live_phase, stamp};
use crate::worker::container::{Role, Running, Slot, State, Terminated};

fn slot(name: &str, role: Role) -> Slot {
    let spec = serde_json::from_value(json!({"name": name, "image": "i"})).expect("container");
    Slot::new(&spec, role, "PodInitializing")
}

fn ended(name: &str, role: Role, code: i64) -> Slot {
    let mut s = slot(name, role);
    s.state = State::Terminated(Terminated {
        id: "id".into(),
        code,
        reason: "r".into(),
        message: String::new(),
        started: "t0".into(),
        finished: "t1".into(),
    });
    s
}

fn running(name: &str, role: Role) -> Slot {
    let mut s = slot(name, role);
    let handle = std::sync::Arc::default();
    s.state = State::Running(Running { handle, since: "t".into(), hook_pending: false, stopping: false });
    (s.started, s.ready) = (true, true);
    s
}

fn status(slots: &[Slot], phase: Phase) -> Value {
    let host_ip = Ipv4Addr::new(10, 0, 0, 1);
    let ip = Some(Ipv4Addr::new(10, 0, 0, 2));
    View { slots, phase, why: None, ip, host_ip, start_time: "t" }.status()
}

fn condition<'a>(status: &'a Value, kind: &str) -> &'a Value {
    let all = status["conditions"].as_array().expect("conditions");
    all.iter().find(|c| c["type"] == kind).expect("condition")
}

#[test]
fn phases() {
    let main = |code| ended("m", Role::Main, code);
    assert_eq!(live_phase(&[ended("i", Role::Init, 0), slot("m", Role::Main)]), Phase::Pending);
    assert_eq!(live_phase(&[running("m", Role::Main)]), Phase::Running);
    assert_eq!(final_phase(&[main(0), main(0)]), Phase::Succeeded);
    assert_eq!(final_phase(&[main(0), main(3)]), Phase::Failed);
    // A sidecar's code does not count; a container that never ran does.
    assert_eq!(final_phase(&[ended("s", Role::Sidecar, 137), main(0)]), Phase::Succeeded);
    assert_eq!(final_phase(&[main(0), slot("m", Role::Main)]), Phase::Failed);
}

#[test]
fn conditions_of_a_running_pod() {
    let slots = [ended("i", Role::Init, 0), running("s", Role::Sidecar), running("m", Role::Main)];
    assert!(initialized(&slots));
    let s = status(&slots, Phase::Running);
    for kind in ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady"] {
        assert_eq!(condition(&s, kind)["status"], "True", "{kind}");
    }
    let mut slots = slots;
    slots[2].ready = false;
    let s = status(&slots, Phase::Running);
    assert_eq!(condition(&s, "Ready")["message"], "containers with unready status: [m]");
}

#[test]
fn conditions_of_an_ended_pod() {
    let s = status(&[ended("m", Role::Main, 3)], Phase::Failed);
    assert_eq!(condition(&s, "Ready")["reason"], "PodFailed");
    assert_eq!(s["containerStatuses"][0]["state"]["terminated"]["exitCode"], 3);
    let s = status(&[ended("m", Role::Main, 0)], Phase::Succeeded);
    assert_eq!(condition(&s, "Ready")["reason"], "PodCompleted");
    assert_eq!(condition(&s, "Initialized")["status"], "True");
}

#[test]
fn transition_times_move_only_with_the_status() {
    let before = json!({"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "old"},
                                       {"type": "Initialized", "status": "False", "lastTransitionTime": "old"}]});
    let mut now =
        json!({"conditions": [{"type": "Ready", "status": "True"}, {"type": "Initialized", "status": "True"}]});
    stamp(&mut now, &before, "new");
    assert_eq!(now["conditions"][0]["lastTransitionTime"], "old");
    assert_eq!(now["conditions"][1]["lastTransitionTime"], "new");
}
