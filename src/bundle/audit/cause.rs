//! Which override most likely did it, and what to do instead.

/// How a name was changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Renaming {
    /// What stands before the old name.
    pub(super) prefix: String,
    /// What stands behind it.
    pub(super) suffix: String,
    /// The old name is not part of the new one.
    pub(super) replaced: bool,
}

impl Renaming {
    /// What was done to `old` to make `new` of it.
    pub(super) fn between(old: &str, new: &str) -> Self {
        match new.find(old).filter(|_| !old.is_empty()) {
            Some(at) => {
                Self { prefix: new[..at].to_owned(), suffix: new[at + old.len()..].to_owned(), replaced: false }
            }
            None => Self { replaced: true, ..Self::default() },
        }
    }

    pub(super) fn is_none(&self) -> bool {
        !self.replaced && self.prefix.is_empty() && self.suffix.is_empty()
    }

    /// The name after the change.
    pub(super) fn apply(&self, old: &str) -> String {
        format!("{}{old}{}", self.prefix, self.suffix)
    }
}

/// The override that most likely did it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Cause {
    /// A change of names.
    Renamed(Renaming),
    /// A change of the namespace of some objects.
    Namespace,
    /// Labels given to everything.
    Labels,
    /// Text between `${` and `}` was replaced.
    Substitution,
    /// Annotations were removed.
    Annotations,
    /// An object was left out.
    Dropped,
    /// An object was given twice.
    Twice,
    /// A field was changed.
    Patch,
}

impl Cause {
    /// A renaming, or a patch where no name was changed.
    pub(super) fn renamed(renaming: &Renaming) -> Self {
        if renaming.is_none() { Self::Patch } else { Self::Renamed(renaming.clone()) }
    }

    /// What to tell the user.
    pub(super) fn help(&self) -> String {
        let (what, instead) = match self {
            Self::Renamed(renaming) => return renamed(renaming),
            Self::Namespace => (
                "`namespace` (kustomize; `kustomize.namespace` of Argo CD, `targetNamespace` of Flux CD) over a part of the bundle",
                "give it to the whole bundle, or write the namespace into the MiniCluster",
            ),
            Self::Labels => (
                "`commonLabels`, or `labels` with `includeSelectors` or `includeTemplates` (kustomize; `kustomize.commonLabels` of Argo CD)",
                "label metadata only (`labels` of kustomize alone, `labelWithoutSelector: true` of Argo CD, `commonMetadata` of Flux CD), or write `jobLabels` and `pod.labels` in the MiniCluster",
            ),
            Self::Substitution => (
                "variable substitution (`postBuild` of Flux CD) on objects whose guard annotation is gone",
                "keep the annotation `kustomize.toolkit.fluxcd.io/substitute: disabled`, and put values into the MiniCluster",
            ),
            Self::Annotations => (
                "something that replaces or filters annotations (a patch on `metadata.annotations`, a policy engine)",
                "let it add annotations and keep those that are there",
            ),
            Self::Dropped => (
                "a patch with `$patch: delete`, an incomplete list of `resources`, or a filter",
                "apply the bundle as a whole; to end a cluster remove its spec",
            ),
            Self::Twice => ("the bundle under two paths of one source", "name its folder once"),
            Self::Patch => (
                "a patch or `replacements` on this field",
                "set it in the MiniCluster, or by `patches` of flux-gen.yaml, which are checked and get new hashes",
            ),
        };
        format!("most likely {what}; instead: {instead}")
    }
}

fn renamed(renaming: &Renaming) -> String {
    let override_of = |field: &str, value: &str| {
        format!("`{field}: {value}` (kustomize and Flux CD; `kustomize.{field}` of Argo CD)")
    };
    let what = match (renaming.prefix.as_str(), renaming.suffix.as_str()) {
        ("", "") => "a patch or `replacements` on `metadata.name`".to_owned(),
        (prefix, "") => override_of("namePrefix", prefix),
        ("", suffix) => override_of("nameSuffix", suffix),
        (prefix, suffix) => {
            format!("{} and {}", override_of("namePrefix", prefix), override_of("nameSuffix", suffix))
        }
    };
    format!("most likely {what}; instead: give the MiniCluster the name that you want, and build")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renamings() {
        for (old, new, prefix, suffix, replaced) in [
            ("a", "a", "", "", false),
            ("a", "x-a", "x-", "", false),
            ("a", "a-x", "", "-x", false),
            ("a", "x-a-y", "x-", "-y", false),
            ("a", "b", "", "", true),
        ] {
            let renaming = Renaming::between(old, new);
            assert_eq!((renaming.prefix.as_str(), renaming.suffix.as_str()), (prefix, suffix));
            assert_eq!(renaming.replaced, replaced);
            assert_eq!(renaming.is_none(), old == new);
        }
    }
}
