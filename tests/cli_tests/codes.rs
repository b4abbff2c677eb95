//! Diagnostics of projects as users meet them: one small project for each code that no other test shows.

use crate::harness::{Sandbox, minicluster};

/// Files of a project and the code that `validate -v` gives first.
struct Case {
    code: &'static str,
    severity: &'static str,
    files: Vec<(&'static str, String)>,
}

fn case(code: &'static str, severity: &'static str, files: &[(&'static str, String)]) -> Case {
    Case { code, severity, files: files.to_vec() }
}

fn spec(change: impl Fn(String) -> String) -> (&'static str, String) {
    ("examples/a.yaml", change(minicluster("a", 2)))
}

fn project(text: &str) -> (&'static str, String) {
    ("flux-gen.yaml", text.to_owned())
}

fn companion(text: &str) -> (&'static str, String) {
    ("examples/z.yaml", text.to_owned())
}

fn add(text: &'static str) -> impl Fn(String) -> String {
    move |spec| spec + text
}

fn cases_of_clusters() -> Vec<Case> {
    let no_cores = |s: String| s.replace("      resources:\n        limits:\n          cpu: 2\n", "");
    vec![
        case("FG290", "error", &[spec(add("")), ("examples/b.yaml", minicluster("a", 2))]),
        case(
            "FG291",
            "error",
            &[
                spec(add("  network: {headlessName: net}\n")),
                ("examples/b.yaml", minicluster("b", 2) + "  network: {headlessName: net}\n"),
            ],
        ),
        case("FG292", "error", &[spec(add("")), companion("apiVersion: v1\nkind: Service\nmetadata: {name: a}\n")]),
        case(
            "FG601",
            "error",
            &[
                spec(add("")),
                ("examples/b.yaml", minicluster("a", 2).replace("name: a\n", "name: a\n  namespace: default\n")),
            ],
        ),
        case("FG301", "warning", &[spec(|s| s.replace("command: hostname", "command: echo it's"))]),
        case("FG302", "warning", &[spec(|s| no_cores(s) + "  maxSize: 4\n")]),
        case(
            "FG303",
            "error",
            &[spec(add("  pod: {resources: {cpu: 4}}\n")), project("settings: {kubernetes-version: \"1.31\"}\n")],
        ),
        case("FG304", "note", &[spec(add(""))]),
        case(
            "FG305",
            "error",
            &[
                spec(add("  flux: {container: {workingDir: /opt}}\n")),
                project("settings: {view-mount: image, kubernetes-version: \"1.35\"}\n"),
            ],
        ),
        case("FG309", "warning", &[spec(|s| s.replace("image: rockylinux:9\n      ", ""))]),
        case("FG310", "warning", &[spec(add("  flux: {bursting: {hostlist: \"other-0,a-0\"}}\n"))]),
        case(
            "FG403",
            "error",
            &[spec(|s| {
                s.replace("  name: a\n", "  name: a\n  annotations: {flux-gen.dev/root-kustomization: \"true\"}\n")
            })],
        ),
    ]
}

fn cases_of_patches() -> Vec<Case> {
    let patch = |target: &str, patch: &str| project(&format!("patches:\n  - target: {target}\n    patch: {patch}\n"));
    vec![
        case("FG306", "error", &[spec(add("")), patch("{kind: Job}", "{spec: {nonsense: 1}}")]),
        case("FG307", "warning", &[spec(add("")), patch("{kind: Jobb}", "{spec: {suspend: true}}")]),
        case("FG320", "error", &[spec(add("")), patch("{kind: Job}", "{spec: {parallelism: -1}}")]),
        case("FG404", "warning", &[spec(add("")), project("clusters: {b: {settings: {cores: 2}}}\n")]),
    ]
}

fn cases_of_companions() -> Vec<Case> {
    let map = |name: &str, data: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{k: {data}}}\n")
    };
    let role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: other}\n";
    vec![
        case("FG602", "error", &[companion(&map("m", "a")), ("examples/y.yaml", map("m", "b"))]),
        case("FG604", "error", &[companion(&map("m", &"x".repeat(900_001)))]),
        case("FG605", "warning", &[companion(&map("m", &"x".repeat(200_001)))]),
        case("FG606", "error", &[spec(|s| s.replace("name: a\n", "name: companions\n")), companion(&map("m", "a"))]),
        case("FG606", "error", &[spec(|s| s.replace("name: a\n", "name: a\n  namespace: cluster\n")), companion(role)]),
        case(
            "FG614",
            "warning",
            &[
                spec(add("")),
                companion(
                    &map("m", "a")
                        .replace("{name: m}", "{name: m, annotations: {config.kubernetes.io/local-config: \"true\"}}"),
                ),
            ],
        ),
    ]
}

#[track_caller]
fn check(cases: Vec<Case>) {
    for case in cases {
        let sandbox = Sandbox::new();
        for (name, text) in &case.files {
            sandbox.write(name, text);
        }
        let expect = i32::from(case.severity == "error");
        let run = sandbox.run(&["validate", "-v"]).exits(expect);
        let start = format!("{}[{}]: ", case.severity, case.code);
        assert!(run.stderr.lines().any(|l| l.starts_with(&start)), "{start}\n{}", run.stderr);
        let errors = run.stderr.lines().filter(|l| l.starts_with("error[")).count();
        assert_eq!(errors > 0, expect > 0, "{}", run.stderr);
        assert!(errors <= 1, "one mistake, one message: {}", run.stderr);
    }
}

#[test]
fn clusters() {
    check(cases_of_clusters());
}

#[test]
fn patches() {
    check(cases_of_patches());
}

#[test]
fn companions() {
    check(cases_of_companions());
}

/// Reading reports such a document already; the layout does not rely on it.
#[test]
fn a_companion_without_a_name_is_no_object() {
    use flux_gen::bundle::layout::{Kept, LayoutSettings, layout};
    use flux_gen::bundle::{Companion, SourceRef};
    let source = SourceRef { path: "a.yaml".to_owned(), sha256: flux_gen::bundle::sha256_hex(b"") };
    let value = serde_json::json!({"apiVersion": "v1", "kind": "Service", "metadata": {"generateName": "a-"}});
    let companion = Companion { value, source, span: None };
    let (_, diagnostics) = layout(&[], &[companion], &Kept::default(), LayoutSettings::default());
    assert!(diagnostics.iter().any(|d| d.code.id == "FG607"), "{diagnostics:?}");
}

#[test]
fn an_interrupted_build_is_told_and_mended() {
    let sandbox = Sandbox::new();
    sandbox.write("examples/a.yaml", &minicluster("a", 1));
    sandbox.run(&["build"]).exits(0);
    sandbox.write("generated/.flux-gen/lock", "");
    let run = sandbox.run(&["check"]).exits(3);
    assert!(
        run.stderr.starts_with("warning[FG613]: an earlier `flux-gen build` into generated was stopped"),
        "{}",
        run.stderr
    );
    sandbox.run(&["build"]).exits(0);
    sandbox.run(&["check"]).exits(0);
}
