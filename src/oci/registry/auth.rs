//! Who may do what: challenges (RFC 9110, section 11.6.1), Basic (RFC 7617), and bearer tokens as Docker's token
//! specification and its OAuth2 variant have them.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use url::Url;
use zeroize::Zeroizing;

use super::super::credentials::{Credential, Keychain};
use super::super::error::{Error, ErrorKind};
use super::transport::{Body, Failure, Http, Method, Request, Response};

/// Longest answer of a token server.
const TOKEN_LIMIT: u64 = 1 << 20;
/// Name of this program for token servers.
const CLIENT_ID: &str = "flux-gen";

/// One challenge of `WWW-Authenticate`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Challenge {
    /// Lower case: `basic`, `bearer`.
    pub(super) scheme: String,
    /// Parameters; names in lower case.
    pub(super) parameters: BTreeMap<String, String>,
}

/// Reads a header, which may hold several challenges.
pub(super) fn challenges(header: &str) -> Vec<Challenge> {
    let mut found: Vec<Challenge> = Vec::new();
    let mut rest = header.trim_start();
    while !rest.is_empty() {
        let end = rest.find(|c: char| !is_token(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        let after = after.trim_start();
        match after.strip_prefix('=') {
            Some(value) if !word.is_empty() => {
                let (value, after) = quoted(value.trim_start());
                if let Some(challenge) = found.last_mut() {
                    challenge.parameters.insert(word.to_lowercase(), value);
                }
                rest = after;
            }
            _ if !word.is_empty() => {
                found.push(Challenge { scheme: word.to_lowercase(), parameters: BTreeMap::new() });
                rest = after;
            }
            // A sign that does not belong there.
            _ => rest = after.get(after.chars().next().map_or(0, char::len_utf8)..).unwrap_or_default(),
        }
        rest = rest.trim_start_matches([',', ' ', '\t']);
    }
    found
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

/// A quoted string or a token, and what comes after it.
fn quoted(text: &str) -> (String, &str) {
    let Some(inner) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut escaped = false;
    for (at, c) in inner.char_indices() {
        match c {
            _ if escaped => {
                value.push(c);
                escaped = false;
            }
            '\\' => escaped = true,
            '"' => return (value, &inner[at + 1..]),
            c => value.push(c),
        }
    }
    (value, "")
}

/// How a registry wants to be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Way {
    Basic,
    Bearer { realm: String, service: Option<String> },
}

/// The content of an `Authorization` header.
pub(super) type Header = Zeroizing<String>;

/// What has been learned of one registry.
#[derive(Default)]
struct Known {
    way: Option<Way>,
    /// By repository and scopes.
    tokens: BTreeMap<String, Header>,
    /// Scopes that the registry asked for besides ours, by ours.
    more: BTreeMap<String, String>,
}

/// Credentials and tokens of one registry.
pub(super) struct Auth {
    registry: String,
    /// Whether credentials may be sent without TLS.
    plain: bool,
    known: Mutex<Known>,
    secrets: Mutex<Vec<Zeroizing<String>>>,
}

/// Who asks for what.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Scopes {
    /// The repository whose credentials count; empty for none.
    pub(super) repository: String,
    /// As the token server reads them: `repository:a/b:pull,push`.
    pub(super) scopes: Vec<String>,
}

impl Scopes {
    fn key(&self) -> String {
        format!("{} {}", self.repository, self.scopes.join(" "))
    }
}

impl Auth {
    pub(super) fn new(registry: &str, plain: bool) -> Self {
        Self { registry: registry.to_owned(), plain, known: Mutex::default(), secrets: Mutex::default() }
    }

    /// The header to send, as far as something is known already.
    pub(super) fn header(
        &self,
        http: &Http,
        keychain: &dyn Keychain,
        scopes: &Scopes,
    ) -> Result<Option<Header>, Error> {
        // Held while a token is fetched: the other threads need the same one.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        match known.way.clone() {
            None => Ok(None),
            Some(way) => self.make(&mut known, &way, http, keychain, scopes),
        }
    }

    /// After a 401: learns from it and gives another header than the one that was refused, if there is one.
    pub(super) fn renew(
        &self,
        http: &Http,
        keychain: &dyn Keychain,
        scopes: &Scopes,
        refused: Option<&Header>,
        answer: &Response,
    ) -> Result<Option<Header>, Error> {
        let headers = answer.headers.get_all("www-authenticate").iter().filter_map(|v| v.to_str().ok());
        let all: Vec<Challenge> = headers.flat_map(challenges).collect();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let key = scopes.key();
        // Another thread may have got a new token in the meantime.
        if let Some(token) = known.tokens.get(&key).filter(|token| Some(*token) != refused) {
            return Ok(Some(token.clone()));
        }
        known.tokens.remove(&key);
        let bearer = all.iter().find(|c| c.scheme == "bearer" && c.parameters.contains_key("realm"));
        let way = match bearer {
            Some(challenge) => {
                if let Some(scope) = challenge.parameters.get("scope") {
                    known.more.insert(key, scope.clone());
                }
                let parameter = |name: &str| challenge.parameters.get(name).cloned();
                Way::Bearer { realm: parameter("realm").unwrap_or_default(), service: parameter("service") }
            }
            None if all.iter().any(|c| c.scheme == "basic") => Way::Basic,
            None => return Ok(None),
        };
        known.way = Some(way.clone());
        let made = self.make(&mut known, &way, http, keychain, scopes)?;
        Ok(made.filter(|header| Some(header) != refused))
    }

    fn make(
        &self,
        known: &mut Known,
        way: &Way,
        http: &Http,
        keychain: &dyn Keychain,
        scopes: &Scopes,
    ) -> Result<Option<Header>, Error> {
        if let Some(header) = known.tokens.get(&scopes.key()) {
            return Ok(Some(header.clone()));
        }
        let credential = keychain.find(&self.registry, &scopes.repository)?;
        self.remember(&credential);
        let header = match (way, &credential) {
            (_, Credential::RegistryToken(token)) => Some(bearer(token)),
            (Way::Basic, Credential::Basic { user, password }) => Some(basic(user, password)),
            (Way::Basic, _) => None,
            (Way::Bearer { realm, service }, credential) => {
                let more = known.more.get(&scopes.key()).map(String::as_str).unwrap_or_default();
                let wanted = union(&scopes.scopes, more);
                let ask = |scopes: &[String]| self.token(http, realm, service.as_deref(), credential, scopes);
                let token = match ask(&wanted) {
                    // Some give no token at all when one of several is not allowed. Ours is the first; without the others
                    // nothing can be mounted, and everything is sent.
                    Err(error) if error.kind() == ErrorKind::Unauthorized && wanted.len() > 1 => {
                        ask(&wanted[..1]).map_err(|_| error)?
                    }
                    result => result?,
                };
                self.keep_secret(&token);
                Some(bearer(&token))
            }
        };
        if let Some(header) = &header {
            known.tokens.insert(scopes.key(), header.clone());
        }
        Ok(header)
    }

    fn token(
        &self,
        http: &Http,
        realm: &str,
        service: Option<&str>,
        credential: &Credential,
        scopes: &[String],
    ) -> Result<Zeroizing<String>, Error> {
        let bad = |why: String| Error::new(ErrorKind::Unauthorized, format!("the token server {why}"));
        let url = Url::parse(realm).map_err(|_| bad("has no usable address".to_owned()))?;
        if url.scheme() != "https" && !(self.plain && url.scheme() == "http") {
            return Err(bad(format!("{} would be asked without TLS", host(&url)))
                .help("credentials are not sent that way; see --plain-http"));
        }
        let answer = match credential {
            Credential::IdentityToken { token, .. } => post_token(http, &url, service, scopes, token),
            _ => get_token(http, url.clone(), service, scopes, credential),
        };
        let place = host(&url);
        let answer = answer.map_err(|e| {
            let e = e.error();
            Error::new(e.kind(), format!("the token server {place} does not answer: {e}"))
        })?;
        let status = answer.status;
        if status != 200 {
            let (kind, hint) = match (status, credential) {
                (429, _) => (ErrorKind::RateLimited, "try again later, or log in"),
                (500..=599, _) => (ErrorKind::Failed, "try again later"),
                (_, Credential::Anonymous) => {
                    (ErrorKind::Unauthorized, "there are no credentials for it; log in first")
                }
                _ => (ErrorKind::Unauthorized, "it does not accept the credentials; log in again"),
            };
            return Err(Error::new(kind, format!("the token server {place} answered {status}")).help(hint));
        }
        let bytes = answer.bytes(TOKEN_LIMIT).map_err(|e| bad(format!("{place} broke off: {}", e.error())))?;
        let read: Result<Token, _> = serde_json::from_slice(&bytes);
        let token = read.ok().and_then(|t| t.token.filter(|t| !t.is_empty()).or(t.access_token));
        match token.filter(|t| !t.is_empty() && t.bytes().all(|b| b.is_ascii_graphic())) {
            Some(token) => Ok(Zeroizing::new(token)),
            None => Err(bad(format!("{place} gave no token"))),
        }
    }

    fn remember(&self, credential: &Credential) {
        match credential {
            Credential::Anonymous => {}
            Credential::Basic { password, .. } => self.keep_secret(password),
            Credential::IdentityToken { token, .. } | Credential::RegistryToken(token) => self.keep_secret(token),
        }
    }

    fn keep_secret(&self, secret: &Zeroizing<String>) {
        let mut secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        if !secret.is_empty() && !secrets.contains(secret) {
            secrets.push(secret.clone());
        }
    }

    /// A text of the registry without anything that was a secret.
    pub(super) fn masked(&self, text: &str) -> String {
        let secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "***"))
    }
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

/// Ours, and those that the registry named, once each.
fn union(ours: &[String], theirs: &str) -> Vec<String> {
    let mut all = ours.to_vec();
    for scope in theirs.split(' ').filter(|s| !s.is_empty()) {
        if !covered(&all, scope) {
            all.push(scope.to_owned());
        }
    }
    all
}

/// Whether one of the scopes allows at least the actions of another.
fn covered(all: &[String], scope: &str) -> bool {
    let Some((name, actions)) = scope.rsplit_once(':') else { return false };
    all.iter().any(|have| {
        have.rsplit_once(':').is_some_and(|(other, have)| {
            other == name && actions.split(',').all(|action| have.split(',').any(|h| h == action))
        })
    })
}

fn get_token(
    http: &Http,
    mut url: Url,
    service: Option<&str>,
    scopes: &[String],
    credential: &Credential,
) -> Result<Response, Failure> {
    let mut headers = Vec::new();
    {
        let mut query = url.query_pairs_mut();
        if let Some(service) = service {
            query.append_pair("service", service);
        }
        for scope in scopes {
            query.append_pair("scope", scope);
        }
        query.append_pair("client_id", CLIENT_ID);
        if let Credential::Basic { user, password } = credential {
            query.append_pair("account", user);
            headers.push(("authorization", basic(user, password).as_str().to_owned()));
        }
    }
    http.send(&Request { method: Method::Get, url: &url, headers: &headers, body: Body::None })
}

/// OAuth2: an identity token (a refresh token) for an access token.
fn post_token(
    http: &Http,
    url: &Url,
    service: Option<&str>,
    scopes: &[String],
    identity: &str,
) -> Result<Response, Failure> {
    let mut form = url::form_urlencoded::Serializer::new(String::new());
    form.append_pair("grant_type", "refresh_token");
    form.append_pair("client_id", CLIENT_ID);
    form.append_pair("refresh_token", identity);
    if let Some(service) = service {
        form.append_pair("service", service);
    }
    form.append_pair("scope", &scopes.join(" "));
    let form = Zeroizing::new(form.finish());
    let headers = [("content-type", "application/x-www-form-urlencoded".to_owned())];
    http.send(&Request { method: Method::Post, url, headers: &headers, body: Body::Bytes(form.as_bytes()) })
}

fn basic(user: &str, password: &str) -> Header {
    let both = Zeroizing::new(format!("{user}:{password}"));
    Zeroizing::new(format!("Basic {}", STANDARD.encode(both.as_bytes())))
}

fn bearer(token: &str) -> Header {
    Zeroizing::new(format!("Bearer {token}"))
}

/// Host and port of an address: all of it that is shown.
pub(super) fn host(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(header: &str) -> Vec<String> {
        let show = |c: Challenge| {
            let parameters: Vec<String> = c.parameters.iter().map(|(k, v)| format!("{k}={v}")).collect();
            format!("{} {}", c.scheme, parameters.join(";"))
        };
        challenges(header).into_iter().map(show).collect()
    }

    #[test]
    fn challenges_are_read() {
        let cases: [(&str, &[&str]); 7] = [
            (
                r#"Bearer realm="https://a/token",service="r",scope="repository:a/b:pull,push""#,
                &["bearer realm=https://a/token;scope=repository:a/b:pull,push;service=r"],
            ),
            (r#"Basic realm="x", Bearer realm = "y" , error=z"#, &["basic realm=x", "bearer error=z;realm=y"]),
            (r#"BEARER Realm="a\"b\\c""#, &[r#"bearer realm=a"b\c"#]),
            ("Negotiate, Basic", &["negotiate ", "basic "]),
            ("", &[]),
            (r#"Bearer realm="open"#, &["bearer realm=open"]),
            ("\"\" = é Basic", &["basic "]),
        ];
        for (header, expected) in cases {
            assert_eq!(shown(header), expected, "{header}");
        }
    }

    #[test]
    fn scopes_are_asked_for_once() {
        let ours = ["repository:a:pull,push".to_owned(), "repository:b:pull".to_owned()];
        assert_eq!(union(&ours, "repository:a:pull repository:b:pull"), ours);
        assert_eq!(union(&ours, "repository:b:push registry:catalog:*").len(), 4);
    }

    proptest::proptest! {
        #[test]
        fn no_header_breaks_it(header in "\\PC{0,60}|[ ,=\"\\\\a-c]{0,30}") {
            let _ = challenges(&header);
        }
    }
}
