//! Options of `flux-gen gitops`: those of the command line, else those of the project file, else the usual ones.

use super::gitops::{SourceArgs, ToolName};
use super::project::Found;
use crate::bundle::gitops::{ArgoCd, FluxCd, Resize, Revision, Source, Tool};
use crate::diag::codes::publish as codes;
use crate::diag::{Code, Diagnostic, Diagnostics, Span};
use crate::spec::Spanned;
use crate::spec::project::{ArgoCdSection, FluxCdSection, GitOpsSection};

/// Everything that the documents depend on besides the bundles.
#[derive(Debug)]
pub(super) struct Options {
    /// `None` when something is wrong with it, which has been reported.
    pub(super) source: Option<Source>,
    /// `None`: all.
    pub(super) namespaces: Option<Vec<Said>>,
    pub(super) resize: Resize,
    pub(super) tool: Tool,
}

/// A value, and where it was said if that was in the project file.
#[derive(Debug, Clone)]
pub(super) struct Said {
    pub(super) value: String,
    span: Option<Span>,
}

impl Said {
    fn given(value: &str) -> Self {
        Self { value: value.to_owned(), span: None }
    }

    fn written(value: &Spanned<String>) -> Self {
        Self { value: value.value.clone(), span: Some(value.span) }
    }

    /// An error at its place.
    pub(super) fn error(&self, code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic { span: self.span, ..Diagnostic::global_error(code, message) }
    }
}

/// What the command line says, else the project file.
fn said(given: Option<&String>, written: Option<&Spanned<String>>) -> Option<Said> {
    given.map(|value| Said::given(value)).or_else(|| written.map(Said::written))
}

/// Reads all options. What cannot be used is reported, each at its place.
pub(super) fn options(tool: ToolName, args: &SourceArgs, project: &Found, found: &mut Diagnostics) -> Options {
    let none = GitOpsSection::default();
    let section = project.written.as_ref().and_then(|p| p.gitops.as_ref()).map_or(&none, |s| &s.value);
    let written_namespaces = section.namespaces.as_ref().map(|list| list.value.iter().map(Said::written).collect());
    let namespaces = match args.namespace.as_slice() {
        [] => written_namespaces,
        given => Some(given.iter().map(|name| Said::given(name)).collect()),
    };
    let tool = match tool {
        ToolName::Argocd => Tool::ArgoCd(argocd(section.argocd.as_ref(), found)),
        ToolName::Fluxcd => Tool::FluxCd(fluxcd(section.fluxcd.as_ref(), found)),
    };
    Options { source: source(args, section, project, found), namespaces, resize: resize(section, found), tool }
}

fn source(args: &SourceArgs, section: &GitOpsSection, project: &Found, found: &mut Diagnostics) -> Option<Source> {
    let Some(url) = said(args.url.as_ref(), section.url.as_ref()) else {
        let message = "it is not known where the bundles are fetched from";
        let help = "write `gitops: {url: ...}` into flux-gen.yaml, or give --url";
        found.push(Diagnostic::global_error(codes::GITOPS_SOURCE, message).help(help));
        return None;
    };
    if let Some(problem) = Source::problem(&url.value) {
        found.push(url.error(codes::GITOPS_SOURCE, format!("the source cannot be used: {problem}")));
        return None;
    }
    let artifact = Source::is_artifact(&url.value);
    let revision = revision(args, section, artifact, found)?;
    let path = said(args.path.as_ref(), section.path.as_ref());
    let path = path.unwrap_or_else(|| Said::given(&if artifact { ".".to_owned() } else { project.output_path() }));
    let inside = path.value.split('/').all(|part| part != "..") && !path.value.starts_with('/');
    if !inside || path.value.contains(char::is_control) {
        found.push(path.error(codes::GITOPS_OPTION, format!("`{}` is no path inside the source", path.value)));
        return None;
    }
    Some(Source { url: url.value, revision, path: path.value })
}

/// How a revision is made, what the command line says of it, and what the project file says.
type Row<'a> = (fn(String) -> Revision, Option<&'a String>, Option<&'a Spanned<String>>);

/// The one revision. Those of the project file do not count when the command line has one.
fn revision(args: &SourceArgs, section: &GitOpsSection, artifact: bool, found: &mut Diagnostics) -> Option<Revision> {
    let rows: [Row<'_>; 4] = [
        (Revision::Branch, args.branch.as_ref(), section.branch.as_ref()),
        (Revision::Tag, args.tag.as_ref(), section.tag.as_ref()),
        (Revision::Commit, args.commit.as_ref(), section.commit.as_ref()),
        (Revision::Digest, args.digest.as_ref(), section.digest.as_ref()),
    ];
    let given: Vec<_> = rows.iter().filter_map(|(make, given, _)| Some((*make, Said::given((*given)?)))).collect();
    let written = || rows.iter().filter_map(|(make, _, written)| Some((*make, Said::written((*written)?))));
    let all = if given.is_empty() { written().collect() } else { given };
    let (make, value) = match all.as_slice() {
        [] if artifact => return Some(Revision::Tag("latest".to_owned())),
        [] => return Some(Revision::Branch("main".to_owned())),
        [one] => one,
        [_, second, ..] => {
            let message = "only one of `branch`, `tag`, `commit` and `digest` can be wanted";
            found.push(second.1.error(codes::GITOPS_REVISION, message));
            return None;
        }
    };
    let revision = make(value.value.clone());
    if let Some(problem) = revision.problem(artifact) {
        found.push(value.error(codes::GITOPS_REVISION, problem));
        return None;
    }
    Some(revision)
}

fn resize(section: &GitOpsSection, found: &mut Diagnostics) -> Resize {
    match section.resize.as_ref().map(|said| (said, said.value.as_str())) {
        None | Some((_, "git")) => Resize::Git,
        Some((_, "cluster")) => Resize::Cluster,
        Some((said, other)) => {
            let message = format!("`{other}` is neither `git` nor `cluster`");
            found.push(Said::written(said).error(codes::GITOPS_OPTION, message));
            Resize::Git
        }
    }
}

/// A value that must be of some form; the usual one when it is not written or wrong.
fn checked(
    written: Option<&Spanned<String>>,
    usual: String,
    good: fn(&str) -> bool,
    form: &str,
    found: &mut Diagnostics,
) -> String {
    match written {
        None => usual,
        Some(said) if good(&said.value) => said.value.clone(),
        Some(said) => {
            let message = format!("`{}` is no {form}", said.value);
            found.push(Said::written(said).error(codes::GITOPS_OPTION, message));
            usual
        }
    }
}

fn argocd(section: Option<&Spanned<ArgoCdSection>>, found: &mut Diagnostics) -> ArgoCd {
    let usual = ArgoCd::default();
    let Some(Spanned { value: section, .. }) = section else { return usual };
    ArgoCd {
        namespace: checked(section.namespace.as_ref(), usual.namespace, is_label, NAMESPACE, found),
        project: checked(section.project.as_ref(), usual.project, is_name, NAME, found),
        server: checked(section.server.as_ref(), usual.server, is_server, "https:// address", found),
    }
}

fn fluxcd(section: Option<&Spanned<FluxCdSection>>, found: &mut Diagnostics) -> FluxCd {
    let usual = FluxCd::default();
    let Some(Spanned { value: section, .. }) = section else { return usual };
    let mut optional = |written: Option<&Spanned<String>>, good, form| {
        written.map(|said| checked(Some(said), String::new(), good, form, found)).filter(|value| !value.is_empty())
    };
    let (wait, pull_secret) =
        (optional(section.wait.as_ref(), is_duration, DURATION), optional(section.pull_secret.as_ref(), is_name, NAME));
    FluxCd {
        namespace: checked(section.namespace.as_ref(), usual.namespace, is_label, NAMESPACE, found),
        interval: checked(section.interval.as_ref(), usual.interval, is_duration, DURATION, found),
        wait,
        decryption_secret: checked(section.decryption_secret.as_ref(), usual.decryption_secret, is_name, NAME, found),
        pull_secret,
        insecure: section.insecure.as_ref().is_some_and(|said| said.value),
    }
}

const NAMESPACE: &str = "name of a namespace";
const NAME: &str = "name of an object";
const DURATION: &str = "duration such as 10m or 1h30m";

/// RFC 1123 label, as the API server checks names of namespaces.
fn is_label(text: &str) -> bool {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    (1..=63).contains(&text.len()) && text.chars().all(good) && !text.starts_with('-') && !text.ends_with('-')
}

/// RFC 1123 subdomain.
fn is_name(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label)
}

fn is_server(text: &str) -> bool {
    text.strip_prefix("https://").is_some_and(|rest| !rest.is_empty() && !rest.contains(char::is_whitespace))
}

/// As the CRDs of Flux CD have it: `^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`.
fn is_duration(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        if digits.len() == rest.len() {
            return false;
        }
        let unit = match digits.strip_prefix('.') {
            None => digits,
            Some(fraction) => {
                let after = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
                if after.len() == fraction.len() {
                    return false;
                }
                after
            }
        };
        let Some(next) = ["ms", "s", "m", "h"].iter().find_map(|u| unit.strip_prefix(u)) else { return false };
        rest = next;
    }
    !text.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        for (text, good) in [
            ("10m", true),
            ("1h30m", true),
            ("1.5s", true),
            ("100ms", true),
            ("", false),
            ("10", false),
            ("m", false),
            ("1.m", false),
            ("1d", false),
            ("10m ", false),
        ] {
            assert_eq!(is_duration(text), good, "{text}");
        }
        assert!(is_label("argocd") && !is_label("Argo") && !is_label("-a") && !is_label("") && !is_label("a.b"));
        assert!(is_name("sops.age-1") && !is_name("sops..age"));
        assert!(is_server("https://10.0.0.1:6443") && !is_server("http://a") && !is_server("https://"));
    }
}
