//! Sizes, counts and limits.

use super::check::Check;
use super::reserved::MOST_PODS;
use crate::diag::codes::spec as codes;
use crate::diag::{Diagnostic, Span};
use crate::model::kubernetes::Feature;

pub(super) fn check(check: &mut Check<'_>) {
    sizes(check);
    let spec = check.spec;
    if let Some(tasks) = &spec.tasks {
        let help = "0 asks for nodes instead of tasks; the default is 1";
        range(check, "tasks", i64::from(tasks.value), tasks.span, 0, i64::from(i32::MAX), help);
    }
    if let Some(deadline) = &spec.deadline_seconds {
        let help = "leave it out for the default, about a year";
        range(check, "deadlineSeconds", deadline.value, deadline.span, 0, i64::MAX, help);
        if deadline.value == 0 {
            let message = "deadlineSeconds 0 makes the Job fail as soon as it starts";
            check.warn(codes::DEADLINE_ZERO, deadline.span, message, "leave it out for no practical limit");
        }
    }
    backoff_limit(check);
    restart_policy(check);
    if let Some(level) = check.flux().and_then(|flux| flux.log_level.as_ref()) {
        let help = "syslog levels run from 0 (emergencies) to 7 (debugging); the default is 6";
        range(check, "logLevel", i64::from(level.value), level.span, 0, 7, help);
    }
    for place in check.all_containers() {
        if let Some(cores) = &place.container.cores {
            let help = "0 or nothing takes the cores from the CPU limit";
            range(check, "cores", i64::from(cores.value), cores.span, 0, i64::from(i32::MAX), help);
        }
        for user in [&place.container.flux_user, &place.container.fluxuser].into_iter().flatten() {
            if let Some(uid) = &user.value.uid {
                let help = "user ids run from 0 to 2147483647";
                range(check, "uid", uid.value, uid.span, 0, i64::from(i32::MAX), help);
            }
        }
    }
}

fn range(check: &mut Check<'_>, what: &str, value: i64, span: Span, least: i64, most: i64, help: &str) {
    if value < least {
        check.error(codes::NUMBER_RANGE, span, format!("{what} {value} is less than {least}"), help);
    } else if value > most {
        check.error(codes::NUMBER_RANGE, span, format!("{what} {value} is more than {most}"), help);
    }
}

fn sizes(check: &mut Check<'_>) {
    let spec = check.spec;
    let most = i64::from(MOST_PODS);
    if let Some(size) = &spec.size {
        if size.value == 0 {
            let help = "set `size` to 1 or more, or remove the document";
            check.error(codes::SIZE_ZERO, size.span, "size 0: the cluster would have no pods", help);
        } else {
            range(check, "size", i64::from(size.value), size.span, 1, most, "an Indexed Job has 1 to 100000 pods");
        }
    }
    // 0 is what the operator stores for a field left out, so it means that here too.
    if let Some(max_size) = spec.max_size.as_ref().filter(|max| max.value != 0) {
        let help = "leave it out for a cluster that is never resized";
        range(check, "maxSize", i64::from(max_size.value), max_size.span, 1, most, help);
        if (1..check.size()).contains(&max_size.value) {
            let message = format!("maxSize {} is less than size {}", max_size.value, check.size());
            let mut diagnostic = Diagnostic::error(codes::SIZE_ORDER, max_size.span, message)
                .help(format!("raise maxSize to {} or more, or leave it out", check.size()));
            if let Some(size) = &spec.size {
                diagnostic = diagnostic.related(size.span, "size");
            }
            check.push(diagnostic);
        }
    }
    let Some(min_size) = spec.min_size.as_ref().filter(|min| min.value != 0) else { return };
    range(check, "minSize", i64::from(min_size.value), min_size.span, 1, most, "leave it out to wait for all pods");
    if min_size.value > check.max_size().max(check.size()) {
        let message = format!("minSize {} is more than the cluster can have, {}", min_size.value, check.max_size());
        let help = format!("lower minSize to {} or less", check.size());
        check.error(codes::SIZE_ORDER, min_size.span, message, help);
    } else if min_size.value > check.size() {
        let message =
            format!("minSize {} is more than size {}: work would wait for a resize", min_size.value, check.size());
        let help = format!("lower minSize to {} or raise size", check.size());
        check.error(codes::QUORUM_ABOVE_SIZE, min_size.span, message, help);
    }
}

fn backoff_limit(check: &mut Check<'_>) {
    let Some(limit) = &check.spec.backoff_limit else { return };
    let help = "leave it out for a Job that ends with its first failure";
    range(check, "backoffLimit", i64::from(limit.value), limit.span, 0, i64::from(i32::MAX), help);
    let target = check.context.kubernetes;
    if limit.value > 0 && !target.has(Feature::SuccessPolicy) && check.max_size() > 1 {
        let message = format!("backoffLimit {} cannot work on Kubernetes {target} with more than one pod", limit.value);
        let help = format!("leave backoffLimit out, or {}", Feature::SuccessPolicy.help());
        check.error(codes::BACKOFF_LIMIT, limit.span, message, help);
    }
}

fn restart_policy(check: &mut Check<'_>) {
    let policy = check.spec.pod.as_ref().and_then(|pod| pod.value.restart_policy.as_ref());
    if let Some(policy) = policy.filter(|policy| policy.value == "OnFailure") {
        let message = "restartPolicy OnFailure restarts containers in place and leaves out the pod failure policy";
        check.push(Diagnostic::note(codes::RESTART_ON_FAILURE, policy.span, message));
    }
}
