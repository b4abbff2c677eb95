//! What a Job says about its bundle, so that `audit` can tell later what other tools made of it.

use crate::model::Cluster;
use crate::object::Object;

/// Annotation of the Job: all objects of its bundle as `kind/name`, comma separated, in the order in which they are applied;
/// the Job itself and its Secret (wherever that comes from) included. `kubectl get` takes the same words.
pub const OBJECTS: &str = "flux-gen.dev/objects";
/// Annotation of the Job: the setting `kubernetes-version`.
pub const KUBERNETES_VERSION: &str = "flux-gen.dev/kubernetes-version";
/// Annotation of the Job: the setting `secrets`, or `existing` where the Secret is in another cluster's bundle.
pub const SECRETS: &str = "flux-gen.dev/secrets";

/// Annotates the Job. Names are final: this comes after [`super::finish`]. Only metadata changes, so no Job is made anew.
pub fn mark(objects: &mut [Object], cluster: &Cluster, secrets: &str) {
    let mut names = vec![format!("secret/{}", cluster.certificate.secret)];
    names.extend(objects.iter().map(|object| format!("{}/{}", object.kind().to_lowercase(), object.name())));
    let names = names.join(",");
    for object in objects.iter_mut().filter(|object| matches!(object, Object::Job(_))) {
        let annotations = object.metadata_mut().annotations.get_or_insert_default();
        for (key, value) in
            [(OBJECTS, names.clone()), (KUBERNETES_VERSION, cluster.target.to_string()), (SECRETS, secrets.to_owned())]
        {
            annotations.insert(key.to_owned(), value);
        }
    }
}
