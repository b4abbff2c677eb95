//! Names of the cluster, its Services and its containers, and their lengths.

use std::collections::BTreeMap;

use super::check::{Check, Place, Role, shown, text};
use super::reserved::RESERVED_VOLUMES;
use crate::diag::codes::spec as codes;
use crate::diag::{Diagnostic, Span};
use crate::rules::syntax;

/// A host name has at most this many characters.
const LONGEST_LABEL: usize = 63;

pub(super) fn check(check: &mut Check<'_>) {
    cluster_name(check);
    if let Some(network) = &check.spec.network {
        check.optional_form(codes::SERVICE_NAME, "headless name", &network.value.headless_name, syntax::dns1035_label);
    }
    view_name(check);
    for place in check.all_containers() {
        container_name(check, place);
    }
    duplicates_in_the_cluster(check);
    duplicates_in_services(check);
    service_names(check);
}

fn cluster_name(check: &mut Check<'_>) {
    // Reading has reported a name that is missing or no DNS subdomain.
    let name = text(&check.cluster.metadata.name).filter(|name| syntax::dns1123_subdomain(&name.value).is_ok());
    let Some(name) = name else { return };
    // The length has a rule of its own below.
    check.form(codes::CLUSTER_NAME, "cluster name", name, syntax::dns1035_characters);
    let last_index = check.max_size().max(1) - 1;
    let added = check.context.name_suffix + 1 + last_index.to_string().len();
    if name.value.len() + added > LONGEST_LABEL {
        let message = format!(
            "cluster name `{}` has {} characters; host names add {added} (up to `-{last_index}`) and end at {LONGEST_LABEL}",
            shown(&name.value),
            name.value.len()
        );
        let help = format!("use a name of at most {} characters", LONGEST_LABEL.saturating_sub(added));
        check.error(codes::NAME_TOO_LONG, name.span, message, help);
    }
    let services = "-services".len() + check.context.name_suffix;
    if !check.services.is_empty() && name.value.len() + services > LONGEST_LABEL {
        let message = format!(
            "the Pod of `services` would be named `{}-services`, longer than the {LONGEST_LABEL} characters of a host name",
            shown(&name.value)
        );
        let help = format!("use a cluster name of at most {} characters", LONGEST_LABEL - services);
        check.error(codes::NAME_TOO_LONG, name.span, message, help);
    }
}

fn view_name(check: &mut Check<'_>) {
    let Some(name) = check.view().and_then(|view| text(&view.name)) else { return };
    if !check.form(codes::CONTAINER_NAME, "view name", name, syntax::dns1123_label) {
        return;
    }
    if name.value == check.name() {
        let message =
            format!("the view is named `{}`, like the cluster and so like the container that runs Flux", name.value);
        check.error(codes::DUPLICATE_NAME, name.span, message, "give the view another name");
    }
    if name.value != super::reserved::DEFAULT_VIEW_NAME && RESERVED_VOLUMES.contains(&name.value.as_str()) {
        let message = format!("the view is named `{}`, like one of flux-gen's own volumes", name.value);
        check.error(codes::RESERVED_NAME, name.span, message, "give the view another name");
    }
}

fn container_name(check: &mut Check<'_>, place: Place<'_>) {
    if place.role == Role::Runner {
        return;
    }
    let Some(name) = place.name() else {
        let message = format!("{} has no name", place.describe());
        check.error(codes::MISSING_NAME, place.span, message, "add `name`");
        return;
    };
    let has_ports = place.container.ports.as_ref().is_some_and(|ports| !ports.value.is_empty());
    if place.role == Role::Sidecar && has_ports {
        let what = "sidecar with ports, which becomes a Service:";
        check.form(codes::SERVICE_NAME, what, name, syntax::dns1035_label);
    } else {
        check.form(codes::CONTAINER_NAME, "container name", name, syntax::dns1123_label);
    }
}

/// Sidecars against each other, the runner and the view.
fn duplicates_in_the_cluster(check: &mut Check<'_>) {
    let mut seen: BTreeMap<&str, (Span, String)> = BTreeMap::new();
    if let Some(name) = &check.cluster.metadata.name {
        let label = "the container that runs Flux has the cluster's name".to_owned();
        seen.insert(&name.value, (name.span, label));
    }
    if !check.name().is_empty()
        && check.name() == check.view_name()
        && check.view().is_none_or(|v| text(&v.name).is_none())
        && let Some(name) = &check.cluster.metadata.name
    {
        let message = format!("the cluster is named `{}`, like the init container that brings the view", name.value);
        check.error(codes::DUPLICATE_NAME, name.span, message, "rename the cluster, or set `flux.container.name`");
    }
    let view_span = check.view().and_then(|view| text(&view.name)).map_or(check.cluster.spec.span, |name| name.span);
    seen.entry(check.view_name()).or_insert((view_span, "the view's init container has this name".to_owned()));
    for place in check.containers.clone() {
        if place.role == Role::Sidecar {
            one_name(check, &mut seen, place);
        }
    }
}

fn duplicates_in_services(check: &mut Check<'_>) {
    let mut seen = BTreeMap::new();
    for place in check.services.clone() {
        one_name(check, &mut seen, place);
    }
}

fn one_name<'a>(check: &mut Check<'_>, seen: &mut BTreeMap<&'a str, (Span, String)>, place: Place<'a>) {
    let Some(name) = place.name() else { return };
    if let Some((span, label)) = seen.get(name.value.as_str()) {
        let message = format!("container name `{}` is used twice in one pod", shown(&name.value));
        let diagnostic = Diagnostic::error(codes::DUPLICATE_NAME, name.span, message).help("rename this container");
        check.push(diagnostic.related(*span, label.clone()));
    } else {
        seen.insert(&name.value, (name.span, "first used here".to_owned()));
    }
}

/// The headless Service against the Services of sidecars.
fn service_names(check: &mut Check<'_>) {
    let headless = check.spec.network.as_ref().and_then(|network| text(&network.value.headless_name));
    let Some(headless) = headless else { return };
    for place in check.containers.clone() {
        let has_ports = place.container.ports.as_ref().is_some_and(|ports| !ports.value.is_empty());
        if let (Role::Sidecar, true, Some(name)) = (place.role, has_ports, place.name())
            && name.value == headless.value
        {
            let message =
                format!("sidecar `{}` has ports, so its Service would have the name of the headless one", name.value);
            let diagnostic = Diagnostic::error(codes::DUPLICATE_NAME, name.span, message);
            let diagnostic = diagnostic.help("rename the sidecar, or change `network.headlessName`");
            check.push(diagnostic.related(headless.span, "the headless Service is named here"));
        }
    }
}
