//! `FG4xx`: project file and settings.

super::codes! {
    SEVERAL_DOCUMENTS = "FG410", "project file with several documents", "A project file is one YAML document. Specs and other Kubernetes documents belong to the folders named in `sources`.";
    BAD_REQUIREMENT = "FG490", "not a version requirement", "`required-version` of the project file takes a requirement as Cargo writes them: `0.2` (any 0.2.x), `=0.2.1`, `>=0.1, <0.3`.";
    WRONG_VERSION = "FG491", "another version of flux-gen is required", "The project file says with `required-version` which versions of flux-gen may write its bundles. Another version may render other bytes, and everybody would see them as drift. Install a version that fits, or, if the change is wanted, change the requirement and build everything again.";
}
