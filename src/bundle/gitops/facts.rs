//! What the tools have to know about the output, namespace by namespace.

use std::collections::BTreeMap;

use crate::bundle::names::{CLUSTER_FOLDER, namespace_folder};
use crate::bundle::tree::{FileTree, Folder};
use crate::compile::CompiledCluster;
use crate::diag::{SourceMap, Span};
use crate::model::queue::{ELASTIC_JOB, MIN_PARALLELISM};
use crate::model::rollout::Rollout;
use crate::spec::read_objects;

/// One cluster's Job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobFacts {
    /// Its namespace as the objects have it.
    pub namespace: Option<String>,
    /// The MiniCluster's name.
    pub cluster: String,
    /// The Job's name.
    pub job: String,
    /// Its number of pods may change while it runs.
    pub elastic: bool,
    /// It waits in a queue of Kueue.
    pub queued: bool,
    /// The queue may change its number of pods.
    pub queue_resizes: bool,
    /// What becomes of it when it changes.
    pub rollout: Rollout,
    /// Where the MiniCluster has its name.
    pub span: Option<Span>,
}

impl JobFacts {
    /// Of a compiled cluster.
    #[must_use]
    pub fn of(compiled: &CompiledCluster) -> Self {
        let cluster = &compiled.cluster;
        let queueing = &cluster.job.queueing;
        Self {
            namespace: cluster.namespace.clone(),
            cluster: cluster.minicluster.clone(),
            job: cluster.name.clone(),
            elastic: cluster.size.elastic,
            queued: queueing.queue.is_some(),
            queue_resizes: [MIN_PARALLELISM, ELASTIC_JOB].iter().any(|key| queueing.annotations.contains_key(*key)),
            rollout: cluster.rollout,
            span: Some(compiled.name_span),
        }
    }
}

/// A namespace's folder of the output, or that of objects that belong to none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NamespaceFacts {
    /// Name of the folder: the namespace's.
    pub folder: String,
    /// It holds the objects that belong to no namespace.
    pub cluster_wide: bool,
    /// Files that are encrypted for SOPS.
    pub sops: Vec<String>,
    /// Its clusters' Jobs.
    pub jobs: Vec<JobFacts>,
}

/// Every namespace of an output, in the order of names.
#[must_use]
pub fn facts(tree: &FileTree, jobs: Vec<JobFacts>) -> Vec<NamespaceFacts> {
    let mut all: BTreeMap<String, NamespaceFacts> = BTreeMap::new();
    for (path, folder) in &tree.folders {
        let top = path.split('/').next().unwrap_or_default();
        let facts = all.entry(top.to_owned()).or_default();
        facts.cluster_wide |= path == CLUSTER_FOLDER;
        facts.sops.extend(sops_files(folder).map(|name| format!("{path}/{name}")));
    }
    for job in jobs {
        all.entry(namespace_folder(job.namespace.as_deref())).or_default().jobs.push(job);
    }
    for (folder, facts) in &mut all {
        facts.folder.clone_from(folder);
        facts.jobs.sort_by(|a, b| a.cluster.cmp(&b.cluster));
    }
    all.into_values().collect()
}

fn sops_files(folder: &Folder) -> impl Iterator<Item = &str> {
    folder.files.iter().filter(|(_, bytes)| is_sops(bytes)).map(|(name, _)| name.as_str())
}

fn is_sops(bytes: &[u8]) -> bool {
    // Most files do not hold the word, and reading all of them again would take as long as the build.
    if !bytes.windows(5).any(|word| word == b"sops:") {
        return false;
    }
    let (read, _) = read_objects(&mut SourceMap::new(), vec![(String::new(), bytes.to_vec())]);
    read.objects.iter().any(|object| object.value.get("sops").is_some())
}
