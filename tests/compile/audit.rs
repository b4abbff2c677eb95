//! `audit`: nothing on clean bundles, every typical breakage found and blamed on the right override.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flux_gen::bundle::audit::audit;
use flux_gen::diag::{Diagnostic, Severity, SourceMap};
use flux_gen::flux::certificate::Certificate;
use flux_gen::model::secret_name;
use flux_gen::spec::read_objects;
use rayon::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

/// The objects of one bundle.
type Bundle = Vec<Value>;

fn generated() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("generated")
}

fn load(folder: &Path) -> Bundle {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.retain(|f| f.extension().is_some_and(|e| e == "yaml") && !f.ends_with("kustomization.yaml"));
    files.iter().map(|file| serde_norway::from_str(&fs::read_to_string(file).unwrap()).unwrap()).collect()
}

/// Bundles of all examples, with their names.
fn bundles() -> Vec<(String, Bundle)> {
    let mut bundles = Vec::new();
    for namespace in fs::read_dir(generated()).unwrap().map(|entry| entry.unwrap().path()).filter(|p| p.is_dir()) {
        for folder in fs::read_dir(&namespace).unwrap().map(|entry| entry.unwrap().path()) {
            if folder.join("job.yaml").exists() {
                bundles.push((folder.strip_prefix(generated()).unwrap().to_str().unwrap().to_owned(), load(&folder)));
            }
        }
    }
    bundles.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(bundles.len() >= 20, "the examples are there");
    bundles
}

fn bundle(name: &str) -> Bundle {
    load(&generated().join(name))
}

fn run(objects: &[Value], target: Option<&str>) -> Vec<Diagnostic> {
    let text: Vec<String> = objects.iter().map(|object| serde_json::to_string_pretty(object).unwrap()).collect();
    let input = vec![("objects.yaml".to_owned(), text.join("\n---\n").into_bytes())];
    let (read, problems) = read_objects(&mut SourceMap::new(), input);
    assert!(problems.is_empty(), "{problems:?}");
    assert_eq!(read.objects.len(), objects.len());
    audit(&read.objects, target.map(|text| text.parse().unwrap())).diagnostics.sorted()
}

fn job(objects: &mut Bundle) -> &mut Value {
    of(objects, "Job")
}

fn of<'b>(objects: &'b mut Bundle, kind: &str) -> &'b mut Value {
    objects.iter_mut().find(|object| object["kind"] == kind).expect(kind)
}

/// The ConfigMap with this file.
fn map_with<'b>(objects: &'b mut Bundle, file: &str) -> &'b mut Value {
    objects.iter_mut().find(|object| object["data"].get(file).is_some()).expect(file)
}

/// What kustomize does for `namePrefix` and `nameSuffix`: names, and references that it knows.
fn rename(objects: &mut Bundle, prefix: &str, suffix: &str) {
    let renamed = |name: &str| json!(format!("{prefix}{name}{suffix}"));
    for object in objects.iter_mut() {
        object["metadata"]["name"] = renamed(object["metadata"]["name"].as_str().unwrap());
        if object["kind"] == "Job" {
            for volume in object["spec"]["template"]["spec"]["volumes"].as_array_mut().unwrap() {
                if let Some(name) = volume.pointer_mut("/configMap/name") {
                    *name = renamed(name.as_str().unwrap());
                }
            }
        }
    }
}

fn drop_kind(objects: &mut Bundle, kind: &str) {
    let at = objects.iter().position(|object| object["kind"] == kind).expect(kind);
    objects.remove(at);
}

fn edit_file(objects: &mut Bundle, file: &str, from: &str, to: &str) {
    let text = &mut map_with(objects, file)["data"][file];
    let new = text.as_str().unwrap().replace(from, to);
    assert_ne!(text.as_str().unwrap(), new, "{from} is in {file}");
    *text = json!(new);
}

fn volume<'b>(objects: &'b mut Bundle, name: &str) -> &'b mut Value {
    let volumes = job(objects)["spec"]["template"]["spec"]["volumes"].as_array_mut().unwrap();
    volumes.iter_mut().find(|volume| volume["name"] == name).expect(name)
}

fn runner(objects: &mut Bundle) -> &mut Value {
    let containers = job(objects)["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap();
    let runs = |c: &Value| c["command"][1].as_str().is_some_and(|word| word.contains("/wait-"));
    containers.iter_mut().find(|c| runs(c)).expect("a container that runs Flux")
}

/// Gives the bundle its Secret, with this certificate, and the expectation of that one.
fn with_secret(objects: &mut Bundle, in_secret: &Certificate, expected: &Certificate) {
    let name = secret_name("hello", expected.public_key());
    job(objects)["metadata"]["annotations"]["flux-gen.dev/secrets"] = json!("plain");
    let listed = &mut job(objects)["metadata"]["annotations"]["flux-gen.dev/objects"];
    *listed = json!(listed.as_str().unwrap().replace("secret/hello-curve", &format!("secret/{name}")));
    volume(objects, "flux-curve")["secret"]["secretName"] = json!(name);
    let namespace = job(objects)["metadata"]["namespace"].clone();
    objects.push(json!({"apiVersion": "v1", "kind": "Secret", "immutable": true, "type": "Opaque",
        "metadata": {"name": name, "namespace": namespace},
        "data": {"curve.cert": STANDARD.encode(in_secret.to_file_text().as_bytes())}}));
    let secret = objects.last_mut().unwrap();
    if secret["metadata"]["namespace"].is_null() {
        secret["metadata"].as_object_mut().unwrap().remove("namespace");
    }
}

fn certificate(byte: u8) -> Certificate {
    Certificate::from_secret_bytes([byte; 32], "hello")
}

/// Where, what is done, codes that must be found, words of the help of the first of them.
type Breakage = (&'static str, &'static str, fn(&mut Bundle), &'static [&'static str], &'static str);

const BREAKAGES: &[Breakage] = &[
    (
        "label of a network policy",
        "restricted/hardened",
        |b| job(b)["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"] = json!("x"),
        &["FG654", "FG676"],
        "commonLabels",
    ),
    ("network policy dropped", "restricted/hardened", |b| drop_kind(b, "NetworkPolicy"), &["FG667"], "$patch: delete"),
    ("namePrefix", "hpc/elastic", |b| rename(b, "pre-", ""), &["FG651", "FG653", "FG654"], "`namePrefix: pre-`"),
    ("nameSuffix", "hpc/lammps", |b| rename(b, "", "-prod"), &["FG651", "FG653", "FG654"], "`nameSuffix: -prod`"),
    (
        "both",
        "hpc/lammps",
        |b| rename(b, "a-", "-b"),
        &["FG651"],
        "`namePrefix: a-` (kustomize and Flux CD; `kustomize.namePrefix` of Argo CD) and `nameSuffix: -b`",
    ),
    (
        "prefix with services Pod",
        "workflows/artifacts",
        |b| rename(b, "x-", ""),
        &["FG653", "FG651"],
        "`namePrefix: x-`",
    ),
    ("Job renamed", "hpc/lammps", |b| job(b)["metadata"]["name"] = json!("other"), &["FG651", "FG654"], "a patch"),
    (
        "Service renamed",
        "hpc/lammps",
        |b| of(b, "Service")["metadata"]["name"] = json!("lammps-svc"),
        &["FG653"],
        "nameSuffix: -svc",
    ),
    (
        "subdomain",
        "hpc/lammps",
        |b| job(b)["spec"]["template"]["spec"]["subdomain"] = json!("net"),
        &["FG653"],
        "a patch",
    ),
    (
        "selector",
        "hpc/lammps",
        |b| of(b, "Service")["spec"]["selector"]["job-name"] = json!("x"),
        &["FG654"],
        "commonLabels",
    ),
    ("no selector", "hpc/lammps", |b| of(b, "Service")["spec"]["selector"] = json!({}), &["FG654"], "a patch"),
    (
        "commonLabels",
        "hpc/lammps",
        |b| {
            of(b, "Service")["spec"]["selector"]["team"] = json!("a");
            job(b)["spec"]["template"]["metadata"]["labels"]["team"] = json!("a");
        },
        &["FG655"],
        "`commonLabels`",
    ),
    (
        "label of scheduling",
        "hpc/lammps",
        |b| job(b)["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/name"] = json!("x"),
        &["FG676"],
        "commonLabels",
    ),
    (
        "label of a sidecar's Service",
        "workflows/rest-server",
        |b| job(b)["spec"]["template"]["metadata"]["labels"]["hpa-selector"] = json!("x"),
        &["FG654"],
        "commonLabels",
    ),
    (
        "cluster IP",
        "hpc/lammps",
        |b| drop(of(b, "Service")["spec"].as_object_mut().unwrap().remove("clusterIP")),
        &["FG656"],
        "a patch",
    ),
    (
        "late addresses",
        "hpc/lammps",
        |b| of(b, "Service")["spec"]["publishNotReadyAddresses"] = json!(false),
        &["FG656"],
        "a patch",
    ),
    ("node port", "hpc/lammps", |b| of(b, "Service")["spec"]["type"] = json!("NodePort"), &["FG656"], "a patch"),
    ("parallelism", "hpc/lammps", |b| job(b)["spec"]["parallelism"] = json!(1), &["FG657"], "a patch"),
    (
        "fewer pods",
        "hpc/lammps",
        |b| {
            job(b)["spec"]["parallelism"] = json!(1);
            job(b)["spec"]["completions"] = json!(1);
        },
        &["FG657"],
        "a patch",
    ),
    (
        "parallelism of an elastic one",
        "hpc/elastic",
        |b| job(b)["spec"]["parallelism"] = json!(1),
        &["FG657"],
        "a patch",
    ),
    ("no index", "hpc/lammps", |b| job(b)["spec"]["completionMode"] = json!("NonIndexed"), &["FG657"], "a patch"),
    (
        "more pods",
        "hpc/lammps",
        |b| {
            job(b)["spec"]["parallelism"] = json!(99);
            job(b)["spec"]["completions"] = json!(99);
        },
        &["FG652"],
        "a patch",
    ),
    ("quorum", "hpc/elastic", |b| map_with(b, "quorum")["data"]["quorum"] = json!("none\n"), &["FG658"], "a patch"),
    (
        "quorum above the pods",
        "hpc/elastic",
        |b| map_with(b, "quorum")["data"]["quorum"] = json!("5\n"),
        &["FG657"],
        "a patch",
    ),
    ("nodes", "hpc/elastic", |b| map_with(b, "quorum")["data"]["nodes"] = json!("-N 8\n"), &["FG658"], "a patch"),
    (
        "substitution",
        "hpc/lammps",
        |b| {
            edit_file(b, "common.sh", "$viewbase", "");
            drop(map_with(b, "common.sh")["metadata"].as_object_mut().unwrap().remove("annotations"));
        },
        &["FG659", "FG666"],
        "`postBuild` of Flux CD",
    ),
    ("broker.toml", "hpc/lammps", |b| edit_file(b, "broker.toml", "8050", "8051"), &["FG659"], "a patch"),
    (
        "a script dropped",
        "hpc/lammps",
        |b| drop(map_with(b, "common.sh")["data"].as_object_mut().unwrap().remove("common.sh")),
        &["FG659"],
        "a patch",
    ),
    (
        "init containers replaced",
        "hpc/lammps",
        |b| job(b)["spec"]["template"]["spec"]["initContainers"] = json!([{"name": "mine", "image": "x"}]),
        &["FG672"],
        "a patch",
    ),
    ("suspended", "hpc/lammps", |b| job(b)["spec"]["suspend"] = json!(true), &["FG678"], "a patch"),
    (
        "DNS of the node",
        "hpc/lammps",
        |b| job(b)["spec"]["template"]["spec"]["dnsPolicy"] = json!("Default"),
        &["FG653"],
        "a patch",
    ),
    ("hostlist", "hpc/lammps", |b| edit_file(b, "hostlist", "lammps", "other"), &["FG651", "FG659"], "a patch"),
    (
        "leader's name",
        "hpc/lammps",
        |b| edit_file(b, "common.sh", "mainHost=lammps-0", "mainHost=a-0"),
        &["FG651"],
        "a patch",
    ),
    ("reference", "hpc/lammps", |b| volume(b, "flux-scripts")["configMap"]["name"] = json!("x"), &["FG660"], "a patch"),
    (
        "ConfigMap renamed",
        "hpc/lammps",
        |b| {
            let map = map_with(b, "broker.toml");
            map["metadata"]["name"] = json!(format!("my-{}", map["metadata"]["name"].as_str().unwrap()));
        },
        &["FG660"],
        "`namePrefix: my-`",
    ),
    ("mounts replaced", "hpc/lammps", |b| runner(b)["volumeMounts"] = json!([]), &["FG661"], "a patch"),
    (
        "volumes replaced",
        "hpc/lammps",
        |b| job(b)["spec"]["template"]["spec"]["volumes"] = json!([]),
        &["FG661"],
        "a patch",
    ),
    ("certificate on disk", "hpc/lammps", |b| volume(b, "flux-run")["emptyDir"] = json!({}), &["FG661"], "a patch"),
    (
        "another kind of volume",
        "hpc/lammps",
        |b| *volume(b, "flux-config") = json!({"name": "flux-config", "emptyDir": {}}),
        &["FG661"],
        "a patch",
    ),
    (
        "Secret dropped",
        "default/hello",
        |b| {
            with_secret(b, &certificate(1), &certificate(1));
            drop_kind(b, "Secret");
        },
        &["FG662"],
        "$patch: delete",
    ),
    (
        "Secret renamed alone",
        "default/hello",
        |b| volume(b, "flux-curve")["secret"]["secretName"] = json!("x-hello-curve"),
        &["FG663"],
        "namePrefix: x-",
    ),
    (
        "no certificate in the Secret",
        "default/hello",
        |b| {
            with_secret(b, &certificate(1), &certificate(1));
            of(b, "Secret")["data"] = json!({});
        },
        &["FG663"],
        "a patch",
    ),
    (
        "namespace of one object",
        "hpc/lammps",
        |b| map_with(b, "broker.toml")["metadata"]["namespace"] = json!("x"),
        &["FG664"],
        "`namespace`",
    ),
    (
        "namespace in text",
        "hpc/lammps",
        |b| {
            runner(b)["env"] = json!([{"name": "DB", "value": "db.hpc.svc.cluster.local"}]);
            for object in b.iter_mut() {
                object["metadata"]["namespace"] = json!("other");
            }
        },
        &["FG665"],
        "`namespace`",
    ),
    (
        "guard of scripts",
        "hpc/lammps",
        |b| map_with(b, "common.sh")["metadata"]["annotations"] = json!({}),
        &["FG666"],
        "annotations",
    ),
    (
        "guard of the Job",
        "hpc/lammps",
        |b| job(b)["metadata"]["annotations"]["kustomize.toolkit.fluxcd.io/substitute"] = json!("Disabled"),
        &["FG666"],
        "annotations",
    ),
    ("Service dropped", "hpc/lammps", |b| drop_kind(b, "Service"), &["FG667"], "$patch: delete"),
    (
        "scripts dropped",
        "hpc/lammps",
        |b| b.retain(|o| o["data"].get("common.sh").is_none()),
        &["FG667"],
        "$patch: delete",
    ),
    ("services Pod dropped", "workflows/artifacts", |b| drop_kind(b, "Pod"), &["FG667"], "$patch: delete"),
    (
        "sidecar's Service dropped",
        "workflows/rest-server",
        |b| b.retain(|o| o["kind"] != "Service" || o["spec"]["clusterIP"] == "None"),
        &["FG667"],
        "$patch: delete",
    ),
    (
        "twice",
        "hpc/lammps",
        |b| {
            let copy = of(b, "Service").clone();
            b.push(copy);
        },
        &["FG668"],
        "two paths",
    ),
    ("Job dropped", "hpc/lammps", |b| drop_kind(b, "Job"), &["FG669"], "$patch: delete"),
    (
        "mutable",
        "hpc/lammps",
        |b| drop(map_with(b, "common.sh").as_object_mut().unwrap().remove("immutable")),
        &["FG670"],
        "a patch",
    ),
    (
        "restart policy",
        "hpc/lammps",
        |b| job(b)["spec"]["template"]["spec"]["restartPolicy"] = json!("OnFailure"),
        &["FG671"],
        "a patch",
    ),
    (
        "host network",
        "hpc/lammps",
        |b| job(b)["spec"]["template"]["spec"]["hostNetwork"] = json!(true),
        &["FG671"],
        "a patch",
    ),
    ("wrong type", "hpc/lammps", |b| job(b)["spec"]["completions"] = json!("two"), &["FG671"], "a patch"),
    ("command", "hpc/lammps", |b| runner(b)["command"] = json!(["sleep", "1d"]), &["FG672"], "a patch"),
    (
        "script of another bundle",
        "hpc/lammps",
        |b| runner(b)["command"] = json!(["/bin/bash", "/flux_operator/wait-7.sh"]),
        &["FG672"],
        "a patch",
    ),
    (
        "no success policy",
        "hpc/lammps",
        |b| drop(job(b)["spec"].as_object_mut().unwrap().remove("successPolicy")),
        &["FG673"],
        "a patch",
    ),
    (
        "deleted when finished",
        "hpc/lammps",
        |b| job(b)["spec"]["ttlSecondsAfterFinished"] = json!(60),
        &["FG674"],
        "a patch",
    ),
    (
        "annotations stripped",
        "hpc/lammps",
        |b| {
            for object in b.iter_mut() {
                object["metadata"].as_object_mut().unwrap().remove("annotations");
            }
        },
        &["FG675", "FG666"],
        "annotations",
    ),
    (
        "stripped and prefixed",
        "hpc/lammps",
        |b| {
            rename(b, "p-", "");
            drop(job(b)["metadata"].as_object_mut().unwrap().remove("annotations"));
        },
        &["FG651", "FG653", "FG675"],
        "namePrefix: p-",
    ),
    (
        "stripped and dropped",
        "hpc/lammps",
        |b| {
            drop(job(b)["metadata"].as_object_mut().unwrap().remove("annotations"));
            drop_kind(b, "Service");
            b.retain(|o| o["data"].get("broker.toml").is_none());
        },
        &["FG667", "FG675"],
        "$patch: delete",
    ),
    (
        "services Pod moved",
        "workflows/artifacts",
        |b| of(b, "Pod")["spec"]["subdomain"] = json!("x"),
        &["FG653"],
        "a patch",
    ),
    (
        "services Pod renamed inside",
        "workflows/artifacts",
        |b| of(b, "Pod")["spec"]["hostname"] = json!("x"),
        &["FG653"],
        "a patch",
    ),
    (
        "services Pod relabelled",
        "workflows/artifacts",
        |b| of(b, "Pod")["metadata"]["labels"]["job-name"] = json!("x"),
        &["FG654"],
        "commonLabels",
    ),
];

#[test]
fn clean_bundles_have_no_findings() {
    let mut all = Vec::new();
    for (name, objects) in bundles() {
        assert_eq!(run(&objects, None), [], "{name}");
        all.extend(objects);
    }
    assert_eq!(run(&all, None), [], "all together");
}

#[test]
fn allowed_overrides_have_no_findings() {
    for (name, mut objects) in bundles() {
        for object in &mut objects {
            object["metadata"]["namespace"] = json!("elsewhere");
            object["metadata"]["labels"]["argocd.argoproj.io/instance"] = json!("app");
            object["metadata"]["annotations"]["argocd.argoproj.io/tracking-id"] = json!("app:batch/Job:x/y");
        }
        for list in ["containers", "initContainers"] {
            for container in job(&mut objects)["spec"]["template"]["spec"][list].as_array_mut().into_iter().flatten() {
                container["image"] = json!(format!("mirror.example/{}", container["image"].as_str().unwrap()));
            }
        }
        let found = run(&objects, None);
        assert!(found.iter().all(|d| d.severity == Severity::Note), "{name}: {found:?}");
    }
}

#[test]
fn breakages_are_found_and_blamed() {
    assert!(BREAKAGES.len() >= 20);
    for (title, name, break_it, codes, words) in BREAKAGES {
        let mut objects = bundle(name);
        break_it(&mut objects);
        let found = run(&objects, None);
        let list: Vec<String> = found.iter().map(|d| format!("{} {} | {:?}", d.code.id, d.message, d.help)).collect();
        for code in *codes {
            assert!(found.iter().any(|d| d.code.id == *code), "{title}: no {code} in {list:#?}");
        }
        let first = found.iter().find(|d| d.code.id == codes[0]).unwrap();
        let help = first.help.as_deref().unwrap_or_default();
        assert!(help.contains(words) && help.contains("instead: "), "{title}: {help}");
        assert!(found.iter().all(|d| d.span.is_some()), "{title}: every finding has a place");
    }
}

#[test]
fn places_are_those_of_the_text() {
    let mut objects = bundle("hpc/elastic");
    job(&mut objects)["spec"]["template"]["spec"]["subdomain"] = json!("net");
    let text = serde_json::to_string_pretty(&json!({"apiVersion": "v1", "kind": "List", "items": objects})).unwrap();
    let mut sources = SourceMap::new();
    let (read, _) = read_objects(&mut sources, vec![("x.yaml".to_owned(), text.clone().into_bytes())]);
    let found = audit(&read.objects, None).diagnostics.sorted();
    let span = found.iter().find(|d| d.code.id == "FG653").unwrap().span.unwrap();
    assert_eq!(&text[span.start..span.end], "\"subdomain\"");
}

#[test]
fn another_version_can_be_asked_for() {
    let objects = bundle("hpc/lammps");
    assert_eq!(run(&objects, Some("1.36")), []);
    let found = run(&objects, Some("1.30"));
    assert!(found.iter().any(|d| d.code.id == "FG671" && d.message.contains("successPolicy")), "{found:?}");
}

#[test]
fn one_bundle_in_two_namespaces_is_two_clusters() {
    let mut objects = bundle("hpc/lammps");
    let mut copy = objects.clone();
    for object in &mut copy {
        object["metadata"]["namespace"] = json!("dev");
    }
    objects.extend(copy);
    assert_eq!(run(&objects, None), []);
    let at = objects.iter().rposition(|o| o["kind"] == "Service").unwrap();
    objects.remove(at);
    let found = run(&objects, None);
    assert_eq!(found.iter().map(|d| d.code.id).collect::<Vec<_>>(), ["FG667"], "{found:?}");
}

#[test]
fn a_mirrored_view_is_a_note() {
    let mut objects = bundle("hpc/lammps");
    job(&mut objects)["spec"]["template"]["spec"]["initContainers"][0]["image"] = json!("mirror.example/view:1");
    let found = run(&objects, None);
    assert_eq!(found.iter().map(|d| (d.code.id, d.severity)).collect::<Vec<_>>(), [("FG677", Severity::Note)]);
}

#[test]
fn secrets_are_compared_with_the_bundle_and_never_shown() {
    let (one, two) = (certificate(1), certificate(2));
    let mut objects = bundle("default/hello");
    with_secret(&mut objects, &one, &one);
    assert_eq!(run(&objects, None), []);

    // A bundle that expects a key, as the entrypoint writes it.
    let mut objects = bundle("default/hello");
    with_secret(&mut objects, &two, &one);
    let line = format!("\nif [ \"$flux_gen_found\" != '\"{}\"' ]; then\n    :\nfi\n", one.public_key());
    let script = &mut map_with(&mut objects, "wait-0.sh")["data"]["wait-0.sh"];
    *script = json!(format!("{}{line}", script.as_str().unwrap()));
    let found = run(&objects, None);
    let wrong: Vec<&Diagnostic> = found.iter().filter(|d| d.code.id == "FG663").collect();
    assert_eq!(wrong.len(), 1, "{found:?}");
    assert!(wrong[0].message.contains(one.public_key()) && wrong[0].message.contains(two.public_key()));
    for diagnostic in &found {
        let shown = format!("{} {:?}", diagnostic.message, diagnostic.help);
        assert!(!shown.contains(two.secret_key_text().as_str()), "a private key is shown");
    }

    // A name that belongs to another key.
    let mut objects = bundle("default/hello");
    with_secret(&mut objects, &one, &two);
    let script = &mut map_with(&mut objects, "wait-0.sh")["data"]["wait-0.sh"];
    *script = json!(format!("{}{line}", script.as_str().unwrap()));
    let found = run(&objects, None);
    assert!(found.iter().any(|d| d.code.id == "FG663" && d.message.contains("is for another public key")), "{found:?}");
}

#[test]
fn sealed_secrets_stay_in_their_namespace() {
    let mut objects = bundle("hpc/lammps");
    job(&mut objects)["metadata"]["annotations"]["flux-gen.dev/secrets"] = json!("sealed");
    assert!(run(&objects, None).iter().any(|d| d.code.id == "FG662"), "it is missing");
    objects.push(json!({"apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret",
        "metadata": {"name": "lammps-curve", "namespace": "hpc", "annotations": {}}, "spec": {"encryptedData": {}}}));
    assert_eq!(run(&objects, None), []);
    for object in &mut objects {
        object["metadata"]["namespace"] = json!("elsewhere");
    }
    let found = run(&objects, None);
    assert_eq!(found.iter().map(|d| d.code.id).collect::<Vec<_>>(), ["FG663"], "{found:?}");
    assert!(found[0].message.contains("was sealed for the namespace `hpc`"));
    objects.last_mut().unwrap()["metadata"]["annotations"]["sealedsecrets.bitnami.com/cluster-wide"] = json!("true");
    assert_eq!(run(&objects, None), []);
}

#[test]
fn without_a_cluster_there_is_nothing_to_audit() {
    for objects in [vec![], vec![json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})]] {
        let found = run(&objects, None);
        assert_eq!(found.iter().map(|d| d.code.id).collect::<Vec<_>>(), ["FG650"]);
    }
}

/// Names, numbers and texts that the bootstrap of a cluster depends on, as JSON pointers into each object.
fn bootstrap_fields(object: &Value) -> Vec<String> {
    // Nothing refers to a NetworkPolicy by its name.
    let mut fields = Vec::new();
    if object["kind"] != "NetworkPolicy" {
        fields.push("/metadata/name".to_owned());
    }
    match object["kind"].as_str().unwrap() {
        "Service" if object["spec"]["clusterIP"] == "None" => fields.push("/spec/clusterIP".to_owned()),
        "Job" => {
            let spec = "/spec/template/spec";
            fields.push(format!("{spec}/subdomain"));
            for (v, volume) in
                object.pointer(&format!("{spec}/volumes")).unwrap().as_array().unwrap().iter().enumerate()
            {
                let ours = ["flux-scripts", "flux-config", "flux-curve", "flux-run", "flux-size"];
                if ours.contains(&volume["name"].as_str().unwrap()) {
                    fields.push(format!("{spec}/volumes/{v}/name"));
                    for source in ["configMap/name", "secret/secretName", "emptyDir/medium"] {
                        let pointer = format!("{spec}/volumes/{v}/{source}");
                        fields.extend(object.pointer(&pointer).is_some().then_some(pointer));
                    }
                }
            }
            let containers = object.pointer(&format!("{spec}/containers")).unwrap().as_array().unwrap();
            for (c, container) in containers.iter().enumerate() {
                if !container["command"][1].as_str().is_some_and(|word| word.contains("/wait-")) {
                    continue;
                }
                fields.push(format!("{spec}/containers/{c}/command/1"));
                for (m, mount) in container["volumeMounts"].as_array().unwrap().iter().enumerate() {
                    let path = mount["mountPath"].as_str().unwrap();
                    if ["/flux_operator", "/etc/flux-gen", "/etc/flux-gen-curve", "/run/flux-gen"].contains(&path) {
                        fields.push(format!("{spec}/containers/{c}/volumeMounts/{m}/mountPath"));
                        fields.push(format!("{spec}/containers/{c}/volumeMounts/{m}/name"));
                    }
                }
            }
        }
        "ConfigMap" if object["immutable"] == true => {
            fields.extend(object["data"].as_object().unwrap().keys().map(|key| format!("/data/{key}")));
        }
        "NetworkPolicy" => {
            for selector in
                ["/spec/podSelector", "/spec/ingress/0/from/0/podSelector", "/spec/egress/0/to/0/podSelector"]
            {
                let labels = object.pointer(&format!("{selector}/matchLabels")).unwrap().as_object().unwrap();
                fields.extend(labels.keys().map(|key| format!("{selector}/matchLabels/{}", key.replace('/', "~1"))));
            }
        }
        "Pod" => fields.extend(["/spec/hostname".to_owned(), "/spec/subdomain".to_owned()]),
        _ => {}
    }
    if object["kind"] == "Service" {
        let selector = object["spec"]["selector"].as_object().unwrap();
        fields.extend(selector.keys().map(|key| format!("/spec/selector/{}", key.replace('/', "~1"))));
    }
    fields
}

/// The text with a letter more: at its start, within, or at its end.
fn misspelt(text: &str, way: usize) -> String {
    let middle = text.char_indices().map(|(at, _)| at).nth(text.chars().count() / 2).unwrap_or(0);
    let at = [0, middle, text.len()][way % 3];
    format!("{}0{}", &text[..at], &text[at..])
}

/// Every field of every example, not a sample: a sample passes on one day and fails on another.
#[test]
fn no_single_change_of_a_bootstrap_name_is_missed() {
    let missed: Vec<String> = bundles()
        .par_iter()
        .flat_map_iter(|(name, bundle)| {
            let fields = bundle.iter().enumerate().flat_map(|(number, object)| {
                bootstrap_fields(object).into_iter().map(move |pointer| (number, pointer))
            });
            fields.enumerate().filter_map(move |(way, (number, pointer))| {
                let mut objects = bundle.clone();
                let value = objects[number].pointer_mut(&pointer).unwrap();
                let text = misspelt(value.as_str().unwrap(), way);
                *value = json!(text);
                let silent = run(&objects, None).iter().all(|d| d.severity == Severity::Note);
                silent.then(|| format!("{name}: {} {pointer} became {text:?}", bundle[number]["kind"]))
            })
        })
        .collect();
    assert_eq!(missed, [] as [String; 0]);
}

/// Objects as `kubectl get -o yaml` shows them have more than those that were applied.
#[test]
fn what_an_api_server_adds_is_no_finding() {
    for (name, mut objects) in bundles() {
        for object in &mut objects {
            object["metadata"]["uid"] = json!("6e1c7c1e-0000-4000-8000-000000000000");
            object["metadata"]["resourceVersion"] = json!("1");
            object["status"] = json!({});
            if object["kind"] == "Job" {
                let label = json!({"batch.kubernetes.io/controller-uid": "6e1c7c1e-0000-4000-8000-000000000000"});
                object["spec"]["selector"] = json!({ "matchLabels": label });
                object["spec"]["suspend"] = json!(false);
                let job = object["metadata"]["name"].clone();
                let labels = &mut object["spec"]["template"]["metadata"]["labels"];
                labels["job-name"] = job.clone();
                labels["batch.kubernetes.io/job-name"] = job;
            }
            if object["kind"] == "Service" && object["spec"]["clusterIP"] == "None" {
                object["spec"]["clusterIPs"] = json!(["None"]);
                object["spec"]["type"] = json!("ClusterIP");
            }
        }
        assert_eq!(run(&objects, None), [], "{name}");
    }
}

/// The form of the test data is what the program writes.
#[test]
fn yaml_and_json_are_read_alike() {
    let text = fs::read_to_string(generated().join("hpc/elastic/job.yaml")).unwrap();
    let (read, _) = read_objects(&mut SourceMap::new(), vec![("job.yaml".to_owned(), text.clone().into_bytes())]);
    let value = Value::deserialize(serde_norway::Deserializer::from_str(&text)).unwrap();
    assert_eq!(read.objects[0].value, value);
}
