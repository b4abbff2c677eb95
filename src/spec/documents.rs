//! Source texts to MiniClusters and companions.

use super::decode::{Decoder, FromNode, head, nearest};
use super::minicluster::Document;
use super::yaml::{self, Kind, Node, short};
use super::{Companion, Documents, MiniCluster, Spanned, explain, json, names};
use crate::diag::codes::syntax;
use crate::diag::{Diagnostic, Diagnostics, FileId, SourceFile, SourceMap, Span};
use crate::parallel;

/// The API that flux-gen compiles.
pub(crate) const API_VERSION: &str = "flux-framework.org/v1alpha2";
/// Its kind.
pub(crate) const KIND: &str = "MiniCluster";
const GROUP: &str = "flux-framework.org";

/// How to read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Unknown fields are warnings and left out.
    pub allow_unknown: bool,
}

/// Reads source texts (name, bytes) into MiniClusters and companions, and reports every problem of every document.
///
/// Texts are added to `sources` in their order. Documents with errors are kept as far as they can be read, so that later
/// stages can report what else is wrong; nothing may be built when there is an error. Kustomize's own files are skipped with
/// a diagnostic, `List` documents are taken apart.
pub fn read(
    sources: &mut SourceMap,
    inputs: Vec<(String, Vec<u8>)>,
    options: &ReadOptions,
) -> (Documents, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let mut files = Vec::with_capacity(inputs.len());
    for (name, bytes) in inputs {
        files.extend(yaml::decode_text(sources, name, bytes, &mut diagnostics));
    }
    let texts: Vec<(FileId, &SourceFile)> =
        files.iter().filter_map(|file| Some((*file, sources.get(*file)?))).collect();
    let read_one = |(file, source): &(FileId, &SourceFile)| read_file(*file, source, options);
    let mut documents = Documents::default();
    for (part, problems) in parallel::map(&texts, read_one) {
        documents.miniclusters.extend(part.miniclusters);
        documents.companions.extend(part.companions);
        documents.secrets.extend(part.secrets);
        documents.aliases.extend(part.aliases);
        diagnostics.extend(problems);
    }
    if documents.miniclusters.is_empty() && documents.companions.is_empty() && !diagnostics.has_errors() {
        let message = "there is no MiniCluster to read";
        let help = "name files or folders with MiniCluster documents; `flux-gen new NAME` writes a first one";
        diagnostics.push(Diagnostic::global_error(syntax::NO_DOCUMENT, message).help(help));
    }
    (documents, diagnostics)
}

fn read_file(file: FileId, source: &SourceFile, options: &ReadOptions) -> (Documents, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let (nodes, aliases) = yaml::parse(file, &source.text, &mut diagnostics);
    if nodes.is_empty() && diagnostics.is_empty() {
        let span = Span { file, start: 0, end: 0 };
        diagnostics.push(Diagnostic::warning(syntax::NO_DOCUMENT, span, "the file holds no document"));
    }
    let mut reader = Reader { source, options, documents: Documents::default(), diagnostics };
    for node in &nodes {
        reader.document(node);
    }
    let Reader { mut documents, mut diagnostics, .. } = reader;
    yaml::point_at_anchors(&aliases, &mut diagnostics);
    yaml::hide_written(&aliases, &mut documents.secrets);
    documents.aliases = aliases;
    (documents, diagnostics)
}

/// Sorts the documents of one file.
struct Reader<'s> {
    source: &'s SourceFile,
    options: &'s ReadOptions,
    documents: Documents,
    diagnostics: Diagnostics,
}

impl Reader<'_> {
    fn document(&mut self, node: &Node) {
        if node.pairs().is_none() {
            let message = "a Kubernetes document is a mapping with apiVersion, kind and metadata";
            self.diagnostics.push(Diagnostic::error(syntax::UNKNOWN_KIND, head(node), message));
            return;
        }
        let (Some(api_version), Some(kind)) = (text(node, "apiVersion"), text(node, "kind")) else {
            if self.is_kustomization_file() {
                self.skip_kustomization(node);
            } else {
                self.no_kind(node);
            }
            return;
        };
        if api_version.starts_with("kustomize.config.k8s.io/") {
            self.skip_kustomization(node);
        } else if let (true, Some(Kind::Sequence(items))) = (kind.ends_with("List"), node.get("items").map(|n| &n.kind))
        {
            for item in items {
                self.document(item);
            }
        } else if self.check_kind(node, api_version, kind) {
            self.minicluster(node, api_version);
        } else {
            self.companion(node, api_version, kind);
        }
    }

    fn is_kustomization_file(&self) -> bool {
        let base = self.source.name.rsplit(['/', '\\']).next().unwrap_or_default();
        matches!(base, "kustomization.yaml" | "kustomization.yml" | "Kustomization")
    }

    /// A warning when the kustomization would change something, else a note.
    fn skip_kustomization(&mut self, node: &Node) {
        const HARMLESS: [&str; 5] = ["apiVersion", "kind", "metadata", "resources", "bases"];
        let acting = node.pairs().unwrap_or_default().iter().find(|pair| !HARMLESS.contains(&pair.key.text.as_str()));
        self.diagnostics.push(match acting {
            Some(pair) => {
                let message = format!(
                    "`{}` of this kustomization has no effect: flux-gen does not run kustomize",
                    short(&pair.key.text)
                );
                let help = "feed flux-gen with the output of `kustomize build`, or use `patches` of the project file";
                Diagnostic::warning(syntax::SKIPPED_DOCUMENT, pair.key_span, message).help(help)
            }
            None => Diagnostic::note(
                syntax::SKIPPED_DOCUMENT,
                head(node),
                "skipped: a kustomization is no object of the cluster",
            ),
        });
    }

    fn no_kind(&mut self, node: &Node) {
        for name in ["apiVersion", "kind"] {
            let diagnostic = match node.get(name) {
                None => {
                    let message = format!("the document has no {name}");
                    let help =
                        "a MiniCluster starts with `apiVersion: flux-framework.org/v1alpha2` and `kind: MiniCluster`";
                    Diagnostic::error(syntax::UNKNOWN_KIND, head(node), message).help(help)
                }
                Some(value) if text(node, name).is_none() => {
                    Diagnostic::error(syntax::UNKNOWN_KIND, head(value), format!("{name} has to be text"))
                }
                Some(_) => continue,
            };
            self.diagnostics.push(diagnostic);
        }
    }

    /// Whether a document is to be read as a MiniCluster; reports those that nearly are one.
    fn check_kind(&mut self, node: &Node, api_version: &str, kind: &str) -> bool {
        if api_version == API_VERSION && kind == KIND {
            return true;
        }
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let span_of = |name: &str| node.get(name).map_or(node.span, |value| value.span);
        let diagnostic = if kind == KIND && group == GROUP && version == "v1alpha1" {
            let message = "v1alpha1 MiniClusters had other fields, and flux-gen compiles v1alpha2";
            let help = "write `apiVersion: flux-framework.org/v1alpha2`; fields that moved are reported below";
            Diagnostic::error(syntax::UNKNOWN_KIND, span_of("apiVersion"), message).help(help)
        } else if kind == KIND {
            let message = format!("`{}` is no API version of MiniClusters", short(api_version));
            Diagnostic::error(syntax::UNKNOWN_KIND, span_of("apiVersion"), message)
                .help(format!("write `apiVersion: {API_VERSION}`"))
        } else if group == GROUP && matches!(kind, "FluxJob" | "FluxSetup" | "Flux") {
            let message = format!("`{kind}` is a kind of the first drafts of the Flux Operator");
            let help = "write `kind: MiniCluster` with `spec.size` and `spec.containers`; a FluxSetup has no successor and is not needed";
            Diagnostic::error(syntax::UNKNOWN_KIND, span_of("kind"), message).help(help)
        } else if group == GROUP && nearest(kind, &[KIND]).is_some() {
            let message = format!("`{}` is no kind of {api_version}", short(kind));
            Diagnostic::error(syntax::UNKNOWN_KIND, span_of("kind"), message).help("did you mean `MiniCluster`?")
        } else {
            return false;
        };
        self.diagnostics.push(diagnostic);
        // A FluxJob has nothing in common with a MiniCluster, the others do.
        nearest(kind, &[KIND]).is_some()
    }

    fn minicluster(&mut self, node: &Node, api_version: &str) {
        let mut decoder = Decoder::new(
            self.options.allow_unknown,
            explain::field_paths,
            &mut self.diagnostics,
            &mut self.documents.secrets,
        );
        let Some(document) = Document::from_node(node, &mut decoder) else {
            return;
        };
        let mut metadata = document.metadata.map(|metadata| metadata.value).unwrap_or_default();
        // An API server takes an empty namespace for none.
        metadata.namespace = metadata.namespace.filter(|namespace| !namespace.is_empty());
        names::check(&metadata, &mut decoder);
        let Some(spec) = document.spec else { return };
        let api_version = document.api_version.unwrap_or_else(|| Spanned::new(api_version.to_owned(), node.span));
        self.documents.miniclusters.push(MiniCluster { span: node.span, api_version, metadata, spec });
    }

    fn companion(&mut self, node: &Node, api_version: &str, kind: &str) {
        let metadata = node.get("metadata");
        let name = metadata.and_then(|metadata| text(metadata, "name"));
        if name.is_none_or(str::is_empty) {
            let message = format!("this {} has no metadata.name", short(kind));
            let span = metadata.map_or_else(|| head(node), head);
            let help = "flux-gen passes documents on under their name; generateName cannot be used";
            self.diagnostics.push(Diagnostic::error(syntax::REQUIRED, span, message).help(help));
            return;
        }
        let secret = api_version == "v1" && kind == "Secret";
        if secret {
            let values = ["data", "stringData"].iter().filter_map(|name| node.get(name)?.pairs()).flatten();
            self.documents.secrets.extend(values.map(|pair| pair.value.span));
        }
        let mut decoder = Decoder::new(true, explain::field_paths, &mut self.diagnostics, &mut self.documents.secrets);
        if secret {
            decoder.hide_values();
        }
        let value = json::value(node, &mut decoder);
        self.documents.companions.push(Companion { span: node.span, value, places: json::places(node) });
    }
}

/// The text of a field that has to be text.
fn text<'n>(node: &'n Node, name: &str) -> Option<&'n str> {
    match &node.get(name)?.kind {
        Kind::Scalar(scalar) if yaml::scalar::read(scalar) == yaml::scalar::Reading::Text => Some(&scalar.text),
        _ => None,
    }
}
