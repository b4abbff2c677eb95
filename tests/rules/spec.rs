//! Rules on specs, from YAML text.
//!
//! The cases are in `tests/rules/*.yaml`, separated by `---`. A case is what stands under `spec:` (a line `metadata:` in
//! column 0 begins its own head); one container is added when there is none. A comment `#E FG211 -1` (error), `#W …`
//! (warning), `#N …` (note) on a line says what is found there: the code, and how the marked text begins. `# near FG211`
//! says that the case is close to one where that code fires. `# kubernetes 1.29`, `# suffix 11`
//! and `# pod-security restricted` set the context.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use flux_gen::diag::{Severity, SourceMap, codes};
use flux_gen::model::hardening::PodSecurity;
use flux_gen::rules::spec::{RuleContext, check};
use flux_gen::spec::{self, ReadOptions};

const HEAD: &str = "apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\n";

struct Case {
    place: String,
    text: String,
    context: RuleContext,
    expected: BTreeSet<String>,
    near: Vec<String>,
}

fn complete(body: &str) -> String {
    let mut text = HEAD.to_owned();
    if body.starts_with("metadata:") || body.contains("\nmetadata:") {
        text.push_str(body);
    } else {
        text.push_str("metadata:\n  name: flux-sample\nspec:\n");
        text.push_str(body);
    }
    if !body.contains("containers:") {
        text.push_str("  containers:\n  - image: rockylinux:9\n    command: hostname\n");
    }
    text
}

fn parse_case(place: String, body: &str) -> Case {
    let text = complete(body);
    let mut context = RuleContext {
        kubernetes: "1.33".parse().unwrap(),
        name_suffix: 0,
        flux_version: None,
        pod_security: PodSecurity::None,
    };
    let (mut expected, mut near) = (BTreeSet::new(), Vec::new());
    for (index, line) in text.lines().enumerate() {
        for marker in line.split(" #").skip(1) {
            if let Some((severity, rest)) = marker.split_once(' ').filter(|(s, _)| matches!(*s, "E" | "W" | "N")) {
                let (code, start) = rest.trim().split_once(' ').unwrap_or((rest.trim(), ""));
                expected.insert(format!("{severity} {code} line {} {start}", index + 1));
            }
        }
        if let Some((_, comment)) = line.split_once("# ") {
            let words: Vec<&str> = comment.split_whitespace().collect();
            match words.as_slice() {
                ["near", codes @ ..] => near.extend(codes.iter().map(|code| (*code).to_owned())),
                ["kubernetes", version] => {
                    context.kubernetes = version.parse().unwrap();
                }
                ["pod-security", "baseline"] => context.pod_security = PodSecurity::Baseline,
                ["pod-security", "restricted"] => context.pod_security = PodSecurity::Restricted,
                ["suffix", length] => context.name_suffix = length.parse().unwrap(),
                _ => {}
            }
        }
    }
    Case { place, text, context, expected, near }
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        for (index, body) in text.split("\n---\n").enumerate() {
            cases.push(parse_case(format!("{name} case {}", index + 1), &format!("{body}\n")));
        }
    }
    for (bytes, marker) in [(256 * 1024 - 1, "# near FG251"), (256 * 1024, "#E FG251 a")] {
        let body = format!("  pod:\n    annotations:\n      a: {} {marker}\n", "x".repeat(bytes));
        cases.push(parse_case(format!("annotations of {bytes} bytes"), &body));
    }
    cases
}

/// What is found, in the form of the markers; each text as long as the marker that it might belong to.
fn found(case: &Case) -> (BTreeSet<String>, Vec<String>) {
    let mut sources = SourceMap::new();
    let input = vec![("case.yaml".to_owned(), case.text.clone().into_bytes())];
    let (documents, reading) = spec::read(&mut sources, input, &ReadOptions::default());
    let reading: Vec<String> = reading.iter().map(|d| format!("reading: {} {}", d.code.id, d.message)).collect();
    assert!(reading.is_empty() && documents.miniclusters.len() == 1, "{}: {reading:?}\n{}", case.place, case.text);
    let mut messages = Vec::new();
    let mut lines = BTreeSet::new();
    for diagnostic in check(&documents.miniclusters[0], &case.context).sorted() {
        let span = diagnostic.span.unwrap();
        let file = sources.get(span.file).unwrap();
        let severity = match diagnostic.severity {
            Severity::Error => "E",
            Severity::Warning => "W",
            Severity::Note => "N",
        };
        let line = file.line_column(span.start).line;
        let head = format!("{severity} {} line {line} ", diagnostic.code.id);
        let marked = &file.text[span.start..span.end];
        let matching =
            case.expected.iter().find(|e| e.strip_prefix(&head).is_some_and(|start| marked.starts_with(start)));
        lines.insert(
            matching.cloned().unwrap_or_else(|| format!("{head}{}", marked.lines().next().unwrap_or_default())),
        );
        assert!(!diagnostic.message.ends_with('.'), "{}", diagnostic.message);
        assert!(!diagnostic.message.contains('\n'), "{}", diagnostic.message);
        messages.push(format!("{head}{} ({:?})", diagnostic.message, diagnostic.help));
    }
    (lines, messages)
}

#[test]
fn every_case_finds_what_it_says_and_nothing_else() {
    let mut wrong = String::new();
    let cases = cases();
    assert!(cases.len() > 50, "only {} cases", cases.len());
    for case in &cases {
        let (found, messages) = found(case);
        if found != case.expected {
            let missing: Vec<_> = case.expected.difference(&found).collect();
            let extra: Vec<_> = found.difference(&case.expected).collect();
            wrong +=
                &format!("{}: missing {missing:?}, not expected {extra:?}\n{}\n{messages:#?}\n", case.place, case.text);
        }
        for code in &case.near {
            assert!(!found.iter().any(|line| line.contains(code.as_str())), "{}: {code} is near and fires", case.place);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn every_code_fires_and_has_a_near_miss() {
    let mut fires: BTreeMap<&str, (bool, bool)> = codes::spec::ALL.iter().map(|c| (c.id, (false, false))).collect();
    let cases = cases();
    for case in &cases {
        for (code, (fired, near)) in &mut fires {
            *fired |= case.expected.iter().any(|line| line.contains(code));
            *near |= case.near.iter().any(|c| c == code);
        }
    }
    // Rules between documents have tests of their own, beside their code and in `rules_documents.rs`.
    let elsewhere = "FG29";
    let lacking: Vec<_> =
        fires.iter().filter(|(code, seen)| !code.starts_with(elsewhere) && **seen != (true, true)).collect();
    assert!(lacking.is_empty(), "fired, near: {lacking:?}");
}
