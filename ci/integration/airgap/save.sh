#!/usr/bin/env bash
# The outside of an air gap: images in a registry, lock, build, archive, and what other programs make of it. Run alone it is a
# test of its own; ci/integration/airgap/run sources it for the first half of the way.
# shellcheck disable=SC2034 # used by the script that sources this
set -euo pipefail
if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    repo=$(cd "$(dirname "$0")/../../.." && pwd)
    # lib.sh looks for these from where the script is.
    export CONTAINERS_CONF=${CONTAINERS_CONF:-$repo/ci/tools/podman/containers.conf}
    export CONTAINERS_STORAGE_CONF=${CONTAINERS_STORAGE_CONF:-$repo/ci/tools/podman/storage.conf}
    # shellcheck source-path=SCRIPTDIR source=../lib.sh
    source "$repo/ci/integration/lib.sh"
    repo=$(cd "$(dirname "$0")/../../.." && pwd)
    tools=$repo/ci/tools
fi

flux_gen=${CARGO_TARGET_DIR:-$repo/target}/debug/flux-gen

# shellcheck disable=SC2317,SC2329 # called by traps
stop_outside() {
    local server
    # In a file: the checks run in shells of their own, and one of them starts the registry again.
    [ -e "$work/outside-servers" ] || return 0
    while read -r server; do kill "$server" 2>/dev/null || true; done < "$work/outside-servers"
    rm "$work/outside-servers"
}

# start_outside FOLDER: Debian's docker-registry on a port of its own; sets outside.
start_outside() {
    [ -n "${outside:-}" ] || outside=127.0.0.1:$(free_port)
    mkdir -p "$1/data"
    cat > "$1/config.yml" <<YAML
version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: $1/data}}
http: {addr: $outside}
YAML
    docker-registry serve "$1/config.yml" > "$1/log" 2>&1 &
    printf '%s\n' "$!" >> "$work/outside-servers"
    for _ in {1..1200}; do
        if curl -fs "http://$outside/v2/" > /dev/null; then return 0; fi
        sleep 0.05
    done
    printf '%s does not answer\n' "$outside"
    return 1
}

# outside_image NAME ARCH...: an image with a program that says hello; an index when there are several architectures.
outside_image() {
    local name=$1 arch layout=$work/images/$1 manifests=()
    shift
    mkdir -p "$work/images"
    umoci init --layout "$layout"
    for arch in "$@"; do
        umoci new --image "$layout:$arch"
        umoci config --image "$layout:$arch" --architecture "$arch" --config.cmd /bin/hello --created 2020-01-01T00:00:00Z \
            --no-history
        umoci insert --no-history --rootless --image "$layout:$arch" "$work/hello" /bin/hello
        skopeo copy -q --dest-tls-verify=false "oci:$layout:$arch" "docker://$outside/$name:1-$arch"
        manifests+=("$outside/$name:1-$arch")
    done
    if [ "${#manifests[@]}" = 1 ]; then
        skopeo copy -q --src-tls-verify=false --dest-tls-verify=false "docker://${manifests[0]}" "docker://$outside/$name:1"
        return
    fi
    podman manifest create "airgap-$$-$name" > /dev/null
    for arch in "${manifests[@]}"; do podman manifest add --tls-verify=false "airgap-$$-$name" "$arch" > /dev/null; done
    podman manifest push -q --all --tls-verify=false "airgap-$$-$name" "docker://$outside/$name:1"
    podman manifest rm "airgap-$$-$name" > /dev/null
}

# outside_project FOLDER: a project whose images are in the outer registry.
outside_project() {
    mkdir -p "$1/examples"
    cat > "$1/examples/hello.yaml" <<YAML
apiVersion: flux-framework.org/v1alpha2
kind: MiniCluster
metadata:
  name: hello
spec:
  size: 2
  containers:
    - image: $outside/app:1
      command: /bin/hello
      resources: {limits: {cpu: 1}}
  flux:
    container:
      image: $outside/view:1
YAML
    cat > "$1/examples/nightly.yaml" <<YAML
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec:
  schedule: "@daily"
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers: [{name: x, image: "$outside/tool:1"}]
YAML
}

# flux-gen as it was built for the tests, but linked statically: it stands for the program of ci/release, which takes too long
# here. Only the link is done again, because all else is in the library.
outside_static() {
    local built
    built=$(dirname "$flux_gen")
    printf 'fn main() -> std::process::ExitCode { flux_gen::cli::main() }\n' > "$work/static.rs"
    rustc --edition 2024 --crate-name flux_gen_static --crate-type bin "$work/static.rs" -o "$1" \
        --extern "flux_gen=$built/libflux_gen.rlib" -L "dependency=$built/deps" -C target-feature=+crt-static -C strip=symbols
}

# The image of flux-gen, made by the program of ci/release, in the outer registry.
outside_tool() {
    local tool
    tool=$(dirname "$flux_gen")/examples/release-image
    outside_static "$work/flux-gen-static"
    "$tool" "$work/tool-image" "$outside/tools/flux-gen:v1" "linux/amd64=$work/flux-gen-static"
    skopeo copy -q --all --preserve-digests --dest-tls-verify=false "oci:$work/tool-image:$outside/tools/flux-gen:v1" \
        "docker://$outside/tools/flux-gen:v1"
}

# outside_save FOLDER PLATFORM...: lock, build, save, verify there; the archive is FOLDER/site.tar, its digest $outside_digest.
outside_save() {
    local folder=$1 platforms=() platform
    shift
    for platform in "$@"; do platforms+=(--platform "$platform"); done
    (
        cd "$folder"
        "$flux_gen" lock --plain-http "$outside" "${platforms[@]}"
        "$flux_gen" build
        "$flux_gen" archive save --plain-http "$outside" -o site.tar > digest
        "$flux_gen" archive verify site.tar --expect "$(cat digest)"
    )
}

# Everything until the archive is there: registry, images, project, archive for linux/amd64.
airgap_outside() {
    printf '#include <unistd.h>\nint main(void) { return write(1, "hello\\n", 6) != 6; }\n' > "$work/hello.c"
    gcc -static -Os -o "$work/hello" "$work/hello.c"
    start_outside "$work/outside"
    outside_image app amd64 arm64
    outside_image view amd64 arm64
    outside_image tool amd64
    outside_project "$work/project"
}

# What other programs read of an archive.
outside_readers() {
    local archive=$1 name=$outside/app:1 want
    rm -rf "$work/read" && mkdir -p "$work/read/site"
    # skopeo: the derived index has the digest that the archive says.
    want=$("$flux_gen" archive inspect --json "$archive" | jq -r --arg name "$name" '.images[] | select(.name == $name).carried')
    test "sha256:$(skopeo inspect --raw "oci-archive:$archive:$name" | sha256sum | cut -d' ' -f1)" = "$want"
    skopeo copy -q "oci-archive:$archive:$name" "oci:$work/read/skopeo:app"
    skopeo copy -q "docker-archive:$archive:$name" "oci:$work/read/docker:app"
    # coreutils and tar, then umoci.
    tar -xf "$archive" -C "$work/read/site"
    (cd "$work/read/site" && sha256sum --quiet --strict -c flux-gen/checksums.sha256)
    "$flux_gen" archive verify "$work/read/site"
    umoci stat --image "$work/read/site:$outside/tool:1" > /dev/null
    umoci unpack --rootless --image "$work/read/site:$outside/tool:1" "$work/read/umoci"
    cmp "$work/hello" "$work/read/umoci/rootfs/bin/hello"
}

# What comes out of an archive with podman alone: images of the bundles, and flux-gen.
outside_podman() {
    local tool=$outside/tools/flux-gen:v1
    podman load -q -i "$1"
    podman run --rm --network=none --pull=never "$outside/app:1" | grep -qx hello
    podman run --rm --network=none --pull=never "$tool" --version
    podman rmi -f "$outside/app:1" "$outside/view:1" "$outside/tool:1" "$tool" > /dev/null
}

# Archives by skopeo are taken by `lock --from` and `archive save --from`, without a registry.
outside_foreign() {
    local kind
    for kind in oci-archive docker-archive; do
        rm -rf "$work/foreign" && mkdir "$work/foreign"
        cp -r "$work/project/examples" "$work/foreign/examples"
        local from=()
        for name in app view tool; do
            skopeo copy -q --src-tls-verify=false --override-arch amd64 "docker://$outside/$name:1" \
                "$kind:$work/foreign/$name.tar:$outside/$name:1"
            from+=(--from "$name.tar")
        done
        (
            cd "$work/foreign"
            "$flux_gen" lock "${from[@]}"
            "$flux_gen" build
            "$flux_gen" archive save "${from[@]}" -o site.tar
            "$flux_gen" archive verify --platform linux/amd64 site.tar
        )
    done
}

# gate BYTES [PORT]: the way to the outer registry that the large image is fetched by; its port is kept for the next checks.
gate() {
    start_gate "${outside##*:}" down "$@"
    printf '%s\n' "$gate_port" > "$work/gate-port"
    large=127.0.0.1:$gate_port
}

# Killed in the middle, then run again: what was there is kept, and the file is the same as without the kill.
outside_killed() {
    head -c 200000000 /dev/urandom > "$work/large.bin"
    tar -C "$work" -cf "$work/large.tar" large.bin
    python3 "$repo/ci/bench/layout.py" "$work/images/large" "$work/large.tar"
    skopeo copy -q --preserve-digests --dest-tls-verify=false "oci:$work/images/large:bench" "docker://$outside/large:1"
    gate 60000000
    rm -rf "$work/killed"
    mkdir -p "$work/killed"
    cp -r "$work/project/examples" "$work/killed/examples"
    sed -i "s|$outside/tool:1|$large/large:1|" "$work/killed/examples/nightly.yaml"
    cd "$work/killed"
    "$flux_gen" lock --plain-http "$outside" --plain-http "$large"
    "$flux_gen" build
    killed_at_gate "$flux_gen" archive save --plain-http "$outside" --plain-http "$large" -o site.tar
    test -e site.tar.partial
    test ! -e site.tar
    gate 1000000000000 "$gate_port"
    trap stop_gate EXIT
    /usr/bin/time -f %M -o peak "$flux_gen" archive save --plain-http "$outside" --plain-http "$large" -o site.tar > digest
    printf 'memory of save: %s kB\n' "$(tail -n 1 peak)"
    test "$(tail -n 1 peak)" -lt 100000
    "$flux_gen" archive verify site.tar --expect "$(cat digest)"
    test ! -e site.tar.partial
    "$flux_gen" archive save --plain-http "$outside" --plain-http "$large" -o again.tar > /dev/null
    cmp site.tar again.tar
}

# No more room than the archive and its largest blob: enough to save, and then, with the archive there, to load.
outside_small() {
    local inside=localhost:${outside##*:} size
    gate 1000000000000 "$(cat "$work/gate-port")"
    trap stop_gate EXIT
    size=$(($(stat -c %s "$work/killed/site.tar") + 220000000))
    mkdir -p "$work/tight"
    mount -t tmpfs -o "size=$size" tmpfs "$work/tight"
    mkdir "$work/tight/tmp"
    (
        cd "$work/killed"
        export TMPDIR=$work/tight/tmp
        "$flux_gen" archive save --plain-http "$outside" --plain-http "$large" -o "$work/tight/site.tar"
        /usr/bin/time -f %M -o "$work/peak" \
            "$flux_gen" archive load "$work/tight/site.tar" --plain-http "$inside" --to "$inside/tight" -o "$work/tight/site"
        printf 'memory of load: %s kB\n' "$(tail -n 1 "$work/peak")"
        test "$(tail -n 1 "$work/peak")" -lt 100000
    ) || { umount "$work/tight"; return 1; }
    df --output=size,used -B1 "$work/tight"
    umount "$work/tight"
}

# A disk that is too small is told before anything is fetched, and nothing is left on it; so is one that is read-only.
outside_disks() {
    local code=0
    gate 1000000000000 "$(cat "$work/gate-port")"
    trap stop_gate EXIT
    mkdir -p "$work/small"
    mount -t tmpfs -o size=2m tmpfs "$work/small"
    (cd "$work/killed" && "$flux_gen" archive save --plain-http "$outside" --plain-http "$large" -o "$work/small/site.tar") > "$work/full" 2>&1 || code=$?
    find "$work/small" -mindepth 1 > "$work/left"
    mount -o remount,ro "$work/small"
    (cd "$work/killed" && "$flux_gen" archive save --plain-http "$outside" --plain-http "$large" -o "$work/small/site.tar") > "$work/ro" 2>&1 || code=$code$?
    umount "$work/small"
    cat "$work/full" "$work/left" "$work/ro"
    test "$code" = 11
    grep -q 'error\[FG867\].*No space left on device (the archive has [0-9]* bytes)' "$work/full"
    test ! -s "$work/left"
    grep -q 'error\[FG867\].*Read-only file system' "$work/ro"
}

# The registry goes away while a large layer is fetched, comes back, and the same command goes on.
outside_dies() {
    local code=0 save
    cd "$work/killed"
    rm -f dies.tar dies.tar.partial
    gate 60000000 "$(cat "$work/gate-port")"
    "$flux_gen" archive save --plain-http "$outside" --plain-http "$large" --timeout 2 -o dies.tar > dies.log 2>&1 &
    save=$!
    until [ -e "$gate_shut" ] || ! kill -0 "$save"; do sleep 0.05; done
    stop_gate
    wait "$save" || code=$?
    cat dies.log
    test "$code" = 1
    grep -q 'the same command goes on with it' dies.log
    test ! -e dies.tar
    gate 1000000000000 "$gate_port"
    trap stop_gate EXIT
    "$flux_gen" archive save --plain-http "$outside" --plain-http "$large" -o dies.tar
    cmp dies.tar site.tar
}

# After a load, the registry is compared with the archive; what was not loaded, or was changed there, is told.
outside_loaded() {
    # Under another name the registry is another one.
    local archive=$1 code=0 inside=localhost:${outside##*:}
    "$flux_gen" archive load "$archive" --plain-http "$inside" --to "$inside/inner"
    "$flux_gen" archive verify "$archive" --plain-http "$inside" --to "$inside/inner"
    "$flux_gen" archive verify "$archive" --plain-http "$inside" --to "$inside/none" > "$work/none" 2>&1 || code=$?
    cat "$work/none"
    test "$code" = 1
    test "$(grep -c 'has no tag 1' "$work/none")" = 3
    skopeo copy -q --src-tls-verify=false --dest-tls-verify=false "docker://$outside/tool:1" "docker://$inside/inner/${outside//:/-}/app:1"
    code=0
    "$flux_gen" archive verify "$archive" --plain-http "$inside" --to "$inside/inner" > "$work/moved" 2>&1 || code=$?
    cat "$work/moved"
    test "$code" = 1
    grep -q "error\[FG913\]: $outside/app:1: the tag 1 of .*inner/.*/app is sha256:" "$work/moved"
}

# A site without flux-gen: tar and sha256sum get it out of the archive, and it does the rest.
outside_bootstrap() {
    local archive=$work/project/with-tool.tar inside=localhost:${outside##*:} tool digest
    digest=$(cd "$work/project" && "$flux_gen" archive save --plain-http "$outside" --with-tool "$outside/tools/flux-gen:v1" -o "$archive")
    mkdir "$work/bootstrap"
    cd "$work/bootstrap"
    tar -xf "$archive" flux-gen/tool flux-gen/checksums.sha256
    test "sha256:$(sha256sum flux-gen/checksums.sha256 | cut -d' ' -f1)" = "$digest"
    grep ' flux-gen/tool/' flux-gen/checksums.sha256 | sha256sum --strict -c -
    tool=$work/bootstrap/flux-gen/tool/flux-gen-linux-amd64
    env -i "$tool" archive verify "$archive" --expect "$digest"
    env -i "$tool" archive load "$archive" --plain-http "$inside" --to "$inside/boot" -o site --platform linux/amd64
    env -i "$tool" archive verify "$inside/boot" --plain-http "$inside" --bundles site --platform linux/amd64
    (cd site && env -i "$tool" check --locked)
    podman pull -q --tls-verify=false "$inside/boot/${outside//:/-}/tools/flux-gen:v1"
    podman rmi -f "$inside/boot/${outside//:/-}/tools/flux-gen:v1" > /dev/null
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    trap 'stop_outside; finish' EXIT
    for program in docker-registry skopeo umoci podman jq curl gcc; do
        if ! command -v "$program" > /dev/null; then
            printf 'airgap: %s is missing; run ci/tools/install\n' "$program"
            [ -z "${CI:-}" ] || exit 1
            exit 0
        fi
    done
    [ -n "${FLUX_GEN_BUILT:-}" ] || cargo build --quiet --locked --lib --bin flux-gen --example release-image --manifest-path "$repo/Cargo.toml"
    airgap_outside > "$work/outside.log" 2>&1 || { cat "$work/outside.log"; exit 1; }
    ok "lock, build, archive save, archive verify: one platform" outside_save "$work/project" linux/amd64
    ok "skopeo, tar with sha256sum and umoci read the archive" outside_readers "$work/project/site.tar"
    ok "flux-gen itself as an image, linked statically" outside_tool
    ok "a site without flux-gen takes it out of the archive, and it does the rest" outside_bootstrap
    ok "podman load takes its images" outside_podman "$work/project/with-tool.tar"
    outside_project "$work/every"
    ok "what was loaded is compared with the archive" outside_loaded "$work/project/site.tar"
    ok "the same with all platforms, indexes as published" outside_save "$work/every"
    ok "archives by skopeo are taken in the place of a registry" outside_foreign
    ok "killed and run again: the same file, little memory" outside_killed
    grep 'memory of save' "$work/output" || true
    ok "a full disk and one that is read-only" outside_disks
    ok "a disk with room for the archive and its largest blob, and little memory" outside_small
    ok "a registry that goes away" outside_dies
    verdict
fi
