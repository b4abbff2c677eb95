//! Cores and GPUs of each node, for R: where they come from, said in a note.

use super::containers::runner_spec;
use super::written::{number, text};
use super::{Size, origin_note};
use crate::diag::{Diagnostic, Diagnostics, Span, codes::model as codes};
use crate::model::BROKER_RESOURCES;
use crate::model::settings::{Cpus, Settings};
use crate::object::quantity::Quantity;
use crate::spec::minicluster::{Container, MiniClusterSpec};
use crate::spec::{IntOrString, Map, Spanned};

/// What each node has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cores {
    /// Cores of a node; `None`: brokers find out themselves.
    pub cores: Option<u32>,
    /// GPUs of a node.
    pub gpus: u32,
    /// The number says nothing about which cores: jobs must not be pinned to ids 0..n-1.
    pub unpinned: bool,
}

/// Cores: written `cores`, else the CPU limit, else the request, else the setting; a part of a core counts as one.
pub(super) fn cores(
    spec: &MiniClusterSpec,
    runner: usize,
    size: Size,
    settings: &Settings,
    diagnostics: &mut Diagnostics,
) -> Cores {
    let Some(container) = runner_spec(spec, runner) else {
        return Cores { cores: None, gpus: 0, unpinned: false };
    };
    let gpus = gpus(container);
    let shared = settings.cpus == Cpus::Shared;
    let known = |cores, unpinned| Cores { cores: Some(cores), gpus, unpinned };
    if let Some(cores) = number(&container.cores).filter(|n| *n > 0) {
        note(diagnostics, container.cores.as_ref().map(|c| c.span), cores, "the field `cores`");
        return known(cores, false);
    }
    let resources = container.resources.as_ref();
    for (list, from) in [
        (resources.and_then(|r| r.limits.as_ref()), "the CPU limit"),
        (resources.and_then(|r| r.requests.as_ref()), "the CPU request"),
    ] {
        if let Some((cores, span)) = cpu(list) {
            note(diagnostics, Some(span), cores, from);
            return known(cores, shared);
        }
    }
    if let Some(cores) = settings.cores {
        note(diagnostics, Some(container.span), cores, "the setting `cores`");
        return known(cores, false);
    }
    if size.elastic || gpus > 0 || reads_r(spec) {
        let cores = guess(spec, size);
        diagnostics.push(
            Diagnostic::warning(
                codes::GUESSED_CORES,
                container.span,
                format!("nothing tells how many cores a node has; R is written with {cores}"),
            )
            .help("write `cores`, or a CPU limit in `resources`, or the setting `cores`"),
        );
        return known(cores, true);
    }
    Cores { cores: None, gpus, unpinned: false }
}

/// Whether the user's own broker configuration reads the bundle's R, which then has to be there.
fn reads_r(spec: &MiniClusterSpec) -> bool {
    let config = spec.flux.as_ref().and_then(|flux| text(&flux.broker_config));
    let table = config.and_then(|config| config.parse::<toml::Table>().ok());
    let path = table.as_ref().and_then(|table| table.get("resource")?.get("path")?.as_str());
    path.is_some_and(|path| path.strip_suffix(BROKER_RESOURCES).is_some_and(|mount| mount.ends_with('/')))
}

/// Enough for the tasks at the smallest size: R of an elastic cluster must not depend on its size of now.
fn guess(spec: &MiniClusterSpec, size: Size) -> u32 {
    let tasks = number(&spec.tasks).unwrap_or(1);
    let fewest = if size.elastic { number(&spec.min_size).unwrap_or(1).max(1) } else { size.pods };
    tasks.div_ceil(fewest).max(1)
}

fn note(diagnostics: &mut Diagnostics, span: Option<Span>, cores: u32, from: &str) {
    if let Some(span) = span {
        origin_note(diagnostics, span, format!("R lists {cores} cores for each node, from {from}"));
    }
}

fn cpu(list: Option<&Spanned<Map<IntOrString>>>) -> Option<(u32, Span)> {
    let written = list?.value.get("cpu")?;
    let cores = written.value.to_string().parse::<Quantity>().ok()?.ceil();
    Some((u32::try_from(cores).ok()?.max(1), written.span))
}

/// Extended resources whose name says GPU: `nvidia.com/gpu`, `amd.com/gpu`, `gpu.intel.com/i915`.
fn gpus(container: &Container) -> u32 {
    let limits = container.resources.as_ref().and_then(|r| r.limits.as_ref());
    let amounts = limits.iter().flat_map(|l| l.value.iter()).filter(|e| is_gpu(&e.key)).filter_map(|e| {
        let amount = e.value.value.to_string().parse::<Quantity>().ok()?.ceil();
        u32::try_from(amount).ok()
    });
    amounts.sum()
}

/// Whether a resource is one of GPUs, by its name.
pub(crate) fn is_gpu(resource: &str) -> bool {
    let Some((domain, name)) = resource.split_once('/') else { return false };
    let says_gpu = |text: &str| text.split(['.', '-']).any(|part| part == "gpu" || part == "gpus");
    (says_gpu(domain) || says_gpu(name)) && !name.contains("mem")
}

/// `-o cpu-affinity=off`, where cores are not the pod's own and the user's flags say nothing about it.
pub(super) fn affinity_flags(spec: &MiniClusterSpec, cores: Cores) -> Vec<String> {
    let flags = spec.flux.as_ref().and_then(|f| text(&f.option_flags)).unwrap_or_default();
    if cores.unpinned && !flags.contains("cpu-affinity") {
        vec!["-o".to_owned(), "cpu-affinity=off".to_owned()]
    } else {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::is_gpu;

    #[test]
    fn gpu_resources_are_known_by_name() {
        for (resource, gpu) in [
            ("nvidia.com/gpu", true),
            ("amd.com/gpu", true),
            ("gpu-vendor.example/example-gpu", true),
            ("gpu.intel.com/i915", true),
            ("aliyun.com/gpu-mem", false),
            ("vpc.amazonaws.com/efa", false),
            ("cpu", false),
        ] {
            assert_eq!(is_gpu(resource), gpu, "{resource}");
        }
    }
}
