//! What the API is, field by field, from the descriptions of the records.

use std::collections::BTreeSet;

use super::decode::nearest;
use super::minicluster::Document;
use super::project::Project;
use super::record::{Field, Mark, Record, Shape};

/// What starts the paths of fields of the project file in [`explain_field`].
const PROJECT: &str = "project";
/// How many suggestions there are at most.
const SUGGESTIONS: usize = 5;

/// A field, explained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldDoc {
    /// Full path, such as `spec.containers[].volumes{}.path`.
    pub path: String,
    /// What it takes, in words: "text", "list of whole numbers".
    pub kind: String,
    /// What it means.
    pub description: String,
    /// What holds when it is left out; `None` when that is nothing.
    pub default: Option<String>,
    /// Whether a document is refused without it.
    pub required: bool,
    /// Whether it is an older field: documented and working, no longer in the CRD.
    pub older: bool,
    /// Fields inside it.
    pub children: Vec<FieldDoc>,
}

/// Explains a field of a MiniCluster, or of the project file when the path starts with `project.`.
///
/// `spec.` may be left out, and so may `[]` and `{}`; list indexes and names in free mappings are skipped
/// (`spec.containers[0].volumes.data.path`). `None` when there is no such field; then see [`suggest_fields`].
#[must_use]
pub fn explain_field(path: &str) -> Option<FieldDoc> {
    let names = names_in(path);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    if let [PROJECT, rest @ ..] = names.as_slice() {
        return find(&format!("{PROJECT}."), Project::RECORD, rest);
    }
    find("", Document::RECORD, &names).or_else(|| {
        let spec = Document::RECORD.field("spec").and_then(|field| innermost((field.shape)()).1)?;
        find("spec.", spec, &names)
    })
}

/// Paths that someone who asked for an unknown path may have meant, the nearest first.
#[must_use]
pub fn suggest_fields(path: &str) -> Vec<String> {
    let names = names_in(path);
    let Some(last) = names.last() else { return Vec::new() };
    let mut all = field_paths();
    all.extend(project_paths().into_iter().map(|path| format!("{PROJECT}.{path}")));
    let last_of = |path: &str| path.rsplit('.').next().map(str::to_lowercase).unwrap_or_default();
    let known: Vec<String> = all.iter().map(|path| last_of(path)).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let Some(wanted) = nearest(last, &known) else { return Vec::new() };
    let mut near: Vec<String> = all.into_iter().filter(|path| last_of(path) == wanted).collect();
    let asked = names_of(&names);
    near.sort_by_cached_key(|path| {
        let there = names_of(&names_in(path));
        (asked.difference(&there).count(), there.len())
    });
    near.truncate(SUGGESTIONS);
    near
}

/// The names of a path, without `[…]` and `{…}`.
fn names_in(path: &str) -> Vec<String> {
    let mut plain = String::with_capacity(path.len());
    let mut depth = 0_usize;
    for c in path.trim().chars() {
        match c {
            '[' | '{' => depth += 1,
            ']' | '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    plain.split('.').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

fn names_of(names: &[String]) -> BTreeSet<String> {
    names.iter().map(|name| name.to_lowercase()).collect()
}

fn find(before: &str, record: &'static Record, names: &[&str]) -> Option<FieldDoc> {
    let (name, rest) = names.split_first()?;
    let field = record.field(name)?;
    let (steps, inner) = innermost((field.shape)());
    let below = format!("{before}{}{steps}.", field.name);
    match (rest, inner) {
        ([], _) => Some(describe(before, field, true)),
        ([_, after @ ..], Some(inner)) => {
            let free = steps.contains('{');
            find(&below, inner, rest).or_else(|| if free { find(&below, inner, after) } else { None })
        }
        // The name of an entry of a free mapping.
        ([_], None) if steps_of((field.shape)()).contains('{') => Some(describe(before, field, true)),
        _ => None,
    }
}

fn describe(before: &str, field: &'static Field, deep: bool) -> FieldDoc {
    let (description, default) = split_default(&field.description());
    let (steps, inner) = innermost((field.shape)());
    let path = format!("{before}{}", field.name);
    let children = match inner {
        Some(inner) if deep => {
            inner.fields.iter().map(|child| describe(&format!("{path}{steps}."), child, false)).collect()
        }
        _ => Vec::new(),
    };
    FieldDoc {
        path,
        kind: kind((field.shape)()),
        description,
        default,
        required: field.is(Mark::Required),
        older: field.is(Mark::Older),
        children,
    }
}

/// A description and, if its last sentence starts with "Default", what that says.
fn split_default(description: &str) -> (String, Option<String>) {
    let at = match description.rfind(". Default") {
        Some(at) => at + 2,
        None if description.starts_with("Default") => 0,
        None => return (description.to_owned(), None),
    };
    let default = description[at..].trim_start_matches("Default").trim_start_matches(':').trim();
    (description[..at].trim_end().to_owned(), Some(default.strip_suffix('.').unwrap_or(default).to_owned()))
}

/// What a value may be, in words.
fn kind(shape: Shape) -> String {
    match shape {
        Shape::Text => "text".to_owned(),
        Shape::Boolean => "true or false".to_owned(),
        Shape::Int32 | Shape::Int64 => "whole number".to_owned(),
        Shape::Quantity => "quantity".to_owned(),
        Shape::Setting => "text, number, true or false, or a list of these".to_owned(),
        Shape::Object | Shape::Record(_) => "mapping".to_owned(),
        Shape::Ignored => "anything".to_owned(),
        Shape::List(item) => format!("list of {}", plural(&kind(item()))),
        Shape::Map(value) => format!("mapping from names to {}", plural(&kind(value()))),
    }
}

fn plural(kind: &str) -> String {
    match kind.split_once(' ') {
        _ if kind.ends_with('y') => format!("{}ies", kind.trim_end_matches('y')),
        Some(("list", rest)) => format!("lists {rest}"),
        Some(("mapping", rest)) => format!("mappings {rest}"),
        Some(("whole", _)) | None => format!("{kind}s"),
        Some(_) => kind.to_owned(),
    }
}

/// All records of a MiniCluster document and of the project file, each once.
#[must_use]
pub fn records() -> Vec<&'static Record> {
    let mut records = Vec::new();
    collect(Document::RECORD, &mut records);
    collect(Project::RECORD, &mut records);
    records
}

fn collect(record: &'static Record, records: &mut Vec<&'static Record>) {
    if records.iter().any(|known| known.name == record.name) {
        return;
    }
    records.push(record);
    for field in record.fields {
        if let (_, Some(inner)) = innermost((field.shape)()) {
            collect(inner, records);
        }
    }
}

/// What stands between a field and the values in it.
fn steps_of(shape: Shape) -> String {
    innermost(shape).0
}

/// What stands between a field and the record in it (`[]`, `{}`), and that record.
fn innermost(shape: Shape) -> (String, Option<&'static Record>) {
    match shape {
        Shape::Record(record) => (String::new(), Some(record)),
        Shape::List(item) => prefix("[]", item()),
        Shape::Map(value) => prefix("{}", value()),
        _ => (String::new(), None),
    }
}

fn prefix(step: &str, shape: Shape) -> (String, Option<&'static Record>) {
    let (rest, record) = innermost(shape);
    (format!("{step}{rest}"), record)
}

/// Paths of all fields of a MiniCluster document, such as `spec.containers[].volumes{}.path`.
#[must_use]
pub fn field_paths() -> Vec<String> {
    paths(Document::RECORD)
}

/// Paths of all fields of the project file.
#[must_use]
pub fn project_paths() -> Vec<String> {
    paths(Project::RECORD)
}

fn paths(record: &'static Record) -> Vec<String> {
    let mut paths = Vec::new();
    walk("", record, &mut |path, _| paths.push(path.to_owned()));
    paths
}

fn walk(before: &str, record: &'static Record, visit: &mut impl FnMut(&str, &'static Field)) {
    for field in record.fields {
        let path = format!("{before}{}", field.name);
        visit(&path, field);
        if let (steps, Some(inner)) = innermost((field.shape)()) {
            walk(&format!("{path}{steps}."), inner, visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_with_and_without_brackets() {
        for path in [
            "spec.containers[].volumes{}.path",
            "containers.volumes.path",
            "spec.containers[0].volumes.data.path",
            "containers[].volumes{data}.path",
        ] {
            let doc = explain_field(path).unwrap();
            assert_eq!(doc.path, "spec.containers[].volumes{}.path", "{path}");
        }
        let image = explain_field("spec.flux.container.image").unwrap();
        assert_eq!(image.default.as_deref(), Some("ghcr.io/converged-computing/flux-view-ubuntu:tag-noble"));
        assert_eq!(image.description, "Image of the view.");
        assert_eq!(explain_field("spec.containers[].environment.PATH").unwrap().path, "spec.containers[].environment");
        assert_eq!(explain_field("project.settings").unwrap().path, "project.settings");
        for path in ["", ".", "spec.nothing", "spec.size.more", "spec.Size", "[", "project", "project."] {
            assert_eq!(explain_field(path), None, "{path}");
        }
    }

    #[test]
    fn a_field_lists_what_is_in_it() {
        let doc = explain_field("spec.containers").unwrap();
        assert_eq!((doc.kind.as_str(), doc.required, doc.older), ("list of mappings", true, false));
        let ports = doc.children.iter().find(|child| child.path == "spec.containers[].ports").unwrap();
        assert_eq!((ports.kind.as_str(), ports.children.len()), ("list of whole numbers", 0));
        let cores = doc.children.iter().find(|child| child.path == "spec.containers[].cores").unwrap();
        assert!(cores.older);
        let kinds: Vec<String> = ["pod.nodeAffinity", "pod.resources", "archive", "logging.quiet"]
            .iter()
            .map(|path| explain_field(path).unwrap().kind)
            .collect();
        let expected =
            ["mapping from names to lists of texts", "mapping from names to quantities", "mapping", "true or false"];
        assert_eq!(kinds, expected);
    }

    #[test]
    fn suggestions_are_the_nearest_paths() {
        assert_eq!(suggest_fields("spec.maxsize"), ["spec.maxSize"]);
        assert_eq!(suggest_fields("quiet"), ["spec.logging.quiet"]);
        assert_eq!(suggest_fields("spec.flux.image")[0], "spec.flux.container.image");
        assert_eq!(suggest_fields("sorces"), ["project.sources"]);
        assert!(suggest_fields("nothing like it").is_empty());
    }

    #[test]
    fn every_field_has_a_description() {
        for record in records() {
            assert!(!record.docs.is_empty(), "{}", record.name);
            for field in record.fields {
                assert!(field.description().ends_with('.'), "{}.{}", record.name, field.name);
            }
        }
    }

    #[test]
    fn every_path_can_be_explained() {
        let paths = field_paths();
        assert!(paths.len() > 270, "{}", paths.len());
        for path in paths {
            assert_eq!(explain_field(&path).unwrap().path, path);
        }
        for path in project_paths() {
            let path = format!("project.{path}");
            assert_eq!(explain_field(&path).unwrap().path, path);
        }
    }
}
