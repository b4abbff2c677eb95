# shellcheck shell=bash
# shellcheck disable=SC2034  # read by the scripts that source this file
# Every pinned version of the test programs, except those of Go modules, which stand in the go.mod of each folder.

# Oldest Rust that flux-gen and cargo-deny are built with.
RUST_MINIMUM=1.95.0
# Oldest Go that can build kube/ and secret-tools/, and the one fetched when the machine has no such Go.
GO_MINIMUM=1.26.8
GO_VERSION=1.26.8
CARGO_DENY_VERSION=0.20.2
# C compiler of the release programs: the wheel `ziglang` of PyPI for x86_64.
ZIG_VERSION=0.17.1
ZIG_SHA256=ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54
# Whose CRDs judge what `flux-gen gitops` writes; that of Argo CD stands in argo-cd/go.mod.
SOURCE_CONTROLLER_VERSION=v1.9.6
KUSTOMIZE_CONTROLLER_VERSION=v1.9.6
# Key of the base image in the cache: raise it when base-image makes something else.
BASE_IMAGE_VERSION=1
DEBIAN_MIRROR=http://deb.debian.org/debian
# Versions are those of Debian 12 and its security updates.
DOCKER_PACKAGES=(containerd docker.io)
DEBIAN_PACKAGES=(
  aardvark-dns
  bubblewrap
  buildah
  ca-certificates
  conmon
  curl
  debootstrap
  docker-registry
  gcc
  iproute2
  iptables
  jq
  libc6-dev
  libfaketime
  netavark
  nftables
  openssl
  patchelf
  pigz
  podman
  procps
  python3
  runc
  shellcheck
  skopeo
  time
  uidmap
  umoci
  util-linux
)
