//! Leftovers of a former run with the same state folder: containers, namespace holders, mounts.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal};

use crate::podman;
use crate::volumes::unmount_below;

/// Removes everything that a podlet with this state folder may have left behind.
///
/// # Errors
/// Something cannot be removed.
pub fn leftovers(state: &Path) -> Result<(), Box<dyn std::error::Error>> {
    for id in podman::containers_of(state)? {
        podman::remove(&id)?;
    }
    for pid in holders(state)? {
        if let Some(pid) = Pid::from_raw(pid) {
            // It may end by itself meanwhile.
            let _ended = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
    for name in ["pods", "view"] {
        let dir = state.join(name);
        unmount_below(&dir)?;
        if dir.exists() {
            fs::remove_dir_all(&dir)?;
        }
    }
    Ok(())
}

/// Processes `podlet hold … --state STATE`.
fn holders(state: &Path) -> std::io::Result<Vec<i32>> {
    let mut out = Vec::new();
    let want = state.to_string_lossy();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Ok(pid) = name.to_string_lossy().parse::<i32>() else { continue };
        // A process that ended between the two reads is none of ours any more.
        let Ok(line) = fs::read(format!("/proc/{pid}/cmdline")) else { continue };
        let args: Vec<String> = line.split(|b| *b == 0).map(|a| String::from_utf8_lossy(a).into_owned()).collect();
        let hold = args.iter().position(|a| a == "hold");
        let state = args.windows(2).any(|w| w[0] == "--state" && w[1] == want);
        if hold.is_some_and(|i| i >= 1 && args[i - 1].ends_with("podlet")) && state {
            out.push(pid);
        }
    }
    Ok(out)
}
