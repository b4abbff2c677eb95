//! The project file `flux-gen.yaml` as written.

use super::decode::{Decoder, FromNode};
use super::minicluster::List;
use super::record::{Shape, record};
use super::yaml::scalar::{self, Ambiguity, Reading};
use super::yaml::{self, Kind, Node};
use super::{IntOrString, Map, Spanned, single};
use crate::diag::codes::syntax;
use crate::diag::{Diagnostics, SourceMap};

record! {
    /// `flux-gen.yaml`.
    pub struct Project {
        /// Version of flux-gen this project needs, as a Cargo version requirement such as `>=0.1, <0.3`.
        "required-version" required_version: String,
        /// Files and folders with specs, relative to the project file. Default `examples`.
        "sources" sources: List<String>,
        /// Folder for bundles, relative to the project file. Default `generated`.
        "output" output: String,
        /// Settings for every cluster.
        "settings" settings: Map<SettingValue>,
        /// Settings for single clusters, by `name` or `namespace/name`.
        "clusters" clusters: Map<ClusterOverride>,
        /// Strategic merge patches on rendered objects.
        "patches" patches: List<Patch>,
        /// What the Kubernetes cluster has. MiniClusters are checked against it.
        "capacity" capacity: Capacity,
        /// Where images come from, for sites that have registries of their own.
        "images" images: Images,
        /// Where Argo CD and Flux CD fetch the bundles: what `flux-gen gitops` writes for them.
        "gitops" gitops: GitOpsSection,
    }
}

record! {
    /// Where images come from.
    pub struct Images {
        /// Registries that have the images instead of those that specs name. `build` writes references to them, and keeps the
        /// original ones in the annotation `flux-gen.dev/original-images`. The longest `from` that fits an image counts.
        "mirror" mirror: List<MirrorRule>,
    }
}

record! {
    /// What `flux-gen gitops` writes: Applications of Argo CD, a source and Kustomizations of Flux CD.
    pub struct GitOpsSection {
        /// Source of the bundles: a git repository (`https://`, `ssh://`, `git@host:path`) or an artifact
        /// (`oci://registry/name`).
        "url" url: String,
        /// Folder with the folders of namespaces in the source. Default: the output folder, `.` in an artifact.
        "path" path: String,
        /// Branch of the repository. Default `main`.
        "branch" branch: String,
        /// Tag of the repository or artifact. Default for an artifact: `latest`.
        "tag" tag: String,
        /// Commit of the repository.
        "commit" commit: String,
        /// Digest of the artifact.
        "digest" digest: String,
        /// Namespaces to write for, `cluster` for objects without one. Default all.
        "namespaces" namespaces: List<String>,
        /// Who changes the size of elastic clusters: `git` (default) or `cluster`, which makes the tools overlook it.
        "resize" resize: String,
        /// Argo CD alone.
        "argocd" argocd: ArgoCdSection,
        /// Flux CD alone.
        "fluxcd" fluxcd: FluxCdSection,
    }
}

record! {
    /// A registry or a part of one, and what stands in its place.
    pub struct MirrorRule {
        /// Registry, or the beginning of its repositories: `ghcr.io`, `docker.io/library/`. Unset: every image that no other rule is
        /// for; its registry becomes the first part of the repository (`site.example/hub/ghcr.io/a/b`), so that no two are mixed up.
        "from" from: String,
        /// Registry, or the beginning of its repositories, that has the images: `registry.site:5000/hub/`.
        "to" to: String [Required],
    }
}

record! {
    /// What Applications say besides.
    pub struct ArgoCdSection {
        /// Namespace of the Applications. Default `argocd`.
        "namespace" namespace: String,
        /// Their project. Default `default`.
        "project" project: String,
        /// API server that the bundles go to. Default `https://kubernetes.default.svc`: where Argo CD runs.
        "server" server: String,
    }
}

record! {
    /// What the source and Kustomizations say besides.
    pub struct FluxCdSection {
        /// Namespace of the objects. Default `flux-system`.
        "namespace" namespace: String,
        /// How often cluster and source are compared, such as `10m`, which is the default.
        "interval" interval: String,
        /// Wait for Jobs to end, at most so long, such as `2h`. Default: do not wait.
        "wait" wait: String,
        /// Secret with the keys for SOPS. Default `sops-age`.
        "decryptionSecret" decryption_secret: String,
        /// Secret with which the source is fetched.
        "pullSecret" pull_secret: String,
        /// The registry speaks HTTP without TLS.
        "insecure" insecure: bool,
    }
}

record! {
    /// What the Kubernetes cluster has: kinds of nodes, and the shares that queues have of them.
    pub struct Capacity {
        /// Kinds of nodes, by a name of your choice.
        "flavors" flavors: Map<Flavor> [Required],
        /// Shares of queues, by `name` or `namespace/name`; the name is that of the setting `queue` without `kueue/`. A queue
        /// that is not listed is not checked. Without `queues` every queue has everything.
        "queues" queues: Map<QueueShare>,
    }
}

record! {
    /// A kind of nodes: how many there are, and what one of them has for pods.
    pub struct Flavor {
        /// Number of nodes.
        "nodes" nodes: i32 [Required],
        /// Cores of a node. Unset: not checked.
        "cores" cores: i32,
        /// Memory of a node, such as `256Gi`. Unset: not checked.
        "memory" memory: IntOrString,
        /// GPUs and other devices of a node, by resource name such as `nvidia.com/gpu`. A GPU that is not listed is not there.
        "gpus" gpus: Map<i32>,
        /// Labels of the nodes. A cluster whose `pod.nodeSelector` wants another value of one of them does not use the flavor.
        "labels" labels: Map<String>,
    }
}

record! {
    /// What a queue has.
    pub struct QueueShare {
        /// Its share of each flavor, by name. A flavor that is not listed is not for this queue.
        "flavors" flavors: Map<Quota> [Required],
    }
}

record! {
    /// A share of a flavor. What is left out follows from `nodes`.
    pub struct Quota {
        /// Number of nodes. Unset: all of the flavor.
        "nodes" nodes: i32,
        /// Cores in all.
        "cores" cores: i32,
        /// Memory in all.
        "memory" memory: IntOrString,
        /// GPUs and other devices in all, by resource name.
        "gpus" gpus: Map<i32>,
    }
}

record! {
    /// What differs for one cluster.
    pub struct ClusterOverride {
        /// Settings.
        "settings" settings: Map<SettingValue>,
    }
}

record! {
    /// A strategic merge patch on rendered objects.
    pub struct Patch {
        /// Which objects.
        "target" target: PatchTarget,
        /// The patch, as YAML of the object's kind.
        "patch" patch: PatchBody [Required],
    }
}

record! {
    /// Which objects a patch is for; what is left out matches all.
    pub struct PatchTarget {
        /// Cluster, by `name` or `namespace/name`.
        "cluster" cluster: String,
        /// Kind.
        "kind" kind: String,
        /// Name, before hash suffixes.
        "name" name: String,
    }
}

/// The value of a setting as written: always kept as text, checked when settings are resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingValue(pub String);

/// The body of a patch.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchBody(pub serde_json::Value);

impl Project {
    /// Reads a project file. An empty one is a project with every default. What cannot be read is reported and left out.
    pub fn read(sources: &mut SourceMap, name: impl Into<String>, bytes: Vec<u8>) -> (Self, Diagnostics) {
        single::read(sources, name.into(), bytes, Self::RECORD, "project")
    }

    /// The patches in order.
    pub fn patches(&self) -> impl Iterator<Item = &Spanned<Patch>> {
        self.patches.iter().flat_map(|list| list.value.iter())
    }
}

impl FromNode for SettingValue {
    fn from_node(node: &Node, decoder: &mut Decoder<'_>) -> Option<Self> {
        match &node.kind {
            Kind::Scalar(_) => setting(node, decoder).map(Self),
            Kind::Sequence(items) => {
                let item = |(index, item)| decoder.at_index(index, |decoder| list_item(item, decoder));
                let texts: Vec<String> = items.iter().enumerate().filter_map(item).collect();
                Some(Self(texts.join(",")))
            }
            Kind::Mapping(_) => {
                decoder.wrong_type(node, "text, a number, true, false, or a list of these", None);
                None
            }
        }
    }

    fn shape() -> Shape {
        Shape::Setting
    }
}

fn list_item(item: &Node, decoder: &mut Decoder<'_>) -> Option<String> {
    let text = match &item.kind {
        Kind::Scalar(_) => setting(item, decoder)?,
        Kind::Sequence(_) | Kind::Mapping(_) => {
            decoder.wrong_type(item, "text, a number, true or false", None);
            return None;
        }
    };
    if text.contains(',') {
        let message = format!("a list item of a setting cannot hold a comma: `{}`", yaml::short(&text));
        decoder.report(syntax::WRONG_TYPE, item.span, message, Some("make it two items".to_owned()));
        return None;
    }
    Some(text)
}

/// A scalar as the text that `--set` would have: booleans and whole numbers in their one spelling, fractions as written
/// (`1.30` is a version more often than a number).
fn setting(node: &Node, decoder: &mut Decoder<'_>) -> Option<String> {
    let Kind::Scalar(scalar) = &node.kind else {
        return None;
    };
    match scalar::read(scalar) {
        Reading::Null => {
            decoder.empty_value(node.span, "item");
            None
        }
        Reading::Bool(value) => Some(value.to_string()),
        Reading::Int(n) => Some(n.to_string()),
        Reading::Float(_) | Reading::Text => Some(scalar.text.clone()),
        Reading::Ambiguous(ambiguity) => {
            let quoted = decoder.quoted(scalar);
            let write = match ambiguity {
                Ambiguity::Bool(value) => format!("write {value} if that is meant, else {quoted}"),
                _ => quoted,
            };
            decoder.ambiguous(node, scalar, ambiguity, write);
            Some(scalar.text.clone())
        }
    }
}
