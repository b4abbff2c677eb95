//! Names of images: `registry/repository:tag@digest`.
//!
//! Grammar: distribution specification (`<name>`, `<reference>`) and the `reference` package of distribution, which also has
//! the rules for names without a registry: they are Docker Hub's.

use std::fmt;
use std::str::FromStr;

use super::digest::Digest;
use super::error::{Error, ErrorKind};

/// The registry of names that have none.
pub const DOCKER_HUB: &str = "docker.io";
/// Most characters of registry and repository together.
const NAME_LIMIT: usize = 255;
const TAG_LIMIT: usize = 128;

/// The name of an image, normalised: the registry is always there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reference {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

impl Reference {
    /// A repository in a registry, without tag and digest.
    ///
    /// # Errors
    /// When the registry is no host with an optional port, or the repository is not of the grammar.
    pub fn repository_of(registry: &str, repository: &str) -> Result<Self, Error> {
        format!("{registry}/{repository}").parse::<Self>().and_then(|made| {
            if made.registry == normal_registry(registry) && made.tag.is_none() && made.digest.is_none() {
                Ok(made)
            } else {
                Err(bad(&format!("{registry}/{repository}"), "registry and repository do not fit together"))
            }
        })
    }

    /// Host and port of the registry; `docker.io` for Docker Hub.
    #[must_use]
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The repository, without the registry; on Docker Hub with `library/`.
    #[must_use]
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag, if one is written.
    #[must_use]
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest, if one is written.
    #[must_use]
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// The tag to ask for: the written one, or `latest` when neither tag nor digest is written.
    #[must_use]
    pub fn tag_or_latest(&self) -> Option<&str> {
        match (&self.tag, &self.digest) {
            (Some(tag), _) => Some(tag),
            (None, None) => Some("latest"),
            (None, Some(_)) => None,
        }
    }

    /// The same with another tag and without a digest.
    ///
    /// # Errors
    /// When the tag is not of the grammar.
    pub fn with_tag(&self, tag: &str) -> Result<Self, Error> {
        check_tag(tag, tag)?;
        Ok(Self { tag: Some(tag.to_owned()), digest: None, ..self.clone() })
    }

    /// The same with a digest; the tag stays.
    #[must_use]
    pub fn with_digest(&self, digest: Digest) -> Self {
        Self { digest: Some(digest), ..self.clone() }
    }

    /// Registry and repository only.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match &self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Reference {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text.is_empty() {
            return Err(bad(text, "it is empty"));
        }
        if let Some(place) = text.find("://") {
            let scheme = &text[..place];
            return Err(bad(text, &format!("`{scheme}://` is not part of it")).help("write host/repository:tag"));
        }
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest.parse::<Digest>().map_err(|e| bad(text, e.message()))?)),
            None => (text, None),
        };
        // A colon after the last slash starts the tag; one before it is the port's.
        let (name, tag) = match rest.rfind(':') {
            Some(colon) if !rest[colon..].contains('/') => (&rest[..colon], Some(&rest[colon + 1..])),
            _ => (rest, None),
        };
        if let Some(tag) = tag {
            check_tag(text, tag)?;
        }
        let (registry, repository) = split(name);
        check_registry(text, registry)?;
        check_repository(text, repository)?;
        let registry = normal_registry(registry);
        let repository = match (registry.as_str(), repository.contains('/')) {
            (DOCKER_HUB, false) => format!("library/{repository}"),
            _ => repository.to_owned(),
        };
        if registry.len() + 1 + repository.len() > NAME_LIMIT {
            return Err(bad(text, "registry and repository have more than 255 characters"));
        }
        Ok(Self { registry, repository, tag: tag.map(str::to_owned), digest })
    }
}

/// The first part is the registry when it looks like a host.
fn split(name: &str) -> (&str, &str) {
    match name.split_once('/') {
        Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" || first != first.to_lowercase() => {
            (first, rest)
        }
        _ => (DOCKER_HUB, name),
    }
}

fn normal_registry(registry: &str) -> String {
    match registry {
        "index.docker.io" | "registry-1.docker.io" => DOCKER_HUB.to_owned(),
        other => other.to_owned(),
    }
}

fn bad(text: &str, why: &str) -> Error {
    let shown: String = text.chars().take(NAME_LIMIT + TAG_LIMIT).collect();
    Error::new(ErrorKind::Reference, format!("`{shown}` is no image reference: {why}"))
}

fn check_registry(text: &str, registry: &str) -> Result<(), Error> {
    let (host, port) = match registry.strip_prefix('[') {
        Some(rest) => {
            let Some((host, after)) = rest.split_once(']') else { return Err(bad(text, "`[` without `]`")) };
            if host.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(bad(text, &format!("`{host}` is no IPv6 address")));
            }
            (None, after.strip_prefix(':').or((!after.is_empty()).then_some("x")))
        }
        None => match registry.split_once(':') {
            Some((host, port)) => (Some(host), Some(port)),
            None => (Some(registry), None),
        },
    };
    if port.is_some_and(|port| port.starts_with('+') || port.parse::<u16>().is_err()) {
        return Err(bad(text, &format!("`{registry}` has no usable port")));
    }
    let label = |l: &str| {
        !l.is_empty()
            && !l.starts_with('-')
            && !l.ends_with('-')
            && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    if host.is_some_and(|host| !host.split('.').all(label)) {
        return Err(bad(text, &format!("`{registry}` is no host name")));
    }
    Ok(())
}

fn check_repository(text: &str, repository: &str) -> Result<(), Error> {
    if repository.is_empty() {
        return Err(bad(text, "the repository is missing"));
    }
    if repository.bytes().any(|b| b.is_ascii_uppercase()) {
        return Err(bad(text, &format!("the repository `{repository}` must be lower case")));
    }
    match repository.split('/').find(|part| !is_component(part)) {
        None => Ok(()),
        Some("") => Err(bad(text, "the repository has an empty part")),
        Some(part) => Err(bad(
            text,
            &format!("`{part}` is no part of a repository (a-z, 0-9, with `.`, `_`, `__` or `-` only between them)"),
        )),
    }
}

/// `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*`
fn is_component(part: &str) -> bool {
    let alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = part.as_bytes();
    let ends = bytes.first().zip(bytes.last());
    if !ends.is_some_and(|(first, last)| alphanumeric(*first) && alphanumeric(*last)) {
        return false;
    }
    let separators = part.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit()).filter(|s| !s.is_empty());
    separators.into_iter().all(|s| matches!(s, "." | "_" | "__") || s.bytes().all(|b| b == b'-'))
}

fn check_tag(text: &str, tag: &str) -> Result<(), Error> {
    let first = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let good = tag.len() <= TAG_LIMIT
        && tag.as_bytes().first().is_some_and(first)
        && tag.bytes().all(|b| first(&b) || b == b'.' || b == b'-');
    if good {
        return Ok(());
    }
    let shown: String = tag.chars().take(TAG_LIMIT).collect();
    Err(bad(text, &format!("`{shown}` is no tag (at most 128 letters, digits, `_`, `.`, `-`; not `.` or `-` first)")))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn references_are_normalised() {
        let cases = [
            ("rockylinux", "docker.io/library/rockylinux"),
            ("rockylinux:9", "docker.io/library/rockylinux:9"),
            ("a/b", "docker.io/a/b"),
            ("index.docker.io/a", "docker.io/library/a"),
            ("localhost/a", "localhost/a"),
            ("localhost:5000/a:1", "localhost:5000/a:1"),
            ("ghcr.io/a/b/c:v1.0-x_y", "ghcr.io/a/b/c:v1.0-x_y"),
            ("Host/a", "Host/a"),
            ("[::1]:5000/a", "[::1]:5000/a"),
            ("a__b/c-d.e_f---g", "docker.io/a__b/c-d.e_f---g"),
        ];
        for (text, shown) in cases {
            let parsed = text.parse::<Reference>().unwrap();
            assert_eq!(parsed.to_string(), shown);
            assert_eq!(shown.parse::<Reference>().unwrap(), parsed);
        }
        let both = format!("quay.io/a/b:t@{DIGEST}").parse::<Reference>().unwrap();
        assert_eq!((both.tag(), both.digest().unwrap().to_string().as_str()), (Some("t"), DIGEST));
        assert_eq!(both.with_tag("u").unwrap().to_string(), "quay.io/a/b:u");
        assert_eq!("a".parse::<Reference>().unwrap().tag_or_latest(), Some("latest"));
        assert_eq!(format!("a@{DIGEST}").parse::<Reference>().unwrap().tag_or_latest(), None);
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let cases = [
            ("", "it is empty"),
            ("https://ghcr.io/a", "`https://` is not part of it"),
            ("ghcr.io/", "the repository is missing"),
            ("ghcr.io/A/b", "must be lower case"),
            ("a//b", "has an empty part"),
            ("a/../b", "`..` is no part"),
            ("a/b_", "`b_` is no part"),
            ("a/b...c", "is no part"),
            ("a/b___c", "is no part"),
            ("a:", "`` is no tag"),
            ("a:.x", "`.x` is no tag"),
            ("a:b/c", "has no usable port"),
            ("host:99999/a", "has no usable port"),
            ("host:+1/a", "has no usable port"),
            ("-x.y/a", "is no host name"),
            ("[::g]/a", "is no IPv6 address"),
            ("[::1]x/a", "has no usable port"),
            ("a@sha256:12", "hexadecimal digits"),
            ("a@md5:12", "only sha256 and sha512"),
            ("a b", "is no part"),
        ];
        for (text, why) in cases {
            let error = text.parse::<Reference>().unwrap_err();
            assert!(error.to_string().contains(why), "{text}: {error}");
            assert_eq!(error.kind().code().id, "FG860");
        }
        assert!(format!("a:{}", "x".repeat(129)).parse::<Reference>().is_err());
        assert!(format!("ghcr.io/{}", "x".repeat(250)).parse::<Reference>().is_err());
    }

    #[test]
    fn repositories_of_registries() {
        let name = |registry, repository| Reference::repository_of(registry, repository).map(|r| r.to_string());
        assert_eq!(name("localhost:5000", "a/b").unwrap(), "localhost:5000/a/b");
        assert_eq!(name("docker.io", "a").unwrap(), "docker.io/library/a");
        assert!(name("plain", "a").is_err());
        assert!(name("ghcr.io", "a:b").is_err());
    }

    proptest! {
        #[test]
        fn no_text_breaks_it(text in "[a-zA-Z0-9:/@._\\[\\]-]{0,60}|\\PC{0,40}") {
            if let Ok(parsed) = text.parse::<Reference>() {
                prop_assert_eq!(parsed.to_string().parse::<Reference>().unwrap(), parsed);
            }
        }
    }
}
