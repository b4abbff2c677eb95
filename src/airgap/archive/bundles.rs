//! What is in the YAML and JSON of an archive: names of images, and Secrets that anybody can read.

use serde_json::Value;

use crate::airgap::plain::{is_plain_secret, may_hold_objects};
use crate::diag::{Severity, SourceMap};
use crate::object::images::visit_value;
use crate::spec::read_objects;

/// The objects of a file; none for one that is neither YAML nor JSON by its name.
fn objects(name: &str, bytes: Vec<u8>) -> Result<Vec<Value>, String> {
    if !may_hold_objects(name) {
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

/// Names of the Secrets in a file whose values anybody can read.
///
/// # Errors
/// What is wrong with the file when it cannot be read as YAML: what is in it is not known then.
pub fn plain_secrets(name: &str, bytes: Vec<u8>) -> Result<Vec<String>, String> {
    let all = objects(name, bytes)?;
    Ok(all.iter().filter(|object| is_plain_secret(object)).map(title).collect())
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
            ("a.yaml", secret("data: {k: 'ENC[AES256_GCM,data:x,iv:y]'}\nsops: {mac: 'ENC[AES256_GCM,data:z]'}"), 0),
            // It only says that it is encrypted.
            ("a.yaml", secret("data: {k: dg==}\nsops: {mac: 'ENC[AES256_GCM,data:z]'}"), 1),
            ("a.txt", secret("data: {k: dg==}"), 0),
            ("a.yaml", format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c}}\n---\n{}", secret("data: {k: dg==}")), 1),
            ("a.yaml", "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: s}, data: {k: dg==}}\n".to_owned(), 1),
        ] {
            assert_eq!(plain_secrets(name, text.clone().into_bytes()).map(|found| found.len()), Ok(expect), "{text}");
        }
        assert!(plain_secrets("a.yaml", b"a: [".to_vec()).is_err());
    }
}
