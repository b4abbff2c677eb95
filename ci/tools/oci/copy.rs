//! Moves images between layouts, archives and registries with flux-gen's library and nothing around it, for integration
//! tests and measurements: `cargo run --release --example oci-copy -- help`.

#![allow(clippy::disallowed_methods, clippy::print_stdout, clippy::print_stderr)]

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use flux_gen::oci::credentials::{LoginFiles, Places};
use flux_gen::oci::descriptor::REF_NAME;
use flux_gen::oci::digest::{Algorithm, Hasher};
use flux_gen::oci::document::{Index, Manifest};
use flux_gen::oci::graph::Graph;
use flux_gen::oci::image::ImageConfig;
use flux_gen::oci::layout::archive::{self, Contents};
use flux_gen::oci::layout::{Layout, LayoutWriter, Limits, WriteOptions};
use flux_gen::oci::registry::{Client, ClientOptions, Repository};
use flux_gen::oci::source;
use flux_gen::oci::transfer::{self, Quiet, Tagged, TransferOptions};
use flux_gen::oci::{Descriptor, Digest, Error, ErrorKind, Platform, Reference, media};

const HELP: &str = "\
pack LAYOUT FILE...       an image for amd64 and one for arm64; the layers are files (.gz: compressed)
sbom LAYOUT FILE          a file that refers to the image of the layout
push LAYOUT|ARCHIVE REF   and everything that refers to it
pull REF LAYOUT [PLATFORM]
copy REF REF
save LAYOUT ARCHIVE
verify LAYOUT|ARCHIVE
tags REF
referrers REF
Registries on loopback are asked by plain HTTP.";

fn client(references: &[&Reference]) -> Result<Arc<Client>, Error> {
    let loopback = |r: &&&Reference| r.registry().starts_with("127.") || r.registry().starts_with("localhost");
    let plain_http: BTreeSet<String> = references.iter().filter(loopback).map(|r| r.registry().to_owned()).collect();
    let options = ClientOptions { plain_http, system_roots: false, ..ClientOptions::default() };
    let file = |name| std::env::var_os(name).map(Into::into);
    let places = Places { registry_auth_file: file("REGISTRY_AUTH_FILE"), home: file("HOME"), ..Places::default() };
    Ok(Arc::new(Client::new(options, Arc::new(LoginFiles::new(places)))?))
}

fn open(path: &str) -> Result<Layout, Error> {
    Layout::open(Path::new(path), &Limits::default())
}

fn tagged(layout: &Layout, reference: &Reference) -> Vec<Tagged> {
    let tag = |d: &Descriptor| d.artifact_type.is_none().then(|| reference.tag().unwrap_or("latest").to_owned());
    layout.roots().iter().map(|root| Tagged { root: root.clone(), tags: tag(root).into_iter().collect() }).collect()
}

fn pack(path: &str, files: &[&str]) -> Result<(), Error> {
    let writer = LayoutWriter::create(Path::new(path), WriteOptions { durable: false })?;
    let (mut layers, mut diff_ids) = (Vec::new(), Vec::new());
    for file in files {
        let failed = |e: std::io::Error| Error::file("read", Path::new(file), &e);
        let open = || std::fs::File::open(file).map_err(failed);
        let zipped = Path::new(file).extension().is_some_and(|e| e == "gz");
        let mut blob = writer.blob()?;
        std::io::copy(&mut open()?, &mut blob).map_err(failed)?;
        let layer = blob.finish(if zipped { media::LAYER_GZIP } else { media::LAYER })?;
        diff_ids.push(if zipped { hash(MultiGzDecoder::new(open()?)).map_err(failed)? } else { layer.digest.clone() });
        layers.push(layer);
    }
    let mut images = Vec::new();
    for architecture in ["amd64", "arm64"] {
        let platform = Platform::linux(architecture);
        let config = writer.json(media::CONFIG, &ImageConfig::new(platform.clone(), diff_ids.clone()))?;
        images.push(writer.json(media::MANIFEST, &Manifest::new(config, layers.clone()))?.platform(platform));
    }
    let index = writer.json(media::INDEX, &Index::new(images))?;
    writer.finish(&Index::new(vec![index.annotation(REF_NAME, "latest")])).map(drop)
}

fn hash(mut bytes: impl Read) -> std::io::Result<Digest> {
    let mut hasher = Hasher::new(Algorithm::Sha256);
    let mut buffer = vec![0; 1 << 16];
    loop {
        match bytes.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            count => hasher.update(&buffer[..count]),
        }
    }
}

fn sbom(path: &str, file: &str) -> Result<(), Error> {
    let writer = LayoutWriter::create(Path::new(path), WriteOptions { durable: false })?;
    let mut index = writer.present().clone();
    let subject = index.manifests[0].clone();
    let bytes = std::fs::read(file).map_err(|e| Error::file("read", Path::new(file), &e))?;
    let kind = "application/spdx+json";
    let mut manifest = Manifest::artifact(kind, vec![writer.bytes(kind, &bytes)?]);
    manifest.subject = Some(Descriptor::new(subject.media_type, subject.digest, subject.size));
    writer.bytes(media::EMPTY, b"{}")?;
    let mut made = writer.json(media::MANIFEST, &manifest)?;
    made.artifact_type = Some(kind.to_owned());
    index.manifests.push(made);
    writer.finish(&index).map(drop)
}

fn push(from: &str, to: &Reference) -> Result<(), Error> {
    let layout = open(from)?;
    let target = Repository::to_push(&client(&[to])?, to, &[]);
    let summary = transfer::push(&layout, &tagged(&layout, to), &target, &TransferOptions::default(), &Quiet)?;
    println!("{summary:?}");
    Ok(())
}

fn resolve(source: &Repository, reference: &Reference) -> Result<Descriptor, Error> {
    let name = match reference.digest() {
        Some(digest) => digest.to_string(),
        None => reference.tag().unwrap_or("latest").to_owned(),
    };
    let missing = || Error::new(ErrorKind::NotFound, format!("{reference} is not there"));
    source.resolve(&name)?.ok_or_else(missing)
}

fn pull(from: &Reference, to: &str, platform: Option<&str>) -> Result<(), Error> {
    let source = Repository::to_pull(&client(&[from])?, from);
    let mut root = resolve(&source, from)?;
    if let Some(platform) = platform {
        root = source::of_platform(&source, &root, &platform.parse()?)?;
    }
    let writer = LayoutWriter::create(Path::new(to), WriteOptions { durable: false })?;
    let summary = transfer::pull(&source, std::slice::from_ref(&root), &writer, &TransferOptions::default(), &Quiet)?;
    println!("{summary:?}");
    writer.finish(&Index::new(vec![root.annotation(REF_NAME, from.tag().unwrap_or("latest"))])).map(drop)
}

fn copy(from: &Reference, to: &Reference) -> Result<(), Error> {
    let client = client(&[from, to])?;
    let source = Repository::to_pull(&client, from);
    let mount_from = if from.registry() == to.registry() { vec![from.repository().to_owned()] } else { Vec::new() };
    let target = Repository::to_push(&client, to, &mount_from);
    let images = [Tagged { root: resolve(&source, from)?, tags: vec![to.tag().unwrap_or("latest").to_owned()] }];
    let options = TransferOptions { mount_from, ..TransferOptions::default() };
    println!("{:?}", transfer::push(&source, &images, &target, &options, &Quiet)?);
    Ok(())
}

fn save(from: &str, to: &str) -> Result<(), Error> {
    let layout = open(from)?;
    let blobs = Graph::walk(&layout, layout.roots())?.descriptors().cloned().collect();
    let contents = Contents { index: layout.index_bytes().to_vec(), blobs, ..Contents::default() };
    archive::save(&layout, &contents, Path::new(to), false, &mut |_| ())
}

fn verify(path: &str) -> Result<(), Error> {
    let report = open(path)?.verify()?;
    println!("{} documents, {} blobs, {} bytes", report.documents, report.blobs, report.bytes);
    report.problems.into_iter().next().map_or(Ok(()), Err)
}

fn run(arguments: &[&str]) -> Result<(), Error> {
    let reference = |text: &str| text.parse::<Reference>();
    match arguments {
        ["pack", layout, files @ ..] => pack(layout, files),
        ["sbom", layout, file] => sbom(layout, file),
        ["push", from, to] => push(from, &reference(to)?),
        ["pull", from, to] => pull(&reference(from)?, to, None),
        ["pull", from, to, platform] => pull(&reference(from)?, to, Some(platform)),
        ["copy", from, to] => copy(&reference(from)?, &reference(to)?),
        ["save", from, to] => save(from, to),
        ["verify", path] => verify(path),
        ["tags", from] => {
            let from = reference(from)?;
            println!("{}", Repository::to_pull(&client(&[&from])?, &from).tags()?.join("\n"));
            Ok(())
        }
        ["referrers", from] => {
            let from = reference(from)?;
            let source = Repository::to_pull(&client(&[&from])?, &from);
            for found in source.referrers(&resolve(&source, &from)?.digest, None)? {
                println!("{} {}", found.digest, found.artifact_type.unwrap_or_default());
            }
            Ok(())
        }
        _ => {
            println!("{HELP}");
            Ok(())
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error[{}]: {error}", error.kind().code().id);
            if let Some(help) = error.advice() {
                eprintln!("help: {help}");
            }
            ExitCode::FAILURE
        }
    }
}
