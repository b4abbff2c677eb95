//! The check that every broker makes of its own rank against its hardware, key `verify` of `[resource]`.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::{ResourceError, ResourceSet};
use crate::flux::idset::IdSet;

/// How strictly one thing is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VerifyMode {
    /// Must be equal.
    Strict,
    /// The machine may have more than R says.
    AllowExtra,
    /// The machine may have less than R says.
    AllowMissing,
    /// Not compared.
    Ignore,
}

impl VerifyMode {
    /// The spellings in a configuration file.
    pub const NAMES: [&'static str; 4] = ["strict", "allow-extra", "allow-missing", "ignore"];

    fn may_miss(self) -> bool {
        matches!(self, Self::AllowMissing | Self::Ignore)
    }

    fn may_exceed(self) -> bool {
        matches!(self, Self::AllowExtra | Self::Ignore)
    }
}

impl FromStr for VerifyMode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "strict" => Ok(Self::Strict),
            "allow-extra" => Ok(Self::AllowExtra),
            "allow-missing" => Ok(Self::AllowMissing),
            "ignore" => Ok(Self::Ignore),
            _ => Err(()),
        }
    }
}

/// What is compared, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifyPolicy {
    /// The host name; anything but `Strict` means not compared.
    pub hostname: VerifyMode,
    /// Cores.
    pub core: VerifyMode,
    /// GPUs.
    pub gpu: VerifyMode,
    /// Resources of any other type.
    pub other: VerifyMode,
}

impl VerifyPolicy {
    /// All the same.
    #[must_use]
    pub fn all(mode: VerifyMode) -> Self {
        Self { hostname: mode, core: mode, gpu: mode, other: VerifyMode::Strict }
    }

    fn of(&self, kind: &str) -> VerifyMode {
        match kind {
            "core" => self.core,
            "gpu" => self.gpu,
            _ => self.other,
        }
    }
}

impl Default for VerifyPolicy {
    /// What flux-core does without `verify` and `noverify`.
    fn default() -> Self {
        Self {
            hostname: VerifyMode::Strict,
            core: VerifyMode::AllowExtra,
            gpu: VerifyMode::Ignore,
            other: VerifyMode::Strict,
        }
    }
}

impl ResourceSet {
    /// Compares what one rank has (`actual`, a set of a single rank) with what this set says of it. A broker
    /// that finds a difference drains itself: no job runs on it.
    ///
    /// # Errors
    /// The first difference, in words.
    pub fn verify(&self, actual: &Self, policy: &VerifyPolicy) -> Result<(), ResourceError> {
        let mut nodes = actual.nodes.iter();
        let (Some((rank, found)), None) = (nodes.next(), nodes.next()) else {
            return Err(ResourceError::NotSingleRank(actual.len()));
        };
        let Some(expected) = self.nodes.get(rank) else {
            return Err(ResourceError::Verify(format!("rank {rank} is not in R")));
        };
        if let (VerifyMode::Strict, Some(found), Some(expected)) = (policy.hostname, &found.host, &expected.host)
            && found != expected
        {
            return Err(ResourceError::Verify(format!("rank {rank} is host {found}, R says {expected}")));
        }
        let missing = beyond(&expected.children, &found.children, |kind| policy.of(kind).may_miss());
        if !missing.is_empty() {
            return Err(ResourceError::Verify(format!("rank {rank} lacks {missing}")));
        }
        let extra = beyond(&found.children, &expected.children, |kind| policy.of(kind).may_exceed());
        if !extra.is_empty() {
            return Err(ResourceError::Verify(format!("rank {rank} has {extra}, which R does not list")));
        }
        Ok(())
    }
}

/// What `a` has and `b` has not, as text such as `core[2-3],gpu0`.
fn beyond(a: &BTreeMap<String, IdSet>, b: &BTreeMap<String, IdSet>, ignored: impl Fn(&str) -> bool) -> String {
    let none = IdSet::new();
    let parts: Vec<String> = a
        .iter()
        .filter(|(kind, _)| !ignored(kind))
        .map(|(kind, ids)| (kind, ids.difference(b.get(kind).unwrap_or(&none))))
        .filter(|(_, ids)| !ids.is_empty())
        .map(|(kind, ids)| format!("{kind}{}", ids.to_bracketed_string()))
        .collect();
    parts.join(",")
}
