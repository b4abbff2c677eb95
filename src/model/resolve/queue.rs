//! What the queue settings put on the Job, and what contradicts them.

use super::written::{number, text};
use crate::diag::codes::queue as codes;
use crate::diag::{Diagnostic, Diagnostics, Span};
use crate::model::queue::{
    COMPLETIONS_FOLLOW, ELASTIC_JOB, MIN_PARALLELISM, PREFERRED_TOPOLOGY, PRIORITY_LABEL, QUEUE_LABEL, QueueAdmission,
    QueueTopology, Queueing, REQUIRED_TOPOLOGY, UNCONSTRAINED_TOPOLOGY,
};
use crate::model::settings::Settings;
use crate::model::{Program, Size};
use crate::spec::{Map, MiniCluster, Spanned};

/// Resolves the queue of a cluster.
pub(super) fn queueing(
    spec: &MiniCluster,
    size: Size,
    program: &Program,
    settings: &Settings,
    found: &mut Diagnostics,
) -> Queueing {
    let mut queueing = Queueing { queue: by_label(spec), ..Queueing::default() };
    two_ways(spec, settings, found);
    let span = spec.metadata.name.as_ref().map_or(spec.span, |name| name.span);
    let Some(queue) = &settings.queue else {
        alone(span, settings, found);
        return queueing;
    };
    queueing.queue = Some(queue.name().to_owned());
    queueing.labels.insert(QUEUE_LABEL.to_owned(), queue.name().to_owned());
    queueing.labels.extend(settings.queue_priority.0.clone().map(|class| (PRIORITY_LABEL.to_owned(), class)));
    if let Some(topology) = &settings.queue_topology {
        let (key, value) = topology.annotation();
        queueing.pod_annotations.insert(key.to_owned(), value.to_owned());
    }
    match settings.queue_admission {
        QueueAdmission::Whole => {}
        QueueAdmission::Partial => partial(spec, size, program, &mut queueing, found),
        QueueAdmission::Elastic => elastic(spec, size, settings, &mut queueing, found),
    }
    if let Some(services) = spec.spec.services.as_ref().filter(|services| !services.value.is_empty()) {
        let message = format!("the Pod of `services` does not wait in queue `{}`", queue.name());
        found.push(Diagnostic::note(codes::SERVICES_NOT_QUEUED, services.span, message));
    }
    queueing
}

/// The queue that a label of the user names.
fn by_label(spec: &MiniCluster) -> Option<String> {
    let label = spec.spec.job_labels.as_ref().and_then(|labels| labels.value.get(QUEUE_LABEL))?;
    Some(label.value.clone())
}

/// A label or annotation that says what a setting says.
fn two_ways(spec: &MiniCluster, settings: &Settings, found: &mut Diagnostics) {
    let labels = spec.spec.job_labels.as_ref();
    let annotations = spec.spec.pod.as_ref().and_then(|pod| pod.annotations.as_ref());
    let topology = settings.queue_topology.is_some();
    for (map, key, set, setting) in [
        (labels, QUEUE_LABEL, settings.queue.is_some(), "queue"),
        (labels, PRIORITY_LABEL, settings.queue_priority.0.is_some(), "queue-priority"),
        (annotations, REQUIRED_TOPOLOGY, topology, "queue-topology"),
        (annotations, PREFERRED_TOPOLOGY, topology, "queue-topology"),
        (annotations, UNCONSTRAINED_TOPOLOGY, topology, "queue-topology"),
    ] {
        if let (true, Some(span)) = (set, key_span(map, key)) {
            let message = format!("`{key}` and the setting `{setting}` say the same thing");
            found.push(
                Diagnostic::error(codes::QUEUE_TWICE, span, message)
                    .help(format!("remove `{key}` here, or do not set `{setting}`")),
            );
        }
    }
}

fn key_span(map: Option<&Spanned<Map<String>>>, key: &str) -> Option<Span> {
    map.into_iter().flat_map(|map| map.value.iter()).find(|entry| entry.key.value == key).map(|entry| entry.key.span)
}

/// Settings that only mean something to a queue.
fn alone(span: Span, settings: &Settings, found: &mut Diagnostics) {
    for (setting, set) in [
        ("queue-priority", settings.queue_priority.0.is_some()),
        ("queue-topology", settings.queue_topology.is_some()),
        ("queue-admission", settings.queue_admission != QueueAdmission::Whole),
    ] {
        if set {
            let message = format!("the setting `{setting}` has no effect without the setting `queue`");
            found.push(
                Diagnostic::warning(codes::QUEUE_MISSING, span, message)
                    .help(format!("set `queue: kueue/<name>`, or remove `{setting}`")),
            );
        }
    }
}

/// Kueue wants the least number to be below the whole one.
fn partial(spec: &MiniCluster, size: Size, program: &Program, queueing: &mut Queueing, found: &mut Diagnostics) {
    let least = number(&spec.spec.min_size).filter(|least| (1..size.pods).contains(least));
    let Some(least) = least else {
        let written = spec.spec.min_size.as_ref().or(spec.spec.size.as_ref());
        let span = written.map_or(spec.span, |number| number.span);
        let message = format!("partial admission needs a `minSize` from 1 to {}", size.pods.saturating_sub(1));
        let help = "write `minSize` below `size`, or `queue-admission: whole`";
        found.push(Diagnostic::error(codes::PARTIAL_ADMISSION, span, message).help(help));
        return;
    };
    if let Program::Submit(submission) | Program::Batch { submission, .. } = program
        && submission.nodes.iter().any(|word| word == "-N")
    {
        let span = spec.spec.tasks.as_ref().or(spec.spec.size.as_ref()).map_or(spec.span, |number| number.span);
        let message =
            format!("the command asks Flux for {} nodes and waits for ever when the queue admits fewer", size.pods);
        let help = "write fewer `tasks` than `size`, `launcher: true` for a command that looks how many nodes there \
                    are, or `queue-admission: whole`";
        found.push(Diagnostic::error(codes::PARTIAL_ADMISSION, span, message).help(help));
    }
    queueing.least = Some(least);
    queueing.annotations.insert(MIN_PARALLELISM.to_owned(), least.to_string());
    // Indexes that nobody admitted would otherwise be started one after the other when followers end.
    queueing.annotations.insert(COMPLETIONS_FOLLOW.to_owned(), "true".to_owned());
}

fn elastic(spec: &MiniCluster, size: Size, settings: &Settings, queueing: &mut Queueing, found: &mut Diagnostics) {
    let span = spec.metadata.name.as_ref().map_or(spec.span, |name| name.span);
    if !size.elastic {
        let message =
            format!("`{}` has no `maxSize`, so its size cannot change", text(&spec.metadata.name).unwrap_or_default());
        found.push(
            Diagnostic::error(codes::ELASTIC_ADMISSION, span, message)
                .help("write `maxSize`, or `queue-admission: whole`"),
        );
    }
    if let Some(QueueTopology::Required(level) | QueueTopology::Preferred(level)) = &settings.queue_topology {
        let message = format!("elastic admission does not go with the topology level `{level}`");
        found.push(
            Diagnostic::error(codes::ELASTIC_ADMISSION, span, message)
                .help("remove `queue-topology`, or use `queue-admission: whole`"),
        );
    }
    queueing.annotations.insert(ELASTIC_JOB.to_owned(), "true".to_owned());
}
