//! Digests of images for bundles: `images.lock`, and what is still named by a tag.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use super::pipeline::Inputs;
use super::project::Found;
use super::sources::shown;
use crate::airgap::lock::{LOCK_FILE, Lock, LockedPlatform, pinned_name};
use crate::compile::CompiledCluster;
use crate::diag::codes::airgap as codes;
use crate::diag::{Diagnostic, Diagnostics, Span};
use crate::object::images;
use crate::spec::minicluster::MiniClusterSpec;
use crate::spec::pins::{ImagePins, KnownFacts, LockedFacts, is_pinned};
use crate::spec::{MiniCluster, Spanned};

/// Reads the project's lock, if there is one.
///
/// # Errors
/// A diagnostic with [`codes::LOCK_UNREADABLE`] when it cannot be read.
pub(crate) fn lock(project: &Found) -> Result<Option<Lock>, Box<Diagnostic>> {
    let path = project.inside(LOCK_FILE);
    let failed = |why: String| {
        let message = format!("{}: {why}", shown(&path));
        Box::new(Diagnostic::global_error(codes::LOCK_UNREADABLE, message).help("run `flux-gen lock --update`"))
    };
    match fs::read_to_string(&path) {
        Ok(text) => Lock::parse(&text).map(Some).map_err(|e| failed(e.to_string())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(failed(super::error::plain(&e))),
    }
}

/// What bundles write in the place of names.
pub(crate) fn pins(lock: &Lock) -> ImagePins {
    let pin = |(name, image): (&String, &_)| Some((name.clone(), pinned_name(name, image)?));
    lock.images.iter().filter(|(name, _)| !is_pinned(name)).filter_map(pin).collect()
}

/// What the lock knows of images, by the names that objects have with and without it.
pub(crate) fn facts(lock: &Lock) -> LockedFacts {
    let mut all = LockedFacts::new();
    for (name, image) in &lock.images {
        let known = |entry: &LockedPlatform| KnownFacts { image: entry.facts.clone(), view: entry.view.clone() };
        let platforms: BTreeMap<String, KnownFacts> =
            image.platforms.iter().map(|(platform, entry)| (platform.clone(), known(entry))).collect();
        all.extend(pinned_name(name, image).map(|pinned| (pinned, platforms.clone())));
        all.insert(name.clone(), platforms);
    }
    all
}

/// Every image name of the objects and of the documents beside the specs.
pub(crate) fn names(clusters: &[CompiledCluster], inputs: &Inputs) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    let mut take = |_: &str, name: &str| {
        all.insert(name.to_owned());
        None
    };
    for object in clusters.iter().flat_map(|cluster| &cluster.objects) {
        images::visit(&mut object.clone(), &mut take);
    }
    for companion in &inputs.documents.companions {
        images::visit_value(&mut companion.value.clone(), &mut take);
    }
    all
}

/// Reports images that are named by a tag: all of them with `--locked`, and where there is a lock those that it lacks.
pub(crate) fn check(clusters: &[CompiledCluster], inputs: &Inputs) -> Diagnostics {
    let code = match (inputs.has_lock, inputs.locked) {
        (true, _) => codes::LOCK_STALE,
        (false, true) => codes::NOT_PINNED,
        (false, false) => return Diagnostics::new(),
    };
    let mut found = Diagnostics::new();
    for cluster in clusters {
        let mut told = BTreeSet::new();
        let mut tell = |path: &str, name: &str| {
            if !is_pinned(name) && told.insert(name.to_owned()) {
                found.push(unpinned(code, span_of_image(inputs, cluster.span, name), name, path));
            }
            None
        };
        for object in &cluster.objects {
            images::visit(&mut object.clone(), &mut tell);
        }
    }
    for companion in &inputs.documents.companions {
        images::visit_value(&mut companion.value.clone(), &mut |path, name| {
            if !is_pinned(name) && !inputs.documents.images.contains_key(name) {
                found.push(unpinned(code, companion.span, name, path));
            }
            None
        });
    }
    found
}

fn unpinned(code: crate::diag::Code, span: Span, name: &str, path: &str) -> Diagnostic {
    let message = match code.id {
        id if id == codes::LOCK_STALE.id => format!("{LOCK_FILE} does not have the image {name} ({path})"),
        _ => format!("the image {name} ({path}) is named by a tag"),
    };
    Diagnostic::error(code, span, message).help("run `flux-gen lock`")
}

/// Where an image of a cluster, by digest perhaps, is named in its spec; the spec itself when it is not named there.
pub(crate) fn span_of_image(inputs: &Inputs, cluster: Span, name: &str) -> Span {
    let written =
        inputs.documents.images.iter().find(|(_, pinned)| *pinned == name).map_or(name, |(written, _)| written);
    let spec = inputs.documents.miniclusters.iter().find(|spec| spec.span == cluster);
    spec.and_then(|spec| span_of(spec, written)).unwrap_or(cluster)
}

/// Where an image is named first: in a spec, else the document beside the specs that names it. `None` for what no file says,
/// such as the view that a setting chooses.
pub(crate) fn place_of(inputs: &Inputs, name: &str) -> Option<Span> {
    let documents = &inputs.documents;
    let named = |value: &serde_json::Value| {
        let mut is_there = false;
        images::visit_value(&mut value.clone(), &mut |_, image| {
            is_there |= image == name;
            None
        });
        is_there
    };
    let beside =
        || documents.companions.iter().find(|companion| named(&companion.value)).map(|companion| companion.span);
    documents.miniclusters.iter().find_map(|spec| span_of(spec, name)).or_else(beside)
}

/// Where a spec names an image.
fn span_of(spec: &MiniCluster, name: &str) -> Option<Span> {
    let MiniClusterSpec { containers, services, flux, .. } = &spec.spec.value;
    let lists = [containers.as_ref(), services.as_ref()];
    let containers = lists.into_iter().flatten().flat_map(|list| list.value.iter()).map(|c| c.image.as_ref());
    let view = flux.as_ref().and_then(|f| f.container.as_ref()).map(|c| c.image.as_ref());
    containers.chain(view).flatten().find(|image| image.value == name).map(|image: &Spanned<String>| image.span)
}

/// Writes the lock; the file is old or new, never in between.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn write_lock(path: &Path, text: &str) -> Result<(), super::error::CommandError> {
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    let failed = |e: &io::Error| super::error::CommandError::file("write", path, e);
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .permissions(fs::Permissions::from_mode(0o644))
        .tempfile_in(folder)
        .map_err(|e| failed(&e))?;
    file.write_all(text.as_bytes()).and_then(|()| file.as_file().sync_all()).map_err(|e| failed(&e))?;
    file.persist(path).map_err(|e| failed(&e.error)).map(drop)
}
