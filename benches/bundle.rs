//! The bars of writing and checking, as ratios within one run: 1,000 clusters against `cp -r`, `cat` and `kubectl kustomize`.
//!
//! `cargo bench --bench bundle [-- CLUSTERS]`. Prints; passes and fails nothing, because a busy machine is no defect.
//!
//! Each round writes to a folder of its own and nothing is removed before the end: ext4 passes over inodes that were freed
//! in the last minutes one by one, so after a removal both we and `cp` take many times as long, by chance.

#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::panic, clippy::print_stdout, clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;

fn main() {
    let clusters = std::env::args().skip(1).find_map(|arg| arg.parse().ok()).unwrap_or(1000);
    let folder = tempfile::tempdir().unwrap();
    let bench = Bench { folder: folder.path().to_owned() };
    bench.specs(clusters);
    bench.single();
    bench.many(clusters);
}

struct Bench {
    folder: PathBuf,
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
    fn specs(&self, clusters: usize) {
        let examples = self.folder.join("examples");
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
    }

    fn run(&self, program: &str, args: &[&str]) -> Took {
        let begin = Instant::now();
        let mut child = Command::new(program)
            .args(args)
            .current_dir(&self.folder)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let status = PathBuf::from(format!("/proc/{}/status", child.id()));
        let watched = std::thread::spawn(move || watch(&status));
        let mut error = String::new();
        std::io::Read::read_to_string(child.stderr.as_mut().unwrap(), &mut error).unwrap();
        let done = child.wait().unwrap();
        let time = begin.elapsed();
        assert!(done.success(), "{program} {args:?}: {error}");
        Took { time, memory: watched.join().unwrap() }
    }

    fn flux_gen(&self, args: &[&str]) -> Took {
        self.run(env!("CARGO_BIN_EXE_flux-gen"), args)
    }

    fn shell(&self, script: &str) -> Took {
        self.run("sh", &["-c", script])
    }

    /// The best of some rounds, which are numbered: what the machine can do when nobody disturbs it.
    fn best(&self, run: impl Fn(&Self, usize) -> Took) -> Took {
        let all: Vec<Took> = (0..ROUNDS).map(|round| run(self, round)).collect();
        let memory = all.iter().map(|took| took.memory).max().unwrap_or_default();
        Took { time: all.iter().map(|took| took.time).min().unwrap_or_default(), memory }
    }

    fn single(&self) {
        let spec = "examples/lammps-00000.yaml";
        let build = self.best(|b, i| b.flux_gen(&["build", spec, "-o", &format!("one-{i}"), "--no-sync", "-q"]));
        let stdout = self.best(|b, _| b.flux_gen(&["build", spec, "--stdout"]));
        println!("one spec, whole process (bar: 5 ms)");
        line("build --no-sync", build, None);
        line("build --stdout", stdout, None);
    }

    fn many(&self, clusters: usize) {
        let first = self.best(|b, i| b.flux_gen(&["build", "--no-sync", "-q", "-o", &format!("new-{i}")]));
        self.flux_gen(&["build", "-q"]);
        let copy = self.best(|b, i| b.shell(&format!("cp -r generated copy-{i}")));
        let again = self.best(|b, _| b.flux_gen(&["build", "--no-sync", "-q"]));
        let cat = self.best(|b, _| b.shell("cat generated/*/*/* > /dev/null"));
        let find = self.best(|b, _| b.shell("find generated -type f -print0 | xargs -0 cat > /dev/null"));
        let check = self.best(|b, _| b.flux_gen(&["check", "-q"]));
        let synced = self.best(|b, i| b.flux_gen(&["build", "-q", "-o", &format!("synced-{i}")]));
        let stdout = self.best(|b, _| b.flux_gen(&["build", "--stdout", "-q"]));
        let (files, bytes) = size(&self.folder.join("generated"));
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
            let kustomize = self.run("kubectl", &["kustomize", "generated/team-0"]);
            line("kubectl kustomize of a tenth", kustomize, Some(("build --stdout of all", stdout)));
        }
    }
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
