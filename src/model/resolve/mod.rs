//! From what was written to the resolved model: fills in defaults, makes choices, explains the ones a user would ask about.
//!
//! Only called for MiniClusters that the rules found no error in.

mod broker;
mod containers;
mod cores;
mod hardening;
mod job;
mod layers;
mod program;
mod queue;
mod run;
mod security;
mod strategy;
mod view;
mod volumes;
mod written;

use super::rollout::JobStrategy;
use super::settings::{SealedScope, SecretBackend, Settings};
use super::{Certificate, Cluster, Job, Logging, Network, Size, of_run};
use crate::diag::codes::cert::SEALED_NEEDS_NAMESPACE;
use crate::diag::codes::model as codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::spec::MiniCluster;
use crate::spec::pins::{ImagePins, ViewPins};
use serde_json::Value;
use sha2::{Digest, Sha256};
use written::{flag, number, text};

pub(crate) use cores::is_gpu;
pub use layers::{checked_project_settings, effective_settings, project_settings, unused_overrides};

/// Port of the brokers.
pub(crate) const BROKER_PORT: u16 = 8050;

/// What resolving one MiniCluster needs besides its document.
#[derive(Debug, Clone)]
pub struct Context<'a> {
    /// Settings for this cluster.
    pub settings: &'a Settings,
    /// Public key of its certificate (Z85), if it is known.
    pub public_key: Option<&'a str>,
    /// Which images stand for the project's views.
    pub views: &'a ViewPins,
    /// Patches for this cluster, in their order: they change a run as the spec does.
    pub patches: &'a [&'a Value],
    /// Digests of images. They are part of what a run is: another digest is another program.
    pub images: &'a ImagePins,
}

/// Whose certificate a cluster uses: clusters of one bursting group share one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CertificateNeed {
    /// Namespace of the owner, if it has one.
    pub namespace: Option<String>,
    /// Name of the owner.
    pub name: String,
}

/// Which certificate a MiniCluster needs.
#[must_use]
pub fn certificate_need(spec: &MiniCluster, settings: &Settings) -> CertificateNeed {
    let lead = broker::lead_broker(&spec.spec).and_then(|lead| text(&lead.name));
    CertificateNeed {
        namespace: namespace(spec, settings),
        name: lead.or_else(|| text(&spec.metadata.name)).unwrap_or_default().to_owned(),
    }
}

/// Resolves one MiniCluster.
#[must_use]
pub fn resolve(spec: &MiniCluster, context: &Context<'_>) -> (Cluster, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let size = size(spec);
    if strategy::chosen(context.settings) != Some(JobStrategy::RunOnce) {
        return (resolve_as(spec, context, size, None, &mut diagnostics), diagnostics);
    }
    // What is to run is resolved without its names first, because they depend on it.
    let all_pods = Size { pods: if size.elastic { size.max } else { size.pods }, ..size };
    let plain = resolve_as(spec, context, all_pods, None, &mut Diagnostics::new());
    let run = run::suffix(&plain, context.patches);
    if let Some(host) = run::named_host(&plain) {
        diagnostics.push(strategy::host_of_another_name(spec, &host));
    }
    (resolve_as(spec, context, size, Some(run), &mut diagnostics), diagnostics)
}

/// Resolves one MiniCluster as a run of its own, or under its own name.
fn resolve_as(
    spec: &MiniCluster,
    context: &Context<'_>,
    size: Size,
    run: Option<String>,
    diagnostics: &mut Diagnostics,
) -> Cluster {
    let settings = context.settings;
    let minicluster = text(&spec.metadata.name).unwrap_or_default().to_owned();
    let name = of_run(&minicluster, run.as_deref());
    let mut network = network(spec, &name, run.as_deref());
    let mut view = view::view(&spec.spec, context, diagnostics);
    let index = containers::runner_index(&spec.spec);
    containers::check_images(&spec.spec, diagnostics);
    if spec.spec.containers.as_ref().is_some_and(|c| c.value.len() > 1) {
        containers::check_sidecars(&spec.spec, settings, diagnostics);
    }
    check_secrets(spec, settings, diagnostics);
    let program = program::program(&spec.spec, index, size, settings);
    let broker = broker::broker(
        &spec.spec,
        &broker::Parts { name: &name, size, network: &network, view: &view, runner: index, settings },
        diagnostics,
    );
    let mut pod = job::pod(&spec.spec);
    let mut runner = containers::runner(&spec.spec, index, &minicluster, &pod, diagnostics);
    let mut sidecars = containers::sidecars(&spec.spec, index, settings);
    let mut services = containers::services(&spec.spec);
    let parts = hardening::Parts {
        pod: &mut pod,
        view: &mut view,
        runner: &mut runner,
        sidecars: &mut sidecars,
        services: &mut services,
    };
    hardening::harden(spec, parts, settings, diagnostics);
    network.policy = hardening::network_policy(spec, &broker.leader, &sidecars, settings, diagnostics);
    let queueing = queue::queueing(spec, size, &program, settings, diagnostics);
    let job = Job { queueing, ..job::job(&spec.spec, &broker, settings) };
    let (volumes, service_volumes) = volumes::volumes(&spec.spec);
    let rollout = strategy::rollout(spec, &program, size, settings, diagnostics);
    let mut cluster = Cluster {
        namespace: namespace(spec, settings),
        target: settings.kubernetes_version,
        certificate: certificate(spec, context),
        logging: logging(spec),
        minicluster,
        name,
        run,
        size,
        job,
        pod,
        network,
        view,
        broker,
        program,
        runner,
        sidecars,
        services,
        volumes,
        service_volumes,
        rollout,
    };
    cluster.pin_images(context.images);
    cluster
}

fn namespace(spec: &MiniCluster, settings: &Settings) -> Option<String> {
    text(&spec.metadata.namespace).map(str::to_owned).or_else(|| settings.namespace.clone())
}

/// Operator's defaults, and what makes a cluster elastic: a written `maxSize`.
fn size(spec: &MiniCluster) -> Size {
    let pods = number(&spec.spec.size).unwrap_or(1).max(1);
    let max = number(&spec.spec.max_size).unwrap_or(0).max(pods);
    let min = number(&spec.spec.min_size).filter(|n| *n > 0);
    Size {
        pods,
        max,
        quorum: min.or((max > pods).then_some(pods)),
        elastic: number(&spec.spec.max_size).is_some_and(|n| n > 0),
    }
}

/// Two runs need two headless Services, because a Service selects the pods of one Job.
fn network(spec: &MiniCluster, name: &str, run: Option<&str>) -> Network {
    let headless = spec.spec.network.as_ref().and_then(|n| text(&n.headless_name));
    Network {
        headless: headless.map_or_else(|| name.to_owned(), |headless| of_run(headless, run)),
        minimal: spec.spec.flux.as_ref().is_some_and(|f| flag(&f.minimal_service)),
        port: BROKER_PORT,
        policy: None,
    }
}

/// Strict is on unless switched off: the documents say so, and a user who relies on them would notice.
fn logging(spec: &MiniCluster) -> Logging {
    let logging = spec.spec.logging.as_ref();
    Logging {
        quiet: logging.is_some_and(|l| flag(&l.quiet)),
        strict: logging.and_then(|l| l.strict.as_ref()).is_none_or(|s| s.value),
        timed: logging.is_some_and(|l| flag(&l.timed)),
    }
}

/// What the settings of the certificate's Secret say that does not go together.
fn check_secrets(spec: &MiniCluster, settings: &Settings, diagnostics: &mut Diagnostics) {
    let span = spec.metadata.name.as_ref().map_or(spec.span, |name| name.span);
    if settings.secrets != SecretBackend::Existing && settings.secret_name.is_some() {
        let message = "the setting `secret-name` has an effect with `secrets: existing` only";
        let warning = Diagnostic::warning(codes::SECRET_NAME_UNUSED, span, message);
        diagnostics.push(warning.help("remove it, or use `secrets: existing`"));
    }
    let bound = settings.secrets == SecretBackend::Sealed && settings.sealed_scope != SealedScope::ClusterWide;
    if bound && namespace(spec, settings).is_none() {
        let message = "a SealedSecret is bound to a namespace, and this cluster has none";
        let error = Diagnostic::error(SEALED_NEEDS_NAMESPACE, span, message);
        diagnostics.push(error.help("write metadata.namespace, or use the setting `sealed-scope: cluster-wide`"));
    }
}

fn certificate(spec: &MiniCluster, context: &Context<'_>) -> Certificate {
    let settings = context.settings;
    let chosen = settings.secret_name.clone().filter(|_| settings.secrets == SecretBackend::Existing);
    let public_key = context.public_key.map(str::to_owned);
    let derived = || match &public_key {
        Some(key) => secret_name(&certificate_need(spec, settings).name, key),
        None => format!("{}-curve", certificate_need(spec, settings).name),
    };
    Certificate { secret: chosen.unwrap_or_else(derived), public_key }
}

/// Name of the Secret for a certificate: it changes exactly when the key pair does.
#[must_use]
pub fn secret_name(owner: &str, public_key: &str) -> String {
    let digest = Sha256::digest(public_key.as_bytes());
    let hex: String = digest.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
    format!("{owner}-curve-{hex}")
}

/// A note that tells where a number came from.
fn origin_note(diagnostics: &mut Diagnostics, span: crate::diag::Span, message: String) {
    diagnostics.push(Diagnostic::note(codes::ORIGIN, span, message));
}
