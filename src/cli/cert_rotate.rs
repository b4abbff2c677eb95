//! `flux-gen cert rotate`.

use super::cert::{RotateArgs, failed, need_of};
use super::cert_users::{User, Users};
use super::certificates::store;
use super::error::CommandError;
use super::exit::Exit;
use super::sources::shown;
use super::ui::Ui;
use crate::bundle::certificates::spelled;
use crate::bundle::record::Record;
use crate::bundle::store::Store;
use crate::diag::codes::cert::NOTHING_TO_ROTATE;
use crate::diag::{Diagnostic, Diagnostics};
use crate::model::settings::SecretBackend;
use crate::model::{CertificateNeed, secret_name};

pub(super) fn run(args: &RotateArgs, ui: &Ui) -> Result<Exit, CommandError> {
    let found = args.project.find()?;
    let store = store(&found);
    let record = store.record().map_err(|e| failed(&e, ui))?;
    let users = Users::of(&found);
    let needs = match &args.cluster {
        Some(asked) => vec![users.pick(asked).map_or(asked, |user| &user.need).clone()],
        None => all(&record, &users),
    };
    // All of them are looked at before one is changed.
    let mut problems = Diagnostics::new();
    if needs.is_empty() {
        let message = format!("no certificate is recorded in {}", shown(store.folder()));
        problems.push(Diagnostic::global_error(NOTHING_TO_ROTATE, message));
    }
    for need in &needs {
        let here = store.read(need).map_err(|e| failed(&e, ui))?.is_some();
        if !here && !record.keys.contains_key(&Store::title(need)) {
            let message = format!("{} has no certificate in {}", Store::title(need), shown(store.folder()));
            let help = format!("`flux-gen cert new {}` makes one", spelled(need));
            problems.push(Diagnostic::global_error(NOTHING_TO_ROTATE, message).help(help));
        }
    }
    if !problems.is_empty() {
        ui.diagnostics([], &[], problems);
        return Err(CommandError::reported());
    }
    for need in &needs {
        let old = record.keys.get(&Store::title(need));
        let added = store.make(need, true).map_err(|e| failed(&e, ui))?;
        ui.status(&format!("made certificate {} anew (public key {})", shown(&added.path), added.public_key));
        let (gone, new) = (old.map(|key| secret_name(&need.name, key)), secret_name(&need.name, &added.public_key));
        ui.status(&consequences(users.of_certificate(need), gone.as_deref(), &new));
    }
    ui.status("now run `flux-gen build`");
    Ok(Exit::Ok)
}

/// Every recorded certificate, named as the clusters name it that use it.
fn all(record: &Record, users: &Users) -> Vec<CertificateNeed> {
    let named = |title: &String| {
        let user = users.0.iter().find(|user| Store::title(&user.need) == *title);
        user.map_or_else(|| need_of(title), |user| user.need.clone())
    };
    record.keys.keys().map(named).collect()
}

/// Who has to start anew, and which Secret takes the place of which.
fn consequences<'a>(users: impl Iterator<Item = &'a User>, gone: Option<&str>, new: &str) -> String {
    let users: Vec<&User> = users.collect();
    if users.is_empty() {
        return "no cluster of this project uses it".to_owned();
    }
    let names: Vec<String> = users.iter().map(|user| spelled(&user.cluster)).collect();
    let secret = gone.map_or_else(|| format!("Secret {new}"), |gone| format!("Secret {new} in place of {gone}"));
    let by_hand = users.iter().any(|user| user.settings.secrets == SecretBackend::Existing);
    let who = if by_hand { "; where `secrets: existing` is set you make it" } else { "" };
    format!("has to start anew with {secret}: {}{who}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::settings::Settings;

    #[test]
    fn consequences_name_clusters_and_secrets() {
        let need = |name: &str| CertificateNeed { namespace: Some("hpc".to_owned()), name: name.to_owned() };
        let user = |name: &str, secrets| {
            let mut settings = Settings::default();
            settings.secrets = secrets;
            User { cluster: need(name), need: need("main"), settings }
        };
        let group = [user("main", SecretBackend::Sops), user("burst-0", SecretBackend::Existing)];
        assert_eq!(
            consequences(group.iter(), Some("main-curve-1"), "main-curve-2"),
            "has to start anew with Secret main-curve-2 in place of main-curve-1: hpc/main, hpc/burst-0; where `secrets: \
             existing` is set you make it"
        );
        assert_eq!(
            consequences(group[..1].iter(), None, "main-curve-2"),
            "has to start anew with Secret main-curve-2: hpc/main"
        );
        assert_eq!(consequences([].iter(), None, "x"), "no cluster of this project uses it");
    }
}
