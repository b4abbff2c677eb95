//! Every single step of a write fails, or is the last one before a kill.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::*;
use flux_gen::bundle::FileTree;
use flux_gen::bundle::check::check;
use flux_gen::bundle::files::{Disk, Entry, Files};
use flux_gen::bundle::layout::Kept;
use flux_gen::bundle::report::{FileError, Report};
use flux_gen::bundle::write::{WriteOptions, write};
use serde_json::json;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The step fails; later ones work.
    Error,
    /// The step fails, and nothing works any more.
    Kill,
}

/// The real file system with one fault.
struct Faulty {
    fault: Fault,
    at: usize,
    steps: AtomicUsize,
    can_exchange: bool,
    can_link: bool,
}

impl Faulty {
    fn new(fault: Fault, at: usize, can_exchange: bool, can_link: bool) -> Self {
        Self { fault, at, steps: AtomicUsize::new(0), can_exchange, can_link }
    }

    /// Counts a step that changes something.
    fn step(&self) -> io::Result<()> {
        let now = self.steps.fetch_add(1, Ordering::SeqCst);
        let fails = match self.fault {
            Fault::Error => now == self.at,
            Fault::Kill => now >= self.at,
        };
        if fails { Err(io::Error::other("injected")) } else { Ok(()) }
    }
}

impl Files for Faulty {
    fn list(&self, folder: &Path) -> io::Result<Option<Vec<Entry>>> {
        Disk.list(folder)
    }
    fn read(&self, file: &Path) -> io::Result<Option<Vec<u8>>> {
        Disk.read(file)
    }
    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        self.step()?;
        Disk.make_folder(folder)
    }
    fn create(&self, file: &Path, bytes: &[u8], durable: bool) -> io::Result<()> {
        if let Err(e) = self.step() {
            // The first failing write leaves half a file.
            if self.steps.load(Ordering::SeqCst) == self.at + 1 {
                Disk.create(file, &bytes[..bytes.len() / 2], false)?;
            }
            return Err(e);
        }
        // What a power failure does cannot be tried here, so waiting for the disk is only counted.
        let _ = durable;
        Disk.create(file, bytes, false)
    }
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        if self.can_link { Disk.link(from, to) } else { Err(io::ErrorKind::Unsupported.into()) }
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step()?;
        Disk.rename(from, to)
    }
    fn exchange(&self, one: &Path, other: &Path) -> io::Result<()> {
        self.step()?;
        if self.can_exchange { Disk.exchange(one, other) } else { Err(io::ErrorKind::Unsupported.into()) }
    }
    fn remove_file(&self, file: &Path) -> io::Result<()> {
        self.step()?;
        Disk.remove_file(file)
    }
    fn remove_folder(&self, folder: &Path) -> io::Result<()> {
        self.step()?;
        Disk.remove_folder(folder)
    }
    fn sync_folder(&self, _folder: &Path) -> io::Result<()> {
        self.step()
    }
    fn sync_file_system(&self, _folder: &Path) -> io::Result<()> {
        self.step()
    }
}

fn claim(name: &str) -> flux_gen::bundle::Companion {
    let value =
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": "hpc"}});
    companion("pvc.yaml", value)
}

/// Before: four clusters. After: one changed, one the same, one new, two gone, one of them with foreign files.
fn trees() -> (FileTree, FileTree) {
    let before = [
        bundle(Some("hpc"), "changed", "1"),
        bundle(Some("hpc"), "same", "1"),
        bundle(Some("hpc"), "gone", "1"),
        bundle(Some("old"), "gone", "1"),
    ];
    let after = [
        plain(bundle(Some("hpc"), "changed", "2")),
        bundle(Some("hpc"), "same", "1"),
        bundle(Some("new"), "fresh", "1"),
    ];
    (tree(&before, &[claim("a"), claim("b")]), tree(&after, &[claim("b"), claim("c")]))
}

/// Writes what others put there.
fn add_foreign(root: &Path) -> BTreeMap<String, Vec<u8>> {
    for folder in ["hpc/changed", "hpc/gone"] {
        std::fs::write(root.join(folder).join("notes.txt"), folder).unwrap();
        std::fs::create_dir(root.join(folder).join("plots")).unwrap();
        std::fs::write(root.join(folder).join("plots/a.png"), folder).unwrap();
        std::os::unix::fs::symlink("notes.txt", root.join(folder).join("link")).unwrap();
    }
    std::fs::write(root.join("README"), "mine").unwrap();
    let foreign = snapshot(root).into_iter();
    foreign.filter(|(path, _)| ["notes.txt", "a.png", "link", "README"].iter().any(|end| path.ends_with(end))).collect()
}

fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            std::fs::create_dir(&target).unwrap();
            copy(&source, &target);
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(std::fs::read_link(&source).unwrap(), &target).unwrap();
        } else {
            std::fs::write(&target, std::fs::read(&source).unwrap()).unwrap();
        }
    }
}

fn run(files: &impl Files, root: &Path, tree: &FileTree, durable: bool) -> Result<Report, FileError> {
    // One thread, so that the same step comes at the same count each time.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| write(files, root, tree, &Kept::default(), WriteOptions { force: false, durable }))
}

fn assert_foreign(now: &BTreeMap<String, Vec<u8>>, foreign: &BTreeMap<String, Vec<u8>>, when: &str) {
    for (path, bytes) in foreign {
        assert_eq!(now.get(path), Some(bytes), "{when}: {path}");
    }
}

fn every_step(fault: Fault, can_exchange: bool, can_link: bool) {
    let (before, after) = trees();
    let template = quick_folder();
    run(&Disk, template.path(), &before, false).unwrap();
    let foreign = add_foreign(template.path());
    let strict = can_exchange && can_link;
    let mut steps = 0;
    loop {
        let folder = quick_folder();
        let root = folder.path();
        copy(template.path(), root);
        let faulty = Faulty::new(fault, steps, can_exchange, can_link);
        let result = run(&faulty, root, &after, true);
        let over = faulty.steps.load(Ordering::SeqCst) <= steps;
        let when = format!("{fault:?} at step {steps}, exchange {can_exchange}, links {can_link}");
        let now = snapshot(root);
        if can_exchange {
            assert_old_or_new(&now, &before, &after, &when);
            assert_kustomizations(&now, &before, &after, &when);
        }
        if strict {
            // Folders of others are moved after the exchange, so a kill may leave them in the work folder until the next run.
            let files: BTreeMap<_, _> = foreign.iter().filter(|(path, _)| path.ends_with("notes.txt")).collect();
            for (path, bytes) in files {
                assert_eq!(now.get(path), Some(bytes), "{when}: {path}");
            }
        }
        if result.is_err() && snapshot(root).keys().any(|path| path.starts_with(".flux-gen")) {
            assert!(check(&Disk, root, &after, &Kept::default()).unwrap().has_drift(), "{when}");
        }
        // The next run brings everything about, forward or back.
        for (next, name) in [(&after, "after"), (&before, "before")] {
            let other = quick_folder();
            copy(root, other.path());
            let report = run(&Disk, other.path(), next, false).unwrap();
            assert!(report.conflicts.is_empty(), "{when}, then {name}: {:?}", report.conflicts);
            let mut wanted = files_of(next);
            wanted.extend(foreign.clone());
            let found = snapshot(other.path());
            assert_foreign(&found, &foreign, &format!("{when}, then {name}"));
            assert_eq!(found.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>(), "{when}, then {name}");
            assert!(found == wanted, "{when}, then {name}");
        }
        if over {
            assert!(result.is_ok());
            break;
        }
        if result.is_ok() {
            let mut wanted = files_of(&after);
            wanted.extend(foreign.clone());
            assert!(now == wanted, "{when}: {:?}", now.keys());
        }
        steps += 1;
    }
    assert!(steps > 100, "only {steps} steps");
    println!("{fault:?}, exchange {can_exchange}, links {can_link}: {steps} steps");
}

#[test]
fn a_kill_at_every_step() {
    every_step(Fault::Kill, true, true);
}

#[test]
fn an_error_at_every_step() {
    every_step(Fault::Error, true, true);
}

#[test]
fn a_kill_at_every_step_without_exchange() {
    every_step(Fault::Kill, false, true);
}

#[test]
fn a_kill_at_every_step_without_links() {
    every_step(Fault::Kill, true, false);
}

#[test]
fn an_error_at_every_step_without_exchange_and_links() {
    every_step(Fault::Error, false, false);
}

#[test]
fn nothing_is_touched_before_everything_new_is_written() {
    let (before, after) = trees();
    let template = quick_folder();
    run(&Disk, template.path(), &before, false).unwrap();
    let old = snapshot(template.path());
    // Of errors while the new files are written nothing remains.
    let mut errors = 0;
    for step in 0..24 {
        let folder = quick_folder();
        copy(template.path(), folder.path());
        // A failed link is no error: the file is written instead.
        if run(&Faulty::new(Fault::Error, step, true, true), folder.path(), &after, true).is_err() {
            assert_eq!(snapshot(folder.path()), old, "step {step}");
            errors += 1;
        }
    }
    assert!(errors > 10, "{errors}");
}

#[test]
fn writers_wait_for_each_other() {
    let (before, after) = trees();
    let folder = quick_folder();
    std::thread::scope(|scope| {
        for round in 0..8 {
            let (tree, root) = (if round % 2 == 0 { &before } else { &after }, folder.path());
            scope.spawn(move || {
                for _ in 0..10 {
                    let report =
                        write(&Disk, root, tree, &Kept::default(), WriteOptions { force: false, durable: false });
                    assert!(report.unwrap().conflicts.is_empty());
                }
            });
        }
    });
    let now = snapshot(folder.path());
    assert!(now == files_of(&before) || now == files_of(&after), "{:?}", now.keys());
}
