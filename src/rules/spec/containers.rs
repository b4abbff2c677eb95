//! Which container runs Flux, what each runs, and fields that have no effect where they stand.

use super::check::{Check, Place, Role, is_true, shown, text};
use crate::diag::codes::spec as codes;
use crate::diag::{Diagnostic, Span};
use crate::model::kubernetes::Feature;
use crate::spec::Spanned;
use crate::spec::minicluster::Commands;

pub(super) fn check(check: &mut Check<'_>) {
    exactly_one_runner(check);
    for place in check.all_containers() {
        modes(check, place);
        pull(check, place);
        match place.role {
            Role::Runner => runner(check, place),
            Role::Sidecar | Role::Service => beside(check, place),
        }
        if place.role == Role::Service {
            service_hooks(check, place);
        }
    }
    sidecars_without_flux(check);
    sidecars_that_run_on(check);
}

fn exactly_one_runner(check: &mut Check<'_>) {
    let says_so = |place: &&Place<'_>| is_true(&place.container.run_flux) || check.containers.len() == 1;
    let runners: Vec<Place<'_>> = check.containers.iter().filter(says_so).copied().collect();
    match (check.containers.len(), runners.as_slice()) {
        (_, [_]) => {}
        (0, _) => {
            // Reading has reported a list that is not written at all.
            let Some(list) = &check.spec.containers else { return };
            check.error(
                codes::RUN_FLUX,
                list.span,
                "the cluster has no containers",
                "add one container under `containers`",
            );
        }
        (count, []) => {
            let span = check.spec.containers.as_ref().map_or(check.cluster.spec.span, |list| list.span);
            let message = format!("none of the {count} containers runs Flux");
            check.error(codes::RUN_FLUX, span, message, "add `runFlux: true` to one of them");
        }
        (_, [first, more @ ..]) => {
            let flag = |place: &Place<'_>| place.container.run_flux.as_ref().map_or(place.span, |flag| flag.span);
            for place in more {
                let message = "a second container runs Flux";
                let diagnostic = Diagnostic::error(codes::RUN_FLUX, flag(place), message)
                    .help("leave `runFlux: true` on one container only")
                    .related(flag(first), "the first is here");
                check.push(diagnostic);
            }
        }
    }
}

fn commands<'a>(place: Place<'a>) -> Option<&'a Commands> {
    place.container.commands.as_ref().map(|commands| &commands.value)
}

fn script<'a>(place: Place<'a>) -> Option<&'a Spanned<String>> {
    commands(place).and_then(|commands| text(&commands.script))
}

/// Combinations that contradict each other in any container of the cluster.
fn modes(check: &mut Check<'_>, place: Place<'_>) {
    let container = place.container;
    let (launcher, batch) = (is_true(&container.launcher), is_true(&container.batch));
    if let (true, true, Some(flag)) = (launcher, batch, &container.batch)
        && place.role != Role::Service
    {
        let message = "launcher and batch are both true";
        let help = "keep `launcher` if the command submits its own jobs, `batch` if each line is a job";
        check.error(codes::LAUNCHER_AND_BATCH, flag.span, message, help);
    }
    if let (Some(command), Some(script)) = (text(&container.command), script(place)) {
        let message = "both `command` and `commands.script` say what to run";
        let diagnostic = if place.role == Role::Runner {
            Diagnostic::error(codes::COMMAND_AND_SCRIPT, script.span, message).help("keep one of them")
        } else {
            let help = "the command is run and the script is not: keep one of them";
            Diagnostic::warning(codes::COMMAND_AND_SCRIPT, script.span, message).help(help)
        };
        check.push(diagnostic.related(command.span, "the command"));
    }
}

/// What an interactive broker, which starts no program, leaves out; and a prefix with nothing to stand before.
fn left_out(check: &mut Check<'_>, place: Place<'_>) {
    let container = place.container;
    if is_true(&container.diagnostics) {
        return;
    }
    let program = text(&container.command).or(script(place));
    let interactive = check.spec.interactive.as_ref().filter(|flag| flag.value);
    if let (Some(program), Some(interactive)) = (program, interactive) {
        let message = "an interactive cluster waits for people and does not run this";
        let diagnostic = Diagnostic::warning(codes::NO_EFFECT, program.span, message)
            .help("to run it, take `interactive: true` out");
        check.push(diagnostic.related(interactive.span, "interactive here"));
    }
    let prefix = commands(place).and_then(|commands| text(&commands.prefix));
    if let Some(prefix) = prefix.filter(|_| program.is_none() || interactive.is_some()) {
        let message = "prefix has no effect: it stands before the command, and none is run";
        check.warn(codes::NO_EFFECT, prefix.span, message, "remove it; `flux.wrap` stands before the broker");
    }
}

fn runner(check: &mut Check<'_>, place: Place<'_>) {
    left_out(check, place);
    let container = place.container;
    let batch = is_true(&container.batch);
    if let (true, Some(flag)) = (batch, &container.batch) {
        let command = text(&container.command).filter(|command| !command.value.trim().is_empty());
        if command.is_none() {
            let message = if script(place).is_some() {
                "batch without a command: the script is no batch"
            } else {
                "batch without a command"
            };
            let help =
                "put one job per line into `command`, or a whole script with `batchRaw: true`; or remove `batch`";
            check.error(codes::BATCH_WITHOUT_COMMAND, flag.span, message, help);
        }
    } else {
        if let Some(flag) = container.batch_raw.as_ref().filter(|flag| flag.value) {
            let help = "add `batch: true`, or remove `batchRaw`";
            check.warn(codes::BATCH_RAW_ALONE, flag.span, "batchRaw has no effect without batch", help);
        }
        if let Some(logs) = text(&container.logs) {
            let message = format!("logs `{}` has no effect without batch", shown(&logs.value));
            check.warn(codes::NO_EFFECT, logs.span, message, "remove it; job output goes to the leader's log");
        }
    }
    if let Some(flag) = container.no_wrap_entrypoint.as_ref().filter(|flag| flag.value) {
        let message = "noWrapEntrypoint has no effect on the container that runs Flux";
        check.warn(codes::NO_EFFECT, flag.span, message, "remove it");
    }
    if let Some(flag) = container.run_flux.as_ref().filter(|flag| !flag.value) {
        let message = "the only container runs Flux, whatever `runFlux` says";
        check.push(Diagnostic::note(codes::NO_EFFECT, flag.span, message));
    }
    if let Some(hook) = commands(place).and_then(|commands| text(&commands.service_pre)) {
        let message = "servicePre only runs in containers that do not run Flux";
        check.warn(codes::NO_EFFECT, hook.span, message, "use `pre` here");
    }
}

/// Fields of the runner on containers beside it.
fn beside(check: &mut Check<'_>, place: Place<'_>) {
    let container = place.container;
    let flag = |written: &Option<Spanned<bool>>| written.as_ref().filter(|flag| flag.value).map(|flag| flag.span);
    let mut idle: Vec<(&str, Option<Span>)> = vec![
        ("launcher", flag(&container.launcher)),
        ("batch", flag(&container.batch)),
        ("batchRaw", flag(&container.batch_raw)),
        ("diagnostics", flag(&container.diagnostics)),
        ("logs", text(&container.logs).map(|logs| logs.span)),
        ("cores", container.cores.as_ref().filter(|cores| cores.value != 0).map(|cores| cores.span)),
        ("fluxUser", container.flux_user.as_ref().or(container.fluxuser.as_ref()).map(|user| user.span)),
        ("commands.runFluxAsRoot", commands(place).and_then(|c| c.run_flux_as_root.as_ref()).map(|root| root.span)),
    ];
    if place.role == Role::Service {
        idle.push(("runFlux", flag(&container.run_flux)));
    }
    for (field, span) in idle {
        if let Some(span) = span {
            let message = format!("{field} has no effect: {} does not run Flux", place.describe());
            check.warn(codes::NO_EFFECT, span, message, "remove it, or move it to the container that runs Flux");
        }
    }
    let Some(keeps) = flag(&container.no_wrap_entrypoint) else { return };
    let hooks = commands(place).into_iter().flat_map(|c| {
        [&c.init, &c.pre, &c.broker_pre, &c.worker_pre, &c.service_pre, &c.prefix, &c.script, &c.post].map(text)
    });
    // A command still replaces the image's own, as `command` of a container does.
    for written in hooks.flatten() {
        let message = "noWrapEntrypoint leaves out flux-gen's script, so this is not run";
        let diagnostic = Diagnostic::warning(codes::NO_EFFECT, written.span, message);
        check.push(diagnostic.help("remove one of the two").related(keeps, "the script is left out here"));
    }
}

fn service_hooks(check: &mut Check<'_>, place: Place<'_>) {
    let Some(commands) = commands(place) else { return };
    for (field, written) in [
        ("pre", &commands.pre),
        ("brokerPre", &commands.broker_pre),
        ("workerPre", &commands.worker_pre),
        ("preBroker", &commands.pre_broker),
        ("preWorker", &commands.pre_worker),
    ] {
        if let Some(written) = text(written) {
            let message = format!("{} cannot have `commands.{field}`", place.describe());
            check.error(codes::SERVICE_HOOK, written.span, message, "use `commands.servicePre` or `commands.init`");
        }
    }
}

fn pull(check: &mut Check<'_>, place: Place<'_>) {
    const POLICIES: &[&str] = &["Always", "IfNotPresent", "Never"];
    let container = place.container;
    check.one_of(codes::UNSUPPORTED_VALUE, "imagePullPolicy", &container.image_pull_policy, POLICIES);
    let policy = text(&container.image_pull_policy).filter(|policy| policy.value != "Always");
    if let (true, Some(policy)) = (is_true(&container.pull_always), policy) {
        let message = format!("imagePullPolicy `{}` has no effect: pullAlways wins", shown(&policy.value));
        check.warn(codes::NO_EFFECT, policy.span, message, "remove one of the two");
    }
}

/// Before native sidecars the Job waits for every container to end.
fn sidecars_that_run_on(check: &mut Check<'_>) {
    let target = check.context.kubernetes;
    if target.has(Feature::NativeSidecars) {
        return;
    }
    for place in check.containers.clone() {
        let has_ports = place.container.ports.as_ref().is_some_and(|ports| !ports.value.is_empty());
        let has_work = text(&place.container.command).is_some() || script(place).is_some();
        if place.role == Role::Sidecar && (has_ports || !has_work) {
            let message = format!("{} keeps the Job running if it does not end by itself", place.describe());
            let newer = Feature::NativeSidecars.help();
            let help = format!("Kubernetes {target} has no native sidecars: end it, or {newer}");
            check.warn(codes::SIDECAR_RUNS_ON, place.span, message, help);
        }
    }
}

fn sidecars_without_flux(check: &mut Check<'_>) {
    let socket = !check.flux().is_some_and(|flux| is_true(&flux.disable_socket));
    if !check.view_disabled() || !socket {
        return;
    }
    for place in check.containers.clone() {
        if place.role == Role::Sidecar && !is_true(&place.container.no_wrap_entrypoint) {
            let message = format!("the view is disabled, so {} has Flux only if its image has", place.describe());
            let help =
                "use an image with Flux if it talks to the broker; `flux.disableSocket: true` says that none does";
            check.warn(codes::SIDECAR_WITHOUT_FLUX, place.span, message, help);
        }
    }
}
