//! HTTP as registries need it: no redirects by itself, no proxy from the environment, a time limit for standing still.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use ureq::http::{HeaderMap, Request as HttpRequest};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig};
use ureq::{Agent, SendBody};
use url::Url;

use super::super::error::{Error, ErrorKind, plain};
use super::options::{ClientOptions, Proxies};

/// Longest body of an answer that is read for its error codes.
const ERROR_BODY: u64 = 16 << 10;
/// A registry may check a blob of any size before it answers: time per byte besides the time limit, as bytes per second.
const SLOWEST_CHECK: u64 = 20_000_000;
/// Bodies above this size are sent only after the registry has agreed to the headers.
const EXPECT_ABOVE: u64 = 1 << 20;

/// The methods that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Head,
    Post,
    Put,
    Patch,
}

impl Method {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
        }
    }
}

/// Bytes to send, opened anew for each try.
pub(super) trait Open {
    fn open(&self) -> Result<Box<dyn Read + Send + '_>, Error>;
}

/// What is sent.
#[derive(Clone, Copy)]
pub(super) enum Body<'a> {
    None,
    Bytes(&'a [u8]),
    Stream { size: u64, open: &'a dyn Open },
}

impl Body<'_> {
    fn size(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Stream { size, .. } => *size,
        }
    }
}

/// One request.
pub(super) struct Request<'a> {
    pub(super) method: Method,
    pub(super) url: &'a Url,
    pub(super) headers: &'a [(&'a str, String)],
    pub(super) body: Body<'a>,
}

/// An answer of whatever status.
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: ureq::Body,
}

impl Response {
    /// A header as text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The body up to `limit` bytes, and one more when there is more.
    pub(super) fn bytes(self, limit: u64) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        let mut reader = self.body.into_reader().take(limit + 1);
        reader.read_to_end(&mut bytes).map_err(|e| Failure::of(ureq::Error::from(e)))?;
        Ok(bytes)
    }

    /// The body of a refusal, as far as it can be read.
    pub(super) fn error_body(self) -> Vec<u8> {
        let mut bytes = Vec::new();
        // The status says enough when the body breaks off.
        let _ = self.body.into_reader().take(ERROR_BODY).read_to_end(&mut bytes);
        bytes
    }
}

/// Why there was no answer.
#[derive(Debug)]
pub(super) enum Failure {
    /// The host has no address.
    NoHost,
    /// Nothing was said for too long.
    Timeout,
    /// Not trusted.
    Tls(String),
    /// The connection could not be made or broke.
    Broken(String),
    /// The bytes to send could not be read.
    Source(Error),
    /// An answer that is no HTTP.
    Protocol(String),
}

impl Failure {
    pub(super) fn of(error: ureq::Error) -> Self {
        match error {
            ureq::Error::Io(error) => Self::of_io(&error),
            ureq::Error::Timeout(_) => Self::Timeout,
            ureq::Error::HostNotFound => Self::NoHost,
            ureq::Error::Rustls(error) => Self::of_tls(&error),
            ureq::Error::Tls(why) => Self::Tls(why.to_owned()),
            ureq::Error::ConnectProxyFailed(why) => Self::Broken(format!("the proxy refused: {why}")),
            ureq::Error::ConnectionFailed => Self::Broken("no connection".to_owned()),
            other => Self::Protocol(other.to_string()),
        }
    }

    fn of_io(error: &std::io::Error) -> Self {
        if let Some(own) = Error::carried(error) {
            return Self::Source(own.clone());
        }
        if let Some(tls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            return Self::of_tls(tls);
        }
        match error.kind() {
            std::io::ErrorKind::TimedOut | std::io::ErrorKind::WouldBlock => Self::Timeout,
            // The standard library has no kind for it.
            _ if error.to_string().starts_with("failed to lookup address") => Self::NoHost,
            _ => Self::Broken(plain(error)),
        }
    }

    fn of_tls(error: &rustls::Error) -> Self {
        use rustls::CertificateError as Certificate;
        let why = match error {
            // A bad signature is that of an authority with the name of one that is known.
            rustls::Error::InvalidCertificate(Certificate::UnknownIssuer | Certificate::BadSignature) => {
                "its certificate is signed by an authority that is not known here".to_owned()
            }
            rustls::Error::InvalidCertificate(Certificate::NotValidForName) => {
                "its certificate is for another name".to_owned()
            }
            rustls::Error::InvalidCertificate(Certificate::NotValidForNameContext { .. }) => {
                "its certificate is for another name".to_owned()
            }
            rustls::Error::InvalidCertificate(Certificate::Expired | Certificate::ExpiredContext { .. }) => {
                "its certificate has expired".to_owned()
            }
            rustls::Error::InvalidMessage(_) => "it does not speak TLS".to_owned(),
            other => other.to_string(),
        };
        Self::Tls(why)
    }

    /// Whether the same again may work.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, Self::Timeout | Self::Broken(_))
    }

    /// As an error without the request.
    pub(super) fn error(self) -> Error {
        match self {
            Self::NoHost => Error::new(ErrorKind::Unreachable, "the host name has no address")
                .help("check the name of the registry, and the network"),
            Self::Timeout => Error::new(ErrorKind::Timeout, "no progress for too long")
                .help("check the network; --timeout allows more time"),
            Self::Tls(why) => Error::new(ErrorKind::Tls, why).help(
                "give its authority with --ca FILE; a registry that speaks plain HTTP is named with --plain-http HOST:PORT, as in references",
            ),
            Self::Broken(why) => {
                Error::new(ErrorKind::Unreachable, why).help("check the name, the port and the network")
            }
            Self::Source(error) => error,
            Self::Protocol(why) => Error::new(ErrorKind::Protocol, why).help("is this the address of a registry?"),
        }
    }
}

/// Sends requests.
#[derive(Debug)]
pub(super) struct Http {
    direct: Agent,
    proxied_http: Option<Agent>,
    proxied_https: Option<Agent>,
    no_proxy: Vec<String>,
    timeout: Duration,
}

impl Http {
    pub(super) fn new(options: &ClientOptions) -> Result<Self, Error> {
        let tls = tls_config(options)?;
        let Proxies { http, https, no_proxy } = &options.proxies;
        let proxied = |address: &Option<String>| match address.as_deref().filter(|a| !a.is_empty()) {
            None => Ok(None),
            Some(address) => {
                // The address may hold a password and is not shown.
                let bad = |_| Error::new(ErrorKind::Unreachable, "the address of the proxy is not usable");
                let proxy = ureq::Proxy::new(address).map_err(bad)?;
                Ok(Some(agent(options, tls.clone(), Some(proxy))))
            }
        };
        let words = no_proxy.as_deref().unwrap_or_default().split([',', ' ']);
        Ok(Self {
            direct: agent(options, tls.clone(), None),
            proxied_http: proxied(http)?,
            proxied_https: proxied(https)?,
            no_proxy: words.filter(|w| !w.is_empty()).map(str::to_lowercase).collect(),
            timeout: options.timeout,
        })
    }

    fn agent(&self, url: &Url) -> &Agent {
        let proxied = if url.scheme() == "https" { &self.proxied_https } else { &self.proxied_http };
        match proxied {
            Some(agent) if !bypasses(&self.no_proxy, url) => agent,
            _ => &self.direct,
        }
    }

    /// Sends a request once.
    pub(super) fn send(&self, request: &Request<'_>) -> Result<Response, Failure> {
        let size = request.body.size();
        let mut builder = HttpRequest::builder().method(request.method.as_str()).uri(request.url.as_str());
        for (name, value) in request.headers {
            builder = builder.header(*name, value);
        }
        let sends = matches!(request.method, Method::Post | Method::Put | Method::Patch);
        if sends {
            builder = builder.header("content-length", size.to_string());
        }
        if size > EXPECT_ABOVE {
            builder = builder.header("expect", "100-continue");
        }
        let wait = self.timeout + Duration::from_secs(size / SLOWEST_CHECK);
        let agent = self.agent(request.url);
        match request.body {
            Body::None if !sends => run(agent, builder, (), wait),
            Body::None => run(agent, builder, [].as_slice(), wait),
            Body::Bytes(bytes) => run(agent, builder, bytes, wait),
            Body::Stream { open, .. } => {
                let mut stream = open.open().map_err(Failure::Source)?;
                run(agent, builder, SendBody::from_reader(&mut stream), wait)
            }
        }
    }
}

fn run(
    agent: &Agent,
    builder: ureq::http::request::Builder,
    body: impl ureq::AsSendBody,
    wait: Duration,
) -> Result<Response, Failure> {
    let made = builder.body(body).map_err(|e| Failure::Protocol(e.to_string()))?;
    let made = agent.configure_request(made).timeout_per_read(Some(wait)).build();
    let answer = agent.run(made).map_err(Failure::of)?;
    let (parts, body) = answer.into_parts();
    Ok(Response { status: parts.status.as_u16(), headers: parts.headers, body })
}

fn agent(options: &ClientOptions, tls: TlsConfig, proxy: Option<ureq::Proxy>) -> Agent {
    let config = Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .proxy(proxy)
        .tls_config(tls)
        .user_agent(options.user_agent.as_str())
        .max_idle_connections_per_host(8)
        .timeout_connect(Some(options.timeout))
        .timeout_per_read(Some(options.timeout))
        .timeout_per_write(Some(options.timeout))
        .build();
    Agent::new_with_config(config)
}

fn tls_config(options: &ClientOptions) -> Result<TlsConfig, Error> {
    let mut roots: Vec<Certificate<'static>> = Vec::new();
    if options.system_roots {
        // Unreadable ones among them are no reason to stop: a registry that needs them is told as not trusted.
        let found = rustls_native_certs::load_native_certs().certs;
        roots.extend(found.iter().map(|der| Certificate::from_der(der.as_ref()).to_owned()));
    }
    for (name, pem) in &options.authorities {
        roots.extend(authorities(name, pem)?);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let made = TlsConfig::builder().root_certs(RootCerts::from(roots));
    Ok(made.unversioned_rustls_crypto_provider(provider).build())
}

/// The certificates of a PEM file; each must be one.
fn authorities(name: &str, pem: &[u8]) -> Result<Vec<Certificate<'static>>, Error> {
    let bad = |why: &str| Error::new(ErrorKind::Tls, format!("{name}: {why}")).help("--ca wants certificates in PEM");
    let mut found = Vec::new();
    for item in ureq::tls::parse_pem(pem) {
        match item {
            Ok(PemItem::Certificate(certificate)) => found.push(certificate),
            Ok(_) => {}
            Err(_) => return Err(bad("is not PEM")),
        }
    }
    if found.is_empty() {
        return Err(bad("has no certificate"));
    }
    let mut store = rustls::RootCertStore::empty();
    for certificate in &found {
        let der = rustls::pki_types::CertificateDer::from(certificate.der());
        store.add(der).map_err(|_| bad("has a certificate that cannot be read"))?;
    }
    Ok(found)
}

/// `NO_PROXY`: a name stands for itself and everything below it, `*` for all; loopback is never asked through a proxy.
fn bypasses(no_proxy: &[String], url: &Url) -> bool {
    let Some(host) = url.host_str().map(|h| h.trim_matches(['[', ']']).to_lowercase()) else { return true };
    let loopback = match host.parse::<std::net::IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost",
    };
    let port = url.port_or_known_default().unwrap_or_default();
    loopback
        || no_proxy.iter().any(|word| {
            let word = match word.rsplit_once(':') {
                Some((name, digits)) if !name.contains(':') => match digits.parse::<u16>() {
                    Ok(wanted) if wanted != port => return false,
                    Ok(_) => name,
                    Err(_) => word.as_str(),
                },
                _ => word.as_str(),
            };
            let name = word.trim_start_matches("*.").trim_start_matches('.');
            word == "*" || host == name || host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_that_no_proxy_is_asked_for() {
        let words: Vec<String> =
            ["corp.example", ".dot.example", "10.0.0.1", "port.example:5000"].map(str::to_owned).into();
        let cases = [
            ("https://corp.example/", true),
            ("https://a.corp.example/", true),
            ("https://notcorp.example/", false),
            ("https://a.dot.example/", true),
            ("http://10.0.0.1:5000/", true),
            ("http://port.example:5000/", true),
            ("http://port.example:5001/", false),
            ("http://localhost:5000/", true),
            ("http://127.0.0.9/", true),
            ("http://[::1]:5000/", true),
            ("https://ghcr.io/", false),
        ];
        for (url, expected) in cases {
            assert_eq!(bypasses(&words, &Url::parse(url).unwrap()), expected, "{url}");
        }
        assert!(bypasses(&["*".to_owned()], &Url::parse("https://ghcr.io/").unwrap()));
    }

    #[test]
    fn authorities_are_checked_when_they_are_given() {
        let good = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap().cert.pem();
        assert_eq!(authorities("a.pem", format!("text\n{good}{good}").as_bytes()).unwrap().len(), 2);
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        for (pem, why) in
            [("", "no certificate"), (broken, "cannot be read"), ("-----BEGIN CERTIFICATE-----\n*", "PEM")]
        {
            let error = authorities("a.pem", pem.as_bytes()).unwrap_err();
            assert!(error.kind() == ErrorKind::Tls && error.to_string().contains(why), "{error}");
        }
    }
}
