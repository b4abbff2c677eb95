//! Probes and life-cycle hooks.

use k8s_openapi::api::core::v1::{Container, ExecAction, HTTPGetAction, LifecycleHandler, Probe, TCPSocketAction};

use super::check::{Check, Path};
use super::service::port_number_or_name;
use crate::model::kubernetes::Feature;

const MOST: i64 = i32::MAX as i64;

/// `helper`: an init container that ends before the others start, which has none of these.
pub(super) fn container(check: &mut Check, at: &Path, container: &Container, helper: bool, grace: i64) {
    let probes = [
        ("livenessProbe", container.liveness_probe.as_ref()),
        ("readinessProbe", container.readiness_probe.as_ref()),
        ("startupProbe", container.startup_probe.as_ref()),
    ];
    for (field, probe) in probes {
        let Some(probe) = probe else { continue };
        if helper {
            check.problem(&at.key(field), "needs restartPolicy Always in an init container");
            continue;
        }
        self::probe(check, &at.key(field), probe, field);
    }
    let Some(lifecycle) = &container.lifecycle else { return };
    let at = at.key("lifecycle");
    let hooks = [("postStart", lifecycle.post_start.as_ref()), ("preStop", lifecycle.pre_stop.as_ref())];
    for (field, hook) in hooks {
        let Some(hook) = hook else { continue };
        if helper {
            check.problem(&at.key(field), "needs restartPolicy Always in an init container");
            continue;
        }
        self::hook(check, &at.key(field), hook, grace);
    }
}

fn probe(check: &mut Check, at: &Path, probe: &Probe, field: &str) {
    let handlers = [probe.exec.is_some(), probe.http_get.is_some(), probe.tcp_socket.is_some(), probe.grpc.is_some()];
    exactly_one(check, at, &handlers, "exec, httpGet, tcpSocket and grpc");
    actions(check, at, probe.exec.as_ref(), probe.http_get.as_ref(), probe.tcp_socket.as_ref());
    if let Some(grpc) = &probe.grpc {
        check.range(&at.key("grpc").key("port"), grpc.port, 1, 65535);
    }
    for (field, number) in [
        ("initialDelaySeconds", probe.initial_delay_seconds),
        ("timeoutSeconds", probe.timeout_seconds),
        ("periodSeconds", probe.period_seconds),
        ("successThreshold", probe.success_threshold),
        ("failureThreshold", probe.failure_threshold),
    ] {
        check.optional_range(&at.key(field), number, 0, MOST);
    }
    // 0 is defaulted to 1.
    let success = probe.success_threshold.unwrap_or(1);
    if field != "readinessProbe" && success > 1 {
        check.problem(&at.key("successThreshold"), format!("{success} must be 1 in a {field}"));
    }
    if let Some(seconds) = probe.termination_grace_period_seconds {
        let at = at.key("terminationGracePeriodSeconds");
        if field == "readinessProbe" {
            check.problem(&at, "does not go with a readinessProbe");
        }
        check.range(&at, seconds, 1, i64::MAX);
    }
}

fn hook(check: &mut Check, at: &Path, hook: &LifecycleHandler, grace: i64) {
    let handlers = [hook.exec.is_some(), hook.http_get.is_some(), hook.tcp_socket.is_some(), hook.sleep.is_some()];
    exactly_one(check, at, &handlers, "exec, httpGet, tcpSocket and sleep");
    actions(check, at, hook.exec.as_ref(), hook.http_get.as_ref(), hook.tcp_socket.as_ref());
    if let Some(sleep) = &hook.sleep {
        let at = at.key("sleep");
        check.since(&at, Feature::SleepHook, true);
        check.range(&at.key("seconds"), sleep.seconds, 0, grace);
    }
}

fn exactly_one(check: &mut Check, at: &Path, handlers: &[bool], list: &str) {
    match handlers.iter().filter(|there| **there).count() {
        1 => {}
        0 => check.problem(at, format!("needs one of {list}")),
        _ => check.problem(at, format!("has more than one of {list}")),
    }
}

fn actions(
    check: &mut Check,
    at: &Path,
    exec: Option<&ExecAction>,
    http: Option<&HTTPGetAction>,
    tcp: Option<&TCPSocketAction>,
) {
    if exec.is_some_and(|exec| exec.command.as_deref().unwrap_or_default().is_empty()) {
        check.required(&at.key("exec").key("command"));
    }
    if let Some(http) = http {
        let at = at.key("httpGet");
        port_number_or_name(check, &at.key("port"), &http.port);
        check.optional_word(&at.key("scheme"), http.scheme.as_ref(), &["HTTP", "HTTPS"]);
    }
    if let Some(tcp) = tcp {
        port_number_or_name(check, &at.key("tcpSocket").key("port"), &tcp.port);
    }
}
