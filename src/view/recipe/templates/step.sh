#!/bin/bash
# {{ title }}
set -euo pipefail
umask 022
export LC_ALL=C TZ=UTC HOME=/flux-gen/home SOURCE_DATE_EPOCH=315532800 PYTHONHASHSEED=0
export MAKEFLAGS="-j${FLUX_GEN_JOBS:-2}" CMAKE_BUILD_PARALLEL_LEVEL="${FLUX_GEN_JOBS:-2}"
mkdir -p "$HOME"
{% for name, value in environment %}
export {{ name }}={{ value|sh }}
{% endfor %}
{% for folder in path %}
PATH={{ folder|sh }}:$PATH
{% endfor %}
export PATH
{% if folder %}
mkdir -p {{ folder|sh }}
cd {{ folder|sh }}
{% endif %}
{% if source_setup %}
# shellcheck source=/dev/null
. {{ source_setup|sh }}
{% endif %}
{% for command in commands %}
{{ command }}
{% endfor %}
