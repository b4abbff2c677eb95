//! What goes wrong on the way, and how it ends.

use std::time::{Duration, Instant};

use flux_gen::oci::registry::{Client, Repository};
use flux_gen::oci::source;
use flux_gen::oci::{Error, ErrorKind};

use crate::mock::{Fault, Mock, Setup};
use crate::support::*;

/// Pushes to a registry with faults; gives the result and the waits.
fn push_with(
    setup: Setup,
    faults: &[(&'static str, &'static str, usize, Fault)],
) -> (Mock, Result<(), Error>, Vec<Duration>) {
    let work = tempfile::tempdir().unwrap();
    let layout = image(work.path());
    let mock = Mock::new(setup);
    for (method, path, times, fault) in faults {
        mock.fail(method, path, *times, fault.clone());
    }
    let (options, waits) = options(&mock);
    let client = std::sync::Arc::new(
        Client::new(options, std::sync::Arc::new(flux_gen::oci::credentials::NoCredentials)).unwrap(),
    );
    let result = push(&layout, &target(&client, &mock, "a")).map(drop);
    if result.is_ok() {
        assert_complete(&layout, &mock, "a");
    }
    let waits = waits.lock().unwrap().clone();
    (mock, result, waits)
}

#[track_caller]
fn mends(setup: Setup, faults: &[(&'static str, &'static str, usize, Fault)]) -> (Mock, Vec<Duration>) {
    let (mock, result, waits) = push_with(setup, faults);
    result.unwrap();
    (mock, waits)
}

fn status(status: u16) -> Fault {
    Fault::Status(status, Vec::new())
}

#[test]
fn requests_are_made_again_when_that_may_help() {
    let check = |code, method, path| {
        let (_, waits) = mends(Setup::default(), &[(method, path, 2, status(code))]);
        assert_eq!(waits.len(), 2, "{code} {method} {path}");
    };
    for code in [408, 429, 500, 502, 503, 504] {
        check(code, "PUT", "/uploads/");
    }
    for (method, path) in
        [("HEAD", "/blobs/"), ("POST", "/uploads/"), ("PUT", "/manifests/"), ("HEAD", "/manifests/v1")]
    {
        check(503, method, path);
    }
}

#[test]
fn a_manifest_is_put_again_when_its_parts_are_out_of_sight() {
    let unknown = |times, code| [("PUT", "/manifests/v1", times, Fault::Refusal(code))];
    for code in ["MANIFEST_BLOB_UNKNOWN", "BLOB_UNKNOWN", "MANIFEST_UNKNOWN"] {
        assert_eq!(mends(Setup::default(), &unknown(2, code)).1.len(), 2, "{code}");
    }
    let (_, result, waits) = push_with(Setup::default(), &unknown(99, "MANIFEST_BLOB_UNKNOWN"));
    assert_eq!((result.unwrap_err().kind(), waits.len()), (ErrorKind::Refused, 4));
    let (_, result, waits) = push_with(Setup::default(), &unknown(99, "MANIFEST_INVALID"));
    assert_eq!((result.unwrap_err().kind(), waits.len()), (ErrorKind::Refused, 0));
}

#[test]
fn the_registry_says_how_long_to_wait() {
    let after = |text: &str| Fault::Status(429, vec![("Retry-After", text.to_owned())]);
    let (_, waits) = mends(Setup::default(), &[("PUT", "/uploads/", 1, after("7"))]);
    assert_eq!(waits, [Duration::from_secs(7)]);
    let date = vec![
        ("Date", "Fri, 20 Nov 2026 10:00:00 GMT".to_owned()),
        ("Retry-After", "Fri, 20 Nov 2026 10:01:30 GMT".to_owned()),
    ];
    let (_, waits) = mends(Setup::default(), &[("POST", "/uploads/", 1, Fault::Status(503, date))]);
    assert_eq!(waits, [Duration::from_secs(90)]);
    let past = vec![
        ("Date", "Fri, 20 Nov 2026 10:00:00 GMT".to_owned()),
        ("Retry-After", "Thu, 19 Nov 2026 10:01:30 GMT".to_owned()),
    ];
    let (_, waits) = mends(Setup::default(), &[("POST", "/uploads/", 1, Fault::Status(503, past))]);
    assert!(waits.len() == 1 && waits[0] < Duration::from_millis(100));
    let (_, result, waits) = push_with(Setup::default(), &[("HEAD", "/blobs/", 1, after("3600"))]);
    let error = result.unwrap_err();
    assert_eq!((error.kind(), waits.len()), (ErrorKind::RateLimited, 0), "nobody waits for an hour");
    assert!(error.advice().unwrap().contains("3600 seconds"));
}

#[test]
fn what_does_not_pass_is_told_with_all_that_is_known() {
    let (mock, result, waits) = push_with(Setup::default(), &[("PUT", "/uploads/", 99, status(500))]);
    let error = result.unwrap_err();
    assert_eq!((error.kind(), waits.len() >= 4), (ErrorKind::Failed, true));
    let request = error.request().unwrap();
    assert_eq!((request.registry.as_str(), request.repository.as_str()), (mock.address.as_str(), "a"));
    assert!(error.to_string().starts_with("cannot upload blob sha256:"), "{error}");
    assert!(error.to_string().ends_with(": says the mock (HTTP 500, MOCK_SAYS_NO)"), "{error}");
    assert!(mock.state().repos.get("a").is_none_or(|r| r.tags.is_empty()));
    let cases = [
        (401, ErrorKind::Unauthorized),
        (403, ErrorKind::Denied),
        (404, ErrorKind::NotFound),
        (409, ErrorKind::Refused),
        (429, ErrorKind::RateLimited),
        (504, ErrorKind::Timeout),
    ];
    for (code, kind) in cases {
        let (_, result, _) = push_with(Setup::default(), &[("POST", "/uploads/", 99, status(code))]);
        let error = result.unwrap_err();
        assert_eq!(error.kind(), kind, "{code}");
        assert!(error.diagnostic().message.contains("MOCK_SAYS_NO") && error.request().unwrap().status == Some(code));
    }
}

#[test]
fn a_blob_is_sent_again_after_a_reset() {
    let (mock, waits) = mends(Setup::default(), &[("PUT", "/uploads/", 2, Fault::Reset(1 << 20))]);
    assert_eq!((waits.len(), mock.count("POST")), (2, 7), "with a new session each");
    let (_, result, _) = push_with(Setup::default(), &[("PUT", "/uploads/", 99, Fault::Reset(1 << 20))]);
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Unreachable);
}

#[test]
fn a_lost_answer_is_no_second_upload() {
    let (mock, _) = mends(Setup::default(), &[("PUT", "/uploads/", 1, Fault::Lost)]);
    assert_eq!(mock.count("POST"), 5);
}

#[test]
fn without_a_location_there_is_a_way() {
    let (mock, _) = mends(Setup::default(), &[("POST", "/uploads/", 99, Fault::Uuid)]);
    assert_eq!(mock.state().log.iter().filter(|l| l.starts_with("PUT /v2/a/blobs/uploads/upload-")).count(), 5);
    let (mock, _) = mends(Setup::default(), &[("POST", "/uploads/", 99, Fault::NoLocation)]);
    assert_eq!(mock.state().log.iter().filter(|l| l.starts_with("PUT /v2/a/blobs")).count(), 0, "one POST with all");
    mends(Setup::default(), &[("PUT", "/manifests/", 99, Fault::NoLocation)]);
}

#[test]
fn pieces_are_sent_where_they_are_wanted_only() {
    let (mock, _) = mends(Setup { least: Some(1 << 20), ..Setup::default() }, &[]);
    assert_eq!(mock.count("PATCH"), 0, "a least size is no demand");
    for relative in [true, false] {
        let setup = Setup { pieces_only: true, least: Some(2 << 20), relative, ..Setup::default() };
        let (mock, _) = mends(setup, &[]);
        // The large layer in two pieces of the least size, the four small blobs in one each.
        assert_eq!(mock.count("PATCH"), 6);
    }
    let (mock, _) = mends(Setup { pieces_only: true, ..Setup::default() }, &[]);
    assert_eq!(mock.count("PATCH"), 3 + 4);
}

#[test]
fn pieces_go_on_where_they_broke() {
    let setup = Setup { pieces_only: true, ..Setup::default() };
    // Half of a piece arrives and nothing of it is kept; a piece arrives and its answer does not.
    for fault in [Fault::Reset(1 << 19), Fault::Lost, status(500), status(416)] {
        let (mock, _) = mends(setup.clone(), &[("PATCH", "/uploads/", 1, fault.clone())]);
        let asked = mock.state().log.iter().filter(|l| l.starts_with("GET /v2/a/blobs/uploads/")).count();
        assert_eq!(asked, 1, "{fault:?}");
        assert!(mock.count("PATCH") <= 8, "{fault:?}");
    }
    let (_, result, _) = push_with(setup, &[("PATCH", "/uploads/", 99, status(500))]);
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Failed);
}

#[test]
fn a_wrong_digest_is_never_accepted() {
    for path in ["/uploads/", "/manifests/"] {
        let (mock, result, _) = push_with(Setup::default(), &[("PUT", path, 1, Fault::WrongDigest)]);
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Digest, "{path}");
        assert!(mock.state().repos["a"].tags.is_empty());
    }
}

#[test]
fn a_registry_that_stands_still_is_not_waited_for_for_ever() {
    let work = tempfile::tempdir().unwrap();
    let layout = image(work.path());
    let mock = Mock::new(Setup::default());
    let (mut options, _) = options(&mock);
    options.timeout = Duration::from_millis(200);
    options.retry.attempts = 2;
    let client = std::sync::Arc::new(
        Client::new(options, std::sync::Arc::new(flux_gen::oci::credentials::NoCredentials)).unwrap(),
    );
    mock.fail("PUT", "/uploads/", 1, Fault::Slow(Duration::from_millis(600)));
    let target = target(&client, &mock, "a");
    push(&layout, &target).unwrap();
    mock.fail("GET", "/manifests/", 9, Fault::Slow(Duration::from_millis(600)));
    let begin = Instant::now();
    let error = target.manifest("v1").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(begin.elapsed() < Duration::from_secs(3), "{error}");
}

#[test]
fn reading_goes_on_where_it_broke() {
    for ranges in [true, false] {
        let work = tempfile::tempdir().unwrap();
        let layout = image(work.path());
        let mock = Mock::new(Setup { ranges, ..Setup::default() });
        let client = client(&mock);
        let target = target(&client, &mock, "a");
        push(&layout, &target).unwrap();
        mock.fail("GET", "/blobs/", 3, Fault::Cut(LARGE / 2 + 7));
        mock.fail("GET", "/blobs/", 1, status(503));
        let mut bytes = Vec::new();
        let large = large(&layout);
        mock.state().log.clear();
        let result = std::io::Read::read_to_end(&mut source::open(&target, &large).unwrap(), &mut bytes);
        if ranges {
            result.unwrap();
            assert!(large.digest.matches(&bytes));
            assert_eq!(mock.count("GET"), 2, "the second half only");
        } else {
            // From the beginning each time: cut three times at the same place, then whole.
            result.unwrap();
            assert!(large.digest.matches(&bytes));
        }
    }
}

#[test]
fn reading_gives_up_when_nothing_more_comes() {
    let work = tempfile::tempdir().unwrap();
    let layout = image(work.path());
    let mock = Mock::new(Setup::default());
    let client = client(&mock);
    let target = target(&client, &mock, "a");
    push(&layout, &target).unwrap();
    mock.fail("GET", "/blobs/", 99, Fault::Cut(0));
    let mut reader = source::open(&target, &large(&layout)).unwrap();
    let error = std::io::copy(&mut reader, &mut std::io::sink()).unwrap_err();
    let error = Error::carried(&error).unwrap();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(error.to_string().starts_with("cannot read blob sha256:"), "{error}");
    let gone = flux_gen::oci::Descriptor::of("x", b"gone");
    assert_eq!(source::open(&target, &gone).map(drop).unwrap_err().kind(), ErrorKind::Missing);
}

#[test]
fn storages_do_not_see_credentials() {
    let work = tempfile::tempdir().unwrap();
    let layout = image(work.path());
    let storage = Mock::new(Setup::default());
    let first = client(&storage);
    push(&layout, &target(&first, &storage, "a")).unwrap();
    let setup = Setup {
        storage: Some(format!("http://{}", storage.address)),
        gate: crate::mock::Gate::Basic,
        ..Setup::default()
    };
    let mock = Mock::new(setup);
    let client = client_with(&mock, crate::auth::user(&mock));
    let target = target(&client, &mock, "a");
    // What is sent somewhere else counts as being there.
    {
        let blobs = storage.state().repos["a"].blobs.clone();
        mock.state().repos.entry("a".to_owned()).or_default().blobs = blobs;
    }
    let large = large(&layout);
    assert_eq!(target.blob(&large.digest).unwrap(), Some(None));
    let count = std::io::copy(&mut source::open(&target, &large).unwrap(), &mut std::io::sink()).unwrap();
    assert_eq!(count, large.size);
    storage.state().log.clear();
    let other = Repository::to_pull(&client, &reference(&mock, "a"));
    assert_eq!(other.blob(&large.digest).unwrap(), Some(None));
    assert!(storage.state().log.is_empty());
}

#[test]
fn nobody_there_is_told() {
    let mock = Mock::new(Setup::default());
    let (options, waits) = options(&mock);
    let address = mock.address.clone();
    drop(mock);
    std::thread::sleep(Duration::from_millis(50));
    let client = Client::new(options, std::sync::Arc::new(flux_gen::oci::credentials::NoCredentials)).unwrap();
    let error = client.ping(&address).unwrap_err();
    assert_eq!((error.kind(), waits.lock().unwrap().len()), (ErrorKind::Unreachable, 4));
    assert!(error.to_string().starts_with(&format!("cannot ask for the API at {address}: ")), "{error}");
    let error = client.ping("no-such-host.invalid").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable);
    assert!(error.to_string().contains("has no address"), "{error}");
}

#[test]
fn what_is_no_registry_is_told() {
    let mock = Mock::new(Setup::default());
    let client = client(&mock);
    let target = target(&client, &mock, "a");
    mock.state()
        .repos
        .entry("a".to_owned())
        .or_default()
        .manifests
        .insert("v1".to_owned(), ("text/html".to_owned(), b"<html>".to_vec()));
    assert_eq!(target.manifest("v1").unwrap_err().kind(), ErrorKind::Document);
    let large = vec![b' '; (4 << 20) + 1];
    mock.state()
        .repos
        .get_mut("a")
        .unwrap()
        .manifests
        .insert("v2".to_owned(), (flux_gen::oci::media::MANIFEST.to_owned(), large));
    let error = target.manifest("v2").unwrap_err();
    assert!(error.kind() == ErrorKind::Document && error.to_string().contains("4 MiB"), "{error}");
    mock.fail("GET", "/v2/", 1, Fault::Status(302, vec![("Location", "https://elsewhere.invalid/login".to_owned())]));
    assert_eq!(client.ping(&mock.address).unwrap_err().kind(), ErrorKind::Unreachable);
    mock.fail("GET", "/v2/", 99, Fault::Status(302, vec![("Location", "/v2/".to_owned())]));
    let error = client.ping(&mock.address).unwrap_err();
    assert!(error.kind() == ErrorKind::Protocol && error.to_string().contains("too many redirects"), "{error}");
}
