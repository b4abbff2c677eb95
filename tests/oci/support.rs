//! Images, clients and events for the tests.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use flux_gen::oci::credentials::{Keychain, NoCredentials};
use flux_gen::oci::document::{Index, Manifest};
use flux_gen::oci::image::ImageConfig;
use flux_gen::oci::layout::{Layout, LayoutWriter, WriteOptions};
use flux_gen::oci::registry::{Client, ClientOptions, Repository, RetryPolicy};
use flux_gen::oci::transfer::{self, Event, Events, Summary, Tagged, TransferOptions};
use flux_gen::oci::{Descriptor, Error, Platform, Reference, media};

use crate::mock::Mock;

/// Bytes of the large layer: enough for several pieces, and for a body that is announced first.
pub(crate) const LARGE: usize = 3 << 20;

/// A layout with an index of two images.
pub(crate) fn image(folder: &Path) -> Layout {
    let writer = LayoutWriter::create(&folder.join("layout"), WriteOptions { durable: false }).unwrap();
    let bytes: Vec<u8> = (0..LARGE).map(|i| (i % 251) as u8).collect();
    let large = writer.bytes(media::LAYER, &bytes).unwrap();
    let images = ["amd64", "arm64"].map(|arch| {
        let own = writer.bytes(media::LAYER, arch.as_bytes()).unwrap();
        let diff_ids = vec![large.digest.clone(), own.digest.clone()];
        let config = writer.json(media::CONFIG, &ImageConfig::new(Platform::linux(arch), diff_ids)).unwrap();
        let manifest = writer.json(media::MANIFEST, &Manifest::new(config, vec![large.clone(), own])).unwrap();
        manifest.platform(Platform::linux(arch))
    });
    let index = writer.json(media::INDEX, &Index::new(images.to_vec())).unwrap();
    writer.finish(&Index::new(vec![index])).unwrap()
}

/// The large layer.
pub(crate) fn large(layout: &Layout) -> Descriptor {
    let graph = flux_gen::oci::graph::Graph::walk(layout, layout.roots()).unwrap();
    graph.blobs.iter().max_by_key(|d| d.size).unwrap().clone()
}

/// Waits that were asked for, instead of waiting.
pub(crate) type Waits = Arc<Mutex<Vec<Duration>>>;

pub(crate) fn options(mock: &Mock) -> (ClientOptions, Waits) {
    let waits: Waits = Arc::default();
    let noted = Arc::clone(&waits);
    let options = ClientOptions {
        plain_http: BTreeSet::from([mock.address.clone()]),
        system_roots: false,
        timeout: Duration::from_secs(5),
        retry: RetryPolicy { first: Duration::from_millis(1), longest: Duration::from_millis(4), ..Default::default() },
        chunk: 1 << 20,
        sleep: Arc::new(move |wait| noted.lock().unwrap().push(wait)),
        ..ClientOptions::default()
    };
    (options, waits)
}

pub(crate) fn client(mock: &Mock) -> Arc<Client> {
    Arc::new(Client::new(options(mock).0, Arc::new(NoCredentials)).unwrap())
}

pub(crate) fn client_with(mock: &Mock, keychain: impl Keychain + 'static) -> Arc<Client> {
    Arc::new(Client::new(options(mock).0, Arc::new(keychain)).unwrap())
}

pub(crate) fn reference(mock: &Mock, name: &str) -> Reference {
    format!("{}/{name}", mock.address).parse().unwrap()
}

pub(crate) fn target(client: &Arc<Client>, mock: &Mock, name: &str) -> Repository {
    Repository::to_push(client, &reference(mock, name), &[])
}

/// Notes events as text.
#[derive(Default)]
pub(crate) struct Noted(pub(crate) Mutex<Vec<String>>);

impl Events for Noted {
    fn event(&self, event: &Event<'_>) {
        self.0.lock().unwrap().push(format!("{event:?}"));
    }
}

impl Noted {
    pub(crate) fn has(&self, text: &str) -> usize {
        self.0.lock().unwrap().iter().filter(|e| e.contains(text)).count()
    }
}

pub(crate) fn tagged(layout: &Layout) -> Vec<Tagged> {
    layout.roots().iter().map(|root| Tagged { root: root.clone(), tags: vec!["v1".to_owned()] }).collect()
}

pub(crate) fn push(layout: &Layout, target: &Repository) -> Result<Summary, Error> {
    transfer::push(layout, &tagged(layout), target, &TransferOptions::default(), &transfer::Quiet)
}

/// Every blob and document of the layout is in the repository, and the tag is.
#[track_caller]
pub(crate) fn assert_complete(layout: &Layout, mock: &Mock, name: &str) {
    let graph = flux_gen::oci::graph::Graph::walk(layout, layout.roots()).unwrap();
    let state = mock.state();
    let repo = &state.repos[name];
    for blob in &graph.blobs {
        let bytes = &repo.blobs[&blob.digest.to_string()];
        assert!(blob.digest.matches(bytes), "{}", blob.digest);
    }
    for node in &graph.documents {
        assert_eq!(repo.manifests[&node.descriptor.digest.to_string()].1, node.loaded.bytes);
    }
    assert_eq!(repo.tags["v1"], layout.roots()[0].digest.to_string());
}
