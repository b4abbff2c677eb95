//! Bad input: every kind of entry that may be in a folder or archive and should not be.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{codes, file};
use flux_gen::view::entry::{EntryKind, Tree};
use flux_gen::view::pack::{Compression, Layer, PackOptions, pack};
use flux_gen::view::problem::Problems;
use flux_gen::view::tree::{self, Archive, Meaning, ReadError, ReadOptions, Xattrs, apply_layer, index_archive};
use proptest::prelude::*;
use tar::{EntryType, Header};

fn read_options(scratch: &Path) -> ReadOptions {
    ReadOptions { scratch: scratch.to_path_buf(), ..ReadOptions::default() }
}

/// An entry of an archive, with names as raw as they can be.
fn entry(kind: EntryType, name: &[u8], link: &[u8], content: &[u8]) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.as_old_mut().linkname[..link.len()].copy_from_slice(link);
    header.set_mode(0o644);
    header.set_size(content.len() as u64);
    header.set_entry_type(kind);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend(content);
    bytes.resize(bytes.len().div_ceil(512) * 512, 0);
    bytes
}

fn pax(records: &[(&str, &str)]) -> Vec<u8> {
    let mut text = Vec::new();
    for (key, value) in records {
        let rest = key.len() + value.len() + 3;
        let length = (1..4).map(|digits| rest + digits).find(|n| n.to_string().len() + rest == *n).unwrap();
        writeln!(text, "{length} {key}={value}").unwrap();
    }
    entry(EntryType::XHeader, b"pax", b"", &text)
}

fn read_bytes(bytes: &[u8], meaning: Meaning) -> (Result<Tree, ReadError>, Vec<&'static str>) {
    let work = tempfile::tempdir().unwrap();
    let path = work.path().join("x.tar");
    fs::write(&path, bytes).unwrap();
    let mut problems = Problems::default();
    let tree = Archive::open(&path)
        .and_then(|archive| archive.spool(work.path()))
        .and_then(|spooled| index_archive(&path, &spooled, meaning, &read_options(work.path()), &mut problems));
    let left: Vec<PathBuf> = fs::read_dir(work.path()).unwrap().map(|e| e.unwrap().path()).collect();
    assert_eq!(left, [path], "nothing is written anywhere");
    (tree, codes(&problems.diagnostics()))
}

fn archive(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = entries.concat();
    bytes.extend([0; 1024]);
    bytes
}

#[test]
fn entries_that_are_refused() {
    let regular = EntryType::Regular;
    type Case = (&'static str, Vec<Vec<u8>>, &'static [&'static str]);
    let cases: Vec<Case> = vec![
        ("up", vec![entry(regular, b"../x", b"", b"x")], &["FG812"]),
        ("up inside", vec![entry(regular, b"a/../../x", b"", b"x")], &["FG812"]),
        ("up in pax", vec![pax(&[("path", "a/../b")]), entry(regular, b"x", b"", b"x")], &["FG812"]),
        ("hard link up", vec![entry(EntryType::Link, b"x", b"../../etc/passwd", b"")], &["FG812"]),
        ("hard link to nothing", vec![entry(EntryType::Link, b"x", b"y", b"")], &["FG818"]),
        ("character device", vec![entry(EntryType::Char, b"dev/null", b"", b"")], &["FG813"]),
        ("block device", vec![entry(EntryType::Block, b"sda", b"", b"")], &["FG813"]),
        ("pipe", vec![entry(EntryType::Fifo, b"pipe", b"", b"")], &["FG813"]),
        ("twice", vec![entry(regular, b"a", b"", b"1"), entry(regular, b"./a", b"", b"2")], &["FG815"]),
        (
            "folder twice",
            vec![entry(EntryType::Directory, b"a/", b"", b""), entry(EntryType::Directory, b"a", b"", b"")],
            &[],
        ),
        (
            "below a link",
            vec![entry(EntryType::Symlink, b"a", b"/etc", b""), entry(regular, b"a/passwd", b"", b"x")],
            &["FG812"],
        ),
        ("below a file", vec![entry(regular, b"a", b"", b""), entry(regular, b"a/b", b"", b"x")], &["FG812"]),
        ("sparse", vec![pax(&[("GNU.sparse.major", "1")]), entry(regular, b"a", b"", b"x")], &["FG818"]),
        ("unknown", vec![entry(EntryType::new(b'Z'), b"a", b"", b"")], &["FG818"]),
    ];
    for (name, entries, expect) in cases {
        let (tree, found) = read_bytes(&archive(&entries), Meaning::Tree);
        assert!(tree.is_ok(), "{name}: {tree:?}");
        assert_eq!(found, expect, "{name}");
    }
}

#[test]
fn names_are_taken_from_the_root() {
    let long = format!("{}/end", "d".repeat(150));
    let entries = [
        entry(EntryType::XGlobalHeader, b"g", b"", b""),
        entry(EntryType::Regular, b"/etc/passwd", b"", b"root"),
        entry(EntryType::Regular, b"./b//c", b"", b"x"),
        pax(&[("path", &long), ("linkpath", "../target")]),
        entry(EntryType::Symlink, b"cut", b"", b""),
        entry(EntryType::Regular, b"\xff\xfe", b"", b"x"),
        entry(EntryType::Link, b"hard", b"b/c", b""),
    ];
    let (tree, found) = read_bytes(&archive(&entries), Meaning::Tree);
    assert_eq!(found, Vec::<&str>::new());
    let tree = tree.unwrap();
    let names: Vec<String> = tree.entries.keys().map(|path| String::from_utf8_lossy(path).into_owned()).collect();
    let folder = "d".repeat(150);
    assert_eq!(names, ["b", "b/c", &folder, &long, "etc", "etc/passwd", "hard", "\u{fffd}\u{fffd}"]);
    assert!(matches!(&tree.get(long.as_bytes()).unwrap().kind, EntryKind::Link(target) if target == b"../target"));
    let shared = |path: &[u8]| tree.get(path).unwrap().content().unwrap().shared;
    assert!(shared(b"hard").is_some() && shared(b"hard") == shared(b"b/c"));
}

#[test]
fn archives_that_are_damaged() {
    let good = archive(&[entry(EntryType::Regular, b"a", b"", &[7; 2000])]);
    let mut wrong = good.clone();
    wrong[10] ^= 1;
    let mut huge_pax = entry(EntryType::XHeader, b"pax", b"", b"");
    {
        let header: &mut [u8] = &mut huge_pax[..512];
        header[124..136].copy_from_slice(b"77777777777\0");
        let sum: u32 =
            header.iter().enumerate().map(|(i, b)| if (148..156).contains(&i) { 32 } else { u32::from(*b) }).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    let mut bad_sum =
        archive(&[entry(EntryType::Regular, b"a", b"", b"x"), entry(EntryType::Regular, b"b", b"", b"x")]);
    bad_sum[1024 + 5] ^= 4;
    for (name, bytes) in [
        ("cut", good[..1500].to_vec()),
        ("cut header", good[..300].to_vec()),
        ("no tar", b"hello, I am a text that is a little longer than nothing".repeat(20)),
        ("empty", Vec::new()),
        ("wrong", wrong),
        ("second header", bad_sum),
        ("huge extension", huge_pax),
        ("xz", b"\xfd7zXZ\0abc".to_vec()),
        ("bzip2", b"BZh91AY".to_vec()),
        ("half a gzip", b"\x1f\x8b\x08\0\0\0\0\0\0\xffabc".to_vec()),
        ("half a zstd", vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0]),
        (
            "bad pax",
            archive(&[entry(EntryType::XHeader, b"p", b"", b"99 path=x\n"), entry(EntryType::Regular, b"a", b"", b"")]),
        ),
        ("bad size", archive(&[pax(&[("size", "many")]), entry(EntryType::Regular, b"a", b"", b"")])),
    ] {
        let (tree, _) = read_bytes(&bytes, Meaning::Tree);
        assert!(matches!(tree, Err(ReadError::Archive { .. })), "{name}: {tree:?}");
    }
}

#[test]
fn a_bomb_does_not_go_off() {
    let work = tempfile::tempdir().unwrap();
    let path = work.path().join("bomb");
    let mut encoder = zstd::Encoder::new(fs::File::create(&path).unwrap(), 1).unwrap();
    let zeros = vec![0; 1 << 24];
    for _ in 0..66 {
        encoder.write_all(&zeros).unwrap();
    }
    encoder.finish().unwrap();
    let error = Archive::open(&path).and_then(|archive| archive.spool(work.path())).unwrap_err().to_string();
    assert!(error.contains("become more than 1073741824"), "{error}");
    assert_eq!(fs::read_dir(work.path()).unwrap().count(), 1);
}

#[test]
fn layers_hide_and_replace() {
    let regular = EntryType::Regular;
    let layer = |entries: &[Vec<u8>]| read_bytes(&archive(entries), Meaning::Layer).0.unwrap();
    let mut tree = Tree::default();
    let first = layer(&[
        entry(regular, b"opt/a/1", b"", b"1"),
        entry(regular, b"opt/a/2", b"", b"2"),
        entry(regular, b"opt/b/1", b"", b"1"),
        entry(regular, b"opt/c", b"", b"c"),
        entry(EntryType::Symlink, b"opt/l", b"a", b""),
        entry(EntryType::Char, b"dev/null", b"", b""),
    ]);
    apply_layer(&mut tree, first, 0);
    let second = layer(&[
        entry(regular, b"opt/a/.wh.1", b"", b""),
        entry(regular, b"opt/b/.wh..wh..opq", b"", b""),
        entry(regular, b"opt/b/2", b"", b"2"),
        entry(EntryType::Directory, b"opt/c/", b"", b""),
        entry(regular, b"opt/c/new", b"", b"x"),
        entry(regular, b"opt/c/new", b"", b"the last one counts"),
        entry(regular, b"opt/l/under", b"", b"x"),
        entry(regular, b"opt/.wh.gone", b"", b""),
        entry(regular, b"opt/.wh.", b"", b""),
    ]);
    apply_layer(&mut tree, second, 1);
    let names: Vec<String> = tree.entries.keys().map(|path| String::from_utf8_lossy(path).into_owned()).collect();
    let expect = ["opt", "opt/a", "opt/a/2", "opt/b", "opt/b/2", "opt/c", "opt/c/new", "opt/l", "opt/l/under"];
    assert_eq!(names, expect);
    assert!(matches!(tree.get(b"opt/l").unwrap().kind, EntryKind::Folder), "a link never leads a layer elsewhere");
    assert_eq!(tree.get(b"opt/c/new").unwrap().content().unwrap().size, 19);
}

#[test]
fn folders_with_what_cannot_be_packed() {
    let work = tempfile::tempdir().unwrap();
    let root = work.path().join("tree");
    file(&root, "good", b"x", 0o644);
    file(&root, "__pycache__/x.pyc", b"x", 0o644);
    assert!(Command::new("mkfifo").arg(root.join("pipe")).status().unwrap().success());
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).unwrap();
    std::os::unix::fs::symlink("/etc", root.join("out")).unwrap();
    let sparse = fs::File::create(root.join("sparse")).unwrap();
    sparse.set_len(5_000_000).unwrap();
    let mut problems = Problems::default();
    let options = ReadOptions { exclude: vec!["__pycache__".into()], ..read_options(work.path()) };
    let tree = tree::index(&root, &options, &mut problems).unwrap();
    assert_eq!(codes(&problems.diagnostics()), ["FG813", "FG813"]);
    assert_eq!(tree.entries.len(), 3, "a link to a folder is a link");
    assert_eq!(tree.get(b"sparse").unwrap().content().unwrap().size, 5_000_000, "holes are zeros");
    assert!(matches!(tree::index(&root.join("none"), &options, &mut Problems::default()), Err(ReadError::Io { .. })));
}

#[test]
fn extended_attributes_by_policy() {
    for (policy, name, kept) in [
        (Xattrs::None, "security.capability", false),
        (Xattrs::Capabilities, "security.capability", true),
        (Xattrs::Capabilities, "user.x", false),
        (Xattrs::User, "user.x", true),
        (Xattrs::User, "security.capability", true),
        (Xattrs::User, "security.selinux", false),
        (Xattrs::User, "trusted.overlay.opaque", false),
    ] {
        assert_eq!(policy.keeps(name.as_bytes()), kept, "{policy:?} {name}");
    }
    let entries = [
        pax(&[("SCHILY.xattr.user.x", "1"), ("SCHILY.xattr.security.selinux", "l")]),
        entry(EntryType::Regular, b"a", b"", b""),
    ];
    let work = tempfile::tempdir().unwrap();
    let path = work.path().join("x.tar");
    fs::write(&path, archive(&entries)).unwrap();
    let options = ReadOptions { xattrs: Xattrs::User, ..read_options(work.path()) };
    let tree = tree::index(&path, &options, &mut Problems::default()).unwrap();
    assert_eq!(tree.get(b"a").unwrap().xattrs, [(b"user.x".to_vec(), b"1".to_vec())]);
}

/// Capabilities as the kernel keeps them: version 2, effective, cap_net_raw (linux/capability.h).
const NET_RAW: [u8; 20] = [1, 0, 0, 2, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

#[test]
fn extended_attributes_of_a_file_system_are_packed() {
    use rustix::fs::{XattrFlags, setxattr};
    let work = tempfile::tempdir().unwrap();
    let root = work.path().join("tree");
    file(&root, "opt/software/ping", b"x", 0o755);
    let path = root.join("opt/software/ping");
    if setxattr(&path, "user.note", b"a\0b", XattrFlags::empty()).is_err() {
        println!("skipped: this file system has no extended attributes");
        return;
    }
    // Only root may give capabilities.
    let privileged = setxattr(&path, "security.capability", &NET_RAW, XattrFlags::empty()).is_ok();
    let packed = |xattrs| {
        let options = ReadOptions { xattrs, ..read_options(work.path()) };
        let tree = tree::index(&root, &options, &mut Problems::default()).unwrap();
        let paths: Vec<_> = tree.entries.keys().cloned().collect();
        let layer = Layer::of(&tree, &paths);
        let threads = std::num::NonZeroUsize::MIN;
        let mut bytes = Vec::new();
        pack(&layer, PackOptions { compression: Compression::Zstd, threads, time: 0 }, &mut bytes).unwrap();
        let plain = zstd::decode_all(bytes.as_slice()).unwrap();
        let mut found = Vec::new();
        for entry in tar::Archive::new(plain.as_slice()).entries().unwrap() {
            let mut entry = entry.unwrap();
            for record in entry.pax_extensions().unwrap().into_iter().flatten() {
                let record = record.unwrap();
                found.push((record.key().unwrap().to_owned(), record.value_bytes().to_vec()));
            }
        }
        found
    };
    let note = ("SCHILY.xattr.user.note".to_owned(), b"a\0b".to_vec());
    let capability = ("SCHILY.xattr.security.capability".to_owned(), NET_RAW.to_vec());
    assert_eq!(packed(Xattrs::None), []);
    assert_eq!(packed(Xattrs::Capabilities), if privileged { vec![capability.clone()] } else { vec![] });
    assert_eq!(packed(Xattrs::User), if privileged { vec![capability, note] } else { vec![note] });
}

proptest! {
    /// No bytes make the reader panic, loop or write.
    #[test]
    fn any_bytes(noise in proptest::collection::vec(any::<u8>(), 0..3000), flips in proptest::collection::vec((0..6000_usize, any::<u8>()), 0..8)) {
        let _ = read_bytes(&noise, Meaning::Tree);
        let mut bytes = archive(&[
            pax(&[("path", "a/b"), ("size", "3")]),
            entry(EntryType::Regular, b"x", b"", b"abc"),
            entry(EntryType::Symlink, b"l", b"x", b""),
            entry(EntryType::Link, b"h", b"a/b", b""),
        ]);
        for (at, value) in flips {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        if let (Ok(tree), _) = read_bytes(&bytes, Meaning::Tree) {
            prop_assert!(tree.entries.keys().all(|path| !path.is_empty() && !path.split(|b| *b == b'/').any(|p| p == b".." || p.is_empty())));
        }
    }
}
