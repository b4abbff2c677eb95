//! `kubectl kustomize` of the written folders gives the objects of the `--stdout` form.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::support::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flux_gen::bundle::files::Disk;
use flux_gen::bundle::layout::{Kept, LayoutSettings, layout};
use flux_gen::bundle::tree::FileTree;
use flux_gen::bundle::write::{WriteOptions, write};
use flux_gen::object::Object;
use flux_gen::object::carry::move_to_binary;
use serde::Deserialize;
use serde_json::{Value, json};

const QUICK: WriteOptions = WriteOptions { force: false, durable: false };

/// `kubectl kustomize`, or `None` when there is no kubectl, which is a failure in CI.
#[allow(clippy::disallowed_methods, reason = "a test may ask where it runs")]
fn kustomize(folder: &Path) -> Option<String> {
    let output = match Command::new("kubectl").arg("kustomize").arg(folder).output() {
        Ok(output) => output,
        Err(e) => {
            assert!(std::env::var_os("CI").is_none(), "kubectl is needed in CI: {e}");
            println!("skipped: no kubectl ({e})");
            return None;
        }
    };
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{error}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Objects by identity.
fn objects(text: &str) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for document in serde_norway::Deserializer::from_str(text) {
        let value = Value::deserialize(document).unwrap();
        let part = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let id = [part("/apiVersion"), part("/kind"), part("/metadata/namespace"), part("/metadata/name")].join(" ");
        assert!(found.insert(id, value).is_none(), "twice in one text");
    }
    found
}

/// The `--stdout` form of the folders below `prefix`.
fn printed(tree: &FileTree, prefix: &str) -> BTreeMap<String, Value> {
    let mut part = tree.clone();
    part.folders.retain(|path, _| path.starts_with(prefix));
    objects(&String::from_utf8(part.documents()).unwrap())
}

#[test]
fn every_folder_is_what_is_printed() {
    let mut odd = bundle(Some("hpc"), "odd", "echo\n");
    let data: BTreeMap<String, String> = [
        ("tabs", "\tif\n\t\tfi \n"),
        ("blanks", "a \n\n  b\n\n\n"),
        ("only", "\n\n"),
        ("lead", "  x\n y\n"),
        ("crlf", "a\r\nb"),
        ("yes", "yes"),
        ("octal", "0644"),
        ("sixty", "1:30"),
        ("brace", "${x} $y {{ z }} #c"),
        ("nonascii", "grüße 😀\n"),
        ("quotes", "'\"\\\n"),
        ("escape", "\u{1b}[0m\n"),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .collect();
    odd.objects.push(Object::ConfigMap(config_map(Some("hpc"), "odd-data", data)));
    let mut made = plain(bundle(Some("made"), "lammps", "echo 1\n"));
    made.create_namespace = true;
    let bundles = [made, odd, bundle(Some("hpc"), "amg", "echo 2\n"), bundle(None, "solo", "x\n")];
    let companions = [
        companion(
            "pvc.yaml",
            json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "hpc"}, "spec": {"storageClassName": null, "x": "${HOME}"}}),
        ),
        companion(
            "role.yaml",
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "system:Node.x"}, "rules": []}),
        ),
        companion(
            "list.yaml",
            json!({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "runner", "namespace": "hpc"}},
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "runner", "namespace": "made"}}]}),
        ),
    ];
    let tree = tree(&bundles, &companions);
    let folder = tempfile::tempdir().unwrap();
    write(&Disk, folder.path(), &tree, &Kept::default(), QUICK).unwrap();
    for (path, prefix) in [
        ("hpc", "hpc/"),
        ("made", "made/"),
        ("default", "default/"),
        ("cluster", "cluster"),
        (".", ""),
        ("hpc/odd", "hpc/odd"),
    ] {
        let Some(text) = kustomize(&folder.path().join(path)) else { return };
        let (found, wanted) = (objects(&text), printed(&tree, prefix));
        assert!(!wanted.is_empty());
        assert_eq!(found.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>(), "{path}");
        for (id, value) in &wanted {
            assert_eq!(&found[id], value, "{path}: {id}");
        }
    }
}

/// A script with such a character reaches the cluster as binary data; see `object::carry`.
#[test]
fn characters_that_kustomize_cannot_read_back_are_carried_as_binary() {
    let text = "a\u{7f}b\u{9b}\u{ffff}".to_owned();
    let mut map = config_map(None, "a-data", [("k".to_owned(), text.clone())].into());
    let mut refused = bundle(None, "a", "x");
    refused.objects.push(Object::ConfigMap(map.clone()));
    let (_, problems) = layout(&[refused], &[], &Kept::default(), LayoutSettings::default());
    assert_eq!(problems.iter().map(|d| d.code.id).collect::<Vec<_>>(), ["FG615"]);

    move_to_binary(&mut map);
    let mut carried = bundle(None, "a", "x");
    carried.objects.push(Object::ConfigMap(map));
    let folder = tempfile::tempdir().unwrap();
    write(&Disk, folder.path(), &tree(&[carried], &[]), &Kept::default(), QUICK).unwrap();
    let Some(printed) = kustomize(&folder.path().join("default")) else { return };
    let objects = objects(&printed);
    let found: Vec<&Value> = objects.values().filter_map(|object| object.pointer("/binaryData/k")).collect();
    assert_eq!(found, [&json!(STANDARD.encode(text))]);
}
