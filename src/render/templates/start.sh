#!/bin/bash
# Runs the hooks and the command of container {{ comment }}, which does not run Flux itself.
# shellcheck disable=SC1091,SC2154,SC2034,SC2016 # names come from, and go to, common.sh and hooks in the same ConfigMap
. /flux_operator/{{ common }}
trap flux_gen_on_exit EXIT
flux_gen_home
if [ "$flux_gen_strict" = 1 ]; then set -eE -o pipefail; fi
flux_gen_hook /flux_operator/{{ hooks }}-init.sh
{% if has_flux %}
flux_gen_paths
flux_gen_helpers
{% endif %}
{% if wait_for_socket %}
until [ -S "$configroot/run/flux/local" ]; do
    if [ -e "$viewbase/flux-operator-complete.txt" ]; then
        flux_gen_say "Flux has ended before its socket was seen"
        exit 0
    fi
    flux_gen_sleep 0.2
done
{% endif %}
asFlux=
flux_gen_hook /flux_operator/{{ hooks }}-preCommand.sh
flux_gen_hook /flux_operator/{{ hooks }}-pre.sh
{% if has_flux %}
if [ "$HOSTNAME" = "$mainHost" ]; then
    flux_gen_hook /flux_operator/{{ hooks }}-brokerPre.sh
else
    flux_gen_hook /flux_operator/{{ hooks }}-workerPre.sh
fi
{% endif %}
flux_gen_hook /flux_operator/{{ hooks }}-servicePre.sh
{% if program %}
flux_gen_run {{ program }}
flux_gen_status=$flux_gen_code
{% endif %}
flux_gen_hook /flux_operator/{{ hooks }}-post.sh loud
exit "$flux_gen_status"
