//! Which registry has an image behind the gap: rules from the project file (`images.mirror`) or from `--to` and `--map`.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use crate::diag::codes::airgap as codes;
use crate::diag::{Code, Diagnostic, Diagnostics, Span};
use crate::oci::Reference;
use crate::spec::project::MirrorRule;
use crate::spec::{Spanned, minicluster::List};

/// A registry with the beginning of its repositories, in whole parts: `registry.site:5000/hub`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    registry: String,
    /// Without a slash at either end; empty for all of the registry.
    path: String,
}

/// Rules, the longest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mirror {
    rules: Vec<Rule>,
}

/// What stands in the place of what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// `None`: all that no other rule is for.
    pub from: Option<Prefix>,
    /// The place behind the gap.
    pub to: Prefix,
    /// Where it is written, if it is in a file.
    pub span: Option<Span>,
}

/// Where an image is behind the gap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// There, by this rule.
    At(Reference, usize),
    /// Where it is named: that is a registry of the mirror already.
    Same,
    /// Nowhere.
    Outside,
}

impl Prefix {
    /// Reads a prefix; slashes at its end do not count.
    ///
    /// # Errors
    /// What is wrong with it, as the end of a sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let trimmed = text.trim_end_matches('/');
        if trimmed.contains("://") {
            return Err("it is an address; write the host and the repositories alone".to_owned());
        }
        let (registry, path) = trimmed.split_once('/').unwrap_or((trimmed, ""));
        if path.contains('@') || registry.contains('@') {
            return Err("a digest is not part of it".to_owned());
        }
        if path.contains(':') {
            return Err("a tag is not part of it".to_owned());
        }
        let is_host = registry.contains(['.', ':']) || registry == "localhost" || registry != registry.to_lowercase();
        if !is_host {
            return Err(format!("it does not begin with a registry, such as docker.io/{trimmed}"));
        }
        // Two more parts, because Docker Hub has a place of its own for names of one part.
        let probe = if path.is_empty() { "a/a".to_owned() } else { format!("{path}/a/a") };
        let whole = Reference::repository_of(registry, &probe).map_err(|e| e.message().to_owned())?;
        Ok(Self { registry: whole.registry().to_owned(), path: path.to_owned() })
    }

    /// What is left of a repository of this prefix; `None` for one that is not.
    fn rest<'a>(&self, registry: &str, repository: &'a str) -> Option<&'a str> {
        if registry != self.registry {
            return None;
        }
        match repository.strip_prefix(self.path.as_str())? {
            rest if self.path.is_empty() => Some(rest),
            "" => Some(""),
            rest => rest.strip_prefix('/'),
        }
    }

    /// Host and port.
    #[must_use]
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// Whether an image is of this registry and below this path.
    #[must_use]
    pub fn holds(&self, image: &Reference) -> bool {
        self.rest(image.registry(), image.repository()).is_some()
    }

    /// Whether all that is below another one is below this one.
    #[must_use]
    pub fn covers(&self, other: &Self) -> bool {
        self.rest(&other.registry, &other.path).is_some()
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.registry)?;
        if self.path.is_empty() { Ok(()) } else { write!(f, "/{}", self.path) }
    }
}

impl Mirror {
    /// The rules of a project file; what is wrong with them is reported and left out.
    #[must_use]
    pub fn of_project(written: &List<MirrorRule>, found: &mut Diagnostics) -> Self {
        let mut rules = Vec::new();
        for rule in written {
            let from = rule.from.as_ref().map(|from| prefix(from, found));
            // That `to` is missing was told by the reader.
            let to = rule.to.as_ref().and_then(|to| prefix(to, found));
            let from = match from {
                Some(None) => continue,
                Some(Some(from)) => Some(from),
                None => None,
            };
            if let Some(to) = to {
                rules.push(Rule { from, to, span: Some(rule.span) });
            }
        }
        Self::of_rules(rules, found)
    }

    /// Checks rules against each other.
    #[must_use]
    pub fn of_rules(mut rules: Vec<Rule>, found: &mut Diagnostics) -> Self {
        let mut seen: BTreeMap<Option<&Prefix>, &Rule> = BTreeMap::new();
        for rule in &rules {
            if let Some(first) = seen.insert(rule.from.as_ref(), rule) {
                let message = match &rule.from {
                    Some(from) => format!("two rules are for {from}"),
                    None => "two rules are for all the rest".to_owned(),
                };
                let made = at(rule.span, codes::MIRROR_TWICE, message).help("keep one of them");
                found.push(match first.span {
                    Some(span) => made.related(span, "the other one"),
                    None => made,
                });
            }
        }
        for rule in &rules {
            let over = |other: &&Rule| {
                let from = other.from.as_ref();
                from.is_some_and(|from| *from != other.to && from.rest(&rule.to.registry, &rule.to.path).is_some())
            };
            if let Some(other) = rules.iter().find(over) {
                let from = other.from.as_ref().map(ToString::to_string).unwrap_or_default();
                let message = format!("{} is itself under {from}, which is at {}", rule.to, other.to);
                let made =
                    at(rule.span, codes::MIRROR_CHAIN, message).help("name the place where the images are at last");
                found.push(match other.span.filter(|span| Some(*span) != rule.span) {
                    Some(span) => made.related(span, "the other rule"),
                    None => made,
                });
            }
        }
        rules.sort_by_key(|rule| Reverse(rule.from.as_ref().map(|from| (from.path.len(), from.clone()))));
        Self { rules }
    }

    /// The rules, the longest first.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Where an image is.
    #[must_use]
    pub fn place(&self, image: &Reference) -> Place {
        let (registry, repository) = (image.registry(), image.repository());
        for (number, rule) in self.rules.iter().enumerate() {
            let Some(from) = &rule.from else { continue };
            let Some(rest) = from.rest(registry, repository) else { continue };
            if *from == rule.to {
                return Place::Same;
            }
            return moved(image, &rule.to, rest).map_or(Place::Outside, |made| Place::At(made, number));
        }
        if self.rules.iter().any(|rule| rule.to.registry == registry) {
            return Place::Same;
        }
        match self.rules.iter().enumerate().find(|(_, rule)| rule.from.is_none()) {
            Some((number, rule)) => moved(image, &rule.to, &format!("{}/{repository}", folder_of(registry)))
                .map_or(Place::Outside, |made| Place::At(made, number)),
            None => Place::Outside,
        }
    }
}

/// The registry as a part of a repository, which may hold neither `:` nor `[`.
fn folder_of(registry: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '.';
    let lower = registry.to_lowercase();
    let parts: Vec<&str> = lower.split(|c| !plain(c)).filter(|part| !part.is_empty()).collect();
    parts.join("-")
}

/// The same tag and digest in another repository; `None` when its name would be longer than names may be.
fn moved(image: &Reference, to: &Prefix, rest: &str) -> Option<Reference> {
    let repository = [to.path.as_str(), rest].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
    let made = Reference::repository_of(&to.registry, &repository).ok()?;
    let made = match image.tag() {
        Some(tag) => made.with_tag(tag).ok()?,
        None => made,
    };
    Some(match image.digest() {
        Some(digest) => made.with_digest(digest.clone()),
        None => made,
    })
}

fn prefix(written: &Spanned<String>, found: &mut Diagnostics) -> Option<Prefix> {
    match Prefix::parse(&written.value) {
        Ok(prefix) => Some(prefix),
        Err(why) => {
            found.push(not_a_prefix(&written.value, &why, Some(written.span)));
            None
        }
    }
}

/// The diagnostic for a text that is no prefix.
#[must_use]
pub fn not_a_prefix(text: &str, why: &str, span: Option<Span>) -> Diagnostic {
    let message = format!("`{text}` is no registry with the beginning of its repositories: {why}");
    at(span, codes::MIRROR_PREFIX, message).help("for example: docker.io/library/, registry.site:5000/hub")
}

fn at(span: Option<Span>, code: Code, message: String) -> Diagnostic {
    let mut made = Diagnostic::global_error(code, message);
    made.span = span;
    made
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn mirror(rules: &[(&str, &str)]) -> (Mirror, Vec<&'static str>) {
        let prefix = |text: &str| Prefix::parse(text).unwrap();
        let rule = |(from, to): &(&str, &str)| Rule {
            from: (!from.is_empty()).then(|| prefix(from)),
            to: prefix(to),
            span: None,
        };
        let mut found = Diagnostics::new();
        let made = Mirror::of_rules(rules.iter().map(rule).collect(), &mut found);
        (made, found.iter().map(|d| d.code.id).collect())
    }

    #[test]
    fn the_longest_rule_counts_and_parts_are_whole() {
        let rules = [
            ("", "site:5000/all"),
            ("docker.io", "site:5000/hub"),
            ("docker.io/library/", "site:5000/official/"),
            ("docker.io/library/ubuntu", "other.site/ubuntu-lts"),
            ("quay.io", "quay.io"),
        ];
        let (mirror, problems) = mirror(&rules);
        assert_eq!(problems, [""; 0]);
        let digest = format!("rocky@{DIGEST}");
        for (image, place) in [
            ("ubuntu:noble", Some("other.site/ubuntu-lts:noble")),
            ("ubuntu-x", Some("site:5000/official/ubuntu-x")),
            (digest.as_str(), Some(&format!("site:5000/official/rocky@{DIGEST}") as &str)),
            ("docker.io/libraryx/a", Some("site:5000/hub/libraryx/a")),
            ("fluxrm/flux-sched:noble", Some("site:5000/hub/fluxrm/flux-sched:noble")),
            ("ghcr.io/a/b:1", Some("site:5000/all/ghcr.io/a/b:1")),
            ("Host.X:81/a", Some("site:5000/all/host.x-81/a")),
            ("[::1]:5000/a", Some("site:5000/all/1-5000/a")),
            ("localhost/a", Some("site:5000/all/localhost/a")),
            ("quay.io/a", None),
            ("site:5000/own/app:1", None),
        ] {
            let found = mirror.place(&image.parse().unwrap());
            match place {
                Some(wanted) => {
                    assert!(matches!(&found, Place::At(r, _) if r.to_string() == wanted), "{image} {found:?}");
                }
                None => assert_eq!(found, Place::Same, "{image}"),
            }
        }
    }

    #[test]
    fn what_no_rule_is_for_is_outside() {
        let (mirror, _) = mirror(&[("docker.io/library", "site:5000")]);
        let place = |image: &str| mirror.place(&image.parse().unwrap());
        assert!(matches!(place("a:1"), Place::At(r, 0) if r.to_string() == "site:5000/a:1"));
        assert_eq!(place("ghcr.io/a"), Place::Outside);
        assert_eq!(
            place(&format!("docker.io/library/{}", "a".repeat(235))),
            Place::At(format!("site:5000/{}", "a".repeat(235)).parse().unwrap(), 0)
        );
        let (long, _) = self::mirror(&[("", &format!("site:5000/{}", "p/".repeat(60)))]);
        assert_eq!(long.place(&format!("ghcr.io/{}", "a".repeat(200)).parse().unwrap()), Place::Outside);
    }

    #[test]
    fn rules_that_contradict_each_other_are_reported() {
        for (rules, codes) in [
            (vec![("docker.io", "a.b"), ("index.docker.io/", "c.d")], vec!["FG931"]),
            (vec![("", "a.b"), ("", "a.b")], vec!["FG931"]),
            (vec![("docker.io", "a.b/x"), ("a.b", "c.d")], vec!["FG932"]),
            (vec![("docker.io", "docker.io/mirror")], vec!["FG932"]),
            (vec![("docker.io", "docker.io"), ("docker.io/a", "docker.io/b")], vec![]),
            (vec![("docker.io/a", "docker.io/ab")], vec![]),
        ] {
            assert_eq!(mirror(&rules).1, codes, "{rules:?}");
        }
    }

    #[test]
    fn a_prefix_covers_what_is_below_it_in_whole_parts() {
        let prefix = |text| Prefix::parse(text).unwrap();
        for (above, below, expect) in
            [("a.b", "a.b/c", true), ("a.b/c", "a.b/c", true), ("a.b/c", "a.b/cd", false), ("a.b/c", "a.b", false)]
        {
            assert_eq!(prefix(above).covers(&prefix(below)), expect, "{above} {below}");
        }
    }

    #[test]
    fn prefixes_say_what_is_wrong() {
        for (text, why) in [
            ("library/", "does not begin with a registry"),
            ("", "does not begin with a registry"),
            ("https://a.b/c", "it is an address"),
            ("docker.io/library/ubuntu:noble", "a tag is not part of it"),
            ("docker.io/library/ubuntu@sha256:00", "a digest is not part of it"),
            ("a.b/Upper", "must be lower case"),
            ("a.b//c", "empty part"),
            ("a.b:99999/c", "no usable port"),
        ] {
            let error = Prefix::parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        for (text, shown) in [("index.docker.io/fluxrm/", "docker.io/fluxrm"), ("localhost:5000", "localhost:5000")] {
            assert_eq!(Prefix::parse(text).unwrap().to_string(), shown);
        }
    }
}
