//! The podman commands that podlet needs. Settings come from the environment
//! (`CONTAINERS_CONF`, `CONTAINERS_STORAGE_CONF`), as for any other podman user.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A failed podman command: its last line of error output.
#[derive(Debug, thiserror::Error)]
#[error("podman {command}: {message}")]
pub struct PodmanError {
    /// The sub-command.
    pub command: String,
    /// What podman said.
    pub message: String,
}

/// What podlet needs to know of an image.
#[derive(Debug, Clone, Default)]
pub struct Image {
    /// The reference that podman knows.
    pub local: String,
    /// The image's id.
    pub id: String,
    /// `ENTRYPOINT`.
    pub entrypoint: Vec<String>,
    /// `CMD`.
    pub cmd: Vec<String>,
    /// `USER`, as written.
    pub user: String,
    /// `STOPSIGNAL`.
    pub stop_signal: Option<String>,
    /// Names of the image's environment variables.
    pub env: Vec<String>,
}

/// How a container ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    /// Exit code; 128 + signal when killed.
    pub code: i64,
    /// The kernel killed it for its memory limit.
    pub oom: bool,
    /// RFC 3339.
    pub started: String,
    /// RFC 3339.
    pub finished: String,
}

/// Runs podman.
///
/// # Errors
/// It cannot be run, or ends with another code than 0.
pub fn run(args: &[String]) -> Result<String, PodmanError> {
    run_in(Path::new("/"), args)
}

/// The same, in a folder. conmon puts its `oom` mark into the folder that it was started in.
///
/// # Errors
/// As [`run`].
pub fn run_in(dir: &Path, args: &[String]) -> Result<String, PodmanError> {
    let output = output(dir, args)?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        let command = args.first().cloned().unwrap_or_default();
        let text = String::from_utf8_lossy(&output.stderr);
        let error = text.lines().find(|l| l.starts_with("Error:"));
        let message = error.or(text.lines().last()).unwrap_or_default().to_owned();
        Err(PodmanError { command, message })
    }
}

fn output(dir: &Path, args: &[String]) -> Result<Output, PodmanError> {
    Command::new("podman")
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| PodmanError { command: args.first().cloned().unwrap_or_default(), message: e.to_string() })
}

/// Owned arguments.
pub fn args<const N: usize>(list: [&str; N]) -> Vec<String> {
    list.iter().map(|s| (*s).to_owned()).collect()
}

/// What is known of local images. Each is looked at once: every look is a process of podman's, and there are many containers
/// of few images. A tag that is moved while podlet runs is not noticed.
#[derive(Debug, Default)]
pub struct Images(Mutex<BTreeMap<String, Image>>);

impl Images {
    /// The local image, or `None`. Nothing is ever pulled, and what is missing may come later.
    ///
    /// # Errors
    /// podman cannot be run, or its answer cannot be read.
    pub fn get(&self, reference: &str) -> Result<Option<Image>, PodmanError> {
        if let Some(known) = self.lock().get(reference) {
            return Ok(Some(known.clone()));
        }
        let found = image(reference)?;
        if let Some(found) = &found {
            self.lock().insert(reference.to_owned(), found.clone());
        }
        Ok(found)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Image>> {
        // Nothing panics while it is held, and an entry is whole or not there.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn image(reference: &str) -> Result<Option<Image>, PodmanError> {
    let command = args(["image", "inspect", "--format", "json", reference]);
    let output = output(Path::new("/"), &command)?;
    if !output.status.success() {
        return Ok(None);
    }
    let parsed: Value = serde_json::from_slice(&output.stdout)
        .map_err(|e| PodmanError { command: "image inspect".to_owned(), message: e.to_string() })?;
    let image = &parsed[0];
    let strings = |v: &Value| -> Vec<String> {
        v.as_array().into_iter().flatten().filter_map(|s| s.as_str().map(str::to_owned)).collect()
    };
    let config = &image["Config"];
    Ok(Some(Image {
        local: reference.to_owned(),
        id: image["Id"].as_str().unwrap_or_default().to_owned(),
        entrypoint: strings(&config["Entrypoint"]),
        cmd: strings(&config["Cmd"]),
        user: config["User"].as_str().unwrap_or_default().to_owned(),
        stop_signal: config["StopSignal"].as_str().filter(|s| !s.is_empty()).map(str::to_owned),
        env: strings(&config["Env"]).iter().filter_map(|e| e.split_once('=').map(|x| x.0.to_owned())).collect(),
    }))
}

/// How a container ended; waits a while for podman's own bookkeeping after the process is gone.
///
/// # Errors
/// podman does not know the container, or still calls it running after two minutes, which a busy machine may need.
pub fn exit(id: &str) -> Result<Exit, PodmanError> {
    const FORMAT: &str = "{{.State.Status}}|{{.State.ExitCode}}|{{.State.OOMKilled}}|{{json .State.StartedAt}}|{{json .State.FinishedAt}}";
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let text = run(&args(["container", "inspect", "--format", FORMAT, id]))?;
        let fields: Vec<&str> = text.split('|').collect();
        if let [status, code, oom, started, finished] = fields[..]
            && (status == "exited" || status == "stopped")
        {
            return Ok(Exit {
                code: code.parse().unwrap_or(-1),
                oom: oom == "true",
                started: whole_seconds(started),
                finished: whole_seconds(finished),
            });
        }
        if Instant::now() > deadline {
            return Err(PodmanError { command: "container inspect".to_owned(), message: text });
        }
        std::thread::sleep(Duration::from_millis(15));
    }
}

fn whole_seconds(json: &str) -> String {
    json.trim_matches('"').to_owned()
}

/// Sends a signal by name (`TERM`, `KILL`, an image's `STOPSIGNAL`).
///
/// # Errors
/// The container is no longer running.
pub fn kill(id: &str, signal: &str) -> Result<String, PodmanError> {
    run(&args(["kill", "--signal", signal, id]))
}

/// Removes a container, running or not, with its anonymous volumes.
///
/// # Errors
/// podman could not.
pub fn remove(id: &str) -> Result<String, PodmanError> {
    run(&args(["rm", "--force", "--volumes", "--time", "0", "--ignore", id]))
}

/// Runs a command in a container, at most for `limit`. `None`: it took longer.
///
/// # Errors
/// podman cannot be run.
pub fn exec(id: &str, command: &[String], limit: Duration) -> std::io::Result<Option<(ExitStatus, String)>> {
    let mut child = Command::new("podman")
        .args(["exec", id])
        .args(command)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let deadline = Instant::now() + limit;
    loop {
        if child.try_wait()?.is_some() {
            let output = child.wait_with_output()?;
            return Ok(Some((output.status, String::from_utf8_lossy(&output.stderr).trim().to_owned())));
        }
        if Instant::now() >= deadline {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Ids of all containers that a podlet with this state folder made.
///
/// # Errors
/// podman could not list them.
pub fn containers_of(state: &Path) -> Result<Vec<String>, PodmanError> {
    let filter = format!("label={}", label(state));
    let out = run(&args(["ps", "--all", "--quiet", "--no-trunc", "--filter", &filter]))?;
    Ok(out.lines().map(str::to_owned).collect())
}

/// The label that ties a container to a state folder.
pub fn label(state: &Path) -> String {
    format!("podlet.state={}", state.display())
}
