//! Size, life and network of a cluster; documents of earlier versions.

use super::harness::Case;
use super::harness::Expect::{Error, File, FileLacks, Job, NoFile, NoJob, NoObject, Object, Warning};

/// The cases.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "objects",
        spec: "size: 2\ncontainers: [{image: a, command: echo}]",
        expect: &[
            Job("/spec/completionMode", r#""Indexed""#),
            Job("/metadata/namespace", r#""ns""#),
            Object("ConfigMap", "job-scripts", "/immutable", "true"),
            Object("ConfigMap", "job-flux", "/immutable", "true"),
            Object("Service", "job", "/spec/clusterIP", r#""None""#),
            Object("Service", "job", "/spec/publishNotReadyAddresses", "true"),
            Job("/spec/template/spec/subdomain", r#""job""#),
            Job("/spec/template/spec/volumes/5/secret/secretName", r#""job-curve""#),
        ],
    },
    Case {
        name: "older-kinds",
        spec: "apiVersion: flux-framework.org/v1alpha1\nkind: FluxJob\nmetadata: {name: a}\nspec: {size: 1}\n---\n\
               apiVersion: flux-framework.org/v1alpha1\nkind: FluxSetup\nmetadata: {name: b}\nspec: {}\n",
        expect: &[Error("FG110", "`FluxJob` is a kind of the first drafts"), Error("FG110", "`FluxSetup`")],
    },
    Case {
        name: "older-version",
        spec: "apiVersion: flux-framework.org/v1alpha1\nkind: MiniCluster\nmetadata: {name: a}\n\
               spec: {containers: [{image: a, command: echo}]}\n",
        expect: &[Error("FG110", "flux-framework.org/v1alpha2")],
    },
    Case {
        name: "size",
        spec: "size: 4\ncontainers: [{image: a, command: echo}]",
        expect: &[
            Job("/spec/completions", "4"),
            Job("/spec/parallelism", "4"),
            File("hostlist", "job-[0-3]"),
            // All of them must be online: that is the broker's own default.
            FileLacks("wait-0.sh", "quorum"),
        ],
    },
    Case { name: "size-zero", spec: "size: 0\ncontainers: [{image: a, command: echo}]", expect: &[Error("FG210", "")] },
    Case {
        name: "maxSize",
        spec: "size: 2\nmaxSize: 10\ncontainers: [{image: a, command: echo, resources: {limits: {cpu: 1}}}]",
        expect: &[
            Job("/spec/completions", "2"),
            File("hostlist", "job-[0-9]"),
            File("R", r#""nodelist": ["job-[0-9]"]"#),
            File("quorum", "2"),
            File("nodes", "-n1"),
        ],
    },
    Case {
        name: "maxSize-below-size",
        spec: "size: 4\nmaxSize: 2\ncontainers: [{image: a, command: echo, resources: {limits: {cpu: 1}}}]",
        expect: &[Error("FG212", "")],
    },
    Case {
        name: "tasks-unset",
        spec: "size: 4\ncontainers: [{image: a, command: echo hi}]",
        expect: &[File("wait-0.sh", "flux submit -n1 --quiet --watch echo hi")],
    },
    Case {
        name: "tasks-more-than-nodes",
        spec: "size: 4\ntasks: 16\ncontainers: [{image: a, command: echo hi}]",
        expect: &[File("wait-0.sh", "flux submit -N 4 -n16 --quiet --watch echo hi")],
    },
    Case {
        name: "tasks-zero",
        spec: "size: 4\ntasks: 0\ncontainers: [{image: a, command: echo hi}]",
        expect: &[File("wait-0.sh", "flux submit -N 4 --quiet --watch echo hi")],
    },
    Case {
        name: "interactive",
        spec: "size: 2\ninteractive: true\ncontainers: [{image: a}]",
        expect: &[File("wait-0.sh", "-Sbroker.rc2_none"), FileLacks("wait-0.sh", "flux submit")],
    },
    Case {
        name: "launcher",
        spec: "size: 2\ncontainers: [{image: a, launcher: true, command: snakemake --flux}]",
        expect: &[File("wait-0.sh", r#"set -- "$@" snakemake --flux"#), FileLacks("wait-0.sh", "flux submit")],
    },
    Case {
        name: "launcher-of-spec",
        spec: "size: 2\nlauncher: true\ncontainers: [{image: a, command: snakemake --flux}]",
        expect: &[File("wait-0.sh", r#"set -- "$@" snakemake --flux"#), FileLacks("wait-0.sh", "flux submit")],
    },
    Case {
        name: "jobLabels",
        spec: "jobLabels: {job-attribute-a: dinosaur-a}\ncontainers: [{image: a, command: echo}]",
        expect: &[
            Job("/metadata/labels", r#"{"job-attribute-a": "dinosaur-a"}"#),
            NoJob("/spec/template/metadata/labels/job-attribute-a"),
        ],
    },
    Case {
        name: "job-index",
        spec: "apiVersion: v1\nkind: Service\nmetadata: {name: lead, namespace: ns}\n\
               spec:\n  selector: {job-index: \"0\"}\n  ports: [{port: 80}]\n",
        expect: &[Error("FG293", "batch.kubernetes.io/job-completion-index")],
    },
    Case {
        name: "deadlineSeconds",
        spec: "deadlineSeconds: 100\ncontainers: [{image: a, command: echo}]",
        expect: &[Job("/spec/activeDeadlineSeconds", "100"), NoJob("/spec/suspend")],
    },
    Case {
        name: "deadline-unset",
        spec: "containers: [{image: a, command: echo}]",
        expect: &[Job("/spec/activeDeadlineSeconds", "31500000")],
    },
    Case {
        name: "affinity",
        spec: "size: 2\ncontainers: [{image: a, command: echo}]",
        expect: &[
            Job(
                "/spec/template/spec/affinity/podAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/podAffinityTerm/topologyKey",
                r#""topology.kubernetes.io/zone""#,
            ),
            Job(
                "/spec/template/spec/affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/podAffinityTerm/topologyKey",
                r#""kubernetes.io/hostname""#,
            ),
        ],
    },
    Case {
        name: "disableAffinity",
        spec: "size: 2\nnetwork: {disableAffinity: true}\ncontainers: [{image: a, command: echo}]",
        expect: &[NoJob("/spec/template/spec/affinity")],
    },
    Case {
        name: "headlessName",
        spec: "size: 2\nnetwork: {headlessName: my-network}\ncontainers: [{image: a, command: echo}]",
        expect: &[
            Object("Service", "my-network", "/spec/selector/job-name", r#""job""#),
            Job("/spec/template/spec/subdomain", r#""my-network""#),
            File("broker.toml", r#"default_connect = "tcp://%h.my-network:%p""#),
            NoObject("Service", "job"),
        ],
    },
    Case {
        name: "minimalService",
        spec: "size: 2\nflux: {minimalService: true}\ncontainers: [{image: a, command: echo}]",
        expect: &[
            Object("Service", "job", "/spec/selector/batch.kubernetes.io~1job-completion-index", r#""0""#),
            Object("Service", "job", "/spec/ports/0/port", "8050"),
        ],
    },
    Case {
        name: "logging-quiet",
        spec: "size: 2\nlogging: {quiet: true}\ncontainers: [{image: a, command: echo}]",
        expect: &[File("common.sh", "flux_gen_quiet=1"), File("wait-0.sh", "-Slog-stderr-level=0")],
    },
    Case {
        name: "logging-test",
        spec: "size: 2\nlogging: {test: true}\ncontainers: [{image: a, command: echo}]",
        expect: &[Error("FG109", "write `quiet`")],
    },
    Case {
        name: "logging-strict",
        spec: "size: 2\ncontainers: [{image: a, command: echo}]",
        expect: &[File("common.sh", "flux_gen_strict=1")],
    },
    Case {
        name: "logging-not-strict",
        spec: "size: 2\nlogging: {strict: false}\ncontainers: [{image: a, command: echo}]",
        expect: &[File("common.sh", "flux_gen_strict=0")],
    },
    Case {
        name: "logging-timed",
        spec: "size: 2\nlogging: {timed: true}\ncontainers: [{image: a, command: echo}]",
        expect: &[
            File("wait-0.sh", "timed.sh fluxsubmit flux submit"),
            File("wait-0.sh", "flux_gen_elapsed fluxstart"),
            File("common.sh", "FLUXTIME %s wall time %s"),
            FileLacks("timed.sh", "/usr/bin/time"),
        ],
    },
    Case {
        name: "logging-debug",
        spec: "size: 2\nlogging: {debug: true}\ncontainers: [{image: a, command: echo}]",
        expect: &[File("wait-0.sh", "flux submit -n1 -vvv --quiet --watch echo")],
    },
    Case {
        name: "logging-zeromq",
        spec: "size: 2\nlogging: {zeromq: true}\ncontainers: [{image: a, command: echo}]",
        expect: &[File("wait-0.sh", "-Stbon.zmqdebug=1")],
    },
    Case {
        name: "archive",
        spec: "size: 2\narchive: {path: /state/archive.tar.gz}\n\
               containers: [{image: a, command: echo, volumes: {state: {path: /state, claimName: c}}}]",
        expect: &[
            File("wait-0.sh", "if [ -e /state/archive.tar.gz ]; then"),
            File("wait-0.sh", "-Scontent.restore=/state/archive.tar.gz"),
            File("wait-0.sh", "-Scontent.dump=/state/.new-archive.tar.gz"),
            Job("/spec/template/spec/terminationGracePeriodSeconds", "90"),
        ],
    },
    Case {
        name: "archive-not-kept",
        spec: "size: 2\narchive: {path: /state/archive.tar.gz}\ncontainers: [{image: a, command: echo}]",
        expect: &[Warning("FG277", "")],
    },
    Case {
        name: "no-status-and-queue",
        spec: "cleanup: true\ncontainers: [{image: a, command: echo}]",
        expect: &[Warning("FG278", "no controller deletes pods"), NoFile("flux-job.batch")],
    },
    Case {
        name: "unknown-field",
        spec: "siez: 2\ncontainers: [{image: a, command: echo}]",
        expect: &[Error("FG102", "size")],
    },
];
