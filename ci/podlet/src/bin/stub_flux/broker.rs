//! The broker's life: options, configuration, join, resources, quorum, initial program, shutdown.

use std::collections::BTreeSet;
use std::fs;
use std::io::IsTerminal as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::args::{Spec, Takes, parse};
use crate::attrs::{self, Attributes};
use crate::config::{self, Config, Host};
use crate::jobs::{Jobs, code};
use crate::local::Instance;
use crate::overlay::{self, Overlay};
use crate::resources::{self, Node};
use crate::{Failure, Outcome, VERSION, cert, hostlist, record};

const BROKER: &[Spec] = &[
    (Some('h'), "help", Takes::Nothing),
    (Some('v'), "verbose", Takes::Optional),
    (Some('S'), "setattr", Takes::Value),
    (Some('c'), "config-path", Takes::Value),
    (None, "conf", Takes::Value),
];
const START: &[Spec] = &[
    (Some('h'), "help", Takes::Nothing),
    (Some('v'), "verbose", Takes::Optional),
    (Some('S'), "setattr", Takes::Value),
    (Some('c'), "config-path", Takes::Value),
    (None, "conf", Takes::Value),
    (Some('o'), "broker-opts", Takes::Value),
    (None, "wrap", Takes::Value),
];
/// rc1 of a real leader takes about this long; followers can connect meanwhile.
const RC1: Duration = Duration::from_millis(200);
/// A real leader waits for children at the end as long as it takes; ours are told and gone at once.
const GOODBYE: Duration = Duration::from_secs(10);

/// `flux start`: builds a broker command line and becomes the broker.
pub fn start(argv: &[String]) -> Outcome {
    let p = parse(START, argv).map_err(|e| format!("flux-start: {e}"))?;
    let mut broker: Vec<String> = Vec::new();
    for value in p.all("setattr").iter().flat_map(|v| v.split(',')) {
        broker.push(format!("-S{value}"));
    }
    for (name, option) in [("config-path", "--config-path"), ("conf", "--conf")] {
        broker.extend(p.all(name).iter().map(|v| format!("{option}={v}")));
    }
    let pass_through = p.all("broker-opts").iter().flat_map(|v| v.split(','));
    broker.extend(pass_through.filter(|v| !v.is_empty()).map(str::to_owned));
    broker.extend(p.operands.iter().cloned());
    let wrap: Vec<&str> = p.all("wrap").iter().flat_map(|v| v.split(',')).collect();
    let Some((program, arguments)) = wrap.split_first() else { return command(&broker) };
    let me = std::env::current_exe().map_err(|e| e.to_string())?;
    let error = Command::new(program).args(arguments).arg(me).arg("broker").args(&broker).exec();
    Err(Failure::from(format!("flux-start: {program}: {error}")))
}

/// `flux broker`.
pub fn command(argv: &[String]) -> Outcome {
    let me = record::hostname();
    let p = parse(BROKER, argv).map_err(|e| format!("flux-broker: {e}"))?;
    let critical = |m: String| Failure::from(format!("broker.crit[{me}]: {m}"));
    let mut attributes = Attributes::new();
    for setting in p.all("setattr") {
        attrs::set(&mut attributes, setting).map_err(|e| Failure::from(format!("flux-broker: {e}")))?;
    }
    // A nested instance takes nothing from the one that it runs in.
    let nested = std::env::var("STUB_FLUX_NESTED").ok();
    let conf_dir = std::env::var("FLUX_CONF_DIR").ok().filter(|_| nested.is_none());
    let path = p.last("config-path").or(p.last("conf")).map(str::to_owned);
    let path = path.or(attributes.get("config.path").cloned()).or(conf_dir);
    let config = match &path {
        Some(path) => config::load(path).map_err(|e| critical(format!("Config file error{e}")))?,
        None => Config::default(),
    };
    if let Some(path) = path {
        attributes.insert("config.path".to_owned(), path);
    }
    let hostname = attributes.get("hostname").cloned().unwrap_or_else(|| me.clone());
    let (hosts, rank) = members(&config, &hostname, nested.as_deref()).map_err(critical)?;
    let broker = Broker::new(config, attributes, hosts, rank, p.operands, nested)?;
    broker.live()
}

/// All brokers of the instance, and which of them this is.
fn members(config: &Config, hostname: &str, nested: Option<&str>) -> Result<(Vec<Host>, u32), String> {
    if let Some(names) = nested.and_then(nested_hosts) {
        return Ok((names.into_iter().map(|name| Host { name, ..Host::default() }).collect(), 0));
    }
    if config.hosts.is_empty() {
        return Ok((vec![Host { name: hostname.to_owned(), ..Host::default() }], 0));
    }
    let rank = config.hosts.iter().position(|h| h.name == hostname).ok_or_else(|| {
        format!("bootstrap: config: initialize: Config file error [bootstrap]: {hostname} not found in hosts")
    })?;
    Ok((config.hosts.clone(), u32::try_from(rank).unwrap_or(u32::MAX)))
}

fn nested_hosts(text: &str) -> Option<Vec<String>> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    Some(value["hosts"].as_array()?.iter().filter_map(|h| h.as_str().map(str::to_owned)).collect())
}

struct Broker {
    config: Config,
    attributes: Attributes,
    overlay: Arc<Overlay>,
    program: Vec<String>,
    quorum: u32,
    nested: Option<String>,
    rundir: PathBuf,
    /// Whether this broker made the folder, and so removes it.
    own_rundir: bool,
    level: i32,
}

impl Broker {
    fn new(
        config: Config,
        mut attributes: Attributes,
        hosts: Vec<Host>,
        rank: u32,
        program: Vec<String>,
        nested: Option<String>,
    ) -> Result<Self, Failure> {
        let size = u32::try_from(hosts.len()).unwrap_or(u32::MAX);
        let critical = |m: String| Failure::from(format!("broker.crit[{rank}]: {m}"));
        let error = |m: String| Failure::from(format!("overlay.err[{rank}]: {m}"));
        let level = attributes.get("log-stderr-level").and_then(|l| l.parse().ok()).unwrap_or(3);
        let quorum = match attributes.get("broker.quorum") {
            None => size,
            Some(value) => {
                let (quorum, old) = attrs::quorum(value, size).map_err(critical)?;
                if old {
                    eprintln!("broker.err[{rank}]: warning: broker.quorum is now a size - assuming {quorum}");
                }
                quorum
            }
        };
        let fanout = attributes.get("tbon.fanout").map(|k| format!("kary:{k}"));
        let default = if config.bootstrap { "custom" } else { "kary:32" };
        let topo = attributes.get("tbon.topo").cloned().or(fanout).or(config.topo.clone());
        let topo = topo.unwrap_or_else(|| default.to_owned());
        let parents = overlay::parents(&topo, &hosts).map_err(critical)?;
        let key = match &config.curve_cert {
            Some(path) if size > 1 || !path.is_empty() => {
                let cert = cert::load(path).map_err(|e| error(format!("Error loading certificate: {e}")))?;
                if cert.name.is_none() && parents.contains(&rank) {
                    return Err(error("certificate has no name".to_owned()));
                }
                cert.public
            }
            _ => String::new(),
        };
        let debug = attributes.get("tbon.zmqdebug").map_or(config.zmqdebug, |v| v != "0");
        let names: Vec<String> = hosts.iter().map(|h| h.name.clone()).collect();
        let (rundir, own_rundir) = run_dir(&attributes, rank).map_err(critical)?;
        attributes.insert("rundir".to_owned(), rundir.display().to_string());
        let uri = format!("local://{}", rundir.join(format!("local-{rank}")).display());
        attributes.entry("local-uri".to_owned()).or_insert(uri);
        for (name, value) in [
            ("rank", rank.to_string()),
            ("size", size.to_string()),
            ("version", VERSION.to_owned()),
            ("hostlist", hostlist::encode(&names)),
            ("tbon.topo", topo),
            ("broker.quorum", quorum.to_string()),
            ("broker.pid", std::process::id().to_string()),
            ("instance-level", u8::from(nested.is_some()).to_string()),
            ("security.owner", rustix::process::getuid().as_raw().to_string()),
        ] {
            attributes.insert(name.to_owned(), value);
        }
        let overlay = Arc::new(Overlay::new(rank, hosts, parents, key, debug));
        Ok(Broker { config, attributes, overlay, program, quorum, nested, rundir, own_rundir, level })
    }

    fn rank(&self) -> u32 {
        self.overlay.rank
    }

    fn error(&self, source: &str, message: &str) {
        if self.level >= 3 {
            eprintln!("{source}.err[{}]: {message}", self.rank());
        }
    }

    fn live(self) -> Outcome {
        self.catch_signals().map_err(|e| e.to_string())?;
        let outcome = if self.rank() == 0 { self.lead() } else { self.follow() };
        if self.own_rundir
            && let Err(e) = fs::remove_dir_all(&self.rundir)
        {
            self.error("broker", &format!("{}: {e}", self.rundir.display()));
        }
        outcome
    }

    fn catch_signals(&self) -> std::io::Result<()> {
        let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT])?;
        let overlay = self.overlay.clone();
        std::thread::spawn(move || {
            for _ in signals.forever() {
                overlay.tree().terminated = true;
                overlay.notify();
            }
        });
        Ok(())
    }

    fn instance(&self, nodes: Vec<Node>) -> Result<Arc<Instance>, Failure> {
        let uri = self.attributes.get("local-uri").cloned().unwrap_or_default();
        let socket = PathBuf::from(uri.strip_prefix("local://").unwrap_or(&uri));
        let modules = [
            "content",
            "content-sqlite",
            "job-exec",
            "job-ingest",
            "job-list",
            "job-manager",
            "kvs",
            "resource",
            "sched-simple",
        ];
        let instance = Arc::new(Instance {
            attributes: Mutex::new(self.attributes.clone()),
            overlay: self.overlay.clone(),
            jobs: Arc::new(Jobs::new(self.rundir.join("jobs"))),
            nodes,
            started: Instant::now(),
            modules: Mutex::new(modules.map(str::to_owned).into_iter().collect::<BTreeSet<_>>()),
            stop: Mutex::new(false),
            socket,
        });
        instance
            .serve()
            .map_err(|e| Failure::from(format!("broker.crit[{}]: {uri}: {}", self.rank(), cert::describe(&e))))?;
        Ok(instance)
    }

    /// rc1: resources, and on rank 0 the cron folder and the archive to restore.
    fn rc1(&self) -> Result<Vec<Node>, String> {
        if let Some(text) = &self.nested {
            let value: serde_json::Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
            let cores = u32::try_from(value["cores"].as_u64().unwrap_or(1)).unwrap_or(1);
            let node = |h: &Host| Node { host: h.name.clone(), cores, gpus: 0 };
            return Ok(self.overlay.hosts.iter().map(node).collect());
        }
        let hosts: Vec<String> = self.overlay.hosts.iter().map(|h| h.name.clone()).collect();
        let loaded = resources::load(&self.config, &hosts)?;
        let local = resources::local_cores();
        let nodes =
            loaded.unwrap_or_else(|| hosts.iter().map(|h| Node { host: h.clone(), cores: local, gpus: 0 }).collect());
        let mine = nodes.iter().find(|n| n.host == self.overlay.hosts[self.rank() as usize].name);
        if let Some(node) = mine.filter(|n| n.cores > local && !self.config.noverify) {
            let missing: Vec<u32> = (local..node.cores).collect();
            let ids = hostlist::encode_ids(&missing);
            let ids = if missing.len() > 1 { format!("[{ids}]") } else { ids };
            self.error(
                "resource",
                &format!("draining: rank {} ({}) missing resources: core{ids}", self.rank(), node.host),
            );
            self.overlay.drain(&self.rank().to_string());
        }
        if self.rank() == 0 {
            self.restore()?;
        }
        Ok(nodes)
    }

    fn restore(&self) -> Result<(), String> {
        let Some(path) = self.attributes.get("content.restore").filter(|p| *p != "auto") else { return Ok(()) };
        // A missing file is no error in 0.88.
        let Ok(text) = fs::read_to_string(path) else { return Ok(()) };
        if !text.starts_with(crate::tools::DUMP_MARK) {
            return Err("rc1.0: flux-restore: Unrecognized archive format".to_owned());
        }
        eprintln!("flux-restore: restored {path}: {}", text.lines().nth(1).unwrap_or_default());
        Ok(())
    }

    fn lead(&self) -> Outcome {
        if !self.overlay.child_ranks().is_empty() && self.nested.is_none() {
            self.overlay.listen().map_err(|e| format!("overlay.err[0]: {e}"))?;
            std::thread::sleep(RC1);
        }
        let nodes = match self.rc1() {
            Ok(nodes) => nodes,
            Err(e) => {
                self.error("resource", &e);
                self.overlay.tree().open = true;
                self.overlay.notify();
                // Followers that are connected join, and then lose the leader.
                std::thread::sleep(RC1);
                return Err(Failure::from("broker.err[0]: rc1.0: flux modprobe rc1 Exited (rc=1)"));
            }
        };
        let instance = self.instance(nodes)?;
        {
            let mut tree = self.overlay.tree();
            tree.open = true;
            let all = if self.nested.is_some() { self.overlay.hosts.len() } else { 1 };
            tree.online.extend(0..u32::try_from(all).unwrap_or(1));
        }
        self.overlay.notify();
        let quorum = self.quorum as usize;
        while !self.overlay.wait_until(Duration::from_millis(200), |t| t.online.len() >= quorum || t.terminated) {
            if instance.stopping() {
                return self.end(&instance, 0);
            }
        }
        if self.overlay.tree().terminated {
            // The state machine goes straight to shutdown; that is no error to Flux.
            return self.end(&instance, 0);
        }
        self.overlay.tree().running = true;
        self.overlay.tell_children("run");
        let code = if self.attributes.contains_key("broker.rc2_none") {
            while !self.overlay.wait_until(Duration::from_millis(100), |t| t.terminated) && !instance.stopping() {}
            0
        } else {
            self.rc2(&instance)?
        };
        self.end(&instance, code)
    }

    /// The initial program.
    fn rc2(&self, instance: &Instance) -> Outcome {
        let shell = std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned());
        let argv: Vec<String> = match &self.program[..] {
            [] if !std::io::stdin().is_terminal() => {
                return Err(Failure::from("broker.crit[0]: stdin is not a tty - can't run interactive shell"));
            }
            [] => vec![shell],
            [one] if !is_program(one) => vec![shell, "-c".to_owned(), one.clone()],
            all => all.to_vec(),
        };
        let interactive = std::io::stdin().is_terminal();
        let mut command = Command::new(&argv[0]);
        command.args(&argv[1..]).env_remove("STUB_FLUX_NESTED");
        command.env("FLUX_URI", self.attributes.get("local-uri").cloned().unwrap_or_default());
        if !interactive {
            command.process_group(0);
        }
        let begun = Instant::now();
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(e) => {
                self.error("broker", &format!("rc2.0: {}: {}", argv[0], cert::describe(&e)));
                return Ok(if e.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 });
            }
        };
        let mut hung_up = false;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
                break status;
            }
            let asked = self.overlay.wait_until(Duration::from_millis(10), |t| t.terminated) || instance.stopping();
            if asked && !hung_up {
                hung_up = true;
                let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
                let killed = pid.map(|p| {
                    if interactive {
                        rustix::process::kill_process(p, Signal::HUP)
                    } else {
                        rustix::process::kill_process_group(p, Signal::HUP)
                    }
                });
                if let Some(Err(e)) = killed {
                    self.error("broker", &format!("rc2.0: {e}"));
                }
            } else if asked {
                std::thread::sleep(Duration::from_millis(10));
            }
        };
        let code = code(status);
        if code != 0 {
            let word = if code == 129 { "Hangup" } else { "Exited" };
            let text = format!("rc2.0: {} {word} (rc={code}) {:.1}s", argv.join(" "), begun.elapsed().as_secs_f64());
            self.error("broker", &text);
        }
        Ok(code)
    }

    /// Cleanup, dump, shutdown of the tree.
    fn end(&self, instance: &Instance, code: u8) -> Outcome {
        instance.jobs.cancel(|_| true);
        instance.jobs.wait_until(Some(Duration::from_secs(5)), |t| {
            t.values().all(|j| matches!(j.state, crate::jobs::State::Done(_)))
        });
        let mut code = code;
        if let Some(path) = self.attributes.get("content.dump")
            && let Err(e) = crate::tools::write_dump(Path::new(path), instance.jobs.table().len())
        {
            self.error("broker", &format!("rc3.0: flux-dump: {path}: {e}"));
            // As measured: rank 0 fails, and takes its time.
            std::thread::sleep(Duration::from_secs(10));
            code = 1;
        }
        self.overlay.tree().shutdown = true;
        self.overlay.tell_children("shutdown");
        self.overlay.notify();
        let end = Instant::now() + GOODBYE;
        while self.overlay.has_children() && Instant::now() < end {
            self.overlay.wait_until(Duration::from_millis(20), |_| false);
        }
        // The socket is not needed any more; its folder may be kept.
        let _gone = fs::remove_file(&instance.socket);
        Ok(code)
    }

    fn follow(&self) -> Outcome {
        let router = !self.overlay.child_ranks().is_empty();
        if router {
            self.overlay.listen().map_err(|e| format!("overlay.err[{}]: {e}", self.rank()))?;
        }
        self.overlay.join();
        let forever = Duration::MAX;
        self.overlay.wait_until(forever, |t| t.open || t.lost.is_some() || t.terminated || t.shutdown);
        let (joined, terminated) = {
            let tree = self.overlay.tree();
            (tree.open, tree.terminated)
        };
        if terminated && !joined {
            let m = format!(
                "broker.err[{0}]: rc3.0: flux-modprobe: ERROR: Upstream Flux broker is offline. Try again later.",
                self.rank()
            );
            return Err(Failure::from(m));
        }
        let nodes = match self.rc1() {
            Ok(nodes) => nodes,
            Err(e) => {
                self.error("resource", &e);
                self.overlay.tell_parent("bye");
                return Err(Failure::from(format!(
                    "broker.err[{}]: rc1.0: flux modprobe rc1 Exited (rc=1)",
                    self.rank()
                )));
            }
        };
        let instance = self.instance(nodes)?;
        self.overlay.mark(&self.rank().to_string(), true);
        let over = |t: &overlay::Tree| t.lost.is_some() || t.terminated || t.shutdown;
        while !self.overlay.wait_until(Duration::from_millis(200), over) && !instance.stopping() {}
        let lost = self.overlay.tree().lost.clone();
        if let Some(why) = lost {
            return Err(Failure::from(format!("broker.err[{}]: {why}", self.rank())));
        }
        self.overlay.tree().shutdown = true;
        self.overlay.tell_children("shutdown");
        let end = Instant::now() + GOODBYE;
        while self.overlay.has_children() && Instant::now() < end {
            self.overlay.wait_until(Duration::from_millis(20), |_| false);
        }
        self.overlay.tell_parent("bye");
        let _gone = fs::remove_file(&instance.socket);
        Ok(0)
    }
}

fn is_program(path: &str) -> bool {
    fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// The folder for sockets: as set (checked like Flux does), else a fresh one.
fn run_dir(attributes: &Attributes, rank: u32) -> Result<(PathBuf, bool), String> {
    if let Some(uri) = attributes.get("local-uri") {
        let path = PathBuf::from(uri.strip_prefix("local://").unwrap_or(uri));
        owned(path.parent().unwrap_or(Path::new("/")), "local-uri")?;
    }
    if let Some(dir) = attributes.get("statedir").filter(|_| rank == 0) {
        make_or_check(Path::new(dir), "statedir")?;
    }
    if let Some(dir) = attributes.get("rundir") {
        let made = make_or_check(Path::new(dir), "rundir")?;
        return Ok((dir.into(), made));
    }
    let base = std::env::var("TMPDIR").unwrap_or_else(|_| "/tmp".to_owned());
    let nanos = jiff::Timestamp::now().as_nanosecond();
    let dir = PathBuf::from(base).join(format!("flux-{}-{:x}", std::process::id(), nanos & 0xff_ffff));
    make_or_check(&dir, "rundir")?;
    Ok((dir, true))
}

/// Makes a missing folder (0700, one level); an existing one must be ours. Returns whether it was made.
fn make_or_check(dir: &Path, what: &str) -> Result<bool, String> {
    if dir.exists() {
        return owned(dir, what).map(|()| false);
    }
    fs::create_dir(dir).map_err(|e| format!("{what} {}: {}", dir.display(), cert::describe(&e)))?;
    fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).map_err(|e| e.to_string())?;
    Ok(true)
}

fn owned(dir: &Path, what: &str) -> Result<(), String> {
    let meta = fs::metadata(dir).map_err(|e| format!("{what} {}: {}", dir.display(), cert::describe(&e)))?;
    let uid = rustix::process::getuid().as_raw();
    if !meta.is_dir() || meta.uid() != uid || meta.mode() & 0o700 != 0o700 {
        return Err(format!("{what} {} is not owned by uid {uid}, or not rwx", dir.display()));
    }
    Ok(())
}
