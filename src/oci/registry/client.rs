//! One request with everything around it: credentials, redirects, trying again, and what to say when it does not work.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use serde::Deserialize;
use url::Url;

use super::super::credentials::Keychain;
use super::super::error::{Error, ErrorKind, Exchange};
use super::super::reference::DOCKER_HUB;
use super::auth::{Auth, Header, Scopes};
use super::options::ClientOptions;
use super::transport::{Body, Failure, Http, Method, Request, Response};

/// Where Docker Hub's registry really is.
const HUB_HOST: &str = "registry-1.docker.io";
/// Most redirects of one request.
const REDIRECTS: usize = 8;
/// Most characters of a registry's message that are shown.
const MESSAGE: usize = 300;

/// Talks to registries. Cheap to share: wrap it in an [`Arc`].
pub struct Client {
    http: Http,
    pub(super) options: ClientOptions,
    keychain: Arc<dyn Keychain>,
    auths: Mutex<BTreeMap<String, Arc<Auth>>>,
    /// Held while a list of referrers under a tag is read and written: registries do not do that in one step.
    pub(super) lists: Mutex<()>,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("options", &self.options).finish_non_exhaustive()
    }
}

/// One request as the rest of this module sees it.
pub(super) struct Call<'a> {
    pub(super) registry: &'a str,
    pub(super) repository: &'a str,
    /// For messages: "read manifest x".
    pub(super) action: String,
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: Vec<(&'a str, String)>,
    pub(super) body: Body<'a>,
    pub(super) scopes: &'a Scopes,
    /// Redirects to other hosts are given back, not followed.
    pub(super) stays: bool,
}

/// The waits of one piece of work.
pub struct Retry<'a> {
    options: &'a ClientOptions,
    waits: Box<dyn Iterator<Item = Duration> + 'a>,
}

impl<'a> Retry<'a> {
    pub(super) fn new(options: &'a ClientOptions) -> Self {
        Self { options, waits: Box::new(options.retry.waits()) }
    }

    /// Waits before the next try; `false` when there is to be none. `asked` is what the server asked for.
    pub fn again(&mut self, asked: Option<Duration>) -> bool {
        let Some(wait) = self.waits.next() else { return false };
        if asked.is_some_and(|asked| asked > self.options.retry.asked) {
            return false;
        }
        (self.options.sleep)(asked.map_or(wait, |asked| asked.max(wait)));
        true
    }
}

impl Client {
    /// A client.
    ///
    /// # Errors
    /// When an authority's certificate or a proxy's address cannot be used.
    pub fn new(options: ClientOptions, keychain: Arc<dyn Keychain>) -> Result<Self, Error> {
        Ok(Self { http: Http::new(&options)?, options, keychain, auths: Mutex::default(), lists: Mutex::default() })
    }

    /// Asks whether a registry is there and takes our credentials (`GET /v2/`).
    ///
    /// # Errors
    /// When it is not, or does not.
    pub fn ping(&self, registry: &str) -> Result<(), Error> {
        let scopes = Scopes { repository: String::new(), scopes: Vec::new() };
        let call = Call {
            registry,
            repository: "",
            action: "ask for the API".to_owned(),
            method: Method::Get,
            url: self.url(registry, "")?,
            headers: Vec::new(),
            body: Body::None,
            scopes: &scopes,
            stays: false,
        };
        let answer = self.send(&call)?;
        if answer.status == 200 { Ok(()) } else { Err(self.refused(&call, answer)) }
    }

    /// Whether a registry is asked by plain HTTP.
    pub(super) fn is_plain(&self, registry: &str) -> bool {
        self.options.plain_http.contains(registry)
    }

    /// Address of an API path below `/v2/`.
    pub(super) fn url(&self, registry: &str, path: &str) -> Result<Url, Error> {
        let scheme = if self.is_plain(registry) { "http" } else { "https" };
        let host = if registry == DOCKER_HUB { HUB_HOST } else { registry };
        Url::parse(&format!("{scheme}://{host}/v2/{path}"))
            .map_err(|e| Error::new(ErrorKind::Reference, format!("`{registry}` is no registry: {e}")))
    }

    pub(super) fn retry(&self) -> Retry<'_> {
        Retry::new(&self.options)
    }

    /// Waits as long as after that many failures.
    pub(super) fn wait(&self, failures: usize) {
        if let Some(wait) = self.options.retry.waits().nth(failures.saturating_sub(1)) {
            (self.options.sleep)(wait);
        }
    }

    fn auth(&self, registry: &str) -> Arc<Auth> {
        let mut auths = self.auths.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || Arc::new(Auth::new(registry, self.is_plain(registry)));
        Arc::clone(auths.entry(registry.to_owned()).or_insert_with(made))
    }

    /// Sends a request, again while that may help. Gives whatever answer there is in the end.
    pub(super) fn send(&self, call: &Call<'_>) -> Result<Response, Error> {
        let mut retry = self.retry();
        loop {
            match self.once(call) {
                Ok(answer) if passes(answer.status) => {
                    let asked = retry_after(&answer);
                    if !retry.again(asked) {
                        return Err(self.refused(call, answer));
                    }
                }
                Ok(answer) => return Ok(answer),
                Err(Unanswered::Failure(failure)) => {
                    if !failure.may_pass() || !retry.again(None) {
                        return Err(Self::failed(call, failure));
                    }
                }
                Err(Unanswered::Error(error)) => {
                    // A token server may be out of order for a moment too.
                    if !error.may_pass() || !retry.again(None) {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Sends a request once: with a new token if the one at hand is refused, and along redirects.
    pub(super) fn once(&self, call: &Call<'_>) -> Result<Response, Unanswered> {
        let auth = self.auth(call.registry);
        let own = self.url(call.registry, "").map_err(Unanswered::Error)?;
        let explain = |error: Error| Unanswered::Error(error.exchange(exchange(call, None, Vec::new())));
        let mut header = auth.header(&self.http, &*self.keychain, call.scopes).map_err(explain)?;
        let (mut url, mut renewed) = (call.url.clone(), false);
        for _ in 0..REDIRECTS {
            let at_home = url.origin() == own.origin();
            let answer = self.attempt(call, &url, header.as_ref().filter(|_| at_home))?;
            if answer.status == 401 && at_home && !renewed {
                renewed = true;
                let new = auth.renew(&self.http, &*self.keychain, call.scopes, header.as_ref(), &answer);
                match new.map_err(explain)? {
                    Some(new) => header = Some(new),
                    None => return Ok(answer),
                }
                continue;
            }
            match self.redirect(call, &url, &answer)? {
                Some(next) => url = next,
                None => return Ok(answer),
            }
        }
        Err(Unanswered::Failure(Failure::Protocol("too many redirects".to_owned())))
    }

    fn attempt(&self, call: &Call<'_>, url: &Url, header: Option<&Header>) -> Result<Response, Unanswered> {
        let mut headers = call.headers.clone();
        if let Some(header) = header {
            headers.push(("authorization", header.as_str().to_owned()));
        }
        self.http
            .send(&Request { method: call.method, url, headers: &headers, body: call.body })
            .map_err(Unanswered::Failure)
    }

    /// Where an answer sends us, if it does.
    fn redirect(&self, call: &Call<'_>, from: &Url, answer: &Response) -> Result<Option<Url>, Unanswered> {
        let reads = matches!(call.method, Method::Get | Method::Head);
        let moved = match answer.status {
            301..=303 => reads,
            307 | 308 => true,
            _ => false,
        };
        let Some(location) = answer.header("location").filter(|_| moved) else { return Ok(None) };
        let bad = |why: &str| Unanswered::Failure(Failure::Protocol(why.to_owned()));
        let next = from.join(location).map_err(|_| bad("it redirects to what is no address"))?;
        let secure = next.scheme() == "https" || (next.scheme() == "http" && self.is_plain(call.registry));
        if call.stays && next.origin() != from.origin() {
            return Ok(None);
        }
        if !secure {
            return Err(bad("it redirects to an address without TLS"));
        }
        Ok(Some(next))
    }

    /// The error for an answer that is no success.
    pub(super) fn refused(&self, call: &Call<'_>, answer: Response) -> Error {
        let status = answer.status;
        let asked = retry_after(&answer);
        let body = answer.error_body();
        let auth = self.auth(call.registry);
        let (codes, message) = read_errors(&auth.masked(&String::from_utf8_lossy(&body)));
        let kind = kind_of(status);
        let text = match (&message, kind) {
            (Some(message), _) => message.clone(),
            (None, ErrorKind::NotFound) => "there is no such thing".to_owned(),
            (None, ErrorKind::Unauthorized) => "it wants other credentials".to_owned(),
            (None, ErrorKind::Denied) => "it forbids that".to_owned(),
            (None, ErrorKind::RateLimited) => "too many requests".to_owned(),
            (None, ErrorKind::Failed) => "it failed".to_owned(),
            (None, _) => "it refused".to_owned(),
        };
        let error = Error::new(kind, text).exchange(exchange(call, Some(status), codes));
        match self.advice(call, kind, status, asked, &body) {
            Some(help) => error.help(help),
            None => error,
        }
    }

    fn advice(
        &self,
        call: &Call<'_>,
        kind: ErrorKind,
        status: u16,
        asked: Option<Duration>,
        body: &[u8],
    ) -> Option<String> {
        let registry = call.registry;
        if String::from_utf8_lossy(body).contains("HTTP request to an HTTPS server") {
            return Some(format!("{registry} speaks TLS: leave --plain-http away"));
        }
        Some(match kind {
            ErrorKind::Unauthorized => format!("log in: docker login {registry}, podman login {registry} or the like"),
            ErrorKind::Denied => {
                format!("does this login of {registry} have the permission, and does the repository exist?")
            }
            ErrorKind::NotFound => "check repository, tag and digest; private repositories may need a login".to_owned(),
            ErrorKind::RateLimited => match asked {
                Some(asked) => format!("it asks to wait {} seconds; try again later, or log in", asked.as_secs()),
                None => "try again later, or log in".to_owned(),
            },
            ErrorKind::Failed => format!("the log of {registry} says why; try again later"),
            _ if status == 413 => {
                format!("a limit of {registry} or a proxy before it is too small (client_max_body_size of nginx)")
            }
            _ => return None,
        })
    }

    /// The error for a request without an answer.
    pub(super) fn failed(call: &Call<'_>, failure: Failure) -> Error {
        let own = matches!(failure, Failure::Source(_));
        let error = failure.error();
        // What was wrong with our own bytes is no fault of the registry.
        if own { error } else { error.exchange(exchange(call, None, Vec::new())) }
    }

    /// An answer that the specification does not know.
    pub(super) fn strange(call: &Call<'_>, status: u16, why: &str) -> Error {
        Error::new(ErrorKind::Protocol, why.to_owned())
            .exchange(exchange(call, Some(status), Vec::new()))
            .help("is this the address of a registry?")
    }
}

/// No answer.
#[derive(Debug)]
pub(super) enum Unanswered {
    /// The connection.
    Failure(Failure),
    /// Something that is told already: credentials, the token server.
    Error(Error),
}

fn exchange(call: &Call<'_>, status: Option<u16>, codes: Vec<String>) -> Exchange {
    Exchange {
        registry: call.registry.to_owned(),
        repository: call.repository.to_owned(),
        action: call.action.clone(),
        status,
        codes,
    }
}

/// Whether an answer says that the same may work later.
pub(super) fn passes(status: u16) -> bool {
    matches!(status, 408 | 429 | 500 | 502 | 503 | 504)
}

fn kind_of(status: u16) -> ErrorKind {
    match status {
        401 => ErrorKind::Unauthorized,
        403 => ErrorKind::Denied,
        404 => ErrorKind::NotFound,
        408 | 504 => ErrorKind::Timeout,
        429 => ErrorKind::RateLimited,
        500..=599 => ErrorKind::Failed,
        400..=499 => ErrorKind::Refused,
        _ => ErrorKind::Protocol,
    }
}

/// `Retry-After` (RFC 9110, section 10.2.3) in seconds or as a date. A date is compared with the answer's own `Date`, so
/// that our clock does not matter; without that it is not used.
pub(super) fn retry_after(answer: &Response) -> Option<Duration> {
    let text = answer.header("retry-after")?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let seconds = |text: &str| {
        let date = httpdate::parse_http_date(text).ok()?;
        date.duration_since(UNIX_EPOCH).ok()
    };
    seconds(text)?.checked_sub(seconds(answer.header("date")?)?)
}

/// Codes and messages of an error body.
fn read_errors(body: &str) -> (Vec<String>, Option<String>) {
    #[derive(Deserialize)]
    struct Errors {
        #[serde(default)]
        errors: Vec<One>,
    }
    #[derive(Deserialize)]
    struct One {
        #[serde(default)]
        code: String,
        #[serde(default)]
        message: String,
    }
    let Ok(Errors { errors }) = serde_json::from_str::<Errors>(body) else { return (Vec::new(), None) };
    let clean = |text: &str| -> String { text.chars().filter(|c| !c.is_control()).take(MESSAGE).collect() };
    let codes = errors.iter().map(|e| clean(&e.code)).filter(|c| !c.is_empty()).take(8).collect();
    let messages: Vec<String> = errors.iter().map(|e| clean(&e.message)).filter(|m| !m.is_empty()).take(8).collect();
    (codes, if messages.is_empty() { None } else { Some(messages.join("; ")) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_bodies() {
        let body = r#"{"errors":[{"code":"DENIED","message":"no\u001b[31m way"},{"code":"X","detail":{"a":1}}]}"#;
        assert_eq!(read_errors(body), (vec!["DENIED".to_owned(), "X".to_owned()], Some("no[31m way".to_owned())));
        for body in ["", "<html>", "{}", r#"{"errors":[]}"#, r#"{"errors":7}"#] {
            assert_eq!(read_errors(body), (Vec::new(), None), "{body}");
        }
    }

    #[test]
    fn kinds_by_status() {
        let cases = [
            (401, "FG872"),
            (403, "FG873"),
            (404, "FG874"),
            (429, "FG875"),
            (503, "FG876"),
            (400, "FG877"),
            (302, "FG878"),
            (504, "FG879"),
        ];
        for (status, id) in cases {
            assert_eq!(kind_of(status).code().id, id);
        }
    }
}
