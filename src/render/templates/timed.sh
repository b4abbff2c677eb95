#!/bin/bash
# Runs a command and prints how long it took: timed.sh NAME COMMAND [ARGUMENT ...].
# shellcheck disable=SC1091,SC2154,SC2034 # names come from, and go to, common.sh and hooks in the same ConfigMap
. /flux_operator/common.sh
flux_gen_name=$1
shift
flux_gen_now
flux_gen_start=$flux_gen_clock
flux_gen_run "$@"
flux_gen_result=$flux_gen_code
flux_gen_elapsed "$flux_gen_name" "$flux_gen_start"
exit "$flux_gen_result"
