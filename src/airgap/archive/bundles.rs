//! What is in the YAML and JSON of an archive: names of images, and Secrets that anybody can read.

use serde_json::Value;

use crate::diag::{Severity, SourceMap};
use crate::object::images::visit_value;
use crate::spec::read_objects;

/// Whether a file may hold objects.
#[must_use]
pub fn is_text_of_objects(name: &str) -> bool {
    [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end))
}

/// The objects of a file; none for one that is neither YAML nor JSON by its name.
fn objects(name: &str, bytes: Vec<u8>) -> Result<Vec<Value>, String> {
    if !is_text_of_objects(name) {
        return Ok(Vec::new());
    }
    let (objects, problems) = read_objects(&mut SourceMap::new(), vec![(name.to_owned(), bytes)]);
    match problems.iter().find(|problem| problem.severity == Severity::Error) {
        // The text of the problem may quote the file; what kind of problem it is says enough.
        Some(problem) => Err(problem.code.title.to_owned()),
        None => Ok(objects.objects.into_iter().map(|object| object.value).collect()),
    }
}

/// The images that a file of a bundle names, with the path to each.
///
/// # Errors
/// What is wrong with the file when it cannot be read as YAML.
pub fn images(name: &str, bytes: Vec<u8>) -> Result<Vec<(String, String)>, String> {
    let mut found = Vec::new();
    for mut object in objects(name, bytes)? {
        visit_value(&mut object, &mut |path, image| {
            found.push((path.to_owned(), image.to_owned()));
            None
        });
    }
    Ok(found)
}

/// Names of the Secrets in a file whose values anybody can read. Encrypted ones (SOPS) have a part that says so.
///
/// # Errors
/// What is wrong with the file when it cannot be read as YAML: what is in it is not known then.
pub fn plain_secrets(name: &str, bytes: Vec<u8>) -> Result<Vec<String>, String> {
    let all = objects(name, bytes)?;
    Ok(all.iter().filter(|object| is_plain_secret(object)).map(title).collect())
}

fn is_plain_secret(object: &Value) -> bool {
    let is_secret = object["kind"] == "Secret" && object["apiVersion"] == "v1";
    let has = |key: &str| object.get(key).and_then(Value::as_object).is_some_and(|map| !map.is_empty());
    is_secret && object.get("sops").is_none() && (has("data") || has("stringData"))
}

fn title(object: &Value) -> String {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_that_anybody_can_read() {
        let secret = |rest: &str| format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\n{rest}\n");
        for (name, text, expect) in [
            ("a.yaml", secret("data: {k: dg==}"), 1),
            ("a.yml", secret("stringData: {k: v}"), 1),
            ("a.yaml", secret("data: {}"), 0),
            ("a.yaml", secret("data: {k: ENC}\nsops: {version: 3.9.0}"), 0),
            ("a.txt", secret("data: {k: dg==}"), 0),
            ("a.yaml", format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\n---\n{}", secret("data: {k: dg==}")), 1),
            ("a.yaml", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: s}, data: {k: dg==}}\n".to_owned(), 1),
        ] {
            assert_eq!(plain_secrets(name, text.clone().into_bytes()).map(|found| found.len()), Ok(expect), "{text}");
        }
        assert!(plain_secrets("a.yaml", b"a: [".to_vec()).is_err());
    }
}
