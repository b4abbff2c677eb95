//! `publish` into a registry of the test and into layouts, and `gitops`.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;

use crate::harness::{Run, Sandbox, minicluster};
use crate::mock::{Fault, Mock, Setup};

fn project() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("examples/a.yaml", &minicluster("a", 2));
    let _ = sandbox.run(&["build"]).exits(0);
    sandbox
}

/// `publish` to the mock, in plain HTTP.
fn publish(sandbox: &Sandbox, mock: &Mock, name: &str, more: &[&str]) -> Run {
    let target = format!("oci://{}/{name}", mock.address);
    let args = ["publish", &target, "--plain-http", &mock.address];
    sandbox.run(&[&args[..], more].concat())
}

#[test]
fn published_once_and_the_tag_moves_last() {
    let (sandbox, mock) = (project(), Mock::new(Setup::default()));
    let run = publish(&sandbox, &mock, "team/clusters:v1", &["--tag", "main"]).exits(0);
    let (name, digest) = run.stdout.trim_end().split_once('@').unwrap();
    assert_eq!(name, format!("{}/team/clusters", mock.address));
    assert!(run.stderr.ends_with("2 blobs sent, 0 there already; tagged v1, main\n"), "{}", run.stderr);
    {
        let mut state = mock.state();
        let repo = &state.repos["team/clusters"];
        assert!(["v1", "main"].iter().all(|tag| repo.tags[*tag] == digest));
        let text = String::from_utf8(repo.manifests[digest].1.clone()).unwrap();
        assert_eq!(text.matches("application/vnd.oci.image.layer.v1.tar+gzip").count(), 1, "{text}");
        assert!(text.contains("application/vnd.oci.empty.v1+json") && !text.contains("annotations"), "{text}");
        let puts: Vec<&String> = state.log.iter().filter(|line| line.starts_with("PUT ")).collect();
        assert!(puts[puts.len() - 2].contains("/manifests/v1") && puts[puts.len() - 1].contains("/manifests/main"));
        state.log.clear();
    }
    let again = publish(&sandbox, &mock, "team/clusters:v1", &["--tag", "main"]).exits(0);
    assert_eq!(again.stdout, run.stdout);
    assert!(again.stderr.contains("0 blobs sent, 2 there already"), "{}", again.stderr);
    assert_eq!(["PUT", "POST", "PATCH"].map(|method| mock.count(method)), [0; 3], "{:?}", mock.state().log);
}

#[test]
fn what_it_says_of_itself() {
    let (sandbox, mock) = (project(), Mock::new(Setup::default()));
    let digest_of = |run: &Run| run.stdout.trim_end().rsplit_once('@').unwrap().1.to_owned();
    let said = ["--revision", "main@sha1:0123", "--source", "https://git.example.com/c.git", "--annotation", "a=b=c"];
    let target = format!("oci://{}/clusters", mock.address);
    let mut command = sandbox.command(["publish", &target, "--plain-http", &mock.address]);
    let run = Run::of(command.args(said).env("SOURCE_DATE_EPOCH", "86400").output().unwrap()).exits(0);
    let (state, digest) = (mock.state(), digest_of(&run));
    let text = String::from_utf8(state.repos["clusters"].manifests[&digest].1.clone()).unwrap();
    let expect = r#""annotations":{"a":"b=c","org.opencontainers.image.created":"1970-01-02T00:00:00Z","org.opencontainers.image.revision":"main@sha1:0123","org.opencontainers.image.source":"https://git.example.com/c.git"}"#;
    assert!(text.contains(expect), "{text}");
    assert_eq!(state.repos["clusters"].tags["latest"], digest);
    drop(state);
    let flux = publish(&sandbox, &mock, "clusters:flux", &["--media-type", "flux"]).exits(0);
    let text = String::from_utf8(mock.state().repos["clusters"].manifests[&digest_of(&flux)].1.clone()).unwrap();
    assert!(text.contains("application/vnd.cncf.flux.config.v1+json"), "{text}");
    assert!(text.contains("application/vnd.cncf.flux.content.v1.tar+gzip"), "{text}");
}

/// CI systems put tokens into the addresses of their clones; annotations can be read by everybody.
#[test]
fn an_address_with_a_password_is_not_published() {
    let (sandbox, mock) = (project(), Mock::new(Setup::default()));
    let address = "https://ci:hush-hush@git.example.com/c.git";
    for more in [["--source", address], ["--annotation", &format!("org.opencontainers.image.url={address}")]] {
        let said = publish(&sandbox, &mock, "clusters:v1", &more).exits(2).stderr;
        assert!(said.contains("holds a password; nothing was published") && !said.contains("hush-hush"), "{said}");
    }
    assert!(mock.state().log.is_empty());
}

#[test]
fn a_layout_instead_of_a_registry() {
    let sandbox = project();
    let args = ["publish", "oci://registry.example/clusters:v1", "--layout", "artifact"];
    let first = sandbox.run(&args).exits(0);
    assert!(sandbox.read("artifact/index.json").contains(r#""org.opencontainers.image.ref.name":"v1""#));
    // Another tag of other files goes beside it.
    sandbox.write("examples/a.yaml", &minicluster("a", 3));
    let _ = sandbox.run(&["build"]).exits(0);
    let _ = sandbox.run(&["publish", "oci://registry.example/clusters:v2", "--layout", "artifact"]).exits(0);
    sandbox.write("examples/a.yaml", &minicluster("a", 2));
    let _ = sandbox.run(&["build"]).exits(0);
    assert_eq!(sandbox.run(&args).exits(0).stdout, first.stdout);
    let index = sandbox.read("artifact/index.json");
    assert_eq!((index.matches("ref.name").count(), index.matches(r#":"v1""#).count()), (2, 1), "{index}");
}

#[test]
fn only_what_the_specs_give() {
    let (sandbox, mock) = (project(), Mock::new(Setup::default()));
    sandbox.write("examples/a.yaml", &minicluster("a", 3));
    let run = publish(&sandbox, &mock, "clusters", &[]).exits(3);
    assert!(run.stderr.contains("generated is not what the specs give"), "{}", run.stderr);
    assert!(run.stderr.contains("nothing was published") && run.stderr.contains("--no-check"), "{}", run.stderr);
    assert!(mock.state().log.is_empty() && run.stdout.is_empty());
    let _ = publish(&sandbox, &mock, "clusters", &["--no-check"]).exits(0);
    // A folder that has no specs at all.
    let other = Sandbox::new();
    other.write("bundles/hpc/job.yaml", "kind: Job\n");
    let _ = publish(&other, &mock, "other", &["bundles"]).exits(1);
    let _ = publish(&other, &mock, "other", &["bundles", "--no-check"]).exits(0);
}

#[test]
fn plain_secrets_stay_at_home() {
    let (sandbox, mock) = (project(), Mock::new(Setup::default()));
    let _ = sandbox.run(&["build", "--set", "secrets=plain"]).exits(0);
    let set = ["--set", "secrets=plain"];
    let run = publish(&sandbox, &mock, "clusters", &set).exits(1);
    let line = run.stderr.lines().find(|line| line.starts_with("error[FG950]")).unwrap();
    assert!(line.contains("generated/default/a/secret") && line.contains("holds the plain Secret a-"), "{line}");
    assert!(run.stderr.contains("found 1 error; nothing was published") && mock.state().log.is_empty());
    let _ = publish(&sandbox, &mock, "clusters", &[&set[..], &["--include-secrets"]].concat()).exits(0);
}

#[test]
fn what_cannot_be_published() {
    let sandbox = project();
    let run = |more: &[&str]| {
        sandbox.run(&[&["publish", "oci://r.example/c", "--layout", "out", "--no-check"], more].concat())
    };
    symlink("a", sandbox.path("generated/default/link")).unwrap();
    let said = run(&[]).exits(1).stderr;
    assert!(said.starts_with("error[FG951]: generated/default/link: it is a link"), "{said}");
    std::fs::remove_file(sandbox.path("generated/default/link")).unwrap();
    std::fs::File::create(sandbox.path("generated/large")).unwrap().set_len(1_000_000_001).unwrap();
    assert!(run(&[]).exits(1).stderr.starts_with("error[FG952]: "));
    std::fs::create_dir(sandbox.path("empty")).unwrap();
    assert!(run(&["empty"]).exits(1).stderr.starts_with("error[FG953]: empty holds no file"));
    assert!(run(&["gone"]).exits(1).stderr.contains("cannot read gone"));
    assert!(!sandbox.path("out").exists());
    for (target, why) in [
        ("registry.example/c", "oci://REGISTRY/NAME"),
        ("oci://registry.example/C", "registry.example/C"),
        (&format!("oci://registry.example/c@sha256:{}", "0".repeat(64)), "follows from the files"),
    ] {
        let said = sandbox.run(&["publish", target]).exits(2).stderr;
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn a_registry_that_refuses() {
    let (sandbox, mock) = (project(), Mock::new(Setup::default()));
    mock.fail("PUT", "/manifests/v1", 100, Fault::Status(403, Vec::new()));
    let run = publish(&sandbox, &mock, "clusters:v1", &[]).exits(1);
    assert!(run.stderr.contains("403") && run.stdout.is_empty(), "{}", run.stderr);
    assert!(mock.state().repos["clusters"].tags.is_empty());
}

const GIT: [&str; 2] = ["--url", "https://git.example.com/clusters.git"];

fn gitops(sandbox: &Sandbox, tool: &str, more: &[&str]) -> Run {
    sandbox.run(&[&["gitops", tool], more].concat())
}

fn spec(name: &str, annotations: &str, more: &str) -> String {
    minicluster(name, 1).replace(
        &format!("  name: {name}\n"),
        &format!("  name: {name}\n  namespace: hpc\n  annotations: {{{annotations}}}\n"),
    ) + more
}

#[test]
fn a_file_for_each_tool() {
    let sandbox = project();
    let text = gitops(&sandbox, "argocd", &GIT).exits(0).quietly().stdout;
    assert!(text.contains("path: generated/default\n") && text.contains("targetRevision: main\n"), "{text}");
    let file = [&GIT[..], &["-o", "apps"]].concat();
    assert!(
        gitops(&sandbox, "argocd", &[&file[..], &["--check"]].concat()).exits(3).stderr.contains("apps/argocd.yaml")
    );
    let _ = gitops(&sandbox, "argocd", &file).exits(0);
    assert_eq!(sandbox.read("apps/argocd.yaml"), text);
    assert_eq!(gitops(&sandbox, "argocd", &file).exits(0).stderr, "apps/argocd.yaml is up to date\n");
    let _ = gitops(&sandbox, "argocd", &[&file[..], &["--check"]].concat()).exits(0);
    let _ = gitops(&sandbox, "argocd", &[&file[..], &["--tag", "v1", "--check"]].concat()).exits(3);
    let _ = gitops(&sandbox, "fluxcd", &file).exits(0);
    let audit = sandbox.run(&["audit", "generated", "apps"]).exits(0).stderr;
    assert!(audit.contains("1 cluster in ") && audit.ends_with(": no errors\n"), "{audit}");
    sandbox.write("apps/fluxcd.yaml", "mine: true\n");
    let said = gitops(&sandbox, "fluxcd", &file).exits(1).stderr;
    assert!(said.starts_with("error[FG966]: apps/fluxcd.yaml was not written by"), "{said}");
    assert_eq!(sandbox.read("apps/fluxcd.yaml"), "mine: true\n");
    let _ = gitops(&sandbox, "fluxcd", &[&file[..], &["--force"]].concat()).exits(0);
    assert_ne!(sandbox.read("apps/fluxcd.yaml"), "mine: true\n");
}

#[test]
fn the_project_file_says_it_and_the_command_line_wins() {
    let sandbox = project();
    let section = "gitops:\n  url: oci://registry.example/clusters\n  tag: v1\n  fluxcd: {wait: 2h, pullSecret: pull, insecure: true, \
                   namespace: flux, interval: 1m, decryptionSecret: keys}\n  argocd: {namespace: argo, project: hpc, server: 'https://api:6443'}\n";
    sandbox.write("flux-gen.yaml", section);
    let flux = gitops(&sandbox, "fluxcd", &[]).exits(0).stdout;
    for part in [
        "kind: OCIRepository",
        "tag: v1",
        "namespace: flux\n",
        "insecure: true",
        "name: pull",
        "timeout: 2h",
        "path: ./default\n",
    ] {
        assert!(flux.contains(part), "{part}\n{flux}");
    }
    let argo = gitops(&sandbox, "argocd", &[]).exits(0).stdout;
    for part in [
        "repoURL: oci://registry.example/clusters",
        "namespace: argo\n",
        "project: hpc",
        "server: https://api:6443",
        "path: default\n",
    ] {
        assert!(argo.contains(part), "{part}\n{argo}");
    }
    let digest = format!("sha256:{}", "a".repeat(64));
    let other = gitops(&sandbox, "argocd", &["--digest", &digest, "--path", "sub"]).exits(0).stdout;
    assert!(other.contains(&format!("targetRevision: {digest}")) && other.contains("path: sub/default\n"), "{other}");
}

#[test]
fn gitops_options_that_cannot_be() {
    let sandbox = project();
    let cases: [(&str, &[&str], &str); 12] = [
        ("", &[], "FG960"),
        ("{url: clusters}", &[], "FG960"),
        ("{url: 'https://me:pass@host/c'}", &[], "FG960"),
        ("{url: 'https://host/c', tag: v1, branch: main}", &[], "FG961"),
        ("{url: 'https://host/c', digest: 'sha256:0'}", &[], "FG961"),
        ("{url: 'oci://r/c', branch: main}", &[], "FG961"),
        ("{url: 'oci://r/c'}", &["--branch", "main"], "FG961"),
        ("{url: 'oci://r/c', namespaces: [gone]}", &[], "FG962"),
        ("{url: 'oci://r/c', resize: never}", &[], "FG965"),
        ("{url: 'oci://r/c', path: ../c}", &[], "FG965"),
        ("{url: 'oci://r/c', fluxcd: {wait: soon}}", &[], "FG965"),
        ("{url: 'oci://r/c', fluxcd: {namespace: Flux}}", &[], "FG965"),
    ];
    for (section, more, code) in cases {
        let project = if section.is_empty() { String::new() } else { format!("gitops: {section}\n") };
        sandbox.write("flux-gen.yaml", &project);
        let run = gitops(&sandbox, "fluxcd", more).exits(1);
        assert!(run.stderr.contains(&format!("error[{code}]")) && run.stdout.is_empty(), "{section}: {}", run.stderr);
        let placed = run.stderr.contains("flux-gen.yaml:1:");
        assert_eq!(placed, !section.is_empty() && more.is_empty(), "{}", run.stderr);
    }
}

#[test]
fn what_a_tool_will_not_do_is_told() {
    let sandbox = Sandbox::new();
    sandbox
        .write("examples/one.yaml", &spec("one", "flux-gen.dev/strategy: recreate, flux-gen.dev/gitops: fluxcd", ""))
        .write("examples/grow.yaml", &spec("grow", "", "  maxSize: 4\n"))
        .write("examples/wait.yaml", &spec("wait", "flux-gen.dev/queue: kueue/main", ""));
    let _ = sandbox.run(&["build"]).exits(0);
    let run = gitops(&sandbox, "argocd", &GIT).exits(0);
    assert!(
        run.stderr.starts_with("warning[FG964]: hpc/one has the strategy `recreate` and no annotations for Argo CD")
    );
    assert!(run.stderr.contains("examples/one.yaml:4:"), "{}", run.stderr);
    assert!(run.stdout.contains("    name: wait\n    jsonPointers:\n    - /spec/suspend\n"), "{}", run.stdout);
    assert!(!run.stdout.contains("name: grow"), "{}", run.stdout);
    sandbox.write("flux-gen.yaml", "gitops: {resize: cluster}\n");
    let text = gitops(&sandbox, "argocd", &GIT).exits(0).stdout;
    assert!(
        text.contains("    name: grow\n    jsonPointers:\n    - /spec/completions\n    - /spec/parallelism\n"),
        "{text}"
    );
    let text = gitops(&sandbox, "fluxcd", &GIT).exits(0).quietly().stdout;
    assert!(text.contains("      name: grow\n") && !text.contains("suspend"), "{text}");
}

#[test]
fn sops_needs_a_key_and_another_tool() {
    let sandbox = project();
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: default}\ndata: {k: 'ENC[AES256_GCM,data:x,iv:y,tag:z,type:str]'}\n\
                  sops: {mac: 'ENC[AES256_GCM,data:x]', age: [{recipient: age1, enc: x}]}\n";
    sandbox.write("examples/s.yaml", secret);
    let _ = sandbox.run(&["build"]).exits(0);
    let flux = gitops(&sandbox, "fluxcd", &GIT).exits(0).quietly().stdout;
    assert!(flux.contains("  decryption:\n    provider: sops\n    secretRef:\n      name: sops-age\n"), "{flux}");
    let argo = gitops(&sandbox, "argocd", &GIT).exits(0);
    assert!(argo.stderr.starts_with("warning[FG963]: default/companions/"), "{}", argo.stderr);
    // Encrypted as it is, it may be published.
    let _ = sandbox.run(&["publish", "oci://r.example/c", "--layout", "out"]).exits(0);
}

/// Each code of this family is shown by a test of this file.
#[test]
fn every_code_is_shown() {
    let text = include_str!("publish.rs");
    let missing: BTreeSet<&str> = flux_gen::diag::codes::publish::ALL
        .iter()
        .map(|code| code.id)
        .filter(|id| !text.contains(&format!("[{id}]")) && !text.contains(&format!("\"{id}\"")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
