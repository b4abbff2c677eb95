//! Kubernetes versions and what each of them has: the one table that resolving, rules and `explain` read. Nothing else
//! compares versions, and a version gives nobody a number to compare.

use std::fmt;
use std::str::FromStr;

/// A Kubernetes minor version, 1.28 to 1.37.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KubernetesVersion(u8);

/// Something that came with a certain Kubernetes version, or that not every supported one has on by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// Indexed Jobs whose `completions` and `parallelism` change together (KEP-3715).
    ElasticIndexedJobs,
    /// Pods carry their index as a label (KEP-4017).
    PodIndexLabel,
    /// Sidecar containers: init containers with `restartPolicy: Always` (KEP-753).
    NativeSidecars,
    /// `successPolicy` of Jobs (KEP-3998).
    SuccessPolicy,
    /// `podFailurePolicy` of Jobs (KEP-3329).
    PodFailurePolicy,
    /// `podReplacementPolicy` of Jobs (KEP-3939).
    PodReplacementPolicy,
    /// Resources of a whole pod (KEP-2837).
    PodLevelResources,
    /// OCI image volumes (KEP-4639).
    ImageVolumes,
    /// `backoffLimitPerIndex` of Jobs (KEP-3850).
    BackoffLimitPerIndex,
    /// `managedBy` of Jobs (KEP-4368).
    ManagedBy,
    /// Container restart policies and rules (KEP-5307).
    ContainerRestarts,
    /// `sleep` as a life-cycle hook (KEP-3960).
    SleepHook,
    /// Names of environment variables with any printable character (KEP-4369).
    RelaxedEnvironmentNames,
    /// Environment variables from files (KEP-3721).
    EnvironmentFiles,
    /// AppArmor profiles as fields (KEP-24).
    AppArmor,
    /// User namespaces, `hostUsers: false` (KEP-127).
    UserNamespaces,
    /// `supplementalGroupsPolicy` (KEP-3619).
    SupplementalGroupsPolicy,
    /// `recursiveReadOnly` mounts (KEP-3857).
    RecursiveReadOnly,
    /// Claims of dynamic resource allocation (KEP-4381).
    ResourceClaims,
    /// `matchLabelKeys` and `mismatchLabelKeys` of pod affinity (KEP-3633).
    AffinityLabelKeys,
    /// `hostnameOverride` (KEP-4762).
    HostnameOverride,
    /// `trafficDistribution` of Services (KEP-4444).
    TrafficDistribution,
    /// Pod security takes the kernel parameters of TCP keepalive.
    PolicyKeepalive,
    /// Pod security takes the kernel parameters of TCP buffers.
    PolicyBuffers,
    /// Pod security takes the `SELinux` type `container_engine_t`.
    PolicyEngineType,
    /// Pod security lets pods with a user namespace run as root (KEP-127).
    PolicyUserNamespaces,
}

/// Who brings a feature into a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// flux-gen writes it by itself.
    Written,
    /// Only a patch of the project file writes it.
    Patched,
    /// The Pod Security Standards take it.
    Policy,
}

/// What is written where a version has not got a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Below {
    /// Every supported version has it; when it is written.
    Always(&'static str),
    /// This instead.
    Instead(&'static str),
    /// Nothing can take its place: an error, with this help beside that of a newer version.
    Error(&'static str),
}

/// A line of the table. Versions are minor numbers of Kubernetes 1.
#[derive(Debug, Clone, Copy)]
struct Row {
    part: Part,
    title: &'static str,
    field: &'static str,
    kep: u16,
    /// On by default.
    on: u8,
    /// There, with its feature gate on.
    gated: Option<u8>,
    /// Stable; `None`: not yet in the newest supported version.
    stable: Option<u8>,
    below: Below,
}

use Below::{Always, Error, Instead};

const BY_PATCH: Below = Error("leave it out of the patch");
const BY_POLICY: Below = Error("use another value");

impl Feature {
    /// Every feature, by who writes it.
    pub const ALL: &[Self] = &[
        Self::ElasticIndexedJobs,
        Self::PodIndexLabel,
        Self::NativeSidecars,
        Self::SuccessPolicy,
        Self::PodFailurePolicy,
        Self::PodReplacementPolicy,
        Self::PodLevelResources,
        Self::ImageVolumes,
        Self::BackoffLimitPerIndex,
        Self::ManagedBy,
        Self::ContainerRestarts,
        Self::SleepHook,
        Self::RelaxedEnvironmentNames,
        Self::EnvironmentFiles,
        Self::AppArmor,
        Self::UserNamespaces,
        Self::SupplementalGroupsPolicy,
        Self::RecursiveReadOnly,
        Self::ResourceClaims,
        Self::AffinityLabelKeys,
        Self::HostnameOverride,
        Self::TrafficDistribution,
        Self::PolicyKeepalive,
        Self::PolicyBuffers,
        Self::PolicyEngineType,
        Self::PolicyUserNamespaces,
    ];

    /// The table. Versions are those of `pkg/features/kube_features.go` of Kubernetes 1.28 to 1.36, and of the KEPs.
    #[rustfmt::skip]
    fn row(self) -> Row {
        let row = |title, field, kep, (on, stable): (u8, u8), below| {
            let stable = (stable > 0).then_some(stable);
            let part = if below == BY_PATCH { Part::Patched } else { Part::Written };
            Row { part, title, field, kep, on, gated: None, stable, below }
        };
        match self {
            Self::ElasticIndexedJobs => row("elastic Indexed Jobs", "completions with parallelism", 3715, (27, 31), Always("written for every cluster")),
            Self::PodIndexLabel => row("pod index label", "label batch.kubernetes.io/job-completion-index", 4017, (28, 32), Always("selected by the headless Service of `flux.minimalService`")),
            Self::NativeSidecars => row("native sidecars", "initContainers[].restartPolicy: Always", 753, (29, 33),
                Instead("an ordinary container, which has to end for the Job to end; `sidecar: native` is an error")),
            Self::SuccessPolicy => row("successPolicy of Jobs", "successPolicy", 3998, (31, 33),
                Instead("followers exit 0 when the leader has ended; `backoffLimit` above 0 is an error for more than one pod")),
            Self::PodFailurePolicy => row("podFailurePolicy of Jobs", "podFailurePolicy", 3329, (26, 31),
                Always("written where there is a success policy: without one a replaced leader finds no followers")),
            Self::PodReplacementPolicy => row("podReplacementPolicy of Jobs", "podReplacementPolicy", 3939, (29, 34),
                Instead("nothing: a pod may be replaced while it still ends (written beside the failure policy)")),
            Self::PodLevelResources => row("pod-level resources", "resources of the pod", 2837, (34, 37),
                Error("write `resources` on the containers")),
            Self::ImageVolumes => Row { gated: Some(33), ..row("image volumes", "volumes[].image", 4639, (35, 36),
                Error("use `view-mount: copy`, or `image-volume-gate: true` where the feature gate ImageVolume is on (from 1.33)")) },
            Self::BackoffLimitPerIndex => row("backoffLimitPerIndex of Jobs", "backoffLimitPerIndex", 3850, (29, 33), BY_PATCH),
            Self::ManagedBy => row("managedBy of Jobs", "managedBy", 4368, (32, 35), BY_PATCH),
            Self::ContainerRestarts => row("restart policies of containers", "containers[].restartPolicy", 5307, (35, 0), BY_PATCH),
            Self::SleepHook => row("sleep hooks", "lifecycle.preStop.sleep", 3960, (30, 34), BY_PATCH),
            Self::RelaxedEnvironmentNames => row("any printable name of a variable", "env[].name", 4369, (32, 34), BY_PATCH),
            Self::EnvironmentFiles => row("variables from files", "env[].valueFrom.fileKeyRef", 3721, (35, 0), BY_PATCH),
            Self::AppArmor => row("AppArmor fields", "securityContext.appArmorProfile", 24, (30, 31), BY_PATCH),
            Self::UserNamespaces => row("user namespaces", "hostUsers: false", 127, (33, 36), BY_PATCH),
            Self::SupplementalGroupsPolicy => row("policy for supplemental groups", "securityContext.supplementalGroupsPolicy", 3619, (33, 35), BY_PATCH),
            Self::RecursiveReadOnly => row("recursive read-only mounts", "volumeMounts[].recursiveReadOnly", 3857, (31, 33), BY_PATCH),
            Self::ResourceClaims => row("dynamic resource allocation", "resourceClaims", 4381, (34, 34), BY_PATCH),
            Self::AffinityLabelKeys => row("label keys of pod affinity", "matchLabelKeys, mismatchLabelKeys", 3633, (31, 33), BY_PATCH),
            Self::HostnameOverride => row("host name override", "hostnameOverride", 4762, (35, 0), BY_PATCH),
            Self::TrafficDistribution => row("traffic distribution of Services", "trafficDistribution", 4444, (31, 33), BY_PATCH),
            Self::PolicyKeepalive => Row { part: Part::Policy, ..row("parameters of TCP keepalive", "sysctls net.ipv4.tcp_keepalive_*, tcp_fin_timeout", 0, (29, 29), BY_POLICY) },
            Self::PolicyBuffers => Row { part: Part::Policy, ..row("parameters of TCP buffers", "sysctls net.ipv4.tcp_rmem, tcp_wmem", 0, (32, 32), BY_POLICY) },
            Self::PolicyEngineType => Row { part: Part::Policy, ..row("SELinux type for container engines", "seLinuxOptions.type: container_engine_t", 0, (31, 31), BY_POLICY) },
            Self::PolicyUserNamespaces => Row { part: Part::Policy, ..row("root inside a user namespace", "hostUsers: false", 127, (35, 35), BY_POLICY) },
        }
    }

    /// First supported version that has it on by default (beta or stable).
    #[must_use]
    pub fn since(self) -> KubernetesVersion {
        KubernetesVersion(self.row().on.max(KubernetesVersion::OLDEST.0))
    }

    /// First version that has it at all, where that is one with the feature gate on.
    #[must_use]
    pub fn gated_since(self) -> Option<KubernetesVersion> {
        self.row().gated.map(KubernetesVersion)
    }

    /// First supported version in which it is stable.
    #[must_use]
    pub fn stable_since(self) -> Option<KubernetesVersion> {
        self.row().stable.map(|minor| KubernetesVersion(minor.max(KubernetesVersion::OLDEST.0)))
    }

    /// What people call it.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.row().title
    }

    /// Where it stands in objects.
    #[must_use]
    pub fn field(self) -> &'static str {
        self.row().field
    }

    /// Number of its Kubernetes Enhancement Proposal; `None` for what came without one.
    #[must_use]
    pub fn kep(self) -> Option<u16> {
        Some(self.row().kep).filter(|kep| *kep > 0)
    }

    /// What is written where a version has not got it.
    #[must_use]
    pub fn below(self) -> Below {
        self.row().below
    }

    /// Who brings it into a bundle.
    #[must_use]
    pub fn part(self) -> Part {
        self.row().part
    }

    /// The help line of an error about a version that has not got it.
    #[must_use]
    pub fn help(self) -> String {
        let newer = format!("set `kubernetes-version` to {} or later", self.since());
        match self.below() {
            Error(other) => format!("{newer}, or {other}"),
            Always(_) | Instead(_) => newer,
        }
    }
}

impl KubernetesVersion {
    /// The oldest version that bundles can be made for.
    pub const OLDEST: Self = Self(28);
    /// The newest version that bundles can be made for.
    pub const NEWEST: Self = Self(37);

    /// Every version, oldest first.
    pub fn all() -> impl Iterator<Item = Self> {
        (Self::OLDEST.0..=Self::NEWEST.0).map(Self)
    }

    /// Whether this version has the feature on by default.
    #[must_use]
    pub fn has(self, feature: Feature) -> bool {
        self.0 >= feature.row().on
    }

    /// Whether this version has the feature, by default or with its gate on.
    #[must_use]
    pub fn can_have(self, feature: Feature) -> bool {
        let row = feature.row();
        self.0 >= row.gated.unwrap_or(row.on)
    }
}

/// The table as Markdown: what `flux-gen explain kubernetes-versions` prints and `docs/kubernetes-versions.md` holds.
#[must_use]
pub fn table() -> String {
    let mut text = String::new();
    let parts = [
        ("Written by flux-gen", Part::Written),
        ("Written by patches only", Part::Patched),
        ("Taken by the Pod Security Standards", Part::Policy),
    ];
    for (heading, part) in parts {
        text.push_str(&format!("## {heading}\n\n"));
        let (last, rule) = if part == Part::Written { (" below that |", "---|") } else { ("", "") };
        text.push_str(&format!("| feature | field | KEP | on by default from | stable from |{last}\n"));
        text.push_str(&format!("|---|---|---|---|---|{rule}\n"));
        for feature in Feature::ALL.iter().filter(|f| f.part() == part) {
            text.push_str(&line(*feature));
        }
        text.push('\n');
    }
    text
}

fn line(feature: Feature) -> String {
    let version = |minor: u8| {
        if minor < KubernetesVersion::OLDEST.0 { format!("1.{minor} (all)") } else { format!("1.{minor}") }
    };
    let row = feature.row();
    let gate = row.gated.map(|minor| format!(", with its gate {}", version(minor))).unwrap_or_default();
    let stable = row.stable.map_or_else(|| "not yet".to_owned(), |minor| format!("1.{minor}"));
    let below = match row.below {
        _ if row.part != Part::Written => String::new(),
        Always(text) | Instead(text) => format!(" {text} |"),
        Error(text) => format!(" an error: {text} |"),
    };
    let kep = if row.kep == 0 { String::new() } else { row.kep.to_string() };
    format!("| {} | `{}` | {kep} | {}{gate} | {stable} |{below}\n", row.title, row.field, version(row.on))
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.0)
    }
}

/// Not a version from 1.28 to 1.37.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a Kubernetes version from {} to {}", KubernetesVersion::OLDEST, KubernetesVersion::NEWEST)]
pub struct UnknownVersion;

impl FromStr for KubernetesVersion {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        Self::all().find(|version| version.to_string() == text).ok_or(UnknownVersion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_parse_within_the_supported_range() {
        for (text, ok) in [
            ("1.28", true),
            ("1.37", true),
            ("1.27", false),
            ("1.38", false),
            ("1.031", false),
            ("1.+31", false),
            ("1.31.2", false),
            ("v1.31", false),
            ("", false),
        ] {
            assert_eq!(text.parse::<KubernetesVersion>().is_ok(), ok, "{text}");
        }
        assert_eq!("1.31".parse::<KubernetesVersion>().map(|v| v.to_string()), Ok("1.31".to_owned()));
    }

    #[test]
    fn features_begin_where_they_are_on_by_default() {
        let v = |text: &str| text.parse::<KubernetesVersion>().unwrap();
        assert!(!v("1.30").has(Feature::SuccessPolicy) && v("1.31").has(Feature::SuccessPolicy));
        assert!(!v("1.28").has(Feature::NativeSidecars) && v("1.29").has(Feature::NativeSidecars));
        assert!(!v("1.34").has(Feature::ImageVolumes) && v("1.35").has(Feature::ImageVolumes));
    }

    #[test]
    fn every_feature_has_one_line_with_versions_in_order() {
        for (index, feature) in Feature::ALL.iter().enumerate() {
            assert!(!Feature::ALL[..index].contains(feature), "{feature:?} twice");
            let row = feature.row();
            assert!(row.gated.is_none_or(|gated| gated < row.on), "{feature:?}");
            assert!(row.stable.is_none_or(|stable| stable >= row.on), "{feature:?}");
            assert_eq!(matches!(row.below, Always(_)), row.on <= KubernetesVersion::OLDEST.0, "{feature:?}");
            assert!(table().contains(&line(*feature)));
        }
        let source = include_str!("kubernetes.rs");
        let variants = source.split("pub enum Feature {").nth(1).and_then(|rest| rest.split("\n}").next()).unwrap();
        assert_eq!(variants.lines().filter(|l| !l.contains("///") && l.ends_with(',')).count(), Feature::ALL.len());
    }

    #[test]
    fn a_gate_counts_where_the_feature_is_there() {
        let v = |text: &str| text.parse::<KubernetesVersion>().unwrap();
        assert!(v("1.33").can_have(Feature::ImageVolumes) && !v("1.33").has(Feature::ImageVolumes));
        assert!(!v("1.32").can_have(Feature::ImageVolumes));
        assert!(!v("1.30").can_have(Feature::SuccessPolicy) && v("1.31").can_have(Feature::SuccessPolicy));
        assert_eq!(Feature::PodFailurePolicy.since(), KubernetesVersion::OLDEST);
    }
}
