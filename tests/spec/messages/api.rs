//! Documents and fields that the API does not have.

use super::{minicluster, says};

#[test]
fn required_missing() {
    says("apiVersion: flux-framework.org/v1alpha2
kind: MiniCluster
metadata: {}
spec:
  size: 1
", "FG106 3:1 `metadata` metadata.name is required | add `name:`. Name of the MiniCluster; also of its Job, its headless Service and the container that runs Flux. `generateName` cannot take its place.
FG106 4:1 `spec` spec.containers is required | add `containers:`. Containers of every pod; exactly one runs Flux.");
}

#[test]
fn required_metadata_and_spec() {
    says(
        "apiVersion: flux-framework.org/v1alpha2
kind: MiniCluster
",
        "FG106 1:1 `apiVersion` metadata is required | add `metadata:`. Name, namespace, labels and annotations.
FG106 1:1 `apiVersion` spec is required | add `spec:`. What the cluster is.",
    );
}

#[test]
fn required_inside() {
    says(&minicluster("  containers:
  - image: rockylinux:9
    securityContext:
      seccompProfile:
        localhostProfile: x
    secrets:
      A: {name: s}
  pod:
    securityContext:
      sysctls:
      - name: a
  flux:
    bursting:
      leadBroker:
        name: b
"), "FG106 9:7 `seccompProfile` spec.containers[0].securityContext.seccompProfile.type is required | add `type:`. Kind of profile: Unconfined, RuntimeDefault or Localhost.
FG106 12:7 `A` spec.containers[0].secrets.A.key is required | add `key:`. Key of the Secret whose value is taken.
FG106 16:9 `name` spec.pod.securityContext.sysctls[0].value is required | add `value:`. What to set it to, in quotes.
FG106 19:7 `leadBroker` spec.flux.bursting.leadBroker.address is required | add `address:`. Address at which its leader is reached: IP or host name.");
}

#[test]
fn required_null_is_absent() {
    says(
        &minicluster(
            "  containers:
",
        ),
        "FG106 5:1 `spec` spec.containers is required | add `containers:`. Containers of every pod; exactly one runs Flux.",
    );
}

#[test]
fn names_bad() {
    says("apiVersion: flux-framework.org/v1alpha2
kind: MiniCluster
metadata:
  name: MyCluster
  namespace: a.b
spec:
  containers:
  - image: rockylinux:9
", "FG108 4:9 `MyCluster` metadata.name: `MyCluster` is not a lower-case RFC 1123 subdomain | write `mycluster`
FG108 5:14 `a.b` metadata.namespace: `a.b` is not a lower-case RFC 1123 label | use lower-case letters, digits and `-`, with a letter or digit at both ends");
}

#[test]
fn names_generate() {
    says(
        "apiVersion: flux-framework.org/v1alpha2
kind: MiniCluster
metadata:
  generateName: a-
spec:
  containers:
  - image: rockylinux:9
",
        "FG106 3:1 `metadata` metadata.name is required | add `name:`. Name of the MiniCluster; also of its Job, its headless Service and the container that runs Flux. `generateName` cannot take its place.",
    );
}

#[test]
fn unknown_near() {
    says(
        &minicluster(
            "  maxsize: 2
  taks: 1
  containers:
  - image: rockylinux:9
    wokringDir: /
",
        ),
        "FG102 6:3 `maxsize` spec.maxsize is no field of the API | did you mean `maxSize`?
FG102 7:3 `taks` spec.taks is no field of the API | did you mean `tasks`?
FG102 10:5 `wokringDir` spec.containers[0].wokringDir is no field of the API | did you mean `workingDir`?",
    );
}

#[test]
fn unknown_elsewhere() {
    says(&minicluster("  quiet: true
  name: x
  containers:
  - image: rockylinux:9
"), "FG102 6:3 `quiet` spec.quiet is no field of the API | `quiet` belongs to spec.logging.quiet
FG102 7:3 `name` spec.name is no field of the API | `name` belongs to metadata.name, spec.containers[].name, spec.containers[].fluxUser.name and 11 more");
}

#[test]
fn unknown_nowhere() {
    says(&minicluster("  containers:
  - image: rockylinux:9
    frobnicate: 1
  archive:
    frobnicate: 1
"), "FG102 8:5 `frobnicate` spec.containers[0].frobnicate is no field of the API | `flux-gen explain spec.containers` lists the fields
FG102 10:5 `frobnicate` spec.archive.frobnicate is no field of the API | spec.archive has the fields path");
}

#[test]
fn unknown_top() {
    says(
        "extra: 1
apiVersion: flux-framework.org/v1alpha2
kind: MiniCluster
metadata:
  name: a
spec:
  containers:
  - image: rockylinux:9
",
        "FG102 1:1 `extra` extra is no field of the API | the document has the fields apiVersion, kind, metadata, spec, status",
    );
}

#[test]
fn unknown_metadata() {
    says(
        "apiVersion: flux-framework.org/v1alpha2
kind: MiniCluster
metadata:
  name: a
  nmespace: b
  finalizers: [x]
  uid: 1
spec:
  containers:
  - image: rockylinux:9
",
        "FG102 5:3 `nmespace` metadata.nmespace is no field of the API | did you mean `namespace`?",
    );
}

#[test]
fn older_moved() {
    says(&minicluster("  containers:
  - image: rockylinux:9
    existingVolumes: {}
    env: []
    securityContext:
      addCapabilities: [SYS_PTRACE]
  volumes: {}
  users: []
  fluxRestful: {}
  localDeploy: true
  deadline: 5
  logging:
    test: true
  flux:
    connextTimeout: ''
"), "FG109 8:5 `existingVolumes` spec.containers[0].existingVolumes is a field of an older API | write `volumes`, with the same fields
FG109 9:5 `env` spec.containers[0].env is a field of an older API | write `environment`, a mapping from names to texts
FG109 11:7 `addCapabilities` spec.containers[0].securityContext.addCapabilities is a field of an older API | write `capabilities.add`
FG109 12:3 `volumes` spec.volumes is a field of an older API | the operator no longer makes volumes: name existing ones in `spec.containers[].volumes` (hostPath, claimName, …) and put their PersistentVolumeClaim in a document beside this one
FG109 13:3 `users` spec.users is a field of an older API | accounts for the REST server are gone; the user that runs Flux is `spec.containers[].fluxUser`
FG109 14:3 `fluxRestful` spec.fluxRestful is a field of an older API | run the REST server as a container of its own in `spec.containers`, with `runFlux: false` and `ports`
FG109 15:3 `localDeploy` spec.localDeploy is a field of an older API | take it out: folders of the node are `spec.containers[].volumes.<name>.hostPath` now
FG109 16:3 `deadline` spec.deadline is a field of an older API | write `spec.deadlineSeconds`
FG109 18:5 `test` spec.logging.test is a field of an older API | write `quiet`
FG109 20:5 `connextTimeout` spec.flux.connextTimeout is a field of an older API | write `connectTimeout` (the documentation misspelt it once)");
}

#[test]
fn older_v1alpha1() {
    says("apiVersion: flux-framework.org/v1alpha1
kind: MiniCluster
metadata:
  name: a
spec:
  containers:
  - image: rockylinux:9
  logging: {test: true}
", "FG110 1:13 `flux-framework.org/v1alpha1` v1alpha1 MiniClusters had other fields, and flux-gen compiles v1alpha2 | write `apiVersion: flux-framework.org/v1alpha2`; fields that moved are reported below
FG109 8:13 `test` spec.logging.test is a field of an older API | write `quiet`");
}

#[test]
fn older_kinds() {
    says("apiVersion: flux-framework.org/v1alpha1
kind: FluxJob
metadata: {name: a}
---
apiVersion: flux-framework.org/v1alpha1
kind: FluxSetup
metadata: {name: a}
", "FG110 2:7 `FluxJob` `FluxJob` is a kind of the first drafts of the Flux Operator | write `kind: MiniCluster` with `spec.size` and `spec.containers`; a FluxSetup has no successor and is not needed
FG110 6:7 `FluxSetup` `FluxSetup` is a kind of the first drafts of the Flux Operator | write `kind: MiniCluster` with `spec.size` and `spec.containers`; a FluxSetup has no successor and is not needed");
}

#[test]
fn kinds_wrong() {
    says("kind: MiniCluster
---
metadata: {}
---
- a
---
hello
---
apiVersion: 1
kind: [x]
", "FG110 1:1 `kind` the document has no apiVersion | a MiniCluster starts with `apiVersion: flux-framework.org/v1alpha2` and `kind: MiniCluster`
FG110 3:1 `metadata` the document has no apiVersion | a MiniCluster starts with `apiVersion: flux-framework.org/v1alpha2` and `kind: MiniCluster`
FG110 3:1 `metadata` the document has no kind | a MiniCluster starts with `apiVersion: flux-framework.org/v1alpha2` and `kind: MiniCluster`
FG110 5:1 `-` a Kubernetes document is a mapping with apiVersion, kind and metadata
FG110 7:1 `hello` a Kubernetes document is a mapping with apiVersion, kind and metadata
FG110 9:13 `1` apiVersion has to be text
FG110 10:7 `[` kind has to be text");
}

#[test]
fn kinds_near() {
    says("apiVersion: flux-framework.org/v1alpha2
kind: Minicluster
metadata:
  name: a
spec:
  containers:
  - image: rockylinux:9
---
apiVersion: flux-framework.io/v1alpha2
kind: MiniCluster
metadata:
  name: a
spec:
  containers:
  - image: rockylinux:9
", "FG110 2:7 `Minicluster` `Minicluster` is no kind of flux-framework.org/v1alpha2 | did you mean `MiniCluster`?
FG110 9:13 `flux-framework.io/v1alpha2` `flux-framework.io/v1alpha2` is no API version of MiniClusters | write `apiVersion: flux-framework.org/v1alpha2`");
}

#[test]
fn kinds_companion() {
    says(
        "apiVersion: v1
kind: ConfigMap
metadata: {}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
data:
  a: yes
  b: .nan
  c: 0644
  d: 2024-01-31
",
        r#"FG106 3:11 `{}` this ConfigMap has no metadata.name | flux-gen passes documents on under their name; generateName cannot be used
FG105 9:6 `yes` data.a: `yes` without quotes is the boolean true to YAML 1.1 readers (kubectl) and text to YAML 1.2 readers | write true if that is meant, else write "yes"
FG103 10:6 `.nan` data.b: JSON has no such number | write ".nan""#,
    );
}

#[test]
fn kinds_kustomization() {
    says("apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [a.yaml]
---
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [a.yaml]
namePrefix: x-
", "FG120 - `` there is no MiniCluster to read | name files or folders with MiniCluster documents; `flux-gen new NAME` writes a first one
FG121 note 1:1 `apiVersion` skipped: a kustomization is no object of the cluster
FG121 warning 8:1 `namePrefix` `namePrefix` of this kustomization has no effect: flux-gen does not run kustomize | feed flux-gen with the output of `kustomize build`, or use `patches` of the project file");
}

#[test]
fn kinds_empty() {
    says("# nothing
---
---
~
", "FG120 - `` there is no MiniCluster to read | name files or folders with MiniCluster documents; `flux-gen new NAME` writes a first one
FG120 warning 1:1 `` the file holds no document");
}
