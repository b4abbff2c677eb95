//! Archives of `docker save` and `podman save` (docker-archive): `manifest.json` names a configuration and layers by file
//! name. They become OCI image manifests; configuration and layers stay byte for byte.

use std::collections::BTreeMap;
use std::io::{self, Read};

use serde::Deserialize;

use super::super::descriptor::{CONTAINERD_NAME, Descriptor, REF_NAME, null_is_default};
use super::super::digest::{Algorithm, Digest, Hasher};
use super::super::document::{Index, Manifest, from_slice, to_vec};
use super::super::error::{Error, ErrorKind};
use super::super::image::ImageConfig;
use super::super::media::{self, Compression};
use super::super::reference::Reference;
use super::table::{Table, broken};

/// One image of `manifest.json`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Image {
    config: String,
    #[serde(default, deserialize_with = "null_is_default")]
    repo_tags: Vec<String>,
    #[serde(default, deserialize_with = "null_is_default")]
    layers: Vec<String>,
}

/// What such an archive gives.
pub(super) struct Converted {
    pub(super) index: Index,
    pub(super) blobs: BTreeMap<Digest, (u64, u64)>,
    pub(super) made: BTreeMap<Digest, Vec<u8>>,
}

/// A layer as it is in the archive.
#[derive(Clone)]
struct Layer {
    descriptor: Descriptor,
    diff_id: Digest,
}

/// Reads every layer once, because nothing in the archive says what their digests are.
pub(super) fn convert(table: &Table, manifest: &[u8]) -> Result<Converted, Error> {
    let images: Vec<Image> = from_slice(&format!("{}: manifest.json", table.path().display()), manifest)?;
    if images.is_empty() {
        return Err(broken(table.path(), "manifest.json names no image"));
    }
    let mut made = Converted { index: Index::new(Vec::new()), blobs: BTreeMap::new(), made: BTreeMap::new() };
    let mut layers = BTreeMap::new();
    for image in &images {
        made.add(table, image, &mut layers)?;
    }
    Ok(made)
}

impl Converted {
    fn add(&mut self, table: &Table, image: &Image, known: &mut BTreeMap<u64, Layer>) -> Result<(), Error> {
        let place = |name: &str| {
            table
                .place(name)
                .ok_or_else(|| broken(table.path(), &format!("manifest.json names `{name}`, which is not in it")))
        };
        let (offset, size) = place(&image.config)?;
        let Some(config_bytes) = table.small(&image.config)? else {
            return Err(broken(table.path(), "the configuration is not in it"));
        };
        let config = Descriptor::of(media::CONFIG, &config_bytes);
        self.blobs.insert(config.digest.clone(), (offset, size));
        let facts = ImageConfig::parse(&format!("{}: {}", table.path().display(), image.config), &config_bytes)?;
        let mut layers = Vec::new();
        for name in &image.layers {
            let (offset, size) = place(name)?;
            let layer = match known.get(&offset) {
                Some(layer) => layer.clone(),
                None => measure(table, name, offset, size)?,
            };
            known.insert(offset, layer.clone());
            self.blobs.insert(layer.descriptor.digest.clone(), (offset, size));
            layers.push(layer);
        }
        let diff_ids: Vec<&Digest> = layers.iter().map(|layer| &layer.diff_id).collect();
        if diff_ids != facts.rootfs.diff_ids.iter().collect::<Vec<_>>() {
            let message =
                format!("{}: the layers are not those of the configuration {}", table.path().display(), image.config);
            return Err(Error::new(ErrorKind::Digest, message).help("the archive is damaged; save the image again"));
        }
        let manifest = Manifest::new(config, layers.into_iter().map(|layer| layer.descriptor).collect());
        let bytes = to_vec(&manifest)?;
        let root = Descriptor::of(media::MANIFEST, &bytes).platform(facts.platform.normalised());
        self.made.insert(root.digest.clone(), bytes);
        if image.repo_tags.is_empty() {
            self.index.manifests.push(root);
            return Ok(());
        }
        for tag in &image.repo_tags {
            let full = tag.parse::<Reference>().map_or_else(|_| tag.clone(), |r| r.to_string());
            self.index.manifests.push(root.clone().annotation(REF_NAME, tag).annotation(CONTAINERD_NAME, full));
        }
        Ok(())
    }
}

/// Digest of the bytes and of what they decompress to.
fn measure(table: &Table, name: &str, offset: u64, size: u64) -> Result<Layer, Error> {
    let failed = |e: &io::Error| broken(table.path(), &format!("`{name}`: {}", super::super::error::plain(e)));
    let mut start = Vec::new();
    table.range(offset, size.min(4)).read_to_end(&mut start).map_err(|e| failed(&e))?;
    let compression = Compression::sniff(&start);
    let digest = hash(table.range(offset, size)).map_err(|e| failed(&e))?;
    let decoded: Option<Box<dyn Read>> = match compression {
        Compression::None => None,
        Compression::Gzip => Some(Box::new(flate2::read::MultiGzDecoder::new(table.range(offset, size)))),
        Compression::Zstd => {
            Some(Box::new(zstd::stream::read::Decoder::new(table.range(offset, size)).map_err(|e| failed(&e))?))
        }
    };
    let diff_id = match decoded {
        Some(decoded) => hash(decoded).map_err(|e| failed(&e))?,
        None => digest.clone(),
    };
    Ok(Layer { descriptor: Descriptor::new(compression.layer(), digest, size), diff_id })
}

fn hash(mut reader: impl Read) -> io::Result<Digest> {
    let mut hasher = Hasher::new(Algorithm::Sha256);
    let mut buffer = vec![0; 1 << 16];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            count => hasher.update(&buffer[..count]),
        }
    }
}
