//! A small synchronous client of the Kubernetes API: kubeconfig, the five verbs, list and watch.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use crate::say::say;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig};

/// Content type of `PATCH` requests that merge lists by key.
pub const STRATEGIC_MERGE: &str = "application/strategic-merge-patch+json";

/// What a call can come back with.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The server answered with an error status.
    #[error("{code} {reason}: {message}")]
    Status {
        /// HTTP status code.
        code: u16,
        /// `Status.reason`.
        reason: String,
        /// `Status.message`.
        message: String,
    },
    /// No answer, or none that can be read.
    #[error("{0}")]
    Transport(String),
    /// The kubeconfig cannot be used.
    #[error("kubeconfig: {0}")]
    Config(String),
}

impl ApiError {
    /// The HTTP status code, if the server answered.
    pub fn code(&self) -> Option<u16> {
        match self {
            ApiError::Status { code, .. } => Some(*code),
            _ => None,
        }
    }
}

/// Result of an API call.
pub type Result<T> = std::result::Result<T, ApiError>;

/// One API server, as one user.
pub struct Client {
    agent: ureq::Agent,
    server: String,
    bearer: Option<String>,
}

/// What a reflector tells its owner.
pub enum Delta {
    /// The complete list, after a (re)list.
    Replace(Vec<Value>),
    /// An object that is new or changed.
    Apply(Value),
    /// The last state of an object that is gone.
    Delete(Value),
}

impl Client {
    /// Reads the current context of a kubeconfig file.
    ///
    /// # Errors
    /// [`ApiError::Config`] names what is missing.
    pub fn from_kubeconfig(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|e| ApiError::Config(format!("{}: {e}", path.display())))?;
        let config: KubeConfig = serde_norway::from_str(&text).map_err(|e| ApiError::Config(e.to_string()))?;
        let base = path.parent().unwrap_or(Path::new("."));
        let (cluster, user) = config.current()?;
        let mut tls = TlsConfig::builder();
        if cluster.insecure_skip_tls_verify {
            tls = tls.disable_verification(true);
        } else if let Some(pem) =
            pem(base, cluster.certificate_authority_data.as_ref(), cluster.certificate_authority.as_ref())?
        {
            tls = tls.root_certs(RootCerts::new_with_certs(&certificates(&pem)?));
        }
        let cert = pem(base, user.client_certificate_data.as_ref(), user.client_certificate.as_ref())?;
        let key = pem(base, user.client_key_data.as_ref(), user.client_key.as_ref())?;
        if let (Some(cert), Some(key)) = (cert, key) {
            let key = PrivateKey::from_pem(&key).map_err(|e| ApiError::Config(e.to_string()))?;
            tls = tls.client_cert(Some(ClientCert::new_with_certs(&certificates(&cert)?, key)));
        }
        let bearer = match (&user.token, &user.token_file) {
            (Some(token), _) => Some(token.clone()),
            (None, Some(file)) => Some(
                std::fs::read_to_string(base.join(file))
                    .map_err(|e| ApiError::Config(format!("{file}: {e}")))?
                    .trim()
                    .to_owned(),
            ),
            (None, None) => None,
        };
        let agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .proxy(None)
            .tls_config(tls.build())
            .max_idle_connections_per_host(8)
            .build()
            .new_agent();
        Ok(Client { agent, server: cluster.server.trim_end_matches('/').to_owned(), bearer })
    }

    /// `GET path`.
    ///
    /// # Errors
    /// Any status outside 2xx, or no answer.
    pub fn get(&self, path: &str) -> Result<Value> {
        self.call("GET", path, "", None)
    }

    /// `POST path`.
    ///
    /// # Errors
    /// Any status outside 2xx, or no answer.
    pub fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.call("POST", path, "application/json", Some(body))
    }

    /// `PATCH path` with the given content type.
    ///
    /// # Errors
    /// Any status outside 2xx, or no answer.
    pub fn patch(&self, path: &str, content_type: &str, body: &Value) -> Result<Value> {
        self.call("PATCH", path, content_type, Some(body))
    }

    /// `DELETE path` with `DeleteOptions`.
    ///
    /// # Errors
    /// Any status outside 2xx, or no answer.
    pub fn delete(&self, path: &str, options: &Value) -> Result<Value> {
        self.call("DELETE", path, "application/json", Some(options))
    }

    fn call(&self, method: &str, path: &str, content_type: &str, body: Option<&Value>) -> Result<Value> {
        let mut response = self.send(method, path, content_type, body, Duration::from_secs(30))?;
        let code = response.status().as_u16();
        let text = response
            .body_mut()
            .with_config()
            .limit(64 << 20)
            .read_to_string()
            .map_err(|e| ApiError::Transport(e.to_string()))?;
        let value: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        if (200..300).contains(&code) { Ok(value) } else { Err(status_error(code, &value, &text)) }
    }

    fn send(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: Option<&Value>,
        timeout: Duration,
    ) -> Result<ureq::http::Response<ureq::Body>> {
        let mut request = ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.server));
        if let Some(token) = &self.bearer {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        if !content_type.is_empty() {
            request = request.header("Content-Type", content_type);
        }
        let text = body.map(Value::to_string).unwrap_or_default();
        let request = request.body(text).map_err(|e| ApiError::Transport(e.to_string()))?;
        let request = self
            .agent
            .configure_request(request)
            .timeout_global(Some(timeout))
            .allow_non_standard_methods(true)
            .build();
        self.agent.run(request).map_err(|e| ApiError::Transport(format!("{method} {path}: {e}")))
    }

    /// Keeps `on_delta` informed of a collection until the process ends: list, watch from the list's
    /// version, list again when the version is too old (410) or the connection is lost.
    pub fn reflect(&self, collection: &str, mut on_delta: impl FnMut(Delta)) -> ! {
        loop {
            if let Err(e) = self.list_and_watch(collection, &mut on_delta) {
                say!("watch {collection}: {e}");
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    fn list_and_watch(&self, collection: &str, on_delta: &mut impl FnMut(Delta)) -> Result<()> {
        let list = self.get(collection)?;
        let mut version = text_at(&list, "/metadata/resourceVersion");
        let items = match list.get("items") {
            Some(Value::Array(items)) => items.clone(),
            _ => Vec::new(),
        };
        on_delta(Delta::Replace(items));
        loop {
            let path = format!(
                "{collection}?watch=true&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion={version}"
            );
            let response = self.send("GET", &path, "", None, Duration::from_secs(320))?;
            let code = response.status().as_u16();
            if code != 200 {
                return Err(status_error(code, &Value::Null, "watch refused"));
            }
            for line in BufReader::new(response.into_body().into_reader()).lines() {
                let line = line.map_err(|e| ApiError::Transport(e.to_string()))?;
                let mut event: Value = serde_json::from_str(&line).map_err(|e| ApiError::Transport(e.to_string()))?;
                let object = event["object"].take();
                match event["type"].as_str().unwrap_or_default() {
                    "ADDED" | "MODIFIED" => {
                        version = text_at(&object, "/metadata/resourceVersion");
                        on_delta(Delta::Apply(object));
                    }
                    "DELETED" => {
                        version = text_at(&object, "/metadata/resourceVersion");
                        on_delta(Delta::Delete(object));
                    }
                    "BOOKMARK" => version = text_at(&object, "/metadata/resourceVersion"),
                    // 410 Gone arrives here: the caller lists again.
                    _ => return Err(status_error(410, &object, &line)),
                }
            }
        }
    }
}

/// The string at a JSON pointer, or nothing.
pub fn text_at(value: &Value, pointer: &str) -> String {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn status_error(code: u16, value: &Value, text: &str) -> ApiError {
    let message = text_at(value, "/message");
    ApiError::Status {
        code,
        reason: text_at(value, "/reason"),
        message: if message.is_empty() { text.chars().take(300).collect() } else { message },
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<Certificate<'static>>> {
    let mut out = Vec::new();
    for item in ureq::tls::parse_pem(pem) {
        if let ureq::tls::PemItem::Certificate(c) = item.map_err(|e| ApiError::Config(e.to_string()))? {
            out.push(c);
        }
    }
    Ok(out)
}

fn pem(base: &Path, data: Option<&String>, file: Option<&String>) -> Result<Option<Vec<u8>>> {
    match (data, file) {
        (Some(data), _) => STANDARD.decode(data.trim()).map(Some).map_err(|e| ApiError::Config(e.to_string())),
        (None, Some(file)) => {
            std::fs::read(base.join(file)).map(Some).map_err(|e| ApiError::Config(format!("{file}: {e}")))
        }
        (None, None) => Ok(None),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct KubeConfig {
    #[serde(default)]
    current_context: String,
    #[serde(default)]
    clusters: Vec<Named>,
    #[serde(default)]
    contexts: Vec<Named>,
    #[serde(default)]
    users: Vec<Named>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
    cluster: Option<Cluster>,
    context: Option<Context>,
    user: Option<User>,
}

#[derive(Deserialize)]
struct Context {
    cluster: String,
    user: String,
}

#[derive(Deserialize, Clone)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: String,
    certificate_authority: Option<String>,
    certificate_authority_data: Option<String>,
    #[serde(default)]
    insecure_skip_tls_verify: bool,
}

#[derive(Deserialize, Clone, Default)]
#[serde(rename_all = "kebab-case")]
struct User {
    client_certificate: Option<String>,
    client_certificate_data: Option<String>,
    client_key: Option<String>,
    client_key_data: Option<String>,
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<String>,
}

impl KubeConfig {
    fn current(&self) -> Result<(Cluster, User)> {
        let missing = |what: &str| ApiError::Config(format!("no {what} for the current context"));
        let find = |list: &[Named], name: &str| list.iter().position(|n| n.name == name);
        let context = find(&self.contexts, &self.current_context)
            .and_then(|i| self.contexts[i].context.as_ref())
            .ok_or_else(|| missing("context"))?;
        let cluster = find(&self.clusters, &context.cluster)
            .and_then(|i| self.clusters[i].cluster.clone())
            .ok_or_else(|| missing("cluster"))?;
        let user = find(&self.users, &context.user).and_then(|i| self.users[i].user.clone()).unwrap_or_default();
        Ok((cluster, user))
    }
}
