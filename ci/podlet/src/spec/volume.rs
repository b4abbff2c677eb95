//! Volume sources.

use serde::Deserialize;
use serde_json::Value;

use super::{Accepted, FieldRef};

/// `v1.Volume`: exactly one source is set.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Volume {
    pub name: String,
    pub empty_dir: Option<EmptyDir>,
    pub config_map: Option<ConfigMapVolume>,
    pub secret: Option<SecretVolume>,
    pub host_path: Option<HostPath>,
    pub persistent_volume_claim: Option<Claim>,
    pub image: Option<ImageVolume>,
    pub projected: Option<Projected>,
    #[serde(rename = "downwardAPI")]
    pub downward_api: Option<DownwardVolume>,
}

impl Volume {
    pub(super) fn unsupported_values(&self, at: &str, out: &mut Vec<String>) {
        if let Some(e) = &self.empty_dir
            && !matches!(e.medium.as_str(), "" | "Memory")
        {
            out.push(format!("{at}.emptyDir.medium: {}", e.medium));
        }
        if let Some(h) = &self.host_path {
            let known = ["", "DirectoryOrCreate", "Directory", "FileOrCreate", "File"];
            if !known.contains(&h.r#type.as_str()) {
                out.push(format!("{at}.hostPath.type: {}", h.r#type));
            }
        }
    }
}

/// `emptyDir`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct EmptyDir {
    #[serde(default)]
    pub medium: String,
    /// Bytes for a memory volume; on disk it is accepted and not enforced.
    pub size_limit: Option<Value>,
}

/// `configMap`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct ConfigMapVolume {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub items: Vec<KeyToPath>,
    pub default_mode: Option<u32>,
    #[serde(default)]
    pub optional: bool,
}

/// `secret`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct SecretVolume {
    #[serde(default)]
    pub secret_name: String,
    #[serde(default)]
    pub items: Vec<KeyToPath>,
    pub default_mode: Option<u32>,
    #[serde(default)]
    pub optional: bool,
}

/// `items[]`.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs)]
pub struct KeyToPath {
    pub key: String,
    pub path: String,
    pub mode: Option<u32>,
}

/// `hostPath`.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs)]
pub struct HostPath {
    pub path: String,
    #[serde(default)]
    pub r#type: String,
}

/// `persistentVolumeClaim`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Claim {
    pub claim_name: String,
    #[serde(default)]
    pub read_only: bool,
}

/// `image` (KEP 4639).
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct ImageVolume {
    #[serde(default)]
    pub reference: String,
    // Images are local.
    #[serde(rename = "pullPolicy")]
    _pull_policy: Accepted,
}

/// `projected`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Projected {
    #[serde(default)]
    pub sources: Vec<ProjectedSource>,
    pub default_mode: Option<u32>,
}

/// `projected.sources[]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct ProjectedSource {
    pub service_account_token: Option<TokenSource>,
    pub config_map: Option<MapSource>,
    pub secret: Option<MapSource>,
    #[serde(rename = "downwardAPI")]
    pub downward_api: Option<DownwardSource>,
}

/// `projected.sources[].serviceAccountToken`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct TokenSource {
    #[serde(default)]
    pub audience: String,
    pub expiration_seconds: Option<u64>,
    pub path: String,
}

/// `projected.sources[].configMap` and `.secret`.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs)]
pub struct MapSource {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub items: Vec<KeyToPath>,
    #[serde(default)]
    pub optional: bool,
}

/// `projected.sources[].downwardAPI`.
#[derive(Debug, Clone, Deserialize)]
#[allow(missing_docs)]
pub struct DownwardSource {
    #[serde(default)]
    pub items: Vec<DownwardItem>,
}

/// `downwardAPI`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct DownwardVolume {
    #[serde(default)]
    pub items: Vec<DownwardItem>,
    pub default_mode: Option<u32>,
}

/// `downwardAPI.items[]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct DownwardItem {
    pub path: String,
    pub field_ref: Option<FieldRef>,
    pub mode: Option<u32>,
    #[serde(rename = "apiVersion")]
    _api_version: Accepted,
}
