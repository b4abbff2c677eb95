//! `images.lock`: written from layouts, used by `build`, missed by nobody.

use flux_gen::oci::descriptor::REF_NAME;
use flux_gen::oci::document::{Index, Manifest};
use flux_gen::oci::image::ImageConfig;
use flux_gen::oci::layout::{LayoutWriter, WriteOptions};
use flux_gen::oci::{Digest, Platform, media};

use crate::harness::{Sandbox, minicluster};

const VIEW: &str = "ghcr.io/converged-computing/flux-view-ubuntu:tag-noble";

/// Writes a layout with images of these names; `bytes` is what is in their layers.
pub(crate) fn layout(sandbox: &Sandbox, folder: &str, names: &[&str], bytes: &str) -> Digest {
    let path = sandbox.path(folder);
    let writer = LayoutWriter::create(&path, WriteOptions { durable: false }).unwrap();
    let platform = |architecture: &str| {
        let tar = format!("{bytes} {architecture}");
        let layer = writer.bytes(media::LAYER, tar.as_bytes()).unwrap();
        let config = ImageConfig::new(Platform::linux(architecture), vec![Digest::of(tar.as_bytes())]);
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
    let said = sandbox.run(&["lock", "--from", "images"]).exits(0).stderr;
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
    assert!(said.contains("rockylinux:9 has no image for linux/s390x"), "{said}");
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
