//! Existing volumes: names, sources, paths, and volumes of one name in several containers.

use std::collections::BTreeMap;

use super::check::{Check, Place, Role, is_true, shown, text};
use super::reserved::{OWN_PATHS, RESERVED_VOLUMES, SCRIPTS_PATH, SCRIPTS_VOLUME, VIEW_PATHS};
use crate::diag::codes::spec as codes;
use crate::diag::{Diagnostic, Span};
use crate::object::quantity::Quantity;
use crate::rules::syntax;
use crate::spec::minicluster::Volume;
use crate::spec::{Entry, Spanned};

/// Where an emptyDir without a path is mounted.
const SHARED_MEMORY: &str = "/dev/shm";

pub(super) fn check(check: &mut Check<'_>) {
    for places in [check.containers.clone(), check.services.clone()] {
        let mut sources = BTreeMap::new();
        for place in places {
            let mut mounts = own_mounts(check, place);
            let volumes = place.container.volumes.iter().flat_map(|map| &map.value);
            for entry in volumes {
                volume(check, place.role, entry);
                mount(check, &mut mounts, entry);
                same_source(check, &mut sources, entry);
            }
        }
    }
}

/// Kinds of sources that a volume names.
fn sources(volume: &Volume) -> Vec<(&'static str, Span)> {
    let named = [
        ("hostPath", &volume.host_path),
        ("claimName", &volume.claim_name),
        ("secretName", &volume.secret_name),
        ("configMapName", &volume.config_map_name),
        ("csiDriver", &volume.csi_driver),
    ];
    let mut found: Vec<_> = named.into_iter().filter_map(|(kind, name)| Some((kind, text(name)?.span))).collect();
    if let Some(flag) = volume.empty_dir.as_ref().filter(|flag| flag.value) {
        found.push(("emptyDir", flag.span));
    }
    found
}

fn volume(check: &mut Check<'_>, role: Role, entry: &Entry<Volume>) {
    let (name, volume) = (&entry.key, &entry.value.value);
    if check.form(codes::VOLUME_NAME, "volume name", name, syntax::dns1123_label)
        && is_reserved(check, role, &name.value)
    {
        let message = format!("volume name `{}` is one of flux-gen's own", name.value);
        check.error(codes::RESERVED_NAME, name.span, message, "rename the volume");
    }
    let found = sources(volume);
    match found.as_slice() {
        [] => {
            let message = format!("volume `{}` has no source", shown(&name.value));
            let help = "add one of hostPath, claimName, secretName, configMapName, emptyDir: true, csiDriver";
            check.error(codes::VOLUME_WITHOUT_SOURCE, name.span, message, help);
        }
        [_] => {}
        [(first, first_span), rest @ ..] => {
            for (kind, span) in rest {
                let message = format!("volume `{}` has both {first} and {kind}", shown(&name.value));
                let diagnostic = Diagnostic::error(codes::VOLUME_SOURCES, *span, message).help("keep one source");
                check.push(diagnostic.related(*first_span, "the first source"));
            }
        }
    }
    source_names(check, volume);
    empty_dir(check, volume);
    items(check, volume);
}

/// The view's volume, and with a mounted image a second one, stand in the cluster's pods only.
fn is_reserved(check: &Check<'_>, role: Role, name: &str) -> bool {
    if role == Role::Service {
        return name == SCRIPTS_VOLUME;
    }
    let view = check.view_name();
    RESERVED_VOLUMES.contains(&name) || name == view || name.strip_suffix("-image") == Some(view)
}

fn source_names(check: &mut Check<'_>, volume: &Volume) {
    let subdomain = syntax::dns1123_subdomain;
    check.optional_form(codes::OBJECT_NAME, "claim", &volume.claim_name, subdomain);
    check.optional_form(codes::OBJECT_NAME, "Secret", &volume.secret_name, subdomain);
    check.optional_form(codes::OBJECT_NAME, "ConfigMap", &volume.config_map_name, subdomain);
    check.optional_form(codes::OBJECT_NAME, "CSI driver", &volume.csi_driver, |driver| {
        syntax::dns1123_subdomain(&driver.to_ascii_lowercase())?;
        if driver.len() > 63 { Err("it must have at most 63 characters".to_owned()) } else { Ok(()) }
    });
    check.optional_form(codes::VOLUME_PATH, "host path", &volume.host_path, absolute);
    let attributes = volume.csi_driver_attributes.as_ref().filter(|map| !map.value.is_empty());
    if let (Some(attributes), None) = (attributes, text(&volume.csi_driver)) {
        let message = "csiDriverAttributes has no effect without csiDriver";
        check.warn(codes::NO_EFFECT, attributes.span, message, "remove it, or name the driver");
    }
}

/// An absolute path without `..`.
pub(super) fn absolute(path: &str) -> Result<(), syntax::Wrong> {
    if !path.starts_with('/') {
        return Err("it must be absolute, so begin with `/`".to_owned());
    }
    if path.split('/').any(|part| part == "..") {
        return Err("it must not hold `..`".to_owned());
    }
    Ok(())
}

fn empty_dir(check: &mut Check<'_>, volume: &Volume) {
    let medium = text(&volume.empty_dir_medium);
    let limit = text(&volume.empty_dir_size_limit);
    if !is_true(&volume.empty_dir) {
        for (field, written) in [("emptyDirMedium", medium), ("emptyDirSizeLimit", limit)] {
            if let Some(written) = written {
                let message = format!("{field} has no effect without emptyDir: true");
                check.warn(codes::NO_EFFECT, written.span, message, "remove it, or add `emptyDir: true`");
            }
        }
    }
    if let Some(medium) = medium {
        let word = medium.value.as_str();
        if !matches!(word, "memory" | "Memory" | "HugePages") && !word.starts_with("HugePages-") {
            let message = format!("emptyDir medium `{}` is not known", shown(word));
            check.error(codes::EMPTY_DIR_MEDIUM, medium.span, message, "write `Memory`, or leave it out for the disk");
        }
    }
    let Some(limit) = limit else { return };
    match limit.value.parse::<Quantity>() {
        Ok(size) if !size.is_negative() => {}
        Ok(_) => {
            let message = format!("size limit `{}` is negative", shown(&limit.value));
            check.error(codes::QUANTITY, limit.span, message, "write a size such as `1Gi`");
        }
        Err(wrong) => {
            let message = format!("size limit `{}` is no quantity: {wrong}", shown(&limit.value));
            check.error(codes::QUANTITY, limit.span, message, "write a size such as `1Gi`");
        }
    }
}

fn items(check: &mut Check<'_>, volume: &Volume) {
    let Some(items) = volume.items.as_ref().filter(|map| !map.value.is_empty()) else { return };
    if text(&volume.config_map_name).is_none() {
        let message = "items has no effect: keys are chosen of ConfigMaps only";
        check.warn(codes::NO_EFFECT, items.span, message, "remove it");
    }
    let mut files: BTreeMap<String, Span> = BTreeMap::new();
    for entry in &items.value {
        check.form(codes::VOLUME_ITEMS, "key", &entry.key, syntax::data_key);
        if !check.form(codes::VOLUME_ITEMS, "file of a key", &entry.value, syntax::relative_path) {
            continue;
        }
        if let Some(first) = files.insert(syntax::clean_path(&entry.value.value), entry.value.span) {
            let message = format!("file `{}` is written by two keys", shown(&entry.value.value));
            let diagnostic =
                Diagnostic::error(codes::VOLUME_ITEMS, entry.value.span, message).help("name the files differently");
            check.push(diagnostic.related(first, "first used here"));
        }
    }
}

/// Paths at which flux-gen mounts something in a container, with what it is.
fn own_mounts(check: &Check<'_>, place: Place<'_>) -> BTreeMap<String, (Option<Span>, String)> {
    let mut mounts = BTreeMap::from([(SCRIPTS_PATH.to_owned(), (None, "flux-gen's scripts".to_owned()))]);
    if place.role != Role::Service {
        mounts.extend(OWN_PATHS.iter().map(|(path, what)| ((*path).to_owned(), (None, (*what).to_owned()))));
        mounts.insert(syntax::clean_path(check.mount_path()), (None, "the view".to_owned()));
        if !check.view_disabled() {
            mounts.extend(VIEW_PATHS.iter().map(|path| ((*path).to_owned(), (None, "the view's software".to_owned()))));
        }
    }
    mounts
}

fn mount(check: &mut Check<'_>, mounts: &mut BTreeMap<String, (Option<Span>, String)>, entry: &Entry<Volume>) {
    let (name, volume) = (&entry.key, &entry.value.value);
    let (path, span) = match text(&volume.path) {
        Some(path) => {
            if !check.form(codes::VOLUME_PATH, "volume path", path, mountable) {
                return;
            }
            (syntax::clean_path(&path.value), path.span)
        }
        // With another source beside it the operator asks for a path too.
        None if sources(volume).iter().all(|(kind, _)| *kind == "emptyDir") && is_true(&volume.empty_dir) => {
            (SHARED_MEMORY.to_owned(), name.span)
        }
        None if sources(volume).is_empty() => return,
        None => {
            let message = format!("volume `{}` has no path", shown(&name.value));
            check.error(
                codes::VOLUME_WITHOUT_PATH,
                name.span,
                message,
                "add `path`: where to mount it in the container",
            );
            return;
        }
    };
    if let Some((first, what)) = mounts.get(&path) {
        let message = format!("volume `{}` is mounted at `{path}`, where {what} is", shown(&name.value));
        let mut diagnostic = Diagnostic::error(codes::MOUNT_CLASH, span, message).help("mount it at another path");
        if let Some(first) = first {
            diagnostic = diagnostic.related(*first, "mounted there here");
        }
        check.push(diagnostic);
        return;
    }
    mounts.insert(path, (Some(span), format!("volume `{}`", shown(&name.value))));
}

fn mountable(path: &str) -> Result<(), syntax::Wrong> {
    absolute(path)?;
    if path.contains(':') {
        return Err("it must not hold `:`".to_owned());
    }
    if syntax::clean_path(path) == "/" {
        return Err("nothing can be mounted over the root folder".to_owned());
    }
    Ok(())
}

/// What decides whether two volumes are the same: all but path and access.
#[derive(PartialEq)]
struct Source<'a> {
    named: [Option<&'a str>; 5],
    empty_dir: bool,
    medium: Option<String>,
    size_limit: Option<Option<Quantity>>,
    items: Vec<(&'a str, &'a str)>,
    attributes: Vec<(&'a str, &'a str)>,
}

fn source(volume: &Volume) -> Source<'_> {
    let named =
        [&volume.host_path, &volume.claim_name, &volume.secret_name, &volume.config_map_name, &volume.csi_driver];
    Source {
        named: named.map(|name| text(name).map(|name| name.value.as_str())),
        empty_dir: is_true(&volume.empty_dir),
        medium: text(&volume.empty_dir_medium).map(|medium| medium.value.to_ascii_lowercase()),
        size_limit: text(&volume.empty_dir_size_limit).map(|limit| limit.value.parse().ok()),
        items: sorted(&volume.items),
        attributes: sorted(&volume.csi_driver_attributes),
    }
}

fn sorted(map: &Option<Spanned<crate::spec::Map<String>>>) -> Vec<(&str, &str)> {
    let entries = map.iter().flat_map(|map| &map.value);
    let mut pairs: Vec<_> = entries.map(|entry| (entry.key.value.as_str(), entry.value.value.as_str())).collect();
    pairs.sort_unstable();
    pairs
}

fn same_source<'a>(check: &mut Check<'_>, seen: &mut BTreeMap<&'a str, (Span, &'a Volume)>, entry: &'a Entry<Volume>) {
    let (name, volume) = (&entry.key, &entry.value.value);
    let Some((first, other)) = seen.get(name.value.as_str()) else {
        seen.insert(&name.value, (name.span, volume));
        return;
    };
    if source(volume) != source(other) {
        let message = format!("volume `{}` has another source than in a container before", shown(&name.value));
        let diagnostic = Diagnostic::error(codes::VOLUME_DIFFERS, name.span, message);
        let diagnostic = diagnostic.help("rename one of them, or give both the same source");
        check.push(diagnostic.related(*first, "first used here"));
    }
}
