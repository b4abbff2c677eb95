//! Ports of containers.

use std::collections::BTreeMap;

use super::check::{Check, Place, Role};
use super::reserved::BROKER_PORT;
use crate::diag::codes::spec as codes;
use crate::diag::{Diagnostic, Span};

pub(super) fn check(check: &mut Check<'_>) {
    // The broker of the leader listens in every pod's network of the cluster, not in that of the services Pod.
    let broker = (check.cluster.spec.span, "the broker".to_owned());
    one_pod(check, &check.containers.clone(), BTreeMap::from([(BROKER_PORT, broker)]));
    one_pod(check, &check.services.clone(), BTreeMap::new());
}

fn one_pod(check: &mut Check<'_>, places: &[Place<'_>], mut taken: BTreeMap<i32, (Span, String)>) {
    for place in places {
        let Some(ports) = &place.container.ports else { continue };
        let mut own: BTreeMap<i32, Span> = BTreeMap::new();
        for port in &ports.value {
            if !(1..=65535).contains(&port.value) {
                let message = format!("port {} is not between 1 and 65535", port.value);
                check.error(codes::PORT_RANGE, port.span, message, "write the port that the program listens on");
                continue;
            }
            if let Some(first) = own.get(&port.value) {
                let message = format!("port {} is listed twice", port.value);
                let diagnostic = Diagnostic::error(codes::DUPLICATE_PORT, port.span, message).help("remove one");
                check.push(diagnostic.related(*first, "first listed here"));
                continue;
            }
            own.insert(port.value, port.span);
            if let Some((span, who)) = taken.get(&port.value) {
                let message = format!("port {} is already taken in the pod by {who}", port.value);
                let diagnostic = Diagnostic::warning(codes::PORT_TAKEN, port.span, message);
                let diagnostic = diagnostic.help("the containers of a pod share one network: use another port");
                // The broker's port is written nowhere.
                let diagnostic =
                    if *span == check.cluster.spec.span { diagnostic } else { diagnostic.related(*span, "here") };
                check.push(diagnostic);
            } else if place.role != Role::Runner || port.value != BROKER_PORT {
                taken.insert(port.value, (port.span, place.describe()));
            }
        }
    }
}
