//! Cases of the corpus, and what flux-gen makes of their inputs.

use std::collections::BTreeMap;
use std::path::Path;

use flux_gen::compile::{self, Compiled};
use flux_gen::diag::{Severity, SourceMap};
use flux_gen::flux::certificate::Certificate;
use flux_gen::model::Cluster;
use flux_gen::object::Object;
use flux_gen::spec::{self, ReadOptions};
use serde_json::{Value, json};

/// One folder of the corpus.
pub struct Case {
    pub name: String,
    pub text: String,
    /// The document as plain data; null where it is no YAML.
    pub input: Value,
    pub expected: Value,
}

/// What flux-gen makes of a case.
pub struct Ours {
    /// Errors, one line each: code and message.
    pub errors: Vec<String>,
    /// Cluster and objects, when there is no error.
    pub built: Option<Built>,
}

/// A cluster that was accepted.
pub struct Built {
    pub cluster: Cluster,
    pub objects: Vec<Value>,
    /// The certificate that stands in the spec, which is then the one to use.
    pub certificate: Option<Certificate>,
    /// Texts of the bundle's ConfigMaps, by name of the ConfigMap and key.
    pub config_maps: BTreeMap<String, BTreeMap<String, String>>,
}

impl Case {
    pub fn read(folder: &Path) -> Option<Self> {
        let text = std::fs::read(folder.join("input.yaml")).ok()?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let expected = std::fs::read(folder.join("expected.json")).expect("every case has expected.json");
        let expected = serde_json::from_slice(&expected).expect("expected.json is JSON");
        let input = serde_norway::from_str(&text).unwrap_or(Value::Null);
        let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Some(Self { name, text, input, expected })
    }

    /// The same document with `logging.strict: false` written in it: to compare what follows a failing hook.
    pub fn without_strict(&self) -> Self {
        let mut input = self.input.clone();
        input["spec"]["logging"]["strict"] = json!(false);
        let text = serde_json::to_string(&input).expect("JSON values have a text");
        Self { name: self.name.clone(), text, input, expected: self.expected.clone() }
    }
}

/// Compiles a document; every cluster uses the test's own certificate.
pub fn compile(case: &Case, certificate: &Certificate) -> Ours {
    let mut sources = SourceMap::new();
    let inputs = vec![("input.yaml".to_owned(), case.text.clone().into_bytes())];
    let (documents, found) = spec::read(&mut sources, inputs, &ReadOptions::default());
    let mut errors: Vec<String> = lines(found.iter());
    let mut public_keys = BTreeMap::new();
    let input =
        compile::Input { documents: &documents, project: None, set: &[], is_whole: true, public_keys: &public_keys };
    for need in compile::certificate_needs(&input) {
        public_keys.insert(need, certificate.public_key().to_owned());
    }
    let input =
        compile::Input { documents: &documents, project: None, set: &[], is_whole: true, public_keys: &public_keys };
    let compiled = compile::compile(&input);
    errors.extend(lines(compiled.diagnostics.iter()));
    let built = if errors.is_empty() { built(compiled) } else { None };
    Ours { errors, built }
}

fn lines<'a>(found: impl Iterator<Item = &'a flux_gen::diag::Diagnostic>) -> Vec<String> {
    found.filter(|d| d.severity == Severity::Error).map(|d| format!("{} {}", d.code.id, d.message)).collect()
}

fn built(mut compiled: Compiled) -> Option<Built> {
    let cluster = compiled.clusters.pop()?;
    let objects = cluster.objects.iter().map(|o| serde_json::to_value(o).expect("objects are data")).collect();
    let mut config_maps = BTreeMap::new();
    for object in &cluster.objects {
        if let Object::ConfigMap(map) = object {
            config_maps.insert(object.name().to_owned(), map.data.clone().unwrap_or_default());
        }
    }
    Some(Built { cluster: cluster.cluster, objects, certificate: cluster.inline_certificate, config_maps })
}

/// Whether anybody refuses the document: the operator, or an API server the operator's objects.
pub fn expected_refusal(expected: &Value) -> Option<String> {
    let stage = expected["stage"].as_str().unwrap_or_default();
    if expected["valid"] != json!(true) || stage != "ok" {
        return Some(format!("operator: {stage}"));
    }
    if !expected["panic"].is_null() {
        return Some("operator: panic".to_owned());
    }
    if let Some(reject) = expected["apiRejects"].as_array().and_then(|list| list.first()) {
        return Some(format!("API server: {}", reject["error"].as_str().unwrap_or_default()));
    }
    if let Some(key) = expected["duplicateKeys"].as_array().and_then(|list| list.first()) {
        return Some(format!("YAML: {}", key.as_str().unwrap_or_default()));
    }
    None
}
