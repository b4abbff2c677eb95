//! Compares `flux_gen::flux` with what a real Flux does, case by case.
//!
//! The cases are read from `flux/` in the folder that `FLUX_GEN_CONFORMANCE` names, else from
//! `../shared/conformance/flux`. Where we differ on purpose the reason is a rule about the input
//! (see [`Outcome::Rule`]), never a list of cases.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests may read the environment"
)]

mod attributes;
mod bootstrap;
mod certificates;
mod config;
mod lists;
mod resources;
mod smoke;
mod topology;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

/// What became of a case.
pub(crate) enum Outcome {
    /// The same as Flux.
    Same,
    /// Different on purpose, for a documented reason that follows from the input.
    Rule(&'static str),
    /// Nothing that `flux_gen::flux` models, for a reason that follows from the input.
    OutOfScope(&'static str),
    /// Different: what we say, what Flux says.
    Different(String),
}

/// Compares two values of the same thing.
pub(crate) fn same<T: PartialEq + std::fmt::Debug>(ours: &T, theirs: &T) -> Outcome {
    if ours == theirs { Outcome::Same } else { Outcome::Different(format!("we: {ours:?}\n      Flux: {theirs:?}")) }
}

/// The first outcome that is not `Same`.
pub(crate) fn all(outcomes: impl IntoIterator<Item = Outcome>) -> Outcome {
    outcomes.into_iter().find(|outcome| !matches!(outcome, Outcome::Same)).unwrap_or(Outcome::Same)
}

pub(crate) fn text<'a>(case: &'a Value, key: &str) -> &'a str {
    case[key].as_str().unwrap_or("")
}

pub(crate) fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|v| v.as_str().map(str::to_owned)).collect()
}

type Judge = fn(&Value, &Value) -> Outcome;

const FILES: [(&str, Judge); 10] = [
    ("idset.json", lists::idset),
    ("hostlist.json", lists::hostlist),
    ("r_encode.json", resources::encode),
    ("r_other.json", resources::other),
    ("curve_cert.json", certificates::certificate),
    ("topology.json", topology::topology),
    ("broker_config.json", config::broker_config),
    ("fluxion_config.json", config::fluxion_config),
    ("bootstrap_multi.json", bootstrap::bootstrap_multi),
    ("operator_flags.json", attributes::operator_flags),
];

fn folder() -> Option<PathBuf> {
    let given = std::env::var_os("FLUX_GEN_CONFORMANCE").map(PathBuf::from);
    let set = given.is_some();
    let root = given.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/conformance"));
    let folder = root.join("flux");
    if folder.is_dir() {
        return Some(folder);
    }
    assert!(!(set && std::env::var("CI").is_ok_and(|ci| ci == "true")), "{} is missing", folder.display());
    println!("skipped: no {}", folder.display());
    None
}

#[test]
fn every_case_is_as_flux_or_explained() {
    let Some(folder) = folder() else { return };
    let mut failures = Vec::new();
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    println!("{:<24}{:>7}{:>7}{:>9}{:>7}{:>7}", "file", "cases", "same", "by rule", "other", "FAIL");
    for (name, judge) in FILES {
        let bytes = std::fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let file: Value = serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        let cases = file["cases"].as_array().unwrap_or_else(|| panic!("{name}: no cases"));
        assert!(!cases.is_empty(), "{name} is empty");
        let [mut same, mut rule, mut other, mut fail] = [0; 4];
        for (index, case) in cases.iter().enumerate() {
            match judge(case, &file) {
                Outcome::Same => same += 1,
                Outcome::Rule(reason) => {
                    rule += 1;
                    *reasons.entry(reason).or_default() += 1;
                }
                Outcome::OutOfScope(reason) => {
                    other += 1;
                    *reasons.entry(reason).or_default() += 1;
                }
                Outcome::Different(what) => {
                    fail += 1;
                    let label = case["label"].as_str().map_or_else(|| shortened(case), str::to_owned);
                    failures.push(format!("{name}[{index}] {label}\n      {what}"));
                }
            }
        }
        println!("{name:<24}{:>7}{same:>7}{rule:>9}{other:>7}{fail:>7}", cases.len());
    }
    for (reason, count) in reasons {
        println!("{count:>5}  {reason}");
    }
    assert!(failures.is_empty(), "{} cases differ:\n{}", failures.len(), failures.join("\n"));
}

fn shortened(case: &Value) -> String {
    case.to_string().chars().take(300).collect()
}
