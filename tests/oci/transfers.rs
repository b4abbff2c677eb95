//! Pushing, pulling, copying: what is sent and what is not.

use flux_gen::oci::document::{Document, Index, Manifest};
use flux_gen::oci::layout::{self, Layout, LayoutWriter, Limits, WriteOptions};
use flux_gen::oci::registry::Repository;
use flux_gen::oci::source::{self, Bytes, Source};
use flux_gen::oci::transfer::{self, Quiet, Summary, Tagged, TransferOptions};
use flux_gen::oci::{Descriptor, Error, ErrorKind, Platform, media};

use crate::mock::{Fault, Mock, Setup};
use crate::support::*;

#[test]
fn what_is_there_is_not_sent_again() {
    let work = tempfile::tempdir().unwrap();
    let layout = image(work.path());
    for relative in [true, false] {
        let mock = Mock::new(Setup { relative, ..Setup::default() });
        let client = client(&mock);
        let events = Noted::default();
        let target = target(&client, &mock, "a/b");
        let options = TransferOptions::default();
        let first = transfer::push(&layout, &tagged(&layout), &target, &options, &events).unwrap();
        let graph = flux_gen::oci::graph::Graph::walk(&layout, layout.roots()).unwrap();
        let bytes = graph.blobs.iter().map(|blob| blob.size).sum();
        assert_eq!(first, Summary { present: 0, mounted: 0, moved: 5, bytes, documents: 3 });
        assert_complete(&layout, &mock, "a/b");
        assert_eq!((events.has("Planned"), events.has("Done"), events.has("Tag")), (1, 5, 1));
        let log: Vec<String> = mock.state().log.clone();
        let last = log.iter().rev().find(|line| line.starts_with("PUT")).unwrap();
        assert_eq!(last, "PUT /v2/a/b/manifests/v1 201", "the tag is moved last");
        mock.state().log.clear();
        let events = Noted::default();
        let second = transfer::push(&layout, &tagged(&layout), &target, &options, &events).unwrap();
        assert_eq!(second, Summary { present: 5, ..Summary::default() });
        assert_eq!((mock.count("PUT"), mock.count("POST"), mock.count("PATCH")), (0, 0, 0), "{:?}", mock.state().log);
        assert_eq!((events.has("Present"), events.has("present: true")), (5, 3));
    }
}

#[test]
fn one_changed_layer_is_one_upload() {
    let work = tempfile::tempdir().unwrap();
    let layout = image(work.path());
    let mock = Mock::new(Setup::default());
    let client = client(&mock);
    let target = target(&client, &mock, "a");
    push(&layout, &target).unwrap();
    mock.state().log.clear();
    let writer = LayoutWriter::create(layout.path(), WriteOptions { durable: false }).unwrap();
    let arm = source::of_platform(&layout, &layout.roots()[0], &Platform::linux("arm64")).unwrap();
    let Document::Manifest(mut manifest) = source::document(&layout, &arm).unwrap().document else { panic!() };
    manifest.layers[1] = writer.bytes(media::LAYER, b"changed").unwrap();
    let changed = writer.json(media::MANIFEST, &manifest).unwrap();
    let layout = writer.finish(&Index::new(vec![changed])).unwrap();
    let summary = push(&layout, &target).unwrap();
    assert_eq!(summary, Summary { present: 2, moved: 1, bytes: 7, documents: 1, mounted: 0 });
}

#[test]
fn blobs_are_mounted_from_where_they_are() {
    let work = tempfile::tempdir().unwrap();
    let layout = image(work.path());
    for (mounts, mounted) in [(true, 5), (false, 0)] {
        let mock = Mock::new(Setup { mounts, ..Setup::default() });
        let client = client(&mock);
        push(&layout, &target(&client, &mock, "one")).unwrap();
        let from = vec!["none".to_owned(), "one".to_owned()];
        let target = Repository::to_push(&client, &reference(&mock, "two"), &from);
        mock.state().log.clear();
        let options = TransferOptions { mount_from: from, ..TransferOptions::default() };
        let summary = transfer::push(&layout, &tagged(&layout), &target, &options, &Quiet).unwrap();
        assert_eq!((summary.mounted, summary.moved), (mounted, 5 - mounted));
        assert_complete(&layout, &mock, "two");
        if !mounts {
            assert_eq!(mock.count("POST"), 5, "a 202 is the upload itself");
        }
    }
}

#[test]
fn what_was_pushed_comes_back_the_same() {
    let work = tempfile::tempdir().unwrap();
    let layout = image(work.path());
    let mock = Mock::new(Setup::default());
    let client = client(&mock);
    push(&layout, &target(&client, &mock, "a")).unwrap();
    let repository = Repository::to_pull(&client, &reference(&mock, "a"));
    let root = repository.resolve("v1").unwrap().unwrap();
    assert_eq!(root.digest, layout.roots()[0].digest);
    assert_eq!(repository.resolve(&root.digest.to_string()).unwrap().as_ref(), Some(&root));
    assert_eq!(repository.resolve("none").unwrap(), None);
    let writer = LayoutWriter::create(&work.path().join("back"), WriteOptions { durable: false }).unwrap();
    let events = Noted::default();
    let summary =
        transfer::pull(&repository, std::slice::from_ref(&root), &writer, &TransferOptions::default(), &events)
            .unwrap();
    assert_eq!((summary.moved, summary.documents), (5, 3));
    let back = writer.finish(&Index::new(vec![root])).unwrap();
    assert_eq!(back.verify().unwrap(), layout.verify().unwrap());
    assert_eq!(layout::verify(&repository, layout.roots()).problems, []);
    let writer = LayoutWriter::create(back.path(), WriteOptions { durable: false }).unwrap();
    let again = transfer::pull(&repository, back.roots(), &writer, &TransferOptions::default(), &Quiet).unwrap();
    assert_eq!(again, Summary { present: 5, ..Summary::default() });
    let one = source::of_platform(&repository, &back.roots()[0], &Platform::linux("arm64")).unwrap();
    assert_eq!(source::document(&repository, &one).unwrap().document.children().len(), 3);
}

#[test]
fn from_an_archive_and_from_registry_to_registry() {
    let work = tempfile::tempdir().unwrap();
    let layout = image(work.path());
    let graph = flux_gen::oci::graph::Graph::walk(&layout, layout.roots()).unwrap();
    let contents = layout::archive::Contents {
        index: layout.index_bytes().to_vec(),
        blobs: graph.descriptors().cloned().collect(),
        ..Default::default()
    };
    let path = work.path().join("a.tar");
    layout::archive::save(&layout, &contents, &path, false, &mut |_| ()).unwrap();
    let archive = Layout::open(&path, &Limits::default()).unwrap();
    let mock = Mock::new(Setup::default());
    let client = client(&mock);
    push(&archive, &target(&client, &mock, "a")).unwrap();
    assert_complete(&layout, &mock, "a");
    let other = Mock::new(Setup::default());
    let there = crate::support::client(&other);
    let from = Repository::to_pull(&client, &reference(&mock, "a"));
    let root = from.resolve("v1").unwrap().unwrap();
    let images = [Tagged { root, tags: vec!["v1".to_owned()] }];
    let to = target(&there, &other, "b");
    transfer::push(&from, &images, &to, &TransferOptions::default(), &Quiet).unwrap();
    assert_complete(&layout, &other, "b");
}

#[test]
fn an_empty_layer_is_a_blob_too() {
    let work = tempfile::tempdir().unwrap();
    let writer = LayoutWriter::create(&work.path().join("empty"), WriteOptions { durable: false }).unwrap();
    let layer = writer.bytes(media::LAYER, b"").unwrap();
    let config = writer.bytes(media::CONFIG, b"{}").unwrap();
    let root = writer.json(media::MANIFEST, &Manifest::new(config, vec![layer])).unwrap();
    let layout = writer.finish(&Index::new(vec![root])).unwrap();
    for pieces_only in [false, true] {
        let mock = Mock::new(Setup { pieces_only, ..Setup::default() });
        let client = client(&mock);
        let target = target(&client, &mock, "a");
        push(&layout, &target).unwrap();
        assert_complete(&layout, &mock, "a");
        assert_eq!(layout::verify(&target, layout.roots()).problems, []);
    }
}

#[test]
fn tags_are_listed_page_by_page() {
    let work = tempfile::tempdir().unwrap();
    let layout = image(work.path());
    let mock = Mock::new(Setup::default());
    let client = client(&mock);
    let target = target(&client, &mock, "a");
    assert_eq!(target.tags().unwrap(), Vec::<String>::new());
    let tags: Vec<String> = (0..7).map(|i| format!("t{i}")).collect();
    let images = [Tagged { root: layout.roots()[0].clone(), tags: tags.clone() }];
    transfer::push(&layout, &images, &target, &TransferOptions::default(), &Quiet).unwrap();
    assert_eq!(target.tags().unwrap(), tags);
}

/// Adds two SBOMs to a layout and pushes both at the same time.
fn push_referrers(layout: &Layout, target: &Repository) -> Descriptor {
    let writer = LayoutWriter::create(layout.path(), WriteOptions { durable: false }).unwrap();
    let (config, empty) = flux_gen::oci::document::empty_object();
    writer.document(&config, empty).unwrap();
    let subject = layout.roots()[0].clone();
    let roots: Vec<Descriptor> = ["application/spdx+json", "application/vnd.cyclonedx+json"]
        .map(|kind| {
            let sbom = writer.bytes(kind, format!("\"{kind}\"").as_bytes()).unwrap();
            let mut manifest = Manifest::artifact(kind, vec![sbom]);
            manifest.subject = Some(Descriptor::new(subject.media_type.clone(), subject.digest.clone(), subject.size));
            writer.json(media::MANIFEST, &manifest).unwrap()
        })
        .to_vec();
    drop(writer);
    let push = |root: &Descriptor| {
        let images = [Tagged { root: root.clone(), tags: Vec::new() }];
        transfer::push(layout, &images, target, &TransferOptions::default(), &Quiet).unwrap();
    };
    roots.iter().for_each(push);
    roots.iter().for_each(push);
    subject
}

#[test]
fn referrers_are_listed_with_and_without_the_api() {
    for (referrers, list_subjects) in [(true, true), (false, false), (true, false)] {
        let work = tempfile::tempdir().unwrap();
        let layout = image(work.path());
        let mock = Mock::new(Setup { referrers, list_subjects, ..Setup::default() });
        let client = client(&mock);
        let target = target(&client, &mock, "a");
        push(&layout, &target).unwrap();
        let subject = push_referrers(&layout, &target);
        let all = target.referrers(&subject.digest, None).unwrap();
        assert_eq!(all.len(), 2, "{referrers}");
        let one = target.referrers(&subject.digest, Some("application/spdx+json")).unwrap();
        assert_eq!(one.len(), 1);
        let tag = format!("sha256-{}", subject.digest.hex());
        assert_eq!(mock.state().repos["a"].tags.contains_key(&tag), !list_subjects);
    }
}

#[test]
fn a_list_of_referrers_is_written_again_when_others_write_too() {
    let work = tempfile::tempdir().unwrap();
    let layout = image(work.path());
    let mock = Mock::new(Setup { referrers: false, ..Setup::default() });
    let client = client(&mock);
    let target = target(&client, &mock, "a");
    push(&layout, &target).unwrap();
    let subject = &layout.roots()[0].digest;
    let graph = flux_gen::oci::graph::Graph::walk(&layout, layout.roots()).unwrap();
    std::thread::scope(|scope| {
        for node in &graph.documents[..2] {
            let target = &target;
            scope.spawn(move || target.add_referrer(subject, &node.descriptor).unwrap());
        }
    });
    assert_eq!(target.referrers(subject, None).unwrap().len(), 2);
}

/// A source that breaks in the middle of the large layer, as when the process is killed.
struct Breaks<'a>(&'a Layout);

impl Source for Breaks<'_> {
    fn name(&self) -> String {
        "broken".to_owned()
    }

    fn size(&self, descriptor: &Descriptor) -> Result<Option<u64>, Error> {
        self.0.size(descriptor)
    }

    fn read(&self, descriptor: &Descriptor, offset: u64) -> Result<Bytes, Error> {
        if descriptor.size == LARGE as u64 {
            return Err(Error::new(ErrorKind::Store, "the disk is gone"));
        }
        self.0.read(descriptor, offset)
    }
}

#[test]
fn a_push_that_stops_leaves_no_tag() {
    let work = tempfile::tempdir().unwrap();
    let layout = image(work.path());
    let mock = Mock::new(Setup::default());
    let client = client(&mock);
    let target = target(&client, &mock, "a");
    let error =
        transfer::push(&Breaks(&layout), &tagged(&layout), &target, &TransferOptions::default(), &Quiet).unwrap_err();
    assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Store, "the disk is gone"));
    {
        let state = mock.state();
        let repo = state.repos.get("a");
        assert!(repo.is_none_or(|repo| repo.tags.is_empty() && repo.manifests.is_empty()));
    }
    push(&layout, &target).unwrap();
    assert_complete(&layout, &mock, "a");
}

#[test]
fn damage_on_the_way_is_no_image() {
    let work = tempfile::tempdir().unwrap();
    let layout = image(work.path());
    let large = large(&layout);
    let path = layout.path().join(large.digest.blob_path());
    let good = std::fs::read(&path).unwrap();
    let mut bad = good.clone();
    bad[LARGE - 1] ^= 1;
    std::fs::write(&path, bad).unwrap();
    let mock = Mock::new(Setup::default());
    let client = client(&mock);
    let target = target(&client, &mock, "a");
    let error = push(&layout, &target).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Digest);
    assert!(!mock.state().repos.get("a").is_some_and(|r| r.blobs.contains_key(&large.digest.to_string())));
    std::fs::write(&path, good).unwrap();
    push(&layout, &target).unwrap();
    mock.fail("GET", "/blobs/", 1, Fault::WrongBody);
    let writer = LayoutWriter::create(&work.path().join("back"), WriteOptions { durable: false }).unwrap();
    let error = transfer::pull(&target, layout.roots(), &writer, &TransferOptions::default(), &Quiet).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Digest);
    mock.fail("GET", "/manifests/", 1, Fault::WrongBody);
    let error = transfer::pull(&target, layout.roots(), &writer, &TransferOptions::default(), &Quiet).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Digest);
}

#[test]
fn two_pushes_at_once_are_one_image() {
    let work = tempfile::tempdir().unwrap();
    let layout = image(work.path());
    let mock = Mock::new(Setup::default());
    let client = client(&mock);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| push(&layout, &target(&client, &mock, "a")).unwrap());
        }
    });
    assert_complete(&layout, &mock, "a");
}

#[test]
fn one_at_a_time_works_too() {
    let work = tempfile::tempdir().unwrap();
    let layout = image(work.path());
    let mock = Mock::new(Setup::default());
    let client = client(&mock);
    let options = TransferOptions { parallel: 0, ..TransferOptions::default() };
    let target = target(&client, &mock, "a");
    let events = Noted::default();
    transfer::push(&layout, &tagged(&layout), &target, &options, &events).unwrap();
    assert_complete(&layout, &mock, "a");
    // Without others in between each blob's events stand together.
    let events = events.0.into_inner().unwrap();
    let done = events.iter().position(|e| e.contains("Done")).unwrap();
    assert!(events[1..done].iter().all(|e| e.contains(large(&layout).digest.hex())), "large ones first");
}
