//! Settings: what a user may choose besides the MiniCluster itself, in layers.
//!
//! Order, later wins: built-in < project < cluster override < annotation `flux-gen.dev/<key>` < `--set`.

use std::fmt;

use super::kubernetes::KubernetesVersion;
use crate::diag::codes::project as codes;
use crate::diag::{Diagnostic, Diagnostics, Span};
use crate::flux::version::FluxVersion;

/// Prefix of annotations that set a setting.
pub const ANNOTATION_PREFIX: &str = "flux-gen.dev/";

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
}

/// What becomes of a Job whose template changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// `service` for clusters that never end, else `stable`.
    Auto,
    /// The Job has the cluster's name; a changed template fails visibly at sync.
    Stable,
    /// As stable, for a cluster that never ends by itself.
    Service,
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
                        diagnostics.push(bad_value($key, $values, text, span));
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
    "secrets" secrets: SecretBackend = "existing", "existing | plain", true,
        "Where the CURVE certificate's Secret comes from: `existing`: made in the cluster by somebody; `plain`: in the bundle, with the private key.";
    "secret-name" secret_name: Option<String> = "", "the name of a Secret", true,
        "With `secrets: existing`: the Secret to use. Unset: `<owner>-curve`, followed by a hash of the public key where the key is known. The owner is the cluster, or for a bursted cluster the main one.";
    "plain-secrets-in-git" plain_secrets_in_git: bool = "false", "true | false", false,
        "Allow `secrets: plain` to write a private key into a git work tree.";
    "strategy" strategy: Strategy = "auto", "auto | stable | service", true,
        "What becomes of the Job when its template changes. `auto`: `service` for a cluster that never ends by itself (Argo CD then does not wait for its health), else `stable`.";
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

choice!(SecretBackend { "existing" => Existing, "plain" => Plain }, Existing);
choice!(Strategy { "auto" => Auto, "stable" => Stable, "service" => Service }, Auto);
choice!(ViewMount { "copy" => Copy, "image" => Image }, Copy);
choice!(SidecarKind { "auto" => Auto, "native" => Native, "ordinary" => Ordinary }, Auto);
choice!(Cpus { "shared" => Shared, "exclusive" => Exclusive }, Shared);

impl Value for bool {
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
    fn fallback() -> Self {
        false
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

fn bad_value(key: &str, values: &str, text: &str, span: Option<Span>) -> Diagnostic {
    at(span, codes::BAD_SETTING, format!("`{text}` is no value for setting `{key}`"))
        .help(format!("write one of: {values}"))
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
