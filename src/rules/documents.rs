//! Rules between documents: two clusters, or a cluster and a companion, that would make one object.

use std::collections::BTreeMap;

use crate::diag::codes::spec as codes;
use crate::diag::{Diagnostic, Diagnostics, Span};
use crate::spec::minicluster::Container;
use crate::spec::{Documents, MiniCluster, Spanned};

/// Name, namespace and kind of an object: what differs most stands first, because thousands are compared.
type Identity<'a> = (String, String, &'a str);
/// Who makes which object.
type Objects<'a> = BTreeMap<Identity<'a>, Maker<'a>>;

/// Who makes an object.
struct Maker<'a> {
    document: &'a MiniCluster,
    span: Span,
    cluster: &'a str,
    what: &'static str,
}

/// Tells clusters whose objects have names that no other object has, because of a suffix.
pub type NamedAlone<'a> = &'a dyn Fn(&MiniCluster) -> bool;

/// Every clash between documents. `namespace` is where documents without one go (a setting; empty for none). `named_alone`
/// is asked when there seems to be a clash.
#[must_use]
pub fn check(documents: &Documents, namespace: &str, named_alone: NamedAlone<'_>) -> Diagnostics {
    let mut found = Diagnostics::new();
    let mut clusters: BTreeMap<(String, &str), Span> = BTreeMap::new();
    let mut objects = Objects::new();
    for cluster in &documents.miniclusters {
        let Some(name) = cluster.metadata.name.as_ref().filter(|name| !name.value.is_empty()) else { continue };
        let place = (namespace_of(cluster, namespace), name.value.as_str());
        if let Some(first) = clusters.get(&place) {
            let message = format!("MiniCluster `{}` is defined twice{}", name.value, in_namespace(&place.0));
            let diagnostic =
                Diagnostic::error(codes::SAME_CLUSTER, name.span, message).help("rename one, or remove it");
            found.push(diagnostic.related(*first, "first defined here"));
            // Its objects would only repeat the message.
            continue;
        }
        clusters.insert(place, name.span);
        for (identity, maker) in made_by(cluster, namespace) {
            let first = objects.get(&identity).filter(|first| !named_alone(first.document));
            let Some(first) = first else {
                objects.insert(identity, maker);
                continue;
            };
            // Within one cluster the rules on names say it.
            if first.cluster == maker.cluster || named_alone(cluster) {
                continue;
            }
            let message = format!(
                "{} `{}` is {} here and {} of cluster `{}`",
                identity.2, identity.0, maker.what, first.what, first.cluster
            );
            let diagnostic = Diagnostic::error(codes::SERVICE_CLAIMED, maker.span, message);
            let diagnostic = diagnostic.help("rename one of them, or put the clusters into different namespaces");
            found.push(diagnostic.related(first.span, "the other one"));
        }
    }
    companions(documents, namespace, &objects, named_alone, &mut found);
    found
}

fn companions(
    documents: &Documents,
    namespace: &str,
    objects: &Objects<'_>,
    named_alone: NamedAlone<'_>,
    found: &mut Diagnostics,
) {
    for companion in &documents.companions {
        let text = |pointer: &str| companion.value.pointer(pointer).and_then(serde_json::Value::as_str);
        let (Some(kind), Some(name)) = (text("/kind"), text("/metadata/name")) else { continue };
        let place = text("/metadata/namespace").filter(|ns| !ns.is_empty()).unwrap_or(namespace);
        let group = match kind {
            "Job" => "batch/v1",
            _ => "v1",
        };
        if text("/apiVersion") != Some(group) {
            continue;
        }
        let clash = objects.get(&(name.to_owned(), place.to_owned(), kind));
        if let Some(maker) = clash.filter(|maker| !named_alone(maker.document)) {
            let span = companion.places.get("/metadata/name").copied().unwrap_or(companion.span);
            let message = format!("{kind} `{name}` has the name of {} of cluster `{}`", maker.what, maker.cluster);
            let diagnostic =
                Diagnostic::error(codes::COMPANION_CLASH, span, message).help("rename it; one would replace the other");
            found.push(diagnostic.related(maker.span, "the cluster"));
        }
    }
}

fn in_namespace(namespace: &str) -> String {
    if namespace.is_empty() { String::new() } else { format!(" in namespace `{namespace}`") }
}

fn namespace_of(cluster: &MiniCluster, default: &str) -> String {
    let written = cluster.metadata.namespace.as_ref().map(|ns| ns.value.as_str()).filter(|ns| !ns.is_empty());
    written.unwrap_or(default).to_owned()
}

/// The objects of a cluster whose names can be told from the document alone (others end in hashes).
fn made_by<'a>(cluster: &'a MiniCluster, default_namespace: &str) -> Vec<(Identity<'a>, Maker<'a>)> {
    let Some(name) = &cluster.metadata.name else { return Vec::new() };
    let namespace = namespace_of(cluster, default_namespace);
    let spec = &cluster.spec.value;
    let mut made = Vec::new();
    let mut add = |kind, object: String, span, what| {
        made.push(((object, namespace.clone(), kind), Maker { document: cluster, span, cluster: &name.value, what }));
    };
    add("Job", name.value.clone(), name.span, "the Job");
    let headless = spec.network.as_ref().and_then(|network| network.value.headless_name.as_ref());
    let headless = headless.filter(|headless| !headless.value.is_empty()).unwrap_or(name);
    add("Service", headless.value.clone(), headless.span, "the headless Service");
    if spec.services.as_ref().is_some_and(|services| !services.value.is_empty()) {
        add("Pod", format!("{}-services", name.value), name.span, "the Pod of services");
    }
    if spec.max_size.is_some() {
        add("ConfigMap", format!("{}-size", name.value), name.span, "the size ConfigMap");
    }
    let containers = spec.containers.as_ref().map(|list| list.value.as_slice()).unwrap_or_default();
    for sidecar in containers.iter().filter(|container| containers.len() > 1 && has_service(container)) {
        if let Some(service) = sidecar.value.name.as_ref().filter(|service| service.value != headless.value) {
            add("Service", service.value.clone(), service.span, "the Service of a sidecar");
        }
    }
    made
}

/// A container beside the one that runs Flux, with ports.
fn has_service(container: &Spanned<Container>) -> bool {
    let runs_flux = container.value.run_flux.as_ref().is_some_and(|flag| flag.value);
    !runs_flux && container.value.ports.as_ref().is_some_and(|ports| !ports.value.is_empty())
}
