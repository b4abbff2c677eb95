//! Which Jobs and Pods a change makes anew, and what the cluster's strategy makes of that.

mod texts;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::report::{Remark, plural};
use super::sources::shown;
use super::ui::Ui;
use crate::bundle::FileTree;
use crate::bundle::files::{Disk, Files};
use crate::bundle::report::FileError;
use crate::compile::CompiledCluster;
use crate::diag::SourceMap;
use crate::diag::codes::strategy::JOB_CHANGE;
use crate::model::rollout::{GitOps, JobStrategy, Rollout};
use crate::object::immutable::refused_changes;
use crate::spec::{ReadOptions, read};

/// Kinds that cannot be changed in place, as file names begin with them.
const KINDS: [(&str, &str); 2] = [("job", "Job"), ("pod", "Pod")];
/// Paths that are told of one object, and objects of one line.
const MOST_PATHS: usize = 2;
const MOST_OBJECTS: usize = 20;

/// How each cluster (namespace, name) treats a change.
pub(crate) type Rollouts = BTreeMap<(Option<String>, String), Rollout>;

/// The rollouts of compiled clusters.
pub(crate) fn rollouts(clusters: &[CompiledCluster]) -> Rollouts {
    let of = |c: &CompiledCluster| ((c.cluster.namespace.clone(), c.cluster.minicluster.clone()), c.cluster.rollout);
    clusters.iter().map(of).collect()
}

/// What becomes of a Job or Pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    /// The API server refuses the change.
    Refused,
    /// The GitOps tool deletes the old one and makes the new one.
    Replaced,
    /// Nobody but `kubectl apply --force` does.
    ReplacedByHand,
    /// It runs at every sync.
    RunsAgain,
    /// The API server refuses the change, and there is no need for a new run.
    SameRun,
    /// The tool does not touch what is there.
    LeftAlone,
    /// It has another name.
    New,
}

/// One Job or Pod that the output would have anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    kind: &'static str,
    /// `namespace/name`.
    title: String,
    /// Name of the one before, if it differs.
    before: Option<String>,
    paths: Vec<String>,
    effect: Effect,
    keeps_old: bool,
    file: String,
}

/// Jobs and Pods that exist in the output and would have to be others.
///
/// # Errors
/// When a file of the output cannot be read.
pub(crate) fn changes(output: &Path, tree: &FileTree, rollouts: &Rollouts) -> Result<Vec<Change>, FileError> {
    let mut found = Vec::new();
    for (folder, content) in &tree.folders {
        let Some(name) = content.index.name.clone() else { continue };
        let Some(rollout) = rollouts.get(&(content.index.namespace.clone(), name)) else { continue };
        let place = output.join(folder);
        for (file, new) in &content.files {
            let Some(kind) = kind_of(file) else { continue };
            let path = place.join(file);
            let Some(old) = read_file(&path)?.filter(|old| old != new) else { continue };
            // A file that holds no object any more was edited; the comparison of files says so.
            let (Some(old), Some(new)) = (object(old), object(new.clone())) else { continue };
            let namespace = folder.split('/').next().unwrap_or_default();
            let Some(mut change) = change(kind, namespace, &old, &new, rollout) else { continue };
            texts::name_them(&mut change.paths, &old, &new, &place, content)?;
            found.push(Change { file: shown(&path), ..change });
        }
    }
    Ok(found)
}

fn read_file(path: &Path) -> Result<Option<Vec<u8>>, FileError> {
    Disk.read(path).map_err(|source| FileError { action: "read", path: path.to_owned(), source })
}

fn kind_of(file: &str) -> Option<&'static str> {
    let front = file.split(['-', '.']).next().unwrap_or_default();
    KINDS.iter().find(|(prefix, _)| *prefix == front).map(|(_, kind)| *kind)
}

/// The one object of a file.
fn object(bytes: Vec<u8>) -> Option<Value> {
    let inputs = vec![(String::new(), bytes)];
    let (documents, _) = read(&mut SourceMap::new(), inputs, &ReadOptions::default());
    documents.companions.into_iter().next().map(|document| document.value)
}

fn change(kind: &'static str, namespace: &str, old: &Value, new: &Value, rollout: &Rollout) -> Option<Change> {
    let name = |value: &Value| value.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let (before, now) = (name(old), name(new));
    let paths = refused_changes(old, new);
    let renamed = before != now;
    if !renamed && paths.is_empty() {
        return None;
    }
    Some(Change {
        kind,
        title: format!("{namespace}/{now}"),
        before: renamed.then_some(before),
        paths,
        effect: if renamed { Effect::New } else { effect(kind, rollout) },
        keeps_old: rollout.keep_old && rollout.strategy == JobStrategy::RunOnce,
        file: String::new(),
    })
}

fn effect(kind: &str, rollout: &Rollout) -> Effect {
    match (rollout.strategy, rollout.gitops) {
        (JobStrategy::Stable | JobStrategy::Service, _) => Effect::Refused,
        (JobStrategy::Recreate | JobStrategy::Hook, GitOps::Neither) => Effect::ReplacedByHand,
        (JobStrategy::Hook, _) if kind == "Job" => Effect::RunsAgain,
        (JobStrategy::Recreate | JobStrategy::Hook, _) => Effect::Replaced,
        (JobStrategy::RunOnce, GitOps::FluxCd) => Effect::LeftAlone,
        (JobStrategy::RunOnce, _) => Effect::SameRun,
    }
}

impl Change {
    /// `hpc/lammps (spec.template.spec.containers[0].image and 3 more)`.
    fn item(&self) -> String {
        if let Some(before) = &self.before {
            return format!("{} (before: {before})", self.title);
        }
        let told = self.paths.iter().take(MOST_PATHS).cloned().collect::<Vec<_>>().join(", ");
        match self.paths.len().saturating_sub(MOST_PATHS) {
            0 => format!("{} ({told})", self.title),
            more => format!("{} ({told} and {more} more)", self.title),
        }
    }

    /// What follows for several of them.
    fn advice(&self, one: bool) -> String {
        let kind = self.kind;
        let (it, old) = if one { ("it", format!("the old {kind}")) } else { ("them", format!("the old {kind}s")) };
        match self.effect {
            Effect::Refused => format!(
                "the change will be refused at sync: delete {old} before, or set `strategy` to recreate or run-once"
            ),
            Effect::SameRun => {
                format!(
                    "what runs has not changed, so the name stays and the change will be refused: delete {old} to run {it} again"
                )
            }
            Effect::Replaced => format!("Argo CD or Flux CD deletes {old} and makes {it} anew"),
            Effect::ReplacedByHand => "apply with `kubectl apply --force`, because `gitops` is `none`".to_owned(),
            Effect::RunsAgain => format!("Argo CD runs {it} at every sync"),
            Effect::LeftAlone => format!("the run is there already: Flux CD does not touch {old}"),
            Effect::New if self.keeps_old => format!("{old} stays"),
            Effect::New => format!("pruning deletes {old}"),
        }
    }

    fn remark(&self) -> Remark {
        let message = match self.effect {
            Effect::New => format!("new {} {}", self.kind, self.item()),
            _ => format!("recreates {} {}: {}", self.kind, self.title, self.paths.join(", ")),
        };
        Remark { code: JOB_CHANGE, message, help: Some(self.advice(true)), file: self.file.clone() }
    }
}

/// Says which Jobs and Pods would be made anew, why, and what becomes of them.
pub(crate) fn say(changes: &[Change], ui: &Ui) {
    let remarks: Vec<Remark> = changes.iter().map(Change::remark).collect();
    ui.remarks(&remarks, &summary(changes));
}

/// One line for each effect and kind: `recreates 2 Jobs: …; …`.
fn summary(changes: &[Change]) -> Vec<String> {
    let mut groups: BTreeMap<(Effect, bool, &str), Vec<&Change>> = BTreeMap::new();
    for change in changes {
        groups.entry((change.effect, change.keeps_old, change.kind)).or_default().push(change);
    }
    groups.into_values().filter_map(|group| line(&group)).collect()
}

fn line(group: &[&Change]) -> Option<String> {
    let first = group.first()?;
    let mut items: Vec<String> = group.iter().take(MOST_OBJECTS).map(|change| change.item()).collect();
    if let Some(more) = group.len().checked_sub(MOST_OBJECTS).filter(|more| *more > 0) {
        items.push(format!("and {more} more"));
    }
    let count = match first.effect {
        Effect::New => plural(group.len(), &format!("new {}", first.kind)),
        _ => format!("recreates {}", plural(group.len(), first.kind)),
    };
    Some(format!("{count}: {}; {}", items.join(", "), first.advice(group.len() == 1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rollout(strategy: JobStrategy, gitops: GitOps) -> Rollout {
        Rollout { strategy, gitops, keep_old: true, unending: false }
    }

    fn job(name: &str, image: &str, completions: u8) -> Value {
        json!({"kind": "Job", "metadata": {"name": name}, "spec": {
            "completionMode": "Indexed", "completions": completions, "parallelism": completions,
            "template": {"spec": {"containers": [{"image": image}]}},
        }})
    }

    fn lines(strategy: JobStrategy, gitops: GitOps, old: &Value, new: &Value) -> Vec<String> {
        let change = change("Job", "hpc", old, new, &rollout(strategy, gitops));
        summary(&change.into_iter().collect::<Vec<_>>())
    }

    #[test]
    fn each_strategy_says_what_becomes_of_a_changed_job() {
        use GitOps::{ArgoCd, Both, FluxCd, Neither};
        use JobStrategy::{Hook, Recreate, RunOnce, Service, Stable};
        let (old, new) = (job("a", "x", 1), job("a", "y", 1));
        for (strategy, gitops, end) in [
            (
                Stable,
                Both,
                "the change will be refused at sync: delete the old Job before, or set `strategy` to recreate or run-once",
            ),
            (
                Service,
                FluxCd,
                "the change will be refused at sync: delete the old Job before, or set `strategy` to recreate or run-once",
            ),
            (Recreate, Both, "Argo CD or Flux CD deletes the old Job and makes it anew"),
            (Recreate, Neither, "apply with `kubectl apply --force`, because `gitops` is `none`"),
            (Hook, ArgoCd, "Argo CD runs it at every sync"),
            (
                RunOnce,
                Both,
                "what runs has not changed, so the name stays and the change will be refused: delete the old Job to run it again",
            ),
            (RunOnce, FluxCd, "the run is there already: Flux CD does not touch the old Job"),
        ] {
            let told = lines(strategy, gitops, &old, &new);
            let head = "recreates 1 Job: hpc/a (spec.template.spec.containers[0].image); ";
            assert_eq!(told, [format!("{head}{end}")], "{strategy:?} {gitops:?}");
        }
        let renamed = lines(RunOnce, ArgoCd, &old, &job("a-1", "y", 1));
        assert_eq!(renamed, ["1 new Job: hpc/a-1 (before: a); the old Job stays"]);
        assert!(lines(Stable, Both, &old, &job("a", "x", 3)).is_empty(), "a resize recreates nothing");
        assert!(lines(Stable, Both, &old, &old).is_empty());
    }

    #[test]
    fn several_are_counted_and_their_paths_cut() {
        let one = Change {
            kind: "Job",
            title: "hpc/a".to_owned(),
            before: None,
            paths: ["a", "b", "c", "d"].map(str::to_owned).to_vec(),
            effect: Effect::Replaced,
            keeps_old: false,
            file: "x".to_owned(),
        };
        let pod =
            Change { kind: "Pod", title: "hpc/a-services".to_owned(), paths: vec!["p".to_owned()], ..one.clone() };
        let told = summary(&[one.clone(), pod.clone(), Change { title: "hpc/b".to_owned(), ..one.clone() }]);
        assert_eq!(
            told,
            [
                "recreates 2 Jobs: hpc/a (a, b and 2 more), hpc/b (a, b and 2 more); \
                 Argo CD or Flux CD deletes the old Jobs and makes them anew",
                "recreates 1 Pod: hpc/a-services (p); Argo CD or Flux CD deletes the old Pod and makes it anew",
            ]
        );
        let remark = pod.remark();
        assert_eq!((remark.code.id, remark.message.as_str()), ("FG346", "recreates Pod hpc/a-services: p"));
        let many = summary(&vec![one; 23]);
        assert!(many[0].starts_with("recreates 23 Jobs: ") && many[0].contains(", and 3 more; "), "{many:?}");
    }

    #[test]
    fn files_with_jobs_and_pods_are_told_by_their_names() {
        assert_eq!(kind_of("job.yaml"), Some("Job"));
        assert_eq!(kind_of("pod-services.yaml"), Some("Pod"));
        assert_eq!(kind_of("podmonitor-a.yaml"), None);
        assert_eq!(kind_of("configmap-job.yaml"), None);
    }
}
