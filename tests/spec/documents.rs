//! Which documents become what, and with which values and places.

use flux_gen::diag::{Diagnostics, Severity, SourceMap, Span};
use flux_gen::spec::{self, Documents, IntOrString, ReadOptions, Spanned};
use serde_json::json;

fn read_with(text: &str, options: &ReadOptions) -> (Documents, Diagnostics) {
    let mut sources = SourceMap::new();
    spec::read(&mut sources, vec![("a.yaml".to_owned(), text.as_bytes().to_vec())], options)
}

#[track_caller]
fn read(text: &str) -> Documents {
    let (documents, diagnostics) = read_with(text, &ReadOptions::default());
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    documents
}

fn cut(text: &str, span: Span) -> &str {
    &text[span.start..span.end]
}

const FULL: &str = r#"
apiVersion: flux-framework.org/v1alpha2
kind: MiniCluster
metadata:
  name: a
  labels: {l: é}
  finalizers: [x.y/z]
spec:
  size: 4
  deadlineSeconds: 9000000000
  interactive: true
  flux:
  containers:
  - image: x
    ports: [80, 0x50]
    environment: {A: "1", "on": b}
    cores: 2
    fluxuser: {uid: 1002}
    commands: {preWorker: echo, runFluxAsRoot: false}
    resources:
      limits: {cpu: 4, memory: 4Gi, a.b/c: 1.0}
    volumes:
      data: {path: /data, items: {a: b}}
  pod:
    nodeAffinity: {zone: [a, b]}
    tolerations:
    - {key: k, tolerationSeconds: 5}
status: {size: 4}
"#;

#[test]
fn values_of_every_kind_with_their_places() {
    let documents = read(FULL);
    let cluster = &documents.miniclusters[0];
    assert_eq!(cut(FULL, cluster.span), FULL.trim());
    assert_eq!(cluster.api_version.value, "flux-framework.org/v1alpha2");
    let spec = &cluster.spec;
    let value = |v: &Option<Spanned<i32>>| v.as_ref().map(|v| v.value);
    assert_eq!(value(&spec.size), Some(4));
    assert_eq!(cut(FULL, spec.size.as_ref().unwrap().span), "4");
    assert_eq!(spec.deadline_seconds.as_ref().unwrap().value, 9_000_000_000);
    assert!(spec.interactive.as_ref().unwrap().value);
    assert_eq!((&spec.flux, &spec.services), (&None, &None));
    let containers = spec.containers.as_ref().unwrap();
    let container = &containers[0];
    let ports: Vec<i32> = container.ports.as_ref().unwrap().iter().map(|port| port.value).collect();
    assert_eq!(ports, [80, 80]);
    let environment = container.environment.as_ref().unwrap();
    let pairs: Vec<(&str, &str)> = environment.iter().map(|e| (e.key.value.as_str(), e.value.value.as_str())).collect();
    assert_eq!(pairs, [("A", "1"), ("on", "b")]);
    assert_eq!(cut(FULL, environment.0[1].key.span), "\"on\"");
    assert_eq!(value(&container.cores), Some(2));
    assert_eq!(container.fluxuser.as_ref().unwrap().uid.as_ref().unwrap().value, 1002);
    let commands = container.commands.as_ref().unwrap();
    assert_eq!(commands.pre_worker.as_ref().unwrap().value, "echo");
    assert!(!commands.run_flux_as_root.as_ref().unwrap().value);
    let limits = container.resources.as_ref().unwrap().limits.as_ref().unwrap();
    let limits: Vec<IntOrString> = limits.iter().map(|e| e.value.value.clone()).collect();
    assert_eq!(limits, [IntOrString::Int(4), IntOrString::String("4Gi".to_owned()), IntOrString::Int(1)]);
    let volume = container.volumes.as_ref().unwrap().get("data").unwrap();
    assert_eq!(volume.items.as_ref().unwrap().get("a").unwrap().value, "b");
    let pod = spec.pod.as_ref().unwrap();
    assert_eq!(pod.node_affinity.as_ref().unwrap().get("zone").unwrap()[1].value, "b");
    assert_eq!(pod.tolerations.as_ref().unwrap()[0].toleration_seconds.as_ref().unwrap().value, 5);
}

#[test]
fn lists_are_taken_apart() {
    let text = r#"{"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
        {"apiVersion": "flux-framework.org/v1alpha2", "kind": "MiniClusterList", "items": [
            {"apiVersion": "flux-framework.org/v1alpha2", "kind": "MiniCluster", "metadata": {"name": "a"},
             "spec": {"containers": []}}]}]}"#;
    let documents = read(text);
    assert_eq!((documents.miniclusters.len(), documents.companions.len()), (1, 1));
}

#[test]
fn companions_keep_their_order_and_are_read_as_kubectl_does() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\nz: [0644, 1.0, 0.5, 1e3, ~, '~']\na/b~:\n  c: 2024-01-31\n";
    let documents = read(text);
    let companion = &documents.companions[0];
    let expected = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "c" },
        "z": [420, 1, 0.5, 1000, null, "~"], "a/b~": { "c": "2024-01-31" },
    });
    assert_eq!(companion.value.to_string(), expected.to_string());
    let places: Vec<(&str, &str)> =
        companion.places.iter().map(|(pointer, span)| (pointer.as_str(), cut(text, *span))).collect();
    let expected = [
        ("/apiVersion", "apiVersion"),
        ("/a~1b~0", "a/b~"),
        ("/a~1b~0/c", "c"),
        ("/kind", "kind"),
        ("/metadata", "metadata"),
        ("/metadata/name", "name"),
        ("/z", "z"),
        ("/z/0", "0644"),
        ("/z/1", "1.0"),
        ("/z/2", "0.5"),
        ("/z/3", "1e3"),
        ("/z/4", "~"),
        ("/z/5", "'~'"),
    ];
    assert_eq!(places, expected);
    for pointer in companion.places.keys() {
        assert!(companion.value.pointer(pointer).is_some(), "{pointer}");
    }
}

#[test]
fn other_kinds_of_the_group_are_companions() {
    let text = "apiVersion: flux-framework.org/v1alpha2\nkind: MetricSet\nmetadata: {name: m}\nspec: {any: thing}\n";
    assert_eq!(read(text).companions.len(), 1);
}

#[test]
fn places_of_secrets_are_known() {
    let text = "apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\nmetadata: {name: a}\n\
                spec: {containers: [{}], flux: {curveCert: hush}}\n---\n\
                apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {k: aHVzaA==}\nstringData: {t: hush2}\n";
    let documents = read(text);
    let secrets: Vec<&str> = documents.secrets.iter().map(|span| cut(text, *span)).collect();
    assert_eq!(secrets, ["hush", "aHVzaA==", "hush2"]);
    let (_, diagnostics) = read_with(&text.replace("hush2", "on"), &ReadOptions::default());
    let messages: Vec<&str> = diagnostics.iter().map(|d| d.message.as_str()).collect();
    assert_eq!(messages.len(), 1);
    assert!(messages[0].starts_with("stringData.t: this value without quotes"), "{messages:?}");
}

#[test]
fn unknown_fields_can_be_warnings() {
    let text = "apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\nmetadata: {name: a}\n\
                spec: {containers: [{}], sizes: 3, volumes: {}}\n";
    let (documents, diagnostics) = read_with(text, &ReadOptions { allow_unknown: true });
    let found: Vec<(&str, Severity)> = diagnostics.iter().map(|d| (d.code.id, d.severity)).collect();
    assert_eq!(found, [("FG102", Severity::Warning), ("FG109", Severity::Warning)]);
    assert_eq!(documents.miniclusters.len(), 1);
    assert!(read_with(text, &ReadOptions::default()).1.has_errors());
}

#[test]
fn kustomize_files_without_a_kind_are_skipped_by_their_name() {
    let mut sources = SourceMap::new();
    let inputs = vec![
        ("x/kustomization.yaml".to_owned(), b"resources: [a.yaml]\n".to_vec()),
        ("x/a.yaml".to_owned(), FULL.as_bytes().to_vec()),
    ];
    let (documents, diagnostics) = spec::read(&mut sources, inputs, &ReadOptions::default());
    assert_eq!((documents.miniclusters.len(), documents.companions.len()), (1, 0));
    let found: Vec<(&str, Severity)> = diagnostics.iter().map(|d| (d.code.id, d.severity)).collect();
    assert_eq!(found, [("FG121", Severity::Note)]);
}

#[test]
fn fields_of_the_documentation_that_the_crd_has_dropped_work() {
    let spec = "launcher: true, flux: {leadBroker: {name: a, address: b, port: 1, hostlist: 'a-[0-3]'}}, containers: [{\
                cores: 4, preCommand: x, diagnostics: false, fluxUser: {uid: 1, name: f}, \
                commands: {runFluxAsRoot: true, preWorker: a, preBroker: b}}, {fluxuser: {uid: 2}}]";
    let text = format!(
        "apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\nmetadata: {{name: a}}\nspec: {{{spec}}}\n"
    );
    let documents = read(&text);
    let spec = &documents.miniclusters[0].spec;
    let leader = spec.flux.as_ref().unwrap().lead_broker.as_ref().unwrap();
    assert_eq!(leader.hostlist.as_ref().unwrap().value, "a-[0-3]");
    assert_eq!(spec.containers.as_ref().unwrap()[0].pre_command.as_ref().unwrap().value, "x");
}

#[test]
fn what_is_secret_at_an_alias_is_secret_where_it_is_written() {
    let text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  k: &key hush\n---\n\
                apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData:\n  k: &key hush\n  l: *key\n";
    let places: Vec<&str> = read(text).secrets.iter().map(|span| &text[span.start..span.end]).collect();
    assert_eq!(places, ["&key hush", "*key", "&key hush"]);
}
