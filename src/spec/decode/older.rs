//! Fields of earlier versions of the operator, spellings of its documentation, and habits from Kubernetes' own containers:
//! where their meaning is written now. Older fields that still work are fields of their records instead.

use crate::spec::record::Record;

/// Record, field, where its meaning is written now.
pub(crate) const PLACES: &[(&str, &str, &str)] = &[
    (
        "MiniClusterSpec",
        "volumes",
        "the operator no longer makes volumes: name existing ones in `spec.containers[].volumes` (hostPath, claimName, …) \
         and put their PersistentVolumeClaim in a document beside this one",
    ),
    (
        "MiniClusterSpec",
        "users",
        "accounts for the REST server are gone; the user that runs Flux is `spec.containers[].fluxUser`",
    ),
    (
        "MiniClusterSpec",
        "fluxRestful",
        "run the REST server as a container of its own in `spec.containers`, with `runFlux: false` and `ports`",
    ),
    (
        "MiniClusterSpec",
        "localDeploy",
        "take it out: folders of the node are `spec.containers[].volumes.<name>.hostPath` now",
    ),
    ("MiniClusterSpec", "test", "write `spec.logging.quiet`"),
    ("MiniClusterSpec", "jobSelector", "the headless Service of the pods is named by `spec.network.headlessName`"),
    ("MiniClusterSpec", "suspendWorkers", "write `spec.flux.completeWorkers`"),
    (
        "MiniClusterSpec",
        "oversubscribe",
        "several containers of a pod cannot run Flux: write a MiniCluster for each, or start the programs as Flux jobs",
    ),
    ("MiniClusterSpec", "deadline", "write `spec.deadlineSeconds`"),
    ("MiniClusterSpec", "existingVolumes", "write `spec.containers[].volumes`, with the same fields"),
    ("Container", "existingVolumes", "write `volumes`, with the same fields"),
    ("Container", "fluxOptionFlags", "write `spec.flux.optionFlags`"),
    ("Container", "fluxLogLevel", "write `spec.flux.logLevel`"),
    ("Container", "postStartExec", "write `lifeCycle.postStartExec`"),
    ("Container", "env", "write `environment`, a mapping from names to texts"),
    ("Container", "volumeMounts", "write `volumes`, a mapping from names to `path` and a source"),
    ("Container", "args", "write the whole command line in `command`"),
    ("Logging", "test", "write `quiet`"),
    ("Pod", "disableSoleTenancy", "write `spec.network.disableAffinity: true`, so that pods may share a node"),
    (
        "Network",
        "hostNetwork",
        "take it out: host names of the pods, by which brokers find each other, are not those of nodes",
    ),
    ("Flux", "connextTimeout", "write `connectTimeout` (the documentation misspelt it once)"),
    ("Flux", "connection", "write `spec.flux.bursting.leadBroker`, with the address and the name of the other cluster"),
    ("Flux", "connectionSize", "write `spec.flux.bursting.leadBroker.size`"),
    ("Flux", "installRoot", "the place of the Flux view is `spec.flux.container.mountPath`"),
    (
        "Flux",
        "curveCertSecret",
        "keep the certificate in the certificate store, or name the Secret with the setting for existing Secrets",
    ),
    ("SecurityContext", "addCapabilities", "write `capabilities.add`"),
];

/// Where the meaning of an older field is written now.
pub(super) fn place(record: &Record, name: &str) -> Option<&'static str> {
    PLACES.iter().find(|(of, field, _)| *of == record.name && *field == name).map(|(_, _, place)| *place)
}

#[cfg(test)]
mod tests {
    use super::PLACES;
    use crate::spec::explain;

    #[test]
    fn entries_are_of_known_records_and_no_fields_of_theirs() {
        let records = explain::records();
        for (of, field, _) in PLACES {
            let record = records.iter().find(|record| record.name == *of);
            assert!(record.is_some_and(|record| record.field(field).is_none()), "{of}.{field}");
        }
    }
}
