//! Layouts of every form, and what is wrong with some.

use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;

use super::super::descriptor::REF_NAME;
use super::super::document::{Manifest, to_vec};
use super::super::image::ImageConfig;
use super::super::source;
use super::super::{Platform, media};
use super::archive::Contents;
use super::*;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn fast() -> WriteOptions {
    WriteOptions { durable: false }
}

/// A layout with an index of two images that share a layer.
fn sample(path: &Path) -> Layout {
    let writer = LayoutWriter::create(path, fast()).unwrap();
    let mut blob = writer.blob().unwrap();
    blob.write_all(&[7; 100_000]).unwrap();
    let shared = blob.finish(media::LAYER).unwrap();
    let images = ["amd64", "arm64"].map(|arch| {
        let own = writer.bytes(media::LAYER, arch.as_bytes()).unwrap();
        let diff_ids = vec![shared.digest.clone(), own.digest.clone()];
        let config = writer.json(media::CONFIG, &ImageConfig::new(Platform::linux(arch), diff_ids)).unwrap();
        let manifest = Manifest::new(config, vec![shared.clone(), own]);
        writer.json(media::MANIFEST, &manifest).unwrap().platform(Platform::linux(arch))
    });
    let index = writer.json(media::INDEX, &Index::new(images.to_vec())).unwrap();
    writer.finish(&Index::new(vec![index.annotation(REF_NAME, "view:1")])).unwrap()
}

fn contents(layout: &Layout) -> Contents {
    let graph = super::super::graph::Graph::walk(layout, layout.roots()).unwrap();
    let blobs = graph.descriptors().cloned().collect();
    let files = [("flux-gen/lock".to_owned(), b"lock".to_vec())].into();
    Contents { index: layout.index_bytes().to_vec(), files, blobs }
}

fn open(path: &Path) -> Result<Layout, Error> {
    Layout::open(path, &Limits::default())
}

#[track_caller]
fn fails(path: &Path, kind: ErrorKind, why: &str) {
    let error = open(path).map(|_| ()).unwrap_err();
    assert!(error.kind() == kind && error.to_string().contains(why), "{:?} {error}", error.kind());
}

#[test]
fn a_folder_is_written_found_and_verified() {
    let work = folder();
    let path = work.path().join("out");
    let layout = sample(&path);
    let root = layout.find(Some("view:1")).unwrap();
    assert_eq!(layout.find(None).unwrap(), root);
    assert_eq!(layout.find(Some(&root.digest.to_string())).unwrap(), root);
    assert!(layout.find(Some("other")).unwrap_err().advice().unwrap().contains("view:1"));
    let arm = source::of_platform(&layout, root, &Platform::linux("aarch64")).unwrap();
    assert_eq!(arm.platform, Some(Platform::linux("arm64")));
    let error = source::of_platform(&layout, root, &Platform::linux("s390x")).unwrap_err();
    assert_eq!((error.kind(), error.advice()), (ErrorKind::Platform, Some("it has linux/amd64, linux/arm64")));
    let report = layout.verify().unwrap();
    assert_eq!((report.documents, report.blobs, report.problems.as_slice()), (3, 5, &[][..]));
    let size: u64 = layout.files().unwrap().iter().filter(|f| f.0.starts_with("blobs/")).map(|f| f.1).sum();
    assert_eq!(report.bytes, size);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o755);
    assert_eq!(fs::metadata(path.join("index.json")).unwrap().mode() & 0o777, 0o644);
    let names: Vec<_> = fs::read_dir(work.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["out"], "nothing is left beside it");
}

#[test]
fn without_an_end_nothing_changes() {
    let work = folder();
    let path = work.path().join("out");
    let writer = LayoutWriter::create(&path, fast()).unwrap();
    writer.bytes("x", b"x").unwrap();
    drop(writer);
    assert_eq!(fs::read_dir(work.path()).unwrap().count(), 0);
    let before = sample(&path).index_bytes().to_vec();
    let writer = LayoutWriter::create(&path, fast()).unwrap();
    let mut blob = writer.blob().unwrap();
    blob.write_all(b"half").unwrap();
    drop(blob);
    writer.bytes("x", b"x").unwrap();
    drop(writer);
    assert_eq!(fs::read(path.join("index.json")).unwrap(), before);
}

#[test]
fn what_a_killed_writer_left_goes() {
    let work = folder();
    let path = work.path().join("out");
    sample(&path);
    let left = path.join("blobs/sha256/.flux-gen-abc");
    fs::write(&left, b"half").unwrap();
    let writer = LayoutWriter::create(&path, fast()).unwrap();
    assert!(!left.exists());
    let present = writer.present().clone();
    assert_eq!(present.manifests.len(), 1);
    writer.finish(&present).unwrap();
}

#[test]
fn strange_targets_are_refused() {
    let work = folder();
    fs::write(work.path().join("mine"), b"x").unwrap();
    let error = LayoutWriter::create(work.path(), fast()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Layout);
    let error = LayoutWriter::create(&work.path().join("mine"), fast()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Store);
}

#[test]
fn nothing_is_written_through_links() {
    let work = folder();
    let (path, outside) = (work.path().join("out"), work.path().join("outside"));
    sample(&path);
    fs::rename(path.join("blobs"), &outside).unwrap();
    std::os::unix::fs::symlink(&outside, path.join("blobs")).unwrap();
    assert_eq!(LayoutWriter::create(&path, fast()).unwrap_err().kind(), ErrorKind::Layout);
}

#[test]
fn changed_bytes_of_an_archive_break_nothing_and_are_noticed_in_content() {
    let work = folder();
    let layout = sample(&work.path().join("out"));
    let path = work.path().join("a.tar");
    archive::save(&layout, &contents(&layout), &path, false, &mut |_| ()).unwrap();
    let good = fs::read(&path).unwrap();
    let content = |at: usize| {
        let mut archive = tar::Archive::new(good.as_slice());
        let mut entries = archive.entries().unwrap().map(Result::unwrap);
        entries.any(|e| {
            let start = usize::try_from(e.raw_file_position()).unwrap();
            let blob = e.path_bytes().starts_with(b"blobs/");
            blob && (start..start + usize::try_from(e.size()).unwrap()).contains(&at)
        })
    };
    for at in (0..good.len()).step_by(good.len() / 97) {
        let mut bad = good.clone();
        bad[at] ^= 0x41;
        fs::write(&path, bad).unwrap();
        let noticed = match open(&path) {
            Err(_) => true,
            Ok(layout) => layout.verify().is_ok_and(|report| !report.problems.is_empty()),
        };
        assert!(noticed || !content(at), "byte {at}");
    }
}

#[test]
fn what_is_no_layout_is_told() {
    let work = folder();
    let path = work.path();
    fails(&path.join("none"), ErrorKind::Store, "No such file");
    fails(path, ErrorKind::Layout, "no file `oci-layout`");
    fs::write(path.join("oci-layout"), r#"{"imageLayoutVersion":"2.0.0"}"#).unwrap();
    fails(path, ErrorKind::Layout, "version 2.0.0");
    fs::write(path.join("oci-layout"), OCI_LAYOUT).unwrap();
    fails(path, ErrorKind::Layout, "no `index.json`");
    fs::write(path.join("index.json"), "{").unwrap();
    fails(path, ErrorKind::Document, "not JSON");
    fs::write(path.join("file"), "plain text").unwrap();
    fails(&path.join("file"), ErrorKind::Layout, "no tar archive");
}

#[test]
fn damage_is_found_wherever_it_is() {
    let work = folder();
    let path = work.path().join("out");
    let layout = sample(&path);
    let mut names: Vec<String> = layout.files().unwrap().into_iter().map(|f| f.0).collect();
    names.retain(|name| name.starts_with("blobs/"));
    assert_eq!(names.len(), 8);
    for name in &names {
        let file = path.join(name);
        let good = fs::read(&file).unwrap();
        let mut bad = good.clone();
        bad[0] ^= 1;
        for (content, kind) in [(&bad, ErrorKind::Digest), (&good[..good.len() - 1].to_vec(), ErrorKind::Digest)] {
            fs::write(&file, content).unwrap();
            let problems = open(&path).unwrap().verify().unwrap().problems;
            assert_eq!(problems.iter().filter(|p| p.kind() == kind).count(), 1, "{name}: {problems:?}");
        }
        fs::remove_file(&file).unwrap();
        let problems = open(&path).unwrap().verify().unwrap().problems;
        assert_eq!(problems.iter().map(Error::kind).collect::<Vec<_>>(), [ErrorKind::Missing], "{name}");
        fs::write(&file, good).unwrap();
    }
    let stray = Digest::of(b"stray").blob_path();
    fs::write(path.join(stray), b"other").unwrap();
    assert_eq!(open(&path).unwrap().verify().unwrap().problems.len(), 1, "blobs that nothing names are looked at");
}

#[test]
fn archives_are_the_same_each_time_and_hold_the_same() {
    let work = folder();
    let layout = sample(&work.path().join("out"));
    let contents = contents(&layout);
    let (one, two) = (work.path().join("one.tar"), work.path().join("two.tar"));
    let mut seen = 0;
    archive::save(&layout, &contents, &one, false, &mut |n| seen += n).unwrap();
    assert_eq!(seen, contents.blobs.iter().map(|d| d.size).sum::<u64>());
    let packed = open(&one).unwrap();
    let mut turned = contents.clone();
    turned.blobs.reverse();
    archive::save(&packed, &turned, &two, true, &mut |_| ()).unwrap();
    assert_eq!(fs::read(&one).unwrap(), fs::read(&two).unwrap());
    assert_eq!(packed.verify().unwrap(), layout.verify().unwrap());
    assert_eq!(packed.index(), layout.index());
    let mut text = String::new();
    packed.file("flux-gen/lock").unwrap().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "lock");
    assert!(packed.file("flux-gen/other").unwrap().is_none());
    let bytes = fs::read(&one).unwrap();
    let mut tar = tar::Archive::new(bytes.as_slice());
    let names: Vec<String> = tar.entries().unwrap().map(|e| e.unwrap().path().unwrap().display().to_string()).collect();
    assert_eq!(names[..3], ["oci-layout", "index.json", "flux-gen/lock"]);
    let largest = contents.blobs.iter().max_by_key(|d| d.size).unwrap();
    assert_eq!(*names.last().unwrap(), largest.digest.blob_path());
    // Compressed as a whole, as people pass archives on.
    let zipped = work.path().join("one.tar.gz");
    let mut encoder = flate2::write::GzEncoder::new(File::create(&zipped).unwrap(), flate2::Compression::fast());
    encoder.write_all(&bytes).unwrap();
    encoder.finish().unwrap();
    assert_eq!(open(&zipped).unwrap().verify().unwrap().problems, []);
    fs::write(work.path().join("one.tar.zst"), zstd::encode_all(bytes.as_slice(), 1).unwrap()).unwrap();
    assert_eq!(open(&work.path().join("one.tar.zst")).unwrap().verify().unwrap().problems, []);
    let limits = Limits { unpacked: 1000, ..Limits::default() };
    let error = Layout::open(&zipped, &limits).unwrap_err();
    assert!(error.kind() == ErrorKind::Archive && error.to_string().contains("more than 1000 bytes"), "{error}");
}

#[test]
fn an_archive_is_not_made_of_damaged_or_missing_blobs() {
    let work = folder();
    let path = work.path().join("out");
    let layout = sample(&path);
    let contents = contents(&layout);
    let target = work.path().join("a.tar");
    let large = contents.blobs.iter().max_by_key(|d| d.size).unwrap();
    fs::write(path.join(large.digest.blob_path()), vec![8; 100_000]).unwrap();
    let error = archive::save(&layout, &contents, &target, false, &mut |_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Digest);
    fs::remove_file(path.join(large.digest.blob_path())).unwrap();
    let error = archive::save(&layout, &contents, &target, false, &mut |_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Missing);
    for name in ["../x", "/x", "blobs/sha256/x", "index.json", ""] {
        let files = [(name.to_owned(), Vec::new())].into();
        let error = archive::save(&layout, &Contents { files, ..Contents::default() }, &target, false, &mut |_| ());
        assert_eq!(error.unwrap_err().kind(), ErrorKind::Archive, "{name}");
    }
    assert!(!target.exists());
    assert_eq!(fs::read_dir(work.path()).unwrap().count(), 1);
}

/// Name, type, content, link.
type Entry<'a> = (&'a str, tar::EntryType, &'a [u8], &'a str);

/// An archive of entries.
fn tar_of(entries: &[Entry<'_>]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, kind, content, link) in entries {
        let mut header = tar::Header::new_gnu();
        // Names that the library would refuse are put in by hand.
        header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
        header.as_gnu_mut().unwrap().linkname[..link.len()].copy_from_slice(link.as_bytes());
        header.set_entry_type(*kind);
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append(&header, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

#[test]
fn unusable_archives_are_refused() {
    use tar::EntryType as Kind;
    let index = br#"{"schemaVersion":2,"manifests":[]}"#.as_slice();
    let good = [("oci-layout", Kind::Regular, OCI_LAYOUT, ""), ("index.json", Kind::Regular, index, "")];
    let cases: [(&[Entry<'_>], &str); 9] = [
        (&[("../x", Kind::Regular, b"", "")], "leaves the archive"),
        (&[("a/../../x", Kind::Regular, b"", "")], "leaves the archive"),
        (&[("/etc/x", Kind::Regular, b"", "")], "is an absolute name"),
        (&[("a", Kind::Regular, b"1", ""), ("./a", Kind::Regular, b"2", "")], "twice"),
        (&[("a", Kind::Symlink, b"", "../../etc/passwd")], "leaves the archive"),
        (&[("a", Kind::Symlink, b"", "/etc/passwd")], "leaves the archive"),
        (&[("a", Kind::Link, b"", "../x")], "leaves the archive"),
        (&[("a", Kind::Char, b"", "")], "no plain file"),
        (&[("a", Kind::Fifo, b"", "")], "no plain file"),
    ];
    let work = folder();
    let path = work.path().join("a.tar");
    for (more, why) in cases {
        fs::write(&path, tar_of(&[&good, more].concat())).unwrap();
        fails(&path, ErrorKind::Archive, why);
    }
    fs::write(&path, tar_of(&good)).unwrap();
    open(&path).unwrap();
    let many = Limits { entries: 1, ..Limits::default() };
    assert_eq!(Layout::open(&path, &many).unwrap_err().kind(), ErrorKind::Archive);
    // A link in a circle is no file.
    let links = [("index.json", Kind::Symlink, b"".as_slice(), "index.json")];
    fs::write(&path, tar_of(&[&good[..1], &links].concat())).unwrap();
    fails(&path, ErrorKind::Layout, "neither");
    fs::write(
        &path,
        tar_of(&[("oci-layout", Kind::Regular, OCI_LAYOUT, ""), ("index.json", Kind::Regular, b"{\"", "")]),
    )
    .unwrap();
    fails(&path, ErrorKind::Document, "not JSON");
    let large = vec![b' '; 5 << 20];
    fs::write(&path, tar_of(&[good[0], ("index.json", Kind::Regular, &large, "")])).unwrap();
    fails(&path, ErrorKind::Document, "4 MiB");
}

#[test]
fn truncated_archives_are_noticed_at_every_step() {
    let work = folder();
    let layout = sample(&work.path().join("out"));
    let path = work.path().join("a.tar");
    archive::save(&layout, &contents(&layout), &path, false, &mut |_| ()).unwrap();
    let bytes = fs::read(&path).unwrap();
    let end = bytes.len() - 1024;
    for step in 0..50 {
        fs::write(&path, &bytes[..end * step / 50]).unwrap();
        let noticed = match open(&path) {
            Err(_) => true,
            Ok(layout) => !layout.verify().unwrap().problems.is_empty(),
        };
        assert!(noticed, "step {step}");
    }
}

/// What `docker save` makes: layers under names of their own, one shared by two images, one through a link.
fn docker_archive(zipped: bool, damage: bool) -> Vec<u8> {
    use tar::EntryType as Kind;
    let layer = b"a layer".to_vec();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&layer).unwrap();
    let stored = if zipped { encoder.finish().unwrap() } else { layer.clone() };
    let diff_ids = vec![Digest::of(if damage { b"other" } else { layer.as_slice() }); 2];
    let config = to_vec(&ImageConfig::new(Platform::linux("arm64"), diff_ids)).unwrap();
    let manifest = br#"[{"Config":"c.json","RepoTags":["a:1","localhost/b:2"],"Layers":["x/layer.tar","y/layer.tar"]},
        {"Config":"c.json","RepoTags":null,"Layers":["x/layer.tar","x/layer.tar"]}]"#;
    tar_of(&[
        ("x", Kind::Directory, b"", ""),
        ("x/layer.tar", Kind::Regular, &stored, ""),
        ("y/layer.tar", Kind::Symlink, b"", "../x/layer.tar"),
        ("c.json", Kind::Regular, &config, ""),
        ("manifest.json", Kind::Regular, manifest, ""),
    ])
}

#[test]
fn archives_of_docker_save_are_read() {
    let work = folder();
    let path = work.path().join("a.tar");
    for zipped in [false, true] {
        fs::write(&path, docker_archive(zipped, false)).unwrap();
        let layout = open(&path).unwrap();
        assert_eq!(layout.roots().len(), 3);
        let root = layout.find(Some("docker.io/library/a:1")).unwrap();
        assert_eq!(layout.find(Some("localhost/b:2")).unwrap().digest, root.digest);
        assert_eq!(root.platform, Some(Platform::linux("arm64")));
        let loaded = source::document(&layout, root).unwrap();
        let kinds: Vec<&str> = loaded.document.children().iter().map(|d| d.media_type.as_str()).collect();
        let layer = if zipped { media::LAYER_GZIP } else { media::LAYER };
        assert_eq!(kinds, [media::CONFIG, layer, layer]);
        assert_eq!(verify(&layout, layout.roots()).problems, []);
    }
    fs::write(&path, docker_archive(false, true)).unwrap();
    fails(&path, ErrorKind::Digest, "the layers are not those of the configuration");
    let empty = tar_of(&[("manifest.json", tar::EntryType::Regular, b"[]", "")]);
    fs::write(&path, empty).unwrap();
    fails(&path, ErrorKind::Archive, "names no image");
    let gone = tar_of(&[("manifest.json", tar::EntryType::Regular, br#"[{"Config":"../c","Layers":[]}]"#, "")]);
    fs::write(&path, gone).unwrap();
    fails(&path, ErrorKind::Archive, "names `../c`, which is not in it");
}

#[test]
fn blobs_are_copied_with_a_check() {
    let work = folder();
    let from = sample(&work.path().join("from"));
    let writer = LayoutWriter::create(&work.path().join("to"), fast()).unwrap();
    let graph = super::super::graph::Graph::walk(&from, from.roots()).unwrap();
    for descriptor in graph.descriptors() {
        writer.copy(&from, descriptor, &mut |_| ()).unwrap();
    }
    let to = writer.finish(from.index()).unwrap();
    assert_eq!(to.verify().unwrap(), from.verify().unwrap());
    let wrong = Descriptor { size: 3, ..graph.blobs[0].clone() };
    let writer = LayoutWriter::create(&work.path().join("third"), fast()).unwrap();
    assert_eq!(writer.copy(&from, &wrong, &mut |_| ()).unwrap_err().kind(), ErrorKind::Digest);
    assert!(!writer.has(&wrong));
}
