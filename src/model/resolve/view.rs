//! The view: which image, where, how.

use super::Context;
use super::containers::{pull_policy, resources};
use super::security;
use super::written::{flag, owned, text};
use crate::diag::{Diagnostic, Diagnostics, codes::model as codes, codes::view as view_codes};
use crate::model::kubernetes::Feature;
use crate::model::settings::{Settings, ViewMount};
use crate::model::{View, ViewKind};
use crate::spec::Spanned;
use crate::spec::minicluster::{FluxContainer, MiniClusterSpec};
use crate::spec::pins::{ViewPins, view_name};

const DEFAULT_IMAGE: &str = "ghcr.io/converged-computing/flux-view-ubuntu:tag-noble";
/// The newest view for ARM that is published: the comment on `FluxSpec.Container` of the operator's API lists them.
const DEFAULT_IMAGE_ARM: &str = "ghcr.io/converged-computing/flux-view-ubuntu:arm-jammy";

/// Whether the cluster runs on 64-bit ARM.
pub(super) fn is_arm(spec: &MiniClusterSpec) -> bool {
    spec.flux.as_ref().and_then(|f| text(&f.arch)).is_some_and(|arch| arch.starts_with("arm"))
}

/// Resolves `flux.container`.
pub(super) fn view(spec: &MiniClusterSpec, context: &Context<'_>, diagnostics: &mut Diagnostics) -> View {
    let settings = context.settings;
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
        image: written.image.as_ref().filter(|image| !image.value.is_empty()).map_or_else(
            || image.to_owned(),
            |image| pinned(spec, image, context.views, diagnostics).unwrap_or_else(|| image.value.clone()),
        ),
        pull_policy: pull_policy(&written.pull_always, &None),
        mount_path: mount_path(written),
        python_path: owned(&written.python_path),
        working_dir: owned(&written.working_dir),
        resources: resources(written.resources.as_ref()),
        security_context: security::container(written.security_context.as_ref()),
    }
}

/// The image that `view:<name>` stands for; `None` for images as they are.
fn pinned(
    spec: &MiniClusterSpec,
    image: &Spanned<String>,
    views: &ViewPins,
    found: &mut Diagnostics,
) -> Option<String> {
    let name = view_name(&image.value)?;
    let mut error = |code, message: String, help: String| {
        found.push(Diagnostic::error(code, image.span, message).help(help));
    };
    let Some(pin) = views.get(name) else {
        let names: Vec<&str> = views.keys().map(String::as_str).collect();
        let help = match names.as_slice() {
            [] => "the project has no views; one is a folder views/NAME with a file view.yaml".to_owned(),
            names => format!("the views of the project are {}", names.join(", ")),
        };
        error(view_codes::UNKNOWN_VIEW, format!("there is no view `{name}`"), help);
        return None;
    };
    let Some(pin) = pin else {
        let message = format!("it is not known which image the view `{name}` is");
        let help = format!(
            "run `flux-gen view build {name}` and `flux-gen view push {name}`, and commit views/{name}/pushed.json"
        );
        error(view_codes::NOT_PUSHED, message, help);
        return None;
    };
    let arch = spec.flux.as_ref().and_then(|flux| text(&flux.arch));
    let wanted = arch.map(|arch| if arch.starts_with("arm") { "arm64" } else { "amd64" });
    if let Some(wanted) = wanted.filter(|wanted| !pin.has_architecture(wanted)) {
        let platforms: Vec<&str> = pin.platforms.keys().map(String::as_str).collect();
        let message = format!("the view `{name}` was pushed without an image for {wanted}");
        error(view_codes::PLATFORM_NOT_PUSHED, message, format!("it has {}", platforms.join(", ")));
    }
    Some(pin.reference())
}

/// A mounted view needs a Kubernetes that can mount images, and has no init container to configure.
fn check_mounted(spec: &MiniClusterSpec, written: &FluxContainer, settings: &Settings, found: &mut Diagnostics) {
    let version = settings.kubernetes_version;
    let gated = settings.image_volume_gate && version.can_have(Feature::ImageVolumes);
    if !version.has(Feature::ImageVolumes) && !gated {
        let message =
            format!("`view-mount: image` needs image volumes, which Kubernetes {version} has not on by default");
        let span = spec.flux.as_ref().map_or_else(|| spec.containers.as_ref().map(|c| c.span), |f| Some(f.span));
        let diagnostic = match span {
            Some(span) => Diagnostic::error(codes::NEEDS_NEWER_KUBERNETES, span, message),
            None => Diagnostic::global_error(codes::NEEDS_NEWER_KUBERNETES, message),
        };
        found.push(diagnostic.help(Feature::ImageVolumes.help()));
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
