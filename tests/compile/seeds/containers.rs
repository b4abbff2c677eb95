//! Containers and pods.

use super::harness::Case;
use super::harness::Expect::{Error, File, FileLacks, Job, NoFile, Object, Runner, Sidecar};

/// The cases.
pub(crate) const CASES: &[Case] = &[
    Case {
        name: "pod-labels",
        spec: "pod: {labels: {pod-attribute-a: dinosaur-a, namespace: mine}}\ncontainers: [{image: a, command: echo}]",
        expect: &[
            Job("/spec/template/metadata/labels/pod-attribute-a", r#""dinosaur-a""#),
            // The documents: "would be over-ridden if you defined it here".
            Job("/spec/template/metadata/labels/namespace", r#""ns""#),
        ],
    },
    Case {
        name: "pod-annotations",
        spec: "pod: {annotations: {pod-annotation-a: dinosaur-a}}\ncontainers: [{image: a, command: echo}]",
        expect: &[Job("/spec/template/metadata/annotations/pod-annotation-a", r#""dinosaur-a""#)],
    },
    Case {
        name: "pod-resources",
        spec: "pod: {resources: {memory: 500M, cpu: 4}}\ncontainers: [{image: a, command: echo}]",
        expect: &[Job("/spec/template/spec/resources/requests", r#"{"cpu": "4", "memory": "500M"}"#)],
    },
    Case {
        name: "pod-fields",
        spec: "pod:\n  schedulerName: fluence\n  serviceAccountName: my-service-account\n  restartPolicy: Never\n  \
               runtimeClassName: nvidia\n  automountServiceAccountToken: true\n  \
               nodeSelector: {iam.gke.io/gke-metadata-server-enabled: \"true\"}\n  hostIPC: true\n  hostPID: true\n\
               containers: [{image: a, command: echo}]",
        expect: &[
            Job("/spec/template/spec/schedulerName", r#""fluence""#),
            Job("/spec/template/spec/serviceAccountName", r#""my-service-account""#),
            Job("/spec/template/spec/restartPolicy", r#""Never""#),
            Job("/spec/template/spec/runtimeClassName", r#""nvidia""#),
            Job("/spec/template/spec/automountServiceAccountToken", "true"),
            Job("/spec/template/spec/nodeSelector", r#"{"iam.gke.io/gke-metadata-server-enabled": "true"}"#),
            Job("/spec/template/spec/hostIPC", "true"),
            Job("/spec/template/spec/hostPID", "true"),
        ],
    },
    Case {
        name: "name-of-sidecar",
        spec: "containers: [{image: a, command: echo, runFlux: true}, {image: b, command: echo}]",
        expect: &[Error("FG200", "")],
    },
    Case {
        name: "two-runners",
        spec: "containers: [{image: a, command: echo, runFlux: true}, {image: b, name: b, command: echo, runFlux: true}]",
        expect: &[Error("FG220", "")],
    },
    Case {
        name: "one-container-runs-flux",
        spec: "containers: [{image: a, command: echo hi, runFlux: false}]",
        expect: &[File("wait-0.sh", "flux submit -N 1 -n1 --quiet --watch echo hi")],
    },
    Case {
        name: "cores",
        spec: "size: 2\ncontainers: [{image: a, command: echo, cores: 4}]",
        expect: &[File("wait-0.sh", "export cores=4"), File("R", r#""core": "0-3""#)],
    },
    Case {
        name: "cores-from-limits",
        spec: "size: 2\ncontainers: [{image: a, command: echo, resources: {limits: {cpu: 4}}}]",
        expect: &[File("R", r#""core": "0-3""#), File("wait-0.sh", "-o cpu-affinity=off")],
    },
    Case {
        name: "no-command",
        spec: "size: 2\ncontainers: [{image: a}]",
        expect: &[FileLacks("wait-0.sh", "flux submit"), FileLacks("wait-0.sh", "rc2_none")],
    },
    Case {
        name: "command",
        spec: "size: 2\ncontainers: [{image: a, command: lmp -v x 2 -v y 2 -v z 2 -in in.reaxc.hns -nocite}]",
        expect: &[File("wait-0.sh", "--watch lmp -v x 2 -v y 2 -v z 2 -in in.reaxc.hns -nocite\n")],
    },
    Case {
        name: "resources",
        spec: "size: 2\ncontainers: [{image: a, command: echo, cores: 1, resources: {limits: {memory: 500M, cpu: 4, gpu-vendor.example/example-gpu: 1, vpc.amazonaws.com/efa: 1}}}]",
        expect: &[
            Runner(
                "/resources/limits",
                r#"{"cpu": "4", "memory": "500M", "gpu-vendor.example/example-gpu": "1", "vpc.amazonaws.com/efa": "1"}"#,
            ),
            File("R", r#""gpu": "0""#),
        ],
    },
    Case {
        name: "resources-wrong-type",
        spec: "containers: [{image: a, command: echo, resources: {limits: {cpu: 0.5}}}]",
        expect: &[Error("FG107", "0.5")],
    },
    Case {
        name: "image-fields",
        spec: "containers: [{image: a, command: echo, imagePullSecret: flux-image-secret, pullAlways: true, workingDir: /home/flux/examples}]",
        expect: &[
            Job("/spec/template/spec/imagePullSecrets", r#"[{"name": "flux-image-secret"}]"#),
            Runner("/imagePullPolicy", r#""Always""#),
            Runner("/workingDir", r#""/home/flux/examples""#),
        ],
    },
    Case {
        name: "environment",
        spec: "containers: [{image: a, command: echo, environment: {RABBITMQ_DEFAULT_USER: aha}}]",
        expect: &[Runner("/env", r#"[{"name": "RABBITMQ_DEFAULT_USER", "value": "aha"}]"#)],
    },
    Case {
        name: "ports",
        spec: "containers: [{image: a, command: echo, runFlux: true}, {image: b, name: rabbit, ports: [15672, 5671, 5672]}]",
        expect: &[
            Sidecar("/ports/0/containerPort", "15672"),
            Sidecar("/restartPolicy", r#""Always""#),
            Object("Service", "rabbit", "/spec/ports/2/port", "5672"),
        ],
    },
    Case {
        name: "sidecar-has-flux",
        spec: "containers: [{image: a, command: echo, runFlux: true}, {image: b, name: side, command: flux jobs}]",
        expect: &[
            Sidecar("/command", r#"["/bin/bash", "/flux_operator/start-1.sh"]"#),
            File("start-1.sh", r#"until [ -S "$configroot/run/flux/local" ]; do"#),
            File("start-1.sh", "flux_gen_run flux jobs"),
            File("common.sh", "export fluxsocket="),
            Sidecar("/volumeMounts/1/mountPath", r#""/mnt/flux""#),
        ],
    },
    Case {
        name: "services",
        spec: "services: [{image: registry, name: registry, ports: [5000]}]\ncontainers: [{image: a, command: echo}]",
        expect: &[
            Object("Pod", "job-services", "/spec/containers/0/image", r#""registry""#),
            Object("Pod", "job-services", "/spec/hostname", r#""job-services""#),
            Object("Pod", "job-services", "/spec/subdomain", r#""job""#),
        ],
    },
    Case {
        name: "preCommand",
        spec: "containers:\n- image: a\n  command: echo\n  preCommand: |\n    ### Heading\n    asFlux=\"sudo -u flux -E PATH=$PATH -E HOME=/home/flux\"\n",
        expect: &[
            File("hook-0-preCommand.sh", "### Heading\nasFlux=\"sudo -u flux -E PATH=$PATH -E HOME=/home/flux\"\n"),
            File("wait-0.sh", "asFlux=\nflux_gen_hook /flux_operator/hook-0-preCommand.sh\n"),
            File("wait-0.sh", "flux_gen_run $asFlux flux broker"),
        ],
    },
    Case {
        name: "hooks",
        spec: "containers:\n- image: a\n  command: echo\n  commands: {init: export A=1, pre: ls, brokerPre: echo b, workerPre: echo w, post: echo p}\n",
        expect: &[
            File("hook-0-init.sh", "export A=1\n"),
            File("hook-0-pre.sh", "ls\n"),
            File("hook-0-brokerPre.sh", "echo b\n"),
            File("hook-0-workerPre.sh", "echo w\n"),
            File("hook-0-post.sh", "echo p\n"),
        ],
    },
    Case {
        name: "hooks-older-names",
        spec: "containers:\n- image: a\n  command: echo\n  commands: {preWorker: echo hello I am a worker, preBroker: echo hello I am the lead broker}\n",
        expect: &[
            File("hook-0-workerPre.sh", "echo hello I am a worker\n"),
            File("hook-0-brokerPre.sh", "echo hello I am the lead broker\n"),
        ],
    },
    Case {
        name: "script",
        spec: "containers:\n- image: a\n  commands:\n    script: |\n      #!/bin/bash\n      echo \"This is rank \\${FLUX_TASK_RANK}\"\n",
        expect: &[
            File("script-0.sh", "#!/bin/bash\necho \"This is rank ${FLUX_TASK_RANK}\"\n"),
            File("wait-0.sh", "--watch /bin/bash /flux_operator/script-0.sh"),
            Job("/spec/template/spec/volumes/3/configMap/defaultMode", "365"),
        ],
    },
    Case {
        name: "script-and-command",
        spec: "containers: [{image: a, command: echo, commands: {script: echo}}]",
        expect: &[Error("FG221", "")],
    },
    Case {
        name: "runFluxAsRoot",
        spec: "containers: [{image: a, command: echo, commands: {runFluxAsRoot: true}}]",
        expect: &[FileLacks("wait-0.sh", "setpriv")],
    },
    Case {
        name: "runFluxAsRoot-false",
        spec: "containers: [{image: a, command: echo, commands: {runFluxAsRoot: false}}]",
        expect: &[File("wait-0.sh", "flux_gen_name=flux\nflux_gen_uid=1000\n")],
    },
    Case {
        name: "prefix",
        spec: "containers: [{image: a, command: echo hi, commands: {prefix: fusion}}]",
        expect: &[File("wait-0.sh", r#"set -- "$@" fusion flux submit"#)],
    },
    Case {
        name: "fluxUser",
        spec: "containers: [{image: a, command: echo, fluxuser: {uid: 1002, name: flux}}]",
        expect: &[
            File("wait-0.sh", "flux_gen_name=flux\nflux_gen_uid=1002\n"),
            // A user that the image has keeps its uid.
            File("wait-0.sh", "flux_gen_uid=$flux_gen_u\n"),
        ],
    },
    Case {
        name: "fluxUser-twice",
        spec: "containers: [{image: a, command: echo, fluxuser: {uid: 1002}, fluxUser: {uid: 1003}}]",
        expect: &[Error("FG227", "")],
    },
    Case {
        name: "batch",
        spec: "containers:\n- image: rockylinux:9\n  batch: true\n  command: |\n    echo hello world 1\n    echo hello world 2\n",
        expect: &[
            File(
                "flux-job.batch",
                "flux submit --flags waitable --error=/tmp/fluxout/job-0.err --output=/tmp/fluxout/job-0.out echo hello world 1\n",
            ),
            File("flux-job.batch", "--output=/tmp/fluxout/job-1.out echo hello world 2\n"),
            File("wait-0.sh", "flux batch -N 1 -n1 "),
        ],
    },
    Case {
        name: "batch-logs",
        spec: "containers:\n- image: rockylinux:9\n  batch: true\n  logs: /tmp/another-out\n  command: echo hello world 1\n",
        expect: &[File("flux-job.batch", "--output=/tmp/another-out/job-0.out echo hello world 1\n")],
    },
    Case {
        name: "batchRaw",
        spec: "containers:\n- image: a\n  batch: true\n  batchRaw: true\n  command: |\n    flux filemap map -C /data mpi.sif\n    \
               flux exec -x 0 -r all flux filemap get -C /data\n",
        expect: &[
            File(
                "flux-job.batch",
                "#!/bin/bash\nflux filemap map -C /data mpi.sif\nflux exec -x 0 -r all flux filemap get -C /data\n",
            ),
            FileLacks("flux-job.batch", "flux submit"),
        ],
    },
    Case {
        name: "diagnostics",
        spec: "containers: [{image: a, command: echo, diagnostics: true}]",
        expect: &[
            File("wait-0.sh", "/bin/bash /flux_operator/diagnostics.sh"),
            File("diagnostics.sh", "exec sleep infinity"),
            FileLacks("wait-0.sh", "flux submit"),
        ],
    },
    Case {
        name: "diagnostics-off",
        spec: "containers: [{image: a, command: echo, diagnostics: false}]",
        expect: &[File("wait-0.sh", "flux submit"), NoFile("diagnostics.sh")],
    },
    Case {
        name: "lifeCycle",
        spec: "containers: [{image: a, command: echo, lifeCycle: {postStartExec: echo start, preStopExec: echo stop}}]",
        expect: &[
            Runner("/lifecycle/postStart/exec/command", r#"["/bin/sh", "-c", "echo start"]"#),
            Runner("/lifecycle/preStop/exec/command", r#"["/bin/sh", "-c", "echo stop"]"#),
        ],
    },
];
