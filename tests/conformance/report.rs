//! The table, and what makes the test fail.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::case::Case;
use crate::compare::Difference;
use crate::rows::{Facts, Row};

/// Who refuses a document, and why.
pub struct Verdict {
    pub ours: Vec<String>,
    pub operator: Option<String>,
}

/// Differences with the rows that cover them.
#[derive(Default)]
pub struct Explained {
    pub rows: BTreeSet<String>,
    pub differences: usize,
    pub unexplained: Vec<Difference>,
    /// Every difference with its rows, for the listing.
    pub all: Vec<(Difference, Vec<String>)>,
}

/// All about one case.
pub struct CaseReport {
    pub name: String,
    pub verdict: Verdict,
    pub verdict_rows: Explained,
    pub objects: Option<Explained>,
    pub behaviour: Option<Explained>,
    pub notes: Vec<String>,
}

/// Finds a row for each difference.
pub fn explain(differences: Vec<Difference>, rows: &[Row], facts: &Facts<'_>) -> Explained {
    let mut explained = Explained { differences: differences.len(), ..Explained::default() };
    for difference in differences {
        let covering: Vec<&Row> = rows.iter().filter(|row| row.covers(&difference, facts)).collect();
        let ids: Vec<String> = covering.iter().map(|row| row.id.clone()).collect();
        explained.rows.extend(ids.iter().cloned());
        if ids.is_empty() {
            explained.unexplained.push(difference.clone());
        }
        explained.all.push((difference, ids));
    }
    explained
}

impl CaseReport {
    pub fn new(case: &Case, verdict: Verdict) -> Self {
        Self {
            name: case.name.clone(),
            verdict,
            verdict_rows: Explained::default(),
            objects: None,
            behaviour: None,
            notes: Vec::new(),
        }
    }

    /// Verdicts that differ need a row like everything else; each of our error codes is one difference.
    pub fn explain_verdict(&mut self, rows: &[Row], facts: &Facts<'_>) {
        let differences = match (&self.verdict.operator, self.verdict.ours.is_empty()) {
            (Some(refusal), true) => {
                vec![Difference { path: "verdict".to_owned(), ours: None, operator: Some(json!(refusal)) }]
            }
            (None, false) => {
                let codes = self.verdict.ours.iter().map(|line| line.split(' ').next().unwrap_or_default());
                let codes: BTreeMap<&str, &String> = codes.zip(&self.verdict.ours).collect();
                let one = |(code, line): (&str, &String)| Difference {
                    path: format!("verdict[{code}]"),
                    ours: Some(json!(line)),
                    operator: None,
                };
                codes.into_iter().map(one).collect()
            }
            _ => Vec::new(),
        };
        self.verdict_rows = explain(differences, rows, facts);
    }

    fn parts(&self) -> impl Iterator<Item = &Explained> {
        [Some(&self.verdict_rows), self.objects.as_ref(), self.behaviour.as_ref()].into_iter().flatten()
    }
}

/// Writes every difference of every case, one JSON object a line, to look into.
pub fn list(reports: &[CaseReport]) -> std::io::Result<std::path::PathBuf> {
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance.jsonl");
    let mut text = String::new();
    for report in reports {
        for (d, rows) in report.parts().flat_map(|p| &p.all) {
            let line =
                json!({"case": report.name, "path": d.path, "operator": d.operator, "ours": d.ours, "rows": rows});
            text.push_str(&format!("{line}\n"));
        }
    }
    std::fs::write(&path, text)?;
    Ok(path)
}

/// Prints the table; true when every difference is explained and, for the whole corpus, every row used.
pub fn print(reports: &[CaseReport], rows: &[Row], all: bool) -> bool {
    let shown = |part: &Option<Explained>| match part {
        None => "-".to_owned(),
        Some(e) if e.differences == 0 => "equal".to_owned(),
        Some(e) if e.unexplained.is_empty() => format!("{} by rows", e.differences),
        Some(e) => format!("{} UNEXPLAINED", e.unexplained.len()),
    };
    println!("{:<72} {:<18} {:<15} {:<15} rows", "case", "verdict", "objects", "behaviour");
    for report in reports {
        let used: BTreeSet<&str> = report.parts().flat_map(|p| p.rows.iter().map(String::as_str)).collect();
        let used: Vec<&str> = used.into_iter().collect();
        let verdict = verdict(report);
        println!(
            "{:<72} {verdict:<18} {:<15} {:<15} {}",
            report.name,
            shown(&report.objects),
            shown(&report.behaviour),
            used.join(" ")
        );
        for note in &report.notes {
            println!("    {note}");
        }
    }
    let unexplained = print_unexplained(reports);
    let unused = print_unused(reports, rows);
    print_counts(reports, rows);
    unexplained == 0 && (unused == 0 || !all)
}

fn verdict(report: &CaseReport) -> String {
    let text = match (&report.verdict.operator, report.verdict.ours.is_empty()) {
        (None, true) => "accepted",
        (Some(_), false) => "refused",
        (None, false) => "refused by us",
        (Some(_), true) => "accepted by us",
    };
    let mark = if report.verdict_rows.unexplained.is_empty() { "" } else { " (!)" };
    format!("{text}{mark}")
}

fn print_unexplained(reports: &[CaseReport]) -> usize {
    let mut by_path: BTreeMap<String, Vec<(&str, &Difference)>> = BTreeMap::new();
    for report in reports {
        for difference in report.parts().flat_map(|p| &p.unexplained) {
            by_path.entry(difference.path.clone()).or_default().push((&report.name, difference));
        }
    }
    let total = by_path.values().map(Vec::len).sum();
    if total > 0 {
        println!("\n{total} differences without a row:");
    }
    for (path, list) in by_path {
        println!("  {path} ({} cases)", list.len());
        for (name, difference) in list.iter().take(3) {
            println!("    {name}: operator {} ours {}", short(&difference.operator), short(&difference.ours));
        }
    }
    total
}

fn short(value: &Option<Value>) -> String {
    let text = value.as_ref().map_or_else(|| "<absent>".to_owned(), Value::to_string);
    if text.chars().count() > 300 { text.chars().take(300).chain(['…']).collect() } else { text }
}

fn print_unused(reports: &[CaseReport], rows: &[Row]) -> usize {
    let used: BTreeSet<&String> = reports.iter().flat_map(CaseReport::parts).flat_map(|p| &p.rows).collect();
    let unused: Vec<&str> = rows.iter().filter(|row| !used.contains(&row.id)).map(|row| row.id.as_str()).collect();
    if !unused.is_empty() {
        println!("\nrows that no case uses: {}", unused.join(" "));
    }
    unused.len()
}

fn print_counts(reports: &[CaseReport], rows: &[Row]) {
    let same = reports.iter().filter(|r| r.verdict.operator.is_some() != r.verdict.ours.is_empty()).count();
    let count = |part: fn(&CaseReport) -> Option<&Explained>| {
        let parts: Vec<&Explained> = reports.iter().filter_map(part).collect();
        let explained = parts.iter().filter(|p| p.unexplained.is_empty()).count();
        format!("{explained} of {}", parts.len())
    };
    let quirks: BTreeSet<u64> = rows.iter().flat_map(|row| row.quirks.iter().copied()).collect();
    println!(
        "\n{} cases; verdicts: {same} the same, {} by rows; objects explained: {}; behaviour explained: {}; {} rows, {} quirks",
        reports.len(),
        reports.len() - same,
        count(|r| r.objects.as_ref()),
        count(|r| r.behaviour.as_ref()),
        rows.len(),
        quirks.len()
    );
}
