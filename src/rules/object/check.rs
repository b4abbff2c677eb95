//! The list of problems of one object, and paths to fields.

use std::fmt;

use super::ObjectProblem;
use crate::model::kubernetes::KubernetesVersion;
use crate::object::Object;
use crate::rules::syntax::Wrong;

/// A field, as Kubernetes writes it.
#[derive(Debug, Clone)]
pub(super) struct Path(String);

impl Path {
    pub(super) fn root(field: &str) -> Self {
        Self(field.to_owned())
    }

    pub(super) fn key(&self, field: &str) -> Self {
        Self(format!("{}.{field}", self.0))
    }

    pub(super) fn at(&self, index: usize) -> Self {
        Self(format!("{}[{index}]", self.0))
    }

    pub(super) fn entry(&self, name: &str) -> Self {
        Self(format!("{}[{name}]", self.0))
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One run over one object.
pub(super) struct Check {
    kind: &'static str,
    name: String,
    pub(super) target: KubernetesVersion,
    problems: Vec<ObjectProblem>,
}

impl Check {
    pub(super) fn new(object: &Object, target: KubernetesVersion) -> Self {
        Self { kind: object.kind(), name: object.name().to_owned(), target, problems: Vec::new() }
    }

    pub(super) fn into_problems(self) -> Vec<ObjectProblem> {
        self.problems
    }

    pub(super) fn problem(&mut self, path: &Path, message: impl Into<String>) {
        self.problems.push(ObjectProblem {
            kind: self.kind,
            name: self.name.clone(),
            path: path.to_string(),
            message: message.into(),
        });
    }

    pub(super) fn required(&mut self, path: &Path) {
        self.problem(path, "is required");
    }

    /// Checks the form of a text.
    pub(super) fn form(&mut self, path: &Path, text: &str, form: impl Fn(&str) -> Result<(), Wrong>) {
        if let Err(wrong) = form(text) {
            self.problem(path, format!("`{text}`: {wrong}"));
        }
    }

    /// Checks the form of a text that may be left out; an empty one counts as left out.
    pub(super) fn optional_form(
        &mut self,
        path: &Path,
        text: Option<&String>,
        form: impl Fn(&str) -> Result<(), Wrong>,
    ) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.form(path, text, form);
        }
    }

    /// Checks that a word is one of those allowed.
    pub(super) fn word(&mut self, path: &Path, word: &str, allowed: &[&str]) {
        if !allowed.contains(&word) {
            self.problem(path, format!("`{word}` is not one of {}", allowed.join(", ")));
        }
    }

    /// Checks a word that may be left out; an empty one counts as left out.
    pub(super) fn optional_word(&mut self, path: &Path, word: Option<&String>, allowed: &[&str]) {
        if let Some(word) = word.filter(|word| !word.is_empty()) {
            self.word(path, word, allowed);
        }
    }

    /// Checks that a number is in a range.
    pub(super) fn range(&mut self, path: &Path, number: impl Into<i64>, least: i64, most: i64) {
        let number = number.into();
        if number < least {
            self.problem(path, format!("{number} is less than {least}"));
        } else if number > most {
            self.problem(path, format!("{number} is more than {most}"));
        }
    }

    /// Checks a number that may be left out.
    pub(super) fn optional_range(&mut self, path: &Path, number: Option<impl Into<i64>>, least: i64, most: i64) {
        if let Some(number) = number {
            self.range(path, number, least, most);
        }
    }

    /// Checks that a field is not written for a target that does not know it yet.
    pub(super) fn since(&mut self, path: &Path, minor: u8, written: bool) {
        if written && self.target.minor() < minor {
            let target = self.target;
            self.problem(path, format!("needs Kubernetes 1.{minor} and the target is {target}"));
        }
    }
}
