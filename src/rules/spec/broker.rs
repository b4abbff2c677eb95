//! The user's own broker configuration and certificate.

use super::check::{Check, text};
use super::reserved::MOST_PODS;
use crate::diag::codes::spec as codes;
use crate::diag::{Diagnostic, Span};
use crate::flux::config_check::{self, Context, Problem, Severity};
use crate::flux::{Certificate, Hostlist};
use crate::spec::Spanned;

pub(super) fn check(check: &mut Check<'_>) {
    certificate(check);
    if let Some(written) = check.flux().and_then(|flux| text(&flux.broker_config)) {
        configuration(check, written);
    }
}

/// The message holds line numbers and reasons only: nothing of the certificate itself.
fn certificate(check: &mut Check<'_>) {
    let Some(written) = check.flux().and_then(|flux| text(&flux.curve_cert)) else { return };
    let help = "put a certificate made by `flux-gen cert new` or `flux keygen` into the certificate store instead";
    match Certificate::parse(written.value.as_bytes()) {
        Ok(certificate) if certificate.name().is_none() => {
            let message = "the certificate has no `name` in its metadata, which the leader needs";
            check.error(codes::CERTIFICATE, written.span, message, help);
        }
        Ok(_) => {}
        Err(wrong) => check.error(codes::CERTIFICATE, written.span, format!("curveCert: {wrong}"), help),
    }
}

/// Number of hosts that a configuration lists, as far as it can be read. Ranges make short texts mean more than memory holds.
fn listed_hosts(configuration: &str) -> usize {
    let Ok(table) = configuration.parse::<toml::Table>() else { return 0 };
    let hosts = table.get("bootstrap").and_then(|bootstrap| bootstrap.get("hosts")).and_then(toml::Value::as_array);
    let lists = hosts.into_iter().flatten().filter_map(|entry| entry.get("host")?.as_str());
    lists.filter_map(|list| Hostlist::decode_as_flux(list).ok()).map(|list| list.len()).sum()
}

fn configuration(check: &mut Check<'_>, written: &Spanned<String>) {
    let (listed, most) = (listed_hosts(&written.value), 10 * usize::try_from(MOST_PODS).unwrap_or(usize::MAX));
    if listed > most {
        let message = format!("brokerConfig lists {listed} hosts, more than {most}");
        check.error(codes::BROKER_HOSTS, written.span, message, "list the hosts that there are");
        return;
    }
    // Names with a suffix are known to the model only.
    let stable = check.context.name_suffix == 0;
    let hosts = if stable { Hostlist::indexed(check.name(), check.hosts()) } else { Hostlist::new() };
    let context = Context { version: check.context.flux_version, ..Context::of_hosts(&hosts) };
    let report = config_check::check(&written.value, &context);
    for problem in report.problems {
        push(check, written, problem);
    }
    if check.hosts() > 1 && report.hosts.is_some_and(|hosts| hosts.is_empty()) {
        let message = "brokerConfig lists no hosts, so every pod is a Flux instance of its own";
        let help = format!("add hosts = [{{ host = \"{}-[0-{}]\" }}] to [bootstrap]", check.name(), check.hosts() - 1);
        check.warn(codes::BROKER_HOSTS, written.span, message, help);
    }
}

fn push(check: &mut Check<'_>, written: &Spanned<String>, problem: Problem) {
    let of_hosts = problem.key == "bootstrap" || problem.key.starts_with("bootstrap.hosts");
    let code = if of_hosts { codes::BROKER_HOSTS } else { codes::BROKER_CONFIG };
    let span = place(written, problem.offset, problem.length).unwrap_or(written.span);
    let place = if problem.key.is_empty() { format!("line {}", problem.line) } else { format!("`{}`", problem.key) };
    let message = format!("brokerConfig, {place}: {}", problem.message.replace('\n', " "));
    let diagnostic = match problem.severity {
        Severity::Error => Diagnostic::error(code, span, message),
        Severity::Warning => Diagnostic::warning(code, span, message),
    };
    check.push(match problem.help {
        Some(help) => diagnostic.help(help),
        None => diagnostic,
    });
}

/// The place in the document of some bytes of a text.
///
/// A literal block scalar stands in the document with the same indentation before each line but the first, where the span
/// begins, and blank lines may lack it; a plain or quoted scalar of one line stands there as it is. The indentation follows
/// from the number of bytes. Other forms (escapes, folded lines) have no such place: `None`.
pub(super) fn place(written: &Spanned<String>, offset: usize, length: usize) -> Option<Span> {
    let value = written.value.trim_end_matches('\n');
    let extra = (written.span.end - written.span.start).checked_sub(value.len())?;
    let indented = |text: &str| text.split('\n').skip(1).filter(|line| !line.is_empty()).count();
    let start = match (indented(value), extra) {
        (_, 0) => offset,
        (0, 2) => offset + 1,
        (0, _) => return None,
        (lines, _) if extra % lines != 0 => return None,
        (lines, _) => {
            let before = value.get(..offset.min(value.len()))?;
            // The line at hand is indented even if nothing of it stands before the place.
            let started = indented(before) + usize::from(before.ends_with('\n'));
            offset + started * (extra / lines)
        }
    };
    let first_line = value.get(offset..)?.split('\n').next()?.len();
    let start = written.span.start + start;
    let end = (start + length.min(first_line)).min(written.span.end);
    (start <= written.span.end).then_some(Span { start, end: end.max(start), ..written.span })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::FileId;

    /// What stands at the place of `needle` when `document` holds `value` from `start` to `end`.
    fn at<'a>(document: &'a str, value: &str, needle: &str) -> Option<&'a str> {
        let start = document.find(value.lines().next().unwrap()).unwrap();
        let end = document.trim_end().len();
        let span = Span { file: FileId(0), start, end };
        let written = Spanned::new(value.to_owned(), span);
        let span = place(&written, value.find(needle).unwrap(), needle.len())?;
        Some(&document[span.start..span.end])
    }

    #[test]
    fn block_scalars_are_mapped_line_by_line() {
        let document = "c: |\n    [a]\n    b = 1\n\n      deeper = 2\n    é = x\n    last = 3\n";
        let value = "[a]\nb = 1\n\n  deeper = 2\né = x\nlast = 3\n";
        for needle in ["[a]", "b = 1", "1", "deeper", "é = x", "x", "last = 3", "3"] {
            assert_eq!(at(document, value, needle), Some(needle));
        }
    }

    #[test]
    fn one_line_is_mapped_as_it_stands_and_other_forms_not_at_all() {
        assert_eq!(at("c: a = 1", "a = 1", "1"), Some("1"));
        let written = Spanned::new("a\nb".to_owned(), Span { file: FileId(0), start: 3, end: 9 });
        assert_eq!(place(&written, 2, 1).map(|span| span.start), Some(8));
        let escaped = Spanned::new("ab".to_owned(), Span { file: FileId(0), start: 3, end: 30 });
        assert_eq!(place(&escaped, 1, 1), None);
    }
}
