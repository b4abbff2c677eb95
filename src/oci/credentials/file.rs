//! Docker's `config.json` and podman's `auth.json`, which have one format.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde::Deserialize;
use zeroize::Zeroizing;

use super::super::descriptor::null_is_default;
use super::super::error::{Error, ErrorKind, plain};
use super::{Credential, normal_key, secret};

/// One file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuthFile {
    #[serde(default, deserialize_with = "null_is_default")]
    auths: BTreeMap<String, Entry>,
    #[serde(default, deserialize_with = "null_is_default")]
    cred_helpers: BTreeMap<String, String>,
    #[serde(default)]
    creds_store: Option<String>,
}

#[derive(Default, Deserialize)]
struct Entry {
    #[serde(default, deserialize_with = "secret")]
    auth: Zeroizing<String>,
    username: Option<String>,
    #[serde(default, deserialize_with = "secret")]
    password: Zeroizing<String>,
    #[serde(default, deserialize_with = "secret")]
    identitytoken: Zeroizing<String>,
    #[serde(default, deserialize_with = "secret")]
    registrytoken: Zeroizing<String>,
}

fn unreadable(path: &Path, why: &str) -> Error {
    Error::new(ErrorKind::Credentials, format!("cannot use the credentials in {}: {why}", path.display()))
        .help("log in again with `docker login` or `podman login`")
}

impl AuthFile {
    /// `None` when there is no such file and it is not required.
    pub(super) fn read(path: &Path, required: bool) -> Result<Option<Self>, Error> {
        let bytes = match fs::read(path) {
            Ok(bytes) => Zeroizing::new(bytes),
            Err(e) if e.kind() == io::ErrorKind::NotFound && !required => return Ok(None),
            Err(e) => return Err(unreadable(path, &plain(&e))),
        };
        // The parser's message may quote the content.
        let parsed = serde_json::from_slice(&bytes).map_err(|e| {
            unreadable(path, &format!("line {} column {} is not what a login file has", e.line(), e.column()))
        })?;
        Ok(Some(parsed))
    }

    /// The helper for a registry.
    pub(super) fn helper(&self, registry: &str) -> Option<&str> {
        let own = self.cred_helpers.iter().find(|(key, _)| normal_key(key) == registry).map(|(_, name)| name);
        own.or(self.creds_store.as_ref()).map(String::as_str).filter(|name| !name.is_empty())
    }

    /// The entry of the repository, of what is above it, or of the registry: the most exact one that holds something.
    pub(super) fn find(&self, path: &Path, registry: &str, repository: &str) -> Result<Option<Credential>, Error> {
        let mut name = format!("{registry}/{repository}");
        let name_end = registry.len();
        loop {
            let name_now = name.trim_end_matches('/');
            for (_, entry) in self.auths.iter().filter(|(key, _)| normal_key(key) == name_now) {
                if let Some(found) = entry.credential(path)? {
                    return Ok(Some(found));
                }
            }
            match name.rfind('/') {
                Some(slash) if slash >= name_end => name.truncate(slash),
                _ => return Ok(None),
            }
        }
    }
}

impl Entry {
    fn credential(&self, path: &Path) -> Result<Option<Credential>, Error> {
        let given = |text: &Zeroizing<String>| Some(text.clone()).filter(|t| !t.is_empty());
        if let Some(token) = given(&self.identitytoken) {
            return Ok(Some(Credential::IdentityToken { token }));
        }
        if let Some(token) = given(&self.registrytoken) {
            return Ok(Some(Credential::RegistryToken(token)));
        }
        if let Some(auth) = given(&self.auth) {
            let bad = || unreadable(path, "an `auth` is not user and password in base64");
            let trimmed = auth.trim();
            let bytes = STANDARD.decode(trimmed).or_else(|_| STANDARD_NO_PAD.decode(trimmed)).map_err(|_| bad())?;
            let text = Zeroizing::new(String::from_utf8(bytes).map_err(|_| bad())?);
            let (user, password) = text.split_once(':').ok_or_else(bad)?;
            // Docker wrote a zero byte at the end once.
            let password = Zeroizing::new(password.trim_end_matches('\0').to_owned());
            return Ok(Some(Credential::Basic { user: user.to_owned(), password }));
        }
        match (&self.username, given(&self.password)) {
            (Some(user), Some(password)) => Ok(Some(Credential::Basic { user: user.clone(), password })),
            _ => Ok(None),
        }
    }
}
