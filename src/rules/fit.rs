//! Whether the view of a cluster can run in the application's image, as far as `images.lock` knows what both have.

use std::collections::BTreeMap;

use crate::diag::codes::airgap as codes;
use crate::diag::{Diagnostic, Diagnostics, Span};
use crate::model::fit::{ViewFacts, misfits};
use crate::model::{Cluster, ViewKind};
use crate::spec::pins::{LockedFacts, ViewPins};

/// Compares what is known. Where every platform of the application's image is in the way, no pod can start: an error. Where
/// only some are, it depends on the nodes: a warning.
#[must_use]
pub fn check(cluster: &Cluster, facts: &LockedFacts, views: &ViewPins, span: Span) -> Diagnostics {
    let mut found = Diagnostics::new();
    let name = cluster.runner.container.image.as_deref().unwrap_or_default();
    let (Some(image), false) = (facts.get(name), cluster.view.kind == ViewKind::Disabled) else { return found };
    let needs = needs(&cluster.view.image, facts, views);
    let images: Vec<_> = image.iter().filter_map(|(platform, known)| Some((platform, known.image.as_ref()?))).collect();
    if needs.is_empty() || images.is_empty() {
        return found;
    }
    let mut wrong = Vec::new();
    for (platform, image) in &images {
        match needs.iter().find(|view| view.architecture == image.architecture) {
            Some(view) => {
                let why = misfits(view, image);
                if !why.is_empty() {
                    wrong.push(format!("{platform}: {}", why.join(", ")));
                }
            }
            None => wrong.push(format!("{platform}: the view has no image for it")),
        }
    }
    if wrong.is_empty() {
        return found;
    }
    let message = format!("the view {} does not run in {name} ({})", cluster.view.image, wrong.join("; "));
    let made = match wrong.len() == images.len() {
        true => Diagnostic::error(codes::VIEW_MISFIT, span, message),
        false => Diagnostic::warning(codes::VIEW_MISFIT, span, message),
    };
    found.push(made.help("`flux-gen view match IMAGE` tells which views of the project run in it"));
    found
}

/// What a view needs, one for each platform: from the record of its push, else from what the lock read of its labels.
fn needs(view: &str, facts: &LockedFacts, views: &ViewPins) -> Vec<ViewFacts> {
    let pinned = views.values().flatten().find(|pin| pin.reference() == view);
    if let Some(pin) = pinned {
        return pin.platforms.values().map(|platform| platform.facts.clone()).collect();
    }
    let known = facts.get(view).map(BTreeMap::values).into_iter().flatten();
    known.filter_map(|known| known.view.clone()).collect()
}
