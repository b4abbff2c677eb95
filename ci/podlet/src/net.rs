//! Network namespaces: one with a bridge for the node, one per pod, and no way out of them.
//!
//! A namespace lives as long as its holder process (podlet itself, run as `podlet hold` under
//! `unshare`), so that nothing named is left behind on the machine.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Pid, Signal};

/// What a pod shares with the machine or between its containers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sharing {
    /// One PID namespace for all containers of the pod.
    pub pid: bool,
}

/// A process that keeps namespaces alive.
pub struct Holder {
    child: Child,
    pid: i32,
}

impl Holder {
    /// Makes fresh net, UTS and IPC namespaces (and a PID namespace when asked) with a host name.
    ///
    /// # Errors
    /// `unshare` is missing or refused.
    pub fn spawn(hostname: &str, state: &Path, sharing: Sharing) -> std::io::Result<Self> {
        let mut unshare = Command::new("unshare");
        unshare.args(["--net", "--uts", "--ipc"]);
        if sharing.pid {
            unshare.args(["--pid", "--fork", "--kill-child=KILL"]);
        }
        let mut child = unshare
            .arg(std::env::current_exe()?)
            .args(["hold", "--hostname", hostname, "--state"])
            .arg(state)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        match line.trim().parse() {
            Ok(pid) => Ok(Holder { child, pid }),
            Err(_) => {
                child.kill()?;
                child.wait()?;
                Err(std::io::Error::other(format!("the namespace holder said {line:?}")))
            }
        }
    }

    /// The path of one of its namespaces: `net`, `uts`, `ipc`, `pid`.
    pub fn namespace(&self, kind: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/ns/{kind}", self.pid))
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // With a PID namespace of its own the holder is its init: all processes in it die along.
        if let Some(pid) = Pid::from_raw(self.pid) {
            let _already_gone = rustix::process::kill_process(pid, Signal::KILL);
        }
        let _already_gone = self.child.kill();
        let _already_gone = self.child.wait();
    }
}

/// The node's end: a bridge in a namespace of its own, with the address that pods use as gateway
/// and name server.
pub struct NodeNet {
    holder: Holder,
    gateway: Ipv4Addr,
    prefix: u8,
    pool: Mutex<Pool>,
}

/// A pod's namespaces and address.
pub struct Sandbox {
    holder: Holder,
    /// The pod's address.
    pub ip: Ipv4Addr,
}

impl Sandbox {
    /// The path of one of its namespaces.
    pub fn namespace(&self, kind: &str) -> PathBuf {
        self.holder.namespace(kind)
    }
}

impl NodeNet {
    /// Makes the bridge.
    ///
    /// # Errors
    /// Namespaces or bridges cannot be made here.
    pub fn new(state: &Path, (network, prefix): (Ipv4Addr, u8)) -> std::io::Result<Self> {
        let holder = Holder::spawn("podlet-node", state, Sharing::default())?;
        let pool = Pool::new(network, prefix);
        let gateway = pool.gateway();
        ip_batch(
            &holder,
            &format!(
                "link set lo up\nlink add podlet0 type bridge\naddr add {gateway}/{prefix} dev podlet0\nlink set podlet0 up\n"
            ),
        )?;
        Ok(NodeNet { holder, gateway, prefix, pool: Mutex::new(pool) })
    }

    /// The bridge's address.
    pub fn gateway(&self) -> Ipv4Addr {
        self.gateway
    }

    /// Moves the calling thread into the node's namespace; sockets it opens then reach the pods.
    ///
    /// # Errors
    /// The namespace is gone or may not be entered.
    pub fn enter(&self) -> std::io::Result<()> {
        use std::os::fd::AsFd as _;
        let namespace = std::fs::File::open(self.holder.namespace("net"))?;
        rustix::thread::move_into_link_name_space(namespace.as_fd(), Some(rustix::thread::LinkNameSpaceType::Network))?;
        Ok(())
    }

    /// Makes a pod's namespaces, joined to the bridge.
    ///
    /// # Errors
    /// No address is left, or `ip` failed.
    pub fn sandbox(&self, hostname: &str, state: &Path, sharing: Sharing) -> std::io::Result<Sandbox> {
        let ip = self
            .pool
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
            .ok_or_else(|| std::io::Error::other("no pod address is left"))?;
        let made = Holder::spawn(hostname, state, sharing).and_then(|h| self.join(&h, ip).map(|()| h));
        match made {
            Ok(holder) => Ok(Sandbox { holder, ip }),
            Err(e) => {
                self.release(ip);
                Err(e)
            }
        }
    }

    fn join(&self, pod: &Holder, ip: Ipv4Addr) -> std::io::Result<()> {
        let veth = format!("v{}", u32::from(ip));
        ip_batch(
            &self.holder,
            &format!("link add {veth} type veth peer name eth0 netns {}\nlink set {veth} master podlet0 up\n", pod.pid),
        )?;
        ip_batch(
            pod,
            &format!(
                "link set lo up\naddr add {ip}/{} dev eth0\nlink set eth0 up\nroute add default via {}\n",
                self.prefix, self.gateway
            ),
        )
    }

    /// Gives a pod's address back.
    pub fn release(&self, ip: Ipv4Addr) {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner).used.remove(&u32::from(ip));
    }
}

fn ip_batch(holder: &Holder, commands: &str) -> std::io::Result<()> {
    let mut child = Command::new("nsenter")
        .arg(format!("--net={}", holder.namespace("net").display()))
        .args(["ip", "-batch", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(commands.as_bytes())?;
    }
    let output = child.wait_with_output()?;
    if output.status.success() {
        Ok(())
    } else {
        Err(std::io::Error::other(format!("ip: {}", String::from_utf8_lossy(&output.stderr))))
    }
}

/// Pod addresses; a freed one is used again only after all others, since peers may remember it.
#[derive(Debug)]
struct Pool {
    first: u32,
    last: u32,
    next: u32,
    used: BTreeSet<u32>,
}

impl Pool {
    fn new(network: Ipv4Addr, prefix: u8) -> Self {
        let size = 1u32 << (32 - u32::from(prefix.clamp(8, 30)));
        let base = u32::from(network) & !(size - 1);
        Pool { first: base + 2, last: base + size - 2, next: base + 2, used: BTreeSet::new() }
    }

    fn gateway(&self) -> Ipv4Addr {
        Ipv4Addr::from(self.first - 1)
    }

    fn take(&mut self) -> Option<Ipv4Addr> {
        for _ in self.first..=self.last {
            let candidate = self.next;
            self.next = if candidate == self.last { self.first } else { candidate + 1 };
            if self.used.insert(candidate) {
                return Some(Ipv4Addr::from(candidate));
            }
        }
        None
    }
}

/// `podlet hold`: names its UTS namespace, reports its pid as the machine sees it, then reaps
/// orphans (it may be the init of a PID namespace) until it is killed.
///
/// # Errors
/// The host name cannot be set.
pub fn hold(hostname: &str) -> std::io::Result<std::convert::Infallible> {
    rustix::system::sethostname(hostname.as_bytes())?;
    let pid = std::fs::read_link("/proc/self")?;
    println!("{}", pid.display());
    loop {
        match rustix::process::wait(rustix::process::WaitOptions::empty()) {
            Ok(_) => {}
            // No child yet.
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(100)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::Pool;

    #[test]
    fn addresses_go_round_before_they_come_again() {
        let mut pool = Pool::new(Ipv4Addr::new(10, 1, 2, 77), 29);
        assert_eq!(pool.gateway(), Ipv4Addr::new(10, 1, 2, 73));
        let first = pool.take();
        assert_eq!(first, Some(Ipv4Addr::new(10, 1, 2, 74)));
        pool.used.clear();
        assert_eq!(pool.take(), Some(Ipv4Addr::new(10, 1, 2, 75)));
        for _ in 0..4 {
            assert!(pool.take().is_some());
        }
        assert_eq!(pool.take(), None);
    }
}
