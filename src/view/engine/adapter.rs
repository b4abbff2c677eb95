//! What each container engine is asked, as argument vectors. Thin: everything that all of them share is in
//! [`super::build`].

use std::path::Path;

use crate::model::words::join;
use crate::view::recipe::{Arch, Plan, stage_before};

/// Name of a container engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// buildah: no daemon.
    Buildah,
    /// podman: no daemon, or a remote connection.
    Podman,
    /// docker: a daemon here or behind a context.
    Docker,
    /// A `BuildKit` daemon by its address.
    Buildkit,
}

impl Kind {
    /// All of them, in the order in which they are looked for. A `BuildKit` daemon is used only when it is named.
    pub const ALL: [Self; 4] = [Self::Buildah, Self::Podman, Self::Docker, Self::Buildkit];

    /// Its name in `--engine`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Buildah => "buildah",
            Self::Podman => "podman",
            Self::Docker => "docker",
            Self::Buildkit => "buildkit",
        }
    }

    /// The program that is run.
    #[must_use]
    pub fn program(self) -> &'static str {
        if self == Self::Buildkit { "buildctl" } else { self.name() }
    }

    /// The first version that has all that is used here.
    #[must_use]
    pub fn minimum(self) -> (u64, u64) {
        match self {
            // `run --env`.
            Self::Buildah => (1, 24),
            // netavark and `--pull` with a value.
            Self::Podman => (4, 0),
            // `create --platform --pull`.
            Self::Docker => (20, 10),
            // `RUN --network` in the built-in frontend.
            Self::Buildkit => (0, 11),
        }
    }
}

/// What is built, in an engine's terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Image to build in.
    pub base: String,
    /// Image with the system's packages; kept for later builds.
    pub system_image: String,
    /// Container in which the system's packages are installed.
    pub system_container: String,
    /// Container of the build.
    pub container: String,
    /// Architecture of the result.
    pub arch: Arch,
    /// Whether steps of the recipe need the network.
    pub network: bool,
    /// Processes that `make` may run at once.
    pub jobs: usize,
    /// Folder with `system/`, `build/` and `Containerfile`.
    pub context: String,
    /// Folder for what an engine writes.
    pub output: String,
    /// Stages of the Containerfile that are made anew though the engine has them in a cache of its own.
    pub anew: Vec<String>,
}

impl Job {
    /// The job of a plan in a folder, with the engine's files in its `context`; `again` when nothing of an earlier build may be
    /// used but the system's packages.
    #[must_use]
    pub fn new(plan: &Plan, folder: &Path, jobs: usize, again: bool) -> Self {
        let stages = 0..=plan.steps.len();
        Self {
            base: plan.base.clone(),
            system_image: format!("localhost/flux-gen/system:{}", plan.system_key),
            system_container: format!("flux-gen-system-{}", plan.system_key),
            container: format!("flux-gen-{}", plan.key),
            arch: plan.arch,
            network: plan.steps.iter().any(|s| s.network.is_some()),
            jobs,
            context: folder.join("context").display().to_string(),
            output: folder.join("out").display().to_string(),
            anew: if again { stages.map(stage_before).collect() } else { Vec::new() },
        }
    }

    fn platform(&self) -> String {
        format!("linux/{}", self.arch)
    }
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Say what comes.
    Phase(&'static str),
    /// Run a command.
    Run(Vec<String>),
    /// Run a command with its output into the archive of the tree.
    RunIntoTree(Vec<String>),
}

/// An engine that was chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Engine {
    /// Which one.
    pub kind: Kind,
    /// Its program.
    pub program: String,
    /// The docker context, podman connection or `BuildKit` address.
    pub at: Option<String>,
}

impl Engine {
    /// The program with the words that say where, and more words.
    fn call(&self, words: &[&str]) -> Vec<String> {
        let mut call = vec![self.program.clone()];
        if let Some(at) = &self.at {
            let option = match self.kind {
                Kind::Docker => Some("--context"),
                Kind::Podman => Some("--connection"),
                Kind::Buildkit => Some("--addr"),
                Kind::Buildah => None,
            };
            call.extend(option.map(|o| [o.to_owned(), at.clone()]).into_iter().flatten());
        }
        call.extend(words.iter().map(|w| (*w).to_owned()));
        call
    }

    /// As `--engine` takes it.
    #[must_use]
    pub fn choice(&self) -> String {
        let at = self.at.iter().map(|at| format!(":{at}"));
        std::iter::once(self.kind.name().to_owned()).chain(at).collect()
    }

    /// Prints its version. All that is used of `BuildKit` is in the daemon: there it is the daemon's.
    #[must_use]
    pub fn version(&self) -> Vec<String> {
        self.call(if self.kind == Kind::Buildkit { &["debug", "info"] } else { &["--version"] })
    }

    /// Prints the version of the daemon that does the work, which may be older than the program; `None` when there is none, or
    /// [`Self::version`] has asked it.
    #[must_use]
    pub fn daemon(&self) -> Option<Vec<String>> {
        match self.kind {
            Kind::Podman => Some(self.call(&["info", "--format", "{{.Version.Version}}"])),
            Kind::Docker => Some(self.call(&["version", "--format", "{{.Server.Version}}"])),
            Kind::Buildah | Kind::Buildkit => None,
        }
    }

    /// Prints the architecture of its machine; `None` when there is no such question.
    #[must_use]
    pub fn machine(&self) -> Option<Vec<String>> {
        match self.kind {
            // It runs where flux-gen runs.
            Kind::Buildah => None,
            Kind::Podman => Some(self.call(&["info", "--format", "{{.Host.Arch}}"])),
            Kind::Docker => Some(self.call(&["version", "--format", "{{.Server.Arch}}"])),
            // Its workers list what they emulate too; the first platform is their own.
            Kind::Buildkit => Some(self.call(&[
                "debug",
                "workers",
                "--format",
                "{{with index . 0}}{{with index .Platforms 0}}{{.Architecture}}{{end}}{{end}}",
            ])),
        }
    }

    /// Succeeds when the image with the system's packages is there; `None` when the engine keeps its own cache.
    #[must_use]
    pub fn has_system(&self, job: &Job) -> Option<Vec<String>> {
        match self.kind {
            Kind::Buildah => Some(self.call(&["inspect", "--type", "image", &job.system_image])),
            Kind::Podman | Kind::Docker => Some(self.call(&["image", "inspect", &job.system_image])),
            Kind::Buildkit => None,
        }
    }

    /// Makes the image with the system's packages.
    #[must_use]
    pub fn make_system(&self, job: &Job) -> Vec<Action> {
        let (name, platform) = (job.system_container.as_str(), job.platform());
        let folder = format!("{}/system", job.context);
        match self.kind {
            Kind::Buildah => vec![
                Action::Phase("base image"),
                Action::Run(self.call(&["from", "--name", name, "--platform", &platform, "--pull=missing", &job.base])),
                Action::Phase("packages of the system"),
                Action::Run(self.call(&["copy", "--quiet", name, &folder, "/flux-gen/system"])),
                Action::Run(self.call(&["run", "--network=host", name, "--", "bash", "/flux-gen/system/system.sh"])),
                Action::Run(self.call(&["commit", "--quiet", name, &job.system_image])),
                Action::Run(self.call(&["rm", name])),
            ],
            Kind::Podman | Kind::Docker => vec![
                Action::Phase("base image"),
                Action::Run(self.call(&[
                    "create",
                    "--name",
                    name,
                    "--platform",
                    &platform,
                    "--network=host",
                    "--pull=missing",
                    "--entrypoint=",
                    &job.base,
                    "bash",
                    "/flux-gen/system/system.sh",
                ])),
                Action::Phase("packages of the system"),
                Action::Run(self.call(&["cp", &format!("{}/parent/.", job.context), &format!("{name}:/")])),
                Action::Run(self.call(&["cp", &folder, &format!("{name}:/flux-gen/system")])),
                Action::Run(self.call(&["start", "--attach", name])),
                Action::Run(self.call(&["commit", name, &job.system_image])),
                Action::Run(self.call(&["rm", name])),
            ],
            Kind::Buildkit => Vec::new(),
        }
    }

    /// Builds the tree.
    #[must_use]
    pub fn build(&self, job: &Job) -> Vec<Action> {
        let name = job.container.as_str();
        let network = if job.network { "--network=host" } else { "--network=none" };
        let jobs = format!("FLUX_GEN_JOBS={}", job.jobs);
        let (run, platform) = ("/flux-gen/run.sh", job.platform());
        let tree = "/flux-gen/tree.tar";
        match self.kind {
            Kind::Buildah => vec![
                Action::Run(self.call(&[
                    "from",
                    "--name",
                    name,
                    "--platform",
                    &platform,
                    "--pull=never",
                    &job.system_image,
                ])),
                Action::Run(self.call(&["copy", "--quiet", name, &format!("{}/build", job.context), "/flux-gen"])),
                Action::Phase("steps of the recipe"),
                Action::Run(self.call(&["run", network, "--env", &jobs, name, "--", "bash", run])),
                Action::Phase("tree"),
                Action::RunIntoTree(self.call(&["run", "--network=none", name, "--", "cat", tree])),
            ],
            Kind::Podman | Kind::Docker => vec![
                Action::Run(self.call(&[
                    "create",
                    "--name",
                    name,
                    "--platform",
                    &platform,
                    network,
                    "--env",
                    &jobs,
                    "--pull=never",
                    "--entrypoint=",
                    &job.system_image,
                    "bash",
                    run,
                ])),
                Action::Run(self.call(&["cp", &format!("{}/build/.", job.context), &format!("{name}:/flux-gen")])),
                Action::Phase("steps of the recipe"),
                Action::Run(self.call(&["start", "--attach", name])),
                Action::Phase("tree"),
                Action::Run(self.call(&["cp", &format!("{name}:{tree}"), &format!("{}/tree.tar", job.output)])),
            ],
            Kind::Buildkit => {
                vec![Action::Phase("base image, packages, steps"), Action::Run(self.buildctl(job, &platform))]
            }
        }
    }

    fn buildctl(&self, job: &Job, platform: &str) -> Vec<String> {
        let output = format!("type=local,dest={}", job.output);
        let anew = format!("no-cache={}", job.anew.join(","));
        let mut more = vec!["--output", output.as_str()];
        // Without a value it would mean all stages, and the system's packages are one.
        if !job.anew.is_empty() {
            more.extend(["--opt", anew.as_str()]);
        }
        self.buildctl_to(job, platform, &more)
    }

    fn buildctl_to(&self, job: &Job, platform: &str, more: &[&str]) -> Vec<String> {
        let local = |name: &str| format!("{name}={}", job.context);
        let mut call = self.call(&[
            "build",
            "--progress=plain",
            "--frontend=dockerfile.v0",
            "--local",
            &local("context"),
            "--local",
            &local("dockerfile"),
            "--opt",
            "filename=Containerfile",
            "--opt",
            &format!("platform={platform}"),
            "--opt",
            &format!("build-arg:FLUX_GEN_JOBS={}", job.jobs),
        ]);
        call.extend(more.iter().map(|word| (*word).to_owned()));
        call
    }

    /// Removes the containers of a build; fails where there are none.
    #[must_use]
    pub fn cleanup(&self, job: &Job) -> Vec<Vec<String>> {
        [&job.system_container, &job.container].into_iter().filter_map(|name| self.remove(name)).collect()
    }

    /// Removes a container; fails when there is none.
    #[must_use]
    pub fn remove(&self, container: &str) -> Option<Vec<String>> {
        match self.kind {
            Kind::Buildah => Some(self.call(&["rm", container])),
            Kind::Podman | Kind::Docker => Some(self.call(&["rm", "--force", container])),
            // The daemon ends a build whose client is gone.
            Kind::Buildkit => None,
        }
    }

    /// The command with which a user gets the files that a step found, by its index in the plan, as an archive: a whole system
    /// file by file takes longer, and needs root for the owners. `None` when the engine keeps
    /// the container of a failed step, which [`Self::look_inside`] is for. The job's context has to stay.
    #[must_use]
    pub fn files_before(&self, job: &Job, step: usize) -> Option<String> {
        if self.kind != Kind::Buildkit {
            return None;
        }
        let target = format!("target={}", stage_before(step));
        let output = format!("type=tar,dest={}/before.tar", job.output);
        Some(join(&self.buildctl_to(job, &job.platform(), &["--opt", &target, "--output", &output])))
    }

    /// The command with which a user looks into the container of a failed step; `None` when nothing is kept.
    #[must_use]
    pub fn look_inside(&self, container: &str) -> Option<String> {
        let line = |words: &[&str]| join(&self.call(words));
        match self.kind {
            Kind::Buildah => Some(line(&["run", "-t", container, "--", "bash"])),
            Kind::Podman | Kind::Docker => {
                let image = "localhost/flux-gen/failed";
                let (commit, run) = (line(&["commit", container, image]), line(&["run", "--rm", "-it", image, "bash"]));
                Some(format!("{commit} && {run}; {}", line(&["rmi", image])))
            }
            Kind::Buildkit => None,
        }
    }
}
