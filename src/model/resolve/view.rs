//! The view: which image, where, how.

use super::containers::{pull_policy, resources};
use super::security;
use super::written::{flag, owned, text};
use crate::diag::codes::model as codes;
use crate::diag::{Diagnostic, Diagnostics};
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
pub(super) fn view(spec: &MiniClusterSpec, settings: &Settings, diagnostics: &mut Diagnostics) -> View {
    let default = FluxContainer::default();
    let written = spec.flux.as_ref().and_then(|f| f.container.as_ref()).map_or(&default, |c| &c.value);
    let image = if is_arm(spec) { DEFAULT_IMAGE_ARM } else { DEFAULT_IMAGE };
    let kind = match (flag(&written.disable), settings.view_mount) {
        (true, _) => ViewKind::Disabled,
        (false, ViewMount::Copy) => ViewKind::Copy,
        (false, ViewMount::Image) => ViewKind::Image,
    };
    if kind == ViewKind::Image {
        refuse_container_fields(written, diagnostics);
    }
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

/// Reports the fields of `flux.container` that only an init container has: a mounted view has none.
fn refuse_container_fields(written: &FluxContainer, diagnostics: &mut Diagnostics) {
    let fields = [
        ("workingDir", written.working_dir.as_ref().map(|f| f.span)),
        ("resources", written.resources.as_ref().map(|f| f.span)),
        ("securityContext", written.security_context.as_ref().map(|f| f.span)),
    ];
    for (name, span) in fields.into_iter().filter_map(|(name, span)| Some((name, span?))) {
        let message =
            format!("`flux.container.{name}` has no meaning with `view-mount: image`: no init container runs");
        let help = "remove it, or use `view-mount: copy`";
        diagnostics.push(Diagnostic::error(codes::NOT_WITH_IMAGE_MOUNT, span, message).help(help));
    }
}

fn mount_path(written: &FluxContainer) -> String {
    let path = text(&written.mount_path).unwrap_or("/mnt/flux").trim_end_matches('/');
    path.to_owned()
}
