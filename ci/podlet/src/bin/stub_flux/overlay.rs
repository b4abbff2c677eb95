//! The tree of brokers: topology, and the connections between a broker, its parent and its children.
//!
//! Lines over TCP. Up: `hello RANK HOST KEY`, `online RANK`, `offline RANK`, `drain RANK`, `bye`. Down: `welcome`,
//! `reject TEXT`, `run`, `shutdown`. A child with another key gets no answer at all, as with CURVE.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::config::Host;

/// The parent of each rank but 0.
///
/// # Errors
/// An unknown scheme or argument, or a `parent` that makes no tree.
pub fn parents(topo: &str, hosts: &[Host]) -> Result<Vec<u32>, String> {
    let size = u32::try_from(hosts.len()).unwrap_or(u32::MAX).max(1);
    let bad = || format!("unknown topology: {topo}");
    let (scheme, argument) = topo.split_once(':').unwrap_or((topo, ""));
    let number = || {
        let wide = argument.parse::<u64>().map_err(|_| bad())?;
        Ok::<u32, String>(u32::try_from(wide).unwrap_or(u32::MAX))
    };
    let ranks = 1..size;
    match (scheme, argument) {
        ("custom", "") => custom(hosts),
        ("kary", _) => {
            let k = number()?;
            Ok(ranks.map(|i| (i - 1).checked_div(k).unwrap_or(0)).collect())
        }
        ("binomial", "") => Ok(ranks.map(|i| i & (i - 1)).collect()),
        ("mincrit", _) => {
            let k = if argument.is_empty() { mincrit_default(size) } else { number()? };
            Ok(ranks.map(|i| if i <= k || k == 0 { 0 } else { (i - k - 1) % k + 1 }).collect())
        }
        _ => Err(bad()),
    }
}

fn mincrit_default(size: u32) -> u32 {
    if size <= 1025 {
        return 0;
    }
    (2..size).find(|k| (size - 1 - k).div_ceil(*k) <= 1024).unwrap_or(0)
}

fn custom(hosts: &[Host]) -> Result<Vec<u32>, String> {
    let rank = |name: &str| hosts.iter().position(|h| h.name == name).and_then(|p| u32::try_from(p).ok());
    if hosts.first().is_some_and(|h| h.parent.is_some()) {
        return Err("rank 0 may not have a parent".to_owned());
    }
    let mut out = Vec::new();
    for host in hosts.iter().skip(1) {
        match &host.parent {
            None => out.push(0),
            Some(name) => out.push(rank(name).ok_or_else(|| format!("parent {name} of {} is unknown", host.name))?),
        }
    }
    for start in 1..hosts.len() {
        let (mut at, mut steps) = (start, 0);
        while at != 0 {
            at = out[at - 1] as usize;
            steps += 1;
            if steps > hosts.len() {
                return Err("the parents form a cycle".to_owned());
            }
        }
    }
    Ok(out)
}

/// What the threads of a broker share about the tree.
#[derive(Default)]
pub struct Tree {
    /// Ranks of this broker's subtree that have joined (with itself, once it is ready).
    pub online: BTreeSet<u32>,
    /// Ranks that took themselves out of service.
    pub drained: BTreeSet<u32>,
    /// Children by rank, to write to.
    children: BTreeMap<u32, TcpStream>,
    /// Whether children may join: rank 0 has loaded its resources, a router has joined itself.
    pub open: bool,
    /// The instance runs its program.
    pub running: bool,
    /// An orderly end was announced from above.
    pub shutdown: bool,
    /// The parent ended the connection without a word, or refused this broker.
    pub lost: Option<String>,
    /// The connection to the parent, to write to.
    parent: Option<TcpStream>,
    /// TERM or INT arrived.
    pub terminated: bool,
}

/// A broker's place in the tree.
pub struct Overlay {
    /// Its rank.
    pub rank: u32,
    /// All brokers.
    pub hosts: Vec<Host>,
    /// Parent of ranks 1…
    pub parents: Vec<u32>,
    /// The public key of the certificate.
    pub key: String,
    /// Log handshake failures.
    pub debug: bool,
    tree: Mutex<Tree>,
    changed: Condvar,
}

impl Overlay {
    /// A broker that knows nobody yet.
    pub fn new(rank: u32, hosts: Vec<Host>, parents: Vec<u32>, key: String, debug: bool) -> Self {
        Overlay { rank, hosts, parents, key, debug, tree: Mutex::default(), changed: Condvar::new() }
    }

    /// The shared state.
    pub fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes everybody who waits for a change.
    pub fn notify(&self) {
        self.changed.notify_all();
    }

    /// Waits until `done`, at most for `limit`.
    pub fn wait_until(&self, limit: Duration, done: impl Fn(&Tree) -> bool) -> bool {
        // A limit beyond the clock's range is none.
        let end = Instant::now().checked_add(limit);
        let mut tree = self.tree();
        while !done(&tree) {
            let left = match end {
                Some(end) => end.saturating_duration_since(Instant::now()),
                None => Duration::from_secs(3600),
            };
            if left.is_zero() {
                return false;
            }
            let (next, _) = self.changed.wait_timeout(tree, left).unwrap_or_else(PoisonError::into_inner);
            tree = next;
        }
        true
    }

    /// Ranks whose parent is this broker.
    pub fn child_ranks(&self) -> Vec<u32> {
        (1..).zip(&self.parents).filter(|(_, p)| **p == self.rank).map(|(r, _)| r).collect()
    }

    fn name(&self, rank: u32) -> &str {
        self.hosts.get(rank as usize).map_or("?", |h| h.name.as_str())
    }

    /// Listens for children on the bind URI.
    ///
    /// # Errors
    /// No URI, no such interface, or the address is taken.
    pub fn listen(self: &Arc<Self>) -> Result<(), String> {
        let host = self.hosts.get(self.rank as usize);
        let uri = host.and_then(|h| h.bind.as_deref()).ok_or("no bind URI is configured for this rank")?;
        let listener = bind(uri).map_err(|e| format!("error binding to {uri}: {e}"))?;
        let overlay = self.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let overlay = overlay.clone();
                std::thread::spawn(move || {
                    if let Err(e) = overlay.serve(stream) {
                        // A probe of the port ends without a word.
                        if overlay.debug {
                            eprintln!("overlay.debug[{}]: {e}", overlay.rank);
                        }
                    }
                });
            }
        });
        Ok(())
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut writer = stream.try_clone()?;
        let mut lines = BufReader::new(stream).lines();
        let Some(hello) = lines.next().transpose()? else { return Ok(()) };
        let words: Vec<&str> = hello.split(' ').collect();
        let ["hello", rank, host, key] = words[..] else { return Ok(()) };
        if key != self.key {
            if self.debug {
                eprintln!("overlay.debug[{}]: handshake failed protocol: ZMTP cryptographic error", self.rank);
            }
            // Silence, until the other side gives up.
            return lines.try_for_each(|l| l.map(|_| ()));
        }
        let rank: u32 = rank.parse().unwrap_or(u32::MAX);
        if let Some(why) = self.refusal(rank, host) {
            eprintln!("overlay.err[{}]: rejecting connection from {host} (rank {rank}): {why}", self.rank);
            return writeln!(writer, "reject {why}");
        }
        self.wait_until(Duration::MAX, |t| t.open || t.shutdown);
        {
            let mut tree = self.tree();
            if tree.shutdown {
                return writeln!(writer, "shutdown");
            }
            writeln!(writer, "welcome")?;
            if tree.running {
                writeln!(writer, "run")?;
            }
            tree.children.insert(rank, writer);
        }
        let orderly = lines.map_while(Result::ok).any(|line| self.take_line(&line));
        self.child_left(rank, orderly);
        Ok(())
    }

    fn refusal(&self, rank: u32, host: &str) -> Option<String> {
        if !self.child_ranks().contains(&rank) {
            return Some(format!("rank {rank} is not a child of rank {}", self.rank));
        }
        let name = self.name(rank);
        if name != host {
            return Some(format!("{name} is configured as rank {rank}: mismatched config?"));
        }
        self.tree().children.contains_key(&rank).then(|| "rank is already connected".to_owned())
    }

    /// Takes a child's line; true when it says goodbye.
    fn take_line(&self, line: &str) -> bool {
        match line.split_once(' ') {
            Some(("online", rank)) => self.mark(rank, true),
            Some(("offline", rank)) => self.mark(rank, false),
            Some(("drain", rank)) => self.drain(rank),
            _ => return line == "bye",
        }
        false
    }

    /// Takes a rank out of service, here and above.
    pub fn drain(&self, rank: &str) {
        let Ok(number) = rank.parse::<u32>() else { return };
        let mut tree = self.tree();
        tree.drained.insert(number);
        tell(&mut tree.parent, &format!("drain {rank}"));
    }

    /// Says that a rank of this subtree is there or gone, here and above.
    pub fn mark(&self, rank: &str, online: bool) {
        let Ok(number) = rank.parse::<u32>() else { return };
        let mut tree = self.tree();
        if online {
            tree.online.insert(number);
        } else {
            tree.online.remove(&number);
        }
        let word = if online { "online" } else { "offline" };
        tell(&mut tree.parent, &format!("{word} {rank}"));
        drop(tree);
        self.notify();
    }

    fn child_left(&self, rank: u32, orderly: bool) {
        let gone: Vec<u32> = {
            let mut tree = self.tree();
            tree.children.remove(&rank);
            tree.online.iter().copied().filter(|r| *r == rank || self.is_below(*r, rank)).collect()
        };
        let announced = self.tree().shutdown;
        if !orderly && !announced && !gone.is_empty() {
            eprintln!("overlay.err[{}]: {} (rank {rank}) failed", self.rank, self.name(rank));
            eprintln!("broker.err[{}]: dead to Flux: {} (rank {rank})", self.rank, self.name(rank));
        }
        for rank in gone {
            self.mark(&rank.to_string(), false);
        }
        self.notify();
    }

    fn is_below(&self, mut rank: u32, above: u32) -> bool {
        while rank != 0 {
            rank = self.parents.get(rank as usize - 1).copied().unwrap_or(0);
            if rank == above {
                return true;
            }
        }
        false
    }

    /// Says something to all children.
    pub fn tell_children(&self, line: &str) {
        let mut tree = self.tree();
        for stream in tree.children.values_mut() {
            // A child that just went away is noticed by its reader.
            let _gone = writeln!(stream, "{line}");
        }
    }

    /// Whether children are still connected.
    pub fn has_children(&self) -> bool {
        !self.tree().children.is_empty()
    }

    /// Says something to the parent.
    pub fn tell_parent(&self, line: &str) {
        tell(&mut self.tree().parent, line);
    }

    /// Connects to the parent and keeps listening to it. Tries for ever, silently after one warning.
    pub fn join(self: &Arc<Self>) {
        let overlay = self.clone();
        std::thread::spawn(move || {
            let mut warned = false;
            loop {
                if let Err(e) = overlay.follow(&mut warned)
                    && overlay.debug
                {
                    eprintln!("overlay.debug[{}]: {e}", overlay.rank);
                }
                if overlay.tree().lost.is_some() || overlay.tree().shutdown {
                    return;
                }
                std::thread::sleep(Duration::from_millis(200));
            }
        });
    }

    fn follow(&self, warned: &mut bool) -> std::io::Result<()> {
        let parent = self.parents.get(self.rank as usize - 1).copied().unwrap_or(0);
        let uri = self.hosts.get(parent as usize).and_then(|h| h.connect.clone()).unwrap_or_default();
        let address = uri.strip_prefix("tcp://").unwrap_or(&uri).to_owned();
        let mut stream = match TcpStream::connect(&address) {
            Ok(stream) => stream,
            Err(e) => {
                if !*warned && e.to_string().contains("lookup address") {
                    *warned = true;
                    let host = address.rsplit_once(':').map_or(address.as_str(), |a| a.0);
                    eprintln!("overlay.warning[{}]: unable to resolve upstream peer {host}", self.rank);
                }
                return Err(e);
            }
        };
        writeln!(stream, "hello {} {} {}", self.rank, self.name(self.rank), self.key)?;
        let reader = BufReader::new(stream.try_clone()?);
        let mut joined = false;
        for line in reader.lines() {
            let Ok(line) = line else { break };
            let mut tree = self.tree();
            match line.as_str() {
                // A leader that this broker never left is a new one, which knows nothing of it.
                "welcome" if tree.open => {
                    tree.lost = Some("overlay.crit: disconnected by upstream peer".to_owned());
                }
                "welcome" => {
                    joined = true;
                    tree.parent = Some(stream.try_clone()?);
                    tree.open = true;
                }
                "run" => tree.running = true,
                "shutdown" => tree.shutdown = true,
                other => {
                    if let Some(why) = other.strip_prefix("reject ") {
                        tree.lost = Some(format!("overlay.crit: rejected by upstream peer: {why}"));
                    }
                }
            }
            drop(tree);
            self.notify();
            if line == "run" || line == "shutdown" {
                self.tell_children(&line);
            }
        }
        let mut tree = self.tree();
        if joined && !tree.shutdown && !tree.running && tree.lost.is_none() {
            tree.lost = Some("flux-modprobe: ERROR: Upstream Flux broker is offline. Try again later.".to_owned());
        }
        drop(tree);
        self.notify();
        Ok(())
    }
}

fn tell(stream: &mut Option<TcpStream>, line: &str) {
    if let Some(stream) = stream {
        // A parent that just went away is noticed by its reader.
        let _gone = writeln!(stream, "{line}");
    }
}

/// Binds `tcp://*:PORT`, `tcp://ADDRESS:PORT` or `tcp://INTERFACE:PORT`.
fn bind(uri: &str) -> Result<TcpListener, String> {
    let address = uri.strip_prefix("tcp://").ok_or("Protocol not supported")?;
    let (host, port) = address.rsplit_once(':').ok_or("Invalid argument")?;
    let port: u16 = port.parse().map_err(|_| "Invalid argument".to_owned())?;
    let any = matches!(host, "*" | "0.0.0.0") || std::path::Path::new("/sys/class/net").join(host).exists();
    let host = if any { "0.0.0.0" } else { host };
    let no_device = |_| "No such device".to_owned();
    let ip: std::net::IpAddr = host.parse().map_err(no_device)?;
    TcpListener::bind((ip, port)).map_err(|e| crate::cert::describe(&e))
}

#[cfg(test)]
#[path = "overlay_tests.rs"]
mod tests;
