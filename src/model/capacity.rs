//! What the Kubernetes cluster has, resolved from `capacity` of the project file.

use std::collections::BTreeMap;

use crate::diag::codes::queue as codes;
use crate::diag::{Diagnostic, Diagnostics, Span};
use crate::object::quantity::Quantity;
use crate::spec::project as written;
use crate::spec::{IntOrString, Map, Spanned};

/// The resource of cores.
pub const CPU: &str = "cpu";
/// The resource of memory.
pub const MEMORY: &str = "memory";

/// Amounts by resource name: `cpu`, `memory`, `nvidia.com/gpu`.
pub type Amounts = BTreeMap<String, Quantity>;

/// What the Kubernetes cluster has.
#[derive(Debug, Clone, PartialEq)]
pub struct Capacity {
    /// Where it is written.
    pub span: Span,
    /// Kinds of nodes, in the order of the file.
    pub flavors: Vec<Flavor>,
    /// Shares of queues, in the order of the file; `None`: every queue has everything.
    pub queues: Option<Vec<Share>>,
}

/// A kind of nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct Flavor {
    /// Its name.
    pub name: String,
    /// Number of nodes.
    pub nodes: u32,
    /// What one node has; what is not here is not known.
    pub node: Amounts,
    /// Labels of its nodes.
    pub labels: BTreeMap<String, String>,
}

/// What a queue has.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// `name` or `namespace/name`.
    pub queue: String,
    /// Where it is written.
    pub span: Span,
    /// Its part of each flavor.
    pub quotas: Vec<Quota>,
}

/// A part of a flavor.
#[derive(Debug, Clone, PartialEq)]
pub struct Quota {
    /// Position of the flavor.
    pub flavor: usize,
    /// Number of nodes.
    pub nodes: u32,
    /// What they have in all.
    pub total: Amounts,
}

impl Capacity {
    /// Everything, as the share of somebody who has no share.
    #[must_use]
    pub fn whole(&self) -> Vec<Quota> {
        let whole = |(flavor, f): (usize, &Flavor)| Quota { flavor, nodes: f.nodes, total: total(f, f.nodes) };
        self.flavors.iter().enumerate().map(whole).collect()
    }
}

fn total(flavor: &Flavor, nodes: u32) -> Amounts {
    flavor.node.iter().map(|(name, amount)| (name.clone(), amount.times(nodes))).collect()
}

/// Resolves `capacity`; what is wrong with it is reported and left out.
#[must_use]
pub fn resolve(written: &Spanned<written::Capacity>, found: &mut Diagnostics) -> Capacity {
    let entries = || written.flavors.iter().flat_map(|map| map.value.iter());
    let flavors: Vec<Flavor> = entries().map(|entry| flavor(&entry.key, &entry.value, found)).collect();
    if flavors.is_empty() && written.flavors.is_some() {
        report(
            found,
            written.span,
            "capacity lists no flavor".to_owned(),
            "list at least one kind of nodes".to_owned(),
        );
    }
    let shares = written.queues.as_ref().map(|queues| {
        let share = |entry: &crate::spec::Entry<written::QueueShare>| share(&entry.key, &entry.value, &flavors, found);
        queues.value.iter().map(share).collect()
    });
    Capacity { span: written.span, flavors, queues: shares }
}

fn flavor(name: &Spanned<String>, written: &written::Flavor, found: &mut Diagnostics) -> Flavor {
    let labels = written.labels.iter().flat_map(|map| map.value.iter());
    Flavor {
        name: name.value.clone(),
        nodes: count("nodes", written.nodes.as_ref(), found).unwrap_or(0),
        node: amounts(written.cores.as_ref(), written.memory.as_ref(), written.gpus.as_ref(), found),
        labels: labels.map(|entry| (entry.key.value.clone(), entry.value.value.clone())).collect(),
    }
}

fn share(queue: &Spanned<String>, written: &written::QueueShare, flavors: &[Flavor], found: &mut Diagnostics) -> Share {
    let mut quotas = Vec::new();
    for entry in written.flavors.iter().flat_map(|map| map.value.iter()) {
        let Some((flavor, kind)) = flavors.iter().enumerate().find(|(_, f)| f.name == entry.key.value) else {
            let names: Vec<&str> = flavors.iter().map(|f| f.name.as_str()).collect();
            let near = names.iter().min_by_key(|name| strsim::damerau_levenshtein(name, &entry.key.value));
            let near = near.filter(|name| strsim::damerau_levenshtein(name, &entry.key.value) <= 3);
            let help = near.map_or_else(
                || format!("list it under `flavors`; there are: {}", names.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            report(found, entry.key.span, format!("there is no flavor `{}`", entry.key.value), help);
            continue;
        };
        let quota = &entry.value;
        let nodes = count("nodes", quota.nodes.as_ref(), found).unwrap_or(kind.nodes);
        if let Some(span) = quota.nodes.as_ref().map(|n| n.span).filter(|_| nodes > kind.nodes) {
            let message = format!("{nodes} nodes of flavor `{}` are more than the {} there are", kind.name, kind.nodes);
            report(found, span, message, format!("write at most {}", kind.nodes));
        }
        let mut total = total(kind, nodes);
        total.extend(amounts(quota.cores.as_ref(), quota.memory.as_ref(), quota.gpus.as_ref(), found));
        quotas.push(Quota { flavor, nodes, total });
    }
    Share { queue: queue.value.clone(), span: queue.span, quotas }
}

fn amounts(
    cores: Option<&Spanned<i32>>,
    memory: Option<&Spanned<IntOrString>>,
    gpus: Option<&Spanned<Map<i32>>>,
    found: &mut Diagnostics,
) -> Amounts {
    let mut amounts = Amounts::new();
    let whole = |count: u32| Quantity::from_integer(i64::from(count));
    amounts.extend(count("cores", cores, found).map(|cores| (CPU.to_owned(), whole(cores))));
    amounts.extend(memory.and_then(|m| bytes(m, found)).map(|memory| (MEMORY.to_owned(), memory)));
    for entry in gpus.iter().flat_map(|map| map.value.iter()) {
        if !entry.key.value.contains('/') {
            let message = format!("`{}` is no resource of devices", entry.key.value);
            report(found, entry.key.span, message, "write its whole name, such as `nvidia.com/gpu`".to_owned());
        }
        let devices = u32::try_from(entry.value.value).ok();
        if devices.is_none() {
            let message = format!("{} of `{}` are less than none", entry.value.value, entry.key.value);
            report(found, entry.value.span, message, "write 0 or more".to_owned());
        }
        amounts.extend(devices.map(|devices| (entry.key.value.clone(), whole(devices))));
    }
    amounts
}

fn count(field: &str, written: Option<&Spanned<i32>>, found: &mut Diagnostics) -> Option<u32> {
    let written = written?;
    let count = u32::try_from(written.value).ok().filter(|count| *count > 0);
    if count.is_none() {
        let message = format!("{field} {} is not 1 or more", written.value);
        report(found, written.span, message, "write the number there is".to_owned());
    }
    count
}

fn bytes(written: &Spanned<IntOrString>, found: &mut Diagnostics) -> Option<Quantity> {
    let amount = written.value.to_string().parse::<Quantity>().ok().filter(|amount| *amount > Quantity::ZERO);
    if amount.is_none() {
        let message = format!("memory `{}` is no amount", written.value);
        report(found, written.span, message, "write a number and a unit, such as `256Gi`".to_owned());
    }
    amount
}

fn report(found: &mut Diagnostics, span: Span, message: String, help: String) {
    found.push(Diagnostic::error(codes::CAPACITY, span, message).help(help));
}
