//! Settings: what a user may choose besides the MiniCluster itself, in layers.
//!
//! Order, later wins: built-in < project < cluster override < annotation `flux-gen.dev/<key>` < `--set`.

use std::fmt;

use super::hardening::{NetworkPolicyLevel, PodSecurity};
use super::kubernetes::KubernetesVersion;
use super::queue::{Queue, QueueAdmission, QueueTopology, is_name};
use super::rollout::{GitOps, JobStrategy};
use crate::diag::codes::project as codes;
use crate::diag::{Diagnostic, Diagnostics, Span};
use crate::flux::version::FluxVersion;

/// Prefix of annotations that set a setting.
pub const ANNOTATION_PREFIX: &str = "flux-gen.dev/";

/// How age identities, which are private keys, begin.
const AGE_IDENTITY: &str = "AGE-SECRET-KEY-";

/// Where a setting's value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The built-in default.
    BuiltIn,
    /// `settings` of the project file.
    Project,
    /// `clusters.<name>.settings` of the project file.
    ClusterOverride,
    /// An annotation of the MiniCluster.
    Annotation,
    /// `--set` on the command line.
    CommandLine,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::BuiltIn => "built-in",
            Self::Project => "project file",
            Self::ClusterOverride => "cluster override in the project file",
            Self::Annotation => "annotation",
            Self::CommandLine => "--set",
        })
    }
}

/// What there is to know of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingInfo {
    /// Its key.
    pub key: &'static str,
    /// Its values, for people: `true | false`, `stable | service`.
    pub values: &'static str,
    /// The built-in default as text; empty for "not set".
    pub default: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// Whether it may differ from cluster to cluster.
    pub per_cluster: bool,
}

/// How the CURVE certificate reaches the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretBackend {
    /// The bundle only refers to a Secret that somebody makes in the cluster.
    Existing,
    /// The bundle holds a plain Secret with the private key.
    Plain,
    /// The bundle holds the Secret encrypted to age recipients, as `sops` writes it.
    Sops,
    /// The bundle holds a SealedSecret for the controller of Sealed Secrets.
    Sealed,
}

/// Where a SealedSecret can be unsealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SealedScope {
    /// Under its namespace and name only.
    Strict,
    /// Under any name in its namespace.
    NamespaceWide,
    /// Anywhere in the Kubernetes cluster.
    ClusterWide,
}

/// Who can decrypt: age X25519 recipients (`age1…`) in the order of their text, each once.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgeRecipients(pub Vec<String>);

/// What becomes of a Job whose template changes, as chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// `service` for clusters that never end, else `stable`.
    Auto,
    /// This one.
    Chosen(JobStrategy),
}

/// How the view comes into the pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewMount {
    /// An init container copies it into an emptyDir.
    Copy,
    /// It is mounted as an OCI image volume.
    Image,
}

/// How containers with `runFlux: false` run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SidecarKind {
    /// Native when it has ports or no command, else ordinary.
    Auto,
    /// An init container with `restartPolicy: Always` (KEP-753).
    Native,
    /// A container that must end for the pod to end.
    Ordinary,
}

/// Whether the CPUs that R lists belong to the pod alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cpus {
    /// Shared with other pods: jobs are not pinned to core ids.
    Shared,
    /// Exclusive (static CPU manager, Guaranteed QoS): jobs are pinned.
    Exclusive,
}

macro_rules! settings {
    ($($key:literal $field:ident : $ty:ty = $default:literal, $values:literal, $per_cluster:literal, $doc:literal;)*) => {
        /// All settings, resolved for one cluster.
        #[derive(Debug, Clone, PartialEq)]
        pub struct Settings {
            $(
                #[doc = $doc]
                pub $field: $ty,
            )*
            origins: Vec<(&'static str, String, Origin)>,
        }

        /// Every setting there is, in the order of `explain settings`.
        pub const ALL: &[SettingInfo] = &[
            $(SettingInfo { key: $key, values: $values, default: $default, doc: $doc, per_cluster: $per_cluster },)*
        ];

        impl Settings {
            fn from_layers(layers: &Layers, diagnostics: &mut Diagnostics) -> Self {
                let mut origins = Vec::new();
                $(
                    let (text, origin, span) = layers.pick($key, $default);
                    let $field = <$ty as Value>::parse(text).or_else(|| {
                        diagnostics.push(bad_value($key, $values, text, span, <$ty as Value>::advice(text)));
                        <$ty as Value>::parse($default)
                    });
                    origins.push(($key, text.to_owned(), origin));
                )*
                Self { $($field: $field.unwrap_or_else(<$ty as Value>::fallback),)* origins }
            }
        }
    };
}

settings! {
    "kubernetes-version" kubernetes_version: KubernetesVersion = "1.34", "1.28 to 1.37", true,
        "Oldest Kubernetes version that the bundle must work with. The newest form that this version has on by default is used.";
    "flux-version" flux_version: Option<FluxVersion> = "", "a flux-core version such as 0.75.0", true,
        "flux-core version in the view. Unset: only what works from 0.51 to 0.88 is written.";
    "namespace" namespace: Option<String> = "", "a namespace", true,
        "Namespace of clusters that do not name one. Unset: their objects carry none.";
    "create-namespace" create_namespace: bool = "false", "true | false", false,
        "Write a Namespace object for each namespace.";
    "root-kustomization" root_kustomization: bool = "false", "true | false", false,
        "Write a kustomization.yaml over all namespaces. kustomize is slow on thousands of objects.";
    "secrets" secrets: SecretBackend = "existing", "existing | plain | sops | sealed", true,
        "Where the CURVE certificate's Secret comes from: `existing`: made in the cluster by somebody; `plain`: in the bundle, with the private key; `sops`: in the bundle, encrypted to `age-recipients` in the form of SOPS; `sealed`: in the bundle, as a SealedSecret for the controller with `sealed-certificate`.";
    "secret-name" secret_name: Option<String> = "", "the name of a Secret", true,
        "With `secrets: existing`: the Secret to use. Unset: `<owner>-curve`, followed by a hash of the public key where the key is known. The owner is the cluster, or for a bursted cluster the main one.";
    "plain-secrets-in-git" plain_secrets_in_git: bool = "false", "true | false", false,
        "Allow `secrets: plain` to write a private key into a git work tree.";
    "age-recipients" age_recipients: AgeRecipients = "", "age recipients (age1...), with commas or blanks between them", true,
        "With `secrets: sops`: who can decrypt the Secret. These are public keys; `age-keygen` makes the pairs.";
    "sealed-certificate" sealed_certificate: Option<String> = "", "a PEM file, relative to the project file", true,
        "With `secrets: sealed`: the certificate of the controller, as `kubeseal --fetch-cert` prints it.";
    "sealed-scope" sealed_scope: SealedScope = "strict", "strict | namespace-wide | cluster-wide", true,
        "With `secrets: sealed`: where the Secret can be unsealed. `strict`: under its own namespace and name only.";
    "strategy" strategy: Strategy = "auto", "auto | stable | recreate | run-once | hook | service", true,
        "What becomes of the Job and the services Pod when they change. `stable`: a changed template fails visibly at sync. `recreate`: Argo CD or Flux CD deletes the old one and makes the new one. `run-once`: each change runs under a new name. `hook`: Argo CD runs the Job at every sync. `service`: as `stable`, and Argo CD does not wait for its health. `auto`: `service` for a cluster that never ends by itself, else `stable`. See docs/strategies.md.";
    "gitops" gitops: GitOps = "both", "argocd | fluxcd | both | none", true,
        "Which tool applies the bundles, and so whose annotations the strategy writes. `both`: one folder serves either. The annotation that keeps Flux CD from substituting in scripts is always there.";
    "keep-old" keep_old: bool = "false", "true | false", true,
        "With `strategy: run-once`: earlier runs stay in the cluster when pruning would remove them.";
    "view-mount" view_mount: ViewMount = "copy", "copy | image", true,
        "How the Flux view comes into pods: copied by an init container, or mounted as an OCI image volume (Kubernetes 1.35 and later; 1.33 with its feature gate).";
    "image-volume-gate" image_volume_gate: bool = "false", "true | false", true,
        "The clusters have the feature gate ImageVolume on, so image volumes work from Kubernetes 1.33 on.";
    "sidecar" sidecar: SidecarKind = "auto", "auto | native | ordinary", true,
        "How containers with `runFlux: false` run. `auto`: native sidecar when it has ports or no command, else an ordinary container.";
    "cores" cores: Option<u32> = "", "a number from 1", true,
        "Cores of each node for R, where neither `cores` nor CPU limits nor requests tell.";
    "cpus" cpus: Cpus = "shared", "shared | exclusive", true,
        "`exclusive`: pods own whole CPUs (static CPU manager, Guaranteed QoS), so jobs are pinned to cores. `shared`: they are not.";
    "queue" queue: Option<Queue> = "", "kueue/ and the name of a LocalQueue", true,
        "Queue that admits the Job: `kueue/<name>` puts the label `kueue.x-k8s.io/queue-name` on it. The Pod of `services` is not queued.";
    "queue-priority" queue_priority: QueuePriority = "", "the name of a WorkloadPriorityClass", true,
        "Priority of the Job in its queue (label `kueue.x-k8s.io/priority-class`).";
    "queue-topology" queue_topology: Option<QueueTopology> = "", "required:LEVEL | preferred:LEVEL | unconstrained", true,
        "Where Kueue places the pods: all in one domain of a topology level, which is the key of a node label, as far as there is room in one, or anywhere.";
    "queue-admission" queue_admission: QueueAdmission = "whole", "whole | partial | elastic", true,
        "How many pods the queue may admit. `whole`: all or none. `partial`: at least `minSize`. `elastic`: all or none, and another `size` while it runs is admitted too (for `maxSize`).";
    "network-policy" network_policy: NetworkPolicyLevel = "none", "none | cluster | isolated", true,
        "Connections of the pods. `cluster`: a NetworkPolicy lets in the cluster's own pods, and everybody to ports of sidecars. `isolated`: the pods reach each other and DNS only, too.";
    "pod-security" pod_security: PodSecurity = "none", "none | baseline | restricted", true,
        "Level of the Pod Security Standards that the pods keep. `restricted` writes what the level wants and the spec leaves open. What prevents the level is an error. A Namespace of `create-namespace` enforces it.";
    "bind-interface" bind_interface: Option<String> = "", "a network interface such as eth0", true,
        "Interface the brokers listen on. Unset: all of them.";
    "ipv6" ipv6: bool = "false", "true | false", true,
        "Use IPv6 between brokers (bootstrap.enable_ipv6).";
}

/// A type that a setting's text can be read as.
trait Value: Sized {
    fn parse(text: &str) -> Option<Self>;
    /// What stands in where even the built-in default does not parse, which a test rules out.
    fn fallback() -> Self;
    /// What is wrong with a text that does not parse, where there is more to say than the list of values.
    fn advice(_text: &str) -> Option<String> {
        None
    }
}

macro_rules! choice {
    ($ty:ident { $($text:literal => $variant:ident),* }, $fallback:ident) => {
        impl Value for $ty {
            fn parse(text: &str) -> Option<Self> {
                match text {
                    $($text => Some(Self::$variant),)*
                    _ => None,
                }
            }
            fn fallback() -> Self {
                Self::$fallback
            }
        }
    };
}

choice!(SecretBackend { "existing" => Existing, "plain" => Plain, "sops" => Sops, "sealed" => Sealed }, Existing);
choice!(
    SealedScope { "strict" => Strict, "namespace-wide" => NamespaceWide, "cluster-wide" => ClusterWide },
    Strict
);
choice!(GitOps { "argocd" => ArgoCd, "fluxcd" => FluxCd, "both" => Both, "none" => Neither }, Both);
choice!(ViewMount { "copy" => Copy, "image" => Image }, Copy);
choice!(SidecarKind { "auto" => Auto, "native" => Native, "ordinary" => Ordinary }, Auto);
choice!(Cpus { "shared" => Shared, "exclusive" => Exclusive }, Shared);

choice!(QueueAdmission { "whole" => Whole, "partial" => Partial, "elastic" => Elastic }, Whole);
choice!(NetworkPolicyLevel { "none" => None, "cluster" => Cluster, "isolated" => Isolated }, None);
choice!(PodSecurity { "none" => None, "baseline" => Baseline, "restricted" => Restricted }, None);

/// The name of a `WorkloadPriorityClass`, if one is chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueuePriority(pub Option<String>);

impl Value for QueuePriority {
    fn parse(text: &str) -> Option<Self> {
        (text.is_empty() || is_name(text)).then(|| Self((!text.is_empty()).then(|| text.to_owned())))
    }
    fn fallback() -> Self {
        Self(None)
    }
}

impl Value for Option<Queue> {
    fn parse(text: &str) -> Option<Self> {
        if text.is_empty() { Some(None) } else { Queue::read(text).ok().map(Some) }
    }
    fn fallback() -> Self {
        None
    }
    fn advice(text: &str) -> Option<String> {
        Queue::read(text).err()
    }
}

impl Value for Option<QueueTopology> {
    fn parse(text: &str) -> Option<Self> {
        if text.is_empty() { Some(None) } else { QueueTopology::read(text).map(Some) }
    }
    fn fallback() -> Self {
        None
    }
}

impl Value for bool {
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
    fn fallback() -> Self {
        false
    }
}

impl Value for Strategy {
    fn parse(text: &str) -> Option<Self> {
        if text == "auto" { Some(Self::Auto) } else { JobStrategy::parse(text).map(Self::Chosen) }
    }
    fn fallback() -> Self {
        Self::Auto
    }
}

impl Value for KubernetesVersion {
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
    fn fallback() -> Self {
        Self::OLDEST
    }
}

impl Value for Option<String> {
    fn parse(text: &str) -> Option<Self> {
        Some((!text.is_empty()).then(|| text.to_owned()))
    }
    fn fallback() -> Self {
        None
    }
}

impl Value for AgeRecipients {
    fn parse(text: &str) -> Option<Self> {
        let words = text.split([',', ' ', '\t', '\n', '\r']).filter(|word| !word.is_empty());
        let mut recipients: Vec<String> = words.map(str::to_owned).collect();
        let known = |word: &String| word.parse::<age::x25519::Recipient>().is_ok();
        recipients.sort();
        recipients.dedup();
        recipients.iter().all(known).then_some(Self(recipients))
    }
    fn fallback() -> Self {
        Self::default()
    }
}

impl Value for Option<u32> {
    fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return Some(None);
        }
        text.parse().ok().filter(|n| *n >= 1).map(Some)
    }
    fn fallback() -> Self {
        None
    }
}

impl Value for Option<FluxVersion> {
    fn parse(text: &str) -> Option<Self> {
        if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) }
    }
    fn fallback() -> Self {
        None
    }
}

/// Settings as written in every layer. Keys are checked when they are added.
#[derive(Debug, Clone, Default)]
pub struct Layers(Vec<(Origin, String, String, Option<Span>)>);

impl Layers {
    /// No layer but the built-in one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a value; a later one wins over an earlier one. An unknown key is reported with a suggestion.
    pub fn add(&mut self, origin: Origin, key: &str, value: &str, span: Option<Span>, diagnostics: &mut Diagnostics) {
        let Some(info) = ALL.iter().find(|s| s.key == key) else {
            diagnostics.push(unknown_key(key, span));
            return;
        };
        // A private key instead of a public one: the value is not kept, so that nothing can show it.
        if value.to_ascii_uppercase().contains(AGE_IDENTITY) {
            diagnostics.push(private_identity(key, origin));
            return;
        }
        if !info.per_cluster && matches!(origin, Origin::ClusterOverride | Origin::Annotation) {
            diagnostics.push(not_per_cluster(key, span));
            return;
        }
        self.0.push((origin, key.to_owned(), value.to_owned(), span));
    }

    /// Reads every setting, reporting values that do not fit.
    #[must_use]
    pub fn resolve(&self, diagnostics: &mut Diagnostics) -> Settings {
        Settings::from_layers(self, diagnostics)
    }

    fn pick<'a>(&'a self, key: &str, default: &'a str) -> (&'a str, Origin, Option<Span>) {
        self.0
            .iter()
            .rev()
            .find(|(_, k, _, _)| k == key)
            .map_or((default, Origin::BuiltIn, None), |(origin, _, value, span)| (value, *origin, *span))
    }
}

impl Settings {
    /// Each setting's key, value as text and origin.
    pub fn origins(&self) -> impl Iterator<Item = (&'static str, &str, Origin)> {
        self.origins.iter().map(|(key, value, origin)| (*key, value.as_str(), *origin))
    }
}

impl Default for Settings {
    fn default() -> Self {
        Layers::new().resolve(&mut Diagnostics::new())
    }
}

fn at(span: Option<Span>, code: crate::diag::Code, message: String) -> Diagnostic {
    match span {
        Some(span) => Diagnostic::error(code, span, message),
        None => Diagnostic::global_error(code, message),
    }
}

fn unknown_key(key: &str, span: Option<Span>) -> Diagnostic {
    let near = ALL
        .iter()
        .map(|s| (strsim::damerau_levenshtein(key, s.key), s.key))
        .min()
        .filter(|(distance, _)| *distance <= 3);
    let help = near.map_or_else(
        || "`flux-gen explain settings` lists them".to_owned(),
        |(_, near)| format!("did you mean `{near}`?"),
    );
    at(span, codes::UNKNOWN_SETTING, format!("there is no setting `{key}`")).help(help)
}

fn not_per_cluster(key: &str, span: Option<Span>) -> Diagnostic {
    at(span, codes::NOT_PER_CLUSTER, format!("setting `{key}` holds for the whole project, not for one cluster"))
        .help("move it to `settings` of flux-gen.yaml")
}

/// Without a place: the excerpt would show the key.
fn private_identity(key: &str, origin: Origin) -> Diagnostic {
    let message = format!("setting `{key}` ({origin}) holds an age identity, which is a private key");
    Diagnostic::global_error(crate::diag::codes::cert::PRIVATE_IDENTITY, message)
        .help("write the recipient (age1...) that `age-keygen -y` prints for it, and make a new identity if this one was shared")
}

fn bad_value(key: &str, values: &str, text: &str, span: Option<Span>, advice: Option<String>) -> Diagnostic {
    at(span, codes::BAD_SETTING, format!("`{text}` is no value for setting `{key}`"))
        .help(advice.unwrap_or_else(|| format!("write one of: {values}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_default_is_a_value() {
        let mut diagnostics = Diagnostics::new();
        let settings = Layers::new().resolve(&mut diagnostics);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        assert_eq!(settings.origins().count(), ALL.len());
    }

    #[test]
    fn recipients_are_checked_and_sorted_and_identities_never_shown() {
        const ONE: &str = "age1t7rxyev2z3rw82stdlrrepyc39nvn86l5078zqkf5uasdy86jp6svpy7pa";
        let parse = |text: &str| {
            let (mut diagnostics, mut layers) = (Diagnostics::new(), Layers::new());
            layers.add(Origin::Project, "age-recipients", text, None, &mut diagnostics);
            let settings = layers.resolve(&mut diagnostics);
            let origins = format!("{:?} {diagnostics:?}", settings.origins().collect::<Vec<_>>());
            (settings.age_recipients.0, diagnostics.iter().map(|d| d.code.id).collect::<Vec<_>>(), origins)
        };
        let identity = age::x25519::Identity::generate();
        let two = identity.to_public().to_string();
        let mut sorted = vec![ONE.to_owned(), two.clone()];
        sorted.sort();
        assert_eq!(parse(&format!("{ONE}, {two}\n {ONE}")).0, sorted);
        assert_eq!(parse("").0, [""; 0]);
        for wrong in ["age1", &ONE.replace('t', "q"), "ssh-ed25519", &format!("{ONE};{two}")] {
            let (recipients, codes, _) = parse(wrong);
            assert!(recipients.is_empty() && codes == ["FG402"], "{wrong}");
        }
        let secret = age::secrecy::ExposeSecret::expose_secret(&identity.to_string()).to_owned();
        for text in [secret.clone(), secret.to_lowercase(), format!("{ONE} {secret}")] {
            let (recipients, codes, shown) = parse(&text);
            assert!(recipients.is_empty() && codes == ["FG519"], "{codes:?}");
            assert!(!shown.to_uppercase().contains(&secret[20..]), "the identity was shown");
        }
    }

    #[test]
    fn later_layers_win_and_are_named() {
        let mut diagnostics = Diagnostics::new();
        let mut layers = Layers::new();
        layers.add(Origin::Project, "cores", "4", None, &mut diagnostics);
        layers.add(Origin::CommandLine, "cores", "8", None, &mut diagnostics);
        let settings = layers.resolve(&mut diagnostics);
        assert_eq!(settings.cores, Some(8));
        assert!(settings.origins().any(|o| o == ("cores", "8", Origin::CommandLine)));
    }

    #[test]
    fn mistakes_are_reported_with_help() {
        let mut diagnostics = Diagnostics::new();
        let mut layers = Layers::new();
        layers.add(Origin::Project, "kubernets-version", "1.31", None, &mut diagnostics);
        layers.add(Origin::Annotation, "root-kustomization", "true", None, &mut diagnostics);
        layers.add(Origin::Project, "cores", "none", None, &mut diagnostics);
        let settings = layers.resolve(&mut diagnostics);
        assert_eq!(settings.cores, None);
        let got: Vec<_> = diagnostics.iter().map(|d| (d.code.title, d.help.as_deref().unwrap_or_default())).collect();
        assert_eq!(got.len(), 3, "{got:?}");
        assert_eq!(got[0].1, "did you mean `kubernetes-version`?");
        assert!(got[2].1.contains("a number from 1"));
    }
}
