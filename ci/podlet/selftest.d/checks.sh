# shellcheck shell=bash
# shellcheck disable=SC2154  # sourced by ../selftest, which sets image, ns, state, work, podlet
# The checks, one block each.

t=$(now)
apply <<YAML
apiVersion: v1
kind: Service
metadata: {name: net}
spec: {clusterIP: None, publishNotReadyAddresses: true, selector: {job-name: net}, ports: [{name: a, port: 7000}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: net}
spec:
  completions: 2
  parallelism: 2
  completionMode: Indexed
  backoffLimit: 0
  template:
    spec:
      subdomain: net
      restartPolicy: Never
      automountServiceAccountToken: false
      containers:
      - name: main
        image: $image
        command: [bash, -c]
        args:
        - |
          if [ "\$JOB_COMPLETION_INDEX" = 0 ]; then
            exec perl -MIO::Socket::INET -e '\$s = IO::Socket::INET->new(Listen => 5, LocalPort => 7000, ReuseAddr => 1) or die;
              \$c = \$s->accept; print "got ", scalar <\$c>; print \$c "back\n"'
          fi
          for i in \$(seq 100); do
            if exec 3<>/dev/tcp/net-0.net/7000; then echo hello >&3; cat <&3; exit 0; fi 2>/dev/null
            sleep 0.1
          done
          exit 1
YAML
check 'indexed job: index 1 reaches <job>-0.<svc> by TCP' "$t" 'SuccessCriteriaMet Complete' "$(job_is net Complete)"
check 'indexed job: output of both' "$t" 'got hello|back' "$(log "$(pod_of net 0)" main)|$(log "$(pod_of net 1)" main)"

t=$(now)
apply <<YAML
apiVersion: v1
kind: Pod
metadata: {name: codes}
spec:
  restartPolicy: Never
  containers:
  - {name: seven, image: $image, command: [bash, -c, exit 7]}
  - {name: killed, image: $image, command: [bash, -c, '(kill -KILL \$BASHPID); exit \$?']}
  - {name: missing, image: $image, command: [/no/such/program]}
YAML
phase codes Failed >/dev/null
check 'exit codes: 7, 137 by signal, 128 for no program' "$t" '7 137 128' \
  "$(k get pod codes -o 'jsonpath={.status.containerStatuses[*].state.terminated.exitCode}')"
check 'exit reasons' "$t" 'Error Error StartError' \
  "$(k get pod codes -o 'jsonpath={.status.containerStatuses[*].state.terminated.reason}')"

t=$(now)
apply <<YAML
apiVersion: v1
kind: Pod
metadata: {name: sidecar}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 5
  initContainers:
  - name: server
    image: $image
    restartPolicy: Always
    command: [bash, -c]
    args:
    - |
      trap 'echo "told to end"; kill \$p; exit 0' TERM
      sleep 0.7
      perl -MIO::Socket::INET -e '\$s = IO::Socket::INET->new(Listen => 5, LocalPort => 7001, ReuseAddr => 1) or die;
        while (\$c = \$s->accept) { print \$c "served\n"; close \$c }' & p=\$!
      wait
    startupProbe: {tcpSocket: {port: 7001}, periodSeconds: 1, failureThreshold: 20}
  containers:
  - {name: main, image: $image, command: [bash, -c, 'exec 3<>/dev/tcp/localhost/7001 && cat <&3']}
YAML
check 'native sidecar: pod succeeds' "$t" Succeeded "$(phase sidecar Succeeded)"
check 'native sidecar: up before main, TERM after it' "$t" 'served|told to end' \
  "$(log sidecar main)|$(log sidecar server)"

t=$(now)
apply <<YAML
apiVersion: v1
kind: Secret
metadata: {name: cert}
stringData: {curve.cert: s3cret}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: conf}
data: {a: one, b: two}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: claim}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: files, labels: {app: x}}
spec:
  restartPolicy: Never
  hostname: files-0
  securityContext: {runAsUser: 1234, fsGroup: 2000, supplementalGroups: [3000]}
  volumes:
  - {name: cert, secret: {secretName: cert, defaultMode: 0400}}
  - {name: conf, configMap: {name: conf, defaultMode: 0555, items: [{key: a, path: sub/a, mode: 0444}, {key: b, path: b}]}}
  - {name: none, configMap: {name: none, optional: true}}
  - {name: ram, emptyDir: {medium: Memory, sizeLimit: 1Mi}}
  - {name: disk, emptyDir: {}}
  - {name: claim, persistentVolumeClaim: {claimName: claim}}
  - {name: host, hostPath: {path: /data, type: DirectoryOrCreate}}
  - {name: image, image: {reference: $image}}
  - {name: view, image: {reference: ghcr.io/x/flux-view-rocky:arm-9}}
  initContainers:
  - {name: first, image: $image, command: [bash, -c, 'echo 1 > /disk/order'], volumeMounts: [{name: disk, mountPath: /disk}]}
  - {name: second, image: $image, command: [bash, -c, 'echo 2 >> /disk/order'], volumeMounts: [{name: disk, mountPath: /disk}]}
  - name: view
    image: ghcr.io/x/flux-view-rocky:arm-9
    command: [bash, -c, 'cp -a /opt/views /disk/ && readlink /opt/view > /disk/flux; ls /opt/views/._view/*/bin/flux >> /disk/flux']
    volumeMounts: [{name: disk, mountPath: /disk}]
  containers:
  - name: main
    image: $image
    workingDir: /new/folder
    env:
    - {name: A, value: one}
    - {name: B, value: '\$(A)-\$(NO)-\$\$(A)'}
    - {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: KEY, valueFrom: {secretKeyRef: {name: cert, key: curve.cert}}}
    envFrom: [{prefix: C_, configMapRef: {name: conf}}]
    command: [bash, -c]
    args:
    - |
      stat -L -c '%a %u:%g' /cert/curve.cert; cat /cert/curve.cert; echo
      stat -L -c '%a %u:%g' /conf/sub/a /conf/b
      echo "\$(id -u) \$(id -G) \$(getent passwd 1234 || echo nobody)"
      echo "\$A \$B \$POD \$KEY \$C_a \$(hostname) \$PWD"
      echo \$(findmnt -no FSTYPE,SIZE /ram)
      tr '\n' ' ' < /disk/order; stat -c '%a %g' /disk; cat /disk/flux; ls /disk/views/._view
      echo claim > /claim/f; cat /image/etc/passwd >/dev/null; ls /view /viewsub; echo -n x > /host/y || true
      touch /ro/x 2>/dev/null || echo read-only
    volumeMounts:
    - {name: cert, mountPath: /cert, readOnly: true}
    - {name: conf, mountPath: /conf}
    - {name: ram, mountPath: /ram}
    - {name: disk, mountPath: /disk}
    - {name: disk, mountPath: /ro, subPath: made, readOnly: true}
    - {name: claim, mountPath: /claim}
    - {name: host, mountPath: /host}
    - {name: image, mountPath: /image}
    - {name: view, mountPath: /view}
    - {name: view, mountPath: /viewsub, subPath: opt/views}
YAML
check 'volumes, environment, users: the pod succeeds' "$t" Succeeded "$(phase files Succeeded)"
check 'volumes, environment, users: what it saw' "$t" "440 0:2000
s3cret
444 0:2000
555 0:2000
1234 0 2000 3000 nobody
one one-\$(NO)-\$(A) files s3cret one files-0 /new/folder
tmpfs 1M
1 2 2777 2000
views/._view/stubfluxstubfluxstubfluxstubflux
/opt/views/._view/stubfluxstubfluxstubfluxstubflux/bin/flux
stubfluxstubfluxstubfluxstubflux
/view:
opt

/viewsub:
read-only" "$(log files main | grep -v 'Permission denied')"
check 'claim: kept in the state folder' "$t" claim "$(cat "$state/claims/$ns/claim/f")"

t=$(now)
apply <<YAML
apiVersion: batch/v1
kind: Job
metadata: {name: evict}
spec:
  backoffLimit: 0
  podReplacementPolicy: Failed
  podFailurePolicy: {rules: [{action: Ignore, onPodConditions: [{type: DisruptionTarget}]}]}
  template:
    metadata: {labels: {app: evict}}
    spec:
      restartPolicy: Never
      terminationGracePeriodSeconds: 5
      volumes: [{name: host, hostPath: {path: /evict, type: DirectoryOrCreate}}]
      containers:
      - name: main
        image: $image
        command: [bash, -c]
        args:
        - |
          trap 'echo TERM; exit 143' TERM
          [ -e /host/again ] && exit 0
          touch /host/again; sleep 60 & wait
        volumeMounts: [{name: host, mountPath: /host}]
YAML
until_true test -e "$state/host/evict/again"
sleep 0.3
first=$(k get pods -l app=evict -o 'jsonpath={.items[0].metadata.name}')
k get pod "$first" -w -o json >"$work/evict.json" 2>/dev/null &
watcher=$!
"$podlet" evict --kubeconfig "$KUBECONFIG" "$ns/$first"
check 'eviction: the Job makes another pod and completes' "$t" 'SuccessCriteriaMet Complete' "$(job_is evict Complete)"
kill "$watcher" 2>/dev/null || true
check 'eviction: TERM, 143, DisruptionTarget' "$t" 'TERM 143 DisruptionTarget' \
  "$(log "$first" main) $(grep -o '"exitCode": 143' "$work/evict.json" | head -1 | tr -dc 0-9) $(grep -o DisruptionTarget "$work/evict.json" | head -1)"

t=$(now)
apply <<YAML
apiVersion: v1
kind: Pod
metadata: {name: odd}
spec:
  runtimeClassName: null
  hostNetwork: true
  containers: [{name: a, image: $image, volumeDevices: [{name: v, devicePath: /dev/x}]}]
  volumes: [{name: v, persistentVolumeClaim: {claimName: claim}}]
YAML
check 'a field that podlet does not implement: Failed' "$t" Failed "$(phase odd Failed)"
check 'a field that podlet does not implement: which' "$t" \
  'PodletUnsupportedField podlet does not implement: spec.containers[0].volumeDevices, spec.hostNetwork: true' \
  "$(k get pod odd -o 'jsonpath={.status.reason} {.status.message}')"

t=$(now)
apply <<YAML
apiVersion: v1
kind: Pod
metadata: {name: noimage}
spec: {containers: [{name: a, image: registry.invalid/none:1}]}
---
apiVersion: v1
kind: Pod
metadata: {name: nonroot}
spec: {securityContext: {runAsNonRoot: true}, containers: [{name: a, image: $image, command: ['true']}]}
YAML
waiting='{.status.containerStatuses[0].state.waiting.reason}'
check 'missing image: ErrImagePull, then back-off, never a pull' "$t" ImagePullBackOff "$(pod_is noimage ImagePullBackOff "$waiting")"
check 'runAsNonRoot with a root image waits' "$t" CreateContainerConfigError "$(pod_is nonroot CreateContainerConfigError "$waiting")"
k delete pod noimage nonroot --wait=true >/dev/null
check 'deleting pods that never started' "$t" '' "$(k get pod noimage nonroot --ignore-not-found -o name)"

t=$(now)
apply <<YAML
apiVersion: v1
kind: Pod
metadata: {name: again}
spec:
  restartPolicy: OnFailure
  shareProcessNamespace: true
  volumes: [{name: v, emptyDir: {}}]
  containers:
  - name: main
    image: $image
    command: [bash, -c, 'echo x >> /v/n; [ "\$(wc -l < /v/n)" = 3 ] || exit 1; ps -e -o comm= | sort -u | tr "\n" " "; sleep 1']
    volumeMounts: [{name: v, mountPath: /v}]
    terminationMessagePolicy: FallbackToLogsOnError
  - {name: peer, image: $image, command: [sleep, '4']}
YAML
check 'OnFailure: restarted with back-off until it succeeds' "$t" Succeeded "$(phase again Succeeded)"
check 'OnFailure: restart count, shared PID namespace' "$t" '2 bash podlet ps sleep sort tr ' \
  "$(k get pod again -o 'jsonpath={.status.containerStatuses[0].restartCount}') $(log again main)"

t=$(now)
apply <<YAML
apiVersion: v1
kind: Pod
metadata: {name: hooks}
spec:
  terminationGracePeriodSeconds: 3
  volumes: [{name: host, hostPath: {path: /hooks, type: DirectoryOrCreate}}]
  containers:
  - name: main
    image: $image
    tty: true
    stdin: true
    command: [bash, -c, 'trap "" TERM; tty; echo main >> /host/log; while :; do sleep 1; done']
    volumeMounts: [{name: host, mountPath: /host}]
    lifecycle:
      postStart: {exec: {command: [bash, -c, 'sleep 0.3; echo started >> /host/log']}}
      preStop: {exec: {command: [bash, -c, 'echo stopping >> /host/log']}}
    readinessProbe: {exec: {command: [test, -e, /host/ready]}, periodSeconds: 1}
YAML
phase hooks Running >/dev/null
ready='{.status.conditions[?(@.type=="Ready")].status}'
check 'readiness probe: not ready yet' "$t" False "$(pod_is hooks False "$ready")"
touch "$state/host/hooks/ready"
check 'readiness probe: ready' "$t" True "$(pod_is hooks True "$ready")"
check 'podlet exec, its code' "$t" 'hooks 5' \
  "$("$podlet" exec --state "$state" "$ns/hooks" -- bash -c 'hostname; exit 5' | tr '\n' ' ')$("$podlet" exec --state "$state" "$ns/hooks" -- bash -c 'exit 5' || echo $?)"
t=$(now)
k delete pod hooks >/dev/null
check 'deletion: preStop, TERM ignored, KILL after 3 s' "$t" 'main started stopping 3' \
  "$(tr '\n' ' ' <"$state/host/hooks/log")$(awk -v a="$t" -v b="$(now)" 'BEGIN { print int(b - a) }')"
check 'tty: a terminal in the container' "$t" /dev/pts/0 "$(log hooks main)"

t=$(now)
apply <<YAML
apiVersion: v1
kind: Pod
metadata: {name: probes}
spec:
  restartPolicy: OnFailure
  terminationGracePeriodSeconds: 2
  volumes:
  - {name: v, emptyDir: {}}
  - {name: conf, configMap: {name: conf}}
  containers:
  - name: server
    image: $image
    ports: [{name: web, containerPort: 7002}]
    command: [perl, -MIO::Socket::INET, -e]
    args:
    - |
      \$s = IO::Socket::INET->new(Listen => 5, LocalPort => 7002, ReuseAddr => 1) or die;
      while (\$c = \$s->accept) {
        \$l = <\$c>;
        print \$c "HTTP/1.0 ", (\$l =~ m{/healthy} ? 200 : 500), " x\\r\\nContent-Length: 0\\r\\n\\r\\n";
        close \$c;
      }
    readinessProbe: {httpGet: {path: /healthy, port: web}, periodSeconds: 1}
  - name: sick
    image: $image
    command: [bash, -c, 'trap "echo -n told > /dev/termination-log; exit 9" TERM; if [ -e /v/again ]; then rm /v/bad; else touch /v/again /v/bad; fi; while :; do sleep 0.1; done']
    livenessProbe: {exec: {command: [test, '!', -e, /v/bad]}, periodSeconds: 1, failureThreshold: 1}
    volumeMounts: [{name: v, mountPath: /v}, {name: conf, mountPath: /conf}]
YAML
check 'httpGet readiness, liveness restart' "$t" 'True 1 9 told' \
  "$(pod_is probes True "$ready") $(pod_is probes 1 '{.status.containerStatuses[1].restartCount}') $(k get pod probes -o 'jsonpath={.status.containerStatuses[1].lastState.terminated.exitCode} {.status.containerStatuses[1].lastState.terminated.message}')"
k create configmap conf --from-literal=a=changed --from-literal=b=two --dry-run=client -o yaml | k apply -f - >/dev/null 2>&1
for _ in {1..120}; do
  seen=$("$podlet" exec --state "$state" -c sick "$ns/probes" -- cat /conf/a)
  [[ $seen == changed ]] && break
  sleep 0.1
done
check 'a mounted ConfigMap follows its object' "$t" changed "$seen"
k delete pod probes --wait=false >/dev/null

t=$(now)
apply <<YAML
apiVersion: v1
kind: Pod
metadata: {name: limits}
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: $image
    resources: {limits: {memory: 32Mi, cpu: '1'}}
    command: [perl, -e, '\$x = "a" x 200_000_000; print length \$x']
YAML
phase limits Failed >/dev/null
check 'memory limit: OOMKilled, 137' "$t" 'OOMKilled 137' \
  "$(k get pod limits -o 'jsonpath={.status.containerStatuses[0].state.terminated.reason} {.status.containerStatuses[0].state.terminated.exitCode}')"

t=$(now)
apply <<YAML
apiVersion: v1
kind: Pod
metadata: {name: late}
spec:
  restartPolicy: Never
  activeDeadlineSeconds: 1
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: $image, command: [sleep, '60']}]
---
apiVersion: v1
kind: Pod
metadata: {name: badinit}
spec:
  restartPolicy: Never
  initContainers: [{name: init, image: $image, command: [bash, -c, exit 4]}]
  containers: [{name: main, image: $image, command: ['true']}]
YAML
check 'activeDeadlineSeconds' "$t" DeadlineExceeded "$(pod_is late DeadlineExceeded '{.status.reason}')"
check 'a failed init container fails the pod' "$t" 'Failed 4' \
  "$(phase badinit Failed) $(k get pod badinit -o 'jsonpath={.status.initContainerStatuses[0].state.terminated.exitCode}')"

leftovers() {
  local holders mounts containers
  containers=$(podman ps -aq --filter "label=podlet.state=$state" | wc -l)
  mounts=$(grep -c " $state/" /proc/self/mountinfo || true)
  holders=$(pgrep -fc -- "podlet hold .*--state $state" || true)
  echo "containers $containers, mounts $mounts, holders $holders"
}
apply <<YAML
apiVersion: v1
kind: Pod
metadata: {name: long}
spec:
  restartPolicy: Never
  shareProcessNamespace: true
  containers: [{name: main, image: $image, command: [sleep, '600']}]
YAML
phase long Running >/dev/null
t=$(now)
kill -KILL "$podlet_pid"
wait "$podlet_pid" 2>/dev/null || true
rm -f "$state/ready"
before=$(leftovers)
start_podlet
check 'after a crash the next podlet cleans up' "$t" 'was there, containers 0' \
  "$([[ $before != containers\ 0* ]] && echo 'was there'), $(leftovers | cut -d, -f1)"
check 'a pod that the crash took along fails' "$t" PodletRestarted "$(pod_is long PodletRestarted '{.status.reason}')"

sed 's/name: long$/name: long2/' <<YAML | apply
apiVersion: v1
kind: Pod
metadata:
  name: long
spec:
  restartPolicy: Never
  shareProcessNamespace: true
  containers: [{name: main, image: $image, command: [sleep, '600']}]
YAML
phase long2 Running >/dev/null
t=$(now)
kill -TERM "$podlet_pid"
wait "$podlet_pid"
check 'TERM: exit 0' "$t" 0 "$?"
podlet_pid=''
check 'TERM: nothing is left' "$t" 'containers 0, mounts 0, holders 0' "$(leftovers)"
