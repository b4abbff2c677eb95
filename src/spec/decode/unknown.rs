//! Fields that the API does not have: what was probably meant.

use super::{Decoder, older};
use crate::diag::codes::syntax;
use crate::diag::{Diagnostic, Severity};
use crate::spec::explain;
use crate::spec::record::Record;
use crate::spec::yaml::Pair;

/// How many places of a name a message lists.
const PLACES: usize = 3;
/// How many fields of a record a message lists.
const LISTED: usize = 12;

impl Decoder<'_> {
    /// Reports a field that the record does not have.
    pub(crate) fn unknown_field(&mut self, pair: &Pair, record: &'static Record) {
        let name = &pair.key.text;
        let path = self.path.child(name);
        let (code, message, help) = match older::place(record, name) {
            Some(place) => (syntax::MOVED_FIELD, format!("{path} is a field of an older API"), place.to_owned()),
            None => (syntax::UNKNOWN_FIELD, format!("{path} is no field of the API"), self.suggest(name, record)),
        };
        let mut diagnostic = Diagnostic::error(code, pair.key_span, message).help(help);
        if self.allow_unknown {
            diagnostic.severity = Severity::Warning;
        }
        self.diagnostics.push(diagnostic);
    }

    fn suggest(&self, name: &str, record: &'static Record) -> String {
        let here: Vec<&str> = record.fields.iter().map(|field| field.name).collect();
        if let Some(near) = nearest(name, &here) {
            return format!("did you mean `{near}`?");
        }
        let mut elsewhere: Vec<String> =
            self.fields.iter().filter(|path| path.rsplit('.').next() == Some(name)).cloned().collect();
        if !elsewhere.is_empty() {
            let more = elsewhere.len().saturating_sub(PLACES);
            elsewhere.truncate(PLACES);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            return format!("`{name}` belongs to {}{more}", elsewhere.join(", "));
        }
        if name.starts_with('-') {
            return "a list item needs a blank after its `-`".to_owned();
        }
        if let (true, Some(path)) = (here.len() > LISTED, explain::path_of(record)) {
            return format!("`flux-gen explain {path}` lists the fields");
        }
        format!("{} has the fields {}", self.path.name(), here.join(", "))
    }
}

/// The candidate that a misspelt name most probably means: the same letters in another case, then the fewest edits,
/// at most one for three letters.
pub(crate) fn nearest<'c>(name: &str, candidates: &[&'c str]) -> Option<&'c str> {
    let squash = |text: &str| text.to_lowercase().replace(['-', '_'], "");
    let wanted = squash(name);
    candidates
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(&wanted, &squash(candidate)), *candidate))
        .filter(|(distance, candidate)| distance * 3 <= wanted.chars().count().max(candidate.chars().count()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
