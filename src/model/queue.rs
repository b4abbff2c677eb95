//! Queues: what the settings `queue…` may say, and what a queue wants on the Job. Values are those of Kueue 0.19
//! (`site/content/en/docs/reference/labels-and-annotations.md`).

use std::collections::BTreeMap;

use serde::Serialize;

/// The label by which Kueue finds the Jobs of a `LocalQueue`.
pub const QUEUE_LABEL: &str = "kueue.x-k8s.io/queue-name";
/// The label that names a `WorkloadPriorityClass`.
pub const PRIORITY_LABEL: &str = "kueue.x-k8s.io/priority-class";
/// Job annotation: fewest pods that may be admitted.
pub const MIN_PARALLELISM: &str = "kueue.x-k8s.io/job-min-parallelism";
/// Job annotation: `completions` follow `parallelism` when fewer pods are admitted.
pub const COMPLETIONS_FOLLOW: &str = "kueue.x-k8s.io/job-completions-equal-parallelism";
/// Job annotation: the number of pods may change while it runs.
pub const ELASTIC_JOB: &str = "kueue.x-k8s.io/elastic-job";
/// Pod annotation: all pods in one domain of this level.
pub const REQUIRED_TOPOLOGY: &str = "kueue.x-k8s.io/podset-required-topology";
/// Pod annotation: all pods in one domain of this level, if there is room.
pub const PREFERRED_TOPOLOGY: &str = "kueue.x-k8s.io/podset-preferred-topology";
/// Pod annotation: pods anywhere, counted by node.
pub const UNCONSTRAINED_TOPOLOGY: &str = "kueue.x-k8s.io/podset-unconstrained-topology";

/// Longest label value, and so longest name of a queue (Kubernetes `validation.LabelValueMaxLength`).
const LONGEST: usize = 63;

/// A queue, as the setting `queue` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Queue {
    /// A `LocalQueue` of Kueue in the cluster's namespace.
    Kueue(String),
}

impl Queue {
    /// Reads `kueue/<name>`.
    ///
    /// # Errors
    /// What to write instead.
    pub fn read(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some(("kueue", name)) if is_name(name) => Ok(Self::Kueue(name.to_owned())),
            Some(("kueue", _)) => Err(format!(
                "the name of a LocalQueue holds lower-case letters, digits, `-` and `.`, at most {LONGEST} of them"
            )),
            Some(("volcano", _)) => {
                Err("flux-gen writes for Kueue only; for Volcano set `pod.schedulerName: volcano` \
                 and the annotation `scheduling.volcano.sh/queue-name` under `pod.annotations`"
                    .to_owned())
            }
            Some((other, _)) => Err(format!("there is no queue system `{other}`: write kueue/<name of a LocalQueue>")),
            None => Err(format!("name the queue system too: kueue/{text}")),
        }
    }

    /// Name of the queue.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Kueue(name) => name,
        }
    }
}

/// A name that is both a DNS subdomain and a label value.
pub(crate) fn is_name(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let part =
        |part: &str| !part.is_empty() && part.chars().all(inner) && !part.starts_with('-') && !part.ends_with('-');
    text.len() <= LONGEST && text.split('.').all(part)
}

/// Where in the network the pods of a cluster may be, as the setting `queue-topology` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueTopology {
    /// All in one domain of this level (a node label), or not at all.
    Required(String),
    /// All in one domain of this level, or as near as there is room.
    Preferred(String),
    /// Anywhere; Kueue counts by node.
    Unconstrained,
}

impl QueueTopology {
    /// Reads `required:LEVEL`, `preferred:LEVEL`, `unconstrained`.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let level = |level: &str| is_level(level).then(|| level.to_owned());
        match text.split_once(':') {
            None if text == "unconstrained" => Some(Self::Unconstrained),
            Some(("required", key)) => level(key).map(Self::Required),
            Some(("preferred", key)) => level(key).map(Self::Preferred),
            _ => None,
        }
    }

    /// The annotation of pods that says it.
    #[must_use]
    pub fn annotation(&self) -> (&'static str, &str) {
        match self {
            Self::Required(level) => (REQUIRED_TOPOLOGY, level),
            Self::Preferred(level) => (PREFERRED_TOPOLOGY, level),
            Self::Unconstrained => (UNCONSTRAINED_TOPOLOGY, "true"),
        }
    }
}

/// The key of a node label: `topology.kubernetes.io/zone`.
fn is_level(key: &str) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let ends = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric()) && text.ends_with(|c: char| c.is_ascii_alphanumeric())
    };
    let name = |text: &str| text.len() <= LONGEST && text.chars().all(good) && ends(text);
    match key.split_once('/') {
        Some((domain, rest)) => domain.len() <= 253 && domain.split('.').all(is_name) && name(rest),
        None => name(key),
    }
}

/// How many of a cluster's pods a queue may admit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueAdmission {
    /// All or none.
    Whole,
    /// At least `minSize` of them.
    Partial,
    /// All or none at first; later their number may change.
    Elastic,
}

/// What a queue wants in the Job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Queueing {
    /// Name of the queue, from the setting or from a label that the user wrote.
    #[serde(skip)]
    pub queue: Option<String>,
    /// Fewest pods that may be admitted, where that may be fewer than all.
    #[serde(skip)]
    pub least: Option<u32>,
    /// Labels of the Job.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the Job.
    pub annotations: BTreeMap<String, String>,
    /// Annotations of its pod template.
    pub pod_annotations: BTreeMap<String, String>,
}

impl Queueing {
    /// Whether it puts nothing on the Job.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        self.labels.is_empty() && self.annotations.is_empty() && self.pod_annotations.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_read_or_refused_with_advice() {
        assert_eq!(Queue::read("kueue/hpc"), Ok(Queue::Kueue("hpc".to_owned())));
        assert_eq!(Queue::read("kueue/a.b-c").map(|q| q.name().to_owned()), Ok("a.b-c".to_owned()));
        for (text, advice) in [
            ("hpc", "kueue/hpc"),
            ("kueue/", "LocalQueue holds"),
            ("kueue/A", "LocalQueue holds"),
            ("kueue/a_b", "LocalQueue holds"),
            ("kueue/a/b", "LocalQueue holds"),
            (&format!("kueue/{}", "a".repeat(64)), "at most 63"),
            ("volcano/x", "pod.schedulerName: volcano"),
            ("slurm/x", "no queue system `slurm`"),
        ] {
            let refused = Queue::read(text).unwrap_err();
            assert!(refused.contains(advice), "{text}: {refused}");
        }
    }

    #[test]
    fn topologies_are_read_or_refused() {
        for (text, annotation) in [
            (
                "required:cloud.provider.com/topology-rack",
                Some((REQUIRED_TOPOLOGY, "cloud.provider.com/topology-rack")),
            ),
            ("preferred:kubernetes.io/hostname", Some((PREFERRED_TOPOLOGY, "kubernetes.io/hostname"))),
            ("unconstrained", Some((UNCONSTRAINED_TOPOLOGY, "true"))),
            ("required", None),
            ("required:", None),
            ("required:a b", None),
            ("required:/a", None),
            ("unconstrained:rack", None),
            ("rack", None),
        ] {
            let read = QueueTopology::read(text);
            assert_eq!(read.as_ref().map(QueueTopology::annotation), annotation, "{text}");
        }
    }
}
