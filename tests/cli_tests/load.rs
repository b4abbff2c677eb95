//! `archive load`: from a saved archive into a registry, and a project behind the gap whose builds change nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use flux_gen::bundle::sha256_hex;
use flux_gen::oci::descriptor::REF_NAME;
use flux_gen::oci::document::{Index, Manifest};
use flux_gen::oci::graph::Graph;
use flux_gen::oci::image::ImageConfig;
use flux_gen::oci::layout::archive::{Contents, save};
use flux_gen::oci::layout::{LayoutWriter, WriteOptions};
use flux_gen::oci::{Digest, Platform, media};

use crate::harness::{Run, Sandbox, minicluster};
use crate::mock::{Fault, Gate, Mock, Setup};

const VIEW: &str = "ghcr.io/converged-computing/flux-view-ubuntu:tag-noble";
const DEPLOYMENT: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: d\n  annotations: {team: blue}\nspec:\n  \
    template:\n    spec:\n      initContainers: [{name: i, image: 'quay.io/tools/init:1'}]\n      containers:\n        - name: x\n          \
    image: rockylinux:9\n          command: [sh, -c, 'echo ${HOME}']\n      volumes: [{name: v, image: {reference: 'ghcr.io/a/data:1'}}]\n";
const PROJECT: &str = "# our project\nsettings:\n  create-namespace: true\n  view-mount: image\n  kubernetes-version: \"1.35\"\n\
    clusters:\n  hpc/once:\n    settings: {strategy: run-once}\n  hpc/hook:\n    settings: {strategy: hook}\n";

/// A layout with an image of two platforms under each of these names.
fn layout(sandbox: &Sandbox, names: &[&str]) {
    let writer = LayoutWriter::create(&sandbox.path("images"), WriteOptions { durable: false }).unwrap();
    let image = |name: &str| {
        let one = |architecture: &str| {
            let tar = format!("{name} {architecture}");
            let layer = writer.bytes(media::LAYER, tar.as_bytes()).unwrap();
            let config = ImageConfig::new(Platform::linux(architecture), vec![Digest::of(tar.as_bytes())]);
            let manifest = Manifest::new(writer.json(media::CONFIG, &config).unwrap(), vec![layer]);
            writer.json(media::MANIFEST, &manifest).unwrap().platform(Platform::linux(architecture))
        };
        let index = Index::new(vec![one("amd64"), one("arm64")]);
        writer.json(media::INDEX, &index).unwrap().annotation(REF_NAME, name)
    };
    let roots = names.iter().map(|name| image(name)).collect();
    writer.finish(&Index::new(roots)).unwrap();
}

/// A project with an archive of it.
fn saved(save: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    layout(&sandbox, &["rockylinux:9", VIEW, "quay.io/tools/init:1", "ghcr.io/a/data:1"]);
    let cluster = |name: &str| {
        minicluster(name, 2).replace(&format!("name: {name}\n"), &format!("name: {name}\n  namespace: hpc\n"))
    };
    sandbox.write("out/examples/a.yaml", &minicluster("a", 2)).write("out/examples/d.yaml", DEPLOYMENT);
    sandbox.write("out/examples/b.yaml", &format!("{}---\n{}", cluster("once"), cluster("hook")));
    sandbox.write("out/flux-gen.yaml", PROJECT);
    let _ = outside(&sandbox, &["lock", "--from", "../images"]).exits(0);
    let _ = outside(&sandbox, &["build"]).exits(0);
    let _ = outside(&sandbox, &[&["archive", "save", "-o", "../a.tar", "--from", "../images"], save].concat()).exits(0);
    sandbox
}

fn outside(sandbox: &Sandbox, args: &[&str]) -> Run {
    Run::of(sandbox.command(args).current_dir(sandbox.path("out")).output().unwrap())
}

fn inside(sandbox: &Sandbox, args: &[&str]) -> Run {
    Run::of(sandbox.command(args).current_dir(sandbox.path("site")).output().unwrap())
}

fn load(sandbox: &Sandbox, mock: &Mock, more: &[&str]) -> Run {
    let to = format!("{}/hub", mock.address);
    let args = [&["archive", "load", "a.tar", "--plain-http", &mock.address, "--to", &to], more].concat();
    Run::of(sandbox.command(args).output().unwrap())
}

/// Every file below a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// The values behind `image:` and `reference:`.
fn references(folder: &Path) -> Vec<String> {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let line = |line: &str| {
        let line = line.trim_start().trim_start_matches("- ");
        line.strip_prefix("image: ").or(line.strip_prefix("reference: ")).map(str::to_owned)
    };
    let of = |(_, bytes)| text(bytes).lines().filter_map(line).collect::<Vec<_>>();
    files(folder).into_iter().filter(|(name, _)| name.ends_with(".yaml")).flat_map(of).collect()
}

/// Every reference of the bundles is in the registry, under exactly this name.
#[track_caller]
fn assert_all_inside(sandbox: &Sandbox, mock: &Mock, count: usize) {
    let found = references(&sandbox.path("site/generated"));
    assert_eq!(found.len(), count, "{found:?}");
    let state = mock.state();
    for reference in found {
        let (name, digest) = reference.split_once('@').unwrap_or_else(|| panic!("{reference}"));
        let repository = name.strip_prefix(&format!("{}/", mock.address)).unwrap_or_else(|| panic!("{reference}"));
        assert!(state.repos[repository].manifests.contains_key(digest), "{reference}");
    }
}

#[test]
fn a_build_at_the_site_equals_what_was_loaded() {
    for save in [&[][..], &["--platform", "linux/arm64"]] {
        let (sandbox, mock) = (saved(save), Mock::new(Setup::default()));
        let map = format!("docker.io/library={}/official", mock.address);
        let said = load(&sandbox, &mock, &["--map", &map, "-o", "site"]).exits(0).stderr;
        assert!(said.contains("site: 3 bundles in site/generated"), "{said}");
        assert_all_inside(&sandbox, &mock, 9);
        let loaded = files(&sandbox.path("site/generated"));
        let job = sandbox.read("site/generated/default/a/job.yaml");
        assert!(job.contains(&format!("image: {}/official/rockylinux@sha256:", mock.address)), "{job}");
        assert!(job.contains(" rockylinux@sha256:"), "the original is in the annotation:\n{job}");
        let said = inside(&sandbox, &["check", "--locked"]).exits(0).stderr;
        assert!(said.contains("up to date"), "{said}");
        fs::remove_dir_all(sandbox.path("site/generated")).unwrap();
        let _ = inside(&sandbox, &["build", "--locked"]).exits(0);
        assert_eq!(files(&sandbox.path("site/generated")), loaded);
        // Folders and names of runs are those of the outside.
        let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&files(&sandbox.path("out/generated"))), names(&loaded));
        let name = |text: String| text.lines().find(|line| line.starts_with("  name: once-")).unwrap().to_owned();
        let once = "generated/hpc/once/job.yaml";
        assert_eq!(name(sandbox.read(&format!("site/{once}"))), name(sandbox.read(&format!("out/{once}"))));
        assert_eq!(mock.state().repos["official/rockylinux"].tags.keys().collect::<Vec<_>>(), ["9"]);
        // A second load sends and changes nothing.
        mock.state().log.clear();
        let said = load(&sandbox, &mock, &["--map", &map, "-o", "site"]).exits(0).stderr;
        assert!(said.contains("0 blobs sent (0 bytes)") && said.contains("0 files written"), "{said}");
        assert_eq!(mock.count("PUT") + mock.count("POST"), 0);
    }
}

/// `archive verify REGISTRY/PREFIX` of the folder that was loaded.
fn verify_there(sandbox: &Sandbox, mock: &Mock, more: &[&str]) -> Run {
    let there = format!("{}/hub", mock.address);
    let args = [&["archive", "verify", &there, "--plain-http", &mock.address, "--bundles", "site"], more].concat();
    Run::of(sandbox.command(args).output().unwrap())
}

#[test]
fn a_registry_is_compared_with_the_bundles_alone() {
    let (sandbox, mock) = (saved(&["--platform", "linux/arm64"]), Mock::new(Setup::default()));
    let map = format!("docker.io/library={}/official", mock.address);
    let _ = load(&sandbox, &mock, &["--map", &map, "-o", "site"]).exits(0);
    fs::remove_file(sandbox.path("a.tar")).unwrap();
    let said = verify_there(&sandbox, &mock, &["--platform", "linux/arm64"]).exits(0).stderr;
    // Of each image the derived index, the manifest, its configuration and its layer.
    assert!(said.starts_with(&format!("{}/hub has everything: 4 images, 16 blobs", mock.address)), "{said}");
    let said = verify_there(&sandbox, &mock, &["--platform", "linux/amd64"]).exits(1).stderr;
    assert_eq!(said.matches("error[FG866]").count(), 4, "{said}");
    // Whatever the registry loses or changes is told, with the file that needs it.
    let mut names = BTreeMap::new();
    for (name, repo) in &mock.state().repos {
        names.insert(name.clone(), (repo.blobs.keys().cloned().collect::<Vec<_>>(), repo.manifests.clone()));
    }
    let (blobs, manifests) = &names["official/rockylinux"];
    for blob in blobs {
        let old = mock.state().repos.get_mut("official/rockylinux").unwrap().blobs.remove(blob).unwrap();
        let said = verify_there(&sandbox, &mock, &[]).exits(1).stderr;
        assert!(said.contains(blob), "{said}");
        mock.state()
            .repos
            .get_mut("official/rockylinux")
            .unwrap()
            .blobs
            .insert(blob.clone(), [&old[..], b"x"].concat());
        let said = verify_there(&sandbox, &mock, &[]).exits(1).stderr;
        assert!(said.contains("error[FG861]") && said.contains(blob), "{said}");
        mock.state().repos.get_mut("official/rockylinux").unwrap().blobs.insert(blob.clone(), old);
    }
    for digest in manifests.keys() {
        let old = mock.state().repos.get_mut("official/rockylinux").unwrap().manifests.remove(digest).unwrap();
        let said = verify_there(&sandbox, &mock, &[]).exits(1).stderr;
        assert!(said.contains(digest), "{said}");
        mock.state().repos.get_mut("official/rockylinux").unwrap().manifests.insert(digest.clone(), old);
    }
    let _ = verify_there(&sandbox, &mock, &[]).exits(0);
    // A bundle that somebody made another way.
    let job = sandbox.read("site/generated/default/a/job.yaml");
    let at = job.find("/official/rockylinux@sha256:").unwrap() + "/official/rockylinux".len();
    sandbox.write(
        "site/generated/default/a/job.yaml",
        &job.replace(&format!("/official/rockylinux{}", &job[at..at + 72]), "/official/rockylinux:9"),
    );
    sandbox.write(
        "site/generated/more.yaml",
        &DEPLOYMENT.replace("rockylinux:9", &format!("rockylinux{}", &job[at..at + 72])),
    );
    let said = verify_there(&sandbox, &mock, &[]).exits(1).stderr;
    for part in
        ["error[FG947]: site/generated/default/a/job.yaml: the image", "is not named by a digest", "is elsewhere"]
    {
        assert!(said.contains(part), "{part}\n{said}");
    }
    // Another place than that of the bundles is not said to have everything, whatever they name.
    let other = format!("{}/other", mock.address);
    let other = ["archive", "verify", &other, "--plain-http", &mock.address, "--bundles", "site"];
    let said = sandbox.run(&other).exits(1).stderr;
    let places = format!("site/flux-gen.yaml has its images in {0}/hub, {0}/official, not in {0}/other", mock.address);
    assert!(said.contains(&places), "{said}");
    let said = Run::of(sandbox.command(["archive", "verify", "no.such:5000/hub"]).output().unwrap()).exits(1).stderr;
    assert!(said.contains("there is no ./flux-gen.yaml, so it is not known"), "{said}");
}

#[test]
fn a_lock_at_the_site_asks_the_mirror_and_stays_as_it_is() {
    let (sandbox, mock) = (saved(&["--platform", "linux/arm64"]), Mock::new(Setup::default()));
    let _ = load(&sandbox, &mock, &["-o", "site"]).exits(0);
    let lock = sandbox.read("site/images.lock");
    mock.state().log.clear();
    let said = inside(&sandbox, &["lock", "--update", "--no-facts", "--plain-http", &mock.address]).exits(0).stderr;
    assert_eq!(said, "images.lock is up to date: 4 images\n");
    assert_eq!(sandbox.read("site/images.lock"), lock);
    let log = mock.state().log.join("\n");
    assert!(log.contains("HEAD /v2/hub/docker.io/library/rockylinux/manifests/9"), "{log}");
    // An image that is new here is asked for there, too.
    sandbox.write("site/examples/b.yaml", &minicluster("b", 2).replace("rockylinux:9", "quay.io/no/such:1"));
    let said = inside(&sandbox, &["lock", "--no-facts", "--plain-http", &mock.address]).exits(1).stderr;
    assert!(said.contains(&format!("{}/hub/quay.io/no/such has no image `1`", mock.address)), "{said}");
}

#[test]
fn a_platform_that_the_site_needs_and_an_image_lacks_is_told_before_anything_is_sent() {
    let (sandbox, mock) = (saved(&["--platform", "linux/arm64"]), Mock::new(Setup::default()));
    let said = load(&sandbox, &mock, &["-o", "site", "--platform", "linux/amd64"]).exits(1).stderr;
    assert_eq!(said.matches("error[FG913]").count(), 4, "{said}");
    assert!(said.contains("rockylinux:9 is not there for linux/amd64, only for linux/arm64"), "{said}");
    assert!(said.contains("nothing was sent or written"), "{said}");
    assert!(mock.state().log.is_empty() && !sandbox.path("site").exists());
    let _ = load(&sandbox, &mock, &["-o", "site", "--platform", "linux/arm64"]).exits(0);
}

#[test]
fn a_load_that_stops_says_that_it_can_be_gone_on_with() {
    let (sandbox, mock) = (saved(&[]), Mock::new(Setup::default()));
    let said = "what has been sent stays; the same command goes on from there";
    let refuse = || mock.fail("PUT", "/blobs/uploads/", usize::MAX, Fault::Status(403, Vec::new()));
    refuse();
    let stopped = load(&sandbox, &mock, &["--parallel", "1"]).exits(1).stderr;
    assert!(!stopped.contains(said), "nothing has been sent: {stopped}");
    mock.revive();
    mock.fail("PUT", "/blobs/uploads/", 3, Fault::Slow(std::time::Duration::ZERO));
    refuse();
    let stopped = load(&sandbox, &mock, &["--parallel", "1"]).exits(1).stderr;
    assert!(stopped.contains(said), "{stopped}");
    mock.revive();
    let _ = load(&sandbox, &mock, &[]).exits(0);
}

/// Compressed as a whole it would pass for images alone, and its bundles be passed over.
#[test]
fn a_compressed_archive_is_not_loaded_as_images_alone() {
    let (sandbox, mock) = (saved(&[]), Mock::new(Setup::default()));
    let archive = fs::read(sandbox.path("a.tar")).unwrap();
    fs::write(sandbox.path("a.tar"), zstd::encode_all(archive.as_slice(), 1).unwrap()).unwrap();
    for more in [&[][..], &["-o", "site"]] {
        let said = load(&sandbox, &mock, more).exits(1).stderr;
        assert!(said.contains("error[FG910]: a.tar is compressed") && said.contains("decompress it first"), "{said}");
    }
    assert!(mock.state().log.is_empty());
}

#[test]
fn a_damaged_archive_is_neither_sent_nor_written() {
    let (sandbox, mock) = (saved(&[]), Mock::new(Setup::default()));
    let whole = fs::read(sandbox.path("a.tar")).unwrap();
    let cuts = (1..10).map(|part| whole[..whole.len() * part / 10].to_vec());
    let flips = (0..10).map(|part| {
        let mut bytes = whole.clone();
        bytes[whole.len() * part / 10 + 7] ^= 4;
        bytes
    });
    for bytes in cuts.chain(flips) {
        fs::write(sandbox.path("a.tar"), bytes).unwrap();
        let said = load(&sandbox, &mock, &["-o", "site"]).exits(1).stderr;
        assert!(said.contains("nothing was sent or written"), "{said}");
        assert!(
            mock.state().log.is_empty() && !sandbox.path("site").exists() && !sandbox.path("a.tar.loaded").exists()
        );
    }
}

#[test]
fn nothing_is_sent_when_an_image_would_stay_outside_or_the_output_is_not_ours() {
    let (sandbox, mock) = (saved(&[]), Mock::new(Setup::default()));
    let map = format!("ghcr.io={}", mock.address);
    let args = ["archive", "load", "a.tar", "--map", &map, "-o", "site"];
    let said = sandbox.run(&args).exits(1).stderr;
    for name in ["docker.io/library/rockylinux:9", "quay.io/tools/init:1"] {
        assert!(said.contains(&format!("error[FG933]: no rule is for the image {name}")), "{said}");
    }
    let said = sandbox.run(&["archive", "load", "a.tar", "--map", "x=y", "--to", "a.b:tag/x"]).exits(1).stderr;
    assert_eq!(said.matches("error[FG930]").count(), 3, "{said}");
    sandbox.write("site/examples/a.yaml", "# mine\n").write("site/generated/default/a/job.yaml", "mine\n");
    let said = load(&sandbox, &mock, &["-o", "site"]).exits(1).stderr;
    assert!(said.contains("error[FG945]: site/examples/a.yaml was not written by `archive load`"), "{said}");
    assert!(said.contains("error[FG610]: site/generated/default/a/job.yaml stands in the way"), "{said}");
    sandbox.write("plain", "");
    let said = load(&sandbox, &mock, &["-o", "plain/site"]).exits(1).stderr;
    assert!(said.contains("plain/site") && said.contains("Not a directory"), "{said}");
    assert!(mock.state().log.is_empty());
    let _ = load(&sandbox, &mock, &["-o", "site", "--force"]).exits(0);
    let _ = inside(&sandbox, &["check"]).exits(0);
    // What was changed at the site after a load is told; what is gone outside goes here too.
    sandbox.write("site/examples/d.yaml", "# mine\n");
    let said = load(&sandbox, &mock, &["-o", "site"]).exits(1).stderr;
    assert_eq!(said.matches("error[FG945]").count(), 1, "{said}");
    fs::remove_file(sandbox.path("site/examples/d.yaml")).unwrap();
    fs::remove_file(sandbox.path("out/examples/b.yaml")).unwrap();
    let _ = outside(&sandbox, &["build"]).exits(0);
    let _ = outside(&sandbox, &["archive", "save", "-o", "../a.tar", "--from", "../images"]).exits(0);
    let _ = load(&sandbox, &mock, &["-o", "site"]).exits(0);
    assert!(!sandbox.path("site/examples/b.yaml").exists() && !sandbox.path("site/generated/hpc/once").exists());
}

/// Extracts the archive and changes a bundle's file as somebody would who also mends all digests.
fn edited(sandbox: &Sandbox, edit: impl Fn(String) -> String) {
    let folder = sandbox.path("extracted");
    fs::create_dir(&folder).unwrap();
    let done = Command::new("tar").arg("-xf").arg(sandbox.path("a.tar")).arg("-C").arg(&folder).status().unwrap();
    assert!(done.success());
    let mut digests = Vec::new();
    let mut change = |name: &str, edit: &dyn Fn(String) -> String| {
        let path = folder.join(name);
        let old = fs::read_to_string(&path).unwrap();
        let new = edit(old.clone());
        fs::write(&path, &new).unwrap();
        digests.push((sha256_hex(old.as_bytes()), sha256_hex(new.as_bytes())));
        digests.clone()
    };
    let known = change("flux-gen/generated/default/a/job.yaml", &edit);
    let mend = |known: Vec<(String, String)>| {
        move |text: String| known.iter().fold(text, |text, (old, new)| text.replace(old, new))
    };
    let known = change("flux-gen/generated/default/a/bundle.json", &mend(known));
    let _ = change("flux-gen/checksums.sha256", &mend(known));
}

fn load_edited(edit: impl Fn(String) -> String) -> String {
    let (sandbox, mock) = (saved(&[]), Mock::new(Setup::default()));
    edited(&sandbox, edit);
    let to = format!("{}/hub", mock.address);
    let args = ["archive", "load", "extracted", "--plain-http", &mock.address, "--to", &to, "-o", "site"];
    let said = sandbox.run(&args).exits(1).stderr;
    assert!(mock.state().log.is_empty() && !sandbox.path("site").exists());
    said
}

#[test]
fn bundles_that_are_not_as_they_were_written_are_refused() {
    let said = load_edited(|text| text.replacen("\nspec:\n", "\n# a remark\nspec:\n", 1));
    assert!(said.contains("error[FG942]: default/a/job.yaml: it is not spelled as flux-gen writes it"), "{said}");
    let said = load_edited(|text| text.replace("image: rockylinux@", "image: mirror.example/rockylinux@"));
    assert!(said.contains("error[FG943]: default/a/job.yaml: the archive does not have the image"), "{said}");
}

#[test]
fn a_project_that_has_a_mirror_is_not_loaded_again() {
    let sandbox = saved(&[]);
    sandbox.write("out/flux-gen.yaml", "images: {mirror: [{to: first.example}]}\n");
    let _ = outside(&sandbox, &["build"]).exits(0);
    let _ = outside(&sandbox, &["archive", "save", "-o", "../a.tar", "--from", "../images"]).exits(0);
    let mock = Mock::new(Setup::default());
    let said = load(&sandbox, &mock, &["-o", "site"]).exits(1).stderr;
    assert!(said.contains("error[FG944]: flux-gen.yaml of the archive has `images` already"), "{said}");
}

/// An archive of images alone, as skopeo writes it.
fn plain(sandbox: &Sandbox, name: &str) {
    layout(sandbox, &[name]);
    let layout = flux_gen::oci::layout::Layout::open(&sandbox.path("images"), &Default::default()).unwrap();
    let blobs = Graph::walk(&layout, layout.roots()).unwrap().descriptors().cloned().collect();
    let contents = Contents { index: layout.index_bytes().to_vec(), blobs, ..Contents::default() };
    save(&layout, &contents, &sandbox.path("a.tar"), false, &mut |_| {}).unwrap();
}

#[test]
fn archives_of_images_alone_are_loaded_by_their_names() {
    let (sandbox, mock) = (Sandbox::new(), Mock::new(Setup::default()));
    plain(&sandbox, "quay.io/x/tool:2");
    let said = load(&sandbox, &mock, &[]).exits(0).stderr;
    assert!(said.contains("4 blobs sent"), "{said}");
    assert_eq!(mock.state().repos["hub/quay.io/x/tool"].tags.keys().collect::<Vec<_>>(), ["2"]);
    let said = load(&sandbox, &mock, &["-o", "site"]).exits(1).stderr;
    assert!(said.contains("holds images alone"), "{said}");
    let nameless = Sandbox::new();
    plain(&nameless, "latest");
    let said = load(&nameless, &mock, &[]).exits(1).stderr;
    assert!(said.contains("error[FG940]"), "{said}");
    let _ = load(&nameless, &mock, &["--name", "tool:3"]).exits(0);
    assert_eq!(mock.state().repos["hub/docker.io/library/tool"].tags.keys().collect::<Vec<_>>(), ["3"]);
}

#[test]
fn a_ledger_that_cannot_be_kept_is_told_and_loading_works() {
    let (sandbox, mock) = (Sandbox::new(), Mock::new(Setup::default()));
    plain(&sandbox, "tool:1");
    let said = load(&sandbox, &mock, &["--ledger", "none/there"]).exits(0).stderr;
    assert!(said.contains("warning[FG946]: cannot keep none/there"), "{said}");
    assert!(!sandbox.path("a.tar.loaded").exists());
    let _ = load(&sandbox, &mock, &[]).exits(0);
    assert_eq!(sandbox.read("a.tar.loaded").lines().count(), 5);
}

#[test]
fn registries_with_logins_are_loaded_into_locked_from_and_saved_from() {
    let mock = Mock::new(Setup { gate: Gate::Basic, ..Setup::default() });
    let sandbox = Sandbox::new();
    plain(&sandbox, "tool:1");
    sandbox.write("login.json", &format!(r#"{{"auths": {{"{}": {{"auth": "dXNlcjpwYXNz"}}}}}}"#, mock.address));
    let said = load(&sandbox, &mock, &[]).exits(1).stderr;
    assert!(said.contains("error"), "{said}");
    let _ = load(&sandbox, &mock, &["--authfile", "login.json"]).exits(0);
    let image = format!("{}/hub/docker.io/library/tool:1", mock.address);
    let spec = minicluster("a", 2).replace("rockylinux:9", &image)
        + &format!("  flux: {{container: {{image: \"{image}\"}}}}\n");
    sandbox.write("examples/a.yaml", &spec);
    let lock = ["lock", "--no-facts", "--plain-http", &mock.address];
    let said = sandbox.run(&lock).exits(1).stderr;
    assert!(said.contains(&format!("error[FG904]: {image}: ")), "{said}");
    // Anything but a registry would be compared with none, and be for nothing.
    for not_one in [format!("http://{}", mock.address), format!("{}/hub", mock.address)] {
        let said = sandbox.run(&["lock", "--plain-http", &not_one]).exits(2).stderr;
        assert!(said.contains("write HOST or HOST:PORT"), "{said}");
    }
    let login = ["--authfile", "login.json"];
    let _ = sandbox.run(&[&lock[..], &login].concat()).exits(0);
    let _ = sandbox.run(&["build", "--locked"]).exits(0);
    let save = ["archive", "save", "-o", "b.tar", "--plain-http", &mock.address];
    let _ = sandbox.run(&save).exits(1);
    let _ = sandbox.run(&[&save[..], &login].concat()).exits(0);
    let _ = sandbox.run(&["archive", "verify", "b.tar"]).exits(0);
}
