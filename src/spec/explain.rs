//! What the API is, field by field, from the descriptions of the records.

use super::minicluster::Document;
use super::project::Project;
use super::record::{Field, Record, Shape};

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
