//! `FG1xx`: reading YAML.

super::codes! {
    YAML_SYNTAX = "FG101", "YAML syntax error", "The text is not YAML, so nothing after this place was read. The message names what the parser expected.";
    UNKNOWN_FIELD = "FG102", "unknown field", "The MiniCluster API has no such field. An API server would drop it silently; flux-gen refuses it so that a spelling mistake does not become a default. `--allow-unknown` turns this error into a warning.";
}
