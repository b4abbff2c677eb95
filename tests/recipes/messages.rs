//! What is said about recipes that are wrong: every problem, each with its code and place.

use std::fs;
use std::os::unix::fs::symlink;

use flux_gen::diag::{Diagnostics, Severity, SourceMap};
use flux_gen::spec::BuildRecipe;
use flux_gen::spec::pins::ImagePins;
use flux_gen::view::recipe::{Recipe, resolve};

const SOURCE: &str = "kind: source
systems:
  one:
    base: localhost/base:1
    apt: [gcc]
packages:
  - name: a
    version: \"1\"
    source:
      url: https://example.org/a-1.tar.gz
      sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
";
const SPACK: &str = "kind: spack
systems:
  one:
    base: localhost/base:1
specs: [flux-core]
";

/// Reads and resolves a recipe in a folder that holds a patch, a lock file and a link that leads out.
fn read(text: &str) -> (Option<Recipe>, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("fix.patch"), "--- a\n+++ b\n").unwrap();
    fs::write(folder.path().join("spack.lock"), "{}").unwrap();
    fs::write(folder.path().join("no.lock"), "not json").unwrap();
    fs::create_dir(folder.path().join("empty")).unwrap();
    symlink("/etc/passwd", folder.path().join("out")).unwrap();
    let mut sources = SourceMap::new();
    let (written, mut diagnostics) = BuildRecipe::read(&mut sources, "recipe.yaml", text.as_bytes().to_vec());
    let recipe = written.as_ref().and_then(|w| resolve("test", folder.path(), w, &ImagePins::new(), &mut diagnostics));
    (recipe, lines(&sources, diagnostics))
}

fn lines(sources: &SourceMap, diagnostics: Diagnostics) -> Vec<String> {
    let line = |d: flux_gen::diag::Diagnostic| {
        let line = d.span.map(|s| sources.get(s.file).unwrap().line_column(s.start).line).unwrap_or(0);
        format!("{}:{line}: {}", d.code.id, d.message)
    };
    diagnostics.sorted().into_iter().filter(|d| d.severity != Severity::Note).map(line).collect()
}

#[test]
fn a_plain_recipe_is_fine() {
    for text in [SOURCE, SPACK] {
        let (recipe, problems) = read(text);
        assert_eq!(problems, Vec::<String>::new());
        assert!(recipe.is_some());
    }
}

#[test]
fn problems_of_source_recipes() {
    let package = |more: &str| format!("{SOURCE}{more}");
    for (text, expect) in [
        (package("    build: ninja\n"), "FG846:12: `ninja` is no way to build"),
        (package("    build: script\n"), "FG846:7: package `a`: `script` goes with `build: script`"),
        (package("libraries: some\n"), "FG846:12: `some` is nothing that can be done with libraries of the system"),
        (package("prefix: /usr\n"), "FG846:12: `/usr` cannot be a folder of a view"),
        (package("prefix: /opt/../etc\n"), "FG846:12: `/opt/../etc` cannot be a folder of a view"),
        (package("target:\n  riscv: x\n"), "FG846:13: `riscv` is no architecture that views are made for"),
        (package("target:\n  amd64: native; rm -rf /\n"), "FG846:13: `native; rm -rf /` is no processor"),
        (package("    patches:\n      - file: fix.patch\n        strip: 12\n"), "FG846:14: `strip` is out of range"),
        (package("    patches:\n      - strip: 1\n"), "FG846:13: a patch is either a file of the recipe or a download"),
        (package("    folder: empty\n"), "FG846:7: package `a` has 2 places for its sources"),
        (
            package("    environment:\n      PATH: /x\n"),
            "FG846:13: `PATH` is set by flux-gen, so it cannot be set here",
        ),
        (
            SOURCE.replace("0123456789abcdef\n", "0123\n"),
            "FG847:11: `0123456789abcdef0123456789abcdef0123456789abcdef0123` is no SHA-256",
        ),
        (SOURCE.replace("https:", "git:"), "FG848:10: `git` is a URL of a kind that flux-gen does not download"),
        (SOURCE.replace("//example", "//me:pw@example"), "FG848:10: the URL holds a user name or a password"),
        (SOURCE.replace("/a-1.tar.gz", "/"), "FG848:10: the URL ends in no file name: `https://example.org/`"),
        (package("    systems: [two]\n"), "FG849:12: `two` is no system of this recipe"),
        (package("    into: b\n"), "FG849:12: `b` is no earlier package with a folder of its own"),
        (package("    configure: [\"--with={prefix:b}\"]\n"), "FG849:12: `{prefix:b}` names no earlier package"),
        (SOURCE.replace("name: a", "name: a/b"), "FG850:7: `a/b` cannot be the name of a package"),
        (SOURCE.replace("[gcc]", "[\"-o x\"]"), "FG850:5: `-o x` is no name of a package"),
        (package("    environment:\n      A-B: x\n"), "FG850:13: `A-B` cannot be the name of a variable"),
        (
            SOURCE.replace("apt: [gcc]", "apt: [gcc]\n    dnf: [gcc]"),
            "FG851:5: system `one` has packages of apt and of dnf",
        ),
        (SOURCE.replace("localhost/base:1", "\"x y\""), "FG851:4: `x y` is no reference of an image"),
        (
            SOURCE.replace("localhost/base:1", "ubuntu:24.04"),
            "FG853:4: the base image `ubuntu:24.04` is named by a tag only",
        ),
        (package("    patches:\n      - file: ../x\n"), "FG855:13: `../x` is not in the recipe's folder"),
        (package("    patches:\n      - file: out\n"), "FG855:13: `out` is not in the recipe's folder"),
        (SOURCE.replace("kind: source", "kind: make"), "FG846:1: `make` is no kind of recipe"),
        (String::new(), "FG846:1: a recipe is one document, and this file is empty"),
    ] {
        let (_, problems) = read(&text);
        assert_eq!(problems, [expect], "{text}");
    }
    let (_, problems) = read(&SOURCE.replace("    source:", "    folder: empty\n    ignored:"));
    assert!(
        problems.iter().any(|p| p.starts_with("FG855:9: `empty` cannot be read: it holds no files")),
        "{problems:?}"
    );
}

#[test]
fn problems_of_spack_recipes() {
    for (more, expect) in [
        ("install: never\n", "FG846:6: `never` is no way to install"),
        ("mirrors:\n  m:\n    url: ftp://x\n", "FG848:8: `ftp://x` is no address of a mirror"),
        ("locks:\n  two-amd64: spack.lock\n", "FG849:7: `two-amd64` is no system and architecture of this recipe"),
        ("locks:\n  one-amd64: no.lock\n", "FG855:7: `no.lock` is no lock file of Spack: it is not JSON"),
        (
            "offline: true\nlocks:\n  one-amd64: spack.lock\nmirrors:\n  m:\n    url: https://x\n",
            "FG846:6: `offline` is set, and mirror `m` is not a file",
        ),
        (
            "offline: true\nmirrors:\n  m:\n    url: file:///m\n",
            "FG846:6: `offline` is set, and system `one` has no lock file",
        ),
    ] {
        let (_, problems) = read(&format!("{SPACK}{more}"));
        assert_eq!(problems, [expect], "{more}");
    }
}

#[test]
fn two_packages_of_one_name_and_every_problem_at_once() {
    let again = SOURCE.split_once("packages:\n").unwrap().1.replace("a-1.tar.gz", "b-1.tar.gz");
    let (_, problems) = read(&format!("{SOURCE}{again}"));
    assert_eq!(problems, ["FG854:12: `a` is built twice on one"]);
    let wrong = SOURCE.replace("name: a", "name: \"a b\"").replace("https:", "git:").replace("[gcc]", "[\"g c\"]");
    let (_, problems) = read(&wrong);
    let codes: Vec<&str> = problems.iter().map(|p| &p[..5]).collect();
    assert_eq!(codes, ["FG850", "FG850", "FG848"], "{problems:?}");
}

#[test]
fn a_checksum_of_others_is_a_note() {
    let mut sources = SourceMap::new();
    let text = format!("{SOURCE}      checksum-from: somebody\n");
    let (written, mut diagnostics) = BuildRecipe::read(&mut sources, "recipe.yaml", text.into_bytes());
    resolve("test", std::path::Path::new("."), &written.unwrap(), &ImagePins::new(), &mut diagnostics).unwrap();
    let notes: Vec<(&str, Severity)> = diagnostics.iter().map(|d| (d.code.id, d.severity)).collect();
    assert_eq!(notes, [("FG852", Severity::Note)]);
}
