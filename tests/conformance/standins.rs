//! What stands in the sandbox instead of Flux, installers and other programs: they record how they were called.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

/// Programs that record and end well.
const SUCCEED: &[&str] = &[
    "wget",
    "curl",
    "apt-get",
    "apt",
    "dnf",
    "yum",
    "pip",
    "pip3",
    "git",
    "unzip",
    "jq",
    "alembic",
    "merlin",
    "uvicorn",
    "s3fs",
    "spack",
    "singularity",
    "fusion",
    "goshare-cli",
    "goshare-srv",
    "nginx",
    "flux-metrics-api",
];

/// Records the call in a file of its own, named by time.
const RECORD: &str = r#"#!/.host/bin/bash
name=${0##*/}
file=/.rec/call-$EPOCHREALTIME-$$
printf '%s\0' "$name" "$PWD" "$0" "$@" > "$file"
"#;

/// Flux: prints a fixed R, runs nothing, fails as often as it is told to, and keeps what a broker would read.
const FLUX: &str = r#"
while IFS= read -r -d '' variable; do printf '%s\0' "$variable"; done < /proc/$$/environ > "$file.env"
if [ "$1" = R ]; then
    printf '%s\n' '{"version": 1, "execution": {"R_lite": [{"rank": "0", "children": {"core": "0-3"}}], "starttime": 0.0, "expiration": 0.0, "nodelist": ["host"]}}'
fi
case $1 in broker | start) ;; *) exit 0 ;; esac
config=
dump=
while [ $# -gt 0 ]; do
    case $1 in
        *content.dump=*) dump=${1#*content.dump=} ;;
        *config-path=*) config=${1#*config-path=} ;;
        --config | --config-path) config=$2 ;;
    esac
    shift
done
if [ -n "$config" ] && [ ! -e /.rec/curve ]; then
    root=${config%/etc/flux/config}
    /.host/bin/cp -L "$config/broker.toml" /.rec/broker.toml
    /.host/bin/cp -L "$root/etc/flux/system/hostlist" /.rec/hostlist
    /.host/bin/stat -L -c '%a %u:%g' "$root/curve/curve.cert" > /.rec/curve
    /.host/bin/chmod 0666 /.rec/broker.toml /.rec/hostlist 2> /dev/null
fi 2> /dev/null
failures=0
read -r failures < /.rec/failures
if [ "$failures" -gt 0 ]; then
    printf '%s\n' $((failures - 1)) > /.rec/failures
    exit 1
fi
if [ -n "$dump" ]; then /.host/bin/mkdir -p "${dump%/*}" && : > "$dump"; fi
exit 0
"#;

/// Returns at once. By the sixth the loop is endless, and everything is ended as the kubelet ends a pod: TERM, then KILL.
const SLEEP: &str = r#"
count=0
read -r count 2> /dev/null < /.rec/sleeps
printf '%s\n' $((count + 1)) > /.rec/sleeps
if [ "$count" = 5 ]; then
    : > /.rec/cut
    kill -TERM -1
elif [ "$count" -gt 5 ]; then
    kill -KILL -1
fi
"#;

/// `time` runs what follows its options.
const TIME: &str = r#"
while [ $# -gt 0 ]; do
    case $1 in
        -f | -o) shift 2 ;;
        -*) shift ;;
        *) break ;;
    esac
done
exec "$@"
"#;

/// `sudo` runs what follows its options and assignments.
const SUDO: &str = r#"
while [ $# -gt 0 ]; do
    case $1 in
        -u | -g) shift 2 ;;
        -*) shift ;;
        *=*) export "$1"; shift ;;
        *) break ;;
    esac
done
exec "$@"
"#;

/// The wait for a port succeeds; which one is kept. Anything else runs as always.
const TIMEOUT: &str = r#"#!/.host/bin/bash
case $* in
    *"/dev/tcp/"*)
        printf '%s:%s\n' "${@: -2:1}" "${@: -1}" >> /.rec/ports
        exit 0
        ;;
esac
exec /.host/bin/timeout "$@"
"#;

/// Programs of the host that pods of the corpus did not have.
const HIDDEN: &[&str] = &["flux", "time", "sleep", "timeout", "python3.11"];

/// Folders with programs, made once and shared by every sandbox.
pub struct StandIns {
    /// `/usr/bin` of images without Flux, with Flux, and without `time`.
    pub plain: PathBuf,
    pub with_flux: PathBuf,
    pub without_time: PathBuf,
    /// Root of a view image: `opt/views`, `opt/software`.
    pub view: PathBuf,
}

impl StandIns {
    pub fn make(folder: &Path) -> std::io::Result<Self> {
        let made = Self {
            plain: folder.join("plain"),
            with_flux: folder.join("with-flux"),
            without_time: folder.join("without-time"),
            view: folder.join("view"),
        };
        programs(&made.plain, true)?;
        programs(&made.without_time, false)?;
        programs(&made.with_flux, true)?;
        stand_in(&made.with_flux, "flux", FLUX)?;
        let tree = made.view.join("opt/views/._view/0123456789abcdef");
        std::fs::create_dir_all(tree.join("bin"))?;
        std::fs::create_dir_all(tree.join("lib/python3.11/site-packages"))?;
        std::fs::create_dir_all(tree.join("etc/flux/rc1.d"))?;
        std::fs::create_dir_all(made.view.join("opt/software/linux"))?;
        stand_in(&tree.join("bin"), "flux", FLUX)?;
        stand_in(&tree.join("bin"), "python3.11", "")?;
        Ok(made)
    }
}

fn programs(folder: &Path, time: bool) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    for entry in std::fs::read_dir("/usr/bin")? {
        let name = entry?.file_name();
        let text = name.to_string_lossy();
        if !HIDDEN.contains(&text.as_ref()) && !SUCCEED.contains(&text.as_ref()) && text != "sudo" {
            symlink(Path::new("/.host/bin").join(&name), folder.join(&name))?;
        }
    }
    for name in SUCCEED {
        stand_in(folder, name, "")?;
    }
    stand_in(folder, "sleep", SLEEP)?;
    stand_in(folder, "sudo", SUDO)?;
    write(&folder.join("timeout"), TIMEOUT)?;
    if time {
        stand_in(folder, "time", TIME)?;
    }
    Ok(())
}

fn stand_in(folder: &Path, name: &str, rest: &str) -> std::io::Result<()> {
    write(&folder.join(name), &format!("{RECORD}{rest}"))
}

fn write(path: &Path, text: &str) -> std::io::Result<()> {
    std::fs::write(path, text)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
}
