# shellcheck shell=bash
# Shared by the integration tests: a control plane, podlet, and a small way to say what is expected.
# shellcheck disable=SC2034 # used by the scripts that source this

here=$(cd "$(dirname "$0")" && pwd)
repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
tools=$repo/ci/tools
work=$(mktemp -d)
state=$work/state
passed=0
failed=0
podlet_pid=

export CONTAINERS_CONF=${CONTAINERS_CONF:-$tools/podman/containers.conf}
export CONTAINERS_STORAGE_CONF=${CONTAINERS_STORAGE_CONF:-$tools/podman/storage.conf}
# Programs in Go run some thousand times, for a moment each: a quarter of that they spend on collecting garbage.
export GOGC=${GOGC:-300}

finish() {
    local code=$?
    if [ -n "$podlet_pid" ]; then
        kill "$podlet_pid" 2>/dev/null || true
        wait "$podlet_pid" 2>/dev/null || true
    fi
    if { [ "$failed" -gt 0 ] || [ "$code" != 0 ]; } && [ -e "$work/podlet.log" ]; then
        printf -- '--- the end of podlet'\''s log:\n'
        tail -n 30 "$work/podlet.log"
    fi
    local plane
    for plane in "$work"/plane-*/; do
        if [ -d "$plane" ]; then "$tools/control-plane" stop "$plane" >/dev/null 2>&1 || true; fi
    done
    if [ -z "${KEEP:-}" ]; then rm -rf "$work"; else printf 'kept: %s\n' "$work"; fi
}
trap finish EXIT

# ok NAME COMMAND...: the command's exit code is the result. A function ends at its first failing line: it runs in a shell
# of its own, because bash ignores `set -e` in whatever stands in a condition.
ok() {
    local name=$1 code
    shift
    set +e
    (set -e && "$@") > "$work/output" 2>&1
    code=$?
    set -e
    if [ "$code" = 0 ]; then
        passed=$((passed + 1))
        printf 'ok    %5ds  %s\n' "$SECONDS" "$name"
    else
        failed=$((failed + 1))
        printf 'FAIL  %5ds  %s\n' "$SECONDS" "$name"
        sed 's/^/        /' "$work/output" | tail -n 40
    fi
}

verdict() {
    printf '%d passed, %d failed\n' "$passed" "$failed"
    [ "$failed" = 0 ]
}

# Starts a control plane of the newest Kubernetes and points kubectl at it.
start_control_plane() {
    start_control_plane_of newest
}

# start_control_plane_of newest|oldest: several can run side by side; the last one started, or chosen with
# use_control_plane, is the one that kubectl talks to.
start_control_plane_of() {
    FLUX_GEN_KUBE=$1 "$tools/control-plane" start "$work/plane-$1" > "$work/plane-$1.log" 2>&1 || {
        cat "$work/plane-$1.log"
        return 1
    }
    use_control_plane "$1"
}

use_control_plane() {
    eval "$(FLUX_GEN_KUBE=$1 "$tools/control-plane" env "$work/plane-$1")"
}

stop_control_plane() {
    "$tools/control-plane" stop "$work/plane-$1" > /dev/null
}

# The setting kubernetes-version that goes with the server.
server_version() {
    kubectl get --raw /version | jq -r '"\(.major).\(.minor)"'
}

# Builds podlet and the stub Flux, and lays the stub out as a view.
prepare_podlet() {
    [ -n "${FLUX_GEN_BUILT:-}" ] || cargo build --quiet --locked --package podlet --manifest-path "$repo/Cargo.toml"
    local built=${CARGO_TARGET_DIR:-$repo/target}/debug view="$work/view/opt/views/._view/stub"
    podlet=$built/podlet
    image=$("$tools/base-image")
    mkdir -p "$view/bin" "$view/lib/python3.11/site-packages" "$work/view/opt/software"
    cp "$built/stub-flux" "$view/bin/flux"
    ln -s views/._view/stub "$work/view/opt/view"
}

# The base image with the stub in it. Its label says which stub: made again only when that changes, as every commit leaves an
# image behind.
image_with_flux() {
    local name=localhost/flux-gen-base-with-flux:bookworm label=dev.flux-gen.stub stub want container
    stub=${CARGO_TARGET_DIR:-$repo/target}/debug/stub-flux
    want=$(cat "$stub" <(podman image inspect --format '{{.Id}}' "$image") | sha256sum | cut -d' ' -f1)
    if [ "$(podman image inspect --format "{{index .Labels \"$label\"}}" "$name" 2>/dev/null || true)" != "$want" ]; then
        container=$(podman create "$image" true)
        podman cp "$stub" "$container:/usr/bin/flux" > /dev/null
        podman commit -q --change "LABEL $label=$want" "$container" "$name" > /dev/null
        podman rm "$container" > /dev/null
    fi
}

start_podlet() {
    "$podlet" run --kubeconfig "$KUBECONFIG" --state "$state" --view-dir "$work/view" >> "$work/podlet.log" 2>&1 &
    podlet_pid=$!
    within 300 test -e "$state/ready"
}

# namespace NAME: made, and with its service account, without which no pod can be.
namespace() {
    kubectl create namespace "$1" >/dev/null 2>&1 || true
    within 300 kubectl -n "$1" get serviceaccount default
}

# A loopback port that nothing listens on. Between 10000 and 20000: the kernel gives those to no outgoing connection, and
# ci/tools/control-plane chooses above them. By chance, so that scripts side by side do not choose the same.
free_port() {
    local port taken
    taken=$(ss -ltnH | awk '{sub(/.*:/, "", $4); print $4}')
    while port=$(shuf -i 10000-19999 -n 1) && grep -qxF "$port" <<< "$taken"; do :; done
    printf '%s\n' "$port"
}

# within SECONDS COMMAND...: tries until it succeeds. The limit is for what never comes: on a busy machine everything takes
# ten times as long, so limits are generous.
within() {
    local end=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        if [ "$SECONDS" -ge "$end" ]; then
            printf 'still not after the time: %s\n' "$*"
            "$@"
            return 1
        fi
        sleep 0.3
    done
}

# start_gate SERVER-PORT up|down BYTES [PORT]: a way to a server that closes after so many bytes; sets gate_port, gate_pid and
# gate_shut, the file that is there when it has closed. Whoever starts it stops it.
start_gate() {
    gate_port=${4:-$(free_port)}
    gate_shut=$work/gate-$gate_port-$3
    rm -f "$gate_shut"
    "$tools/tcp-gate" "$gate_port" "$1" "$2" "$3" "$gate_shut" &
    gate_pid=$!
    within 300 bash -c "true > /dev/tcp/127.0.0.1/$gate_port"
}

# killed_at_gate COMMAND...: the command is killed when the gate has closed; that it ends before is an error.
killed_at_gate() {
    local program
    "$@" > "$work/killed-at-gate" 2>&1 &
    program=$!
    until [ -e "$gate_shut" ]; do
        kill -0 "$program" || { cat "$work/killed-at-gate"; stop_gate; return 1; }
        sleep 0.05
    done
    kill -9 "$program"
    wait "$program" 2> /dev/null || true
    stop_gate
}

stop_gate() {
    kill "$gate_pid"
    wait "$gate_pid" 2> /dev/null || true
}

# job_becomes NAMESPACE JOB Complete|Failed: waits for that. One kubectl that watches: a new one every moment would take a
# good part of a processor from what is waited for.
job_becomes() {
    kubectl -n "$1" wait --for="condition=$3" --timeout=300s "job/$2"
}

# rules_as_server MODULE: the tables of tests/rules/MODULE.rs, against this API server.
rules_as_server() {
    # With the whole workspace, as ci/test has built it; else crates would be built anew in another way.
    FLUX_GEN_TEST_KUBECONFIG=$KUBECONFIG cargo test --quiet --locked --workspace --test rules "$1::" | tee "$work/rules"
    grep -q '^running [1-9]' "$work/rules"
}
