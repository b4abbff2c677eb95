//! Which clusters of the project use which certificate.

use super::project::Found;
use super::sources::{self, Surroundings};
use crate::bundle::certificates::spelled;
use crate::diag::{Diagnostics, SourceMap};
use crate::model::settings::Settings;
use crate::model::{CertificateNeed, certificate_need, effective_settings};
use crate::spec::ReadOptions;

/// A cluster of the project.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct User {
    /// Itself.
    pub(super) cluster: CertificateNeed,
    /// Whose certificate it uses: its own, or that of the main cluster of its bursting group.
    pub(super) need: CertificateNeed,
    /// Its settings.
    pub(super) settings: Settings,
}

impl User {
    /// What to say when the certificate is another cluster's.
    pub(super) fn shares(&self) -> Option<String> {
        let text = || format!("{} uses the certificate of {}", spelled(&self.cluster), spelled(&self.need));
        (self.cluster != self.need).then(text)
    }
}

/// The clusters of the project, in the order of its specs.
#[derive(Debug)]
pub(super) struct Users(pub(super) Vec<User>);

impl Users {
    /// Reads the project's specs. Those with mistakes count as far as they can be read; without specs there is nobody.
    pub(super) fn of(found: &Found) -> Self {
        if !found.names_sources() {
            return Self(Vec::new());
        }
        let Ok(wanted) = found.wanted(&[]) else { return Self(Vec::new()) };
        let ignored = &mut Diagnostics::new();
        let output = found.output(None);
        let around = Surroundings { root: &found.root, output: Some(&output), project_file: found.file.as_deref() };
        let texts = sources::read(&wanted, around, &mut std::io::empty(), ignored);
        let texts = texts.into_iter().map(|text| (text.origin, text.bytes)).collect();
        let (documents, _) = crate::spec::read(&mut SourceMap::new(), texts, &ReadOptions { allow_unknown: true });
        let user = |spec: &crate::spec::MiniCluster| {
            let settings = effective_settings(spec, found.written.as_ref(), &[], ignored);
            let need = certificate_need(spec, &settings);
            let name = spec.metadata.name.as_ref().map(|name| name.value.clone()).unwrap_or_default();
            User { cluster: CertificateNeed { namespace: need.namespace.clone(), name }, need, settings }
        };
        Self(documents.miniclusters.iter().map(user).collect())
    }

    /// The cluster that is meant by a name, or one that uses the certificate of that name. Of clusters of one name in several
    /// namespaces the one without a namespace is meant, or none of them.
    pub(super) fn pick(&self, asked: &CertificateNeed) -> Option<&User> {
        let by = |of: fn(&User) -> &CertificateNeed| {
            let fits = |user: &&User| {
                let name = of(user);
                name.name == asked.name && (asked.namespace.is_none() || asked.namespace == name.namespace)
            };
            let fitting: Vec<&User> = self.0.iter().filter(fits).collect();
            let exact = fitting.iter().find(|user| of(user) == asked);
            let alone = fitting.first().filter(|first| fitting.iter().all(|user| of(user) == of(first)));
            exact.or(alone).copied()
        };
        by(|user| &user.cluster).or_else(|| by(|user| &user.need))
    }

    /// The clusters that use a certificate.
    pub(super) fn of_certificate(&self, need: &CertificateNeed) -> impl Iterator<Item = &User> {
        self.0.iter().filter(move |user| user.need == *need)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(text: &str) -> CertificateNeed {
        let (namespace, name) = text.split_once('/').map_or((None, text), |(ns, name)| (Some(ns.to_owned()), name));
        CertificateNeed { namespace, name: name.to_owned() }
    }

    #[test]
    fn names_are_of_clusters_first_then_of_certificates() {
        let user = |cluster: &str, certificate: &str| User {
            cluster: need(cluster),
            need: need(certificate),
            settings: Settings::default(),
        };
        let users = Users(vec![
            user("hpc/main", "hpc/main"),
            user("hpc/burst-0", "hpc/main"),
            user("a/twin", "a/twin"),
            user("b/twin", "b/twin"),
            user("c/far", "c/lead"),
            user("d/solo", "d/solo"),
            user("solo", "solo"),
        ]);
        for (asked, expect) in [
            ("hpc/main", Some("hpc/main")),
            ("main", Some("hpc/main")),
            ("burst-0", Some("hpc/main")),
            ("hpc/burst-0", Some("hpc/main")),
            ("x/burst-0", None),
            ("twin", None),
            ("b/twin", Some("b/twin")),
            ("lead", Some("c/lead")),
            ("solo", Some("solo")),
            ("d/solo", Some("d/solo")),
            ("nobody", None),
        ] {
            assert_eq!(users.pick(&need(asked)).map(|user| &user.need), expect.map(need).as_ref(), "{asked}");
        }
        assert_eq!(users.of_certificate(&need("hpc/main")).count(), 2);
        assert_eq!(users.0[0].shares(), None);
        assert_eq!(users.0[1].shares().unwrap(), "hpc/burst-0 uses the certificate of hpc/main");
    }
}
