//! Limits and requests of containers and pods.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity as Written;

use super::check::{Check, Path};
use crate::model::kubernetes::Feature;
use crate::object::quantity::Quantity;
use crate::rules::spec::{is_extended_resource, is_standard_resource};
use crate::rules::syntax;

type Amounts = BTreeMap<String, Quantity>;

/// Checks every amount of a list and returns those that are quantities.
fn amounts(check: &mut Check, at: &Path, list: Option<&BTreeMap<String, Written>>) -> Amounts {
    let mut good = Amounts::new();
    for (name, written) in list.into_iter().flatten() {
        let at = at.entry(name);
        check.form(&at, name, syntax::qualified_name);
        if !name.contains('/') && !is_standard_resource(name) {
            check.problem(&at, format!("`{name}` is no resource of containers and has no domain"));
        }
        if let Some(amount) = quantity(check, &at, written) {
            if is_extended_resource(name) && amount.as_integer().is_none() {
                check.problem(&at, format!("`{}` is not a whole number", written.0));
            }
            good.insert(name.clone(), amount);
        }
    }
    good
}

/// A quantity that is not negative.
pub(super) fn quantity(check: &mut Check, at: &Path, written: &Written) -> Option<Quantity> {
    match written.0.parse::<Quantity>() {
        Ok(amount) if amount.is_negative() => {
            check.problem(at, format!("`{}` is negative", written.0));
            None
        }
        Ok(amount) => Some(amount),
        Err(wrong) => {
            check.problem(at, format!("`{}` is no quantity: {wrong}", written.0));
            None
        }
    }
}

pub(super) fn container(check: &mut Check, at: &Path, resources: &ResourceRequirements) {
    let limits = amounts(check, &at.key("limits"), resources.limits.as_ref());
    let requests = amounts(check, &at.key("requests"), resources.requests.as_ref());
    let at = at.key("requests");
    for (name, amount) in &requests {
        let whole = is_extended_resource(name) || name.starts_with("hugepages-");
        match limits.get(name) {
            Some(limit) if whole && limit != amount => {
                check.problem(&at.entry(name), "must equal the limit");
            }
            Some(limit) if amount > limit => check.problem(&at.entry(name), "is above the limit"),
            None if whole => check.problem(&at.entry(name), "needs a limit"),
            _ => {}
        }
    }
    let mut names = limits.keys().chain(requests.keys());
    if names.clone().any(|name| name.starts_with("hugepages-")) && !names.any(|name| name == "cpu" || name == "memory")
    {
        check.problem(&at, "huge pages need cpu or memory beside them");
    }
}

/// Resources of the whole pod (KEP 2837).
pub(super) fn pod(check: &mut Check, at: &Path, pod: &PodSpec) {
    let Some(resources) = &pod.resources else { return };
    let own = at.key("resources");
    check.since(&own, Feature::PodLevelResources, true);
    let limits = amounts(check, &own.key("limits"), resources.limits.as_ref());
    let requests = amounts(check, &own.key("requests"), resources.requests.as_ref());
    for name in limits.keys().chain(requests.keys()) {
        if !matches!(name.as_str(), "cpu" | "memory") && !name.starts_with("hugepages-") {
            check.problem(&own, format!("a whole pod cannot have `{name}`"));
        }
    }
    for (name, amount) in &requests {
        if limits.get(name).is_some_and(|limit| amount > limit) {
            check.problem(&own.key("requests").entry(name), "is above the limit");
        }
        let needed = requested(pod, name);
        if *amount < needed {
            let message = "is less than the containers request together";
            check.problem(&own.key("requests").entry(name), message);
        }
    }
    for (name, limit) in &limits {
        if containers(pod).filter_map(|c| limit_of(c, name)).any(|of_container| of_container > *limit) {
            check.problem(&own.key("limits").entry(name), "is less than the limit of a container");
        }
    }
}

fn containers(pod: &PodSpec) -> impl Iterator<Item = &Container> {
    pod.containers.iter().chain(pod.init_containers.iter().flatten())
}

fn is_sidecar(container: &Container) -> bool {
    container.restart_policy.as_deref() == Some("Always")
}

fn limit_of(container: &Container, name: &str) -> Option<Quantity> {
    container.resources.as_ref()?.limits.as_ref()?.get(name)?.0.parse().ok()
}

/// A request defaults to the limit.
fn request_of(container: &Container, name: &str) -> Quantity {
    let written = container.resources.as_ref().and_then(|r| r.requests.as_ref()).and_then(|r| r.get(name));
    let parsed = written.and_then(|written| written.0.parse().ok());
    parsed.or_else(|| limit_of(container, name)).unwrap_or(Quantity::ZERO)
}

/// What the containers of a pod request together: all ordinary ones and sidecars at once, or one init container with the
/// sidecars before it, whichever is more (`PodRequests`).
#[must_use]
pub fn requested(pod: &PodSpec, name: &str) -> Quantity {
    let mut sidecars = Quantity::ZERO;
    let mut largest_init = Quantity::ZERO;
    for container in pod.init_containers.iter().flatten() {
        let own = request_of(container, name);
        if is_sidecar(container) {
            sidecars = sidecars.plus(own);
            largest_init = largest_init.max(sidecars);
        } else {
            largest_init = largest_init.max(sidecars.plus(own));
        }
    }
    pod.containers.iter().fold(sidecars, |sum, c| sum.plus(request_of(c, name))).max(largest_init)
}
