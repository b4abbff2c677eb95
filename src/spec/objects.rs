//! Source texts to Kubernetes objects of whatever kind: what other tools made, rather than what a user wrote for flux-gen.

use super::decode::{Decoder, head};
use super::yaml::{self, Kind, Node};
use super::{Companion, explain, json};
use crate::diag::codes::syntax;
use crate::diag::{Diagnostic, Diagnostics, SourceMap, Span};

/// The objects of a set of texts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Objects {
    /// In the order of the texts; lists are taken apart.
    pub objects: Vec<Companion>,
    /// Places of secret values: excerpts of the text must not show them.
    pub secrets: Vec<Span>,
}

/// Reads texts (name, bytes) into objects. Texts are added to `sources` in their order.
///
/// Only text that is no YAML is an error. What is no object of a cluster (kustomizations, values files, `bundle.json`) is left
/// out with a note, because a folder may hold such files; values that YAML readers disagree about are read as kubectl does.
pub fn read_objects(sources: &mut SourceMap, inputs: Vec<(String, Vec<u8>)>) -> (Objects, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let mut files = Vec::with_capacity(inputs.len());
    for (name, bytes) in inputs {
        files.extend(yaml::decode_text(sources, name, bytes, &mut diagnostics));
    }
    let mut objects = Objects::default();
    for file in files {
        let Some(source) = sources.get(file) else { continue };
        let (nodes, aliases) = yaml::parse(file, &source.text, &mut diagnostics);
        for node in &nodes {
            document(node, &mut objects, &mut diagnostics);
        }
        yaml::point_at_anchors(&aliases, &mut diagnostics);
        yaml::hide_written(&aliases, &mut objects.secrets);
    }
    (objects, diagnostics)
}

fn document(node: &Node, objects: &mut Objects, diagnostics: &mut Diagnostics) {
    let (Some(api_version), Some(kind)) = (text(node, "apiVersion"), text(node, "kind")) else {
        return skip(node, diagnostics);
    };
    if let (true, Some(Kind::Sequence(items))) = (kind.ends_with("List"), node.get("items").map(|n| &n.kind)) {
        for item in items {
            document(item, objects, diagnostics);
        }
        return;
    }
    let named = node.get("metadata").is_some_and(|metadata| text(metadata, "name").is_some());
    if !named || api_version.starts_with("kustomize.config.k8s.io/") {
        return skip(node, diagnostics);
    }
    let secret = api_version == "v1" && kind == "Secret";
    if secret {
        let values = ["data", "stringData"].iter().filter_map(|name| node.get(name)?.pairs()).flatten();
        objects.secrets.extend(values.map(|pair| pair.value.span));
        // A copy of the whole object, which `kubectl apply` leaves behind.
        let annotations = node.get("metadata").and_then(|metadata| metadata.get("annotations")?.pairs());
        objects.secrets.extend(annotations.into_iter().flatten().map(|pair| pair.value.span));
    }
    // Whoever wrote these values, they are what a cluster will be given: nothing to report.
    let ignored = &mut Diagnostics::new();
    let mut decoder = Decoder::new(true, explain::field_paths, ignored, &mut objects.secrets);
    if secret {
        decoder.hide_values();
    }
    let value = json::value(node, &mut decoder);
    objects.objects.push(Companion { span: node.span, value, places: json::places(node) });
}

fn skip(node: &Node, diagnostics: &mut Diagnostics) {
    let message = "skipped: no object of a cluster";
    diagnostics.push(Diagnostic::note(syntax::SKIPPED_DOCUMENT, head(node), message));
}

fn text<'n>(node: &'n Node, name: &str) -> Option<&'n str> {
    match &node.get(name)?.kind {
        Kind::Scalar(scalar) if !scalar.text.is_empty() => Some(&scalar.text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Objects, Vec<&'static str>) {
        let (objects, diagnostics) = read_objects(&mut SourceMap::new(), vec![("a.yaml".to_owned(), text.into())]);
        (objects, diagnostics.iter().map(|d| d.code.id).collect())
    }

    #[test]
    fn lists_are_taken_apart_and_other_documents_left_out() {
        let (objects, codes) = read(
            "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: 'on'}}\n\
             ---\napiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nmetadata: {name: k}\n\
             ---\nreplicaCount: 1\n---\napiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\n",
        );
        assert_eq!(objects.objects.len(), 1);
        assert_eq!(objects.objects[0].value["data"]["x"], "on");
        assert_eq!(codes, ["FG121"; 3]);
    }

    #[test]
    fn only_broken_yaml_is_an_error() {
        assert!(read("a: [").1.iter().any(|code| code.starts_with("FG1")));
        let (objects, codes) = read("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, annotations: {b: on}}\n");
        assert_eq!((objects.objects.len(), codes.len()), (1, 0));
    }

    #[test]
    fn values_of_secrets_are_known_as_such() {
        let (objects, _) = read(
            "apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: {copy: c2VjcmV0}}\nstringData: {k: hush}\n",
        );
        assert_eq!(objects.secrets.len(), 2);
    }
}
