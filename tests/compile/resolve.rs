//! What resolving says: every code of `FG30x`, with a case that fires and one that does not.

use flux_gen::diag::{Diagnostics, Severity, codes};

use crate::text::{KEY, compile_text};

/// Codes that a spec gives, with a project file and settings.
fn codes_of(spec_text: &str, project: &str, set: &[(&str, &str)]) -> Vec<&'static str> {
    let found = diagnostics(spec_text, project, set);
    let mut codes: Vec<_> = found.iter().map(|d| d.code.id).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

fn document(spec_text: &str) -> String {
    format!("apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\nmetadata: {{name: test}}\nspec:\n{spec_text}")
}

fn diagnostics(spec_text: &str, project: &str, set: &[(&str, &str)]) -> Diagnostics {
    let (compiled, mut found) = compile_text(&document(spec_text), project, set, Some(KEY));
    found.extend(compiled.diagnostics);
    found
}

const PLAIN: &str = "  containers: [{image: app, command: run}]\n";

#[test]
fn each_remark_fires_where_it_should_and_only_there() {
    let quiet: &[&str] = &[];
    let patch = |target: &str, body: &str| format!("patches: [{{target: {target}, patch: {body}}}]\n");
    for (spec, project, set, expected) in [
        (PLAIN, String::new(), &[][..], quiet),
        ("  containers: [{image: app, command: \"it's fine\"}]\n", String::new(), &[], &["FG301"]),
        ("  containers: [{image: app, command: \"'it is' fine\"}]\n", String::new(), &[], quiet),
        ("  size: 2\n  maxSize: 4\n  containers: [{image: app, command: run}]\n", String::new(), &[], &["FG302"]),
        (
            "  size: 2\n  maxSize: 4\n  containers: [{image: app, command: run, cores: 2}]\n",
            String::new(),
            &[],
            &["FG304"],
        ),
        // The user's own configuration reads the bundle's R, so there has to be one.
        (
            "  flux: {brokerConfig: \"[resource]\\npath = '/mnt/flux/config/etc/flux/system/R'\"}\n  \
             containers: [{image: app, command: run}]\n",
            String::new(),
            &[],
            &["FG302"],
        ),
        (
            "  flux: {brokerConfig: \"[resource]\\npath = '/data/R'\"}\n  containers: [{image: app, command: run}]\n",
            String::new(),
            &[],
            quiet,
        ),
        (
            "  pod: {resources: {cpu: 1}}\n  containers: [{image: app}]\n",
            String::new(),
            &[("kubernetes-version", "1.31")],
            &["FG303"],
        ),
        (
            "  pod: {resources: {cpu: 1}}\n  containers: [{image: app}]\n",
            String::new(),
            &[("kubernetes-version", "1.34")],
            &["FG345"],
        ),
        (PLAIN, String::new(), &[("view-mount", "image")], &["FG303"]),
        (PLAIN, String::new(), &[("view-mount", "image"), ("image-volume-gate", "true")], quiet),
        (PLAIN, String::new(), &[("view-mount", "image"), ("kubernetes-version", "1.35")], quiet),
        (
            "  flux: {container: {workingDir: /w}}\n  containers: [{image: app}]\n",
            String::new(),
            &[("view-mount", "image"), ("kubernetes-version", "1.35")],
            &["FG305", "FG345"],
        ),
        (PLAIN, patch("{kind: Job}", "{spec: {parallelismm: 3}}"), &[], &["FG306"]),
        (PLAIN, patch("{kind: Job}", "{metadata: {name: other}}"), &[], &["FG306"]),
        (PLAIN, patch("{kind: Job}", "{spec: {suspend: true}}"), &[], quiet),
        (PLAIN, patch("{kind: Job, cluster: nobody}", "{spec: {suspend: true}}"), &[], &["FG307"]),
        (PLAIN, String::new(), &[("secrets", "plain"), ("secret-name", "mine")], &["FG308"]),
        (PLAIN, String::new(), &[("secret-name", "mine")], quiet),
        ("  containers: [{command: run}]\n", String::new(), &[], &["FG309"]),
        (
            "  flux: {bursting: {hostlist: 'a-0,test-0'}}\n  containers: [{image: app}]\n",
            String::new(),
            &[],
            &["FG310", "FG345"],
        ),
        (
            "  flux: {bursting: {hostlist: 'test-0,a-0'}}\n  containers: [{image: app}]\n",
            String::new(),
            &[],
            &["FG345"],
        ),
    ] {
        assert_eq!(codes_of(spec, &project, set), expected, "{spec}{project}{set:?}");
    }
}

#[test]
fn settings_of_the_whole_project_cannot_be_set_for_one_cluster() {
    let project = "clusters: {test: {settings: {root-kustomization: true}}}\n";
    assert_eq!(codes_of(PLAIN, project, &[]), ["FG403"]);
    assert_eq!(codes_of(PLAIN, "settings: {root-kustomization: true}\n", &[]), Vec::<&str>::new());
}

#[test]
fn settings_for_a_cluster_that_is_not_there_are_reported() {
    let quiet: &[&str] = &[];
    let namespaced = |namespace: &str| format!("settings: {{namespace: {namespace}}}\n");
    for (key, more, set, expected, hint) in [
        ("test", String::new(), &[][..], quiet, ""),
        ("tset", String::new(), &[], &["FG404"], "did you mean `test`?"),
        ("other", String::new(), &[], &["FG404"], "called by its `name`"),
        ("hpc/test", String::new(), &[], &["FG404"], "in another namespace"),
        ("hpc/test", namespaced("hpc"), &[], quiet, ""),
        ("hpc/test", namespaced("hpc"), &[("namespace", "lab")], &["FG404"], "in another namespace"),
        ("hpc/test", String::new(), &[("namespace", "hpc")], quiet, ""),
    ] {
        let project = format!("{more}clusters: {{{key}: {{settings: {{secret-name: mine}}}}}}\n");
        assert_eq!(codes_of(PLAIN, &project, set), expected, "{project}{set:?}");
        let found = diagnostics(PLAIN, &project, set);
        let help = found.iter().find_map(|d| d.help.clone()).unwrap_or_default();
        assert!(help.contains(hint), "{project}{help}");
        // What is not reported is used.
        let (compiled, _) = compile_text(&document(PLAIN), &project, set, None);
        let used = format!("{:?}", compiled.clusters[0].objects).contains("mine");
        assert_eq!(used, expected.is_empty(), "{project}{set:?}");
    }
}

#[test]
fn the_built_in_templates_have_no_mistake() {
    assert!(
        flux_gen::render::Templates::new().is_ok(),
        "else every build would end with {}",
        codes::model::RENDER_BUG.id
    );
}

#[test]
fn a_cluster_that_never_ends_is_a_service_unless_the_setting_says_otherwise() {
    let annotated = |spec_text: &str, set: &[(&str, &str)]| {
        let (compiled, _) = compile_text(&document(spec_text), "", set, None);
        compiled.clusters[0].objects.iter().filter(|o| o.kind() == "Job").any(|o| {
            o.metadata().annotations.iter().flatten().any(|(k, _)| k == "argocd.argoproj.io/ignore-healthcheck")
        })
    };
    assert!(!annotated(PLAIN, &[]));
    assert!(annotated(PLAIN, &[("strategy", "service")]));
    assert!(annotated("  containers: [{image: app}]\n", &[]));
    assert!(annotated("  interactive: true\n  containers: [{image: app, command: run}]\n", &[]));
    assert!(!annotated("  interactive: true\n  containers: [{image: app}]\n", &[("strategy", "stable")]));
}

#[test]
fn a_newer_kubernetes_is_asked_for_beside_other_errors() {
    let spec = "  size: -1\n  pod: {resources: {cpu: 1}}\n  containers: [{image: app}]\n";
    let found = diagnostics(spec, "", &[("kubernetes-version", "1.31")]);
    let codes: Vec<&str> = found.iter().filter(|d| d.severity == Severity::Error).map(|d| d.code.id).collect();
    assert!(codes.len() == 2 && codes.contains(&"FG303"), "{codes:?}");
}
