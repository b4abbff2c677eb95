//! The steps of a recipe of kind `source`.

use std::collections::BTreeMap;

use minijinja::value::Serde;
use minijinja::{Value, context};
use serde_json::json;

use super::model::{BuildKind, Download, Origin, Package, PatchOrigin, Source};
use super::plan::{Parts, PlanError, Step, Target, letters, shell_file, short};
use crate::model::words::join;

const SOURCES: &str = "/flux-gen/sources";
const WORK: &str = "/flux-gen/work";

/// A package and where it goes.
struct Place<'a> {
    package: &'a Package,
    prefix: String,
}

pub(super) fn parts(source: &Source, target: &Target<'_>) -> Result<Parts, PlanError> {
    let packages: Vec<&Package> = source.packages.iter().filter(|p| p.is_on(target.name)).collect();
    let places = places(&packages, target);
    let libraries = source.copy_libraries.then(|| own_prefix("system-libraries", "0", &json!(all(&places)), target));
    let view_hash = short(&json!([all(&places), libraries, target.recipe.strip]));
    let view = format!("{}/._view/{view_hash}", target.recipe.views);

    let mut steps = Vec::new();
    let mut files = BTreeMap::new();
    let mut patches = BTreeMap::new();
    for (index, place) in places.iter().enumerate() {
        let earlier = &places[..index];
        let number = (index + 1) * 10;
        let package = place.package;
        if let Some(script) = &package.script {
            files.insert(format!("build/scripts/{number}-{}.sh", package.name), shell_file(script));
        }
        for patch in &package.patches {
            if let PatchOrigin::File { name, sha256 } = &patch.origin {
                patches.insert(format!("{}.patch", &sha256[..16]), name.clone());
            }
        }
        let commands = commands(place, earlier, number, target);
        let script = target.scripts.render(
            "step.sh",
            &context! {
                title => format!("{} {}", package.name, package.version),
                environment => Value::from(Serde(environment(place, earlier, libraries.as_deref(), target))),
                path => path(earlier, target),
                folder => Some(format!("{WORK}/{}", package.name)),
                source_setup => None::<String>,
                commands => commands.iter().map(|words| join(words)).collect::<Vec<_>>(),
            },
        )?;
        let step = Step {
            title: format!("{} {}", package.name, package.version),
            network: None,
            commands,
            file: format!("{number:03}-{}.sh", package.name),
        };
        steps.push((step, script));
    }
    let prefixes = prefixes(&places, libraries.as_deref());
    steps.push(contract(&prefixes, &places, libraries.as_deref(), &view, target)?);
    files.insert("build/recipe.json".to_owned(), summary(&places, target));
    Ok(Parts {
        downloads: downloads(&packages, target),
        folders: packages
            .iter()
            .filter_map(|p| if let Origin::Folder(f) = &p.origin { Some(f.clone()) } else { None })
            .collect(),
        patches,
        steps,
        files,
        view: Some(view),
        facts: json!(null),
    })
}

fn all<'a>(places: &'a [Place<'a>]) -> Vec<&'a str> {
    places.iter().map(|place| place.prefix.as_str()).collect()
}

/// The folder of each package. Its last part is a hash over all that determines what gets into it.
fn places<'a>(packages: &[&'a Package], target: &Target<'_>) -> Vec<Place<'a>> {
    let mut places: Vec<Place<'a>> = Vec::new();
    for package in packages {
        let prefix = match &package.into {
            Some(into) => places.iter().find(|p| p.package.name == *into).map(|p| p.prefix.clone()),
            None => None,
        };
        let prefix = prefix.unwrap_or_else(|| {
            let joined: Vec<&&Package> = packages.iter().filter(|p| p.into.as_ref() == Some(&package.name)).collect();
            let facts = json!([package, joined, all(&places), target.system, target.recipe.target.get(&target.arch)]);
            own_prefix(&package.name, &package.version, &facts, target)
        });
        places.push(Place { package, prefix });
    }
    places
}

/// `/opt/software/linux-x86_64/rocky-9/zeromq-4.3.5-<hash>`: laid out as Spack does, so that layers are cut alike.
fn own_prefix(name: &str, version: &str, facts: &serde_json::Value, target: &Target<'_>) -> String {
    let arch = target.arch.gnu();
    let hash = letters(&json!([facts, target.recipe.prefix, arch]));
    format!("{}/linux-{arch}/{}/{name}-{version}-{hash}", target.recipe.prefix, target.name)
}

/// Prefixes that go into the view, each once, in the order of building; libraries of the system last.
fn prefixes(places: &[Place<'_>], libraries: Option<&str>) -> Vec<String> {
    let mut prefixes: Vec<String> = Vec::new();
    for place in places.iter().filter(|p| !p.package.build_only) {
        if !prefixes.contains(&place.prefix) {
            prefixes.push(place.prefix.clone());
        }
    }
    prefixes.extend(libraries.map(str::to_owned));
    prefixes
}

fn downloads(packages: &[&Package], target: &Target<'_>) -> Vec<Download> {
    let mut downloads: Vec<Download> = Vec::new();
    for download in packages.iter().flat_map(|p| p.downloads(Some(target.arch))) {
        if !downloads.contains(download) {
            downloads.push(download.clone());
        }
    }
    downloads
}

/// What the system puts in front of PATH. A script puts each in front, so the last of the list ends up first.
pub(super) fn system_path(target: &Target<'_>) -> Vec<String> {
    target.system.path.iter().rev().cloned().collect()
}

/// PATH of a step: programs of earlier packages, then what the system says; the first is asked first.
fn path(earlier: &[Place<'_>], target: &Target<'_>) -> Vec<String> {
    let mut path = system_path(target);
    for folder in earlier.iter().map(|place| format!("{}/bin", place.prefix)) {
        if !path.contains(&folder) {
            path.push(folder);
        }
    }
    path
}

/// Flags by which compilers find earlier packages, and programs their libraries when they run.
fn environment(
    place: &Place<'_>,
    earlier: &[Place<'_>],
    libraries: Option<&str>,
    target: &Target<'_>,
) -> Vec<(String, String)> {
    let mut prefixes = vec![place.prefix.as_str()];
    for other in earlier.iter().rev().filter(|p| !p.package.build_only).map(|p| p.prefix.as_str()) {
        if !prefixes.contains(&other) {
            prefixes.push(other);
        }
    }
    // What is installed into the folder of another package finds that one there.
    let found = if place.package.into.is_some() { &prefixes[..] } else { &prefixes[1..] };
    let joined = |separator: &str, parts: Vec<String>| parts.join(separator);
    let mut link: Vec<String> = found.iter().map(|p| format!("-L{p}/lib")).collect();
    link.extend(prefixes.iter().copied().chain(libraries).map(|p| format!("-Wl,-rpath,{p}/lib")));
    // RPATH rather than RUNPATH: it also counts for the libraries that a library needs.
    link.push("-Wl,--disable-new-dtags".to_owned());
    let march = target.recipe.target.get(&target.arch).map(|t| format!(" -march={t}")).unwrap_or_default();
    let mut environment = BTreeMap::from([
        ("CFLAGS".to_owned(), format!("-O2 -g{march}")),
        ("CXXFLAGS".to_owned(), format!("-O2 -g{march}")),
        ("CPPFLAGS".to_owned(), joined(" ", found.iter().map(|p| format!("-I{p}/include")).collect())),
        ("LDFLAGS".to_owned(), joined(" ", link)),
        (
            "PKG_CONFIG_PATH".to_owned(),
            joined(
                ":",
                found.iter().flat_map(|p| [format!("{p}/lib/pkgconfig"), format!("{p}/share/pkgconfig")]).collect(),
            ),
        ),
        ("CMAKE_PREFIX_PATH".to_owned(), joined(":", found.iter().map(|p| (*p).to_owned()).collect())),
        ("PREFIX".to_owned(), place.prefix.clone()),
        ("VERSION".to_owned(), place.package.version.clone()),
    ]);
    if let Some(file) = source_file(place.package, target) {
        environment.insert("SOURCE".to_owned(), format!("{SOURCES}/{file}"));
    }
    environment.extend(target.system.environment.clone());
    environment.extend(place.package.environment.clone());
    environment.into_iter().collect()
}

/// The downloaded file of a package.
fn source_file(package: &Package, target: &Target<'_>) -> Option<String> {
    match &package.origin {
        Origin::Download(download) => Some(download.file.clone()),
        Origin::ByArch(downloads) => downloads.get(&target.arch).map(|d| d.file.clone()),
        Origin::Folder(_) => None,
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|w| (*w).to_owned()).collect()
}

/// The commands of a package, in its folder below `/flux-gen/work`.
fn commands(place: &Place<'_>, earlier: &[Place<'_>], number: usize, target: &Target<'_>) -> Vec<Vec<String>> {
    let Place { package, prefix } = place;
    let mut commands = Vec::new();
    match (&package.origin, source_file(package, target)) {
        (Origin::Folder(folder), _) => {
            commands.push(words(&["cp", "-R", &format!("/flux-gen/folders/{}/.", folder.name), "."]));
        }
        // pip takes the file as it is.
        (_, Some(file)) if package.build != BuildKind::Python => {
            commands.push(words(&[
                "tar",
                "--no-same-owner",
                "--strip-components=1",
                "-xf",
                &format!("{SOURCES}/{file}"),
            ]));
        }
        _ => {}
    }
    for patch in &package.patches {
        let file = match &patch.origin {
            PatchOrigin::File { sha256, .. } => format!("/flux-gen/patches/{}.patch", &sha256[..16]),
            PatchOrigin::Download(download) => format!("{SOURCES}/{}", download.file),
        };
        commands.push(words(&["patch", "--batch", &format!("-p{}", patch.strip), "-i", &file]));
    }
    let filled = |arguments: &[String]| -> Vec<String> { arguments.iter().map(|a| fill(a, prefix, earlier)).collect() };
    let (configure, make) = (filled(&package.configure), filled(&package.make));
    let install = if package.install.is_empty() { words(&["install"]) } else { filled(&package.install) };
    let with = |first: &[&str], rest: &[String]| -> Vec<String> { [words(first), rest.to_vec()].concat() };
    match package.build {
        BuildKind::Autotools => {
            let (own, libraries) = (format!("--prefix={prefix}"), format!("--libdir={prefix}/lib"));
            commands.push(with(&["./configure", &own, &libraries], &configure));
            commands.push(with(&["make"], &make));
            commands.push(with(&["make"], &install));
        }
        BuildKind::Cmake => {
            let own = format!("-DCMAKE_INSTALL_PREFIX={prefix}");
            let fixed = [
                "cmake",
                "-S",
                ".",
                "-B",
                "flux-gen-build",
                "-DCMAKE_BUILD_TYPE=Release",
                &own,
                "-DCMAKE_INSTALL_LIBDIR=lib",
                "-DCMAKE_INSTALL_RPATH_USE_LINK_PATH=ON",
            ];
            commands.push(with(&fixed, &configure));
            commands.push(with(&["cmake", "--build", "flux-gen-build"], &make));
            commands.push(words(&["cmake", "--install", "flux-gen-build"]));
        }
        BuildKind::Make => {
            let own = format!("PREFIX={prefix}");
            commands.push(with(&["make", &own], &make));
            commands.push(with(&["make", &own], &install));
        }
        BuildKind::Python => commands.push(pip(prefix, &configure, source_file(package, target))),
        BuildKind::Script => {
            commands.push(words(&["bash", "-eu", &format!("/flux-gen/scripts/{number}-{}.sh", package.name)]));
        }
    }
    commands
}

/// Installs one file, or the folder, without asking an index.
fn pip(prefix: &str, options: &[String], file: Option<String>) -> Vec<String> {
    let own = format!("--prefix={prefix}");
    let fixed = [
        "python3",
        "-m",
        "pip",
        "install",
        "--no-index",
        "--no-deps",
        "--no-build-isolation",
        "--no-compile",
        "--root-user-action=ignore",
        &own,
    ];
    let file = file.map_or_else(|| ".".to_owned(), |file| format!("{SOURCES}/{file}"));
    [words(&fixed), options.to_vec(), vec![file]].concat()
}

/// Puts folders in place of `{prefix}` and `{prefix:NAME}`.
fn fill(argument: &str, own: &str, earlier: &[Place<'_>]) -> String {
    let mut filled = argument.replace("{prefix}", own);
    for place in earlier {
        filled = filled.replace(&format!("{{prefix:{}}}", place.package.name), &place.prefix);
    }
    filled
}

fn contract(
    prefixes: &[String],
    places: &[Place<'_>],
    libraries: Option<&str>,
    view: &str,
    target: &Target<'_>,
) -> Result<(Step, String), PlanError> {
    let removed: Vec<String> = places.iter().filter(|p| p.package.build_only).map(|p| p.prefix.clone()).collect();
    let script = target.scripts.render(
        "contract.sh",
        &context! {
            path => system_path(target),
            software => target.recipe.prefix.clone(), views => target.recipe.views.clone(), removed,
            libraries => libraries.map(str::to_owned),
            strip => target.recipe.strip, spack => false, view => view.to_owned(), prefixes => join(prefixes),
            archived => archived(target),
        },
    )?;
    Ok((finish_step(), script))
}

/// The folders of the archive, below `/`.
pub(super) fn archived(target: &Target<'_>) -> String {
    let below = |path: &str| path.trim_start_matches('/').to_owned();
    let views = below(&target.recipe.views);
    let link = views.rsplit_once('/').map_or_else(|| "view".to_owned(), |(above, _)| format!("{above}/view"));
    join(&[below(&target.recipe.prefix), link, views])
}

/// The last step of every recipe.
pub(super) fn finish_step() -> Step {
    Step {
        title: "libraries, links, the view".to_owned(),
        network: None,
        commands: Vec::new(),
        file: "900-view.sh".to_owned(),
    }
}

/// What is in the tree, for `share/flux-gen/recipe.json` of the view.
fn summary(places: &[Place<'_>], target: &Target<'_>) -> String {
    let packages: Vec<serde_json::Value> = places
        .iter()
        .filter(|place| !place.package.build_only)
        .map(|place| {
            let sources: Vec<_> = place.package.downloads(Some(target.arch)).into_iter().map(|d| json!({ "url": d.url, "sha256": d.sha256 })).collect();
            json!({ "name": place.package.name, "version": place.package.version, "prefix": place.prefix, "sources": sources })
        })
        .collect();
    let summary = json!({
        "recipe": target.recipe.name, "kind": "source", "system": target.name, "architecture": target.arch,
        "base": target.system.base, "packages": packages,
    });
    format!("{summary:#}\n")
}
