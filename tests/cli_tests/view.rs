//! `flux-gen view …` as a user runs it, and bundles that name views.

use crate::harness::{Run, Sandbox};
use crate::view_support::{HASH, file, helper, spack_tree};

const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn project() -> Sandbox {
    let sandbox = Sandbox::new();
    spack_tree(&sandbox.path("tree"));
    helper(&sandbox.path("busybox"));
    sandbox
        .write(
            "views/rocky-9/view.yaml",
            "platforms: [linux/amd64]\nrecipe: mine\nhelper: {linux/amd64: busybox}\nos: rocky-9\nglibc: \"2.34\"\n\
             tags: [{name: tag-9}, {name: amd-9, platform: linux/amd64}]\nrepository: localhost:1/flux-view-rocky\n",
        )
        .write("recipes/mine/recipe.yaml", "kind: tree\ntrees: {linux/amd64: {path: tree}}\n");
    sandbox
}

fn fails_with(run: &Run, code: &str) {
    assert_eq!(run.exit, 1, "{run:?}");
    assert!(run.stderr.contains(&format!("error[{code}]")), "{code}: {}", run.stderr);
}

/// What one machine makes: its platform, although nothing is there of the other.
#[test]
fn one_platform_of_two() {
    let sandbox = project();
    let view = sandbox.read("views/rocky-9/view.yaml");
    let two = view
        .replace("platforms: [linux/amd64]", "platforms: [linux/amd64, linux/arm64]")
        .replace("helper: {", "helper: {linux/arm64: nowhere, ")
        .replace("tags: [", "tags: [{name: arm-9, platform: linux/arm64}, ");
    sandbox.write("views/rocky-9/view.yaml", &two);
    let trees = "kind: tree\ntrees: {linux/amd64: {path: tree}, linux/arm64: {path: nowhere}}\n";
    sandbox.write("recipes/mine/recipe.yaml", trees);
    assert_eq!(sandbox.run(&["view", "build", "rocky-9"]).exit, 1);
    let build = sandbox.run(&["view", "build", "rocky-9", "--platform", "linux/amd64", "-o", "part"]);
    assert_eq!(build.exit, 0, "{build:?}");
    let index = sandbox.read("part/index.json");
    assert!(index.contains("tag-9") && index.contains("amd-9") && !index.contains("arm-9"), "{index}");
    assert_eq!(sandbox.run(&["view", "verify", "layout:part:tag-9"]).exit, 0);
    let unknown = sandbox.run(&["view", "build", "rocky-9", "--platform", "linux/s390x"]);
    assert_eq!(unknown.exit, 2, "{unknown:?}");
    assert!(unknown.stderr.contains("the view `rocky-9` is not made for linux/s390x"), "{unknown:?}");
    assert!(unknown.stderr.contains("its view.yaml has linux/amd64, linux/arm64"), "{unknown:?}");
}

#[test]
fn list_plan_build_verify_inspect_diff() {
    let sandbox = project();
    let list = sandbox.run(&["view", "list"]);
    assert_eq!(list.stdout, "rocky-9: linux/amd64; recipe mine; tags tag-9, amd-9\n");
    let plan = sandbox.run(&["view", "plan", "rocky-9"]);
    assert!(plan.exit == 0 && plan.stdout.contains("in 6 layers") && plan.stdout.contains("flux-core"), "{plan:?}");
    let build = sandbox.run(&["view", "build", "rocky-9"]);
    assert_eq!(build.exit, 0, "{build:?}");
    assert!(build.stderr.contains("6 layers, 0 unchanged") && build.stderr.contains("Flux 0.88.0"), "{build:?}");
    assert_eq!(sandbox.read(".flux-gen/.gitignore"), "*\n");
    let verify = sandbox.run(&["view", "verify", "rocky-9"]);
    assert_eq!(verify.exit, 0, "{verify:?}");
    assert!(verify.stdout.contains("flux          0.88.0") && verify.stdout.contains("layer  6"), "{verify:?}");
    for target in [".flux-gen/views/rocky-9", "layout:.flux-gen/views/rocky-9:tag-9"] {
        assert_eq!(sandbox.run(&["view", "verify", target]).exit, 0, "{target}");
    }
    // The tree has an absolute link, which is a remark; what was built of it has none.
    let tree = sandbox.run(&["view", "verify", "tree"]);
    assert!(tree.exit == 1 && tree.stderr.contains("FG832") && tree.stderr.contains("FG838"), "{tree:?}");
    let inspect = sandbox.run(&["view", "inspect", "rocky-9"]);
    assert!(inspect.stdout.contains("label dev.flux-gen.view.os=rocky-9"), "{inspect:?}");
    assert!(inspect.stdout.contains("annotation dev.flux-gen.view.encoder=libdeflater/1.26.1"), "{inspect:?}");
    assert_eq!(sandbox.run(&["view", "diff", "rocky-9", "rocky-9"]).exit, 0);
    file(&sandbox.path("tree"), &format!("opt/software/linux-x86_64_v3/zlib-1.3.1-{HASH}/new"), b"x", 0o644);
    assert_eq!(sandbox.run(&["view", "build", "rocky-9", "-o", "other"]).exit, 0);
    let diff = sandbox.run(&["view", "diff", "rocky-9", "other"]);
    assert_eq!(diff.exit, 3, "{diff:?}");
    let signs = |sign: &str| diff.stdout.lines().filter(|line| line.trim_start().starts_with(sign)).count();
    assert_eq!((signs("- layer"), signs("+ layer"), signs("+ /opt")), (1, 1, 1), "{diff:?}");
    // The same layers, and another description: that is told too.
    let described = format!("{}description: other\nlabels: {{site: here}}\n", sandbox.read("views/rocky-9/view.yaml"));
    sandbox.write("views/rocky-9/view.yaml", &described);
    assert_eq!(sandbox.run(&["view", "build", "rocky-9", "-o", "described"]).exit, 0);
    let diff = sandbox.run(&["view", "diff", "other", "described"]);
    let expect = "linux/amd64\n  = 6 layers, ";
    assert!(diff.exit == 3 && diff.stdout.starts_with(expect), "{diff:?}");
    let rest = "\n  + label site=here\n  + annotation org.opencontainers.image.description=other\n";
    assert!(diff.stdout.ends_with(rest), "{diff:?}");
    // The environment's time is that of the image.
    let later = sandbox.command(["view", "build", "rocky-9", "-o", "later"]).env("SOURCE_DATE_EPOCH", "86400").output();
    assert!(later.unwrap().status.success());
    assert!(sandbox.run(&["view", "inspect", "later"]).stdout.contains("created 1970-01-02T00:00:00Z"));
    let bad = sandbox.command(["view", "build", "rocky-9"]).env("SOURCE_DATE_EPOCH", "soon").output().unwrap();
    assert!(String::from_utf8_lossy(&bad.stderr).contains("no number of seconds"));
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let sandbox = project();
    fails_with(&sandbox.run(&["view", "build", "rocky-8"]), "FG801");
    assert!(sandbox.run(&["view", "build", "rocky-8"]).stderr.contains("there are rocky-9"));
    fails_with(&sandbox.run(&["view", "build", "../views/rocky-9"]), "FG801");
    let cases = [
        ("kind: tree\ntrees: {linux/amd64: {path: nowhere}}\n", "FG811"),
        ("kind: tree\ntrees: {linux/amd64: {path: busybox}}\n", "FG811"),
        ("kind: tree\ntrees: {linux/amd64: {path: tree, prefix: /usr}}\n", "FG804"),
        ("kind: tree\ntree: {}\n", "FG121"),
    ];
    for (recipe, code) in cases {
        sandbox.write("recipes/mine/recipe.yaml", recipe);
        let run = sandbox.run(&["view", "build", "rocky-9"]);
        if code == "FG121" {
            assert!(run.exit == 1 && run.stderr.contains("did you mean `trees`?"), "{run:?}");
        } else {
            fails_with(&run, code);
        }
        assert!(run.stderr.contains("recipes/mine/recipe.yaml:"), "{run:?}");
        assert!(!sandbox.path(".flux-gen/views/rocky-9").exists());
    }
    let missing = sandbox.run(&["view", "verify", "rocky-9"]);
    assert!(missing.exit == 1 && missing.stderr.contains("flux-gen view build rocky-9"), "{missing:?}");
    sandbox.write("text", "no image");
    fails_with(&sandbox.run(&["view", "verify", "text"]), "FG845");
    let push = sandbox.run(&["view", "push", "rocky-9"]);
    assert!(push.exit == 1, "{push:?}");
}

#[test]
fn what_nothing_uses_is_removed() {
    let sandbox = project();
    let build = || assert_eq!(sandbox.run(&["view", "build", "rocky-9"]).exit, 0);
    build();
    let core = format!("opt/software/linux-x86_64_v3/flux-core-0.88.0-{HASH}/new");
    file(&sandbox.path("tree"), &core, b"x", 0o644);
    build();
    let blobs = || std::fs::read_dir(sandbox.path(".flux-gen/views/rocky-9/blobs/sha256")).unwrap().count();
    let before = blobs();
    let recent = sandbox.run(&["view", "prune"]);
    assert!(recent.exit == 0 && recent.stderr.contains("0 files (0 B) removed"), "{recent:?}");
    let told = sandbox.run(&["view", "prune", "--unused-for", "0", "--dry-run"]);
    assert!(told.exit == 0 && told.stderr.contains("would be removed"), "{told:?}");
    assert_eq!(blobs(), before);
    assert_eq!(sandbox.run(&["view", "prune", "--unused-for", "0"]).exit, 0);
    // The layer of flux-core, the configuration, the manifest and the index of the first build.
    assert_eq!(blobs(), before - 4);
    assert_eq!(sandbox.run(&["view", "verify", "rocky-9"]).exit, 0);
    build();
    let empty = sandbox.run(&["view", "prune", "--unused-for", "0"]);
    assert!(empty.exit == 0 && blobs() == before - 4, "{empty:?}");
}

#[test]
fn a_disk_that_is_full_is_reported_and_leaves_nothing() {
    let sandbox = project();
    assert_eq!(sandbox.run(&["view", "list"]).exit, 0);
    std::fs::create_dir(sandbox.path("small")).unwrap();
    // 3 MB is too small for the layer of boost.
    let command = "mount -t tmpfs -o size=2m none small && ./flux-gen view build rocky-9 -o small/layout; code=$?; \
                   ls -A small > left; exit $code";
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_flux-gen"), sandbox.path("flux-gen")).unwrap();
    let run = std::process::Command::new("unshare")
        .args(["--mount", "--map-root-user", "bash", "-c", command])
        .current_dir(sandbox.path("."))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&run.stderr).into_owned();
    if stderr.contains("unshare") || stderr.contains("mount:") {
        #[allow(clippy::disallowed_methods)] // Whether a missing program is a failure.
        let ci = std::env::var_os("CI");
        assert!(ci.is_none(), "{stderr}");
        println!("skipped: no file system of its own can be mounted here");
        return;
    }
    assert_eq!(run.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("error[FG821]") && stderr.contains("free space"), "{stderr}");
    assert_eq!(sandbox.read("left"), "", "nothing is left");
}

#[test]
fn a_killed_build_leaves_no_layout() {
    let sandbox = project();
    for wait in [5, 40, 120] {
        let mut child = sandbox.command(["view", "build", "rocky-9", "--no-cache", "-o", "killed"]).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(wait));
        child.kill().unwrap();
        child.wait().unwrap();
        if sandbox.path("killed").exists() {
            assert_eq!(sandbox.run(&["view", "verify", "killed"]).exit, 0, "what is there is whole");
            std::fs::remove_dir_all(sandbox.path("killed")).unwrap();
        }
    }
    assert_eq!(sandbox.run(&["view", "build", "rocky-9", "-o", "killed"]).exit, 0);
    assert_eq!(sandbox.run(&["view", "verify", "killed"]).exit, 0);
}

fn cluster(image: &str, more: &str) -> String {
    format!(
        "apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\nmetadata: {{name: a}}\nspec:\n  \
         containers: [{{image: app, command: hostname, cores: 1}}]\n  flux: {{{more} container: {{image: \"{image}\"}}}}\n"
    )
}

#[test]
fn bundles_name_views() {
    let sandbox = project();
    sandbox.write("examples/a.yaml", &cluster("view:rocky-9", ""));
    let run = sandbox.run(&["build", "--stdout"]);
    fails_with(&run, "FG842");
    assert!(run.stderr.contains("flux-gen view push rocky-9"), "{run:?}");
    let pin = format!(
        "{{\"repository\": \"ghcr.io/x/flux-view\", \"digest\": \"{DIGEST}\", \"tags\": [\"tag-9\"], \"platforms\": \
         {{\"linux/amd64\": {{\"digest\": \"{DIGEST}\", \"facts\": {{\"architecture\": \"amd64\", \"glibc\": \"2.28\"}}}}}}}}\n"
    );
    sandbox.write("views/rocky-9/pushed.json", &pin);
    let run = sandbox.run(&["build", "--stdout"]);
    assert_eq!(run.exit, 0, "{run:?}");
    assert!(run.stdout.contains(&format!("image: ghcr.io/x/flux-view@{DIGEST}")), "{run:?}");
    sandbox.write("examples/a.yaml", &cluster("view:rocky-9", "arch: arm,"));
    fails_with(&sandbox.run(&["build", "--stdout"]), "FG843");
    sandbox.write("views/rocky-9/pushed.json", &pin.replace("amd64", "arm64"));
    let run = sandbox.run(&["build", "--stdout"]);
    assert!(run.exit == 0 && run.stdout.contains("kubernetes.io/arch") && run.stdout.contains("arm64"), "{run:?}");
    sandbox.write("examples/a.yaml", &cluster("view:rocky", ""));
    fails_with(&sandbox.run(&["build", "--stdout"]), "FG841");
    sandbox.write("examples/a.yaml", &cluster("view:rocky-9", "")).write("views/rocky-9/pushed.json", "{}");
    let run = sandbox.run(&["build", "--stdout"]);
    assert!(run.exit == 1 && run.stderr.contains("no record of a push"), "{run:?}");
}

#[test]
fn views_that_fit_an_application() {
    let sandbox = project();
    assert_eq!(sandbox.run(&["view", "build", "rocky-9"]).exit, 0);
    // A view's own image stands for an application: it has a bash, and no glibc.
    let run = sandbox.run(&["view", "match", ".flux-gen/views/rocky-9"]);
    assert_eq!(run.exit, 0, "{run:?}");
    assert!(run.stdout.contains("no glibc, bash") && run.stdout.contains("fits  view:rocky-9, Flux 0.88.0"), "{run:?}");
    let pin = format!(
        "{{\"repository\": \"r/x\", \"digest\": \"{DIGEST}\", \"platforms\": {{\"linux/amd64\": {{\"digest\": \"{DIGEST}\", \
         \"facts\": {{\"architecture\": \"amd64\", \"glibc\": \"2.28\"}}}}}}}}"
    );
    sandbox.write("views/rocky-9/pushed.json", &pin);
    let run = sandbox.run(&["view", "match", ".flux-gen/views/rocky-9"]);
    fails_with(&run, "FG844");
    assert!(run.stdout.contains("needs glibc 2.28, and the image has none"), "{run:?}");
    sandbox.write("a.yaml", &cluster("x", "").replace("image: app", "image: \"layout:.flux-gen/views/rocky-9\""));
    fails_with(&sandbox.run(&["view", "match", "a.yaml"]), "FG844");
}
