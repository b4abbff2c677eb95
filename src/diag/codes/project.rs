//! `FG4xx`: project file and settings.

super::codes! {
    UNKNOWN_SETTING = "FG401", "unknown setting", "There is no setting of this name. `flux-gen explain settings` lists all of them with their values.";
    BAD_SETTING = "FG402", "value does not fit the setting", "The setting exists, but not with this value. The help line names the values it takes.";
    NOT_PER_CLUSTER = "FG403", "setting is not per cluster", "Some settings shape the whole output (such as `root-kustomization`), so an annotation or a cluster override cannot set them. Put them under `settings` of the project file or give them with `--set`.";
    SEVERAL_DOCUMENTS = "FG410", "project file with several documents", "A project file is one YAML document. Specs and other Kubernetes documents belong to the folders named in `sources`.";
}
