//! Reading every case of the conformance corpus, when it is there: the folder in `FLUX_GEN_CONFORMANCE`, else
//! `../shared/conformance/operator`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use flux_gen::diag::{Diagnostic, Severity, SourceMap};
use flux_gen::spec::{self, Documents, ReadOptions};

/// The folder with the operator's cases; says so and returns `None` when it is not there.
#[allow(clippy::disallowed_methods, clippy::print_stdout)]
fn corpus() -> Option<PathBuf> {
    let folder = match std::env::var_os("FLUX_GEN_CONFORMANCE") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/conformance/operator"),
    };
    if !folder.is_dir() && std::env::var_os("FLUX_GEN_CONFORMANCE").is_none() {
        println!("skipped: no ../shared");
        return None;
    }
    assert!(folder.is_dir(), "{} is no folder", folder.display());
    Some(folder)
}

struct Case {
    name: String,
    input: Vec<u8>,
    expected: serde_json::Value,
}

fn cases(corpus: &Path) -> Vec<Case> {
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(corpus).unwrap() {
        let folder = entry.unwrap().path();
        let Ok(input) = std::fs::read(folder.join("input.yaml")) else {
            continue;
        };
        let expected = std::fs::read(folder.join("expected.json")).unwrap();
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        cases.push(Case { name, input, expected: serde_json::from_slice(&expected).unwrap() });
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(cases.len() > 50, "only {} cases", cases.len());
    cases
}

fn read(case: &Case) -> (Documents, Vec<Diagnostic>, SourceMap) {
    let mut sources = SourceMap::new();
    let inputs = vec![("input.yaml".to_owned(), case.input.clone())];
    let (documents, diagnostics) = spec::read(&mut sources, inputs, &ReadOptions::default());
    (documents, diagnostics.sorted(), sources)
}

fn shown(diagnostics: &[Diagnostic], sources: &SourceMap) -> String {
    let mut text = String::new();
    for d in diagnostics {
        let place = d.span.map(|span| {
            let file = sources.get(span.file).unwrap();
            (file.line_column(span.start), &file.text[span.start..span.end])
        });
        text += &format!("  {} {} {place:?} {} ({:?})\n", d.severity.as_str(), d.code.id, d.message, d.help);
    }
    text
}

fn is_empty(value: &serde_json::Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

/// Words that kubectl reads as booleans are refused on purpose, as are duplicate keys and pruned fields.
fn refused_on_purpose(case: &Case, diagnostics: &[Diagnostic]) -> bool {
    let codes: BTreeSet<&str> = diagnostics.iter().map(|d| d.code.id).collect();
    let pruned = !is_empty(&case.expected["pruned"]);
    let duplicates = !is_empty(&case.expected["duplicateKeys"]);
    codes.iter().all(|code| match *code {
        "FG102" | "FG106" | "FG109" => pruned,
        "FG116" => duplicates,
        "FG105" => true,
        _ => false,
    })
}

#[test]
fn verdicts_of_reading_are_those_of_schema_and_decoding() {
    let Some(corpus) = corpus() else { return };
    let mut wrong = String::new();
    for case in cases(&corpus) {
        let (documents, diagnostics, sources) = read(&case);
        let errors: Vec<Diagnostic> = diagnostics.into_iter().filter(|d| d.severity == Severity::Error).collect();
        let stage = case.expected["stage"].as_str().unwrap();
        let refused = matches!(stage, "schema" | "decode");
        let right = if refused {
            !errors.is_empty() && errors.iter().all(|d| d.span.is_some_and(|span| span.end > 0))
        } else {
            documents.miniclusters.len() == 1 && refused_on_purpose(&case, &errors)
        };
        if !right {
            wrong += &format!("{} ({stage}):\n{}", case.name, shown(&errors, &sources));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// The document as Kubernetes reads it: as a companion, its values are taken over as they are.
fn as_json(case: &Case) -> Option<serde_json::Value> {
    let text = String::from_utf8(case.input.clone()).unwrap();
    let text = text.replace("apiVersion: flux-framework.org/v1alpha2", "apiVersion: example.org/v1");
    let inputs = vec![("input.yaml".to_owned(), text.replace("kind: MiniCluster", "kind: Thing").into_bytes())];
    let (documents, _) = spec::read(&mut SourceMap::new(), inputs, &ReadOptions::default());
    let mut value = documents.companions.into_iter().next()?.value;
    value["apiVersion"] = "flux-framework.org/v1alpha2".into();
    value["kind"] = "MiniCluster".into();
    Some(value)
}

#[test]
fn the_json_schema_has_the_same_verdicts() {
    let Some(corpus) = corpus() else { return };
    let validator = jsonschema::validator_for(&spec::schema::minicluster()).unwrap();
    let mut compared = 0;
    for case in cases(&corpus) {
        // Only the text shows a key that is written twice, or a boolean that is written `yes`.
        let (_, diagnostics, sources) = read(&case);
        if diagnostics.iter().any(|d| matches!(d.code.id, "FG105" | "FG116")) {
            continue;
        }
        let Some(value) = as_json(&case) else { continue };
        let errors = diagnostics.iter().any(|d| d.severity == Severity::Error);
        let schema_errors: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        let shown = shown(&diagnostics, &sources);
        assert_eq!(errors, !schema_errors.is_empty(), "{}: {schema_errors:?}\n{shown}", case.name);
        compared += 1;
    }
    assert!(compared > 50, "only {compared} cases were compared");
}

#[test]
fn every_field_of_the_crd_is_known() {
    let Some(corpus) = corpus() else { return };
    let index: serde_json::Value = serde_json::from_slice(&std::fs::read(corpus.join("index.json")).unwrap()).unwrap();
    let known: BTreeSet<String> = spec::explain::field_paths().into_iter().collect();
    let mut fields = BTreeSet::new();
    for case in index.as_array().unwrap() {
        fields.extend(case["fields"].as_array().unwrap().iter().map(|field| field.as_str().unwrap().to_owned()));
    }
    assert!(fields.len() >= 200, "only {} fields", fields.len());
    for field in fields {
        assert!(known.contains(&format!("spec.{field}")), "{field}");
    }
}
