#!/bin/bash
# Opens a shell that is connected to the broker of this pod.
# shellcheck disable=SC1091 # stands beside this file
. {{ mount|sh }}/flux-view.sh
exec flux proxy "$fluxsocket" bash
