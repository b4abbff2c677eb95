//! Verdicts of reading and rules on every case of the conformance corpus: `FLUX_GEN_CONFORMANCE` or `../shared/conformance`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use flux_gen::compile;
use flux_gen::diag::{Diagnostic, Severity, SourceMap};
use flux_gen::model::hardening::PodSecurity;
use flux_gen::object::Object;
use flux_gen::rules::spec::{RuleContext, check};
use flux_gen::spec::{self, ReadOptions};

/// The folder with the operator's cases; says so and returns `None` when it is not there.
#[allow(clippy::disallowed_methods)]
fn corpus() -> Option<PathBuf> {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let beside = ["../shared/conformance", "../../shared/conformance"].map(|path| manifest.join(path));
    let given = std::env::var_os("FLUX_GEN_CONFORMANCE").map(PathBuf::from);
    let Some(folder) = given.or_else(|| beside.into_iter().find(|path| path.is_dir())) else {
        println!("skipped: no ../shared");
        return None;
    };
    let operator = folder.join("operator");
    Some(if operator.is_dir() { operator } else { folder })
}

/// Errors and warnings of one case by reading and rules.
fn diagnostics(input: Vec<u8>) -> Vec<Diagnostic> {
    let context = RuleContext {
        kubernetes: "1.34".parse().unwrap(),
        name_suffix: 0,
        flux_version: None,
        pod_security: PodSecurity::None,
    };
    let mut sources = SourceMap::new();
    let (documents, mut found) =
        spec::read(&mut sources, vec![("input.yaml".to_owned(), input)], &ReadOptions::default());
    for cluster in &documents.miniclusters {
        found.extend(check(cluster, &context));
    }
    found.sorted()
}

fn is_empty(value: &serde_json::Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

/// Codes of errors on documents that the operator accepts, with the reason for each (quirks by number).
const STRICTER: &[(&str, &str)] = &[
    ("FG206", "a Service of a sidecar is skipped silently when the headless one has its name (30)"),
    ("FG224", "batch without a command never submits anything; with a script neither (79)"),
    ("FG232", "of several sources of a volume all but one are dropped (56: refuse mixtures)"),
    ("FG236", "the last source of a volume name wins for all containers (52)"),
    ("FG271", "a broker with an unknown topology exits at once"),
    ("FG272", "a minimal service reaches the leader only, so the tree must be flat"),
    ("FG273", "Fluxion falls back silently from an unknown queue policy"),
    ("FG276", "a mount path that scripts and socket names cannot hold"),
    ("FG280", "a broker with a bad configuration exits at once (77: it was expanded by a shell)"),
    ("FG281", "a broker that is not in its configuration's hosts exits at once"),
    ("FG282", "brokers with a bad certificate never find each other"),
];

/// Volumes of config maps are named by their key here, so two of one config map are none too many (quirk 55).
fn volumes_named_after_config_maps(rejects: &serde_json::Value) -> bool {
    let errors: Vec<&str> = rejects.as_array().into_iter().flatten().filter_map(|r| r["error"].as_str()).collect();
    let about_names = |e: &&str| {
        e.contains("spec.volumes[") && e.contains("].name: Duplicate value") || e.contains("].name: Not found")
    };
    errors.iter().any(|e| e.contains("volumeMounts[")) && errors.iter().all(about_names)
}

#[test]
fn verdicts_agree_with_operator_and_api_server() {
    let Some(corpus) = corpus() else { return };
    let mut folders: Vec<_> = std::fs::read_dir(&corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    let (mut cases, mut wrong) = (0, String::new());
    for folder in folders {
        let Ok(input) = std::fs::read(folder.join("input.yaml")) else { continue };
        let expected: serde_json::Value =
            serde_json::from_slice(&std::fs::read(folder.join("expected.json")).unwrap()).unwrap();
        cases += 1;
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let found = diagnostics(input);
        let errors: Vec<_> = found.iter().filter(|d| d.severity == Severity::Error).collect();
        let refused = expected["stage"] != "ok" || !is_empty(&expected["apiRejects"]) || !is_empty(&expected["panic"]);
        let mended = volumes_named_after_config_maps(&expected["apiRejects"]);
        if refused && errors.is_empty() && !mended {
            wrong += &format!("{name}: refused by the operator or an API server, and nothing is found\n");
        }
        if !refused {
            let codes: BTreeSet<&str> = errors.iter().map(|d| d.code.id).filter(|id| id.starts_with("FG2")).collect();
            if !codes.iter().all(|code| STRICTER.iter().any(|(stricter, _)| stricter == code)) {
                for error in errors {
                    wrong += &format!("{name}: {} {}\n", error.code.id, error.message);
                }
            }
        }
    }
    assert!(cases > 0, "{} holds no case", corpus.display());
    assert!(wrong.is_empty(), "{wrong}");
}

/// What the operator accepts and flux-gen compiles, an API server takes: for every supported version.
#[test]
fn compiled_objects_pass_the_rules_on_objects() {
    let Some(corpus) = corpus() else { return };
    let mut folders: Vec<_> = std::fs::read_dir(&corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    let (mut compiled, mut wrong) = (0, String::new());
    for folder in folders {
        let Ok(input) = std::fs::read(folder.join("input.yaml")) else { continue };
        let mut sources = SourceMap::new();
        let inputs = vec![("input.yaml".to_owned(), input)];
        let (documents, found) = spec::read(&mut sources, inputs, &ReadOptions { allow_unknown: true });
        if found.has_errors() {
            continue;
        }
        for minor in [28, 29, 30, 31, 32, 33, 34, 35, 36, 37] {
            let version = format!("1.{minor}");
            let set =
                [("kubernetes-version".to_owned(), version.clone()), ("secrets".to_owned(), "existing".to_owned())];
            let public_keys = std::collections::BTreeMap::new();
            let input = compile::Input {
                documents: &documents,
                project: None,
                set: &set,
                is_whole: true,
                public_keys: &public_keys,
            };
            let result = compile::compile(&input);
            for cluster in &result.clusters {
                compiled += 1;
                for problem in flux_gen::rules::object::check(&cluster.objects, version.parse().unwrap()) {
                    wrong += &format!("{} at {version}: {problem:?}\n", folder.display());
                }
                wrong += &unreserved(cluster);
            }
        }
    }
    assert!(compiled > 0, "{} holds no case that compiles", corpus.display());
    println!("{compiled} bundles");
    assert!(wrong.is_empty(), "{wrong}");
}

/// Volumes and mounts that render adds and that the rules do not reserve.
fn unreserved(cluster: &compile::CompiledCluster) -> String {
    use flux_gen::rules::spec::{OWN_PATHS, RESERVED_VOLUMES, SCRIPTS_PATH, VIEW_PATHS};
    let view = &cluster.cluster.view;
    let mut wrong = String::new();
    let job = cluster.objects.iter().find_map(|object| match object {
        Object::Job(job) => job.spec.as_ref()?.template.spec.as_ref(),
        _ => None,
    });
    let own = |name: &str| !cluster.cluster.volumes.contains_key(name);
    for volume in job.iter().flat_map(|pod| pod.volumes.iter().flatten()).filter(|volume| own(&volume.name)) {
        let name = volume.name.as_str();
        let of_view = name.strip_suffix("-image").unwrap_or(name) == view.name;
        if !of_view && !RESERVED_VOLUMES.contains(&name) {
            wrong += &format!("volume {name} is not reserved\n");
        }
    }
    let containers = job.iter().flat_map(|pod| pod.containers.iter().chain(pod.init_containers.iter().flatten()));
    for mount in containers.flat_map(|c| c.volume_mounts.iter().flatten()).filter(|mount| own(&mount.name)) {
        let path = mount.mount_path.trim_end_matches('/');
        let reserved = OWN_PATHS.iter().map(|(path, _)| *path).chain(VIEW_PATHS.iter().copied());
        if !reserved.chain([SCRIPTS_PATH, view.mount_path.as_str()]).any(|own| own == path) {
            wrong += &format!("path {path} is not reserved\n");
        }
    }
    wrong
}
