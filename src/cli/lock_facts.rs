//! What `lock` finds out besides digests: what application images have (os-release, C library, bash) and what views need.
//! With both, `build` can tell that a view will not run in an image before the cluster does.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use super::progress::size;
use super::report::plural;
use super::ui::Ui;
use super::view::{cache_in, make_state, pin};
use crate::airgap::lock::{Lock, LockedPlatform};
use crate::compile::CompiledCluster;
use crate::diag::codes::airgap as codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::model::ViewKind;
use crate::oci::{Descriptor, Error, Source, media};
use crate::view::cache::Cache;
use crate::view::facts;
use crate::view::image::{self, ImageError};
use crate::view::problem::Problems;
use crate::view::tree::ReadOptions;

/// Names of the images whose facts count, as written.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// Images in which Flux runs from a view.
    apps: BTreeSet<String>,
    /// Those views.
    views: BTreeSet<String>,
}

impl Wanted {
    pub(super) fn of(clusters: &[CompiledCluster]) -> Self {
        let mut wanted = Self::default();
        for cluster in clusters.iter().map(|compiled| &compiled.cluster) {
            if cluster.view.kind != ViewKind::Disabled {
                wanted.apps.extend(cluster.runner.container.image.clone());
                wanted.views.insert(cluster.view.image.clone());
            }
        }
        wanted
    }
}

/// Finds the place of an image by its name.
pub(super) type Find<'a> = &'a dyn Fn(&str) -> Result<Arc<dyn Source>, Error>;

/// Adds what is not known yet. Facts of images that have not changed are taken from the old lock. What cannot be read is told
/// and left out: digests are what the lock is for.
///
/// `state` is the folder of what is known of images by their digests; `view match` uses it too.
pub(super) fn add(lock: &mut Lock, old: &Lock, wanted: &Wanted, state: &Path, find: Find<'_>, ui: &Ui) -> Diagnostics {
    let mut found = Diagnostics::new();
    let kept = Kept { state, cache: Cache::new(&cache_in(state)) };
    let mut jobs: Vec<(String, String, LockedPlatform)> = Vec::new();
    for (name, image) in &mut lock.images {
        let known = old.images.get(name);
        for (platform, entry) in &mut image.platforms {
            let before = known.and_then(|known| known.platforms.get(platform)).filter(|p| p.digest == entry.digest);
            if let Some(before) = before {
                entry.facts.clone_from(&before.facts);
                entry.view.clone_from(&before.view);
                continue;
            }
            if wanted.apps.contains(name) {
                entry.facts = kept.cache.facts(&entry.digest);
            }
            let known = entry.facts.is_some() && !wanted.views.contains(name);
            if !known && platform.starts_with("linux/") && (wanted.apps.contains(name) || wanted.views.contains(name)) {
                jobs.push((name.clone(), platform.clone(), entry.clone()));
            }
        }
    }
    let read_whole =
        |(name, _, entry): &&(String, String, LockedPlatform)| wanted.apps.contains(name) && entry.facts.is_none();
    let layers: u64 = jobs.iter().filter(read_whole).map(|(.., entry)| entry.content).sum();
    if layers > 0 {
        let count = plural(jobs.iter().filter(read_whole).count(), "image");
        ui.status(&format!("reading what {count} of applications have: {} (--no-facts leaves it out)", size(layers)));
    }
    for (name, platform, mut entry) in jobs {
        let (app, view) = (wanted.apps.contains(&name), wanted.views.contains(&name));
        let source = find(&name).map_err(ImageError::from);
        let read = source.and_then(|source| kept.read(&source, &mut entry, app, view));
        match (read, lock.images.get_mut(&name).and_then(|image| image.platforms.get_mut(&platform))) {
            (Ok(()), Some(place)) => *place = entry,
            (Ok(()), None) => {}
            (Err(error), _) => {
                let message = format!("{name} ({platform}): {error}");
                let help = "builds do not check whether the view runs in it; `--no-facts` does not try";
                found.push(Diagnostic::global_warning(codes::FACTS_UNREADABLE, message).help(help));
            }
        }
    }
    found
}

/// What is known of images by their digests.
struct Kept<'a> {
    state: &'a Path,
    cache: Cache,
}

impl Kept<'_> {
    /// Reads one image: its labels, and its layers when it is an application's that is not known.
    fn read(
        &self,
        source: &Arc<dyn Source>,
        entry: &mut LockedPlatform,
        app: bool,
        view: bool,
    ) -> Result<(), ImageError> {
        let image = image::read(source.as_ref(), Descriptor::new(media::MANIFEST, entry.digest.clone(), entry.size))?;
        if view {
            let needs = pin::facts(&image);
            // Without labels it is a view of somebody else: what it needs is not known.
            entry.view = (needs.glibc.is_some() || needs.os.is_some()).then_some(needs);
        }
        if app && entry.facts.is_none() {
            let scratch = tempfile::tempdir().map_err(|e| Error::file("make", Path::new("a temporary folder"), &e))?;
            let options = ReadOptions { scratch: scratch.path().to_path_buf(), ..ReadOptions::default() };
            let (tree, _) = image::tree(source.as_ref(), &image, &options, &mut Problems::default())?;
            let facts = facts::of_tree(&tree, &image.config.platform.architecture);
            let failed = |e: std::io::Error| Error::file("write", self.state, &e);
            make_state(self.state).map_err(failed)?;
            self.cache.put_facts(&entry.digest, &facts).map_err(failed)?;
            entry.facts = Some(facts);
        }
        Ok(())
    }
}
