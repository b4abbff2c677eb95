//! An elastic cluster's bundle depends on its size in three places only: the Job's two numbers and the size ConfigMap.

use std::collections::{BTreeMap, BTreeSet};

use flux_gen::object::Object;
use serde_json::Value;

use crate::text::compiled;

fn objects(text: &str) -> Vec<Object> {
    let compiled = compiled(text, "", &[]);
    assert!(!compiled.diagnostics.has_errors(), "{:?}", compiled.diagnostics);
    compiled.clusters.into_iter().flat_map(|cluster| cluster.objects).collect()
}

fn elastic(size: u32, tasks: u32, extra: &str, container: &str) -> BTreeMap<String, Value> {
    let spec = format!(
        "apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\nmetadata: {{name: grow}}\nspec:\n  size: {size}\n  \
         maxSize: 6\n  tasks: {tasks}\n{extra}  containers:\n  - image: app\n    command: work\n{container}"
    );
    let objects = objects(&spec);
    objects.iter().map(|o| (format!("{} {}", o.kind(), o.name()), serde_json::to_value(o).unwrap())).collect()
}

/// JSON pointers at which two values differ.
fn differences(a: &Value, b: &Value, path: &str, found: &mut BTreeSet<String>) {
    match (a, b) {
        _ if a == b => {}
        (Value::Object(x), Value::Object(y)) => {
            for key in x.keys().chain(y.keys().filter(|key| !x.contains_key(*key))) {
                let none = &Value::Null;
                let path = format!("{path}/{key}");
                differences(x.get(key).unwrap_or(none), y.get(key).unwrap_or(none), &path, found);
            }
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            for (index, (x, y)) in x.iter().zip(y).enumerate() {
                differences(x, y, &format!("{path}/{index}"), found);
            }
        }
        _ => {
            found.insert(path.to_owned());
        }
    }
}

fn check(tasks: u32, extra: &str, container: &str) {
    let allowed: BTreeSet<String> = [
        "Job grow/spec/completions",
        "Job grow/spec/parallelism",
        "ConfigMap grow-size/data/nodes",
        "ConfigMap grow-size/data/quorum",
    ]
    .map(str::to_owned)
    .into();
    let bundles: Vec<_> = (1..=6).map(|size| elastic(size, tasks, extra, container)).collect();
    for (from, a) in bundles.iter().enumerate() {
        for (to, b) in bundles.iter().enumerate().filter(|(to, _)| *to != from) {
            assert_eq!(a.keys().collect::<Vec<_>>(), b.keys().collect::<Vec<_>>(), "names change with the size");
            let mut found = BTreeSet::new();
            for (name, object) in a {
                differences(object, &b[name], name, &mut found);
            }
            assert!(found.is_subset(&allowed), "{} -> {}: {found:?}", from + 1, to + 1);
            assert!(found.contains("Job grow/spec/completions") && found.contains("Job grow/spec/parallelism"));
        }
    }
}

#[test]
fn resizing_changes_three_things_for_tasks_below_at_and_above_the_size() {
    for tasks in [0, 1, 3, 6, 24] {
        check(tasks, "", "");
        check(tasks, "  minSize: 1\n", "");
        check(tasks, "  flux: {topology: 'kary:2'}\n", "    resources: {limits: {cpu: 4}}\n");
    }
}

#[test]
fn resizing_a_batch_or_an_interactive_cluster_changes_the_same_three_things() {
    check(4, "", "    batch: true\n");
    check(4, "  interactive: true\n", "    cores: 2\n");
}
