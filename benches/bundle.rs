//! The bars of writing and checking, as ratios within one run: 1,000 clusters against `cp -r`, `cat` and `kubectl kustomize`.
//!
//! `cargo bench --bench bundle [-- CLUSTERS]`. Prints; passes and fails nothing, because a busy machine is no defect.
//!
//! Each round writes to a folder of its own and nothing is removed before the end: ext4 passes over inodes that were freed
//! in the last minutes one by one, so after a removal both we and `cp` take many times as long, by chance.

#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const FLUX_GEN: &str = env!("CARGO_BIN_EXE_flux-gen");
const ROUNDS: usize = 5;
/// A run that takes some milliseconds is disturbed by less.
const SINGLE_ROUNDS: usize = 30;

fn main() {
    let clusters = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(1000);
    Bench::with_specs(1).single();
    Bench::with_specs(clusters).many(clusters);
}

/// A project in a folder of its own.
struct Bench {
    folder: tempfile::TempDir,
}

/// What one run took.
#[derive(Clone, Copy)]
struct Took {
    time: Duration,
    /// Most memory in kB, as far as it was seen.
    memory: u64,
}

impl Bench {
    /// One file per cluster, in ten namespaces, with what real ones have.
    fn with_specs(clusters: usize) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let examples = folder.path().join("examples");
        std::fs::create_dir(&examples).unwrap();
        for i in 0..clusters {
            let text = format!(
                "apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\nmetadata:\n  name: lammps-{i}\n  namespace: team-{}\n\
                 spec:\n  size: 4\n  maxSize: 8\n  tasks: 4\n  logging:\n    timed: true\n  flux:\n    optionFlags: \"-ompi=openmpi@5\"\n\
                 \x20 containers:\n  - image: ghcr.io/converged-computing/metric-lammps:latest\n    workingDir: /opt/lammps/examples/reaxff/HNS\n\
                 \x20   command: lmp -v x {} -v y 2 -v z 2 -in in.reaxc.hns -nocite\n    environment:\n      OMP_NUM_THREADS: \"1\"\n\
                 \x20   resources:\n      limits:\n        cpu: \"4\"\n        memory: 8Gi\n    commands:\n      pre: . /etc/profile.d/mpi.sh\n\
                 \x20 services:\n  - image: redis:7\n    name: registry\n    ports: [6379]\n",
                i % 10,
                i % 7 + 1
            );
            std::fs::write(examples.join(format!("lammps-{i:05}.yaml")), text).unwrap();
        }
        Self { folder }
    }

    /// Starts a program in the folder of the bench; `{}` in its arguments is the round's number.
    fn start(&self, program: &str, args: &[&str], round: usize) -> Child {
        Command::new(program)
            .args(args.iter().map(|arg| arg.replace("{}", &round.to_string())))
            .current_dir(self.folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// The best time of some rounds, what the machine can do when nobody disturbs it; then the memory in one more round, because
    /// who looks at a process's memory stops it for that while.
    fn best(&self, rounds: usize, program: &str, args: &[&str]) -> Took {
        let times = (0..rounds).map(|round| {
            let begin = Instant::now();
            finish(self.start(program, args, round));
            begin.elapsed()
        });
        let time = times.min().unwrap_or_default();
        let child = self.start(program, args, rounds);
        let status = PathBuf::from(format!("/proc/{}/status", child.id()));
        let watched = std::thread::spawn(move || watch(&status));
        finish(child);
        Took { time, memory: watched.join().unwrap() }
    }

    fn flux_gen(&self, args: &[&str]) -> Took {
        self.best(ROUNDS, FLUX_GEN, args)
    }

    fn shell(&self, script: &str) -> Took {
        self.best(ROUNDS, "sh", &["-c", script])
    }

    fn single(&self) {
        let build = self.best(SINGLE_ROUNDS, FLUX_GEN, &["build", "-o", "one-{}", "--no-sync", "-q"]);
        let stdout = self.best(SINGLE_ROUNDS, FLUX_GEN, &["build", "--stdout"]);
        let nothing = self.best(SINGLE_ROUNDS, "true", &[]);
        println!("one spec, whole process (bar: 5 ms)");
        line("build --no-sync", build, None);
        line("build --stdout", stdout, None);
        line("true", nothing, None);
    }

    fn many(&self, clusters: usize) {
        let first = self.flux_gen(&["build", "--no-sync", "-q", "-o", "new-{}"]);
        finish(self.start(FLUX_GEN, &["build", "-q"], 0));
        let copy = self.shell("cp -r generated copy-{}");
        let again = self.flux_gen(&["build", "--no-sync", "-q"]);
        let cat = self.shell("cat generated/*/*/* > /dev/null");
        let find = self.shell("find generated -type f -print0 | xargs -0 cat > /dev/null");
        let check = self.flux_gen(&["check", "-q"]);
        let synced = self.flux_gen(&["build", "-q", "-o", "synced-{}"]);
        let stdout = self.flux_gen(&["build", "--stdout", "-q"]);
        let (files, bytes) = size(&self.folder.path().join("generated"));
        println!("\n{clusters} clusters: {files} files, {} kB", bytes / 1000);
        line("cp -r of the result", copy, None);
        line("build --no-sync, new (bar: 2 x cp -r)", first, Some(("cp -r", copy)));
        line("build --no-sync, nothing changed", again, Some(("cp -r", copy)));
        line("build with sync, new", synced, Some(("cp -r", copy)));
        line("build --stdout", stdout, None);
        line("cat of the result", cat, None);
        line("find | xargs cat", find, None);
        line("check (bar: 3 x cat)", check, Some(("cat", cat)));
        if Command::new("kubectl").arg("version").arg("--client").output().is_ok() {
            let kustomize = self.best(1, "kubectl", &["kustomize", "generated/team-0"]);
            line("kubectl kustomize of a tenth", kustomize, Some(("build --stdout of all", stdout)));
        }
    }
}

/// Waits for its end, which has to be a good one.
fn finish(mut child: Child) {
    let mut error = String::new();
    std::io::Read::read_to_string(child.stderr.as_mut().unwrap(), &mut error).unwrap();
    assert!(child.wait().unwrap().success(), "{error}");
}

/// The most memory that a process was seen with.
fn watch(status: &Path) -> u64 {
    let mut most = 0;
    while let Ok(text) = std::fs::read_to_string(status) {
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        let Some(peak) = peak else { break };
        most = most.max(peak);
        std::thread::sleep(Duration::from_millis(2));
    }
    most
}

fn line(name: &str, took: Took, against: Option<(&str, Took)>) {
    let ratio =
        against.map(|(what, other)| format!("  {:.2} x {what}", took.time.as_secs_f64() / other.time.as_secs_f64()));
    println!(
        "  {name:<40} {:>9.1} ms  {:>6.1} MB{}",
        took.time.as_secs_f64() * 1000.0,
        took.memory as f64 / 1000.0,
        ratio.unwrap_or_default()
    );
}

/// Files and bytes below a folder.
fn size(folder: &Path) -> (usize, u64) {
    let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.fold((0, 0), |(files, bytes), entry| {
        let metadata = entry.metadata().unwrap();
        if metadata.is_dir() {
            let inner = size(&entry.path());
            (files + inner.0, bytes + inner.1)
        } else {
            (files + 1, bytes + metadata.len())
        }
    })
}
