//! The steps of a recipe of kind `spack`, and its `spack.yaml`.

use std::collections::BTreeMap;

use minijinja::context;
use serde_json::{Map, Value, json};

use super::model::{Spack, SpackInstall};
use super::plan::{Parts, PlanError, Step, Target};
use super::source::{archived, finish_step, system_path};
use crate::bundle::yaml::to_yaml;
use crate::model::words::join;

const ENVIRONMENT: &str = "/flux-gen/spack";

pub(super) fn parts(spack: &Spack, target: &Target<'_>) -> Result<Parts, PlanError> {
    let mut files = BTreeMap::new();
    files.insert("build/spack/spack.yaml".to_owned(), environment_file(spack, target)?);
    let lock = spack.locks.get(&format!("{}-{}", target.name, target.arch));
    if let Some(lock) = lock {
        files.insert("build/spack/spack.lock".to_owned(), lock.clone());
    }
    files.insert("build/recipe.json".to_owned(), summary(spack, target));
    let mut steps = Vec::new();
    for (step, commands) in spack_steps(spack, lock.is_some()) {
        let values = context! {
            title => step.title.clone(),
            environment => minijinja::Value::from(minijinja::value::Serde(target.system.environment.iter().collect::<Vec<_>>())),
            path => system_path(target),
            folder => None::<String>,
            source_setup => Some(format!("{}/share/spack/setup-env.sh", spack.root)),
            commands,
        };
        let script = target.scripts.render("step.sh", &values)?;
        steps.push((step, script));
    }
    let contract = context! {
        path => system_path(target),
        software => target.recipe.prefix.clone(), views => target.recipe.views.clone(), removed => Vec::<String>::new(),
        libraries => None::<String>, strip => target.recipe.strip, spack => true, view => None::<String>,
        prefixes => String::new(), archived => archived(target),
    };
    steps.push((finish_step(), target.scripts.render("contract.sh", &contract)?));
    Ok(Parts {
        downloads: Vec::new(),
        folders: Vec::new(),
        patches: BTreeMap::new(),
        steps,
        files,
        view: None,
        facts: Value::Null,
    })
}

/// The steps, each with its commands as lines.
fn spack_steps(spack: &Spack, locked: bool) -> Vec<(Step, Vec<String>)> {
    let program = ["spack", "-e", ENVIRONMENT];
    let with = |rest: &[&str]| -> Vec<String> { program.iter().chain(rest).map(|w| (*w).to_owned()).collect() };
    let mut steps = Vec::new();
    let mut add = |title: &str, network: Option<&str>, commands: Vec<Vec<String>>| {
        let file = format!("{:03}-{}.sh", (steps.len() + 1) * 10, title.split(' ').next().unwrap_or("step"));
        let lines = commands.iter().map(|words| join(words)).collect();
        let step = Step { title: title.to_owned(), network: network.map(str::to_owned), commands, file };
        steps.push((step, lines));
    };
    if !locked {
        let what = "Spack's packages and what build caches have";
        add("concretize: choose versions", (!spack.offline).then_some(what), vec![with(&["concretize", "--force"])]);
    }
    let mut install = with(&["install", "--fail-fast"]);
    match spack.install {
        SpackInstall::Auto => {}
        SpackInstall::CacheOnly => install.push("--cache-only".to_owned()),
        SpackInstall::Source => install.push("--no-cache".to_owned()),
    }
    let what = match spack.install {
        SpackInstall::CacheOnly => "built packages of the mirrors",
        SpackInstall::Auto | SpackInstall::Source => "sources and built packages",
    };
    add("install", (!spack.offline).then_some(what), vec![install]);
    add("gc: take out what was needed for building only", None, vec![with(&["gc", "-y"])]);
    steps
}

/// `spack.yaml`, as typed values through the one YAML writer.
fn environment_file(spack: &Spack, target: &Target<'_>) -> Result<String, PlanError> {
    let mut specs = spack.specs.clone();
    specs.extend(spack.specs_by_system.get(target.name).into_iter().flatten().cloned());
    let mut packages = Map::new();
    if let Some(processor) = target.recipe.target.get(&target.arch) {
        // `:x` means x or older, so that packages of build caches for older processors fit too.
        packages.insert("all".to_owned(), json!({ "require": [format!("target=:{processor}")] }));
    }
    for (package, requirements) in &spack.require {
        packages.insert(package.clone(), json!({ "require": requirements }));
    }
    let mut view = json!({ "root": format!("{}/view", target.recipe.views), "link": "all", "link_type": "symlink" });
    if !spack.exclude.is_empty() {
        view["exclude"] = json!(spack.exclude);
    }
    let mut environment = Map::new();
    environment.insert("specs".to_owned(), json!(specs));
    environment.insert("view".to_owned(), json!({ "default": view }));
    environment.insert("concretizer".to_owned(), json!({ "unify": spack.unify, "reuse": spack.reuse }));
    if !packages.is_empty() {
        environment.insert("packages".to_owned(), Value::Object(packages));
    }
    environment.insert("config".to_owned(), json!({ "install_tree": { "root": target.recipe.prefix } }));
    if !spack.mirrors.is_empty() {
        let mirrors = spack.mirrors.iter().map(|mirror| {
            let mut value = json!({ "url": mirror.url, "source": mirror.source, "binary": mirror.binary });
            if !mirror.signed {
                value["signed"] = json!(false);
            }
            (mirror.name.clone(), value)
        });
        environment.insert("mirrors".to_owned(), Value::Object(mirrors.collect()));
    }
    Ok(to_yaml(&json!({ "spack": environment }))?)
}

fn summary(spack: &Spack, target: &Target<'_>) -> String {
    let summary = json!({
        "recipe": target.recipe.name, "kind": "spack", "system": target.name, "architecture": target.arch,
        "base": target.system.base, "specs": spack.specs,
    });
    format!("{summary:#}\n")
}
