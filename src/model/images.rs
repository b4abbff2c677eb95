//! The images of a cluster.

use k8s_openapi::api::core::v1::Container;

use super::Cluster;
use crate::spec::pins::ImagePins;

impl Cluster {
    /// The names of all its images: of the view, of every container, of image volumes.
    pub(super) fn images_mut(&mut self) -> impl Iterator<Item = &mut String> {
        fn image(container: &mut Container) -> Option<&mut String> {
            container.image.as_mut()
        }
        let volumes = self.volumes.values_mut().chain(self.service_volumes.values_mut());
        std::iter::once(&mut self.view.image)
            .chain(image(&mut self.runner.container))
            .chain(self.sidecars.iter_mut().filter_map(|sidecar| image(&mut sidecar.container)))
            .chain(self.services.iter_mut().filter_map(|service| image(&mut service.container)))
            .chain(volumes.filter_map(|volume| volume.image.as_mut()?.reference.as_mut()))
    }

    /// Puts digests in the place of the names that are known.
    pub(super) fn pin_images(&mut self, pins: &ImagePins) {
        for image in self.images_mut() {
            if let Some(pinned) = pins.get(image) {
                pinned.clone_into(image);
            }
        }
    }
}
