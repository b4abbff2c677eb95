//! Jobs: each runs once, on the leader, when enough nodes are up.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

/// What a client asks for.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Request {
    /// The command.
    pub argv: Vec<String>,
    /// Where it runs.
    pub cwd: String,
    /// Its environment.
    pub env: BTreeMap<String, String>,
    /// Nodes asked for; 0: any.
    pub nodes: u32,
    /// Tasks (or slots).
    pub tasks: u32,
    /// Cores of each.
    pub cores: u32,
    /// GPUs of each.
    pub gpus: u32,
    /// May be waited for.
    pub waitable: bool,
    /// A nested instance runs this script.
    pub script: Option<String>,
    /// File for output; `{{id}}` is the job's id.
    pub output: Option<String>,
    /// File for errors; like output when unset.
    pub error: Option<String>,
}

/// Where a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Waits for resources.
    Pending,
    /// Runs as this process group.
    Running(u32),
    /// Ended with this code.
    Done(u8),
}

/// A job.
#[derive(Debug, Clone)]
pub struct Job {
    /// As asked for.
    pub request: Request,
    /// Now.
    pub state: State,
    /// Its result was asked for.
    pub waited: bool,
    /// Where its output is kept.
    pub out: PathBuf,
    /// Where its errors are kept.
    pub err: PathBuf,
    begun: Instant,
    /// How long it ran.
    pub ran: Duration,
}

/// The jobs of an instance.
pub struct Jobs {
    table: Mutex<BTreeMap<u64, Job>>,
    changed: Condvar,
    dir: PathBuf,
    started: Instant,
}

impl Jobs {
    /// None, with their files in `dir`.
    pub fn new(dir: PathBuf) -> Self {
        Jobs { table: Mutex::default(), changed: Condvar::new(), dir, started: Instant::now() }
    }

    /// The table.
    pub fn table(&self) -> MutexGuard<'_, BTreeMap<u64, Job>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `done`, or the time is over.
    pub fn wait_until(&self, limit: Option<Duration>, done: impl Fn(&BTreeMap<u64, Job>) -> bool) -> bool {
        let end = limit.map(|l| Instant::now() + l);
        let mut table = self.table();
        while !done(&table) {
            let step = Duration::from_millis(500);
            let left = end.map_or(step, |e| e.saturating_duration_since(Instant::now()).min(step));
            if left.is_zero() {
                return false;
            }
            let (next, _) = self.changed.wait_timeout(table, left).unwrap_or_else(PoisonError::into_inner);
            table = next;
        }
        true
    }

    /// Takes a job. `ready` says whether its resources are up; `finish_env` adds what a job finds in its
    /// environment.
    ///
    /// # Errors
    /// Its files cannot be made.
    pub fn submit(
        self: &Arc<Self>,
        mut request: Request,
        ready: impl Fn(&Request) -> bool + Send + 'static,
        finish_env: impl FnOnce(u64, &Request) -> Vec<(String, String)>,
    ) -> Result<u64, String> {
        fs::create_dir_all(&self.dir).map_err(|e| e.to_string())?;
        let id = {
            let millis = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX >> 24);
            (millis << 24) + self.table().len() as u64 + 1
        };
        let file = |kind: &str| self.dir.join(format!("{id}.{kind}"));
        if let Some(script) = request.script.take() {
            let path = file("script");
            let mut options = OpenOptions::new();
            options.create(true).write(true).truncate(true).mode(0o700);
            let mut f = options.open(&path).map_err(|e| e.to_string())?;
            std::io::Write::write_all(&mut f, script.as_bytes()).map_err(|e| e.to_string())?;
            request.argv.insert(0, path.display().to_string());
            let me = std::env::current_exe().map_err(|e| e.to_string())?;
            request.argv.splice(0..0, [me.display().to_string(), "broker".to_owned()]);
        }
        request.env.extend(finish_env(id, &request));
        let redirect = |name: &Option<String>, kind: &str| match name.as_deref() {
            None | Some("kvs") => file(kind),
            Some("none") => PathBuf::from("/dev/null"),
            Some(n) => Path::new(&request.cwd).join(n.replace("{{id}}", &f58(id))),
        };
        let out = redirect(&request.output, "out");
        let err = redirect(request.error.as_ref().map_or(&request.output, |_| &request.error), "err");
        let job =
            Job { out, err, state: State::Pending, waited: false, begun: Instant::now(), ran: Duration::ZERO, request };
        self.table().insert(id, job.clone());
        let jobs = self.clone();
        std::thread::spawn(move || {
            while !ready(&job.request) {
                std::thread::sleep(Duration::from_millis(50));
                if jobs.state(id) != Some(State::Pending) {
                    return;
                }
            }
            let code = jobs.execute(id, &job);
            jobs.set(id, State::Done(code));
        });
        Ok(id)
    }

    fn state(&self, id: u64) -> Option<State> {
        self.table().get(&id).map(|j| j.state)
    }

    fn set(&self, id: u64, state: State) {
        if let Some(job) = self.table().get_mut(&id) {
            match state {
                State::Running(_) => job.begun = Instant::now(),
                State::Done(_) => job.ran = job.begun.elapsed(),
                State::Pending => {}
            }
            job.state = state;
        }
        self.changed.notify_all();
    }

    fn execute(&self, id: u64, job: &Job) -> u8 {
        let r = &job.request;
        let open = |path: &Path| OpenOptions::new().create(true).append(true).open(path);
        let (out, err) = match (open(&job.out), open(&job.err)) {
            (Ok(out), Ok(err)) => (out, err),
            (Err(e), _) | (_, Err(e)) => {
                eprintln!("flux-shell[0]: FATAL: {}: {e}", job.out.display());
                return 1;
            }
        };
        let Some((program, arguments)) = r.argv.split_first() else { return 1 };
        let cwd = if Path::new(&r.cwd).is_dir() { r.cwd.as_str() } else { "/" };
        let spawned = Command::new(program)
            .args(arguments)
            .env_clear()
            .envs(&r.env)
            .current_dir(cwd)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .process_group(0)
            .spawn();
        match spawned {
            Ok(mut child) => {
                self.set(id, State::Running(child.id()));
                child.wait().map_or(1, code)
            }
            Err(e) => {
                let missing = e.kind() == std::io::ErrorKind::NotFound;
                let text =
                    format!("flux-shell[0]: ERROR: task 0: start failed: {program}: {}\n", crate::cert::describe(&e));
                if let Ok(mut file) = open(&job.err) {
                    // The job fails anyway; its code says why.
                    let _full = std::io::Write::write_all(&mut file, text.as_bytes());
                }
                if missing { 127 } else { 126 }
            }
        }
    }

    /// Ends jobs that have not ended.
    pub fn cancel(&self, which: impl Fn(u64) -> bool) -> usize {
        let mut count = 0;
        for (id, job) in self.table().iter_mut().filter(|(id, _)| which(**id)) {
            match job.state {
                State::Done(_) => continue,
                State::Pending => job.state = State::Done(1),
                State::Running(group) => {
                    if let Some(pid) = i32::try_from(group).ok().and_then(Pid::from_raw) {
                        // It may be ending by itself.
                        let _gone = rustix::process::kill_process_group(pid, Signal::TERM);
                    }
                }
            }
            eprintln!("{}: exception: type=cancel", f58(*id));
            count += 1;
        }
        self.changed.notify_all();
        count
    }
}

/// A shell's view of an exit status: 128 + signal.
pub fn code(status: ExitStatus) -> u8 {
    let code = status.code().or(status.signal().map(|s| 128 + s)).unwrap_or(1);
    u8::try_from(code & 0xff).unwrap_or(1)
}

/// A job id as people write it (RFC 19, F58).
pub fn f58(id: u64) -> String {
    const DIGITS: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
    let (mut out, mut rest) = (Vec::new(), id);
    loop {
        out.push(char::from(DIGITS[usize::try_from(rest % 58).unwrap_or(0)]));
        rest /= 58;
        if rest == 0 {
            break;
        }
    }
    format!("ƒ{}", out.iter().rev().collect::<String>())
}

/// What is new in a file since `offset`.
///
/// # Errors
/// It cannot be read.
pub fn read_from(path: &Path, offset: &mut u64) -> std::io::Result<Vec<u8>> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut out = Vec::new();
    match File::open(path) {
        Ok(mut file) => {
            file.seek(SeekFrom::Start(*offset))?;
            file.read_to_end(&mut out)?;
            *offset += out.len() as u64;
            Ok(out)
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(out),
        Err(e) => Err(e),
    }
}
