//! Building views: the same bytes everywhere, only what changed is packed, nothing half-done is left.

use std::collections::BTreeSet;
use std::fs::{self, File, FileTimes};
use std::io::Read;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::support::*;
use flux_gen::oci::layout::Limits;
use flux_gen::oci::{Source, source};
use flux_gen::view::build::BuildOptions;
use flux_gen::view::pack::{Compression, ItemKind, Layer, PackOptions, pack};
use flux_gen::view::problem::Problems;
use flux_gen::view::tree::{self, ReadOptions};

/// A change of this digest is a change of every image that users have: only with a reason, and a line in the changelog.
const GOLDEN_GZIP: &str = "sha256:bab3c90b7431f9eadb51b8dc8446b00e249a8934227c82c3b20f0a326f6296be";
const GOLDEN_ZSTD: &str = "sha256:06bd63f7602ecc65101f738ad169b1d3fceb18a213d190862b4d2ce2d72ce0cd";

fn touch_all(folder: &Path, time: SystemTime) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            touch_all(&path, time);
        }
        File::open(&path).unwrap().set_times(FileTimes::new().set_modified(time)).unwrap();
    }
}

fn digest(tree: &Path, work: &Path, threads: usize, more: &str) -> String {
    let helper_file = work.join("busybox");
    helper(&helper_file);
    let plan = tree_plan(tree, &helper_file, more);
    let output = tempfile::tempdir_in(work).unwrap();
    let built = build_into(&plan, &output.path().join("layout"), &options(work, threads, None));
    built.unwrap_or_else(|found| panic!("{found:?}")).root.digest.to_string()
}

#[test]
fn the_same_tree_gives_the_same_digest() {
    let work = tempfile::tempdir().unwrap();
    let (a, b) = (work.path().join("a"), work.path().join("elsewhere/b"));
    spack_tree(&a);
    for (more, golden) in [("", GOLDEN_GZIP), ("compression: zstd\n", GOLDEN_ZSTD)] {
        for threads in [1, 2, 5] {
            assert_eq!(digest(&a, work.path(), threads, more), golden, "{threads} threads, {more:?}");
        }
    }
    spack_tree(&b);
    touch_all(&b, SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000));
    assert_eq!(digest(&b, work.path(), 2, ""), GOLDEN_GZIP, "another folder, other times");
    // As root other owners can be given; elsewhere the run as another user is one of its own.
    if std::os::unix::fs::chown(b.join("opt"), Some(4711), Some(4712)).is_ok() {
        for path in ["opt/software", "opt/views"] {
            std::os::unix::fs::chown(b.join(path), Some(4711), Some(4712)).unwrap();
        }
        assert_eq!(digest(&b, work.path(), 2, ""), GOLDEN_GZIP, "another owner");
    }
    // Another umask.
    let path = b.join(format!("opt/views/._view/{HASH}/lib/python3.11/site-packages/flux/__init__.py"));
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o660)).unwrap();
    assert_eq!(digest(&b, work.path(), 2, ""), GOLDEN_GZIP, "another umask");
}

#[test]
fn an_archive_gives_the_same_digest_as_its_folder() {
    let work = tempfile::tempdir().unwrap();
    let folder = work.path().join("tree");
    spack_tree(&folder);
    let plain = {
        let mut builder = tar::Builder::new(Vec::new());
        builder.follow_symlinks(false);
        builder.append_dir_all(".", &folder).unwrap();
        builder.into_inner().unwrap()
    };
    let gzip = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, &plain).unwrap();
        encoder.finish().unwrap()
    };
    // tar::Builder does not know hard links, so both names are files in the archive and in a copy of the folder.
    let copy = work.path().join("copy");
    spack_tree(&copy);
    let second = copy.join(format!("opt/software/linux-x86_64_v3/zlib-1.3.1-{HASH}/lib/libz.so.1.3.1"));
    let bytes = fs::read(&second).unwrap();
    fs::remove_file(&second).unwrap();
    fs::write(&second, bytes).unwrap();
    fs::set_permissions(&second, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let expect = digest(&copy, work.path(), 2, "");
    let zstd = zstd::encode_all(plain.as_slice(), 1).unwrap();
    for (name, bytes) in [("tree.tar", plain), ("tree.tar.gz", gzip), ("tree.tar.zst", zstd)] {
        let path = work.path().join(name);
        fs::write(&path, bytes).unwrap();
        assert_eq!(digest(&path, work.path(), 2, ""), expect, "{name}");
    }
}

#[test]
fn an_archive_that_did_not_change_is_not_decompressed_again() {
    let work = tempfile::tempdir().unwrap();
    let (folder, archive) = (work.path().join("tree"), work.path().join("tree.tar.zst"));
    let (cache, output) = (work.path().join("cache"), work.path().join("layout"));
    spack_tree(&folder);
    let view = format!("opt/views/._view/{HASH}");
    file(&folder, &format!("{view}/lib/pkgconfig/flux-core.pc"), b"Version: 0.88.1\n", 0o644);
    let pack = || {
        let mut builder = tar::Builder::new(zstd::Encoder::new(File::create(&archive).unwrap(), 1).unwrap());
        builder.follow_symlinks(false);
        builder.append_dir_all(".", &folder).unwrap();
        builder.into_inner().unwrap().finish().unwrap();
        // Times are as exact as the clock tick; younger archives are read again to be safe.
        std::thread::sleep(Duration::from_millis(50));
    };
    pack();
    let helper_file = work.path().join("busybox");
    helper(&helper_file);
    let plan = tree_plan(&archive, &helper_file, "");
    let usual = options(work.path(), 2, Some(&cache));
    // Decompressing needs a folder for the plain bytes. Here is none.
    let without = BuildOptions { scratch: work.path().join("none"), ..usual.clone() };
    let first = build_into(&plan, &output, &usual).unwrap();
    let second = build_into(&plan, &output, &without).unwrap();
    assert_eq!(first.root.digest, second.root.digest);
    assert!(second.images[0].layers.iter().all(|layer| layer.reused));
    assert_eq!(first.images[0].report.flux, second.images[0].report.flux);
    // A layer that is gone is packed again, and only then is the archive read.
    let blob = second.images[0].layers[0].descriptor.digest.blob_path();
    fs::remove_file(output.join(&blob)).unwrap();
    assert_eq!(codes(&build_into(&plan, &output, &without).err().unwrap()), ["FG821"]);
    assert_eq!(build_into(&plan, &output, &usual).unwrap().root.digest, first.root.digest);
    fs::write(folder.join(format!("{view}/new")), b"x").unwrap();
    pack();
    assert_eq!(codes(&build_into(&plan, &output, &without).err().unwrap()), ["FG811"], "a changed archive is read");
    assert_ne!(build_into(&plan, &output, &usual).unwrap().root.digest, first.root.digest);
}

#[test]
fn layers_of_an_image_that_were_read_are_not_fetched_again() {
    let work = tempfile::tempdir().unwrap();
    let (folder, cache, output) = (work.path().join("tree"), work.path().join("cache"), work.path().join("two"));
    spack_tree(&folder);
    let helper_file = work.path().join("busybox");
    helper(&helper_file);
    let image = work.path().join("one");
    let first = build_into(&tree_plan(&folder, &helper_file, ""), &image, &options(work.path(), 2, None)).unwrap();
    let view = format!("platforms: [amd64]\nrecipe: r\nhelper: {{amd64: {helper_file:?}}}\nbudget: 2\n");
    let again = plan(&view, &format!("kind: image\nimage: \"layout:{}\"\n", image.display())).0.unwrap();
    let build = || build_into(&again, &output, &options(work.path(), 2, Some(&cache)));
    let second = build().unwrap();
    for layer in &first.images[0].layers {
        fs::remove_file(image.join(layer.descriptor.digest.blob_path())).unwrap();
    }
    assert_eq!(build().unwrap().root.digest, second.root.digest, "the layers are gone, and nobody misses them");
    for layer in &second.images[0].layers {
        fs::remove_file(output.join(layer.descriptor.digest.blob_path())).unwrap();
    }
    assert_eq!(codes(&build().err().unwrap()), ["FG821"], "now their contents are needed");
}

#[test]
fn what_did_not_change_is_not_packed_again() {
    let work = tempfile::tempdir().unwrap();
    let (tree, cache, output) = (work.path().join("tree"), work.path().join("cache"), work.path().join("layout"));
    spack_tree(&tree);
    let helper_file = work.path().join("busybox");
    helper(&helper_file);
    // Times are as exact as the clock tick; younger files are packed again to be safe.
    std::thread::sleep(Duration::from_millis(50));
    let plan = tree_plan(&tree, &helper_file, "");
    let build = || build_into(&plan, &output, &options(work.path(), 2, Some(&cache))).unwrap();
    let reused = |built: &Built| -> Vec<(String, bool)> {
        built.images[0].layers.iter().map(|layer| (layer.name.clone(), layer.reused)).collect()
    };
    let first = build();
    assert!(reused(&first).iter().all(|(_, reused)| !reused));
    let second = build();
    assert!(reused(&second).iter().all(|(_, reused)| *reused), "{:?}", reused(&second));
    assert_eq!(first.root.digest, second.root.digest);
    let changed = format!("opt/software/linux-x86_64_v3/zlib-1.3.1-{HASH}/lib/libz.so.1");
    fs::write(tree.join(changed), b"another zlib").unwrap();
    std::thread::sleep(Duration::from_millis(50));
    let third = build();
    let packed: Vec<String> = reused(&third).into_iter().filter(|(_, reused)| !reused).map(|(name, _)| name).collect();
    assert_eq!(packed, ["zlib"]);
    let layers = |built: &Built| -> BTreeSet<String> {
        built.images[0].layers.iter().map(|layer| layer.descriptor.digest.to_string()).collect()
    };
    assert_eq!(layers(&first).difference(&layers(&third)).count(), 1, "one layer is another one");
    // A blob that is gone is packed again.
    let blob = third.images[0].layers[0].descriptor.digest.blob_path();
    fs::remove_file(output.join(blob)).unwrap();
    let fourth = build();
    assert_eq!(reused(&fourth).iter().filter(|(_, reused)| !reused).count(), 1);
    assert_eq!(third.root.digest, fourth.root.digest);
    let report = fourth.layout.verify().unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

#[test]
fn what_is_packed_comes_back() {
    let work = tempfile::tempdir().unwrap();
    let folder = work.path().join("tree");
    spack_tree(&folder);
    let read = ReadOptions { scratch: work.path().to_path_buf(), ..ReadOptions::default() };
    let mut problems = Problems::default();
    let before = tree::index(&folder, &read, &mut problems).unwrap();
    let paths: Vec<_> = before.entries.keys().cloned().collect();
    let layer = Layer::of(&before, &paths);
    assert_eq!(layer.items.iter().filter(|item| matches!(item.kind, ItemKind::HardLink(_))).count(), 1);
    for compression in [Compression::Gzip, Compression::Zstd] {
        let threads = std::num::NonZeroUsize::new(3).unwrap();
        let mut bytes = Vec::new();
        let packed = pack(&layer, PackOptions { compression, threads, time: 0 }, &mut bytes).unwrap();
        assert_eq!(packed.size, bytes.len() as u64);
        let archive = work.path().join("packed");
        fs::write(&archive, bytes).unwrap();
        let after = tree::index(&archive, &read, &mut problems).unwrap();
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(before.entries.keys().collect::<Vec<_>>(), after.entries.keys().collect::<Vec<_>>());
        for (path, entry) in &before.entries {
            let other = after.get(path).unwrap();
            assert_eq!(entry.mode, other.mode, "{}", String::from_utf8_lossy(path));
            if let (Some(a), Some(b)) = (entry.content(), other.content()) {
                let (mut x, mut y) = (Vec::new(), Vec::new());
                a.open().unwrap().read_to_end(&mut x).unwrap();
                b.open().unwrap().read_to_end(&mut y).unwrap();
                assert!(x == y && a.shared.is_some() == b.shared.is_some());
            }
        }
    }
}

#[test]
fn an_image_is_packed_anew_and_keeps_what_is_in_it() {
    let work = tempfile::tempdir().unwrap();
    let folder = work.path().join("tree");
    spack_tree(&folder);
    let helper_file = work.path().join("busybox");
    helper(&helper_file);
    let one_layer = tree_plan(&folder, &helper_file, "budget: 1\n");
    let first = build_into(&one_layer, &work.path().join("one"), &options(work.path(), 2, None)).unwrap();
    assert_eq!(first.images[0].layers.len(), 2, "the helper, and everything else");
    let view = format!("platforms: [amd64]\nrecipe: r\nhelper: {{amd64: {helper_file:?}}}\ntags: [{{name: tag-9}}]\n");
    let recipe = format!("kind: image\nimage: \"layout:{}\"\n", work.path().join("one").display());
    let again = plan(&view, &recipe).0.unwrap();
    let second = build_into(&again, &work.path().join("two"), &options(work.path(), 2, None)).unwrap();
    let names: Vec<&str> = second.images[0].layers.iter().map(|layer| layer.name.as_str()).collect();
    assert_eq!(names, ["boost", "python", "zlib", "helper", "flux-core", "view"]);
    assert_eq!(second.root.digest.to_string(), digest(&folder, work.path(), 2, ""), "as if packed from the tree");
    // On a base its layers come first.
    let layout = work.path().join("one");
    let view = format!("platforms: [amd64]\nrecipe: r\nbase: \"layout:{}\"\n", layout.display());
    let based = plan(&view, &recipe).0.unwrap();
    let third = build_into(&based, &work.path().join("three"), &options(work.path(), 2, None)).unwrap();
    assert_eq!((third.images[0].base_layers, third.images[0].layers.len()), (2, 5));
    assert!(third.layout.verify().unwrap().problems.is_empty());
}

#[test]
fn images_that_cannot_be_used() {
    let work = tempfile::tempdir().unwrap();
    let folder = work.path().join("tree");
    spack_tree(&folder);
    let helper_file = work.path().join("busybox");
    helper(&helper_file);
    let plain = tree_plan(&folder, &helper_file, "budget: 1\n");
    let built = build_into(&plain, &work.path().join("one"), &options(work.path(), 2, None)).unwrap();
    let run = |platform: &str, layout: &str| {
        let view = format!("platforms: [{platform}]\nrecipe: r\nbase: \"layout:{layout}\"\n");
        let recipe = format!("kind: tree\ntrees: {{{platform}: {{path: {folder:?}}}}}\n");
        let made = plan(&view, &recipe).0.unwrap();
        let output = tempfile::tempdir_in(work.path()).unwrap();
        build_into(&made, &output.path().join("x"), &options(work.path(), 1, None)).err().map(|found| codes(&found))
    };
    let one = work.path().join("one").display().to_string();
    assert_eq!(run("linux/amd64", &one), None);
    assert_eq!(run("linux/arm64", &one), Some(vec!["FG823"]), "no such platform");
    assert_eq!(run("linux/amd64", "/nowhere"), Some(vec!["FG823"]));
    // A layer that is not what its digest says.
    let blob = built.images[0].layers[1].descriptor.digest.blob_path();
    let path = work.path().join("one").join(blob);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert_eq!(run("linux/amd64", &one), Some(vec!["FG823"]));
    let view = format!("platforms: [amd64]\nrecipe: r\nhelper: {{amd64: {helper_file:?}}}\n");
    let again = plan(&view, &format!("kind: image\nimage: \"layout:{one}\"\n")).0.unwrap();
    let found = build_into(&again, &work.path().join("two"), &options(work.path(), 1, None)).err().unwrap();
    assert_eq!(codes(&found), ["FG823"]);
    assert!(!work.path().join("two").exists(), "nothing is left of a build that failed");
}

#[test]
fn a_tree_that_does_not_fit_leaves_nothing() {
    let work = tempfile::tempdir().unwrap();
    let folder = work.path().join("tree");
    spack_tree(&folder);
    let helper_file = work.path().join("busybox");
    helper(&helper_file);
    let output = work.path().join("layout");
    type Change = fn(&Path);
    let cases: [(&str, Change, &str); 6] = [
        ("prefix", |t| file(t, "bin/flux", b"x", 0o755), ""),
        ("setuid", |t| file(t, "opt/software/x", b"x", 0o4755), "FG816"),
        ("outside", |t| link(t, "opt/software/y", "/etc/passwd"), "FG817"),
        ("climbs", |t| link(t, "opt/software/z", "../../../../../x"), "FG817"),
        ("whiteout", |t| file(t, "opt/software/.wh.x", b"x", 0o644), "FG814"),
        ("no flux", |t| fs::remove_file(t.join(format!("opt/views/._view/{HASH}/bin/flux"))).unwrap(), "FG839"),
    ];
    for (name, change, code) in cases {
        let case = work.path().join(name);
        spack_tree(&case);
        change(&case);
        let made = tree_plan(&case, &helper_file, "");
        let found = build_into(&made, &output, &options(work.path(), 1, None));
        match found {
            Ok(_) => assert_eq!(code, "", "{name}"),
            Err(found) => {
                assert!(codes(&found).contains(&code), "{name}: {found:?}");
                assert!(found.iter().all(|d| d.span.is_some()), "{found:?}");
            }
        }
        let _ = fs::remove_dir_all(&output);
    }
    for more in ["setuid: drop\n", "setuid: keep\n"] {
        let made = tree_plan(&work.path().join("setuid"), &helper_file, more);
        assert!(build_into(&made, &output, &options(work.path(), 1, None)).is_ok());
    }
    let made = tree_plan(&work.path().join("outside"), &helper_file, "outsideLinks: keep\n");
    assert!(build_into(&made, &output, &options(work.path(), 1, None)).is_ok());
    let left: Vec<_> = fs::read_dir(work.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with(".flux-gen")), "{left:?}");
}

#[test]
fn a_file_that_changes_or_vanishes_while_it_is_packed() {
    let work = tempfile::tempdir().unwrap();
    let folder = work.path().join("tree");
    file(&folder, "a", &[0; 5000], 0o644);
    let read = ReadOptions { scratch: work.path().to_path_buf(), ..ReadOptions::default() };
    let tree = tree::index(&folder, &read, &mut Problems::default()).unwrap();
    let paths = [b"a".to_vec()];
    let layer = Layer::of(&tree, &paths);
    let pack = || {
        let threads = std::num::NonZeroUsize::new(2).unwrap();
        pack(&layer, PackOptions { compression: Compression::Zstd, threads, time: 0 }, &mut Vec::new())
    };
    assert!(pack().is_ok());
    fs::write(folder.join("a"), [1; 5000]).unwrap();
    assert!(pack().unwrap_err().to_string().contains("changed while it was read"));
    fs::remove_file(folder.join("a")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.join("a")).unwrap();
    assert!(pack().is_err(), "a link that takes the file's place is not followed");
}

/// A writer like a disk that gets full.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0 < bytes.len() {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        self.0 -= bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_ends_all_steps() {
    let work = tempfile::tempdir().unwrap();
    let folder = work.path().join("tree");
    spack_tree(&folder);
    let read = ReadOptions { scratch: work.path().to_path_buf(), ..ReadOptions::default() };
    let tree = tree::index(&folder, &read, &mut Problems::default()).unwrap();
    let paths: Vec<_> = tree.entries.keys().cloned().collect();
    let layer = Layer::of(&tree, &paths);
    for room in [0, 1 << 19, 2 << 20] {
        for threads in [1, 4] {
            let threads = std::num::NonZeroUsize::new(threads).unwrap();
            let how = PackOptions { compression: Compression::Gzip, threads, time: 0 };
            let error = pack(&layer, how, &mut Full(room)).unwrap_err().to_string();
            assert!(error.starts_with("cannot write the layer: "), "{error}");
        }
    }
}

#[test]
fn two_builds_at_once() {
    let work = tempfile::tempdir().unwrap();
    let (folder, cache, output) = (work.path().join("tree"), work.path().join("cache"), work.path().join("layout"));
    spack_tree(&folder);
    let helper_file = work.path().join("busybox");
    helper(&helper_file);
    let made = tree_plan(&folder, &helper_file, "");
    build_into(&made, &output, &options(work.path(), 1, Some(&cache))).unwrap();
    let digests: Vec<String> = std::thread::scope(|scope| {
        let build =
            || build_into(&made, &output, &options(work.path(), 2, Some(&cache))).unwrap().root.digest.to_string();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(build)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(digests.iter().collect::<BTreeSet<_>>().len(), 1);
    let layout = flux_gen::oci::layout::Layout::open(&output, &Limits::default()).unwrap();
    assert!(layout.verify().unwrap().problems.is_empty());
    let root = layout.find(Some("tag-9")).unwrap();
    assert!(source::small(&layout, root).is_ok() && layout.size(root).unwrap() == Some(root.size));
}
