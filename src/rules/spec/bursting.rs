//! Bursting: the clusters that join, the leader that is joined, and host lists.

use std::collections::{BTreeMap, BTreeSet};

use super::check::{Check, shown, text};
use super::reserved::MOST_PODS;
use crate::diag::codes::spec as codes;
use crate::diag::{Diagnostic, Span};
use crate::flux::Hostlist;
use crate::rules::syntax::{self, Wrong};
use crate::spec::Spanned;
use crate::spec::minicluster::{BurstedCluster, LeadBroker};

pub(super) fn check(check: &mut Check<'_>) {
    let Some(flux) = check.flux() else { return };
    if let Some(lead) = &flux.lead_broker {
        lead_broker(check, lead);
    }
    let Some(bursting) = flux.bursting.as_ref().map(|bursting| &bursting.value) else { return };
    if let Some(lead) = &bursting.lead_broker {
        lead_broker(check, lead);
    }
    let mut seen: BTreeMap<String, Span> = BTreeMap::new();
    for (position, cluster) in bursting.clusters.iter().flat_map(|list| &list.value).enumerate() {
        bursted(check, &mut seen, position, cluster);
    }
    if let Some(hosts) = text(&bursting.hostlist) {
        hostlist(check, hosts);
        if let Some(clusters) = bursting.clusters.as_ref().filter(|list| !list.value.is_empty()) {
            let message = "`hostlist` and `clusters` both say which hosts there are";
            let help = "a host list is the whole list, so leave out `clusters`, or let them make the list";
            let diagnostic = Diagnostic::error(codes::TWO_SPELLINGS, hosts.span, message).help(help);
            check.push(diagnostic.related(clusters.span, "clusters"));
        }
    }
}

/// `<name>-<size-1>` is a host name.
fn hosts_fit(name: &str, size: i32) -> Result<(), Wrong> {
    syntax::dns1123_label(name)?;
    let last = format!("{name}-{}", size.max(1) - 1);
    if last.len() > 63 { Err(format!("its last host `{last}` has more than 63 characters")) } else { Ok(()) }
}

fn size(check: &mut Check<'_>, what: &str, written: &Option<Spanned<i32>>) {
    if let Some(size) = written.as_ref().filter(|size| size.value < 0 || size.value > 100_000) {
        let message = format!("size {} of {what} is not between 1 and 100000", size.value);
        check.error(codes::NUMBER_RANGE, size.span, message, "leave it out for the size of this cluster");
    }
}

fn lead_broker(check: &mut Check<'_>, written: &Spanned<LeadBroker>) {
    let lead = &written.value;
    // Reading has reported an address or name that is not written at all.
    if let Some(address) = &lead.address {
        check.form(codes::LEAD_BROKER, "address", address, |text| {
            if text.is_empty() {
                return Err("it must be the IP or host name of the main cluster's leader".to_owned());
            }
            match text.chars().find(|c| !(c.is_ascii_alphanumeric() || ".-:[]".contains(*c))) {
                Some(c) => Err(format!("`{}` cannot be in an IP or host name", c.escape_default())),
                None => Ok(()),
            }
        });
    }
    let lead_size = lead.size.as_ref().map_or_else(|| check.size(), |size| size.value);
    if let Some(name) = &lead.name {
        check.form(codes::LEAD_BROKER, "name of the lead broker", name, |text| hosts_fit(text, lead_size));
        if name.value == check.name() {
            let message = format!("the lead broker's cluster `{}` is this cluster itself", name.value);
            let help = "name the main cluster; clusters that share hosts need different names";
            check.error(codes::LEAD_BROKER, name.span, message, help);
        }
    }
    if let Some(hosts) = text(&lead.hostlist) {
        hostlist(check, hosts);
    }
    if let Some(port) = lead.port.as_ref().filter(|port| !(0..=65535).contains(&port.value)) {
        let message = format!("port {} of the lead broker is not between 1 and 65535", port.value);
        check.error(codes::PORT_RANGE, port.span, message, "leave it out for 8050");
    }
    size(check, "the lead broker's cluster", &lead.size);
}

fn bursted(
    check: &mut Check<'_>,
    seen: &mut BTreeMap<String, Span>,
    position: usize,
    cluster: &Spanned<BurstedCluster>,
) {
    size(check, "a bursted cluster", &cluster.value.size);
    let hosts = cluster.value.size.as_ref().map(|size| size.value).filter(|size| *size > 0);
    let hosts = hosts.unwrap_or_else(|| check.size());
    let (name, span) = match text(&cluster.value.name) {
        Some(name) => {
            if !check.form(codes::BURST_CLUSTER, "bursted cluster", name, |text| hosts_fit(text, hosts)) {
                return;
            }
            (name.value.clone(), name.span)
        }
        None => (format!("burst-{position}"), cluster.span),
    };
    let is_lead = check.flux().is_some_and(|flux| flux.lead_broker.is_some())
        || check.flux().and_then(|f| f.bursting.as_ref()).is_some_and(|b| b.value.lead_broker.is_some());
    // The clusters of a group list each other, so a bursted one finds itself in its own list.
    if name == check.name() && !is_lead {
        let message = format!("bursted cluster `{name}` has the name of this cluster");
        check.error(codes::BURST_CLUSTER, span, message, "give it another name");
    }
    if let Some(first) = seen.insert(name.clone(), span) {
        let message = format!("two bursted clusters are named `{}`", shown(&name));
        let diagnostic = Diagnostic::error(codes::BURST_CLUSTER, span, message).help("rename one of them");
        check.push(diagnostic.related(first, "the first is here"));
    }
}

fn hostlist(check: &mut Check<'_>, written: &Spanned<String>) {
    let hosts = match Hostlist::parse(&written.value) {
        Ok(hosts) => hosts,
        Err(wrong) => {
            let message = format!("hostlist `{}`: {wrong}", shown(&written.value));
            check.error(codes::HOSTLIST, written.span, message, "write names and ranges such as a-[0-3],b-[001-003]");
            return;
        }
    };
    // Numbers of hosts come from ranges, so a short text can mean more than memory holds.
    let most = 10 * usize::try_from(MOST_PODS).unwrap_or(usize::MAX);
    if hosts.len() > most {
        let message = format!("the hostlist has {} hosts, more than {most}", hosts.len());
        check.error(codes::HOSTLIST, written.span, message, "list the hosts that there are");
        return;
    }
    if let Some(twice) = hosts.first_repeated() {
        let message = format!("host `{}` stands twice in the hostlist", shown(&twice));
        check.error(codes::HOSTLIST, written.span, message, "list each host once: its place is its rank");
    }
    let bad = hosts.iter().find_map(|host| host.split('.').try_for_each(domain_label).err().map(|wrong| (host, wrong)));
    if let Some((host, wrong)) = bad {
        let message = format!("host `{}` of the hostlist: {wrong}", shown(&host));
        check.error(codes::HOSTLIST, written.span, message, "brokers refuse such names");
    }
    // Names with a suffix are known to the model only.
    let listed: BTreeSet<String> = hosts.iter().collect();
    let own = (0..check.size().clamp(0, MOST_PODS.cast_signed())).map(|index| format!("{}-{index}", check.name()));
    let missing = own.into_iter().find(|host| !listed.contains(host));
    if let (Some(host), 0) = (missing, check.context.name_suffix) {
        let message = format!("host `{host}` of this cluster is not in the hostlist");
        let help = "a broker that does not find itself exits at once: add the hosts of this cluster";
        check.warn(codes::HOSTLIST, written.span, message, help);
    }
}

/// The labels that flux-core takes in bootstrap host names: letters, digits and inner hyphens, 1 to 63.
fn domain_label(label: &str) -> Result<(), Wrong> {
    syntax::dns1123_label(&label.to_ascii_lowercase())
}
