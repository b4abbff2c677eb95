//! The shipped examples: each compiles without a word, has its bundle in `generated/`, and says how to look at it in words
//! that fit its objects.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn flux_gen(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_flux-gen")).args(args).current_dir(root()).env_clear().output().unwrap()
}

fn files(folder: &Path, wanted: &dyn Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, wanted));
        } else if wanted(&path) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn documents(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.split("\n---\n").map(|part| serde_norway::from_str(part).unwrap()).collect()
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned()
}

/// Folder of each cluster in `generated/`, with the spec it is made from.
fn clusters() -> BTreeMap<String, PathBuf> {
    let mut clusters = BTreeMap::new();
    for path in files(&root().join("examples"), &|p| p.extension().is_some_and(|e| e == "yaml")) {
        for document in documents(&path).iter().filter(|d| text(d, "/kind") == "MiniCluster") {
            let namespace = document.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or("default");
            let folder = format!("{namespace}/{}", text(document, "/metadata/name"));
            assert!(clusters.insert(folder.clone(), path.clone()).is_none(), "{folder} twice");
        }
    }
    clusters
}

#[test]
fn generated_is_what_the_examples_give_and_nobody_complains() {
    let output = flux_gen(&["check", "--color=never"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(!said.contains("warning") && !said.contains("error"), "{said}");
}

#[test]
fn every_example_has_a_bundle_and_every_bundle_an_example() {
    let clusters = clusters();
    assert!(clusters.len() >= 16, "{} clusters", clusters.len());
    let indexes = files(&root().join("generated"), &|p| p.ends_with("bundle.json"));
    let mut bundles = BTreeSet::new();
    for path in indexes {
        let index: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        if index.get("name").is_none() {
            continue;
        }
        let folder = relative(path.parent().unwrap()).replacen("generated/", "", 1);
        let example = clusters.get(&folder).unwrap_or_else(|| panic!("{folder} has no example"));
        assert_eq!(text(&index, "/source/path"), relative(example), "{folder}");
        bundles.insert(folder);
    }
    assert_eq!(bundles, clusters.into_keys().collect());
}

#[test]
fn a_second_build_elsewhere_gives_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let built = flux_gen(&["build", "--no-sync", "-o", out.to_str().unwrap()]);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let any = |_: &Path| true;
    let names = |base: &Path| -> Vec<PathBuf> {
        files(base, &any).iter().map(|p| p.strip_prefix(base).unwrap().to_path_buf()).collect()
    };
    let committed = root().join("generated");
    assert_eq!(names(&out), names(&committed));
    for name in names(&out) {
        assert_eq!(fs::read(out.join(&name)).unwrap(), fs::read(committed.join(&name)).unwrap(), "{}", name.display());
    }
}

/// Names in the comment of an example are typed by hand, so they are checked against the objects.
#[test]
fn comments_name_objects_that_are_there() {
    for (folder, path) in clusters() {
        let spec = fs::read_to_string(&path).unwrap();
        let comment: Vec<&str> = spec.lines().take_while(|line| line.starts_with('#')).collect();
        assert!(comment.len() >= 3, "{folder}: no comment that tells what it shows");
        let (namespace, name) = folder.split_once('/').unwrap();
        let job = &documents(&root().join("generated").join(&folder).join("job.yaml"))[0];
        let containers =
            ["/spec/template/spec/containers", "/spec/template/spec/initContainers"].map(|p| job.pointer(p));
        let containers: Vec<&str> =
            containers.into_iter().flatten().flat_map(|c| c.as_array().unwrap()).map(|c| text(c, "/name")).collect();
        let words: Vec<&str> = comment.iter().flat_map(|line| line.split_whitespace()).collect();
        for pair in words.windows(2) {
            match *pair {
                ["-n", written] => assert_eq!(written, namespace, "{folder}"),
                ["-l", written] if written.starts_with("batch.kubernetes.io/job-name=") => {
                    let job = written.trim_start_matches("batch.kubernetes.io/job-name=").split(',').next().unwrap();
                    assert_eq!(job.trim_end_matches(')'), name, "{folder}");
                }
                // The other -c is that of bash, with quoted text.
                ["-c", written] if !written.starts_with('\'') => {
                    assert!(containers.contains(&written), "{folder}: no container {written}");
                }
                _ => {}
            }
        }
    }
}

#[test]
fn no_private_key_is_shipped() {
    for path in files(root().join("generated").as_path(), &|_| true) {
        let bytes = fs::read(&path).unwrap();
        let shown = String::from_utf8_lossy(&bytes);
        assert!(!shown.contains("secret-key =") && !shown.contains("kind: Secret"), "{}", path.display());
    }
}

/// Our part of the scripts; hooks and scripts of the user are his.
#[test]
fn scripts_of_bundles_pass_shellcheck() {
    if Command::new("shellcheck").arg("--version").output().is_err() {
        #[expect(clippy::disallowed_methods, reason = "CI skips nothing, a user's machine may")]
        let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(!ci, "shellcheck is missing");
        println!("skipped: no shellcheck (ci/tools/install installs it)");
        return;
    }
    let maps = files(&root().join("generated"), &|p| p.ends_with("configmap-scripts.yaml"));
    assert!(maps.len() >= 16, "{} ConfigMaps of scripts", maps.len());
    let mut seen = BTreeSet::new();
    for path in maps {
        let folder = tempfile::tempdir().unwrap();
        let map = &documents(&path)[0];
        let mut ours = Vec::new();
        for (name, text) in map["data"].as_object().unwrap() {
            let written_by_user = name.contains("hook-") || name.contains("script-");
            if name.ends_with(".sh") && !written_by_user && seen.insert(text.as_str().unwrap().to_owned()) {
                fs::write(folder.path().join(name), text.as_str().unwrap()).unwrap();
                ours.push(name);
            }
        }
        if ours.is_empty() {
            continue;
        }
        let checked =
            Command::new("shellcheck").args(["-s", "bash"]).args(&ours).current_dir(folder.path()).output().unwrap();
        assert!(checked.status.success(), "{}\n{}", path.display(), String::from_utf8_lossy(&checked.stdout));
    }
}
