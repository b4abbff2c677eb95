//! Archives for air-gapped sites: the same bytes each time, every fault found, stopped saves taken up again.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flux_gen::airgap::answer::answer;
use flux_gen::airgap::archive::collect::collect;
use flux_gen::airgap::archive::contents::{Contents, Project, ProjectFile};
use flux_gen::airgap::archive::save::{SaveOptions, partial, save};
use flux_gen::airgap::archive::verify::{Report, verify};
use flux_gen::airgap::archive::{ABOUT_FILE, Archive, CHECKSUMS_FILE, Place, Problem};
use flux_gen::airgap::load::ledger::Ledger;
use flux_gen::airgap::load::plan::{of_archive, plan};
use flux_gen::airgap::load::push::push;
use flux_gen::airgap::lock::{Lock, Origin};
use flux_gen::airgap::mirror::{Mirror, Prefix, Rule};
use flux_gen::diag::Diagnostics;
use flux_gen::oci::document::{Index, Manifest};
use flux_gen::oci::image::ImageConfig;
use flux_gen::oci::layout::{Layout, LayoutWriter, Limits, WriteOptions};
use flux_gen::oci::registry::Repository;
use flux_gen::oci::transfer::{self, Quiet, Summary, Tagged, TransferOptions};
use flux_gen::oci::{Descriptor, Digest, Platform, Reference, media};

use crate::mock::{Fault, Mock, Setup};
use crate::support::{Noted, client, reference, target};

const SAVE: SaveOptions = SaveOptions { parallel: 3, durable: false };
const TWO: [&str; 2] = ["amd64", "arm64"];

/// Bytes that look like nothing in particular, the same each time.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut numbers = Numbers(seed);
    (0..length).map(|_| numbers.next() as u8).collect()
}

/// Marsaglia's xorshift64.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// A layout with an index of two platforms, a plain manifest with a layer in zstd, and an SBOM of the first.
fn layout(folder: &Path) -> Layout {
    let writer = LayoutWriter::create(&folder.join("layout"), WriteOptions { durable: false }).unwrap();
    let image = |arch: &str, kind: &str, seed: u64, size: usize| {
        let shared = writer.bytes(media::LAYER_GZIP, &noise(7, 9000)).unwrap();
        let own = writer.bytes(kind, &noise(seed, size)).unwrap();
        let diff_ids = vec![shared.digest.clone(), own.digest.clone()];
        let config = writer.json(media::CONFIG, &ImageConfig::new(Platform::linux(arch), diff_ids)).unwrap();
        let manifest = Manifest::new(config, vec![shared, own]);
        writer.json(media::MANIFEST, &manifest).unwrap().platform(Platform::linux(arch))
    };
    let images: Vec<Descriptor> =
        TWO.into_iter().zip(1..).map(|(arch, seed)| image(arch, media::LAYER_GZIP, seed, 20_000)).collect();
    let index = writer.json(media::INDEX, &Index::new(images.clone())).unwrap();
    let plain = image("amd64", media::LAYER_ZSTD, 9, 3000);
    let sbom = writer.bytes("application/spdx+json", b"{\"spdx\":1}").unwrap();
    let mut about = Manifest::artifact("application/spdx+json", vec![sbom]);
    let (_, empty) = flux_gen::oci::document::empty_object();
    writer.bytes(media::EMPTY, empty).unwrap();
    about.subject = Some(images[0].clone());
    let about = writer.json(media::MANIFEST, &about).unwrap();
    let name = |d: Descriptor, name: &str| d.annotation(flux_gen::oci::descriptor::REF_NAME, name);
    let plain = Descriptor { platform: None, ..plain };
    let roots = vec![name(index, "example.org/app:1"), name(plain, "example.org/tool"), about];
    writer.finish(&Index::new(roots)).unwrap()
}

fn open_layout(folder: &Path) -> Layout {
    Layout::open(&folder.join("layout"), &Limits::default()).unwrap()
}

/// The lock that `flux-gen lock` would write.
fn lock(layout: &Layout, platforms: &[&str]) -> Lock {
    let platforms: BTreeSet<Platform> = platforms.iter().map(|arch| Platform::linux(arch)).collect();
    let mut lock = Lock { platforms: platforms.clone(), ..Lock::default() };
    for name in ["example.org/app:1", "example.org/tool"] {
        let root = layout.find(Some(name)).unwrap();
        let image = answer(name, layout, root, &platforms, Origin::Registry).unwrap();
        lock.images.insert(name.to_owned(), image);
    }
    lock
}

/// A bundle with both images, and a source.
fn project(folder: &Path, lock: &Lock) -> Project {
    let pinned = |name: &str| flux_gen::airgap::lock::pinned_name(name, &lock.images[name]).unwrap();
    let job = format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: a}}\nspec: {{template: {{spec: {{containers: \
         [{{name: a, image: '{}'}}, {{name: b, image: '{}'}}]}}}}}}\n",
        pinned("example.org/app:1"),
        pinned("example.org/tool")
    );
    let file = |name: &str, text: &str| {
        let path = folder.join(name.replace('/', "-"));
        fs::write(&path, text).unwrap();
        ProjectFile::of(name, &path).unwrap()
    };
    let long = format!("{}/job.yaml", "very-long-name-of-a-namespace-".repeat(5));
    Project {
        lock: lock.to_text().unwrap(),
        bundles: vec![file("default/a/job.yaml", &job), file(&long, "# nothing\n")],
        sources: vec![file("examples/a.yaml", "x: 1\n")],
        tool: None,
    }
}

fn contents(folder: &Path, place: Place, platforms: &[&str]) -> Contents {
    let lock = lock(&open_layout(folder), platforms);
    let place = Arc::new(place);
    let wanted = lock.platforms.clone();
    let collected = collect(&lock, &wanted, &|_, _| Ok(Arc::clone(&place))).unwrap();
    Contents::new(collected, &wanted, &project(folder, &lock)).unwrap()
}

/// An archive of the layout.
fn saved(folder: &Path, name: &str, platforms: &[&str]) -> PathBuf {
    let path = folder.join(name);
    let contents = contents(folder, Place::layout(layout(folder)), platforms);
    save(&contents, &path, SAVE, &Quiet).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().len(), contents.size);
    assert!(!partial(&path).exists());
    path
}

fn problems(report: &Report) -> Vec<String> {
    report.problems.iter().map(|p| format!("{} {}", p.code.id, p.message)).collect()
}

#[track_caller]
fn whole(path: &Path) -> Report {
    let report = verify(path, &[]).unwrap();
    assert_eq!(problems(&report), Vec::<String>::new());
    report
}

fn extract(archive: &Path, to: &Path) {
    tar::Archive::new(fs::File::open(archive).unwrap()).unpack(to).unwrap();
}

/// Where some bytes are.
fn place_of(bytes: &[u8], part: &[u8]) -> usize {
    bytes.windows(part.len()).position(|window| window == part).unwrap()
}

#[test]
fn the_same_gives_the_same_bytes_and_everybody_can_read_them() {
    let work = tempfile::tempdir().unwrap();
    let one = saved(work.path(), "one.tar", &[]);
    let two = saved(work.path(), "two.tar", &[]);
    assert_eq!(fs::read(&one).unwrap(), fs::read(&two).unwrap());
    let report = whole(&one);
    let archive = Archive::open(&one).unwrap();
    assert_eq!((report.images, archive.about().images.len()), (2, 2));
    // The published index with all its platforms, byte for byte.
    let layout = open_layout(work.path());
    let app = archive.about().image("example.org/app:1").unwrap();
    assert_eq!(app.digest, app.carried);
    assert_eq!(archive.root(app).unwrap().digest, layout.roots()[0].digest);
    assert_eq!(archive.referrers().count(), 1);
    let names: Vec<&str> = archive.sources().map(|(name, _)| name).collect();
    assert_eq!(names, ["examples/a.yaml"]);
    // Small members first, and blobs from the smallest to the largest.
    let mut tar = tar::Archive::new(fs::File::open(&one).unwrap());
    let entries = tar.entries().unwrap().map(|e| e.unwrap());
    let order: Vec<(String, u64)> =
        entries.map(|e| (String::from_utf8(e.path_bytes().to_vec()).unwrap(), e.size())).collect();
    assert_eq!((order[0].0.as_str(), order[1].0.as_str()), ("oci-layout", "index.json"));
    let first = order.iter().position(|(name, _)| name.starts_with("blobs/")).unwrap();
    assert_eq!(order[first - 1].0, CHECKSUMS_FILE);
    assert!(order[first..].is_sorted_by_key(|(_, size)| *size));
    // Extracted it is the same archive.
    let folder = work.path().join("folder");
    extract(&one, &folder);
    assert_eq!(whole(&folder).digest, report.digest);
    assert_eq!(Archive::open(&folder).unwrap().about(), archive.about());
    // Programs that know `docker save` alone get what they can read: the tool's layer is in zstd.
    let docker = archive.about().docker.clone().unwrap();
    assert_eq!(docker.platform, "linux/amd64");
    assert_eq!(docker.left_out.keys().collect::<Vec<_>>(), ["example.org/tool"]);
    let listed: serde_json::Value = serde_json::from_slice(&archive.read_member("manifest.json").unwrap()).unwrap();
    assert_eq!(listed[0]["RepoTags"], serde_json::json!(["example.org/app:1"]));
    for layer in listed[0]["Layers"].as_array().unwrap() {
        assert!(order.iter().any(|(name, _)| name == layer.as_str().unwrap()));
    }
}

#[test]
fn chosen_platforms_have_an_index_of_their_own() {
    let work = tempfile::tempdir().unwrap();
    let path = saved(work.path(), "arm.tar", &["amd64"]);
    let _ = whole(&path);
    let archive = Archive::open(&path).unwrap();
    let app = archive.about().image("example.org/app:1").unwrap();
    assert!(app.is_derived());
    assert_eq!(app.platforms.keys().collect::<Vec<_>>(), ["linux/amd64"]);
    let locked = archive.lock().images["example.org/app:1"].derived.clone().unwrap();
    assert_eq!(app.carried, locked.digest);
    // The published index comes along, so that anybody can see where the other one comes from.
    assert!(archive.blob_size(&app.digest).unwrap().is_some());
    let report = verify(&path, &[Platform::linux("amd64"), Platform::linux("arm64")]).unwrap();
    let found = problems(&report);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("example.org/app:1 is not there for linux/arm64, only for linux/amd64"), "{found:?}");
}

#[test]
fn a_platform_that_the_lock_lacks_is_refused_for_every_image() {
    let work = tempfile::tempdir().unwrap();
    let place = Arc::new(Place::layout(layout(work.path())));
    let lock = lock(&open_layout(work.path()), &[]);
    let wanted = BTreeSet::from([Platform::linux("s390x")]);
    let found = collect(&lock, &wanted, &|_, _| Ok(Arc::clone(&place))).unwrap_err();
    assert_eq!(found.len(), 2);
    assert!(found[0].message.contains("no image for linux/s390x; it has linux/amd64, linux/arm64"), "{found:?}");
}

#[test]
fn every_truncation_is_found() {
    let work = tempfile::tempdir().unwrap();
    let path = saved(work.path(), "a.tar", &[]);
    let bytes = fs::read(&path).unwrap();
    let cut = work.path().join("cut.tar");
    for part in 0..50 {
        fs::write(&cut, &bytes[..bytes.len() * part / 50]).unwrap();
        match verify(&cut, &[]) {
            Ok(report) => assert!(problems(&report).iter().any(|p| p.contains("it ends after")), "{part} {report:?}"),
            Err(problem) => assert_eq!(problem.code.id, "FG910", "{part}"),
        }
    }
    for less in [1, 511, 512, 1023, 1024] {
        fs::write(&cut, &bytes[..bytes.len() - less]).unwrap();
        assert!(!verify(&cut, &[]).unwrap().problems.is_empty(), "{less}");
    }
    for more in [1, 512, 4096] {
        let mut longer = bytes.clone();
        longer.resize(bytes.len() + more, 0);
        fs::write(&cut, &longer).unwrap();
        assert!(!verify(&cut, &[]).unwrap().problems.is_empty(), "{more}");
    }
}

/// Every flipped bit is found, wherever it is: in contents, in headers, in padding, at the end.
#[test]
fn every_flipped_bit_is_found() {
    let work = tempfile::tempdir().unwrap();
    let path = saved(work.path(), "a.tar", &["amd64"]);
    let good = fs::read(&path).unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    let mut numbers = Numbers(42);
    let length = good.len() as u64;
    // Most of the file is blobs; half of the positions are in the part before them.
    let blobs = good.chunks(512).position(|block| block.starts_with(b"blobs/")).unwrap() as u64 * 512;
    for turn in 0..800 {
        let at = if turn % 2 == 0 { numbers.below(length) } else { numbers.below(blobs) };
        let bit = 1_u8 << numbers.below(8);
        let byte = good[usize::try_from(at).unwrap()];
        file.write_all_at(&[byte ^ bit], at).unwrap();
        if let Ok(report) = verify(&path, &[]) {
            assert!(!report.problems.is_empty(), "byte {at} of {length}, bit {bit}");
        }
        file.write_all_at(&[byte], at).unwrap();
    }
    let _ = whole(&path);
}

#[test]
fn damages_are_named_with_place_and_image() {
    let work = tempfile::tempdir().unwrap();
    let path = saved(work.path(), "a.tar", &[]);
    let good = fs::read(&path).unwrap();
    let layer = Digest::of(&noise(2, 20_000));
    let at = place_of(&good, &noise(2, 64));
    let change = |offset: usize| {
        let mut bytes = good.clone();
        bytes[offset] ^= 1;
        fs::write(&path, &bytes).unwrap();
        problems(&verify(&path, &[]).unwrap())
    };
    let found = change(at + 5);
    assert!(
        found[0].contains(&format!("the content of {} (at offset {at}) has the digest", layer.blob_path())),
        "{found:?}"
    );
    assert!(found.iter().any(|p| p.contains("of example.org/app:1 cannot be used")), "{found:?}");
    let found = change(at - 512);
    let expect = format!("the header of {} is damaged (at offset {})", layer.blob_path(), at - 512);
    assert!(found.iter().any(|p| p.contains(&expect)), "{found:?}");
    // Two at once.
    let mut bytes = good.clone();
    let text = place_of(&good, b"x: 1\n");
    for offset in [at, text] {
        bytes[offset] ^= 1;
    }
    fs::write(&path, &bytes).unwrap();
    let found = problems(&verify(&path, &[]).unwrap());
    assert!(found.iter().any(|p| p.contains("flux-gen/sources/examples/a.yaml (at offset")), "{found:?}");
    assert!(found.iter().any(|p| p.contains(layer.hex())), "{found:?}");
}

#[test]
fn faults_of_an_extracted_folder() {
    let work = tempfile::tempdir().unwrap();
    let path = saved(work.path(), "a.tar", &["amd64"]);
    let blob = Digest::of(&noise(1, 20_000)).blob_path();
    let case = |change: &dyn Fn(&Path), expect: &str| {
        let folder = work.path().join("folder");
        extract(&path, &folder);
        change(&folder);
        let found = problems(&verify(&folder, &[]).unwrap());
        assert!(found.iter().any(|p| p.contains(expect)), "{expect}: {found:?}");
        fs::remove_dir_all(&folder).unwrap();
    };
    case(&|f| fs::remove_file(f.join(&blob)).unwrap(), &format!("{blob} of example.org/app:1 is not in it"));
    case(&|f| fs::write(f.join(&blob), b"x").unwrap(), "has the digest");
    case(&|f| fs::write(f.join("flux-gen/more"), b"x").unwrap(), "does not name flux-gen/more");
    case(&|f| fs::write(f.join("README"), b"x").unwrap(), "files that no archive has: README");
    case(&|f| fs::remove_file(f.join(CHECKSUMS_FILE)).unwrap(), "flux-gen/checksums.sha256 is not there");
    // A whole set of checksums that fits does not help when an image is missing.
    case(
        &|f| {
            let text = fs::read_to_string(f.join(CHECKSUMS_FILE)).unwrap();
            let left: String = text.lines().filter(|l| !l.contains(&blob)).map(|l| format!("{l}\n")).collect();
            fs::write(f.join(CHECKSUMS_FILE), left).unwrap();
            fs::remove_file(f.join(&blob)).unwrap();
        },
        &format!("FG913 {}: {blob} of example.org/app:1 is not in it", work.path().join("folder").display()),
    );
    case(
        &|f| {
            let file = f.join("flux-gen/generated/default/a/job.yaml");
            let text = fs::read_to_string(&file).unwrap();
            let start = text.find("example.org/app@").unwrap();
            fs::write(&file, text.replace(&text[start..start + 87], "example.org/app:1")).unwrap();
        },
        "default/a/job.yaml: the image example.org/app:1 (spec.template.spec.containers[0].image) is not named by a digest",
    );
}

#[test]
fn later_formats_and_strangers_are_refused() {
    let work = tempfile::tempdir().unwrap();
    let path = saved(work.path(), "a.tar", &[]);
    let folder = work.path().join("folder");
    extract(&path, &folder);
    fs::write(folder.join(ABOUT_FILE), b"{\"format\": 2, \"needs\": \"9.1.0\", \"new\": true}").unwrap();
    for result in [verify(&folder, &[]).map(drop), Archive::open(&folder).map(drop)] {
        let Problem { code, help, .. } = result.unwrap_err();
        assert_eq!((code.id, help.as_deref()), ("FG911", Some("use flux-gen 9.1.0 or later")));
    }
    let text = work.path().join("text");
    fs::write(&text, "hello".repeat(1000)).unwrap();
    fs::write(work.path().join("a.gz"), b"\x1f\x8b\x08\x00").unwrap();
    for name in ["text", "a.gz", "layout"] {
        assert_eq!(verify(&work.path().join(name), &[]).unwrap_err().code.id, "FG910", "{name}");
    }
}

/// A registry with the images.
fn registry(folder: &Path) -> (Mock, Repository) {
    let layout = layout(folder);
    let mock = Mock::new(Setup::default());
    let client = client(&mock);
    let images: Vec<Tagged> =
        layout.roots().iter().map(|root| Tagged { root: root.clone(), tags: Vec::new() }).collect();
    transfer::push(&layout, &images, &target(&client, &mock, "a"), &TransferOptions::default(), &Quiet).unwrap();
    let reference: Reference = reference(&mock, "a");
    let repository = Repository::to_pull(&client, &reference);
    mock.state().log.clear();
    (mock, repository)
}

/// Pushes documents without a subject under these tags, as cosign does.
fn attach(folder: &Path, mock: &Mock, tags: &[String]) {
    let writer = LayoutWriter::create(&folder.join("attached"), WriteOptions { durable: false }).unwrap();
    let one = |tag: &String| {
        let config = writer.bytes(media::CONFIG, b"{}").unwrap();
        let layer = writer.bytes("application/vnd.dev.cosign.simplesigning.v1+json", tag.as_bytes()).unwrap();
        let root = writer.json(media::MANIFEST, &Manifest::new(config, vec![layer])).unwrap();
        Tagged { root, tags: vec![tag.clone()] }
    };
    let images: Vec<Tagged> = tags.iter().map(one).collect();
    let layout = writer.finish(&Index::new(images.iter().map(|image| image.root.clone()).collect())).unwrap();
    transfer::push(&layout, &images, &target(&client(mock), mock, "a"), &TransferOptions::default(), &Quiet).unwrap();
}

#[test]
fn what_cosign_keeps_under_tags_goes_along_and_keeps_its_tags() {
    let work = tempfile::tempdir().unwrap();
    let (mock, repository) = registry(work.path());
    let app = open_layout(work.path()).find(Some("example.org/app:1")).unwrap().clone();
    let lock = lock(&open_layout(work.path()), &["amd64"]);
    let platforms = &lock.images["example.org/app:1"].platforms;
    // Of the published index, of the platform that is wanted, of nothing that is in the archive.
    let wanted = [
        format!("sha256-{}.sig", app.digest.hex()),
        format!("sha256-{}.att", platforms["linux/amd64"].digest.hex()),
        format!("sha256-{}.sbom", platforms["linux/amd64"].digest.hex()),
    ];
    let other = format!("sha256-{}.sig", Digest::of(b"another image").hex());
    attach(work.path(), &mock, &[&wanted[..], &[other]].concat());
    let path = work.path().join("a.tar");
    save(&contents(work.path(), Place::repository(repository), &["amd64"]), &path, SAVE, &Quiet).unwrap();
    let _ = whole(&path);
    // The archive is a place that has them, too.
    let again = work.path().join("again.tar");
    let place = Place::layout(Layout::open(&path, &Limits::default()).unwrap());
    save(&contents(work.path(), place, &["amd64"]), &again, SAVE, &Quiet).unwrap();
    assert!(fs::read(&path).unwrap() == fs::read(&again).unwrap());
    let (archive, inside) = (Archive::open(&path).unwrap(), Mock::new(Setup::default()));
    let (images, referrers) = of_archive(&archive).unwrap();
    let rules = vec![Rule { from: None, to: Prefix::parse(&inside.address).unwrap(), span: None }];
    let mirror = Mirror::of_rules(rules, &mut Diagnostics::new());
    let plan = plan(&archive, &images, &referrers, &mirror).unwrap();
    push(&archive, &plan, &client(&inside), &Ledger::default(), 3, &Quiet).unwrap();
    let state = inside.state();
    let tags = |name: &str| state.repos[name].tags.keys().cloned().collect::<BTreeSet<_>>();
    let all = wanted.iter().cloned().chain(["1".to_owned()]);
    assert_eq!(tags("example.org/app"), all.collect());
    assert_eq!(tags("example.org/tool"), ["latest".to_owned()].into());
}

#[test]
fn a_save_that_was_stopped_goes_on() {
    let work = tempfile::tempdir().unwrap();
    let (mock, repository) = registry(work.path());
    let path = work.path().join("a.tar");
    let contents = |repository: &Repository| contents(work.path(), Place::repository(repository.clone()), &[]);
    // The largest blobs come, then the registry is gone.
    let shared = Digest::of(&noise(7, 9000)).to_string();
    let leaked: &'static str = Box::leak(format!("/blobs/{shared}").into_boxed_str());
    mock.fail("GET", leaked, 1000, Fault::Status(503, Vec::new()));
    let one = SaveOptions { parallel: 1, ..SAVE };
    let problem = save(&contents(&repository), &path, one, &Quiet).unwrap_err();
    assert!(problem.message.contains(&shared), "{problem}");
    assert!(!path.exists() && partial(&path).exists());
    let (fresh, repository) = registry(&work.path().join("again"));
    drop(mock);
    let noted = Noted::default();
    let summary = save(&contents(&repository), &path, SAVE, &noted).unwrap();
    assert!(summary.present == 2 && summary.moved > 0, "{summary:?}");
    let fetched = fresh.state().log.iter().filter(|l| l.starts_with("GET") && l.contains("/blobs/")).count();
    assert_eq!(fetched, summary.moved);
    let _ = whole(&path);
    // The referrers of a registry are in it as those of a layout are: the same bytes.
    let other = saved(work.path(), "b.tar", &[]);
    assert_eq!(fs::read(&path).unwrap(), fs::read(&other).unwrap());
}

#[test]
fn what_is_left_of_an_earlier_save_is_not_believed() {
    let work = tempfile::tempdir().unwrap();
    let path = saved(work.path(), "a.tar", &[]);
    let good = fs::read(&path).unwrap();
    let contents = contents(work.path(), Place::layout(open_layout(work.path())), &[]);
    let again = |left: Vec<u8>| -> Summary {
        fs::remove_file(&path).unwrap();
        fs::write(partial(&path), left).unwrap();
        let summary = save(&contents, &path, SAVE, &Quiet).unwrap();
        assert_eq!(fs::read(&path).unwrap(), good);
        summary
    };
    assert_eq!(again(good.clone()).moved, 0);
    let at = place_of(&good, &noise(1, 64));
    let mut damaged = good.clone();
    damaged[at + 100] ^= 1;
    assert_eq!(again(damaged).moved, 1);
    let mut padded = good.clone();
    padded[at + 20_000] = 1;
    assert_eq!(again(padded).moved, 1);
    assert!(again(good[..good.len() / 2].to_vec()).present > 0);
    assert_eq!(again([good.clone(), vec![1; 10_000]].concat()).moved, 0);
    assert!(again(noise(3, good.len())).moved > 0);
}

#[test]
fn two_saves_at_once_do_not_mix() {
    let work = tempfile::tempdir().unwrap();
    let path = work.path().join("a.tar");
    layout(work.path());
    let contents = contents(work.path(), Place::layout(open_layout(work.path())), &[]);
    let held = fs::File::create(partial(&path)).unwrap();
    held.lock().unwrap();
    assert_eq!(save(&contents, &path, SAVE, &Quiet).unwrap_err().code.id, "FG914");
    drop(held);
    let results: Vec<Result<Summary, Problem>> = std::thread::scope(|scope| {
        let run = || scope.spawn(|| save(&contents, &path, SAVE, &Quiet));
        let all = [run(), run(), run()];
        all.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(results.iter().any(Result::is_ok));
    assert!(results.iter().all(|r| r.as_ref().err().is_none_or(|p| p.code.id == "FG914")), "{results:?}");
    let _ = whole(&path);
    assert!(!partial(&path).exists());
}

#[test]
fn places_that_cannot_be_written_are_told() {
    let work = tempfile::tempdir().unwrap();
    layout(work.path());
    let contents = contents(work.path(), Place::layout(open_layout(work.path())), &[]);
    let folder = save(&contents, work.path(), SAVE, &Quiet).unwrap_err();
    assert!(folder.message.ends_with("is a folder"), "{folder}");
    for target in ["/proc/a.tar", "/dev/null/a.tar"] {
        let problem = save(&contents, Path::new(target), SAVE, &Quiet).unwrap_err();
        assert_eq!(problem.code.id, "FG867", "{problem}");
    }
    // A file of the project that changes after it was read.
    fs::write(work.path().join("examples-a.yaml"), "x: 2\n").unwrap();
    let path = work.path().join("a.tar");
    let problem = save(&contents, &path, SAVE, &Quiet).unwrap_err();
    assert!(problem.code.id == "FG915" && problem.message.contains("changed while it was read"), "{problem}");
    assert!(!path.exists());
}
