//! operator_flags.json.

use flux_gen::flux::attribute::check;
use serde_json::Value;

use crate::{Outcome, text};

const NOT_ATTRIBUTES: &str = "attributes: what failed is a file, a directory, a job or the network, not a setting";
const NO_SETTINGS: &str = "attributes: the case sets none";

/// The settings of the leader decide whether it starts; everything else of these cases is not about them.
pub(crate) fn operator_flags(case: &Value, _: &Value) -> Outcome {
    let command = text(case, "leader_command");
    let settings = settings(command);
    if settings.is_empty() {
        return Outcome::OutOfScope(NO_SETTINGS);
    }
    let problems = check(&settings, size(case), None);
    let fatal: Vec<_> = problems.iter().filter(|(_, problem)| problem.is_fatal(None)).collect();
    let ended_early = case["rc"][0] == 1;
    match (fatal.first(), ended_early) {
        (Some(_), true) | (None, false) => Outcome::Same,
        (Some((_, problem)), false) => Outcome::Different(format!("we: {problem}, but the leader ran")),
        (None, true) if blames_a_setting(case, &settings) => {
            Outcome::Different(format!("we find nothing; Flux: {}", case["stderr"]))
        }
        (None, true) => Outcome::OutOfScope(NOT_ATTRIBUTES),
    }
}

/// The `-S` options of the first broker that a command line starts.
fn settings(command: &str) -> Vec<(&str, &str)> {
    let starts = ["flux start ", "flux broker "].iter().filter_map(|start| Some(command.find(start)? + start.len()));
    let Some(at) = starts.min() else { return Vec::new() };
    let mut found = Vec::new();
    let mut value_follows = false;
    for word in command[at..].split_whitespace() {
        if let Some(setting) = word.strip_prefix("-S").filter(|setting| !setting.is_empty()) {
            found.push(setting.split_once('=').unwrap_or((setting, "")));
        } else if word.starts_with('-') {
            value_follows = ["--config", "--config-path", "-c"].contains(&word);
        } else if !std::mem::take(&mut value_follows) {
            break;
        }
    }
    found
}

/// True if a message of Flux names one of the settings and no file that is missing or belongs to somebody else.
fn blames_a_setting(case: &Value, settings: &[(&str, &str)]) -> bool {
    let lines: Vec<String> = crate::texts(&case["stderr"][0]);
    let of_files = ["owned", "permissions", "creating", "stat", "No such file"];
    lines
        .iter()
        .filter(|line| !of_files.iter().any(|word| line.contains(word)))
        .any(|line| !line.contains("rc2.0") && settings.iter().any(|(name, _)| line.contains(name)))
}

/// The size of the instance: as the label says, else one broker per exit code.
fn size(case: &Value) -> u32 {
    let label = text(case, "label");
    let said = label.split_once("size ").and_then(|(_, rest)| rest.split([',', ' ', ')']).next()?.parse().ok());
    said.unwrap_or_else(|| u32::try_from(case["rc"].as_array().map_or(1, Vec::len)).unwrap())
}
