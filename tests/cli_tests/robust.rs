//! No input crashes the program: the shipped examples cut off and scrambled in many places.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use flux_gen::compile::{Input, compile};
use flux_gen::diag::SourceMap;
use flux_gen::spec::{ReadOptions, read};

use crate::harness::Sandbox;

/// Marks that YAML, shells and this program give a meaning to.
const SCRAPS: [&str; 16] = [
    "\"",
    "'",
    "\n",
    "\t",
    ": ",
    "- ",
    "{",
    "]",
    "&a ",
    "*a",
    "!!str ",
    "\u{feff}",
    "é",
    "%",
    "-9223372036854775809",
    "\u{0}",
];

fn yaml_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(yaml_files(&path));
        } else if path.extension().is_some_and(|e| e == "yaml") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Texts to mutate: the examples, and where there are none a document with a bit of everything.
fn texts() -> Vec<String> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut texts: Vec<String> = yaml_files(&examples).iter().map(|p| fs::read_to_string(p).unwrap()).collect();
    texts.push(
        crate::harness::minicluster("a", 3) + "  maxSize: 5\n  flux: {environment: {A: \"b\"}, topology: kary:2}\n",
    );
    texts
}

/// The mutants of a text: cut off, a scrap put in, a line left out or repeated; `step` bytes apart.
fn mutants(text: &str, step: usize) -> Vec<String> {
    let mut mutants = Vec::new();
    for (turn, at) in (0..text.len()).step_by(step).filter(|at| text.is_char_boundary(*at)).enumerate() {
        let (before, after) = text.split_at(at);
        let line_end = after.find('\n').map_or(after.len(), |i| i + 1);
        mutants.push(match turn % 4 {
            0 => before.to_owned(),
            1 | 2 => format!("{before}{}{after}", SCRAPS[turn / 4 % SCRAPS.len()]),
            _ if turn % 8 == 3 => format!("{before}{}", &after[line_end..]),
            _ => format!("{before}{}{after}", &after[..line_end]),
        });
    }
    mutants
}

#[test]
fn scrambled_documents_give_diagnostics_or_bundles_and_no_panic() {
    let (mut good, mut bad) = (0, 0);
    for text in texts() {
        for mutant in mutants(&text, 61) {
            let mut sources = SourceMap::new();
            let (documents, found) =
                read(&mut sources, vec![("m.yaml".to_owned(), mutant.into_bytes())], &ReadOptions::default());
            let public_keys = BTreeMap::new();
            let input =
                Input { documents: &documents, project: None, set: &[], is_whole: true, public_keys: &public_keys };
            let compiled = compile(&input);
            for diagnostic in found.iter().chain(compiled.diagnostics.iter()) {
                let spans = diagnostic.span.iter().chain(diagnostic.related.iter().map(|(span, _)| span));
                for span in spans {
                    let text = &sources.get(span.file).unwrap().text;
                    assert!(span.start <= span.end && span.end <= text.len(), "{diagnostic:?}");
                    assert!(text.is_char_boundary(span.start) && text.is_char_boundary(span.end), "{diagnostic:?}");
                }
                assert_ne!(diagnostic.code.id, "FG390", "{diagnostic:?}");
            }
            if found.has_errors() || compiled.diagnostics.has_errors() { bad += 1 } else { good += 1 }
        }
    }
    assert!(good > 0 && bad > good / 4, "the mutants are too tame or too wild: {good} good, {bad} bad");
}

#[test]
fn scrambled_documents_are_reported_in_every_format() {
    let sandbox = Sandbox::new();
    for (i, text) in texts().iter().enumerate() {
        for (j, mutant) in mutants(text, text.len() / 9 + 1).iter().enumerate() {
            sandbox.write(format!("m/{i}-{j}.yaml"), mutant);
        }
    }
    for format in ["human", "json", "github"] {
        let run = sandbox.run(&["validate", "-v", "--message-format", format, "m"]).exits(1);
        assert!(run.stderr.len() > 1000, "{}", run.stderr);
        if format == "json" {
            for line in run.stderr.lines() {
                let value: serde_json::Value = serde_json::from_str(line).unwrap();
                assert!(value["severity"].is_string() && value["message"].is_string(), "{line}");
            }
        }
    }
}

/// Objects of a cluster whose name or containers could not be read would only repeat the fault in other words.
#[test]
fn what_is_missing_is_said_once() {
    let sandbox = Sandbox::new();
    let head = "apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\n";
    let containers = "containers: [{image: a, command: b, resources: {limits: {cpu: 1}}}]";
    let nameless = format!("{head}metadata: {{generateName: a-}}\nspec: {{{containers}}}\n");
    let empty = format!("{head}metadata: {{name: a}}\nspec: {{size: 2}}\n");
    let template = format!("{head}metadata:\n  name: {{{{ name }}}}\nspec: {{{containers}}}\n");
    for (text, codes) in [(nameless, &["FG106"][..]), (empty, &["FG106"]), (template, &["FG103", "FG117"])] {
        sandbox.write("a.yaml", &text);
        let run = sandbox.run(&["validate", "a.yaml"]);
        let said: Vec<_> =
            run.stderr.lines().filter_map(|line| line.strip_prefix("error[")?.split(']').next()).collect();
        assert_eq!((run.exit, said.as_slice()), (1, codes), "{text}{}", run.stderr);
    }
}
