//! Registries as the command line reaches them: options, login files, proxies.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use super::error::CommandError;
use crate::airgap::mirror::Prefix;
use crate::oci::Error;
use crate::oci::credentials::{LoginFiles, Places};
use crate::oci::registry::{Client, ClientOptions, Proxies, RetryPolicy};
use crate::oci::transfer::TransferOptions;

/// How registries are reached.
#[derive(Debug, Args)]
#[command(next_help_heading = "Registry options")]
pub(crate) struct RegistryArgs {
    /// Registry to talk to without TLS, as it stands in references (`localhost:5000`). May be repeated.
    #[arg(long, value_name = "REGISTRY", value_parser = registry)]
    plain_http: Vec<String>,
    /// PEM file with a certificate authority to trust besides those of the system. May be repeated.
    #[arg(long, value_name = "FILE")]
    ca: Vec<PathBuf>,
    /// Login file in place of those of docker and podman.
    #[arg(long, value_name = "FILE")]
    authfile: Option<PathBuf>,
    /// Blobs to send or fetch at the same time.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    parallel: u16,
    /// Seconds that a connection may stand still.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86400))]
    timeout: u64,
}

impl RegistryArgs {
    /// A client with these options.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(crate) fn client(&self) -> Result<Arc<Client>, CommandError> {
        let options = ClientOptions {
            plain_http: self.plain_http.iter().cloned().collect::<BTreeSet<_>>(),
            ..client_options(&self.ca, self.timeout)?
        };
        let path = |name: &str| text(name).map(PathBuf::from);
        let places = Places {
            registry_auth_file: self.authfile.clone().or_else(|| path("REGISTRY_AUTH_FILE")),
            runtime_dir: path("XDG_RUNTIME_DIR"),
            config_home: path("XDG_CONFIG_HOME"),
            docker_config: path("DOCKER_CONFIG"),
            home: path("HOME"),
            helpers: Vec::new(),
        };
        let client = Client::new(options, Arc::new(LoginFiles::new(places)));
        Ok(Arc::new(client.map_err(|error| failed(&error))?))
    }

    /// How to transfer.
    pub(crate) fn transfer(&self, mount_from: &[String]) -> TransferOptions {
        TransferOptions { parallel: usize::from(self.parallel), mount_from: mount_from.to_vec() }
    }
}

/// A registry as references have it. Anything else would never be compared equal, and so count for nothing without a word.
fn registry(text: &str) -> Result<String, String> {
    let name = Prefix::parse(text).ok().filter(|name| name.to_string() == name.registry());
    name.map(|name| name.registry().to_owned())
        .ok_or_else(|| "write HOST or HOST:PORT, as references have it".to_owned())
}

/// How to talk to servers: authorities beside those of the system, seconds that a connection may stand still, and what the
/// environment says of proxies.
///
/// # Errors
/// When a file cannot be read.
pub(crate) fn client_options(ca: &[PathBuf], timeout: u64) -> Result<ClientOptions, CommandError> {
    let mut authorities = Vec::new();
    for file in ca {
        let bytes = fs::read(file).map_err(|e| CommandError::file("read", file, &e))?;
        authorities.push((file.display().to_string(), bytes));
    }
    let either = |upper: &str, lower: &str| text(lower).or_else(|| text(upper));
    let proxies = Proxies {
        http: either("HTTP_PROXY", "http_proxy"),
        https: either("HTTPS_PROXY", "https_proxy"),
        no_proxy: either("NO_PROXY", "no_proxy"),
    };
    // Clients that failed together are not to come back together. Without random numbers they do.
    let seed = getrandom::u64().unwrap_or_default();
    Ok(ClientOptions {
        timeout: Duration::from_secs(timeout),
        retry: RetryPolicy { seed, ..RetryPolicy::default() },
        authorities,
        proxies,
        ..ClientOptions::default()
    })
}

/// A variable that is set and not empty.
#[allow(clippy::disallowed_methods)] // cli/ is where the environment is read.
fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// An error of images and registries as that of a command.
pub(crate) fn failed(error: &Error) -> CommandError {
    let made = CommandError::operation(error.to_string());
    match error.advice() {
        Some(help) => made.help(help),
        None => made,
    }
}
