# shellcheck shell=bash disable=SC2034 # used by the scripts that source this
# Names and functions that every script of this cluster shares. Sourced, never run.
# Names without flux_gen are for hooks: they are the ones the Flux Operator's documents give.
export viewbase={{ mount|sh }}
export viewroot="$viewbase/view"
export configroot="$viewbase/config"
export fluxsocket="local://$configroot/run/flux/local"
mainHost={{ main_host|sh }}
{% if has_flux %}
hosts={{ hosts|sh }}
{% endif %}
flux_gen_quiet={{ quiet|int }}
flux_gen_strict={{ strict|int }}
flux_gen_status=0
flux_gen_child=
flux_gen_signalled=
flux_gen_post=

flux_gen_say() {
    [ "$flux_gen_quiet" = 1 ] || printf 'flux-gen: %s\n' "$*"
}

flux_gen_fail() {
    flux_gen_code=$1
    shift
    printf 'flux-gen: error: %s\n' "$*" >&2
    exit "$flux_gen_code"
}

# A signal while nothing runs ends the script at once; while a child runs it is passed on, and the end is reported as 143,
# because a broker that is told to end exits 0 and an evicted pod would count as a success.
flux_gen_on_term() {
    flux_gen_signalled=1
    [ -n "$flux_gen_child" ] || exit 143
    kill -TERM "$flux_gen_child" 2>/dev/null || true
}

# Whatever a later hook does, a failed program stays the result. A follower whose work is done is ended from outside, so
# its last hook runs here.
flux_gen_on_exit() {
    flux_gen_code=$?
    if [ -n "$flux_gen_post" ]; then flux_gen_hook "$flux_gen_post" loud; fi
    if [ "$flux_gen_status" != 0 ]; then exit "$flux_gen_status"; fi
    exit "$flux_gen_code"
}

# Runs a command as a child and leaves its exit code in flux_gen_code; the terminal stays its standard input.
flux_gen_run() {
    "$@" <&0 &
    flux_gen_child=$!
    while :; do
        flux_gen_code=0
        wait "$flux_gen_child" || flux_gen_code=$?
        kill -0 "$flux_gen_child" 2>/dev/null || break
    done
    flux_gen_child=
    if [ -n "$flux_gen_signalled" ]; then exit 143; fi
}

flux_gen_sleep() {
    sleep "$1" &
    wait $! || true
}

# Sources a hook in this shell, so that what it sets stays set. Quiet drops what it prints, not its errors.
flux_gen_hook() {
    [ -f "$1" ] || return 0
    if [ "$flux_gen_quiet" = 1 ] && [ "$2" != loud ]; then
        # shellcheck disable=SC1090
        . "$1" >/dev/null
    else
        # shellcheck disable=SC1090
        . "$1"
    fi
}

flux_gen_home() {
    if [ -z "$HOME" ] || [ "$HOME" = / ]; then export HOME=/home/flux-operator; fi
}

# Wall time as [hours:]minutes:seconds with hundredths, from two readings of flux_gen_now.
flux_gen_now() {
    flux_gen_clock=$(date +%s%N)
    flux_gen_clock=$((flux_gen_clock / 10000000))
}

flux_gen_elapsed() {
    flux_gen_now
    flux_gen_clock=$((flux_gen_clock - $2))
    flux_gen_part=$(printf '%02d.%02d' $((flux_gen_clock / 100 % 60)) $((flux_gen_clock % 100)))
    if [ "$flux_gen_clock" -ge 360000 ]; then
        flux_gen_part=$(printf '%d:%02d:%s' $((flux_gen_clock / 360000)) $((flux_gen_clock / 6000 % 60)) "$flux_gen_part")
    else
        flux_gen_part=$(printf '%d:%s' $((flux_gen_clock / 6000)) "$flux_gen_part")
    fi
    printf 'FLUXTIME %s wall time %s\n' "$1" "$flux_gen_part" >&2
}
{% if has_flux %}

# Flux from the view comes last, so that a Flux in the image wins.
flux_gen_paths() {
{% if view %}
    if [ ! -e "$viewroot" ]; then
        for flux_gen_dir in /opt/views/._view/*/; do
            [ ! -x "$flux_gen_dir/bin/flux" ] || ln -sfn "$flux_gen_dir" "$viewroot"
        done
    fi
    export PATH="$PATH:$viewroot/bin"
{% if python_path %}
    flux_gen_python={{ python_path|sh }}
{% else %}
    flux_gen_python=
    for flux_gen_dir in "$viewroot"/lib/python3*/site-packages; do
        if [ -d "$flux_gen_dir" ]; then flux_gen_python=$flux_gen_dir; fi
    done
{% endif %}
    if [ -n "$flux_gen_python" ]; then
        if [ -n "$PYTHONPATH" ]; then PYTHONPATH="$PYTHONPATH:$flux_gen_python"; else PYTHONPATH=$flux_gen_python; fi
        export PYTHONPATH
    fi
{% endif %}
{% if simple_scheduler %}
    export FLUXION_RESOURCE_RC_NOOP=1 FLUXION_QMANAGER_RC_NOOP=1
{% endif %}
{% for name, value in environment %}
    export {{ name }}={{ value|sh }}
{% endfor %}
    :
}

# The files that people source by hand stand beside the view.
flux_gen_helpers() {
    for flux_gen_file in flux-view.sh flux-connect.sh load-fluxion.sh; do
        [ -e "$viewbase/$flux_gen_file" ] || cp "/flux_operator/$flux_gen_file" "$viewbase/$flux_gen_file" 2>/dev/null || true
    done
}
{% endif %}

trap flux_gen_on_term TERM
