//! Engines and their faults, with a stand-in that does what a test tells it to.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use flux_gen::diag::SourceMap;
use flux_gen::spec::BuildRecipe;
use flux_gen::spec::pins::ImagePins;
use flux_gen::view::engine::{self, BuildOptions, Built, Choice, Engine, Event, Job, Kind, check, diagnostic, find};
use flux_gen::view::recipe::{Arch, Plan, plan, resolve};

use crate::fetching::fetcher;
use crate::shipped::load;

/// A container engine that keeps a log, knows which containers and images there are, and misbehaves where `fault` says so.
const STAND_IN: &str = r#"#!/bin/sh
here=${0%/*}
name=${0##*/}
echo "$*" >> "$here/log"
case "$1" in --context|--connection) shift 2 ;; esac
fault=$(cat "$here/fault" 2>/dev/null)
last=; for last; do :; done
at() { case "$fault" in "$1 "*) eval "${fault#* }" ;; esac; }
# The name that follows --name.
named() { while [ $# -gt 0 ]; do if [ "$1" = --name ]; then echo "$2"; fi; shift; done; }
case "$1" in
    --version) at version; echo "$name version 28.2.2, build 1" ;;
    info|version)
        case "$*" in
            *ersion}}) at daemon; echo 28.2.2 ;;
            *) at machine; echo "${MACHINE:-amd64}" ;;
        esac ;;
    inspect|image) [ -e "$here/image" ] ;;
    from|create) at from; touch "$here/containers/$(named "$@")" ;;
    cp) case "$last" in */tree.tar) at tree; echo the tree > "$last" ;; esac ;;
    copy) ;;
    start|run)
        case "$*" in
            *"system"*) at system; echo "installing" ;;
            *"run.sh"*|*"flux-gen-hello"*)
                case "$*" in
                    *"cat /flux-gen/tree.tar") at tree; echo the tree ;;
                    *) echo "==> flux-gen step 1 of 2: flux 1"; at build; echo "==> flux-gen step 2 of 2: the view" ;;
                esac ;;
        esac ;;
    commit) touch "$here/image" ;;
    rm) rm "$here/containers/$last" 2>/dev/null ;;
    *) echo "unknown: $*"; exit 9 ;;
esac
"#;

const RECIPE: &str = "kind: source
systems:
  one:
    base: localhost/base:1
    apt: [gcc]
packages:
  - name: flux
    version: \"1\"
    folder: src
";

/// An error as users see it.
fn shown(error: &engine::BuildError) -> String {
    let told = diagnostic(error);
    format!("{}: {} ({})", told.code.id, told.message, told.help.unwrap())
}

/// An engine, a recipe and a cache.
struct Bench {
    folder: tempfile::TempDir,
    kind: Kind,
}

impl Bench {
    fn new(kind: Kind) -> Self {
        let bench = Self { folder: tempfile::tempdir().unwrap(), kind };
        let program = bench.bin().join(kind.program());
        fs::create_dir_all(bench.bin().join("containers")).unwrap();
        fs::write(&program, STAND_IN).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir_all(bench.recipe().join("src")).unwrap();
        fs::write(bench.recipe().join("src/Makefile"), "all:\n").unwrap();
        bench
    }

    fn bin(&self) -> PathBuf {
        self.folder.path().join("bin")
    }

    fn recipe(&self) -> PathBuf {
        self.folder.path().join("recipes/hello")
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    fn fault(&self, fault: &str) -> &Self {
        fs::write(self.bin().join("fault"), fault).unwrap();
        self
    }

    fn engine(&self) -> Engine {
        Engine { kind: self.kind, program: self.bin().join(self.kind.program()).display().to_string(), at: None }
    }

    fn plan(&self, text: &str) -> Plan {
        self.plan_for(text, Arch::Amd64)
    }

    fn plan_for(&self, text: &str, arch: Arch) -> Plan {
        let mut sources = SourceMap::new();
        let (written, mut diagnostics) = BuildRecipe::read(&mut sources, "r", text.as_bytes().to_vec());
        let recipe = resolve("hello", &self.recipe(), &written.unwrap(), &ImagePins::new(), &mut diagnostics).unwrap();
        plan(&recipe, "one", arch).unwrap()
    }

    /// Builds with some engine for some architecture; gives the tree and the events, or the error as it is shown.
    fn build_with(&self, engine: &Engine, arch: Arch, allow_emulation: bool) -> Result<(String, Vec<Event>), String> {
        let plan = self.plan_for(RECIPE, arch);
        let options =
            BuildOptions { cache: self.cache(), engine: engine.clone(), jobs: 3, allow_emulation, again: false };
        let fetcher = fetcher(&self.cache(), Vec::new());
        let mut events = Vec::new();
        let built = engine::build(&plan, &self.recipe(), &fetcher, &options, &mut |e| events.push(e), &mut |_, _| {});
        let built = built.map_err(|error| shown(&error))?;
        Ok((fs::read_to_string(built.tree).unwrap(), events))
    }

    /// Builds and returns the tree or the error as it is shown, and the events.
    fn build(&self) -> (Result<Built, String>, Vec<Event>) {
        let plan = self.plan(RECIPE);
        let fetcher = fetcher(&self.cache(), Vec::new());
        let options =
            BuildOptions { cache: self.cache(), engine: self.engine(), jobs: 3, allow_emulation: false, again: false };
        let mut events = Vec::new();
        let built = engine::build(&plan, &self.recipe(), &fetcher, &options, &mut |e| events.push(e), &mut |_, _| {});
        (built.map_err(|error| shown(&error)), events)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.bin().join("log")).unwrap_or_default()
    }

    fn names(&self, folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).into_iter().flatten();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn containers(&self) -> Vec<String> {
        self.names(&self.bin().join("containers"))
    }

    /// Nothing half done: no tree, no work folder.
    fn is_clean(&self) {
        assert_eq!(self.names(&self.cache().join("trees")), Vec::<String>::new());
        assert_eq!(self.names(&self.cache().join("work")), Vec::<String>::new());
    }
}

#[test]
fn a_build_is_kept_and_not_made_twice() {
    for kind in [Kind::Buildah, Kind::Podman, Kind::Docker] {
        let bench = Bench::new(kind);
        let (built, events) = bench.build();
        let built = built.unwrap();
        assert_eq!(fs::read_to_string(&built.tree).unwrap(), "the tree\n");
        assert_eq!(bench.containers(), Vec::<String>::new());
        let step = Event::Step { number: 1, count: 2, title: "flux 1".to_owned() };
        assert!(events.contains(&step), "{events:?}");
        assert!(fs::read_to_string(built.log.unwrap()).unwrap().contains("==> flux-gen step 2 of 2: the view"));
        assert!(bench.log().contains("--network=none"), "{}", bench.log());
        let calls = bench.log().lines().count();
        assert_eq!(bench.build().0.unwrap().log, None);
        assert_eq!(bench.log().lines().count(), calls);
        assert_eq!(bench.names(&bench.cache().join("work")), Vec::<String>::new());
        // Another recipe on the same system needs no packages again.
        fs::write(bench.recipe().join("src/Makefile"), "all: other\n").unwrap();
        bench.build().0.unwrap();
        let installed = bench.log().lines().filter(|l| l.contains("commit")).count();
        assert_eq!(installed, 1, "{}", bench.log());
    }
}

#[test]
fn engines_that_cannot_be_used() {
    let bench = Bench::new(Kind::Docker);
    for (fault, expect) in [
        ("version echo 'docker version 19.3.1'; exit", "FG857: docker 19.3 is too old; 20.10 or newer is needed"),
        ("version echo 'docker, who knows'; exit", "FG856: no container engine: "),
        ("daemon echo 19.3.1; exit", "FG857: the daemon of docker 19.3 is too old; 20.10 or newer is needed"),
        ("daemon echo 0.0.0; exit", "its version is not understood: 0.0.0"),
        ("version echo 'broken' >&2; exit 4", "failed with exit code 4: broken"),
        ("machine echo 'Cannot connect to the daemon' >&2; exit 1", "Cannot connect to the daemon"),
        ("machine echo arm64; exit", "FG898: the engine is on a machine for arm64, and the view is for amd64"),
    ] {
        let error = bench.fault(fault).build().0.unwrap_err();
        assert!(error.contains(expect), "{fault}: {error}");
        bench.is_clean();
    }
    let warning = check(&bench.engine(), Arch::Amd64, true).unwrap().unwrap();
    assert_eq!(warning, "docker emulates amd64 on arm64: five to ten times as slow, and some programs fail");
    assert_eq!(bench.fault("").build().0.map(|_| ()), Ok(()));

    let empty = tempfile::tempdir().unwrap();
    let error = find(None, empty.path().as_os_str()).unwrap_err();
    assert_eq!(error.to_string(), "no container engine: buildah, podman, docker (not in PATH)");
    assert_eq!(diagnostic(&error).code.id, "FG856");
    let choice: Choice = "docker:arm".parse().unwrap();
    let found = find(Some(&choice), bench.bin().as_os_str()).unwrap();
    assert_eq!((found.kind, found.at.as_deref()), (Kind::Docker, Some("arm")));
    assert_eq!(found.version()[1..], ["--context", "arm", "--version"]);
}

#[test]
fn a_failing_step_shows_its_end_and_the_way_inside() {
    for (kind, inside) in [
        (Kind::Buildah, "buildah run -t flux-gen-hello-one-amd64-"),
        (Kind::Podman, "podman commit flux-gen-hello-one-amd64-"),
    ] {
        let bench = Bench::new(kind);
        let error = bench.fault("build seq 40; echo 'make: *** [all] Error 2'; exit 2").build().0.unwrap_err();
        assert!(error.starts_with("FG858: step `flux 1` failed; its last lines:\n  | 22\n"), "{error}");
        assert!(error.contains("\n  | make: *** [all] Error 2 (all output is in "), "{error}");
        assert!(error.contains(inside), "{error}");
        // Kept to look inside, and gone with the next build of the recipe, which has been mended by then and has another key.
        assert_eq!(bench.containers().len(), 1);
        bench.is_clean();
        fs::write(bench.recipe().join("src/Makefile"), "all: other\n").unwrap();
        bench.fault("").build().0.unwrap();
        assert_eq!(bench.containers(), Vec::<String>::new());
    }
}

#[test]
fn other_ends_leave_nothing() {
    for (fault, expect) in [
        ("build kill -9 $$", "FG859: "),
        ("build exit 137", "was ended by signal 9"),
        (
            "system echo 'E: write: No space left on device' >&2; exit 100",
            "FG895: no space left: E: write: No space left on device",
        ),
        ("from echo 'Error: no space left on device'; exit 125", "FG895: "),
        ("tree echo 'half'; echo 'disk quota exceeded' >&2; exit 1", "FG895: "),
    ] {
        let bench = Bench::new(Kind::Buildah);
        let error = bench.fault(fault).build().0.unwrap_err();
        assert!(error.contains(expect), "{fault}: {error}");
        bench.is_clean();
        assert_eq!(bench.containers(), Vec::<String>::new(), "{fault}");
        bench.fault("").build().0.unwrap();
    }
}

#[test]
fn downloads_that_fail_stop_before_the_engine_starts() {
    let bench = Bench::new(Kind::Buildah);
    let file = bench.folder.path().join("a.tar");
    fs::write(&file, "content").unwrap();
    for (url, expect) in [
        (format!("file://{}", file.display()), "FG896"),
        ("file:///nowhere/a.tar".to_owned(), "FG897"),
        ("http://127.0.0.1:1/a.tar".to_owned(), "FG897"),
    ] {
        let source = format!("source:\n      url: {url}\n      sha256: {}", "0".repeat(64));
        let plan = bench.plan(&RECIPE.replace("folder: src", &source));
        let fetcher = fetcher(&bench.cache(), Vec::new());
        let options = BuildOptions {
            cache: bench.cache(),
            engine: bench.engine(),
            jobs: 1,
            allow_emulation: false,
            again: false,
        };
        let error = engine::build(&plan, &bench.recipe(), &fetcher, &options, &mut |_| {}, &mut |_, _| {}).unwrap_err();
        assert_eq!(diagnostic(&error).code.id, expect, "{error}");
        assert_eq!(bench.log().lines().filter(|l| !l.contains("--version")).count(), 0, "{}", bench.log());
        bench.is_clean();
    }
}

#[test]
fn a_recipe_that_changes_meanwhile_and_a_cache_that_is_a_file() {
    let bench = Bench::new(Kind::Buildah);
    let plan = bench.plan(RECIPE);
    fs::write(bench.recipe().join("src/Makefile"), "all: other\n").unwrap();
    let fetcher = fetcher(&bench.cache(), Vec::new());
    let mut options =
        BuildOptions { cache: bench.cache(), engine: bench.engine(), jobs: 1, allow_emulation: false, again: false };
    let build = |options: &BuildOptions| {
        let error = engine::build(&plan, &bench.recipe(), &fetcher, options, &mut |_| {}, &mut |_, _| {}).unwrap_err();
        diagnostic(&error).code.id
    };
    assert_eq!(build(&options), "FG855");
    bench.is_clean();
    options.cache = bench.recipe().join("src/Makefile");
    assert_eq!(build(&options), "FG899");
}

#[test]
fn two_builds_of_one_key_share_the_work() {
    let bench = Bench::new(Kind::Podman);
    bench.fault("build sleep 0.3");
    let built = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| built.lock().unwrap().push(bench.build().0.unwrap().log.is_some()));
        }
    });
    let made = built.lock().unwrap().iter().filter(|b| **b).count();
    assert_eq!(made, 1, "{}", bench.log());
}

/// Each waits in its step until the other has come to its own, so one after the other they would never end.
#[test]
fn builds_of_different_keys_run_side_by_side() {
    let bench = Bench::new(Kind::Podman);
    bench.fault(
        "build touch \"$here/in-$$\"; n=0; while [ $(ls \"$here\" | grep -c '^in-') -lt 2 ]; do \
         n=$((n+1)); [ $n -lt 1200 ] || exit 9; sleep 0.05; done",
    );
    let plans = ["\"1\"", "\"2\""].map(|version| bench.plan(&RECIPE.replace("\"1\"", version)));
    assert_eq!(plans[0].system_key, plans[1].system_key);
    std::thread::scope(|scope| {
        for plan in &plans {
            scope.spawn(|| {
                let options = BuildOptions {
                    cache: bench.cache(),
                    engine: bench.engine(),
                    jobs: 1,
                    allow_emulation: false,
                    again: false,
                };
                let fetcher = fetcher(&bench.cache(), Vec::new());
                engine::build(plan, &bench.recipe(), &fetcher, &options, &mut |_| {}, &mut |_, _| {}).unwrap();
            });
        }
    });
    let systems = bench.log().lines().filter(|line| line.starts_with("commit ")).count();
    assert_eq!(systems, 1, "the system's packages are installed once: {}", bench.log());
}

/// The program killed in the middle of a build: its watchdog removes the container and the files.
#[test]
fn a_killed_program_leaves_nothing() {
    for signal in ["-TERM", "-KILL", "-INT"] {
        let bench = Bench::new(Kind::Podman);
        fs::write(bench.recipe().join("recipe.yaml"), RECIPE).unwrap();
        bench.fault("build echo $$ > \"$here/started.new\"; mv \"$here/started.new\" \"$here/started\"; exec sleep 60");
        let path = format!("{}:{}", bench.bin().display(), std::env::var("PATH").unwrap());
        // A shell lets what it starts in the background ignore SIGINT, and so would everything below these tests.
        let mut program = Command::new("env")
            .args(["--default-signal=INT", env!("CARGO_BIN_EXE_flux-gen")])
            .args(["recipe", "build", "hello", "--arch", "amd64", "--engine", "podman", "--recipes"])
            .arg(bench.folder.path().join("recipes"))
            .arg("--cache")
            .arg(bench.cache())
            .env("PATH", path)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let started = bench.bin().join("started");
        wait_for(|| started.exists());
        assert_eq!(bench.containers().len(), 1);
        assert!(Command::new("kill").args([signal, &program.id().to_string()]).status().unwrap().success());
        program.wait().unwrap();
        wait_for(|| bench.containers().is_empty() && bench.names(&bench.cache().join("work")).is_empty());
        bench.is_clean();
        // What the engine was running has ended too, which a daemon far away would not see otherwise. A process that nobody
        // has waited for has no command line any more.
        let engine = fs::read_to_string(&started).unwrap();
        let command = PathBuf::from(format!("/proc/{}/cmdline", engine.trim()));
        wait_for(|| fs::read(&command).unwrap_or_default().is_empty());
    }
}

/// Without --arch what the machine can compile is built, and the rest is told; who names an architecture gets it or an error.
#[test]
fn other_machines_are_left_to_others() {
    let bench = Bench::new(Kind::Podman);
    fs::write(bench.recipe().join("recipe.yaml"), RECIPE).unwrap();
    let build = |more: &[&str]| {
        let path = format!("{}:{}", bench.bin().display(), std::env::var("PATH").unwrap());
        let output = Command::new(env!("CARGO_BIN_EXE_flux-gen"))
            .args(["recipe", "build", "hello", "--engine", "podman", "--recipes"])
            .arg(bench.folder.path().join("recipes"))
            .arg("--cache")
            .arg(bench.cache())
            .args(more)
            .env("PATH", path)
            .output()
            .unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, trees, told) = build(&[]);
    assert_eq!(code, Some(0), "{told}");
    assert!(trees.lines().count() == 1 && trees.contains("/trees/hello-one-amd64-"), "{trees}");
    assert!(told.contains("warning[FG898]: hello-one-arm64-"), "{told}");
    assert!(told.contains("is not built: the engine is on a machine for amd64"), "{told}");
    assert!(told.contains("--arch arm64 --engine docker:CONTEXT"), "{told}");
    assert!(told.contains("1 tree built, 1 not"), "{told}");
    let (code, trees, told) = build(&["--arch", "arm64"]);
    assert_eq!((code, trees.as_str()), (Some(1), ""), "{told}");
    assert!(told.contains("error[FG898]: the engine is on a machine for amd64, and the view is for arm64"), "{told}");
    // With permission both are built.
    let (code, trees, told) = build(&["--allow-emulation"]);
    assert_eq!((code, trees.lines().count()), (Some(0), 2), "{told}");
}

fn wait_for(condition: impl Fn() -> bool) {
    for _ in 0..200 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("it does not come to that");
}

/// A BuildKit daemon far away, as `buildctl` shows it.
const BUILDCTL: &str = r#"#!/bin/sh
here=${0%/*}
echo "$*" >> "$here/log"
fault=$(cat "$here/fault" 2>/dev/null)
[ "$1" = --addr ] && shift 2
case "$1" in
    debug)
        case "$2" in
            info) echo 'BuildKit: github.com/moby/buildkit v0.12.5 bac3f2b' ;;
            workers) echo "${fault:-arm64}" ;;
        esac ;;
    build)
        for word; do case "$word" in type=local,dest=*) out=${word#type=local,dest=} ;; esac; done
        echo '#9 [step-1 3/3] RUN --network=none bash /flux-gen/steps/010-flux.sh' >&2
        case "$fault" in
            gone) echo 'error: connection refused' >&2; exit 1 ;;
            step) echo '#9 0.215 make: *** [all] Error 2' >&2
                echo 'error: failed to solve: process "/bin/sh -c bash /flux-gen/steps/010-flux.sh" did not complete successfully: exit code: 2' >&2
                exit 1 ;;
        esac
        echo 'the tree' > "$out/tree.tar" ;;
    *) exit 9 ;;
esac
"#;

/// A machine of the right architecture behind a docker context, a podman connection or a BuildKit address needs no emulation.
#[test]
fn a_native_machine_far_away() {
    for (text, place) in [
        ("docker:arm", "--context arm"),
        ("podman:arm", "--connection arm"),
        ("buildkit:tcp://arm:1234", "--addr tcp://arm:1234"),
    ] {
        let choice: Choice = text.parse().unwrap();
        let bench = Bench::new(choice.kind);
        if choice.kind == Kind::Buildkit {
            fs::write(bench.bin().join("buildctl"), BUILDCTL).unwrap();
        } else {
            bench.fault("machine echo arm64; exit");
        }
        let engine = find(Some(&choice), bench.bin().as_os_str()).unwrap();
        let built = bench.build_with(&engine, Arch::Arm64, false);
        assert_eq!(built.as_ref().map(|(tree, _)| tree.as_str()), Ok("the tree\n"), "{text}");
        let events = built.unwrap().1;
        assert!(!events.iter().any(|e| matches!(e, Event::Warning(_))), "{events:?}");
        let step = Event::Step { number: 1, count: 2, title: "flux 1".to_owned() };
        assert!(events.contains(&step), "{events:?}");
        assert!(bench.log().lines().all(|line| line.starts_with(place)), "{}", bench.log());
        assert!(bench.log().contains("linux/arm64"), "{}", bench.log());
        // The same machine for the other architecture would emulate: not without being allowed, and never silently.
        let refused = bench.build_with(&engine, Arch::Amd64, false).unwrap_err();
        assert!(
            refused.starts_with("FG898: the engine is on a machine for arm64, and the view is for amd64"),
            "{refused}"
        );
        let (_, events) = bench.build_with(&engine, Arch::Amd64, true).unwrap();
        assert!(matches!(&events[0], Event::Warning(text) if text.contains("emulates amd64 on arm64")), "{events:?}");
    }
    let bench = Bench::new(Kind::Buildkit);
    fs::write(bench.bin().join("buildctl"), BUILDCTL).unwrap();
    let engine = find(Some(&"buildkit:tcp://arm:1".parse().unwrap()), bench.bin().as_os_str()).unwrap();
    let lost = bench.fault("gone").build_with(&engine, Arch::Arm64, true).unwrap_err();
    assert!(lost.starts_with("FG858: ") && lost.contains("connection refused"), "{lost}");
    bench.is_clean();
    // BuildKit keeps nothing of a step that fails: the command gets what it found.
    let failed = bench.fault("step").build_with(&engine, Arch::Arm64, true).unwrap_err();
    assert!(failed.starts_with("FG858: step `flux 1` failed; its last lines:\n  | "), "{failed}");
    let (_, command) = failed.split_once("to get the files as they were before this step: ").unwrap();
    assert!(command.contains("buildctl --addr tcp://arm:1 build --progress=plain"), "{command}");
    assert!(command.contains(" --opt target=step-0 --output type=tar,dest="), "{command}");
    // Its context is still there, and the stage is one of it; the next build removes both.
    let folder = command.split_once("--local context=").unwrap().1.split(' ').next().unwrap();
    let containerfile = fs::read_to_string(Path::new(folder).join("Containerfile")).unwrap();
    assert!(containerfile.contains("\nFROM system AS step-0\n"), "{containerfile}");
    bench.fault("").build_with(&engine, Arch::Arm64, true).unwrap();
    assert_eq!(bench.names(&bench.cache().join("work")), Vec::<String>::new());
}

/// What each engine is asked, for one plan. A review of these lines is a review of the adapters.
#[test]
fn commands_of_the_engines() {
    let plan = plan(&load("flux"), "ubuntu-noble", Arch::Arm64).unwrap();
    let mut job = Job::new(&plan, Path::new("/work"), 8, false);
    job.container = "C".to_owned();
    job.system_container = "S".to_owned();
    job.system_image = "I".to_owned();
    let at = |kind, at: Option<&str>| Engine { kind, program: kind.program().to_owned(), at: at.map(str::to_owned) };
    let mut text = String::new();
    for engine in [
        at(Kind::Buildah, None),
        at(Kind::Podman, Some("far")),
        at(Kind::Docker, Some("arm")),
        at(Kind::Buildkit, Some("tcp://arm:1234")),
    ] {
        text.push_str(&format!("{}\n", engine.kind.name()));
        for action in engine.make_system(&job).into_iter().chain(engine.build(&job)) {
            match action {
                engine::Action::Phase(phase) => text.push_str(&format!("  # {phase}\n")),
                engine::Action::Run(words) => text.push_str(&format!("  {}\n", words.join(" "))),
                engine::Action::RunIntoTree(words) => text.push_str(&format!("  {} > tree\n", words.join(" "))),
            }
        }
        for words in engine.cleanup(&job) {
            text.push_str(&format!("  {}\n", words.join(" ")));
        }
    }
    crate::shipped::golden("engines.txt", &text);
    // The same once more: nothing of BuildKit's own cache but the system's packages.
    let steps = (0..=plan.steps.len()).map(|step| format!("step-{step}")).collect::<Vec<_>>().join(",");
    let again = at(Kind::Buildkit, Some("tcp://arm:1234")).build(&Job::new(&plan, Path::new("/work"), 8, true));
    let Some(engine::Action::Run(words)) = again.last() else { panic!("{again:?}") };
    assert!(words.ends_with(&["--opt".to_owned(), format!("no-cache={steps}")]), "{words:?}");
}
