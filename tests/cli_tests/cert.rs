//! `flux-gen cert`, and what builds do about certificates. No private key may appear anywhere but in the store and Secrets.

use std::fs;

use crate::harness::{Run, Sandbox, minicluster};

/// The private key of a certificate file.
fn private_key(sandbox: &Sandbox, file: &str) -> String {
    let text = sandbox.read(file);
    let line = text.lines().find(|l| l.contains("secret-key")).unwrap();
    line.split('"').nth(1).unwrap().to_owned()
}

fn public_key(sandbox: &Sandbox, file: &str) -> String {
    let text = sandbox.read(file);
    let line = text.lines().find(|l| l.contains("public-key")).unwrap();
    line.split('"').nth(1).unwrap().to_owned()
}

#[track_caller]
fn keeps_secret(run: Run, key: &str) -> Run {
    assert!(!run.stdout.contains(key) && !run.stderr.contains(key), "the private key was printed");
    run
}

#[test]
fn new_show_import() {
    let sandbox = Sandbox::new();
    let run = sandbox.run(&["cert", "new", "hpc/lammps"]).exits(0);
    let key = private_key(&sandbox, "certs/hpc/lammps.cert");
    let public = public_key(&sandbox, "certs/hpc/lammps.cert");
    assert_eq!(
        run.stderr,
        format!(
            "made certificate certs/hpc/lammps.cert (public key {public}): it is secret, keep it safe; \
             certs/.gitignore keeps it out of git\n"
        )
    );
    let show = keeps_secret(sandbox.run(&["cert", "show"]).exits(0).quietly(), &key);
    assert!(show.stdout.starts_with(&format!("hpc/lammps\n  public key:  {public}\n")), "{}", show.stdout);
    let again = keeps_secret(sandbox.run(&["cert", "new", "hpc/lammps"]).exits(1), &key);
    assert!(again.stderr.starts_with("error[FG508]: hpc/lammps has a certificate already"), "{}", again.stderr);
    assert_eq!(private_key(&sandbox, "certs/hpc/lammps.cert"), key);

    let text = sandbox.read("certs/hpc/lammps.cert");
    let import =
        keeps_secret(sandbox.run_with_input(&["cert", "import", "other", "-"], text.as_bytes()).exits(0), &key);
    assert!(import.stderr.starts_with("stored certs/default/other.cert"), "{}", import.stderr);
    let broken = text.replace("public-key", "pubic-key");
    let run = keeps_secret(sandbox.run_with_input(&["cert", "import", "third", "-"], broken.as_bytes()).exits(1), &key);
    assert!(run.stderr.starts_with("error: standard input is no certificate that Flux takes: line"), "{}", run.stderr);
    let run = sandbox.run(&["cert", "import", "third", "gone.cert"]).exits(1);
    assert_eq!(run.stderr, "error: cannot read gone.cert: No such file or directory\n");

    sandbox.run(&["cert", "new", "hpc/lammps", "--replace"]).exits(0);
    assert_ne!(private_key(&sandbox, "certs/hpc/lammps.cert"), key);
    sandbox.run(&["cert", "show", "nobody"]).exits(1);
    sandbox.run(&["cert", "new", "../evil"]).exits(2);
    sandbox.run(&["cert"]).exits(2);
}

#[test]
fn a_trial_secret_is_named_as_the_bundle_wants_it_and_stored_nowhere() {
    let sandbox = Sandbox::new();
    sandbox.write("examples/a.yaml", &minicluster("a", 1).replace("name: a\n", "name: a\n  namespace: hpc\n"));
    let secret = sandbox.run(&["cert", "new", "a", "--secret"]).exits(0).quietly().stdout;
    assert!(secret.contains("kind: Secret\n") && secret.contains("\n  name: a-curve\n  namespace: hpc\n"), "{secret}");
    assert!(!sandbox.path("certs").exists());
    let bundle = sandbox.run(&["build", "--stdout"]).exits(0).quietly().stdout;
    assert!(bundle.contains("secretName: a-curve\n") && bundle.contains("\n  namespace: hpc\n"), "{bundle}");
    let named = sandbox.run(&["cert", "new", "x/b", "--secret=mine"]).exits(0).quietly().stdout;
    assert!(named.contains("\n  name: mine\n  namespace: x\n"), "{named}");
    assert_ne!(sandbox.run(&["cert", "new", "a", "--secret"]).exits(0).stdout, secret);

    sandbox.run(&["cert", "new", "hpc/a"]).exits(0);
    let run = sandbox.run(&["cert", "new", "a", "--secret"]).exits(1);
    assert!(
        run.stderr.starts_with("error: hpc/a has a certificate, and its bundle wants that one\n"),
        "{}",
        run.stderr
    );
    let run = sandbox.run(&["build"]).exits(0);
    assert!(run.stderr.contains("kubectl create secret generic a-curve-"), "{}", run.stderr);
    assert!(run.stderr.contains(" -n hpc --from-file=curve.cert=certs/hpc/a.cert\n"), "{}", run.stderr);
}

#[test]
fn plain_secrets_make_a_missing_certificate_once_and_only_when_all_else_is_right() {
    let sandbox = Sandbox::new();
    sandbox.write("flux-gen.yaml", "settings: {secrets: plain}\n").write("examples/a.yaml", &minicluster("a", 1));
    for args in [&["check"][..], &["build", "--stdout"], &["validate"], &["diff"]] {
        let run = sandbox.run(args).exits(1);
        assert!(run.stderr.starts_with("error[FG501]: "), "{args:?} {}", run.stderr);
        assert!(!sandbox.path("certs").exists(), "{args:?} made a certificate");
    }
    sandbox.write("examples/b.yaml", "kind: [");
    sandbox.run(&["build"]).exits(1);
    assert!(!sandbox.path("certs").exists(), "a failed build made a certificate");
    fs::remove_file(sandbox.path("examples/b.yaml")).unwrap();

    let run = sandbox.run(&["build"]).exits(0);
    assert!(run.stderr.starts_with("made certificate certs/default/a.cert"), "{}", run.stderr);
    let key = private_key(&sandbox, "certs/default/a.cert");
    assert!(sandbox.path("generated/default/a/secret-curve.yaml").exists());
    for args in [&["build"][..], &["check"], &["build", "--message-format=json", "-v"], &["diff"], &["cert", "show"]] {
        keeps_secret(sandbox.run(args).exits(0), &key);
    }
    sandbox.write("generated/default/a/secret-curve.yaml", "edited");
    let diff = keeps_secret(sandbox.run(&["diff"]).exits(3), &key);
    assert!(diff.stdout.contains("default/a/secret-curve.yaml differs (content not shown)\n"), "{}", diff.stdout);

    sandbox.run(&["cert", "new", "a", "--replace"]).exits(0);
    let diff = sandbox.run(&["diff"]).exits(3);
    let (old, new) = (key, private_key(&sandbox, "certs/default/a.cert"));
    assert!(keeps_secret(keeps_secret(diff, &old), &new).stdout.contains("secret-curve.yaml"));
}

#[test]
fn a_private_key_does_not_go_into_git_by_accident() {
    let sandbox = Sandbox::new();
    sandbox.write("examples/a.yaml", &minicluster("a", 1)).write(".git/HEAD", "ref: refs/heads/main\n");
    let run = sandbox.run(&["build", "--set", "secrets=plain"]).exits(1);
    assert!(run.stderr.starts_with("error[FG505]: "), "{}", run.stderr);
    assert!(!sandbox.path("certs").exists() && !sandbox.path("generated").exists());
    sandbox.run(&["build", "--set", "secrets=plain", "--set", "plain-secrets-in-git=true"]).exits(0);
}

#[test]
fn a_certificate_in_a_spec_does_not_show_in_excerpts() {
    let sandbox = Sandbox::new();
    sandbox.run(&["cert", "new", "a"]).exits(0);
    let key = private_key(&sandbox, "certs/default/a.cert");
    let certificate = sandbox.read("certs/default/a.cert").replace('\n', "\n      ");
    let one_line = certificate.replace("\n      ", "\\n").replace('"', "\\\"");
    let block = format!("  flux:\n    curveCert: |\n      {certificate}\n");
    let quoted = format!("  flux:\n    curveCert: \"{one_line}\"\n");
    for flux in [
        block.clone(),
        quoted.clone(),
        block.replace("curveCert", "curvCert"),
        quoted.replace("curveCert", "curvCert"),
        block.replace("curveCert: |", "curveCert: !!int |"),
        quoted.replace("    curveCert", "    curveCert: a\n    curveCert"),
        quoted.replace("\"\n", "\n"),
        format!("{block}  wrong: 1\n"),
        format!("  flux: {{curveCert: \"{one_line}\", bogus: 1}}\n"),
    ] {
        for format in ["human", "json", "github"] {
            let text = minicluster("a", 1) + &flux;
            let run = sandbox.run_with_input(&["validate", "-v", "--message-format", format, "-"], text.as_bytes());
            assert!(!run.stderr.contains(&key), "{flux}\n{}", run.stderr);
        }
    }
}

#[test]
fn a_store_that_cannot_be_read_is_an_error_not_an_empty_one() {
    let sandbox = Sandbox::new();
    sandbox.write("examples/a.yaml", &minicluster("a", 1)).write("certs/public.json", "<<<<<<< HEAD");
    for args in [&["build"][..], &["check"], &["cert", "show"], &["cert", "new", "b"]] {
        let run = sandbox.run(args).exits(1);
        assert!(run.stderr.starts_with("error[FG507]: "), "{args:?} {}", run.stderr);
    }
    fs::remove_dir_all(sandbox.path("certs")).unwrap();
    sandbox.write("certs", "a file");
    for args in [&["build"][..], &["cert", "show"], &["cert", "new", "b"]] {
        let run = sandbox.run(args).exits(1);
        assert!(run.stderr.starts_with("error[FG509]: cannot ") && run.stderr.contains(" certs"), "{}", run.stderr);
    }
    assert!(!sandbox.path("generated").exists());
}
