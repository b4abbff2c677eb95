//! The command line.

use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args, Parser, Subcommand};
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::api::Client;
use crate::cleanup;
use crate::context::{Context, Options};
use crate::dns::{self, Zone};
use crate::images::{ImageMap, Rule};
use crate::logs::LogPump;
use crate::net::{self, NodeNet};
use crate::node::{self, Pods};
use crate::podman::{self, Images};
use crate::say::say;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Runs the pods of a loopback kube-apiserver with podman.
#[derive(Parser)]
#[command(name = "podlet", version)]
struct Cli {
    #[command(subcommand)]
    command: Sub,
}

#[derive(Subcommand)]
enum Sub {
    /// Run the pods of one node until TERM.
    Run(Run),
    /// Evict a pod through the API, as a drain does.
    Evict(Evict),
    /// Run a command in a container of a pod (there is no `kubectl exec` without a kubelet).
    Exec(Exec),
    /// Keep namespaces alive (started by podlet itself).
    #[command(hide = true)]
    Hold(Hold),
}

#[derive(Args)]
struct Run {
    /// Kubeconfig of the API server.
    #[arg(long)]
    kubeconfig: PathBuf,
    /// State folder: logs, pod files, claims, host paths.
    #[arg(long)]
    state: PathBuf,
    /// Node name.
    #[arg(long, default_value = "podlet")]
    node: String,
    /// A tree that stands for the Flux view: a folder with `opt/`, or the content of `/opt`.
    #[arg(long)]
    view_dir: Option<PathBuf>,
    /// Images that are the view (`*` matches anything).
    #[arg(long, default_values_t = [String::from("*flux-view*")])]
    view_image: Vec<String>,
    /// The image that containers of a view image run with; its `/opt` is the tree.
    #[arg(long, default_value = "localhost/flux-gen-base:bookworm")]
    view_base: String,
    /// `PATTERN=LOCAL`: the local image for images that match; the first match wins.
    #[arg(long, value_parser = Rule::parse)]
    image_map: Vec<Rule>,
    /// Where hostPath volumes really are; default STATE/host.
    #[arg(long)]
    host_path_root: Option<PathBuf>,
    /// Addresses of pods.
    #[arg(long, default_value = "10.244.0.0/24", value_parser = cidr)]
    pod_cidr: (Ipv4Addr, u8),
    /// First delay before a container is started again, in milliseconds.
    #[arg(long, default_value_t = 500)]
    backoff_first_ms: u64,
    /// Longest such delay, in milliseconds.
    #[arg(long, default_value_t = 5000)]
    backoff_max_ms: u64,
    /// How often mounted ConfigMaps and Secrets are read again, in seconds.
    #[arg(long, default_value_t = 5)]
    sync_period: u64,
    /// Do not turn cpu and memory limits into cgroup limits.
    #[arg(long)]
    no_limits: bool,
}

#[derive(Args)]
struct Evict {
    /// Kubeconfig of the API server.
    #[arg(long)]
    kubeconfig: PathBuf,
    /// Grace period in seconds instead of the pod's own.
    #[arg(long)]
    grace: Option<u64>,
    /// NAMESPACE/POD.
    pod: String,
}

#[derive(Args)]
struct Exec {
    /// State folder of the podlet that runs the pod.
    #[arg(long)]
    state: PathBuf,
    /// Container; the only one when not given.
    #[arg(long, short)]
    container: Option<String>,
    /// Keep standard input open.
    #[arg(long, short = 'i')]
    stdin: bool,
    /// NAMESPACE/POD.
    pod: String,
    /// The command.
    #[arg(last = true, required = true)]
    command: Vec<String>,
}

#[derive(Args)]
struct Hold {
    #[arg(long)]
    hostname: String,
    /// Only read by the search for leftovers.
    #[arg(long)]
    state: PathBuf,
}

fn cidr(text: &str) -> Result<(Ipv4Addr, u8), String> {
    let (ip, prefix) = text.split_once('/').ok_or("expected ADDRESS/PREFIX")?;
    let prefix: u8 = prefix.parse().map_err(|_| "the prefix is no number")?;
    if !(8..=30).contains(&prefix) {
        return Err("the prefix must be 8 to 30".to_owned());
    }
    Ok((ip.parse().map_err(|e| format!("{e}"))?, prefix))
}

/// Reads the arguments and does what they say.
///
/// # Errors
/// Anything that stops the command.
pub fn main() -> Outcome<ExitCode> {
    match Cli::parse().command {
        Sub::Run(a) => run(a),
        Sub::Evict(a) => evict(&a),
        Sub::Exec(a) => exec(a),
        Sub::Hold(a) => match net::hold(&a.hostname)? {},
    }
}

fn run(a: Run) -> Outcome<ExitCode> {
    let begun = Instant::now();
    // Volumes have exact modes.
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let mut signals = Signals::new([SIGTERM, SIGINT])?;
    std::fs::create_dir_all(&a.state)?;
    let state = std::fs::canonicalize(&a.state)?;
    let _lock = lock(&state)?;
    cleanup::leftovers(&state)?;
    let view_root = a.view_dir.as_deref().map(|dir| view_root(&state, dir)).transpose()?;
    let options = Options {
        node: a.node,
        host_path_root: a.host_path_root.unwrap_or_else(|| state.join("host")),
        images: ImageMap { rules: a.image_map, views: a.view_image, view_root, view_base: a.view_base },
        backoff_first: Duration::from_millis(a.backoff_first_ms),
        backoff_max: Duration::from_millis(a.backoff_max_ms),
        sync_period: Duration::from_secs(a.sync_period),
        limits: !a.no_limits,
        state: state.clone(),
    };
    let net = NodeNet::new(&state, a.pod_cidr)?;
    let client = Client::from_kubeconfig(&a.kubeconfig)?;
    let ctx = Arc::new(Context {
        client,
        options,
        zone: Zone::default(),
        net,
        logs: LogPump::start(),
        local: Images::default(),
    });
    serve_names(&ctx)?;
    node::register(&ctx)?;
    node::heartbeats(ctx.clone());
    let pods = Pods::new(ctx.clone());
    start_watches(&ctx, &pods);
    std::fs::write(state.join("ready"), format!("{}\n", std::process::id()))?;
    say!("node {} ready after {:.2} s", ctx.options.node, begun.elapsed().as_secs_f64());
    let signal = signals.forever().next();
    say!("signal {}: stopping all pods", signal.unwrap_or_default());
    std::fs::remove_file(state.join("ready"))?;
    pods.shut_down();
    if let Err(e) = node::mark(&ctx, false) {
        say!("node: {e}");
    }
    cleanup::leftovers(&state)?;
    Ok(ExitCode::SUCCESS)
}

/// One podlet per state folder.
fn lock(state: &Path) -> Outcome<std::fs::File> {
    let file = std::fs::File::create(state.join("lock"))?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive)
        .map_err(|_| format!("{}: another podlet uses this state folder", state.display()))?;
    Ok(file)
}

/// `STATE/view` with the tree at `opt`, whichever of the two layouts was given.
fn view_root(state: &Path, dir: &Path) -> Outcome<PathBuf> {
    let nested = dir.join("opt");
    let source = std::fs::canonicalize(if nested.is_dir() { &nested } else { dir })?;
    let root = state.join("view");
    let target = root.join("opt");
    std::fs::create_dir_all(&target)?;
    rustix::mount::mount_bind_recursive(&source, &target)?;
    Ok(root)
}

fn serve_names(ctx: &Arc<Context>) -> Outcome<()> {
    let inner = ctx.clone();
    // Sockets belong to the namespace of the thread that makes them.
    let served = std::thread::spawn(move || -> std::io::Result<()> {
        inner.net.enter()?;
        dns::serve(&inner.zone, inner.net.gateway())
    });
    served.join().map_err(|_| "the name server's thread crashed")??;
    Ok(())
}

fn start_watches(ctx: &Arc<Context>, pods: &Pods) {
    let c = ctx.clone();
    std::thread::spawn(move || c.client.reflect("/api/v1/services", |d| c.zone.on_services(d)));
    let c = ctx.clone();
    std::thread::spawn(move || c.client.reflect("/apis/discovery.k8s.io/v1/endpointslices", |d| c.zone.on_slices(d)));
    let (c, pods) = (ctx.clone(), pods.clone());
    std::thread::spawn(move || c.client.reflect("/api/v1/pods", |d| pods.on_delta(d)));
}

fn split(pod: &str) -> Outcome<(&str, &str)> {
    pod.split_once('/').ok_or_else(|| "expected NAMESPACE/POD".into())
}

fn evict(a: &Evict) -> Outcome<ExitCode> {
    let (ns, name) = split(&a.pod)?;
    let client = Client::from_kubeconfig(&a.kubeconfig)?;
    let mut eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction",
                              "metadata": {"name": name, "namespace": ns}});
    if let Some(grace) = a.grace {
        eviction["deleteOptions"] = json!({ "gracePeriodSeconds": grace });
    }
    client.post(&format!("/api/v1/namespaces/{ns}/pods/{name}/eviction"), &eviction)?;
    Ok(ExitCode::SUCCESS)
}

fn exec(a: Exec) -> Outcome<ExitCode> {
    split(&a.pod)?;
    let state = std::fs::canonicalize(&a.state)?;
    let mut command = podman::args(["ps", "--quiet", "--no-trunc"]);
    let mut labels = vec![podman::label(&state), format!("podlet.pod={}", a.pod)];
    labels.extend(a.container.map(|c| format!("podlet.container={c}")));
    command.extend(labels.into_iter().flat_map(|l| ["--filter".to_owned(), format!("label={l}")]));
    let found = podman::run(&command)?;
    let ids: Vec<&str> = found.lines().collect();
    let [id] = ids[..] else {
        return Err(format!("{} running containers match in pod {}", ids.len(), a.pod).into());
    };
    let mut podman = Command::new("podman");
    podman.arg("exec");
    if a.stdin {
        podman.arg("--interactive");
    }
    Err(podman.arg(id).args(a.command).exec().into())
}
