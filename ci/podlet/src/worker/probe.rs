//! Startup, readiness and liveness probes.

use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use super::Msg;
use super::container::Handle;
use crate::context::Context;
use crate::podman;
use crate::say::say;
use crate::spec::{Container, HttpGet, Probe};

/// Which question a probe answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Kind {
    Startup,
    Readiness,
    Liveness,
}

/// A probe and its count of equal results in a row.
struct Turn {
    kind: Kind,
    probe: Probe,
    next: Instant,
    last: Option<bool>,
    count: u32,
}

impl Turn {
    fn new(kind: Kind, probe: &Probe) -> Self {
        let next = Instant::now() + Duration::from_secs(probe.initial_delay_seconds);
        Turn { kind, probe: probe.clone(), next, last: None, count: 0 }
    }

    /// Takes a result; tells what is now certain: `Some(true)` passed, `Some(false)` failed.
    fn take(&mut self, ok: bool) -> Option<bool> {
        self.count = if self.last == Some(ok) { self.count + 1 } else { 1 };
        self.last = Some(ok);
        let (yes, no) = (self.probe.success_threshold.unwrap_or(1), self.probe.failure_threshold.unwrap_or(3));
        let enough = if ok { self.count >= yes } else { self.count >= no };
        enough.then_some(ok)
    }
}

/// Probes a container in the background until it ends.
pub fn watch(ctx: Arc<Context>, key: usize, handle: Arc<Handle>, container: Container, ip: Ipv4Addr, tx: Sender<Msg>) {
    let probes = [&container.startup_probe, &container.readiness_probe, &container.liveness_probe];
    if probes.iter().all(|p| p.is_none()) {
        return;
    }
    std::thread::spawn(move || {
        if let Err(e) = ctx.net.enter() {
            say!("probes of {}: {e}", container.name);
            return;
        }
        let mut turns: Vec<Turn> = container.startup_probe.iter().map(|p| Turn::new(Kind::Startup, p)).collect();
        let after_startup = || -> Vec<Turn> {
            let readiness = container.readiness_probe.iter().map(|p| Turn::new(Kind::Readiness, p));
            let liveness = container.liveness_probe.iter().map(|p| Turn::new(Kind::Liveness, p));
            readiness.chain(liveness).collect()
        };
        if turns.is_empty() {
            turns = after_startup();
        }
        while !handle.gone() && !turns.is_empty() {
            std::thread::sleep(Duration::from_millis(20));
            let Some(turn) = turns.iter_mut().find(|t| t.next <= Instant::now()) else { continue };
            let result = ask(&ctx, &handle, &container, &turn.probe, ip);
            turn.next = Instant::now() + Duration::from_secs(turn.probe.period_seconds.unwrap_or(10));
            let (kind, verdict) = (turn.kind, turn.take(result.is_ok()));
            let Some(ok) = verdict else { continue };
            if kind == Kind::Startup && ok {
                turns = after_startup();
            }
            let message = result.err().unwrap_or_default();
            if tx.send(Msg::Probe { key, id: handle.id.clone(), kind, ok, message }).is_err() {
                return;
            }
        }
    });
}

fn ask(ctx: &Context, handle: &Handle, container: &Container, probe: &Probe, ip: Ipv4Addr) -> Result<(), String> {
    let limit = Duration::from_secs(probe.timeout_seconds.unwrap_or(1).max(1));
    if let Some(exec) = &probe.exec {
        return match podman::exec(&handle.id, &exec.command, limit) {
            Ok(Some((status, _))) if status.success() => Ok(()),
            Ok(Some((status, message))) => Err(format!("{status}: {message}")),
            Ok(None) => Err(format!("command timed out after {limit:?}")),
            Err(e) => Err(e.to_string()),
        };
    }
    if let Some(tcp) = &probe.tcp_socket {
        let port = tcp.port.number(container).ok_or("the container has no port of that name")?;
        let host = tcp.host.as_deref().map_or(Ok(ip), str::parse).map_err(|e| format!("host: {e}"))?;
        let address = SocketAddr::from((host, port));
        return TcpStream::connect_timeout(&address, limit).map(|_| ()).map_err(|e| format!("{address}: {e}"));
    }
    match &probe.http_get {
        Some(get) => http(ctx, container, get, ip, limit),
        None => Err("the probe has no handler".to_owned()),
    }
}

/// An HTTP GET that counts as passed with a status of 200 to 399. The calling thread must be in the
/// node's network namespace, or enters it here.
///
/// # Errors
/// Another status, or no answer.
pub fn http(ctx: &Context, container: &Container, get: &HttpGet, ip: Ipv4Addr, limit: Duration) -> Result<(), String> {
    ctx.net.enter().map_err(|e| e.to_string())?;
    let port = get.port.number(container).ok_or("the container has no port of that name")?;
    let scheme = get.scheme.as_deref().unwrap_or("HTTP").to_ascii_lowercase();
    let host = get.host.clone().unwrap_or_else(|| ip.to_string());
    let path = get.path.as_deref().unwrap_or("/");
    let url = format!("{scheme}://{host}:{port}/{}", path.trim_start_matches('/'));
    // The kubelet does not check a probe's certificate either.
    let tls = ureq::tls::TlsConfig::builder().disable_verification(true).build();
    let agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .proxy(None)
        .max_redirects(0)
        .tls_config(tls)
        .timeout_global(Some(limit))
        .build()
        .new_agent();
    let mut request = agent.get(&url);
    for header in &get.http_headers {
        request = request.header(&header.name, &header.value);
    }
    let status = request.call().map_err(|e| format!("{url}: {e}"))?.status().as_u16();
    if (200..400).contains(&status) { Ok(()) } else { Err(format!("{url}: status {status}")) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Kind, Turn};

    #[test]
    fn thresholds() {
        let probe =
            serde_json::from_value(json!({"exec": {"command": ["x"]}, "failureThreshold": 2, "successThreshold": 2}))
                .expect("probe");
        let mut turn = Turn::new(Kind::Readiness, &probe);
        let got: Vec<_> = [true, true, false, true, false, false, false].map(|ok| turn.take(ok)).into();
        assert_eq!(got, [None, Some(true), None, None, None, Some(false), Some(false)]);
    }
}
