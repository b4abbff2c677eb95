//! Whether the user's own broker configuration names files and hosts that the pods have.
//!
//! Warnings only: a volume, a hook or a patch may put a file anywhere, and a network may know other names.

use serde::Deserialize;
use toml::Spanned as Place;

use super::check::{Check, text};
use super::{BROKER_CERTIFICATE, broker};
use crate::diag::codes::spec as codes;
use crate::diag::{Code, Diagnostic};
use crate::model::BROKER_RESOURCES;
use crate::rules::syntax;
use crate::spec::Spanned;

/// The parts of a configuration that are looked at here; wrong ones are reported by the check of the whole.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Written {
    bootstrap: Bootstrap,
    resource: Resource,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Bootstrap {
    curve_cert: Option<Place<String>>,
    default_connect: Option<Place<String>>,
    hosts: Vec<Host>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resource {
    path: Option<Place<String>>,
}

#[derive(Deserialize)]
struct Host {
    host: String,
    connect: Option<Place<String>>,
}

pub(super) fn check(check: &mut Check<'_>) {
    let Some(config) = check.flux().and_then(|flux| text(&flux.broker_config)) else { return };
    let Ok(written) = toml::from_str::<Written>(&config.value) else { return };
    for (path, what, ours) in [
        (&written.bootstrap.curve_cert, "certificate", BROKER_CERTIFICATE),
        (&written.resource.path, "R", BROKER_RESOURCES),
    ] {
        if let Some(path) = path {
            file(check, config, path, what, ours);
        }
    }
    connects(check, config, &written.bootstrap);
}

/// Below the view's mount path is nothing but the view and what the bundle puts there.
fn file(check: &mut Check<'_>, config: &Spanned<String>, path: &Place<String>, what: &str, ours: &str) {
    let mount = syntax::clean_path(check.mount_path());
    let (written, ours) = (syntax::clean_path(path.get_ref()), format!("{mount}/{ours}"));
    let inside = written.strip_prefix(&mount).is_some_and(|rest| rest.starts_with('/'));
    if inside && written != ours {
        let message = format!("brokerConfig: the bundle puts no {what} at `{written}`");
        warn(check, config, path, codes::BROKER_CONFIG, message, format!("write {ours:?}"));
    }
}

/// A pod is found by its name and the headless Service's, which is its subdomain.
fn connects(check: &mut Check<'_>, config: &Spanned<String>, bootstrap: &Bootstrap) {
    let named = check.spec.network.as_ref().and_then(|network| text(&network.value.headless_name));
    let headless = named.map_or(check.name(), |name| name.value.as_str());
    // With a suffix only the model knows the name.
    if check.context.name_suffix != 0 || headless.is_empty() {
        return;
    }
    let own = format!("{}-", check.name());
    let entries = bootstrap.hosts.iter().filter(|entry| entry.host.starts_with(&own));
    let connects = entries.filter_map(|entry| entry.connect.as_ref());
    for connect in bootstrap.default_connect.iter().chain(connects) {
        let Some(host) = host_of(connect.get_ref()) else { continue };
        let (name, rest) = host.split_once('.').unwrap_or((host, ""));
        if !(name == "%h" || name.starts_with(&own)) || rest.split('.').next() == Some(headless) {
            continue;
        }
        let message = format!("brokerConfig: `{host}` is no name of a pod: the Service that knows it is `{headless}`");
        let mended = format!("write `{name}.{headless}`");
        warn(check, config, connect, codes::BROKER_HOSTS, message, mended);
    }
}

/// The host of `tcp://HOST:PORT`.
fn host_of(uri: &str) -> Option<&str> {
    let rest = uri.strip_prefix("tcp://")?;
    Some(rest.rsplit_once(':').map_or(rest, |(host, _)| host))
}

fn warn(
    check: &mut Check<'_>,
    config: &Spanned<String>,
    at: &Place<String>,
    code: Code,
    message: String,
    help: String,
) {
    let span = broker::place(config, at.span().start, at.span().len()).unwrap_or(config.span);
    check.push(Diagnostic::warning(code, span, message).help(help));
}
