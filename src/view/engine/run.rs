//! Running the commands of an engine: output to a log and to whoever watches, and nothing left behind when flux-gen ends.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};

use crate::model::words::join;
use crate::view::recipe::Step;

/// Lines of output that an error repeats.
const TAIL: usize = 20;
/// Longest line that is kept; longer ones are cut.
const LINE: u64 = 16 << 10;

/// What happens during a build, for whoever shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// What comes next, in words.
    Phase(String),
    /// A step of the recipe begins.
    Step {
        /// Its number, from 1.
        number: usize,
        /// How many there are.
        count: usize,
        /// What it does.
        title: String,
    },
    /// A line of output.
    Line(String),
    /// Another run builds the same; this one waits for it.
    Waiting,
    /// Something that should be known.
    Warning(String),
}

/// How a command ended when it did not end well.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// It could not be started.
    #[error("{program} cannot be started: {source}")]
    Start {
        /// The program.
        program: String,
        /// The reason.
        source: io::Error,
    },
    /// It failed.
    #[error("`{command}` failed with exit code {code}")]
    Failed {
        /// The command.
        command: String,
        /// Its exit code.
        code: i32,
        /// The end of its output.
        tail: Vec<String>,
        /// The last step that had begun.
        step: Option<String>,
    },
    /// A signal ended it.
    #[error("`{command}` was ended by signal {signal}")]
    Killed {
        /// The command.
        command: String,
        /// The signal's number.
        signal: i32,
        /// The end of its output.
        tail: Vec<String>,
    },
    /// There is no space left.
    #[error("no space left: {0}")]
    Full(String),
    /// A file cannot be written.
    #[error("{} cannot be written: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl RunError {
    /// An error of a file: a full disk is told apart.
    #[must_use]
    pub fn file(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full(path.display().to_string()),
            _ => Self::Io { path: path.to_owned(), source },
        }
    }
}

/// Runs commands one after the other.
pub(super) struct Runner<'a> {
    log: File,
    log_path: PathBuf,
    steps: &'a [Step],
    events: &'a mut dyn FnMut(Event),
    tail: VecDeque<String>,
    step: Option<String>,
    watchdog: Option<Watchdog>,
}

impl<'a> Runner<'a> {
    /// Runs commands with a new log. `steps` are those whose begin is looked for in the output.
    ///
    /// # Errors
    /// When the log cannot be made.
    pub(super) fn new(log: &Path, steps: &'a [Step], events: &'a mut dyn FnMut(Event)) -> Result<Self, RunError> {
        let file = File::create(log).map_err(|e| RunError::file(log, e))?;
        let (log_path, tail) = (log.to_owned(), VecDeque::new());
        Ok(Self { log: file, log_path, steps, events, tail, step: None, watchdog: None })
    }

    /// From here on, should flux-gen end without [`Self::finish`], the running command is ended and these are run, and the
    /// folder is removed.
    ///
    /// # Errors
    /// When there is no `sh`.
    pub(super) fn watch(&mut self, cleanup: &[Vec<String>], folder: &Path) -> Result<(), RunError> {
        self.watchdog = Some(Watchdog::start(cleanup, folder)?);
        Ok(())
    }

    /// The build has come to its end, good or bad, and has cleaned up itself.
    pub(super) fn finish(&mut self) {
        if let Some(watchdog) = self.watchdog.take() {
            watchdog.finish();
        }
    }

    /// Says something to whoever watches.
    pub(super) fn say(&mut self, event: Event) {
        (self.events)(event);
    }

    /// Runs a command; its output goes to the log.
    ///
    /// # Errors
    /// When it fails or cannot be started.
    pub(super) fn run(&mut self, command: &[String]) -> Result<(), RunError> {
        self.run_with(command, None)
    }

    /// Runs a command with its standard output into a file.
    ///
    /// # Errors
    /// When it fails or cannot be started, or the file cannot be written. The file may then be there in part.
    pub(super) fn run_into(&mut self, command: &[String], file: &Path) -> Result<(), RunError> {
        self.run_with(command, Some(file))
    }

    fn run_with(&mut self, command: &[String], into: Option<&Path>) -> Result<(), RunError> {
        self.tail.clear();
        self.step = None;
        let text = join(command);
        let log_path = self.log_path.clone();
        let log = |e| RunError::file(&log_path, e);
        writeln!(self.log, "$ {text}").map_err(log)?;
        let (reader, writer) = io::pipe().map_err(log)?;
        let mut process = prepare(command);
        let out = match into {
            Some(path) => Stdio::from(File::create(path).map_err(|e| RunError::file(path, e))?),
            None => Stdio::from(writer.try_clone().map_err(log)?),
        };
        process.stdin(Stdio::null()).stdout(out).stderr(writer);
        let child = spawn(process, &command[0])?;
        self.tell_watchdog(&format!("run {}", child.id()));
        let status = self.follow(child, reader);
        self.tell_watchdog("idle");
        let status = status.map_err(log)?;
        self.judge(text, status)
    }

    /// Reads all output, then waits.
    fn follow(&mut self, mut child: Child, output: impl Read) -> io::Result<ExitStatus> {
        let read = self.read_lines(output);
        let status = child.wait();
        read.and(status)
    }

    fn read_lines(&mut self, output: impl Read) -> io::Result<()> {
        let mut reader = BufReader::new(output);
        loop {
            let mut bytes = Vec::new();
            if reader.by_ref().take(LINE).read_until(b'\n', &mut bytes)? == 0 {
                return Ok(());
            }
            self.log.write_all(&bytes)?;
            if bytes.last() != Some(&b'\n') {
                self.log.write_all(b"\n")?;
            }
            // Progress bars write many states of one line; the last counts.
            let text = String::from_utf8_lossy(&bytes);
            let line = text.trim_end().rsplit('\r').next().unwrap_or_default();
            let line: String = line.chars().filter(|c| !c.is_control() || *c == '\t').collect();
            match step_of(&line).or_else(|| step_of_buildkit(&line, self.steps)) {
                // Between lines of something else BuildKit says once more what it is at.
                Some((_, _, title)) if self.step.as_ref() == Some(&title) => {}
                Some((number, count, title)) => {
                    self.step = Some(title.clone());
                    (self.events)(Event::Step { number, count, title });
                }
                None => (self.events)(Event::Line(line.clone())),
            }
            if self.tail.len() == TAIL {
                self.tail.pop_front();
            }
            self.tail.push_back(line);
        }
    }

    fn judge(&mut self, command: String, status: ExitStatus) -> Result<(), RunError> {
        if status.success() {
            return Ok(());
        }
        let tail: Vec<String> = self.tail.iter().cloned().collect();
        if let Some(line) = tail.iter().rev().find(|l| says_full(l)) {
            return Err(RunError::Full(line.clone()));
        }
        match (status.signal(), status.code()) {
            (Some(signal), _) => Err(RunError::Killed { command, signal, tail }),
            // A shell's and an engine's way to say that what they ran was killed.
            (None, Some(code @ (137 | 143))) => Err(RunError::Killed { command, signal: code - 128, tail }),
            (None, code) => {
                let step = self.step.clone();
                Err(RunError::Failed { command, code: code.unwrap_or(-1), tail, step })
            }
        }
    }

    /// Whether a command ends well; its output goes nowhere.
    pub(super) fn succeeds(&mut self, command: &[String]) -> bool {
        let mut process = prepare(command);
        process.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        process.status().is_ok_and(|status| status.success())
    }

    fn tell_watchdog(&mut self, line: &str) {
        if let Some(watchdog) = &mut self.watchdog {
            watchdog.tell(line);
        }
    }
}

impl Drop for Runner<'_> {
    fn drop(&mut self) {
        self.finish();
    }
}

/// The standard output of a command that tells something about an engine.
///
/// # Errors
/// When it fails or cannot be started.
pub(super) fn capture(command: &[String]) -> Result<String, RunError> {
    let mut process = prepare(command);
    process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = process
        .output()
        .map_err(|source| RunError::Start { program: command.first().cloned().unwrap_or_default(), source })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let errors = String::from_utf8_lossy(&output.stderr);
    let tail = errors.lines().rev().take(TAIL).map(str::to_owned).collect::<Vec<_>>().into_iter().rev().collect();
    Err(RunError::Failed { command: join(command), code: output.status.code().unwrap_or(-1), tail, step: None })
}

fn prepare(command: &[String]) -> Command {
    let mut process = Command::new(command.first().map(String::as_str).unwrap_or_default());
    // A group of its own: a Ctrl-C in the terminal is for flux-gen, whose watchdog then ends the group.
    process.args(command.get(1..).unwrap_or_default()).process_group(0);
    process
}

fn spawn(mut process: Command, program: &str) -> Result<Child, RunError> {
    // `process` holds our ends of the pipe; they must be closed for the reader to see the end.
    process.spawn().map_err(|source| RunError::Start { program: program.to_owned(), source })
}

/// `==> flux-gen step 2 of 5: zeromq 4.3.5`.
fn step_of(line: &str) -> Option<(usize, usize, String)> {
    let rest = line.strip_prefix("==> flux-gen step ")?;
    let (numbers, title) = rest.split_once(": ")?;
    let (number, count) = numbers.split_once(" of ")?;
    Some((number.parse().ok()?, count.parse().ok()?, title.to_owned()))
}

/// `#12 [step-2 3/3] RUN --network=none bash /flux-gen/steps/020-zeromq.sh`: `BuildKit` runs each step itself.
fn step_of_buildkit(line: &str, steps: &[Step]) -> Option<(usize, usize, String)> {
    let (_, command) = line.strip_prefix('#')?.split_once("] RUN ")?;
    let file = command.rsplit_once(" /flux-gen/steps/")?.1;
    let index = steps.iter().position(|step| step.file == file)?;
    Some((index + 1, steps.len(), steps.get(index)?.title.clone()))
}

/// Whether a line of output says that a disk is full.
fn says_full(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    ["no space left on device", "disk quota exceeded"].iter().any(|words| lower.contains(words))
}

/// A shell that waits for flux-gen's end. It needs no signal handler, and works when flux-gen is killed too.
struct Watchdog {
    child: Child,
    input: ChildStdin,
}

impl Watchdog {
    fn start(cleanup: &[Vec<String>], folder: &Path) -> Result<Self, RunError> {
        let mut script = include_str!("watchdog.sh").to_owned();
        for command in cleanup {
            script.push_str(&format!("{} >/dev/null 2>&1\n", join(command)));
        }
        script.push_str(&format!("rm -rf -- {}\n", join(&[folder.display().to_string()])));
        let failed = |source| RunError::Start { program: "sh".to_owned(), source };
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let Some(input) = child.stdin.take() else {
            return Err(failed(io::Error::other("it has no input")));
        };
        Ok(Self { child, input })
    }

    fn tell(&mut self, line: &str) {
        // A watchdog that is gone cannot help; the build can go on without.
        let _ = self.input.write_all(format!("{line}\n").as_bytes());
    }

    fn finish(mut self) {
        self.tell("done");
        let _ = self.child.wait();
    }
}

/// Removes a folder; that it is not there is as well.
///
/// # Errors
/// When it cannot be removed.
pub(super) fn remove_folder(folder: &Path) -> Result<(), RunError> {
    match fs::remove_dir_all(folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(RunError::file(folder, e)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_full_disks_are_seen_in_the_output() {
        let title = "zeromq 4.3.5".to_owned();
        assert_eq!(step_of("==> flux-gen step 2 of 5: zeromq 4.3.5"), Some((2, 5, title.clone())));
        for line in ["step 2 of 5: x", "==> flux-gen step x of 5: y", ""] {
            assert_eq!(step_of(line), None);
        }
        let step = |title: &str, file: &str| Step {
            title: title.to_owned(),
            network: None,
            commands: Vec::new(),
            file: file.to_owned(),
        };
        let steps = [step("hwloc 2", "010-hwloc.sh"), step(&title, "020-zeromq.sh")];
        let begins = "#12 [step-2 3/3] RUN --network=none bash /flux-gen/steps/020-zeromq.sh";
        assert_eq!(step_of_buildkit(begins, &steps), Some((2, 2, title)));
        for line in [
            " > [step-2 3/3] RUN --network=none bash /flux-gen/steps/020-zeromq.sh:",
            "#11 [step-2 2/3] COPY build/steps/020-zeromq.sh /flux-gen/steps/020-zeromq.sh",
            "#12 [step-9 3/3] RUN bash /flux-gen/steps/090-other.sh",
        ] {
            assert_eq!(step_of_buildkit(line, &steps), None);
        }
        assert!(says_full("write /var/x: No space left on device"));
        assert!(!says_full("there is space left"));
    }
}
