//! A pod's volumes on this machine, and the mounts of its containers.

use std::collections::BTreeMap;
use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::context::{Context, Pod};
use crate::env::Env;
use crate::files::{Payload, Payloads, own_tree, write_atomic};
use crate::podman;
use crate::spec::expand::expand;
use crate::spec::{Container, DownwardItem, HostPath, KeyToPath, ProjectedSource, TokenSource, Volume, quantity};

/// Why a volume is not there yet; the pod waits, as with a kubelet.
#[derive(Debug, thiserror::Error)]
#[error("MountVolume.SetUp failed for volume {volume:?}: {message}")]
pub struct VolumeError {
    volume: String,
    message: String,
}

/// Where a volume is.
#[derive(Debug, Clone)]
pub struct Source {
    /// On this machine.
    pub path: PathBuf,
    /// Nobody may write to it, whatever the mount says.
    pub read_only: bool,
    /// An image that must be unmounted in the end.
    pub image: Option<String>,
}

/// The volumes of one pod.
pub struct Volumes<'a> {
    ctx: &'a Context,
    pod: &'a Pod,
    dir: &'a Path,
    ip: Ipv4Addr,
}

type Outcome<T> = Result<T, String>;

impl<'a> Volumes<'a> {
    /// The volumes of `pod`, below the pod's folder `dir`.
    pub fn new(ctx: &'a Context, pod: &'a Pod, dir: &'a Path, ip: Ipv4Addr) -> Self {
        Volumes { ctx, pod, dir, ip }
    }

    /// Makes them all. Doing it again is harmless.
    ///
    /// # Errors
    /// The first volume that cannot be made.
    pub fn prepare(&self) -> Result<BTreeMap<String, Source>, VolumeError> {
        let mut out = BTreeMap::new();
        for volume in &self.pod.spec.volumes {
            let source = self.one(volume).map_err(|message| VolumeError { volume: volume.name.clone(), message })?;
            out.insert(volume.name.clone(), source);
        }
        Ok(out)
    }

    /// Brings mounted ConfigMaps, Secrets and projections up to date, as the kubelet's sync does.
    ///
    /// # Errors
    /// The first volume that cannot be read again.
    pub fn refresh(&self) -> Result<(), VolumeError> {
        for volume in &self.pod.spec.volumes {
            let token = |s: &ProjectedSource| s.service_account_token.is_some();
            if volume.projected.as_ref().is_some_and(|p| p.sources.iter().any(token)) {
                continue;
            }
            let wrap = |message| VolumeError { volume: volume.name.clone(), message };
            if let Some(files) = self.payloads(volume).map_err(wrap)? {
                let dir = self.files_dir(volume);
                write_atomic(&dir, &files, self.fs_group()).map_err(|e| wrap(e.to_string()))?;
            }
        }
        Ok(())
    }

    fn fs_group(&self) -> Option<u32> {
        self.pod.spec.security_context.fs_group
    }

    /// Secrets stay in memory, ConfigMaps on disk.
    fn files_dir(&self, volume: &Volume) -> PathBuf {
        let parent = if volume.config_map.is_some() { "volumes" } else { "memory" };
        self.dir.join(parent).join(&volume.name)
    }

    fn one(&self, volume: &Volume) -> Outcome<Source> {
        if let Some(files) = self.payloads(volume)? {
            let dir = self.files_dir(volume);
            make_dir(&dir, 0o777)?;
            write_atomic(&dir, &files, self.fs_group()).map_err(text)?;
            return Ok(Source { path: dir, read_only: true, image: None });
        }
        if let Some(empty) = &volume.empty_dir {
            let dir = self.dir.join("volumes").join(&volume.name);
            make_dir(&dir, 0o777)?;
            if empty.medium == "Memory" && !is_mount(&dir)? {
                let limit = empty.size_limit.as_ref().and_then(quantity);
                let size = limit.map(|l| format!(",size={l:.0}")).unwrap_or_default();
                mount_tmpfs(&dir, &format!("mode=0777{size}"))?;
            }
            own_tree(&dir, self.fs_group(), false).map_err(text)?;
            return Ok(Source { path: dir, read_only: false, image: None });
        }
        if let Some(host) = &volume.host_path {
            return self.host_path(host);
        }
        if let Some(claim) = &volume.persistent_volume_claim {
            let ns = &self.pod.meta.namespace;
            let path = format!("/api/v1/namespaces/{ns}/persistentvolumeclaims/{}", claim.claim_name);
            self.ctx.client.get(&path).map_err(text)?;
            let dir = self.ctx.options.state.join("claims").join(ns).join(&claim.claim_name);
            make_dir(&dir, 0o777)?;
            own_tree(&dir, self.fs_group(), claim.read_only).map_err(text)?;
            return Ok(Source { path: dir, read_only: claim.read_only, image: None });
        }
        if let Some(image) = &volume.image {
            return self.image(&image.reference);
        }
        Err("the volume has no source".to_owned())
    }

    fn host_path(&self, host: &HostPath) -> Outcome<Source> {
        let path = self.ctx.options.host_path_root.join(host.path.trim_start_matches('/'));
        let wrong = |what: &str| Err(format!("hostPath type check failed: {} is not a {what}", host.path));
        match host.r#type.as_str() {
            "DirectoryOrCreate" => make_dir(&path, 0o755)?,
            "FileOrCreate" if !path.exists() => {
                fs::write(&path, "").map_err(text)?;
            }
            "Directory" if !path.is_dir() => return wrong("directory"),
            "File" | "FileOrCreate" if !path.is_file() => return wrong("file"),
            // Without a type a container runtime makes a missing folder.
            "" if !path.exists() => make_dir(&path, 0o755)?,
            _ => {}
        }
        Ok(Source { path, read_only: false, image: None })
    }

    fn image(&self, reference: &str) -> Outcome<Source> {
        let images = &self.ctx.options.images;
        if images.is_view(reference)
            && let Some(root) = &images.view_root
        {
            return Ok(Source { path: root.clone(), read_only: true, image: None });
        }
        let local = images.local(reference);
        if self.ctx.local.get(local).map_err(text)?.is_none() {
            return Err(format!("image {reference:?} is not on this machine (ErrImagePull)"));
        }
        let path = podman::run(&podman::args(["image", "mount", local])).map_err(text)?;
        Ok(Source { path: path.into(), read_only: true, image: Some(local.to_owned()) })
    }

    /// The files of a volume that is made of API objects; `None` for other volumes.
    fn payloads(&self, volume: &Volume) -> Outcome<Option<Payloads>> {
        let mut out = Payloads::new();
        if let Some(v) = &volume.config_map {
            self.add_map(&mut out, "configmaps", &v.name, &v.items, v.optional, v.default_mode)?;
        } else if let Some(v) = &volume.secret {
            self.add_map(&mut out, "secrets", &v.secret_name, &v.items, v.optional, v.default_mode)?;
        } else if let Some(v) = &volume.downward_api {
            self.add_fields(&mut out, &v.items, v.default_mode)?;
        } else if let Some(v) = &volume.projected {
            for s in &v.sources {
                if let Some(m) = &s.config_map {
                    self.add_map(&mut out, "configmaps", &m.name, &m.items, m.optional, v.default_mode)?;
                }
                if let Some(m) = &s.secret {
                    self.add_map(&mut out, "secrets", &m.name, &m.items, m.optional, v.default_mode)?;
                }
                if let Some(d) = &s.downward_api {
                    self.add_fields(&mut out, &d.items, v.default_mode)?;
                }
                if let Some(t) = &s.service_account_token {
                    self.add_token(&mut out, t, v.default_mode)?;
                }
            }
        } else {
            return Ok(None);
        }
        Ok(Some(out))
    }

    fn add_map(
        &self,
        out: &mut Payloads,
        kind: &str,
        name: &str,
        items: &[KeyToPath],
        optional: bool,
        mode: Option<u32>,
    ) -> Outcome<()> {
        let Some(map) = self.ctx.map(kind, &self.pod.meta.namespace, name).map_err(text)? else {
            return if optional { Ok(()) } else { Err(format!("{kind} {name:?} not found")) };
        };
        let mode = mode.unwrap_or(0o644);
        if items.is_empty() {
            out.extend(map.into_iter().map(|(k, data)| (k, Payload { data, mode })));
            return Ok(());
        }
        for item in items {
            match map.get(&item.key) {
                Some(data) => {
                    let payload = Payload { data: data.clone(), mode: item.mode.unwrap_or(mode) };
                    out.insert(item.path.clone(), payload);
                }
                None if optional => {}
                None => return Err(format!("{kind} {name:?} references non-existent key: {}", item.key)),
            }
        }
        Ok(())
    }

    fn add_fields(&self, out: &mut Payloads, items: &[DownwardItem], mode: Option<u32>) -> Outcome<()> {
        for item in items {
            let Some(field) = &item.field_ref else { continue };
            let value = self
                .pod
                .field(field, &self.ctx.options.node, self.ip, self.ctx.net.gateway())
                .ok_or_else(|| format!("podlet does not know the field {}", field.field_path))?;
            let mode = item.mode.or(mode).unwrap_or(0o644);
            out.insert(item.path.clone(), Payload { data: value.into_bytes(), mode });
        }
        Ok(())
    }

    fn add_token(&self, out: &mut Payloads, source: &TokenSource, mode: Option<u32>) -> Outcome<()> {
        let account = self.pod.spec.service_account_name.as_deref().unwrap_or("default");
        let path = format!("/api/v1/namespaces/{}/serviceaccounts/{account}/token", self.pod.meta.namespace);
        let audiences: Vec<&str> = [source.audience.as_str()].into_iter().filter(|a| !a.is_empty()).collect();
        let request = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {
                "audiences": audiences,
                "expirationSeconds": source.expiration_seconds.unwrap_or(3600),
                "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": self.pod.meta.name,
                                   "uid": self.pod.meta.uid}
            }
        });
        let answer = self.ctx.client.post(&path, &request).map_err(text)?;
        let token = answer.pointer("/status/token").and_then(Value::as_str).unwrap_or_default();
        let payload = Payload { data: token.as_bytes().to_vec(), mode: mode.unwrap_or(0o644) };
        out.insert(source.path.clone(), payload);
        Ok(())
    }
}

/// podman's `--volume` values for a container.
///
/// # Errors
/// A mount names no volume, or its sub-path cannot be made.
pub fn mounts(
    container: &Container,
    sources: &BTreeMap<String, Source>,
    env: &Env,
    fs_group: Option<u32>,
) -> Result<Vec<String>, String> {
    let mut out = Vec::new();
    for mount in &container.volume_mounts {
        let source = sources.get(&mount.name).ok_or_else(|| format!("no volume {:?}", mount.name))?;
        let below = match (&mount.sub_path, &mount.sub_path_expr) {
            (Some(path), _) => Some(path.clone()),
            (None, Some(e)) => Some(expand(e, |name| env.get(name).cloned())),
            (None, None) => None,
        };
        let mut path = source.path.clone();
        if let Some(below) = below.filter(|b| !b.is_empty()) {
            path.push(&below);
            if !path.exists() {
                if source.read_only {
                    return Err(format!("subPath {below:?} is not in volume {:?}", mount.name));
                }
                make_dir(&path, 0o755)?;
                own_tree(&path, fs_group, false).map_err(text)?;
            }
            // A link must not lead out of the volume.
            let real = fs::canonicalize(&path).map_err(text)?;
            if !real.starts_with(fs::canonicalize(&source.path).map_err(text)?) {
                return Err(format!("subPath {below:?} leads out of volume {:?}", mount.name));
            }
            path = real;
        }
        let path = path.to_string_lossy().into_owned();
        if path.contains(':') {
            return Err(format!("podlet cannot mount a path with a colon: {path}"));
        }
        let mode = if mount.read_only || source.read_only { "ro" } else { "rw" };
        out.push(format!("{path}:{}:{mode},rbind,rprivate", mount.mount_path));
    }
    Ok(out)
}

/// Makes a folder with exactly this mode.
///
/// # Errors
/// It cannot be made.
pub fn make_dir(path: &Path, mode: u32) -> Result<(), String> {
    let fresh = !path.exists();
    fs::create_dir_all(path).map_err(|e| format!("{}: {e}", path.display()))?;
    if fresh {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).map_err(text)?;
    }
    Ok(())
}

/// Mounts a tmpfs.
///
/// # Errors
/// The kernel refuses.
pub fn mount_tmpfs(path: &Path, data: &str) -> Result<(), String> {
    let data = std::ffi::CString::new(data).map_err(text)?;
    rustix::mount::mount("tmpfs", path, "tmpfs", rustix::mount::MountFlags::empty(), data.as_c_str())
        .map_err(|e| format!("tmpfs on {}: {e}", path.display()))
}

fn is_mount(path: &Path) -> Outcome<bool> {
    let table = fs::read_to_string("/proc/self/mountinfo").map_err(text)?;
    Ok(mount_points(&table).any(|p| p == path))
}

/// The mount points of a `mountinfo` table, oldest first.
pub fn mount_points(table: &str) -> impl Iterator<Item = PathBuf> + '_ {
    table.lines().filter_map(|l| l.split(' ').nth(4)).map(|p| PathBuf::from(p.replace("\\040", " ")))
}

/// Undoes every mount below `root`, newest first.
///
/// # Errors
/// The mount table cannot be read, or a mount is refused.
pub fn unmount_below(root: &Path) -> std::io::Result<()> {
    let table = fs::read_to_string("/proc/self/mountinfo")?;
    let mut points: Vec<PathBuf> = mount_points(&table).filter(|p| p.starts_with(root)).collect();
    points.reverse();
    for point in points {
        rustix::mount::unmount(&point, rustix::mount::UnmountFlags::DETACH)?;
    }
    Ok(())
}

fn text(e: impl std::fmt::Display) -> String {
    e.to_string()
}
