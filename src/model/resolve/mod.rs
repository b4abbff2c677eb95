//! From what was written to the resolved model: fills in defaults, makes choices, explains the ones a user would ask about.
//!
//! Only called for MiniClusters that the rules found no error in.

mod broker;
mod containers;
mod cores;
mod job;
mod program;
mod security;
mod view;
mod volumes;
mod written;

use super::settings::{ANNOTATION_PREFIX, Layers, Origin, SecretBackend, Settings};
use super::{Certificate, Cluster, Logging, Network, Size};
use crate::diag::codes::model as codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::spec::MiniCluster;
use crate::spec::project::Project;
use sha2::{Digest, Sha256};
use written::{flag, number, text};

/// Port of the brokers.
pub(crate) const BROKER_PORT: u16 = 8050;

/// What resolving one MiniCluster needs besides its document.
#[derive(Debug, Clone)]
pub struct Context<'a> {
    /// Settings for this cluster.
    pub settings: &'a Settings,
    /// Public key of its certificate (Z85), if it is known.
    pub public_key: Option<&'a str>,
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

/// The settings of one MiniCluster: project, its overrides there, its annotations, then `set` from the command line.
#[must_use]
pub fn effective_settings(
    spec: &MiniCluster,
    project: Option<&Project>,
    set: &[(String, String)],
    diagnostics: &mut Diagnostics,
) -> Settings {
    let mut layers = Layers::new();
    let name = text(&spec.metadata.name).unwrap_or_default();
    let qualified = text(&spec.metadata.namespace).map(|ns| format!("{ns}/{name}"));
    if let Some(project) = project {
        for entry in project.settings.iter().flat_map(|s| s.value.iter()) {
            layers.add(Origin::Project, &entry.key, &entry.value.value.0, Some(entry.value.span), diagnostics);
        }
        let overrides = project.clusters.iter().flat_map(|c| c.value.iter());
        for cluster in overrides.filter(|c| c.key.value == name || Some(&c.key.value) == qualified.as_ref()) {
            for entry in cluster.value.settings.iter().flat_map(|s| s.value.iter()) {
                layers.add(
                    Origin::ClusterOverride,
                    &entry.key,
                    &entry.value.value.0,
                    Some(entry.value.span),
                    diagnostics,
                );
            }
        }
    }
    for entry in spec.metadata.annotations.iter().flat_map(|a| a.value.iter()) {
        if let Some(key) = entry.key.strip_prefix(ANNOTATION_PREFIX) {
            layers.add(Origin::Annotation, key, &entry.value, Some(entry.key.span), diagnostics);
        }
    }
    for (key, value) in set {
        layers.add(Origin::CommandLine, key, value, None, diagnostics);
    }
    layers.resolve(diagnostics)
}

/// The settings of the whole project, as they are for a cluster that overrides nothing. Mistakes in them are reported by
/// [`effective_settings`].
#[must_use]
pub fn project_settings(project: Option<&Project>, set: &[(String, String)]) -> Settings {
    let ignored = &mut Diagnostics::new();
    let mut layers = Layers::new();
    for entry in project.and_then(|p| p.settings.as_ref()).iter().flat_map(|s| s.value.iter()) {
        layers.add(Origin::Project, &entry.key, &entry.value.value.0, None, ignored);
    }
    for (key, value) in set {
        layers.add(Origin::CommandLine, key, value, None, ignored);
    }
    layers.resolve(ignored)
}

/// Resolves one MiniCluster.
#[must_use]
pub fn resolve(spec: &MiniCluster, context: &Context<'_>) -> (Cluster, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let settings = context.settings;
    let name = text(&spec.metadata.name).unwrap_or_default().to_owned();
    let size = size(spec);
    let network = network(spec, &name);
    let view = view::view(&spec.spec, settings, &mut diagnostics);
    let index = containers::runner_index(&spec.spec);
    containers::check_images(&spec.spec, &mut diagnostics);
    if spec.spec.containers.as_ref().is_some_and(|c| c.value.len() > 1) {
        containers::check_sidecars(&spec.spec, settings, &mut diagnostics);
    }
    if settings.secrets == SecretBackend::Plain && settings.secret_name.is_some() {
        diagnostics.push(
            Diagnostic::warning(
                codes::SECRET_NAME_UNUSED,
                spec.metadata.name.as_ref().map_or(spec.span, |n| n.span),
                "the setting `secret-name` has no effect with `secrets: plain`",
            )
            .help("remove it, or use `secrets: existing`"),
        );
    }
    let program = program::program(&spec.spec, index, size, settings, &mut diagnostics);
    let broker = broker::broker(
        &spec.spec,
        &broker::Parts { name: &name, size, network: &network, view: &view, runner: index, settings },
        &mut diagnostics,
    );
    let pod = job::pod(&spec.spec, settings, &mut diagnostics);
    let runner = containers::runner(&spec.spec, index, &name, &pod, &mut diagnostics);
    let sidecars = containers::sidecars(&spec.spec, index, settings);
    let services = containers::services(&spec.spec);
    let job = job::job(&spec.spec, &broker, &program, settings);
    let (volumes, service_volumes) = volumes::volumes(&spec.spec);
    let cluster = Cluster {
        namespace: namespace(spec, settings),
        target: settings.kubernetes_version,
        certificate: certificate(spec, context),
        logging: logging(spec),
        name,
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
    };
    (cluster, diagnostics)
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

fn network(spec: &MiniCluster, name: &str) -> Network {
    let headless = spec.spec.network.as_ref().and_then(|n| text(&n.headless_name));
    Network {
        headless: headless.unwrap_or(name).to_owned(),
        minimal: spec.spec.flux.as_ref().is_some_and(|f| flag(&f.minimal_service)),
        port: BROKER_PORT,
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
