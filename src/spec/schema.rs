//! JSON Schema (draft 2020-12) of a MiniCluster document, of the project file, of views and recipes, from the descriptions of the records.
//!
//! The schema accepts what the reader accepts, null for an optional field included. It cannot say what a bare word means
//! to which reader, nor what `rules` check.

use serde_json::{Map, Value, json};

use super::documents::{API_VERSION, KIND};
use super::minicluster::Document;
use super::project::Project;
use super::recipe::Recipe;
use super::recipe_common::RecipeDownload;
use super::recipe_source::{SourcePackage, SourceRecipe};
use super::recipe_spack::SpackRecipe;
use super::record::{Field, Mark, Record, Shape, paragraph};
use super::view::View;

const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// [`super::decode`]'s grammar of quantities as a pattern.
const QUANTITY: &str =
    r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+))?$";
/// RFC 1123 subdomain.
const SUBDOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
/// RFC 1123 label, or nothing.
const LABEL: &str = "^([a-z0-9]([-a-z0-9]*[a-z0-9])?)?$";

/// The schema of a MiniCluster document.
#[must_use]
pub fn minicluster() -> Value {
    let mut schema = root(Document::RECORD, "MiniCluster (flux-framework.org/v1alpha2)");
    let properties = &mut schema["properties"];
    properties["apiVersion"]["const"] = json!(API_VERSION);
    properties["kind"]["const"] = json!(KIND);
    let metadata = &mut schema["$defs"]["Metadata"]["properties"];
    metadata["name"]["pattern"] = json!(SUBDOMAIN);
    metadata["name"]["maxLength"] = json!(253);
    metadata["namespace"]["pattern"] = json!(LABEL);
    metadata["namespace"]["maxLength"] = json!(63);
    schema
}

/// The schema of the project file `flux-gen.yaml`.
#[must_use]
pub fn project() -> Value {
    root(Project::RECORD, "flux-gen project file (flux-gen.yaml)")
}

/// The schema of `views/<name>/view.yaml`.
#[must_use]
pub fn view() -> Value {
    root(View::RECORD, "flux-gen view (view.yaml)")
}

/// The schema of `recipes/<name>/recipe.yaml`, whose fields depend on its kind.
#[must_use]
pub fn recipe() -> Value {
    let mut definitions = Map::new();
    let kinds: [(&'static Record, &[&str]); 3] =
        [(Recipe::RECORD, &["tree", "image"]), (SourceRecipe::RECORD, &["source"]), (SpackRecipe::RECORD, &["spack"])];
    let choices: Vec<Value> = kinds.iter().map(|(record, _)| reference(record, &mut definitions)).collect();
    let mut words = |record: &str, field: &str, names: &[&str]| {
        let property = &mut definitions[record]["properties"][field];
        let mut names: Vec<Value> = names.iter().map(|name| json!(name)).collect();
        if property["type"].is_array() {
            names.push(Value::Null);
        }
        property["enum"] = Value::Array(names);
    };
    for (record, names) in kinds {
        words(record.name, "kind", names);
    }
    words(SourceRecipe::RECORD.name, "libraries", &["copy", "none"]);
    words(SourcePackage::RECORD.name, "build", &["autotools", "cmake", "make", "python", "script"]);
    words(SpackRecipe::RECORD.name, "install", &["auto", "cache-only", "source"]);
    definitions[RecipeDownload::RECORD.name]["properties"]["sha256"]["pattern"] = json!("^[0-9A-Fa-f]{64}$");
    definitions.sort_keys();
    json!({
        "$schema": DIALECT, "title": "flux-gen recipe (recipe.yaml)",
        "description": "`recipes/<name>/recipe.yaml`: where the tree of a view comes from. `kind` decides which fields there are.",
        "type": "object", "required": ["kind"], "oneOf": choices, "$defs": definitions,
    })
}

fn root(record: &'static Record, title: &str) -> Value {
    let mut definitions = Map::new();
    let own = object(record, &mut definitions);
    definitions.sort_keys();
    let mut schema = Map::new();
    schema.insert("$schema".to_owned(), json!(DIALECT));
    schema.insert("title".to_owned(), json!(title));
    schema.extend(own);
    schema.insert("$defs".to_owned(), Value::Object(definitions));
    Value::Object(schema)
}

/// The schema of a record; those of the records in it go to `definitions`.
fn object(record: &'static Record, definitions: &mut Map<String, Value>) -> Map<String, Value> {
    let mut properties = Map::new();
    for field in record.fields {
        properties.insert(field.name.to_owned(), property(field, definitions));
    }
    let required: Vec<&str> = record.fields.iter().filter(|f| f.is(Mark::Required)).map(|f| f.name).collect();
    let mut schema = Map::new();
    schema.insert("description".to_owned(), json!(paragraph(record.docs)));
    schema.insert("type".to_owned(), json!("object"));
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema.insert("additionalProperties".to_owned(), json!(false));
    schema.insert("properties".to_owned(), Value::Object(properties));
    schema
}

fn property(field: &Field, definitions: &mut Map<String, Value>) -> Value {
    let mut schema = Map::new();
    schema.insert("description".to_owned(), json!(field.description()));
    if field.is(Mark::Older) {
        schema.insert("deprecated".to_owned(), json!(true));
    }
    let of_type = value((field.shape)(), definitions);
    schema.extend(if field.is(Mark::Required) { of_type } else { or_null(of_type) });
    Value::Object(schema)
}

/// The same schema, null allowed.
fn or_null(mut schema: Map<String, Value>) -> Map<String, Value> {
    if schema.is_empty() {
        return schema;
    }
    match schema.get_mut("type") {
        Some(Value::Array(names)) => names.push(json!("null")),
        Some(name) => *name = json!([name.take(), "null"]),
        None => return Map::from_iter([("anyOf".to_owned(), json!([schema, { "type": "null" }]))]),
    }
    schema
}

/// Names a record, whose schema goes to `definitions`.
fn reference(record: &'static Record, definitions: &mut Map<String, Value>) -> Value {
    if !definitions.contains_key(record.name) {
        // First the name, so that a record that holds itself would end.
        definitions.insert(record.name.to_owned(), Value::Null);
        let schema = object(record, definitions);
        definitions.insert(record.name.to_owned(), Value::Object(schema));
    }
    json!({ "$ref": format!("#/$defs/{}", record.name) })
}

fn value(shape: Shape, definitions: &mut Map<String, Value>) -> Map<String, Value> {
    let schema = match shape {
        Shape::Text => json!({ "type": "string" }),
        Shape::Boolean => json!({ "type": "boolean" }),
        Shape::Int32 => json!({ "type": "integer", "format": "int32", "minimum": i32::MIN, "maximum": i32::MAX }),
        Shape::Int64 => json!({ "type": "integer", "format": "int64", "minimum": i64::MIN, "maximum": i64::MAX }),
        Shape::Quantity => json!({ "type": ["integer", "string"], "pattern": QUANTITY }),
        Shape::Setting => json!({
            "type": ["string", "number", "boolean", "array"],
            "items": { "type": ["string", "number", "boolean"] },
        }),
        Shape::Object => json!({ "type": "object" }),
        Shape::Ignored => json!({}),
        Shape::List(item) => json!({ "type": "array", "items": value(item(), definitions) }),
        Shape::Map(item) => json!({ "type": "object", "additionalProperties": value(item(), definitions) }),
        Shape::Record(record) => reference(record, definitions),
    };
    match schema {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
