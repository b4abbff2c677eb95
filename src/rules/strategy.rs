//! Rules on finished objects that follow from the strategy and the GitOps tool.

use k8s_openapi::api::batch::v1::Job;

use crate::diag::codes::strategy as codes;
use crate::diag::{Diagnostic, Diagnostics, Span};
use crate::model::queue::QUEUE_LABEL;
use crate::model::rollout::{JobStrategy, Rollout};
use crate::object::Object;

/// What does not go together with the strategy in one cluster's objects, patches included.
#[must_use]
pub fn check(rollout: &Rollout, objects: &[Object], span: Span) -> Diagnostics {
    let mut found = Diagnostics::new();
    for object in objects {
        let Object::Job(job) = object else { continue };
        queue(rollout, job, span, &mut found);
        time_to_live(rollout, job, span, &mut found);
    }
    found
}

fn queue(rollout: &Rollout, job: &Job, span: Span, found: &mut Diagnostics) {
    let queued = job.metadata.labels.as_ref().and_then(|labels| labels.get(QUEUE_LABEL));
    if let Some(queue) = queued.filter(|_| rollout.strategy == JobStrategy::Hook) {
        let message =
            format!("`strategy: hook` for a Job in Kueue's queue `{queue}`: Argo CD cannot tell when it ends");
        found.push(
            Diagnostic::error(codes::HOOK_AND_QUEUE, span, message)
                .help("use `strategy: run-once` or `recreate`, or take the Job out of the queue"),
        );
    }
}

fn time_to_live(rollout: &Rollout, job: &Job, span: Span, found: &mut Diagnostics) {
    let Some(seconds) = job.spec.as_ref().and_then(|spec| spec.ttl_seconds_after_finished) else { return };
    let Rollout { strategy, gitops, .. } = *rollout;
    let (again, help) = match (strategy, gitops.argo_cd(), gitops.flux_cd()) {
        (_, false, false) => return,
        (JobStrategy::Hook, true, false) if seconds > 0 => return,
        (JobStrategy::Hook, true, false) => (
            "Argo CD would never see the hook finished",
            "use a minute or more, or none: the next sync deletes the finished Job",
        ),
        _ => (
            "the GitOps tool would make the deleted Job again, and it would run again and again",
            "leave it out; with `gitops: none`, where nobody makes the Job again, it may be set",
        ),
    };
    let message = format!("ttlSecondsAfterFinished {seconds} with `gitops: {}`: {again}", gitops.word());
    found.push(Diagnostic::error(codes::TTL_AND_GITOPS, span, message).help(help));
}
