//! Problems of trees: many files have the same one, so only the first few of a kind are listed.

use std::collections::BTreeMap;

use crate::diag::{Code, Diagnostic, Diagnostics, Severity};

/// How many paths a kind of problem lists.
const LISTED: usize = 5;

/// Collects problems with the path they are at.
#[derive(Debug, Default)]
pub struct Problems {
    found: BTreeMap<(&'static str, String, String), Found>,
}

#[derive(Debug)]
struct Found {
    code: Code,
    severity: Severity,
    count: usize,
    paths: Vec<String>,
}

impl Problems {
    /// Adds an error at a path. `what` says what is wrong with it, and is the same for all paths that have it.
    pub fn error(&mut self, code: Code, path: String, what: impl Into<String>, help: impl Into<String>) {
        self.add(code, Severity::Error, path, what.into(), help.into());
    }

    /// Adds a warning at a path.
    pub fn warning(&mut self, code: Code, path: String, what: impl Into<String>, help: impl Into<String>) {
        self.add(code, Severity::Warning, path, what.into(), help.into());
    }

    /// Adds a note at a path.
    pub fn note(&mut self, code: Code, path: String, what: impl Into<String>, help: impl Into<String>) {
        self.add(code, Severity::Note, path, what.into(), help.into());
    }

    fn add(&mut self, code: Code, severity: Severity, path: String, what: String, help: String) {
        let new = || Found { code, severity, count: 0, paths: Vec::new() };
        let found = self.found.entry((code.id, what, help)).or_insert_with(new);
        found.count += 1;
        if found.paths.len() < LISTED {
            found.paths.push(path);
        }
    }

    /// Whether there is an error among them.
    #[must_use]
    pub fn has_errors(&self) -> bool {
        self.found.values().any(|found| found.severity == Severity::Error)
    }

    /// Whether there is none at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Takes over those of another collection.
    pub fn extend(&mut self, other: Self) {
        for ((_, what, help), found) in other.found {
            let more = found.count - found.paths.len();
            for path in found.paths {
                self.add(found.code, found.severity, path, what.clone(), help.clone());
            }
            if let Some(own) = self.found.get_mut(&(found.code.id, what, help)) {
                own.count += more;
            }
        }
    }

    /// As diagnostics: one for each kind, with the first paths.
    #[must_use]
    pub fn diagnostics(self) -> Diagnostics {
        self.found.into_iter().map(|((_, what, help), found)| diagnostic(&found, &what, &help)).collect()
    }
}

fn diagnostic(found: &Found, what: &str, help: &str) -> Diagnostic {
    let more = found.count - found.paths.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let message = format!("{what}: {}{more}", found.paths.join(", "));
    let diagnostic = match found.severity {
        Severity::Error => Diagnostic::global_error(found.code, message),
        Severity::Warning | Severity::Note => {
            let mut diagnostic = Diagnostic::global_warning(found.code, message);
            diagnostic.severity = found.severity;
            diagnostic
        }
    };
    if help.is_empty() { diagnostic } else { diagnostic.help(help) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::codes::view as codes;

    #[test]
    fn many_of_a_kind_are_one() {
        let mut all = Problems::default();
        for _ in 0..2 {
            let mut problems = Problems::default();
            for i in 0..7 {
                problems.error(codes::SPECIAL_FILE, format!("/{i}"), "devices cannot be packed", "");
            }
            all.extend(problems);
        }
        assert!(all.has_errors());
        let found = all.diagnostics().sorted();
        let messages: Vec<&str> = found.iter().map(|d| d.message.as_str()).collect();
        assert_eq!(messages, ["devices cannot be packed: /0, /1, /2, /3, /4 and 9 more"]);
    }
}
