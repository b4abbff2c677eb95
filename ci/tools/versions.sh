# shellcheck shell=bash
# shellcheck disable=SC2034  # read by the scripts that source this file
# Every pinned version of the test programs, except Kubernetes and etcd: those are in kube/go.mod.

# Oldest Rust that flux-gen and cargo-deny are built with.
RUST_MINIMUM=1.95.0
# Oldest Go that can build kube/, and the one fetched when the machine has no such Go.
GO_MINIMUM=1.26.0
GO_VERSION=1.26.8
CARGO_DENY_VERSION=0.20.2
# Key of the base image in the cache: raise it when base-image makes something else.
BASE_IMAGE_VERSION=1
DEBIAN_MIRROR=http://deb.debian.org/debian
# Versions are those of Debian 12 and its security updates.
DEBIAN_PACKAGES=(
  aardvark-dns
  bubblewrap
  ca-certificates
  conmon
  debootstrap
  gcc
  iproute2
  iptables
  jq
  libc6-dev
  netavark
  nftables
  openssl
  podman
  procps
  python3
  runc
  shellcheck
  uidmap
  util-linux
)
