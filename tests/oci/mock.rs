//! A registry in threads of the test, which keeps the specification unless it is told to break it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use flux_gen::oci::digest::Digest;
use flux_gen::oci::document::{Document, Index};

/// A way in which a registry misbehaves.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// Answers with a status and headers instead of doing anything.
    Status(u16, Vec<(&'static str, String)>),
    /// Answers 400 with a code of the specification.
    Refusal(&'static str),
    /// Reads so many bytes of the body and closes the connection.
    Reset(usize),
    /// Does what it should and closes the connection instead of answering.
    Lost,
    /// Sends so many bytes of the answer's body and closes the connection.
    Cut(usize),
    /// Stands still before it answers.
    Slow(Duration),
    /// Leaves `Location` out.
    NoLocation,
    /// Leaves `Location` out and names the upload in a header of Docker's.
    Uuid,
    /// Says that it stored or sends something else.
    WrongDigest,
    /// Body of another blob.
    WrongBody,
}

/// A fault for the next requests whose method and path fit.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) method: &'static str,
    pub(crate) path: &'static str,
    pub(crate) times: usize,
    pub(crate) fault: Fault,
}

/// Who is let in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Everybody.
    #[default]
    Open,
    /// `user:pass` in base64.
    Basic,
    /// A token, which is good for so many requests.
    Token { uses: usize },
}

/// How it is set up.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) gate: Gate,
    pub(crate) relative: bool,
    pub(crate) mounts: bool,
    pub(crate) referrers: bool,
    pub(crate) list_subjects: bool,
    /// Refuses a PUT with content.
    pub(crate) pieces_only: bool,
    pub(crate) least: Option<u64>,
    pub(crate) ranges: bool,
    /// The token server gives nothing for several scopes.
    pub(crate) one_scope: bool,
    /// Where blobs are really.
    pub(crate) storage: Option<String>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            gate: Gate::Open,
            relative: true,
            mounts: true,
            referrers: true,
            list_subjects: true,
            pieces_only: false,
            least: None,
            ranges: true,
            one_scope: false,
            storage: None,
        }
    }
}

#[derive(Default)]
pub(crate) struct Repo {
    pub(crate) blobs: BTreeMap<String, Vec<u8>>,
    /// Digest to media type and bytes.
    pub(crate) manifests: BTreeMap<String, (String, Vec<u8>)>,
    pub(crate) tags: BTreeMap<String, String>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) repos: BTreeMap<String, Repo>,
    pub(crate) uploads: BTreeMap<String, Vec<u8>>,
    /// `PUT /v2/…`, without the host, with the status of the answer.
    pub(crate) log: Vec<String>,
    /// What token requests brought along: `Authorization`, query or form.
    pub(crate) logins: Vec<String>,
    /// `Authorization` of every other request.
    pub(crate) shown: Vec<Option<String>>,
    rules: Vec<Rule>,
    tokens: BTreeMap<String, (usize, String)>,
    count: usize,
}

pub(crate) struct Mock {
    pub(crate) address: String,
    pub(crate) state: Arc<Mutex<State>>,
    stop: Arc<AtomicBool>,
}

struct Request {
    method: String,
    path: String,
    query: BTreeMap<String, Vec<String>>,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Answer {
    fn of(status: u16) -> Self {
        Self { status, headers: Vec::new(), body: Vec::new() }
    }

    fn error(status: u16, code: &str) -> Self {
        let body = format!(r#"{{"errors":[{{"code":"{code}","message":"says the mock"}}]}}"#).into_bytes();
        Self { status, headers: vec![("Content-Type".to_owned(), "application/json".to_owned())], body }
    }

    fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}

pub(crate) trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

impl Mock {
    pub(crate) fn new(setup: Setup) -> Self {
        Self::serve(setup, |stream| Some(Box::new(stream) as Box<dyn Stream>), "http")
    }

    /// `wrap` adds TLS.
    pub(crate) fn serve(
        setup: Setup,
        wrap: impl Fn(TcpStream) -> Option<Box<dyn Stream>> + Send + Sync + 'static,
        scheme: &'static str,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("127.0.0.1:{}", listener.local_addr().unwrap().port());
        let (state, stop) = (Arc::new(Mutex::new(State::default())), Arc::new(AtomicBool::new(false)));
        let host = Arc::new(Host { setup, state: Arc::clone(&state), base: format!("{scheme}://{address}") });
        let (stopped, wrap) = (Arc::clone(&stop), Arc::new(wrap));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                let (host, wrap) = (Arc::clone(&host), Arc::clone(&wrap));
                std::thread::spawn(move || {
                    let stream = stream.unwrap();
                    stream.set_nodelay(true).unwrap();
                    if let Some(stream) = wrap(stream) {
                        host.connection(stream);
                    }
                });
            }
        });
        Self { address, state, stop }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn fail(&self, method: &'static str, path: &'static str, times: usize, fault: Fault) {
        self.state().rules.push(Rule { method, path, times, fault });
    }

    /// Forgets all faults.
    pub(crate) fn revive(&self) {
        self.state().rules.clear();
    }

    /// Requests of a method since the last time the log was emptied.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.state().log.iter().filter(|line| line.starts_with(&format!("{method} "))).count()
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(&self.address);
    }
}

struct Host {
    setup: Setup,
    state: Arc<Mutex<State>>,
    base: String,
}

impl Host {
    fn connection(&self, stream: Box<dyn Stream>) {
        let mut stream = BufReader::new(stream);
        while self.exchange(&mut stream).is_some() {}
        let _ = stream.get_mut().flush();
    }

    fn exchange(&self, stream: &mut BufReader<Box<dyn Stream>>) -> Option<()> {
        let Some((mut request, length)) = head(stream) else {
            let _ = stream.get_mut().write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
            return None;
        };
        let fault = self.fault(&request);
        if let Some(Fault::Reset(bytes)) = &fault {
            if request.headers.contains_key("expect") {
                stream.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
            }
            let mut part = vec![0; (*bytes).min(length)];
            stream.read_exact(&mut part).ok()?;
            self.log(&request, 0);
            return None;
        }
        let early = self.early(&request, fault.as_ref());
        let expects = request.headers.contains_key("expect");
        if early.is_none() || !expects {
            if expects {
                stream.get_mut().write_all(b"HTTP/1.1 100 Continue\r\n\r\n").ok()?;
                stream.get_mut().flush().ok()?;
            }
            request.body = vec![0; length];
            stream.read_exact(&mut request.body).ok()?;
        }
        let refused = early.is_some();
        let mut answer = early.unwrap_or_else(|| self.answer(&request, fault.as_ref()));
        let mut most = usize::MAX;
        match fault {
            Some(Fault::Slow(time)) => std::thread::sleep(time),
            Some(Fault::Lost) => {
                self.log(&request, answer.status);
                return None;
            }
            Some(Fault::Cut(bytes)) => most = bytes,
            Some(Fault::NoLocation | Fault::Uuid) => answer.headers.retain(|(name, _)| name != "Location"),
            Some(Fault::WrongDigest) => {
                answer.headers.retain(|(name, _)| name != "Docker-Content-Digest");
                answer = answer.with("Docker-Content-Digest", Digest::of(b"other").to_string());
            }
            Some(Fault::WrongBody) => answer.body = vec![b'x'; answer.body.len()],
            _ => {}
        }
        self.log(&request, answer.status);
        send(stream.get_mut(), &request, &answer, most)?;
        let ends = most != usize::MAX || (refused && expects);
        (!ends).then_some(())
    }

    fn log(&self, request: &Request, status: u16) {
        let mut state = self.state.lock().unwrap();
        if request.path != "/token" {
            state.log.push(format!("{} {} {status}", request.method, request.path));
            state.shown.push(request.headers.get("authorization").cloned());
        }
    }

    fn fault(&self, request: &Request) -> Option<Fault> {
        let mut state = self.state.lock().unwrap();
        let fits = |r: &&mut Rule| r.times > 0 && r.method == request.method && request.path.contains(r.path);
        let rule = state.rules.iter_mut().find(fits)?;
        rule.times -= 1;
        Some(rule.fault.clone())
    }

    /// What is answered without looking at the body.
    fn early(&self, request: &Request, fault: Option<&Fault>) -> Option<Answer> {
        if let Some(Fault::Status(status, headers)) = fault {
            let answer = Answer::error(*status, "MOCK_SAYS_NO");
            return Some(headers.iter().fold(answer, |answer, (name, value)| answer.with(name, value)));
        }
        if let Some(Fault::Refusal(code)) = fault {
            return Some(Answer::error(400, code));
        }
        if request.path == "/token" || request.path.starts_with("/storage/") {
            return None;
        }
        self.gate(request)
    }

    fn gate(&self, request: &Request) -> Option<Answer> {
        let header = request.headers.get("authorization").map(String::as_str);
        let refusal = Answer::error(401, "UNAUTHORIZED");
        match self.setup.gate {
            Gate::Open => None,
            Gate::Basic if header == Some("Basic dXNlcjpwYXNz") => None,
            Gate::Basic => Some(refusal.with("WWW-Authenticate", r#"Basic realm="mock""#)),
            Gate::Token { .. } => {
                let mut state = self.state.lock().unwrap();
                let token = header.and_then(|h| h.strip_prefix("Bearer ")).and_then(|t| state.tokens.get_mut(t));
                let repository = request.path.strip_prefix("/v2/").unwrap_or_default();
                let repository = repository.rsplit_once("/blobs/").or(repository.rsplit_once("/manifests/"));
                let repository = repository.map_or("", |(name, _)| name);
                match token {
                    Some((uses, scopes)) if *uses > 0 && scopes.contains(repository) => {
                        *uses -= 1;
                        None
                    }
                    _ => {
                        let base = &self.base;
                        let challenge = format!(
                            r#"Bearer realm="{base}/token",service="mock",scope="repository:{repository}:pull""#
                        );
                        Some(refusal.with("WWW-Authenticate", challenge))
                    }
                }
            }
        }
    }

    fn answer(&self, request: &Request, fault: Option<&Fault>) -> Answer {
        if request.path == "/token" {
            return self.token(request);
        }
        if let Some(digest) = request.path.strip_prefix("/storage/") {
            if request.headers.contains_key("authorization") || request.method != "GET" {
                return Answer::error(403, "SIGNED_FOR_GET");
            }
            let state = self.state.lock().unwrap();
            let found = state.repos.values().find_map(|repo| repo.blobs.get(digest));
            return found.map_or(Answer::of(404), |bytes| Answer { body: bytes.clone(), ..Answer::of(200) });
        }
        let Some(path) = request.path.strip_prefix("/v2/") else { return Answer::of(404) };
        if path.is_empty() {
            return Answer::of(200);
        }
        let kinds = ["/blobs/uploads/", "/blobs/", "/manifests/", "/tags/list", "/referrers/"];
        let Some((kind, at)) = kinds.iter().find_map(|kind| path.rfind(kind).map(|at| (*kind, at))) else {
            return Answer::of(404);
        };
        let (name, rest) = (&path[..at], &path[at + kind.len()..]);
        let mut state = self.state.lock().unwrap();
        match kind {
            "/blobs/uploads/" => self.upload(&mut state, name, rest, request, fault),
            "/blobs/" => self.blob(&state, name, rest, request),
            "/manifests/" => self.manifest(&mut state, name, rest, request),
            "/tags/list" => tags(&state, name, request),
            _ => self.referrers(&state, name, rest),
        }
    }

    fn token(&self, request: &Request) -> Answer {
        let mut state = self.state.lock().unwrap();
        let form = String::from_utf8(request.body.clone()).unwrap();
        let login = request.headers.get("authorization").cloned().unwrap_or_default();
        let scopes = match request.method.as_str() {
            "POST" => form.clone(),
            _ => request.query.get("scope").map(|s| s.join(" ")).unwrap_or_default(),
        };
        state.logins.push(format!("{} {login} {scopes}", request.method));
        if !(login == "Basic dXNlcjpwYXNz" || form.contains("refresh_token=refresh-me")) {
            return Answer::error(401, "UNAUTHORIZED");
        }
        if self.setup.one_scope && scopes.contains(' ') {
            return Answer::error(403, "DENIED");
        }
        state.count += 1;
        let token = format!("token-{}", state.count);
        let Gate::Token { uses } = self.setup.gate else { return Answer::of(404) };
        let scopes = scopes.replace("%2F", "/");
        state.tokens.insert(token.clone(), (uses, scopes));
        Answer { body: format!(r#"{{"token":"{token}"}}"#).into_bytes(), ..Answer::of(200) }
    }

    fn location(&self, name: &str, id: &str) -> String {
        let path = format!("/v2/{name}/blobs/uploads/{id}?_state=a%2Fb");
        if self.setup.relative { path } else { format!("{}{path}", self.base) }
    }

    fn upload(&self, state: &mut State, name: &str, id: &str, request: &Request, fault: Option<&Fault>) -> Answer {
        let first = |key: &str| request.query.get(key).and_then(|v| v.first()).cloned();
        if request.method == "POST" {
            if let (Some(digest), Some(from)) = (first("mount"), first("from")) {
                let bytes = state.repos.get(&from).and_then(|repo| repo.blobs.get(&digest)).cloned();
                if let (Some(bytes), true) = (bytes, self.setup.mounts) {
                    state.repos.entry(name.to_owned()).or_default().blobs.insert(digest, bytes);
                    return Answer::of(201);
                }
            }
            if let Some(digest) = first("digest") {
                return store(state, name, &digest, request.body.clone());
            }
            state.count += 1;
            let id = format!("upload-{}", state.count);
            state.uploads.insert(id.clone(), Vec::new());
            let mut answer = Answer::of(202).with("Location", self.location(name, &id)).with("Range", "0-0");
            if let Some(least) = self.setup.least {
                answer = answer.with("OCI-Chunk-Min-Length", least.to_string());
            }
            return if matches!(fault, Some(Fault::Uuid)) { answer.with("Docker-Upload-UUID", id) } else { answer };
        }
        let state_kept = first("_state").is_some_and(|s| s == "a/b") || fault.is_some() || !id.contains("upload");
        let Some(have) = state.uploads.get_mut(id).filter(|_| state_kept || state_free(request)) else {
            return Answer::error(404, "BLOB_UPLOAD_UNKNOWN");
        };
        match request.method.as_str() {
            "GET" => Answer::of(204).with("Range", format!("0-{}", have.len().saturating_sub(1))),
            "PATCH" => {
                let start = request.headers.get("content-range").and_then(|r| r.split_once('-')).unwrap().0.to_owned();
                if start != have.len().to_string() {
                    return Answer::error(416, "RANGE_INVALID");
                }
                // Only the last piece may be smaller.
                let small = |least| !have.is_empty() && (have.len() as u64) < least;
                if self.setup.least.is_some_and(small) {
                    return Answer::error(400, "SIZE_INVALID");
                }
                have.extend_from_slice(&request.body);
                let range = format!("0-{}", have.len() - 1);
                Answer::of(202).with("Location", self.location(name, id)).with("Range", range)
            }
            "PUT" => {
                if self.setup.pieces_only && !request.body.is_empty() {
                    return Answer::error(413, "TOO_LARGE");
                }
                let mut bytes = std::mem::take(have);
                bytes.extend_from_slice(&request.body);
                state.uploads.remove(id);
                store(state, name, &first("digest").unwrap_or_default(), bytes)
            }
            _ => Answer::of(405),
        }
    }

    fn blob(&self, state: &State, name: &str, digest: &str, request: &Request) -> Answer {
        let Some(bytes) = state.repos.get(name).and_then(|repo| repo.blobs.get(digest)) else {
            return Answer::error(404, "BLOB_UNKNOWN");
        };
        if let Some(storage) = &self.setup.storage {
            return Answer::of(307).with("Location", format!("{storage}/storage/{digest}"));
        }
        let range =
            request.headers.get("range").and_then(|r| r.strip_prefix("bytes=")).and_then(|r| r.strip_suffix('-'));
        let answer = match range.and_then(|r| r.parse::<usize>().ok()).filter(|_| self.setup.ranges) {
            Some(start) => {
                let range = format!("bytes {start}-{}/{}", bytes.len() - 1, bytes.len());
                Answer { body: bytes[start..].to_vec(), ..Answer::of(206) }.with("Content-Range", range)
            }
            None => Answer { body: bytes.clone(), ..Answer::of(200) },
        };
        answer.with("Docker-Content-Digest", digest)
    }

    fn manifest(&self, state: &mut State, name: &str, reference: &str, request: &Request) -> Answer {
        if request.method == "PUT" {
            return self.put_manifest(state, name, reference, request);
        }
        let repo = state.repos.get(name);
        let digest = repo.and_then(|repo| repo.tags.get(reference)).map_or(reference, String::as_str);
        let Some((media_type, bytes)) = repo.and_then(|repo| repo.manifests.get(digest)) else {
            return Answer::error(404, "MANIFEST_UNKNOWN");
        };
        Answer { body: bytes.clone(), ..Answer::of(200) }
            .with("Content-Type", media_type)
            .with("Docker-Content-Digest", digest)
    }

    fn put_manifest(&self, state: &mut State, name: &str, reference: &str, request: &Request) -> Answer {
        let repo = state.repos.entry(name.to_owned()).or_default();
        let media_type = request.headers["content-type"].clone();
        let Ok(document) = Document::parse("mock", &media_type, &request.body) else {
            return Answer::error(400, "MANIFEST_INVALID");
        };
        let there = |d: &str| repo.blobs.contains_key(d) || repo.manifests.contains_key(d);
        if document.children().iter().any(|child| !there(&child.digest.to_string())) {
            return Answer::error(400, "MANIFEST_BLOB_UNKNOWN");
        }
        let digest = Digest::of(&request.body).to_string();
        if reference.contains(':') && reference != digest {
            return Answer::error(400, "DIGEST_INVALID");
        }
        if !reference.contains(':') {
            repo.tags.insert(reference.to_owned(), digest.clone());
        }
        repo.manifests.insert(digest.clone(), (media_type, request.body.clone()));
        let answer = Answer::of(201).with("Docker-Content-Digest", digest);
        match document.subject().filter(|_| self.setup.referrers && self.setup.list_subjects) {
            Some(subject) => answer.with("OCI-Subject", subject.digest.to_string()),
            None => answer,
        }
    }

    fn referrers(&self, state: &State, name: &str, subject: &str) -> Answer {
        if !self.setup.referrers {
            return Answer::of(404);
        }
        let mut list = Vec::new();
        for (digest, (media_type, bytes)) in state.repos.get(name).iter().flat_map(|repo| &repo.manifests) {
            let document = Document::parse("mock", media_type, bytes).unwrap();
            if document.subject().is_some_and(|s| s.digest.to_string() == subject) {
                list.push(document.referrer(digest.parse().unwrap(), bytes.len() as u64));
            }
        }
        let body = serde_json::to_vec(&Index::new(list)).unwrap();
        Answer { body, ..Answer::of(200) }.with("Content-Type", flux_gen::oci::media::INDEX)
    }
}

/// An upload that was named by a header has no state in its address.
fn state_free(request: &Request) -> bool {
    !request.query.contains_key("_state")
}

fn store(state: &mut State, name: &str, digest: &str, bytes: Vec<u8>) -> Answer {
    if Digest::of(&bytes).to_string() != digest {
        return Answer::error(400, "DIGEST_INVALID");
    }
    state.repos.entry(name.to_owned()).or_default().blobs.insert(digest.to_owned(), bytes);
    Answer::of(201).with("Docker-Content-Digest", digest)
}

/// Two tags at a time.
fn tags(state: &State, name: &str, request: &Request) -> Answer {
    let Some(repo) = state.repos.get(name) else { return Answer::error(404, "NAME_UNKNOWN") };
    let last = request.query.get("last").and_then(|v| v.first()).cloned().unwrap_or_default();
    let page: Vec<&String> = repo.tags.keys().filter(|tag| **tag > last).take(2).collect();
    let body = serde_json::json!({"name": name, "tags": page}).to_string().into_bytes();
    let answer = Answer { body, ..Answer::of(200) };
    match page.last() {
        Some(last) if page.len() == 2 => {
            answer.with("Link", format!(r#"</v2/{name}/tags/list?n=2&last={last}>; rel="next""#))
        }
        _ => answer,
    }
}

/// Request line and headers; the length of the body.
fn head(stream: &mut impl BufRead) -> Option<(Request, usize)> {
    let mut line = String::new();
    stream.read_line(&mut line).ok().filter(|n| *n > 0)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?);
    let url = url::Url::parse("http://mock").unwrap().join(target).ok()?;
    let mut query: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (key, value) in url.query_pairs() {
        query.entry(key.into_owned()).or_default().push(value.into_owned());
    }
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        let doubled = headers.insert(name.to_lowercase(), value.trim().to_owned());
        assert!(doubled.is_none(), "{name} is sent twice");
    }
    let length = headers.get("content-length").and_then(|n: &String| n.parse().ok()).unwrap_or(0);
    assert!(!headers.contains_key("transfer-encoding"), "bodies have a length");
    Some((Request { method, path: url.path().to_owned(), query, headers, body: Vec::new() }, length))
}

fn send(stream: &mut dyn Stream, request: &Request, answer: &Answer, most: usize) -> Option<()> {
    let mut text = format!("HTTP/1.1 {} Mock\r\nContent-Length: {}\r\n", answer.status, answer.body.len());
    for (name, value) in &answer.headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    let mut bytes = text.into_bytes();
    if request.method != "HEAD" {
        bytes.extend_from_slice(&answer.body[..answer.body.len().min(most)]);
    }
    stream.write_all(&bytes).ok()?;
    stream.flush().ok()
}
