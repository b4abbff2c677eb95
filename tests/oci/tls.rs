//! Trust.

use std::collections::BTreeSet;
use std::net::TcpStream;
use std::sync::Arc;

use flux_gen::oci::ErrorKind;
use flux_gen::oci::credentials::NoCredentials;
use flux_gen::oci::registry::{Client, ClientOptions};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;

use crate::mock::{Mock, Setup, Stream};
use crate::support::*;

/// A registry with a certificate for `name`, and the PEM of its authority.
fn server(name: &str) -> (Mock, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
    let config = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap())
        .unwrap();
    let config = Arc::new(config);
    let wrap = move |stream: TcpStream| {
        let connection = rustls::ServerConnection::new(Arc::clone(&config)).ok()?;
        Some(Box::new(rustls::StreamOwned::new(connection, stream)) as Box<dyn Stream>)
    };
    (Mock::serve(Setup::default(), wrap, "https"), authority.pem())
}

fn client(mock: &Mock, authority: Option<&str>, plain: bool) -> Arc<Client> {
    let plain_http = if plain { BTreeSet::from([mock.address.clone()]) } else { BTreeSet::new() };
    let authorities = authority.map(|pem| ("ca.pem".to_owned(), pem.as_bytes().to_vec())).into_iter().collect();
    let options = ClientOptions { plain_http, authorities, ..options(mock).0 };
    Arc::new(Client::new(options, Arc::new(NoCredentials)).unwrap())
}

#[test]
fn a_registry_with_an_authority_of_its_own_is_used() {
    let work = tempfile::tempdir().unwrap();
    let layout = image(work.path());
    let (mock, authority) = server("127.0.0.1");
    let client = client(&mock, Some(&authority), false);
    push(&layout, &target(&client, &mock, "a")).unwrap();
    assert_complete(&layout, &mock, "a");
}

#[test]
fn what_is_not_trusted_is_told() {
    let (mock, _) = server("127.0.0.1");
    let (other, wrong) = server("elsewhere.example");
    let cases = [
        (client(&mock, None, false), &mock, "an authority that is not known"),
        (client(&mock, Some(&wrong), false), &mock, "an authority that is not known"),
        (client(&other, Some(&wrong), false), &other, "for another name"),
    ];
    for (client, mock, why) in cases {
        let error = client.ping(&mock.address).unwrap_err();
        assert!(error.kind() == ErrorKind::Tls && error.to_string().contains(why), "{error}");
        assert!(error.advice().unwrap().contains("--ca"));
    }
}

#[test]
fn plain_http_is_only_used_when_it_is_said() {
    let plain = Mock::new(Setup::default());
    let error = client(&plain, None, false).ping(&plain.address).unwrap_err();
    assert!(error.kind() == ErrorKind::Tls && error.to_string().contains("does not speak TLS"), "{error}");
    assert!(error.advice().unwrap().contains("--plain-http"));
    assert!(plain.state().log.is_empty());
    client(&plain, None, true).ping(&plain.address).unwrap();
}
