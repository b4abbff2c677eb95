#!/bin/bash
# Packages of the system for {{ title }}. Needs the network.
set -euo pipefail
export LC_ALL=C
{% if before %}
bash -eu /flux-gen/system/before.sh
{% endif %}
{% if apt %}
export DEBIAN_FRONTEND=noninteractive
apt-get -q update
apt-get -q install -y --no-install-recommends -- {{ apt }}
rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin
{% endif %}
{% if dnf %}
dnf -q install -y --setopt=install_weak_deps=False -- {{ dnf }}
dnf -q clean all
{% endif %}
