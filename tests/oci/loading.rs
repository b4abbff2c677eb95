//! Loading an archive into a registry that fails, was emptied, or serves two loads at once. Every request is counted.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use flux_gen::airgap::load::ledger::Ledger;
use flux_gen::airgap::load::plan::{Image, Plan, plan};
use flux_gen::airgap::load::push::push;
use flux_gen::airgap::mirror::{Mirror, Prefix, Rule};
use flux_gen::diag::Diagnostics;
use flux_gen::oci::document::{Index, Manifest};
use flux_gen::oci::image::ImageConfig;
use flux_gen::oci::layout::archive::{Contents, save};
use flux_gen::oci::layout::{Layout, LayoutWriter, Limits, WriteOptions};
use flux_gen::oci::transfer::{Quiet, Summary};
use flux_gen::oci::{Descriptor, Digest, Error, Platform, media};

use crate::mock::{Fault, Mock, Setup};
use crate::support::client;

/// An archive with two images that share a large layer, and an SBOM of the first.
struct Project {
    layout: Layout,
    images: Vec<Image>,
    referrers: Vec<Descriptor>,
}

fn index_of(writer: &LayoutWriter, name: &str, shared: &Descriptor) -> Descriptor {
    let images = ["amd64", "arm64"].map(|arch| {
        let own = writer.bytes(media::LAYER, format!("{name} {arch}").as_bytes()).unwrap();
        let diff_ids = vec![shared.digest.clone(), own.digest.clone()];
        let config = writer.json(media::CONFIG, &ImageConfig::new(Platform::linux(arch), diff_ids)).unwrap();
        let manifest = Manifest::new(config, vec![shared.clone(), own]);
        writer.json(media::MANIFEST, &manifest).unwrap().platform(Platform::linux(arch))
    });
    writer.json(media::INDEX, &Index::new(images.to_vec())).unwrap()
}

fn project(folder: &Path) -> Project {
    let writer = LayoutWriter::create(&folder.join("layout"), WriteOptions { durable: false }).unwrap();
    let shared = writer.bytes(media::LAYER, &vec![7; 1 << 20]).unwrap();
    let roots = ["a", "b"].map(|name| index_of(&writer, name, &shared));
    let mut sbom = Manifest::artifact("application/spdx+json", vec![writer.bytes("application/json", b"{}").unwrap()]);
    writer.bytes(media::EMPTY, b"{}").unwrap();
    sbom.subject = Some(roots[0].clone());
    let sbom = writer.json(media::MANIFEST, &sbom).unwrap();
    let index = Index::new([roots.to_vec(), vec![sbom.clone()]].concat());
    let made = writer.finish(&index).unwrap();
    let blobs = flux_gen::oci::graph::Graph::walk(&made, &index.manifests).unwrap();
    let contents = Contents {
        index: made.index_bytes().to_vec(),
        blobs: blobs.descriptors().cloned().collect(),
        ..Contents::default()
    };
    let path = folder.join("archive.tar");
    save(&made, &contents, &path, false, &mut |_| {}).unwrap();
    let layout = Layout::open(&path, &Limits::default()).unwrap();
    let image = |name: &str, root: &Descriptor| Image {
        name: name.parse().unwrap(),
        root: root.clone(),
        published: root.digest.clone(),
    };
    let images = vec![image("ubuntu:noble", &roots[0]), image("ghcr.io/x/b", &roots[1])];
    Project { layout, images, referrers: vec![sbom] }
}

fn mirror(mock: &Mock) -> Mirror {
    let prefix = |text: &str| Prefix::parse(text).unwrap();
    let rules = vec![
        Rule { from: Some(prefix("docker.io/library")), to: prefix(&format!("{}/hub", mock.address)), span: None },
        Rule { from: None, to: prefix(&mock.address), span: None },
    ];
    Mirror::of_rules(rules, &mut Diagnostics::new())
}

fn planned(project: &Project, mock: &Mock) -> Plan {
    plan(&project.layout, &project.images, &project.referrers, &mirror(mock)).unwrap()
}

fn load(project: &Project, mock: &Mock, ledger: &Ledger) -> Result<Summary, Error> {
    push(&project.layout, &planned(project, mock), &client(mock), ledger, 3, &Quiet)
}

/// The ledger beside the archive.
fn ledger(folder: &Path) -> Ledger {
    Ledger::open(&folder.join("archive.tar.loaded"), &Digest::of(b"archive")).unwrap()
}

/// Everything is in its repository, with its tag.
#[track_caller]
fn assert_loaded(project: &Project, mock: &Mock) {
    let plan = planned(project, mock);
    let state = mock.state();
    for (number, destination) in plan.destinations.iter().enumerate() {
        let repo = &state.repos[destination.repository.repository()];
        for blob in plan.blobs.iter().filter(|blob| blob.wanted_by.contains(&number)) {
            assert!(blob.descriptor.digest.matches(&repo.blobs[&blob.descriptor.digest.to_string()]));
        }
        for node in &destination.documents {
            assert_eq!(repo.manifests[&node.descriptor.digest.to_string()].1, node.loaded.bytes);
        }
        let tags: BTreeMap<_, _> =
            destination.tags.iter().map(|(tag, digest)| (tag.clone(), digest.to_string())).collect();
        assert_eq!(repo.tags, tags);
    }
}

/// How many repositories have a blob.
fn stored(mock: &Mock, digest: &Digest) -> usize {
    let state = mock.state();
    state.repos.values().filter(|repo| repo.blobs.contains_key(&digest.to_string())).count()
}

#[test]
fn images_get_to_their_places_with_tags_and_what_is_about_them() {
    let folder = tempfile::tempdir().unwrap();
    let (project, mock) = (project(folder.path()), Mock::new(Setup::default()));
    let plan = planned(&project, &mock);
    let names: Vec<&str> = plan.destinations.iter().map(|d| d.repository.repository()).collect();
    assert_eq!(names, ["ghcr.io/x/b", "hub/ubuntu"]);
    assert_eq!(plan.destinations[0].tags.keys().collect::<Vec<_>>(), ["latest"]);
    let documents: Vec<usize> = plan.destinations.iter().map(|d| d.documents.len()).collect();
    assert_eq!(documents, [3, 4], "the SBOM is with its image alone");
    let summary = load(&project, &mock, &Ledger::default()).unwrap();
    assert_loaded(&project, &mock);
    // Two configurations and layers each, the SBOM, which is its own configuration; the shared layer is sent once.
    assert_eq!((summary.moved, summary.mounted, summary.present, summary.documents), (10, 1, 0, 7), "{summary:?}");
    mock.state().log.clear();
    let again = load(&project, &mock, &Ledger::default()).unwrap();
    assert_eq!((again.moved, again.documents, mock.count("PUT"), mock.count("POST")), (0, 0, 0, 0));
}

#[test]
fn a_load_that_was_stopped_goes_on_and_sends_nothing_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (project, mock) = (project(folder.path()), Mock::new(Setup::default()));
    // The registry dies for good after a few blobs: every later end of an upload fails.
    mock.fail("PUT", "/blobs/uploads/", 5, Fault::Slow(Duration::ZERO));
    mock.fail("PUT", "/blobs/uploads/", usize::MAX, Fault::Reset(100));
    let error = load(&project, &mock, &ledger(folder.path())).unwrap_err();
    assert_eq!(error.kind().code().id, "FG870", "{error}");
    assert!(mock.state().repos.values().all(|repo| repo.tags.is_empty() && repo.manifests.is_empty()));
    let before: usize = mock.state().repos.values().map(|repo| repo.blobs.len()).sum();
    // Five were sent; the shared one may have been mounted besides.
    assert!((5..=6).contains(&before), "{before}");
    mock.revive();
    mock.state().log.clear();
    let summary = load(&project, &mock, &ledger(folder.path())).unwrap();
    assert_loaded(&project, &mock);
    assert_eq!(summary.moved + summary.mounted, 11 - before, "{summary:?}");
    let sent = mock
        .state()
        .log
        .iter()
        .filter(|line| line.contains("/blobs/uploads/upload-") && line.ends_with(" 201"))
        .count();
    assert_eq!(sent, summary.moved, "one upload for each blob that was missing");
}

#[test]
fn what_the_ledger_knows_is_not_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let (project, mock) = (project(folder.path()), Mock::new(Setup::default()));
    let _ = load(&project, &mock, &ledger(folder.path())).unwrap();
    mock.state().log.clear();
    let _ = load(&project, &mock, &ledger(folder.path())).unwrap();
    let asked = mock.state().log.iter().filter(|line| line.contains("/blobs/")).count();
    assert_eq!(asked, 2, "one of each repository, to see that it is still there");
}

#[test]
fn a_registry_that_lost_everything_or_one_blob_gets_it_again() {
    let folder = tempfile::tempdir().unwrap();
    let (project, mock) = (project(folder.path()), Mock::new(Setup::default()));
    let whole = load(&project, &mock, &ledger(folder.path())).unwrap();
    mock.state().repos.clear();
    let again = load(&project, &mock, &ledger(folder.path())).unwrap();
    assert_eq!((again.moved, again.mounted), (whole.moved, whole.mounted));
    assert_loaded(&project, &mock);
    // The first blob is there, so the ledger is believed until a manifest is refused.
    let plan = planned(&project, &mock);
    let lost = plan.blobs.iter().rfind(|blob| blob.wanted_by == [1]).unwrap();
    {
        let mut state = mock.state();
        let repo = state.repos.get_mut("hub/ubuntu").unwrap();
        repo.blobs.remove(&lost.descriptor.digest.to_string());
        repo.manifests.clear();
        repo.tags.clear();
    }
    let mended = load(&project, &mock, &ledger(folder.path())).unwrap();
    assert_eq!(mended.moved, 1, "{mended:?}");
    assert_loaded(&project, &mock);
    assert_eq!(stored(&mock, &lost.descriptor.digest), 1);
}

#[test]
fn two_loads_at_once_are_fine() {
    let folder = tempfile::tempdir().unwrap();
    let (project, mock) = (project(folder.path()), Mock::new(Setup::default()));
    std::thread::scope(|scope| {
        let one = || load(&project, &mock, &ledger(folder.path())).map(drop);
        let both = [scope.spawn(one), scope.spawn(one)];
        both.into_iter().for_each(|load| load.join().unwrap().unwrap());
    });
    assert_loaded(&project, &mock);
    mock.state().log.clear();
    let after = load(&project, &mock, &ledger(folder.path())).unwrap();
    assert_eq!((after.moved, after.mounted, after.documents), (0, 0, 0), "{after:?}");
}

#[test]
fn a_registry_that_may_only_be_read_is_told_and_has_no_tag() {
    let folder = tempfile::tempdir().unwrap();
    let (project, mock) = (project(folder.path()), Mock::new(Setup::default()));
    mock.fail("POST", "/blobs/uploads/", usize::MAX, Fault::Status(403, Vec::new()));
    let error = load(&project, &mock, &ledger(folder.path())).unwrap_err();
    assert_eq!(error.kind().code().id, "FG873", "{error}");
    assert!(error.to_string().contains(&mock.address), "{error}");
    assert!(mock.state().repos.values().all(|repo| repo.tags.is_empty()));
}

#[test]
fn a_plan_names_every_problem_and_asks_no_registry() {
    let folder = tempfile::tempdir().unwrap();
    let (mut project, mock) = (project(folder.path()), Mock::new(Setup::default()));
    let other = project.images[1].root.clone();
    project.images.push(Image {
        name: "index.docker.io/library/ubuntu:noble".parse().unwrap(),
        published: other.digest.clone(),
        root: other.clone(),
    });
    let gone = Descriptor::new(media::INDEX, Digest::of(b"gone"), 4);
    let published = gone.digest.clone();
    project.images.push(Image { name: "quay.io/a/gone:1".parse().unwrap(), root: gone, published });
    let problems = plan(&project.layout, &project.images, &project.referrers, &mirror(&mock)).unwrap_err();
    let codes: Vec<&str> = problems.iter().map(|problem| problem.code.id).collect();
    assert_eq!(codes, ["FG941", "FG863"], "{problems:?}");
    let alone =
        Rule { from: Some(Prefix::parse("ghcr.io").unwrap()), to: Prefix::parse(&mock.address).unwrap(), span: None };
    let narrow = Mirror::of_rules(vec![alone], &mut Diagnostics::new());
    let problems = plan(&project.layout, &project.images[..2], &[], &narrow).unwrap_err();
    assert_eq!(problems.len(), 1);
    assert!(problems[0].message.contains("docker.io/library/ubuntu:noble"), "{problems:?}");
    assert!(mock.state().log.is_empty());
}
