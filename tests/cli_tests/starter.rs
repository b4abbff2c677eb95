//! `flux-gen new`.

use crate::harness::Sandbox;

#[test]
fn the_starter_goes_to_stdout_or_to_a_new_file() {
    let sandbox = Sandbox::new();
    let text = sandbox.run(&["new", "my-job"]).exits(0).quietly().stdout;
    assert!(text.contains("\n  name: my-job\n"), "{text}");
    let run = sandbox.run(&["new", "my-job", "-o", "examples/a b.yaml"]).exits(0);
    assert_eq!(run.stderr, "wrote examples/a b.yaml; next: flux-gen build 'examples/a b.yaml'\n");
    assert_eq!(sandbox.read("examples/a b.yaml"), text);
}

#[test]
fn the_starter_never_overwrites() {
    let sandbox = Sandbox::new();
    sandbox.write("a.yaml", "mine");
    let run = sandbox.run(&["new", "my-job", "-o", "a.yaml"]).exits(1);
    assert_eq!(run.stderr, "error: a.yaml exists already\nhelp: give another name, or remove it first\n");
    assert_eq!(sandbox.read("a.yaml"), "mine");
}
