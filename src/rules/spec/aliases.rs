//! Two spellings of one thing at once.

use super::check::{Check, Place, is_true, text};
use crate::diag::codes::spec as codes;
use crate::diag::{Diagnostic, Span};

pub(super) fn check(check: &mut Check<'_>) {
    if let Some(outer) = &check.spec.launcher {
        for place in check.containers.clone() {
            if let Some(inner) = &place.container.launcher {
                both(check, "launcher", inner.span, "spec.launcher", outer.span);
            }
        }
    }
    for place in check.all_containers() {
        container(check, place);
    }
    if let Some(flux) = check.flux() {
        let new = flux.bursting.as_ref().and_then(|bursting| bursting.value.lead_broker.as_ref());
        if let (Some(old), Some(new)) = (&flux.lead_broker, new) {
            both(check, "flux.leadBroker", old.span, "flux.bursting.leadBroker", new.span);
        }
        let list = flux.bursting.as_ref().and_then(|bursting| text(&bursting.value.hostlist));
        for lead in flux.lead_broker.iter().chain(new) {
            if let (Some(old), Some(list)) = (text(&lead.value.hostlist), list) {
                both(check, "leadBroker.hostlist", old.span, "bursting.hostlist", list.span);
            }
        }
    }
}

fn container(check: &mut Check<'_>, place: Place<'_>) {
    let container = place.container;
    if let (Some(new), Some(old)) = (&container.flux_user, &container.fluxuser) {
        both(check, "fluxuser", old.span, "fluxUser", new.span);
    }
    let Some(commands) = container.commands.as_ref().map(|commands| &commands.value) else { return };
    for (old_name, old, new_name, new) in [
        ("preBroker", &commands.pre_broker, "brokerPre", &commands.broker_pre),
        ("preWorker", &commands.pre_worker, "workerPre", &commands.worker_pre),
    ] {
        if let (Some(old), Some(new)) = (text(old), text(new)) {
            both(check, old_name, old.span, new_name, new.span);
        }
    }
    let user = container.flux_user.as_ref().or(container.fluxuser.as_ref());
    let root = commands.run_flux_as_root.as_ref().filter(|_| is_true(&commands.run_flux_as_root));
    if let (Some(root), Some(user)) = (root, user) {
        both(check, "commands.runFluxAsRoot: true", root.span, "fluxUser", user.span);
    }
}

fn both(check: &mut Check<'_>, name: &str, span: Span, other: &str, other_span: Span) {
    let message = format!("`{name}` and `{other}` are two fields for one thing");
    let diagnostic = Diagnostic::error(codes::TWO_SPELLINGS, span, message).help("keep one of them");
    check.push(diagnostic.related(other_span, format!("`{other}` is here")));
}
