#!/bin/bash
# Opens a shell that is connected to the broker of this pod.
# shellcheck disable=SC1091,SC2154 # the file beside this one sets fluxsocket
. {{ mount|sh }}/flux-view.sh
exec flux proxy "$fluxsocket" bash
