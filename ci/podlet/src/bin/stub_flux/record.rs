//! One JSON line per call: argv, working folder, environment, user.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::PathBuf;

use serde_json::json;

/// The machine's name, as `hostname` prints it.
pub fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Appends the call to `${STUB_FLUX_LOG:-/tmp/stub-flux}/<hostname>.jsonl`.
///
/// # Errors
/// The folder cannot be written.
pub fn call(argv: &[String]) -> std::io::Result<()> {
    let dir = PathBuf::from(std::env::var_os("STUB_FLUX_LOG").unwrap_or_else(|| "/tmp/stub-flux".into()));
    if !dir.exists() {
        fs::create_dir_all(&dir)?;
        // Containers of one pod may run as different users.
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o1777))?;
    }
    let env: BTreeMap<String, String> = std::env::vars_os()
        .map(|(k, v)| (k.to_string_lossy().into_owned(), v.to_string_lossy().into_owned()))
        .collect();
    let cwd = std::env::current_dir().map(|d| d.display().to_string()).unwrap_or_default();
    let line = json!({
        "time": jiff::Timestamp::now().to_string(), "pid": std::process::id(),
        "uid": rustix::process::getuid().as_raw(), "argv": argv, "cwd": cwd, "env": env
    });
    let path = dir.join(format!("{}.jsonl", hostname()));
    let fresh = !path.exists();
    let mut file = fs::OpenOptions::new().create(true).append(true).mode(0o666).open(&path)?;
    if fresh {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666))?;
    }
    // One write, so that lines of several processes do not mix.
    file.write_all(format!("{line}\n").as_bytes())
}
