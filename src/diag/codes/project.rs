//! `FG4xx`: project file and settings.

super::codes! {
    UNKNOWN_SETTING = "FG401", "unknown setting", "There is no setting of this name. `flux-gen explain settings` lists all of them with their values.";
    BAD_SETTING = "FG402", "value does not fit the setting", "The setting exists, but not with this value. The help line names the values it takes.";
    NOT_PER_CLUSTER = "FG403", "setting is not per cluster", "Some settings shape the whole output (such as `root-kustomization`), so an annotation or a cluster override cannot set them. Put them under `settings` of the project file or give them with `--set`.";
    NO_SUCH_CLUSTER = "FG404", "settings of no cluster", "`clusters` of the project file has settings for a cluster, and the project has no MiniCluster of this name. The key is the cluster's `name`, or `namespace/name`; a MiniCluster without a namespace is in that of the setting `namespace`.";
    SEVERAL_DOCUMENTS = "FG410", "project file with several documents", "A project file is one YAML document. Specs and other Kubernetes documents belong to the folders named in `sources`.";
    BAD_REQUIREMENT = "FG490", "not a version requirement", "`required-version` of the project file takes a requirement as Cargo writes them: `0.2` (any 0.2.x), `=0.2.1`, `>=0.1, <0.3`.";
    WRONG_VERSION = "FG491", "another version of flux-gen is required", "The project file says with `required-version` which versions of flux-gen may write its bundles. Another version may render other bytes, and everybody would see them as drift. Install a version that fits, or, if the change is wanted, change the requirement and build everything again.";
}
