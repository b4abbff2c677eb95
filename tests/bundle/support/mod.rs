//! Hand-made bundles for tests of writing.
#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

pub mod secrets;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use flux_gen::bundle::layout::{Kept, LayoutSettings, layout};
use flux_gen::bundle::secret::PrivateText;
use flux_gen::bundle::{Bundle, Companion, FileTree, SecretForm, SourceRef, sha256_hex};
use flux_gen::model::secret_name;
use flux_gen::object::{Object, hash};
use k8s_openapi::api::batch::v1::{Job, JobSpec};
use k8s_openapi::api::core::v1::{
    ConfigMap, ConfigMapVolumeSource, Container, Pod, PodSpec, PodTemplateSpec, Service, ServicePort, ServiceSpec,
    Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

pub const PUBLIC_KEY: &str = "K3HW^WVq.zo69t)(umF>:XvwTj:QGN^yKlWaVH(S";
/// The published test pair: the secret bytes are 0, 1, … 31.
pub const CERTIFICATE: &str = "metadata\n    name = \"lammps\"\ncurve\n    public-key = \"K3HW^WVq.zo69t)(umF>:XvwTj:QGN^yKlWaVH(S\"\n    secret-key = \"009c61o!#m2NH?C3>iWS5d]J*6CRx17-skh9337x\"\n";

/// A source file of that content.
pub fn source(path: &str, text: &str) -> SourceRef {
    SourceRef { path: path.to_owned(), sha256: sha256_hex(text.as_bytes()) }
}

fn metadata(namespace: Option<&str>, name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), namespace: namespace.map(str::to_owned), ..ObjectMeta::default() }
}

/// An immutable ConfigMap with a content hash in its name.
pub fn config_map(namespace: Option<&str>, name: &str, data: BTreeMap<String, String>) -> ConfigMap {
    let mut map = ConfigMap {
        metadata: metadata(namespace, name),
        data: Some(data),
        immutable: Some(true),
        ..ConfigMap::default()
    };
    map.metadata.name = Some(format!("{name}-{}", hash::config_map_hash(&map)));
    map
}

/// A bundle with all kinds of objects; `text` changes the scripts and with them names and Job.
pub fn bundle(namespace: Option<&str>, name: &str, text: &str) -> Bundle {
    let scripts = config_map(namespace, &format!("{name}-scripts"), [("run.sh".to_owned(), text.to_owned())].into());
    let flux =
        config_map(namespace, &format!("{name}-flux"), [("hostlist".to_owned(), format!("{name}-[0-3]"))].into());
    let volume = Volume {
        name: "scripts".to_owned(),
        config_map: Some(ConfigMapVolumeSource {
            name: scripts.metadata.name.clone().unwrap_or_default(),
            ..ConfigMapVolumeSource::default()
        }),
        ..Volume::default()
    };
    let container = |command: &str| Container {
        name: "main".to_owned(),
        image: Some("ubuntu".to_owned()),
        command: Some(vec!["/bin/bash".to_owned(), command.to_owned()]),
        ..Container::default()
    };
    let job = Job {
        metadata: metadata(namespace, name),
        spec: Some(JobSpec {
            completions: Some(4),
            parallelism: Some(4),
            template: PodTemplateSpec {
                metadata: None,
                spec: Some(PodSpec {
                    containers: vec![container("/mnt/run.sh")],
                    restart_policy: Some("Never".to_owned()),
                    volumes: Some(vec![volume]),
                    ..PodSpec::default()
                }),
            },
            ..JobSpec::default()
        }),
        status: None,
    };
    let service = Service {
        metadata: metadata(namespace, name),
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            ports: Some(vec![ServicePort { name: Some("broker".to_owned()), port: 8050, ..ServicePort::default() }]),
            ..ServiceSpec::default()
        }),
        status: None,
    };
    let pod = Pod {
        metadata: metadata(namespace, &format!("{name}-services")),
        spec: Some(PodSpec { containers: vec![container("services")], ..PodSpec::default() }),
        status: None,
    };
    Bundle {
        namespace: namespace.map(str::to_owned),
        name: name.to_owned(),
        objects: vec![
            Object::Job(Box::new(job)),
            Object::Pod(Box::new(pod)),
            Object::Service(service),
            Object::ConfigMap(flux),
            Object::ConfigMap(scripts),
        ],
        source: source(&format!("examples/{name}.yaml"), text),
        span: None,
        public_key: Some(PUBLIC_KEY.to_owned()),
        secret: SecretForm::Existing,
        create_namespace: false,
        pod_security: flux_gen::model::hardening::PodSecurity::None,
    }
}

/// The same with the private key in the bundle.
pub fn plain(mut bundle: Bundle) -> Bundle {
    bundle.secret = SecretForm::Plain {
        name: secret_name(&bundle.name, PUBLIC_KEY),
        certificate: PrivateText::new(CERTIFICATE.as_bytes().to_vec()),
    };
    bundle
}

/// A companion from JSON.
pub fn companion(path: &str, value: serde_json::Value) -> Companion {
    Companion { source: source(path, &value.to_string()), value, span: None }
}

/// Lays out and insists that there is nothing to complain about.
pub fn tree(bundles: &[Bundle], companions: &[Companion]) -> FileTree {
    tree_with(bundles, companions, &Kept::default())
}

/// As [`tree`], with what stays.
pub fn tree_with(bundles: &[Bundle], companions: &[Companion], kept: &Kept) -> FileTree {
    let (tree, diagnostics) = layout(bundles, companions, kept, LayoutSettings { root_kustomization: true });
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    tree
}

/// All files below a folder.
pub fn snapshot(root: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(root: &Path, below: &str, found: &mut BTreeMap<String, Vec<u8>>) {
        let Ok(entries) = std::fs::read_dir(root.join(below)) else { return };
        for entry in entries {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            let path = if below.is_empty() { name } else { format!("{below}/{name}") };
            if entry.file_type().unwrap().is_dir() {
                walk(root, &path, found);
            } else if entry.file_type().unwrap().is_symlink() {
                let target = std::fs::read_link(root.join(&path)).unwrap();
                found.insert(path, target.into_os_string().into_encoded_bytes());
            } else {
                found.insert(path.clone(), std::fs::read(root.join(&path)).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(root, "", &mut found);
    found
}

/// The files of a tree in the form of [`snapshot`].
pub fn files_of(tree: &FileTree) -> BTreeMap<String, Vec<u8>> {
    tree.iter().into_iter().map(|(path, bytes)| (path, bytes.to_vec())).collect()
}

/// A folder for a test that makes very many files: in memory where there is such a place.
pub fn quick_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Each folder is as before or as after, as far as its owner is concerned.
pub fn assert_old_or_new(now: &BTreeMap<String, Vec<u8>>, before: &FileTree, after: &FileTree, when: &str) {
    let folders: BTreeSet<&String> = before.folders.keys().chain(after.folders.keys()).collect();
    for folder in folders {
        let prefix = format!("{folder}/");
        let present: BTreeMap<&str, &Vec<u8>> = now
            .iter()
            .filter_map(|(path, bytes)| Some((path.strip_prefix(&prefix)?, bytes)))
            .filter(|(name, _)| !["notes.txt", "plots/a.png", "link"].contains(name))
            .collect();
        let of = |tree: &FileTree| -> BTreeMap<String, Vec<u8>> {
            tree.folders.get(folder).map(|folder| folder.files.clone()).unwrap_or_default()
        };
        let is = |wanted: &BTreeMap<String, Vec<u8>>| {
            wanted.len() == present.len()
                && wanted.iter().all(|(name, bytes)| present.get(name.as_str()) == Some(&bytes))
        };
        assert!(is(&of(before)) || is(&of(after)), "{when}: {folder} is neither: {:?}", present.keys());
    }
}

/// Kustomizations above folders are old or new, and everything that they name is there.
pub fn assert_kustomizations(now: &BTreeMap<String, Vec<u8>>, before: &FileTree, after: &FileTree, when: &str) {
    for path in before.files.keys().chain(after.files.keys()) {
        let Some(bytes) = now.get(path) else {
            assert!(!before.files.contains_key(path) || !after.files.contains_key(path), "{when}: {path} is missing");
            continue;
        };
        assert!(before.files.get(path) == Some(bytes) || after.files.get(path) == Some(bytes), "{when}: {path}");
        let text = std::str::from_utf8(bytes).unwrap();
        let folder = path.strip_suffix("kustomization.yaml").unwrap();
        for name in text.lines().filter_map(|line| line.strip_prefix("- ")) {
            let named = format!("{folder}{name}/kustomization.yaml");
            assert!(now.contains_key(&named), "{when}: {path} names {named}, which is missing");
        }
    }
}
