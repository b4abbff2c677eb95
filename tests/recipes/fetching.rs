//! Downloads, against a small server that misbehaves on request.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flux_gen::bundle::sha256_hex;
use flux_gen::view::recipe::Download;
use flux_gen::view::recipe::fetch::{FetchError, FetchEvent, Fetcher};

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
    let fetcher = Fetcher::new(cache, mirrors, &[]).pause(Duration::from_millis(1));
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
