//! Certificates of the clusters that are compiled: which are needed, where they are, what bundles carry of them.

use std::collections::BTreeMap;

use super::error::plain;
use super::pipeline::Inputs;
use super::sources::shown;
use super::ui::Ui;
use crate::bundle::certificates::{Certificates, Missing, Want, gather, refuse_plain_in_git};
use crate::bundle::secret::{PrivateText, SecretForm};
use crate::bundle::store::{Added, STORE_FOLDER, Store, StoreError};
use crate::compile::{CompiledCluster, certificate_needs};
use crate::diag::{Diagnostic, Diagnostics};
use crate::model::settings::SecretBackend;
use crate::model::{CertificateNeed, certificate_need, effective_settings};

/// The project's certificate store.
pub(crate) fn store(project: &super::project::Found) -> Store {
    Store::new(project.inside(STORE_FOLDER))
}

/// Looks up every certificate. Only a bundle that carries the private key cannot do without; where somebody else makes the
/// Secret, the certificate is used if the store knows it.
pub(crate) fn find(inputs: &Inputs, missing: Missing, found: &mut Diagnostics, ui: &Ui) -> Certificates {
    let store = store(&inputs.project);
    let no_keys = BTreeMap::new();
    let input = inputs.to_compile(&no_keys);
    let mut needs: BTreeMap<CertificateNeed, Want> =
        certificate_needs(&input).into_iter().map(|need| (need, Want::Public)).collect();
    for spec in &inputs.documents.miniclusters {
        let settings = effective_settings(spec, input.project, input.set, &mut Diagnostics::new());
        if settings.secrets == SecretBackend::Plain
            && let Some(want) = needs.get_mut(&certificate_need(spec, &settings))
        {
            *want = Want::Private;
        }
    }
    if needs.is_empty() {
        return Certificates::default();
    }
    let mut certificates = gather(&store, &needs, missing);
    found.extend(std::mem::take(&mut certificates.diagnostics));
    for made in &certificates.made {
        ui.status(&made_sentence(made));
    }
    certificates
}

/// A problem of the store, in the words of the other messages about files.
pub(crate) fn diagnostic(error: &StoreError) -> Diagnostic {
    let mut diagnostic = crate::bundle::certificates::diagnostic(error);
    if let StoreError::Io { action, path, source } = error {
        diagnostic.message = format!("cannot {action} {}: {}", shown(path), plain(source));
    }
    diagnostic
}

/// What to say about a new certificate.
pub(crate) fn made_sentence(made: &Added) -> String {
    let mut text =
        format!("made certificate {} (public key {}): it is secret, keep it safe", shown(&made.path), made.public_key);
    if let Some(ignore) = &made.ignored_in {
        text.push_str(&format!("; {} keeps it out of git", shown(ignore)));
    }
    text
}

/// What the bundle of a cluster carries of its certificate.
pub(crate) fn secret_form(compiled: &CompiledCluster, certificates: &Certificates) -> SecretForm {
    if compiled.settings.secrets == SecretBackend::Existing {
        return SecretForm::Existing;
    }
    let name = &compiled.cluster.certificate.secret;
    match &compiled.inline_certificate {
        Some(inline) => {
            let certificate = PrivateText::new(inline.to_file_text().as_bytes().to_vec());
            SecretForm::Plain { name: name.clone(), certificate }
        }
        None => certificates.plain(&compiled.certificate, name),
    }
}

/// A Secret that a bundle refers to and does not carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WantedSecret {
    /// Whose certificate it is.
    need: CertificateNeed,
    /// Its name.
    name: String,
    /// Whether the public key is known: then it is that certificate and no other.
    known: bool,
}

/// The Secrets that somebody has to make in the Kubernetes cluster; those that were chosen by name are taken to be there.
pub(crate) fn wanted_secrets(clusters: &[CompiledCluster]) -> Vec<WantedSecret> {
    let wanted =
        clusters.iter().filter(|c| c.settings.secrets == SecretBackend::Existing && c.settings.secret_name.is_none());
    let secret = |c: &CompiledCluster| WantedSecret {
        need: c.certificate.clone(),
        name: c.cluster.certificate.secret.clone(),
        known: c.cluster.certificate.public_key.is_some(),
    };
    let mut secrets: Vec<WantedSecret> = wanted.map(secret).collect();
    secrets.sort_by(|a, b| (&a.need, &a.name).cmp(&(&b.need, &b.name)));
    secrets.dedup();
    secrets
}

/// What to say about them: the first with the command that makes it, and how many others there are.
pub(crate) fn secrets_sentence(secrets: &[WantedSecret], store: &Store) -> Option<String> {
    let first = secrets.first()?;
    let namespace = first.need.namespace.as_ref().map(|n| format!(" -n {n}")).unwrap_or_default();
    let command = if first.known {
        let file = shown(&store.path(&first.need));
        let file = shlex::try_quote(&file).map_or_else(|_| file.clone(), std::borrow::Cow::into_owned);
        format!("kubectl create secret generic {}{namespace} --from-file=curve.cert={file}", first.name)
    } else {
        let title = first.need.namespace.as_ref().map(|n| format!("{n}/")).unwrap_or_default() + &first.need.name;
        format!("flux-gen cert new {title} --secret={} | kubectl apply -f -", first.name)
    };
    let others = match secrets.len() - 1 {
        0 => String::new(),
        more => format!(" (and {more} more)"),
    };
    Some(format!("needs the Secret {}{others} in the Kubernetes cluster; to make it: {command}", first.name))
}

/// Objects to private keys that a write would put where git picks them up.
pub(crate) fn check_git(clusters: &[CompiledCluster], inputs: &Inputs) -> Option<Diagnostic> {
    let carrying =
        clusters.iter().filter(|c| c.settings.secrets == SecretBackend::Plain && !c.settings.plain_secrets_in_git);
    let titles: Vec<String> = carrying.map(|c| c.cluster.name.clone()).collect();
    refuse_plain_in_git(&titles, &inputs.output, false)
}
