//! Compiles a case and compares.

use std::collections::BTreeMap;

use flux_gen::compile::{Input, compile};
use flux_gen::diag::{Severity, SourceMap};
use flux_gen::spec::{ReadOptions, read};
use serde_json::Value;

/// A small spec and what must come of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    /// Its name in `docs/seeds.md`.
    pub(crate) name: &'static str,
    /// The document: `spec` of a MiniCluster `job` in namespace `ns`, or whole documents when it says `apiVersion`.
    pub(crate) spec: &'static str,
    /// What must hold, all of it.
    pub(crate) expect: &'static [Expect],
}

/// One thing that must hold.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Expect {
    /// The Job has this value (JSON) at this pointer.
    Job(&'static str, &'static str),
    /// The Job has nothing at this pointer.
    NoJob(&'static str),
    /// Kind and name of an object, pointer, value (JSON).
    Object(&'static str, &'static str, &'static str, &'static str),
    /// There is no object of this kind and name.
    NoObject(&'static str, &'static str),
    /// The container that runs Flux has this value (JSON) at this pointer.
    Runner(&'static str, &'static str),
    /// The first container that does not run Flux and is not the view's has this value (JSON) at this pointer.
    Sidecar(&'static str, &'static str),
    /// A file of a ConfigMap contains this text.
    File(&'static str, &'static str),
    /// A file of a ConfigMap does not contain this text.
    FileLacks(&'static str, &'static str),
    /// No ConfigMap has this file.
    NoFile(&'static str),
    /// An error of this code, whose message or help contains this text.
    Error(&'static str, &'static str),
    /// A warning of this code, whose message or help contains this text.
    Warning(&'static str, &'static str),
}

use Expect::{Error, File, FileLacks, Job, NoFile, NoJob, NoObject, Object, Runner, Sidecar, Warning};

struct Outcome {
    objects: Vec<Value>,
    files: BTreeMap<String, String>,
    remarks: Vec<(Severity, &'static str, String)>,
}

/// What is wrong with a case, in words.
pub(crate) fn run(case: &Case) -> Vec<String> {
    let outcome = outcome(case.spec);
    let mut wrong: Vec<String> = case
        .expect
        .iter()
        .filter_map(|expect| check(expect, &outcome))
        .map(|w| format!("{}: {w}", case.name))
        .collect();
    let announced = |severity, code: &str| {
        case.expect.iter().any(|expect| match expect {
            Error(known, _) => severity == Severity::Error && *known == code,
            Warning(known, _) => severity == Severity::Warning && *known == code,
            _ => false,
        })
    };
    for (severity, code, text) in &outcome.remarks {
        if !announced(*severity, code) {
            wrong.push(format!("{}: not expected: {code} {text}", case.name));
        }
    }
    wrong
}

fn outcome(spec: &str) -> Outcome {
    let text = if spec.contains("apiVersion:") {
        spec.to_owned()
    } else {
        let body: String = spec.lines().map(|line| format!("  {line}\n")).collect();
        format!(
            "apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\n\
             metadata: {{name: job, namespace: ns}}\nspec:\n{body}"
        )
    };
    let mut sources = SourceMap::new();
    let inputs = vec![("case.yaml".to_owned(), text.into_bytes())];
    let (documents, mut diagnostics) = read(&mut sources, inputs, &ReadOptions::default());
    let public_keys = BTreeMap::new();
    let compiled =
        compile(&Input { documents: &documents, project: None, set: &[], is_whole: true, public_keys: &public_keys });
    diagnostics.extend(compiled.diagnostics);
    let remarks = diagnostics.iter().filter(|d| matches!(d.severity, Severity::Error | Severity::Warning));
    let remarks = remarks
        .map(|d| (d.severity, d.code.id, format!("{} ({})", d.message, d.help.as_deref().unwrap_or_default())))
        .collect();
    let objects: Vec<Value> = compiled
        .clusters
        .iter()
        .flat_map(|cluster| cluster.objects.iter().map(|object| serde_json::to_value(object).unwrap()))
        .collect();
    let files = objects.iter().filter_map(|o| o.pointer("/data")?.as_object()).flatten();
    let files = files.filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect();
    Outcome { objects, files, remarks }
}

fn check(expect: &Expect, outcome: &Outcome) -> Option<String> {
    let job = || object(outcome, "Job", "job");
    match expect {
        Job(pointer, value) => differs("Job", job(), pointer, value),
        NoJob(pointer) => job().and_then(|job| job.pointer(pointer)).map(|found| format!("Job{pointer} is {found}")),
        Object(kind, name, pointer, value) => {
            differs(&format!("{kind} {name}"), object(outcome, kind, name), pointer, value)
        }
        NoObject(kind, name) => object(outcome, kind, name).map(|_| format!("there is a {kind} {name}")),
        Runner(pointer, value) => differs("runner", container(job(), |name| name == "job"), pointer, value),
        Sidecar(pointer, value) => {
            differs("sidecar", container(job(), |name| name != "job" && name != "flux-view"), pointer, value)
        }
        File(name, text) => match outcome.files.get(*name) {
            Some(file) if file.contains(text) => None,
            Some(_) => Some(format!("{name} has no {text:?}")),
            None => Some(format!("no file {name}, only {:?}", outcome.files.keys())),
        },
        FileLacks(name, text) => match outcome.files.get(*name) {
            Some(file) if file.contains(text) => Some(format!("{name} has {text:?}")),
            Some(_) => None,
            None => Some(format!("no file {name}")),
        },
        NoFile(name) => outcome.files.get(*name).map(|_| format!("there is a file {name}")),
        Error(code, text) => lacks_remark(outcome, Severity::Error, code, text),
        Warning(code, text) => lacks_remark(outcome, Severity::Warning, code, text),
    }
}

fn lacks_remark(outcome: &Outcome, severity: Severity, code: &str, text: &str) -> Option<String> {
    let found = outcome.remarks.iter().any(|(s, c, message)| *s == severity && *c == code && message.contains(text));
    (!found).then(|| format!("no {code} with {text:?} in {:?}", outcome.remarks))
}

/// Names of ConfigMaps that never change end in a digest of ten characters.
fn object<'o>(outcome: &'o Outcome, kind: &str, name: &str) -> Option<&'o Value> {
    outcome.objects.iter().find(|object| {
        let found = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let front = found.len().checked_sub(11).map_or("", |end| &found[..end]);
        object["kind"] == kind && (found == name || kind == "ConfigMap" && front == name)
    })
}

fn container(job: Option<&Value>, wanted: impl Fn(&str) -> bool) -> Option<&Value> {
    let pod = job?.pointer("/spec/template/spec")?;
    let lists = ["containers", "initContainers"].into_iter().filter_map(|list| pod.get(list)?.as_array());
    lists.flatten().find(|container| container["name"].as_str().is_some_and(&wanted))
}

fn differs(what: &str, value: Option<&Value>, pointer: &str, expected: &str) -> Option<String> {
    let Some(value) = value else { return Some(format!("there is no {what}")) };
    let expected: Value = serde_json::from_str(expected).unwrap_or_else(|e| panic!("{expected}: {e}"));
    let found = value.pointer(pointer).unwrap_or(&Value::Null);
    (*found != expected).then(|| format!("{what}{pointer} is {found}, not {expected}"))
}
