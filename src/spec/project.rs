//! The project file `flux-gen.yaml` as written.

use super::minicluster::List;
use super::record::record;
use super::{Map, Spanned};

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
        "patch" patch: PatchBody,
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
    /// The patches in order.
    pub fn patches(&self) -> impl Iterator<Item = &Spanned<Patch>> {
        self.patches.iter().flat_map(|list| list.value.iter())
    }
}
