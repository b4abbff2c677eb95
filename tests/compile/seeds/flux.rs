//! `flux`: view, broker, submission, bursting.

use super::harness::Case;
use super::harness::Expect::{Error, File, FileLacks, Job, NoFile, NoJob, Object, Runner, Warning};

/// The cases.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "view",
        spec: "size: 2\ncontainers: [{image: app, command: echo}]",
        expect: &[
            Job("/spec/template/spec/initContainers/0/name", r#""flux-view""#),
            Job(
                "/spec/template/spec/initContainers/0/image",
                r#""ghcr.io/converged-computing/flux-view-ubuntu:tag-noble""#,
            ),
            Job("/spec/template/spec/volumes/1", r#"{"name": "flux-view", "emptyDir": {}}"#),
            Runner("/image", r#""app""#),
            Runner("/volumeMounts/1", r#"{"name": "flux-view", "mountPath": "/mnt/flux"}"#),
            File("flux-view.sh", "/mnt/flux/view/bin"),
            File("flux-view.sh", "export PYTHONPATH"),
            File("flux-view.sh", "export LD_LIBRARY_PATH"),
            File("flux-view.sh", "export fluxsocket=local:///mnt/flux/config/run/flux/local"),
            File("flux-connect.sh", "flux proxy \"$fluxsocket\" bash"),
        ],
    },
    Case {
        name: "leader-and-followers",
        spec: "size: 2\ncontainers: [{image: a, command: echo hi}]",
        expect: &[
            File("wait-0.sh", r#"if [ "$HOSTNAME" = "$mainHost" ]; then flux_gen_role=leader; fi"#),
            File("common.sh", "mainHost=job-0"),
            File("wait-0.sh", "flux broker --config-path=/mnt/flux/config/etc/flux/config"),
            Job("/spec/successPolicy/rules/0/succeededIndexes", r#""0""#),
        ],
    },
    Case {
        name: "certificate",
        spec: "size: 2\ncontainers: [{image: a, command: echo}]",
        expect: &[
            File("broker.toml", r#"curve_cert = "/mnt/flux/config/curve/curve.cert""#),
            Runner(
                "/volumeMounts/6",
                r#"{"name": "flux-curve", "mountPath": "/etc/flux-gen-curve", "readOnly": true}"#,
            ),
            NoFile("curve.cert"),
        ],
    },
    Case {
        name: "arch",
        spec: "size: 2\nflux: {arch: arm}\ncontainers: [{image: a, command: echo}]",
        expect: &[
            Job(
                "/spec/template/spec/initContainers/0/image",
                r#""ghcr.io/converged-computing/flux-view-ubuntu:arm-jammy""#,
            ),
            Job(
                "/spec/template/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/0/matchExpressions/0",
                r#"{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}"#,
            ),
        ],
    },
    Case {
        name: "view-image",
        spec: "size: 2\nflux: {container: {image: ghcr.io/converged-computing/flux-view-rocky:tag-9, pythonPath: /mnt/flux/view/lib/python3.11}}\n\
               containers: [{image: a, command: echo}]",
        expect: &[
            Job("/spec/template/spec/initContainers/0/image", r#""ghcr.io/converged-computing/flux-view-rocky:tag-9""#),
            File("flux-view.sh", "flux_gen_python=/mnt/flux/view/lib/python3.11\n"),
        ],
    },
    Case {
        name: "view-disabled",
        spec: "size: 2\nflux: {container: {image: ubuntu:focal, disable: true}}\ncontainers: [{image: a, command: echo}]",
        expect: &[
            Job("/spec/template/spec/initContainers/0/image", r#""ubuntu:focal""#),
            FileLacks("flux-init.sh", "/opt/view"),
            FileLacks("common.sh", "$viewroot/bin"),
            File("broker.toml", "[bootstrap]"),
            File("flux-view.sh", "fluxsocket="),
        ],
    },
    Case {
        name: "view-disabled-sidecar",
        spec: "size: 2\nflux: {container: {image: ubuntu:focal, disable: true}}\n\
               containers: [{image: a, command: echo, runFlux: true}, {image: b, name: side, command: echo}]",
        expect: &[Warning("FG229", "side")],
    },
    Case {
        name: "view-resources",
        spec: "size: 2\nflux: {container: {resources: {requests: {cpu: \"40\", memory: 200M}, limits: {cpu: \"40\", memory: 200M}}}}\n\
               containers: [{image: a, command: echo}]",
        expect: &[Job(
            "/spec/template/spec/initContainers/0/resources",
            r#"{"limits": {"cpu": "40", "memory": "200M"}, "requests": {"cpu": "40", "memory": "200M"}}"#,
        )],
    },
    Case {
        name: "guaranteed",
        spec: "apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\n\
               metadata: {name: job, namespace: ns, annotations: {flux-gen.dev/cpus: exclusive}}\nspec:\n  size: 2\n  \
               flux: {container: {resources: {requests: {cpu: 4, memory: 1Gi}, limits: {cpu: 4, memory: 1Gi}}}}\n  \
               containers: [{image: a, command: echo hi, resources: {requests: {cpu: 4, memory: 1Gi}, limits: {cpu: 4, memory: 1Gi}}}]\n",
        expect: &[File("wait-0.sh", "flux submit -n1 --quiet --watch echo hi"), File("R", r#""core": "0-3""#)],
    },
    Case {
        name: "completeWorkers",
        spec: "size: 2\nflux: {completeWorkers: true}\ncontainers: [{image: a, command: echo}]",
        expect: &[
            File("wait-0.sh", "            return 0\n        else\n"),
            FileLacks("wait-0.sh", "waiting for a leader"),
        ],
    },
    Case {
        name: "topology",
        spec: "size: 7\nflux: {topology: \"kary:2\"}\ncontainers: [{image: a, command: echo}]",
        expect: &[
            File("wait-0.sh", "-Stbon.topo=kary:2"),
            File("wait-0.sh", "flux_gen_parent=job-$(((flux_gen_rank - 1) / 2)).job"),
        ],
    },
    Case {
        name: "topology-flat",
        spec: "size: 7\ncontainers: [{image: a, command: echo}]",
        expect: &[FileLacks("wait-0.sh", "tbon.topo"), File("wait-0.sh", "flux_gen_parent=job-$((0)).job")],
    },
    Case {
        name: "submitCommand",
        spec: "size: 2\nflux: {submitCommand: flux mini submit}\ncontainers: [{image: a, command: echo hi}]",
        expect: &[File("wait-0.sh", "flux mini submit -n1 --quiet --watch echo hi"), Warning("FG228", "flux submit")],
    },
    Case {
        name: "optionFlags",
        spec: "size: 2\nflux: {optionFlags: \"-ompi=openmpi@5\"}\ncontainers: [{image: a, command: echo hi}]",
        expect: &[File("wait-0.sh", "flux submit -n1 -ompi=openmpi@5 --quiet --watch echo hi")],
    },
    Case {
        name: "logLevel",
        spec: "size: 2\nflux: {logLevel: 7}\ncontainers: [{image: a, command: echo}]",
        expect: &[File("wait-0.sh", "-Slog-stderr-level=7")],
    },
    Case {
        name: "wrap",
        spec: "size: 2\nflux: {wrap: \"strace,-e,network,-tt\"}\ncontainers: [{image: a, command: echo}]",
        expect: &[File("wait-0.sh", "flux start --wrap=strace,-e,network,-tt ")],
    },
    Case {
        name: "queuePolicy",
        spec: "size: 2\nflux: {scheduler: {queuePolicy: easy}}\ncontainers: [{image: a, command: echo}]",
        expect: &[
            File("broker.toml", "[sched-fluxion-qmanager]\nqueue-policy = \"easy\""),
            File("load-fluxion.sh", "flux module load sched-fluxion-qmanager"),
        ],
    },
    Case {
        name: "queuePolicy-unset",
        spec: "size: 2\ncontainers: [{image: a, command: echo}]",
        expect: &[File("broker.toml", "[sched-fluxion-qmanager]\nqueue-policy = \"fcfs\"")],
    },
    Case {
        name: "brokerConfig",
        spec: "size: 2\nflux:\n  brokerConfig: |\n    [bootstrap]\n    curve_cert = \"/mnt/flux/config/curve/curve.cert\"\n    \
               default_port = 8050\n    default_bind = \"tcp://*:%p\"\n    default_connect = \"tcp://%h.job:%p\"\n    \
               hosts = [{ host = \"job-[0-1]\" }]\n    [exec]\n    kill-timeout = \"10s\"\n\
               containers: [{image: a, command: echo}]",
        expect: &[File("broker.toml", "kill-timeout = \"10s\""), FileLacks("broker.toml", "sched-fluxion-qmanager")],
    },
    Case {
        name: "curveCert",
        spec: "size: 2\nflux:\n  curveCert: |\n    [exec]\n    not a certificate\ncontainers: [{image: a, command: echo}]",
        expect: &[Error("FG282", "")],
    },
    Case {
        name: "connectTimeout-unset",
        spec: "size: 2\ncontainers: [{image: a, command: echo}]",
        expect: &[File("wait-0.sh", "-Stbon.connect_timeout=5s")],
    },
    Case {
        name: "connectTimeout",
        spec: "size: 2\nflux: {connectTimeout: 10s}\ncontainers: [{image: a, command: echo}]",
        expect: &[File("wait-0.sh", "-Stbon.connect_timeout=10s")],
    },
    Case {
        name: "connectTimeout-empty",
        spec: "size: 2\nflux: {connectTimeout: \"\"}\ncontainers: [{image: a, command: echo}]",
        expect: &[FileLacks("wait-0.sh", "connect_timeout")],
    },
    Case {
        name: "connectTimeout-zero",
        spec: "size: 2\nflux: {connectTimeout: 0s}\ncontainers: [{image: a, command: echo}]",
        expect: &[FileLacks("wait-0.sh", "connect_timeout")],
    },
    Case {
        name: "connextTimeout",
        spec: "size: 2\nflux: {connextTimeout: \"\"}\ncontainers: [{image: a, command: echo}]",
        expect: &[Error("FG109", "connectTimeout")],
    },
    Case {
        name: "network-wait",
        spec: "size: 2\ncontainers: [{image: a, command: echo}]",
        expect: &[
            Object("Service", "job", "/spec/publishNotReadyAddresses", "true"),
            File("wait-0.sh", r#"until flux_gen_reachable "$flux_gen_parent" "$flux_gen_port"; do"#),
        ],
    },
    Case {
        name: "bursting-root",
        spec: "size: 2\nflux: {bursting: {clusters: [{size: 4, name: burst-0}]}}\ncontainers: [{image: a, command: echo}]",
        expect: &[File("hostlist", "job-[0-1],burst-0-[0-3]"), File("wait-0.sh", "flux_gen_role=leader")],
    },
    Case {
        name: "bursting-unnamed",
        spec: "size: 2\nflux: {bursting: {clusters: [{size: 4}]}}\ncontainers: [{image: a, command: echo}]",
        expect: &[File("hostlist", "job-[0-1],burst-0-[0-3]")],
    },
    Case {
        name: "leadBroker",
        spec: "apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\nmetadata: {name: burst-0, namespace: ns}\nspec:\n  size: 4\n  flux:\n    \
               leadBroker: {name: flux-sample, address: 24.123.50.123, port: 30093, size: 2}\n    bursting:\n      clusters: [{size: 4, name: burst-0}]\n  \
               containers: [{image: a}]\n",
        expect: &[
            File("hostlist", "flux-sample-[0-1],burst-0-[0-3]"),
            File(
                "broker.toml",
                r#"host = "flux-sample-0", bind = "tcp://*:8050", connect = "tcp://24.123.50.123:30093""#,
            ),
            File("wait-0.sh", "flux_gen_parent=24.123.50.123"),
            FileLacks("wait-0.sh", "flux_gen_role=leader\n"),
            Object("Job", "burst-0", "/spec/template/spec/volumes/5/secret/secretName", r#""flux-sample-curve""#),
        ],
    },
    Case {
        name: "leadBroker-hostlist",
        spec: "apiVersion: flux-framework.org/v1alpha2\nkind: MiniCluster\nmetadata: {name: gffw-compute-a, namespace: ns}\nspec:\n  size: 3\n  flux:\n    \
               leadBroker: {name: flux-sample, address: 24.123.50.123, port: 30093, hostlist: \"flux-sample-[0-3],gffw-compute-a-[0-2]\"}\n  \
               containers: [{image: a}]\n",
        expect: &[File("hostlist", "flux-sample-[0-3],gffw-compute-a-[0-2]")],
    },
    Case {
        name: "user-of-container",
        spec: "size: 2\ncontainers: [{image: a, command: echo}]",
        expect: &[FileLacks("wait-0.sh", "setpriv"), NoJob("/spec/template/spec/securityContext")],
    },
];
