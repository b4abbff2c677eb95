//! Conformance with the Flux Operator: `cargo test --test conformance [-- FOLDER] [-- CASE…]`.
//!
//! Every case of the corpus is compiled and compared with what the operator makes of it: the verdict, the objects, and what
//! the scripts do under stand-ins. What differs on purpose is a row of `docs/differences.toml`; everything else fails.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]
#![allow(unreachable_pub, missing_docs)]

mod behaviour;
mod case;
mod checks;
mod compare;
mod facts;
mod meaning;
mod objects;
mod operators_names;
mod report;
mod roles;
mod rows;
mod sandbox;
mod standins;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use behaviour::Runner;
use case::Case;
use flux_gen::flux::certificate::Certificate;
use report::{CaseReport, Verdict};
use rows::Row;
use standins::StandIns;

const THREADS: usize = 2;
/// Cases of the public corpus: a smaller one need not use every row.
const WHOLE: usize = 308;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    if std::env::args().any(|a| a == "--list") {
        return ExitCode::SUCCESS;
    }
    rows::self_check();
    let (folders, wanted): (Vec<_>, Vec<_>) = arguments.into_iter().partition(|a| Path::new(a).is_dir());
    let Some(folder) = corpus(folders.first()) else { return ExitCode::SUCCESS };
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/differences.toml");
    let table = std::fs::read_to_string(table).expect("docs/differences.toml is there");
    let rows = match rows::read(&table) {
        Ok(rows) => rows,
        Err(problem) => {
            println!("docs/differences.toml: {problem}");
            return ExitCode::FAILURE;
        }
    };
    let cases = cases(&folder, &wanted);
    let certificate = new_certificate();
    let Some(sandbox) = Sandbox::new() else { return ExitCode::FAILURE };
    let reports = run(&cases, &rows, &certificate, &sandbox);
    if let Some(reason) = &sandbox.skipped {
        println!("skipped: behaviour was not compared: {reason}");
    }
    let listing = report::list(&reports).unwrap();
    println!("every difference, one a line: {}", listing.display());
    // A foreign folder need not use every row; the whole public corpus must.
    let all = wanted.is_empty() && folders.is_empty() && cases.len() >= WHOLE;
    if report::print(&reports, &rows, all) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The folder with the cases; `None`, said aloud, when there is none.
#[allow(clippy::disallowed_methods)]
fn corpus(argument: Option<&String>) -> Option<PathBuf> {
    if let Some(folder) = argument {
        return Some(PathBuf::from(folder));
    }
    if let Some(folder) = std::env::var_os("FLUX_GEN_CONFORMANCE") {
        let folder = Path::new(&folder);
        let operator = folder.join("operator");
        let found = if operator.is_dir() { operator } else { folder.to_owned() };
        assert!(found.is_dir(), "FLUX_GEN_CONFORMANCE names {}, which is no folder", found.display());
        return Some(found);
    }
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let beside = ["../shared", "../../shared"].map(|s| manifest.join(s).join("conformance/operator"));
    let found = beside.into_iter().find(|folder| folder.is_dir());
    if found.is_none() {
        println!("skipped: no ../shared");
    }
    found
}

fn cases(folder: &Path, wanted: &[String]) -> Vec<Case> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut cases: Vec<Case> = entries.filter_map(|entry| Case::read(&entry.unwrap().path())).collect();
    cases.retain(|case| wanted.is_empty() || wanted.iter().any(|w| case.name.contains(w.as_str())));
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(!cases.is_empty() || !wanted.is_empty(), "{} holds no case", folder.display());
    cases
}

/// A key pair of this run; it is never written outside the sandbox.
fn new_certificate() -> Certificate {
    let mut secret = [0_u8; 32];
    getrandom::fill(&mut secret).unwrap();
    Certificate::from_secret_bytes(secret, "conformance")
}

/// Where containers run.
struct Sandbox {
    folder: tempfile::TempDir,
    stand_ins: Option<StandIns>,
    skipped: Option<String>,
}

impl Sandbox {
    /// `None`, said aloud: it is missing where it must not be.
    #[allow(clippy::disallowed_methods)]
    fn new() -> Option<Self> {
        let folder = tempfile::Builder::new().prefix("fgc").tempdir().unwrap();
        match sandbox::available() {
            Ok(()) => {
                let stand_ins = Some(StandIns::make(&folder.path().join("standins")).unwrap());
                Some(Self { folder, stand_ins, skipped: None })
            }
            Err(reason) if std::env::var_os("CI").is_some_and(|ci| ci == "true") => {
                println!("behaviour cannot be compared: {reason}");
                None
            }
            Err(reason) => Some(Self { folder, stand_ins: None, skipped: Some(reason) }),
        }
    }
}

fn run(cases: &[Case], rows: &[Row], certificate: &Certificate, sandbox: &Sandbox) -> Vec<CaseReport> {
    let next = AtomicUsize::new(0);
    let reports = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(number) else { break };
                    let report = one(case, number, rows, certificate, sandbox);
                    reports.lock().unwrap().push(report);
                }
            });
        }
    });
    let mut reports = reports.into_inner().unwrap();
    reports.sort_by(|a, b| a.name.cmp(&b.name));
    reports
}

fn one(case: &Case, number: usize, rows: &[Row], certificate: &Certificate, sandbox: &Sandbox) -> CaseReport {
    let ours = case::compile(case, certificate);
    let refusal = case::expected_refusal(&case.expected);
    let mut report = CaseReport::new(case, Verdict { ours: ours.errors, operator: refusal });
    let Some(built) = ours.built else {
        report.explain_verdict(rows, &facts::of(case, None));
        return report;
    };
    let facts = facts::of(case, Some(&built.cluster));
    if report.verdict.operator.is_some() {
        report.explain_verdict(rows, &facts);
        return report;
    }
    let expected: Vec<_> = case.expected["objects"].as_array().cloned().unwrap_or_default();
    let differences = compare::compare("", &objects::tree(&built.objects), &objects::tree(&expected));
    report.objects = Some(report::explain(differences, rows, &facts));
    if let (Some(stand_ins), true) = (&sandbox.stand_ins, case.expected["behaviour"].is_object()) {
        let folder = behaviour::folder(sandbox.folder.path(), number);
        let runner = Runner { stand_ins, certificate, folder };
        let differences = behaviour::differences(case, &built, &runner);
        report.behaviour = Some(report::explain(differences, rows, &facts));
    }
    report
}
