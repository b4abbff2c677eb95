//! `FG1xx`: reading YAML.

super::codes! {
    YAML_SYNTAX = "FG101", "YAML syntax error", "The text is not YAML, so the document with this place was not read. Reading goes on with the next document (after a line `---`), whose problems are reported in the same run.";
    UNKNOWN_FIELD = "FG102", "unknown field", "The MiniCluster API has no such field. An API server would drop it silently; flux-gen refuses it so that a spelling mistake does not become a default. `--allow-unknown` turns this error into a warning.";
    WRONG_TYPE = "FG103", "wrong type", "The field takes another kind of value, and an API server would refuse the document. Common causes: a number or a boolean without quotes where the field is text (`PORT: 80` in `environment`), quotes around a number (`size: \"4\"`), a mapping where a list is wanted.";
    OUT_OF_RANGE = "FG104", "number out of range", "The number does not fit the width that the API gives the field: 32 bits for most, 64 for seconds and user ids. An API server may store such a number, and then no client can read the object.";
    AMBIGUOUS_WORD = "FG105", "word that YAML readers read differently", "Without quotes, `yes`, `on`, `y`, `017`, `1_000`, `1:30`, `2024-01-31` and the like are not the same value for every reader: kubectl, Argo CD and Flux CD follow YAML 1.1, others YAML 1.2. flux-gen does not guess. Put quotes around text; write booleans as `true` and `false` and numbers in plain decimal.";
    REQUIRED = "FG106", "required field is missing", "The API has no default for this field, so the document means nothing without it. A field whose value is empty (null) counts as missing, as it does for an API server.";
    BAD_QUANTITY = "FG107", "not a quantity", "A quantity is an integer, or text made of a number and an optional suffix: `500m`, `4`, `\"0.5\"`, `64Gi`, `1e3`. A bare fraction such as `0.5` is refused by the MiniCluster API: quote it.";
    BAD_NAME = "FG108", "not a name", "Names of Kubernetes objects are lower-case letters, digits, `-` and `.`, start and end with a letter or digit, and have at most 253 characters (RFC 1123 subdomain). Other rules may shorten this further.";
    MOVED_FIELD = "FG109", "field of an older API", "Older versions of the Flux Operator had this field, or its documentation misspelt it. The message names where its meaning is written now.";
    UNKNOWN_KIND = "FG110", "not a document flux-gen can read", "Each document needs `apiVersion`, `kind` and `metadata.name`, as for `kubectl apply`. MiniClusters are `flux-framework.org/v1alpha2`; earlier versions and kinds of the operator (`v1alpha1`, `FluxJob`, `FluxSetup`) had other fields and have to be rewritten.";
    NOT_UTF8 = "FG111", "not UTF-8", "YAML files for Kubernetes are UTF-8. The offset names the first byte that is not.";
    FORBIDDEN_CHARACTER = "FG112", "character that YAML does not allow", "YAML allows no control characters except tab and line breaks (YAML 1.2.2, section 5.1). A NUL byte usually means a binary or damaged file.";
    TOO_LARGE = "FG113", "file too large", "flux-gen reads files of up to 16 MiB with up to a million values. Split the file, or keep generated data out of the folder.";
    TOO_DEEP = "FG114", "nested too deeply", "No Kubernetes document needs more than 64 levels of lists and mappings; deeper ones are damaged or hostile.";
    ALIAS = "FG115", "alias that cannot be expanded", "Aliases (`*name`) are replaced by the value of their anchor (`&name`). An alias inside its own anchor never ends, and aliases of aliases grow without bound; both are refused.";
    DUPLICATE_KEY = "FG116", "key written twice", "A mapping has each key once (YAML 1.2.2, section 3.2.1.1). Readers differ in what they make of a second one: some refuse, some take the first, some the last.";
    BAD_KEY = "FG117", "unusable key", "Keys of Kubernetes documents are text. Lists, mappings and empty keys are not, and a merge key `<<` takes mappings only.";
    UNSUPPORTED_TAG = "FG118", "unsupported tag", "Tags such as `!!binary` or `!include` mean nothing to an API server. Only the tags of the YAML core schema are read.";
    EMPTY_VALUE = "FG119", "empty value", "A list item or an entry of a free mapping is empty (null). An API server drops or refuses it. Write `\"\"` for an empty text, or take the entry out.";
    NO_DOCUMENT = "FG120", "no document", "Nothing was found to read: no files, or only comments and empty documents.";
    SKIPPED_DOCUMENT = "FG121", "document that is not for the cluster", "A kustomization.yaml is an instruction to kustomize, not an object of the cluster. flux-gen reads the files it is given and writes kustomizations of its own; patches and generators of this one have no effect on what flux-gen writes.";
}
