//! What is fuzzed: one function per format, from bytes to assertions.
//!
//! The same functions are run by a short deterministic test of the crate, so that `cargo test` always covers them.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

use flux_gen::airgap::archive::{About, Archive, verify};
use flux_gen::airgap::lock::Lock;
use flux_gen::bundle::index::Index;
use flux_gen::compile::{Input, compile};
use flux_gen::diag::{Diagnostic, SourceMap};
use flux_gen::flux::config_check::{Context, check};
use flux_gen::flux::{Certificate, FluxDuration, Hostlist, IdSet, ResourceSet, Topology};
use flux_gen::oci::document::Document;
use flux_gen::oci::image::ImageConfig;
use flux_gen::oci::layout::{Layout, Limits};
use flux_gen::oci::{Reference, media};
use flux_gen::spec::{BuildRecipe, Project, ReadOptions, Recipe, View, read};
use flux_gen::view::elf as programs;
use flux_gen::view::entry::{Content, Source};
use flux_gen::view::problem::Problems;
use flux_gen::view::tree::{self, CheckOptions, Meaning, Xattrs};

/// A function that takes any bytes and panics if something does not hold.
pub type Target = fn(&[u8]);

/// Every target by name.
pub const TARGETS: [(&str, Target); 14] = [
    ("idset", idset),
    ("hostlist", hostlist),
    ("resource_set", resource_set),
    ("broker_config", broker_config),
    ("certificate", certificate),
    ("topology", topology),
    ("spec", spec),
    ("project", project),
    ("recipe", recipe),
    ("lock", lock),
    ("documents", documents),
    ("archive", archive),
    ("layer", layer),
    ("elf", elf),
];

fn text(data: &[u8]) -> String {
    String::from_utf8_lossy(data).into_owned()
}

/// What is read is written so that it reads the same.
pub fn idset(data: &[u8]) {
    let Ok(set) = text(data).parse::<IdSet>() else { return };
    let written = set.to_string();
    assert_eq!(written.parse::<IdSet>().as_ref(), Ok(&set));
    assert!(set.ranges().zip(set.ranges().skip(1)).all(|(a, b)| a.1 + 1 < b.0), "{written}");
    assert_eq!(set.union(&set), set);
    assert!(set.difference(&set).is_empty());
}

/// Both readers; the strict one reads a part of what the other reads, and the same.
pub fn hostlist(data: &[u8]) {
    let text = text(data);
    let lenient = Hostlist::decode_as_flux(&text);
    let Ok(list) = Hostlist::parse(&text) else { return };
    // A hostlist may stand for millions of names: only look at small ones as a whole.
    if list.len() < 10_000 {
        assert_eq!(lenient.as_ref(), Ok(&list), "{text}");
        assert_eq!(Hostlist::parse(&list.to_string()).as_ref(), Ok(&list), "{text}");
        for (index, host) in list.iter().enumerate().take(20) {
            assert_eq!(list.nth(index), Some(host.clone()));
            assert!(list.find(&host).is_some_and(|found| found <= index), "{host}");
        }
    }
}

/// What is read is written so that it reads the same.
pub fn resource_set(data: &[u8]) {
    let text = text(data);
    let _ = ResourceSet::parse_many(&text);
    let Ok(set) = ResourceSet::parse(&text) else { return };
    // Flux keeps brackets in host names, but what it then writes stands for other hosts: only compare plain ones.
    let plain = set.hosts().is_some_and(|hosts| hosts.len() == set.len())
        && set.ranks().iter().all(|rank| set.host(rank).is_some_and(|host| !host.contains(['[', ']'])));
    if set.len() < 10_000 && set.first_rank_without_resources().is_none() && plain {
        let again = ResourceSet::parse(&set.to_json());
        assert_eq!(again.as_ref(), Ok(&set), "{text}");
    }
}

/// Every problem lies within the text.
pub fn broker_config(data: &[u8]) {
    let text = text(data);
    let hosts = Hostlist::indexed("h", 2);
    let report = check(&text, &Context::of_hosts(&hosts));
    for problem in &report.problems {
        assert!(text.is_char_boundary(problem.offset) && problem.offset + problem.length <= text.len());
        assert!(problem.line >= 1 && problem.column >= 1);
    }
    let _ = text.parse::<FluxDuration>().map(|duration| duration.to_string());
}

/// A certificate that is accepted can be written and read again.
pub fn certificate(data: &[u8]) {
    if let Ok(read) = Certificate::parse(data) {
        let again = Certificate::parse(read.to_file_text().as_bytes());
        assert_eq!(again.map(|again| again.public_key().to_owned()).as_deref(), Ok(read.public_key()));
    }
    if let Ok(secret) = data.try_into() {
        let made = Certificate::from_secret_bytes(secret, &text(data));
        assert!(Certificate::parse(made.to_file_text().as_bytes()).is_ok());
    }
}

/// Every rank leads to rank 0.
pub fn topology(data: &[u8]) {
    let Ok(tree) = text(data).parse::<Topology>() else { return };
    for size in [0, 1, 2, 7, 64] {
        for rank in 1..size {
            assert!(tree.parent(rank, size).is_some_and(|parent| parent < rank));
        }
        let _ = tree.routers(size);
    }
}

/// Any document can be read and compiled, and every place that is named lies within the text.
pub fn spec(data: &[u8]) {
    let mut sources = SourceMap::new();
    let (documents, read_problems) =
        read(&mut sources, vec![("spec.yaml".to_owned(), data.to_vec())], &ReadOptions { allow_unknown: true });
    let public_keys = BTreeMap::new();
    let compiled =
        compile(&Input { documents: &documents, project: None, set: &[], is_whole: true, public_keys: &public_keys });
    within_texts(&sources, read_problems.iter().chain(&compiled.diagnostics));
}

/// Every place that is named lies within its text.
fn within_texts<'a>(sources: &SourceMap, diagnostics: impl IntoIterator<Item = &'a Diagnostic>) {
    for diagnostic in diagnostics {
        for span in diagnostic.span.iter().chain(diagnostic.related.iter().map(|(span, _)| span)) {
            let text = sources.get(span.file).map(|source| source.text.as_str()).unwrap_or_default();
            assert!(text.get(span.start..span.end).is_some(), "{diagnostic:?}");
        }
    }
}

/// Any bytes as a project file.
pub fn project(data: &[u8]) {
    let mut sources = SourceMap::new();
    let (_, problems) = Project::read(&mut sources, "flux-gen.yaml", data.to_vec());
    within_texts(&sources, &problems);
}

/// Any bytes as `view.yaml` and as `recipe.yaml`, of each kind.
pub fn recipe(data: &[u8]) {
    let mut sources = SourceMap::new();
    let (_, of_view) = View::read(&mut sources, "view.yaml", data.to_vec());
    let (_, of_recipe) = Recipe::read(&mut sources, "recipe.yaml", data.to_vec());
    let (_, of_build) = BuildRecipe::read(&mut sources, "recipe.yaml", data.to_vec());
    within_texts(&sources, of_view.iter().chain(&of_recipe).chain(&of_build));
}

/// `images.lock` and the references in it: what is read is written so that it reads the same.
pub fn lock(data: &[u8]) {
    let text = text(data);
    if let Ok(lock) = Lock::parse(&text)
        && let Ok(written) = lock.to_text()
    {
        assert_eq!(Lock::parse(&written).ok().as_ref(), Some(&lock), "{written}");
    }
    if let Ok(reference) = text.parse::<Reference>() {
        assert_eq!(reference.to_string().parse::<Reference>().ok(), Some(reference));
    }
}

/// What registries and archives send: indexes, manifests, configurations, and our own descriptions.
pub fn documents(data: &[u8]) {
    for said in [media::INDEX, media::MANIFEST, media::DOCKER_LIST, media::DOCKER_MANIFEST, ""] {
        let Ok(document) = Document::parse("fuzz", said, data) else { continue };
        assert!(Document::parse("fuzz", document.media_type(), data).is_ok(), "{}", document.media_type());
        assert!(document.children().len() <= data.len());
    }
    let _ = ImageConfig::parse("fuzz", data);
    let _ = About::parse("fuzz", data);
    let _ = Index::parse(data);
}

/// Any bytes as an archive of images, by us or by others: read, verified, nothing unpacked.
pub fn archive(data: &[u8]) {
    let file = file_of(&with_checksums(data));
    let limits = Limits { entries: 1000, unpacked: 1 << 20, spool: Some(std::env::temp_dir()) };
    if let Ok(layout) = Layout::open(file.path(), &limits) {
        let _ = layout.verify();
    }
    if let Ok(archive) = Archive::open(file.path()) {
        let _ = archive.about();
    }
    let _ = verify::verify(file.path(), &[]);
}

/// Any bytes as a tree or a layer. A tree without errors has no path that leads out of it.
pub fn layer(data: &[u8]) {
    let file = file_of(&with_checksums(data));
    let options = tree::ReadOptions { xattrs: Xattrs::User, scratch: std::env::temp_dir(), ..Default::default() };
    let Ok(opened) = tree::Archive::open(file.path()) else { return };
    let Ok(spooled) = opened.spool(&options.scratch) else { return };
    for meaning in [Meaning::Tree, Meaning::Layer] {
        let mut problems = Problems::default();
        let Ok(mut read) = tree::index_archive(file.path(), &spooled, meaning, &options, &mut problems) else {
            continue;
        };
        tree::check(&mut read, CheckOptions::default(), &mut problems);
        for path in read.entries.keys() {
            let path = PathBuf::from(String::from_utf8_lossy(path.as_ref()).into_owned());
            assert!(
                path.components().all(|part| matches!(part, std::path::Component::Normal(_))),
                "{}",
                path.display()
            );
        }
    }
}

/// Any bytes as a program.
pub fn elf(data: &[u8]) {
    let content = Content { size: data.len() as u64, source: Source::Bytes(data.into()), shared: None };
    let read = programs::read(&content);
    assert!(read.is_ok(), "bytes in memory can be read: {read:?}");
}

fn file_of(data: &[u8]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file can be made");
    file.write_all(data).expect("a temporary file can be written");
    file
}

/// The data with the checksum of each header of a tar archive put right: a fuzzer finds none by chance.
fn with_checksums(data: &[u8]) -> Vec<u8> {
    let mut out = data.to_vec();
    for block in out.chunks_exact_mut(512).filter(|block| block[257..262] == *b"ustar") {
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    out
}
