//! Volumes.

use super::harness::Case;
use super::harness::Expect::{Error, Job, Object, Runner};

/// The cases. The user's volumes come after six of flux-gen's own.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "volume-hostPath",
        spec: "size: 2\ncontainers: [{image: a, command: ls /data, volumes: {data: {path: /data, hostPath: /data}}}]",
        expect: &[
            Job(
                "/spec/template/spec/volumes/6",
                r#"{"name": "data", "hostPath": {"path": "/data", "type": "Directory"}}"#,
            ),
            Runner("/volumeMounts/8", r#"{"name": "data", "mountPath": "/data"}"#),
        ],
    },
    Case {
        name: "volume-claim",
        spec: "size: 2\ncontainers: [{image: a, command: ls, volumes: {data: {path: /workflow, claimName: data}}}]",
        expect: &[Job(
            "/spec/template/spec/volumes/6",
            r#"{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}"#,
        )],
    },
    Case {
        name: "volume-used-twice",
        spec: "size: 2\ncontainers:\n- {image: a, command: ls, runFlux: true, volumes: {data: {path: /workflow, claimName: data}}}\n\
               - {image: b, name: b, command: ls, volumes: {data: {path: /workflow, claimName: other}}}\n",
        expect: &[Error("FG236", "another source")],
    },
    Case {
        name: "volume-emptyDir",
        spec: "size: 2\ncontainers: [{image: a, command: df, volumes: {my-empty-dir: {emptyDir: true}}}]",
        expect: &[
            Job("/spec/template/spec/volumes/6", r#"{"name": "my-empty-dir", "emptyDir": {}}"#),
            Runner("/volumeMounts/8", r#"{"name": "my-empty-dir", "mountPath": "/dev/shm"}"#),
        ],
    },
    Case {
        name: "volume-memory",
        spec: "size: 2\ncontainers: [{image: a, command: df, volumes: {my-empty-dir: {emptyDir: true, emptyDirMedium: memory, emptyDirSizeLimit: 64Gi}}}]",
        expect: &[Job(
            "/spec/template/spec/volumes/6",
            r#"{"name": "my-empty-dir", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}}"#,
        )],
    },
    Case {
        name: "volume-lowercase",
        spec: "size: 2\ncontainers: [{image: a, command: df, volumes: {myEmptyDir: {emptyDir: true}}}]",
        expect: &[Error("FG230", "lower")],
    },
    Case {
        name: "volume-configMap",
        spec: "services:\n- image: nginx\n  name: nginx\n  volumes:\n    nginx-conf: {configMapName: nginx-conf, path: /etc/nginx/conf.d, items: {flux.conf: flux.conf}}\n\
               containers: [{image: a, command: echo}]",
        expect: &[
            Object(
                "Pod",
                "job-services",
                "/spec/volumes/0",
                r#"{"name": "nginx-conf", "configMap": {"name": "nginx-conf", "items": [{"key": "flux.conf", "path": "flux.conf"}]}}"#,
            ),
            Object(
                "Pod",
                "job-services",
                "/spec/containers/0/volumeMounts/0",
                r#"{"name": "nginx-conf", "mountPath": "/etc/nginx/conf.d"}"#,
            ),
        ],
    },
    Case {
        name: "volume-secret",
        spec: "size: 2\ncontainers: [{image: a, command: ls, volumes: {certs: {path: /etc/certs, secretName: certs}}}]",
        expect: &[Job("/spec/template/spec/volumes/6", r#"{"name": "certs", "secret": {"secretName": "certs"}}"#)],
    },
    Case {
        name: "volumes-of-operator",
        spec: "size: 2\nvolumes: {data: {storageClass: hostpath, path: /tmp/data}}\ncontainers: [{image: a, command: ls}]",
        expect: &[Error("FG109", "the operator no longer makes volumes")],
    },
    Case {
        name: "existingVolumes",
        spec: "size: 2\ncontainers: [{image: a, command: ls, existingVolumes: {certs: {path: /etc/certs, secretName: certs}}}]",
        expect: &[Error("FG109", "write `volumes`")],
    },
];
