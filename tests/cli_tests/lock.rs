//! `images.lock`: written from layouts, used by `build`, missed by nobody.

use flux_gen::oci::descriptor::REF_NAME;
use flux_gen::oci::document::{Index, Manifest};
use flux_gen::oci::image::{ContainerConfig, ImageConfig};
use flux_gen::oci::layout::{LayoutWriter, WriteOptions};
use flux_gen::oci::{Digest, Platform, media};

use crate::harness::{Sandbox, minicluster};

pub(crate) const VIEW: &str = "ghcr.io/converged-computing/flux-view-ubuntu:tag-noble";

/// A layer with programs.
fn tar_of(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, text) in files {
        let mut header = tar::Header::new_ustar();
        header.set_size(text.len() as u64);
        header.set_mode(0o755);
        builder.append_data(&mut header, name, text.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

/// Writes a layout with images of these names; `bytes` is what is in their layers.
pub(crate) fn layout(sandbox: &Sandbox, folder: &str, names: &[&str], bytes: &str) -> Digest {
    let path = sandbox.path(folder);
    let writer = LayoutWriter::create(&path, WriteOptions { durable: false }).unwrap();
    let platform = |architecture: &str| {
        let tar = tar_of(&[("data", &format!("{bytes} {architecture}"))]);
        let layer = writer.bytes(media::LAYER, &tar).unwrap();
        let config = ImageConfig::new(Platform::linux(architecture), vec![Digest::of(&tar)]);
        let manifest = Manifest::new(writer.json(media::CONFIG, &config).unwrap(), vec![layer]);
        writer.json(media::MANIFEST, &manifest).unwrap().platform(Platform::linux(architecture))
    };
    let index = writer.json(media::INDEX, &Index::new(vec![platform("amd64"), platform("arm64")])).unwrap();
    let roots = names.iter().map(|name| index.clone().annotation(REF_NAME, *name)).collect();
    writer.finish(&Index::new(roots)).unwrap();
    index.digest
}

const COMPANION: &str = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: c}\nspec:\n  schedule: '@daily'\n  jobTemplate:\n    \
    spec:\n      template:\n        spec:\n          restartPolicy: Never\n          containers: [{name: x, image: 'rockylinux:9'}]\n";

fn project() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("examples/a.yaml", &minicluster("a", 2)).write("examples/c.yaml", COMPANION);
    sandbox
}

#[test]
fn digests_get_into_every_object_and_a_lock_is_written_once() {
    let sandbox = project();
    let digest = layout(&sandbox, "images", &["rockylinux:9", VIEW], "one");
    let said = sandbox.run(&["lock", "--from", "images", "--no-facts"]).exits(0).stderr;
    assert_eq!(said, "images.lock written: 2 images\n");
    let text = sandbox.read("images.lock");
    // Known names are not asked for again, so nothing is opened.
    assert_eq!(sandbox.run(&["lock"]).exits(0).stderr, "images.lock is up to date: 2 images\n");
    assert_eq!(sandbox.read("images.lock"), text);
    let _ = sandbox.run(&["lock", "--check"]).exits(0);
    let objects = sandbox.run(&["build", "--stdout", "--locked"]).exits(0).stdout;
    assert_eq!(objects.matches(&format!("image: rockylinux@{digest}")).count(), 2, "{objects}");
    let view = VIEW.rsplit_once(':').unwrap().0;
    assert_eq!(objects.matches(&format!("image: {view}@{digest}")).count(), 1, "{objects}");
    assert!(!objects.contains("image: rockylinux:9"), "{objects}");
}

#[test]
fn an_image_that_the_lock_lacks_is_an_error_at_its_place() {
    let sandbox = project();
    layout(&sandbox, "images", &["rockylinux:9", VIEW], "one");
    let all = sandbox.run(&["build", "--locked"]).exits(1).stderr;
    // Twice in the cluster (its own image and the view), once beside it.
    assert_eq!(all.matches("error[FG902]").count(), 3, "{all}");
    assert!(all.contains("examples/a.yaml:8:14"), "{all}");
    let _ = sandbox.run(&["lock", "--from", "images"]).exits(0);
    sandbox.write("examples/a.yaml", &minicluster("a", 2).replace("rockylinux:9", "rockylinux:8"));
    let stale = sandbox.run(&["build"]).exits(1).stderr;
    assert!(stale.contains("error[FG901]: images.lock does not have the image rockylinux:8"), "{stale}");
    assert!(!sandbox.path("generated").exists());
    let said = sandbox.run(&["lock", "--check"]).exits(3).stderr;
    assert!(said.contains("it does not have rockylinux:8"), "{said}");
    let said = sandbox.run(&["lock", "--check", "--platform", "linux/amd64"]).exits(3).stderr;
    assert!(said.contains("other platforms are asked for"), "{said}");
}

#[test]
fn a_tag_that_moved_is_told_and_only_on_demand() {
    let sandbox = project();
    let old = layout(&sandbox, "images", &["rockylinux:9", VIEW], "one");
    let new = layout(&sandbox, "moved", &["rockylinux:9", VIEW], "two");
    let _ = sandbox.run(&["lock", "--from", "images"]).exits(0);
    let text = sandbox.read("images.lock");
    let _ = sandbox.run(&["lock", "--from", "moved"]).exits(0);
    assert_eq!(sandbox.read("images.lock"), text);
    let said = sandbox.run(&["lock", "--update", "--from", "moved"]).exits(0).stderr;
    assert!(said.contains(&format!("warning[FG905]: rockylinux:9 was {old} and is {new} now")), "{said}");
    assert!(sandbox.read("images.lock").contains(&new.to_string()));
}

#[test]
fn one_image_without_an_answer_leaves_the_lock_as_it_was() {
    let sandbox = project();
    layout(&sandbox, "images", &["rockylinux:9", VIEW], "one");
    let _ = sandbox.run(&["lock", "--from", "images"]).exits(0);
    let text = sandbox.read("images.lock");
    let asked = ["lock", "--from", "images", "--platform", "linux/s390x"];
    let said = sandbox.run(&asked).exits(1).stderr;
    assert_eq!(said.matches("error[FG904]").count(), 2, "{said}");
    let place = "error[FG904]: rockylinux:9 has no image for linux/s390x\n --> examples/a.yaml:";
    assert!(said.contains(place), "once, with the place in the spec: {said}");
    assert_eq!(sandbox.read("images.lock"), text);
    // Only some platforms: the index as published is still what bundles name.
    let _ = sandbox.run(&["lock", "--from", "images", "--platform", "linux/arm64"]).exits(0);
    assert!(sandbox.read("images.lock").contains(".derived]"), "{}", sandbox.read("images.lock"));
}

#[test]
fn an_edited_lock_is_refused() {
    let sandbox = project();
    layout(&sandbox, "images", &["rockylinux:9", VIEW], "one");
    let _ = sandbox.run(&["lock", "--from", "images"]).exits(0);
    let text = sandbox.read("images.lock").replace("rockylinux:9", "rockylinux:7");
    sandbox.write("images.lock", &text);
    for command in ["build", "lock"] {
        let said = sandbox.run(&[command]).exits(1).stderr;
        assert!(said.contains("error[FG903]: images.lock: its `inputs` do not belong to its images"), "{said}");
    }
    let _ = sandbox.run(&["lock", "--update", "--from", "images"]).exits(0);
    let _ = sandbox.run(&["build"]).exits(0);
}

/// A layout with an application's image that has this glibc, and a view that needs glibc 2.39, for these architectures.
fn app_and_view(sandbox: &Sandbox, apps: &[(&str, &str)], views: &[&str]) {
    use flux_gen::view::contract::LABEL;
    let writer = LayoutWriter::create(&sandbox.path("images"), WriteOptions { durable: false }).unwrap();
    let image = |architecture: &str, tar: &[u8], labels: &[(&str, &str)]| {
        let layer = writer.bytes(media::LAYER, tar).unwrap();
        let mut config = ImageConfig::new(Platform::linux(architecture), vec![Digest::of(tar)]);
        let labels = labels.iter().map(|(key, value)| (format!("{LABEL}{key}"), (*value).to_owned())).collect();
        config.config = Some(ContainerConfig { labels, ..ContainerConfig::default() });
        let manifest = Manifest::new(writer.json(media::CONFIG, &config).unwrap(), vec![layer]);
        writer.json(media::MANIFEST, &manifest).unwrap().platform(Platform::linux(architecture))
    };
    let app = apps.iter().map(|(architecture, glibc)| {
        let libc = format!("GNU C Library stable release version {glibc}.");
        let files = [("etc/os-release", "ID=rocky\nVERSION_ID=9.3\n"), ("lib64/libc.so.6", &libc), ("bin/bash", "x")];
        image(architecture, &tar_of(&files), &[])
    });
    let view = views.iter().map(|architecture| {
        image(architecture, &tar_of(&[("opt/x", "x")]), &[("glibc", "2.39"), ("os", "ubuntu-24.04")])
    });
    let app = writer.json(media::INDEX, &Index::new(app.collect())).unwrap().annotation(REF_NAME, "rockylinux:9");
    let view = writer.json(media::INDEX, &Index::new(view.collect())).unwrap().annotation(REF_NAME, VIEW);
    writer.finish(&Index::new(vec![app, view])).unwrap();
}

#[test]
fn a_view_that_is_too_new_for_the_image_is_told_before_the_cluster_does() {
    let misfit = "the view needs glibc 2.39, and the image has 2.34";
    for (apps, views, code) in [
        (&[("amd64", "2.34")][..], &["amd64"][..], Some("error[FG918]")),
        (&[("amd64", "2.39")], &["amd64"], None),
        (&[("amd64", "2.34"), ("arm64", "2.40")], &["amd64", "arm64"], Some("warning[FG918]")),
        (&[("amd64", "2.40"), ("arm64", "2.40")], &["amd64"], Some("warning[FG918]")),
    ] {
        let sandbox = Sandbox::new();
        sandbox.write("examples/a.yaml", &minicluster("a", 2));
        app_and_view(&sandbox, apps, views);
        let said = sandbox.run(&["lock", "--from", "images"]).exits(0).stderr;
        assert!(said.starts_with(&format!("reading what {} image", apps.len())), "{said}");
        let lock = sandbox.read("images.lock");
        assert!(lock.contains("os = \"rocky-9\"") && lock.contains("glibc = \"2.39\""), "{lock}");
        // What is known is not read again, and stays as it is.
        let again = sandbox.run(&["lock"]).exits(0).stderr;
        assert_eq!((again.as_str(), sandbox.read("images.lock")), ("images.lock is up to date: 2 images\n", lock));
        let wrong = code.is_some_and(|code| code.starts_with("error"));
        let built = sandbox.run(&["validate"]).exits(i32::from(wrong)).stderr;
        match code {
            Some(code) => assert!(built.contains(code) && built.contains("examples/a.yaml:8:14"), "{built}"),
            None => assert!(!built.contains("FG918"), "{built}"),
        }
        assert_eq!(built.contains(misfit), apps[0].1 == "2.34", "{built}");
    }
}

#[test]
fn what_is_known_of_an_image_by_its_digest_is_not_read_again() {
    let sandbox = Sandbox::new();
    sandbox.write("examples/a.yaml", &minicluster("a", 2));
    app_and_view(&sandbox, &[("amd64", "2.40"), ("arm64", "2.40")], &["amd64", "arm64"]);
    let said = sandbox.run(&["lock", "--from", "images"]).exits(0).stderr;
    assert!(said.contains("reading what 2 images of applications have"), "{said}");
    let lock = sandbox.read("images.lock");
    assert!(sandbox.path(".flux-gen/.gitignore").exists());
    // Without the lock the facts are known all the same.
    std::fs::remove_file(sandbox.path("images.lock")).unwrap();
    let said = sandbox.run(&["lock", "--from", "images"]).exits(0).stderr;
    assert_eq!((said.as_str(), sandbox.read("images.lock")), ("images.lock written: 2 images\n", lock.clone()));
    // `view match` has found them out too, and keeps them in the same place.
    for folder in [".flux-gen/cache/facts", "images.lock"] {
        let path = sandbox.path(folder);
        if path.is_dir() { std::fs::remove_dir_all(path).unwrap() } else { std::fs::remove_file(path).unwrap() }
    }
    let all = sandbox.read("images/index.json");
    let mut one: serde_json::Value = serde_json::from_str(&all).unwrap();
    one["manifests"].as_array_mut().unwrap().truncate(1);
    sandbox.write("images/index.json", &one.to_string());
    let said = sandbox.run(&["view", "match", "layout:images"]).stdout;
    assert!(said.contains("rocky-9, glibc 2.40, bash"), "{said}");
    sandbox.write("images/index.json", &all);
    let said = sandbox.run(&["lock", "--from", "images"]).exits(0).stderr;
    assert_eq!((said.as_str(), sandbox.read("images.lock")), ("images.lock written: 2 images\n", lock));
}

#[test]
fn an_image_that_cannot_be_read_is_locked_all_the_same() {
    let sandbox = project();
    let writer = LayoutWriter::create(&sandbox.path("images"), WriteOptions { durable: false }).unwrap();
    let layer = writer.bytes(media::LAYER, b"no tar at all").unwrap();
    let config = ImageConfig::new(Platform::linux("amd64"), vec![Digest::of(b"no tar at all")]);
    let manifest = Manifest::new(writer.json(media::CONFIG, &config).unwrap(), vec![layer]);
    let manifest = writer.json(media::MANIFEST, &manifest).unwrap();
    let named = |name: &str| manifest.clone().annotation(REF_NAME, name);
    writer.finish(&Index::new(vec![named("rockylinux:9"), named(VIEW)])).unwrap();
    let said = sandbox.run(&["lock", "--from", "images"]).exits(0).stderr;
    assert!(said.contains("warning[FG917]: rockylinux:9 (linux/amd64): "), "{said}");
    assert!(said.contains("images.lock written: 2 images"), "{said}");
    let _ = sandbox.run(&["build"]).exits(0);
}
