//! `images.mirror`: references behind the gap in bundles and in documents beside the specs.

use crate::harness::{Sandbox, minicluster};

const COMPANION: &str = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: d\nspec:\n  template:\n    spec:\n      \
    initContainers: [{name: i, image: 'quay.io/tools/init:1'}]\n      containers:\n        - name: x\n          image: rockylinux:9\n          \
    command: [sh, -c, 'echo ${HOME}']\n      volumes: [{name: v, image: {reference: 'ghcr.io/a/data:1'}}]\n";

/// A project with this list as its mirror.
fn project(mirror: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("examples/a.yaml", &minicluster("a", 2)).write("examples/d.yaml", COMPANION);
    sandbox.write("flux-gen.yaml", &format!("images:\n  mirror:\n{mirror}"));
    sandbox
}

const ALL: &str =
    "    - from: docker.io/library/\n      to: site.example:5000/hub\n    - to: site.example:5000/rest/\n";

#[test]
fn every_reference_points_to_the_mirror_and_the_original_stays_readable() {
    let sandbox = project(ALL);
    let _ = sandbox.run(&["build"]).exits(0);
    let job = sandbox.read("generated/default/a/job.yaml");
    let deployment = sandbox.read("generated/default/companions/deployment-d.yaml");
    for (text, count) in [
        ("image: site.example:5000/hub/rockylinux:9\n", 1),
        ("image: site.example:5000/rest/ghcr.io/converged-computing/flux-view-ubuntu:tag-noble\n", 1),
        ("site.example:5000/hub/rockylinux:9 rockylinux:9\n", 1),
        (" rockylinux:9\n", 1),
    ] {
        assert_eq!(job.matches(text).count(), count, "{text}\n{job}");
    }
    for (text, count) in [
        ("image: site.example:5000/hub/rockylinux:9\n", 1),
        ("image: site.example:5000/rest/quay.io/tools/init:1\n", 1),
        ("reference: site.example:5000/rest/ghcr.io/a/data:1\n", 1),
        ("    flux-gen.dev/original-images: |\n", 1),
        ("kustomize.toolkit.fluxcd.io/substitute: disabled\n", 1),
    ] {
        assert_eq!(deployment.matches(text).count(), count, "{text}\n{deployment}");
    }
    let template = job.find("  template:\n").unwrap();
    assert!(job.find("original-images").unwrap() < template, "not in the template:\n{job}");
    let _ = sandbox.run(&["check"]).exits(0);
    // The mirror is gone: so is every trace of it.
    sandbox.write("flux-gen.yaml", "");
    let _ = sandbox.run(&["build"]).exits(0);
    assert!(!sandbox.read("generated/default/a/job.yaml").contains("original-images"));
}

#[test]
fn the_name_of_a_run_does_not_depend_on_the_mirror() {
    let name = |sandbox: &Sandbox| {
        let _ = sandbox.run(&["build", "--set", "strategy=run-once"]).exits(0);
        let job = sandbox.read("generated/default/a/job.yaml");
        let names = job.lines().find_map(|line| line.strip_prefix("  name: a-")).map(str::to_owned);
        names.unwrap_or_else(|| panic!("{job}"))
    };
    let sandbox = project(ALL);
    let mirrored = name(&sandbox);
    sandbox.write("flux-gen.yaml", "");
    assert_eq!(name(&sandbox), mirrored);
    sandbox.write("examples/a.yaml", &minicluster("a", 2).replace("rockylinux:9", "rockylinux:8"));
    assert_ne!(name(&sandbox), mirrored);
}

#[test]
fn what_stays_outside_is_named_and_with_locked_refused() {
    let digest = format!("sha256:{}", "0".repeat(64));
    let sandbox = project("    - {from: docker.io, to: site.example}\n    - {from: quay.io, to: quay.io}\n");
    let said = sandbox.run(&["build"]).exits(0).stderr;
    assert_eq!(said.matches("warning[FG933]").count(), 2, "{said}");
    sandbox.write("examples/a.yaml", &minicluster("a", 2).replace("rockylinux:9", &format!("ghcr.io/x/y@{digest}")));
    sandbox.write("examples/d.yaml", &COMPANION.replace("rockylinux:9", "a"));
    let said = sandbox.run(&["build", "--locked"]).exits(1).stderr;
    assert!(
        said.contains(&format!("error[FG933]: no rule of `images.mirror` is for the image ghcr.io/x/y@{digest}")),
        "{said}"
    );
    assert!(said.contains("examples/a.yaml:8:14"), "{said}");
    assert!(said.contains("examples/d.yaml:13:35"), "{said}");
}

#[test]
fn mistakes_in_the_rules_are_told_at_their_place() {
    for (rules, expect) in [
        (
            "    - {from: 'docker.io/library/ubuntu:noble', to: a.b}\n    - {to: a.b}\n",
            "error[FG930]: `docker.io/library/ubuntu:noble`",
        ),
        (
            "    - {from: library/, to: a.b}\n    - {to: a.b}\n",
            "it does not begin with a registry, such as docker.io/library",
        ),
        ("    - {to: a.b}\n    - {to: c.d}\n", "error[FG931]: two rules are for all the rest"),
        (
            "    - {from: docker.io, to: a.b/c}\n    - {from: a.b, to: c.d}\n    - {to: c.d}\n",
            "error[FG932]: a.b/c is itself under a.b, which is at c.d",
        ),
        (
            "    - {to: a.b}\n    - {from: docker.io/librari, to: a.b}\n",
            "warning[FG934]: no image begins with docker.io/librari",
        ),
        ("    - {too: a.b}\n", "did you mean `to`?"),
        ("    - {from: a.b}\n", "images.mirror[0].to is required"),
    ] {
        let sandbox = project(rules);
        let run = sandbox.run(&["validate"]);
        assert_eq!(run.exit == 0, expect.starts_with("warning"), "{rules}{}", run.stderr);
        assert!(run.stderr.contains(expect), "{rules}{}", run.stderr);
    }
}
