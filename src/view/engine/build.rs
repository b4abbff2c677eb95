//! From a plan to a tree: downloads, the engine's commands, an archive in the cache.
//!
//! The archive gets its final name, the key, only when all of it is there. Two builds of one key share the work, builds of
//! different keys run side by side.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::adapter::{Action, Engine, Job};
use super::error::{BuildError, Inside};
use super::find::check;
use super::kept;
use super::run::{Event, RunError, Runner, remove_folder};
use crate::bundle::sha256_hex;
use crate::view::recipe::fetch::{FetchEvent, Fetcher};
use crate::view::recipe::{Download, Plan, Step};

/// How to build.
#[derive(Debug, Clone)]
pub struct BuildOptions {
    /// Folder for downloads, trees, logs.
    pub cache: PathBuf,
    /// The engine.
    pub engine: Engine,
    /// Processes that `make` may run at once.
    pub jobs: usize,
    /// Whether another processor may be emulated.
    pub allow_emulation: bool,
    /// Whether a tree of the cache is made anew.
    pub again: bool,
}

/// A tree that was built or found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The archive: `opt/software`, `opt/views`, `opt/view`.
    pub tree: PathBuf,
    /// Its log; `None` when the cache had it.
    pub log: Option<PathBuf>,
}

/// Builds the tree of a plan, unless the cache has it.
///
/// # Errors
/// One [`BuildError`]. Downloads and the image with the system's packages are kept for the next attempt; nothing that is
/// half done has a final name.
pub fn build(
    plan: &Plan,
    recipe_folder: &Path,
    fetcher: &Fetcher,
    options: &BuildOptions,
    events: &mut dyn FnMut(Event),
    fetch_events: &mut dyn FnMut(&Download, FetchEvent),
) -> Result<Built, BuildError> {
    let cache = Cache::new(&options.cache)?;
    let tree = cache.trees.join(format!("{}.tar", plan.key));
    let _lock = cache.lock(&plan.key, events)?;
    if tree.exists() && !options.again {
        return Ok(Built { tree, log: None });
    }
    if let Some(warning) = check(&options.engine, plan.arch, options.allow_emulation)? {
        events(Event::Warning(warning));
    }
    for download in &plan.downloads {
        fetcher.fetch(download, &mut |event| fetch_events(download, event))?;
    }
    let work = cache.work.join(&plan.key);
    remove_folder(&work).map_err(BuildError::File)?;
    let out = work.join("out");
    let made = fs::create_dir_all(&out).map_err(|e| file_error(&out, e));
    let made = made.and_then(|()| write_context(plan, recipe_folder, Some(fetcher), &work.join("context")));
    let built = made.and_then(|()| in_engine(plan, options, &cache, &work, &tree, events));
    if matches!(&built, Err(BuildError::Run { inside: Some(Inside::Before(_)), .. })) {
        // The command that was told needs it. The next build removes it.
        return built.map(|log| Built { tree, log: Some(log) });
    }
    let removed = remove_folder(&work).map_err(BuildError::File);
    let log = built?;
    removed?;
    Ok(Built { tree, log: Some(log) })
}

/// Folders of the cache.
struct Cache {
    trees: PathBuf,
    logs: PathBuf,
    locks: PathBuf,
    work: PathBuf,
    kept: PathBuf,
}

impl Cache {
    fn new(root: &Path) -> Result<Self, BuildError> {
        let folder = |name: &str| -> Result<PathBuf, BuildError> {
            let path = root.join(name);
            fs::create_dir_all(&path).map_err(|e| file_error(&path, e))?;
            // Engines are told absolute names.
            fs::canonicalize(&path).map_err(|e| file_error(&path, e))
        };
        Ok(Self {
            trees: folder("trees")?,
            logs: folder("logs")?,
            locks: folder("locks")?,
            work: folder("work")?,
            kept: folder("kept")?,
        })
    }

    /// Holds a lock until it is dropped, or until this process ends.
    fn lock(&self, name: &str, events: &mut dyn FnMut(Event)) -> Result<File, BuildError> {
        if let Some(file) = self.try_lock(name)? {
            return Ok(file);
        }
        events(Event::Waiting);
        let path = self.locks.join(name);
        let file = File::create(&path).map_err(|e| file_error(&path, e))?;
        file.lock().map_err(|e| file_error(&path, e))?;
        Ok(file)
    }

    /// The same, when nobody holds it.
    fn try_lock(&self, name: &str) -> Result<Option<File>, BuildError> {
        let path = self.locks.join(name);
        let file = File::create(&path).map_err(|e| file_error(&path, e))?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) => Err(file_error(&path, e)),
        }
    }
}

fn file_error(path: &Path, source: io::Error) -> BuildError {
    BuildError::File(RunError::file(path, source))
}

/// Writes everything that the engine needs into a new folder: scripts, sources, the Containerfile.
///
/// # Errors
/// When a file cannot be written, or one of the recipe is not as it was when the plan was made.
pub fn write_context(
    plan: &Plan,
    recipe_folder: &Path,
    fetcher: Option<&Fetcher>,
    folder: &Path,
) -> Result<(), BuildError> {
    let write = |name: &str, bytes: &[u8]| -> Result<PathBuf, BuildError> {
        let path = folder.join(name);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(|e| file_error(parent, e))?;
        fs::write(&path, bytes).map_err(|e| file_error(&path, e))?;
        Ok(path)
    };
    for (name, text) in &plan.files {
        write(name, text.as_bytes())?;
    }
    write("Containerfile", plan.containerfile.as_bytes())?;
    let parent = folder.join("parent/flux-gen");
    fs::create_dir_all(&parent).map_err(|e| file_error(&parent, e))?;
    for (name, source) in &plan.patches {
        let path = recipe_folder.join(source);
        let bytes = fs::read(&path).map_err(|e| file_error(&path, e))?;
        if !sha256_hex(&bytes).starts_with(name.trim_end_matches(".patch")) {
            return Err(BuildError::Changed(source.clone()));
        }
        write(&format!("build/patches/{name}"), &bytes)?;
    }
    for files in &plan.folders {
        for (file, digest) in &files.digests {
            let path = recipe_folder.join(&files.name).join(file);
            let bytes = fs::read(&path).map_err(|e| file_error(&path, e))?;
            if sha256_hex(&bytes) != digest.trim_start_matches("x:") {
                return Err(BuildError::Changed(format!("{}/{file}", files.name)));
            }
            let written = write(&format!("build/folders/{}/{file}", files.name), &bytes)?;
            if digest.starts_with("x:") {
                use std::os::unix::fs::PermissionsExt;
                let executable = fs::Permissions::from_mode(0o755);
                fs::set_permissions(&written, executable).map_err(|e| file_error(&written, e))?;
            }
        }
    }
    if let Some(fetcher) = fetcher {
        let sources = folder.join("build/sources");
        fs::create_dir_all(&sources).map_err(|e| file_error(&sources, e))?;
        for download in &plan.downloads {
            let (from, to) = (fetcher.path(download), sources.join(&download.file));
            // A second name costs nothing; on another file system it has to be a copy.
            if fs::hard_link(&from, &to).is_err() {
                fs::copy(&from, &to).map_err(|e| file_error(&to, e))?;
            }
        }
    }
    Ok(())
}

fn in_engine(
    plan: &Plan,
    options: &BuildOptions,
    cache: &Cache,
    work: &Path,
    tree: &Path,
    events: &mut dyn FnMut(Event),
) -> Result<PathBuf, BuildError> {
    let engine = &options.engine;
    let job = Job::new(plan, work, options.jobs, options.again);
    let mut system_lock = Some(cache.lock(&format!("system-{}", plan.system_key), events)?);
    let log = cache.logs.join(format!("{}.log", plan.key));
    let mut runner = Runner::new(&log, &plan.steps, events).map_err(BuildError::File)?;
    let cleanup = engine.cleanup(&job);
    runner.watch(&cleanup, work).map_err(BuildError::File)?;
    // Containers of an earlier run that failed or was cut off.
    clean(&mut runner, &cleanup);
    remove_kept(engine, cache, &plan.key, &mut runner)?;
    let made = work.join("out/tree.tar");
    let done = commands(engine, &job, &made, &mut runner, &mut system_lock);
    if let Err((mut error, container)) = done {
        let inside = keep(plan, engine, &job, cache, &container, &mut error);
        if !matches!(inside, Some(Inside::Container(_))) {
            clean(&mut runner, &cleanup);
        }
        runner.finish();
        return Err(BuildError::Run { error: Box::new(error), log: log.display().to_string(), inside });
    }
    clean(&mut runner, &cleanup);
    runner.finish();
    let synced = File::open(&made).and_then(|file| file.sync_all());
    synced.map_err(|e| file_error(&made, e))?;
    fs::rename(&made, tree).map_err(|e| file_error(tree, e))?;
    Ok(log)
}

/// Finds the step whose script a failed command names in the end of its output, for engines that run each step themselves, and
/// gives the error its title.
fn name_step(plan: &Plan, error: &mut RunError) -> Option<usize> {
    let RunError::Failed { tail, step, .. } = error else { return None };
    let named = |line: &String| {
        let script = |s: &Step| format!("/flux-gen/steps/{}\" did not complete", s.file);
        plan.steps.iter().position(|step| line.contains(&script(step)))
    };
    let index = tail.iter().rev().find_map(named)?;
    *step = Some(plan.steps.get(index)?.title.clone());
    Some(index)
}

/// What stays of a failed step to look at, and the command for it: its container, or with `BuildKit`, which has none, the files
/// that were sent. Nothing when the next build could not know of it.
fn keep(
    plan: &Plan,
    engine: &Engine,
    job: &Job,
    cache: &Cache,
    container: &str,
    error: &mut RunError,
) -> Option<Inside> {
    if !matches!(error, RunError::Failed { .. }) {
        return None;
    }
    let inside = match engine.look_inside(container) {
        Some(command) => Inside::Container(command),
        None => Inside::Before(engine.files_before(job, name_step(plan, error)?)?),
    };
    kept::remember(&cache.kept, &plan.key, &engine.choice(), container).ok()?;
    Some(inside)
}

/// Removes what earlier failures of the recipe have left to look at.
fn remove_kept(engine: &Engine, cache: &Cache, key: &str, runner: &mut Runner<'_>) -> Result<(), BuildError> {
    for kept in kept::of(&cache.kept, key, &engine.choice()).map_err(BuildError::File)? {
        // Our own key has been cleaned up already; who holds the lock of another one is building that.
        let own = kept.key == key;
        let lock = if own { None } else { cache.try_lock(&kept.key)? };
        if lock.is_some() {
            clean(runner, engine.remove(&kept.container).as_slice());
            remove_folder(&cache.work.join(&kept.key)).map_err(BuildError::File)?;
        }
        if own || lock.is_some() {
            kept::forget(&cache.kept, &kept.key).map_err(BuildError::File)?;
        }
    }
    Ok(())
}

fn clean(runner: &mut Runner<'_>, commands: &[Vec<String>]) {
    for command in commands {
        // That there is nothing to remove is the rule.
        runner.succeeds(command);
    }
}

/// Runs all commands; an error comes with the container that it happened in. Others may build on the same system as soon as
/// its image is there: then the lock is given back.
fn commands(
    engine: &Engine,
    job: &Job,
    tree: &Path,
    runner: &mut Runner<'_>,
    system_lock: &mut Option<File>,
) -> Result<(), (RunError, String)> {
    let there = engine.has_system(job).is_some_and(|probe| runner.succeeds(&probe));
    if !there {
        for action in engine.make_system(job) {
            perform(&action, tree, runner).map_err(|e| (e, job.system_container.clone()))?;
        }
    }
    drop(system_lock.take());
    for action in engine.build(job) {
        perform(&action, tree, runner).map_err(|e| (e, job.container.clone()))?;
    }
    Ok(())
}

fn perform(action: &Action, tree: &Path, runner: &mut Runner<'_>) -> Result<(), RunError> {
    match action {
        Action::Phase(text) => {
            runner.say(Event::Phase((*text).to_owned()));
            Ok(())
        }
        Action::Run(command) => runner.run(command),
        Action::RunIntoTree(command) => runner.run_into(command, tree),
    }
}
