//! The packages of a recipe of kind `source`.

use std::collections::{BTreeMap, BTreeSet};

use super::files;
use super::model::{BuildKind, Origin, Package, Patch, PatchOrigin, Source, System};
use super::resolve::{Context, arch, check_name, download, environment, known_system, list};
use crate::bundle::sha256_hex;
use crate::diag::Span;
use crate::diag::codes::recipe as codes;
use crate::spec::Spanned;
use crate::spec::recipe_source::{SourcePackage, SourcePatch, SourceRecipe};

pub(super) fn resolve(
    recipe: &SourceRecipe,
    systems: &BTreeMap<String, System>,
    context: &mut Context<'_>,
) -> Option<Source> {
    let copy_libraries = match recipe.libraries.as_ref().map(|t| (t.value.as_str(), t.span)) {
        None | Some(("copy", _)) => true,
        Some(("none", _)) => false,
        Some((other, span)) => {
            let message = format!("`{other}` is nothing that can be done with libraries of the system");
            context.error(codes::VALUE, span, message, "it can be `copy` or `none`");
            true
        }
    };
    let written = recipe.packages.as_ref()?;
    if written.is_empty() {
        context.error(
            codes::VALUE,
            written.span,
            "there is no package to build".to_owned(),
            "add one below `packages`",
        );
    }
    let mut packages: Vec<(Package, Span)> = Vec::new();
    for item in &written.value {
        if let Some(package) = package(item, &packages, systems, context) {
            packages.push((package, item.span));
        }
    }
    twice(&packages, systems, context);
    files_twice(&packages, context);
    Some(Source { copy_libraries, packages: packages.into_iter().map(|(package, _)| package).collect() })
}

fn package(
    written: &Spanned<SourcePackage>,
    earlier: &[(Package, Span)],
    systems: &BTreeMap<String, System>,
    context: &mut Context<'_>,
) -> Option<Package> {
    let (name, version) = (written.name.as_ref()?, written.version.as_ref()?);
    check_name("package", name, name.span, context);
    check_name("version", version, version.span, context);
    let only = list(written.systems.as_ref());
    for system in written.systems.iter().flat_map(|l| l.value.iter()) {
        known_system(system, systems, context);
    }
    if let Some(into) = &written.into
        && !earlier.iter().any(|(package, _)| package.name == into.value && package.into.is_none())
    {
        let message = format!("`{}` is no earlier package with a folder of its own", into.value);
        context.error(codes::UNKNOWN, into.span, message, "packages are built in the order of the list");
    }
    let build = build_kind(written, context);
    let script = written.script.as_ref();
    if (build == BuildKind::Script) != script.is_some() {
        let message = format!("package `{}`: `script` goes with `build: script`", name.value);
        let span = script.map_or(written.span, |s| s.span);
        context.error(codes::VALUE, span, message, "give both or none");
    }
    let package = Package {
        name: name.value.clone(),
        version: version.value.clone(),
        origin: origin(written, name, context)?,
        build,
        configure: list(written.configure.as_ref()),
        make: list(written.make.as_ref()),
        install: list(written.install.as_ref()),
        script: script.map(|s| s.value.clone()),
        environment: environment(written.environment.as_ref(), context),
        patches: written.patches.iter().flat_map(|l| l.value.iter()).filter_map(|p| patch(p, context)).collect(),
        into: written.into.as_ref().map(|t| t.value.clone()),
        systems: only,
        build_only: written.build_only.as_ref().is_some_and(|b| b.value),
    };
    let names: BTreeSet<&str> = earlier.iter().map(|(p, _)| p.name.as_str()).collect();
    for argument in [&written.configure, &written.make, &written.install].into_iter().flatten().flat_map(|l| &l.value) {
        for used in prefixes(&argument.value) {
            if !names.contains(used) {
                let message = format!("`{{prefix:{used}}}` names no earlier package");
                context.error(codes::UNKNOWN, argument.span, message, "packages are built in the order of the list");
            }
        }
    }
    Some(package)
}

/// The names in `{prefix:NAME}`.
fn prefixes(argument: &str) -> impl Iterator<Item = &str> {
    argument.split("{prefix:").skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name)
}

fn build_kind(written: &SourcePackage, context: &mut Context<'_>) -> BuildKind {
    match written.build.as_ref().map(|t| (t.value.as_str(), t.span)) {
        None | Some(("autotools", _)) => BuildKind::Autotools,
        Some(("cmake", _)) => BuildKind::Cmake,
        Some(("make", _)) => BuildKind::Make,
        Some(("python", _)) => BuildKind::Python,
        Some(("script", _)) => BuildKind::Script,
        Some((other, span)) => {
            let message = format!("`{other}` is no way to build");
            context.error(codes::VALUE, span, message, "it can be `autotools`, `cmake`, `make`, `python` or `script`");
            BuildKind::Autotools
        }
    }
}

/// Exactly one of `source`, `source-by-arch` and `folder`.
fn origin(written: &SourcePackage, name: &Spanned<String>, context: &mut Context<'_>) -> Option<Origin> {
    match (&written.source, &written.source_by_arch, &written.folder) {
        (Some(source), None, None) => download(source, context).map(Origin::Download),
        (None, Some(by_arch), None) => {
            let mut downloads = BTreeMap::new();
            for entry in by_arch.iter() {
                if let (Some(arch), Some(download)) = (arch(&entry.key, context), download(&entry.value, context)) {
                    downloads.insert(arch, download);
                }
            }
            Some(Origin::ByArch(downloads))
        }
        (None, None, Some(folder)) => files::folder(folder, context).map(Origin::Folder),
        (source, by_arch, folder) => {
            let count = usize::from(source.is_some()) + usize::from(by_arch.is_some()) + usize::from(folder.is_some());
            let message = format!("package `{}` has {count} places for its sources", name.value);
            context.error(codes::VALUE, name.span, message, "give one of `source`, `source-by-arch` and `folder`");
            None
        }
    }
}

fn patch(written: &Spanned<SourcePatch>, context: &mut Context<'_>) -> Option<Patch> {
    let strip = written.strip.as_ref().map_or(Some(1), |n| u32::try_from(n.value).ok().filter(|n| *n < 10));
    let Some(strip) = strip else {
        let span = written.strip.as_ref().map_or(written.span, |n| n.span);
        context.error(codes::VALUE, span, "`strip` is out of range".to_owned(), "it can be 0 to 9");
        return None;
    };
    let origin = match (&written.file, &written.source) {
        (Some(file), None) => {
            let bytes = files::read(file, context)?;
            PatchOrigin::File { name: file.value.clone(), sha256: sha256_hex(&bytes) }
        }
        (None, Some(source)) => PatchOrigin::Download(download(source, context)?),
        _ => {
            let message = "a patch is either a file of the recipe or a download".to_owned();
            context.error(codes::VALUE, written.span, message, "give one of `file` and `source`");
            return None;
        }
    };
    Some(Patch { origin, strip })
}

/// Two packages of one name on one system.
fn twice(packages: &[(Package, Span)], systems: &BTreeMap<String, System>, context: &mut Context<'_>) {
    for (index, (package, span)) in packages.iter().enumerate() {
        for (other, first) in &packages[..index] {
            let both = |system: &&String| package.is_on(system) && other.is_on(system);
            if other.name == package.name
                && let Some(system) = systems.keys().find(both)
            {
                let message = format!("`{}` is built twice on {system}", package.name);
                let diagnostic = crate::diag::Diagnostic::error(codes::TWICE, *span, message)
                    .help("give each the `systems` it is for, or take one out")
                    .related(*first, "first written here");
                context.diagnostics.push(diagnostic);
            }
        }
    }
}

/// One file name for different contents.
fn files_twice(packages: &[(Package, Span)], context: &mut Context<'_>) {
    let mut known: BTreeMap<&str, (&str, Span)> = BTreeMap::new();
    for (package, span) in packages {
        for download in package.downloads(None) {
            match known.get(download.file.as_str()) {
                Some((digest, first)) if *digest != download.sha256 => {
                    let message = format!("two downloads are kept as `{}` and differ", download.file);
                    let diagnostic = crate::diag::Diagnostic::error(codes::TWICE, *span, message)
                        .help("name one of them with `file`")
                        .related(*first, "first written here");
                    context.diagnostics.push(diagnostic);
                }
                _ => {
                    known.insert(&download.file, (&download.sha256, *span));
                }
            }
        }
    }
}
