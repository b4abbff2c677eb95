//! `FG3xx`: the resolved model, and objects as an API server would see them.

super::codes! {
    OPEN_QUOTE = "FG301", "command with an open quote", "A quote in `command` is never closed, so no shell could read the command. It is split at blanks and its quotes stay letters, as the Flux Operator does it. Close the quote, or put the text into double quotes, to have it read as a shell reads it.";
    GUESSED_CORES = "FG302", "number of cores guessed", "Flux needs to know how many cores each node has (R) when the cluster is elastic or asks for GPUs, and nothing in the spec tells. flux-gen writes enough for the tasks. Write `cores` on the container that runs Flux, or a CPU limit, or the setting `cores`.";
    NEEDS_NEWER_KUBERNETES = "FG303", "needs a newer Kubernetes", "What is written needs a feature that the Kubernetes version of the setting `kubernetes-version` has not on by default. Either write it in the older way that the help line names, or raise the setting if all your clusters are newer.";
    ORIGIN = "FG304", "where a number came from", "A note, shown with `-v`: which field or setting a number in the bundle comes from.";
    NOT_WITH_IMAGE_MOUNT = "FG305", "field without meaning for a mounted view", "With `view-mount: image` there is no init container, so its working directory, resources and security context have no place. Remove the field, or use `view-mount: copy`.";
    PATCH_FAILED = "FG306", "patch does not fit", "A patch of the project file names a field that the object's kind has not, changes what makes the object what it is (kind, name, namespace), or leaves something that is no such object any more.";
    PATCH_UNUSED = "FG307", "patch without a target", "No rendered object matches the patch's target. Look at cluster, kind and name; names are those before the hash suffix.";
    SECRET_NAME_UNUSED = "FG308", "secret-name without effect", "The setting `secret-name` names a Secret that exists in the cluster, so it goes with `secrets: existing` only.";
    DEFAULT_IMAGE = "FG309", "image left out", "The MiniCluster API has a default image for containers (`ghcr.io/rse-ops/accounting:app-latest`), which is hardly ever what is meant. flux-gen uses it as the API says and warns. Write `image`.";
    LEADER_NOT_FIRST = "FG310", "leader is not the first host", "A broker finds its rank by its pod's host name in the list of hosts, and rank 0 leads. In a list written by the user (`bursting.hostlist`) the pod of index 0 has to come first, unless another cluster leads.";
    REFUSED_OBJECT = "FG320", "object that an API server refuses", "flux-gen checks every object it has made, patches included, against the rules by which a Kubernetes API server of the target version accepts objects. The path in the message is the field of the object; the cause is a patch, a setting, or a case that the rules on specs have missed.";
    RENDER_BUG = "FG390", "a script could not be rendered", "A bug in flux-gen: please report it with the spec.";
}
