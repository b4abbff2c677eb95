//! The JSON Schemas: valid themselves, and of one mind with the reader.

use flux_gen::diag::SourceMap;
use flux_gen::spec::{self, Project, ReadOptions, explain, schema};
use serde_json::{Value, json};

#[allow(clippy::needless_pass_by_value)] // json!() makes owned values, and the calls read better.
fn minicluster(spec: Value) -> Value {
    json!({ "apiVersion": "flux-framework.org/v1alpha2", "kind": "MiniCluster", "metadata": { "name": "a" }, "spec": spec })
}

/// JSON is YAML, so the reader takes it as it is.
fn reader_takes(value: &Value) -> bool {
    let inputs = vec![("a.json".to_owned(), value.to_string().into_bytes())];
    !spec::read(&mut SourceMap::new(), inputs, &ReadOptions::default()).1.has_errors()
}

#[test]
fn schemas_are_schemas() {
    for schema in [schema::minicluster(), schema::project(), schema::view(), schema::recipe()] {
        assert!(jsonschema::meta::validate(&schema).is_ok());
        assert!(jsonschema::validator_for(&schema).is_ok());
    }
    assert_eq!(schema::minicluster().to_string(), schema::minicluster().to_string());
}

#[test]
fn schema_and_reader_agree() {
    let validator = jsonschema::validator_for(&schema::minicluster()).unwrap();
    let container = |field: &str, value: Value| minicluster(json!({ "containers": [{ field: value }] }));
    let cases = [
        (minicluster(json!({ "containers": [] })), true),
        (minicluster(json!({ "containers": [{}], "flux": null, "size": null })), true),
        (minicluster(json!({ "containers": null })), false),
        (minicluster(json!({ "containers": {} })), false),
        (minicluster(json!({ "containers": [null] })), false),
        (minicluster(json!({})), false),
        (minicluster(json!({ "containers": [], "size": 2_147_483_648_i64 })), false),
        (minicluster(json!({ "containers": [], "size": -2_147_483_648_i64 })), true),
        (minicluster(json!({ "containers": [], "size": "4" })), false),
        (minicluster(json!({ "containers": [], "size": 2.0 })), true),
        (minicluster(json!({ "containers": [], "size": 1.5 })), false),
        (minicluster(json!({ "containers": [], "sizes": 1 })), false),
        (minicluster(json!({ "containers": [], "deadlineSeconds": i64::MAX })), true),
        (container("environment", json!({ "A": "1" })), true),
        (container("environment", json!({ "A": 1 })), false),
        (container("environment", json!({ "A": null })), false),
        (container("environment", json!([])), false),
        (container("ports", json!([80])), true),
        (container("ports", json!(["80"])), false),
        (container("securityContext", json!({ "seccompProfile": {} })), false),
        (container("securityContext", json!({ "seccompProfile": { "type": "Localhost" } })), true),
        (container("cores", json!(2)), true),
        (container("runFlux", json!("true")), false),
        (json!({ "kind": "MiniCluster" }), false),
        (json!([]), false),
    ];
    for (value, expected) in cases {
        assert_eq!((validator.is_valid(&value), reader_takes(&value)), (expected, expected), "{value}");
    }
}

#[test]
fn quantities_and_names_are_checked_alike() {
    let validator = jsonschema::validator_for(&schema::minicluster()).unwrap();
    let quantities = [
        json!(4),
        json!("4"),
        json!("-4"),
        json!("+4.5"),
        json!(".5"),
        json!("4."),
        json!("4Ki"),
        json!("4ki"),
        json!("4m"),
        json!("4n"),
        json!("4e3"),
        json!("4E3"),
        json!("4E"),
        json!("4e"),
        json!("4e+3"),
        json!("4e1.5"),
        json!("4Ei"),
        json!(""),
        json!("."),
        json!("m"),
        json!("4 Gi"),
        json!("4GB"),
        json!("four"),
        json!("4é"),
        json!("4\n"),
        json!(0.5),
        json!(true),
    ];
    for quantity in quantities {
        let value = minicluster(json!({ "containers": [{ "resources": { "limits": { "cpu": quantity } } }] }));
        assert_eq!(validator.is_valid(&value), reader_takes(&value), "{quantity}");
    }
    let long = "a".repeat(254);
    for name in ["a", "a-b.c", "1", "A", "-a", "a-", "a..b", "a.", "", "a_b", "é", &long, &long[1..], &long[..64]] {
        for field in ["name", "namespace"] {
            let mut value = minicluster(json!({ "containers": [] }));
            value["metadata"][field] = json!(name);
            assert_eq!(validator.is_valid(&value), reader_takes(&value), "{field} {name:?}");
        }
    }
}

#[test]
fn every_field_is_in_the_schema_with_its_description() {
    let schema = schema::minicluster();
    let mut properties = Vec::new();
    let records = std::iter::once(&schema).chain(schema["$defs"].as_object().unwrap().values());
    for record in records {
        assert_eq!(record["additionalProperties"], json!(false));
        properties.extend(record["properties"].as_object().unwrap().iter());
    }
    for (name, property) in &properties {
        assert!(property["description"].as_str().is_some_and(|text| !text.is_empty()), "{name}");
    }
    for path in explain::field_paths() {
        let name = path.rsplit('.').next().unwrap();
        assert!(properties.iter().any(|(property, _)| *property == name), "{path}");
    }
    let cores = &schema["$defs"]["Container"]["properties"]["cores"];
    assert_eq!((&cores["deprecated"], &cores["type"]), (&json!(true), &json!(["integer", "null"])));
}

#[test]
fn schema_of_the_project_file_agrees_with_its_reader() {
    let validator = jsonschema::validator_for(&schema::project()).unwrap();
    let cases = [
        (json!({}), true),
        (
            json!({ "required-version": ">=0.1", "sources": ["a"], "settings": { "a": 1, "b": [true, "x"], "c": 1.5 } }),
            true,
        ),
        (json!({ "settings": { "a": {} } }), false),
        (json!({ "settings": { "a": [[]] } }), false),
        (json!({ "settings": { "a": null } }), false),
        (json!({ "patches": [{ "target": { "kind": "Job" }, "patch": { "spec": {} } }] }), true),
        (json!({ "patches": [{ "target": { "kind": "Job" } }] }), false),
        (json!({ "patches": [{ "patch": "x" }] }), false),
        (json!({ "source": [] }), false),
        (json!([]), false),
    ];
    for (value, expected) in cases {
        let read = Project::read(&mut SourceMap::new(), "p", value.to_string().into_bytes());
        assert_eq!((validator.is_valid(&value), !read.1.has_errors()), (expected, expected), "{value}");
    }
}

/// The value of a YAML text, by another reader than ours.
fn yaml(text: &str) -> Value {
    serde_norway::from_str(text).unwrap()
}

#[test]
fn schema_of_recipes_agrees_with_their_reader() {
    let validator = jsonschema::validator_for(&schema::recipe()).unwrap();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for file in [
        "recipes/flux/recipe.yaml",
        "recipes/flux-spack/recipe.yaml",
        "recipes/debian-12/recipe.yaml",
        "recipes/debian-12-again/recipe.yaml",
    ] {
        let value = yaml(&std::fs::read_to_string(root.join(file)).unwrap());
        assert!(validator.is_valid(&value), "{file}: {:?}", validator.iter_errors(&value).next());
    }
    let source = "kind: source\nsystems: {one: {base: b}}\npackages: [{name: a, version: '1', folder: a}]\n";
    let spack = "kind: spack\nsystems: {one: {base: b}}\nspecs: [flux-core]\n";
    for (text, expected) in [
        (source.to_owned(), true),
        (format!("{source}libraries: copy\n"), true),
        (format!("{source}libraries: null\n"), true),
        (format!("{source}libraries: some\n"), false),
        (format!("{source}specs: [flux-core]\n"), false),
        (source.replace("folder: a", "build: ninja"), false),
        (source.replace("folder: a", "source: {url: 'https://a/b', sha256: abc}"), false),
        (source.replace("version: '1'", "version: 1"), false),
        (source.replace("kind: source", "kind: make"), false),
        (source.replace("kind: source\n", ""), false),
        (spack.to_owned(), true),
        (format!("{spack}install: cache-only\noffline: true\n"), true),
        (format!("{spack}install: never\n"), false),
        (format!("{spack}packages: []\n"), false),
        ("kind: tree\ntrees: {linux/amd64: {path: a, prefix: /opt/software/a}}\n".to_owned(), true),
        ("kind: tree\ntrees: {linux/amd64: {prefix: a}}\n".to_owned(), false),
        ("kind: image\nimage: a@sha256:b\n".to_owned(), true),
        ("kind: image\nsystems: {}\n".to_owned(), false),
    ] {
        assert_eq!(validator.is_valid(&yaml(&text)), expected, "{text}");
    }
}

#[test]
fn every_field_of_recipes_is_in_the_schema_with_its_description() {
    let schema = schema::recipe();
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        assert!(definition["description"].as_str().is_some_and(|d| !d.is_empty()), "{name}");
        for (field, property) in definition["properties"].as_object().unwrap() {
            assert!(property["description"].as_str().is_some_and(|d| !d.is_empty()), "{name}.{field}");
        }
    }
    for name in
        ["SourceRecipe", "SourcePackage", "SourcePatch", "RecipeSystem", "RecipeDownload", "SpackRecipe", "SpackMirror"]
    {
        assert!(schema["$defs"].get(name).is_some(), "{name}");
    }
}
