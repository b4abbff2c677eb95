//! `flux-gen explain FIELD`: what a field of a MiniCluster, the project file, a view or a recipe means.

use super::wrap;
use crate::spec::explain;
use crate::spec::record::{Field, Mark, Record, Shape};

/// What is known under a name.
pub(super) enum Answer {
    /// One field (or the same one under several paths): its page.
    Page(String),
    /// Several fields have this name: their paths.
    Several(Vec<String>),
    /// There is none; the nearest path, if one is near.
    None(Option<String>),
}

/// Looks a field up. `spec.containers[].image`, `spec.containers.image`, `containers.image` and, when nothing else has that
/// name, `image` are the same.
pub(super) fn answer(topic: &str) -> Answer {
    let wanted = plain(topic);
    let documents = explain::ROOTS.map(|root| (root, explain::paths(root)));
    let all = || documents.iter().flat_map(|(record, paths)| paths.iter().map(move |path| (*record, path)));
    for matches in [is_exactly as fn(&str, &str) -> bool, is_below_spec, ends_with] {
        let found: Vec<_> = all().filter(|(_, path)| matches(&plain(path), &wanted)).collect();
        match found.as_slice() {
            [] => {}
            [(record, path)] => return page(record, path).map_or(Answer::None(None), Answer::Page),
            [(record, path), others @ ..] if others.iter().all(|(r, p)| owner(r, p) == owner(record, path)) => {
                let also: String = others.iter().map(|(_, path)| format!("The same: {path}\n")).collect();
                return page(record, path).map_or(Answer::None(None), |page| Answer::Page(page + "\n" + &also));
            }
            several => return Answer::Several(several.iter().map(|(_, path)| (*path).clone()).collect()),
        }
    }
    if let Some(page) = older(&wanted) {
        return Answer::Page(page);
    }
    let near = all().map(|(_, path)| (strsim::damerau_levenshtein(&plain(path), &wanted), path));
    let last = |path: &str| plain(path).rsplit('.').next().map(str::to_owned).unwrap_or_default();
    let by_name = all().map(|(_, path)| (strsim::damerau_levenshtein(&last(path), &wanted), path));
    let nearest = near.chain(by_name).min().filter(|(distance, _)| *distance <= 2);
    Answer::None(nearest.map(|(_, path)| path.clone()))
}

/// The page of a field that an older API had.
fn older(wanted: &str) -> Option<String> {
    let fields = explain::older_fields();
    let (path, place) = fields.iter().find(|(path, _)| {
        let path = plain(path);
        is_exactly(&path, wanted) || is_below_spec(&path, wanted)
    })?;
    Some(format!("{path}: a field of an older API\n\n{}\n", wrap(&format!("Now: {place}."), 80)))
}

fn is_exactly(path: &str, wanted: &str) -> bool {
    path.eq_ignore_ascii_case(wanted)
}

fn is_below_spec(path: &str, wanted: &str) -> bool {
    path.strip_prefix("spec.").is_some_and(|rest| rest.eq_ignore_ascii_case(wanted))
}

fn ends_with(path: &str, wanted: &str) -> bool {
    let (path, wanted) = (path.to_ascii_lowercase(), wanted.to_ascii_lowercase());
    path.strip_suffix(&wanted).is_some_and(|before| before.ends_with('.'))
}

/// A path without the marks of lists and mappings: `[]`, `[0]`, `{}`.
fn plain(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut inside = false;
    for c in path.trim_start_matches('.').chars() {
        match c {
            '[' | '{' => inside = true,
            ']' | '}' => inside = false,
            c if !inside => out.push(c),
            _ => {}
        }
    }
    out
}

/// The page of a field.
fn page(root: &'static Record, path: &str) -> Option<String> {
    let field = find(root, &plain(path))?;
    let mut text = format!("{path}: {}\n", kind((field.shape)()));
    if field.is(Mark::Required) {
        text.push_str("Required.\n");
    }
    if field.is(Mark::Older) {
        text.push_str("An older field: documented and working, no longer in the CRD.\n");
    }
    if field.is(Mark::Secret) {
        text.push_str("Its value is secret and is never shown in a message.\n");
    }
    text.push_str(&format!("\n{}\n", wrap(&field.description(), 80)));
    if let Some(record) = innermost((field.shape)()) {
        text.push_str("\nFields:\n");
        text.push_str(&fields(record));
    }
    Some(text)
}

/// One line per field: name and what it takes; the first sentence of its description below.
fn fields(record: &Record) -> String {
    let line = |f: &Field| {
        let text = f.description();
        let first = text.split_inclusive(". ").next().unwrap_or_default().trim_end();
        format!("  {}: {}\n      {}\n", f.name, kind((f.shape)()), wrap(first, 74).replace('\n', "\n      "))
    };
    record.fields.iter().map(line).collect()
}

fn find(root: &'static Record, path: &str) -> Option<&'static Field> {
    match path.split_once('.') {
        None => root.field(path),
        Some((first, rest)) => find(innermost((root.field(first)?.shape)())?, rest),
    }
}

/// The name of the record that a field belongs to, and its own: the same for paths that lead to the same description.
fn owner(root: &'static Record, path: &str) -> Option<(&'static str, &'static str)> {
    let plain = plain(path);
    let (above, name) = plain.rsplit_once('.').map_or((None, plain.as_str()), |(above, name)| (Some(above), name));
    let record = match above {
        None => root,
        Some(above) => innermost((find(root, above)?.shape)())?,
    };
    Some((record.name, record.field(name)?.name))
}

/// The record in a shape, through lists and mappings.
fn innermost(shape: Shape) -> Option<&'static Record> {
    match shape {
        Shape::Record(record) => Some(record),
        Shape::List(inner) | Shape::Map(inner) => innermost(inner()),
        _ => None,
    }
}

/// What a shape takes, in words.
fn kind(shape: Shape) -> String {
    match shape {
        Shape::Text => "text".to_owned(),
        Shape::Boolean => "true or false".to_owned(),
        Shape::Int32 => "whole number (32 bits)".to_owned(),
        Shape::Int64 => "whole number (64 bits)".to_owned(),
        Shape::Quantity => "quantity (such as 2 or 500m)".to_owned(),
        Shape::Setting => "text, number, true or false, or a list of these".to_owned(),
        Shape::Object => "mapping".to_owned(),
        Shape::Ignored => "anything (not used)".to_owned(),
        Shape::List(item) => format!("list of {}", kinds(item())),
        Shape::Map(value) => format!("mapping from names to {}", kinds(value())),
        Shape::Record(_) => "mapping".to_owned(),
    }
}

/// Several of them.
fn kinds(shape: Shape) -> String {
    match shape {
        Shape::Record(_) | Shape::Object => "mappings".to_owned(),
        Shape::Quantity => "quantities (such as 2 or 500m)".to_owned(),
        other => kind(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_has_its_page() {
        for (root, paths) in explain::ROOTS.map(|root| (root, explain::paths(root))) {
            for path in paths {
                let page = page(root, &path).unwrap_or_else(|| panic!("{path}"));
                assert!(
                    page.starts_with(&format!("{path}: ")) && page.lines().all(|l| l.chars().count() < 120),
                    "{page}"
                );
            }
        }
    }

    #[test]
    fn short_names_are_found() {
        for topic in ["spec.size", "size", ".spec.size", "SPEC.SIZE"] {
            assert!(matches!(answer(topic), Answer::Page(p) if p.starts_with("spec.size: ")), "{topic}");
        }
        for topic in ["containers.launcher", "spec.containers[0].launcher", "spec.containers[].launcher"] {
            assert!(
                matches!(answer(topic), Answer::Page(p) if p.starts_with("spec.containers[].launcher: ")),
                "{topic}"
            );
        }
        assert!(matches!(answer("name"), Answer::Several(paths) if paths.contains(&"metadata.name".to_owned())));
        assert!(matches!(answer("volumes"), Answer::Page(p) if p.ends_with("\nThe same: spec.services[].volumes\n")));
        for topic in ["spec.volumes", "flux.installRoot", "spec.containers[].existingVolumes"] {
            assert!(
                matches!(answer(topic), Answer::Page(p) if p.contains(": a field of an older API\n\nNow: ")),
                "{topic}"
            );
        }
        assert!(matches!(answer("spec.sise"), Answer::None(Some(near)) if near == "spec.size"));
        assert!(matches!(answer("xyzzy"), Answer::None(None)));
    }
}
