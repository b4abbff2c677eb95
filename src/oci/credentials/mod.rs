//! Credentials of `docker login` and `podman login`, and the helpers that they use.
//!
//! Sources: Docker's `config.json`; containers-auth.json(5); the protocol of docker-credential-helpers. The crate
//! docker_credential is not used: it looks only for exact keys, not in podman's own places, and not for podman's keys of
//! repositories.

mod file;
mod helper;

use std::fmt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::error::Error;
use file::AuthFile;

pub use helper::HUB_SERVER;

/// What proves who we are. Shows as nothing but its kind.
#[derive(Clone, PartialEq, Eq)]
pub enum Credential {
    /// Nothing is known; public content is readable still.
    Anonymous,
    /// User and password.
    Basic {
        /// The user.
        user: String,
        /// The password or personal token.
        password: Zeroizing<String>,
    },
    /// A refresh token of an OAuth2 login, for which a token server gives access tokens.
    IdentityToken {
        /// The token.
        token: Zeroizing<String>,
    },
    /// A token that goes to the registry itself.
    RegistryToken(Zeroizing<String>),
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Anonymous => "Anonymous",
            Self::Basic { .. } => "Basic(..)",
            Self::IdentityToken { .. } => "IdentityToken(..)",
            Self::RegistryToken(_) => "RegistryToken(..)",
        })
    }
}

/// Knows credentials.
pub trait Keychain: Send + Sync {
    /// The credential for a repository; the repository is empty when only the registry counts.
    ///
    /// # Errors
    /// When a file or helper that should know fails. Nothing of its content is in the error.
    fn find(&self, registry: &str, repository: &str) -> Result<Credential, Error>;
}

/// No credentials at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoCredentials;

impl Keychain for NoCredentials {
    fn find(&self, _registry: &str, _repository: &str) -> Result<Credential, Error> {
        Ok(Credential::Anonymous)
    }
}

/// The same credential for one registry, from the command line of a test or a CI variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OneCredential {
    /// Host and port.
    pub registry: String,
    /// What proves who we are there.
    pub credential: Credential,
}

impl Keychain for OneCredential {
    fn find(&self, registry: &str, _repository: &str) -> Result<Credential, Error> {
        Ok(if registry == self.registry { self.credential.clone() } else { Credential::Anonymous })
    }
}

/// Where login files are looked for: the values of the variables, as the command line found them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Places {
    /// `REGISTRY_AUTH_FILE`: the only file that counts, when it is given.
    pub registry_auth_file: Option<PathBuf>,
    /// `XDG_RUNTIME_DIR`.
    pub runtime_dir: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`.
    pub config_home: Option<PathBuf>,
    /// `DOCKER_CONFIG`: the folder of `config.json`.
    pub docker_config: Option<PathBuf>,
    /// The home folder.
    pub home: Option<PathBuf>,
    /// Folders of helpers; when empty the operating system looks for them (`PATH`).
    pub helpers: Vec<PathBuf>,
}

impl Places {
    /// The files, in the order in which they are asked: podman's of this session, podman's of the user, Docker's.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        if let Some(file) = &self.registry_auth_file {
            return vec![file.clone()];
        }
        let below = |folder: &Option<PathBuf>, rest: &str| folder.as_ref().map(|folder| folder.join(rest));
        let config = below(&self.config_home, "containers/auth.json");
        let docker = below(&self.docker_config, "config.json");
        let files = [
            below(&self.runtime_dir, "containers/auth.json"),
            config.or_else(|| below(&self.home, ".config/containers/auth.json")),
            docker.or_else(|| below(&self.home, ".docker/config.json")),
        ];
        files.into_iter().flatten().collect()
    }
}

/// The files of `docker login` and `podman login`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoginFiles {
    places: Places,
}

impl LoginFiles {
    /// Looks in these places, each time it is asked.
    #[must_use]
    pub fn new(places: Places) -> Self {
        Self { places }
    }

    fn in_file(&self, path: &Path, registry: &str, repository: &str) -> Result<Option<Credential>, Error> {
        let required = self.places.registry_auth_file.is_some();
        let Some(file) = AuthFile::read(path, required)? else { return Ok(None) };
        if let Some(helper) = file.helper(registry)
            && let Some(found) = helper::get(helper, registry, &self.places.helpers)?
        {
            return Ok(Some(found));
        }
        file.find(path, registry, repository)
    }
}

impl Keychain for LoginFiles {
    fn find(&self, registry: &str, repository: &str) -> Result<Credential, Error> {
        for path in self.places.files() {
            if let Some(found) = self.in_file(&path, registry, repository)? {
                return Ok(found);
            }
        }
        Ok(Credential::Anonymous)
    }
}

/// A text that wipes itself; empty when it is `null`.
fn secret<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Zeroizing<String>, D::Error> {
    use serde::Deserialize;
    Ok(Zeroizing::new(Option::<String>::deserialize(deserializer)?.unwrap_or_default()))
}

/// One spelling for the keys of login files: without scheme, Docker Hub as `docker.io`. Keys with a scheme are those of
/// servers (`https://host/v1/`), so their path does not count; others may name repositories.
fn normal_key(key: &str) -> String {
    let (rest, server) = match key.split_once("://") {
        Some((_, rest)) => (rest, true),
        None => (key, false),
    };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = match host {
        "index.docker.io" | "registry-1.docker.io" => super::reference::DOCKER_HUB,
        other => other,
    };
    let path = path.trim_end_matches('/');
    if server || path.is_empty() || path == "v1" || path == "v2" { host.to_owned() } else { format!("{host}/{path}") }
}

#[cfg(test)]
mod tests;
