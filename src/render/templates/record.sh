#!/bin/bash
# Runs a command and leaves its exit code in a file, because the broker's own may tell of something else.
# shellcheck disable=SC1091,SC2154,SC2034 # names come from, and go to, common.sh and hooks in the same ConfigMap
. /flux_operator/common.sh
flux_gen_run "$@"
printf '%s\n' "$flux_gen_code" > "$configroot/program-status"
exit "$flux_gen_code"
