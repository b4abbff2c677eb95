//! Documents beside MiniClusters: what cannot work without the operator.

use serde_json::Value;

use crate::diag::codes::spec as codes;
use crate::diag::{Diagnostic, Diagnostics, Span};
use crate::spec::Companion;

/// The label that the operator patches onto pods, and nothing else does.
const JOB_INDEX: &str = "job-index";
/// What Kubernetes itself sets, as a label since 1.28.
const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Fields that hold selectors, in Services, policies, budgets, monitors and affinity terms.
const SELECTORS: &[&str] = &["selector", "podSelector", "labelSelector", "matchLabels"];

/// Every problem of one companion.
#[must_use]
pub fn check(companion: &Companion) -> Diagnostics {
    let mut walk = Walk { companion, found: Diagnostics::new(), pointer: String::new() };
    walk.value(&companion.value, false);
    walk.found
}

struct Walk<'a> {
    companion: &'a Companion,
    found: Diagnostics,
    /// JSON pointer of the value at hand.
    pointer: String,
}

impl Walk<'_> {
    fn value(&mut self, value: &Value, in_selector: bool) {
        match value {
            Value::Object(map) => {
                for (key, inner) in map {
                    self.inside(&escaped(key), |walk| walk.entry(key, inner, in_selector));
                }
                if is_minicluster_reference(value) {
                    self.minicluster_reference(map.get("name"));
                }
            }
            Value::Array(list) => {
                for (index, inner) in list.iter().enumerate() {
                    self.inside(&index.to_string(), |walk| walk.value(inner, in_selector));
                }
            }
            _ => {}
        }
    }

    fn entry(&mut self, key: &str, inner: &Value, in_selector: bool) {
        let names_label = key == JOB_INDEX && inner.is_string() || key == "key" && inner.as_str() == Some(JOB_INDEX);
        if in_selector && names_label {
            let message = format!("the selector asks for label `{JOB_INDEX}`, which only the Flux Operator sets");
            let diagnostic = Diagnostic::error(codes::JOB_INDEX, self.place(), message);
            self.found.push(
                diagnostic.help(format!("select `{COMPLETION_INDEX}`, which Kubernetes sets to the same number")),
            );
        }
        // matchExpressions stands beside matchLabels in a selector, or below a selector field.
        let opens = SELECTORS.contains(&key) || key == "matchExpressions";
        self.value(inner, in_selector || opens);
    }

    fn minicluster_reference(&mut self, name: Option<&Value>) {
        let name = name.and_then(Value::as_str).unwrap_or_default();
        let message = format!("MiniCluster `{name}` is no object in the cluster, so this reference finds nothing");
        let diagnostic = Diagnostic::warning(codes::NO_MINICLUSTER, self.place(), message);
        self.found.push(diagnostic.help("resize by changing `size` in the spec; `maxSize` keeps room for it"));
    }

    fn inside(&mut self, part: &str, run: impl FnOnce(&mut Self)) {
        let before = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(part);
        run(self);
        self.pointer.truncate(before);
    }

    /// The nearest place that is known.
    fn place(&self) -> Span {
        self.companion.place(&self.pointer)
    }
}

/// A reference to an object (`scaleTargetRef`, `ownerReferences`): kind, apiVersion and name, but no content.
fn is_minicluster_reference(value: &Value) -> bool {
    value.get("kind").and_then(Value::as_str) == Some("MiniCluster")
        && value.get("name").is_some_and(Value::is_string)
        && value.get("spec").is_none()
}

/// A key as a part of a JSON pointer (RFC 6901).
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::FileId;
    use std::collections::BTreeMap;

    fn companion(value: Value, places: &[(&str, usize)]) -> Companion {
        let span = |start| Span { file: FileId(0), start, end: start + 1 };
        let places =
            places.iter().map(|(pointer, start)| ((*pointer).to_owned(), span(*start))).collect::<BTreeMap<_, _>>();
        Companion { span: span(0), value, places }
    }

    fn codes_of(value: Value) -> Vec<&'static str> {
        check(&companion(value, &[])).iter().map(|d| d.code.id).collect()
    }

    #[test]
    fn finds_job_index_in_every_kind_of_selector() {
        let hit = vec!["FG293"];
        for value in [
            serde_json::json!({"kind": "Service", "spec": {"selector": {"job-index": "0"}}}),
            serde_json::json!({"kind": "NetworkPolicy", "spec": {"podSelector": {"matchLabels": {"job-index": "0"}}}}),
            serde_json::json!({"kind": "NetworkPolicy", "spec": {"ingress": [{"from": [{"podSelector": {"matchExpressions": [{"key": "job-index", "operator": "Exists"}]}}]}]}}),
            serde_json::json!({"kind": "PodDisruptionBudget", "spec": {"selector": {"matchExpressions": [{"key": "job-index", "operator": "In", "values": ["0"]}]}}}),
            serde_json::json!({"kind": "Pod", "spec": {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {"matchLabels": {"job-index": "0"}}}]}}}}),
            serde_json::json!({"kind": "List", "items": [{"kind": "Service", "spec": {"selector": {"job-index": "0"}}}]}),
        ] {
            assert_eq!(codes_of(value.clone()), hit, "{value}");
        }
    }

    #[test]
    fn leaves_other_uses_alone() {
        for value in [
            serde_json::json!({"kind": "Service", "spec": {"selector": {"batch.kubernetes.io/job-completion-index": "0"}}}),
            serde_json::json!({"kind": "Pod", "metadata": {"labels": {"job-index": "0"}}}),
            serde_json::json!({"kind": "ConfigMap", "data": {"job-index": "0", "key": "job-index"}}),
            serde_json::json!({"kind": "Secret", "metadata": {"name": "MiniCluster"}}),
        ] {
            assert!(codes_of(value.clone()).is_empty(), "{value}");
        }
    }

    #[test]
    fn references_to_miniclusters_are_reported() {
        let autoscaler = serde_json::json!({"kind": "HorizontalPodAutoscaler", "spec": {"scaleTargetRef": {
            "apiVersion": "flux-framework.org/v1alpha2", "kind": "MiniCluster", "name": "a"}}});
        assert_eq!(codes_of(autoscaler), ["FG294"]);
        let other = serde_json::json!({"spec": {"scaleTargetRef": {"kind": "Deployment", "name": "MiniCluster"}}});
        assert!(codes_of(other).is_empty());
    }

    #[test]
    fn points_at_the_key_or_the_nearest_place() {
        let value = serde_json::json!({"spec": {"selector": {"job-index": "0"}}});
        let place = |places: &[(&str, usize)]| {
            check(&companion(value.clone(), places)).iter().map(|d| d.span.unwrap().start).next()
        };
        assert_eq!(place(&[("/spec/selector/job-index", 9), ("/spec", 3)]), Some(9));
        assert_eq!(place(&[("/spec", 3)]), Some(3));
        assert_eq!(place(&[]), Some(0));
    }
}
