//! What the documents that the project was created from promise, field by field: each case compiles a small spec and looks
//! at the objects. `docs/seeds.md` names a case, a test or an example for each promise; the last test here keeps it honest.

mod cluster;
mod containers;
mod flux;
mod harness;
mod volumes;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use harness::Case;

fn all() -> Vec<Case> {
    [cluster::CASES, containers::CASES, flux::CASES, volumes::CASES].concat()
}

#[test]
fn every_case_holds() {
    let wrong: Vec<String> = all().iter().flat_map(harness::run).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn names_of_cases_are_unique() {
    let cases = all();
    let names: BTreeSet<&str> = cases.iter().map(|case| case.name).collect();
    assert_eq!(names.len(), cases.len());
}

/// Every reference in the last column of `docs/seeds.md` leads to something, and every case is referred to.
#[test]
fn the_table_names_what_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = fs::read_to_string(root.join("docs/seeds.md")).unwrap();
    let mut unused: BTreeSet<&str> = all().iter().map(|case| case.name).collect();
    let mut wrong = Vec::new();
    let rows = table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| Document"));
    let mut count = 0;
    for row in rows {
        count += 1;
        let proof = row.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
        let references: Vec<&str> = proof.split('`').skip(1).step_by(2).collect();
        if references.is_empty() {
            wrong.push(format!("no test or example: {row}"));
        }
        for reference in references {
            if !exists(root, reference, &mut unused) {
                wrong.push(format!("`{reference}` is nowhere: {row}"));
            }
        }
    }
    wrong.extend(unused.iter().map(|case| format!("docs/seeds.md does not name the case seeds:{case}")));
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(count > 60, "only {count} rows were read");
}

/// `seeds:<case>`, `examples/<name>`, `<file>.rs::<function>`, or another file of the repository.
fn exists(root: &Path, reference: &str, unused: &mut BTreeSet<&str>) -> bool {
    if let Some(case) = reference.strip_prefix("seeds:") {
        unused.remove(case);
        return all().iter().any(|known| known.name == case);
    }
    match reference.split_once("::") {
        Some((file, function)) => {
            let text = fs::read_to_string(root.join(file)).unwrap_or_default();
            text.contains(&format!("fn {function}("))
        }
        None => root.join(reference).exists(),
    }
}
