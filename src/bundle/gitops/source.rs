//! Where a GitOps tool fetches the bundles from.

/// Which version is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Revision {
    /// The newest commit of a branch.
    Branch(String),
    /// A tag of a repository or artifact.
    Tag(String),
    /// A commit.
    Commit(String),
    /// The digest of an artifact.
    Digest(String),
}

impl Revision {
    /// The text alone.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Branch(text) | Self::Tag(text) | Self::Commit(text) | Self::Digest(text) => text,
        }
    }

    /// What is wrong with it for a source of that kind.
    #[must_use]
    pub fn problem(&self, artifact: bool) -> Option<String> {
        let hex = |text: &str, lengths: &[usize]| {
            lengths.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        };
        match self {
            Self::Branch(_) | Self::Commit(_) if artifact => {
                Some("an artifact in a registry has tags and digests, no branches and commits".to_owned())
            }
            Self::Digest(_) if !artifact => Some("a git repository has branches, tags and commits".to_owned()),
            Self::Commit(text) if !hex(text, &[40, 64]) => Some(format!("`{text}` is no whole commit")),
            Self::Digest(text) if !text.strip_prefix("sha256:").is_some_and(|digits| hex(digits, &[64])) => {
                Some(format!("`{text}` is no digest"))
            }
            other
                if other.text().is_empty() || other.text().contains(|c: char| c.is_whitespace() || c.is_control()) =>
            {
                Some(format!("`{}` is no name", other.text()))
            }
            _ => None,
        }
    }
}

/// A repository or artifact, and the place of the bundles in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Address: `https://…`, `ssh://…`, `git@host:path`, or `oci://registry/name`.
    pub url: String,
    /// Version.
    pub revision: Revision,
    /// Folder with the folders of namespaces, relative to the root of the source; `.` for the root.
    pub path: String,
}

impl Source {
    /// Whether this address is one of an artifact in a registry.
    #[must_use]
    pub fn is_artifact(url: &str) -> bool {
        url.starts_with("oci://")
    }

    /// What is wrong with an address.
    #[must_use]
    pub fn problem(url: &str) -> Option<&'static str> {
        let odd = |c: char| c.is_whitespace() || c.is_control();
        if let Some(name) = url.strip_prefix("oci://") {
            return match name.parse::<Named>() {
                Ok(Named::Plain) => None,
                Ok(Named::Versioned) => Some("the tag or digest has a field of its own"),
                Err(()) => Some("it is no oci://REGISTRY/NAME"),
            };
        }
        let rest = ["https://", "http://", "ssh://"].iter().find_map(|scheme| url.strip_prefix(scheme));
        let host = rest.map(|rest| rest.split('/').next().unwrap_or_default());
        let good = match host {
            Some(host) => !host.is_empty(),
            None => scp(url).is_some(),
        };
        if !good || url.contains(odd) {
            return Some("it is neither https://…, ssh://…, git@host:path nor oci://…");
        }
        has_password(url).then_some("it holds a password; give the tool a Secret instead")
    }

    /// As Flux CD takes it, which does not know `git@host:path`.
    pub(super) fn flux_url(&self) -> String {
        match scp(&self.url) {
            Some((host, path)) => format!("ssh://{host}/{}", path.trim_start_matches('/')),
            None => self.url.clone(),
        }
    }

    /// The last part of the address without `.git`: a name for the object that stands for it.
    pub(super) fn name(&self) -> String {
        let last = self.url.trim_end_matches('/').rsplit(['/', ':']).next().unwrap_or_default();
        let lower = last.trim_end_matches(".git").to_lowercase();
        let kept: String = lower.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let name: String = kept.trim_matches('-').chars().take(50).collect();
        if name.is_empty() { "clusters".to_owned() } else { name.trim_end_matches('-').to_owned() }
    }

    /// The folder of a namespace in the source.
    pub(super) fn folder(&self, namespace: &str) -> String {
        match self.path.trim_end_matches('/') {
            "" | "." => namespace.to_owned(),
            path => format!("{}/{namespace}", path.trim_start_matches("./")),
        }
    }
}

/// Whether an address is one like `https://user:token@host`: it would be committed or published.
#[must_use]
pub fn has_password(url: &str) -> bool {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or_default();
    host.rsplit_once('@').is_some_and(|(user, _)| user.contains(':'))
}

/// `user@host:path`.
fn scp(url: &str) -> Option<(&str, &str)> {
    let (host, path) = url.split_once(':')?;
    let named = host.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty());
    (named && !host.contains('/') && !path.is_empty() && !path.starts_with("//")).then_some((host, path))
}

/// `registry/name`, as far as this module has to know: the grammar is that of [`crate::oci`], which comes later.
enum Named {
    Plain,
    Versioned,
}

impl std::str::FromStr for Named {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (registry, name) = text.split_once('/').ok_or(())?;
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-/".contains(c);
        let versioned = name.contains([':', '@']);
        let plain = !name.is_empty() && name.chars().all(good) && !name.starts_with('/') && !name.ends_with('/');
        match (registry.is_empty() || registry.contains(char::is_whitespace), versioned, plain) {
            (true, ..) | (false, false, false) => Err(()),
            (false, true, _) => Ok(Self::Versioned),
            (false, false, true) => Ok(Self::Plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        for good in [
            "https://git.example.com/me/clusters.git",
            "ssh://git@git.example.com/me/clusters",
            "git@git.example.com:me/clusters.git",
            "oci://registry.example:5000/team/clusters",
            "https://me@git.example.com/clusters",
        ] {
            assert_eq!(Source::problem(good), None, "{good}");
        }
        for (bad, why) in [
            ("", "neither"),
            ("clusters", "neither"),
            ("https://", "neither"),
            ("file:///clusters", "neither"),
            ("https://git.example.com/a b", "neither"),
            ("https://me:token@git.example.com/clusters", "password"),
            ("oci://registry.example", "no oci://"),
            ("oci://registry.example/Clusters", "no oci://"),
            ("oci://registry.example/clusters:v1", "field of its own"),
            ("oci://registry.example/clusters@sha256:0", "field of its own"),
        ] {
            assert!(Source::problem(bad).is_some_and(|problem| problem.contains(why)), "{bad}");
        }
    }

    #[test]
    fn revisions() {
        let hex = "0123456789abcdef".repeat(4);
        for (revision, artifact, good) in [
            (Revision::Branch("main".to_owned()), false, true),
            (Revision::Branch("main".to_owned()), true, false),
            (Revision::Branch("a b".to_owned()), false, false),
            (Revision::Tag("v1".to_owned()), false, true),
            (Revision::Tag(String::new()), true, false),
            (Revision::Commit(hex[..40].to_owned()), false, true),
            (Revision::Commit(hex[..12].to_owned()), false, false),
            (Revision::Digest(format!("sha256:{hex}")), true, true),
            (Revision::Digest(hex.clone()), true, false),
            (Revision::Digest(format!("sha256:{hex}")), false, false),
        ] {
            assert_eq!(revision.problem(artifact).is_none(), good, "{revision:?} {artifact}");
        }
    }

    #[test]
    fn names_and_folders() {
        let source = |url: &str, path: &str| Source {
            url: url.to_owned(),
            revision: Revision::Tag("v1".to_owned()),
            path: path.to_owned(),
        };
        for (url, name) in [
            ("https://git.example.com/me/Flux_Clusters.git/", "flux-clusters"),
            ("git@host:clusters.git", "clusters"),
            ("oci://registry/a/b", "b"),
            ("https://host/---", "clusters"),
        ] {
            assert_eq!(source(url, ".").name(), name);
        }
        for (path, folder) in [(".", "hpc"), ("./a/", "a/hpc"), ("generated", "generated/hpc"), ("", "hpc")] {
            assert_eq!(source("oci://r/n", path).folder("hpc"), folder);
        }
    }
}
