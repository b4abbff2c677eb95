//! A container's environment, in the kubelet's order: Services, `envFrom`, `env`.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use crate::context::{Context, Pod};
use crate::spec::expand::expand;
use crate::spec::{Container, EnvVar, KeyRef};

/// Why the environment cannot be made; the container then waits with `CreateContainerConfigError`.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct EnvError(String);

/// Variables by name.
pub type Env = BTreeMap<String, String>;

/// The variables of one container, without those of its image.
///
/// # Errors
/// A ConfigMap, Secret or key that is not optional does not exist, or a field is unknown.
pub fn build(ctx: &Context, pod: &Pod, container: &Container, ip: Ipv4Addr) -> Result<Env, EnvError> {
    let mut env = Env::new();
    if pod.spec.enable_service_links.unwrap_or(true) {
        for (name, ip) in ctx.zone.cluster_ips(&pod.meta.namespace) {
            env.insert(format!("{}_SERVICE_HOST", shout(&name)), ip.to_string());
        }
    }
    // The API server's own Service is in every pod's environment.
    for (name, ip) in ctx.zone.cluster_ips("default").into_iter().filter(|(n, _)| n == "kubernetes") {
        env.insert(format!("{}_SERVICE_HOST", shout(&name)), ip.to_string());
        env.insert(format!("{}_SERVICE_PORT", shout(&name)), "443".to_owned());
    }
    for from in &container.env_from {
        for (kind, reference) in [("configmaps", &from.config_map_ref), ("secrets", &from.secret_ref)] {
            let Some(r) = reference else { continue };
            match lookup(ctx, kind, pod, &r.name)? {
                Some(map) => {
                    for (key, value) in map {
                        env.insert(format!("{}{key}", from.prefix), text(&value));
                    }
                }
                None if r.optional => {}
                None => return Err(missing(kind, &r.name)),
            }
        }
    }
    for var in &container.env {
        if let Some(value) = value_of(ctx, pod, var, ip, &env)? {
            env.insert(var.name.clone(), value);
        }
    }
    Ok(env)
}

fn value_of(ctx: &Context, pod: &Pod, var: &EnvVar, ip: Ipv4Addr, env: &Env) -> Result<Option<String>, EnvError> {
    let Some(from) = &var.value_from else {
        return Ok(Some(expand(&var.value, |name| env.get(name).cloned())));
    };
    if let Some(field) = &from.field_ref {
        return pod
            .field(field, &ctx.options.node, ip, ctx.net.gateway())
            .map(Some)
            .ok_or_else(|| EnvError(format!("env {}: podlet does not know the field {}", var.name, field.field_path)));
    }
    let keys = [("configmaps", &from.config_map_key_ref), ("secrets", &from.secret_key_ref)];
    match keys.into_iter().find_map(|(kind, key)| key.as_ref().map(|k| (kind, k))) {
        Some((kind, key)) => key_value(ctx, pod, kind, key),
        None => Err(EnvError(format!("env {}: valueFrom has no source", var.name))),
    }
}

fn key_value(ctx: &Context, pod: &Pod, kind: &str, key: &KeyRef) -> Result<Option<String>, EnvError> {
    match lookup(ctx, kind, pod, &key.name)? {
        Some(map) => match map.get(&key.key) {
            Some(value) => Ok(Some(text(value))),
            None if key.optional => Ok(None),
            None => Err(EnvError(format!("couldn't find key {} in {kind} {}", key.key, key.name))),
        },
        None if key.optional => Ok(None),
        None => Err(missing(kind, &key.name)),
    }
}

fn lookup(ctx: &Context, kind: &str, pod: &Pod, name: &str) -> Result<Option<BTreeMap<String, Vec<u8>>>, EnvError> {
    ctx.map(kind, &pod.meta.namespace, name).map_err(|e| EnvError(format!("{kind} {name}: {e}")))
}

fn missing(kind: &str, name: &str) -> EnvError {
    EnvError(format!("{kind} {name:?} not found"))
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).into_owned()
}

fn shout(name: &str) -> String {
    name.to_ascii_uppercase().replace('-', "_")
}
