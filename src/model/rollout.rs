//! What becomes of the Job and the services Pod when they change, and which tool is told.

use serde::Serialize;

/// Which GitOps tool applies the bundles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GitOps {
    /// Argo CD.
    ArgoCd,
    /// Flux CD (kustomize-controller).
    FluxCd,
    /// Either: the annotations of both.
    Both,
    /// None: `kubectl apply`, by hand or in a pipeline.
    Neither,
}

impl GitOps {
    /// Every choice.
    pub const ALL: [Self; 4] = [Self::ArgoCd, Self::FluxCd, Self::Both, Self::Neither];

    /// Whether Argo CD may apply the bundle.
    #[must_use]
    pub fn argo_cd(self) -> bool {
        matches!(self, Self::ArgoCd | Self::Both)
    }

    /// Whether Flux CD may apply the bundle.
    #[must_use]
    pub fn flux_cd(self) -> bool {
        matches!(self, Self::FluxCd | Self::Both)
    }

    /// The word of the setting.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::ArgoCd => "argocd",
            Self::FluxCd => "fluxcd",
            Self::Both => "both",
            Self::Neither => "none",
        }
    }
}

/// What becomes of a Job whose template changes: an API server refuses to change it in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum JobStrategy {
    /// The Job has the cluster's name; a changed template fails visibly at sync.
    Stable,
    /// As stable, with the annotations that let Argo CD and Flux CD delete the old Job and make the new one.
    Recreate,
    /// Every change runs under a name of its own.
    RunOnce,
    /// Argo CD runs the Job at every sync.
    Hook,
    /// As stable, for a cluster that never ends by itself: nobody waits for its health.
    Service,
}

impl JobStrategy {
    /// Every strategy.
    pub const ALL: [Self; 5] = [Self::Stable, Self::Recreate, Self::RunOnce, Self::Hook, Self::Service];

    /// The strategy of a setting's word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|strategy| strategy.word() == word)
    }

    /// The word of the setting.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Stable => "stable",
            Self::Recreate => "recreate",
            Self::RunOnce => "run-once",
            Self::Hook => "hook",
            Self::Service => "service",
        }
    }
}

/// What becomes of the Job and the services Pod when they change, and which tool is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rollout {
    /// The strategy.
    pub strategy: JobStrategy,
    /// Who applies the bundle.
    pub gitops: GitOps,
    /// Earlier runs stay when pruning would remove them (only with the strategy `run-once`).
    pub keep_old: bool,
    /// The program never ends by itself, so nobody should wait for the Job's health.
    pub unending: bool,
}
