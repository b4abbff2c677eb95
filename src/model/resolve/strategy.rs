//! Which strategy a cluster has, and what has to be said about it.

use super::Size;
use super::written::text;
use crate::diag::codes::spec::NO_CONTROLLER;
use crate::diag::codes::strategy as codes;
use crate::diag::{Diagnostic, Diagnostics, Span};
use crate::model::Program;
use crate::model::rollout::{GitOps, JobStrategy, Rollout};
use crate::model::settings::{Settings, Strategy};
use crate::spec::{MiniCluster, Spanned};

/// The strategy, unless it depends on the cluster.
pub(super) fn chosen(settings: &Settings) -> Option<JobStrategy> {
    match settings.strategy {
        Strategy::Auto => None,
        Strategy::Chosen(strategy) => Some(strategy),
    }
}

/// Resolves the strategy, and reports what cannot be and what a user may not expect.
pub(super) fn rollout(
    spec: &MiniCluster,
    program: &Program,
    size: Size,
    settings: &Settings,
    diagnostics: &mut Diagnostics,
) -> Rollout {
    let unending = matches!(program, Program::Shell | Program::None | Program::Diagnostics);
    let auto = if unending { JobStrategy::Service } else { JobStrategy::Stable };
    let rollout = Rollout {
        strategy: chosen(settings).unwrap_or(auto),
        gitops: settings.gitops,
        keep_old: settings.keep_old,
        unending,
    };
    let span = name_span(spec);
    match rollout.strategy {
        JobStrategy::Hook => hook(&rollout, span, diagnostics),
        JobStrategy::RunOnce => names_written_by_hand(spec, diagnostics),
        _ => {}
    }
    notes(&rollout, size, span, diagnostics);
    cleanup(spec, &rollout, diagnostics);
    rollout
}

/// Hooks are Argo CD's, and a sync waits for them.
fn hook(rollout: &Rollout, span: Span, diagnostics: &mut Diagnostics) {
    if !rollout.gitops.argo_cd() {
        let message =
            format!("`strategy: hook` needs Argo CD, and the setting `gitops` is `{}`", rollout.gitops.word());
        diagnostics.push(
            Diagnostic::error(codes::HOOK_NEEDS_ARGO_CD, span, message)
                .help("set `gitops: argocd`, or use `strategy: recreate`, which Flux CD knows too"),
        );
    }
    if rollout.unending {
        let message = "`strategy: hook` for a cluster that never ends by itself: the sync would wait for it for ever";
        diagnostics.push(
            Diagnostic::error(codes::HOOK_NEVER_ENDS, span, message)
                .help("use `strategy: service`, or give the cluster a command that ends"),
        );
    }
}

/// Hosts that somebody wrote down cannot have the suffix, which follows from the whole spec.
fn names_written_by_hand(spec: &MiniCluster, diagnostics: &mut Diagnostics) {
    let Some(flux) = spec.spec.flux.as_ref() else { return };
    let bursting = flux.bursting.as_ref();
    let clusters = bursting.and_then(|b| b.clusters.as_ref()).filter(|list| !list.value.is_empty());
    let config = flux.broker_config.as_ref().filter(|config| has_bootstrap(&config.value));
    let places = [
        ("flux.bursting.clusters", clusters.map(|c| c.span)),
        ("flux.bursting.hostlist", bursting.and_then(|b| written(&b.hostlist))),
        ("flux.bursting.leadBroker", bursting.and_then(|b| b.lead_broker.as_ref()).map(|lead| lead.span)),
        ("flux.leadBroker", flux.lead_broker.as_ref().map(|lead| lead.span)),
        ("flux.brokerConfig", config.map(|c| c.span)),
    ];
    for (field, span) in places.into_iter().filter_map(|(field, span)| Some((field, span?))) {
        let message =
            format!("`{field}` counts on names of hosts, and with `strategy: run-once` each run has names of its own");
        diagnostics.push(
            Diagnostic::error(codes::RUN_ONCE_HOSTS, span, message)
                .help("use `strategy: recreate`, which keeps the names"),
        );
    }
}

/// A command or a variable names a host that no run has.
pub(super) fn host_of_another_name(spec: &MiniCluster, host: &str) -> Diagnostic {
    let message = format!("a command or variable names `{host}`, and with `strategy: run-once` no pod is called so");
    Diagnostic::warning(codes::RUN_ONCE_NAMES, name_span(spec), message).help(
        "in the pods \"${HOSTNAME%-*}\" is the run's name, with which its hosts and its Service begin; or use `strategy: recreate`",
    )
}

fn name_span(spec: &MiniCluster) -> Span {
    spec.metadata.name.as_ref().map_or(spec.span, |name| name.span)
}

fn written(value: &Option<Spanned<String>>) -> Option<Span> {
    text(value).and(value.as_ref()).map(|value| value.span)
}

/// `[bootstrap]` names hosts, or the Service by which they are found.
fn has_bootstrap(config: &str) -> bool {
    config.parse::<toml::Table>().is_ok_and(|table| table.contains_key("bootstrap"))
}

/// What a tool does that one may not expect of the strategy. Shown on request.
fn notes(rollout: &Rollout, size: Size, span: Span, diagnostics: &mut Diagnostics) {
    let mut note = |message: &str| diagnostics.push(Diagnostic::note(codes::TOOL_DIFFERS, span, message));
    let Rollout { strategy, gitops, keep_old, unending } = *rollout;
    match strategy {
        JobStrategy::Service if gitops.flux_cd() => note(
            "Flux CD cannot be told to pass over one object's health: a Kustomization with `wait: true` waits for this Job until its `timeout`",
        ),
        JobStrategy::Hook if gitops == GitOps::Both => {
            note("Flux CD has no hooks: it makes the Job anew when it has changed, as with `strategy: recreate`");
        }
        JobStrategy::Recreate if gitops == GitOps::Neither => {
            note("with `gitops: none` nobody acts on `strategy: recreate`: apply with `kubectl apply --force`");
        }
        JobStrategy::RunOnce if size.elastic && gitops.flux_cd() => note(
            "Flux CD creates a run once and never touches it again, but for an elastic cluster: it could not be resized",
        ),
        JobStrategy::Stable if unending && gitops.argo_cd() => {
            note("Argo CD shows a Job that never ends as progressing; `strategy: service` spares it that");
        }
        _ => {}
    }
    if strategy == JobStrategy::Hook && size.elastic {
        note("a resize of a hook is a sync, so it runs the Job again");
    }
    if keep_old && strategy != JobStrategy::RunOnce {
        note("`keep-old` has no effect: with this strategy a new Job takes the place of the old one");
    }
}

/// `cleanup` asks a controller to delete pods. What becomes of a finished Job depends on who applies it.
fn cleanup(spec: &MiniCluster, rollout: &Rollout, diagnostics: &mut Diagnostics) {
    let Some(cleanup) = spec.spec.cleanup.as_ref().filter(|flag| flag.value) else { return };
    let help = match (rollout.strategy, rollout.gitops) {
        (JobStrategy::Hook, _) => {
            "Argo CD deletes the finished Job when the next sync begins; until then its pods keep the logs"
        }
        (JobStrategy::RunOnce, GitOps::Neither) => {
            "finished runs stay for their logs; delete the old ones, which have the label app.kubernetes.io/part-of"
        }
        (JobStrategy::RunOnce, _) if rollout.keep_old => {
            "earlier runs stay, because `keep-old` says so; delete them by hand"
        }
        (JobStrategy::RunOnce, _) => {
            "a finished run is pruned when the next one comes; were it deleted before, the tool would run it again"
        }
        (_, GitOps::Neither) => {
            "finished pods stay for their logs and go with the Job; a patch may set ttlSecondsAfterFinished, because no tool would run it again"
        }
        _ => {
            "finished pods stay for their logs and go with the Job; were the Job deleted, Argo CD or Flux CD would run it again"
        }
    };
    let message = "cleanup has no effect: no controller deletes pods when the cluster is done";
    diagnostics.push(Diagnostic::warning(NO_CONTROLLER, cleanup.span, message).help(help));
}
