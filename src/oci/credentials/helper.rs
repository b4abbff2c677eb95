//! Programs `docker-credential-…`: they read a server from their standard input and write user and secret as JSON.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde::Deserialize;
use zeroize::Zeroizing;

use super::super::error::{Error, ErrorKind, plain};
use super::super::reference::DOCKER_HUB;
use super::Credential;

/// The name under which helpers know Docker Hub.
pub const HUB_SERVER: &str = "https://index.docker.io/v1/";
/// The user that stands for an identity token.
const TOKEN_USER: &str = "<token>";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    #[serde(default)]
    username: String,
    #[serde(default, deserialize_with = "super::secret")]
    secret: Zeroizing<String>,
}

/// Asks a helper; `None` when it knows nothing of the registry.
pub(super) fn get(name: &str, registry: &str, folders: &[PathBuf]) -> Result<Option<Credential>, Error> {
    let program = format!("docker-credential-{name}");
    let failed = |why: &str| {
        Error::new(ErrorKind::Helper, format!("`{program}` gave no credentials for {registry}: {why}"))
            .help("run it by hand, or log in again without a credential helper")
    };
    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)) {
        return Err(failed("that is not the name of a program"));
    }
    let found = folders.iter().map(|folder| folder.join(&program)).find(|path| path.is_file());
    if found.is_none() && !folders.is_empty() {
        return Err(failed("it is not installed"));
    }
    let mut command = Command::new(found.unwrap_or_else(|| PathBuf::from(&program)));
    command.arg("get").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|e| failed(&plain(&e)))?;
    let server = if registry == DOCKER_HUB { HUB_SERVER } else { registry };
    if let Some(mut input) = child.stdin.take() {
        // A helper that ends without reading says why by its exit code.
        let _ = input.write_all(server.as_bytes());
    }
    let output = child.wait_with_output().map_err(|e| failed(&plain(&e)))?;
    let bytes = Zeroizing::new(output.stdout);
    if !output.status.success() {
        let text = Zeroizing::new(String::from_utf8_lossy(&bytes).to_lowercase());
        if text.contains("credentials not found") {
            return Ok(None);
        }
        return Err(failed(&format!("it ended with {}", output.status)));
    }
    let answer: Answer = serde_json::from_slice(&bytes).map_err(|_| failed("its answer is not what helpers write"))?;
    Ok(match (answer.username.as_str(), answer.secret.is_empty()) {
        (_, true) => None,
        (TOKEN_USER, false) => Some(Credential::IdentityToken { token: answer.secret }),
        (user, false) => Some(Credential::Basic { user: user.to_owned(), password: answer.secret }),
    })
}
