//! The view: which image, where, how.

use super::containers::{pull_policy, resources};
use super::security;
use super::written::{flag, owned, text};
use crate::diag::Diagnostics;
use crate::model::settings::{Settings, ViewMount};
use crate::model::{View, ViewKind};
use crate::spec::minicluster::{FluxContainer, MiniClusterSpec};

const DEFAULT_IMAGE: &str = "ghcr.io/converged-computing/flux-view-ubuntu:tag-noble";
const DEFAULT_IMAGE_ARM: &str = "ghcr.io/converged-computing/flux-view-ubuntu:arm-noble";

/// Whether the cluster runs on 64-bit ARM.
pub(super) fn is_arm(spec: &MiniClusterSpec) -> bool {
    spec.flux.as_ref().and_then(|f| text(&f.arch)).is_some_and(|arch| arch.starts_with("arm"))
}

/// Resolves `flux.container`.
pub(super) fn view(spec: &MiniClusterSpec, settings: &Settings, _diagnostics: &mut Diagnostics) -> View {
    let default = FluxContainer::default();
    let written = spec.flux.as_ref().and_then(|f| f.container.as_ref()).map_or(&default, |c| &c.value);
    let image = if is_arm(spec) { DEFAULT_IMAGE_ARM } else { DEFAULT_IMAGE };
    let kind = match (flag(&written.disable), settings.view_mount) {
        (true, _) => ViewKind::Disabled,
        (false, ViewMount::Copy) => ViewKind::Copy,
        (false, ViewMount::Image) => ViewKind::Image,
    };
    View {
        kind,
        name: owned(&written.name).unwrap_or_else(|| "flux-view".to_owned()),
        image: owned(&written.image).unwrap_or_else(|| image.to_owned()),
        pull_policy: pull_policy(&written.pull_always, &None),
        mount_path: mount_path(written),
        python_path: owned(&written.python_path),
        working_dir: owned(&written.working_dir),
        resources: resources(written.resources.as_ref()),
        security_context: security::container(written.security_context.as_ref()),
    }
}

fn mount_path(written: &FluxContainer) -> String {
    let path = text(&written.mount_path).unwrap_or("/mnt/flux").trim_end_matches('/');
    path.to_owned()
}
