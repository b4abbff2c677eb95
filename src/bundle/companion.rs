//! Companions: Kubernetes documents beside the MiniClusters, passed through as they are.

use serde_json::{Map, Value};

use super::names::{self, CLUSTER_FOLDER, COMPANIONS_FOLDER};
use super::{Bundle, SourceRef};
use crate::diag::codes::bundle as codes;
use crate::diag::{Diagnostic, Diagnostics, Span};
use crate::object::Object;
use crate::object::carry::find_uncarried;

/// Flux CD's mark for objects in which `${…}` is text.
pub const SUBSTITUTE: &str = crate::render::GUARD;

/// kustomize's mark for documents that are not applied.
const LOCAL_CONFIG: &str = "config.kubernetes.io/local-config";

/// One document as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Companion {
    /// Its value; keys in the order of the text.
    pub value: Value,
    /// The file it came from.
    pub source: SourceRef,
    /// The document in that file, for diagnostics.
    pub span: Option<Span>,
}

/// What makes two descriptions the same object for an API server. No version: an object has one identity in all of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectId {
    /// API group; empty for core objects.
    pub group: String,
    /// Kind.
    pub kind: String,
    /// Namespace; `default` when none is written, as kustomize takes it.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl ObjectId {
    /// The id of the Secret that a bundle carries, if it does.
    #[must_use]
    pub fn of_secret(bundle: &Bundle) -> Option<Self> {
        ObjectKey::of_secret(bundle).map(ObjectKey::id)
    }

    fn new(api_version: &str, kind: &str, namespace: Option<&str>, name: &str) -> Self {
        ObjectKey::new(api_version, kind, namespace, name).id()
    }

    /// To look it up.
    pub(super) fn key(&self) -> ObjectKey<'_> {
        ObjectKey { name: &self.name, namespace: &self.namespace, kind: &self.kind, group: &self.group }
    }
}

/// An [`ObjectId`] in borrowed parts. What differs most stands first: the ids of thousands of objects are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ObjectKey<'a> {
    name: &'a str,
    namespace: &'a str,
    kind: &'a str,
    group: &'a str,
}

impl<'a> ObjectKey<'a> {
    /// Of a rendered object.
    pub(super) fn of(object: &'a Object) -> Self {
        Self::new(object.api_version(), object.kind(), object.namespace(), object.name())
    }

    /// Of the Secret that a bundle carries, if it does.
    pub(super) fn of_secret(bundle: &'a Bundle) -> Option<Self> {
        // A SealedSecret stands for the Secret of its name: there is no second one either way.
        bundle.secret.name().map(|name| Self::new("v1", "Secret", bundle.namespace.as_deref(), name))
    }

    fn new(api_version: &'a str, kind: &'a str, namespace: Option<&'a str>, name: &'a str) -> Self {
        let namespace = if is_cluster_wide(kind) { "" } else { namespace.unwrap_or(names::DEFAULT_FOLDER) };
        Self { name, namespace, kind, group: api_version.split_once('/').map_or("", |(group, _)| group) }
    }

    /// The id itself.
    pub(super) fn id(self) -> ObjectId {
        let Self { name, namespace, kind, group } = self;
        let [group, kind, namespace, name] = [group, kind, namespace, name].map(str::to_owned);
        ObjectId { group, kind, namespace, name }
    }
}

impl std::fmt::Display for ObjectId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.namespace.as_str() {
            "" => write!(f, "{} {}", self.kind, self.name),
            namespace => write!(f, "{} {namespace}/{}", self.kind, self.name),
        }
    }
}

/// A companion that is known to be an object.
#[derive(Debug, Clone)]
pub(super) struct Prepared {
    pub(super) id: ObjectId,
    /// Folder relative to the output.
    pub(super) folder: String,
    pub(super) value: Value,
    pub(super) source: SourceRef,
    pub(super) span: Option<Span>,
}

/// Checks and sorts all companions; lists are taken apart, as kustomize does it.
pub(super) fn prepare(companions: &[Companion], diagnostics: &mut Diagnostics) -> Vec<Prepared> {
    let mut prepared = Vec::new();
    for companion in companions {
        prepare_value(&companion.value, companion, &mut prepared, diagnostics);
    }
    // Which of several equal ones names its source in the file must not depend on the order of arguments.
    prepared.sort_by(|a, b| (&a.id, &a.source, a.span).cmp(&(&b.id, &b.source, b.span)));
    prepared
}

fn prepare_value(value: &Value, companion: &Companion, out: &mut Vec<Prepared>, diagnostics: &mut Diagnostics) {
    let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
    let kind = text("/kind");
    if let (Some(kind), Some(items)) = (kind, value.get("items").and_then(Value::as_array))
        && kind.ends_with("List")
    {
        for item in items {
            prepare_value(item, companion, out, diagnostics);
        }
        return;
    }
    let (Some(api_version), Some(kind), Some(name)) = (text("/apiVersion"), kind, text("/metadata/name")) else {
        let missing = ["/apiVersion", "/kind", "/metadata/name"].into_iter().filter(|p| text(p).is_none());
        let missing: Vec<String> = missing.map(|p| p[1..].replace('/', ".")).collect();
        let message = format!("a document of {} has no {}", companion.source.path, missing.join(" and no "));
        diagnostics.push(at(companion.span, codes::NOT_AN_OBJECT, message));
        return;
    };
    if api_version.starts_with("kustomize.config.k8s.io/") {
        let message = format!("{} holds a {kind} of kustomize, which is not an object", companion.source.path);
        diagnostics.push(at(companion.span, codes::NOT_AN_OBJECT, message).help("leave this file out of the sources"));
        return;
    }
    let id = ObjectId::new(api_version, kind, text("/metadata/namespace"), name);
    let local = value.pointer("/metadata/annotations").and_then(|map| map.get(LOCAL_CONFIG));
    let local = local.is_some_and(|mark| mark != "false");
    if local {
        let message = format!("{id} in {} is marked {LOCAL_CONFIG} and is left out", companion.source.path);
        let mut warning = Diagnostic::global_warning(codes::LOCAL_ONLY, message);
        warning.span = companion.span;
        diagnostics.push(warning);
        return;
    }
    if let Some((path, c)) = find_uncarried(value) {
        let message = format!(
            "{id} in {} holds U+{:04X} in {}",
            companion.source.path,
            u32::from(c),
            path.trim_start_matches('.')
        );
        diagnostics.push(at(companion.span, codes::NOT_FOR_KUSTOMIZE, message).help("remove the character"));
        return;
    }
    let mut value = value.clone();
    guard(&mut value);
    let folder = folder_of(&id);
    out.push(Prepared { id, folder, value, source: companion.source.clone(), span: companion.span });
}

/// An error with or without a place.
pub(super) fn at(span: Option<Span>, code: crate::diag::Code, message: String) -> Diagnostic {
    let mut diagnostic = Diagnostic::global_error(code, message);
    diagnostic.span = span;
    diagnostic
}

/// Where a companion goes. A Namespace goes to its own folder, so that each namespace's folder can be applied alone.
fn folder_of(id: &ObjectId) -> String {
    if id.kind == "Namespace" && id.group.is_empty() {
        format!("{}/{COMPANIONS_FOLDER}", names::safe(&id.name))
    } else if id.namespace.is_empty() {
        CLUSTER_FOLDER.to_owned()
    } else {
        format!("{}/{COMPANIONS_FOLDER}", names::safe(&id.namespace))
    }
}

/// Adds Flux CD's guard when the document holds `${`, which Flux CD would replace or refuse. Nothing else is changed, and a
/// mark that the user wrote stays.
fn guard(value: &mut Value) {
    if !holds_substitution(value) {
        return;
    }
    let Some(annotations) = annotations(value) else { return };
    if !annotations.contains_key(SUBSTITUTE) {
        annotations.insert(SUBSTITUTE.to_owned(), "disabled".into());
    }
}

fn holds_substitution(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("${"),
        Value::Array(items) => items.iter().any(holds_substitution),
        Value::Object(map) => map.iter().any(|(key, value)| key.contains("${") || holds_substitution(value)),
        _ => false,
    }
}

/// `metadata.annotations`, made when missing; `None` when something else than a mapping stands there.
fn annotations(value: &mut Value) -> Option<&mut Map<String, Value>> {
    let metadata = value.get_mut("metadata")?.as_object_mut()?;
    let annotations = metadata.entry("annotations").or_insert_with(|| Value::Object(Map::new()));
    if annotations.is_null() {
        *annotations = Value::Object(Map::new());
    }
    annotations.as_object_mut()
}

/// Kinds that live outside of namespaces: those of Kubernetes and of the projects that MiniClusters are used with. A kind
/// that is not listed counts as namespaced; applying it from a namespace's folder works all the same.
fn is_cluster_wide(kind: &str) -> bool {
    const KINDS: &[&str] = &[
        "APIService",
        "AdmissionCheck",
        "CSIDriver",
        "CSINode",
        "CertificateSigningRequest",
        "ClusterIssuer",
        "ClusterQueue",
        "ClusterRole",
        "ClusterRoleBinding",
        "ClusterSecretStore",
        "ClusterTrainingRuntime",
        "ClusterTrustBundle",
        "Cohort",
        "CustomResourceDefinition",
        "DeviceClass",
        "FlowSchema",
        "GatewayClass",
        "IPAddress",
        "IngressClass",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PriorityClass",
        "PriorityLevelConfiguration",
        "ResourceFlavor",
        "ResourceSlice",
        "RuntimeClass",
        "ServiceCIDR",
        "StorageClass",
        "Topology",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
        "VolumeAttachment",
        "VolumeAttributesClass",
        "VolumeSnapshotClass",
        "WorkloadPriorityClass",
    ];
    KINDS.binary_search(&kind).is_ok()
}
