//! Puts flux-gen's static programs into an image without a daemon, with flux-gen's own library: an index with an image for
//! each platform, each of one layer on nothing. The same programs give the same digest.
//!
//!     cargo run --example release-image -- LAYOUT NAME linux/amd64=FILE linux/arm64=FILE
//!
//! NAME is the whole one (`registry/repository:tag`), so that `archive save --with-tool LAYOUT` knows where it belongs.
//! The time of everything is SOURCE_DATE_EPOCH, else 1970.

#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::print_stderr)]

use std::num::NonZeroUsize;
use std::path::Path;
use std::process::ExitCode;

use flux_gen::airgap::tool::{PROGRAM, unusable};
use flux_gen::oci::descriptor::REF_NAME;
use flux_gen::oci::document::{Index, Manifest};
use flux_gen::oci::image::{ContainerConfig, History, ImageConfig};
use flux_gen::oci::layout::{LayoutWriter, WriteOptions};
use flux_gen::oci::{Descriptor, Error, ErrorKind, Platform, media};
use flux_gen::view::build::rfc3339;
use flux_gen::view::entry::{Content, Entry, EntryKind, Facts, Source, Tree};
use flux_gen::view::pack::{Compression, Layer, PackOptions, pack};

fn refused(message: String) -> Error {
    Error::new(ErrorKind::Platform, message)
}

/// A program, if it is a static one for the platform.
fn program(platform: &Platform, file: &Path) -> Result<Content, Error> {
    let failed = |e: std::io::Error| Error::file("read", file, &e);
    let metadata = std::fs::metadata(file).map_err(failed)?;
    let source = Source::Disk { path: file.to_path_buf(), facts: Facts::of(&metadata) };
    let content = Content { size: metadata.len(), source, shared: None };
    match unusable(&content, platform).map_err(failed)? {
        Some(why) => Err(refused(format!("{} {why}", file.display()))),
        None => Ok(content),
    }
}

/// The program, and a folder for temporary files that everybody may write to.
fn tree(content: Content) -> Tree {
    let folder = |mode| Entry { mode, ..Entry::folder() };
    let file = Entry { mode: 0o755, xattrs: Vec::new(), kind: EntryKind::File(content) };
    let entries = [("usr", folder(0o755)), ("usr/bin", folder(0o755)), (PROGRAM, file), ("tmp", folder(0o1777))];
    Tree { entries: entries.into_iter().map(|(path, entry)| (path.as_bytes().to_vec(), entry)).collect() }
}

fn image(writer: &LayoutWriter, platform: &Platform, file: &Path, time: u64) -> Result<Descriptor, Error> {
    let tree = tree(program(platform, file)?);
    let paths: Vec<_> = tree.entries.keys().cloned().collect();
    let mut blob = writer.blob()?;
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let options = PackOptions { compression: Compression::Gzip, threads, time };
    let packed =
        pack(&Layer::of(&tree, &paths), options, &mut blob).map_err(|e| Error::new(ErrorKind::Store, e.to_string()))?;
    let layer = blob.finish(media::LAYER_GZIP)?;
    let mut config = ImageConfig::new(platform.clone(), vec![packed.diff_id.parse()?]);
    let created = Some(rfc3339(time));
    config.created.clone_from(&created);
    let labels = [("title", "flux-gen"), ("version", env!("CARGO_PKG_VERSION")), ("licenses", "MIT OR Apache-2.0")];
    let key = |name: &str| format!("org.opencontainers.image.{name}");
    config.config = Some(ContainerConfig {
        // Nobody: whoever mounts a folder to write to says with --user whose it is.
        user: Some("65532:65532".to_owned()),
        env: vec!["PATH=/usr/bin".to_owned()],
        entrypoint: vec![format!("/{PROGRAM}")],
        working_dir: Some("/work".to_owned()),
        labels: labels.into_iter().map(|(name, value)| (key(name), value.to_owned())).collect(),
        ..ContainerConfig::default()
    });
    config.history =
        vec![History { created, created_by: Some("flux-gen ci/release/image".to_owned()), ..History::default() }];
    let manifest = Manifest::new(writer.json(media::CONFIG, &config)?, vec![layer]);
    Ok(writer.json(media::MANIFEST, &manifest)?.platform(platform.clone()))
}

fn run(arguments: &[String]) -> Result<(), Error> {
    let [layout, name, programs @ ..] = arguments else {
        return Err(refused("usage: release-image LAYOUT NAME PLATFORM=FILE...".to_owned()));
    };
    let time = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let writer = LayoutWriter::create(Path::new(layout), WriteOptions::default())?;
    let mut images = Vec::new();
    for word in programs {
        let (platform, file) = word.split_once('=').ok_or_else(|| refused(format!("`{word}` is no PLATFORM=FILE")))?;
        images.push(image(&writer, &platform.parse::<Platform>()?, Path::new(file), time)?);
    }
    let index = writer.json(media::INDEX, &Index::new(images))?;
    println!("{}", index.digest);
    writer.finish(&Index::new(vec![index.annotation(REF_NAME, name.as_str())])).map(drop)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("release-image: {error}");
            ExitCode::FAILURE
        }
    }
}
