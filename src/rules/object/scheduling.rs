//! Where pods go: selectors, affinity, tolerations, spreading.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    Affinity, NodeSelectorRequirement, NodeSelectorTerm, PodAffinityTerm, PodSpec, Toleration, TopologySpreadConstraint,
};

use super::check::{Check, Path};
use super::meta;
use crate::model::kubernetes::Feature;
use crate::rules::syntax;

pub(super) fn pod(check: &mut Check, at: &Path, pod: &PodSpec) {
    meta::labels(check, &at.key("nodeSelector"), pod.node_selector.as_ref());
    if let Some(affinity) = &pod.affinity {
        self::affinity(check, &at.key("affinity"), affinity);
    }
    for (index, toleration) in pod.tolerations.iter().flatten().enumerate() {
        self::toleration(check, &at.item("tolerations", index), toleration);
    }
    let mut seen = BTreeSet::new();
    for (index, constraint) in pod.topology_spread_constraints.iter().flatten().enumerate() {
        let at = at.item("topologySpreadConstraints", index);
        spread(check, &at, constraint);
        if !seen.insert((&constraint.topology_key, &constraint.when_unsatisfiable)) {
            check.problem(&at, "repeats topologyKey and whenUnsatisfiable of another constraint");
        }
    }
}

fn affinity(check: &mut Check, at: &Path, affinity: &Affinity) {
    const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
    const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";
    if let Some(nodes) = &affinity.node_affinity {
        let at = at.key("nodeAffinity");
        if let Some(required) = &nodes.required_during_scheduling_ignored_during_execution {
            let at = at.key(REQUIRED);
            let at = at.key("nodeSelectorTerms");
            if required.node_selector_terms.is_empty() {
                check.required(&at);
            }
            for (index, term) in required.node_selector_terms.iter().enumerate() {
                node_term(check, &at.at(index), term);
            }
        }
        let preferred = nodes.preferred_during_scheduling_ignored_during_execution.iter().flatten();
        for (index, term) in preferred.enumerate() {
            let at = at.item(PREFERRED, index);
            check.range(&at.key("weight"), term.weight, 1, 100);
            node_term(check, &at.key("preference"), &term.preference);
        }
    }
    let near = affinity.pod_affinity.as_ref().map(|a| {
        (
            "podAffinity",
            &a.required_during_scheduling_ignored_during_execution,
            &a.preferred_during_scheduling_ignored_during_execution,
        )
    });
    let far = affinity.pod_anti_affinity.as_ref().map(|a| {
        (
            "podAntiAffinity",
            &a.required_during_scheduling_ignored_during_execution,
            &a.preferred_during_scheduling_ignored_during_execution,
        )
    });
    for (field, required, preferred) in near.into_iter().chain(far) {
        let at = at.key(field);
        for (index, term) in required.iter().flatten().enumerate() {
            pod_term(check, &at.key(REQUIRED).at(index), term);
        }
        for (index, term) in preferred.iter().flatten().enumerate() {
            let at = at.item(PREFERRED, index);
            check.range(&at.key("weight"), term.weight, 1, 100);
            pod_term(check, &at.key("podAffinityTerm"), &term.pod_affinity_term);
        }
    }
}

fn node_term(check: &mut Check, at: &Path, term: &NodeSelectorTerm) {
    for (index, requirement) in term.match_expressions.iter().flatten().enumerate() {
        let at = at.item("matchExpressions", index);
        check.form(&at.key("key"), &requirement.key, syntax::qualified_name);
        node_requirement(check, &at, requirement);
    }
    for (index, requirement) in term.match_fields.iter().flatten().enumerate() {
        let at = at.item("matchFields", index);
        check.word(&at.key("key"), &requirement.key, &["metadata.name"]);
        check.word(&at.key("operator"), &requirement.operator, &["In", "NotIn"]);
        if requirement.values.as_ref().map_or(0, Vec::len) != 1 {
            check.problem(&at.key("values"), "must be one value");
        }
    }
}

fn node_requirement(check: &mut Check, at: &Path, requirement: &NodeSelectorRequirement) {
    let operators = &["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];
    check.word(&at.key("operator"), &requirement.operator, operators);
    let values = requirement.values.as_deref().unwrap_or_default();
    let at = at.key("values");
    match requirement.operator.as_str() {
        "In" | "NotIn" if values.is_empty() => check.required(&at),
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            check.problem(&at, format!("must be empty with {}", requirement.operator));
        }
        "Gt" | "Lt" if values.len() != 1 => check.problem(&at, "must be one number"),
        _ => {}
    }
}

fn pod_term(check: &mut Check, at: &Path, term: &PodAffinityTerm) {
    if term.topology_key.is_empty() {
        check.required(&at.key("topologyKey"));
    } else {
        check.form(&at.key("topologyKey"), &term.topology_key, syntax::qualified_name);
    }
    if let Some(selector) = &term.label_selector {
        meta::selector(check, &at.key("labelSelector"), selector);
    }
    if let Some(selector) = &term.namespace_selector {
        meta::selector(check, &at.key("namespaceSelector"), selector);
    }
    check.since(&at.key("matchLabelKeys"), Feature::AffinityLabelKeys, term.match_label_keys.is_some());
    check.since(&at.key("mismatchLabelKeys"), Feature::AffinityLabelKeys, term.mismatch_label_keys.is_some());
    for (index, namespace) in term.namespaces.iter().flatten().enumerate() {
        check.form(&at.item("namespaces", index), namespace, syntax::dns1123_label);
    }
}

fn toleration(check: &mut Check, at: &Path, toleration: &Toleration) {
    let operator = toleration.operator.as_deref().filter(|operator| !operator.is_empty()).unwrap_or("Equal");
    check.word(&at.key("operator"), operator, &["Exists", "Equal"]);
    let effects = &["NoSchedule", "PreferNoSchedule", "NoExecute"];
    check.optional_word(&at.key("effect"), toleration.effect.as_ref(), effects);
    check.optional_form(&at.key("key"), toleration.key.as_ref(), syntax::qualified_name);
    if toleration.key.as_deref().unwrap_or_default().is_empty() && operator != "Exists" {
        check.problem(&at.key("operator"), "must be Exists when there is no key");
    }
    let value = toleration.value.as_ref().filter(|value| !value.is_empty());
    match operator {
        "Exists" if value.is_some() => check.problem(&at.key("value"), "must be empty with the operator Exists"),
        _ => check.optional_form(&at.key("value"), value, syntax::label_value),
    }
    if toleration.toleration_seconds.is_some() && toleration.effect.as_deref() != Some("NoExecute") {
        check.problem(&at.key("tolerationSeconds"), "needs the effect NoExecute");
    }
}

fn spread(check: &mut Check, at: &Path, constraint: &TopologySpreadConstraint) {
    check.range(&at.key("maxSkew"), constraint.max_skew, 1, i64::from(i32::MAX));
    if constraint.topology_key.is_empty() {
        check.required(&at.key("topologyKey"));
    } else {
        check.form(&at.key("topologyKey"), &constraint.topology_key, syntax::qualified_name);
    }
    check.word(&at.key("whenUnsatisfiable"), &constraint.when_unsatisfiable, &["DoNotSchedule", "ScheduleAnyway"]);
    check.optional_range(&at.key("minDomains"), constraint.min_domains, 1, i64::from(i32::MAX));
    if constraint.min_domains.is_some() && constraint.when_unsatisfiable != "DoNotSchedule" {
        check.problem(&at.key("minDomains"), "needs whenUnsatisfiable DoNotSchedule");
    }
    for (field, policy) in
        [("nodeAffinityPolicy", &constraint.node_affinity_policy), ("nodeTaintsPolicy", &constraint.node_taints_policy)]
    {
        check.optional_word(&at.key(field), policy.as_ref(), &["Honor", "Ignore"]);
    }
    if let Some(selector) = &constraint.label_selector {
        meta::selector(check, &at.key("labelSelector"), selector);
    }
}
