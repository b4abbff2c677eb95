//! `archive`: made of a project that is up to date, without what is nobody's business, checked by anybody.

use std::fs;

use crate::harness::{Sandbox, minicluster};
use crate::lock::{VIEW, layout};

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
    let _ = sandbox.run(&["build"]).exits(0);
    let refused = sandbox.run(&SAVE).exits(1).stderr;
    assert_eq!(refused.matches("error[FG916]").count(), 3, "{refused}");
    for part in ["examples/s.yaml holds the plain Secret one", "generated/notes.yaml holds the plain Secret two"] {
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
    assert!(said.contains("error[FG913]: site.tar: rockylinux:9 is not there for linux/s390x"), "{said}");
}
