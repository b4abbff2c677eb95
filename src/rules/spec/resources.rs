//! Limits and requests.

use std::collections::BTreeMap;

use super::check::{Check, shown};
use crate::diag::Span;
use crate::diag::codes::model::NEEDS_NEWER_KUBERNETES;
use crate::diag::codes::spec as codes;
use crate::model::kubernetes::Feature;
use crate::object::quantity::Quantity;
use crate::rules::syntax;
use crate::spec::minicluster::{Container, Resources};
use crate::spec::{IntOrString, Map, Spanned};

pub(super) fn check(check: &mut Check<'_>) {
    for place in check.all_containers() {
        if let Some(resources) = &place.container.resources {
            container(check, &resources.value);
        }
    }
    if let Some(resources) = check.view().and_then(|view| view.resources.as_ref()) {
        container(check, &resources.value);
    }
    if let Some(resources) = check.spec.pod.as_ref().and_then(|pod| pod.value.resources.as_ref()) {
        pod(check, resources);
    }
}

type Amounts<'a> = BTreeMap<&'a str, (Quantity, Span, &'a IntOrString)>;

/// Checks every amount of a map and returns those that are quantities.
fn amounts<'a>(check: &mut Check<'_>, map: &'a Map<IntOrString>) -> Amounts<'a> {
    let mut good = Amounts::new();
    for entry in map {
        let name = entry.key.value.as_str();
        resource_name(check, &entry.key);
        let written = &entry.value;
        let amount = match &written.value {
            IntOrString::Int(number) => Ok(Quantity::from_integer(*number)),
            IntOrString::String(text) => text.parse::<Quantity>(),
        };
        match amount {
            // Reading has reported whatever else is no quantity; it lets fractions through that the API server's parser refuses.
            Err(wrong) if written.value.to_string().contains(['e', 'E']) => {
                let message =
                    format!("{} `{}` is no quantity: {wrong}", shown(name), shown(&written.value.to_string()));
                check.error(
                    codes::QUANTITY,
                    written.span,
                    message,
                    "write a number and a unit, such as `500m`, `4`, `8Gi`",
                );
            }
            Err(_) => {}
            Ok(amount) if amount.is_negative() => {
                let message = format!("{} `{}` is negative", shown(name), written.value);
                check.error(codes::QUANTITY, written.span, message, "write 0 or more");
            }
            Ok(amount) => {
                let bytes = name == "memory" || name == "ephemeral-storage" || name.starts_with("hugepages-");
                if bytes && amount.as_integer().is_none() {
                    let message = format!("{} `{}` is not a whole number of bytes", shown(name), written.value);
                    check.warn(
                        codes::FRACTIONAL_BYTES,
                        written.span,
                        message,
                        "mega is `M`, mebi is `Mi`; `m` is a thousandth",
                    );
                }
                good.insert(name, (amount, written.span, &written.value));
            }
        }
    }
    good
}

/// Whether a container can have this resource without a domain in its name.
#[must_use]
pub fn is_standard_resource(name: &str) -> bool {
    matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-")
}

/// Whether the resource is one of devices: a name with a domain that is not Kubernetes' own (extended resource).
#[must_use]
pub fn is_extended_resource(name: &str) -> bool {
    name.split_once('/').is_some_and(|(domain, _)| domain != "kubernetes.io" && !domain.ends_with(".kubernetes.io"))
}

fn resource_name(check: &mut Check<'_>, key: &Spanned<String>) {
    if !check.form(codes::RESOURCE_NAME, "resource", key, syntax::qualified_name) || is_standard_resource(&key.value) {
        return;
    }
    let wrong = match key.value.split_once('/') {
        None => "it is no resource of containers and has no domain",
        Some((domain, _)) if domain.starts_with("requests.") => "`requests.` belongs to quotas",
        Some(_) => return,
    };
    let message = format!("resource `{}`: {wrong}", shown(&key.value));
    let help = "use cpu, memory, ephemeral-storage, hugepages-<size>, or a device such as nvidia.com/gpu";
    check.error(codes::RESOURCE_NAME, key.span, message, help);
}

fn container(check: &mut Check<'_>, resources: &Resources) {
    let limits = resources.limits.as_ref().map(|map| amounts(check, &map.value)).unwrap_or_default();
    let requests = resources.requests.as_ref().map(|map| amounts(check, &map.value)).unwrap_or_default();
    for (name, (amount, span, written)) in limits.iter().chain(&requests) {
        if is_extended_resource(name) && amount.as_integer().is_none() {
            let message = format!("{name} `{written}` is not a whole number");
            check.error(codes::WHOLE_DEVICES, *span, message, "devices count in whole units");
        }
    }
    for (name, (amount, span, written)) in &requests {
        let whole = is_extended_resource(name) || name.starts_with("hugepages-");
        match limits.get(name) {
            Some((limit, _, limit_written)) if whole && limit != amount => {
                let message = format!("{name}: request `{written}` differs from limit `{limit_written}`");
                check.error(codes::WHOLE_DEVICES, *span, message, "leave the request out; the limit counts");
            }
            Some((limit, _, limit_written)) if amount > limit => {
                let message = format!("{name}: request `{written}` is above limit `{limit_written}`");
                check.error(codes::REQUEST_ABOVE_LIMIT, *span, message, "lower the request or raise the limit");
            }
            None if whole => {
                let message = format!("{name} has a request and no limit");
                check.error(codes::WHOLE_DEVICES, *span, message, "write it under `limits`");
            }
            _ => {}
        }
    }
    let all = || limits.iter().chain(&requests);
    let huge = all().find(|(name, _)| name.starts_with("hugepages-"));
    if let (Some((name, (_, span, _))), false) = (huge, all().any(|(name, _)| matches!(*name, "cpu" | "memory"))) {
        let message = format!("{name} without cpu or memory");
        check.error(codes::HUGE_PAGES, *span, message, "add a limit or request of cpu or memory");
    }
}

/// What a container requests; a request defaults to the limit.
fn requested(container: &Container, name: &str) -> Quantity {
    let Some(resources) = &container.resources else { return Quantity::ZERO };
    let amount = |map: &Option<Spanned<Map<IntOrString>>>| {
        map.as_ref().and_then(|map| map.value.get(name)).and_then(|amount| amount.value.to_string().parse().ok())
    };
    amount(&resources.value.requests).or_else(|| amount(&resources.value.limits)).unwrap_or(Quantity::ZERO)
}

fn pod(check: &mut Check<'_>, written: &Spanned<Map<IntOrString>>) {
    let found = amounts(check, &written.value);
    let target = check.context.kubernetes;
    if !written.value.0.is_empty() && !target.has(Feature::PodLevelResources) {
        let message = format!("`pod.resources` needs pod-level resources, which Kubernetes {target} has not");
        check.error(NEEDS_NEWER_KUBERNETES, written.span, message, Feature::PodLevelResources.help());
    }
    for (name, (_, span, _)) in &found {
        if !matches!(*name, "cpu" | "memory") && !name.starts_with("hugepages-") {
            let message = format!("a whole pod cannot have `{name}`");
            check.error(codes::POD_RESOURCES, *span, message, "move it to a container's `resources`");
        }
    }
    for (name, (amount, span, written)) in &found {
        let together =
            check.containers.iter().fold(Quantity::ZERO, |sum, place| sum.plus(requested(place.container, name)));
        if *amount < together {
            let message = format!("{name} `{written}` of the pod is less than its containers request together");
            check.error(codes::POD_RESOURCES, *span, message, "raise it, or leave it out");
        }
    }
}
