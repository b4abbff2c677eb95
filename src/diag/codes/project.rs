//! `FG4xx`: project file and settings.

super::codes! {
    SEVERAL_DOCUMENTS = "FG410", "project file with several documents", "A project file is one YAML document. Specs and other Kubernetes documents belong to the folders named in `sources`.";
}
