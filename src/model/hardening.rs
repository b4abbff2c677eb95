//! What the settings `network-policy` and `pod-security` ask for.

use serde::Serialize;

/// Which connections the pods of a cluster may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetworkPolicyLevel {
    /// Nothing is said about it.
    None,
    /// Only from the cluster's own pods, and to what it serves; out of them to anywhere.
    Cluster,
    /// As `Cluster`, and out of them to each other and to DNS only.
    Isolated,
}

/// A level of the Pod Security Standards, weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodSecurity {
    /// `privileged`: everything is allowed, nothing is checked.
    None,
    /// Nothing that gives power over the node.
    Baseline,
    /// No root, no capabilities, a seccomp profile.
    Restricted,
}

impl PodSecurity {
    /// The label of a namespace whose pods must have this level; the value of it.
    #[must_use]
    pub fn enforced(self) -> Option<(&'static str, &'static str)> {
        let level = match self {
            Self::None => return None,
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        };
        Some(("pod-security.kubernetes.io/enforce", level))
    }

    /// Its name in the Pod Security Standards.
    #[must_use]
    pub fn title(self) -> &'static str {
        self.enforced().map_or("privileged", |(_, level)| level)
    }
}

/// Capabilities that pods of the level `baseline` may add.
pub const BASELINE_CAPABILITIES: &[&str] = &[
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];

/// The only capability that pods of the level `restricted` may add.
pub const RESTRICTED_CAPABILITY: &str = "NET_BIND_SERVICE";

impl PodSecurity {
    /// Whether pods of this level may add a capability.
    #[must_use]
    pub fn takes_capability(self, name: &str) -> bool {
        match self {
            Self::None => true,
            Self::Baseline => BASELINE_CAPABILITIES.contains(&name),
            Self::Restricted => name == RESTRICTED_CAPABILITY,
        }
    }
}

/// The connections that pods of one cluster may have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NetworkPolicy {
    /// Names of other MiniClusters whose pods are as good as the cluster's own (a bursting group).
    pub friends: Vec<String>,
    /// Ports that everybody may use: those of sidecars' Services, and the broker's where other networks join.
    pub open_ports: Vec<u16>,
    /// Whether pods may only reach each other, DNS and `leader`.
    pub isolated: bool,
    /// The leader of another cluster: address and port.
    pub leader: Option<(String, u16)>,
}
