//! The project file and settings.

use std::fs;

use crate::harness::{Sandbox, minicluster};

#[test]
fn sources_and_output_come_from_the_project() {
    let sandbox = Sandbox::new();
    sandbox.write("p/flux-gen.yaml", "sources: [specs, more/b.yaml]\noutput: out\n");
    sandbox.write("p/specs/a.yaml", &minicluster("a", 1)).write("p/more/b.yaml", &minicluster("b", 1));
    sandbox.run(&["build", "--project", "p/flux-gen.yaml"]).exits(0);
    assert!(sandbox.path("p/out/default/a/job.yaml").exists() && sandbox.path("p/out/default/b/job.yaml").exists());
    // The output and the project file are no specs, even when everything is named.
    sandbox.run(&["check", "--project", "p/flux-gen.yaml", "p"]).exits(0);
    let run = sandbox.run(&["build", "--project", "nowhere.yaml"]).exits(1);
    assert_eq!(run.stderr, "error: cannot read the project file nowhere.yaml: No such file or directory\n");
}

#[test]
fn a_build_of_one_path_leaves_the_others_alone() {
    let sandbox = Sandbox::new();
    sandbox.write("examples/a.yaml", &minicluster("a", 1)).write("examples/b.yaml", &minicluster("b", 1));
    sandbox.run(&["build"]).exits(0);
    sandbox.write("examples/a.yaml", &minicluster("a", 2));
    sandbox.run(&["build", "examples/a.yaml"]).exits(0);
    sandbox.run(&["check"]).exits(0);
}

#[test]
fn mistakes_in_the_project_file_are_shown_in_it() {
    let sandbox = Sandbox::new();
    sandbox.write("examples/a.yaml", &minicluster("a", 1));
    for (text, code, place) in [
        ("required-version: \">=7\"\nnonsense: 1\n", "FG491", ":1:19"),
        ("required-version: soon\n", "FG490", ":1:19"),
        ("sources: [examples, gone]\n", "FG701", ":1:21"),
        ("settings: {coars: 4}\n", "FG401", ":1:"),
        ("settings: {cores: none}\n", "FG402", ":1:"),
        ("outptu: x\n", "FG102", ":1:1"),
        ("{\n", "FG101", ":"),
    ] {
        sandbox.write("flux-gen.yaml", text);
        let run = sandbox.run(&["build"]).exits(1);
        assert!(run.stderr.starts_with(&format!("error[{code}]: ")), "{text}: {}", run.stderr);
        assert!(run.stderr.contains(&format!("--> flux-gen.yaml{place}")), "{text}: {}", run.stderr);
        assert_eq!(run.stderr.matches("error[").count(), 1, "{text}: {}", run.stderr);
        assert!(!sandbox.path("generated").exists());
    }
}

#[test]
fn settings_are_explained_with_their_origin() {
    let sandbox = Sandbox::new();
    let run = sandbox.run(&["explain", "settings"]).exits(0).quietly();
    assert!(run.stdout.contains("\ncores = not set (built-in)\n"), "{}", run.stdout);
    sandbox.write(
        "flux-gen.yaml",
        "settings: {cores: 2, kubernetes-version: \"1.31\"}\nclusters: {b: {settings: {cores: 3}}}\n",
    );
    let annotated = minicluster("c", 1).replace("name: c\n", "name: c\n  annotations: {flux-gen.dev/cores: \"5\"}\n");
    sandbox.write("examples/a.yaml", &minicluster("a", 1));
    sandbox.write("examples/b.yaml", &minicluster("b", 1)).write("examples/c.yaml", &annotated);
    let run = sandbox.run(&["explain", "settings"]).exits(0).quietly();
    let expect = "\ncores = 2 (project file)\n    b: 3 (cluster override in the project file)\n    c: 5 (annotation)\n";
    assert!(run.stdout.contains(expect), "{}", run.stdout);
    let run = sandbox.run(&["explain", "settings", "--set", "cores=8"]).exits(0).quietly();
    assert!(run.stdout.contains("\ncores = 8 (--set)\n    Cores of"), "{}", run.stdout);
    let run = sandbox.run(&["explain", "cpus"]).exits(0).quietly();
    assert!(run.stdout.starts_with("setting cpus\n\n"), "{}", run.stdout);
    let run = sandbox.run(&["explain", "settings", "--set", "coars=8"]).exits(1);
    assert!(
        run.stderr.starts_with("error[FG401]: there is no setting `coars`\nhelp: did you mean `cores`?\n"),
        "{}",
        run.stderr
    );
}

#[test]
fn only_a_whole_project_can_lack_what_its_file_speaks_of() {
    let sandbox = Sandbox::new();
    let of_b = "clusters: {b: {settings: {cores: 3}}}\npatches: [{target: {cluster: b}, patch: {metadata: {labels: {x: z}}}}]\n";
    sandbox.write("flux-gen.yaml", of_b).write("examples/a.yaml", &minicluster("a", 1));
    let codes = |args: &[&str]| {
        let said = sandbox.run(args).exits(0).stderr;
        ["FG307", "FG404"].map(|code| said.matches(&format!("warning[{code}]")).count())
    };
    assert_eq!(codes(&["validate"]), [1, 1]);
    assert_eq!(codes(&["validate", "examples/a.yaml"]), [0, 0]);
    sandbox.write("examples/b.yaml", &minicluster("b", 1));
    assert_eq!(codes(&["validate"]), [0, 0]);
}

#[test]
fn settings_change_what_is_built() {
    let sandbox = Sandbox::new();
    sandbox.write("examples/a.yaml", &minicluster("a", 1));
    let run = sandbox.run(&["build", "--stdout", "--set", "namespace=hpc", "--set", "create-namespace=true"]).exits(0);
    assert!(run.stdout.contains("kind: Namespace\n") && run.stdout.contains("\n  namespace: hpc\n"), "{}", run.stdout);
    let run = sandbox.run(&["build", "--set", "root-kustomization=true"]).exits(0);
    assert!(sandbox.path("generated/kustomization.yaml").exists(), "{}", run.stderr);
    assert_eq!(fs::read_dir(sandbox.path(".")).unwrap().count(), 2);
}
