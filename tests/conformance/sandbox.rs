//! One run of a command in a root of its own: no network, its own processes and host name, only what the pod would mount.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// A run that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(30);
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Bash calls it for a command that it does not find.
const NOT_FOUND: &str = r#"() { printf '%s\0' "?" "$PWD" "" "$@" > "/.rec/call-$EPOCHREALTIME-$$"; printf '%s: command not found\n' "$1" >&2; return 127; }"#;

/// What to run.
pub struct Run<'a> {
    pub command: Vec<String>,
    pub hostname: String,
    pub workdir: String,
    pub env: BTreeMap<String, String>,
    /// `/usr/bin`.
    pub programs: &'a Path,
    /// Host folder, path in the sandbox, read-only.
    pub mounts: Vec<(PathBuf, String, bool)>,
    /// Links: target, path.
    pub links: Vec<(String, String)>,
    /// How often the broker fails before it succeeds.
    pub failures: u32,
    /// Shell that prepares the root before the command.
    pub prepare: String,
}

/// What a run did.
#[derive(Default)]
pub struct Recorded {
    pub exit: i64,
    pub cut: bool,
    pub calls: Vec<Call>,
    /// Ports that were waited for.
    pub ports: Vec<String>,
    pub broker_toml: Option<String>,
    pub hostlist: Option<String>,
    /// Mode and owner of the certificate that the broker sees.
    pub curve: Option<String>,
    pub stdout: String,
    pub stderr: String,
}

/// One call of a stand-in; `run` is `?` for a command that was not found.
#[derive(Clone)]
pub struct Call {
    pub run: String,
    pub cwd: String,
    pub exe: String,
    pub argv: Vec<String>,
    pub env: BTreeMap<String, String>,
}

/// Whether the sandbox can be used; else why not.
pub fn available() -> Result<(), String> {
    let test = base(&mut Command::new("bwrap")).args(["--ro-bind", "/", "/", "--", "/bin/true"]).output();
    match test {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("bwrap does not work here: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) => Err(format!("bwrap (package bubblewrap) cannot be started: {error}")),
    }
}

fn base(command: &mut Command) -> &mut Command {
    command.args(["--die-with-parent", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--clearenv"]);
    if !rustix_is_root() {
        command.args(["--unshare-user", "--uid", "0", "--gid", "0"]);
    }
    command
}

fn rustix_is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
}

/// Runs it; `folder` is new and is the run's own.
pub fn run(run: &Run<'_>, folder: &Path) -> std::io::Result<Recorded> {
    let recorder = folder.join("rec");
    fs::create_dir_all(&recorder)?;
    fs::set_permissions(&recorder, fs::Permissions::from_mode(0o777))?;
    for (name, text) in [("failures", format!("{}\n", run.failures)), ("sleeps", "0\n".to_owned())] {
        fs::write(recorder.join(name), text)?;
        fs::set_permissions(recorder.join(name), fs::Permissions::from_mode(0o666))?;
    }
    etc(&folder.join("etc"))?;
    let mut command = Command::new("bwrap");
    base(&mut command);
    root(&mut command, run, folder);
    command.arg("--");
    if !run.prepare.is_empty() {
        command.args(["/bin/sh", "-c", &format!("{}\nexec \"$@\"", run.prepare), "sh"]);
    }
    command.args(&run.command);
    let (stdout, stderr) = (folder.join("stdout"), folder.join("stderr"));
    command.stdin(Stdio::null()).stdout(fs::File::create(&stdout)?).stderr(fs::File::create(&stderr)?);
    let exit = wait(&mut command)?;
    Ok(Recorded {
        exit,
        cut: recorder.join("cut").exists(),
        calls: calls(&recorder)?,
        ports: text(&recorder.join("ports")).unwrap_or_default().lines().map(str::to_owned).collect(),
        broker_toml: text(&recorder.join("broker.toml")),
        hostlist: text(&recorder.join("hostlist")),
        curve: text(&recorder.join("curve")).map(|t| t.trim().to_owned()),
        stdout: text(&stdout).unwrap_or_default(),
        stderr: text(&stderr).unwrap_or_default(),
    })
}

fn text(path: &Path) -> Option<String> {
    fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The little of `/etc` that programs need, writable as in a container.
fn etc(folder: &Path) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::write(folder.join("passwd"), "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n")?;
    fs::write(folder.join("group"), "root:x:0:\n")?;
    if Path::new("/etc/ld.so.cache").exists() {
        fs::copy("/etc/ld.so.cache", folder.join("ld.so.cache"))?;
    }
    symlink("/.host/alternatives", folder.join("alternatives"))
}

fn root(command: &mut Command, run: &Run<'_>, folder: &Path) {
    command.args(["--hostname", &run.hostname]);
    command.args(["--ro-bind", "/usr/lib", "/usr/lib", "--ro-bind-try", "/usr/lib64", "/usr/lib64"]);
    command.args(["--ro-bind", "/usr/bin", "/.host/bin", "--ro-bind-try", "/etc/alternatives", "/.host/alternatives"]);
    command.arg("--ro-bind").arg(run.programs).arg("/usr/bin");
    for folder in ["/usr/local/bin", "/usr/local/sbin", "/usr/sbin", "/root", "/home", "/opt", "/run", "/var/tmp", "/tmp"] {
        command.args(["--dir", folder]);
    }
    for (target, link) in [("usr/bin", "/bin"), ("usr/lib", "/lib"), ("usr/lib64", "/lib64"), ("usr/sbin", "/sbin")] {
        command.args(["--symlink", target, link]);
    }
    command.args(["--proc", "/proc", "--dev", "/dev", "--chmod", "1777", "/tmp"]);
    command.arg("--bind").arg(folder.join("etc")).arg("/etc");
    command.arg("--bind").arg(folder.join("rec")).arg("/.rec");
    for (host, path, read_only) in &run.mounts {
        command.arg(if *read_only { "--ro-bind" } else { "--bind" }).arg(host).arg(path);
    }
    for (target, path) in &run.links {
        command.args(["--symlink", target, path]);
    }
    let standard = [("PATH", PATH), ("HOME", "/root"), ("HOSTNAME", run.hostname.as_str())];
    for (name, value) in standard.into_iter().chain(run.env.iter().map(|(n, v)| (n.as_str(), v.as_str()))) {
        command.args(["--setenv", name, value]);
    }
    command.args(["--setenv", "BASH_FUNC_command_not_found_handle%%", NOT_FOUND]);
    if run.workdir != "/" {
        command.args(["--dir", &run.workdir]);
    }
    command.args(["--chdir", &run.workdir]);
}

fn wait(command: &mut Command) -> std::io::Result<i64> {
    let mut child = command.spawn()?;
    let step = Duration::from_millis(2);
    let mut left = LIMIT;
    loop {
        if let Some(status) = child.try_wait()? {
            use std::os::unix::process::ExitStatusExt;
            return Ok(i64::from(status.code().or(status.signal().map(|s| 128 + s)).unwrap_or(-1)));
        }
        if left.is_zero() {
            child.kill()?;
            child.wait()?;
            return Ok(-1);
        }
        std::thread::sleep(step);
        left = left.saturating_sub(step);
    }
}

fn calls(recorder: &Path) -> std::io::Result<Vec<Call>> {
    let mut names: Vec<PathBuf> = fs::read_dir(recorder)?
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("call-")) && path.extension().is_none_or(|e| e != "env"))
        .collect();
    names.sort();
    let fields = |path: &Path| -> Vec<String> {
        let bytes = fs::read(path).unwrap_or_default();
        let mut fields: Vec<String> =
            bytes.split(|b| *b == 0).map(|f| String::from_utf8_lossy(f).into_owned()).collect();
        fields.pop();
        fields
    };
    let call = |path: &PathBuf| {
        let mut words = fields(path).into_iter();
        let (run, cwd, exe) = (words.next()?, words.next()?, words.next()?);
        let mut env_file = path.clone().into_os_string();
        env_file.push(".env");
        let pairs = fields(Path::new(&env_file));
        let env = pairs.iter().filter_map(|p| p.split_once('=')).map(|(n, v)| (n.to_owned(), v.to_owned())).collect();
        Some(Call { run, cwd, exe, argv: words.collect(), env })
    };
    Ok(names.iter().filter_map(call).collect())
}

/// Copies a tree, links as links.
pub fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    fs::set_permissions(to, fs::metadata(from)?.permissions())?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            symlink(fs::read_link(&source)?, &target)?;
        } else if kind.is_dir() {
            copy(&source, &target)?;
        } else if kind.is_file() {
            fs::copy(&source, &target)?;
        }
    }
    Ok(())
}

impl Call {
    /// As the corpus writes it, for comparing.
    pub fn shown(&self) -> Value {
        json!({"argv": self.argv, "cwd": self.cwd})
    }
}
