//! `FG3xx`: rules on the resolved model and on rendered objects.

super::codes! {
    REFUSED_OBJECT = "FG301", "object that an API server refuses", "flux-gen checks every object it has made, patches included, against the rules by which a Kubernetes API server of the target version accepts objects. The path in the message is the field of the object; the cause is a patch, a setting, or a case that the rules on specs have missed.";
}
