//! `images.mirror` of the project file in `build`, `check`, `diff` and `validate`: references behind the gap.

use std::collections::BTreeSet;

use super::images::span_of_image;
use super::pipeline::Inputs;
use crate::airgap::lock::Lock;
use crate::airgap::mirror::Mirror;
use crate::airgap::rewrite::{Found, Outside, Rewriter};
use crate::bundle::survey::Scope;
use crate::compile::CompiledCluster;
use crate::diag::codes::airgap as codes;
use crate::diag::{Diagnostic, Diagnostics, Span};
use crate::spec::Project;

/// The rewriter of a project, if its file has a mirror. Mistakes in the rules go to the diagnostics.
pub(crate) fn of_project(
    project: Option<&Project>,
    lock: Option<&Lock>,
    diagnostics: &mut Diagnostics,
) -> Option<Rewriter> {
    let written = project?.images.as_ref()?.value.mirror.as_ref()?;
    Some(Rewriter::new(Mirror::of_project(&written.value, diagnostics), lock))
}

/// Rewrites what was compiled, and the documents beside it. Their names were looked up in the lock before, so that what is
/// written is named by digest and names of runs do not depend on the mirror.
pub(crate) fn rewrite(clusters: &mut [CompiledCluster], inputs: &mut Inputs) -> Diagnostics {
    let Some(rewriter) = inputs.mirror.take() else { return Diagnostics::new() };
    let mut problems = Diagnostics::new();
    let mut used = BTreeSet::new();
    for cluster in clusters.iter_mut() {
        let mut found = Found::default();
        for object in &mut cluster.objects {
            rewriter.object(object, &mut found);
        }
        used.extend(found.used);
        let mut told = BTreeSet::new();
        for outside in found.outside.iter().filter(|outside| told.insert(outside.name.clone())) {
            let span = span_of_image(inputs, cluster.span, &outside.name);
            problems.push(stays_outside(outside, span, inputs.locked));
        }
    }
    let pins = &inputs.documents.images;
    for companion in &mut inputs.documents.companions {
        let mut found = Found::default();
        crate::object::images::visit_value(&mut companion.value, &mut |_, name| pins.get(name).cloned());
        rewriter.value(&mut companion.value, &mut found);
        used.extend(found.used);
        for outside in &found.outside {
            let pointer = format!("/{}", outside.path.replace(['.', '['], "/").replace(']', ""));
            problems.push(stays_outside(outside, companion.place(&pointer), inputs.locked));
        }
    }
    if inputs.scope == Scope::Whole && !inputs.diagnostics.has_errors() {
        problems.extend(unused(&rewriter, &used));
    }
    inputs.mirror = Some(rewriter);
    problems
}

fn stays_outside(outside: &Outside, span: Span, locked: bool) -> Diagnostic {
    let message = format!("no rule of `images.mirror` is for the image {} ({})", outside.name, outside.path);
    let made = match locked {
        true => Diagnostic::error(codes::MIRROR_OUTSIDE, span, message),
        false => Diagnostic::warning(codes::MIRROR_OUTSIDE, span, message),
    };
    made.help("add one, or one without `from`, which is for all the rest")
}

fn unused(rewriter: &Rewriter, used: &BTreeSet<usize>) -> Diagnostics {
    let rules = rewriter.mirror().rules().iter().enumerate();
    let idle = rules.filter(|(number, rule)| !used.contains(number) && rule.from.as_ref() != Some(&rule.to));
    idle.filter_map(|(_, rule)| {
        let (from, span) = (rule.from.as_ref()?, rule.span?);
        let message = format!("no image begins with {from}");
        Some(Diagnostic::warning(codes::MIRROR_UNUSED, span, message).help("correct the rule, or remove it"))
    })
    .collect()
}
