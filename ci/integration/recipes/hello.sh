# shellcheck shell=bash
# shellcheck disable=SC2154 # repo, tools and work are of lib.sh
# The recipe that recipes/run and engines/run build for real, and the stand-in for a distribution in which they do. After lib.sh.

hello=$repo/ci/integration/recipes/recipes/hello

# A container of an image, which remove_containers removes at the latest.
container_of() {
    buildah from --pull=never --name "recipes-$$-$BASHPID-$EPOCHREALTIME" "$1"
}

remove_containers() {
    local left
    for left in $(buildah containers --format '{{.ContainerName}}' | grep "^recipes-$$-"); do buildah rm "$left" >/dev/null || true; done
}

# The stand-in for a distribution's image: compilers, autotools, python. Kept by the engine between runs; of two scripts that
# want it at once one makes it.
build_base() {
    local image=localhost/flux-gen-build:bookworm version=3 have container lock
    exec {lock}> "${TMPDIR:-/tmp}/flux-gen-build-base.lock"
    flock "$lock"
    have=$(buildah inspect --type image --format '{{index .OCIv1.Config.Labels "dev.flux-gen.build"}}' "$image" 2>/dev/null || true)
    if [ "$have" != "$version" ]; then
        container=$(container_of "$("$tools/base-image")")
        buildah run --network=host "$container" -- apt-get -q update
        buildah run --network=host "$container" -- env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends \
            autoconf automake binutils busybox-static gcc libc6-dev make patch python3
        buildah config --label "dev.flux-gen.build=$version" "$container"
        buildah commit --quiet --rm "$container" "$image"
    fi
    exec {lock}>&-
}

# A release of our own, as projects make them: configure is in it. What listens and calls the roll in the pods is podlet's
# stand-in, which `make install` puts where Flux has its broker. Then the recipe with its checksum, in $work/recipes.
release() {
    local container sum
    mkdir -p "$work/mirror" "$work/recipes"
    container=$(container_of localhost/flux-gen-build:bookworm)
    buildah copy --quiet "$container" "$hello/tool" /src/flux-1.0
    buildah copy --quiet "$container" "${CARGO_TARGET_DIR:-$repo/target}/debug/stub-flux" /src/flux-1.0/flux-broker
    buildah run --network=none "$container" -- bash -ec 'cd /src/flux-1.0 && autoreconf -i && rm -rf autom4te.cache
        tar --sort=name --mtime=@0 --owner=0 --group=0 -C /src -czf /src/release.tar.gz flux-1.0'
    buildah run --network=none "$container" -- cat /src/release.tar.gz > "$work/mirror/flux-1.0.tar.gz"
    buildah rm "$container"
    sum=$(sha256sum "$work/mirror/flux-1.0.tar.gz" | cut -d' ' -f1)
    cp -R "$hello" "$work/recipes/"
    sed -i "s/@SHA256@/$sum/" "$work/recipes/hello/recipe.yaml"
}

# variant NAME COMMAND: the recipe in $work/NAME, with a command in place of the one that the step of python copies with.
variant() {
    rm -rf "${work:?}/$1"
    mkdir "$work/$1"
    cp -R "$work/recipes/hello" "$work/$1/"
    sed -i "s|cp -R .*|$(sed 's/[&|\\]/\\&/g' <<< "$2")|" "$work/$1/hello/recipe.yaml"
    grep -qF -- "$2" "$work/$1/hello/recipe.yaml"
}

# The recipe in $work/net with one step, which looks for a network.
variant_without_network() {
    mkdir -p "$work/net/hello"
    sed '/^packages:/,$d' "$work/recipes/hello/recipe.yaml" > "$work/net/hello/recipe.yaml"
    cat >> "$work/net/hello/recipe.yaml" <<'YAML'
packages:
  - name: flux
    version: "1.0"
    build: script
    folder: tool
    script: |
      # Nothing but the loopback device.
      test "$(ls /sys/class/net)" = lo
      mkdir -p "$PREFIX/bin"
      cp /bin/true "$PREFIX/bin/flux"
YAML
    cp -R "$work/recipes/hello/tool" "$work/net/hello/tool"
}
