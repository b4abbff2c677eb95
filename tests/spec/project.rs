//! The project file.

use flux_gen::diag::SourceMap;
use flux_gen::spec::Project;
use serde_json::json;

fn read(text: &str) -> (Project, Vec<String>) {
    let mut sources = SourceMap::new();
    let (project, diagnostics) = Project::read(&mut sources, "flux-gen.yaml", text.as_bytes().to_vec());
    let line = |d: &flux_gen::diag::Diagnostic| {
        let span = d.span.unwrap();
        let at = sources.get(span.file).unwrap().line_column(span.start);
        let help = d.help.as_ref().map(|help| format!(" | {help}")).unwrap_or_default();
        format!("{} {}:{} {}{help}", d.code.id, at.line, at.column, d.message)
    };
    let lines = diagnostics.sorted().iter().map(line).collect();
    (project, lines)
}

#[test]
fn settings_keep_their_text() {
    let (project, lines) = read(
        "required-version: '>=0.1'\nsources: [a, b]\noutput: out\n\
         settings:\n  target: 1.30\n  sidecar: native\n  strict: True\n  cores: 0x10\n  platforms: [linux/amd64, 1, false]\n  none: []\n\
         clusters:\n  ns/a:\n    settings: {x: z}\n",
    );
    assert_eq!(lines, Vec::<String>::new());
    let settings: Vec<(&str, &str)> =
        project.settings.as_ref().unwrap().iter().map(|e| (e.key.value.as_str(), e.value.value.0.as_str())).collect();
    let expected = [
        ("target", "1.30"),
        ("sidecar", "native"),
        ("strict", "true"),
        ("cores", "16"),
        ("platforms", "linux/amd64,1,false"),
        ("none", ""),
    ];
    assert_eq!(settings, expected);
    let cluster = project.clusters.as_ref().unwrap().get("ns/a").unwrap();
    assert_eq!(cluster.settings.as_ref().unwrap().get("x").unwrap().value.0, "z");
}

#[test]
fn patches_are_json() {
    let (project, lines) = read(
        "patches:\n- target: {cluster: a, kind: Job}\n  patch:\n    spec: {template: {spec: {priorityClassName: high, mode: 0400}}}\n",
    );
    assert_eq!(lines, Vec::<String>::new());
    let patch = project.patches().next().unwrap();
    assert_eq!(patch.target.as_ref().unwrap().kind.as_ref().unwrap().value, "Job");
    let expected = json!({ "spec": { "template": { "spec": { "priorityClassName": "high", "mode": 256 } } } });
    assert_eq!(patch.patch.as_ref().unwrap().value.0, expected);
}

#[test]
fn problems_are_reported_all_at_once() {
    let text = "soruces: [a]\nname: x\nsettings:\n  a: yes\n  b: {c: d}\n  c:\n  d: ['x,y', [z], ~, on]\n  e: 1:30\n\
                clusters: []\npatches:\n- patch: x\n- target: {name: 5}\n- patch: {a: on}\n---\nb: 1\n";
    let (_, lines) = read(text);
    let expected = "\
FG102 1:1 soruces is no field of the API | did you mean `sources`?
FG102 2:1 name is no field of the API | `name` belongs to patches[].target.name
FG105 4:6 settings.a: `yes` without quotes is the boolean true to YAML 1.1 readers (kubectl) and text to YAML 1.2 readers | write true if that is meant, else write \"yes\"
FG103 5:7 settings.b takes text, a number, true, false, or a list of these, not a mapping
FG119 6:3 settings.c is empty | write a value (`\"\"` for an empty text), or take the entry out
FG103 7:7 a list item of a setting cannot hold a comma: `x,y` | make it two items
FG103 7:14 settings.d[1] takes text, a number, true or false, not a list
FG119 7:19 settings.d[2] is empty | write a value (`\"\"` for an empty text), or take the item out
FG105 7:22 settings.d[3]: `on` without quotes is the boolean true to YAML 1.1 readers (kubectl) and text to YAML 1.2 readers | write true if that is meant, else write \"on\"
FG105 8:6 settings.e: `1:30` without quotes is a number in base 60 to YAML 1.1 readers and text to YAML 1.2 readers | write \"1:30\"
FG103 9:11 clusters takes a mapping, not a list | write `name: value` for each, without `- ` before it
FG103 11:10 patches[0].patch takes a mapping, not the text `x`
FG106 12:3 patches[1].patch is required | add `patch:`. The patch, as YAML of the object's kind.
FG103 12:18 patches[1].target.name takes text, not the number `5` | write \"5\"
FG105 13:14 patches[2].patch.a: `on` without quotes is the boolean true to YAML 1.1 readers (kubectl) and text to YAML 1.2 readers | write true if that is meant, else write \"on\"
FG410 15:1 a project file is one document, and here a second one starts";
    assert_eq!(lines.join("\n"), expected);
}

#[test]
fn files_that_say_nothing() {
    for text in ["", "# nothing\n", "~\n", "{}\n"] {
        assert_eq!(read(text), (Project::default(), Vec::new()), "{text:?}");
    }
    assert_eq!(read("- a\n").1, ["FG103 1:1 the document takes a mapping, not a list"]);
    assert_eq!(read("a: [\n").1.len(), 1);
    let (_, diagnostics) = Project::read(&mut SourceMap::new(), "p", vec![0xff]);
    assert!(diagnostics.has_errors());
}
