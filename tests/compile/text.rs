//! From the text of specs and of a project file to what is compiled of them.

use std::collections::BTreeMap;

use flux_gen::compile::{self, Compiled, Input};
use flux_gen::diag::{Diagnostics, SourceMap};
use flux_gen::spec::{self, Project, ReadOptions};

/// The public key of every certificate.
pub(crate) const KEY: &str = "K3HW^WVq.zo69t)(umF>:XvwTj:QGN^yKlWaVH(S";

/// Settings of a command line.
pub(crate) type Set<'a> = &'a [(&'a str, &'a str)];

/// Compiles whole documents; gives also what reading them said. Without a `key` no certificate is known.
pub(crate) fn compile_text(specs: &str, project: &str, set: Set<'_>, key: Option<&str>) -> (Compiled, Diagnostics) {
    let mut sources = SourceMap::new();
    let inputs = vec![("spec.yaml".to_owned(), specs.as_bytes().to_vec())];
    let (documents, mut reading) = spec::read(&mut sources, inputs, &ReadOptions::default());
    let (project, problems) = Project::read(&mut sources, "flux-gen.yaml", project.as_bytes().to_vec());
    reading.extend(problems);
    let set: Vec<_> = set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let none = BTreeMap::new();
    let input = Input { documents: &documents, project: Some(&project), set: &set, is_whole: true, public_keys: &none };
    let needs = compile::certificate_needs(&input);
    let public_keys = needs.into_iter().filter_map(|need| Some((need, key?.to_owned()))).collect();
    let compiled = compile::compile(&Input { public_keys: &public_keys, ..input });
    (compiled, reading)
}

/// Compiles whole documents that can be read without an error.
pub(crate) fn compiled(specs: &str, project: &str, set: Set<'_>) -> Compiled {
    let (compiled, reading) = compile_text(specs, project, set, Some(KEY));
    assert!(!reading.has_errors(), "{reading:?}\n{specs}");
    compiled
}
