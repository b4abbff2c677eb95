//! Who is let in.

use std::sync::Arc;

use flux_gen::oci::credentials::{Credential, NoCredentials, OneCredential};
use flux_gen::oci::registry::Repository;
use flux_gen::oci::transfer::{self, Quiet, TransferOptions};
use flux_gen::oci::{Error, ErrorKind};
use zeroize::Zeroizing;

use crate::mock::{Fault, Gate, Mock, Setup};
use crate::support::*;

pub(crate) fn user(mock: &Mock) -> OneCredential {
    let password = Zeroizing::new("pass".to_owned());
    OneCredential {
        registry: mock.address.clone(),
        credential: Credential::Basic { user: "user".to_owned(), password },
    }
}

fn identity(mock: &Mock) -> OneCredential {
    let token = Zeroizing::new("refresh-me".to_owned());
    OneCredential { registry: mock.address.clone(), credential: Credential::IdentityToken { token } }
}

fn gated(gate: Gate) -> Mock {
    Mock::new(Setup { gate, ..Setup::default() })
}

#[test]
fn basic_is_sent_when_it_is_asked_for() {
    let work = tempfile::tempdir().unwrap();
    let layout = image(work.path());
    let mock = gated(Gate::Basic);
    let client = client_with(&mock, user(&mock));
    push(&layout, &target(&client, &mock, "a")).unwrap();
    assert_complete(&layout, &mock, "a");
    assert_eq!(mock.state().shown[0], None, "nothing is sent unasked");
    assert!(mock.state().shown.iter().filter(|s| s.is_none()).count() <= 4, "at most once for each thread");
}

#[test]
fn tokens_are_got_with_every_scope_at_once_and_kept() {
    let work = tempfile::tempdir().unwrap();
    let layout = image(work.path());
    let mock = gated(Gate::Token { uses: 1000 });
    let client = client_with(&mock, user(&mock));
    push(&layout, &Repository::to_push(&client, &reference(&mock, "one"), &[])).unwrap();
    let from = vec!["one".to_owned()];
    let target = Repository::to_push(&client, &reference(&mock, "two"), &from);
    let options = TransferOptions { mount_from: from, ..TransferOptions::default() };
    let summary = transfer::push(&layout, &tagged(&layout), &target, &options, &Quiet).unwrap();
    assert_eq!(summary.mounted, 5);
    let logins = mock.state().logins.clone();
    assert_eq!(logins.len(), 2, "{logins:?}");
    assert_eq!(logins[1], "GET Basic dXNlcjpwYXNz repository:two:pull,push repository:one:pull");
}

#[test]
fn a_mount_that_is_not_allowed_is_an_upload() {
    let work = tempfile::tempdir().unwrap();
    let layout = image(work.path());
    let mock = Mock::new(Setup { gate: Gate::Token { uses: 1000 }, one_scope: true, ..Setup::default() });
    let client = client_with(&mock, user(&mock));
    let from = vec!["one".to_owned()];
    let target = Repository::to_push(&client, &reference(&mock, "two"), &from);
    let options = TransferOptions { mount_from: from, ..TransferOptions::default() };
    let summary = transfer::push(&layout, &tagged(&layout), &target, &options, &Quiet).unwrap();
    assert_eq!((summary.mounted, summary.moved), (0, 5));
    assert_complete(&layout, &mock, "two");
}

#[test]
fn a_token_that_ends_in_the_middle_is_replaced() {
    let work = tempfile::tempdir().unwrap();
    let layout = image(work.path());
    for uses in [1, 2, 3, 5] {
        let mock = gated(Gate::Token { uses });
        let client = client_with(&mock, user(&mock));
        let options = TransferOptions { parallel: 1, ..TransferOptions::default() };
        let target = target(&client, &mock, "a");
        transfer::push(&layout, &tagged(&layout), &target, &options, &Quiet).unwrap();
        assert_complete(&layout, &mock, "a");
        assert!(mock.state().logins.len() > 3, "{uses}");
    }
}

#[test]
fn identity_tokens_are_exchanged() {
    let work = tempfile::tempdir().unwrap();
    let layout = image(work.path());
    let mock = gated(Gate::Token { uses: 1000 });
    let client = client_with(&mock, identity(&mock));
    push(&layout, &target(&client, &mock, "a/b")).unwrap();
    let logins = mock.state().logins.clone();
    assert_eq!(logins.len(), 1);
    for part in ["POST ", "grant_type=refresh_token", "service=mock", "scope=repository%3Aa%2Fb%3Apull%2Cpush"] {
        assert!(logins[0].contains(part), "{logins:?}");
    }
}

fn denied(mock: &Mock, client: &Arc<flux_gen::oci::registry::Client>) -> Error {
    let work = tempfile::tempdir().unwrap();
    push(&image(work.path()), &target(client, mock, "a")).unwrap_err()
}

#[test]
fn refusals_say_what_to_do_and_hold_no_secret() {
    let wrong = |mock: &Mock| OneCredential {
        registry: mock.address.clone(),
        credential: Credential::Basic { user: "user".to_owned(), password: Zeroizing::new("hunter2".to_owned()) },
    };
    for gate in [Gate::Basic, Gate::Token { uses: 9 }] {
        let mock = gated(gate.clone());
        for client in [client_with(&mock, wrong(&mock)), client_with(&mock, NoCredentials)] {
            let error = denied(&mock, &client);
            assert_eq!(error.kind(), ErrorKind::Unauthorized, "{error}");
            let text = format!("{error} {error:?} {:?}", error.advice());
            assert!(text.contains("log in") && text.contains(&mock.address), "{text}");
            assert!(
                !text.contains("hunter2") && !text.contains("aHVudGVy") && !text.contains("dXNlcjpodW50ZXIy"),
                "{text}"
            );
        }
    }
}

#[test]
fn a_registry_that_shows_the_password_is_not_quoted() {
    let mock = gated(Gate::Basic);
    let secret = OneCredential {
        registry: mock.address.clone(),
        credential: Credential::Basic { user: "user".to_owned(), password: Zeroizing::new("MOCK_SAYS_NO".to_owned()) },
    };
    let client = client_with(&mock, secret);
    let _ = client.ping(&mock.address);
    mock.fail("GET", "/v2/", 9, Fault::Status(403, Vec::new()));
    let error = client.ping(&mock.address).unwrap_err();
    assert!(error.to_string().contains("***") && !error.to_string().contains("MOCK_SAYS_NO"), "{error}");
}

#[test]
fn token_servers_that_fail_are_told() {
    for (status, kind) in [(500, ErrorKind::Failed), (429, ErrorKind::RateLimited), (400, ErrorKind::Unauthorized)] {
        let mock = gated(Gate::Token { uses: 9 });
        mock.fail("GET", "/token", 99, Fault::Status(status, Vec::new()));
        let client = client_with(&mock, user(&mock));
        let error = denied(&mock, &client);
        assert!(
            error.kind() == kind && error.to_string().contains(&format!("the token server {} answered", mock.address)),
            "{error}"
        );
    }
}

#[test]
fn a_token_server_that_is_out_of_order_for_a_moment_is_asked_again() {
    let work = tempfile::tempdir().unwrap();
    let layout = image(work.path());
    // In the second push the token ends in the middle, so uploads have to get new ones.
    for uses in [1000, 2] {
        let mock = gated(Gate::Token { uses });
        mock.fail("GET", "/token", 3, Fault::Status(503, Vec::new()));
        mock.fail("GET", "/token", 1, Fault::Lost);
        let client = client_with(&mock, user(&mock));
        let options = TransferOptions { parallel: 1, ..TransferOptions::default() };
        transfer::push(&layout, &tagged(&layout), &target(&client, &mock, "a"), &options, &Quiet).unwrap();
        assert_complete(&layout, &mock, "a");
    }
}

#[test]
fn credentials_of_one_registry_are_not_for_another() {
    let mock = gated(Gate::Basic);
    let other = Mock::new(Setup::default());
    let client = client_with(&mock, user(&other));
    assert_eq!(denied(&mock, &client).kind(), ErrorKind::Unauthorized);
    assert!(mock.state().shown.iter().all(Option::is_none));
}
