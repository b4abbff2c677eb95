//! Making and starting one container with podman.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::context::{Context, Pod};
use crate::env::{self, Env};
use crate::net::Sandbox;
use crate::podman::{self, Image, args};
use crate::spec::expand::expand;
use crate::spec::{Container, quantity};
use crate::volumes::{self, Source};

/// Where a container's files on this machine are.
#[derive(Debug, Clone)]
pub struct Paths {
    /// conmon's log.
    pub cri_log: PathBuf,
    /// The plain log that tests read.
    pub plain_log: PathBuf,
    /// The termination message.
    pub message: PathBuf,
    /// The folder of this attempt.
    pub dir: PathBuf,
    pid: PathBuf,
}

/// A started container.
pub struct Started {
    /// podman's id.
    pub id: String,
    /// Its first process, as this machine numbers it.
    pub pid: i32,
    /// The signal that asks it to end.
    pub image: Image,
    /// Its files.
    pub paths: Paths,
}

/// Why a container did not start.
#[derive(Debug)]
pub enum StartError {
    /// It waits with this reason and message, and is tried again.
    Wait(&'static str, String),
    /// It counts as ended (`StartError`, exit code 128).
    Failed(String),
}

/// What a start needs to know beside the container itself.
pub struct Start<'a> {
    /// The podlet.
    pub ctx: &'a Context,
    /// The pod.
    pub pod: &'a Pod,
    /// The pod's namespaces.
    pub sandbox: &'a Sandbox,
    /// The pod's folder.
    pub dir: &'a Path,
    /// The pod's volumes.
    pub sources: &'a BTreeMap<String, Source>,
}

impl Start<'_> {
    /// Starts `container` for the `attempt`-th time (0 is the first).
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn run(&self, container: &Container, attempt: u32) -> Result<Started, StartError> {
        let image = self.image(container)?;
        self.check_user(container, &image)?;
        let config = |m: String| StartError::Wait("CreateContainerConfigError", m);
        let env = env::build(self.ctx, self.pod, container, self.sandbox.ip).map_err(|e| config(e.to_string()))?;
        let paths = self.paths(container, attempt).map_err(|e| config(e.to_string()))?;
        let command = self.create_args(container, attempt, &image, &env, &paths).map_err(config)?;
        let create = |e: podman::PodmanError| StartError::Wait("CreateContainerError", e.to_string());
        let id = podman::run(&command).map_err(create)?;
        if let Some(dir) = &container.working_dir {
            self.make_working_dir(&id, dir, container).map_err(|m| StartError::Wait("CreateContainerError", m))?;
        }
        self.ctx.logs.follow(&paths.cri_log, &paths.plain_log);
        if let Err(e) = podman::run_in(&paths.dir, &args(["start", &id])) {
            let leftover = podman::remove(&id).err().map(|e| format!("; {e}")).unwrap_or_default();
            return Err(StartError::Failed(format!("{e}{leftover}")));
        }
        let pid = fs::read_to_string(&paths.pid).ok().and_then(|t| t.trim().parse().ok()).unwrap_or(0);
        Ok(Started { id, pid, image, paths })
    }

    fn image(&self, container: &Container) -> Result<Image, StartError> {
        let reference = &container.image;
        let local = self.ctx.options.images.local(reference);
        match self.ctx.local.get(local) {
            Ok(Some(image)) => Ok(image),
            Ok(None) if container.image_pull_policy.as_deref() == Some("Never") => Err(StartError::Wait(
                "ErrImageNeverPull",
                format!("Container image {reference:?} is not present with pull policy of Never"),
            )),
            Ok(None) => Err(StartError::Wait(
                "ErrImagePull",
                format!("image {reference:?} is not on this machine, and podlet never pulls"),
            )),
            Err(e) => Err(StartError::Wait("ImageInspectError", e.to_string())),
        }
    }

    /// `runAsNonRoot`, as the kubelet checks it before the container is made.
    fn check_user(&self, container: &Container, image: &Image) -> Result<(), StartError> {
        let (own, pod) = (&container.security_context, &self.pod.spec.security_context);
        if !own.run_as_non_root.or(pod.run_as_non_root).unwrap_or(false) {
            return Ok(());
        }
        let refuse = |m: &str| Err(StartError::Wait("CreateContainerConfigError", m.to_owned()));
        let user = image.user.split(':').next().unwrap_or_default();
        match own.run_as_user.or(pod.run_as_user) {
            Some(0) => refuse("container's runAsUser breaks non-root policy"),
            Some(_) => Ok(()),
            None if user.is_empty() || user == "0" => refuse("container has runAsNonRoot and image will run as root"),
            None if user.parse::<u32>().is_err() => {
                refuse("container has runAsNonRoot and image has non-numeric user, cannot verify user is non-root")
            }
            None => Ok(()),
        }
    }

    fn paths(&self, container: &Container, attempt: u32) -> std::io::Result<Paths> {
        let dir = self.dir.join("containers").join(&container.name).join(attempt.to_string());
        fs::create_dir_all(&dir)?;
        let message = dir.join("termination-log");
        fs::write(&message, "")?;
        // The container may run as any user.
        fs::set_permissions(&message, std::os::unix::fs::PermissionsExt::from_mode(0o666))?;
        let meta = &self.pod.meta;
        let logs = self.ctx.options.state.join("logs").join(&meta.namespace).join(&meta.name);
        Ok(Paths {
            cri_log: dir.join("cri.log"),
            plain_log: logs.join(format!("{}.log", container.name)),
            message,
            pid: dir.join("pid"),
            dir,
        })
    }

    fn create_args(
        &self,
        container: &Container,
        attempt: u32,
        image: &Image,
        env: &Env,
        paths: &Paths,
    ) -> Result<Vec<String>, String> {
        let uid = &self.pod.meta.uid;
        let name = format!("podlet-{uid}-{}-{attempt}", container.name);
        let mut a = args(["create", "--pull", "never", "--name", &name]);
        a.extend(args(["--systemd", "false", "--http-proxy=false", "--no-healthcheck"]));
        a.extend(args(["--unsetenv", "container", "--log-driver", "k8s-file", "--log-opt"]));
        a.push(format!("path={}", paths.cri_log.display()));
        a.extend(["--pidfile".to_owned(), paths.pid.display().to_string()]);
        let labels = [
            podman::label(&self.ctx.options.state),
            format!("podlet.pod={}", self.pod.id()),
            format!("podlet.container={}", container.name),
        ];
        a.extend(labels.into_iter().flat_map(|l| ["--label".to_owned(), l]));
        self.namespaces(&mut a);
        self.security(&mut a, container);
        if self.ctx.options.limits {
            limits(&mut a, container);
        }
        self.volumes(&mut a, container, env, paths)?;
        self.plain_accounts(&mut a, container, image, paths)?;
        let has_term = container.tty || env.contains_key("TERM") || image.env.iter().any(|n| n == "TERM");
        if !has_term {
            a.extend(args(["--unsetenv", "TERM"]));
        }
        a.extend(["--env".to_owned(), format!("HOSTNAME={}", self.pod.hostname())]);
        for (name, value) in env {
            a.extend(["--env".to_owned(), format!("{name}={value}")]);
        }
        if container.stdin {
            a.push("--interactive".to_owned());
        }
        if container.tty {
            a.push("--tty".to_owned());
        }
        if let Some(dir) = &container.working_dir {
            a.extend(["--workdir".to_owned(), dir.clone()]);
        }
        let argv = argv(container, image, env);
        if argv.is_empty() {
            return Err("no command specified".to_owned());
        }
        let entrypoint = serde_json::to_string(&argv).map_err(|e| e.to_string())?;
        a.extend(["--entrypoint".to_owned(), entrypoint, image.local.clone()]);
        Ok(a)
    }

    fn namespaces(&self, a: &mut Vec<String>) {
        let spec = &self.pod.spec;
        let ns = |kind: &str| format!("ns:{}", self.sandbox.namespace(kind).display());
        a.extend(["--network".to_owned(), ns("net"), "--uts".to_owned(), ns("uts")]);
        a.extend(["--ipc".to_owned(), if spec.host_ipc { "host".to_owned() } else { ns("ipc") }]);
        let pid = match (spec.host_pid, spec.share_process_namespace) {
            (true, _) => "host".to_owned(),
            (false, true) => ns("pid"),
            (false, false) => "private".to_owned(),
        };
        a.extend(["--pid".to_owned(), pid]);
        for sysctl in &spec.security_context.sysctls {
            a.extend(["--sysctl".to_owned(), format!("{}={}", sysctl.name, sysctl.value)]);
        }
    }

    fn security(&self, a: &mut Vec<String>, container: &Container) {
        let (own, pod) = (&container.security_context, &self.pod.spec.security_context);
        let user = own.run_as_user.or(pod.run_as_user);
        let group = own.run_as_group.or(pod.run_as_group);
        match (user, group) {
            (Some(u), Some(g)) => a.extend(["--user".to_owned(), format!("{u}:{g}")]),
            (Some(u), None) => a.extend(["--user".to_owned(), u.to_string()]),
            (None, Some(g)) => a.extend(["--user".to_owned(), format!("0:{g}")]),
            (None, None) => {}
        }
        for group in pod.supplemental_groups.iter().chain(pod.fs_group.iter()) {
            a.extend(["--group-add".to_owned(), group.to_string()]);
        }
        if own.privileged {
            a.push("--privileged".to_owned());
        }
        if own.read_only_root_filesystem {
            a.extend(args(["--read-only", "--read-only-tmpfs=false"]));
        }
        if own.allow_privilege_escalation == Some(false) {
            a.extend(args(["--security-opt", "no-new-privileges"]));
        }
        let seccomp = own.seccomp_profile.as_ref().or(pod.seccomp_profile.as_ref());
        // Kubernetes' default is no seccomp filter, podman's is its own.
        if !own.privileged && seccomp.is_none_or(|p| p.r#type == "Unconfined") {
            a.extend(args(["--security-opt", "seccomp=unconfined"]));
        }
        for capability in &own.capabilities.drop {
            a.extend(["--cap-drop".to_owned(), capability.clone()]);
        }
        for capability in &own.capabilities.add {
            a.extend(["--cap-add".to_owned(), capability.clone()]);
        }
    }

    /// podman invents account entries for ids that the image does not have; a CRI runtime does not.
    /// It leaves files alone that are mounted, so in that case the image's own are.
    fn plain_accounts(
        &self,
        a: &mut Vec<String>,
        container: &Container,
        image: &Image,
        paths: &Paths,
    ) -> Result<(), String> {
        let (own, pod) = (&container.security_context, &self.pod.spec.security_context);
        let user = own.run_as_user.or(pod.run_as_user).filter(|u| *u != 0);
        let group = own.run_as_group.or(pod.run_as_group).filter(|g| *g != 0);
        if user.is_none() && group.is_none() {
            return Ok(());
        }
        let root = podman::run(&args(["image", "mount", &image.local])).map_err(|e| e.to_string())?;
        // An image without accounts has empty files.
        let read = |name: &str| fs::read_to_string(Path::new(&root).join("etc").join(name)).unwrap_or_default();
        let files = [("passwd", read("passwd"), user), ("group", read("group"), group)];
        podman::run(&args(["image", "unmount", &image.local])).map_err(|e| e.to_string())?;
        let known = |text: &str, id: u32| text.lines().any(|l| l.split(':').nth(2) == Some(id.to_string().as_str()));
        if files.iter().all(|(_, text, id)| id.is_none_or(|id| known(text, id))) {
            return Ok(());
        }
        for (name, text, _) in files {
            let path = paths.dir.join(name);
            fs::write(&path, text).map_err(|e| e.to_string())?;
            a.extend(["--volume".to_owned(), format!("{}:/etc/{name}:rw,rprivate", path.display())]);
        }
        Ok(())
    }

    fn volumes(&self, a: &mut Vec<String>, container: &Container, env: &Env, paths: &Paths) -> Result<(), String> {
        let fs_group = self.pod.spec.security_context.fs_group;
        let mut list = volumes::mounts(container, self.sources, env, fs_group)?;
        let taken = |path: &str| container.volume_mounts.iter().any(|m| m.mount_path.trim_end_matches('/') == path);
        for file in ["hosts", "resolv.conf", "hostname"] {
            if !taken(&format!("/etc/{file}")) {
                list.push(format!("{}:/etc/{file}:rw,rprivate", self.dir.join(file).display()));
            }
        }
        if !taken("/dev/shm") && !self.pod.spec.host_ipc {
            list.push(format!("{}:/dev/shm:rw,rprivate", self.dir.join("shm").display()));
        }
        let images = &self.ctx.options.images;
        if images.is_view(&container.image)
            && let Some(root) = &images.view_root
        {
            list.push(format!("{}:/opt:O", root.join("opt").display()));
        }
        let message = container.termination_message_path.as_deref().unwrap_or("/dev/termination-log");
        list.push(format!("{}:{message}:rw,rprivate", paths.message.display()));
        a.extend(list.into_iter().flat_map(|v| ["--volume".to_owned(), v]));
        Ok(())
    }

    /// A CRI runtime makes a missing working folder; podman refuses to start instead.
    fn make_working_dir(&self, id: &str, dir: &str, container: &Container) -> Result<(), String> {
        let below_mount = |m: &str| Path::new(dir).starts_with(m);
        if container.volume_mounts.iter().any(|m| below_mount(&m.mount_path)) {
            return self.make_in_volume(dir, container);
        }
        let root = podman::run(&args(["mount", id])).map_err(|e| e.to_string())?;
        let made = volumes::make_dir(&Path::new(&root).join(dir.trim_start_matches('/')), 0o755);
        podman::run(&args(["unmount", id])).map_err(|e| e.to_string())?;
        made
    }

    fn make_in_volume(&self, dir: &str, container: &Container) -> Result<(), String> {
        let mount = container
            .volume_mounts
            .iter()
            .filter(|m| Path::new(dir).starts_with(&m.mount_path))
            .max_by_key(|m| m.mount_path.len());
        let Some(mount) = mount else { return Ok(()) };
        let Some(source) = self.sources.get(&mount.name).filter(|s| !s.read_only && !mount.read_only) else {
            return Ok(());
        };
        let below = Path::new(dir).strip_prefix(&mount.mount_path).map_err(|e| e.to_string())?;
        let base = source.path.join(mount.sub_path.as_deref().unwrap_or_default());
        volumes::make_dir(&base.join(below), 0o755)
    }
}

/// What runs: `command` replaces the image's entrypoint and drops its arguments, `args` replaces the arguments.
fn argv(container: &Container, image: &Image, env: &Env) -> Vec<String> {
    let expanded =
        |list: &[String]| -> Vec<String> { list.iter().map(|s| expand(s, |name| env.get(name).cloned())).collect() };
    let (mut argv, default_args) = if container.command.is_empty() {
        (image.entrypoint.clone(), image.cmd.clone())
    } else {
        (expanded(&container.command), Vec::new())
    };
    argv.extend(if container.args.is_empty() { default_args } else { expanded(&container.args) });
    argv
}

fn limits(a: &mut Vec<String>, container: &Container) {
    let get = |map: &BTreeMap<String, serde_json::Value>, key: &str| map.get(key).and_then(quantity);
    let resources = &container.resources;
    if let Some(cores) = get(&resources.limits, "cpu").filter(|c| *c > 0.0) {
        // The kernel's smallest quota is 1 ms per 100 ms.
        a.extend(["--cpus".to_owned(), format!("{:.3}", cores.max(0.01))]);
    }
    if let Some(bytes) = get(&resources.limits, "memory").filter(|b| *b > 0.0) {
        a.extend(["--memory".to_owned(), format!("{bytes:.0}b")]);
    }
    if let Some(cores) = get(&resources.requests, "cpu").filter(|c| *c > 0.0) {
        a.extend(["--cpu-shares".to_owned(), format!("{:.0}", (cores * 1024.0).clamp(2.0, 262_144.0))]);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Image, argv, limits};
    use crate::env::Env;
    use crate::spec::Container;

    fn container(value: serde_json::Value) -> Container {
        serde_json::from_value(value).expect("container")
    }

    #[test]
    fn command_and_args() {
        let image = Image { entrypoint: vec!["/e".into()], cmd: vec!["c".into()], ..Image::default() };
        let env: Env = [("A".to_owned(), "1".to_owned())].into();
        for (extra, want) in [
            (json!({}), vec!["/e", "c"]),
            (json!({"args": ["x$(A)"]}), vec!["/e", "x1"]),
            (json!({"command": ["bash"]}), vec!["bash"]),
            (json!({"command": ["$(A)"], "args": ["$$(A)", "$(B)"]}), vec!["1", "$(A)", "$(B)"]),
        ] {
            let mut value = json!({"name": "a", "image": "i"});
            for (k, v) in extra.as_object().into_iter().flatten() {
                value[k] = v.clone();
            }
            assert_eq!(argv(&container(value), &image, &env), want);
        }
    }

    #[test]
    fn cgroup_limits() {
        let c = container(json!({"name": "a", "image": "i", "resources": {
            "limits": {"cpu": "500m", "memory": "64Mi", "nvidia.com/gpu": "1"}, "requests": {"cpu": "2"}}}));
        let mut a = Vec::new();
        limits(&mut a, &c);
        assert_eq!(a, ["--cpus", "0.500", "--memory", "67108864b", "--cpu-shares", "2048"]);
    }
}
