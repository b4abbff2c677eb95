# shellcheck shell=bash
# shellcheck disable=SC2154,SC2016  # sourced by ../selftest, which sets image, ns, state, work, podlet
# The stand-in flux in Indexed Jobs: roll call, exit codes, certificates, signals.

# The key pair of the documented test vector (secret bytes 00 to 1f), and another name for a second one.
public='K3HW^WVq.zo69t)(umF>:XvwTj:QGN^yKlWaVH(S'
secret='009c61o!#m2NH?C3>iWS5d]J*6CRx17-skh9337x'
cert() { printf 'metadata\n    name = "t"\ncurve\n    public-key = "%s"\n    secret-key = "%s"\n' "$public" "$secret"; }

# flux_objects NAME SIZE: configuration, certificate, headless service.
flux_objects() {
  local last=$(($2 - 1))
  kubectl -n "$ns" create configmap "$1" --from-literal=broker.toml="[resource]
path = \"/etc/flux/R\"
noverify = true
[bootstrap]
curve_cert = \"/run/cert/curve.cert\"
default_port = 8050
default_bind = \"tcp://*:%p\"
default_connect = \"tcp://%h.$1:%p\"
hosts = [ { host = \"$1-[0-$last]\" } ]
" --from-literal=R="{\"version\": 1, \"execution\": {\"R_lite\": [{\"rank\": \"0-$last\", \"children\": {\"core\": \"0\"}}], \"nodelist\": [\"$1-[0-$last]\"]}}" \
    --from-literal=run.sh='
mkdir -p /run/flux && cp /cert/curve.cert /run/cert/ && chmod 0400 /run/cert/curve.cert
export PATH=$PATH:$(echo /opt/views/._view/*/bin)
[ -z "$BREAK" ] || eval "$BREAK"
if [ "$JOB_COMPLETION_INDEX" != 0 ]; then
  until (exec 3<>"/dev/tcp/${HOSTNAME%-*}-0.${HOSTNAME%-*}/8050") 2>/dev/null; do sleep 0.1; done
  exec flux broker -c /etc/flux $OPTIONS
fi
exec flux broker -c /etc/flux $OPTIONS bash -c "$PROGRAM"
' --dry-run=client -o yaml | kubectl apply -f - >/dev/null
  kubectl -n "$ns" create secret generic "$1" --from-literal=curve.cert="$(cert)" --dry-run=client -o yaml |
    kubectl apply -f - >/dev/null
  apply <<YAML
apiVersion: v1
kind: Service
metadata: {name: $1}
spec: {clusterIP: None, publishNotReadyAddresses: true, selector: {job-name: $1}, ports: [{name: flux, port: 8050}]}
YAML
}

# flux_job NAME SIZE PROGRAM [OPTIONS] [BREAK]
flux_job() {
  flux_objects "$1" "$2"
  apply <<YAML
apiVersion: batch/v1
kind: Job
metadata: {name: $1}
spec:
  completions: $2
  parallelism: $2
  completionMode: Indexed
  backoffLimit: 0
  template:
    spec:
      subdomain: $1
      restartPolicy: Never
      terminationGracePeriodSeconds: 5
      volumes:
      - {name: conf, configMap: {name: $1}}
      - {name: cert, secret: {secretName: $1, defaultMode: 0400}}
      - {name: run, emptyDir: {medium: Memory}}
      - {name: view, image: {reference: example.org/flux-view-stub:1}}
      - {name: log, hostPath: {path: /flux/$1, type: DirectoryOrCreate}}
      containers:
      - name: main
        image: $image
        command: [bash, /etc/flux/run.sh]
        env:
        - {name: PROGRAM, value: '$3'}
        - {name: OPTIONS, value: '${4:-}'}
        - {name: BREAK, value: '${5:-}'}
        - {name: STUB_FLUX_LOG, value: /log}
        volumeMounts:
        - {name: conf, mountPath: /etc/flux}
        - {name: cert, mountPath: /cert}
        - {name: run, mountPath: /run/cert}
        - {name: view, mountPath: /opt/views, subPath: opt/views}
        - {name: view, mountPath: /opt/software, subPath: opt/software}
        - {name: log, mountPath: /log}
YAML
}
# The first exit code of an index of a job, as podlet saw it: the Job controller soon deletes what a failed Job left.
code_of() {
  local got=''
  for _ in {1..300}; do
    got=$(sed -n "s|^podlet: [0-9:.]* $ns/$1-$2-[a-z0-9]*: main ended: \([0-9]*\) .*|\1|p" "$work/podlet.log" | head -n 1)
    [[ -n $got ]] && break
    sleep 0.1
  done
  echo "$got"
}
# codes JOB INDEX…
codes() {
  local job=$1 out=() index
  shift
  for index in "$@"; do out+=("$(code_of "$job" "$index")"); done
  echo "${out[*]}"
}
flux_log() { cat "$state/logs/$ns/$1-$2"-*/main.log; }

t=$(now)
flux_job f-ok 3 'flux submit -N3 --quiet --watch hostname; flux overlay status; flux getattr hostlist'
check 'flux: three brokers, a job, all exit 0' "$t" '0 0 0' "$(codes f-ok 0 1 2)"
check 'flux: what the leader saw' "$t" 'f-ok-0
0 f-ok-0: full
├─ 1 f-ok-1: full
└─ 2 f-ok-2: full
f-ok-[0-2]' "$(flux_log f-ok 0)"
check 'flux: calls are recorded' "$t" 'broker -c /etc/flux' \
  "$(head -1 "$state/host/flux/f-ok/f-ok-1.jsonl" | grep -o '"argv":[^]]*' | tr -d '[]",' | cut -d: -f2 | sed 's/broker-c/broker -c /')"

t=$(now)
flux_job f-fail 2 'flux run bash -c "exit 3"'
check 'flux: the program fails: leader 3, follower 0' "$t" '3 0' "$(codes f-fail 0 1)"

t=$(now)
# shellcheck disable=SC2016
flux_job f-batch 2 'cd /tmp; printf "#!/bin/bash\nflux submit --flags waitable --output=o.txt bash -c \"exit 5\"\nflux submit --flags waitable true\nflux queue idle\nflux job wait --all\n" > b.sh; flux batch -N2 --flags waitable ./b.sh > id; flux job wait --all; echo rc=$?; cat flux-$(cat id).out'
check 'flux: batch, a failing line is reported' "$t" 'rc=1' "$(codes f-batch 0 >/dev/null; flux_log f-batch 0 | grep ^rc=)"
check 'flux: nested output' "$t" '0 jobs' "$(flux_log f-batch 0 | grep -o '0 jobs')"

t=$(now)
# shellcheck disable=SC2016
flux_job f-bad 2 true '' '[ "$JOB_COMPLETION_INDEX" = 0 ] || OPTIONS="-Sno.such=1"'
check 'flux: unknown attribute: that broker exits 1' "$t" 1 "$(codes f-bad 1)"
check 'flux: unknown attribute: its words' "$t" 'flux-broker: no.such: unknown attribute' "$(flux_log f-bad 1)"

t=$(now)
# shellcheck disable=SC2016
flux_job f-mode 2 true '' '[ "$JOB_COMPLETION_INDEX" = 1 ] || chmod 0440 /run/cert/curve.cert'
check 'flux: certificate readable by the group' "$t" \
  'overlay.err[0]: Error loading certificate: /run/cert/curve.cert: readable by group/other' \
  "$(codes f-mode 0 >/dev/null; flux_log f-mode 0)"

t=$(now)
flux_job f-quorum 3 true '-Sbroker.quorum=4'
check 'flux: quorum out of range' "$t" 'broker.crit[0]: Error parsing broker.quorum attribute' \
  "$(codes f-quorum 0 >/dev/null; flux_log f-quorum 0)"

t=$(now)
flux_job f-idle 2 '' '-Sbroker.rc2_none -Slocal-uri=local:///run/cert/local -Srundir=/run/flux'
sleep 1.5
leader=$(pod_of f-idle 0)
for _ in {1..50}; do
  up=$("$podlet" exec --state "$state" "$ns/$leader" -- bash -c \
    'PATH=$PATH:$(echo /opt/views/._view/*/bin); export PATH; flux proxy local:///run/cert/local flux resource list 2>&1 | grep -c "down      0"' || true)
  [[ $up == 1 ]] && break
  sleep 0.1
done
# The broker's end is the container's, which may take the command along before it has said so.
"$podlet" exec --state "$state" "$ns/$leader" -- bash -c 'PATH=$PATH:$(echo /opt/views/._view/*/bin); export PATH; flux proxy local:///run/cert/local flux shutdown' || true
check 'flux: interactive, proxy, shutdown: all exit 0' "$t" '1 0 0' "$up $(codes f-idle 0 1)"

t=$(now)
flux_job f-term 2 'echo started; sleep 60'
for _ in {1..100}; do
  flux_log f-term 0 2>/dev/null | grep -q started && break
  sleep 0.1
done
"$podlet" exec --state "$state" "$ns/$(pod_of f-term 0)" -- bash -c 'kill -TERM 1'
check 'flux: TERM to a running leader: 129, follower 0' "$t" '129 0' "$(codes f-term 0 1)"

t=$(now)
# shellcheck disable=SC2016
flux_job f-wait 3 true '' '[ "$JOB_COMPLETION_INDEX" != 2 ] || exec sleep 60'
sleep 2
"$podlet" exec --state "$state" "$ns/$(pod_of f-wait 0)" -- bash -c 'kill -TERM 1'
check 'flux: TERM before quorum: leader 0, joined follower 0' "$t" '0 0' "$(codes f-wait 0 1)"
k delete job f-wait --wait=false >/dev/null

t=$(now)
# shellcheck disable=SC2016
flux_job f-key 2 true '' '[ "$JOB_COMPLETION_INDEX" = 0 ] || printf "metadata\n    name = \"t\"\ncurve\n    public-key = \"%s\"\n    secret-key = \"%s\"\n" "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7" "JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6" > /run/cert/curve.cert'
sleep 3
check 'flux: another key: silence, nobody ends' "$t" '||' \
  "$(flux_log f-key 0 2>/dev/null || true)|$(flux_log f-key 1 2>/dev/null || true)|$(k get pods -l job-name=f-key -o 'jsonpath={.items[*].status.containerStatuses[0].state.terminated.exitCode}')"
k delete job f-key --wait=false >/dev/null
