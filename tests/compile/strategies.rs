//! Every strategy with every GitOps tool: what objects are told, what names are, what is refused, and when a run is a new one.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use flux_gen::compile::Compiled;
use flux_gen::diag::Severity;
use flux_gen::model::rollout::{GitOps, JobStrategy};
use flux_gen::object::Object;
use proptest::prelude::*;
use serde_json::Value;

use crate::text::{KEY, Set, compile_text};

const OTHER_KEY: &str = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";
const HEAD: &str =
    "apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\nmetadata: {name: test, namespace: hpc}\nspec:\n";

fn compiled(spec: &str, project: &str, set: Set<'_>, key: Option<&str>) -> Compiled {
    let (compiled, reading) = compile_text(&format!("{HEAD}{spec}"), project, set, key);
    assert!(reading.is_empty(), "{reading:?}\n{spec}");
    compiled
}

/// Codes of a severity.
fn codes(compiled: &Compiled, severity: Severity) -> Vec<&'static str> {
    compiled.diagnostics.iter().filter(|d| d.severity == severity).map(|d| d.code.id).collect()
}

fn objects(spec: &str, set: Set<'_>) -> Vec<Value> {
    let compiled = compiled(spec, "", set, Some(KEY));
    assert!(!compiled.diagnostics.has_errors(), "{:?}\n{spec} {set:?}", compiled.diagnostics);
    values(&compiled.clusters[0].objects)
}

fn values(objects: &[Object]) -> Vec<Value> {
    objects.iter().map(|o| serde_json::to_value(o).unwrap()).collect()
}

/// Annotations of the objects of one kind but the guard, each as `key=value` without the tool's domain.
fn told(objects: &[Value], kind: &str) -> Vec<String> {
    let found = objects.iter().filter(|o| o["kind"] == kind);
    let pairs = found.flat_map(|o| o["metadata"]["annotations"].as_object().into_iter().flatten());
    let mut lines: BTreeSet<String> = pairs
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap()))
        .filter(|line| line != "kustomize.toolkit.fluxcd.io/substitute=disabled" && !line.starts_with("flux-gen.dev/"))
        .map(|line| line.replace("argocd.argoproj.io/", "argo ").replace("kustomize.toolkit.fluxcd.io/", "flux "))
        .collect();
    std::mem::take(&mut lines).into_iter().collect()
}

const PLAIN: &str = "  size: 2\n  containers: [{image: 'ghcr.io/app/app:1', command: run, cores: 2}]\n";
const SERVICES: &str = "  size: 2\n  containers: [{image: 'ghcr.io/app/app:1', command: run, cores: 2}]\n  services: [{name: db, image: db, command: serve}]\n";
const ELASTIC: &str = "  size: 2\n  maxSize: 4\n  containers: [{image: 'ghcr.io/app/app:1', command: run, cores: 2}]\n";
const INTERACTIVE: &str = "  size: 2\n  interactive: true\n  containers: [{image: 'ghcr.io/app/app:1', cores: 2}]\n";

const FORCE: &str = "argo sync-options=Force=true,ServerSideApply=false";
const FLUX_FORCE: &str = "flux force=enabled";
const HOOK: [&str; 2] = ["argo hook-delete-policy=BeforeHookCreation", "argo hook=Sync"];
const NO_HEALTH: &str = "argo ignore-healthcheck=true";
const ONCE: &str = "flux ssa=IfNotPresent";

#[test]
fn every_strategy_tells_every_tool_what_it_needs() {
    // Strategy, tool, and what the Job of a plain cluster is told.
    let table: &[(&str, &str, &[&str])] = &[
        ("stable", "argocd", &[]),
        ("stable", "fluxcd", &[]),
        ("stable", "both", &[]),
        ("stable", "none", &[]),
        ("recreate", "argocd", &[FORCE]),
        ("recreate", "fluxcd", &[FLUX_FORCE]),
        ("recreate", "both", &[FORCE, FLUX_FORCE]),
        ("recreate", "none", &[]),
        ("run-once", "argocd", &[]),
        ("run-once", "fluxcd", &[ONCE]),
        ("run-once", "both", &[ONCE]),
        ("run-once", "none", &[]),
        ("hook", "argocd", &HOOK),
        ("hook", "both", &[HOOK[0], HOOK[1], FLUX_FORCE]),
        ("service", "argocd", &[NO_HEALTH]),
        ("service", "fluxcd", &[]),
        ("service", "both", &[NO_HEALTH]),
        ("service", "none", &[]),
    ];
    // Two pairs are refused, below.
    assert_eq!(table.len() + 2, JobStrategy::ALL.len() * GitOps::ALL.len());
    for (strategy, gitops, job) in table {
        let set = [("strategy", *strategy), ("gitops", *gitops)];
        let argo = matches!(*gitops, "argocd" | "both");
        let place = format!("{strategy} {gitops}");
        assert_eq!(told(&objects(PLAIN, &set), "Job"), *job, "{place}");
        for kind in ["ConfigMap", "Service"] {
            assert_eq!(told(&objects(PLAIN, &set), kind), [""; 0], "{place} {kind}");
        }

        // The services Pod: the same, but no hook; nobody waits for its health.
        let with_services = objects(SERVICES, &set);
        assert_eq!(told(&with_services, "Job"), *job, "{place}, services");
        let mut pod: BTreeSet<&str> = job.iter().copied().filter(|line| !HOOK.contains(line)).collect();
        if argo {
            pod.insert(NO_HEALTH);
        }
        if argo && *strategy == "hook" {
            pod.insert(FORCE);
        }
        assert_eq!(told(&with_services, "Pod"), pod.into_iter().collect::<Vec<_>>(), "{place}, services Pod");

        // An elastic run must be resizable, so Flux CD may touch it again.
        let elastic: Vec<&str> = job.iter().copied().filter(|line| *line != ONCE).collect();
        assert_eq!(told(&objects(ELASTIC, &set), "Job"), elastic, "{place}, elastic");

        // A Job that never ends: nobody waits for its health, unless `stable` is asked for.
        if *strategy != "hook" {
            let mut expected: BTreeSet<&str> = job.iter().copied().collect();
            if argo && *strategy != "stable" {
                expected.insert(NO_HEALTH);
            }
            let got = told(&objects(INTERACTIVE, &set), "Job");
            assert_eq!(got, expected.into_iter().collect::<Vec<_>>(), "{place}, interactive");
        }
    }
}

#[test]
fn the_defaults_are_both_tools_and_a_strategy_that_fits() {
    assert_eq!(told(&objects(PLAIN, &[]), "Job"), [""; 0]);
    assert_eq!(told(&objects(INTERACTIVE, &[]), "Job"), [NO_HEALTH]);
    assert_eq!(told(&objects(INTERACTIVE, &[("gitops", "fluxcd")]), "Job"), [""; 0]);
}

#[test]
fn earlier_runs_stay_with_all_that_they_are_made_of() {
    let argo = ["argo compare-options=IgnoreExtraneous", "argo sync-options=Prune=false"];
    for (gitops, expected) in [
        ("argocd", argo.to_vec()),
        ("fluxcd", vec!["flux prune=disabled"]),
        ("both", [&argo[..], &["flux prune=disabled"]].concat()),
        ("none", vec![]),
    ] {
        let set = [("strategy", "run-once"), ("gitops", gitops), ("keep-old", "true")];
        let objects = objects(&SERVICES.replace("size: 2\n", "size: 2\n  maxSize: 3\n"), &set);
        for object in &objects {
            let told = told(std::slice::from_ref(object), object["kind"].as_str().unwrap());
            let kept: Vec<&str> = told.iter().map(String::as_str).filter(|l| *l != ONCE && *l != NO_HEALTH).collect();
            assert_eq!(kept, expected, "{gitops}: {}", object["metadata"]["name"]);
        }
        // With other strategies there are no earlier runs.
        let other = [("strategy", "recreate"), ("gitops", gitops), ("keep-old", "true")];
        assert!(!told(&self::objects(SERVICES, &other), "Job").iter().any(|l| expected.contains(&l.as_str())));
    }
}

#[test]
fn what_cannot_be_is_refused_and_what_may_surprise_is_noted() {
    const QUEUED: &str =
        "  jobLabels: {kueue.x-k8s.io/queue-name: q}\n  containers: [{image: app, command: run, cores: 1}]\n";
    const BURST: &str = "  flux: {bursting: {clusters: [{name: other, size: 2}]}}\n  containers: [{image: app, command: run, cores: 1}]\n";
    const LIST: &str =
        "  flux: {bursting: {hostlist: 'test-0'}}\n  containers: [{image: app, command: run, cores: 1}]\n";
    const CONFIG: &str = "  flux:\n    brokerConfig: |\n      [bootstrap]\n      hosts = [{host = \"test-0\"}]\n  containers: [{image: app, command: run, cores: 1}]\n";
    const NO_BOOTSTRAP: &str = "  flux:\n    brokerConfig: |\n      [resource]\n      noverify = true\n  containers: [{image: app, command: run, cores: 1}]\n";
    let ttl = |seconds| {
        format!("patches: [{{target: {{kind: Job}}, patch: {{spec: {{ttlSecondsAfterFinished: {seconds}}}}}}}]\n")
    };
    let none: &[&str] = &[];
    let (plain, noted): (&[&str], &[&str]) = (none, &["FG345"]);
    for (spec, project, strategy, gitops, errors, notes) in [
        (PLAIN, String::new(), "hook", "fluxcd", &["FG340"][..], plain),
        (PLAIN, String::new(), "hook", "none", &["FG340"], plain),
        (PLAIN, String::new(), "hook", "argocd", none, plain),
        (PLAIN, String::new(), "hook", "both", none, noted),
        (ELASTIC, String::new(), "hook", "argocd", none, noted),
        (INTERACTIVE, String::new(), "hook", "argocd", &["FG341"], plain),
        (QUEUED, String::new(), "hook", "argocd", &["FG342"], plain),
        (QUEUED, String::new(), "recreate", "argocd", none, plain),
        (PLAIN, ttl(60), "stable", "both", &["FG343"], plain),
        (PLAIN, ttl(60), "run-once", "fluxcd", &["FG343"], plain),
        (PLAIN, ttl(60), "recreate", "argocd", &["FG343"], plain),
        (PLAIN, ttl(60), "stable", "none", none, plain),
        (PLAIN, ttl(60), "hook", "argocd", none, plain),
        (PLAIN, ttl(0), "hook", "argocd", &["FG343"], plain),
        (PLAIN, ttl(60), "hook", "both", &["FG343"], noted),
        (BURST, String::new(), "run-once", "both", &["FG344"], plain),
        (LIST, String::new(), "run-once", "both", &["FG344"], plain),
        (CONFIG, String::new(), "run-once", "both", &["FG344"], plain),
        (NO_BOOTSTRAP, String::new(), "run-once", "both", none, plain),
        (CONFIG, String::new(), "recreate", "both", none, plain),
        (PLAIN, String::new(), "service", "both", none, noted),
        (PLAIN, String::new(), "service", "argocd", none, plain),
        (PLAIN, String::new(), "recreate", "none", none, noted),
        (ELASTIC, String::new(), "run-once", "fluxcd", none, noted),
        (INTERACTIVE, String::new(), "stable", "argocd", none, noted),
        (INTERACTIVE, String::new(), "stable", "fluxcd", none, plain),
    ] {
        let compiled = compiled(spec, &project, &[("strategy", strategy), ("gitops", gitops)], Some(KEY));
        let place = format!("{spec}{project}{strategy} {gitops}: {:?}", compiled.diagnostics);
        assert_eq!(codes(&compiled, Severity::Error), errors, "{place}");
        let told: Vec<_> = codes(&compiled, Severity::Note).into_iter().filter(|c| c.starts_with("FG34")).collect();
        assert_eq!(told, notes, "{place}");
    }
    let unused = compiled(PLAIN, "", &[("keep-old", "true")], Some(KEY));
    assert!(codes(&unused, Severity::Note).contains(&"FG345"), "{:?}", unused.diagnostics);
}

#[test]
fn hosts_that_no_run_has_are_named() {
    let spec = |variable: &str| {
        format!(
            "{}  services: [{{name: db, image: db}}]\n",
            PLAIN.replace("cores: 2", &format!("cores: 2, environment: {{DB: '{variable}'}}"))
        )
    };
    for (variable, strategy, expected) in [
        ("test-services.test:5432", "run-once", &["FG347"][..]),
        ("test-services.test:5432", "recreate", &[]),
        ("other-services.test:5432", "run-once", &[]),
    ] {
        let compiled = compiled(&spec(variable), "", &[("strategy", strategy)], Some(KEY));
        assert_eq!(codes(&compiled, Severity::Warning), expected, "{variable} {strategy}: {:?}", compiled.diagnostics);
    }
}

#[test]
fn cleanup_is_explained_for_each_strategy_and_tool() {
    let spec = format!("  cleanup: true\n{PLAIN}");
    let mut helps = BTreeSet::new();
    for (strategy, gitops, keep_old, help) in [
        ("stable", "both", "false", "would run it again"),
        ("stable", "none", "false", "a patch may set ttlSecondsAfterFinished"),
        ("hook", "argocd", "false", "when the next sync begins"),
        ("run-once", "argocd", "false", "is pruned when the next one comes"),
        ("run-once", "fluxcd", "true", "`keep-old` says so"),
        ("run-once", "none", "false", "app.kubernetes.io/part-of"),
    ] {
        let set = [("strategy", strategy), ("gitops", gitops), ("keep-old", keep_old)];
        let compiled = compiled(&spec, "", &set, Some(KEY));
        let warning = compiled.diagnostics.iter().find(|d| d.code.id == "FG278").expect("a warning about cleanup");
        let text = warning.help.clone().unwrap();
        assert!(text.contains(help), "{strategy} {gitops}: {text}");
        helps.insert(text);
    }
    assert_eq!(helps.len(), 6);
}

/// The suffix of a run.
fn run(spec: &str, project: &str, set: Set<'_>, key: Option<&str>) -> String {
    let set: Vec<_> = set.iter().copied().chain([("strategy", "run-once")]).collect();
    let compiled = compiled(spec, project, &set, key);
    assert!(!compiled.diagnostics.has_errors(), "{:?}\n{spec}", compiled.diagnostics);
    compiled.clusters[0].cluster.run.clone().unwrap()
}

#[test]
fn a_run_is_the_same_whatever_does_not_change_it() {
    let first = run(ELASTIC, "", &[], Some(KEY));
    assert!(first.len() == 10 && first.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit()), "{first}");
    for (what, spec, set, key) in [
        ("size", ELASTIC.replace("size: 2", "size: 3"), &[][..], Some(KEY)),
        ("size is all", ELASTIC.replace("size: 2", "size: 4"), &[], Some(KEY)),
        ("minSize", ELASTIC.replace("size: 2", "size: 2\n  minSize: 1"), &[], Some(KEY)),
        ("registry", ELASTIC.replace("ghcr.io/", "mirror.example:5000/"), &[], Some(KEY)),
        ("certificate", ELASTIC.to_owned(), &[], Some(OTHER_KEY)),
        ("no certificate yet", ELASTIC.to_owned(), &[], None),
        ("the Secret's name", ELASTIC.to_owned(), &[("secret-name", "mine")], Some(KEY)),
        ("tool", ELASTIC.to_owned(), &[("gitops", "argocd")], Some(KEY)),
        ("what becomes of old runs", ELASTIC.to_owned(), &[("keep-old", "true")], Some(KEY)),
        ("a comment", format!("{ELASTIC}  # again\n"), &[], Some(KEY)),
        ("a default written out", ELASTIC.replace("size: 2", "size: 2\n  tasks: 1"), &[], Some(KEY)),
    ] {
        assert_eq!(run(&spec, "", set, key), first, "{what}");
    }
}

#[test]
fn a_run_is_a_new_one_whatever_else_changes() {
    let patch = |image: &str| {
        let container = format!("{{name: test, image: '{image}'}}");
        let template = format!("{{spec: {{template: {{spec: {{containers: [{container}]}}}}}}}}");
        format!("patches: [{{target: {{kind: Job, name: test}}, patch: {template}}}]\n")
    };
    let other_cluster = "patches: [{target: {kind: Job, cluster: other}, patch: {metadata: {labels: {a: b}}}}]\n";
    let mut seen = BTreeMap::new();
    seen.insert(run(ELASTIC, "", &[], Some(KEY)), "nothing".to_owned());
    let changed = |from: &str, to: &str| ELASTIC.replace(from, to);
    for (what, spec, project, set) in [
        ("tag", changed("app:1", "app:2"), String::new(), &[][..]),
        ("repository", changed("app/app", "app/other"), String::new(), &[]),
        ("command", changed("command: run", "command: run fast"), String::new(), &[]),
        ("tasks", changed("size: 2", "size: 2\n  tasks: 9"), String::new(), &[]),
        ("maxSize", changed("maxSize: 4", "maxSize: 5"), String::new(), &[]),
        ("cores", changed("cores: 2", "cores: 3"), String::new(), &[]),
        ("environment", changed("cores: 2", "cores: 2, environment: {A: b}"), String::new(), &[]),
        ("an empty variable", changed("cores: 2", "cores: 2, environment: {A: ''}"), String::new(), &[]),
        ("deadline", changed("size: 2", "size: 2\n  deadlineSeconds: 60"), String::new(), &[]),
        ("a label of the Job", changed("size: 2", "size: 2\n  jobLabels: {a: b}"), String::new(), &[]),
        ("a label of the pods", changed("size: 2", "size: 2\n  pod: {labels: {a: b}}"), String::new(), &[]),
        (
            "no token, which is no default",
            changed("size: 2", "size: 2\n  pod: {securityContext: {runAsNonRoot: false}}"),
            String::new(),
            &[],
        ),
        ("quiet", changed("size: 2", "size: 2\n  logging: {quiet: true}"), String::new(), &[]),
        ("topology", changed("size: 2", "size: 2\n  flux: {topology: 'kary:2'}"), String::new(), &[]),
        ("headless name", changed("size: 2", "size: 2\n  network: {headlessName: net}"), String::new(), &[]),
        ("a volume", changed("cores: 2", "cores: 2, volumes: {d: {path: /d, emptyDir: true}}"), String::new(), &[]),
        ("a service", SERVICES.replace("size: 2", "size: 2\n  maxSize: 4"), String::new(), &[]),
        ("not elastic, of 2", changed("maxSize: 4\n", "\n"), String::new(), &[]),
        ("not elastic, of 3", changed("size: 2\n  maxSize: 4\n", "size: 3\n"), String::new(), &[]),
        ("target", ELASTIC.to_owned(), String::new(), &[("kubernetes-version", "1.31")]),
        ("view", ELASTIC.to_owned(), String::new(), &[("view-mount", "image"), ("kubernetes-version", "1.35")]),
        ("patch", ELASTIC.to_owned(), patch("ghcr.io/app/app:3"), &[]),
        ("another patch", ELASTIC.to_owned(), patch("ghcr.io/app/app:4"), &[]),
    ] {
        let suffix = run(&spec, &project, set, Some(KEY));
        if let Some(other) = seen.insert(suffix.clone(), what.to_owned()) {
            panic!("{what} and {other} have one suffix: {suffix}");
        }
    }
    let (patched, mirrored) = (patch("ghcr.io/app/app:3"), patch("mirror.example/app/app:3"));
    assert_eq!(run(ELASTIC, &patched, &[], Some(KEY)), run(ELASTIC, &mirrored, &[], Some(KEY)));
    assert_eq!(run(ELASTIC, other_cluster, &[], Some(KEY)), run(ELASTIC, "", &[], Some(KEY)), "a patch for another");
}

#[test]
fn patches_find_objects_of_a_run_by_the_names_of_the_others() {
    let project = "patches:\n- {target: {kind: ConfigMap, name: test-scripts}, patch: {metadata: {labels: {found: scripts}}}}\n\
                   - {target: {kind: Service, name: net}, patch: {metadata: {labels: {found: net}}}}\n";
    let spec = format!("  network: {{headlessName: net}}\n{PLAIN}");
    let compiled = compiled(&spec, project, &[("strategy", "run-once")], Some(KEY));
    assert_eq!(codes(&compiled, Severity::Warning), [""; 0], "{:?}", compiled.diagnostics);
    let found = values(&compiled.clusters[0].objects);
    let labels: BTreeSet<_> = found.iter().filter_map(|o| o["metadata"]["labels"]["found"].as_str()).collect();
    assert_eq!(labels, BTreeSet::from(["net", "scripts"]));
}

#[test]
fn names_of_a_run_are_checked_with_their_suffix() {
    // 63 characters: name, `-` and ten of the suffix, `-0`.
    let named =
        |length: usize| format!("{HEAD}{PLAIN}").replace("name: test", &format!("name: {}", "a".repeat(length)));
    for (length, strategy, ok) in [
        (50, "run-once", true),
        (51, "run-once", false),
        (51, "recreate", true),
        (61, "stable", true),
        (62, "stable", false),
    ] {
        let (compiled, _) = compile_text(&named(length), "", &[("strategy", strategy)], Some(KEY));
        assert_eq!(codes(&compiled, Severity::Error).is_empty(), ok, "{length} {strategy}: {:?}", compiled.diagnostics);
        assert!(ok || codes(&compiled, Severity::Error).contains(&"FG202"), "{:?}", compiled.diagnostics);
    }
    let headless = |length: usize| format!("  network: {{headlessName: {}}}\n{PLAIN}", "n".repeat(length));
    for (length, strategy, ok) in [(52, "run-once", true), (53, "run-once", false), (63, "stable", true)] {
        let compiled = compiled(&headless(length), "", &[("strategy", strategy)], Some(KEY));
        assert_eq!(codes(&compiled, Severity::Error).is_empty(), ok, "{length} {strategy}: {:?}", compiled.diagnostics);
    }
    let sidecar = |length: usize| {
        let name = "s".repeat(length);
        format!(
            "  containers:\n  - {{image: app, command: run, runFlux: true, cores: 1}}\n  - {{name: {name}, image: s, ports: [80]}}\n"
        )
    };
    for (length, strategy, ok) in [(52, "run-once", true), (53, "run-once", false), (63, "stable", true)] {
        let compiled = compiled(&sidecar(length), "", &[("strategy", strategy)], Some(KEY));
        assert_eq!(codes(&compiled, Severity::Error).is_empty(), ok, "{length} {strategy}: {:?}", compiled.diagnostics);
    }
}

#[test]
fn runs_of_two_clusters_do_not_claim_one_service() {
    let two = |other: &str| {
        let spec = |name: &str| {
            let head = HEAD.replace("name: test", &format!("name: {name}"));
            format!("{head}  network: {{headlessName: net}}\n{PLAIN}")
        };
        format!(
            "{}---\n{}---\napiVersion: v1\nkind: Service\nmetadata: {{name: {other}, namespace: hpc}}\n",
            spec("a"),
            spec("b")
        )
    };
    let found = |strategy| {
        let (compiled, reading) = compile_text(&two("net"), "", &[("strategy", strategy)], Some(KEY));
        assert!(reading.is_empty());
        codes(&compiled, Severity::Error)
    };
    assert_eq!(found("stable"), ["FG291", "FG292"]);
    assert_eq!(found("run-once"), [""; 0]);
}

/// Text of the objects without what a strategy may change: annotations for tools, the label of a run, suffixes of names.
fn neutral(objects: &[Value], run: Option<&str>) -> String {
    let mut text = String::new();
    for object in objects {
        let mut object = object.clone();
        let metadata = object["metadata"].as_object_mut().unwrap();
        metadata.shift_remove("annotations");
        for pointer in ["/metadata/labels", "/spec/template/metadata/labels"] {
            if let Some(labels) = object.pointer_mut(pointer).and_then(Value::as_object_mut) {
                labels.shift_remove("app.kubernetes.io/part-of");
                if labels.is_empty() && pointer == "/metadata/labels" {
                    object["metadata"].as_object_mut().unwrap().shift_remove("labels");
                }
            }
        }
        text.push_str(&object.to_string());
        text.push('\n');
    }
    for object in objects.iter().filter(|o| o["kind"] == "ConfigMap" && o["immutable"] == true) {
        let name = object["metadata"]["name"].as_str().unwrap();
        text = text.replace(name, name.rsplit_once('-').unwrap().0);
    }
    run.map_or_else(|| text.clone(), |run| text.replace(&format!("-{run}"), ""))
}

/// Every strategy gives the objects of `stable` under other names: same hosts, scripts, selectors, mounts.
fn same_under_every_strategy(place: &str, text: &str, strategies: &[&str]) -> usize {
    let (stable, reading) = compile_text(text, "", &[("strategy", "stable")], Some(KEY));
    if reading.has_errors() || stable.diagnostics.has_errors() {
        return 0;
    }
    let mut count = 0;
    for strategy in strategies {
        let (other, _) = compile_text(text, "", &[("strategy", strategy)], Some(KEY));
        for error in other.diagnostics.iter().filter(|d| d.severity == Severity::Error) {
            let known = ["FG340", "FG341", "FG342", "FG344", "FG202", "FG203", "FG201"].contains(&error.code.id);
            assert!(known, "{place} {strategy}: {error:?}");
        }
        for cluster in &other.clusters {
            let name = &cluster.cluster.minicluster;
            let before =
                stable.clusters.iter().find(|c| c.cluster.minicluster == *name && c.span == cluster.span).unwrap();
            let run = cluster.cluster.run.as_deref();
            let objects = values(&cluster.objects);
            assert_eq!(neutral(&objects, run), neutral(&values(&before.objects), None), "{place} {strategy}");
            if let Some(run) = run {
                carries_the_run(place, &objects, name, run);
                count += 1;
            }
        }
    }
    count
}

/// No name of a run is one of another run: every object's name, the hosts, the subdomain and every selector have its suffix.
fn carries_the_run(place: &str, objects: &[Value], name: &str, run: &str) {
    let suffix = format!("-{run}");
    for object in objects {
        let own = object["metadata"]["name"].as_str().unwrap();
        assert!(own.contains(&suffix), "{place}: {own}");
        for (_, value) in
            object["spec"]["selector"].as_object().into_iter().flatten().filter(|(k, _)| !k.ends_with("index"))
        {
            assert!(value.as_str().unwrap().ends_with(&suffix), "{place}: selector {value}");
        }
        for pod in [&object["spec"], &object["spec"]["template"]["spec"]] {
            if let Some(subdomain) = pod["subdomain"].as_str() {
                assert!(subdomain.ends_with(&suffix), "{place}: {subdomain}");
            }
        }
        for (file, text) in object["data"].as_object().into_iter().flatten() {
            let text = text.as_str().unwrap();
            if ["hostlist", "R", "broker.toml"].contains(&file.as_str()) && text.contains(&format!("{name}-")) {
                assert!(text.contains(&format!("{name}{suffix}-")), "{place} {file}: {text}");
                assert!(
                    !text.contains(&format!("{name}-[")) && !text.contains(&format!("\"{name}-0")),
                    "{place} {file}"
                );
            }
        }
    }
}

#[test]
fn the_same_input_gives_the_same_objects() {
    for strategy in JobStrategy::ALL {
        let set = [("strategy", strategy.word()), ("gitops", "argocd")];
        assert_eq!(objects(SERVICES, &set), objects(SERVICES, &set), "{strategy:?}");
    }
}

#[test]
fn examples_and_corpus_are_the_same_under_every_strategy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let all = ["recreate", "run-once", "hook", "service"];
    let mut texts = Vec::new();
    for folder in std::fs::read_dir(root.join("examples")).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_dir()) {
        for file in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
            texts.push((file.display().to_string(), std::fs::read_to_string(&file).unwrap(), &all[..]));
        }
    }
    let corpus = ["../shared", "../../shared"].map(|s| root.join(s).join("conformance/operator"));
    match corpus.iter().find(|folder| folder.is_dir()) {
        Some(folder) => {
            for case in std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path().join("input.yaml")) {
                if let Ok(bytes) = std::fs::read(&case) {
                    texts.push((case.display().to_string(), String::from_utf8_lossy(&bytes).into_owned(), &all[1..3]));
                }
            }
        }
        None => println!("skipped: no ../shared"),
    }
    let runs: usize =
        texts.iter().map(|(place, text, strategies)| same_under_every_strategy(place, text, strategies)).sum();
    assert!(runs >= 20, "only {runs} clusters were compared under run-once");
}

#[derive(Debug, Clone, PartialEq)]
struct Parts {
    elastic: bool,
    size: u32,
    registry: usize,
    tag: u32,
    tasks: u32,
    variable: String,
    key: bool,
    gitops: usize,
}

impl Parts {
    fn run(&self) -> String {
        let registry = ["", "docker.io/", "ghcr.io/", "r.example:5000/"][self.registry];
        let max = if self.elastic { "  maxSize: 4\n" } else { "" };
        let spec = format!(
            "  size: {}\n{max}  tasks: {}\n  containers: [{{image: '{registry}team/app:{}', command: run, cores: 1, environment: {{V: '{}'}}}}]\n",
            self.size, self.tasks, self.tag, self.variable
        );
        let key = if self.key { KEY } else { OTHER_KEY };
        run(&spec, "", &[("gitops", GitOps::ALL[self.gitops].word())], Some(key))
    }

    /// What makes a run another one.
    fn matters(&self) -> (bool, u32, u32, u32, &str) {
        (self.elastic, if self.elastic { 0 } else { self.size }, self.tag, self.tasks, &self.variable)
    }
}

prop_compose! {
    fn parts()(
        elastic in any::<bool>(), size in 1_u32..=4, registry in 0_usize..4, tag in 0_u32..3, tasks in 0_u32..9,
        variable in "[a-z]{0,2}", key in any::<bool>(), gitops in 0_usize..4,
    ) -> Parts {
        Parts { elastic, size, registry, tag, tasks, variable, key, gitops }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 2))]

    #[test]
    fn two_runs_have_one_suffix_exactly_when_nothing_that_matters_differs(a in parts(), mut b in parts(), same in any::<bool>()) {
        if same {
            b = Parts { size: if a.elastic { b.size } else { a.size }, registry: b.registry, key: b.key, gitops: b.gitops, ..a.clone() };
        }
        prop_assert_eq!(a.run() == b.run(), a.matters() == b.matters());
    }
}
