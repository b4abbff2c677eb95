//! Where `archive save` takes images from: layouts and archives at hand, then registries.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use crate::airgap::archive::Place;
use crate::airgap::lock::{Lock, LockedImage, Origin};
use crate::cli::error::CommandError;
use crate::cli::registry::RegistryArgs;
use crate::oci::layout::{Layout, Limits};
use crate::oci::registry::{Client, Repository};
use crate::oci::{Descriptor, Error, Reference, Source};

/// Where images are looked for.
pub(super) struct Places {
    pub(super) files: Vec<Arc<Place>>,
    pub(super) client: Arc<Client>,
}

impl Places {
    /// Opens what `--from` names, and the files that the lock names as far as they are there.
    pub(super) fn open(from: &[PathBuf], registry: &RegistryArgs, lock: &Lock) -> Result<Self, CommandError> {
        let of_lock = lock.images.values().filter_map(|image| match &image.source {
            Origin::File(path) => Some(PathBuf::from(path)),
            Origin::Registry => None,
        });
        let there: BTreeSet<PathBuf> = of_lock.filter(|path| path.exists() && !from.contains(path)).collect();
        let open = |path: &PathBuf| {
            let layout = Layout::open(path, &Limits::default()).map_err(|e| crate::cli::registry::failed(&e))?;
            Ok(Arc::new(Place::layout(layout)))
        };
        let files: Result<_, CommandError> = from.iter().chain(&there).map(open).collect();
        Ok(Self { files: files?, client: registry.client()? })
    }

    /// The place of an image of the lock.
    pub(super) fn find(&self, name: &str, image: &LockedImage) -> Result<Arc<Place>, Error> {
        let root = Descriptor::new(image.media_type.clone(), image.digest.clone(), image.size);
        for place in &self.files {
            if place.size(&root)?.is_some() {
                return Ok(Arc::clone(place));
            }
        }
        let reference: Reference = name.parse()?;
        Ok(Arc::new(Place::repository(Repository::to_pull(&self.client, &reference))))
    }
}
