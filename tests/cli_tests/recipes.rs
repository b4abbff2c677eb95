//! `recipe lock`: what base images of recipes and views mean.

use crate::harness::Sandbox;
use crate::lock::layout;
use crate::mock::{Mock, Setup};

const RECIPE: &str = "kind: source
systems:
  one: {base: 'rockylinux:9'}
  here: {base: 'localhost/made:1'}
packages:
  - name: flux
    version: '1'
    source:
      url: https://example.org/flux-1.tar.gz
      sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
";
const VIEW: &str = "platforms: [linux/amd64]\nrecipe: image\nbase: debian:12\n";
const PLAIN: &str = "platforms: [linux/amd64]\nrecipe: tree\nbase: debian:12\n";
const IMAGE: &str = "kind: image\nimage: ghcr.io/a/view:1\n";

fn project() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox
        .write("recipes/flux/recipe.yaml", RECIPE)
        .write("recipes/image/recipe.yaml", IMAGE)
        .write("recipes/tree/recipe.yaml", "kind: tree\ntrees: {linux/amd64: {path: tree}}\n")
        .write("views/mine/view.yaml", VIEW)
        .write("views/plain/view.yaml", PLAIN);
    sandbox
}

#[test]
fn bases_of_recipes_and_views_are_pinned() {
    let sandbox = project();
    let before = sandbox.run(&["recipe", "plan", "flux", "--system", "one", "--platform", "linux/amd64"]).exits(0);
    assert!(
        before.stderr.contains("warning[FG853]: the base image `rockylinux:9` is named by a tag only"),
        "{before:?}"
    );
    assert!(before.stdout.contains("base rockylinux:9 (not pinned)"), "{before:?}");
    let refused = sandbox.run(&["view", "list"]).exits(1).stderr;
    assert!(refused.contains("`debian:12` has no digest") && refused.contains("flux-gen recipe lock"), "{refused}");
    assert!(refused.contains("`ghcr.io/a/view:1` has no digest"), "{refused}");

    let digest = layout(&sandbox, "images", &["rockylinux:9", "debian:12", "ghcr.io/a/view:1"], "one");
    let said = sandbox.run(&["recipe", "lock", "--from", "images"]).exits(0).stderr;
    assert_eq!(said, "recipes.lock written: 3 base images\n");
    let text = sandbox.read("recipes.lock");
    assert!(text.starts_with("# Made by `flux-gen recipe lock`; do not edit. "), "{text}");
    // What is known is not asked for again.
    assert_eq!(sandbox.run(&["recipe", "lock"]).exits(0).stderr, "recipes.lock is up to date: 3 base images\n");
    assert_eq!(sandbox.read("recipes.lock"), text);
    let _ = sandbox.run(&["recipe", "lock", "--check"]).exits(0);

    let after = sandbox.run(&["recipe", "plan", "flux", "--system", "one", "--arch", "amd64"]).exits(0);
    assert_eq!(after.stderr, "");
    assert!(after.stdout.contains(&format!("base rockylinux@{digest}, with packages")), "{after:?}");
    // Another base, another tree.
    assert_ne!(before.stdout.lines().next(), after.stdout.lines().next());
    let _ = sandbox.run(&["view", "list"]).exits(0);
    // There is no tree, which is found later than the base.
    let view = sandbox.run(&["view", "plan", "plain"]).stdout;
    assert!(view.contains(&format!("base debian@{digest}")), "{view}");
}

#[test]
fn a_lock_that_does_not_fit() {
    let sandbox = project();
    layout(&sandbox, "images", &["rockylinux:9", "debian:12", "ghcr.io/a/view:1"], "one");
    let _ = sandbox.run(&["recipe", "lock", "--from", "images"]).exits(0);
    sandbox.write("recipes/flux/recipe.yaml", &RECIPE.replace("rockylinux:9", "rockylinux:8"));
    let stale = sandbox.run(&["recipe", "lock", "--check"]).exits(3).stderr;
    let expect = "recipes.lock does not belong to the recipes and views: it does not have rockylinux:8; nobody uses rockylinux:9";
    assert!(stale.contains(expect), "{stale}");
    let warned = sandbox.run(&["recipe", "plan", "flux"]).exits(0).stderr;
    assert!(warned.contains("FG853") && warned.contains("rockylinux:8"), "{warned}");

    sandbox.write("recipes/flux/recipe.yaml", RECIPE);
    let new = layout(&sandbox, "moved", &["rockylinux:9", "debian:12", "ghcr.io/a/view:1"], "two");
    let moved = sandbox.run(&["recipe", "lock", "--update", "--from", "moved"]).exits(0).stderr;
    assert_eq!(moved.matches("warning[FG905]").count(), 3, "{moved}");
    assert!(sandbox.read("recipes.lock").contains(&new.to_string()));

    let edited = sandbox.read("recipes.lock").replace("rockylinux:9", "rockylinux:8");
    sandbox.write("recipes.lock", &edited);
    for command in [&["recipe", "plan", "flux"][..], &["view", "list"], &["recipe", "lock"]] {
        let broken = sandbox.run(command).exits(1).stderr;
        assert!(broken.contains("recipes.lock: its `inputs` do not belong to its images"), "{broken}");
    }
    let _ = sandbox.run(&["recipe", "lock", "--update", "--from", "images"]).exits(0);
    // A recipe that cannot be read is no recipe without images.
    sandbox.write("recipes/flux/recipe.yaml", "kind: source\nsystem: {}\n");
    let text = sandbox.read("recipes.lock");
    let wrong = sandbox.run(&["recipe", "lock"]).exits(1).stderr;
    assert!(wrong.contains("nothing was written"), "{wrong}");
    assert_eq!(sandbox.read("recipes.lock"), text);
}

/// Registries limit how much is asked, so what one of them did answer is kept.
#[test]
fn what_was_answered_is_not_asked_again() {
    let sandbox = project();
    let mock = Mock::new(Setup::default());
    let registry = mock.address.as_str();
    sandbox.write("recipes/image/recipe.yaml", &format!("kind: image\nimage: {registry}/a/view:1\n"));
    let digest = layout(&sandbox, "images", &["rockylinux:9", "debian:12"], "one");
    let partly = sandbox.run(&["recipe", "lock", "--from", "images", "--plain-http", registry]).exits(1).stderr;
    assert!(partly.contains(&format!("error[FG904]: {registry}/a/view:1: ")), "{partly}");
    assert!(partly.contains("found 1 error; recipes.lock has the digests of 2 images"), "{partly}");
    let plan = sandbox.run(&["recipe", "plan", "flux", "--system", "one", "--arch", "amd64"]).exits(0).stdout;
    assert!(plan.contains(&format!("base rockylinux@{digest}")), "{plan}");
    // Nothing is at hand now: only what the lock does not have is asked for, and the lock stays as it is.
    let text = sandbox.read("recipes.lock");
    let again = sandbox.run(&["recipe", "lock", "--plain-http", registry]).exits(1).stderr;
    assert_eq!(again.matches("error[").count(), 1, "{again}");
    assert!(again.contains("nothing was written"), "{again}");
    assert_eq!(sandbox.read("recipes.lock"), text);
}

#[test]
fn recipes_that_are_not_there() {
    let sandbox = project();
    let said = sandbox.run(&["recipe", "plan", "flix"]).exits(1).stderr;
    assert!(said.contains("there is no recipe `flix` in recipes\nhelp: there are flux, image, tree\n"), "{said}");
    let said = sandbox.run(&["recipe", "build", "tree"]).exits(1).stderr;
    assert!(
        said.contains("recipe `tree` compiles nothing\nhelp: `flux-gen view build` packs what it names\n"),
        "{said}"
    );
}

#[test]
fn an_image_that_nobody_has() {
    let sandbox = Sandbox::new();
    sandbox.write("recipes/flux/recipe.yaml", &RECIPE.replace("rockylinux:9", "Rocky/base:1"));
    let said = sandbox.run(&["recipe", "lock"]).exits(1).stderr;
    assert!(said.contains("error[FG904]: Rocky/base:1: "), "{said}");
    assert!(!sandbox.path("recipes.lock").exists());
}
