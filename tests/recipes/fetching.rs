//! Downloads, against a small server that misbehaves on request.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flux_gen::bundle::sha256_hex;
use flux_gen::oci::registry::{ClientOptions, Files, Proxies, RetryPolicy};
use flux_gen::view::recipe::Download;
use flux_gen::view::recipe::fetch::{FetchError, FetchEvent, Fetcher};

/// Files over a connection that waits for nothing; what it would have waited goes to the list.
pub(crate) fn quick(waited: &Arc<Mutex<Vec<Duration>>>) -> ClientOptions {
    let list = Arc::clone(waited);
    let sleep = Arc::new(move |wait| list.lock().unwrap().push(wait));
    let retry = RetryPolicy { attempts: 4, ..RetryPolicy::default() };
    ClientOptions { retry, sleep, system_roots: false, ..ClientOptions::default() }
}

/// Downloads to a cache that wait for nothing.
pub(crate) fn fetcher(cache: &Path, mirrors: Vec<String>) -> Fetcher {
    Fetcher::new(cache, mirrors, Files::new(quick(&Arc::default())).unwrap())
}

/// What the server does with one request: the answer, byte by byte, before it closes the connection.
type Answer = Vec<u8>;

struct Server {
    address: String,
    /// Request lines with the range that was asked for.
    asked: Arc<Mutex<Vec<String>>>,
}

/// Serves one answer for each request, in order; the last one again and again.
fn server(answers: Vec<Answer>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    std::thread::spawn(move || {
        for (index, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            for header in BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok) {
                if header.is_empty() {
                    break;
                }
                if header.starts_with("GET") || header.starts_with("range") {
                    line.push_str(header.trim_end_matches(" HTTP/1.1"));
                    line.push(' ');
                }
            }
            log.lock().unwrap().push(line.trim().to_owned());
            // The client may have what it wants before all is written.
            let _ = stream.write_all(&answers[index.min(answers.len() - 1)]);
        }
    });
    Server { address, asked }
}

fn answer(status: &str, headers: &str, body: &[u8]) -> Answer {
    let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// An answer whose connection ends early.
fn cut(body: &[u8], after: usize) -> Answer {
    let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), &body[..after]].concat()
}

fn download(address: &str, body: &[u8]) -> Download {
    Download {
        url: format!("{address}/a.tar"),
        sha256: sha256_hex(body),
        checksum_from: None,
        file: "a.tar".to_owned(),
    }
}

fn fetch(cache: &Path, mirrors: &[&str], download: &Download) -> (Result<Vec<u8>, FetchError>, Vec<FetchEvent>) {
    let mirrors = mirrors.iter().map(|m| (*m).to_owned()).collect();
    let fetcher = fetcher(cache, mirrors);
    let mut events = Vec::new();
    let result = fetcher.fetch(download, &mut |event| events.push(event)).map(|path| fs::read(path).unwrap());
    (result, events)
}

fn left(cache: &Path) -> Vec<String> {
    let entries = fs::read_dir(cache.join("sources")).into_iter().flatten();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| !name.ends_with(".lock"));
    names.sort();
    names
}

#[test]
fn once_and_then_from_the_cache() {
    let (cache, body) = (tempfile::tempdir().unwrap(), vec![7; 300_000]);
    let server = server(vec![answer("200 OK", "", &body)]);
    let download = download(&server.address, &body);
    assert!(fetch(cache.path(), &[], &download).0.unwrap() == body);
    let (again, events) = fetch(cache.path(), &[], &download);
    assert!(again.unwrap() == body);
    assert_eq!(events, [FetchEvent::Cached]);
    assert_eq!(server.asked.lock().unwrap().len(), 1);
    assert_eq!(left(cache.path()), [download.sha256]);
}

#[test]
fn a_broken_download_is_gone_on_with() {
    let (cache, body) = (tempfile::tempdir().unwrap(), (0..200_000u32).map(|n| n as u8).collect::<Vec<_>>());
    let rest = &body[150_000..];
    let server = server(vec![
        cut(&body, 150_000),
        answer("206 Partial Content", "content-range: bytes 150000-199999/200000\r\n", rest),
    ]);
    let download = download(&server.address, &body);
    let (result, events) = fetch(cache.path(), &[], &download);
    assert!(result.unwrap() == body, "{events:?}");
    assert_eq!(*server.asked.lock().unwrap(), ["GET /a.tar", "GET /a.tar range: bytes=150000-"]);
    assert!(events.iter().any(|e| matches!(e, FetchEvent::Retry(_))));
}

#[test]
fn a_later_run_goes_on_too_and_a_wrong_beginning_is_thrown_away() {
    let (cache, body) = (tempfile::tempdir().unwrap(), vec![3; 1000]);
    let part = |download: &Download| cache.path().join("sources").join(format!("{}.part", download.sha256));
    fs::create_dir_all(cache.path().join("sources")).unwrap();
    // A server without ranges sends all of it.
    let first = server(vec![answer("200 OK", "", &body)]);
    let of_first = download(&first.address, &body);
    fs::write(part(&of_first), vec![9; 400]).unwrap();
    assert!(fetch(cache.path(), &[], &of_first).0.unwrap() == body);
    // One with ranges sends the rest, which does not fit what was there.
    let other = vec![4; 1000];
    let second = server(vec![
        answer("206 Partial Content", "content-range: bytes 400-999/1000\r\n", &other[400..]),
        answer("200 OK", "", &other),
    ]);
    let of_second = download(&second.address, &other);
    fs::write(part(&of_second), vec![9; 400]).unwrap();
    assert!(fetch(cache.path(), &[], &of_second).0.unwrap() == other);
    assert_eq!(*second.asked.lock().unwrap(), ["GET /a.tar range: bytes=400-", "GET /a.tar"]);
}

#[test]
fn a_wrong_checksum_leaves_nothing() {
    let cache = tempfile::tempdir().unwrap();
    let server = server(vec![answer("200 OK", "", b"something else")]);
    let download = download(&server.address, b"what was meant");
    let error = fetch(cache.path(), &[], &download).0.unwrap_err();
    let (want, got) = (sha256_hex(b"what was meant"), sha256_hex(b"something else"));
    assert_eq!(
        error.to_string(),
        format!("{}/a.tar has the SHA-256 {got}, and the recipe says {want}", server.address)
    );
    assert_eq!(left(cache.path()), Vec::<String>::new());
    assert_eq!(server.asked.lock().unwrap().len(), 1);
}

#[test]
fn servers_that_are_busy_are_asked_again_and_others_are_not() {
    let cache = tempfile::tempdir().unwrap();
    let busy = || answer("503 Service Unavailable", "", b"");
    let good = server(vec![busy(), answer("429 Too Many Requests", "", b""), answer("200 OK", "", b"x")]);
    assert_eq!(fetch(cache.path(), &[], &download(&good.address, b"x")).0.unwrap(), b"x");
    assert_eq!(good.asked.lock().unwrap().len(), 3);
    for (status, requests) in [("503 Service Unavailable", 4), ("404 Not Found", 1), ("403 Forbidden", 1)] {
        let bad = server(vec![answer(status, "", b"")]);
        let error = fetch(cache.path(), &[], &download(&bad.address, b"y")).0.unwrap_err().to_string();
        let number = &status[..3];
        assert_eq!(error, format!("a.tar cannot be downloaded: {}/a.tar: the server answers {number}", bad.address));
        assert_eq!(bad.asked.lock().unwrap().len(), requests, "{status}");
        assert_eq!(left(cache.path()), [sha256_hex(b"x")]);
    }
}

#[test]
fn mirrors_first_and_then_the_place_itself() {
    let (cache, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let nothing = download("http://127.0.0.1:1", b"x");
    let error = fetch(cache.path(), &[], &nothing).0.unwrap_err().to_string();
    assert!(error.starts_with("a.tar cannot be downloaded: http://127.0.0.1:1/a.tar: "), "{error}");
    fs::write(folder.path().join("a.tar"), b"x").unwrap();
    let mirror = format!("file://{}/", folder.path().display());
    assert_eq!(fetch(cache.path(), &[&mirror], &nothing).0.unwrap(), b"x");
    // A mirror with another file of that name is passed over.
    let server = server(vec![answer("200 OK", "", b"z")]);
    assert_eq!(fetch(cache.path(), &[&mirror], &download(&server.address, b"z")).0.unwrap(), b"z");
}

#[test]
fn two_at_once_download_once() {
    let (cache, body) = (tempfile::tempdir().unwrap(), vec![5; 2_000_000]);
    let server = server(vec![answer("200 OK", "", &body)]);
    let download = download(&server.address, &body);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!(fetch(cache.path(), &[], &download).0.unwrap() == body));
        }
    });
    assert_eq!(server.asked.lock().unwrap().len(), 1);
}

#[test]
fn a_cache_that_cannot_be_written() {
    let error = fetch(Path::new("/dev/null/cache"), &[], &download("http://127.0.0.1:1", b"x")).0.unwrap_err();
    assert!(matches!(error, FetchError::Io { .. }), "{error}");
}

/// The options of a fetch, what it waited, and how it ended.
fn fetch_with(options: ClientOptions, download: &Download) -> Result<Vec<u8>, String> {
    let cache = tempfile::tempdir().unwrap();
    let fetcher = Fetcher::new(cache.path(), Vec::new(), Files::new(options).unwrap());
    let path = fetcher.fetch(download, &mut |_| {}).map_err(|e| e.to_string())?;
    Ok(fs::read(path).unwrap())
}

#[test]
fn redirects_are_followed_and_told() {
    let body = b"moved".to_vec();
    let there = server(vec![answer("200 OK", "", &body)]);
    let to = |location: &str| server(vec![answer("302 Found", &format!("location: {location}\r\n"), b"")]);
    let here = to(&format!("{}/other.tar", there.address));
    assert_eq!(fetch_with(quick(&Arc::default()), &download(&here.address, &body)).unwrap(), body);
    assert_eq!(*there.asked.lock().unwrap(), ["GET /other.tar"]);
    for (location, why) in [
        ("/a.tar", "too many redirects"),
        ("ftp://example.org/a.tar", "it redirects to what is no web address"),
        ("http://[", "it redirects to what is no address"),
    ] {
        let error = fetch_with(quick(&Arc::default()), &download(&to(location).address, &body)).unwrap_err();
        assert!(error.ends_with(why), "{location}: {error}");
    }
    let nowhere = server(vec![answer("301 Moved Permanently", "", b"")]);
    let error = fetch_with(quick(&Arc::default()), &download(&nowhere.address, &body)).unwrap_err();
    assert!(error.ends_with("it redirects to nowhere"), "{error}");
}

#[test]
fn the_wait_that_a_server_asks_for() {
    let busy = |seconds: &str| answer("429 Too Many Requests", &format!("retry-after: {seconds}\r\n"), b"");
    let waited = Arc::default();
    let good = server(vec![busy("7"), answer("200 OK", "", b"x")]);
    assert_eq!(fetch_with(quick(&waited), &download(&good.address, b"x")).unwrap(), b"x");
    assert_eq!(*waited.lock().unwrap(), [Duration::from_secs(7)]);
    // Longer than anybody wants to wait.
    let rude = server(vec![busy("86400")]);
    let error = fetch_with(quick(&waited), &download(&rude.address, b"x")).unwrap_err();
    assert!(error.ends_with("the server answers 429"), "{error}");
    assert_eq!((rude.asked.lock().unwrap().len(), waited.lock().unwrap().len()), (1, 1));
}

#[test]
fn a_server_that_stands_still() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    // Connections are taken by the kernel, and nobody answers.
    let options = ClientOptions {
        timeout: Duration::from_millis(50),
        retry: RetryPolicy { attempts: 1, ..RetryPolicy::default() },
        ..quick(&Arc::default())
    };
    let error = fetch_with(options, &download(&address, b"x")).unwrap_err();
    assert!(error.ends_with("no progress for too long"), "{error}");
}

#[test]
fn an_authority_that_is_not_known_and_one_that_is() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (der, key) = (made.cert.der().clone(), made.signing_key.serialize_der());
    let pem = made.cert.pem();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    std::thread::spawn(move || {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![der], rustls::pki_types::PrivateKeyDer::Pkcs8(key.into()))
            .unwrap();
        let config = Arc::new(config);
        for stream in listener.incoming() {
            let connection = rustls::ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = BufReader::new(rustls::StreamOwned::new(connection, stream.unwrap()));
            let mut line = String::new();
            // A client that does not trust us hangs up here.
            while stream.read_line(&mut line).is_ok_and(|n| n > 2) {
                line.clear();
            }
            let _ = stream.get_mut().write_all(&answer("200 OK", "", b"x"));
        }
    });
    let wanted = download(&address, b"x");
    let error = fetch_with(quick(&Arc::default()), &wanted).unwrap_err();
    assert!(error.ends_with("its certificate is signed by an authority that is not known here"), "{error}");
    let trusting =
        ClientOptions { authorities: vec![("ca.pem".to_owned(), pem.into_bytes())], ..quick(&Arc::default()) };
    assert_eq!(fetch_with(trusting, &wanted).unwrap(), b"x");
}

#[test]
fn a_proxy_is_asked() {
    // It refuses, which shows that it was asked; nothing of the address is resolved here.
    let proxy = server(vec![answer("403 Forbidden", "", b"")]);
    let proxies = Proxies { http: Some(proxy.address.clone()), ..Proxies::default() };
    let options = ClientOptions { proxies, ..quick(&Arc::default()) };
    let error = fetch_with(options, &download("http://files.invalid", b"x")).unwrap_err();
    assert!(error.starts_with("a.tar cannot be downloaded: http://files.invalid/a.tar: "), "{error}");
    assert!(!proxy.asked.lock().unwrap().is_empty());
}
