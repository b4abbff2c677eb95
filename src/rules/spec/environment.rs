//! Environment variables and keys of Secrets.

use super::check::{Check, Place, Role, shown, text};
use crate::diag::Diagnostic;
use crate::diag::codes::spec as codes;
use crate::rules::syntax;
use crate::spec::Spanned;

/// Set in every pod unless the container sets them: their names, and what the scripts take from them.
const COMPLETION_INDEX: (&str, &str) = ("JOB_COMPLETION_INDEX", "Flux's ranks come from it");
const HOST_NAME: (&str, &str) = ("HOSTNAME", "the leader is known by it");

pub(super) fn check(check: &mut Check<'_>) {
    for place in check.all_containers() {
        variables(check, place);
        secrets(check, place);
    }
    let environment = check.flux().and_then(|flux| flux.environment.as_ref());
    for entry in environment.iter().flat_map(|map| &map.value) {
        if check.form(codes::ENVIRONMENT_NAME, "variable of flux.environment", &entry.key, syntax::shell_name) {
            not_relied_on(check, &entry.key, &[COMPLETION_INDEX]);
        }
    }
}

fn variables(check: &mut Check<'_>, place: Place<'_>) {
    for entry in place.container.environment.iter().flat_map(|map| &map.value) {
        name(check, place, &entry.key);
        let secret = place.container.secrets.as_ref().and_then(|secrets| secrets.value.get(&entry.key.value));
        if let Some(secret) = secret {
            let message = format!("variable `{}` is also set from a Secret, which wins", shown(&entry.key.value));
            let diagnostic =
                Diagnostic::note(codes::ENVIRONMENT_TWICE, entry.key.span, message).help("remove one of them");
            check.push(diagnostic.related(secret.span, "the Secret"));
        }
    }
}

fn name(check: &mut Check<'_>, place: Place<'_>, key: &Spanned<String>) {
    if !check.form(codes::ENVIRONMENT_NAME, "environment variable", key, syntax::environment_name) {
        return;
    }
    // Web servers in sidecars and services take the address to listen on from HOSTNAME.
    match place.role {
        Role::Runner => not_relied_on(check, key, &[COMPLETION_INDEX, HOST_NAME]),
        Role::Sidecar => not_relied_on(check, key, &[COMPLETION_INDEX]),
        Role::Service => {}
    }
}

fn not_relied_on(check: &mut Check<'_>, key: &Spanned<String>, relied_on: &[(&str, &str)]) {
    if let Some((name, use_of_it)) = relied_on.iter().find(|(name, _)| *name == key.value) {
        let message = format!("environment variable `{name}` is set by Kubernetes, and {use_of_it}");
        check.error(codes::ENVIRONMENT_NAME, key.span, message, "rename the variable");
    }
}

fn secrets(check: &mut Check<'_>, place: Place<'_>) {
    for entry in place.container.secrets.iter().flat_map(|map| &map.value) {
        name(check, place, &entry.key);
        let variable = shown(&entry.key.value);
        let secret = &entry.value.value;
        for (field, written) in [("name", &secret.name), ("key", &secret.key)] {
            // Reading has reported one that is not written at all.
            if written.is_some() && text(written).is_none() {
                let message = format!("variable `{variable}` from a Secret has an empty `{field}`");
                check.error(
                    codes::SECRET_KEY,
                    entry.value.span,
                    message,
                    "write `name`: the Secret, and `key`: the key in it",
                );
            }
        }
        check.optional_form(codes::OBJECT_NAME, "Secret", &secret.name, syntax::dns1123_subdomain);
        check.optional_form(codes::SECRET_KEY, "key of a Secret", &secret.key, syntax::data_key);
    }
}
