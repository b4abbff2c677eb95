//! Runs containers of our bundle as the kubelet would, under stand-ins.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use flux_gen::flux::certificate::Certificate;
use flux_gen::model::ViewKind;
use serde_json::Value;

use crate::case::Built;
use crate::sandbox::{self, Recorded, Run};
use crate::standins::StandIns;

/// A cluster whose containers are run in folders below `folder`.
pub struct Pods<'a> {
    pub built: &'a Built,
    pub stand_ins: &'a StandIns,
    pub certificate: &'a Certificate,
    pub folder: PathBuf,
}

/// What differs from a plain run.
#[derive(Default, Clone)]
pub struct Variant {
    pub failures: u32,
    pub without_time: bool,
    pub with_archive: bool,
    /// Another command than the container's own.
    pub command: Option<Vec<String>>,
    /// A broker listens on the socket already.
    pub socket: bool,
    /// Files of the host to be seen at a path.
    pub files: Vec<(PathBuf, String)>,
    /// Where Flux is whatever the view.
    pub flux_everywhere: bool,
}

impl Pods<'_> {
    /// The container, and the volumes of its pod.
    fn container(&self, name: &str) -> Option<(Value, Vec<Value>)> {
        for object in &self.built.objects {
            let spec = match object["kind"].as_str() {
                Some("Job") => &object["spec"]["template"]["spec"],
                Some("Pod") => &object["spec"],
                _ => continue,
            };
            let lists = [&spec["containers"], &spec["initContainers"]];
            let mut all = lists.into_iter().filter_map(Value::as_array).flatten();
            if let Some(container) = all.find(|c| c["name"] == name) {
                return Some((container.clone(), spec["volumes"].as_array().cloned().unwrap_or_default()));
            }
        }
        None
    }

    /// Command of a container, if the bundle gives it one.
    pub fn command(&self, name: &str) -> Option<Vec<String>> {
        let (container, _) = self.container(name)?;
        let words = container["command"].as_array()?;
        Some(words.iter().filter_map(|w| w.as_str().map(str::to_owned)).collect())
    }

    /// Runs a container. `volumes` is the folder with the pod's volumes: those that exist are used as they are.
    pub fn run(&self, role: &str, name: &str, index: u32, volumes: &str, variant: &Variant) -> Option<Recorded> {
        let (container, sources) = self.container(name)?;
        let command = match &variant.command {
            Some(command) => command.clone(),
            None => self.command(name)?,
        };
        let folder = self.folder.join(format!("run-{role}"));
        let volumes = self.folder.join(volumes);
        let cluster = &self.built.cluster;
        let is_init = name == cluster.view.name;
        let mut mounts = Vec::new();
        let mut links = Vec::new();
        if is_init {
            for part in ["views", "software"] {
                mounts.push((self.stand_ins.view.join("opt").join(part), format!("/opt/{part}"), true));
            }
            links.push(("views/._view/0123456789abcdef".to_owned(), "/opt/view".to_owned()));
        }
        for mount in container["volumeMounts"].as_array().into_iter().flatten() {
            mounts.push(self.mount(mount, &sources, &volumes));
        }
        mounts.extend(variant.files.iter().map(|(host, path)| (host.clone(), path.clone(), true)));
        if variant.socket {
            let folder = volumes.join(&cluster.view.name).join("config/run/flux");
            fs::create_dir_all(&folder).unwrap();
            // The file stays when the listener goes.
            drop(UnixListener::bind(folder.join("local")).unwrap());
        }
        let programs = match (variant.without_time, cluster.view.kind) {
            _ if variant.flux_everywhere => &self.stand_ins.with_flux,
            (true, _) => &self.stand_ins.without_time,
            (false, ViewKind::Disabled) => &self.stand_ins.with_flux,
            (false, _) => &self.stand_ins.plain,
        };
        let prepare = match &cluster.broker.archive {
            Some(path) if variant.with_archive => {
                format!("mkdir -p \"$(dirname {path})\" && : > {path}", path = flux_gen::model::words::quote(path))
            }
            _ => String::new(),
        };
        let is_service = name != cluster.name && cluster.services.iter().any(|s| s.container.name == name);
        let hostname = if is_service { format!("{}-services", cluster.name) } else { format!("{}-{index}", cluster.name) };
        let mut env = environment(&container);
        if !is_service {
            env.insert("JOB_COMPLETION_INDEX".to_owned(), index.to_string());
        }
        let run = Run {
            command,
            hostname,
            workdir: container["workingDir"].as_str().unwrap_or("/").to_owned(),
            env,
            programs,
            mounts,
            links,
            failures: variant.failures,
            prepare,
        };
        Some(sandbox::run(&run, &folder).unwrap_or_else(|e| panic!("{}: sandbox: {e}", folder.display())))
    }

    fn mount(&self, mount: &Value, sources: &[Value], volumes: &Path) -> (PathBuf, String, bool) {
        let name = mount["name"].as_str().unwrap_or_default();
        let source = sources.iter().find(|v| v["name"] == name).cloned().unwrap_or_default();
        let mut host = volumes.join(name);
        if !host.exists() {
            self.fill(&host, &source);
        }
        if let Some(part) = mount["subPath"].as_str() {
            host.push(part);
            fs::create_dir_all(&host).unwrap();
        }
        (host, mount["mountPath"].as_str().unwrap_or_default().to_owned(), mount["readOnly"] == true)
    }

    /// A volume's first content; volumes of the user are empty.
    fn fill(&self, host: &Path, source: &Value) {
        fs::create_dir_all(host).unwrap();
        let map = source["configMap"]["name"].as_str().and_then(|name| self.built.config_maps.get(name));
        let mode = source["configMap"]["defaultMode"].as_u64().and_then(|m| u32::try_from(m).ok()).unwrap_or(0o644);
        for (key, text) in map.into_iter().flatten() {
            fs::write(host.join(key), text).unwrap();
            fs::set_permissions(host.join(key), fs::Permissions::from_mode(mode)).unwrap();
        }
        if source["secret"]["secretName"] == self.built.cluster.certificate.secret.as_str() {
            let certificate = self.built.certificate.as_ref().unwrap_or(self.certificate);
            fs::write(host.join("curve.cert"), certificate.to_file_text().as_bytes()).unwrap();
            fs::set_permissions(host.join("curve.cert"), fs::Permissions::from_mode(0o400)).unwrap();
        }
    }
}

/// Variables as the kubelet sets them; values from Secrets are named after where they come from.
fn environment(container: &Value) -> BTreeMap<String, String> {
    let mut env = BTreeMap::new();
    for variable in container["env"].as_array().into_iter().flatten() {
        let name = variable["name"].as_str().unwrap_or_default().to_owned();
        let secret = &variable["valueFrom"]["secretKeyRef"];
        let value = match secret["name"].as_str() {
            Some(from) => format!("<secret {from}/{}>", secret["key"].as_str().unwrap_or_default()),
            None => variable["value"].as_str().unwrap_or_default().to_owned(),
        };
        env.insert(name, value);
    }
    env
}
