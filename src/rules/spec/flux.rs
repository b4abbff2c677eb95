//! How Flux is started: durations, tree, policies, words, and fields that need the operator.

use super::check::{Check, is_true, shown, text};
use crate::diag::Diagnostic;
use crate::diag::codes::spec as codes;
use crate::flux::{FluxDuration, Topology};
use crate::spec::Spanned;
use crate::spec::minicluster::Flux;

pub(super) fn check(check: &mut Check<'_>) {
    for place in check.all_containers() {
        if let Some(prefix) = place.container.commands.as_ref().and_then(|c| text(&c.value.prefix)) {
            words(check, "prefix", prefix);
        }
    }
    let Some(flux) = check.flux() else { return };
    timeout(check, flux);
    topology(check, flux);
    submission(check, flux);
    check.one_of(codes::ARCHITECTURE, "architecture", &flux.arch, &["arm", "arm64", "amd64", "x86_64"]);
    if let Some(scheduler) = &flux.scheduler {
        let policies = &["fcfs", "easy", "hybrid", "conservative"];
        check.one_of(codes::QUEUE_POLICY, "queue policy", &scheduler.value.queue_policy, policies);
        if let (Some(policy), true) = (text(&scheduler.value.queue_policy), is_true(&scheduler.value.simple)) {
            let message = format!("queue policy `{}` has no effect on the simple scheduler", shown(&policy.value));
            check.warn(codes::NO_EFFECT, policy.span, message, "remove it, or `simple: true`");
        }
    }
    if let Some(secret) = text(&flux.munge_secret) {
        let message = "mungeSecret has no effect, in the Flux Operator neither";
        check.warn(
            codes::NO_CONTROLLER,
            secret.span,
            message,
            "remove it; brokers are authenticated by the CURVE certificate",
        );
    }
}

fn timeout(check: &mut Check<'_>, flux: &Flux) {
    let Some(written) = text(&flux.connect_timeout) else { return };
    if written.value.parse::<FluxDuration>().is_err() {
        let message = format!("connectTimeout `{}` is no duration", shown(&written.value));
        check.error(codes::DURATION, written.span, message, "write a number and ms, s, m, h or d, such as 5s");
    }
}

fn topology(check: &mut Check<'_>, flux: &Flux) {
    let Some(written) = text(&flux.topology) else { return };
    let topology: Topology = match written.value.parse() {
        Ok(topology) => topology,
        Err(wrong) => {
            let message = wrong.to_string();
            check.error(
                codes::TOPOLOGY,
                written.span,
                message,
                "leave it out for a flat tree, which suits a few hundred pods",
            );
            return;
        }
    };
    let Some(minimal) = flux.minimal_service.as_ref().filter(|flag| flag.value) else { return };
    let size = check.hosts();
    if (1..size).any(|rank| topology.parent(rank, size) != Some(0)) {
        let message =
            format!("minimalService makes only the leader reachable, but `{}` is no flat tree", shown(&written.value));
        let diagnostic = Diagnostic::error(codes::TOPOLOGY_AND_SERVICE, written.span, message);
        let diagnostic = diagnostic.help("leave out `topology`, or `minimalService`");
        check.push(diagnostic.related(minimal.span, "minimalService"));
    }
}

fn submission(check: &mut Check<'_>, flux: &Flux) {
    for (what, written) in [("optionFlags", &flux.option_flags), ("submitCommand", &flux.submit_command)] {
        if let Some(written) = text(written) {
            words(check, what, written);
        }
    }
    let removed = text(&flux.submit_command).filter(|command| {
        let mut words = command.value.split_whitespace();
        words.next() == Some("flux") && words.next() == Some("mini")
    });
    if let Some(command) = removed {
        let message = format!("submitCommand `{}`: flux-core has no `flux mini` since 0.59", shown(&command.value));
        check.warn(codes::OLD_FLUX_COMMAND, command.span, message, "write `flux submit`");
    }
    if let Some(wrap) = text(&flux.wrap)
        && wrap.value.split(',').any(|word| word.trim().is_empty())
    {
        let message = format!("wrap `{}` has an empty word between its commas", shown(&wrap.value));
        check.error(
            codes::WORDS,
            wrap.span,
            message,
            "write program and arguments with one comma between, such as strace,-f",
        );
    }
}

/// Splits as a shell does; only an open quote makes that impossible.
fn words(check: &mut Check<'_>, what: &str, written: &Spanned<String>) {
    if shlex::split(&written.value).is_none() {
        let message = format!("{what} `{}` has an open quote or ends with a backslash", shown(&written.value));
        check.error(codes::WORDS, written.span, message, "close the quote");
    }
}
