//! The view: which image, where, how.

use super::containers::{pull_policy, resources};
use super::security;
use super::written::{flag, owned, text};
use crate::diag::{Diagnostic, Diagnostics, codes::model as codes};
use crate::model::kubernetes::Feature;
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
        check_mounted(spec, written, settings, diagnostics);
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

/// A mounted view needs a Kubernetes that can mount images, and has no init container to configure.
fn check_mounted(spec: &MiniClusterSpec, written: &FluxContainer, settings: &Settings, found: &mut Diagnostics) {
    let version = settings.kubernetes_version;
    if !version.has(Feature::ImageVolumes) && !settings.image_volume_gate {
        let message = format!("`view-mount: image` needs image volumes, which Kubernetes {version} has not on by default");
        let span = spec.flux.as_ref().map_or_else(|| spec.containers.as_ref().map(|c| c.span), |f| Some(f.span));
        let diagnostic = match span {
            Some(span) => Diagnostic::error(codes::NEEDS_NEWER_KUBERNETES, span, message),
            None => Diagnostic::global_error(codes::NEEDS_NEWER_KUBERNETES, message),
        };
        found.push(diagnostic.help(
            "set `kubernetes-version` to 1.35 or later, or `image-volume-gate` where the feature gate is on, or `view-mount: copy`",
        ));
    }
    let useless = [
        ("workingDir", written.working_dir.as_ref().map(|v| v.span)),
        ("resources", written.resources.as_ref().map(|v| v.span)),
        ("securityContext", written.security_context.as_ref().map(|v| v.span)),
    ];
    for (field, span) in useless.into_iter().filter_map(|(field, span)| span.map(|span| (field, span))) {
        let message = format!("`flux.container.{field}` is for the init container, which a mounted view has not");
        found.push(
            Diagnostic::error(codes::NOT_WITH_IMAGE_MOUNT, span, message)
                .help("remove it, or use the setting `view-mount: copy`"),
        );
    }
}

fn mount_path(written: &FluxContainer) -> String {
    let path = text(&written.mount_path).unwrap_or("/mnt/flux").trim_end_matches('/');
    path.to_owned()
}
