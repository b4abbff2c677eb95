//! What is fuzzed: one function per format, from bytes to assertions.
//!
//! The same functions are run by a short deterministic test of the crate, so that `cargo test` always covers them.

use std::collections::BTreeMap;

use flux_gen::compile::{Input, compile};
use flux_gen::diag::SourceMap;
use flux_gen::flux::config_check::{Context, check};
use flux_gen::flux::{Certificate, FluxDuration, Hostlist, IdSet, ResourceSet, Topology};
use flux_gen::spec::{ReadOptions, read};

/// A function that takes any bytes and panics if something does not hold.
pub type Target = fn(&[u8]);

/// Every target by name.
pub const TARGETS: [(&str, Target); 7] = [
    ("idset", idset),
    ("hostlist", hostlist),
    ("resource_set", resource_set),
    ("broker_config", broker_config),
    ("certificate", certificate),
    ("topology", topology),
    ("spec", spec),
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
    let compiled = compile(&Input { documents: &documents, project: None, set: &[], public_keys: &public_keys });
    for diagnostic in read_problems.iter().chain(&compiled.diagnostics) {
        for span in diagnostic.span.iter().chain(diagnostic.related.iter().map(|(span, _)| span)) {
            let text = sources.get(span.file).map(|source| source.text.as_str()).unwrap_or_default();
            assert!(text.get(span.start..span.end).is_some(), "{diagnostic:?}");
        }
    }
}
