//! What the shipped recipes come to, for all systems and architectures.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use flux_gen::diag::SourceMap;
use flux_gen::spec::BuildRecipe;
use flux_gen::spec::pins::ImagePins;
use flux_gen::view::entry::{Entry, Tree};
use flux_gen::view::group;
use flux_gen::view::recipe::{Arch, How, Origin, Plan, Recipe, plan, resolve};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn load(name: &str) -> Recipe {
    let folder = root().join("recipes").join(name);
    let mut sources = SourceMap::new();
    let bytes = fs::read(folder.join("recipe.yaml")).unwrap();
    let (written, mut diagnostics) = BuildRecipe::read(&mut sources, "recipe.yaml", bytes);
    let recipe = resolve(name, &folder, &written.unwrap(), &ImagePins::new(), &mut diagnostics).unwrap();
    assert!(!diagnostics.has_errors(), "{diagnostics:?}");
    recipe
}

fn all() -> Vec<Plan> {
    let mut plans = Vec::new();
    for name in ["flux", "flux-spack"] {
        let recipe = load(name);
        for system in recipe.systems.keys() {
            plans.extend(Arch::ALL.map(|arch| plan(&recipe, system, arch).unwrap()));
        }
    }
    plans
}

/// Compares with a file of `golden/`; what was made is kept for a look and for `cp`.
pub(crate) fn golden(name: &str, made: &str) {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&kept, made).unwrap();
    let committed = root().join("tests/recipes/golden").join(name);
    let expect = fs::read_to_string(&committed).unwrap_or_default();
    assert!(made == expect, "diff {0} {1}; if it is right: cp {1} {0}", committed.display(), kept.display());
}

#[test]
fn all_ten_views_are_planned_by_both_recipes() {
    let plans = all();
    for recipe in ["flux", "flux-spack"] {
        for system in ["rocky-8", "rocky-9", "ubuntu-focal", "ubuntu-jammy", "ubuntu-noble"] {
            for arch in Arch::ALL {
                let there = |p: &&Plan| p.recipe == recipe && p.system == system && p.arch == arch;
                assert_eq!(plans.iter().filter(there).count(), 1, "{recipe} {system} {arch}");
            }
        }
    }
}

#[test]
fn keys_steps_and_files() {
    let mut text = String::new();
    for plan in all() {
        writeln!(text, "{} packages {} view {}", plan.key, plan.system_key, plan.view.as_deref().unwrap_or("of Spack"))
            .unwrap();
        let steps: Vec<&str> = plan.steps.iter().map(|s| s.title.split(':').next().unwrap()).collect();
        writeln!(text, "  steps: {}", steps.join(", ")).unwrap();
        let network: Vec<&str> = plan.steps.iter().filter_map(|s| s.network.as_deref()).collect();
        writeln!(
            text,
            "  steps with network: {}",
            if network.is_empty() { "none".to_owned() } else { network.join("; ") }
        )
        .unwrap();
    }
    golden("plans.txt", &text);
}

#[test]
fn one_plan_as_a_whole() {
    let recipe = load("flux");
    let plan = plan(&recipe, "rocky-9", Arch::Arm64).unwrap();
    let mut text = plan.containerfile.clone();
    for (name, file) in &plan.files {
        // Most steps look alike.
        if ["system/", "build/run.sh", "build/steps/110", "build/steps/130"].iter().any(|start| name.starts_with(start))
        {
            writeln!(text, "\n##### {name}\n{file}").unwrap();
        }
    }
    golden("flux-rocky-9-arm64.txt", &text);
}

#[test]
fn spack_environments() {
    let mut text = String::new();
    for plan in all().iter().filter(|p| p.kind == "spack") {
        writeln!(text, "# {} {}\n{}", plan.system, plan.arch, plan.files["build/spack/spack.yaml"]).unwrap();
    }
    golden("spack.yaml", &text);
}

/// The keys that Spack's schema (`spack.schema.env` and what it includes, 1.0) has at each place where one is written, and
/// the types of their values. Spack itself checks in `ci/integration/recipes` where it is at hand.
#[test]
fn spack_environments_have_the_shape_of_spacks_schema() {
    let schema = serde_json::json!({
        "type": "object", "required": ["spack"], "additionalProperties": false,
        "properties": { "spack": {
            "type": "object", "additionalProperties": false,
            "properties": {
                "specs": { "type": "array", "items": { "type": "string" } },
                "view": { "type": "object", "additionalProperties": {
                    "required": ["root"], "additionalProperties": false,
                    "properties": {
                        "root": { "type": "string" }, "link": { "enum": ["roots", "all", "run"] },
                        "link_type": { "enum": ["symlink", "hardlink", "copy"] },
                        "select": { "type": "array", "items": { "type": "string" } },
                        "exclude": { "type": "array", "items": { "type": "string" } },
                    } } },
                "concretizer": { "type": "object", "additionalProperties": false,
                    "properties": { "unify": { "type": "boolean" }, "reuse": { "type": "boolean" } } },
                "packages": { "type": "object", "additionalProperties": {
                    "type": "object", "additionalProperties": false,
                    "properties": { "require": { "type": "array", "items": { "type": "string" } } } } },
                "config": { "type": "object", "properties": { "install_tree": {
                    "type": "object", "properties": { "root": { "type": "string" } } } } },
                "mirrors": { "type": "object", "additionalProperties": {
                    "type": "object", "required": ["url"], "additionalProperties": false,
                    "properties": {
                        "url": { "type": "string" }, "source": { "type": "boolean" }, "binary": { "type": "boolean" },
                        "signed": { "type": "boolean" },
                    } } },
            } } },
    });
    let check = |text: &str| {
        let value: serde_json::Value = serde_norway::from_str(text).unwrap();
        let found: Vec<String> = jsonschema::validator_for(&schema)
            .unwrap()
            .iter_errors(&value)
            .map(|e| format!("{}: {e}", e.instance_path()))
            .collect();
        assert!(found.is_empty(), "{found:?}\n{text}");
    };
    for plan in all().iter().filter(|p| p.kind == "spack") {
        check(&plan.files["build/spack/spack.yaml"]);
    }
    // With everything that the shipped recipe leaves out.
    let mut recipe = load("flux-spack");
    let How::Spack(spack) = &mut recipe.how else { panic!("not spack") };
    spack.exclude = vec!["cmake".to_owned()];
    spack.mirrors = vec![flux_gen::view::recipe::Mirror {
        name: "site".to_owned(),
        url: "file:///mirror".to_owned(),
        source: true,
        binary: true,
        signed: false,
    }];
    spack.offline = true;
    spack.locks.insert("rocky-9-amd64".to_owned(), "{}".to_owned());
    let plan = plan(&recipe, "rocky-9", Arch::Amd64).unwrap();
    check(&plan.files["build/spack/spack.yaml"]);
    assert!(plan.files.contains_key("build/spack/spack.lock"));
    assert!(plan.steps.iter().all(|s| s.network.is_none()), "{:?}", plan.steps);
}

#[test]
fn a_key_changes_with_everything_that_counts_and_with_nothing_else() {
    let key = |change: &dyn Fn(&mut Recipe)| {
        let mut recipe = load("flux");
        change(&mut recipe);
        plan(&recipe, "rocky-9", Arch::Amd64).unwrap().key
    };
    let plain = key(&|_| {});
    let words = key(&|r| {
        if let How::Source(source) = &mut r.how {
            for package in &mut source.packages {
                if let Origin::Download(download) = &mut package.origin {
                    download.checksum_from = Some("somebody else".to_owned());
                }
            }
        }
        r.description = "other words".to_owned();
    });
    assert_eq!(plain, words);
    assert_eq!(plain, key(&|_| {}));
    type Change = Box<dyn Fn(&mut Recipe)>;
    let package = |change: fn(&mut flux_gen::view::recipe::Package)| -> Change {
        Box::new(move |r: &mut Recipe| {
            let How::Source(source) = &mut r.how else { panic!("not source") };
            change(&mut source.packages[0]);
        })
    };
    let changes: Vec<Change> = vec![
        Box::new(|r| r.strip = false),
        Box::new(|r| _ = r.target.insert(Arch::Amd64, "x86-64-v3".to_owned())),
        Box::new(|r| r.systems.get_mut("rocky-9").unwrap().base.push('1')),
        Box::new(|r| r.systems.get_mut("rocky-9").unwrap().dnf.push("more".to_owned())),
        Box::new(|r| r.systems.get_mut("rocky-9").unwrap().before = None),
        package(|p| p.version.push('1')),
        package(|p| p.configure.push("--more".to_owned())),
        package(|p| p.install.push("more".to_owned())),
        package(|p| p.build_only = true),
        Box::new(|r| {
            let How::Source(source) = &mut r.how else { panic!("not source") };
            let flux_gen::view::recipe::Origin::Download(download) = &mut source.packages[0].origin else { panic!() };
            download.sha256 = "0".repeat(64);
        }),
    ];
    let mut keys = vec![plain.clone()];
    keys.extend(changes.iter().map(|change| key(change.as_ref())));
    let count = keys.len();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), count, "two changes gave one key");
    for same in [
        key(&|r| r.description = "other".to_owned()),
        key(&|r| r.not_checked = None),
        key(&|r| _ = r.systems.remove("ubuntu-focal")),
        key(&|r| _ = r.target.insert(Arch::Arm64, "armv9-a".to_owned())),
    ] {
        assert_eq!(same, plain);
    }
}

/// Nothing from a recipe reaches a shell unquoted but what is documented as shell.
#[test]
fn words_are_quoted() {
    let mut recipe = load("flux");
    let How::Source(source) = &mut recipe.how else { panic!("not source") };
    source.packages[0].configure = vec!["$(touch /evil); `x` 'y' \"z\"".to_owned()];
    source.packages[0].environment.insert("A".to_owned(), "$(touch /evil)".to_owned());
    let plan = plan(&recipe, "rocky-9", Arch::Amd64).unwrap();
    let script = &plan.files["build/steps/010-zeromq.sh"];
    assert!(script.contains(r#"'$(touch /evil); `x` '\''y'\'' "z"'"#), "{script}");
    assert!(script.contains("export A='$(touch /evil)'"), "{script}");
}

#[test]
fn recipes_that_are_not_there() {
    let recipe = load("flux-spack");
    let error = plan(&recipe, "debian-12", Arch::Amd64).unwrap_err().to_string();
    assert_eq!(
        error,
        "recipe `flux-spack` has no system `debian-12`; it has rocky-8, rocky-9, ubuntu-focal, ubuntu-jammy, ubuntu-noble"
    );
}

/// By the names of their folders, as Spack's: each gets a layer of its own, and that of flux-core tells Flux's version.
#[test]
fn packages_are_known_by_their_folders() {
    let plan = plan(&load("flux"), "ubuntu-noble", Arch::Arm64).unwrap();
    let words = plan.steps.iter().flat_map(|step| step.commands.iter().flatten());
    let mut tree = Tree::default();
    for prefix in words.filter_map(|word| word.strip_prefix("--prefix=/")) {
        let parts: Vec<&str> = prefix.split('/').collect();
        for end in 1..=parts.len() {
            tree.entries.insert(parts[..end].join("/").into_bytes(), Entry::folder());
        }
    }
    let mut found: Vec<String> =
        group::packages(&tree).into_iter().map(|p| format!("{} {}", p.name, p.version)).collect();
    found.sort();
    let expect =
        ["flux-core 0.79.0", "flux-security 0.14.0", "hwloc 2.12.2", "pmix 5.0.11", "python 3.11.11", "zeromq 4.3.5"];
    assert_eq!(found, expect);
}
