//! The whole program gives the same bytes wherever it runs: on any number of threads, in any locale, time zone, folder and
//! umask, at any time, whatever the order in which the files of the specs were made; with every secret backend and job strategy.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::harness::{Run, Sandbox, minicluster};
use crate::view_support::{helper, spack_tree};

const BACKENDS: [&str; 4] = ["existing", "plain", "sealed", "sops"];
const STRATEGIES: [(&str, &str); 6] = [
    ("stable", "none"),
    ("recreate", "both"),
    ("run-once", "fluxcd"),
    ("hook", "argocd"),
    ("service", "argocd"),
    ("recreate", "argocd"),
];

/// Bytes and mode of each file, by path.
fn files(folder: &Path) -> BTreeMap<String, (Vec<u8>, u32)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                let path = entry.path().strip_prefix(folder).unwrap().display().to_string();
                let mode = entry.metadata().unwrap().permissions().mode();
                found.insert(path, (fs::read(entry.path()).unwrap(), mode));
            }
        }
    }
    found
}

fn specs() -> Vec<(String, String)> {
    ["zeta", "alpha", "mid", "b-2"]
        .iter()
        .map(|name| {
            let text =
                minicluster(name, 3).replace(&format!("name: {name}\n"), &format!("name: {name}\n  namespace: hpc\n"));
            (format!("examples/{name}/minicluster.yaml"), text)
        })
        .collect()
}

fn settings(backend: &str, strategy: &str, gitops: &str, recipient: &str) -> String {
    let more = match backend {
        "sops" => format!(", age-recipients: {recipient}"),
        "sealed" => ", sealed-certificate: seal.pem".to_owned(),
        _ => String::new(),
    };
    format!("settings: {{secrets: {backend}, strategy: {strategy}, gitops: {gitops}{more}}}\n")
}

fn sandbox(project: &str, turned: bool) -> Sandbox {
    let sandbox = Sandbox::new();
    let seal = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sealing/one.pem");
    sandbox.write("seal.pem", &fs::read_to_string(seal).unwrap()).write("flux-gen.yaml", project);
    let mut specs = specs();
    if turned {
        specs.reverse();
    }
    for (path, text) in specs {
        sandbox.write(path, &text);
    }
    sandbox
}

fn copy(from: &Path, to: &Path) {
    for (path, (bytes, mode)) in files(from) {
        let target = to.join(path);
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::write(&target, bytes).unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(mode)).unwrap();
    }
}

#[test]
fn every_backend_and_strategy_gives_the_same_bytes_elsewhere() {
    let recipient = age::x25519::Identity::generate().to_public().to_string();
    for backend in BACKENDS {
        for (strategy, gitops) in STRATEGIES {
            let project = settings(backend, strategy, gitops, &recipient);
            let here = sandbox(&project, false);
            here.run(&["build", "--no-sync", "--threads", "1"]).exits(0);
            let elsewhere = sandbox(&project, true);
            if here.path("certs").is_dir() {
                copy(&here.path("certs"), &elsewhere.path("certs"));
            }
            let output = Command::new("sh")
                .args([
                    "-c",
                    "umask 077; cd / && exec \"$0\" build --no-sync --threads 5 --project \"$1\"",
                    env!("CARGO_BIN_EXE_flux-gen"),
                ])
                .arg(elsewhere.path("flux-gen.yaml"))
                .env_clear()
                .envs([("LC_ALL", "tr_TR.UTF-8"), ("TZ", "Pacific/Chatham")])
                .stdin(Stdio::null())
                .output()
                .unwrap();
            Run::of(output).exits(0);
            let (one, two) = (files(&here.path("generated")), files(&elsewhere.path("generated")));
            assert!(one.len() > 4 * 5, "{backend} {strategy}: {} files", one.len());
            assert_eq!(one.keys().collect::<Vec<_>>(), two.keys().collect::<Vec<_>>(), "{backend} {strategy}");
            for (path, found) in &one {
                assert!(found == &two[path], "{backend} {strategy} {gitops}: {path} differs");
            }
        }
    }
}

/// Where Debian's package libfaketime is, on either architecture.
fn libfaketime() -> Option<std::path::PathBuf> {
    let folders = ["/usr/lib/x86_64-linux-gnu/faketime", "/usr/lib/aarch64-linux-gnu/faketime"];
    folders.iter().map(|folder| Path::new(folder).join("libfaketime.so.1")).find(|path| path.exists())
}

/// What a program gives at a time of the clock. The library puts it in place of the real one, for files too.
fn at(time: &str, library: &Path, command: &mut Command) -> Run {
    command.env("LD_PRELOAD", library).env("FAKETIME", time).stdin(Stdio::null());
    Run::of(command.output().unwrap())
}

#[test]
fn the_clock_changes_nothing() {
    let Some(library) = libfaketime() else {
        #[allow(clippy::disallowed_methods)] // Whether a missing program is a failure.
        let ci = std::env::var_os("CI");
        assert!(ci.is_none(), "libfaketime is missing; ci/tools/install installs it");
        println!("skipped: libfaketime is not installed");
        return;
    };
    let mut results = Vec::new();
    // Before the files of the test were made, and after 32-bit clocks have ended.
    for (time, year) in [("@1999-12-31 23:59:59", "1999"), ("@2039-02-03 04:05:06", "2039")] {
        let told = at(time, &library, Command::new("date").arg("+%Y")).exits(0);
        assert_eq!(told.stdout.trim(), year, "the clock is not another one");
        let sandbox = sandbox("settings: {gitops: both}\n", false);
        spack_tree(&sandbox.path("tree"));
        helper(&sandbox.path("busybox"));
        sandbox
            .write(
                "views/v/view.yaml",
                "platforms: [linux/amd64]\nrecipe: r\nhelper: {linux/amd64: busybox}\ntags: [{name: t}]\n",
            )
            .write("recipes/r/recipe.yaml", "kind: tree\ntrees: {linux/amd64: {path: tree}}\n");
        at(time, &library, &mut sandbox.command(["build", "--no-sync"])).exits(0);
        at(time, &library, &mut sandbox.command(["view", "build", "v", "-o", "layout"])).exits(0);
        results.push((files(&sandbox.path("generated")), files(&sandbox.path("layout"))));
    }
    let [(bundles, layout), (bundles_later, layout_later)] = &results[..] else { panic!("two times") };
    assert!(layout.contains_key("index.json") && layout.len() > 8, "{:?}", layout.keys());
    assert_eq!(layout.keys().collect::<Vec<_>>(), layout_later.keys().collect::<Vec<_>>());
    assert!(layout == layout_later, "a layout has the time in it");
    assert_eq!(bundles.keys().collect::<Vec<_>>(), bundles_later.keys().collect::<Vec<_>>());
    assert!(bundles == bundles_later, "bundles have the time in them");
}
