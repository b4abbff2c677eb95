//! Target versions: every example for every version, which fields appear from which version on, patches that a version does
//! not take, and that only the table of features knows version numbers.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use flux_gen::compile::Compiled;
use flux_gen::diag::Severity;
use flux_gen::model::kubernetes::{Feature, KubernetesVersion, Part};
use serde_json::Value;

use crate::text::compiled;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Code and message of each problem of a severity, in the order of the text.
fn problems(compiled: &Compiled, severity: Severity) -> Vec<String> {
    let found = compiled.diagnostics.clone().sorted();
    found.iter().filter(|d| d.severity == severity).map(|d| format!("{}: {}", d.code.id, d.message)).collect()
}

/// Each example with everything in its folder.
fn examples() -> Vec<(String, String)> {
    let mut folders: Vec<PathBuf> = fs::read_dir(root().join("examples")).unwrap().map(|e| e.unwrap().path()).collect();
    folders.sort();
    let mut examples = Vec::new();
    for folder in folders.iter().filter(|f| f.is_dir()) {
        let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        let texts: Vec<String> = files.iter().map(|f| fs::read_to_string(f).unwrap()).collect();
        examples.push((folder.file_name().unwrap().to_str().unwrap().to_owned(), texts.join("\n---\n")));
    }
    examples
}

/// Compares with a committed file; what was made is left beside the other products of tests.
fn golden(name: &str, made: &str) {
    let path = root().join("tests/compile").join(name);
    let copy = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&copy, made).unwrap();
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == made, "{} is out of date: cp {} {}", path.display(), copy.display(), path.display());
}

/// Errors and warnings of every example that is not the same for all versions.
#[test]
fn every_example_compiles_for_every_version_or_says_why_not() {
    let mut text =
        String::from("# What examples say for a Kubernetes version. Those that say nothing are not listed.\n");
    let examples = examples();
    assert!(examples.len() >= 20);
    for (name, specs) in &examples {
        for version in KubernetesVersion::all() {
            let compiled = compiled(specs, "", &[("kubernetes-version", &version.to_string())]);
            let errors = problems(&compiled, Severity::Error);
            let clusters = specs.matches("kind: MiniCluster").count();
            assert_eq!(compiled.clusters.len() == clusters, errors.is_empty(), "{name} on {version}: {errors:?}");
            for (what, list) in [("error", errors), ("warning", problems(&compiled, Severity::Warning))] {
                for problem in list {
                    writeln!(text, "{name} {version} {what} {problem}").unwrap();
                }
            }
            let helpless: Vec<_> = compiled.diagnostics.iter().filter(|d| d.help.is_none()).collect();
            assert!(helpless.iter().all(|d| d.severity == Severity::Note), "{name} on {version}: {helpless:?}");
        }
    }
    golden("kubernetes_versions_examples.txt", &text);
}

/// One cluster that uses everything which differs from version to version, a part at a time.
type PartCase = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const PARTS: &[PartCase] = &[
    ("plain", "  size: 2\n  containers: [{image: app, command: run}]\n", &[]),
    ("retried", "  size: 2\n  backoffLimit: 2\n  containers: [{image: app, command: run}]\n", &[]),
    ("restarted", "  size: 2\n  pod: {restartPolicy: OnFailure}\n  containers: [{image: app, command: run}]\n", &[]),
    ("elastic", "  size: 2\n  maxSize: 4\n  containers: [{image: app, command: run, cores: 2}]\n", &[]),
    ("minimal", "  size: 2\n  flux: {minimalService: true}\n  containers: [{image: app, command: run}]\n", &[]),
    (
        "daemon",
        "  containers: [{image: app, runFlux: true, command: run}, {image: web, name: web, ports: [80], command: serve}]\n",
        &[],
    ),
    (
        "native",
        "  containers: [{image: app, runFlux: true, command: run}, {image: web, name: web, command: serve}]\n",
        &[("sidecar", "native")],
    ),
    ("pod-resources", "  pod: {resources: {cpu: 4}}\n  containers: [{image: app, command: run}]\n", &[]),
    ("mounted", "  containers: [{image: app, command: run}]\n", &[("view-mount", "image")]),
    (
        "gated",
        "  containers: [{image: app, command: run}]\n",
        &[("view-mount", "image"), ("image-volume-gate", "true")],
    ),
];

/// Fields that do not stand in the bundles of every version.
const FIELDS: &[(&str, &str)] = &[
    ("successPolicy", "/spec/successPolicy/rules/0/succeededIndexes"),
    ("podFailurePolicy", "/spec/podFailurePolicy/rules/0/action"),
    ("podReplacementPolicy", "/spec/podReplacementPolicy"),
    ("completions = parallelism", "/spec/completions"),
    ("native sidecar", "/spec/template/spec/initContainers/1/restartPolicy"),
    ("pod resources", "/spec/template/spec/resources/requests"),
    ("image volume", "/spec/template/spec/volumes"),
    ("backoffLimitPerIndex", "/spec/backoffLimitPerIndex"),
    ("managedBy", "/spec/managedBy"),
    ("suspend", "/spec/suspend"),
];

fn has(objects: &[Value], field: &str, pointer: &str) -> bool {
    let job = objects.iter().find(|o| o["kind"] == "Job").unwrap();
    match (field, job.pointer(pointer)) {
        ("image volume", Some(volumes)) => volumes.as_array().unwrap().iter().any(|v| v.get("image").is_some()),
        ("completions = parallelism", Some(number)) => *number == job["spec"]["parallelism"],
        (_, found) => found.is_some_and(|value| !value.is_null()),
    }
}

/// A row per part and field; a column per version: `x` there, `.` not there, `E` the part is an error on that version.
#[test]
fn fields_appear_from_the_version_that_has_them() {
    let versions: Vec<KubernetesVersion> = KubernetesVersion::all().collect();
    let heads: Vec<String> = versions.iter().map(|v| v.to_string()).collect();
    let mut text = format!("# x: written; .: not written; E: refused, with help.\n{:40} {}\n", "", heads.join(" "));
    for (part, spec, set) in PARTS {
        let specs = format!(
            "apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\nmetadata: {{name: a, namespace: b}}\nspec:\n{spec}"
        );
        let results: Vec<Option<Vec<Value>>> = versions
            .iter()
            .map(|version| {
                let version = version.to_string();
                let set: Vec<_> = set.iter().copied().chain([("kubernetes-version", version.as_str())]).collect();
                let compiled = compiled(&specs, "", &set);
                let objects = compiled.clusters.first()?.objects.iter().map(|o| serde_json::to_value(o).unwrap());
                (!compiled.diagnostics.has_errors()).then(|| objects.collect())
            })
            .collect();
        for (field, pointer) in FIELDS {
            let marks: Vec<&str> = results
                .iter()
                .map(|objects| match objects {
                    None => "E   ",
                    Some(objects) if has(objects, field, pointer) => "x   ",
                    Some(_) => ".   ",
                })
                .collect();
            writeln!(text, "{:40} {}", format!("{part}: {field}"), marks.join(" ").trim_end()).unwrap();
        }
    }
    golden("kubernetes_versions_fields.txt", &text);
}

/// Patches that write each field which only patches write, with the feature that it needs.
const PATCHES: &[(Feature, &str)] = &[
    (Feature::SuccessPolicy, "{kind: Job}, patch: {spec: {successPolicy: {rules: [{succeededIndexes: '0'}]}}}"),
    (Feature::PodReplacementPolicy, "{kind: Job}, patch: {spec: {podReplacementPolicy: Failed}}"),
    (Feature::BackoffLimitPerIndex, "{kind: Job}, patch: {spec: {backoffLimitPerIndex: 1}}"),
    (Feature::ManagedBy, "{kind: Job}, patch: {spec: {managedBy: example.com/x}}"),
    (Feature::PodLevelResources, "{kind: Job}, patch: {spec: {template: {spec: {resources: {requests: {cpu: 4}}}}}}"),
    (Feature::UserNamespaces, "{kind: Job}, patch: {spec: {template: {spec: {hostUsers: false}}}}"),
    (
        Feature::SupplementalGroupsPolicy,
        "{kind: Job}, patch: {spec: {template: {spec: {securityContext: {supplementalGroupsPolicy: Strict}}}}}",
    ),
    (
        Feature::AppArmor,
        "{kind: Job}, patch: {spec: {template: {spec: {securityContext: {appArmorProfile: {type: RuntimeDefault}}}}}}",
    ),
    (
        Feature::ResourceClaims,
        "{kind: Job}, patch: {spec: {template: {spec: {resourceClaims: [{name: c, resourceClaimName: d}]}}}}",
    ),
    (
        Feature::SleepHook,
        "{kind: Job}, patch: {spec: {template: {spec: {containers: [{name: a, lifecycle: {preStop: {sleep: {seconds: 1}}}}]}}}}",
    ),
    (
        Feature::ContainerRestarts,
        "{kind: Job}, patch: {spec: {template: {spec: {containers: [{name: a, restartPolicy: Never}]}}}}",
    ),
    (
        Feature::EnvironmentFiles,
        "{kind: Job}, patch: {spec: {template: {spec: {containers: [{name: a, env: [{name: X, valueFrom: {fileKeyRef: {volumeName: flux-home, path: e, key: k}}}]}]}}}}",
    ),
    (
        Feature::RelaxedEnvironmentNames,
        "{kind: Job}, patch: {spec: {template: {spec: {containers: [{name: a, env: [{name: 'a b', value: c}]}]}}}}",
    ),
    (
        Feature::RecursiveReadOnly,
        "{kind: Job}, patch: {spec: {template: {spec: {containers: [{name: a, volumeMounts: [{name: flux-home, mountPath: /h, readOnly: true, recursiveReadOnly: Enabled}]}]}}}}",
    ),
    (
        Feature::AffinityLabelKeys,
        "{kind: Job}, patch: {spec: {template: {spec: {affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: k, labelSelector: {}, matchLabelKeys: [app]}]}}}}}}",
    ),
    (Feature::TrafficDistribution, "{kind: Service}, patch: {spec: {trafficDistribution: PreferClose}}"),
    (
        Feature::ImageVolumes,
        "{kind: Job}, patch: {spec: {template: {spec: {volumes: [{name: x, image: {reference: 'r:1'}}]}}}}",
    ),
    (
        Feature::NativeSidecars,
        "{kind: Job}, patch: {spec: {template: {spec: {initContainers: [{name: flux-view, restartPolicy: Always}]}}}}",
    ),
];

#[test]
fn a_patch_cannot_write_what_the_version_has_not() {
    let specs = "apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\nmetadata: {name: a}\nspec:\n  containers: [{image: app, command: run}]\n";
    for (feature, patch) in PATCHES {
        let project = format!("patches: [{{target: {patch}}}]\n");
        for version in KubernetesVersion::all() {
            let compiled = compiled(specs, &project, &[("kubernetes-version", &version.to_string())]);
            let errors = problems(&compiled, Severity::Error);
            assert_eq!(errors.is_empty(), version.can_have(*feature), "{feature:?} on {version}: {errors:?}");
            assert!(errors.iter().all(|e| e.starts_with("FG320")), "{errors:?}");
        }
    }
    // Those of pod security are tested with it. `hostnameOverride` is refused on every version: it gives all pods one name. The others need no patch to be written.
    let rest = |f: &&Feature| f.part() != Part::Policy && !PATCHES.iter().any(|(tested, _)| tested == *f);
    let untested: Vec<&Feature> = Feature::ALL.iter().filter(rest).collect();
    assert_eq!(
        untested,
        [&Feature::ElasticIndexedJobs, &Feature::PodIndexLabel, &Feature::PodFailurePolicy, &Feature::HostnameOverride]
    );
}

/// A number of a Kubernetes version in code, outside of what people read and of the table itself.
#[test]
fn only_the_table_knows_version_numbers() {
    let mut wrong = Vec::new();
    let mut folders = vec![root().join("src")];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned();
            // The texts that `explain` prints for codes, the default and texts of settings, and an example of an option.
            let prose = ["src/diag/codes/", "src/model/settings.rs", "src/cli/pipeline.rs", "src/model/kubernetes.rs"];
            if prose.iter().any(|p| name.starts_with(p)) || path.extension().is_none_or(|e| e != "rs") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
                if (28..=37).any(|minor| line.contains(&format!("1.{minor}"))) {
                    wrong.push(format!("{name}: {}", line.trim()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // Versions cannot be compared elsewhere, because they have no order and give no number.
    let table = fs::read_to_string(root().join("src/model/kubernetes.rs")).unwrap();
    let head = table.split("pub struct KubernetesVersion(u8);").next().unwrap();
    let derive = head.lines().rfind(|line| line.starts_with("#[derive")).unwrap();
    assert!(!derive.contains("Ord"), "{derive}");
    assert!(!table.contains("impl Ord") && !table.contains("impl PartialOrd"));
    assert!(!table.contains("pub fn minor"));
}
