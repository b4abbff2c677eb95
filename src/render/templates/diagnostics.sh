#!/bin/bash
# Flux's diagnostic commands; then the cluster stays up to look around.
for flux_gen_command in 'overlay status' 'lsattr -v' 'dmesg'; do
    printf '\nflux %s\n' "$flux_gen_command"
    # shellcheck disable=SC2086 # words
    flux $flux_gen_command
done
exec sleep infinity
