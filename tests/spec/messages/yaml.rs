//! Texts that are not the YAML that Kubernetes takes.

use super::{minicluster, said, says};

#[test]
fn syntax_open_quote() {
    says(
        &minicluster(
            r#"  containers:
  - image: "rocky
"#,
        ),
        r#"FG101 7:12 `"` this quote is never closed | close it, or put the whole text in the other kind of quotes"#,
    );
}

#[test]
fn syntax_tab() {
    says(&minicluster("\tcontainers: []\n"), "FG101 6:2 `c` a tab where YAML wants spaces | indent with spaces");
}

#[test]
fn syntax_value_with_colon() {
    says(
        &minicluster(
            "  containers:
  - image: rockylinux:9
    command: echo a: b
",
        ),
        "FG101 8:20 `:` `: ` inside a value without quotes | put the value in quotes, or write it in a block after `|`",
    );
}

#[test]
fn syntax_missing_blank() {
    says(&minicluster("  containers:
  -image: x
  -image: y
"), "FG106 5:1 `spec` spec.containers is required | add `containers:`. Containers of every pod; exactly one runs Flux.
FG102 7:3 `-image` spec.-image is no field of the API | a list item needs a blank after its `-`
FG116 8:3 `-image` the key `-image` is written twice | readers refuse the document or take the last value silently; keep one of them | 7:3 first written here");
}

#[test]
fn syntax_indentation() {
    says(
        &minicluster(
            "  size: 1
 containers: []
",
        ),
        "FG101 7:2 `c` the indentation fits none of the lines above | keys of one mapping start in the same column",
    );
}

#[test]
fn syntax_unknown_anchor() {
    says(
        &minicluster(
            "  containers:
  - image: rockylinux:9
    command: *cmd
",
        ),
        "FG101 8:14 `*` this alias has no anchor before it | write `&name` before the value that is meant, or quote a text that starts with `*`",
    );
}

#[test]
fn syntax_star_glob() {
    says(
        &minicluster(
            "  containers:
  - image: rockylinux:9
    command: *.sh
",
        ),
        "FG101 8:14 `*` this alias has no anchor before it | write `&name` before the value that is meant, or quote a text that starts with `*`",
    );
}

#[test]
fn syntax_bracket() {
    says(
        &minicluster(
            "  containers: [
",
        ),
        "FG101 7:1 `` a list in `[ ]` or a mapping in `{ }` goes wrong at this place | close every `[` and `{`, put commas between items, and quote texts that start with one of them",
    );
}

#[test]
fn syntax_goes_on_with_the_next_document() {
    says("a: [1
---
apiVersion: flux-framework.org/v1alpha2
kind: MiniCluster
metadata:
  name: a
spec:
  sise: 1
  containers:
  - image: rockylinux:9
---
'
---
apiVersion: flux-framework.org/v1alpha2
kind: MiniCluster
metadata:
  name: a
spec:
  sizes: 1
  containers:
  - image: rockylinux:9
", "FG101 2:1 `-` a list in `[ ]` or a mapping in `{ }` goes wrong at this place | close every `[` and `{`, put commas between items, and quote texts that start with one of them
FG102 8:3 `sise` spec.sise is no field of the API | did you mean `size`?
FG101 12:1 `'` this quote is not closed before the next `---` or `...` line | close it, or put the whole text in the other kind of quotes
FG102 19:3 `sizes` spec.sizes is no field of the API | did you mean `size`?");
}

#[test]
fn syntax_after_non_ascii() {
    says(
        "# 🦕 é
apiVersion: flux-framework.org/v1alpha2
kind: MiniCluster
metadata:
  name: a # é🦕é
spec:
  containers:
  - image: é🦕 # é
    command: 'é
",
        "FG101 9:14 `'` this quote is never closed | close it, or put the whole text in the other kind of quotes",
    );
}

#[test]
fn syntax_crlf_and_bom() {
    says(
        "\u{feff}apiVersion: flux-framework.org/v1alpha2\r\nkind: MiniCluster\r\nmetadata:\r\n  name: a\r\nspec:\r\n  sise: 1\r\n  containers:\r\n  - image: rockylinux:9\r\n",
        "FG102 6:3 `sise` spec.sise is no field of the API | did you mean `size`?",
    );
}

#[test]
fn syntax_json() {
    says(
        r#"{"apiVersion":"flux-framework.org/v1alpha2","kind":"MiniCluster","metadata":{"name":"a"},
 "spec":{"containers":[{"image":"x","sizes":1}]}}"#,
        r#"FG102 2:37 `"sizes"` spec.containers[0].sizes is no field of the API | `flux-gen explain spec.containers` lists the fields"#,
    );
}

#[test]
fn limits_self_alias() {
    says(
        "a: &a [*a]
",
        "FG115 1:8 `*a` the alias stands inside the value that it names",
    );
}

#[test]
fn alias_places() {
    says(
        &minicluster(
            "  size: &n two\n  maxSize: *n\n  containers:\n  - &c {image: x, sizes: 1}\n  - <<: *c\n    name: b\n",
        ),
        "FG103 6:9 `&n two` spec.size takes a whole number, not the text `two`
FG103 7:12 `*n` spec.maxSize takes a whole number, not the text `two` | 6:9 the value that the alias stands for is written here
FG102 9:19 `sizes` spec.containers[0].sizes is no field of the API | `flux-gen explain spec.containers` lists the fields
FG102 10:9 `*c` spec.containers[1].sizes is no field of the API | `flux-gen explain spec.containers` lists the fields | 9:5 the value that the alias stands for is written here",
    );
}

#[test]
fn limits_tag() {
    says(&minicluster("  containers:
  - command: !!binary aGk=
    image: !include x
"), "FG118 7:14 `!!binary aGk=` the tag `!!binary` has no meaning here | take the tag out; quotes are enough to make a value text
FG118 8:12 `!include x` the tag `!include` has no meaning here | take the tag out; quotes are enough to make a value text");
}

#[test]
fn keys_duplicate() {
    says(&minicluster("  containers:
  - image: rockylinux:9
    command: a
    command: b
  size: 1
  size: 2
"), "FG116 9:5 `command` the key `command` is written twice | readers refuse the document or take the last value silently; keep one of them | 8:5 first written here
FG116 11:3 `size` the key `size` is written twice | readers refuse the document or take the last value silently; keep one of them | 10:3 first written here");
}

#[test]
fn keys_list_as_key() {
    says(&minicluster("  containers:
  - image: rockylinux:9
    environment:
      [a]: b
      : c
"), "FG117 9:7 `[a]` a list or a mapping stands where a key should be | keys of Kubernetes documents are text; put quotes around a key that has `[`, `{` or `?` at its start, and render a template (`{{ name }}`) before it is read
FG117 10:7 `` the key is empty | write the key before the `:`");
}

#[test]
fn keys_bool_key() {
    says(
        &minicluster(
            r#"  containers:
  - image: rockylinux:9
    environment:
      on: "1"
      y: "2"
      1: "3"
      0x1F: "4"
      True: "5"
      1.5: "6"
"#,
        ),
        r#"FG105 9:7 `on` the key `on` without quotes is the boolean true to YAML 1.1 readers (kubectl) and text to YAML 1.2 readers | write "on"
FG105 10:7 `y` the key `y` without quotes is the boolean true to YAML 1.1 readers (kubectl) and text to YAML 1.2 readers | write "y"
FG105 12:7 `0x1F` the key `0x1F` without quotes is read as another text by Kubernetes | write "0x1F"
FG105 13:7 `True` the key `True` without quotes is read as another text by Kubernetes | write "True""#,
    );
}

#[test]
fn keys_merge_of_text() {
    says(
        &minicluster(
            "  containers:
  - image: rockylinux:9
    environment:
      <<: x
",
        ),
        r#"FG117 9:11 `x` `<<` merges mappings, and this is none | write `<<: *anchor` with the anchor of a mapping, or quote the key "<<""#,
    );
}

#[test]
fn templates() {
    for line in ["  pod:{% if scheduler %}\n", "  {{- if .Values.x }}\n"] {
        let said = said(&minicluster(&format!("{line}  containers:\n  - image: a\n")));
        assert!(said.contains("FG101") && said.contains("render it before it is read"), "{line}: {said}");
    }
}
