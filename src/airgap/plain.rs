//! Plain Secrets in files: what must not leave the house by mistake.

use serde_json::Value;

use crate::bundle::sops::hides_data;
use crate::diag::codes::publish as codes;
use crate::diag::{Diagnostic, Diagnostics, Severity, SourceMap};
use crate::spec::read_objects;

/// Endings of files whose objects GitOps tools apply.
const ENDINGS: [&str; 3] = [".yaml", ".yml", ".json"];

/// Whether a file of this name may hold objects.
#[must_use]
pub fn may_hold_objects(name: &str) -> bool {
    ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// An error for each file that holds a Secret with readable values, at the name of the file; and for each file that cannot
/// be read, because nobody knows then what is in it. Values are never part of a message.
#[must_use]
pub fn plain_secrets(name: &str, bytes: Vec<u8>) -> Diagnostics {
    // The excerpt of a file with a Secret would show it, so the texts stay here and places go with them.
    let (read, problems) = read_objects(&mut SourceMap::new(), vec![(name.to_owned(), bytes)]);
    let mut found = Diagnostics::new();
    for problem in problems.iter().filter(|problem| problem.severity == Severity::Error) {
        let message = format!("{name}: {}", problem.message);
        found.push(Diagnostic::global_error(problem.code, message));
    }
    let secrets = read.objects.iter().filter(|object| is_plain_secret(&object.value));
    let names: Vec<&str> = secrets.map(|object| text(&object.value, "/metadata/name")).collect();
    if !names.is_empty() {
        let message = format!("{name} holds the plain Secret {}", names.join(" and "));
        let help = "encrypt it (setting `secrets`), or say --include-secrets";
        found.push(Diagnostic::global_error(codes::PLAIN_SECRET, message).help(help));
    }
    found
}

/// Whether an object is a Secret whose values anybody can read.
#[must_use]
pub fn is_plain_secret(value: &Value) -> bool {
    let holds = |field| value.get(field).and_then(Value::as_object).is_some_and(|values| !values.is_empty());
    text(value, "/apiVersion") == "v1"
        && text(value, "/kind") == "Secret"
        && (holds("data") || holds("stringData"))
        && !hides_data(value)
}

/// Whether a text has the private part of a CURVE certificate, as a spec with `curveCert` has it. What only looks like one
/// counts too.
#[must_use]
pub fn has_private_key(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let value = |rest: &str| rest.trim_start().strip_prefix('=').is_some_and(|rest| !rest.trim().is_empty());
    text.lines().any(|line| line.split_once("secret-key").is_some_and(|(_, rest)| value(rest)))
}

fn text<'v>(value: &'v Value, pointer: &str) -> &'v str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let found = plain_secrets("a/b.yaml", text.as_bytes().to_vec());
        found.iter().map(|d| format!("{} {}", d.code.id, d.message)).collect()
    }

    const SECRET: &str = "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\nstringData: {k: hush}\n";

    #[test]
    fn only_secrets_with_values_that_anybody_can_read() {
        assert_eq!(found(SECRET), ["FG950 a/b.yaml holds the plain Secret key"]);
        let list = format!("apiVersion: v1\nkind: List\nitems:\n- {}", SECRET.replace('\n', "\n  ").trim_end());
        assert_eq!(found(&list), ["FG950 a/b.yaml holds the plain Secret key"]);
        let two = format!("{SECRET}---\n{}", SECRET.replace("name: key", "name: other"));
        assert_eq!(found(&two), ["FG950 a/b.yaml holds the plain Secret key and other"]);
        for harmless in [
            SECRET.replace("stringData: {k: hush}\n", ""),
            SECRET.replace("{k: hush}", "{}"),
            SECRET.replace("kind: Secret", "kind: ConfigMap"),
            SECRET.replace("apiVersion: v1", "apiVersion: example.com/v1"),
        ] {
            assert_eq!(found(&harmless), [""; 0], "{harmless}");
        }
    }

    #[test]
    fn a_secret_that_only_says_that_it_is_encrypted_is_plain() {
        let encrypted = "apiVersion: v1\nkind: Secret\nmetadata: {name: key}\ndata: {k: 'ENC[AES256_GCM,data:x,iv:y]'}\nsops: {mac: 'ENC[AES256_GCM,data:z]'}\n";
        assert_eq!(found(encrypted), [""; 0]);
        let half = encrypted.replace("data: {", "data: {plain: aHVzaA==, ");
        assert_eq!(found(&half), ["FG950 a/b.yaml holds the plain Secret key"]);
        let pretended = SECRET.to_owned() + "sops: {mac: 'ENC[AES256_GCM,data:z]'}\n";
        assert_eq!(found(&pretended), ["FG950 a/b.yaml holds the plain Secret key"]);
    }

    #[test]
    fn private_parts_of_certificates() {
        for text in [
            "    curveCert: |\n      curve\n        secret-key = \"x\"\n",
            "curveCert: \"curve\\n secret-key=\\\"x\\\"\"\n",
        ] {
            assert!(has_private_key(text.as_bytes()), "{text}");
        }
        for text in ["public-key = \"x\"\n", "# the secret-key is elsewhere\n", "secret-key =\n"] {
            assert!(!has_private_key(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_may_hold_anything() {
        let found = found("apiVersion: v1\nkind: Secret\nstringData: {k: hush\n");
        assert!(found.len() == 1 && found[0].contains("a/b.yaml: ") && !found[0].contains("hush"), "{found:?}");
    }
}
