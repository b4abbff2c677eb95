//! What the API is, field by field, from the descriptions of the records.

use super::decode::OLDER_PLACES;
use super::minicluster::Document;
use super::project::Project;
use super::recipe::Recipe;
use super::recipe_source::SourceRecipe;
use super::recipe_spack::SpackRecipe;
use super::record::{Record, Shape};
use super::view::View;

/// The records that whole files are: a MiniCluster document, the project file, a view, recipes of all kinds.
pub const ROOTS: [&Record; 6] =
    [Document::RECORD, Project::RECORD, View::RECORD, Recipe::RECORD, SourceRecipe::RECORD, SpackRecipe::RECORD];

/// All records of all kinds of files, each once.
#[must_use]
pub fn records() -> Vec<&'static Record> {
    let mut records = Vec::new();
    for root in ROOTS {
        collect(root, &mut records);
    }
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

/// A function that gives the paths of all fields of a kind of file.
pub(crate) fn paths_for(root: &'static Record) -> fn() -> Vec<String> {
    match root.name {
        "View" => || paths(View::RECORD),
        "Recipe" => || paths(Recipe::RECORD),
        "SourceRecipe" => || paths(SourceRecipe::RECORD),
        "SpackRecipe" => || paths(SpackRecipe::RECORD),
        "Project" => project_paths,
        _ => field_paths,
    }
}

/// Paths of all fields of a record.
#[must_use]
pub fn paths(record: &'static Record) -> Vec<String> {
    let mut paths = Vec::new();
    walk("", record, &mut |path, _| paths.push(path.to_owned()));
    paths
}

/// The first path whose values are records of this kind; `None` for the document itself.
pub(crate) fn path_of(record: &'static Record) -> Option<String> {
    let mut first = None;
    for root in ROOTS {
        walk("", root, &mut |path, inner| {
            if first.is_none() && inner.is_some_and(|inner| inner.name == record.name) {
                first = Some(path.to_owned());
            }
        });
    }
    first
}

/// Fields of older APIs that no document may have any more: the path of each, and where its meaning is written now.
pub(crate) fn older_fields() -> Vec<(String, &'static str)> {
    let mut found = Vec::new();
    walk("", Document::RECORD, &mut |path, inner| {
        let Some(record) = inner else { return };
        let gone = OLDER_PLACES.iter().filter(|(of, ..)| *of == record.name);
        found.extend(gone.map(|(_, field, place)| (format!("{path}.{field}"), *place)));
    });
    found
}

/// Visits every field below a record: its path and the record in it.
fn walk(before: &str, record: &'static Record, visit: &mut impl FnMut(&str, Option<&'static Record>)) {
    for field in record.fields {
        let path = format!("{before}{}", field.name);
        let (steps, inner) = innermost((field.shape)());
        visit(&path, inner);
        if let Some(inner) = inner {
            walk(&format!("{path}{steps}."), inner, visit);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::minicluster::{Container, Volume};

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
    fn paths_show_lists_and_free_mappings() {
        let paths = field_paths();
        assert!(paths.len() > 270, "{}", paths.len());
        for path in ["spec.containers[].volumes{}.path", "spec.pod.tolerations[].key", "metadata.name", "apiVersion"] {
            assert!(paths.iter().any(|known| known == path), "{path}");
        }
        assert!(project_paths().iter().any(|path| path == "clusters{}.settings"));
    }

    #[test]
    fn records_are_found_where_they_first_stand() {
        assert_eq!(path_of(Container::RECORD).as_deref(), Some("spec.containers"));
        assert_eq!(path_of(Volume::RECORD).as_deref(), Some("spec.containers[].volumes"));
        assert_eq!(path_of(Document::RECORD), None);
    }
}
