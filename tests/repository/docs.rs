//! The pages that people read: those made from tables of the program, links, commands, lists.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use flux_gen::model::settings::{ALL, ANNOTATION_PREFIX};

const HEAD: &str = "# Settings

What one may choose besides the MiniCluster itself. Later layers win: built-in, `settings` of the project file, `settings` of
a cluster there, an annotation `flux-gen.dev/<key>` of the MiniCluster, `--set key=value` on the command line.
`flux-gen explain settings` prints each value and where it came from.

```yaml
# flux-gen.yaml
settings:
  kubernetes-version: \"1.31\"
clusters:
  hpc/lammps:
    settings:
      cpus: exclusive
```

A cluster is called by its `name`, or by `namespace/name`; a key that fits no MiniCluster of the project is a warning.

Which registry images come from is no setting: `images.mirror` of the project file says it for all clusters
([air gap: inside](airgap-inside.md), `flux-gen explain images.mirror`).

This page is made from the table in `src/model/settings.rs`; `tests/repository/docs.rs` keeps them equal.

";

fn settings_page() -> String {
    let mut page = HEAD.to_owned();
    for setting in ALL {
        writeln!(page, "## {}\n\n{}\n", setting.key, setting.doc).unwrap();
        let default = if setting.default.is_empty() { "not set".to_owned() } else { format!("`{}`", setting.default) };
        let whole =
            if setting.per_cluster { String::new() } else { " For the whole project only: no annotation.".to_owned() };
        writeln!(page, "Values: {}. Default: {default}.{whole}\n", setting.values.replace(" | ", ", ")).unwrap();
    }
    format!("{}\n", page.trim_end())
}

#[test]
fn the_page_of_settings_is_the_table() {
    assert!(HEAD.contains(ANNOTATION_PREFIX));
    let page = settings_page();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/settings.md");
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("settings.md");
    fs::write(&made, &page).unwrap();
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == page, "docs/settings.md is out of date: cp {} {}", made.display(), path.display());
}

const VERSIONS_HEAD: &str = "# Kubernetes versions

The setting `kubernetes-version` names the oldest Kubernetes that a bundle has to work with. flux-gen writes the newest form
that this version has on by default, and where a feature has no older form it says so with an error.
`flux-gen explain kubernetes-versions` prints these tables.

```sh no-run=\"it reports the examples that need a newer version, and fails\"
flux-gen validate --set kubernetes-version=1.30
```

Which field appears for which version is in `tests/compile/kubernetes_versions_fields.txt`, and what each example says for each
version in `tests/compile/kubernetes_versions_examples.txt`. A patch that writes a field which the version has not is error FG320: an
API server would drop the field without a word.

This page is made from the table in `src/model/kubernetes.rs`, which is the only place that compares versions;
`tests/repository/docs.rs` keeps them equal.

";

#[test]
fn the_page_of_versions_is_the_table() {
    let table = flux_gen::model::kubernetes::table();
    let explained =
        Command::new(env!("CARGO_BIN_EXE_flux-gen")).args(["explain", "kubernetes-versions"]).output().unwrap();
    assert_eq!(String::from_utf8(explained.stdout).unwrap(), table);
    let page = format!("{VERSIONS_HEAD}{}\n", table.trim_end());
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/kubernetes-versions.md");
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("kubernetes-versions.md");
    fs::write(&made, &page).unwrap();
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == page, "docs/kubernetes-versions.md is out of date: cp {} {}", made.display(), path.display());
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn help(words: &[&str]) -> Option<String> {
    let output = Command::new(env!("CARGO_BIN_EXE_flux-gen")).args(words).arg("--help").output().unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

/// The pages that people read, with their folder.
fn pages() -> Vec<(PathBuf, String)> {
    let mut paths: Vec<PathBuf> =
        ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md"].iter().map(|p| root().join(p)).collect();
    for folder in ["docs", "docs/gitops"] {
        paths.extend(fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path()));
    }
    paths.retain(|path| path.extension().is_some_and(|e| e == "md"));
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read_to_string(&path).unwrap())).collect()
}

/// `GitHub`'s name of a heading in a link.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    headings.map(|h| h.to_lowercase().chars().filter(kept).map(|c| if c == ' ' { '-' } else { c }).collect()).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut wrong = Vec::new();
    for (path, text) in pages() {
        for part in text.split("](").skip(1) {
            let target = part.split(')').next().unwrap_or_default();
            if target.starts_with("http") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            let there = file.is_dir()
                || fs::read_to_string(&file).is_ok_and(|text| anchor.is_empty() || anchors(&text).contains(anchor));
            if !there {
                wrong.push(format!("{}: {target}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Commands and options that pages show exist. Commands stand in code: after a line's start, a quote or a pipe.
#[test]
fn commands_of_the_pages_exist() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for (path, text) in pages() {
        let mut fenced = false;
        for line in text.lines() {
            if line.starts_with("```") {
                fenced = !fenced;
                continue;
            }
            let code: Vec<&str> = if fenced { vec![line] } else { line.split('`').skip(1).step_by(2).collect() };
            for command in code.iter().flat_map(|code| code.split(['|', ';', '#', '&'])) {
                let command = command.trim().trim_start_matches("target/release/");
                let Some(rest) = command.strip_prefix("flux-gen ") else { continue };
                count += 1;
                let words: Vec<&str> = rest.split_whitespace().collect();
                if let Some(problem) = unknown(&words) {
                    wrong.push(format!("{}: {command}: {problem}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 20, "only {count} commands were found");
}

fn unknown(words: &[&str]) -> Option<String> {
    let plain: Vec<&str> = words.iter().take_while(|w| w.bytes().all(|b| b.is_ascii_lowercase())).copied().collect();
    let grouped = ["archive", "cert", "recipe", "view"].iter().any(|group| plain.first() == Some(group));
    let verbs = if grouped { plain.get(..2).unwrap_or(&plain) } else { plain.get(..1)? };
    let Some(text) = help(verbs) else { return Some("no such command".to_owned()) };
    let options = words.iter().filter(|word| word.starts_with('-') && **word != "-");
    let known = |option: &&str| {
        let name = option.split('=').next().unwrap_or_default();
        text.split_whitespace().any(|w| w.trim_end_matches(',').split(['=', '[']).next() == Some(name))
    };
    options.copied().find(|option| !known(option)).map(|option| format!("no option {option}"))
}

#[test]
fn the_landing_page_names_every_crate_and_every_command() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let cargo = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let mut section = "";
    for line in cargo.lines() {
        if line.starts_with('[') {
            section = line;
        } else if matches!(section, "[dependencies]" | "[dev-dependencies]") && line.contains('=') {
            let name = line.split(['=', ' ']).next().unwrap();
            assert!(readme.contains(name), "README.md does not say why there is {name}");
        }
    }
    let page = fs::read_to_string(root().join("docs/exit-codes.md")).unwrap();
    let codes = Command::new(env!("CARGO_BIN_EXE_flux-gen")).args(["explain", "exit-codes"]).output().unwrap();
    for line in String::from_utf8(codes.stdout).unwrap().lines() {
        let code = line.split_whitespace().next().unwrap();
        assert!(page.contains(&format!("| {code} | ")), "docs/exit-codes.md lacks {code}");
    }
    for entry in fs::read_dir(root().join("examples")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let list = fs::read_to_string(root().join("examples/README.md")).unwrap();
        assert!(!entry.path().is_dir() || list.contains(&format!("[{name}](")), "examples/README.md lacks {name}");
    }
}
