//! Values that the field does not take.

use super::{minicluster, says};

#[test]
fn types_text() {
    says(
        &minicluster(
            "  containers:
  - image: rockylinux:9
    command: 1
    workingDir: true
    logs: 1.50
    name: [a]
    commands: echo
",
        ),
        r#"FG103 8:14 `1` spec.containers[0].command takes text, not the number `1` | write "1"
FG103 9:17 `true` spec.containers[0].workingDir takes text, not the boolean `true` | write "true"
FG103 10:11 `1.50` spec.containers[0].logs takes text, not the number `1.50` | write "1.50"
FG103 11:11 `[` spec.containers[0].name takes text, not a list
FG103 12:15 `echo` spec.containers[0].commands takes a mapping, not the text `echo`"#,
    );
}

#[test]
fn types_secret_text_is_not_shown() {
    says(
        &minicluster(
            "  containers:
  - image: rockylinux:9
  flux:
    curveCert: {secret-key: XYZ}
    mungeSecret: 5
",
        ),
        r#"FG103 9:17 `secret-key` spec.flux.curveCert takes text, not a mapping
FG103 10:18 `5` spec.flux.mungeSecret takes text, not the number `5` | write "5""#,
    );
}

#[test]
fn types_secret_number_is_not_shown() {
    says(
        &minicluster(
            "  containers:
  - image: rockylinux:9
  flux:
    curveCert: 12345
",
        ),
        "FG103 9:16 `12345` spec.flux.curveCert takes text, not the number | put it in quotes",
    );
}

#[test]
fn types_bool() {
    says(
        &minicluster(
            "  interactive: 'true'
  cleanup: 1
  launcher: maybe
  containers:
  - image: rockylinux:9
",
        ),
        "FG103 6:16 `'true'` spec.interactive takes true or false, not the text `true` | write true without quotes
FG103 7:12 `1` spec.cleanup takes true or false, not the number `1`
FG103 8:13 `maybe` spec.launcher takes true or false, not the text `maybe`",
    );
}

#[test]
fn types_int() {
    says(
        &minicluster(
            r#"  size: "4"
  minSize: 1.5
  maxSize: true
  tasks: {}
  containers:
  - image: rockylinux:9
"#,
        ),
        r#"FG103 6:9 `"4"` spec.size takes a whole number, not the text `4` | write 4 without quotes
FG103 7:12 `1.5` spec.minSize takes a whole number, not the number `1.5`
FG103 8:12 `true` spec.maxSize takes a whole number, not the boolean `true`
FG103 9:10 `{}` spec.tasks takes a whole number, not a mapping"#,
    );
}

#[test]
fn types_whole_float_is_an_integer() {
    says(
        &minicluster(
            "  size: 2.0
  containers:
  - image: rockylinux:9
",
        ),
        "",
    );
}

#[test]
fn types_range() {
    says(&minicluster("  size: 2147483648
  tasks: -2147483649
  deadlineSeconds: 9223372036854775808
  containers:
  - image: rockylinux:9
"), "FG104 6:9 `2147483648` spec.size: 2147483648 is out of range | it can be -2147483648 to 2147483647
FG104 7:10 `-2147483649` spec.tasks: -2147483649 is out of range | it can be -2147483648 to 2147483647
FG104 8:20 `9223372036854775808` spec.deadlineSeconds: 9223372036854775808 is out of range | it can be -9223372036854775808 to 9223372036854775807");
}

#[test]
fn types_list() {
    says(
        &minicluster(
            "  containers:
    image: x
    sizes: 1
  services: x
",
        ),
        "FG103 7:5 `image` spec.containers takes a list, not a mapping | start each item with `- `
FG102 8:5 `sizes` spec.containers[0].sizes is no field of the API | `flux-gen explain spec.containers` lists the fields
FG103 9:13 `x` spec.services takes a list, not the text `x` | start each item with `- `",
    );
}

#[test]
fn types_map() {
    says(&minicluster("  containers:
  - image: rockylinux:9
    volumes:
    - name: a
    environment: [A=b]
    ports:
    - containerPort: 80
"), "FG103 9:7 `name` spec.containers[0].volumes takes a mapping, not a list | write `name: value` for each, without `- ` before it
FG103 10:18 `[` spec.containers[0].environment takes a mapping, not a list | write `name: value` for each, without `- ` before it
FG103 12:7 `containerPort` spec.containers[0].ports[0] takes a whole number, not a mapping");
}

#[test]
fn types_nulls() {
    says(
        &minicluster(
            "  size:
  flux: ~
  containers:
  -
  - image: x
    environment:
      A:
      B: null
    volumes:
      data:
",
        ),
        r#"FG119 9:4 `` spec.containers[0] is empty | write a value (`""` for an empty text), or take the item out
FG119 12:7 `A` spec.containers[1].environment.A is empty | write a value (`""` for an empty text), or take the entry out
FG119 13:7 `B` spec.containers[1].environment.B is empty | write a value (`""` for an empty text), or take the entry out
FG119 15:7 `data` spec.containers[1].volumes.data is empty | write a value (`""` for an empty text), or take the entry out"#,
    );
}

#[test]
fn words_ambiguous_text() {
    says(
        &minicluster(
            "  containers:
  - image: rockylinux:9
    environment:
      A: on
      B: no
      C: 017
      D: 1_000
      E: 1:30
      F: 2024-01-31
      G: 1e3
      H: 0o17
      I: 089
      J: 0b11
      K: 1_0.5
",
        ),
        r#"FG105 9:10 `on` spec.containers[0].environment.A: `on` without quotes is the boolean true to YAML 1.1 readers (kubectl) and text to YAML 1.2 readers | write "on"
FG105 10:10 `no` spec.containers[0].environment.B: `no` without quotes is the boolean false to YAML 1.1 readers (kubectl) and text to YAML 1.2 readers | write "no"
FG105 11:10 `017` spec.containers[0].environment.C: `017` without quotes is the octal number 15 to YAML 1.1 readers (kubectl) and decimal to YAML 1.2 readers | write "017"
FG105 12:10 `1_000` spec.containers[0].environment.D: `1_000` without quotes is the number 1000 to YAML 1.1 readers (kubectl) and text to YAML 1.2 readers | write "1_000"
FG105 13:10 `1:30` spec.containers[0].environment.E: `1:30` without quotes is a number in base 60 to YAML 1.1 readers and text to YAML 1.2 readers | write "1:30"
FG105 14:10 `2024-01-31` spec.containers[0].environment.F: `2024-01-31` without quotes is a date to YAML 1.1 readers and text to YAML 1.2 readers | write "2024-01-31"
FG105 15:10 `1e3` spec.containers[0].environment.G: `1e3` without quotes is the number 1000 to YAML 1.2 readers and kubectl and text to YAML 1.1 readers | write "1e3"
FG105 16:10 `0o17` spec.containers[0].environment.H: `0o17` without quotes is the number 15 to YAML 1.2 readers and kubectl and text to YAML 1.1 readers | write "0o17"
FG105 17:10 `089` spec.containers[0].environment.I: `089` without quotes is the number 89 to kubectl and to YAML 1.2 readers and text to YAML 1.1 readers | write "089"
FG105 18:10 `0b11` spec.containers[0].environment.J: `0b11` without quotes is the number 3 to YAML 1.1 readers (kubectl) and text to YAML 1.2 readers | write "0b11"
FG105 19:10 `1_0.5` spec.containers[0].environment.K: `1_0.5` without quotes is the number 10.5 to YAML 1.1 readers (kubectl) and text to YAML 1.2 readers | write "1_0.5""#,
    );
}

#[test]
fn words_ambiguous_bool() {
    says(&minicluster("  interactive: yes
  cleanup: off
  containers:
  - image: rockylinux:9
"), "FG105 6:16 `yes` spec.interactive: `yes` without quotes is the boolean true to YAML 1.1 readers (kubectl) and text to YAML 1.2 readers | write true
FG105 7:12 `off` spec.cleanup: `off` without quotes is the boolean false to YAML 1.1 readers (kubectl) and text to YAML 1.2 readers | write false");
}

#[test]
fn words_ambiguous_int() {
    says(&minicluster("  size: 010
  tasks: 1_000
  maxSize: 1:30
  minSize: 0x10
  containers:
  - image: rockylinux:9
"), "FG105 6:9 `010` spec.size: `010` without quotes is the octal number 8 to YAML 1.1 readers (kubectl) and decimal to YAML 1.2 readers | write 8 if that is meant
FG105 7:10 `1_000` spec.tasks: `1_000` without quotes is the number 1000 to YAML 1.1 readers (kubectl) and text to YAML 1.2 readers | write 1000 if that is meant
FG105 8:12 `1:30` spec.maxSize: `1:30` without quotes is a number in base 60 to YAML 1.1 readers and text to YAML 1.2 readers | write a plain decimal number");
}

#[test]
fn quantities_bad() {
    says(
        &minicluster(
            "  containers:
  - image: rockylinux:9
    resources:
      limits:
        cpu: four
        memory: 1 Gi
        a/b: 0.5
        c: 500mb
        d: 1.0
        e: 1e3
        f: true
        g: 99999999999999999999
        h: []
",
        ),
        r#"FG107 10:14 `four` spec.containers[0].resources.limits.cpu: `four` is not a quantity | write a number with an optional suffix and nothing between them: 4, 500m, 1.5, 64Gi, 500M
FG107 11:17 `1 Gi` spec.containers[0].resources.limits.memory: `1 Gi` is not a quantity | write a number with an optional suffix and nothing between them: 4, 500m, 1.5, 64Gi, 500M
FG107 12:14 `0.5` spec.containers[0].resources.limits["a/b"]: the API takes a fraction as text only, and 0.5 has no quotes | write "0.5"
FG107 13:12 `500mb` spec.containers[0].resources.limits.c: `500mb` is not a quantity | write a number with an optional suffix and nothing between them: 4, 500m, 1.5, 64Gi, 500M
FG105 15:12 `1e3` spec.containers[0].resources.limits.e: `1e3` without quotes is the number 1000 to YAML 1.2 readers and kubectl and text to YAML 1.1 readers | write "1e3" if the text is meant, or a plain decimal number
FG103 16:12 `true` spec.containers[0].resources.limits.f takes a quantity (a whole number or text), not the boolean `true`
FG104 17:12 `99999999999999999999` spec.containers[0].resources.limits.g: 99999999999999999999 is out of range | it can be -9223372036854775808 to 9223372036854775807; larger ones need a suffix
FG103 18:12 `[]` spec.containers[0].resources.limits.h takes a quantity (a whole number or text), not a list"#,
    );
}
