//! Whether clusters fit into what the Kubernetes cluster has: one alone, and all of a queue together.
//!
//! Only what can be told for sure is told: pods that ask for CPU share nodes, a pod that does not say what it needs has a
//! node for itself, and whatever `capacity` does not say has no limit.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::PodSpec;

use crate::diag::codes::queue as codes;
use crate::diag::{Diagnostic, Diagnostics, Span};
use crate::model::capacity::{Amounts, CPU, Capacity, Flavor, MEMORY, Quota, Share};
use crate::model::{Cluster, Leader, is_gpu};
use crate::object::quantity::Quantity;
use crate::rules::object::requested;

/// Most clusters that a message names.
const NAMED: usize = 5;

/// What one cluster asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    /// `name` or `namespace/name`.
    pub title: String,
    /// Where its name is written.
    pub span: Span,
    /// Its namespace.
    pub namespace: Option<String>,
    /// Its queue.
    pub queue: Option<String>,
    /// Pods without which it does not start.
    pub least: u32,
    /// Pods of its size.
    pub pods: u32,
    /// Pods it may grow to.
    pub most: u32,
    /// What one pod asks for; without `cpu` it has a node for itself.
    pub pod: Amounts,
    /// Labels that its nodes must have.
    pub node_selector: BTreeMap<String, String>,
    /// Required node affinity: of one of these terms every label has one of the values (operator `In`; others are not
    /// counted). None: any node will do.
    pub node_terms: Vec<NodeTerm>,
}

/// Labels of a node with the values that they may have.
pub type NodeTerm = BTreeMap<String, BTreeSet<String>>;

fn node_terms(pod: &PodSpec) -> Vec<NodeTerm> {
    let node = pod.affinity.as_ref().and_then(|affinity| affinity.node_affinity.as_ref());
    let required = node.and_then(|node| node.required_during_scheduling_ignored_during_execution.as_ref());
    let terms = required.into_iter().flat_map(|selector| &selector.node_selector_terms);
    let labels = terms.map(|term| {
        let listed = term.match_expressions.iter().flatten().filter(|expression| expression.operator == "In");
        listed.map(|e| (e.key.clone(), e.values.iter().flatten().cloned().collect())).collect()
    });
    labels.collect()
}

impl Demand {
    /// What a cluster asks for, from its finished Job; `None` for one that joins a leader elsewhere, as it runs there.
    #[must_use]
    pub fn of(cluster: &Cluster, job: &Job, cores: Option<u32>, span: Span) -> Option<Self> {
        if cluster.broker.leader != Leader::Here {
            return None;
        }
        let pod = job.spec.as_ref().and_then(|spec| spec.template.spec.as_ref())?;
        let containers = || pod.containers.iter().chain(pod.init_containers.iter().flatten());
        let names: BTreeSet<&String> = containers()
            .filter_map(|container| container.resources.as_ref())
            .flat_map(|r| r.limits.iter().flatten().chain(r.requests.iter().flatten()).map(|(name, _)| name))
            .collect();
        let mut amounts: Amounts = names.into_iter().map(|name| (name.clone(), requested(pod, name))).collect();
        for (name, amount) in pod.resources.iter().flat_map(|r| r.requests.iter().flatten()) {
            amounts.extend(amount.0.parse().ok().map(|amount| (name.clone(), amount)));
        }
        // R promises these cores to Flux, whatever the pod asks Kubernetes for.
        let promised = cluster.runner.cores.or(cores.filter(|_| !amounts.contains_key(CPU)));
        if let Some(promised) = promised.map(|cores| Quantity::from_integer(i64::from(cores))) {
            let asked = amounts.entry(CPU.to_owned()).or_insert(promised);
            *asked = promised.max(*asked);
        }
        let title = cluster.namespace.as_ref().map(|namespace| format!("{namespace}/{}", cluster.minicluster));
        Some(Self {
            title: title.unwrap_or_else(|| cluster.minicluster.clone()),
            span,
            namespace: cluster.namespace.clone(),
            queue: cluster.job.queueing.queue.clone(),
            least: cluster.job.queueing.least.unwrap_or(cluster.size.pods),
            pods: cluster.size.pods,
            most: cluster.size.max,
            pod: amounts,
            node_selector: pod.node_selector.clone().unwrap_or_default(),
            node_terms: node_terms(pod),
        })
    }

    /// What of a flavor keeps it away, whatever the number of its nodes.
    fn kept_away(&self, flavor: &Flavor) -> Option<String> {
        for (key, wanted) in &self.node_selector {
            if let Some(has) = flavor.labels.get(key).filter(|has| *has != wanted) {
                return Some(format!("its nodes have `{key}: {has}`, the pods want `{wanted}`"));
            }
        }
        let refused = self.node_terms.iter().map(|term| refused_label(term, flavor));
        if let Some(labels) = refused.collect::<Option<Vec<_>>>().filter(|labels| !labels.is_empty()) {
            return Some(format!("its nodes have {}, which the node affinity excludes", labels.join(" and ")));
        }
        self.pod.iter().find_map(|(name, asked)| {
            let none = is_gpu(name).then_some(Quantity::ZERO);
            let has = flavor.node.get(name).copied().or(none).filter(|has| has < asked)?;
            Some(format!("a pod asks for {} and a node has {has}", amount(name, *asked)))
        })
    }

    /// How many pods a node of a flavor holds.
    fn on_a_node(&self, flavor: &Flavor) -> u32 {
        let counted = self.pod.iter().filter_map(|(name, asked)| Some(flavor.node.get(name)?.holds(*asked)));
        let most = if self.pod.contains_key(CPU) { u32::MAX } else { 1 };
        counted.min().unwrap_or(most).min(most)
    }

    /// How many pods a share of a flavor holds.
    fn room(&self, flavor: &Flavor, quota: &Quota) -> u32 {
        let by_total = self.pod.iter().filter_map(|(name, asked)| Some(quota.total.get(name)?.holds(*asked)));
        let by_node = quota.nodes.saturating_mul(self.on_a_node(flavor));
        by_total.min().unwrap_or(by_node).min(by_node)
    }
}

/// A label of a flavor that a term does not take; `None` where the term may fit.
fn refused_label(term: &NodeTerm, flavor: &Flavor) -> Option<String> {
    term.iter().find_map(|(key, values)| {
        let has = flavor.labels.get(key).filter(|has| !values.contains(*has))?;
        Some(format!("`{key}: {has}`"))
    })
}

/// `cpu 4`: a resource with its amount.
fn amount(name: &str, quantity: Quantity) -> String {
    format!("{name} {quantity}")
}

/// Checks every cluster alone, then all of each queue together.
#[must_use]
pub fn check(capacity: &Capacity, demands: &[Demand]) -> Diagnostics {
    let mut found = Diagnostics::new();
    let whole = capacity.whole();
    let mut groups: BTreeMap<Option<usize>, Vec<&Demand>> = BTreeMap::new();
    for demand in demands {
        let share = match share_of(capacity, demand) {
            Ok(share) => share,
            Err(Unknown) => {
                found.push(unknown_queue(capacity, demand));
                continue;
            }
        };
        let quotas = share.map_or(&whole, |(_, share)| &share.quotas);
        if alone(capacity, demand, quotas, share.map(|(_, share)| share), &mut found) {
            groups.entry(share.map(|(index, _)| index)).or_default().push(demand);
        }
    }
    for (index, group) in groups {
        let share = index.and_then(|index| capacity.queues.as_ref()?.get(index));
        let quotas = share.map_or(&whole, |share| &share.quotas);
        for (queue, members) in by_queue(share, &group) {
            together(capacity, queue, &members, quotas, share).into_iter().for_each(|warning| found.push(warning));
        }
    }
    found
}

/// Clusters of one share are one group; without shares each queue, and what has none, is a group.
fn by_queue<'a>(share: Option<&Share>, group: &[&'a Demand]) -> Vec<(Option<&'a str>, Vec<&'a Demand>)> {
    if share.is_some() {
        return vec![(group.first().and_then(|demand| demand.queue.as_deref()), group.to_vec())];
    }
    let mut queues: BTreeMap<Option<(&str, &str)>, Vec<&Demand>> = BTreeMap::new();
    for demand in group {
        let key = demand.queue.as_deref().map(|queue| (queue, demand.namespace.as_deref().unwrap_or_default()));
        queues.entry(key).or_default().push(demand);
    }
    queues.into_iter().map(|(key, members)| (key.map(|(queue, _)| queue), members)).collect()
}

/// A queue that is not among those listed.
struct Unknown;

/// The share of a cluster's queue; `None` where it may use everything.
fn share_of<'a>(capacity: &'a Capacity, demand: &Demand) -> Result<Option<(usize, &'a Share)>, Unknown> {
    let (Some(shares), Some(queue)) = (&capacity.queues, &demand.queue) else { return Ok(None) };
    let qualified = demand.namespace.as_ref().map(|namespace| format!("{namespace}/{queue}"));
    let named = |name: &String| shares.iter().enumerate().find(|(_, share)| share.queue == *name);
    qualified.as_ref().and_then(named).or_else(|| named(queue)).map(Some).ok_or(Unknown)
}

fn unknown_queue(capacity: &Capacity, demand: &Demand) -> Diagnostic {
    let queue = demand.queue.as_deref().unwrap_or_default();
    let names: Vec<&str> = capacity.queues.iter().flatten().map(|share| share.queue.as_str()).collect();
    let near = names.iter().find(|name| strsim::damerau_levenshtein(name, queue) <= 2);
    let help = near.map_or_else(
        || format!("list it under `capacity.queues`, beside {}", names.join(", ")),
        |near| format!("did you mean `{near}`?"),
    );
    let message = format!("queue `{queue}` of `{}` is not in `capacity.queues`, so it is not checked", demand.title);
    Diagnostic::warning(codes::UNKNOWN_QUEUE, demand.span, message).help(help)
}

/// One cluster with nothing else running. Whether it fits.
fn alone(
    capacity: &Capacity,
    demand: &Demand,
    quotas: &[Quota],
    share: Option<&Share>,
    found: &mut Diagnostics,
) -> bool {
    let mut best = 0;
    let mut reasons = Vec::new();
    for quota in quotas {
        let Some(flavor) = capacity.flavors.get(quota.flavor) else { continue };
        if let Some(why) = demand.kept_away(flavor) {
            reasons.push(format!("`{}`: {why}", flavor.name));
            continue;
        }
        let room = demand.room(flavor, quota);
        best = best.max(room);
        let each = demand.on_a_node(flavor);
        let nodes = if quota.nodes == 1 { "node" } else { "nodes" };
        reasons.push(match quota.nodes.saturating_mul(each) {
            holds if holds == room => format!("`{}`: {} {nodes} hold {room} of them", flavor.name, quota.nodes),
            _ => format!("`{}`: the share of the queue holds {room} of them", flavor.name),
        });
    }
    let whose = share.map(|share| format!(" in queue `{}`", share.queue)).unwrap_or_default();
    let place = share.map_or(capacity.span, |share| share.span);
    let asks = shape(demand);
    if best < demand.least {
        let least = demand.least;
        let pods = if least == 1 { "pod" } else { "pods" };
        let reasons = if reasons.is_empty() { "it has no flavor".to_owned() } else { reasons.join("; ") };
        let message = format!("`{}` needs {least} {pods} {asks} and can never fit{whose}: {reasons}", demand.title);
        let help = "lower `size` or what a pod asks for, or correct `capacity`";
        found
            .push(Diagnostic::error(codes::NEVER_FITS, demand.span, message).help(help).related(place, "the capacity"));
        return false;
    }
    let wanted = demand.pods.max(demand.most);
    if best < wanted {
        let field = if best < demand.pods { "size" } else { "maxSize" };
        let message = format!("`{}` has room for {best} pods{whose} and {field} is {wanted}", demand.title);
        let help = format!("lower {field} to {best}, or correct `capacity`");
        found.push(
            Diagnostic::warning(codes::NO_ROOM_TO_GROW, demand.span, message).help(help).related(place, "the capacity"),
        );
    }
    true
}

/// `of cpu 4, memory 8Gi`, or that nothing is known.
fn shape(demand: &Demand) -> String {
    if !demand.pod.contains_key(CPU) {
        return "with a node for each (nothing says how much CPU a pod asks for)".to_owned();
    }
    let counted = demand.pod.iter().filter(|(name, _)| is_counted(name));
    format!("of {}", counted.map(|(name, asked)| amount(name, *asked)).collect::<Vec<_>>().join(", "))
}

fn is_counted(name: &str) -> bool {
    matches!(name, CPU | MEMORY) || name.contains('/')
}

/// All clusters of a group at once: for every set of flavors that some of them are bound to, those that can use no other.
fn together(
    capacity: &Capacity,
    queue: Option<&str>,
    members: &[&Demand],
    quotas: &[Quota],
    share: Option<&Share>,
) -> Option<Diagnostic> {
    if members.len() < 2 {
        return None;
    }
    let usable = |demand: &Demand| -> BTreeSet<usize> {
        let usable = |q: &&Quota| capacity.flavors.get(q.flavor).is_some_and(|f| demand.kept_away(f).is_none());
        quotas.iter().filter(usable).map(|quota| quota.flavor).collect()
    };
    let sets: Vec<BTreeSet<usize>> = members.iter().map(|demand| usable(demand)).collect();
    let mut distinct: Vec<BTreeSet<usize>> = sets.clone();
    distinct.push(quotas.iter().map(|quota| quota.flavor).collect());
    distinct.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
    distinct.dedup();
    for set in distinct {
        let bound: Vec<&Demand> =
            members.iter().zip(&sets).filter(|(_, own)| own.is_subset(&set)).map(|(demand, _)| *demand).collect();
        let over = exceeded(&bound, &set, quotas);
        if bound.len() > 1 && !over.is_empty() {
            return Some(too_much(capacity, queue, &bound, (&set, quotas), &over, share));
        }
    }
    None
}

/// Resources of which these clusters ask for more than the flavors have: name, asked, there.
fn exceeded(bound: &[&Demand], set: &BTreeSet<usize>, quotas: &[Quota]) -> Vec<(String, Quantity, Quantity)> {
    let in_set = || quotas.iter().filter(|quota| set.contains(&quota.flavor));
    let names: BTreeSet<&String> = bound.iter().flat_map(|demand| demand.pod.keys()).collect();
    let mut over = Vec::new();
    for name in names {
        let has = in_set().try_fold(Quantity::ZERO, |sum, quota| Some(sum.plus(*quota.total.get(name)?)));
        let asked = bound.iter().fold(Quantity::ZERO, |sum, demand| {
            sum.plus(demand.pod.get(name).copied().unwrap_or(Quantity::ZERO).times(demand.pods))
        });
        over.extend(has.filter(|has| *has < asked).map(|has| (name.clone(), asked, has)));
    }
    let nodes = in_set().fold(0_u32, |sum, quota| sum.saturating_add(quota.nodes));
    let alone = bound.iter().filter(|demand| !demand.pod.contains_key(CPU));
    let asked = alone.fold(0_u32, |sum, demand| sum.saturating_add(demand.pods));
    if asked > nodes {
        let whole = |count: u32| Quantity::from_integer(i64::from(count));
        over.push(("nodes".to_owned(), whole(asked), whole(nodes)));
    }
    over
}

fn too_much(
    capacity: &Capacity,
    queue: Option<&str>,
    bound: &[&Demand],
    (set, quotas): (&BTreeSet<usize>, &[Quota]),
    over: &[(String, Quantity, Quantity)],
    share: Option<&Share>,
) -> Diagnostic {
    let numbers: Vec<String> =
        over.iter().map(|(name, asked, has)| format!("{name} {asked} of {has} there are")).collect();
    let whose = queue.map_or("without a queue".to_owned(), |queue| format!("of queue `{queue}`"));
    let flavors: Vec<String> = if set.len() == quotas.len() {
        Vec::new()
    } else {
        set.iter().filter_map(|index| capacity.flavors.get(*index)).map(|f| format!("`{}`", f.name)).collect()
    };
    let flavors = if flavors.is_empty() { String::new() } else { format!(" that only use {}", flavors.join(", ")) };
    let message = format!("{} clusters {whose}{flavors} ask together for {}", bound.len(), numbers.join(", "));
    let help = match queue {
        Some(_) => "the queue lets some of them wait; give it more, or use another queue, if they are to run at once",
        None => "set `queue` so that they wait in order, or do not run them at once",
    };
    let span = share.map_or(capacity.span, |share| share.span);
    let mut warning = Diagnostic::warning(codes::TOGETHER_TOO_LARGE, span, message).help(help);
    for demand in bound.iter().take(NAMED) {
        warning = warning.related(demand.span, format!("{} pods {}", demand.pods, shape(demand)));
    }
    warning
}
