//! Jobs (`pkg/apis/batch/validation`).

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::{
    JobSpec, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyOnPodConditionsPattern, PodFailurePolicyRule,
    SuccessPolicy,
};

use super::check::{Check, Path};
use super::meta;
use super::pod::{self, Kind};
use crate::model::kubernetes::Feature;
use crate::rules::syntax;

const MOST: i64 = i32::MAX as i64;
/// Most pods of an Indexed Job at a time.
const MOST_PARALLEL: i64 = 100_000;
/// Most rules of a policy.
const MOST_RULES: usize = 20;
/// Most exit codes or conditions of a rule.
const MOST_EXIT_CODES: usize = 255;
/// Longest list of indexes.
const MOST_INDEX_BYTES: usize = 64 * 1024;

pub(super) fn job(check: &mut Check, at: &Path, name: &str, job: &JobSpec) {
    let indexed = job.completion_mode.as_deref() == Some("Indexed");
    numbers(check, at, job);
    check.optional_word(&at.key("completionMode"), job.completion_mode.as_ref(), &["NonIndexed", "Indexed"]);
    if indexed {
        self::indexed(check, at, name, job);
    }
    per_index(check, at, job, indexed);
    success_policy(check, at, job, indexed);
    failure_policy(check, at, job);
    replacement(check, at, job);
    if let Some(manager) = job.managed_by.as_ref() {
        let at = at.key("managedBy");
        check.since(&at, Feature::ManagedBy, true);
        match manager.split_once('/') {
            Some(_) if manager.len() <= 63 => check.form(&at, manager, syntax::qualified_name),
            _ => check.problem(&at, format!("`{manager}` must be domain/name of at most 63 characters")),
        }
    }
    if let Some(selector) = &job.selector {
        meta::selector(check, &at.key("selector"), selector);
        if job.manual_selector != Some(true) {
            check.problem(&at.key("selector"), "is made by the API server unless manualSelector is true");
        }
    }
    let template = at.key("template");
    if let Some(metadata) = &job.template.metadata {
        meta::metadata(check, &template.key("metadata"), metadata);
    }
    match &job.template.spec {
        Some(spec) => {
            let at = template.key("spec");
            pod::pod(check, &at, spec, Kind::JobTemplate);
            if indexed {
                broker_names(check, &at, spec);
            }
        }
        None => check.required(&template.key("spec")),
    }
}

fn numbers(check: &mut Check, at: &Path, job: &JobSpec) {
    for (field, number) in [
        ("parallelism", job.parallelism),
        ("completions", job.completions),
        ("backoffLimit", job.backoff_limit),
        ("ttlSecondsAfterFinished", job.ttl_seconds_after_finished),
    ] {
        check.optional_range(&at.key(field), number, 0, MOST);
    }
    check.optional_range(&at.key("activeDeadlineSeconds"), job.active_deadline_seconds, 0, i64::MAX);
}

fn indexed(check: &mut Check, at: &Path, name: &str, job: &JobSpec) {
    let Some(completions) = job.completions else {
        check.required(&at.key("completions"));
        return;
    };
    check.optional_range(&at.key("parallelism"), job.parallelism, 0, MOST_PARALLEL);
    if completions > 0 {
        let host = format!("{name}-{}", completions - 1);
        if let Err(wrong) = syntax::dns1123_label(&host) {
            let message = format!("the last pod would have the host name `{host}`: {wrong}");
            check.problem(&Path::root("metadata").key("name"), message);
        }
    }
}

/// Not a rule of the API server: brokers find themselves by the host names `<job>-<index>`.
fn broker_names(check: &mut Check, at: &Path, pod: &k8s_openapi::api::core::v1::PodSpec) {
    if pod.host_network == Some(true) {
        let message = "gives pods the names of their nodes, so brokers do not find themselves";
        check.problem(&at.key("hostNetwork"), message);
    }
    if pod.set_hostname_as_fqdn == Some(true) {
        let message = "gives pods long names, so brokers do not find themselves";
        check.problem(&at.key("setHostnameAsFQDN"), message);
    }
    for (field, name) in [("hostname", &pod.hostname), ("hostnameOverride", &pod.hostname_override)] {
        if name.as_ref().is_some_and(|name| !name.is_empty()) {
            check.problem(&at.key(field), "gives every pod one name, so brokers do not find themselves");
        }
    }
}

fn per_index(check: &mut Check, at: &Path, job: &JobSpec, indexed: bool) {
    let limit = at.key("backoffLimitPerIndex");
    check.since(&limit, Feature::BackoffLimitPerIndex, job.backoff_limit_per_index.is_some());
    check.optional_range(&limit, job.backoff_limit_per_index, 0, MOST);
    if job.backoff_limit_per_index.is_some() && !indexed {
        check.problem(&limit, "needs completionMode Indexed");
    }
    let failed = at.key("maxFailedIndexes");
    let Some(most) = job.max_failed_indexes else { return };
    check.range(&failed, most, 0, job.completions.map_or(MOST, i64::from));
    if job.backoff_limit_per_index.is_none() {
        check.problem(&failed, "needs backoffLimitPerIndex");
    }
}

fn success_policy(check: &mut Check, at: &Path, job: &JobSpec, indexed: bool) {
    let at = at.key("successPolicy");
    let Some(SuccessPolicy { rules }) = &job.success_policy else { return };
    check.since(&at, Feature::SuccessPolicy, true);
    if !indexed {
        check.problem(&at, "needs completionMode Indexed");
    }
    if rules.is_empty() || rules.len() > MOST_RULES {
        check.problem(&at.key("rules"), format!("must be 1 to {MOST_RULES} rules, not {}", rules.len()));
    }
    // One that is missing has been reported.
    let completions = job.completions.unwrap_or(i32::MAX);
    for (index, rule) in rules.iter().enumerate() {
        let at = at.item("rules", index);
        if rule.succeeded_count.is_none() && rule.succeeded_indexes.is_none() {
            check.problem(&at, "needs succeededIndexes or succeededCount");
        }
        let mut most = i64::from(completions);
        if let Some(indexes) = &rule.succeeded_indexes {
            match count_indexes(indexes, completions) {
                Ok(count) => most = count,
                Err(wrong) => check.problem(&at.key("succeededIndexes"), format!("`{indexes}`: {wrong}")),
            }
        }
        check.optional_range(&at.key("succeededCount"), rule.succeeded_count, 0, most);
    }
}

/// Number of indexes in a list such as `0,2-4`: ascending, below `completions`.
fn count_indexes(list: &str, completions: i32) -> Result<i64, String> {
    if list.len() > MOST_INDEX_BYTES {
        return Err(format!("has more than {MOST_INDEX_BYTES} characters"));
    }
    let mut next = 0_i64;
    let mut count = 0;
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| {
            text.parse::<i64>().ok().filter(|n| *n >= 0).ok_or_else(|| format!("`{part}` is no index or range"))
        };
        let (first, last) = (number(first)?, number(last)?);
        if first < next || last < first {
            return Err("indexes must ascend".to_owned());
        }
        if last >= i64::from(completions) {
            return Err(format!("{last} is not below completions, {completions}"));
        }
        count += last - first + 1;
        next = last + 1;
    }
    Ok(count)
}

fn failure_policy(check: &mut Check, at: &Path, job: &JobSpec) {
    let Some(policy) = &job.pod_failure_policy else { return };
    let restart = job.template.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    if restart != Some("Never") {
        let at = at.key("template");
        let at = at.key("spec");
        let at = at.key("restartPolicy");
        check.problem(&at, format!("`{}` must be Never with podFailurePolicy", restart.unwrap_or_default()));
    }
    let at = at.key("podFailurePolicy");
    let at = at.key("rules");
    if policy.rules.len() > MOST_RULES {
        check.problem(&at, format!("{} rules are more than {MOST_RULES}", policy.rules.len()));
    }
    for (index, rule) in policy.rules.iter().enumerate() {
        failure_rule(check, &at.at(index), rule, job);
    }
}

fn failure_rule(check: &mut Check, at: &Path, rule: &PodFailurePolicyRule, job: &JobSpec) {
    check.word(&at.key("action"), &rule.action, &["FailJob", "FailIndex", "Ignore", "Count"]);
    if rule.action == "FailIndex" && job.backoff_limit_per_index.is_none() {
        check.problem(&at.key("action"), "`FailIndex` needs backoffLimitPerIndex");
    }
    let conditions = rule.on_pod_conditions.as_deref().unwrap_or_default();
    match (&rule.on_exit_codes, conditions.is_empty()) {
        (Some(_), false) => check.problem(at, "has both onExitCodes and onPodConditions"),
        (None, true) => check.problem(at, "needs onExitCodes or onPodConditions"),
        _ => {}
    }
    if let Some(codes) = &rule.on_exit_codes {
        exit_codes(check, &at.key("onExitCodes"), codes, job);
    }
    if conditions.len() > MOST_RULES {
        check.problem(&at.key("onPodConditions"), format!("more than {MOST_RULES} conditions"));
    }
    for (index, condition) in conditions.iter().enumerate() {
        self::condition(check, &at.item("onPodConditions", index), condition);
    }
}

fn exit_codes(check: &mut Check, at: &Path, codes: &PodFailurePolicyOnExitCodesRequirement, job: &JobSpec) {
    let spec = job.template.spec.as_ref();
    let names: BTreeSet<&str> = spec
        .into_iter()
        .flat_map(|spec| spec.containers.iter().chain(spec.init_containers.iter().flatten()))
        .map(|container| container.name.as_str())
        .collect();
    if let Some(name) = codes.container_name.as_deref().filter(|name| !names.contains(name)) {
        check.problem(&at.key("containerName"), format!("there is no container `{name}`"));
    }
    check.word(&at.key("operator"), &codes.operator, &["In", "NotIn"]);
    let at = at.key("values");
    if codes.values.is_empty() || codes.values.len() > MOST_EXIT_CODES {
        check.problem(&at, format!("must be 1 to {MOST_EXIT_CODES} codes"));
    }
    if codes.values.windows(2).any(|pair| pair[0] >= pair[1]) {
        check.problem(&at, "must ascend, each code once");
    }
    if codes.operator == "In" && codes.values.contains(&0) {
        check.problem(&at, "must not hold 0 with the operator In");
    }
}

fn condition(check: &mut Check, at: &Path, condition: &PodFailurePolicyOnPodConditionsPattern) {
    check.form(&at.key("type"), &condition.type_, syntax::qualified_name);
    check.optional_word(&at.key("status"), condition.status.as_ref(), &["True", "False", "Unknown"]);
}

fn replacement(check: &mut Check, at: &Path, job: &JobSpec) {
    let Some(policy) = &job.pod_replacement_policy else { return };
    let at = at.key("podReplacementPolicy");
    check.since(&at, Feature::PodReplacementPolicy, true);
    if job.pod_failure_policy.is_some() {
        check.word(&at, policy, &["Failed"]);
    } else {
        check.word(&at, policy, &["TerminatingOrFailed", "Failed"]);
    }
}
