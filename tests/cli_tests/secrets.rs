//! Secret backends as users meet them: what is encrypted when, what counts as changed, what needs no private key.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::harness::{Run, Sandbox, minicluster};

/// A sandbox with one cluster in a namespace and these settings.
fn project(settings: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("examples/a.yaml", &in_hpc("a")).write("flux-gen.yaml", &format!("settings: {{{settings}}}\n"));
    sandbox
}

fn in_hpc(name: &str) -> String {
    minicluster(name, 2).replace(&format!("name: {name}\n"), &format!("name: {name}\n  namespace: hpc\n"))
}

fn person() -> String {
    age::x25519::Identity::generate().to_public().to_string()
}

fn sops(recipients: &[&String]) -> String {
    let list = recipients.iter().map(|r| r.as_str()).collect::<Vec<_>>().join(" ");
    format!("secrets: sops, age-recipients: \"{list}\"")
}

fn sealed(sandbox: &Sandbox, which: &str) -> &'static str {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sealing").join(which)).unwrap();
    sandbox.write("seal.pem", &text);
    "settings: {secrets: sealed, sealed-certificate: seal.pem}\n"
}

/// Every file of a folder, by path.
fn files(sandbox: &Sandbox, folder: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![sandbox.path(folder)];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                let path = entry.path().strip_prefix(sandbox.path(folder)).unwrap().display().to_string();
                found.insert(path, fs::read_to_string(entry.path()).unwrap());
            }
        }
    }
    found
}

#[track_caller]
fn says(run: Run, start: &str) -> Run {
    assert!(run.stderr.lines().any(|line| line.starts_with(start)), "{start}\n{}", run.stderr);
    run
}

#[test]
fn an_encrypted_secret_is_made_once_and_needs_no_private_key_afterwards() {
    let me = person();
    for backend in ["sops", "sealed"] {
        let sandbox = project(&sops(&[&me]));
        if backend == "sealed" {
            let settings = sealed(&sandbox, "one.pem");
            sandbox.write("flux-gen.yaml", settings);
        }
        says(sandbox.run(&["check"]).exits(1), "error[FG501]: ");
        says(sandbox.run(&["build"]).exits(0), &format!("encrypted certs/hpc/a.{backend}.yaml for "));
        let copy = if backend == "sops" { "secret-curve.sops.yaml" } else { "sealedsecret-curve.yaml" };
        let (stored, copied) =
            (sandbox.read(&format!("certs/hpc/a.{backend}.yaml")), format!("generated/hpc/a/{copy}"));
        assert_eq!(sandbox.read(&copied), stored);
        assert!(sandbox.read("generated/hpc/a/kustomization.yaml").contains(&format!("\n- {copy}\n")));

        fs::remove_file(sandbox.path("certs/hpc/a.cert")).unwrap();
        let before = (files(&sandbox, "generated"), files(&sandbox, "certs"));
        for args in [&["build"][..], &["check"], &["diff"], &["build", "--stdout"], &["validate"]] {
            sandbox.run(args).exits(0);
        }
        assert_eq!((files(&sandbox, "generated"), files(&sandbox, "certs")), before);
        let shown = sandbox.run(&["cert", "show", "a"]).exits(0).quietly().stdout;
        assert!(shown.contains("  private key: not here\n"), "{shown}");
        assert!(shown.ends_with(&format!("  encrypted:   certs/hpc/a.{backend}.yaml\n")), "{shown}");
    }
}

#[test]
fn who_is_to_decrypt_must_be_said_once_for_all() {
    let sandbox = project("secrets: sops");
    sandbox.write("examples/b.yaml", &in_hpc("b"));
    let run = says(sandbox.run(&["build"]).exits(1), "error[FG511]: the Secret of hpc/a and 1 more has no ");
    assert_eq!(run.stderr.matches("error[").count(), 1, "{}", run.stderr);
    let run = sandbox.run(&["check", "--set", "secrets=sealed"]).exits(1);
    says(run, "error[FG512]: the Secret of hpc/a and 1 more has no sealing certificate");
    let with = |file: &str| {
        sandbox.run(&["check", "--set", "secrets=sealed", "--set", &format!("sealed-certificate={file}")]).exits(1)
    };
    says(with("gone.pem"), "error[FG513]: the sealing certificate gone.pem cannot be used: No such file or directory");
    says(
        with("flux-gen.yaml"),
        "error[FG513]: the sealing certificate flux-gen.yaml cannot be used: it holds no X.509",
    );
    sandbox.write("examples/c.yaml", &minicluster("c", 1));
    sealed(&sandbox, "one.pem");
    let run = says(with("seal.pem"), "error[FG514]: ");
    assert!(run.stderr.contains("examples/c.yaml:4:9"), "{}", run.stderr);
    assert!(!sandbox.path("certs").exists());
    let identity = age::secrecy::ExposeSecret::expose_secret(&age::x25519::Identity::generate().to_string()).to_owned();
    for format in ["human", "json", "github"] {
        sandbox.write("flux-gen.yaml", &format!("settings: {{secrets: sops, age-recipients: {identity}}}\n"));
        let run = sandbox.run(&["check", "--message-format", format]).exits(1);
        assert!(run.stderr.contains("FG519") && !run.stderr.contains(&identity[20..]), "{}", run.stderr);
    }
    let explained = sandbox.run(&["explain", "settings"]);
    assert!(!format!("{}{}", explained.stdout, explained.stderr).contains(&identity[20..]));
}

#[test]
fn other_recipients_are_drift_and_the_build_says_why_it_encrypts() {
    let (me, you) = (person(), person());
    let sandbox = project(&sops(&[&me]));
    sandbox.run(&["build"]).exits(0);
    sandbox.write("flux-gen.yaml", &format!("settings: {{{}}}\n", sops(&[&you, &me])));
    let reason = format!("certs/hpc/a.sops.yaml is out of date: it cannot be decrypted by {you}");
    let stored = sandbox.read("certs/hpc/a.sops.yaml");
    for args in [&["check"][..], &["diff"]] {
        let run = says(sandbox.run(args).exits(3), &format!("{reason}; `flux-gen build` encrypts it"));
        assert!(
            run.stdout.contains("secret") || run.stderr.contains("changed  generated/hpc/a/secret-curve.sops.yaml")
        );
    }
    for args in [&["build", "--stdout"][..], &["validate"]] {
        says(sandbox.run(args).exits(1), &format!("error[FG510]: {reason}"));
    }
    assert_eq!(sandbox.read("certs/hpc/a.sops.yaml"), stored, "only a build writes");

    let hidden = sandbox.path("elsewhere.cert");
    fs::rename(sandbox.path("certs/hpc/a.cert"), &hidden).unwrap();
    let run = says(sandbox.run(&["build"]).exits(1), "error[FG516]: certs/hpc/a.sops.yaml is out of date: ");
    assert!(run.stderr.contains("flux-gen cert import hpc/a -") && run.stderr.contains("cert rotate hpc/a"));
    assert_eq!(sandbox.read("certs/hpc/a.sops.yaml"), stored);
    sandbox.run(&["cert", "import", "a", hidden.to_str().unwrap()]).exits(0);

    let run = sandbox.run(&["build"]).exits(0);
    says(run, &format!("encrypted anew certs/hpc/a.sops.yaml for 2 age recipients (it cannot be decrypted by {you})"));
    sandbox.run(&["check"]).exits(0);
}

#[test]
fn another_sealing_certificate_or_namespace_seals_anew() {
    let sandbox = project("");
    let settings = sealed(&sandbox, "one.pem");
    sandbox.write("flux-gen.yaml", settings);
    sandbox.run(&["build"]).exits(0);
    sealed(&sandbox, "two.pem");
    says(sandbox.run(&["check"]).exits(3), "certs/hpc/a.sealed.yaml is out of date: it was sealed with another");
    says(sandbox.run(&["build"]).exits(0), "encrypted anew certs/hpc/a.sealed.yaml for the certificate ");
    sandbox.run(&["check"]).exits(0);
    let run = sandbox.run(&["check", "--set", "sealed-scope=cluster-wide"]).exits(3);
    says(run, "certs/hpc/a.sealed.yaml is out of date: it is sealed with scope strict");
    // Another namespace is another cluster with a certificate of its own.
    sandbox.write("examples/a.yaml", &in_hpc("a").replace("hpc", "lab"));
    let run = says(sandbox.run(&["build"]).exits(0), "made certificate certs/lab/a.cert");
    says(run, "encrypted certs/lab/a.sealed.yaml for ");
}

/// A SOPS file as `sops rotate` would leave it: here from another project with the same certificate.
fn encrypted_again(sandbox: &Sandbox, me: &String) -> String {
    let other = project(&sops(&[me]));
    other.write("certs/hpc/a.cert", &sandbox.read("certs/hpc/a.cert"));
    fs::copy(sandbox.path("certs/public.json"), other.path("certs/public.json")).unwrap();
    other.run(&["build"]).exits(0);
    other.read("certs/hpc/a.sops.yaml")
}

#[test]
fn what_others_encrypt_again_is_unchanged() {
    let me = person();
    let sandbox = project(&sops(&[&me]));
    sandbox.run(&["build"]).exits(0);
    let (store, copy) = ("certs/hpc/a.sops.yaml", "generated/hpc/a/secret-curve.sops.yaml");
    let original = sandbox.read(store);

    // The bundle's copy: left alone by checks and builds.
    let again = encrypted_again(&sandbox, &me);
    assert_ne!(again, original);
    sandbox.write(copy, &again);
    sandbox.run(&["check"]).exits(0);
    sandbox.run(&["build"]).exits(0);
    assert_eq!(sandbox.read(copy), again);

    // The store's file: no drift, and the next build copies it.
    let third = encrypted_again(&sandbox, &me);
    sandbox.write(store, &third);
    fs::remove_file(sandbox.path("certs/hpc/a.cert")).unwrap();
    for args in [&["check"][..], &["diff"]] {
        let run = says(sandbox.run(args).exits(0), "warning[FG517]: generated/hpc/a/secret-curve.sops.yaml ");
        assert!(run.stderr.contains("is up to date: 1 cluster"), "{}", run.stderr);
    }
    let run = sandbox.run(&["build"]).exits(0);
    assert!(!run.stderr.contains("encrypted anew"), "{}", run.stderr);
    assert_eq!((sandbox.read(copy), sandbox.read(store)), (third.clone(), third));
    sandbox.run(&["check"]).exits(0).stderr.lines().for_each(|line| assert!(!line.contains("FG517"), "{line}"));

    // Other changes are changes.
    sandbox.write(copy, &original.replace("immutable: true", "immutable: false"));
    sandbox.run(&["check"]).exits(3);
    sandbox.write(copy, "edited\n");
    says(sandbox.run(&["build"]).exits(1), "error[FG6");
}

#[test]
fn rotation_changes_the_secret_its_name_and_what_refers_to_it() {
    let me = person();
    for settings in ["secrets: plain".to_owned(), sops(&[&me]), "secrets: existing".to_owned()] {
        let sandbox = project(&settings);
        sandbox.write("examples/b.yaml", &in_hpc("b"));
        for name in ["hpc/a", "hpc/b"] {
            sandbox.run(&["cert", "new", name]).exits(0);
        }
        sandbox.run(&["build"]).exits(0);
        let (before, certs) = (files(&sandbox, "generated"), files(&sandbox, "certs"));
        let run = says(sandbox.run(&["cert", "rotate", "a"]).exits(0), "made certificate certs/hpc/a.cert anew (");
        let run = says(run, "has to start anew with Secret a-curve-");
        assert!(run.stderr.contains(": hpc/a") && !run.stderr.contains("hpc/b"), "{}", run.stderr);
        sandbox.run(&["check"]).exits(3);
        says(sandbox.run(&["build"]).exits(0), "recreates 1 Job: hpc/a (");
        let after = files(&sandbox, "generated");
        let secret_of = |files: &BTreeMap<String, String>| {
            let job = &files["hpc/a/job.yaml"];
            job.lines().find_map(|line| line.trim().strip_prefix("secretName: ")).unwrap().to_owned()
        };
        let key_of = |text: &str| {
            serde_json::from_str::<serde_json::Value>(text).unwrap()["publicKey"].as_str().unwrap().to_owned()
        };
        let (old, new) = (secret_of(&before), secret_of(&after));
        let keys = ["hpc/a/bundle.json"; 2].map(str::to_owned);
        let (old_key, new_key) = (key_of(&before[&keys[0]]), key_of(&after[&keys[0]]));
        assert!(old != new && old_key != new_key);
        assert!(before.keys().eq(after.keys()), "no file comes or goes");
        let changed: Vec<&String> = before.keys().filter(|path| before[*path] != after[*path]).collect();
        for path in &changed {
            let allowed = path.contains("/secret-curve") || path.ends_with("/bundle.json");
            // Names of ConfigMaps follow their content: they are taken out on both sides.
            let same =
                unhashed(&before[*path]).replace(&old, &new).replace(&old_key, &new_key) == unhashed(&after[*path]);
            assert!(path.starts_with("hpc/a/") && (allowed || same), "{settings}: {path}");
        }
        let wanted = ["bundle.json", "configmap-scripts.yaml", "job.yaml"];
        let names: Vec<&str> = changed.iter().map(|p| p.trim_start_matches("hpc/a/")).collect();
        assert!(names.iter().all(|n| wanted.contains(n) || n.starts_with("secret-curve")), "{names:?}");
        let now = files(&sandbox, "certs");
        assert_ne!(certs["hpc/a.cert"], now["hpc/a.cert"]);
        assert_eq!(certs["hpc/b.cert"], now["hpc/b.cert"]);
        sandbox.run(&["check"]).exits(0);

        says(sandbox.run(&["cert", "rotate", "--all"]).exits(0), "made certificate certs/hpc/b.cert anew (");
        says(sandbox.run(&["build"]).exits(0), "recreates 2 Jobs: hpc/a (");
    }
}

/// A text without the hash suffixes of ConfigMaps' names.
fn unhashed(text: &str) -> String {
    let mut out = String::new();
    for part in text.split_inclusive(|c: char| c.is_whitespace() || c == ',') {
        let word = part.trim_end_matches([',', ' ', '\n']);
        match word.rsplit_once('-') {
            Some((front, hash)) if hash.len() == 10 && (front.ends_with("-scripts") || front.ends_with("-flux")) => {
                out.push_str(front);
                out.push_str(&part[word.len()..]);
            }
            _ => out.push_str(part),
        }
    }
    out
}

#[test]
fn nothing_is_rotated_when_something_has_no_certificate() {
    let sandbox = project("");
    says(sandbox.run(&["cert", "rotate", "a"]).exits(1), "error[FG520]: hpc/a has no certificate in certs");
    says(sandbox.run(&["cert", "rotate", "--all"]).exits(1), "error[FG520]: no certificate is recorded in certs");
    sandbox.run(&["cert", "rotate"]).exits(2);
    sandbox.run(&["cert", "rotate", "a", "--all"]).exits(2);
    assert!(!sandbox.path("certs").exists());
    // Where only the public half is known a new pair can be made all the same.
    sandbox.run(&["cert", "new", "a"]).exits(0);
    fs::remove_file(sandbox.path("certs/hpc/a.cert")).unwrap();
    says(sandbox.run(&["cert", "rotate", "a"]).exits(0), "made certificate certs/hpc/a.cert anew (");
    sandbox.run(&["build"]).exits(0);
}

fn bursting() -> Sandbox {
    let sandbox = Sandbox::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/bursting");
    for name in ["main.yaml", "burst.yaml"] {
        sandbox.write(format!("examples/{name}"), &fs::read_to_string(examples.join(name)).unwrap());
    }
    sandbox
}

#[test]
fn a_bursting_group_has_one_certificate() {
    let sandbox = bursting();
    for name in ["hpc/burst-0", "burst-0", "hpc/main"] {
        let secret = sandbox.run(&["cert", "new", name, "--secret"]).exits(0).quietly().stdout;
        assert!(secret.contains("\n  name: main-curve\n  namespace: hpc\n"), "{name}: {secret}");
    }
    let bundle = sandbox.run(&["build", "--stdout"]).exits(0).stdout;
    assert_eq!(bundle.matches("secretName: main-curve\n").count(), 2, "{bundle}");

    let run = sandbox.run(&["cert", "new", "hpc/burst-0"]).exits(0);
    let run = says(run, "hpc/burst-0 uses the certificate of hpc/main");
    says(run, "made certificate certs/hpc/main.cert");
    let (me, you) = (person(), person());
    sandbox.write("flux-gen.yaml", &format!("settings: {{{}}}\n", sops(&[&me])));
    sandbox.run(&["build"]).exits(0);
    assert_eq!(sandbox.read("generated/hpc/main/secret-curve.sops.yaml"), sandbox.read("certs/hpc/main.sops.yaml"));
    assert!(!sandbox.path("generated/hpc/burst-0/secret-curve.sops.yaml").exists());
    let run = says(sandbox.run(&["cert", "rotate", "burst-0"]).exits(0), "has to start anew with Secret main-curve-");
    assert!(["hpc/main", "hpc/burst-0"].iter().all(|name| run.stderr.contains(name)), "{}", run.stderr);
    says(sandbox.run(&["build"]).exits(0), "recreates 2 Jobs: ");

    let both =
        format!("settings: {{{}}}\nclusters: {{burst-0: {{settings: {{age-recipients: {you}}}}}}}\n", sops(&[&me]));
    sandbox.write("flux-gen.yaml", &both);
    says(sandbox.run(&["check"]).exits(1), "error[FG515]: clusters that share the certificate hpc/main ");
    let existing =
        format!("settings: {{{}}}\nclusters: {{burst-0: {{settings: {{secrets: existing}}}}}}\n", sops(&[&me]));
    sandbox.write("flux-gen.yaml", &existing);
    sandbox.run(&["build"]).exits(0);
    let run = sandbox.run(&["cert", "new", "main", "--secret"]).exits(1);
    assert!(run.stderr.starts_with("error: the bundle of hpc/main brings its Secret along\n"), "{}", run.stderr);
}

#[test]
fn plain_bundles_are_checked_without_the_store() {
    let sandbox = project("secrets: plain");
    sandbox.run(&["build"]).exits(0);
    fs::remove_file(sandbox.path("certs/hpc/a.cert")).unwrap();
    let before = files(&sandbox, "generated");
    for args in [&["check"][..], &["diff"], &["build"]] {
        sandbox.run(args).exits(0);
    }
    assert_eq!(files(&sandbox, "generated"), before);
    let run =
        says(sandbox.run(&["build", "-o", "other"]).exits(1), "error[FG506]: the Secret of hpc/a needs its private");
    assert!(run.stderr.contains("`flux-gen cert import hpc/a FILE`"), "{}", run.stderr);
    sandbox.run(&["cert", "rotate", "a"]).exits(0);
    sandbox.run(&["check"]).exits(3);
}

#[test]
fn a_certificate_of_a_spec_is_encrypted_too() {
    let me = person();
    let sandbox = project(&sops(&[&me]));
    sandbox.run(&["cert", "new", "other"]).exits(0);
    let text = sandbox.read("certs/default/other.cert").replace('\n', "\n      ");
    sandbox.write("examples/a.yaml", &format!("{}  flux:\n    curveCert: |\n      {text}\n", in_hpc("a")));
    says(sandbox.run(&["build"]).exits(0), "encrypted certs/hpc/a.sops.yaml for 1 age recipient");
    sandbox.run(&["check"]).exits(0);
    assert!(!sandbox.path("certs/hpc/a.cert").exists());
}

#[test]
fn the_store_is_no_source() {
    let me = person();
    let sandbox = project(&sops(&[&me]));
    sandbox.run(&["build", "."]).exits(0);
    let before = files(&sandbox, "generated");
    sandbox.run(&["build", "."]).exits(0);
    assert_eq!(files(&sandbox, "generated"), before);
    assert!(!sandbox.path("generated/hpc/companions").exists());
    sandbox.run(&["check", "."]).exits(0);
}

#[test]
fn the_sealing_certificate_is_a_source_of_archives() {
    let sandbox = Sandbox::new();
    let settings = sealed(&sandbox, "one.pem");
    sandbox
        .write("flux-gen.yaml", settings)
        .write("examples/a.yaml", &minicluster("a", 2).replace("name: a\n", "name: a\n  namespace: hpc\n"));
    crate::lock::layout(&sandbox, "images", &["rockylinux:9", crate::lock::VIEW], "one");
    let _ = sandbox.run(&["lock", "--from", "images"]).exits(0);
    let _ = sandbox.run(&["build"]).exits(0);
    let _ = sandbox.run(&["archive", "save", "--from", "images", "-o", "a.tar"]).exits(0);
    let mut archive = tar::Archive::new(fs::File::open(sandbox.path("a.tar")).unwrap());
    let names = archive.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().display().to_string());
    let names: Vec<String> = names.collect();
    for name in ["seal.pem", "certs/hpc/a.sealed.yaml"] {
        assert!(names.contains(&format!("flux-gen/sources/{name}")), "{name}: {names:?}");
    }
}
