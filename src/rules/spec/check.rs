//! What all families share: the document, its containers with their roles, and the list of findings.

use crate::diag::{Code, Diagnostic, Diagnostics, Span};
use crate::rules::syntax::Wrong;
use crate::spec::minicluster::{Container, Flux, FluxContainer, MiniClusterSpec};
use crate::spec::{MiniCluster, Spanned};

use super::RuleContext;
use super::reserved::{DEFAULT_MOUNT_PATH, DEFAULT_VIEW_NAME, MOST_PODS};

/// What a container is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Runs Flux.
    Runner,
    /// Stands beside the runner in every pod.
    Sidecar,
    /// In the extra Pod of `services`.
    Service,
}

/// A container with its role.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) role: Role,
    pub(super) container: &'a Container,
    pub(super) span: Span,
}

impl<'a> Place<'a> {
    /// The name as written, if it is not empty.
    pub(super) fn name(&self) -> Option<&'a Spanned<String>> {
        text(&self.container.name)
    }

    /// `container `name`` or a description by its role, for messages.
    pub(super) fn describe(&self) -> String {
        match (self.name(), self.role) {
            (_, Role::Runner) => "the container that runs Flux".to_owned(),
            (Some(name), Role::Sidecar) => format!("sidecar `{}`", name.value),
            (None, Role::Sidecar) => "this container".to_owned(),
            (Some(name), Role::Service) => format!("service `{}`", name.value),
            (None, Role::Service) => "this service".to_owned(),
        }
    }
}

/// One run over one document.
pub(super) struct Check<'a> {
    pub(super) cluster: &'a MiniCluster,
    pub(super) spec: &'a MiniClusterSpec,
    pub(super) context: &'a RuleContext,
    /// Containers of the cluster's pods.
    pub(super) containers: Vec<Place<'a>>,
    /// Containers of the services Pod.
    pub(super) services: Vec<Place<'a>>,
    pub(super) found: Diagnostics,
}

impl<'a> Check<'a> {
    pub(super) fn new(cluster: &'a MiniCluster, context: &'a RuleContext) -> Self {
        let spec = &cluster.spec.value;
        let written = spec.containers.as_ref().map(|list| list.value.as_slice()).unwrap_or_default();
        let assumed = assumed_runner(written);
        let places = written.iter().enumerate().map(|(index, c)| {
            let runs = is_true(&c.run_flux) || assumed == Some(index);
            Place { role: if runs { Role::Runner } else { Role::Sidecar }, container: &c.value, span: c.span }
        });
        let containers = places.collect();
        let services = spec.services.iter().flat_map(|list| &list.value);
        let services = services.map(|c| Place { role: Role::Service, container: &c.value, span: c.span }).collect();
        Self { cluster, spec, context, containers, services, found: Diagnostics::new() }
    }

    /// Containers of the cluster, then services.
    pub(super) fn all_containers(&self) -> Vec<Place<'a>> {
        self.containers.iter().chain(&self.services).copied().collect()
    }

    /// The container that runs Flux, when there is exactly one.
    pub(super) fn runner(&self) -> Option<Place<'a>> {
        let mut runners = self.containers.iter().filter(|place| place.role == Role::Runner);
        let first = runners.next().copied();
        if runners.next().is_some() { None } else { first }
    }

    pub(super) fn flux(&self) -> Option<&'a Flux> {
        self.spec.flux.as_ref().map(|flux| &flux.value)
    }

    pub(super) fn view(&self) -> Option<&'a FluxContainer> {
        self.flux()?.container.as_ref().map(|view| &view.value)
    }

    pub(super) fn view_disabled(&self) -> bool {
        self.view().is_some_and(|view| is_true(&view.disable))
    }

    pub(super) fn view_name(&self) -> &'a str {
        self.view().and_then(|view| text(&view.name)).map_or(DEFAULT_VIEW_NAME, |name| name.value.as_str())
    }

    pub(super) fn mount_path(&self) -> &'a str {
        self.view().and_then(|view| text(&view.mount_path)).map_or(DEFAULT_MOUNT_PATH, |path| path.value.as_str())
    }

    /// The cluster's name; empty when missing.
    pub(super) fn name(&self) -> &'a str {
        self.cluster.metadata.name.as_ref().map(|name| name.value.as_str()).unwrap_or_default()
    }

    /// Size, with its default.
    pub(super) fn size(&self) -> i32 {
        self.spec.size.as_ref().map_or(1, |size| size.value)
    }

    /// Largest size, with its default.
    pub(super) fn max_size(&self) -> i32 {
        self.spec.max_size.as_ref().map(|size| size.value).filter(|size| *size != 0).unwrap_or_else(|| self.size())
    }

    /// Number of hosts that are registered: the largest size, within what a Job can have.
    pub(super) fn hosts(&self) -> u32 {
        u32::try_from(self.max_size()).unwrap_or(1).clamp(1, MOST_PODS)
    }

    pub(super) fn push(&mut self, diagnostic: Diagnostic) {
        self.found.push(diagnostic);
    }

    pub(super) fn error(&mut self, code: Code, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.push(Diagnostic::error(code, span, message).help(help));
    }

    pub(super) fn warn(&mut self, code: Code, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.push(Diagnostic::warning(code, span, message).help(help));
    }

    /// Checks the form of a text; `what` names it in the message.
    pub(super) fn form(
        &mut self,
        code: Code,
        what: &str,
        written: &Spanned<String>,
        form: impl Fn(&str) -> Result<(), Wrong>,
    ) -> bool {
        match form(&written.value) {
            Ok(()) => true,
            Err(wrong) => {
                let message = format!("{what} `{}`: {wrong}", shown(&written.value));
                let mut diagnostic = Diagnostic::error(code, written.span, message);
                if let Some(near) = nearest(&written.value, form) {
                    diagnostic = diagnostic.help(format!("write `{near}`"));
                }
                self.push(diagnostic);
                false
            }
        }
    }

    /// Checks the form of a text that may be left out or empty.
    pub(super) fn optional_form(
        &mut self,
        code: Code,
        what: &str,
        written: &Option<Spanned<String>>,
        form: impl Fn(&str) -> Result<(), Wrong>,
    ) {
        if let Some(written) = text(written) {
            self.form(code, what, written, form);
        }
    }

    /// Checks that a word is one of those allowed; an empty one counts as left out.
    pub(super) fn one_of(
        &mut self,
        code: Code,
        what: &str,
        written: &Option<Spanned<String>>,
        allowed: &[&str],
    ) -> bool {
        let Some(written) = text(written) else { return true };
        if allowed.contains(&written.value.as_str()) {
            return true;
        }
        let near = allowed.iter().find(|word| word.eq_ignore_ascii_case(&written.value));
        let near = near.or_else(|| {
            let closest = |word: &&&str| strsim::damerau_levenshtein(word, &written.value);
            allowed.iter().min_by_key(closest).filter(|word| closest(word) <= 2)
        });
        let list = allowed.join(", ");
        let help =
            near.map_or(format!("write one of: {list}"), |word| format!("did you mean `{word}`? Allowed: {list}"));
        let message = format!("{what} `{}` is not known", shown(&written.value));
        self.error(code, written.span, message, help);
        false
    }
}

/// Which container runs Flux when none says so: the only one; of several (an error) the first without a name, so that other
/// rules speak of what was most likely meant.
fn assumed_runner(containers: &[Spanned<Container>]) -> Option<usize> {
    if containers.len() > 1 && containers.iter().any(|c| is_true(&c.run_flux)) {
        return None;
    }
    Some(containers.iter().position(|c| text(&c.name).is_none()).unwrap_or(0))
}

/// The text with blanks replaced, or in lower case with hyphens, if that has the form.
fn nearest(written: &str, form: impl Fn(&str) -> Result<(), Wrong>) -> Option<String> {
    let written = written.trim();
    let lower = || written.to_lowercase();
    let candidates =
        [written.replace(' ', "_"), lower(), lower().replace([' ', '_'], "-"), lower().replace([' ', '_', '.'], "-")];
    candidates.into_iter().find(|candidate| form(candidate).is_ok())
}

/// A text that was written and is not empty: the API takes an empty text for one left out.
pub(super) fn text(written: &Option<Spanned<String>>) -> Option<&Spanned<String>> {
    written.as_ref().filter(|text| !text.value.is_empty())
}

/// Whether a switch was written as true.
pub(super) fn is_true(written: &Option<Spanned<bool>>) -> bool {
    written.as_ref().is_some_and(|value| value.value)
}

/// A text as messages show it: one line, not too long, nothing that moves the cursor.
pub(super) fn shown(text: &str) -> String {
    const LONGEST: usize = 80;
    let mut line: String = text
        .chars()
        .take(LONGEST)
        .flat_map(|c| {
            let hidden = c.is_control();
            let escaped = hidden.then(|| c.escape_default());
            escaped.into_iter().flatten().chain((!hidden).then_some(c))
        })
        .collect();
    if text.chars().count() > LONGEST {
        line.push('…');
    }
    line
}
