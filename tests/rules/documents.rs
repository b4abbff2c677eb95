//! Rules between documents, from YAML text.

use flux_gen::diag::SourceMap;
use flux_gen::rules::documents::check;
use flux_gen::spec::{self, ReadOptions};

/// A MiniCluster: `name`, lines of metadata beside it, lines of its spec.
fn cluster(name: &str, metadata: &str, spec: &str) -> String {
    let default = if spec.contains("containers:") { "" } else { "  containers:\n  - image: rockylinux:9\n" };
    format!(
        "apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\nmetadata:\n  name: {name}\n{metadata}spec:\n{spec}{default}"
    )
}

fn companion(api_version: &str, kind: &str, name: &str, namespace: &str) -> String {
    format!("apiVersion: {api_version}\nkind: {kind}\nmetadata:\n  name: {name}\n{namespace}")
}

/// Codes, and the text at each place.
fn found(documents: &[String], default_namespace: &str) -> Vec<(String, String)> {
    let mut sources = SourceMap::new();
    let text = documents.join("---\n");
    let inputs = vec![("all.yaml".to_owned(), text.clone().into_bytes())];
    let (documents, reading) = spec::read(&mut sources, inputs, &ReadOptions::default());
    assert!(!reading.has_errors(), "{reading:?}\n{text}");
    let diagnostics = check(&documents, default_namespace, &|_| false).sorted();
    let place = |span: flux_gen::diag::Span| text[span.start..span.end].to_owned();
    for diagnostic in &diagnostics {
        assert_eq!(diagnostic.related.len(), 1, "{diagnostic:?}");
    }
    diagnostics.into_iter().map(|d| (d.code.id.to_owned(), d.span.map(place).unwrap_or_default())).collect()
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(code, text)| ((*code).to_owned(), (*text).to_owned())).collect()
}

const SIDECAR: &str =
    "  containers:\n  - image: rockylinux:9\n    runFlux: true\n  - image: nginx\n    name: web\n    ports: [80]\n";

#[test]
fn one_name_in_one_namespace() {
    let (a, in_x) = (cluster("a", "", ""), cluster("a", "  namespace: x\n", ""));
    assert_eq!(found(&[a.clone(), a.clone()], ""), pairs(&[("FG290", "a")]));
    assert_eq!(found(&[a.clone(), a.clone(), a.clone()], ""), pairs(&[("FG290", "a"), ("FG290", "a")]));
    assert_eq!(found(&[a.clone(), in_x.clone()], ""), []);
    assert_eq!(found(&[a, in_x], "x"), pairs(&[("FG290", "a")]));
    assert_eq!(found(&[cluster("a", "", ""), cluster("b", "", "")], ""), []);
}

#[test]
fn one_service_of_two_clusters() {
    let net = "  network:\n    headlessName: net\n";
    let (a, b) = (cluster("a", "", net), cluster("b", "", net));
    assert_eq!(found(&[a.clone(), b], ""), pairs(&[("FG291", "net")]));
    assert_eq!(found(&[a.clone(), cluster("b", "  namespace: x\n", net)], ""), []);
    assert_eq!(found(&[a.clone(), cluster("net", "", "")], ""), pairs(&[("FG291", "net")]));
    assert_eq!(found(&[cluster("a", "", SIDECAR), cluster("b", "", SIDECAR)], ""), pairs(&[("FG291", "web")]));
    assert_eq!(found(&[cluster("a", "", SIDECAR), cluster("web", "", "")], ""), pairs(&[("FG291", "web")]));
    // Without ports there is no Service, and a name twice in one cluster is that cluster's own problem.
    let silent = SIDECAR.replace("    ports: [80]\n", "");
    assert_eq!(found(&[cluster("a", "", SIDECAR), cluster("b", "", &silent)], ""), []);
    let twice = format!("{SIDECAR}{}", "  - image: nginx\n    name: web\n    ports: [81]\n");
    assert_eq!(found(&[cluster("a", "", &twice)], ""), []);
}

#[test]
fn companions_named_like_generated_objects() {
    let services = "  services:\n  - image: nginx\n    name: nginx\n";
    let a = cluster("a", "", services);
    for (document, hit) in [
        (companion("batch/v1", "Job", "a", ""), true),
        (companion("batch/v1", "Job", "b", ""), false),
        (companion("v1", "Service", "a", ""), true),
        (companion("v1", "Service", "a", "  namespace: x\n"), false),
        (companion("v1", "Pod", "a-services", ""), true),
        (companion("v1", "Pod", "a", ""), false),
        (companion("v1", "ConfigMap", "a", ""), false),
        (companion("serving.knative.dev/v1", "Service", "a", ""), false),
        (companion("v1", "ConfigMap", "a-size", ""), false),
    ] {
        let expected = if hit { vec!["FG292".to_owned()] } else { vec![] };
        let codes: Vec<String> = found(&[a.clone(), document.clone()], "").into_iter().map(|(code, _)| code).collect();
        assert_eq!(codes, expected, "{document}");
    }
    let elastic = cluster("a", "", "  size: 1\n  maxSize: 4\n");
    let size = companion("v1", "ConfigMap", "a-size", "");
    assert_eq!(found(&[elastic, size], ""), pairs(&[("FG292", "name")]));
}
