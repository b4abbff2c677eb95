//! The list of problems of one object, and paths to fields.

use std::fmt;

use super::ObjectProblem;
use crate::model::kubernetes::{Feature, KubernetesVersion};
use crate::object::Object;
use crate::rules::syntax::Wrong;

/// A field. Written out only for a problem: a path is made for every field of every object, and hardly ever shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Path<'p> {
    parent: Option<&'p Path<'p>>,
    part: Part<'p>,
}

#[derive(Debug, Clone, Copy)]
enum Part<'p> {
    Field(&'p str),
    Item(usize),
    FieldItem(&'p str, usize),
    Entry(&'p str),
}

impl<'p> Path<'p> {
    pub(super) fn root(field: &'p str) -> Self {
        Self { parent: None, part: Part::Field(field) }
    }

    pub(super) fn key(&'p self, field: &'p str) -> Self {
        self.with(Part::Field(field))
    }

    pub(super) fn at(&'p self, index: usize) -> Self {
        self.with(Part::Item(index))
    }

    /// An item of a field that is a list.
    pub(super) fn item(&'p self, field: &'p str, index: usize) -> Self {
        self.with(Part::FieldItem(field, index))
    }

    pub(super) fn entry(&'p self, name: &'p str) -> Self {
        self.with(Part::Entry(name))
    }

    fn with(&'p self, part: Part<'p>) -> Self {
        Self { parent: Some(self), part }
    }
}

/// As Kubernetes writes it.
impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            write!(f, "{parent}")?;
        }
        let dot = if self.parent.is_some() { "." } else { "" };
        match self.part {
            Part::Field(field) => write!(f, "{dot}{field}"),
            Part::Item(index) => write!(f, "[{index}]"),
            Part::FieldItem(field, index) => write!(f, "{dot}{field}[{index}]"),
            Part::Entry(name) => write!(f, "[{name}]"),
        }
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
    pub(super) fn since(&mut self, path: &Path, feature: Feature, written: bool) {
        if written && !self.target.can_have(feature) {
            let (title, target) = (feature.title(), self.target);
            let since = feature.gated_since().unwrap_or(feature.since());
            self.problem(path, format!("needs Kubernetes {since} or later ({title}), and the target is {target}"));
        }
    }
}
