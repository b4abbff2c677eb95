//! From the certificate store to what bundles need of it: public keys, and the private half where a bundle carries it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::secret::{PrivateText, SecretForm};
use super::store::{Added, PUBLIC_FILE, Store, StoreError};
use crate::diag::codes::cert as codes;
use crate::diag::{Diagnostic, Diagnostics};
use crate::model::CertificateNeed;

/// What the store gave.
#[derive(Debug, Default)]
pub struct Certificates {
    /// Public keys, for compiling.
    pub public_keys: BTreeMap<CertificateNeed, String>,
    /// Private halves at hand.
    private: BTreeMap<CertificateNeed, PrivateText>,
    /// Certificates that were made because they were missing.
    pub made: Vec<Added>,
    /// What is wrong with others.
    pub diagnostics: Diagnostics,
}

/// What bundles need of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Want {
    /// The public key, if it is known (`secrets: existing`): without it the bundle takes whatever key the Secret holds.
    Public,
    /// The private half (`secrets: plain`).
    Private,
}

/// What to do about a missing certificate whose private half is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Missing {
    /// Make it: for a build into a folder.
    Make,
    /// Report it: for everything that writes nothing.
    Report,
}

/// Looks up all certificates. Every problem is among the diagnostics.
#[must_use]
pub fn gather(store: &Store, needs: &BTreeMap<CertificateNeed, Want>, missing: Missing) -> Certificates {
    let mut found = Certificates::default();
    let recorded = match store.recorded() {
        Ok(recorded) => recorded,
        Err(e) => {
            found.diagnostics.push(diagnostic(&e));
            return found;
        }
    };
    let mut unrecorded = BTreeMap::new();
    for (need, want) in needs {
        let title = Store::title(need);
        match find(store, (need, *want), recorded.get(&title), missing, &mut found) {
            Ok(Some(new)) => drop(unrecorded.insert(title, new)),
            Ok(None) => {}
            Err(problem) => found.diagnostics.push(*problem),
        }
    }
    if missing == Missing::Make
        && !unrecorded.is_empty()
        && let Err(e) = store.record_keys(&unrecorded)
    {
        found.diagnostics.push(diagnostic(&e));
    }
    found
}

/// Looks up one certificate. Returns its public key when the record lacks it.
fn find(
    store: &Store,
    (need, want): (&CertificateNeed, Want),
    recorded: Option<&String>,
    missing: Missing,
    found: &mut Certificates,
) -> Result<Option<String>, Box<Diagnostic>> {
    let title = Store::title(need);
    let Some(stored) = store.read(need).map_err(|e| Box::new(diagnostic(&e)))? else {
        if let Some(key) = recorded {
            found.public_keys.insert(need.clone(), key.clone());
            return if want == Want::Private { Err(Box::new(private_missing(need))) } else { Ok(None) };
        }
        if want == Want::Public {
            return Ok(None);
        }
        if missing == Missing::Report {
            let message = format!("cluster {title} has no certificate");
            let help = format!("make it with `{}`, or build into a folder", new_command(need));
            return Err(Box::new(Diagnostic::global_error(codes::CERTIFICATE_MISSING, message).help(help)));
        }
        let added = match store.make(need, false) {
            // Somebody else has just made it.
            Err(StoreError::Exists { .. }) => return find(store, (need, want), recorded, Missing::Report, found),
            result => result.map_err(|e| Box::new(diagnostic(&e)))?,
        };
        if let Some(stored) = store.read(need).map_err(|e| Box::new(diagnostic(&e)))? {
            found.private.insert(need.clone(), stored.text);
        }
        found.public_keys.insert(need.clone(), added.public_key.clone());
        found.made.push(added);
        return Ok(None);
    };
    if let Some(key) = recorded.filter(|key| **key != stored.public_key) {
        let path = store.path(need);
        let message = format!(
            "{} has the public key {}, but {} records {key} for {title}",
            path.display(),
            stored.public_key,
            store.folder().join(PUBLIC_FILE).display()
        );
        let help = "import the right certificate with `flux-gen cert import`, with --replace if the record is wrong";
        return Err(Box::new(Diagnostic::global_error(codes::KEYS_DISAGREE, message).help(help)));
    }
    if stored.open {
        let path = store.path(need);
        let message = format!("{} can be read by group or others", path.display());
        let warning = Diagnostic::global_warning(codes::CERTIFICATE_OPEN, message);
        found.diagnostics.push(warning.help(format!("chmod 600 {}", path.display())));
    }
    found.public_keys.insert(need.clone(), stored.public_key.clone());
    found.private.insert(need.clone(), stored.text);
    Ok(recorded.is_none().then_some(stored.public_key))
}

impl Certificates {
    /// The private half, when it is at hand.
    #[must_use]
    pub fn private(&self, need: &CertificateNeed) -> Option<&PrivateText> {
        self.private.get(need)
    }

    /// The form of a Secret that the bundle carries (setting `secrets: plain`). [`SecretForm::Existing`] when the private
    /// half is not at hand, of which the diagnostics of [`gather`] tell.
    #[must_use]
    pub fn plain(&self, need: &CertificateNeed, secret: &str) -> SecretForm {
        match self.private(need) {
            Some(text) => SecretForm::Plain { name: secret.to_owned(), certificate: text.clone() },
            None => SecretForm::Existing,
        }
    }
}

fn private_missing(need: &CertificateNeed) -> Diagnostic {
    let message = format!("the Secret of {} needs its private key, which is not here", Store::title(need));
    let help = "import the certificate with `flux-gen cert import`, or use the setting `secrets: existing`";
    Diagnostic::global_error(codes::PRIVATE_HALF_MISSING, message).help(help)
}

/// The command that makes a certificate.
fn new_command(need: &CertificateNeed) -> String {
    match &need.namespace {
        Some(namespace) => format!("flux-gen cert new {namespace}/{}", need.name),
        None => format!("flux-gen cert new {}", need.name),
    }
}

/// A problem of the store as a diagnostic.
#[must_use]
pub fn diagnostic(error: &StoreError) -> Diagnostic {
    let code = match error {
        StoreError::Io { .. } | StoreError::Random(_) => codes::STORE_FAILED,
        StoreError::Certificate { .. } => codes::CERTIFICATE_UNUSABLE,
        StoreError::Record { .. } => codes::PUBLIC_KEYS_UNREADABLE,
        StoreError::Exists { .. } => codes::CERTIFICATE_EXISTS,
    };
    Diagnostic::global_error(code, error.to_string())
}

/// Refuses to write private keys to where git would pick them up (setting `plain-secrets-in-git`).
///
/// `titles`: the clusters whose bundles hold a private key. `None` when there is nothing to object to.
#[must_use]
pub fn refuse_plain_in_git(titles: &[String], output: &Path, allowed: bool) -> Option<Diagnostic> {
    if allowed || titles.is_empty() {
        return None;
    }
    let tree = git_work_tree(output)?;
    let message = format!(
        "private keys of {} would be written to {}, which is in the git work tree {}",
        titles.join(", "),
        output.display(),
        tree.display()
    );
    let help = "use `secrets: existing`, write elsewhere with -o, or set `plain-secrets-in-git: true`";
    Some(Diagnostic::global_error(codes::PLAIN_SECRET_IN_GIT, message).help(help))
}

/// The git work tree that a path is in or would be in, links followed.
#[must_use]
pub fn git_work_tree(path: &Path) -> Option<PathBuf> {
    let mut there = path;
    let real = loop {
        let candidate = if there.as_os_str().is_empty() { Path::new(".") } else { there };
        match candidate.canonicalize() {
            Ok(real) => break real,
            Err(_) => there = there.parent()?,
        }
    };
    // A file `.git` stands in linked work trees and submodules.
    real.ancestors().find(|folder| folder.join(".git").exists()).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flux::Certificate;
    use std::os::unix::fs::PermissionsExt;

    fn need(namespace: Option<&str>, name: &str) -> CertificateNeed {
        CertificateNeed { namespace: namespace.map(str::to_owned), name: name.to_owned() }
    }

    fn ids(found: &Certificates) -> Vec<&'static str> {
        found.diagnostics.iter().map(|d| d.code.id).collect()
    }

    fn private(needs: &[CertificateNeed]) -> BTreeMap<CertificateNeed, Want> {
        needs.iter().map(|need| (need.clone(), Want::Private)).collect()
    }

    #[test]
    fn made_once_then_read_and_public_half_is_enough() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path().join("certs"));
        let (solo, lammps) = (need(None, "solo"), need(Some("hpc"), "lammps"));
        let needs = private(&[solo.clone(), lammps.clone()]);
        let public: BTreeMap<_, _> = needs.keys().map(|need| (need.clone(), Want::Public)).collect();
        assert_eq!(ids(&gather(&store, &needs, Missing::Report)), ["FG501", "FG501"]);
        let unknown = gather(&store, &public, Missing::Make);
        assert!(unknown.diagnostics.is_empty() && unknown.public_keys.is_empty());
        assert!(!store.folder().exists());

        let made = gather(&store, &needs, Missing::Make);
        assert!(made.diagnostics.is_empty() && made.made.len() == 2 && made.public_keys.len() == 2, "{made:?}");
        assert_eq!(made.made.iter().filter(|added| added.ignored_in.is_some()).count(), 1);
        let path = store.path(&lammps);
        assert!(path.ends_with("certs/hpc/lammps.cert"));
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);

        let again = gather(&store, &needs, Missing::Make);
        assert!(again.made.is_empty() && again.public_keys == made.public_keys);
        let form = again.plain(&solo, "s");
        assert!(!format!("{form:?} {again:?} {store:?}").contains("secret-key"));

        std::fs::remove_file(&path).unwrap();
        let known = gather(&store, &public, Missing::Report);
        assert!(known.diagnostics.is_empty() && known.public_keys == made.public_keys);
        assert_eq!(known.plain(&lammps, "s"), SecretForm::Existing);
        // What is recorded is never made again.
        let lost = gather(&store, &needs, Missing::Make);
        assert!(ids(&lost) == ["FG506"] && lost.made.is_empty() && !path.exists());
    }

    #[test]
    fn a_stale_open_or_broken_certificate_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let one = need(None, "a");
        let needs = private(std::slice::from_ref(&one));
        store.make(&one, false).unwrap();
        let old = std::fs::read(store.path(&one)).unwrap();
        assert!(matches!(store.make(&one, false), Err(StoreError::Exists { .. })));
        store.make(&one, true).unwrap();
        let new = std::fs::read(store.path(&one)).unwrap();
        assert_ne!(old, new);

        std::fs::write(store.path(&one), &old).unwrap();
        assert_eq!(ids(&gather(&store, &needs, Missing::Make)), ["FG503"]);
        store.import(&one, &new, true).unwrap();
        assert_eq!(ids(&gather(&store, &needs, Missing::Make)), [""; 0]);

        std::fs::set_permissions(store.path(&one), std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(ids(&gather(&store, &needs, Missing::Make)), ["FG504"]);
        std::fs::write(store.path(&one), "metadata\n").unwrap();
        assert_eq!(ids(&gather(&store, &needs, Missing::Make)), ["FG502"]);
        std::fs::write(store.folder().join(PUBLIC_FILE), "<<<<<<<").unwrap();
        assert_eq!(ids(&gather(&store, &needs, Missing::Make)), ["FG507"]);
    }

    #[test]
    fn the_private_half_of_a_recorded_key_can_be_imported() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let one = need(Some("hpc"), "a");
        store.make(&one, false).unwrap();
        let text = std::fs::read(store.path(&one)).unwrap();
        std::fs::remove_file(store.path(&one)).unwrap();
        let other = Certificate::from_secret_bytes([3; 32], "a").to_file_text();
        assert!(matches!(store.import(&one, other.as_bytes(), false), Err(StoreError::Exists { .. })));
        store.import(&one, &text, false).unwrap();
        assert_eq!(std::fs::read(store.path(&one)).unwrap(), text);
        assert!(matches!(store.import(&one, b"nonsense", true), Err(StoreError::Certificate { .. })));
    }

    #[test]
    fn certificates_put_there_by_hand_are_recorded_by_a_build() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(folder.path());
        let one = need(None, "a");
        std::fs::create_dir(folder.path().join("default")).unwrap();
        let certificate = Certificate::from_secret_bytes([3; 32], "a");
        std::fs::write(store.path(&one), certificate.to_file_text().as_bytes()).unwrap();
        std::fs::set_permissions(store.path(&one), std::fs::Permissions::from_mode(0o600)).unwrap();
        let needs = private(std::slice::from_ref(&one));
        assert_eq!(gather(&store, &needs, Missing::Report).public_keys.len(), 1);
        assert!(store.recorded().unwrap().is_empty());
        assert_eq!(gather(&store, &needs, Missing::Make).public_keys.len(), 1);
        assert_eq!(store.recorded().unwrap()["default/a"], certificate.public_key());
    }

    #[test]
    fn plain_keys_stay_out_of_git() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().canonicalize().unwrap();
        let output = tree.join("deep/generated");
        let titles = ["hpc/lammps".to_owned()];
        assert_eq!(git_work_tree(&output), None);
        assert!(refuse_plain_in_git(&titles, &output, false).is_none());
        std::fs::write(tree.join(".git"), "gitdir: elsewhere\n").unwrap();
        assert_eq!(git_work_tree(&output), Some(tree.clone()));
        let refused = refuse_plain_in_git(&titles, &output, false).unwrap();
        assert!(refused.help.unwrap().contains("plain-secrets-in-git"));
        assert!(refuse_plain_in_git(&titles, &output, true).is_none());
        assert!(refuse_plain_in_git(&[], &output, false).is_none());
        // A link into a work tree is in it.
        let outside = tempfile::tempdir().unwrap();
        let link = outside.path().join("link");
        std::os::unix::fs::symlink(&tree, &link).unwrap();
        assert_eq!(git_work_tree(&link.join("generated")), Some(tree));
    }
}
