//! Files that are one document: the project file, views, recipes.

use super::decode::{Decoder, FromNode, head};
use super::record::Record;
use super::{explain, yaml};
use crate::diag::codes::project;
use crate::diag::{Diagnostic, Diagnostics, SourceMap};

/// Reads a file of one document. An empty one is a record without any field. `what` names the kind of file.
pub(super) fn read<T: FromNode + Default>(
    sources: &mut SourceMap,
    name: String,
    bytes: Vec<u8>,
    record: &'static Record,
    what: &str,
) -> (T, Diagnostics) {
    let mut diagnostics = Diagnostics::new();
    let Some(file) = yaml::decode_text(sources, name, bytes, &mut diagnostics) else {
        return (T::default(), diagnostics);
    };
    let text = sources.get(file).map(|source| source.text.as_str()).unwrap_or_default();
    let (documents, aliases) = yaml::parse(file, text, &mut diagnostics);
    let mut documents = documents.iter();
    let Some(first) = documents.next() else {
        return (T::default(), diagnostics);
    };
    for other in documents {
        let message = format!("a {what} file is one document, and here a second one starts");
        diagnostics.push(Diagnostic::error(project::SEVERAL_DOCUMENTS, head(other), message));
    }
    let mut secrets = Vec::new();
    let mut decoder = Decoder::new(false, explain::paths_for(record), &mut diagnostics, &mut secrets);
    let value = T::from_node(first, &mut decoder).unwrap_or_default();
    yaml::point_at_anchors(&aliases, &mut diagnostics);
    (value, diagnostics)
}
