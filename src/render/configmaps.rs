//! ConfigMaps: scripts, Flux's files, and the numbers of an elastic cluster.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;

use super::scripts::{self, Templates};
use super::{RenderError, guarded, metadata, paths};
use crate::model::{BrokerToml, Cluster, Program};

/// Scripts of every container, hooks and the user's own scripts, each a file.
pub(super) fn scripts(cluster: &Cluster, templates: &Templates) -> Result<ConfigMap, RenderError> {
    Ok(ConfigMap {
        metadata: guarded(cluster, &paths::scripts_name(cluster)),
        data: Some(scripts::files(cluster, templates)?),
        immutable: Some(true),
        ..ConfigMap::default()
    })
}

/// `broker.toml`, `hostlist` and `R`.
pub(super) fn flux(cluster: &Cluster) -> ConfigMap {
    let broker = &cluster.broker;
    let config = match &broker.config {
        BrokerToml::Generated(config) => config.to_toml(),
        BrokerToml::Written(text) => text.clone(),
    };
    let mut data =
        BTreeMap::from([("broker.toml".to_owned(), config), ("hostlist".to_owned(), format!("{}\n", broker.hosts))]);
    data.extend(broker.resources.as_ref().map(|r| ("R".to_owned(), format!("{}\n", r.trim_end()))));
    ConfigMap {
        metadata: guarded(cluster, &paths::flux_name(cluster)),
        data: Some(data),
        immutable: Some(true),
        ..ConfigMap::default()
    }
}

/// The only object besides the Job that knows how many pods there are now.
pub(super) fn size(cluster: &Cluster) -> Option<ConfigMap> {
    if !cluster.size.elastic {
        return None;
    }
    let nodes = match &cluster.program {
        Program::Submit(submission) | Program::Batch { submission, .. } => submission.nodes.join(" "),
        _ => String::new(),
    };
    let quorum = cluster.size.quorum.unwrap_or(cluster.size.pods);
    let data =
        BTreeMap::from([("nodes".to_owned(), format!("{nodes}\n")), ("quorum".to_owned(), format!("{quorum}\n"))]);
    Some(ConfigMap {
        metadata: metadata(cluster, &paths::size_name(cluster)),
        data: Some(data),
        ..ConfigMap::default()
    })
}
