//! `archive`: made of a project that is up to date, without what is nobody's business, checked by anybody.

use std::collections::BTreeMap;
use std::fs;

use flux_gen::oci::descriptor::REF_NAME;
use flux_gen::oci::document::{Index, Manifest};
use flux_gen::oci::image::ImageConfig;
use flux_gen::oci::layout::{LayoutWriter, WriteOptions};
use flux_gen::oci::{Digest, Platform, media};

use crate::harness::{Sandbox, minicluster};
use crate::lock::{VIEW, layout};
use crate::mock::{Mock, Setup};

/// A project with its images in a layout, locked and built.
fn built() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("examples/a.yaml", &minicluster("a", 2));
    layout(&sandbox, "images", &["rockylinux:9", VIEW], "one");
    let _ = sandbox.run(&["lock", "--from", "images"]).exits(0);
    let _ = sandbox.run(&["build"]).exits(0);
    sandbox
}

const SAVE: [&str; 6] = ["archive", "save", "--from", "images", "-o", "site.tar"];

#[test]
fn saved_inspected_verified() {
    let sandbox = built();
    sandbox.write("views/mine/view.yaml", "base: x\n").write("views/.hidden", "no\n");
    sandbox.write("recipes/mine/patches/a.patch", "-x\n").write("recipes.lock", "# of bases\n");
    let _ = sandbox.run(&["cert", "new", "a"]).exits(0);
    let _ = sandbox.run(&["build"]).exits(0);
    assert!(sandbox.path("certs/default/a.cert").exists());
    let saved = sandbox.run(&SAVE).exits(0);
    let digest = saved.stdout.trim_end().to_owned();
    assert!(digest.starts_with("sha256:"), "{saved:?}");
    let first = fs::read(sandbox.path("site.tar")).unwrap();
    let again = sandbox.run(&SAVE).exits(0);
    assert_eq!((again.stdout, fs::read(sandbox.path("site.tar")).unwrap() == first), (saved.stdout, true));
    let said = sandbox.run(&["archive", "verify", "site.tar", "--expect", &digest]).exits(0);
    assert!(said.stderr.starts_with("site.tar is whole: 2 images"), "{said:?}");
    assert_eq!(said.stdout.trim_end(), digest);
    let other = format!("sha256:{}", "0".repeat(64));
    let said = sandbox.run(&["archive", "verify", "site.tar", "--expect", &other]).exits(1).stderr;
    assert!(said.contains("error[FG912]: site.tar: it is another archive"), "{said}");
    let said = sandbox.run(&["archive", "verify", "sit.tar"]).exits(1).stderr;
    assert!(said.contains("cannot read sit.tar: No such file"), "a misspelt file is no registry: {said}");
    let text = sandbox.run(&["archive", "inspect", "site.tar"]).exits(0).stdout;
    for part in ["  default/a\n", "  rockylinux:9 sha256:", "    linux/arm64", "docker load takes"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let json = sandbox.run(&["archive", "inspect", "--json", "site.tar"]).exits(0).stdout;
    let about: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(about["images"][1]["name"], "rockylinux:9");
    let mut names = Vec::new();
    for entry in tar::Archive::new(first.as_slice()).entries().unwrap() {
        names.push(entry.unwrap().path().unwrap().to_string_lossy().into_owned());
    }
    for name in [
        "generated/default/a/job.yaml",
        "sources/examples/a.yaml",
        "sources/views/mine/view.yaml",
        "sources/recipes/mine/patches/a.patch",
        "sources/recipes.lock",
        "sources/certs/public.json",
        "images.lock",
    ] {
        assert!(names.contains(&format!("flux-gen/{name}")), "{name}: {names:?}");
    }
    assert!(!names.iter().any(|name| name.ends_with(".cert") || name.contains("hidden")), "{names:?}");
    // An archive is an image layout: another project locks its images from it.
    let inside = Sandbox::new();
    inside.write("examples/a.yaml", &minicluster("a", 2));
    let archive = sandbox.path("site.tar");
    let _ = inside.run(&["lock", "--from", archive.to_str().unwrap()]).exits(0);
    assert_eq!(
        inside.read("images.lock").matches("digest = ").count(),
        sandbox.read("images.lock").matches("digest = ").count()
    );
}

#[test]
fn only_of_a_project_that_is_up_to_date() {
    let sandbox = Sandbox::new();
    sandbox.write("examples/a.yaml", &minicluster("a", 2));
    layout(&sandbox, "images", &["rockylinux:9", VIEW], "one");
    let _ = sandbox.run(&["build"]).exits(0);
    let said = sandbox.run(&SAVE).exits(1).stderr;
    assert!(said.contains("error[FG915]: there is no images.lock"), "{said}");
    let _ = sandbox.run(&["lock", "--from", "images"]).exits(0);
    let said = sandbox.run(&SAVE).exits(1).stderr;
    assert!(said.contains("error[FG915]: generated is not what the specs give"), "{said}");
    assert!(!sandbox.path("site.tar").exists() && !sandbox.path("site.tar.partial").exists());
}

#[test]
fn plain_secrets_are_listed_and_refused() {
    let sandbox = built();
    let secret = |name: &str| {
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\nstringData: {{k: hush-hush}}\n")
    };
    sandbox.write("examples/s.yaml", &secret("one")).write("generated/notes.yaml", &secret("two"));
    // One that only says that it is encrypted, and a certificate that is in no Secret at all.
    sandbox.write("views/v/pretended.yaml", &(secret("three") + "sops: {mac: 'ENC[AES256_GCM,data:z]'}\n"));
    sandbox.write("recipes/r/curve.txt", "curve\n    public-key = \"a\"\n    secret-key = \"hush-hush\"\n");
    let _ = sandbox.run(&["build"]).exits(0);
    let refused = sandbox.run(&SAVE).exits(1).stderr;
    assert_eq!(refused.matches("error[FG916]").count(), 5, "{refused}");
    for part in [
        "examples/s.yaml holds the plain Secret one",
        "generated/notes.yaml holds the plain Secret two",
        "views/v/pretended.yaml holds the plain Secret three",
        "recipes/r/curve.txt holds the private key of a certificate",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
    assert!(!refused.contains("hush-hush"), "{refused}");
    let _ = sandbox.run(&[&SAVE[..], &["--include-secrets"]].concat()).exits(0);
    let _ = sandbox.run(&["archive", "verify", "site.tar"]).exits(0);
}

#[test]
fn no_archive_and_damaged_ones() {
    let sandbox = built();
    for command in ["inspect", "verify"] {
        let said = sandbox.run(&["archive", command, "images"]).exits(1).stderr;
        assert!(said.contains("error[FG910]: images has no flux-gen/archive.json"), "{said}");
    }
    let _ = sandbox.run(&SAVE).exits(0);
    let mut bytes = fs::read(sandbox.path("site.tar")).unwrap();
    let end = bytes.len() - 1;
    bytes[end] = 1;
    fs::write(sandbox.path("site.tar"), &bytes).unwrap();
    let said = sandbox.run(&["archive", "verify", "site.tar"]).exits(1).stderr;
    assert!(
        said.contains(&format!("error[FG912]: site.tar: there is something after the end (at offset {end})")),
        "{said}"
    );
    let said = sandbox.run(&["archive", "verify", "site.tar", "--platform", "linux/s390x"]).exits(1).stderr;
    // Both are the same bytes; each is told, with the file that needs it.
    for name in ["rockylinux:9", VIEW] {
        let told =
            format!("error[FG913]: site.tar: {name} is not there for linux/s390x, only for linux/amd64, linux/arm64");
        assert!(said.contains(&format!("{told}; flux-gen/generated/default/a/job.yaml needs it")), "{said}");
    }
}

/// The smallest file that is a program: an ELF header and one program header of this type (1: to be loaded, 3: the name of a
/// loader of shared libraries).
fn elf(machine: u16, kind: u32) -> Vec<u8> {
    let mut bytes = b"\x7fELF\x02\x01\x01".to_vec();
    bytes.resize(16, 0);
    let words = |bytes: &mut Vec<u8>, words: &[u64]| words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
    bytes.extend(2_u16.to_le_bytes());
    bytes.extend(machine.to_le_bytes());
    bytes.extend(1_u32.to_le_bytes());
    words(&mut bytes, &[0, 64, 0]);
    for half in [0_u16, 0, 64, 56, 1, 0, 0, 0] {
        bytes.extend(half.to_le_bytes());
    }
    bytes.extend(kind.to_le_bytes());
    bytes.extend(5_u32.to_le_bytes());
    words(&mut bytes, &[0, 0, 0, 64, 64, 8]);
    bytes
}

const TOOL: &str = "registry.example/flux-gen:v1";
const AMD64: u16 = 62;
const ARM64: u16 = 183;

/// A layout with an image of flux-gen of this name: programs by architecture, at this path.
fn tool_layout(sandbox: &Sandbox, folder: &str, name: &str, path: &str, programs: &[(&str, Vec<u8>)]) {
    let writer = LayoutWriter::create(&sandbox.path(folder), WriteOptions { durable: false }).unwrap();
    let one = |(architecture, program): &(&str, Vec<u8>)| {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_ustar();
        header.set_size(program.len() as u64);
        header.set_mode(0o755);
        builder.append_data(&mut header, path, program.as_slice()).unwrap();
        let tar = builder.into_inner().unwrap();
        let layer = writer.bytes(media::LAYER, &tar).unwrap();
        let config = ImageConfig::new(Platform::linux(architecture), vec![Digest::of(&tar)]);
        let manifest = Manifest::new(writer.json(media::CONFIG, &config).unwrap(), vec![layer]);
        writer.json(media::MANIFEST, &manifest).unwrap().platform(Platform::linux(architecture))
    };
    let index = writer.json(media::INDEX, &Index::new(programs.iter().map(one).collect())).unwrap();
    writer.finish(&Index::new(vec![index.annotation(REF_NAME, name)])).unwrap();
}

fn both() -> [(&'static str, Vec<u8>); 2] {
    [("amd64", elf(AMD64, 1)), ("arm64", elf(ARM64, 1))]
}

#[test]
fn flux_gen_itself_comes_along_and_tar_alone_gets_it_out() {
    let sandbox = built();
    tool_layout(&sandbox, "tool", TOOL, "usr/bin/flux-gen", &both());
    let by_path = sandbox.run(&[&SAVE[..], &["--with-tool", "tool"]].concat()).exits(0);
    let bytes = fs::read(sandbox.path("site.tar")).unwrap();
    let by_name = sandbox.run(&[&SAVE[..], &["--from", "tool", "--with-tool", TOOL]].concat()).exits(0);
    assert_eq!((by_name.stdout, fs::read(sandbox.path("site.tar")).unwrap() == bytes), (by_path.stdout, true));
    let mut found = BTreeMap::new();
    for entry in tar::Archive::new(bytes.as_slice()).entries().unwrap() {
        let mut entry = entry.unwrap();
        let (name, mode) = (entry.path().unwrap().display().to_string(), entry.header().mode().unwrap());
        if let Some(name) = name.strip_prefix("flux-gen/tool/") {
            let mut content = Vec::new();
            std::io::Read::read_to_end(&mut entry, &mut content).unwrap();
            found.insert(name.to_owned(), (mode, content));
        } else {
            assert_eq!(mode, 0o644, "{name}");
        }
    }
    let expect = [("amd64", AMD64), ("arm64", ARM64)];
    let expect = expect.map(|(name, machine)| (format!("flux-gen-linux-{name}"), (0o755, elf(machine, 1))));
    assert_eq!(found, expect.into());
    let said = sandbox.run(&["archive", "verify", "site.tar"]).exits(0).stderr;
    assert!(said.starts_with("site.tar is whole: 3 images"), "{said}");
    let text = sandbox.run(&["archive", "inspect", "site.tar"]).exits(0).stdout;
    assert!(
        text.contains(&format!("flux-gen   {TOOL}\n    linux/amd64    flux-gen/tool/flux-gen-linux-amd64\n")),
        "{text}"
    );
    // It is loaded as an image like others, and compared there.
    let mock = Mock::new(Setup::default());
    let to = format!("{}/hub", mock.address);
    let there = ["site.tar", "--plain-http", &mock.address, "--to", &to];
    let _ = sandbox.run(&[&["archive", "load", "-o", "site"], &there[..]].concat()).exits(0);
    assert_eq!(mock.state().repos["hub/registry.example/flux-gen"].tags.keys().collect::<Vec<_>>(), ["v1"]);
    let _ = sandbox.run(&[&["archive", "verify"], &there[..]].concat()).exits(0);
    assert!(!sandbox.read("site/images.lock").contains("flux-gen:v1"));
    // A site of one platform gets one program, and the index of that one.
    let one = ["--with-tool", "tool", "--platform", "linux/arm64"];
    let _ = sandbox.run(&[&SAVE[..], &one].concat()).exits(0);
    let _ = sandbox.run(&["archive", "verify", "site.tar"]).exits(0);
    let json = sandbox.run(&["archive", "inspect", "--json", "site.tar"]).exits(0).stdout;
    let about: serde_json::Value = serde_json::from_str(&json).unwrap();
    let programs = serde_json::json!({"linux/arm64": "flux-gen/tool/flux-gen-linux-arm64"});
    assert_eq!(about["tool"], serde_json::json!({"image": TOOL, "programs": programs}));
}

#[test]
fn what_a_site_could_not_run_is_not_taken_along() {
    let sandbox = built();
    let amd64 = |program: Vec<u8>| [("amd64", program)];
    for (name, path, program, expect) in [
        (
            TOOL,
            "usr/bin/flux-gen",
            elf(AMD64, 3),
            "error[FG919]: /usr/bin/flux-gen of registry.example/flux-gen:v1 (linux/amd64) needs libraries",
        ),
        (TOOL, "usr/bin/flux-gen", elf(ARM64, 1), "(linux/amd64) is for arm64, not for linux/amd64"),
        (TOOL, "usr/bin/flux-gen", b"#!/bin/sh\nexec ls\n".repeat(10), "(linux/amd64) is no program"),
        (TOOL, "bin/flux-gen", elf(AMD64, 1), "(linux/amd64) has no program /usr/bin/flux-gen"),
        ("v1", "usr/bin/flux-gen", elf(AMD64, 1), "error[FG919]: tool does not tell the whole name of its image"),
    ] {
        let _ = fs::remove_dir_all(sandbox.path("tool"));
        tool_layout(&sandbox, "tool", name, path, &amd64(program));
        let said = sandbox.run(&[&SAVE[..], &["--with-tool", "tool"]].concat()).exits(1).stderr;
        assert!(said.contains(expect) && said.contains("nothing was written"), "{expect}\n{said}");
    }
    let _ = fs::remove_dir_all(sandbox.path("tool"));
    tool_layout(&sandbox, "tool", TOOL, "usr/bin/flux-gen", &amd64(elf(AMD64, 1)));
    let said =
        sandbox.run(&[&SAVE[..], &["--with-tool", "tool", "--platform", "linux/arm64"]].concat()).exits(1).stderr;
    assert!(said.contains("error[FG866]: registry.example/flux-gen:v1 has no image for linux/arm64"), "{said}");
    assert!(!sandbox.path("site.tar").exists() && !sandbox.path("site.tar.partial").exists());
}

#[test]
fn a_program_that_is_missing_or_not_named_is_told() {
    let sandbox = built();
    tool_layout(&sandbox, "tool", TOOL, "usr/bin/flux-gen", &both());
    let _ = sandbox.run(&[&SAVE[..], &["--with-tool", "tool"]].concat()).exits(0);
    let archive = fs::File::open(sandbox.path("site.tar")).unwrap();
    tar::Archive::new(archive).unpack(sandbox.path("folder")).unwrap();
    let about = sandbox.read("folder/flux-gen/archive.json");
    let say = |change: &dyn Fn(&str) -> String| {
        sandbox.write("folder/flux-gen/archive.json", &change(&about));
        sandbox.run(&["archive", "verify", "folder"]).exits(1).stderr
    };
    let said = say(&|about| about.replace("flux-gen-linux-arm64", "flux-gen-linux-other"));
    assert!(said.contains("error[FG913]: folder: flux-gen/tool/flux-gen-linux-other is not in it"), "{said}");
    assert!(said.contains("archive.json does not name flux-gen/tool/flux-gen-linux-arm64"), "{said}");
    let said = say(&|about| about.replace("\"linux/arm64\": \"flux-gen/tool", "\"linux/s390x\": \"flux-gen/tool"));
    assert!(said.contains("error[FG913]: folder: flux-gen for linux/arm64 is not in it"), "{said}");
    let said = say(&|about| about.replace("\"image\": \"registry.example/flux-gen:v1\"", "\"image\": \"x\""));
    assert!(said.contains("error[FG913]: folder: the image x of flux-gen is not in it"), "{said}");
    assert!(said.contains("the lock does not have the image registry.example/flux-gen:v1"), "{said}");
}
