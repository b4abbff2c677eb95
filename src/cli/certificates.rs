//! Certificates of the clusters that are compiled: which are needed, where they are, what bundles carry of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::error::plain;
use super::pipeline::Inputs;
use super::sources::shown;
use super::ui::Ui;
use crate::bundle::certificates::{Certificates, Missing, Stored, Want, gather, refuse_plain_in_git, spelled};
use crate::bundle::cipher::{Cipher, CipherKind};
use crate::bundle::names;
use crate::bundle::sealed::SealingCertificate;
use crate::bundle::secret::{PrivateText, SecretForm};
use crate::bundle::store::{Added, STORE_FOLDER, Store, StoreError};
use crate::compile::{CompiledCluster, inline_certificate};
use crate::diag::codes::cert as codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::model::settings::{SealedScope, SecretBackend, Settings};
use crate::model::{CertificateNeed, certificate_need, effective_settings};
use crate::spec::MiniCluster;

/// The project's certificate store.
pub(crate) fn store(project: &super::project::Found) -> Store {
    Store::new(project.inside(STORE_FOLDER))
}

/// Looks up every certificate. Only a bundle that carries the Secret cannot do without; where somebody else makes the
/// Secret, the certificate is used if the store knows it.
pub(crate) fn find(inputs: &Inputs, missing: Missing, found: &mut Diagnostics, ui: &Ui) -> Certificates {
    let needs = Needs::of(inputs, found);
    if needs.0.is_empty() {
        return Certificates::default();
    }
    let mut certificates = gather(&store(&inputs.project), &needs.0, missing, since_1970());
    found.extend(std::mem::take(&mut certificates.diagnostics));
    for made in &certificates.made {
        ui.status(&made_sentence(made));
    }
    for stored in &certificates.stored {
        ui.status(&stored_sentence(stored));
    }
    certificates
}

/// The time. A clock before 1970 counts as 1970: what it says is written into SOPS files and compared with the end of sealing
/// certificates, no more.
#[expect(clippy::disallowed_methods, reason = "SOPS files carry the time of their encryption")]
fn since_1970() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// What the clusters need of their certificates.
struct Needs(BTreeMap<CertificateNeed, Want>);

impl Needs {
    fn of(inputs: &Inputs, found: &mut Diagnostics) -> Self {
        let mut needs = Self(BTreeMap::new());
        let mut readers = Readers::default();
        for spec in &inputs.documents.miniclusters {
            let written = inputs.project.written.as_ref();
            let settings = effective_settings(spec, written, &inputs.set, &mut Diagnostics::new());
            needs.add(spec, &settings, inputs, &mut readers, found);
        }
        readers.report(found);
        needs
    }

    fn add(
        &mut self,
        spec: &MiniCluster,
        settings: &Settings,
        inputs: &Inputs,
        readers: &mut Readers,
        found: &mut Diagnostics,
    ) {
        let need = certificate_need(spec, settings);
        let inline = inline_certificate(spec);
        let carried = matches!(settings.secrets, SecretBackend::Sops | SecretBackend::Sealed);
        // What stands in a spec and is not encrypted needs no store.
        if inline.is_some() && !carried {
            return;
        }
        let want = self.0.entry(need.clone()).or_default();
        if settings.secrets == SecretBackend::Plain {
            let name = spec.metadata.name.as_ref().map(|name| name.value.as_str()).unwrap_or_default();
            let folder = names::namespace_folder(need.namespace.as_deref());
            want.private = true;
            want.earlier.push(inputs.output.join(folder).join(names::safe(name)));
        }
        if !carried {
            return;
        }
        want.inline = want.inline.take().or(inline);
        let Some(cipher) = readers.cipher(&need, settings, inputs, found) else { return };
        match want.ciphers.iter().find(|other| other.kind() == cipher.kind()) {
            Some(other) if *other != cipher => found.push(disagree(&need)),
            Some(_) => {}
            None => want.ciphers.push(cipher),
        }
    }
}

fn disagree(need: &CertificateNeed) -> Diagnostic {
    let message = format!("clusters that share the certificate {} are to be encrypted differently", Store::title(need));
    let help =
        "give them the same recipients, sealing certificate and scope, or use `secrets: existing` for one of them";
    Diagnostic::global_error(codes::GROUP_DISAGREES, message).help(help)
}

/// For whom to encrypt. Reads each sealing certificate once, and gathers what is missing, to say it once.
#[derive(Debug, Default)]
struct Readers {
    certificates: BTreeMap<String, Option<SealingCertificate>>,
    without_recipients: Vec<CertificateNeed>,
    without_certificate: Vec<CertificateNeed>,
}

impl Readers {
    fn cipher(
        &mut self,
        need: &CertificateNeed,
        settings: &Settings,
        inputs: &Inputs,
        found: &mut Diagnostics,
    ) -> Option<Cipher> {
        if settings.secrets == SecretBackend::Sops {
            let recipients = &settings.age_recipients.0;
            if recipients.is_empty() {
                self.without_recipients.push(need.clone());
                return None;
            }
            return Some(Cipher::Sops { recipients: recipients.iter().cloned().collect() });
        }
        let Some(path) = &settings.sealed_certificate else {
            self.without_certificate.push(need.clone());
            return None;
        };
        let scope = settings.sealed_scope;
        if scope != SealedScope::ClusterWide && need.namespace.is_none() {
            // Compiling says so, at the cluster's place.
            return None;
        }
        let read = || sealing_certificate(path, inputs, found);
        let certificate = self.certificates.entry(path.clone()).or_insert_with(read).clone()?;
        Some(Cipher::Sealed { certificate, scope })
    }

    fn report(self, found: &mut Diagnostics) {
        let missing = [
            (self.without_recipients, codes::NO_RECIPIENTS, "age recipients to encrypt to", "age-recipients: age1..."),
            (
                self.without_certificate,
                codes::NO_SEALING_CERTIFICATE,
                "sealing certificate",
                "sealed-certificate: sealing.pem",
            ),
        ];
        for (needs, code, what, setting) in missing {
            let Some(first) = needs.first() else { continue };
            let others = if needs.len() > 1 { format!(" and {} more", needs.len() - 1) } else { String::new() };
            let message = format!("the Secret of {}{others} has no {what}", Store::title(first));
            let help = format!("add `{setting}` to `settings` of flux-gen.yaml");
            found.push(Diagnostic::global_error(code, message).help(help));
        }
    }
}

fn sealing_certificate(path: &str, inputs: &Inputs, found: &mut Diagnostics) -> Option<SealingCertificate> {
    let file = inputs.project.inside(path);
    let problem = |why: String| {
        let message = format!("the sealing certificate {} cannot be used: {why}", shown(&file));
        let error = Diagnostic::global_error(codes::SEALING_CERTIFICATE_UNUSABLE, message);
        error.help(format!("`kubeseal --fetch-cert > {path}` fetches the one of the controller"))
    };
    let bytes = match std::fs::read(&file) {
        Ok(bytes) => bytes,
        Err(e) => {
            found.push(problem(plain(&e)));
            return None;
        }
    };
    match SealingCertificate::parse(&bytes) {
        Ok(certificate) => Some(certificate),
        Err(e) => {
            found.push(problem(e.to_string()));
            None
        }
    }
}

/// Files of the certificates that Secrets are sealed with, as settings name them.
pub(crate) fn sealing_files(clusters: &[CompiledCluster]) -> BTreeSet<String> {
    let sealed = clusters.iter().filter(|cluster| cluster.settings.secrets == SecretBackend::Sealed);
    sealed.filter_map(|cluster| cluster.settings.sealed_certificate.clone()).collect()
}

/// What to say about a Secret that was encrypted.
fn stored_sentence(stored: &Stored) -> String {
    let verb = if stored.why.is_some() { "encrypted anew" } else { "encrypted" };
    let why = stored.why.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
    format!("{verb} {} for {}{why}; commit it", shown(&stored.path), stored.audience)
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
    let name = &compiled.cluster.certificate.secret;
    let encrypted = |kind| certificates.encrypted(&compiled.certificate, kind, name);
    match (compiled.settings.secrets, &compiled.inline_certificate) {
        (SecretBackend::Existing, _) => SecretForm::Existing,
        (SecretBackend::Plain, Some(inline)) => {
            let certificate = PrivateText::new(inline.to_file_text().as_bytes().to_vec());
            SecretForm::Plain { name: name.clone(), certificate }
        }
        (SecretBackend::Plain, None) => certificates.plain(&compiled.certificate, name),
        (SecretBackend::Sops, _) => encrypted(CipherKind::Sops),
        (SecretBackend::Sealed, _) => encrypted(CipherKind::Sealed),
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
        let title = spelled(&first.need);
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
    let titles: Vec<String> = carrying.map(|c| c.cluster.minicluster.clone()).collect();
    refuse_plain_in_git(&titles, &inputs.output, false)
}
