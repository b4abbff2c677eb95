//! Numbers of pods, of brokers to wait for, and of nodes to ask for.

use super::Findings;
use super::cause::Cause;
use super::cluster::Cluster;
use crate::diag::codes::audit as codes;
use crate::model::queue::QUEUE_LABEL;

pub(super) fn check(cluster: &Cluster<'_>, findings: &mut Findings) {
    parallelism(cluster, findings);
    size_map(cluster, findings);
    endings(cluster, findings);
    suspended(cluster, findings);
}

fn parallelism(cluster: &Cluster<'_>, findings: &mut Findings) {
    let job = cluster.job;
    let completions = cluster.completions();
    // An API server takes a missing number for one.
    let parallelism = job.number("/spec/parallelism").unwrap_or(1);
    if job.text("/spec/completionMode") != Some("Indexed") {
        let what = "the Job is not Indexed: pods have no index, so none of them finds its rank";
        findings.error(codes::PARALLELISM, job, "/spec/completionMode", what, &Cause::Patch);
    }
    let (quorum, whose) = quorum(cluster);
    if !cluster.leads() {
        // The leader elsewhere decides how many it waits for.
    } else if parallelism.min(completions) < quorum {
        let field = if parallelism < completions { "parallelism" } else { "completions" };
        let what = format!(
            "{} pods run at a time, and the leader waits for {quorum} brokers ({whose}): work never starts",
            parallelism.min(completions)
        );
        findings.error(codes::PARALLELISM, job, &format!("/spec/{field}"), &what, &Cause::Patch);
        return;
    }
    if parallelism != completions {
        let what = format!(
            "{parallelism} is not {completions}, the completions: {}the size of a running Job can only be changed when both are equal",
            if parallelism < completions { "the other brokers never come, and " } else { "" }
        );
        findings.warning(codes::PARALLELISM, job, "/spec/parallelism", &what, &Cause::Patch);
    }
}

/// How many brokers the leader waits for, and who says so.
fn quorum(cluster: &Cluster<'_>) -> (i64, &'static str) {
    if let Some(quorum) = cluster.size.and_then(|size| size.file("quorum")?.trim().parse().ok()) {
        return (quorum, "the ConfigMap of the size");
    }
    let option = cluster.entrypoint().and_then(|script| script.split_once("-Sbroker.quorum="));
    let digits = option.map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit).collect::<String>());
    if let Some(quorum) = digits.and_then(|digits| digits.parse().ok()) {
        return (quorum, "broker.quorum");
    }
    let hosts = cluster.host_lists().first().map_or(1, |(_, hosts)| hosts.len());
    (i64::try_from(hosts).unwrap_or(i64::MAX), "all hosts")
}

/// The numbers of an elastic cluster.
fn size_map(cluster: &Cluster<'_>, findings: &mut Findings) {
    let Some(size) = cluster.size else { return };
    let completions = cluster.completions();
    let quorum = size.file("quorum").unwrap_or_default().trim();
    if !quorum.parse::<i64>().is_ok_and(|quorum| quorum >= 1) {
        let what = format!("`{quorum}` is no number of brokers: the leader cannot start");
        findings.error(codes::SIZE_MAP, size, "/data/quorum", &what, &Cause::Patch);
    }
    let words: Vec<&str> = size.file("nodes").unwrap_or_default().split_whitespace().collect();
    let nodes = words.iter().zip(words.iter().skip(1)).find(|(word, _)| **word == "-N");
    if let Some(nodes) = nodes.and_then(|(_, number)| number.parse::<i64>().ok())
        && nodes != completions
        && nodes > 1
    {
        let effect = if nodes > completions { "the job never starts" } else { "the other nodes stay idle" };
        let what = format!("the job asks for {nodes} nodes and the Job runs {completions} pods: {effect}");
        findings.error(codes::SIZE_MAP, size, "/data/nodes", &what, &Cause::Patch);
    }
}

fn endings(cluster: &Cluster<'_>, findings: &mut Findings) {
    let job = cluster.job;
    let waits_again =
        cluster.entrypoint().is_some_and(|script| script.contains("waiting for a leader or the end of the Job"));
    let ends = job.list("/spec/successPolicy/rules").iter().any(|rule| {
        let indexes = rule.get("succeededIndexes").and_then(serde_json::Value::as_str).unwrap_or_default();
        indexes.split(',').any(|part| part == "0" || part.starts_with("0-"))
    });
    if waits_again && !ends {
        let what = "no rule ends the Job when index 0 succeeds, and followers wait for a leader again: it runs until its deadline";
        findings.error(codes::NEVER_ENDS, job, "/spec/successPolicy", what, &Cause::Patch);
    }
    if job.number("/spec/ttlSecondsAfterFinished").is_some() {
        let what = "a finished Job is deleted, and Argo CD or Flux CD make it anew: the program runs again and again";
        findings.warning(codes::RUNS_AGAIN, job, "/spec/ttlSecondsAfterFinished", what, &Cause::Patch);
    }
}

/// Kueue starts what it has suspended, and knows it by its label.
fn suspended(cluster: &Cluster<'_>, findings: &mut Findings) {
    let job = cluster.job;
    let queued = job.at("/metadata/labels").is_some_and(|labels| labels.get(QUEUE_LABEL).is_some());
    if job.at("/spec/suspend") == Some(&serde_json::Value::Bool(true)) && !queued {
        let what = "the Job is suspended and in no queue: no pod starts until somebody sets this to false";
        findings.warning(codes::SUSPENDED, job, "/spec/suspend", what, &Cause::Patch);
    }
}
