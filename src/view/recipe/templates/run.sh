#!/bin/bash
# Every step of {{ title }}, one after the other. Needs no network{% if network %} except where said{% endif %}.
set -euo pipefail
step() {
    printf '==> flux-gen step %s of {{ count }}: %s\n' "$1" "$2"
    bash "/flux-gen/steps/$3"
}
{% for step in steps %}
step {{ loop.index }} {{ step.title|sh }} {{ step.file|sh }}
{% endfor %}
